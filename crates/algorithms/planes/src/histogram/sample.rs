//! What is counted: whole numbers of 8, 16 and 32 bits.

use fearless_simd::{u8x32, u16x16, u32x8};
use rayspin_core::Result;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Cpu, Device, Element};
use rayspin_tune::{TransferArray, input};

use super::{cpu, reference};

/// Bits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
}

impl Width {
    /// Bytes of a sample.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
        }
    }

    /// Its name in Rust.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
        }
    }
}

/// Numbers that are counted: `u8`, `u16`, `u32`.
pub trait Sample: Element + Into<u32> + Eq + sealed::Compared {}

pub(super) mod sealed {
    use super::{Level, Width, cpu::BLOCK};

    pub trait Compared: Sized {
        const WIDTH: Width;
        /// Whether every sample of a block is less than `bins`.
        fn below(level: Level, block: &[Self; BLOCK], bins: u32) -> bool;
    }
}

macro_rules! samples {
    ($($number:ty, $vector:ident, $lanes:literal, $width:ident;)*) => {$(
        impl Sample for $number {}

        impl sealed::Compared for $number {
            const WIDTH: Width = Width::$width;

            fn below(level: Level, block: &[Self; cpu::BLOCK], bins: u32) -> bool {
                #[inline(always)]
                fn body<S: Simd>(simd: S, block: &[$number; cpu::BLOCK], bins: $number) -> bool {
                    let mut most = [$vector::splat(simd, 0); 2];
                    for part in block.as_chunks::<{ 2 * $lanes }>().0 {
                        for (most, lanes) in most.iter_mut().zip(part.as_chunks::<$lanes>().0) {
                            *most = most.max($vector::from_slice(simd, lanes));
                        }
                    }
                    most[0].max(most[1]).simd_lt($vector::splat(simd, bins)).all_true()
                }
                // No number of this width is as large as more bins than that.
                if bins > <$number>::MAX.into() {
                    return true;
                }
                dispatch!(level, simd => body(simd, block, bins as $number))
            }
        }
    )*};
}
samples!(u8, u8x32, 32, U8; u16, u16x16, 16, U16; u32, u32x8, 8, U32;);

/// An array of samples, whatever their width.
pub(super) trait Samples {
    /// Their number.
    fn count(&self) -> usize;
    /// Where they are.
    fn device(&self) -> &Device;
    /// Bits of each.
    fn width(&self) -> Width;
    /// What a kernel is given.
    fn argument(&self) -> Argument<'_>;
    /// As an input that is copied to the device.
    fn input(&mut self) -> &mut dyn TransferArray;
    /// The oracle.
    fn reference(&self, bins: usize) -> Result<Vec<u64>>;
    /// One table.
    fn scalar(&self, table: &mut [u32]);
    /// One thread, tables side by side.
    fn tables(&self, tables: usize, memory: &mut [u32], bins: usize);
    /// One thread, by blocks.
    fn blocks(&self, level: Level, tables: usize, memory: &mut [u32], bins: usize);
    /// All threads.
    fn threads(&self, cpu: &Cpu, tables: usize, memory: &mut [u32], bins: usize);
}

impl<T: Sample> Samples for Array<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn device(&self) -> &Device {
        self.device()
    }

    fn width(&self) -> Width {
        T::WIDTH
    }

    fn argument(&self) -> Argument<'_> {
        self.cuda().into()
    }

    fn input(&mut self) -> &mut dyn TransferArray {
        self
    }

    fn reference(&self, bins: usize) -> Result<Vec<u64>> {
        reference::counts(&self.read()?, bins)
    }

    fn scalar(&self, table: &mut [u32]) {
        cpu::scalar(self.cpu(), table);
    }

    fn tables(&self, tables: usize, memory: &mut [u32], bins: usize) {
        cpu::tables(self.cpu(), tables, memory, bins);
    }

    fn blocks(&self, level: Level, tables: usize, memory: &mut [u32], bins: usize) {
        cpu::blocks(level, self.cpu(), tables, memory, bins);
    }

    fn threads(&self, cpu: &Cpu, tables: usize, memory: &mut [u32], bins: usize) {
        cpu::threads(cpu, self.cpu(), tables, memory, bins);
    }
}

/// `values` as an array of the width, of larger ones the lower bits.
pub(super) fn array(device: &Device, width: Width, values: Vec<u32>) -> Result<Box<dyn Samples>> {
    fn narrow<T: Sample>(device: &Device, values: &[u32], cut: fn(u32) -> T) -> Result<Box<dyn Samples>> {
        let cpu = device.cpu_side();
        let cut = input::filled(cpu, "samples of a histogram", values.len(), |index| cut(values[index]))?;
        Ok(Box::new(Array::from_vec(device, &[values.len()], cut)?))
    }
    match width {
        Width::U8 => narrow(device, &values, |v| v as u8),
        Width::U16 => narrow(device, &values, |v| v as u16),
        Width::U32 => Ok(Box::new(Array::from_vec(device, &[values.len()], values)?)),
    }
}
