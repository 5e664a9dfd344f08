//! The library's texts in the words of Python: the parameters that they name become keywords.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rayspin::core::{Mention, printable_lines, spelled, spelled_whole};
use rayspin::ct::corrections::Table as CtCorrections;
use rayspin::ct::methods::Methods as CtMethods;
use rayspin::job::ct::Ct;
use rayspin::job::mri::Mri;
use rayspin::job::rows::{Kind as RowKind, Table as Rows};
use rayspin::mri::methods::{Kind, Methods, Param};
use rayspin_cli::in_memory::{CommandOption, Task};

use crate::degrees::radian;
use crate::keywords::{keyword, rows};

/// The call whose texts are rewritten. Calls differ in what they take as keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// `rayspin.recon`.
    Recon,
    /// `Scan.from_arrays`.
    FromArrays,
    /// `rayspin.read_scan`.
    ReadScan,
    /// `rayspin.ct`.
    Ct,
    /// A call that is none of these, or any of them.
    Any,
}

/// An option, and the keyword of a call that does the same and that no table of parameters has.
type Pair = (&'static str, &'static str);

const FROM_ARRAYS: &[Pair] = &[("matrix", "shape="), ("fov", "fov_mm="), ("traj-units", "units=")];
const READ_SCAN: &[Pair] = &[
    ("order", "order="),
    ("matrix", "matrix="),
    ("traj", "trajectory="),
    ("fov", "fov_mm="),
    ("traj-units", "units="),
    ("traj-weights", "trajectory_weights=True"),
];
/// What the library calls an argument, and its keyword.
const OF_ARRAYS: &[Pair] =
    &[("k-space", "kspace"), ("trajectory units", "units"), ("field of view", "fov_mm")];
const OF_RUNS: &[Pair] = &[
    ("sensitivity maps", "maps"),
    ("field map", "field_map"),
    ("noise covariance", "noise_covariance"),
    ("virtual coils", "coils"),
    ("slice", "slices"),
    ("frames", "windows"),
    ("repetition", "repetitions"),
    ("contrast", "contrasts"),
    ("cardiac phase", "cardiac_phases"),
    ("set", "sets"),
    ("average", "averages"),
    ("sets of maps", "map_sets"),
    ("crop of maps", "map_crop"),
    ("calibration centre", "calibration"),
    ("tolerance of the field map's segments", "field_tolerance"),
    ("epsilon", "nufft_tolerance"),
    ("NUFFT matrix", "shape"),
    ("λ of least squares", "weight"),
    ("λ of FISTA", "weight"),
    ("tolerance of conjugate gradients", "tolerance"),
    ("tolerance of FISTA", "tolerance"),
    ("image compared with the reference", "image"),
];

/// The names that `units=` takes.
const UNITS: &[&str] = &["cycles/fov", "cycles/voxel", "radians/voxel", "cycles/m", "radians/m", "cycles/cm"];

impl Call {
    fn keywords(self) -> &'static [&'static [Pair]] {
        match self {
            Self::FromArrays => &[FROM_ARRAYS],
            Self::ReadScan | Self::Any => &[READ_SCAN],
            Self::Recon | Self::Ct => &[],
        }
    }

    /// The argument of this call that an error of the library calls otherwise.
    pub(crate) fn argument(self, quantity: &str) -> Option<&'static str> {
        let arguments = match self {
            Self::FromArrays => OF_ARRAYS,
            Self::ReadScan => return None,
            Self::Recon | Self::Ct | Self::Any => OF_RUNS,
        };
        arguments.iter().find(|(name, _)| *name == quantity).map(|(_, argument)| *argument)
    }

    /// The words of this call.
    pub(crate) fn words(self) -> &'static Words {
        static ALL: [OnceLock<Words>; 5] = [const { OnceLock::new() }; 5];
        ALL[self as usize].get_or_init(|| Words::of_call(self))
    }

    /// A text in the words of this call.
    pub(crate) fn told(self, text: &str) -> String {
        printable_lines(&self.words().told(text)).into_owned()
    }

    /// A text in the words of this call, where it has words for all of it.
    pub(crate) fn told_whole(self, text: &str) -> Option<String> {
        self.words().told_whole(text).map(|text| printable_lines(&text).into_owned())
    }
}

