//! Copies between GPUs of this machine, and the order of their work.

use std::sync::{Mutex, PoisonError};

use cudarc::driver::{result as cu, sys};
use rayspin_core::Result;

use super::{Machine, Mark, failed};
use crate::cuda::driver::Driver;

/// Pairs of GPUs, by numbers, that were asked for access to each other's memory.
static REACHED: Mutex<Vec<(sys::CUdevice, sys::CUdevice)>> = Mutex::new(Vec::new());

impl Machine {
    /// Work that is queued from now on waits for the work of `other` so far.
    pub(super) fn wait_for_machine(&self, other: &Self) -> Result<()> {
        let mark = other.mark()?;
        let Some(mark) = mark.as_any().downcast_ref::<Mark>() else { return other.synchronize() };
        let _entered = self.shared.enter()?;
        // SAFETY: stream and event live; an event that is destroyed while waited for goes later.
        unsafe {
            cu::stream::wait_event(
                self.shared.stream,
                mark.event,
                sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT,
            )
        }
        .map_err(failed("waiting for another GPU"))
    }

    /// # Safety
    /// As for [`Driver::copy_to`].
    pub(super) unsafe fn copy_to_machine(&self, from: u64, other: &Self, to: u64, bytes: u64) -> Result<()> {
        self.reach(other);
        let _entered = self.shared.enter()?;
        // SAFETY: both contexts live as long as the process; the rest as the caller promises.
        unsafe {
            sys::cuMemcpyPeerAsync(
                to,
                other.shared.context,
                from,
                self.shared.context,
                bytes as usize,
                self.shared.stream,
            )
        }
        .result()
        .map_err(failed("copying between GPUs"))
    }

    /// Lets both GPUs reach each other's memory, once for a pair. Without it CUDA copies through the host, so
    /// that a refusal costs time alone.
    fn reach(&self, other: &Self) {
        if self.device == other.device {
            return;
        }
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (self.device.min(other.device), self.device.max(other.device));
        if !reached.contains(&pair) {
            reached.push(pair);
            self.let_reach(other);
            other.let_reach(self);
        }
    }

    /// Lets `other` reach this GPU's memory: that of its pool, and what is allocated without one.
    fn let_reach(&self, other: &Self) {
        let mut can = 0;
        // SAFETY: a number to write to; both devices were found.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, other.device, self.device) };
        if asked.result().is_err() || can == 0 {
            return;
        }
        let Some(pool) = self.pool else {
            if let Ok(_entered) = other.shared.enter() {
                // SAFETY: the other context is current, and this one lives.
                let _ = unsafe { sys::cuCtxEnablePeerAccess(self.shared.context, 0) };
            }
            return;
        };
        let access = sys::CUmemAccessDesc {
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: other.device,
            },
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pool is this device's own, and the description is one.
        let _ = unsafe { sys::cuMemPoolSetAccess(pool, &raw const access, 1) };
    }
}
