//! The `rayspin` command.
fn main() {}
