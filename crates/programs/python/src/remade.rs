//! Pickles and copies: an object is its class and its parts, and is made again of them.
//!
//!     object.__reduce__() = (rayspin.remade, (class, VERSION, parts))
//!
//! Parts are numbers, texts, other objects, and arrays of NumPy, which pickles of protocol 5 hand over
//! without a copy. What makes an object of its parts checks them as a constructor checks its arguments: a
//! pickle may be damaged, or another program's.

use ndarray::{Array, ArrayD, Dimension};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::PyClass;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyType};
use rayspin::core::slices::Stack;
use rayspin::core::{Error, Geometry, Image};
use rayspin::io::cfl::{Axes, Layout};

use crate::error::{described, raised, wrong_type};
use crate::exchange::copied::with_axes;
use crate::exchange::{Dtype, Given};

/// The version of pickles. Parts that change their meaning or their names make another version.
pub(crate) const VERSION: i64 = 1;

/// A class whose objects are made again of their parts.
pub(crate) trait Remade: PyClass {
    /// What an object is made of, by name. Arrays that Python has are these arrays, not copies.
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>>;

    /// The object of these parts. Errors: parts that are missing, of another type, or do not fit each other.
    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// What `__reduce__` returns.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyType>, i64, Bound<'py, PyDict>));

/// This module: a process may hold two copies of the package under two names.
static OWN: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A function or class of this module by its name.
pub(crate) fn own<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let none = || PyValueError::new_err("rayspin is not imported");
    OWN.get(py).ok_or_else(none)?.bind(py).getattr(name)
}

/// What `__reduce__` of an object returns.
pub(crate) fn reduced<'py, T: Remade>(object: &Bound<'py, T>) -> PyResult<Reduced<'py>> {
    let arguments = (object.as_any().get_type(), VERSION, T::parts(object)?);
    Ok((own(object.py(), "remade")?, arguments))
}

/// The object of its parts after `copy.deepcopy` of each.
pub(crate) fn copied_deeply<'py, T: Remade>(
    object: &Bound<'py, T>,
    memo: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let parts = object.py().import("copy")?.call_method1("deepcopy", (T::parts(object)?, memo))?;
    T::of_parts(&Parts::of(&object.as_any().get_type(), parts.cast_into()?)?)
}

/// The parts of an object in a pickle.
pub(crate) struct Parts<'py> {
    /// The name of its class, for errors.
    pub(crate) class: String,
    dict: Bound<'py, PyDict>,
}

impl<'py> Parts<'py> {
    pub(crate) fn of(class: &Bound<'py, PyType>, dict: Bound<'py, PyDict>) -> PyResult<Self> {
        Ok(Self { class: class.fully_qualified_name()?.to_string(), dict })
    }

    /// The parts of a part: what a dictionary in it holds.
    pub(crate) fn within(&self, name: &str) -> PyResult<Self> {
        Ok(Self { class: self.what(name), dict: self.get(name)? })
    }

    /// What errors call a part.
    fn what(&self, name: &str) -> String {
        format!("pickle of {}: {name}", self.class)
    }

