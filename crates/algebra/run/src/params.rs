//! Parameters of methods: one table, from which options of the command, help, records and keywords are made.

use std::fmt;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{Error, Result};

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// None: the method finds its own.
    Nothing,
    /// A number.
    Number(f64),
    /// How many.
    Count(u64),
    /// One of a few, by name.
    Choice(&'static str),
    /// An image `[z, y, x]` or `[y, x]`: a path in the command, an array in a library, a hash in a record.
    Image(Arc<ArrayD<f32>>),
}

/// The values that decide which programs a run loads, as text. A number decides by being 0 or not: a series
/// of trials with other numbers loads the same programs.
pub fn decisive(parameters: &(impl Parameters + ?Sized)) -> String {
    let values = parameters.table().into_iter().map(|param| match parameters.get(param.name) {
        Some(Value::Number(number)) => format!("{} {}", param.name, number != 0.0),
        Some(Value::Image(_)) => format!("{} image", param.name),
        other => format!("{} {other:?}", param.name),
    });
    values.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Number(value) if *value != 0.0 && (value.abs() < 0.01 || value.abs() >= 1e4) => {
                write!(f, "{value:e}")
            }
            Self::Number(value) => write!(f, "{value}"),
            Self::Count(value) => write!(f, "{value}"),
            Self::Choice(name) => f.write_str(name),
            Self::Image(image) => write!(f, "an image {:?}", image.shape()),
        }
    }
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Numbers.
    Number,
    /// Whole numbers from 0.
    Count,
    /// Names.
    Choice(&'static [Choice]),
    /// Images.
    Image,
}

/// One of the names that a [`Kind::Choice`] parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// What to do about quantities that errors name, with parameters marked as [`rayspin_core::Mention`] has
/// them.
pub type Remedy = (&'static [&'static str], &'static str);

/// The remedy of an option, of these or of the option's own, for a quantity that an error names.
pub fn remedy_of(remedies: &[Remedy], quantity: &str) -> Option<&'static str> {
    remedies.iter().find(|(quantities, _)| quantities.contains(&quantity)).map(|(_, remedy)| *remedy)
}

/// A row of a method's table of parameters.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The name of the field, as in `wavelet_levels`.
    pub name: &'static str,
    /// What errors call it, where that is not its name.
    pub title: &'static str,
    /// The letter of the command's short option.
    pub short: Option<char>,
    /// What values it takes.
    pub kind: Kind,
    /// Parameters that belong together.
    pub group: &'static str,
    /// The values that are in range, in words.
    pub expected: &'static str,
    /// Whether a value, never [`Value::Nothing`], is in range.
    pub valid: fn(&Value) -> bool,
    /// What it is. The first clause, up to a comma, a semicolon or a parenthesis, is the short help.
    pub help: &'static str,
    /// What help calls the value, where that is not its name: `LINE`.
    pub value: &'static str,
    /// What else there is to say; may be empty.
    pub details: &'static str,
    /// Whether the help that fits a screen leaves it out.
    pub rare: bool,
    /// What a method does that is given none, where none is the default.
    pub absent: &'static str,
    /// Whether a value may be searched for: `auto` in the command.
    pub searched: bool,
    /// What the value follows from where the user gives none and the scan tells it; empty where it is always
    /// the default.
    pub rule: &'static str,
    /// What to do about errors that name other quantities, or its own where setting it does not say all.
    pub remedies: &'static [Remedy],
}

impl Param {
    /// A parameter that takes any value of its kind; the table of its method says which kind that is.
    pub const fn new(group: &'static str, help: &'static str) -> Self {
        Self {
            name: "",
            title: "",
            short: None,
            kind: Kind::Number,
            group,
            expected: "any",
            valid: |_| true,
            help,
            value: "",
            details: "",
            rare: false,
            absent: "none",
            searched: false,
            rule: "",
            remedies: &[],
        }
    }

