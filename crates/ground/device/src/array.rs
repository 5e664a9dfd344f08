use std::borrow::Cow;

use ndarray::{ArrayD, ArrayViewD, IxDyn};
use rayspin_core::{Error, Result, expect_shape, voxels};

use crate::cuda::{Buffer, HostCopy, View, ViewMut};
use crate::host_memory::HostMemory;
use crate::{Backend, Device, Element, Lent};

/// A C-order array in a device's memory.
///
/// ```
/// use rayspin_device::{Array, Device};
///
/// let device = Device::cpu()?;
/// let mut array = Array::from_vec(&device, &[2, 3], vec![1.0f32; 6])?;
/// array.update(|values| values[5] = 7.0)?;
/// assert_eq!(array.to_host()?[[1, 2]], 7.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Array<T: Element> {
    device: Device,
    shape: Vec<usize>,
    len: usize,
    storage: Storage<T>,
}

enum Storage<T> {
    Host(HostMemory<T>),
    Cuda(Buffer),
}

impl<T: Element> Array<T> {
    /// All bytes zero. Errors: [`Error::Memory`] when the allocation is refused.
    pub fn zeros(device: &Device, shape: &[usize]) -> Result<Self> {
        let len = voxels(shape)?;
        let storage = match device.backend() {
            Backend::Cpu(_) => {
                Storage::Host(HostMemory::Own(crate::cpu::zeroed(format_args!("array {shape:?}"), len)?))
            }
            Backend::Cuda(cuda) => {
                let mut buffer =
                    cuda.allocate(device_bytes::<T>(shape, len)?, &format!("array {shape:?}"))?;
                buffer.set_zero()?;
                Storage::Cuda(buffer)
            }
        };
        Ok(Self { device: device.clone(), shape: shape.to_vec(), len, storage })
    }

    /// An array for kernels that write every element: on a GPU its memory holds any bytes until then. On the
    /// CPU all bytes are zero.
    ///
    /// Errors: as [`Array::zeros`].
    pub fn unset(device: &Device, shape: &[usize]) -> Result<Self> {
        let Backend::Cuda(cuda) = device.backend() else { return Self::zeros(device, shape) };
        let len = voxels(shape)?;
        let buffer = cuda.allocate(device_bytes::<T>(shape, len)?, &format!("array {shape:?}"))?;
        Ok(Self { device: device.clone(), shape: shape.to_vec(), len, storage: Storage::Cuda(buffer) })
    }

    /// An array of `shape` in the memory of another library, without a copy. The memory's owner is kept until
    /// the array is dropped, and on a GPU until the work that uses the array is ordered before what its owner
    /// does next ([`Lent::on`]). Lent memory does not count as the device's
    /// ([`Cuda::memory_used`](crate::Cuda::memory_used)).
    ///
    /// Errors: an address that does not suit the elements: a multiple of their alignment on the CPU, of 16 on
    /// a GPU (kernels read 16 bytes at once); work that is being recorded.
    ///
    /// # Safety
    /// As many elements as `shape` says, each a valid `T`, lie at the address in this device's memory for as
    /// long as the owner lives. While the array lives, nothing else writes to them. If something else reads
    /// them, the array is used by shared references alone, and so it is if the memory is read-only.
    #[allow(unsafe_code)]
    pub unsafe fn lent(device: &Device, shape: &[usize], memory: Lent) -> Result<Self> {
        let len = voxels(shape)?;
        if len == 0 {
            return Self::zeros(device, shape);
        }
        let storage = match device.backend() {
            // SAFETY: as the caller promises.
            Backend::Cpu(_) => Storage::Host(unsafe { HostMemory::lent(memory, len)? }),
            Backend::Cuda(cuda) => {
                memory.expect_aligned(16)?;
                // SAFETY: as the caller promises.
                Storage::Cuda(unsafe { cuda.lent(memory, device_bytes::<T>(shape, len)?)? })
            }
        };
        Ok(Self { device: device.clone(), shape: shape.to_vec(), len, storage })
    }

    /// The address of the first element in the device's memory. To use it is as unsafe as any raw pointer.
    pub fn address(&self) -> u64 {
        match &self.storage {
            Storage::Host(values) => values.as_ptr().expose_provenance() as u64,
            Storage::Cuda(buffer) => buffer.view::<T>().address(),
        }
    }

    /// Makes an array of host values in C order. On the CPU it takes over the vector; on a GPU it copies the
    /// values. Errors: the length does not match the shape.
    pub fn from_vec(device: &Device, shape: &[usize], values: Vec<T>) -> Result<Self> {
        if voxels(shape)? != values.len() {
            return Err(Error::shape("array values", &[voxels(shape)?], &[values.len()]));
        }
        match device.backend() {
            Backend::Cpu(_) => Ok(Self {
                device: device.clone(),
                shape: shape.to_vec(),
                len: values.len(),
                storage: Storage::Host(HostMemory::Own(values)),
            }),
            Backend::Cuda(_) => Self::from_slice(device, shape, &values),
        }
    }

