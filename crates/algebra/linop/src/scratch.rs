use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use rayspin_core::{Result, voxels};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::Scalar;

/// Scratch arrays that an operator reuses each time it is applied.
///
/// Threads that apply the same operator concurrently each get their own arrays.
pub struct Scratch<S: Scalar> {
    free: Mutex<Vec<Array<S>>>,
}

impl<S: Scalar> Default for Scratch<S> {
    fn default() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }
}

impl<S: Scalar> Scratch<S> {
    /// Takes an array of this shape with arbitrary values. Dropping the lease gives it back.
    pub fn take(&self, device: &Device, shape: &[usize]) -> Result<Lease<'_, S>> {
        let len = voxels(shape)?;
        let kept = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let index = free.iter().position(|a| a.len() == len && a.device().same_as(device));
            index.map(|i| free.swap_remove(i))
        };
        let array = match kept {
            Some(array) => array.reshape(shape)?,
            None => Array::zeros(device, shape)?,
        };
        Ok(Lease { array: Some(array), home: self })
    }

    /// Bytes that are kept for reuse.
    pub fn bytes(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.iter().map(|a| a.len() * size_of::<S>()).sum()
    }
}

/// An array of a [`Scratch`], in use.
pub struct Lease<'a, S: Scalar> {
    // `None` only while it is dropped.
    array: Option<Array<S>>,
    home: &'a Scratch<S>,
}

impl<S: Scalar> Deref for Lease<'_, S> {
    type Target = Array<S>;

    fn deref(&self) -> &Self::Target {
        match &self.array {
            Some(array) => array,
            None => unreachable!("a lease holds its array until it is dropped"),
        }
    }
}

impl<S: Scalar> DerefMut for Lease<'_, S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.array {
            Some(array) => array,
            None => unreachable!("a lease holds its array until it is dropped"),
        }
    }
}

impl<S: Scalar> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        if let Some(array) = self.array.take() {
            self.home.free.lock().unwrap_or_else(PoisonError::into_inner).push(array);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_and_fit_any_shape_of_their_length() {
        let device = Device::cpu_with_threads(1).unwrap();
        let scratch = Scratch::<f32>::default();
        let place = {
            let a = scratch.take(&device, &[3, 4]).unwrap();
            let b = scratch.take(&device, &[12]).unwrap();
            assert_ne!(a.cpu().as_ptr(), b.cpu().as_ptr());
            drop(b);
            a.cpu().as_ptr()
        };
        assert_eq!(scratch.bytes(), 2 * 12 * 4);
        let a = scratch.take(&device, &[2, 6]).unwrap();
        let b = scratch.take(&device, &[6, 2]).unwrap();
        assert!([a.cpu().as_ptr(), b.cpu().as_ptr()].contains(&place));
        assert_eq!(scratch.bytes(), 0);
        let other = Device::cpu_with_threads(1).unwrap();
        drop(a);
        assert!(scratch.take(&other, &[12]).unwrap().device().same_as(&other));
    }
}