    /// Takes these values only.
    #[must_use]
    pub const fn expects(self, expected: &'static str, valid: fn(&Value) -> bool) -> Self {
        Self { expected, valid, ..self }
    }

    /// Errors call it this.
    #[must_use]
    pub const fn title(self, title: &'static str) -> Self {
        Self { title, ..self }
    }

    /// What errors call it: its title, or its name.
    pub fn what(&self) -> String {
        if self.title.is_empty() { self.name.replace('_', " ") } else { self.title.to_owned() }
    }

    /// Help calls the value this.
    #[must_use]
    pub const fn called(self, value: &'static str) -> Self {
        Self { value, ..self }
    }

    /// Help says more.
    #[must_use]
    pub const fn details(self, details: &'static str) -> Self {
        Self { details, ..self }
    }

    /// The help that fits a screen leaves it out.
    #[must_use]
    pub const fn rare(self) -> Self {
        Self { rare: true, ..self }
    }

    /// Has a short option.
    #[must_use]
    pub const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    /// Says what a method does without it.
    #[must_use]
    pub const fn absent(self, absent: &'static str) -> Self {
        Self { absent, ..self }
    }

    /// A value may be searched for.
    #[must_use]
    pub const fn searched(self) -> Self {
        Self { searched: true, ..self }
    }

    /// Without a value of the user's it follows from this.
    #[must_use]
    pub const fn follows(self, rule: &'static str) -> Self {
        Self { rule, ..self }
    }

    /// Says what to do about errors that name these quantities.
    #[must_use]
    pub const fn remedies(self, remedies: &'static [Remedy]) -> Self {
        Self { remedies, ..self }
    }

    /// What to do about an error that names this quantity, where the parameter has to do with it.
    pub fn remedy(&self, quantity: &str) -> Option<String> {
        let other = remedy_of(self.remedies, quantity).map(str::to_owned);
        let auto = if self.searched { "; auto searches for one" } else { "" };
        let own = || (self.what() == quantity).then(|| format!("`{}` sets this{auto}", self.option()));
        other.or_else(own)
    }

    /// The command's option: `--wavelet-levels`.
    pub fn option(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// Fails unless the value is of the parameter's kind and in range.
    pub fn check(&self, value: &Value) -> Result<()> {
        let fits = match (self.kind, value) {
            (_, Value::Nothing) => return Ok(()),
            (Kind::Number, Value::Number(_)) | (Kind::Count, Value::Count(_)) => true,
            (Kind::Choice(choices), Value::Choice(name)) => choices.iter().any(|choice| choice.name == *name),
            (Kind::Image, Value::Image(image)) => return self.check_image(image),
            _ => false,
        };
        if fits && (self.valid)(value) {
            return Ok(());
        }
        let expected = match self.kind {
            Kind::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
                format!("one of {}", names.join(", "))
            }
            _ => self.expected.to_owned(),
        };
        Err(Error::value(self.what(), expected, value))
    }

    fn check_image(&self, image: &ArrayD<f32>) -> Result<()> {
        match image.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            None => Ok(()),
            Some((index, value)) => {
                Err(Error::NotFinite { what: self.what(), index, found: value.to_string() })
            }
        }
    }
}

/// A type that a parameter's field has.
pub trait Parameter: Sized {
    /// What values it takes.
    const KIND: Kind;

    /// From a value of that kind.
    fn from_value(value: &Value) -> Option<Self>;

    /// As a value.
    fn to_value(&self) -> Value;
}

impl Parameter for f64 {
    const KIND: Kind = Kind::Number;

    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Number(number) = value { Some(*number) } else { None }
    }
    fn to_value(&self) -> Value {
        Value::Number(*self)
    }
}

impl Parameter for usize {
    const KIND: Kind = Kind::Count;

    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Count(count) = value { Self::try_from(*count).ok() } else { None }
    }
    fn to_value(&self) -> Value {
        Value::Count(*self as u64)
    }
}

