//! Keywords that are options of the command.

use std::ffi::OsString;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use rayspin_cli::in_memory::{CommandOption, Task};

use crate::error::{of_file, wrong_type};
use crate::progress::Listener;

/// Options in degrees, whose keywords are in radian.
const ANGLES: &[&str] = &["arc", "tilt", "azimuth", "elevation", "perspective"];

/// Keywords as words of the command line.
///
/// Errors: a `TypeError` for a keyword that the command has not as an option, or a value of another kind.
pub(crate) fn words(task: Task, what: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<OsString>> {
    let options = task.options();
    let mut words = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(option) = options.iter().find(|option| option.name == name) else {
            let known: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
            return Err(PyTypeError::new_err(format!(
                "{name}: no option of {what}, which has {}",
                known.join(", ")
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

fn text(option: &CommandOption, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    if let Ok(whole) = value.extract::<i128>() {
        let angle = ANGLES.contains(&option.name.as_str());
        return Ok(if angle { (whole as f64).to_degrees().to_string() } else { whole.to_string() });
    }
    if let Ok(number) = value.extract::<f64>() {
        let angle = ANGLES.contains(&option.name.as_str());
        return Ok(if angle { number.to_degrees() } else { number }.to_string());
    }
    let several = || wrong_type(&option.name, "a number, a name or several numbers", value);
    let parts: Vec<Bound<'_, PyAny>> = value.extract().map_err(|_| several())?;
    let parts: Vec<String> = parts.iter().map(|part| text(option, part)).collect::<PyResult<_>>()?;
    Ok(parts.join(","))
}

/// The options: for each its default, the names that it takes, and what it is.
pub(crate) fn listed(py: Python<'_>, task: Task) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for option in task.options() {
        let row = PyDict::new(py);
        match option.takes_value {
            true => row.set_item("default", option.default)?,
            false => row.set_item("default", false)?,
        }
        row.set_item("names", option.names)?;
        row.set_item("help", as_keywords(&option.help))?;
        all.set_item(option.name, row)?;
    }
    Ok(all)
}

/// The exception for the error of a command, in the words of keywords; what a listener heard comes first.
pub(crate) fn raised_by(error: anyhow::Error, listener: &Listener) -> PyErr {
    let error = match error.downcast::<rayspin::core::Error>() {
        Ok(error) => return listener.exception(error),
        Err(error) => error,
    };
    match error.downcast_ref::<rayspin::io::Error>() {
        Some(error) => of_file(error),
        None => PyValueError::new_err(as_keywords(&format!("{error:#}"))),
    }
}

/// `--field-map-hz` as `field_map_hz`.
fn as_keywords(text: &str) -> String {
    let mut parts = text.split("--");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        all.push_str(&part[..end].replace('-', "_"));
        all.push_str(&part[end..]);
    }
    all
}
