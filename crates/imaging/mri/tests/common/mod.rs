//! Methods by name, for tests that go through several of them.

#![allow(dead_code, clippy::unwrap_used, reason = "each file of tests uses some of it")]

use rayspin_mri::methods::{self, Methods, Value};
use rayspin_mri::recon::ReconOptions;

/// The defaults of a method.
pub(crate) fn of(method: &str) -> ReconOptions {
    let methods = Methods::default();
    ReconOptions::with_method(methods.named(method).unwrap().copy().into())
}

/// A method with the λ, iterations and tolerance of CG-SENSE, whatever its own defaults are.
pub(crate) fn alike(method: &str) -> ReconOptions {
    let shared = [
        ("lambda", Value::Number(1e-3)),
        ("iterations", Value::Count(30)),
        ("tolerance", Value::Number(1e-5)),
    ];
    changed(of(method), &shared)
}

/// Other values of parameters, where the method has them.
pub(crate) fn changed(options: ReconOptions, values: &[(&str, Value)]) -> ReconOptions {
    let known = Methods::default().params();
    for (name, _) in values {
        assert!(known.iter().any(|(param, _)| param.name == *name), "no method has a parameter {name}");
    }
    let method = options.method.clone();
    let has = values.iter().filter(|(name, _)| method.get(name).is_some());
    let values = has.map(|(name, value)| ((*name).to_owned(), value.clone()));
    ReconOptions { method: methods::with(&*method, values).unwrap(), ..options }
}

/// [`changed`] iterations.
pub(crate) fn iterations(options: ReconOptions, count: u64) -> ReconOptions {
    changed(options, &[("iterations", Value::Count(count))])
}