    pub(crate) fn dict(&self) -> &Bound<'py, PyDict> {
        &self.dict
    }

    pub(crate) fn python(&self) -> Python<'py> {
        self.dict.py()
    }

    /// A part as it is. Errors: a `ValueError` where it is missing.
    pub(crate) fn any(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let missing = || raised(Error::value(self.what(name), "a value", "none"));
        self.dict.get_item(name)?.ok_or_else(missing)
    }

    /// A part of a type. Errors: as [`Self::any`]; a `TypeError` for another type.
    pub(crate) fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<T> {
        let part = self.any(name)?;
        part.extract().map_err(|_| wrong_type(&self.what(name), "another type", described(&part)))
    }

    /// A copy of an array of NumPy, of an element type and with the axes that `D` has. Errors: as
    /// [`Self::get`]; a `ValueError` for other axes.
    pub(crate) fn array<T, D>(&self, name: &str, axes: &str) -> PyResult<Array<T, D>>
    where
        T: numpy::Element + Clone,
        D: Dimension,
    {
        let (part, numpy) = (self.any(name)?, self.python().import("numpy")?);
        let dtype = numpy::dtype::<T>(self.python());
        let wrong = || wrong_type(&self.what(name), format!("an array of {dtype}"), described(&part));
        if !part.is_instance(&numpy.getattr("ndarray")?)? {
            return Err(wrong());
        }
        // Elements may lie at odd addresses of a buffer.
        let plain = numpy.call_method1("require", (&part, self.python().None(), vec!["C", "A", "E"]))?;
        let plain = plain.cast::<PyArrayDyn<T>>().map_err(|_| wrong())?;
        let array = plain.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let values = array.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))?.to_vec();
        let shaped = ArrayD::from_shape_vec(plain.shape(), values);
        with_axes(&self.what(name), axes, shaped.map_err(|error| PyValueError::new_err(error.to_string()))?)
    }

    /// [`Self::array`], or None.
    pub(crate) fn array_or_none<T, D>(&self, name: &str, axes: &str) -> PyResult<Option<Array<T, D>>>
    where
        T: numpy::Element + Clone,
        D: Dimension,
    {
        if self.any(name)?.is_none() { Ok(None) } else { self.array(name, axes).map(Some) }
    }

    /// An array of an image as it is, and its shape: of one of these element types, in C order. Errors:
    /// another array, no array.
    pub(crate) fn image(
        &self,
        name: &'static str,
        dtypes: &[Dtype],
    ) -> PyResult<(Bound<'py, PyAny>, Vec<usize>)> {
        let data = self.any(name)?;
        let given = Given::new(name, &data)?;
        if dtypes.contains(&given.dtype) {
            return Ok((data, given.shape.clone()));
        }
        let expected = dtypes.iter().map(|one| one.name()).collect::<Vec<_>>().join(" or ");
        Err(wrong_type(&self.what(name), expected, given.dtype.name()))
    }

    /// The stacks of slices of an image of this shape. Errors: of another number of slices.
    pub(crate) fn stacks(&self, shape: &[usize]) -> PyResult<Vec<Stack>> {
        let stacks: Vec<(usize, Position)> = self.get("stacks")?;
        let stacks: Vec<Stack> = stacks
            .into_iter()
            .map(|(slices, place)| Stack { slices, geometry: geometry_of(place) })
            .collect();
        let slices = stacks.iter().try_fold(0usize, |sum, stack| sum.checked_add(stack.slices));
        if slices.is_none() {
            return Err(raised(Error::value(self.what("stacks"), "the slices of the image", "more")));
        }
        // Values without a size: the shape is what is checked.
        Image::of_stacks(ArrayD::from_elem(shape, ()), stacks.clone()).map_err(raised)?;
        Ok(stacks)
    }
}

/// The place of an image as parts have it: spacing, position, and directions along x, y and z.
pub(crate) type Position = ([f64; 3], [f64; 3], [[f64; 3]; 3]);

pub(crate) fn place_of(geometry: &Geometry) -> Position {
    let Geometry { spacing_mm, position_mm, read_dir, phase_dir, slice_dir } = *geometry;
    (spacing_mm, position_mm, [read_dir, phase_dir, slice_dir])
}

pub(crate) fn geometry_of((spacing_mm, position_mm, [read_dir, phase_dir, slice_dir]): Position) -> Geometry {
    Geometry { spacing_mm, position_mm, read_dir, phase_dir, slice_dir }
}

/// Stacks of slices as parts have them.
pub(crate) fn stacks_of(stacks: &[Stack]) -> Vec<(usize, Position)> {
    stacks.iter().map(|stack| (stack.slices, place_of(&stack.geometry))).collect()
}

/// The layout of a BART array as parts have it: which of [`AXES`], and the frames.
pub(crate) type LayoutParts = (usize, [usize; FRAMES]);

const FRAMES: usize = 12;
const AXES: [Axes; 4] = [Axes::ReadIsX, Axes::ReadIsZ, Axes::SliceIsZ, Axes::SliceIsZOfCut];

pub(crate) fn layout_parts(layout: &Layout) -> LayoutParts {
    (AXES.iter().position(|axes| *axes == layout.axes).unwrap_or(0), layout.frames)
}

/// Errors: axes that there are not; more frames than can be counted.
pub(crate) fn layout_of((axes, frames): LayoutParts) -> PyResult<Layout> {
    let counted =
        frames.iter().try_fold(1usize, |count, &length| count.checked_mul(length)).filter(|&count| count > 0);
    match (AXES.get(axes), counted) {
        (Some(&axes), Some(_)) => Ok(Layout { axes, frames }),
        _ => Err(raised(Error::value("layout", "that of a BART array", format!("{axes} {frames:?}")))),
    }
}

/// The exception for an array of the caller's that is not what it was when an object was made of it. Several
/// names are of arrays one of which has changed.
pub(crate) fn changed(what: &str) -> PyErr {
    let which = if what.contains(',') { "one of the arrays" } else { "the array" };
    let text = format!(
        "{what}: {which} has changed since it was given, so that the object cannot be pickled; give a copy \
         that stays as it is"
    );
    PyValueError::new_err(text)
}

/// Says which module [`own`] looks in.
pub(crate) fn set_own(module: &Bound<'_, PyModule>) {
    let _ = OWN.set(module.py(), module.clone().unbind());
}
