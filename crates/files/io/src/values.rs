use rayspin_core::C32;

/// The numbers of a complex image that a file stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Values {
    /// |v| as 32-bit float.
    #[default]
    Magnitude,
    /// Re v as 32-bit float.
    Real,
    /// arg v in rad, −π to π, as 32-bit float.
    Phase,
    /// v as two 32-bit floats.
    Complex,
}

impl Values {
    /// The numbers that are stored of this one.
    pub(crate) fn of(self, value: C32) -> C32 {
        match self {
            Self::Magnitude => C32::new(value.norm(), 0.0),
            Self::Real => C32::new(value.re, 0.0),
            Self::Phase => C32::new(value.arg(), 0.0),
            Self::Complex => value,
        }
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Magnitude => "magnitudes",
            Self::Real => "real parts",
            Self::Phase => "phases",
            Self::Complex => "complex values",
        }
    }
}
