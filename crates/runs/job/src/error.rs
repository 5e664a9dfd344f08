//! What a run can refuse or fail at.

use thiserror::Error as ThisError;

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a run can refuse or fail at. Each variant holds the error that tells it.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A computation, or a quantity that does not suit it.
    #[error("{0}")]
    Core(#[from] rayspin_core::Error),
    /// A file, or what a file holds.
    #[error("{0}")]
    File(#[from] rayspin_io::Error),
    /// Options that do nothing or contradict each other; a limit of memory that nothing fits.
    #[error("{0}")]
    Input(#[from] rayspin_run::BadInput),
    /// A run that does not fit a GPU, however it is cut.
    #[error("{0}")]
    Gpu(#[source] rayspin_run::BadInput),
    /// A run record that cannot be written as JSON.
    #[error("run record: {0}")]
    Record(#[from] serde_json::Error),
}
