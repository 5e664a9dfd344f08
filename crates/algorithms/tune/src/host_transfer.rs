//! What goes between the host and a device when a run begins and ends on the host.

use std::any::Any;

use rayspin_core::{Error, Result};
use rayspin_device::{Array, Device, Element};
use serde::{Deserialize, Serialize};

/// An array on a device whose values come from the host, or go there.
pub trait TransferArray {
    /// Bytes of the values.
    fn bytes(&self) -> u64;
    /// The values in memory of the host that the system may move.
    fn fetch(&self) -> Result<Box<dyn Any>>;
    /// Takes new memory and copies values into it that [`TransferArray::fetch`] gave. Errors: values of
    /// another array, memory.
    fn receive(&mut self, values: &dyn Any) -> Result<()>;
    /// Takes new memory, as somebody does who keeps the result of the run before. Errors: memory.
    fn renew(&mut self) -> Result<()>;
    /// The [`Array`] itself, of any type of element.
    fn any(&mut self) -> &mut (dyn Any + 'static);
}

impl<T: Element> TransferArray for Array<T> {
    fn bytes(&self) -> u64 {
        (self.len() * size_of::<T>()) as u64
    }

    fn fetch(&self) -> Result<Box<dyn Any>> {
        Ok(Box::new(self.to_vec()?))
    }

    fn receive(&mut self, values: &dyn Any) -> Result<()> {
        let values: &Vec<T> = values
            .downcast_ref()
            .ok_or_else(|| Error::value("values of an array", std::any::type_name::<T>(), "another type"))?;
        let (device, shape) = given_back(self)?;
        *self = Array::from_slice(&device, &shape, values)?;
        Ok(())
    }

    fn renew(&mut self) -> Result<()> {
        let (device, shape) = given_back(self)?;
        *self = Array::zeros(&device, &shape)?;
        Ok(())
    }

    fn any(&mut self) -> &mut (dyn Any + 'static) {
        self
    }
}

/// Gives an array's memory back: two of them at once may be too much.
fn given_back<T: Element>(array: &mut Array<T>) -> Result<(Device, Vec<usize>)> {
    let device = array.device().clone();
    let empty = Array::zeros(&device, &[0])?;
    let shape = std::mem::replace(array, empty).shape().to_vec();
    Ok((device, shape))
}

/// The arrays of a run whose values come from the host, and those whose values go there.
pub struct HostTransfer<'a> {
    /// What the run reads.
    pub inputs: Vec<&'a mut dyn TransferArray>,
    /// What it writes.
    pub outputs: Vec<&'a mut dyn TransferArray>,
}

/// Inputs and outputs with their types: see [`HostTransfer::arrays`].
pub type Arrays<'a, I, O> = (Vec<&'a Array<I>>, Vec<&'a mut Array<O>>);

impl<'a> HostTransfer<'a> {
    /// The inputs, whose elements are all `I`, and the outputs, whose elements are all `O`. Errors: elements
    /// of another type.
    pub fn arrays<I: Element, O: Element>(self) -> Result<Arrays<'a, I, O>> {
        let inputs = self.inputs.into_iter().map(|input| Ok(&*typed(input)?));
        let outputs = self.outputs.into_iter().map(typed);
        Ok((inputs.collect::<Result<_>>()?, outputs.collect::<Result<_>>()?))
    }
}

fn typed<'a, T: Element>(array: &'a mut (dyn TransferArray + 'a)) -> Result<&'a mut Array<T>> {
    let wrong = || Error::value("array of a variant", std::any::type_name::<T>(), "another type of element");
    array.any().downcast_mut().ok_or_else(wrong)
}

/// Seconds of a run from memory of the host to memory of the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EndToEnd {
    /// New memory for the inputs on the device, and their way there. On a CPU they are there.
    pub upload: f64,
    /// New memory for the outputs, and what a first run takes besides: plans, tables, textures.
    pub set_up: f64,
    /// The run.
    pub kernel: f64,
    /// The outputs' way back, into new memory. On a CPU they are there.
    pub download: f64,
    /// Bytes of the inputs.
    pub bytes_in: u64,
    /// Bytes of the outputs.
    pub bytes_out: u64,
}

impl EndToEnd {
    /// All seconds.
    pub fn seconds(&self) -> f64 {
        self.upload + self.set_up + self.kernel + self.download
    }

    /// Its parts by name.
    pub fn parts(&self) -> [(&'static str, f64); 4] {
        [
            ("upload", self.upload),
            ("set-up", self.set_up),
            ("kernel", self.kernel),
            ("download", self.download),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_out_and_back() {
        for device in rayspin_emu::devices().unwrap() {
            let mut array = Array::from_vec(&device, &[2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
            let kept = array.fetch().unwrap();
            array.renew().unwrap();
            assert_eq!((array.shape(), array.to_vec().unwrap()), (&[2, 3][..], vec![0.0; 6]));
            array.receive(kept.as_ref()).unwrap();
            assert_eq!(array.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            assert_eq!(array.bytes(), 24);
            let mut other = Array::<u8>::zeros(&device, &[6]).unwrap();
            fn both<'a>(array: &'a mut Array<f32>, other: &'a mut Array<u8>) -> HostTransfer<'a> {
                HostTransfer { inputs: vec![array], outputs: vec![other] }
            }
            let (inputs, outputs) = both(&mut array, &mut other).arrays::<f32, u8>().unwrap();
            assert_eq!((inputs[0].shape(), outputs[0].shape()), (&[2, 3][..], &[6][..]));
            assert!(both(&mut array, &mut other).arrays::<f32, f32>().is_err());
            assert!(other.receive(kept.as_ref()).is_err());
            let longer: Box<dyn Any> = Box::new(vec![0f32; 7]);
            assert!(array.receive(longer.as_ref()).is_err());
        }
    }
}
