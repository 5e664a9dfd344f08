use rayspin_core::{C32, C64};

/// The f64 oracle of [`super::maps`]: covariance by the plain sum over the window, then many power
/// iterations. `images` is `[coil, z, y, x]`.
pub fn maps(coils: usize, shape: [usize; 3], radius: usize, images: &[C32]) -> Vec<C64> {
    let voxels: usize = shape.iter().product();
    let value = |j: usize, voxel: usize| {
        let v = images[j * voxels + voxel];
        C64::new(v.re.into(), v.im.into())
    };
    let mut whole = vec![C64::ZERO; coils * coils];
    for voxel in 0..voxels {
        add_outer(&mut whole, coils, |j| value(j, voxel));
    }
    let reference = dominant(&whole, coils);

    let mut out = vec![C64::ZERO; coils * voxels];
    let window = |i: usize, n: usize| i.saturating_sub(radius)..(i + radius + 1).min(n);
    for z in 0..shape[0] {
        for y in 0..shape[1] {
            for x in 0..shape[2] {
                let mut covariance = vec![C64::ZERO; coils * coils];
                for zz in window(z, shape[0]) {
                    for yy in window(y, shape[1]) {
                        for xx in window(x, shape[2]) {
                            add_outer(&mut covariance, coils, |j| {
                                value(j, (zz * shape[1] + yy) * shape[2] + xx)
                            });
                        }
                    }
                }
                let vector = dominant(&covariance, coils);
                let overlap: C64 = reference.iter().zip(&vector).map(|(r, v)| r.conj() * v).sum();
                let phase = if overlap.norm() > 0.0 { overlap.conj() / overlap.norm() } else { C64::ONE };
                for j in 0..coils {
                    out[j * voxels + (z * shape[1] + y) * shape[2] + x] = vector[j] * phase;
                }
            }
        }
    }
    out
}

fn add_outer(matrix: &mut [C64], n: usize, m: impl Fn(usize) -> C64) {
    for i in 0..n {
        for j in 0..n {
            matrix[i * n + j] += m(i) * m(j).conj();
        }
    }
}

fn dominant(matrix: &[C64], n: usize) -> Vec<C64> {
    let strongest =
        (0..n).fold(0, |best, j| if matrix[j * n + j].re > matrix[best * n + best].re { j } else { best });
    let mut v: Vec<C64> = (0..n).map(|i| matrix[i * n + strongest]).collect();
    for _ in 0..500 {
        let next: Vec<C64> = (0..n).map(|i| (0..n).map(|j| matrix[i * n + j] * v[j]).sum()).collect();
        let norm = next.iter().map(|c: &C64| c.norm_sqr()).sum::<f64>().sqrt();
        if norm == 0.0 {
            return vec![C64::ZERO; n];
        }
        v = next.into_iter().map(|c| c / norm).collect();
    }
    v
}