/// What takes the place of a parameter.
#[derive(Debug, Clone)]
enum Form {
    /// `coils=`, and `combine="rss"` where a text names one of the names that it takes.
    Keyword { written: String, names: Vec<String>, degrees: bool },
    /// A function for each value: `render.drr` for `--mode xray`.
    Functions(&'static [(&'static str, &'static str)]),
}

/// The functions that stand for `--mode` of `rayspin render`.
const PICTURES: &[(&str, &str)] = &[
    ("xray", "render.drr"),
    ("mip", "render.mip"),
    ("volume", "render.transfer"),
    ("surface", "render.surface"),
];

/// The keywords that parameters become, by the parameter's name in the command.
#[derive(Debug, Default)]
pub(crate) struct Words(BTreeMap<String, Form>);

impl Words {
    fn of_call(call: Call) -> Self {
        let mut words = Self::default();
        let (mri, ct, corrections) = (Methods::default(), CtMethods::default(), CtCorrections::default());
        let mut methods = Vec::new();
        if call != Call::Ct {
            mri.iter().for_each(|method| words.add_parameters(&method.table()));
            methods.extend(mri.iter().map(|method| method.about().name.to_owned()));
        }
        if matches!(call, Call::Ct | Call::Any) {
            ct.iter().for_each(|method| words.add_parameters(&method.table()));
            corrections.iter().for_each(|correction| words.add_parameters(&correction.table()));
            methods.extend(ct.iter().map(|method| method.about().name.to_owned()));
            words.add(
                "correct",
                "correct=",
                corrections.iter().map(|one| one.about().name.to_owned()).collect(),
            );
        }
        words.add("method", "method=", methods);
        if matches!(call, Call::Recon | Call::Ct | Call::Any) {
            words.add("device", "device=", Vec::new());
        }
        if matches!(call, Call::Ct | Call::Any) {
            words.add_rows::<Ct>();
        }
        for (option, written) in call.keywords().iter().copied().flatten() {
            let names = if *option == "traj-units" { UNITS } else { &[] };
            words.add(option, written, names.iter().map(ToString::to_string).collect());
        }
        if matches!(call, Call::Recon | Call::Any) {
            words.add_rows::<Mri>();
        }
        words
    }

    fn add_rows<T: Rows>(&mut self) {
        for (keyword, row) in rows::<T>() {
            let names = match row.kind {
                RowKind::Names(names) => names.iter().map(|one| one.name.to_owned()).collect(),
                RowKind::Text => UNITS.iter().map(ToString::to_string).collect(),
                _ => Vec::new(),
            };
            let value = match (row.kind, row.opposite) {
                (RowKind::Flag, "") => "True",
                (RowKind::Flag, _) => "False",
                _ => "",
            };
            let written = format!("{keyword}={value}");
            let form = Form::Keyword { written, names, degrees: row.kind == RowKind::Angle };
            self.0.insert(row.name.replace('_', "-"), form);
        }
    }

    fn add_parameters(&mut self, table: &[Param]) {
        for param in table {
            let names = match param.kind {
                Kind::Choice(choices) => choices.iter().map(|choice| choice.name.to_owned()).collect(),
                _ => Vec::new(),
            };
            self.add(&param.name.replace('_', "-"), &format!("{}=", keyword(param.name)), names);
        }
    }

    fn add(&mut self, option: &str, written: &str, names: Vec<String>) {
        let form = Form::Keyword { written: written.to_owned(), names, degrees: false };
        self.0.insert(option.to_owned(), form);
    }

    /// The words of a command that runs in memory, from its options.
    pub(crate) fn of_task(task: Task, options: &[CommandOption]) -> Self {
        let form = |option: &CommandOption| match (task, option.name.as_str()) {
            (Task::Render, "mode") => Form::Functions(PICTURES),
            _ => Form::Keyword {
                written: format!("{}={}", option.name, if option.takes_value { "" } else { "True" }),
                names: option.names.clone(),
                degrees: option.degrees,
            },
        };
        let name = |option: &CommandOption| option.long.trim_start_matches('-').to_owned();
        Self(options.iter().map(|option| (name(option), form(option))).collect())
    }

    /// The text with keywords in place of parameters.
    pub(crate) fn told(&self, text: &str) -> String {
        spelled(text, &|mention| self.spelled(mention))
    }

    /// [`Self::told`], where there are words for all of the text.
    pub(crate) fn told_whole(&self, text: &str) -> Option<String> {
        spelled_whole(text, &|mention| self.spelled(mention))
    }

    fn spelled(&self, mention: &Mention<'_>) -> Option<String> {
        match mention {
            Mention::Parameter { name, values, subject, .. } => {
                self.0.get(*name).map(|form| form.written(values, *subject))
            }
            Mention::Command(_) => None,
        }
    }
}

impl Form {
    /// The keyword with values.
    fn written(&self, values: &[(&str, &str)], subject: bool) -> String {
        let joined = |value: &dyn Fn(&str) -> String| {
            values.iter().map(|(between, one)| format!("{between}{}", value(one))).collect::<String>()
        };
        match self {
            Self::Functions(_) if values.is_empty() => "the function".to_owned(),
            Self::Functions(functions) => joined(&|value| {
                let named = functions.iter().find(|(name, _)| *name == value);
                named.map_or(value, |(_, function)| function).to_owned()
            }),
            Self::Keyword { written, .. } if subject => {
                written.split('=').next().unwrap_or_default().to_owned()
            }
            Self::Keyword { written, names, degrees } => {
                let written = if values.is_empty() {
                    written
                } else {
                    &format!("{}=", written.trim_end_matches("True").trim_end_matches('='))
                };
                format!("{written}{}", joined(&|value| as_python(value, names, *degrees)))
            }
        }
    }
}

/// A value as Python has it: a name in quotes, several numbers as a tuple, an angle in radian. Capitals stand
///     for any value.
fn as_python(value: &str, names: &[String], degrees: bool) -> String {
    let is_name = value.starts_with(|c: char| c.is_ascii_lowercase());
    if is_name || names.iter().any(|name| name == value) {
        return format!("\"{value}\"");
    }
    match value.parse() {
        Ok(angle) if degrees => radian(angle),
        Err(_) if value.contains(',') => format!("({})", value.replace(',', ", ")),
        _ => value.to_owned(),
    }
}
