//! `rayspin.ct`: rays, voxels, line integrals and reconstructions of CT.

mod geometry;
mod projector;
mod recon;
mod scan;

use pyo3::prelude::*;

pub(crate) use geometry::{CtGeometry, Grid};
pub(crate) use projector::CtProjector;
pub(crate) use recon::CtReconstruction;
pub(crate) use scan::CtScan;

/// Adds the classes and functions of `rayspin.ct`, under names that MRI does not use.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CtGeometry", py.get_type::<CtGeometry>())?;
    module.add("CtGrid", py.get_type::<Grid>())?;
    module.add("CtProjector", py.get_type::<CtProjector>())?;
    module.add("CtScan", py.get_type::<CtScan>())?;
    module.add("CtReconstruction", py.get_type::<CtReconstruction>())?;
    module.add_function(wrap_pyfunction!(scan::read_ct_scan, module)?)?;
    module.add_function(wrap_pyfunction!(recon::recon_ct, module)?)?;
    module.add_function(wrap_pyfunction!(recon::plan_ct, module)?)?;
    module.add_function(wrap_pyfunction!(recon::ct_methods, module)?)?;
    module.add_function(wrap_pyfunction!(recon::ct_corrections, module)?)?;
    Ok(())
}
