use rayspin_core::{C32, C64};

use super::{Problem, weight};

/// The f64 oracle of [`super::maps`], for all planes: G by the sum over all lags, eigenvectors by power
/// iteration and deflation.
pub fn maps(problem: &Problem, correlation: &[C32], phase: &[C32]) -> Vec<C64> {
    let Problem { coils, reach_zyx, shape_zyx, sets, crop, .. } = *problem;
    let voxels: usize = shape_zyx.iter().product();
    let lags = reach_zyx.map(|h| 2 * h + 1);
    let wide = |v: C32| C64::new(v.re.into(), v.im.into());
    let mut out = vec![C64::ZERO; sets * coils * voxels];
    for voxel in 0..voxels {
        let index = [
            voxel / (shape_zyx[1] * shape_zyx[2]),
            voxel / shape_zyx[2] % shape_zyx[1],
            voxel % shape_zyx[2],
        ];
        let mut g = vec![C64::ZERO; coils * coils];
        for (element, &q) in correlation.iter().enumerate() {
            let lag = element % problem.lags();
            let delta = [lag / (lags[1] * lags[2]), lag / lags[2] % lags[1], lag % lags[2]];
            let turns: f64 = (0..3)
                .map(|a| {
                    let x = (index[a] as f64 - (shape_zyx[a] / 2) as f64) / shape_zyx[a] as f64;
                    (delta[a] as f64 - reach_zyx[a] as f64) * x
                })
                .sum();
            g[element / problem.lags()] += wide(q) * C64::cis(-std::f64::consts::TAU * turns);
        }
        for set in 0..sets {
            let (eigenvalue, vector) = dominant(&g, coils);
            for i in 0..coils {
                for j in 0..coils {
                    g[i * coils + j] -= eigenvalue * vector[i] * vector[j].conj();
                }
            }
            let overlap: C64 = phase.iter().zip(&vector).map(|(&p, v)| wide(p).conj() * v).sum();
            let turn = if overlap.norm() > 0.0 { overlap.conj() / overlap.norm() } else { C64::ONE };
            for (j, v) in vector.iter().enumerate() {
                out[(set * coils + j) * voxels + voxel] = v * turn * weight(eigenvalue, crop.into());
            }
        }
    }
    out
}

fn dominant(g: &[C64], n: usize) -> (f64, Vec<C64>) {
    let mut vector: Vec<C64> = (0..n).map(|i| C64::new(1.0, 0.3 * i as f64)).collect();
    let mut eigenvalue = 0.0;
    for _ in 0..3000 {
        let next: Vec<C64> = (0..n).map(|i| (0..n).map(|j| g[i * n + j] * vector[j]).sum()).collect();
        eigenvalue = next.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
        if eigenvalue < 1e-12 {
            return (0.0, vec![C64::ZERO; n]);
        }
        vector = next.iter().map(|v| v / eigenvalue).collect();
    }
    (eigenvalue, vector)
}
