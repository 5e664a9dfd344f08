use bytemuck::Pod;

/// The element types of arrays: plain numbers, real or complex.
pub trait Element: Pod + Send + Sync + std::fmt::Debug {}
impl<T: Pod + Send + Sync + std::fmt::Debug> Element for T {}
