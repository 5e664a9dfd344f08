//! Launches of the tests' own kernels.

use rayspin_core::Result;
use rayspin_device::cuda::{Argument, Kernel, Launch};

pub(crate) trait Trusted {
    /// [`Kernel::launch`] of a kernel that a test has written, with the arrays that it is for.
    fn go(&self, launch: Launch, arguments: &mut [Argument<'_>]) -> Result<()>;
}

impl Trusted for Kernel {
    #[allow(unsafe_code)]
    fn go(&self, launch: Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        // SAFETY: the tests' kernels stay inside the arrays that the tests give them, or the emulator reports
        // that they do not.
        unsafe { self.launch(launch, arguments) }
    }
}
