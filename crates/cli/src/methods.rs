//! The methods that this program knows, and the options that their parameters become.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};
use rayspin::ct::corrections::{self, Correction, Corrections};
use rayspin::ct::methods as ct;
use rayspin::io;
use rayspin::mri::methods::{self, Kind, MapUse, Method, Methods, Param, Place, Value};
use rayspin::report::RunRecorder;
use rayspin::run::{Described, Parameters as _, Table};
use rayspin_shell::BadInput;
use rayspin_shell::effect::{Given, refuse};

/// The methods of one kind of scans, as the command has them.
pub(crate) trait Kit: std::fmt::Debug + Clone + Default + Send + Sync + 'static {
    /// What a method is.
    type Method: Described + ?Sized + 'static;

    /// Says what decides the method where the user names none.
    const DEFAULT: &'static str;

    /// The table.
    fn methods() -> &'static Table<Self::Method>;

    /// A copy of a method with other values. Errors: a value out of range.
    fn with(method: &Self::Method, values: Vec<(String, Value)>) -> rayspin::core::Result<Arc<Self::Method>>;
}

/// Methods for MRI scans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mri;

impl Kit for Mri {
    type Method = dyn Method;

    const DEFAULT: &'static str = "cartesian for a full grid, low-rank-sparse for a series of few irregular samples an image, wavelet for few irregular samples, \
         cg-sense for several coils, else ls";

    fn methods() -> &'static Table<dyn Method> {
        methods()
    }

    fn with(method: &dyn Method, values: Vec<(String, Value)>) -> rayspin::core::Result<Arc<dyn Method>> {
        methods::with(method, values)
    }
}

/// Methods for CT scans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ct;

impl Kit for Ct {
    type Method = dyn ct::Method;

    const DEFAULT: &'static str =
        "fbp for parallel and fan beams on a circle, fdk for cone beams on a circle, else cgls";

    fn methods() -> &'static Table<dyn ct::Method> {
        ct_methods()
    }

    fn with(
        method: &dyn ct::Method,
        values: Vec<(String, Value)>,
    ) -> rayspin::core::Result<Arc<dyn ct::Method>> {
        ct::with(method, values)
    }
}

static METHODS: OnceLock<Methods> = OnceLock::new();
static CT_METHODS: OnceLock<ct::Methods> = OnceLock::new();
static CORRECTIONS: OnceLock<corrections::Table> = OnceLock::new();

/// The methods for MRI scans of this process.
pub(crate) fn methods() -> &'static Methods {
    METHODS.get_or_init(Methods::default)
}

/// The methods for CT scans of this process.
pub(crate) fn ct_methods() -> &'static ct::Methods {
    CT_METHODS.get_or_init(ct::Methods::default)
}

/// The corrections of CT scans.
pub(crate) fn ct_corrections() -> &'static corrections::Table {
    CORRECTIONS.get_or_init(corrections::Table::default)
}

/// Takes these methods for the process. The first call decides.
pub(crate) fn take(methods: Methods) {
    let _ = METHODS.set(methods);
}

/// Whether a method iterates with the normal operator.
pub(crate) fn iterates(method: &dyn Method) -> bool {
    method.uses().normal
}

/// Whether a method takes samples of an inhomogeneous field.
pub(crate) fn in_a_field(method: &dyn Method) -> bool {
    method.uses().place != Place::Grid
}

/// Whether a method solves for an image for each of several sets of maps.
pub(crate) fn over_sets(method: &dyn Method) -> bool {
    method.uses().maps == MapUse::Sets
}

/// Whether the largest eigenvalue of one image serves the next.
pub(crate) fn shares_eigenvalue(method: &dyn Method) -> bool {
    let uses = method.uses();
    uses.normal && !uses.own_eigenvalue
}

/// A parameter as it was typed.
#[derive(Debug, Clone)]
enum Typed {
    Value(Value),
    /// A number that is searched for: `auto`.
    Searched,
    /// Where the image lies.
    Image(PathBuf),
}

