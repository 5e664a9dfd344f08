use rayon::prelude::*;
use rayspin_core::C32;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::{Interpolation, Problem};

/// One line a task.
pub(super) fn lines(cpu: &Cpu, problem: &Problem, by: &Interpolation, kspace: &[C32], out: &mut [C32]) {
    let (coils, nx) = (problem.coils, problem.shape_zyx[2]);
    if out.is_empty() {
        return;
    }
    cpu.run(|| {
        out.par_chunks_mut(coils * nx).zip(&by.lines).for_each(|(out, line)| {
            dispatch!(cpu.level(), _simd => one(problem, by, kspace, line, out));
        });
    });
}

#[inline(always)]
fn one(problem: &Problem, by: &Interpolation, kspace: &[C32], &[z, y]: &[usize; 2], out: &mut [C32]) {
    let Problem { coils, shape_zyx: [nz, ny, nx] } = *problem;
    out.fill(C32::ZERO);
    let count = by.sources.len();
    for (r, [dz, dy, dx]) in by.sources.iter().enumerate() {
        let (Some(z), Some(y)) = (z.checked_add_signed(*dz), y.checked_add_signed(*dy)) else { continue };
        let shift = dx.unsigned_abs();
        if z >= nz || y >= ny || shift >= nx {
            continue;
        }
        for source in 0..coils {
            let line = &kspace[((source * nz + z) * ny + y) * nx..][..nx];
            for (target, out) in out.chunks_exact_mut(nx).enumerate() {
                let w = by.weights[(target * count + r) * coils + source];
                // out[x] takes line[x + dx].
                let (out, line) = if *dx >= 0 {
                    (&mut out[..nx - shift], &line[shift..])
                } else {
                    (&mut out[shift..], &line[..nx - shift])
                };
                for (out, v) in out.iter_mut().zip(line) {
                    out.re += w.re * v.re - w.im * v.im;
                    out.im += w.re * v.im + w.im * v.re;
                }
            }
        }
    }
}
