//! Keywords of `recon` as the library's options.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Error, Ranges};
use rayspin::mri::maps::{EspiritOptions, Sensitivities};
use rayspin::mri::methods::Method;
use rayspin::mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin::mri::recon::LAMBDA;
use rayspin::mri::scan::Window;
use rayspin::run::Given;

use crate::copied::{count, whole};
use crate::error::{described, raised, wrong_type};
use crate::parameters::keyword;

/// Fields of options of the command whose keywords have other names.
const RENAMED: &[(&str, &str)] = &[
    ("slice", "slices"),
    ("repetition", "repetitions"),
    ("traj_units", "trajectory_units"),
    ("traj_fov", "trajectory_fov"),
    ("traj_weights", "trajectory_weights"),
    ("epsilon", "nufft_tolerance"),
    ("no_prewhiten", "prewhiten"),
];

/// The keywords that were given, by the fields of the options that they are.
#[derive(Debug, Default)]
pub(super) struct Names(pub(super) Given);

impl Names {
    /// The value, which is noted where there is one.
    pub(super) fn take<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        self.flag(field, value.is_some());
        value
    }

    /// Whether it is given, which is noted.
    pub(super) fn flag(&mut self, field: &str, given: bool) -> bool {
        if given {
            let name = RENAMED.iter().find(|(one, _)| *one == field).map_or(field, |(_, name)| name);
            self.0.insert(field, name);
        }
        given
    }
}

/// The value of this name, where one is given. Errors: as [`named_value`].
pub(super) fn one_of<T: Copy>(what: &str, name: Option<&str>, values: &[(&str, T)]) -> PyResult<Option<T>> {
    name.map(|name| named_value(what, name, values)).transpose()
}

/// The value of this name. Errors: a `ValueError` with the names that there are.
fn named_value<T: Copy>(what: &str, name: &str, values: &[(&str, T)]) -> PyResult<T> {
    let names = || values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    let found = values.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
    found.ok_or_else(|| raised(Error::value(what, names(), name)))
}

/// How coils are compressed. A whole number counts the coils that stay, and a number below 1 is the part of their energy that stays.
pub(super) fn compression(coils: Option<f64>, kind: Option<&str>) -> PyResult<Option<Compression>> {
    let kinds = [("svd", CompressionKind::Svd), ("geometric", CompressionKind::Geometric)];
    let kind = kind.map(|name| named_value("compression", name, &kinds)).transpose()?;
    let coils = match coils {
        None if kind.is_some() => {
            return Err(raised(Error::value("compression", "coils= beside it", "none")));
        }
        None => return Ok(None),
        Some(energy) if energy > 0.0 && energy < 1.0 => VirtualCoils::Energy(energy),
        Some(count) if count >= 1.0 && count.fract() == 0.0 => VirtualCoils::Count(count as usize),
        Some(other) => {
            return Err(raised(Error::value("coils", "a whole number from 1, or a part of 1", other)));
        }
    };
    Ok(Some(Compression { coils, kind: kind.unwrap_or_default() }))
}

/// A counter of readouts. Errors: a negative number.
pub(super) fn counter(what: &str, value: Option<i64>) -> PyResult<Option<usize>> {
    let wrong = |found: i64| raised(Error::value(what, "a number from 0", found));
    value.map(|value| usize::try_from(value).map_err(|_| wrong(value))).transpose()
}

/// A counter as a scan stores it.
pub(super) fn small_counter(what: &'static str, value: Option<i64>) -> PyResult<Option<u16>> {
    let wrong = |found: usize| raised(Error::value(what, format!("a number up to {}", u16::MAX), found));
    counter(what, value)?.map(|value| u16::try_from(value).map_err(|_| wrong(value))).transpose()
}

/// One number or several. Errors: none, a negative one, what is no whole number.
pub(super) fn numbers(what: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Ranges>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(one) = whole(value) {
        return Ok(counter(what, Some(one))?.map(Ranges::from));
    }
    let wrong = || wrong_type(what, "a whole number, or several", described(value));
    let mut several = Vec::new();
    for one in value.try_iter().map_err(|_| wrong())? {
        several.extend(counter(what, Some(whole(&one?).map_err(|_| wrong())?))?);
    }
    several.sort_unstable();
    let runs = several.chunk_by(|one, next| next - one <= 1);
    let text: Vec<String> = runs.map(|run| format!("{}-{}", run[0], run[run.len() - 1])).collect();
    match text.is_empty() {
        true => Err(raised(Error::value(what, "at least one number", "none"))),
        false => text.join(",").parse().map(Some).map_err(raised),
    }
}

/// A window over the readouts.
pub(super) fn window_of(
    window: Option<i64>,
    stride: Option<i64>,
    windows: Option<i64>,
) -> PyResult<Option<Window>> {
    let of_window = stride.map(|_| "stride").or(windows.map(|_| "windows"));
    match (window, of_window) {
        (Some(readouts), _) => Ok(Some(Window {
            readouts: count("window", readouts)?,
            stride: count("stride", stride.unwrap_or(readouts))?,
            frames: windows.map(|windows| count("windows", windows)).transpose()?,
        })),
        (None, Some(keyword)) => Err(raised(Error::value(keyword, "window= beside it", "none"))),
        (None, None) => Ok(None),
    }
}

/// Whether λ is searched for, and the other keywords.
pub(super) fn searched_lambda<'py>(
    method: &dyn Method,
    parameters: Option<&Bound<'py, PyDict>>,
) -> PyResult<(bool, Option<Bound<'py, PyDict>>)> {
    let Some(given) = parameters else { return Ok((false, None)) };
    let value = given.get_item(keyword(LAMBDA))?;
    let auto = value.and_then(|value| value.extract::<String>().ok()).is_some_and(|text| text == "auto");
    if !(auto && method.get(LAMBDA).is_some()) {
        return Ok((false, Some(given.clone())));
    }
    let others = given.copy()?;
    others.del_item(keyword(LAMBDA))?;
    Ok((true, Some(others)))
}

/// How maps are estimated. Walsh's method has neither sets nor a crop.
pub(super) fn estimation(
    name: Option<&str>,
    sets: Option<i64>,
    crop: Option<f64>,
) -> PyResult<Option<Sensitivities>> {
    let of_espirit = sets.map(|_| "map_sets").or(crop.map(|_| "map_crop"));
    let walsh = name.map(|name| named_value("sensitivities", name, &[("walsh", true), ("espirit", false)]));
    match (walsh.transpose()?, of_espirit) {
        (None, None) => Ok(None),
        (Some(true), None) => Ok(Some(Sensitivities::Walsh)),
        (Some(true), Some(keyword)) => {
            Err(raised(Error::value(keyword, "sensitivities=\"espirit\"", "walsh, which has none")))
        }
        (Some(false) | None, _) => {
            let default = EspiritOptions::default();
            Ok(Some(Sensitivities::Espirit(EspiritOptions {
                sets: sets.map_or(Ok(default.sets), |sets| count("map_sets", sets))?,
                crop: crop.unwrap_or(default.crop),
                ..default
            })))
        }
    }
}
