use rayspin_core::{C32, C64};

/// A voxel value that metrics can compare: real or complex, single or double precision.
pub trait Sample: Copy + Send + Sync {
    /// Whether values have an imaginary part.
    const COMPLEX: bool;
    /// The same value in double precision.
    fn to_c64(self) -> C64;
}

impl Sample for f32 {
    const COMPLEX: bool = false;
    fn to_c64(self) -> C64 {
        C64::new(f64::from(self), 0.0)
    }
}

impl Sample for f64 {
    const COMPLEX: bool = false;
    fn to_c64(self) -> C64 {
        C64::new(self, 0.0)
    }
}

impl Sample for C32 {
    const COMPLEX: bool = true;
    fn to_c64(self) -> C64 {
        C64::new(f64::from(self.re), f64::from(self.im))
    }
}

impl Sample for C64 {
    const COMPLEX: bool = true;
    fn to_c64(self) -> C64 {
        self
    }
}