impl Parameter for u64 {
    const KIND: Kind = Kind::Count;

    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Count(count) = value { Some(*count) } else { None }
    }
    fn to_value(&self) -> Value {
        Value::Count(*self)
    }
}

impl Parameter for Arc<ArrayD<f32>> {
    const KIND: Kind = Kind::Image;

    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Image(image) = value { Some(image.clone()) } else { None }
    }
    fn to_value(&self) -> Value {
        Value::Image(self.clone())
    }
}

impl<P: Parameter> Parameter for Option<P> {
    const KIND: Kind = P::KIND;

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            value => P::from_value(value).map(Some),
        }
    }
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Nothing, P::to_value)
    }
}

/// The parameters of a method, by name. [`params!`](crate::params) writes this.
pub trait Parameters: fmt::Debug + Send + Sync {
    /// The table, in the order in which help shows it.
    fn table(&self) -> Vec<Param>;

    /// A parameter's value; none where the method has no such parameter.
    fn get(&self, name: &str) -> Option<Value>;

    /// Gives a parameter another value.
    ///
    /// Errors: a parameter that the method has not, a value of another kind or out of range.
    fn set(&mut self, name: &str, value: Value) -> Result<()>;

    /// Fails with the first value that is out of range.
    fn check_values(&self) -> Result<()> {
        self.table().iter().try_for_each(|param| match self.get(param.name) {
            Some(value) => param.check(&value),
            None => Ok(()),
        })
    }
}

/// Declares a type whose fields are the parameters of a method: the type, its default, and its
/// [`Parameters`](crate::Parameters).
///
/// ```
/// use rayspin_run::{Param, Parameters, Value};
///
/// rayspin_run::params! {
///     /// A method that moves a few steps.
///     pub struct Walk {
///         /// Steps.
///         steps: usize = 3 => Param::new("Walking", "How many steps").expects("1 or more", |v| *v != Value::Count(0)),
///     }
/// }
/// let mut walk = Walk::default();
/// walk.set("steps", Value::Count(7))?;
/// assert_eq!(walk.steps, 7);
/// assert!(walk.set("steps", Value::Count(0)).is_err() && walk.set("leaps", Value::Count(1)).is_err());
/// # rayspin_core::Result::<()>::Ok(())
/// ```
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr => $param:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::Parameters for $name {
            fn table(&self) -> Vec<$crate::Param> {
                vec![$($crate::Param {
                    name: stringify!($field),
                    kind: <$type as $crate::Parameter>::KIND,
                    ..$param
                },)*]
            }

            fn get(&self, name: &str) -> Option<$crate::Value> {
                match name {
                    $(stringify!($field) => Some($crate::Parameter::to_value(&self.$field)),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: $crate::Value) -> $crate::core::Result<()> {
                let table = $crate::Parameters::table(self);
                let names = || table.iter().map(|param| param.name).collect::<Vec<_>>().join(", ");
                let unknown = || $crate::core::Error::value("parameter", format!("one of {}", names()), name);
                let param = table.iter().find(|param| param.name == name).ok_or_else(unknown)?;
                param.check(&value)?;
                match name {
                    $(stringify!($field) => {
                        self.$field = $crate::Parameter::from_value(&value).ok_or_else(|| {
                            $crate::core::Error::value(name.replace('_', " "), param.expected, &value)
                        })?;
                        Ok(())
                    })*
                    _ => Err(unknown()),
                }
            }
        }
    };
}

/// Declares the names that a [`Kind::Choice`](crate::Kind::Choice) parameter accepts.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal, $help:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $crate::Parameter for $name {
            const KIND: $crate::Kind = $crate::Kind::Choice(&[
                $($crate::Choice { name: $text, help: $help },)*
            ]);

            fn from_value(value: &$crate::Value) -> Option<Self> {
                match value {
                    $($crate::Value::Choice($text) => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn to_value(&self) -> $crate::Value {
                $crate::Value::Choice(match self {
                    $(Self::$variant => $text,)*
                })
            }
        }
    };
}