    /// Copies host values in C order. Errors: the length does not match the shape.
    pub fn from_slice(device: &Device, shape: &[usize], values: &[T]) -> Result<Self> {
        match device.backend() {
            Backend::Cpu(_) => {
                let copy = crate::cpu::copied(format_args!("array {shape:?}"), values)?;
                Self::from_vec(device, shape, copy)
            }
            Backend::Cuda(cuda) => {
                let len = voxels(shape)?;
                if len != values.len() {
                    return Err(Error::shape("array values", &[len], &[values.len()]));
                }
                let mut buffer =
                    cuda.allocate(device_bytes::<T>(shape, len)?, &format!("array {shape:?}"))?;
                buffer.upload(0, values, HostCopy::Staged)?;
                Ok(Self {
                    device: device.clone(),
                    shape: shape.to_vec(),
                    len,
                    storage: Storage::Cuda(buffer),
                })
            }
        }
    }

    /// Copies a host array to the device.
    pub fn from_host<'a>(device: &Device, values: impl Into<ArrayViewD<'a, T>>) -> Result<Self> {
        let values = values.into();
        let shape = values.shape().to_vec();
        match values.as_slice() {
            Some(slice) => Self::from_slice(device, &shape, slice),
            None => {
                let mut sorted =
                    crate::cpu::try_with_capacity(format_args!("array {shape:?}"), values.len())?;
                sorted.extend(values.iter().copied());
                Self::from_vec(device, &shape, sorted)
            }
        }
    }

    /// A copy of the values in C order, on the host. Waits for a GPU's work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match &self.storage {
            Storage::Host(values) => crate::cpu::copied(self.host_copy(), values),
            Storage::Cuda(buffer) => {
                let mut values = crate::cpu::zeroed(self.host_copy(), self.len)?;
                crate::cpu::prefer_huge_pages(&mut values);
                self.device.cpu_side().take_pages(&mut values);
                buffer.download(0, &mut values, HostCopy::Staged)?;
                Ok(values)
            }
        }
    }

    /// The values on the host: borrowed on the CPU, copied from a GPU.
    pub fn read(&self) -> Result<Cow<'_, [T]>> {
        match &self.storage {
            Storage::Host(values) => Ok(Cow::Borrowed(values)),
            Storage::Cuda(_) => Ok(Cow::Owned(self.to_vec()?)),
        }
    }

    /// Runs `work` on the values on the host. Copies them from a GPU and back. Meant for work that is done
    /// once and is not worth a kernel.
    pub fn update<O>(&mut self, work: impl FnOnce(&mut [T]) -> O) -> Result<O> {
        match &mut self.storage {
            Storage::Host(values) => Ok(work(values)),
            Storage::Cuda(_) => {
                let mut values = self.to_vec()?;
                let done = work(&mut values);
                self.set(&values)?;
                Ok(done)
            }
        }
    }

    /// Copies the values to the host.
    pub fn to_host(&self) -> Result<ArrayD<T>> {
        into_ndarray(&self.shape, self.to_vec()?)
    }

    /// The elements on the host in C order. An array of a CPU gives its own memory away. Errors: as
    /// [`Array::to_vec`].
    pub fn into_vec(self) -> Result<Vec<T>> {
        match self.storage {
            Storage::Host(values) => values.into_vec(format_args!("array {:?}", self.shape)),
            Storage::Cuda(_) => self.to_vec(),
        }
    }

    /// Moves the values to the host. On the CPU nothing is copied.
    pub fn into_host(self) -> Result<ArrayD<T>> {
        match self.storage {
            Storage::Host(values) => {
                into_ndarray(&self.shape, values.into_vec(format_args!("array {:?}", self.shape))?)
            }
            Storage::Cuda(_) => self.to_host(),
        }
    }

    /// A copy of the values on `device`.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        if device.same_as(&self.device) {
            return self.try_clone();
        }
        match &self.storage {
            Storage::Host(values) => Self::from_slice(device, &self.shape, values),
            Storage::Cuda(_) => Self::from_vec(device, &self.shape, self.to_vec()?),
        }
    }

    /// The same values on `device`. Nothing is copied if the array lives there already.
    pub fn into_device(self, device: &Device) -> Result<Self> {
        if device.same_as(&self.device) {
            return Ok(self);
        }
        match self.storage {
            Storage::Host(HostMemory::Own(values)) => Self::from_vec(device, &self.shape, values),
            _ => self.to_device(device),
        }
    }

    /// The device that the array lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the array has no elements.
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

    /// Copies all values of `other`, which has the same shape and lives on the same device or on the host
    /// beside it.
    pub fn copy_from(&mut self, other: &Self) -> Result<()> {
        expect_shape("copy", &self.shape, &other.shape)?;
        let bytes = (self.len * size_of::<T>()) as u64;
        match (&mut self.storage, &other.storage) {
            (Storage::Host(to), Storage::Host(from)) => to.copy_from_slice(from),
            (Storage::Cuda(to), Storage::Host(from)) => to.upload(0, from, HostCopy::Staged)?,
            (Storage::Host(to), Storage::Cuda(from)) => from.download(0, to, HostCopy::Staged)?,
            (Storage::Cuda(to), Storage::Cuda(from)) if self.device.same_as(&other.device) => {
                to.copy_from(0, from, 0, bytes)?;
            }
            (Storage::Cuda(to), Storage::Cuda(_)) => to.upload(0, &other.to_vec()?, HostCopy::Staged)?,
        }
        Ok(())
    }

    /// Copies `len` elements (C order) of `other`, starting at `from`, to the elements starting at `to`. Both
    /// arrays live on the same device.
    ///
    /// Errors: a range outside its array, different devices.
    pub fn copy_range(&mut self, to: usize, other: &Self, from: usize, len: usize) -> Result<()> {
        let outside = |what: &str, start: usize, size: usize| {
            Error::value(
                format!("copy of a part: {what}"),
                format!("{len} of {size} elements"),
                format!("start {start}"),
            )
        };
        let inside = |start: usize, size: usize| start.checked_add(len).is_some_and(|end| end <= size);
        if !inside(from, other.len) {
            return Err(outside("source", from, other.len));
        }
        if !inside(to, self.len) {
            return Err(outside("target", to, self.len));
        }
        let element = size_of::<T>() as u64;
        match (&mut self.storage, &other.storage) {
            (Storage::Host(target), Storage::Host(source)) => {
                target[to..to + len].copy_from_slice(&source[from..from + len]);
                Ok(())
            }
            (Storage::Cuda(target), Storage::Cuda(source)) if self.device.same_as(&other.device) => {
                target.copy_from(to as u64 * element, source, from as u64 * element, len as u64 * element)
            }
            _ => Err(Error::value("copy of a part", self.device.describe(), other.device.describe())),
        }
    }

    /// A copy on the same device.
    pub fn try_clone(&self) -> Result<Self> {
        match &self.storage {
            Storage::Host(values) => Self::from_slice(&self.device, &self.shape, values),
            Storage::Cuda(from) => {
                let Backend::Cuda(cuda) = self.device.backend() else { return Err(self.stray("a GPU")) };
                let bytes = device_bytes::<T>(&self.shape, self.len)?;
                let mut buffer = cuda.allocate(bytes, &format!("array {:?}", self.shape))?;
                buffer.copy_from(0, from, 0, bytes)?;
                Ok(Self {
                    device: self.device.clone(),
                    shape: self.shape.clone(),
                    len: self.len,
                    storage: Storage::Cuda(buffer),
                })
            }
        }
    }

    /// Copies `values`, in C order, from the host. Errors: the number of values differs from the array's
    /// length.
    pub fn set(&mut self, values: &[T]) -> Result<()> {
        if values.len() != self.len {
            return Err(Error::shape("array values", &[self.len], &[values.len()]));
        }
        match &mut self.storage {
            Storage::Host(own) => own.copy_from_slice(values),
            Storage::Cuda(buffer) => buffer.upload(0, values, HostCopy::Staged)?,
        }
        Ok(())
    }

    /// Copies `values` from the host to the elements starting at `start`. Errors: a range outside the array.
    pub fn set_part(&mut self, start: usize, values: &[T]) -> Result<()> {
        self.put(start, values, HostCopy::Staged)
    }

    /// [`Array::set_part`] through the chosen kind of copy. Errors: a range outside the array.
    pub fn put(&mut self, start: usize, values: &[T], way: HostCopy) -> Result<()> {
        self.expect_part(start, values.len())?;
        match &mut self.storage {
            Storage::Host(own) => own[start..start + values.len()].copy_from_slice(values),
            Storage::Cuda(buffer) => buffer.upload(start, values, way)?,
        }
        Ok(())
    }

    /// Copies pieces that lie apart on the host to the array, one behind the other. Errors: the pieces have
    /// together another number of values than the array.
    pub fn set_pieces(&mut self, pieces: &[&[T]]) -> Result<()> {
        // A piece may be there many times, so that their sum has no bound.
        let len = pieces.iter().try_fold(0usize, |sum, values| sum.checked_add(values.len()));
        if len != Some(self.len) {
            return Err(Error::shape("pieces of an array", &[self.len], &[len.unwrap_or(usize::MAX)]));
        }
        match &mut self.storage {
            Storage::Host(own) => {
                let mut rest = &mut own[..];
                for piece in pieces {
                    let (to, others) = rest.split_at_mut(piece.len());
                    to.copy_from_slice(piece);
                    rest = others;
                }
            }
            Storage::Cuda(buffer) => buffer.upload_pieces(pieces)?,
        }
        Ok(())
    }

    /// Copies the elements starting at `start` to `values` on the host, through the chosen kind of copy.
    /// Waits for a GPU's work.
    ///
    /// Errors: a range outside the array.
    pub fn get(&self, start: usize, values: &mut [T], way: HostCopy) -> Result<()> {
        self.expect_part(start, values.len())?;
        match &self.storage {
            Storage::Host(own) => values.copy_from_slice(&own[start..start + values.len()]),
            Storage::Cuda(buffer) => buffer.download(start, values, way)?,
        }
        Ok(())
    }

    /// Errors: there are no `len` elements from `start` on.
    pub(crate) fn expect_part(&self, start: usize, len: usize) -> Result<()> {
        if start.checked_add(len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        let expected = format!("{len} elements from {start} on within {}", self.len);
        Err(Error::value("part of an array", expected, format!("{:?}", self.shape)))
    }

    /// Sets every element to `value`. Errors: a failure of the device.
    pub fn fill(&mut self, value: T) -> Result<()> {
        match &mut self.storage {
            Storage::Host(values) => values.fill(value),
            Storage::Cuda(buffer) => buffer.fill(value)?,
        }
        Ok(())
    }

    /// The elements, for CPU kernels.
    ///
    /// # Panics
    /// If the array lives on a GPU. Kernels match on the backend before they call this.
    pub fn cpu(&self) -> &[T] {
        match &self.storage {
            Storage::Host(values) => values,
            Storage::Cuda(_) => self.elsewhere("the CPU"),
        }
    }

    /// The elements, for CPU kernels that write.
    ///
    /// # Panics
    /// As [`Array::cpu`].
    pub fn cpu_mut(&mut self) -> &mut [T] {
        if let Storage::Cuda(_) = self.storage {
            self.elsewhere("the CPU")
        }
        match &mut self.storage {
            Storage::Host(values) => values,
            Storage::Cuda(_) => &mut [],
        }
    }

    /// The elements, for CUDA kernels.
    ///
    /// # Panics
    /// If the array lives on the CPU. Kernels match on the backend before they call this.
    pub fn cuda(&self) -> View<'_, T> {
        match &self.storage {
            Storage::Host(_) => self.elsewhere("a GPU"),
            Storage::Cuda(buffer) => buffer.view(),
        }
    }

    /// The elements, for CUDA kernels that write.
    ///
    /// # Panics
    /// As [`Array::cuda`].
    pub fn cuda_mut(&mut self) -> ViewMut<'_, T> {
        if let Storage::Host(_) = self.storage {
            self.elsewhere("a GPU")
        }
        match &mut self.storage {
            Storage::Cuda(buffer) => buffer.view_mut(),
            Storage::Host(_) => ViewMut::none(),
        }
    }

    fn host_copy(&self) -> String {
        format!("host copy of array {:?}", self.shape)
    }

    fn stray(&self, wanted: &str) -> Error {
        Error::value("array", format!("one on {wanted}"), format!("one on {}", self.device.describe()))
    }

    #[expect(
        clippy::panic,
        reason = "no input leads here: a kernel's entry point has matched on the backend"
    )]
    fn elsewhere(&self, wanted: &str) -> ! {
        panic!("{}", self.stray(wanted))
    }
}

fn device_bytes<T>(shape: &[usize], len: usize) -> Result<u64> {
    (len as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| Error::Memory {
        what: format!("array {shape:?} on the GPU"),
        needed: u64::MAX,
        available: 0,
    })
}

fn into_ndarray<T: Element>(shape: &[usize], values: Vec<T>) -> Result<ArrayD<T>> {
    let count = values.len();
    ArrayD::from_shape_vec(IxDyn(shape), values).map_err(|_| Error::shape("array", shape, &[count]))
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
        assert!(matches!(Array::<C32>::zeros(&device, &[1 << 29, 1 << 29]), Err(Error::Memory { .. })));
        assert!(Array::<C32>::zeros(&device, &[usize::MAX, 2]).is_err());
    }

    #[test]
    fn zero_threads_are_refused() {
        assert!(Device::cpu_with_threads(0).is_err());
    }
}
