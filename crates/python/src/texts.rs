//! The library's texts in the words of Python: options of the command become keywords, and degrees become radian.
//!
//! Notes, errors and help name options for users of the command: `(--maps overrides)`. [`Words`] knows the options from the tables that make
//! them. It writes the keyword that does the same in their place: `(maps= overrides)`. A word that no table has stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rayspin::core::printable_lines;
use rayspin::ct::corrections::Table as CtCorrections;
use rayspin::ct::methods::Methods as CtMethods;
use rayspin::job::ct::Ct;
use rayspin::job::mri::Mri;
use rayspin::job::rows::{Kind as RowKind, Table as Rows};
use rayspin::mri::methods::{Kind, Methods, Param};
use rayspin_cli::in_memory::{self, CommandOption, Task};

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
    ("cardiac phase", "cardiac_phase"),
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
const UNITS: &[&str] = &["cycles/fov", "cycles/voxel", "radians/voxel", "cycles/m", "radians/m"];

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
        let all = match self {
            Self::FromArrays => OF_ARRAYS,
            Self::ReadScan => return None,
            Self::Recon | Self::Ct | Self::Any => OF_RUNS,
        };
        all.iter().find(|(name, _)| *name == quantity).map(|(_, argument)| *argument)
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
}

/// What takes the place of an option.
#[derive(Debug, Clone)]
enum Form {
    /// `coils=`, and `combine="rss"` where one of the names that it takes follows.
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

/// The keywords that options become.
#[derive(Debug, Default)]
pub(crate) struct Words {
    forms: BTreeMap<String, Form>,
    /// Options by their letter.
    letters: BTreeMap<char, String>,
    /// Options that have no keyword.
    others: BTreeSet<String>,
}

impl Words {
    fn of_call(call: Call) -> Self {
        let mut words = Self { others: in_memory::option_names(), ..Self::default() };
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
            self.add(&row.name.replace('_', "-"), &format!("{keyword}={value}"), names);
        }
    }

    fn add_parameters(&mut self, table: &[Param]) {
        for param in table {
            let names = match param.kind {
                Kind::Choice(choices) => choices.iter().map(|choice| choice.name.to_owned()).collect(),
                _ => Vec::new(),
            };
            let option = param.name.replace('_', "-");
            self.letters.extend(param.short.map(|letter| (letter, format!("--{option}"))));
            self.add(&option, &format!("{}=", keyword(param.name)), names);
        }
    }

    fn add(&mut self, option: &str, written: &str, names: Vec<String>) {
        let form = Form::Keyword { written: written.to_owned(), names, degrees: false };
        self.forms.insert(format!("--{option}"), form);
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
        let forms = options.iter().map(|option| (option.long.clone(), form(option))).collect();
        Self { forms, letters: BTreeMap::new(), others: in_memory::option_names() }
    }

    /// The text with keywords in place of options.
    pub(crate) fn told(&self, text: &str) -> String {
        let text = &self.without_others(text);
        let mut told = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find('-') {
            told.push_str(&rest[..at]);
            rest = &rest[at..];
            let begins = !told.ends_with(|c: char| c.is_alphanumeric() || "-_./=".contains(c));
            match self.option(rest).filter(|_| begins && !is_of_the_command(&told)) {
                Some((written, after)) => {
                    told.push_str(&written);
                    rest = after;
                }
                None => {
                    let dashes = rest.len() - rest.trim_start_matches('-').len();
                    told.push_str(&rest[..dashes]);
                    rest = &rest[dashes..];
                }
            }
        }
        told.push_str(rest);
        told
    }

    /// The text without remedies in parentheses that this call has not: `(maps= overrides)` for `(--calibration or --maps overrides)`, and
    /// nothing for `(choose with --slice)`.
    fn without_others(&self, text: &str) -> String {
        let mut left = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('(') {
            let (before, after) = rest.split_at(open);
            left.push_str(before);
            let inside = &after[1..];
            let end = inside.find(['(', ')']).filter(|&end| inside[end..].starts_with(')'));
            let kept = match end {
                Some(end) if !inside[..end].contains("rayspin ") => Some((end, self.own(&inside[..end]))),
                _ => None,
            };
            rest = match kept {
                Some((end, Some(own))) => {
                    left.extend(["(", own.as_str(), ")"]);
                    &inside[end + 1..]
                }
                Some((end, None)) => {
                    left.truncate(left.trim_end().len());
                    &inside[end + 1..]
                }
                None => {
                    left.push('(');
                    inside
                }
            };
        }
        left.push_str(rest);
        left
    }

    /// A remedy with the options of its lists that have keywords; none where a list has no such option.
    fn own(&self, remedy: &str) -> Option<String> {
        let mut own = String::new();
        let mut rest = remedy;
        while let Some(at) = rest.find("--") {
            own.push_str(&rest[..at]);
            rest = &rest[at..];
            let (mut all, mut between) = (vec![name_of(rest)], ", ");
            rest = &rest[all[0].len()..];
            while let Some((word, after)) = BETWEEN
                .iter()
                .find_map(|word| Some((*word, rest.strip_prefix(word)?)))
                .filter(|(_, after)| after.starts_with("--"))
            {
                let next = name_of(after);
                all.push(next);
                (between, rest) = (word, &after[next.len()..]);
            }
            all.retain(|name| self.forms.contains_key(*name) || !self.others.contains(*name));
            match all.split_last() {
                None => return None,
                Some((last, [])) => own.push_str(last),
                Some((last, first)) => {
                    // `a or c` of `a, b, or c`
                    let shorter = between.strip_prefix(',').filter(|word| first.len() == 1 && word.len() > 1);
                    own.extend([first.join(", ").as_str(), shorter.unwrap_or(between), last]);
                }
            }
        }
        own.push_str(rest);
        Some(own)
    }

