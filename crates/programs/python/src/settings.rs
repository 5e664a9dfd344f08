//! Keywords of a run from the table of its options.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use rayspin::core::{Error, Ranges};
use rayspin::job::rows::{Kind, OptionRow, Setting, Settings, Table};
use rayspin::run::{Choice, Given};

use crate::degrees::warn_of_degrees;
use crate::error::{described, raised, wrong_type};
use crate::exchange::copied::{complex, singles, whole};
use crate::keywords::rows;
use crate::words::Call;

/// Takes the keywords of a table out of `keywords`; `given` gets their names.
///
/// Errors: a `TypeError` for a value of another kind, a `ValueError` for one out of range.
pub(crate) fn taken<T: Table>(keywords: &Bound<'_, PyDict>, given: &mut Given) -> PyResult<Settings> {
    let mut settings = Settings::default();
    for (keyword, row) in rows::<T>() {
        let Some(value) = keywords.get_item(keyword)? else { continue };
        keywords.del_item(keyword)?;
        if let Some(setting) = setting_of(keyword, row, &value)? {
            settings.insert(row.name, setting);
            given.insert(row.name, keyword);
        }
    }
    Ok(settings)
}

/// A value as what its row takes; none for None and for a flag that is as it is without the keyword.
fn setting_of<R, N>(
    keyword: &'static str,
    row: &OptionRow<R, N>,
    value: &Bound<'_, PyAny>,
) -> PyResult<Option<Setting>> {
    if value.is_none() {
        return Ok(None);
    }
    let wrong = |expected: &str| wrong_type(keyword, expected, described(value));
    let number = |expected: &str| match value.is_instance_of::<PyBool>() {
        true => Err(wrong(expected)),
        false => value.extract::<f64>().map_err(|_| wrong(expected)),
    };
    let path = || value.extract::<PathBuf>().map(Setting::File);
    Ok(Some(match row.kind {
        Kind::Program => return Err(PyTypeError::new_err(format!("{keyword}: no keyword"))),
        Kind::Flag => {
            let on = value.extract::<bool>().map_err(|_| wrong("True or False"))?;
            return Ok((on == row.opposite.is_empty()).then_some(Setting::On));
        }
        Kind::Number => Setting::Number(number("a number")?),
        Kind::CountOr(most) if value.is_instance_of::<PyBool>() => {
            return Ok(value.extract::<bool>()?.then_some(Setting::Count(most)));
        }
        Kind::Count | Kind::CountOr(_) | Kind::Bytes => {
            let count = whole(value).map_err(|_| wrong("a whole number"))?;
            Setting::Count(counter(keyword, count)? as u64)
        }
        Kind::Angle => {
            let radian = number("a number of radian")?;
            warn_of_degrees(value.py(), keyword, &[0.0, radian])?;
            Setting::Number(radian.to_degrees())
        }
        Kind::Names(names) => {
            let name: String = value.extract().map_err(|_| wrong("a name"))?;
            let known = || names.iter().map(|one| one.name).collect::<Vec<_>>().join(" or ");
            let chosen = names.iter().find(|one| one.name == name);
            Setting::Name(chosen.ok_or_else(|| raised(Error::value(keyword, known(), name)))?.name)
        }
        Kind::NumberOr(word) => match value.extract::<String>() {
            Ok(text) if text == word => Setting::Name(word),
            _ => Setting::Number(number(&format!("a number or '{word}'"))?),
        },
        Kind::Counts(lengths) => {
            let counts: Vec<usize> = along_axes(keyword, lengths, value, |one| {
                let wrong = |_| wrong_type(keyword, "whole numbers", described(value));
                usize::try_from(whole(one).map_err(wrong)?)
                    .ok()
                    .filter(|&n| n > 0)
                    .ok_or_else(|| raised(Error::value(keyword, "numbers from 1", described(value))))
            })?;
            Setting::Counts(counts)
        }
        Kind::Numbers(lengths) => Setting::Numbers(along_axes(keyword, lengths, value, |one| {
            one.extract().map_err(|_| wrong_type(keyword, "numbers", described(value)))
        })?),
        Kind::Ranges => Setting::Ranges(ranges(keyword, value)?),
        Kind::Text => Setting::Text(value.extract().map_err(|_| wrong("a name"))?),
        Kind::File | Kind::Folder | Kind::Picture => {
            path().map_err(|_| wrong("the path of a file or a folder"))?
        }
        Kind::DoubleOr(prefix) if value.extract::<String>().is_ok_and(|text| text.starts_with(prefix)) => {
            Setting::Text(value.extract()?)
        }
        Kind::Complex | Kind::Double | Kind::DoubleOr(_) | Kind::Real if path().is_ok() => path()?,
        Kind::Complex => Setting::Complex(Arc::new(complex::<f32>(keyword, value)?)),
        Kind::Double | Kind::DoubleOr(_) => Setting::Double(Arc::new(complex::<f64>(keyword, value)?)),
        Kind::Real => Setting::Real(Arc::new(singles(keyword, "of an image", value)?)),
        Kind::NumberOrReal => match (number(""), path()) {
            (Ok(number), _) => Setting::Number(number),
            (_, Ok(path)) => path,
            _ => Setting::Real(Arc::new(singles(keyword, "of an image", value)?)),
        },
    }))
}

