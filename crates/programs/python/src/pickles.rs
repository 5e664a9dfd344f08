//! The classes whose objects can be pickled.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyType};
use rayspin::core::Error;

use crate::error::{raised, wrong_type};
use crate::remade::{Parts, Remade as _, VERSION, set_own};

/// Makes the object of a pickle: `pickle.loads`, `copy.copy` and `copy.deepcopy` call it.
///
/// kind: the object's class. version: of the pickle. parts: the parts of the object, by name.
///
/// Returns the object. Raises ValueError for a pickle of another version and for parts that do not fit each
/// other. Raises TypeError for parts of another type and for another class. Making the object raises its own
/// exceptions, such as RuntimeError where its GPU is not there.
///
/// `(kind: type, version: int, parts: dict[str, Any]) -> Any`
#[pyfunction]
pub(crate) fn remade<'py>(
    kind: &Bound<'py, PyType>,
    version: i64,
    parts: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = kind.py();
    let parts = Parts::of(kind, parts)?;
    if version != VERSION {
        let expected = format!("version {VERSION}, which this release of rayspin reads");
        let found = format!("version {version}; the release that wrote it reads it");
        return Err(raised(Error::value(format!("pickle of {}", parts.class), expected, found)));
    }
    macro_rules! of_class {
        ($($class:ty),* $(,)?) => {
            $(if kind.is(&py.get_type::<$class>()) {
                return <$class>::of_parts(&parts);
            })*
        };
    }
    of_class!(
        crate::nufft::Plan,
        crate::linop::LinearOperator,
        crate::prox::Penalty,
        crate::solve::Solution,
        crate::scan::Scan,
        crate::image::Image,
        crate::recon::Reconstruction,
        crate::metrics::Quality,
        crate::simulate::MriSimulation,
        crate::simulate::SimulatedCt,
        crate::ct::CtGeometry,
        crate::ct::Grid,
        crate::ct::CtProjector,
        crate::ct::CtScan,
        crate::ct::CtReconstruction,
    );
    Err(wrong_type("kind", "a class of rayspin whose objects can be pickled", parts.class))
}

/// Adds what pickles call.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    set_own(module);
    let function = wrap_pyfunction!(remade, module)?;
    // Pickles name the function by this module.
    function.setattr("__module__", "rayspin")?;
    module.add_function(function)
}
