//! cuFFT's plans: made once, one workspace for all.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::cufft::{result as cufft, sys};
use cudarc::driver::result as cu;
use rayspin_core::{Error, Result};

use super::{Shared, failed, library};
use crate::cuda::FftPlan;

fn present() -> bool {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| library::find("cufft"));
    // SAFETY: loading the library has no requirements.
    unsafe { sys::is_culib_present() }
}

/// cuFFT's version, as (12, 0), where it is there.
pub fn fft_version() -> Option<(u32, u32)> {
    let version = u32::try_from(present().then(cufft::get_version)?.ok()?).ok()?;
    Some((version / 1000, version % 1000 / 100))
}

pub(super) struct Plans {
    shared: Arc<Shared>,
    made: HashMap<FftPlan, sys::cufftHandle>,
    /// Address and bytes: as large as the largest plan needs.
    workspace: (u64, usize),
}

fn refused(call: &str, plan: &FftPlan) -> impl FnOnce(cufft::CufftError) -> Error {
    let what = format!("cuFFT {call} of {plan:?}");
    move |error| Error::Device { what, detail: format!("{:?}", error.0) }
}

impl Plans {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, made: HashMap::new(), workspace: (0, 0) }
    }

    /// # Safety
    /// The context is current; `from` and `to` begin the elements that the plan describes.
    pub(super) unsafe fn run(&mut self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()> {
        let handle = match self.made.get(plan) {
            Some(&handle) => handle,
            None => self.make(plan)?,
        };
        let direction = if sign < 0 { -1 } else { 1 };
        // SAFETY: the plan was made for these elements, as the caller promises.
        unsafe {
            cufft::set_work_area(handle, self.workspace.0 as *mut _).map_err(refused("workspace", plan))?;
            match plan.double {
                false => cufft::exec_c2c(handle, from as *mut _, to as *mut _, direction),
                true => cufft::exec_z2z(handle, from as *mut _, to as *mut _, direction),
            }
            .map_err(refused("execution", plan))
        }
    }

    fn make(&mut self, plan: &FftPlan) -> Result<sys::cufftHandle> {
        if !present() {
            return Err(Error::Device {
                what: format!("a Fourier transform of {:?}", plan.axes),
                detail: "cuFFT (libcufft.so) was not found; it comes with the CUDA toolkit or `pip install nvidia-cufft`, \
                         whose folder RAYSPIN_CUDA_PATH can name"
                    .to_owned(),
            });
        }
        let narrow = |value: usize| {
            i32::try_from(value).map_err(|_| Error::value("Fourier transform", "sizes below 2^31", value))
        };
        let mut axes = plan.axes.iter().map(|&n| narrow(n)).collect::<Result<Vec<_>>>()?;
        let mut embed = axes.clone();
        let (stride, distance) = (narrow(plan.stride)?, narrow(plan.distance)?);
        let kind = if plan.double { sys::cufftType::CUFFT_Z2Z } else { sys::cufftType::CUFFT_C2C };
        let handle = cufft::create().map_err(refused("handle", plan))?;
        // SAFETY: the handle was just made; lengths and embeddings outlive the call.
        let bytes = unsafe {
            cufft::set_auto_allocation(handle, false).map_err(refused("workspace", plan))?;
            let second = embed.as_mut_ptr();
            let bytes = cufft::make_plan_many(
                handle,
                axes.len() as i32,
                axes.as_mut_ptr(),
                second,
                stride,
                distance,
                second,
                stride,
                distance,
                kind,
                narrow(plan.batch)?,
            )
            .map_err(refused("plan", plan))?;
            cufft::set_stream(handle, self.shared.stream.cast()).map_err(refused("stream", plan))?;
            bytes
        };
        if bytes > self.workspace.1 {
            self.free_workspace();
            // SAFETY: the context is current. Plain memory: a workspace stays.
            let address =
                unsafe { cu::malloc_sync(bytes) }.map_err(failed("allocating cuFFT's workspace"))?;
            self.workspace = (address, bytes);
        }
        self.made.insert(plan.clone(), handle);
        Ok(handle)
    }

    fn free_workspace(&mut self) {
        if self.workspace.1 > 0 {
            // SAFETY: the address is our own; the call waits for work that uses it.
            let _ = unsafe { cu::free_sync(self.workspace.0) };
            self.workspace = (0, 0);
        }
    }
}

impl Drop for Plans {
    fn drop(&mut self) {
        let Ok(_entered) = self.shared.enter() else { return };
        for handle in self.made.values() {
            // SAFETY: the handle is our own.
            let _ = unsafe { cufft::destroy(*handle) };
        }
        self.free_workspace();
    }
}
