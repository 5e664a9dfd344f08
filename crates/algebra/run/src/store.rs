//! Kernels that outlive a run.

/// A place that keeps kernels by key. Whatever it gives back is taken for what was kept: it is to check its
/// files.
pub trait KernelStore: std::fmt::Debug + Send + Sync {
    /// The `len` values kept under `key`, if they are there and sound; what is wrong with them goes to
    /// `notes`.
    fn load(&self, key: &[u8; 32], len: usize, notes: &mut Vec<String>) -> Option<Vec<f32>>;
    /// Keeps values. A failure goes to `notes` and harms nothing.
    fn keep(&self, key: &[u8; 32], values: &[f32], notes: &mut Vec<String>);
}
