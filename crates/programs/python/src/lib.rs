//! Rayspin in Python: the compiled half of the package `rayspin`, as the module `rayspin._rayspin`.
//!
//! Arrays of the caller are used where they lie, the interpreter is released while Rayspin computes, and
//! errors become exceptions. The package's Python files hold what needs no compiled code.

mod call;
mod cluster;
mod ct;
mod degrees;
mod error;
mod exchange;
mod finished;
mod image;
mod images;
mod keywords;
mod linop;
mod metrics;
mod nufft;
mod options;
mod parameters;
mod pickles;
mod processor;
mod progress;
mod prox;
mod recon;
mod record;
mod remade;
mod render;
mod scan;
mod settings;
mod signals;
mod simulate;
mod solve;
mod whole;
mod words;

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::signals::Detached;

/// Runs the command `rayspin` with these arguments, the program's name first. Returns its exit code: 0, 1 for
/// a failure, 2 for wrong input.
///
/// `(arguments: Sequence[str]) -> int`
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    py.detached(|| {
        let methods = rayspin::mri::methods::Methods::default();
        rayspin_cli::code_of(methods, arguments)
    })
}

#[pymodule]
fn _rayspin(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(feature = "precompiled")]
    rayspin::device::cuda::carry_archive(include_bytes!(env!("RAYSPIN_KERNELS_EMBED")));
    module.py().import("atexit")?.call_method1("register", (wrap_pyfunction!(signals::finish, module)?,))?;
    exchange::load_numpy(module.py())?;
    processor::take_environment(module.py())?;
    pickles::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<nufft::Plan>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<recon::Reconstruction>()?;
    module.add_function(wrap_pyfunction!(scan::read_scan, module)?)?;
    module.add_function(wrap_pyfunction!(recon::recon, module)?)?;
    module.add_class::<image::Image>()?;
    module.add_class::<images::Images>()?;
    module.add_function(wrap_pyfunction!(image::read_image, module)?)?;
    module.add_function(wrap_pyfunction!(image::filter, module)?)?;
    module.add_function(wrap_pyfunction!(image::filters, module)?)?;
    module.add_function(wrap_pyfunction!(images::images, module)?)?;
    module.add_function(wrap_pyfunction!(recon::plan, module)?)?;
    module.add_function(wrap_pyfunction!(recon::recon_options, module)?)?;
    module.add_function(wrap_pyfunction!(recon::methods, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(processor::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(processor::threads, module)?)?;
    cluster::register(module)?;
    ct::register(module)?;
    linop::register(module)?;
    metrics::register(module)?;
    prox::register(module)?;
    solve::register(module)?;
    simulate::register(module)?;
    render::register(module)?;
    Ok(())
}
