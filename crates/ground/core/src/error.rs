use thiserror::Error;

/// The errors of computations. Each names the quantity, the expected value and the found value.
///
/// Files are named by `rayspin-io`'s own error, which wraps this one.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An array has another shape than the operation needs.
    #[error("{what}: expected shape {expected}, found {found}")]
    Shape {
        /// The array or operator that was checked.
        what: String,
        /// The shape it needs, as `[a, b]` or a description.
        expected: String,
        /// The shape it has.
        found: String,
    },
    /// A parameter or header field has a value outside what the operation accepts.
    #[error("{what}: expected {expected}, found {found}")]
    Value {
        /// The parameter or field.
        what: String,
        /// The accepted range or set.
        expected: String,
        /// The value given.
        found: String,
    },
    /// A NaN or an infinity among numbers that must be finite.
    #[error("{what}: expected finite numbers, found {found} at index {index}")]
    NotFinite {
        /// The array that holds it.
        what: String,
        /// Its flat index.
        index: usize,
        /// The value, as text.
        found: String,
    },
    /// The work needs more memory than there is.
    #[error("{what}: needs {needed} bytes of memory, {available} available")]
    Memory {
        /// The plan or array that needs the memory.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// The computation left the range of the numbers (breakdown, overflow) although its input was valid.
    #[error("{what}: {detail}")]
    Numerical {
        /// The algorithm.
        what: String,
        /// What broke down, and where.
        detail: String,
    },
    /// A processor, its driver or its compiler failed.
    #[error("{what}: {detail}")]
    Device {
        /// The call or the kernel, with its launch.
        what: String,
        /// What the driver said, or which limit was passed.
        detail: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The cause of an error: the input or the run. It decides the exit code of the command line (2 or 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input or a parameter is wrong.
    Input,
    /// The machine or the algorithm failed on valid input.
    Failure,
}

/// `Result` with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What stands before the place of an error.
const PLACE: &str = ", on ";

impl Error {
    /// A [`Error::Value`], from anything printable.
    pub fn value(what: impl Into<String>, expected: impl Into<String>, found: impl ToString) -> Self {
        Self::Value { what: what.into(), expected: expected.into(), found: found.to_string() }
    }

    /// A [`Error::Shape`] between two shapes.
    pub fn shape(what: impl Into<String>, expected: &[usize], found: &[usize]) -> Self {
        Self::Shape {
            what: what.into(),
            expected: crate::format_shape(expected),
            found: crate::format_shape(found),
        }
    }

    /// The same error, of a failure or of memory, with the place where it happened: `what, on place`. Other
    /// errors, and errors that name a place already, stay as they are.
    #[must_use]
    pub fn with_place(mut self, place: &str) -> Self {
        if let Self::Device { what, .. } | Self::Memory { what, .. } = &mut self
            && !what.contains(PLACE)
        {
            what.push_str(PLACE);
            what.push_str(place);
        }
        self
    }

    /// Whether the input or the run caused the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Shape { .. } | Self::Value { .. } | Self::NotFinite { .. } => ErrorKind::Input,
            Self::Memory { .. } | Self::Numerical { .. } | Self::Device { .. } | Self::Interrupted => {
                ErrorKind::Failure
            }
        }
    }
}
