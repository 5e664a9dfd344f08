use bytemuck::Pod;
use ndarray::{ArrayD, ArrayViewD, IxDyn};
use rayspin_core::{Error, Result, expect_shape, voxels};

use crate::{Backend, Device};

/// What arrays hold: plain numbers, real or complex.
pub trait Element: Pod + Send + Sync + std::fmt::Debug {}
impl<T: Pod + Send + Sync + std::fmt::Debug> Element for T {}

/// A C-order array in a device's memory.
pub struct Array<T: Element> {
    device: Device,
    shape: Vec<usize>,
    storage: Storage<T>,
}

enum Storage<T> {
    Host(Vec<T>),
}

impl<T: Element> Array<T> {
    /// All bytes zero. Errors: [`Error::Memory`] when the allocation is refused.
    pub fn zeros(device: &Device, shape: &[usize]) -> Result<Self> {
        let len = voxels(shape)?;
        match device.backend() {
            Backend::Cpu(_) => {
                let bytes = len.checked_mul(size_of::<T>()).filter(|&b| b <= isize::MAX as usize);
                let refused = || Error::Memory {
                    what: format!("array {shape:?}"),
                    needed: (len as u64).saturating_mul(size_of::<T>() as u64),
                    available: crate::cpu::memory().map_or(0, |(_, available)| available),
                };
                bytes.ok_or_else(refused)?;
                // A zeroed allocation comes as untouched pages, unlike reserve and fill.
                let host = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| refused())?;
                Ok(Self { device: device.clone(), shape: shape.to_vec(), storage: Storage::Host(host) })
            }
        }
    }

    /// Takes over host values in C order. Errors: the length does not match the shape.
    pub fn from_vec(device: &Device, shape: &[usize], values: Vec<T>) -> Result<Self> {
        if voxels(shape)? != values.len() {
            return Err(Error::shape("array values", &[voxels(shape)?], &[values.len()]));
        }
        match device.backend() {
            Backend::Cpu(_) => {
                Ok(Self { device: device.clone(), shape: shape.to_vec(), storage: Storage::Host(values) })
            }
        }
    }

    /// Copies a host array to the device.
    pub fn from_host<'a>(device: &Device, values: impl Into<ArrayViewD<'a, T>>) -> Result<Self> {
        let values = values.into();
        let shape = values.shape().to_vec();
        let values = match values.as_slice() {
            Some(slice) => slice.to_vec(),
            None => values.iter().copied().collect(),
        };
        Self::from_vec(device, &shape, values)
    }

    /// Copies the values to the host.
    pub fn to_host(&self) -> Result<ArrayD<T>> {
        match &self.storage {
            Storage::Host(values) => into_ndarray(&self.shape, values.clone()),
        }
    }

    /// Moves the values to the host; on the CPU nothing is copied.
    pub fn into_host(self) -> Result<ArrayD<T>> {
        match self.storage {
            Storage::Host(values) => into_ndarray(&self.shape, values),
        }
    }

    /// The device it lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Host(values) => values.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same values under another shape of the same length.
    pub fn reshape(mut self, shape: &[usize]) -> Result<Self> {
        if voxels(shape)? != self.len() {
            return Err(Error::shape("reshape", shape, &self.shape));
        }
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// Copies all values of `other`, which has the same shape.
    pub fn copy_from(&mut self, other: &Self) -> Result<()> {
        expect_shape("copy", &self.shape, &other.shape)?;
        match (&mut self.storage, &other.storage) {
            (Storage::Host(to), Storage::Host(from)) => to.copy_from_slice(from),
        }
        Ok(())
    }

    /// A copy on the same device.
    pub fn try_clone(&self) -> Result<Self> {
        match &self.storage {
            Storage::Host(values) => Self::from_vec(&self.device, &self.shape, values.clone()),
        }
    }

    /// Sets every element.
    pub fn fill(&mut self, value: T) {
        match &mut self.storage {
            Storage::Host(values) => values.fill(value),
        }
    }

    /// The elements, for CPU kernels.
    pub fn cpu(&self) -> &[T] {
        match &self.storage {
            Storage::Host(values) => values,
        }
    }

    /// The elements, for CPU kernels that write.
    pub fn cpu_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Host(values) => values,
        }
    }
}

fn into_ndarray<T: Element>(shape: &[usize], values: Vec<T>) -> Result<ArrayD<T>> {
    let found = values.len();
    ArrayD::from_shape_vec(IxDyn(shape), values).map_err(|_| Error::shape("array", shape, &[found]))
}

impl<T: Element> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array<{}>{:?}", std::any::type_name::<T>(), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayspin_core::C32;

    #[test]
    fn values_round_trip_and_shapes_are_checked() {
        let device = Device::cpu_with_threads(1).unwrap();
        let host = ArrayD::from_shape_fn(IxDyn(&[2, 3]), |i| C32::new(i[0] as f32, i[1] as f32));
        let array = Array::from_host(&device, &host).unwrap();
        assert_eq!(array.to_host().unwrap(), host);
        let transposed = Array::from_host(&device, host.t()).unwrap();
        assert_eq!(transposed.to_host().unwrap(), host.t());
        assert!(array.try_clone().unwrap().reshape(&[7]).is_err());
        assert!(
            Array::<f32>::zeros(&device, &[3])
                .unwrap()
                .copy_from(&Array::zeros(&device, &[4]).unwrap())
                .is_err()
        );
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let device = Device::cpu_with_threads(1).unwrap();
        assert!(matches!(Array::<C32>::zeros(&device, &[1 << 31, 1 << 31]), Err(Error::Memory { .. })));
        assert!(Array::<C32>::zeros(&device, &[usize::MAX, 2]).is_err());
    }

    #[test]
    fn zero_threads_are_refused() {
        assert!(Device::cpu_with_threads(0).is_err());
    }
}
