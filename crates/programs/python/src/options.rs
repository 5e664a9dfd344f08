//! Keywords that are options of the command.

use std::ffi::OsString;
use std::sync::OnceLock;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use rayspin_cli::in_memory::{self, CommandOption, Task};

use crate::degrees::warn_of_degrees;
use crate::degrees::{in_radian, radian};
use crate::error::{described, did_you_mean, of_file, of_kind, wrong_type};
use crate::words::{Call, Words};

/// The options of a command, and the words that its texts have in Python.
struct Options {
    options: Vec<CommandOption>,
    words: Words,
}

impl Options {
    fn of(task: Task) -> &'static Self {
        static ALL: [OnceLock<Options>; 3] = [const { OnceLock::new() }; 3];
        ALL[task as usize].get_or_init(|| {
            let options = task.options();
            Self { words: Words::of_task(task, &options), options }
        })
    }

    /// A text with keywords in place of options, and radian in place of degrees.
    fn told(&self, text: &str) -> String {
        in_radian(&self.words.told(text))
    }
}

/// Keywords as words of the command line.
///
/// Errors: a `TypeError` for a keyword that the command has not as an option, or a value of another kind.
pub(crate) fn words(task: Task, what: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<OsString>> {
    let options = &Options::of(task).options;
    let mut words = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(option) = options.iter().find(|option| option.name == name) else {
            let known: Vec<String> = options.iter().map(|option| option.name.clone()).collect();
            let meant = did_you_mean(value.py(), &name, &known)?;
            let known = known.join(", ");
            return Err(PyTypeError::new_err(format!(
                "{name}: no option of {what}, which has {known}{meant}"
            )));
        };
        if value.is_none() {
            continue;
        }
        if let Ok(flag) = value.cast::<PyBool>() {
            match (flag.is_true(), option.takes_value && option.name != "perspective") {
                (true, false) => words.push(OsString::from(&option.long)),
                (false, false) => {}
                _ => return Err(wrong_type(&name, "a value", &value)),
            }
            continue;
        }
        if !option.takes_value {
            return Err(wrong_type(&name, "True or False", &value));
        }
        words.push(format!("{}={}", option.long, text(option, &value)?).into());
    }
    Ok(words)
}

/// A value as the command line has it. Angles become degrees.
fn text(option: &CommandOption, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.extract::<String>() {
        // Text is what the command line takes, in degrees: a number as text would be taken for another angle
        // than the number.
        return if option.degrees {
            Err(wrong_type(&option.name, "a number of radian", described(value)))
        } else {
            Ok(text)
        };
    }
    if !option.degrees
        && let Ok(whole) = value.extract::<i128>()
    {
        return Ok(whole.to_string());
    }
    if let Ok(number) = value.extract::<f64>() {
        if option.degrees {
            warn_of_degrees(value.py(), &option.name, &[0.0, number])?;
        }
        return Ok(if option.degrees { number.to_degrees() } else { number }.to_string());
    }
    let several = || wrong_type(&option.name, "a number, a name or several numbers", described(value));
    let parts: Vec<Bound<'_, PyAny>> = value.try_iter().map_err(|_| several())?.collect::<PyResult<_>>()?;
    let parts: Vec<String> = parts.iter().map(|part| text(option, part)).collect::<PyResult<_>>()?;
    Ok(parts.join(","))
}

/// A note of a command in the words of keywords.
pub(crate) fn noted(task: Task, note: &str) -> String {
    Options::of(task).told(note)
}

/// The options: for each its default, the names that it takes, its unit where it is an angle, and what it is.
pub(crate) fn listed(py: Python<'_>, task: Task) -> PyResult<Bound<'_, PyDict>> {
    let (options, rows) = (Options::of(task), PyDict::new(py));
    for option in &options.options {
        let row = PyDict::new(py);
        match (option.takes_value, option.default.as_ref().map(|default| (default, default.parse()))) {
            (false, _) => row.set_item("default", false)?,
            (true, Some((_, Ok(angle)))) if option.degrees => row.set_item("default", radian(angle))?,
            (true, _) => row.set_item("default", &option.default)?,
        }
        row.set_item("names", &option.names)?;
        row.set_item("unit", option.degrees.then_some("radian"))?;
        row.set_item("help", help_of(options, option))?;
        rows.set_item(&option.name, row)?;
    }
    Ok(rows)
}

/// What an option is, with the unit of an angle.
fn help_of(options: &Options, option: &CommandOption) -> String {
    let help = options.told(&option.help);
    match help.split_once(" [default") {
        _ if !option.degrees => help,
        Some((what, default)) => format!("{what}; in radian [default{default}"),
        None => format!("{help}; in radian"),
    }
}

/// The exception for the error of a command, in the words of keywords.
pub(crate) fn raised_by(task: Task, error: anyhow::Error) -> PyErr {
    let options = Options::of(task);
    let error = match error.downcast::<rayspin::core::Error>() {
        Ok(error) => {
            let hint = in_memory::hint(&error).and_then(|hint| options.words.told_whole(&hint));
            let text = options.told(&error.to_string());
            return of_kind(
                &error,
                in_radian(&hint.iter().fold(text, |text, hint| format!("{text}; {hint}"))),
            );
        }
        Err(error) => error,
    };
    match error.downcast_ref::<rayspin::io::Error>() {
        Some(error) => of_file(Call::Any, error),
        None => PyValueError::new_err(options.told(&format!("{error:#}"))),
    }
}
