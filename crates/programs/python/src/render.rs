//! `rayspin.render`: pictures of volumes, with the options of the command.

use ndarray::{Axis, Ix2, Ix3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{Geometry, Image, format_shape};
use rayspin::job::ComputeTarget;
use rayspin::kernels::render::Knot;
use rayspin_cli::in_memory::{Picture, Task};

use crate::error::raised;
use crate::exchange::copied::{doubles, several, singles};
use crate::exchange::to_numpy;
use crate::options::{listed, raised_by, words};
use crate::processor::Processor;
use crate::progress::Listener;

/// Draws a volume `[z, y, x]` with voxels of `spacing_mm` (x, y, z) in the `mode` xray, mip, volume or
/// surface of `rayspin render`.
///
/// `(mode: str, volume: Any, spacing_mm: float | Sequence[float], *, device: str, transfer: ArrayLike | None,
/// progress: Heard, **options: Any) -> Any`
#[pyfunction]
#[pyo3(signature = (mode, volume, spacing_mm, *, device="auto", transfer=None, progress=None, **options))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn render_volume<'py>(
    py: Python<'py>,
    mode: &str,
    volume: &Bound<'py, PyAny>,
    spacing_mm: &Bound<'py, PyAny>,
    device: &str,
    transfer: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let processor = Processor::named(device)?;
    let mut words = words(Task::Render, "render", options)?;
    words.push(format!("--mode={mode}").into());
    let one = !words.iter().any(|word| word.to_string_lossy().starts_with("--turntable"));
    let spacing = several("spacing_mm", "a length in mm, or three (x, y, z)", spacing_mm)?;
    let axes = Geometry::default();
    let geometry = Geometry::new(spacing, [0.0; 3], axes.read_dir, axes.phase_dir, axes.slice_dir);
    let values = singles::<Ix3>("volume", "[z, y, x]", volume)?;
    let image = Image::new(values.into_dyn(), geometry.map_err(raised)?).map_err(raised)?;
    let knots = transfer.map(knots_of).transpose()?;
    let listener = Listener::new(py, progress)?;
    let drawn = listener.run(py, || {
        let monitor = listener.monitor();
        let mut target = ComputeTarget::of(processor.device.clone());
        target.finish_on_cpu = device == "auto";
        rayspin_cli::in_memory::render(&target, words, image, knots, &monitor)
    });
    let (picture, _) = drawn?.map_err(|error| raised_by(Task::Render, error))?;
    Ok(match (picture, one) {
        (Picture::Numbers(views), true) => to_numpy(py, views.index_axis_move(Axis(0), 0).into_dyn()),
        (Picture::Numbers(views), false) => to_numpy(py, views.into_dyn()),
        (Picture::Colours(views), true) => {
            numpy::PyArray::from_owned_array(py, views.index_axis_move(Axis(0), 0)).into_any()
        }
        (Picture::Colours(views), false) => numpy::PyArray::from_owned_array(py, views).into_any(),
    })
}

/// Points of a transfer function, `[point, 5]`.
fn knots_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<Knot>> {
    let axes = "[point, 5] (value, red, green, blue, opacity per mm)";
    let points = doubles::<Ix2>("transfer", axes, given)?;
    if points.ncols() != 5 {
        let found = format_shape(points.shape());
        return Err(PyValueError::new_err(format!(
            "transfer: expected the axes {axes}, found shape {found}"
        )));
    }
    let knot = |row: ndarray::ArrayView1<'_, f64>| {
        let [value, red, green, blue, opacity] = std::array::from_fn(|index| row[index] as f32);
        Knot { value, colour: [red, green, blue], opacity }
    };
    Ok(points.outer_iter().map(knot).collect())
}

/// The options of pictures. Returns a dictionary as `simulate.options` does.
///
/// `() -> dict[str, dict[str, Any]]`
#[pyfunction]
pub(crate) fn render_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let options = listed(py, Task::Render)?;
    options.del_item("mode")?;
    Ok(options)
}

/// Adds the functions of `rayspin.render`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(render_volume, module)?)?;
    module.add_function(wrap_pyfunction!(render_options, module)?)
}