/// Numbers along axes x, y and z; one number alone stands for all where that is allowed.
fn along_axes<'py, T>(
    keyword: &str,
    lengths: &[usize],
    value: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let wanted: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let expected = match lengths.is_empty() {
        true => "numbers".to_owned(),
        false => format!("{} numbers (x, y, z)", wanted.join(" or ")),
    };
    let wrong = || wrong_type(keyword, &expected, described(value));
    let values: Vec<T> = match value.try_iter() {
        Ok(several) => several.map(|one| read(&one?)).collect::<PyResult<_>>()?,
        Err(_) if lengths.contains(&1) => vec![read(value)?],
        Err(_) => return Err(wrong()),
    };
    let any = lengths.is_empty() && !values.is_empty();
    if any || lengths.contains(&values.len()) { Ok(values) } else { Err(wrong()) }
}

/// A number from 0. Errors: a negative number.
fn counter(what: &str, value: i64) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| raised(Error::value(what, "a whole number from 0", value)))
}

/// One number or several. Errors: none, a negative one, what is no whole number.
fn ranges(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Ranges> {
    if let Ok(one) = whole(value) {
        return Ok(Ranges::from(counter(what, one)?));
    }
    let wrong = || wrong_type(what, "a whole number, or several", described(value));
    let mut several = Vec::new();
    for one in value.try_iter().map_err(|_| wrong())? {
        several.push(counter(what, whole(&one?).map_err(|_| wrong())?)?);
    }
    several.sort_unstable();
    let runs = several.chunk_by(|one, next| next - one <= 1);
    let text: Vec<String> = runs.map(|run| format!("{}-{}", run[0], run[run.len() - 1])).collect();
    match text.is_empty() {
        true => Err(raised(Error::value(what, "at least one number", "none"))),
        false => text.join(",").parse().map_err(raised),
    }
}

/// The keywords of a table, in its order: for each a dictionary with its "kind", the "names" that it takes,
/// its "default" (False of a flag, True of one that says the opposite, else None) and "help".
pub(crate) fn listed<'py, T: Table>(py: Python<'py>, call: Call) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    for (keyword, row) in rows::<T>() {
        let one = PyDict::new(py);
        let (kind, names) = match row.kind {
            Kind::Names(names) => ("name", names.iter().map(|one| one.name).collect()),
            Kind::Flag => ("flag", Vec::new()),
            Kind::Number | Kind::Angle => ("number", Vec::new()),
            Kind::NumberOr(word) => ("number or name", vec![word]),
            Kind::Count | Kind::Bytes => ("count", Vec::new()),
            Kind::CountOr(_) => ("count or flag", Vec::new()),
            Kind::Counts(_) => ("counts", Vec::new()),
            Kind::Numbers(_) => ("numbers", Vec::new()),
            Kind::Ranges => ("one count or several", Vec::new()),
            Kind::Text => ("text", Vec::new()),
            Kind::Program | Kind::File | Kind::Folder | Kind::Picture => ("path", Vec::new()),
            Kind::Complex | Kind::Double | Kind::DoubleOr(_) | Kind::Real => ("array or path", Vec::new()),
            Kind::NumberOrReal => ("number, array or path", Vec::new()),
        };
        one.set_item("kind", kind)?;
        one.set_item("names", names)?;
        let default = (row.kind == Kind::Flag).then_some(!row.opposite.is_empty());
        one.set_item("default", default)?;
        one.set_item("help", help_of(call, row))?;
        keywords.set_item(keyword, one)?;
    }
    Ok(keywords)
}

/// What a row is, in the words of a call.
fn help_of<R, N>(call: Call, row: &OptionRow<R, N>) -> String {
    let help = if row.opposite.is_empty() { row.help } else { row.opposite };
    let unit = match row.kind {
        Kind::Angle => "; in radian",
        Kind::Bytes => ", in bytes",
        _ => "",
    };
    let details = if row.details.is_empty() { String::new() } else { format!(". {}", row.details) };
    let help = match row.kind {
        // A sequence stands for what the command line lists.
        Kind::Ranges => {
            help.split(':').next().unwrap_or(help).to_owned()
                + ": a number, or a sequence such as range(1, 3)"
        }
        _ => help.to_owned(),
    };
    let names = match row.kind {
        Kind::Names(names) => {
            let named = |one: &Choice| format!("\"{}\": {}", one.name, one.help);
            format!(". {}", names.iter().map(named).collect::<Vec<_>>().join("; "))
        }
        _ => String::new(),
    };
    let whole = format!("{help}{unit}{names}{details}");
    call.told(&rayspin_cli::in_memory::filled(&whole))
}
