//! The table row that every variant of an algorithm is: what it is, what it must move and compute, how exact it is.

use rayspin_device::BackendKind;

/// One way of computing an algorithm whose problems are `P` and whose entry point is `L` (a function pointer).
///
/// Conformance tests, benchmarks and documentation iterate over an algorithm's table of these: adding a variant is one
/// source file and one row.
pub struct Variant<P: 'static, L: 'static> {
    /// Short name, unique within the algorithm.
    pub name: &'static str,
    /// The kind of processor it runs on.
    pub backend: BackendKind,
    /// What distinguishes it, in one line.
    pub summary: &'static str,
    /// The entry point.
    pub launch: L,
    /// Why it cannot run a problem, or `None` when it can.
    pub refuses: fn(&P) -> Option<String>,
    /// What any implementation of this form must move and compute.
    pub work: fn(&P) -> Work,
    /// Relative l2 error against the f64 oracle that conformance tests demand.
    pub tolerance: f64,
    /// The published row that it reproduces, if any.
    pub reproduces: Option<&'static str>,
}

/// Work that a problem takes: the floor under its run time is the larger of bytes over bandwidth and flops over peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Bytes to and from main memory.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
}

/// For variants that run every problem.
pub fn runs_all<P>(_: &P) -> Option<String> {
    None
}
