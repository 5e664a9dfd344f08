//! Parameters of methods and corrections as keywords, from their tables.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::Error;
use rayspin::mri::methods::{Kind, Param, Parameters, Value};

use crate::error::{raised, wrong_type};
use crate::exchange::{Given, on_host, to_numpy};

/// The keyword of a parameter. `lambda` is a word of Python's grammar.
pub(crate) fn keyword(name: &'static str) -> &'static str {
    if name == "lambda" { "lambda_" } else { name }
}

/// The kind, default, range and help of each parameter.
pub(crate) fn table_of<'py>(
    py: Python<'py>,
    of: &(impl Parameters + ?Sized),
) -> PyResult<Bound<'py, PyDict>> {
    let rows = PyDict::new(py);
    for param in of.table() {
        let row = PyDict::new(py);
        let kind = match param.kind {
            Kind::Number => "number",
            Kind::Count => "count",
            Kind::Choice(_) => "choice",
            Kind::Image => "image",
        };
        row.set_item("kind", kind)?;
        let default = of.get(param.name).unwrap_or(Value::Nothing);
        row.set_item("default", python_of(py, &default)?)?;
        row.set_item("range", range_of(&param))?;
        row.set_item("help", param.help)?;
        rows.set_item(keyword(param.name), row)?;
    }
    Ok(rows)
}

/// The value of each parameter.
pub(crate) fn values_in<'py>(
    py: Python<'py>,
    of: &(impl Parameters + ?Sized),
) -> PyResult<Bound<'py, PyDict>> {
    let used = PyDict::new(py);
    for param in of.table() {
        used.set_item(keyword(param.name), python_of(py, &of.get(param.name).unwrap_or(Value::Nothing))?)?;
    }
    Ok(used)
}

fn range_of(param: &Param) -> String {
    match param.kind {
        Kind::Choice(choices) => choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", "),
        _ => param.expected.to_owned(),
    }
}

/// A value in a record; of an image its shape.
pub(crate) fn recorded_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Number(number) => serde_json::json!(number),
        Value::Count(count) => serde_json::json!(count),
        Value::Choice(name) => serde_json::json!(name),
        Value::Image(image) => serde_json::json!(image.shape()),
    }
}

/// Keywords as values of the parameters in a table. Errors: a `TypeError` for a keyword that the table has not, or of another kind.
pub(crate) fn values_of(
    whose: &str,
    table: &[Param],
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(String, Value)>> {
    let mut values = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(param) = table.iter().find(|param| keyword(param.name) == name) else {
            let known: Vec<_> = table.iter().map(|param| keyword(param.name)).collect();
            let text = format!("{name}: no parameter of {whose}, which has {}", known.join(", "));
            return Err(PyTypeError::new_err(text));
        };
        values.push((param.name.to_owned(), value_of(param, &value)?));
    }
    Ok(values)
}

fn value_of(param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Nothing);
    }
    let wrong = |expected: &str| wrong_type(keyword(param.name), expected, value);
    match param.kind {
        Kind::Number => value.extract().map(Value::Number).map_err(|_| wrong("a number")),
        Kind::Count => value.extract().map(Value::Count).map_err(|_| wrong("a whole number from 0")),
        Kind::Choice(choices) => {
            let name: String = value.extract().map_err(|_| wrong("a name"))?;
            let found = choices.iter().find(|choice| choice.name == name);
            let names = || raised(Error::value(param.name, range_of(param), &name));
            found.map(|choice| Value::Choice(choice.name)).ok_or_else(names)
        }
        Kind::Image => {
            let image = on_host::<f32>(Given::new("image", value)?)?;
            Ok(Value::Image(Arc::new(image.into_host().map_err(raised)?)))
        }
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