impl Typed {
    /// A number, or `auto`.
    fn number_or_auto(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Self::Searched),
            _ => text
                .parse()
                .map(|number| Self::Value(Value::Number(number)))
                .map_err(|_| "expected a number, or auto to search for one".into()),
        }
    }

    /// What was typed for a parameter; none where nothing was.
    fn of(param: &Param, matches: &ArgMatches) -> Option<Self> {
        let name = param.name;
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            return None;
        }
        match param.kind {
            Kind::Number if param.searched => matches.get_one::<Self>(name).cloned(),
            Kind::Number => matches.get_one::<f64>(name).map(|v| Self::Value(Value::Number(*v))),
            Kind::Count => matches.get_one::<u64>(name).map(|v| Self::Value(Value::Count(*v))),
            Kind::Image => matches.get_one::<PathBuf>(name).cloned().map(Self::Image),
            Kind::Choice(choices) => matches.get_one::<String>(name).and_then(|typed| {
                let chosen = choices.iter().find(|choice| choice.name == typed)?;
                Some(Self::Value(Value::Choice(chosen.name)))
            }),
        }
    }

    /// The file that it names.
    fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::Image(path) => Some(path),
            Self::Value(_) | Self::Searched => None,
        }
    }

    fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Image(path) => Some(path),
            Self::Value(_) | Self::Searched => None,
        }
    }
}

/// The image of a parameter. Errors: a file that cannot be read, more than one image in it.
fn image_of(name: &str, path: &std::path::Path) -> Result<Value> {
    let image = io::read_image(path)?.image;
    if image.repetitions() > 1 {
        let message = format!("{}: expected one image, found {}", path.display(), image.repetitions());
        let hint = format!("{} takes a single volume or slice", option_of(name));
        return Err(BadInput::new(message).hint(hint).into());
    }
    Ok(Value::Image(Arc::new(image.magnitude())))
}

/// `--method`, and an option for every parameter of any method.
#[derive(Debug, Clone, Default)]
pub(crate) struct MethodArgs<K> {
    /// The value of `--method`. When absent, the scan decides the method.
    name: Option<String>,
    values: BTreeMap<&'static str, Typed>,
    kit: PhantomData<K>,
}

impl<K: Kit> MethodArgs<K> {
    /// The method that the user named.
    pub(crate) fn method(&self) -> Option<&'static K::Method> {
        self.name.as_deref().and_then(|name| K::methods().named(name).ok())
    }

    /// Files that parameters name.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.values.values_mut().filter_map(Typed::file_mut)
    }

    /// Whether a parameter's value is to be searched for.
    pub(crate) fn searches(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Typed::Searched))
    }

    /// The file that an image parameter names.
    pub(crate) fn file(&self, name: &str) -> Option<&PathBuf> {
        self.values.get(name).and_then(Typed::file)
    }

    /// Whether a parameter was typed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// What was typed for a parameter that is no image.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        match self.values.get(name) {
            Some(Typed::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether a method has all parameters that were typed.
    pub(crate) fn fit(&self, method: &K::Method) -> bool {
        self.values.keys().all(|name| method.get(name).is_some())
    }

    /// The method with the typed values of its parameters, except for images.
    ///
    /// Errors: a value out of range.
    pub(crate) fn of(&self, method: &K::Method) -> Result<Arc<K::Method>> {
        let values = self.values.iter().filter_map(|(name, typed)| match typed {
            Typed::Value(value) if method.get(name).is_some() => Some(((*name).to_owned(), value.clone())),
            _ => None,
        });
        Ok(K::with(method, values.collect())?)
    }

    /// The method with the images that its parameters name.
    ///
    /// Errors: a file that cannot be read, more than one image in it.
    pub(crate) fn with_images(&self, method: &K::Method) -> Result<Arc<K::Method>> {
        let mut images = Vec::new();
        for (name, typed) in &self.values {
            let Typed::Image(path) = typed else { continue };
            if method.get(name).is_none() {
                continue;
            }
            images.push(((*name).to_owned(), image_of(name, path)?));
        }
        Ok(K::with(method, images)?)
    }

    /// Refuses the first parameter given that the method does not have, or that does nothing as the others stand.
    pub(crate) fn refuse_idle(&self, given: &Given, method: &K::Method) -> Result<()> {
        let name = method.about().name;
        for param in K::methods().params().iter().map(|(param, _)| param) {
            let Some(option) = given.name(param.name) else { continue };
            if method.get(param.name).is_none() {
                let fitting = K::methods().names(|method| method.get(param.name).is_some());
                return refuse(option, &format!("--method {fitting}"), &format!("--method {name}"));
            }
        }
        for idle in self.of(method)?.idle() {
            if let Some(option) = given.name(idle.name)
                && !(idle.name == "anatomy_edge" && self.has("anatomy"))
            {
                return refuse(option, idle.expected, &idle.found);
            }
        }
        Ok(())
    }
}

