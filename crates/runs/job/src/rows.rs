//! Options of a run as rows: programs make parsers, help, completions, keywords and refusals of them.
//!
//! A row is all that there is of an option besides the code that it acts on: its name, its kind of value, its
//! help text, its needs, and a function that puts the value into the request. The tables are
//! [`mri::options`](crate::mri::options) and [`ct::options`](crate::ct::options).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, C64, Error, Ranges};
use rayspin_io::{Format, endings};
use rayspin_report::RunRecorder;
use rayspin_run::{
    BadInput, Choice, Given, Kind as ParamKind, Need, Param, Remedy, Value, refuse_idle, remedy_of,
};

use crate::Result;
use crate::asked::image_of;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// What the program itself reads: files that it writes, what it prints.
    Program,
    /// Nothing: it is there or not.
    Flag,
    /// A number.
    Number,
    /// A whole number from 0.
    Count,
    /// A whole number from 0, or nothing for this one.
    CountOr(u64),
    /// Bytes of memory.
    Bytes,
    /// An angle: degrees in the command, radian in Python.
    Angle,
    /// One of these names.
    Names(&'static [Choice]),
    /// A number, or this word.
    NumberOr(&'static str),
    /// Whole numbers along axes x, y and z; their count is one of these.
    Counts(&'static [usize]),
    /// Numbers along axes x, y and z; their count is one of these, or any where this is empty.
    Numbers(&'static [usize]),
    /// Numbers from 0 and ranges of them.
    Ranges,
    /// A word.
    Text,
    /// A file.
    File,
    /// A folder to which runs add files.
    Folder,
    /// A picture that is written while the run goes on.
    Picture,
    /// An array of complex numbers, or the file of one.
    Complex,
    /// An array of complex numbers in double precision, or the file of one.
    Double,
    /// An array of complex numbers in double precision, the file of one, or a word that begins like this.
    DoubleOr(&'static str),
    /// An image of real numbers, or the file of one.
    Real,
    /// An image of real numbers, the file of one, or one number for all.
    NumberOrReal,
}

/// What a user gives for an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// A flag.
    On,
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// One of a few names.
    Name(&'static str),
    /// Several whole numbers.
    Counts(Vec<usize>),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// Ranges.
    Ranges(Ranges),
    /// A word.
    Text(String),
    /// A file or a folder.
    File(PathBuf),
    /// An array in memory.
    Complex(Arc<ArrayD<C32>>),
    /// An array in memory.
    Double(Arc<ArrayD<C64>>),
    /// An array in memory.
    Real(Arc<ArrayD<f32>>),
}

/// What a user gives for an option, and what people call it: `--maps`, or `maps`.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The row's own name.
    pub row: &'static str,
    /// The name.
    pub name: &'a str,
    /// The value.
    pub setting: &'a Setting,
}

impl<'a> Named<'a> {
    fn wrong(&self, expected: &str) -> crate::Error {
        Error::value(self.name, expected, format!("{:?}", self.setting)).into()
    }

    /// The number.
    pub fn number(&self) -> Result<f64> {
        match self.setting {
            Setting::Number(number) => Ok(*number),
            Setting::Count(count) => Ok(*count as f64),
            _ => Err(self.wrong("a number")),
        }
    }

    /// The whole number. Errors: a number that `T` cannot hold.
    pub fn count<T: TryFrom<u64>>(&self) -> Result<T> {
        let Setting::Count(count) = self.setting else { return Err(self.wrong("a whole number")) };
        let beyond = |_| {
            let most = (1_u128 << (8 * size_of::<T>())) - 1;
            Error::value(self.name, format!("a number up to {most}"), count)
        };
        Ok(T::try_from(*count).map_err(beyond)?)
    }

    /// The value that the name stands for.
    pub fn one_of<T: Copy>(&self, values: &[(&str, T)]) -> Result<T> {
        let entry = match self.setting {
            Setting::Name(name) => values.iter().find(|(one, _)| one == name),
            _ => None,
        };
        entry.map(|(_, value)| *value).ok_or_else(|| self.wrong("one of its names"))
    }

    /// The whole numbers.
    pub fn counts(&self) -> Result<Vec<usize>> {
        match self.setting {
            Setting::Counts(counts) => Ok(counts.clone()),
            _ => Err(self.wrong("whole numbers")),
        }
    }

    /// The numbers.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        match self.setting {
            Setting::Numbers(numbers) => Ok(numbers.clone()),
            _ => Err(self.wrong("numbers")),
        }
    }

    /// The value of a parameter. Errors: a file that cannot be read, or more than one image in it.
    pub fn value(&self) -> Result<Value> {
        Ok(match self.setting {
            Setting::Number(number) => Value::Number(*number),
            Setting::Count(count) => Value::Count(*count),
            Setting::Name(name) => Value::Choice(name),
            Setting::Real(image) => Value::Image(image.clone()),
            Setting::File(path) => image_of(self.row, path)?,
            _ => return Err(self.wrong("a number, a name or an image")),
        })
    }

    /// The ranges.
    pub fn ranges(&self) -> Result<Ranges> {
        match self.setting {
            Setting::Ranges(ranges) => Ok(ranges.clone()),
            _ => Err(self.wrong("numbers and ranges")),
        }
    }

    /// The word.
    pub fn text(&self) -> Result<&'a str> {
        match self.setting {
            Setting::Text(text) => Ok(text),
            _ => Err(self.wrong("a word")),
        }
    }

    /// The file.
    pub fn file(&self) -> Result<&'a Path> {
        match self.setting {
            Setting::File(path) => Ok(path),
            _ => Err(self.wrong("the name of a file")),
        }
    }
}

