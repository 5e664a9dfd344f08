use rayspin_core::{C32, C64};

use super::{Interpolation, Problem};

/// The f64 oracle of [`super::fill`]: lines `[line, coil, x]`, every term by its formula.
pub fn fill(problem: &Problem, interpolation: &Interpolation, kspace: &[C32]) -> Vec<C64> {
    let Problem { coils, shape_zyx: [nz, ny, nx] } = *problem;
    let value = |coil: usize, z: isize, y: isize, x: isize| {
        let inside = |i: isize, n: usize| i >= 0 && (i as usize) < n;
        if !(inside(z, nz) && inside(y, ny) && inside(x, nx)) {
            return C64::ZERO;
        }
        let v = kspace[((coil * nz + z as usize) * ny + y as usize) * nx + x as usize];
        C64::new(v.re.into(), v.im.into())
    };
    let mut out = Vec::with_capacity(interpolation.lines.len() * coils * nx);
    for &[z, y] in &interpolation.lines {
        for target in 0..coils {
            for x in 0..nx {
                let mut sum = C64::ZERO;
                for (r, [dz, dy, dx]) in interpolation.sources.iter().enumerate() {
                    for source in 0..coils {
                        let w = interpolation.weights
                            [(target * interpolation.sources.len() + r) * coils + source];
                        sum += C64::new(w.re.into(), w.im.into())
                            * value(source, z as isize + dz, y as isize + dy, x as isize + dx);
                    }
                }
                out.push(sum);
            }
        }
    }
    out
}
