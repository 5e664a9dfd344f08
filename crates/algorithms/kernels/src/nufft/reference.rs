//! The direct sums in f64, as plain as the formula.

use rayspin_core::{C64, Trajectory};

/// s\[j\] = Σ_x image\[x\] e^{−i2πk_j·x}, x = (index − ⌊n/2⌋)/n, for the samples `which`.
pub fn forward(
    trajectory: &Trajectory,
    matrix: &[usize],
    image: &[C64],
    which: impl Iterator<Item = usize>,
) -> Vec<C64> {
    which
        .map(|j| {
            let phases = axis_phases(trajectory.point(j), matrix, -1.0);
            let mut sum = C64::default();
            for_each_voxel(&phases, |voxel, phase| sum += image[voxel] * phase);
            sum
        })
        .collect()
}

/// image\[x\] = Σ_j s\[j\] e^{+i2πk_j·x}.
pub fn adjoint(trajectory: &Trajectory, matrix: &[usize], samples: &[C64]) -> Vec<C64> {
    let mut image = vec![C64::default(); matrix.iter().product()];
    for (j, &sample) in samples.iter().enumerate() {
        let phases = axis_phases(trajectory.point(j), matrix, 1.0);
        for_each_voxel(&phases, |voxel, phase| image[voxel] += sample * phase);
    }
    image
}

/// image\[x\] = Σ_j s\[j\] e^{+i2πk_j·x} at the flat indices `which` only.
pub fn adjoint_at(
    trajectory: &Trajectory,
    matrix: &[usize],
    samples: &[C64],
    which: impl Iterator<Item = usize>,
) -> Vec<C64> {
    which
        .map(|voxel| {
            let mut rest = voxel;
            let position: Vec<f64> = matrix
                .iter()
                .rev()
                .map(|&n| {
                    let index = rest % n;
                    rest /= n;
                    (index as f64 - (n / 2) as f64) / n as f64
                })
                .collect();
            let mut sum = C64::default();
            for (j, &sample) in samples.iter().enumerate() {
                let turns: f64 = trajectory.point(j).iter().zip(&position).map(|(k, x)| k * x).sum();
                sum += sample * C64::cis(std::f64::consts::TAU * turns);
            }
            sum
        })
        .collect()
}

/// e^{±i2πkx} along each axis in the order of the matrix (k in the order x, y, z).
fn axis_phases(k: &[f64], matrix: &[usize], sign: f64) -> Vec<Vec<C64>> {
    matrix
        .iter()
        .zip(k.iter().rev())
        .map(|(&n, &k)| {
            (0..n)
                .map(|i| {
                    let x = (i as f64 - (n / 2) as f64) / n as f64;
                    C64::cis(sign * std::f64::consts::TAU * k * x)
                })
                .collect()
        })
        .collect()
}

fn for_each_voxel(phases: &[Vec<C64>], mut visit: impl FnMut(usize, C64)) {
    let one = [C64::new(1.0, 0.0)];
    let axis = |a: usize| -> &[C64] {
        match (a + phases.len()).checked_sub(3) {
            Some(i) => &phases[i],
            None => &one,
        }
    };
    let mut voxel = 0;
    for &pz in axis(0) {
        for &py in axis(1) {
            let row = pz * py;
            for &px in axis(2) {
                visit(voxel, row * px);
                voxel += 1;
            }
        }
    }
}