/// What the run record calls a value, and the value in a request.
pub type Recorded<R> = (&'static str, fn(&R) -> serde_json::Value);

/// An option of a run: `R` is the request that it goes to, `N` what it may need.
pub struct OptionRow<R: 'static, N: 'static> {
    /// Its name, as in `map_crop`: `--map-crop` in the command.
    pub name: &'static str,
    /// The title that it stands under in help.
    pub group: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What help calls the value: `FILE`.
    pub value: &'static str,
    /// What it is, in a line.
    pub help: &'static str,
    /// What else there is to say; may be empty.
    pub details: &'static str,
    /// Whether the help that fits a screen leaves it out.
    pub rare: bool,
    /// The keyword in Python; none where a package for Python has no use for it.
    pub keyword: Option<&'static str>,
    /// What the keyword is where it says the opposite, as `prewhiten=False` does; else empty.
    pub opposite: &'static str,
    /// What it needs to act.
    pub needs: &'static [N],
    /// The option that it stands beside; empty where it stands alone.
    pub beside: &'static str,
    /// The options that it cannot stand beside.
    pub without: &'static [&'static str],
    /// What to do about errors that name other quantities, or its own where setting it does not say all.
    pub remedies: &'static [Remedy],
    /// Puts what is given into the request.
    pub put: fn(&mut R, Named<'_>) -> Result<()>,
    /// What the run record calls it, and the value in a request, given or not; none where it decides no
    /// image.
    pub record: Option<Recorded<R>>,
}

impl<R, N> Clone for OptionRow<R, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, N> Copy for OptionRow<R, N> {}

impl<R, N> OptionRow<R, N> {
    /// An option of that name and kind, which always acts.
    pub const fn new(group: &'static str, name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            group,
            kind,
            value: "",
            help,
            details: "",
            rare: false,
            keyword: Some(name),
            opposite: "",
            needs: &[],
            beside: "",
            without: &[],
            remedies: &[],
            put: |_, _| Ok(()),
            record: None,
        }
    }

    /// An option that the program reads itself, with what it needs.
    pub const fn program(name: &'static str, needs: &'static [N]) -> Self {
        Self { needs, keyword: None, ..Self::new("", name, Kind::Program, "") }
    }

    /// The option that a parameter becomes. The request takes its [value](Named::value), and records it.
    pub fn of_param(
        param: &Param,
        default: &Value,
        needs: &'static [N],
        put: fn(&mut R, Named<'_>) -> Result<()>,
    ) -> Self {
        let kind = match param.kind {
            ParamKind::Number => Kind::Number,
            ParamKind::Count => Kind::Count,
            ParamKind::Choice(names) => Kind::Names(names),
            ParamKind::Image => Kind::Real,
        };
        let default = match default {
            Value::Nothing => param.absent.to_owned(),
            value => value.to_string(),
        };
        let value = if param.value.is_empty() { param.name.to_uppercase().leak() } else { param.value };
        // Once a process.
        let help = format!("{} [default: {default}]", param.help).leak();
        let Param { group, name, details, rare, remedies, .. } = *param;
        Self { value, details, rare, remedies, needs, put, ..Self::new(group, name, kind, help) }
    }

    /// Puts what is given into the request.
    #[must_use]
    pub const fn puts(self, put: fn(&mut R, Named<'_>) -> Result<()>) -> Self {
        Self { put, ..self }
    }

    /// The run record has its value under this name.
    #[must_use]
    pub const fn recorded(self, name: &'static str, value: fn(&R) -> serde_json::Value) -> Self {
        Self { record: Some((name, value)), ..self }
    }

    /// Help calls the value this.
    #[must_use]
    pub const fn value(self, value: &'static str) -> Self {
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

    /// Python calls it otherwise.
    #[must_use]
    pub const fn keyword(self, keyword: &'static str) -> Self {
        Self { keyword: Some(keyword), ..self }
    }

    /// Python has a keyword for the opposite, which is this.
    #[must_use]
    pub const fn unless(self, keyword: &'static str, opposite: &'static str) -> Self {
        Self { keyword: Some(keyword), opposite, ..self }
    }

    /// It needs these to act.
    #[must_use]
    pub const fn needs(self, needs: &'static [N]) -> Self {
        Self { needs, ..self }
    }

    /// It stands beside another option.
    #[must_use]
    pub const fn beside(self, beside: &'static str) -> Self {
        Self { beside, ..self }
    }

    /// It cannot stand beside these.
    #[must_use]
    pub const fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    /// Says what to do about errors that name these quantities.
    #[must_use]
    pub const fn remedies(self, remedies: &'static [Remedy]) -> Self {
        Self { remedies, ..self }
    }

    /// What to do about an error that names this quantity, where the option has to do with it.
    pub fn remedy(&self, quantity: &str) -> Option<String> {
        let own = || {
            let is_own = self.kind != Kind::Program && self.name.replace('_', " ") == quantity;
            is_own.then(|| format!("`{}` sets this", self.option()))
        };
        remedy_of(self.remedies, quantity).map(str::to_owned).or_else(own)
    }

    /// The command's option.
    pub fn option(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }
}

/// A table of options.
pub trait Table: 'static {
    /// The request that they go to.
    type Request: 'static;
    /// What they may need.
    type Requirement: 'static;

    /// The table, in the order in which help shows it.
    fn rows() -> &'static [OptionRow<Self::Request, Self::Requirement>];
}

/// `--memory`, of every run.
pub(crate) const fn memory<R, N>(put: fn(&mut R, Named<'_>) -> Result<()>) -> OptionRow<R, N> {
    OptionRow::new("Run", "memory", Kind::Bytes, "Memory that the run may take")
        .details(
            "It counts all main memory of the process; without a limit all that is free. The run takes its work in parts to fit. If \
             nothing fits, it is refused, and the error states the memory that it needs.",
        )
        .value("SIZE")
        .puts(put)
}

/// `--certify`, of every run, under this title.
pub(crate) const fn certify<R, N>(
    group: &'static str,
    put: fn(&mut R, Named<'_>) -> Result<()>,
    value: fn(&R) -> serde_json::Value,
) -> OptionRow<R, N> {
    let help = "Compare N random outputs of each transform with the exact sums [default of N: 1000]";
    OptionRow::new(group, "certify", Kind::CountOr(1000), help)
        .details(
            "A table shows the errors, and the record and `certificates` of Python's results have them. After an error above its \
             tolerance the command ends with exit code 1; the images are written.",
        )
        .value("N")
        .rare()
        .without(&["dry_run"])
        .recorded("certify", value)
        .puts(put)
}

/// `--certify-seed`, of every run, under this title.
pub(crate) const fn certify_seed<R, N>(
    group: &'static str,
    put: fn(&mut R, Named<'_>) -> Result<()>,
) -> OptionRow<R, N> {
    OptionRow::new(group, "certify_seed", Kind::Count, "Seed that draws these outputs [default: 1]")
        .value("SEED")
        .rare()
        .beside("certify")
        .puts(put)
}

/// What a user gave for the options of a table, by their names.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<&'static str, Setting>);

impl Settings {
    /// Sets what was given for an option.
    pub fn insert(&mut self, name: &'static str, setting: Setting) {
        self.0.insert(name, setting);
    }

    /// What was given for an option.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }

    /// Whether an option was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All of them, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Setting)> {
        self.0.iter_mut().map(|(name, setting)| (*name, setting))
    }

    /// Puts all of them into a request, in the order of the table. `given` says what the user calls each.
    ///
    /// Errors: an option without the one that it stands beside, or beside one that it excludes; a value that
    /// is out of range; a file that cannot be read.
    pub fn put<R, N>(&self, table: &[OptionRow<R, N>], given: &Given, request: &mut R) -> Result<()> {
        for row in table {
            let Some(setting) = self.get(row.name) else { continue };
            let called = |name: &str| given.name(name).map(str::to_owned);
            let name = called(row.name).unwrap_or_else(|| format!("`{}`", row.option()));
            if !row.beside.is_empty() && !given.has(row.beside) {
                let other = format!("`--{}`", row.beside.replace('_', "-"));
                return Err(BadInput::new(format!("{name}: expected {other} beside it, found none")).into());
            }
            if let Some(other) = row.without.iter().find_map(|other| called(other)) {
                let message = format!("{name}: expected without {other}, found both");
                return Err(BadInput::new(message).hint(format!("leave {name} or {other} out")).into());
            }
            (row.put)(request, Named { row: row.name, name: &name, setting })?;
        }
        Ok(())
    }
}

/// Records the options that decide images.
pub(crate) fn record<R, N>(table: &[OptionRow<R, N>], request: &R, recorder: &mut RunRecorder) {
    for (name, value) in table.iter().filter_map(|row| row.record) {
        recorder.parameter(name, value(request));
    }
}

/// Refuses the first option given that does not act on the run, as far as the run is known.
pub(crate) fn refuse_idle_rows<R, N: Need + Copy>(
    table: &[OptionRow<R, N>],
    given: &Given,
    run: &N::Facts<'_>,
) -> Result<()> {
    let needs: Vec<_> = table.iter().map(|row| (row.name, row.needs)).collect();
    Ok(refuse_idle(&needs, given, run)?)
}

/// No scanner has a field of view below this along every axis: the length is in metres.
const SHORT_FOV_MM: f64 = 1.0;

/// A field of view in mm. Errors: lengths that are not positive, or that are metres if anything.
pub fn expect_fov(name: &str, fov: &[f64]) -> Result<()> {
    if fov.iter().any(|&f| !(f > 0.0 && f.is_finite())) {
        return Err(BadInput::new(format!("{name}: expected positive lengths in mm, found {fov:?}")).into());
    }
    if fov.iter().all(|&f| f < SHORT_FOV_MM) {
        let message = format!("{name}: expected lengths in mm, found {fov:?}, which are metres if anything");
        return Err(BadInput::new(message).hint("0.24 m are 240 mm").into());
    }
    Ok(())
}

/// Numbers that were chosen, as they are typed: for the record.
pub(crate) fn typed(ranges: &Option<Ranges>) -> serde_json::Value {
    ranges.as_ref().map(Ranges::to_string).into()
}

/// Whether one of the outputs states whose image it is.
pub(crate) fn writes_origin(outputs: &[PathBuf]) -> bool {
    outputs.iter().any(|path| Format::of_name(path).is_some_and(Format::states_origin))
}

/// What an option about it expects.
pub(crate) fn origin_expected() -> String {
    format!("an output that names a patient ({})", endings(Format::states_origin).join(", "))
}

/// A [`Choice`] of a few names.
pub(crate) const fn choice(name: &'static str, help: &'static str) -> Choice {
    Choice { name, help }
}
