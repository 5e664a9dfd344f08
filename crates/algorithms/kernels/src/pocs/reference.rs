//! The projections in f64.

use rayspin_core::C64;

/// u Re(ū x) with u = p/|p|, 0 where p is.
pub fn project_phase(phase: &[C64], image: &[C64]) -> Vec<C64> {
    let one = |(p, x): (&C64, &C64)| {
        let u = p / p.norm();
        if p.norm() > 0.0 { u * (u.conj() * x).re } else { C64::ZERO }
    };
    phase.iter().zip(image).map(one).collect()
}

/// d where the mask is not 0, else k.
pub fn restore_samples(mask: &[f32], measured: &[C64], kspace: &[C64]) -> Vec<C64> {
    (0..mask.len()).map(|i| if mask[i] != 0.0 { measured[i] } else { kspace[i] }).collect()
}
