//! Filters as people type them.

use std::sync::Arc;

use rayspin_core::{Error, Result};
use rayspin_run::{Kind, Param, Value};

use super::{Filter, Filters, with};

/// See [`Filters::parse`].
pub(crate) fn parse(filters: &Filters, text: &str) -> Result<Arc<dyn Filter>> {
    let (name, values) = text.split_once(':').map_or((text, None), |(name, values)| (name, Some(values)));
    let known = filters.iter().find(|filter| filter.about().name == name);
    let filter = known.ok_or_else(|| Error::value("filter", filters.names(|_| true), name))?;
    let table = filter.table();
    let mut given: Vec<(String, Value)> = Vec::new();
    for (place, text) in values.into_iter().flat_map(|values| values.split(',')).enumerate() {
        let (param, called, text) = match text.split_once('=') {
            Some((name, text)) => (table.iter().find(|param| param.name == name.trim()), name, text),
            None => (table.get(place), text, text),
        };
        let Some(param) = param else {
            let names: Vec<_> = table.iter().map(|param| param.name).collect();
            return Err(Error::value(format!("parameter of {name}"), names.join(", "), called.trim()));
        };
        if given.iter().any(|(name, _)| name == param.name) {
            return Err(Error::value(format!("{} of {name}", param.name), "one value", "two"));
        }
        given.push((param.name.to_owned(), value(param, text.trim())?));
    }
    with(filter, given)
}

/// A value as it was typed. Errors: a text that is no value of the parameter's kind.
fn value(param: &Param, text: &str) -> Result<Value> {
    let wrong = || Error::value(param.what(), param.expected, format!("'{text}'"));
    Ok(match param.kind {
        Kind::Number => Value::Number(text.parse().map_err(|_| wrong())?),
        Kind::Count => Value::Count(text.parse().map_err(|_| wrong())?),
        Kind::Choice(choices) => match choices.iter().find(|choice| choice.name == text) {
            Some(choice) => Value::Choice(choice.name),
            None => {
                let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
                return Err(Error::value(param.what(), names.join(" or "), format!("'{text}'")));
            }
        },
        Kind::Image => return Err(wrong()),
    })
}

/// A filter with all its parameters by name, as [`Filters::parse`] takes it.
pub fn text(filter: &dyn Filter) -> String {
    let set = |param: &Param| match filter.get(param.name)? {
        Value::Nothing => None,
        value => Some(format!("{}={value}", param.name)),
    };
    let values: Vec<String> = filter.table().iter().filter_map(set).collect();
    let name = filter.about().name;
    if values.is_empty() { name.to_owned() } else { format!("{name}:{}", values.join(",")) }
}
