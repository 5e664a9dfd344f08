/// The work of a problem: the floor under its run time is the larger of bytes over bandwidth and flops over
/// peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Bytes to and from main memory.
    pub bytes: f64,
    /// Operations. A variant of an algorithm says whose units do them (`tune::variant::Variant::peak`).
    pub flops: f64,
}