    /// What stands for the option with which the text begins, and the text after it.
    fn option<'a>(&self, text: &'a str) -> Option<(String, &'a str)> {
        let (name, after) = text.split_at(name_of(text).len());
        let option = match name.strip_prefix('-').map(|letter| (letter, letter.chars().next())) {
            Some((letter, Some(one))) if letter.len() == 1 => self.letters.get(&one)?.as_str(),
            _ => name,
        };
        let Some(form) = self.forms.get(option) else {
            return self.others.contains(option).then(|| (format!("the command's {option}"), after));
        };
        // `--regulariser (-W)`
        let after = match after.strip_prefix(" (-").and_then(|letter| letter.split_once(')')) {
            Some((letter, after)) if letter.len() == 1 => after,
            _ => after,
        };
        Some(form.written(after))
    }
}

/// The option with which a text begins.
fn name_of(text: &str) -> &str {
    let end = text[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    &text[..end.map_or(text.len(), |at| at + 1)]
}

/// Whether the words of the program `rayspin` come before: `rayspin convert `. The option is the program's then.
fn is_of_the_command(told: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c == ' ';
    told.rsplit_once("rayspin ").is_some_and(|(_, words)| !words.is_empty() && words.chars().all(word))
}

/// What stands between values: `pocs or homodyne`.
const BETWEEN: [&str; 5] = [", or ", ", and ", ", ", " or ", " and "];

impl Form {
    /// The keyword with the values that follow it, and the text after them.
    fn written<'a>(&self, after: &'a str) -> (String, &'a str) {
        match self {
            Self::Functions(functions) => {
                let named = |name: &str| functions.iter().find(|(value, _)| *value == name);
                let function = |name: &str| named(name).map(|(_, function)| (*function).to_owned());
                list(after, &function).unwrap_or_else(|| ("the function".to_owned(), after))
            }
            Self::Keyword { written, names, degrees } => {
                if after.starts_with(':') {
                    return (written.split('=').next().unwrap_or_default().to_owned(), after);
                }
                let name = |name: &str| names.iter().any(|one| one == name).then(|| format!("\"{name}\""));
                let values = list(after, &name).or_else(|| number(after, *degrees)).or_else(|| symbol(after));
                values.map_or_else(
                    || (written.clone(), after),
                    |(values, after)| (format!("{written}{values}"), after),
                )
            }
        }
    }
}

/// The values with which a text goes on, each as `write` writes it, and the text after them.
fn list<'a>(text: &'a str, write: &dyn Fn(&str) -> Option<String>) -> Option<(String, &'a str)> {
    let value = |text: &'a str| {
        let end =
            text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '/').unwrap_or(text.len());
        write(&text[..end]).map(|written| (written, &text[end..]))
    };
    let (mut all, mut rest) = value(text.strip_prefix([' ', '='])?)?;
    while let Some((between, (next, after))) =
        BETWEEN.iter().find_map(|between| Some((between, value(rest.strip_prefix(between)?)?)))
    {
        all = all + between + &next;
        rest = after;
    }
    Some((all, rest))
}

/// The number, or numbers between commas, with which a text goes on, and the text after them.
fn number(text: &str, degrees: bool) -> Option<(String, &str)> {
    let text = text.strip_prefix([' ', '='])?;
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.,e".contains(c)).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches([',', '.']);
    let parts: Vec<f64> = digits.split(',').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let written = match parts[..] {
        [angle] if degrees => radian(angle),
        [_] => digits.to_owned(),
        _ => format!("({})", digits.replace(',', ", ")),
    };
    Some((written, &text[digits.len()..]))
}

/// The symbol of a value with which a text goes on, such as `X,Y[,Z]`, and the text after it.
fn symbol(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix([' ', '='])?;
    let end = text.find(|c: char| !c.is_ascii_uppercase() && !",[]".contains(c)).unwrap_or(text.len());
    let (symbol, after) = text.split_at(end);
    if symbol.is_empty() || after.starts_with(char::is_alphanumeric) {
        return None;
    }
    let several = symbol.contains(',');
    Some((if several { format!("({})", symbol.replace(',', ", ")) } else { symbol.to_owned() }, after))
}

/// The text with the angles that it marks with ° in radian: `180°` as `pi`.
pub(crate) fn in_radian(text: &str) -> String {
    let mut parts = text.split('°').peekable();
    let mut told = String::with_capacity(text.len());
    while let Some(part) = parts.next() {
        let begin = part
            .rfind(|c: char| !c.is_ascii_digit() && !"+-.e".contains(c))
            .map_or(0, |at| at + part[at..].chars().next().map_or(1, char::len_utf8));
        match part[begin..].parse() {
            Ok(angle) if parts.peek().is_some() => {
                told.push_str(&part[..begin]);
                told.push_str(&radian(angle));
            }
            _ => {
                told.push_str(part);
                told.extend(parts.peek().map(|_| '°'));
            }
        }
    }
    told
}

/// An angle in degrees as an expression in radian: `pi/6`, or a number where it is no simple part of pi.
pub(crate) fn radian(degrees: f64) -> String {
    for parts in [1, 2, 3, 4, 6] {
        let times = degrees / 180.0 * f64::from(parts);
        if times.fract() == 0.0 && times.abs() < 1e6 {
            let times = match times {
                0.0 => return "0".to_owned(),
                1.0 => "pi".to_owned(),
                -1.0 => "-pi".to_owned(),
                _ => format!("{times}*pi"),
            };
            return if parts == 1 { times } else { format!("{times}/{parts}") };
        }
    }
    let digits = format!("{:.6}", degrees.to_radians());
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}
