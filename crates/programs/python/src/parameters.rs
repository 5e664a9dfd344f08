//! Parameters of methods and corrections as keywords, from their tables.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use rayspin::job::asked::{Asked, Kit, Typed};
use rayspin::job::rows::Table as Rows;
use rayspin::mri::methods::{Kind, Param, Parameters, Value};
use rayspin::run::{Described, Given, Table};

use crate::error::{described, did_you_mean, wrong_type};
use crate::exchange::copied::singles;
use crate::exchange::to_numpy;
use crate::keywords::{keyword, rows};
use crate::words::Call;

/// The kind, default, range and help of each parameter, in the words of a call.
pub(crate) fn table_of<'py>(
    py: Python<'py>,
    call: Call,
    parameters: &(impl Parameters + ?Sized),
) -> PyResult<Bound<'py, PyDict>> {
    let rows = PyDict::new(py);
    for param in parameters.table() {
        let row = PyDict::new(py);
        let kind = match param.kind {
            Kind::Number => "number",
            Kind::Count => "count",
            Kind::Choice(_) => "choice",
            Kind::Image => "image",
        };
        row.set_item("kind", kind)?;
        let default = parameters.get(param.name).unwrap_or(Value::Nothing);
        row.set_item("default", python_of(py, &default)?)?;
        row.set_item("range", range_of(&param))?;
        row.set_item("help", call.told(param.help))?;
        rows.set_item(keyword(param.name), row)?;
    }
    Ok(rows)
}

/// The value of each parameter.
pub(crate) fn values_in<'py>(
    py: Python<'py>,
    parameters: &(impl Parameters + ?Sized),
) -> PyResult<Bound<'py, PyDict>> {
    let used = PyDict::new(py);
    for param in parameters.table() {
        used.set_item(
            keyword(param.name),
            python_of(py, &parameters.get(param.name).unwrap_or(Value::Nothing))?,
        )?;
    }
    Ok(used)
}

fn range_of(param: &Param) -> String {
    match param.kind {
        Kind::Choice(choices) => choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", "),
        _ => param.expected.to_owned(),
    }
}

/// The method of that name. Errors: a `ValueError` with the names that there are, and the nearest of them.
pub(crate) fn named<'a, M: Described + ?Sized>(
    py: Python<'_>,
    methods: &'a Table<M>,
    name: &str,
) -> PyResult<&'a M> {
    let names: Vec<String> = methods.iter().map(|method| method.about().name.to_owned()).collect();
    match methods.named(name) {
        Ok(method) => Ok(method),
        Err(error) => Err(PyValueError::new_err(format!("{error}{}", did_you_mean(py, name, &names)?))),
    }
}

/// The method of that name, or none, with values of parameters from keywords, which `given` gets.
///
/// Errors: a `TypeError` for a keyword that the method lacks, with the methods that have it, and for a value
/// of another kind. A `ValueError` for a value out of range, and for a name that no method has.
pub(crate) fn asked<K: Kit + Rows>(
    py: Python<'_>,
    method: Option<&str>,
    keywords: &Bound<'_, PyDict>,
    given: &mut Given,
) -> PyResult<Asked<K>> {
    let methods = K::methods();
    let method = method.map(|name| named(py, methods, name)).transpose()?;
    let mut asked = Asked::new(method.map(|method| method.about().name.to_owned()));
    let params = methods.params();
    let table = method.map_or_else(|| params.iter().map(|(param, _)| *param).collect(), |one| one.table());
    for (key, value) in keywords {
        let key: String = key.extract()?;
        let Some(param) = table.iter().find(|param| keyword(param.name) == key) else {
            return Err(PyTypeError::new_err(no_parameter::<K>(py, method, &table, &key)?));
        };
        let searched = param.searched && value.extract::<String>().is_ok_and(|text| text == "auto");
        let typed = match searched {
            true => Typed::Searched,
            false => Typed::Value(checked(param, &value)?),
        };
        asked.insert(param.name, typed);
        given.insert(param.name, key);
    }
    Ok(asked)
}

