//! Scans whose truth is known: closed-form k-space of phantoms on any trajectory.