/// Records the method and its parameters, by their names. An image is the file that it came from, whose hash is among the inputs.
pub(crate) fn record<M: Described + ?Sized>(
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

/// A value in a record; an image is the file that it came from.
fn recorded(value: &Value, file: impl FnOnce() -> Option<PathBuf>) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Number(number) => serde_json::json!(number),
        Value::Count(count) => serde_json::json!(count),
        Value::Choice(name) => serde_json::json!(name),
        Value::Image(_) => serde_json::json!(file()),
    }
}

/// The command's option of a parameter.
fn option_of(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// `1e-3; wavelet 3e-3, tv 2e-3`: the default that most methods have, and the others.
fn defaults(param: &Param, of: &[(&'static str, Value)]) -> String {
    let text = |value: &Value| match value {
        Value::Nothing => param.absent.to_owned(),
        value => value.to_string(),
    };
    let texts: Vec<String> = of.iter().map(|(_, value)| text(value)).collect();
    let count = |wanted: &String| texts.iter().filter(|text| *text == wanted).count();
    let Some(most) = texts.iter().rev().max_by_key(|text| count(text)) else { return String::new() };
    let others = of.iter().zip(&texts).filter(|(_, text)| *text != most);
    let others: Vec<String> = others.map(|((name, _), text)| format!("{name} {text}")).collect();
    if others.is_empty() { most.clone() } else { format!("{most}; {}", others.join(", ")) }
}

fn argument(param: &Param, of: &[(&'static str, Value)]) -> Arg {
    let names: Vec<_> = of.iter().map(|(name, _)| *name).collect();
    let only = format!(" ({})", names.join(", "));
    let auto = if param.searched { "; auto searches for the one that predicts samples held out" } else { "" };
    let mut default = defaults(param, of);
    if !param.rule.is_empty() {
        default = format!("by {}, else {default}", param.rule);
    }
    // The short help has the first clause.
    let brief = param.help.split([',', ';', '(']).next().unwrap_or(param.help).trim_end();
    let mut arg = Arg::new(param.name)
        .long(param.name.replace('_', "-"))
        .help(format!("{brief} [default: {default}]"))
        .long_help(format!("{}{auto}{only} [default: {default}]", param.help))
        .help_heading(param.group);
    if let Some(letter) = param.short {
        arg = arg.short(letter);
    }
    match param.kind {
        Kind::Number if param.searched => arg
            .value_name(format!("{}|auto", param.name.to_uppercase()))
            .value_parser(Typed::number_or_auto)
            .allow_negative_numbers(true),
        Kind::Number => arg
            .value_name(param.name.to_uppercase())
            .value_parser(value_parser!(f64))
            .allow_negative_numbers(true),
        Kind::Count => arg.value_name("N").value_parser(value_parser!(u64)),
        Kind::Choice(choices) => {
            let values = choices.iter().map(|choice| PossibleValue::new(choice.name).help(choice.help));
            arg.value_name(param.name.to_uppercase()).value_parser(values.collect::<Vec<_>>())
        }
        Kind::Image => {
            arg.value_name("IMAGE").value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath)
        }
    }
}

impl<K: Kit> Args for MethodArgs<K> {
    fn augment_args(command: Command) -> Command {
        let names = K::methods().iter().map(|method| {
            let about = method.about();
            PossibleValue::new(about.name).help(about.help)
        });
        let method = Arg::new("method")
            .long("method")
            .short('m')
            .value_name("METHOD")
            .help("How the image is made [default: chosen from the scan]")
            .long_help(format!("How the image is made [default: {}]", K::DEFAULT))
            .value_parser(names.collect::<Vec<_>>());
        let params = K::methods().params();
        command.arg(method).args(params.iter().map(|(param, of)| argument(param, of)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: Kit> FromArgMatches for MethodArgs<K> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.name = matches.get_one::<String>("method").cloned();
        for (param, _) in K::methods().params() {
            if let Some(typed) = Typed::of(&param, matches) {
                self.values.insert(param.name, typed);
            }
        }
        Ok(())
    }
}

/// `--correct`, and an option for every parameter of any correction.
#[derive(Debug, Clone, Default)]
pub(crate) struct CorrectionArgs {
    names: Vec<String>,
    values: BTreeMap<&'static str, Typed>,
}

impl CorrectionArgs {
    fn named(&self) -> impl Iterator<Item = &'static dyn Correction> {
        self.names.iter().filter_map(|name| ct_corrections().named(name).ok())
    }

    /// Files that parameters name.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.values.values_mut().filter_map(Typed::file_mut)
    }

    /// Refuses the first parameter given that no correction of this run has.
    pub(crate) fn refuse_idle(&self, given: &Given) -> Result<()> {
        for (param, _) in ct_corrections().params() {
            let Some(option) = given.name(param.name) else { continue };
            if !self.named().any(|one| one.get(param.name).is_some()) {
                let fitting = ct_corrections().names(|one| one.get(param.name).is_some());
                let found = if self.names.is_empty() {
                    "none".into()
                } else {
                    format!("--correct {}", self.names.join(","))
                };
                return refuse(option, &format!("--correct {fitting}"), &found);
            }
        }
        Ok(())
    }

    /// The corrections with the typed values of their parameters.
    ///
    /// Errors: a value out of range, or one that is missing; an image that cannot be read; a correction twice.
    pub(crate) fn corrections(&self) -> Result<Corrections> {
        let one = |one: &'static dyn Correction| -> Result<Arc<dyn Correction>> {
            let mut values = Vec::new();
            for (name, typed) in self.values.iter().filter(|(name, _)| one.get(name).is_some()) {
                let value = match typed {
                    Typed::Value(value) => value.clone(),
                    Typed::Image(path) => image_of(name, path)?,
                    Typed::Searched => continue,
                };
                values.push(((*name).to_owned(), value));
            }
            Ok(corrections::with(one, values)?)
        };
        Ok(Corrections::of(self.named().map(one).collect::<Result<Vec<_>>>()?)?)
    }

    /// The corrections with their parameters, in the order in which they act, for a record.
    pub(crate) fn recorded(&self, corrections: &Corrections) -> serde_json::Value {
        let file = |name: &str| self.values.get(name).and_then(Typed::file).cloned();
        corrections
            .iter()
            .map(|one| {
                let mut entry = serde_json::Map::new();
                entry.insert("name".into(), one.about().name.into());
                for param in one.table() {
                    let value = one.get(param.name).unwrap_or(Value::Nothing);
                    entry.insert(param.name.into(), recorded(&value, || file(param.name)));
                }
                serde_json::Value::Object(entry)
            })
            .collect()
    }
}

impl Args for CorrectionArgs {
    fn augment_args(command: Command) -> Command {
        let names = ct_corrections().iter().map(|one| {
            let about = one.about();
            PossibleValue::new(about.name).help(about.help)
        });
        let correct = Arg::new("correct")
            .long("correct")
            .value_name("NAMES")
            .value_delimiter(',')
            .help("Corrections besides flat and dark fields")
            .long_help(
                "Corrections, separated by commas; they act in the order of this list, whatever the order of their names \
                 [default: flat and dark fields alone]",
            )
            .help_heading(corrections::GROUP)
            .value_parser(names.collect::<Vec<_>>());
        let params = ct_corrections().params();
        command.arg(correct).args(params.iter().map(|(param, of)| argument(param, of)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CorrectionArgs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.names = matches.get_many::<String>("correct").unwrap_or_default().cloned().collect();
        for (param, _) in ct_corrections().params() {
            if let Some(typed) = Typed::of(&param, matches) {
                self.values.insert(param.name, typed);
            }
        }
        Ok(())
    }
}
