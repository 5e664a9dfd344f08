//! Real numbers along one axis, such as a component of points: where the caller has them, or copied.

use ndarray::{ArrayD, Ix1};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use rayspin::core::Result;
use rayspin::device::{Array, Backend};
use rayspin::kernels::nufft::Component;

use super::copied::doubles;
use super::fingerprint::fingerprint;
use super::{Dtype, Given, expect_plain, expect_unmasked, to_numpy};
use crate::error::raised;
use crate::processor::{DeviceName, Processor};

/// Real numbers along one axis: `array[first + i * stride]`.
pub(crate) struct Line {
    /// What errors call it.
    name: &'static str,
    array: Reals,
    first: usize,
    stride: isize,
    pub(crate) count: usize,
}

/// An array of either precision.
enum Reals {
    Single(Array<f32>),
    Double(Array<f64>),
}

/// Addresses at which a GPU's memory is lent are multiples of this.
const GPU_ALIGNMENT: usize = 16;

impl Line {
    /// Numbers of float32 or float64 in their own memory, on the host or on the processor's GPU; a copy on
    /// the host of all others.
    ///
    /// Errors: a `TypeError` for complex numbers, a tensor with a gradient and what is no array; a
    /// `ValueError` for another number of axes and masked numbers.
    pub(crate) fn new(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        processor: &Processor,
    ) -> PyResult<Self> {
        if let Some(line) = Given::line(name, object, processor)? {
            return Ok(line);
        }
        let copy = doubles::<Ix1>(name, "[point]", object)?;
        let array = Array::from_host(&processor.device.host(), copy.view().into_dyn()).map_err(raised)?;
        Ok(Self { name, count: array.len(), array: Reals::Double(array), first: 0, stride: 1 })
    }

    /// The numbers as a component of a plan's points, in units of `unit` cycles per field of view.
    pub(crate) fn component(&self, unit: f64) -> Result<Component<'_>> {
        let component = match &self.array {
            Reals::Single(array) => Component::new(self.name, array),
            Reals::Double(array) => Component::new(self.name, array),
        };
        Ok(component?.strided(self.first, self.stride, self.count)?.in_unit(unit))
    }

    /// Where a number is in the array.
    fn place(&self, number: usize) -> usize {
        self.first.wrapping_add_signed(number as isize * self.stride)
    }

    /// The [`fingerprint`] of the numbers; none on a GPU, which they would have to leave for it.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let on_host = |device: &rayspin::device::Device| matches!(device.backend(), Backend::Cpu(_));
        match &self.array {
            Reals::Single(array) if on_host(array.device()) => {
                let values = array.cpu();
                Some(fingerprint(self.count, |number| values[self.place(number)]))
            }
            Reals::Double(array) if on_host(array.device()) => {
                let values = array.cpu();
                Some(fingerprint(self.count, |number| values[self.place(number)]))
            }
            _ => None,
        }
    }

    /// A copy as an array of NumPy, in the precision that they have.
    pub(crate) fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.array {
            Reals::Single(array) => {
                let values = array.read().map_err(raised)?;
                to_numpy(py, ArrayD::from_shape_fn(vec![self.count], |index| values[self.place(index[0])]))
            }
            Reals::Double(array) => {
                let values = array.read().map_err(raised)?;
                to_numpy(py, ArrayD::from_shape_fn(vec![self.count], |index| values[self.place(index[0])]))
            }
        })
    }
}

impl<'py> Given<'py> {
    /// Real numbers along one axis in their own memory, on the host or on the processor's GPU. `None` for
    /// every other array: one of another element type, another number of axes, no elements, an odd address,
    /// or another GPU.
    ///
    /// Errors: a `TypeError` for a tensor with a gradient, a `ValueError` for masked numbers.
    fn line(what: &'static str, object: &Bound<'py, PyAny>, processor: &Processor) -> PyResult<Option<Line>> {
        let Some(mut given) = Self::lendable(what, object)? else { return Ok(None) };
        let (&[count], false) = (&given.shape[..], given.expect_within_reach(processor).is_err()) else {
            return Ok(None);
        };
        let on_gpu = given.place != DeviceName::Cpu;
        let device = if on_gpu { processor.device.clone() } else { processor.device.host() };
        let (item, stride) = (given.dtype.bytes(), given.stride.unwrap_or(1));
        let reach = count.checked_sub(1).and_then(|steps| steps.checked_mul(stride.unsigned_abs()));
        let back = |reach: usize| if stride < 0 { reach.checked_mul(item) } else { Some(0) };
        let lowest = reach.and_then(back).and_then(|bytes| given.address.checked_sub(bytes));
        let (Some(reach), Some(lowest)) = (reach, lowest) else { return Ok(None) };
        // A GPU's memory is allocated in pieces that begin at such addresses, so the few elements below lie
        // in the same piece.
        let below = lowest % if on_gpu { GPU_ALIGNMENT } else { item };
        if below % item != 0 {
            return Ok(None);
        }
        let first = below / item + if stride < 0 { reach } else { 0 };
        given.lent = given.lent.at((lowest - below) as u64);
        given.shape = vec![below / item + reach + 1];
        let array = match given.dtype {
            Dtype::F32 => Reals::Single(given.lend(&device)?),
            Dtype::F64 => Reals::Double(given.lend(&device)?),
            Dtype::C64 | Dtype::C128 => return Ok(None),
        };
        Ok(Some(Line { name: what, array, first, stride, count }))
    }

    /// The array as it is, if it can be used where it lies. Errors: as [`Given::line`].
    fn lendable(what: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            expect_unmasked(what, object)?;
            return Ok(Dtype::of_numpy(array).and_then(|_| Self::with_stride(what, object).ok()));
        }
        if !object.hasattr("__dlpack__")? {
            return Ok(None);
        }
        expect_plain(what, object)?;
        Ok(Self::with_stride(what, object).ok())
    }
}