/// Why a keyword is none.
fn no_parameter<K: Kit + Rows>(
    py: Python<'_>,
    method: Option<&K::Method>,
    table: &[Param],
    key: &str,
) -> PyResult<String> {
    let has = |table: &[Param]| table.iter().any(|param| keyword(param.name) == key);
    let own = table.iter().map(|param| keyword(param.name));
    let others = rows::<K>().map(|(keyword, _)| keyword).chain(["method", "device", "progress"]);
    let meant = did_you_mean(py, key, &own.clone().chain(others).map(str::to_owned).collect::<Vec<_>>())?;
    Ok(match method.map(|method| method.about().name) {
        Some(name) if K::methods().iter().any(|other| has(&other.table())) => {
            let others = K::methods().names(|other| has(&other.table()));
            format!("{key}: no parameter of method {name}; method {others} has it")
        }
        Some(name) => {
            let own = own.collect::<Vec<_>>().join(", ");
            format!("{key}: no parameter of method {name}, which has {own}{meant}")
        }
        None => format!("{key}: no keyword, and no parameter of any method{meant}"),
    })
}

/// Keywords as values of the parameters in a table. Errors: a `TypeError` for a keyword that the table has
/// not, or of another kind; a `ValueError` for a value out of range.
pub(crate) fn values_of(
    py: Python<'_>,
    whose: &str,
    table: &[Param],
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(String, Value)>> {
    let mut values = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(param) = table.iter().find(|param| keyword(param.name) == name) else {
            let own: Vec<_> = table.iter().map(|param| keyword(param.name)).collect();
            let names: Vec<String> = own.iter().map(ToString::to_string).collect();
            let meant = did_you_mean(py, &name, &names)?;
            let text = format!("{name}: no parameter of {whose}, which has {}{meant}", own.join(", "));
            return Err(PyTypeError::new_err(text));
        };
        values.push((param.name.to_owned(), checked(param, &value)?));
    }
    Ok(values)
}

/// The value of a parameter. Errors: as [`values_of`].
fn checked(param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let read = value_of(param, value)?;
    if read != Value::Nothing && !(param.valid)(&read) {
        let name = keyword(param.name);
        let text = format!("{name}: expected {}, found {}", param.expected, described(value));
        return Err(PyValueError::new_err(text));
    }
    Ok(read)
}

fn value_of(param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Nothing);
    }
    let name = keyword(param.name);
    let wrong = |expected: &str| wrong_type(name, expected, described(value));
    match param.kind {
        Kind::Number if value.is_instance_of::<PyBool>() => Err(wrong("a number")),
        Kind::Count if value.is_instance_of::<PyBool>() => Err(wrong("a whole number")),
        Kind::Number => value.extract().map(Value::Number).map_err(|_| wrong("a number")),
        Kind::Count => match value.extract::<i128>() {
            Ok(count) => {
                let text = || format!("{name}: expected a whole number from 0, found {count}");
                count.try_into().map(Value::Count).map_err(|_| PyValueError::new_err(text()))
            }
            Err(_) => Err(wrong("a whole number")),
        },
        Kind::Choice(choices) => {
            let given: String = value.extract().map_err(|_| wrong("a name"))?;
            let choice = choices.iter().find(|choice| choice.name == given);
            let text = || format!("{name}: expected one of {}, found {given}", range_of(param));
            choice.map(|choice| Value::Choice(choice.name)).ok_or_else(|| PyValueError::new_err(text()))
        }
        Kind::Image => Ok(Value::Image(Arc::new(singles(name, "of the image", value)?))),
    }
}

fn python_of(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Nothing => py.None(),
        Value::Number(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Count(count) => count.into_pyobject(py)?.into_any().unbind(),
        Value::Choice(name) => name.into_pyobject(py)?.into_any().unbind(),
        Value::Image(image) => to_numpy(py, image.as_ref().clone()).unbind(),
    })
}
