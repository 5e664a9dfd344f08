//! Transpose of a matrix: B\[x, y\] = A\[y, x\].

mod cpu;
mod cuda;
mod ladder;
mod variants;

use rayspin_core::{C32, C64, Error, Result, expect_shape};
use rayspin_device::{Array, Backend, Element};
use rayspin_tune::tuned;

pub use ladder::{Problem, Transpose, Type, Ways};

/// Elements of matrices that are transposed on every processor: numbers, real or complex. Kernels are made of
/// [`Entry::C`], so that no other crate says what it is:
///
/// ```compile_fail
/// #[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
/// #[repr(transparent)]
/// struct Byte(u8);
///
/// impl rayspin_primitives::transpose::Entry for Byte {
///     const C: &'static str = "double";
/// }
/// ```
pub trait Entry: Element + sealed::Sealed {
    /// Its name in CUDA C++.
    const C: &'static str;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! entries {
    ($($t:ty => $c:literal),*) => {
        $(impl sealed::Sealed for $t {}
        impl Entry for $t {
            const C: &'static str = $c;
        })*
    };
}
entries!(u8 => "unsigned char", u16 => "unsigned short", i32 => "int", u32 => "unsigned int", f32 => "float", f64 => "double");
entries!(C32 => "float2", C64 => "double2");

/// B = Aᵀ, of A `[rows, columns]` and B `[columns, rows]` of one device, bit for bit.
///
/// Errors: A is not two-dimensional, B has another shape, arrays on different devices; of the device.
pub fn transpose<T: Entry>(a: &Array<T>, b: &mut Array<T>) -> Result<()> {
    let &[rows, columns] = a.shape() else {
        return Err(Error::value("matrix to transpose", "two dimensions", format!("{:?}", a.shape())));
    };
    expect_shape("transpose of the matrix", &[columns, rows], b.shape())?;
    if !b.device().same_as(a.device()) {
        return Err(Error::value("transpose of the matrix", "arrays on one device", b.device().describe()));
    }
    match a.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, rows, columns, a.cpu(), b.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            // What moves is bytes: of each size one type is tuned.
            let element = match size_of::<T>() {
                1 => Some(Type::U8),
                4 => Some(Type::F32),
                8 => Some(Type::F64),
                _ => None,
            };
            let form = match element {
                Some(element) => {
                    let problem = Problem { rows, columns, element };
                    cuda::Form::of(&tuned(&Transpose, &problem, &variants::gpu_wide(), a.device()))?
                }
                None => cuda::Form::usual::<T>(rows, columns),
            };
            cuda::wide(cuda, form, [rows, columns], a, b)
        }
    }
}

#[cfg(test)]
mod tests;
