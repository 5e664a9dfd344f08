//! The user's method, and the values of its parameters.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayspin_report::RunRecorder;
use rayspin_run::{BadInput, Described, Given, Parameters as _, Table, Value, changed};

use crate::Result;

/// The methods of one kind of scans.
pub trait Kit: std::fmt::Debug + Clone + Default + Send + Sync + 'static {
    /// What a method is.
    type Method: Described + ?Sized + 'static;

    /// Says what decides the method where the user names none.
    const DEFAULT: &'static str;

    /// The table.
    fn methods() -> &'static Table<Self::Method>;
}

/// What a user gave for a parameter.
#[derive(Debug, Clone)]
pub enum Typed {
    /// Its value.
    Value(Value),
    /// A number that is searched for.
    Searched,
    /// The file of an image.
    Image(PathBuf),
}

impl Typed {
    /// The file that it names.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::Image(path) => Some(path),
            Self::Value(_) | Self::Searched => None,
        }
    }

    /// [`Self::file`], to be changed.
    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Image(path) => Some(path),
            Self::Value(_) | Self::Searched => None,
        }
    }
}

/// The image that a parameter `name` takes from a file. Errors: a file that cannot be read, more than one
/// image in it.
pub fn image_of(name: &str, path: &Path) -> Result<Value> {
    let image = rayspin_io::read_image(path)?.image;
    if image.repetitions() > 1 {
        let message = format!("{}: expected one image, found {}", path.display(), image.repetitions());
        let hint = format!("{} takes a single volume or slice", option_of(name));
        return Err(BadInput::new(message).hint(hint).into());
    }
    Ok(Value::Image(Arc::new(image.magnitude())))
}

/// The command's option of a parameter, marked.
fn option_of(name: &str) -> String {
    format!("`--{}`", name.replace('_', "-"))
}

/// The user's method, and values of parameters of any method.
#[derive(Debug, Clone)]
pub struct Asked<K> {
    name: Option<String>,
    values: BTreeMap<&'static str, Typed>,
    kit: PhantomData<K>,
}

impl<K> Default for Asked<K> {
    fn default() -> Self {
        Self { name: None, values: BTreeMap::new(), kit: PhantomData }
    }
}

impl<K: Kit> Asked<K> {
    /// A method by its name, or without one the method that suits the scan.
    pub fn new(name: Option<String>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Sets what was given for a parameter.
    pub fn insert(&mut self, name: &'static str, typed: Typed) {
        self.values.insert(name, typed);
    }

    /// The method that the user named.
    pub fn method(&self) -> Option<&'static K::Method> {
        self.name.as_deref().and_then(|name| K::methods().named(name).ok())
    }

    /// Files that parameters name.
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.values.values_mut().filter_map(Typed::file_mut)
    }

    /// Whether a parameter's value is to be searched for.
    pub fn searches(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Typed::Searched))
    }

    /// The file that an image parameter names.
    pub fn file(&self, name: &str) -> Option<&PathBuf> {
        self.values.get(name).and_then(Typed::file)
    }

    /// Whether a parameter was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// What was given for a parameter, unless that is a file.
    pub fn value(&self, name: &str) -> Option<&Value> {
        match self.values.get(name) {
            Some(Typed::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether a method has all parameters that were given.
    pub fn fit(&self, method: &K::Method) -> bool {
        self.values.keys().all(|name| method.get(name).is_some())
    }

    /// The method with the given values of its parameters, except for images in files.
    ///
    /// Errors: a value out of range.
    pub fn of(&self, method: &K::Method) -> Result<Arc<K::Method>> {
        let values = self.values.iter().filter_map(|(name, typed)| match typed {
            Typed::Value(value) if method.get(name).is_some() => Some(((*name).to_owned(), value.clone())),
            _ => None,
        });
        Ok(changed(method.copy(), values)?)
    }

    /// The method with the images that its parameters name.
    ///
    /// Errors: a file that cannot be read, more than one image in it.
    pub fn with_images(&self, method: &K::Method) -> Result<Arc<K::Method>> {
        let mut images = Vec::new();
        for (name, typed) in &self.values {
            let Typed::Image(path) = typed else { continue };
            if method.get(name).is_none() {
                continue;
            }
            images.push(((*name).to_owned(), image_of(name, path)?));
        }
        Ok(changed(method.copy(), images)?)
    }

    /// Refuses the first parameter given that the method does not have, or that does nothing as the others
    /// stand.
    pub fn refuse_idle(&self, given: &Given, method: &K::Method) -> Result<()> {
        let name = method.about().name;
        for param in K::methods().params().iter().map(|(param, _)| param) {
            let Some(option) = given.name(param.name) else { continue };
            if method.get(param.name).is_none() {
                let fitting = K::methods().names(|method| method.get(param.name).is_some());
                let (expected, found) = (format!("`--method {fitting}`"), format!("`--method {name}`"));
                return Err(BadInput::idle(option, &expected, &found).into());
            }
        }
        for idle in self.of(method)?.idle() {
            if let Some(option) = given.name(idle.name)
                && !(idle.name == "anatomy_edge" && self.file("anatomy").is_some())
            {
                return Err(BadInput::idle(option, idle.expected, &idle.found).into());
            }
        }
        Ok(())
    }
}

/// Records the method and its parameters, by their names. An image is the file that it came from, whose hash
/// is among the inputs, or its shape.
pub fn record<M: Described + ?Sized>(
    recorder: &mut RunRecorder,
    method: &M,
    file: impl Fn(&str) -> Option<PathBuf>,
) {
    recorder.parameter("method", method.about().name);
    for param in method.table() {
        let value = method.get(param.name).unwrap_or(Value::Nothing);
        recorder.parameter(param.name, recorded(&value, || file(param.name)));
    }
}

/// A value in a record; an image is the file that it came from, or its shape.
pub(crate) fn recorded(value: &Value, file: impl FnOnce() -> Option<PathBuf>) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Number(number) => serde_json::json!(number),
        Value::Count(count) => serde_json::json!(count),
        Value::Choice(name) => serde_json::json!(name),
        Value::Image(image) => match file() {
            Some(path) => serde_json::json!(path),
            None => serde_json::json!(image.shape()),
        },
    }
}
