//! Image quality metrics and display windowing
