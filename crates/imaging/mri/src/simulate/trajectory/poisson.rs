use ndarray::Array2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Error, Result};

use super::cartesian::calibration_range;

/// A variable-density Poisson-disc mask `[z, y]` of a phase-encoding grid, true where a line is played.
///
/// Grid points are visited in random order. A point is taken when every point taken so far is at least
/// (r(p) + r(q))/2 away, in grid steps. Here r(k) = r₀ (1 + slope·ρ), and ρ is the distance from the centre,
/// 1 at the middle of the grid's edges. r₀ is found by bisection. The few points too many that the nearest r₀
/// gives are dropped at random. So the number of points, calibration region included, is the grid's over
/// `acceleration`, rounded. The calibration region is full and keeps no distance (dart throwing: Cook, ACM
/// Trans Graph 5:51, 1986; in MRI, Lustig & Pauly, Magn Reson Med 64:457, 2010).
///
/// Errors: an empty grid; `acceleration` below 1, not finite or above the number of lines; `slope` negative
/// or not finite; a calibration region larger than the lines allowed.
///
/// ```
/// use rayspin_mri::simulate::trajectory::poisson_disc;
///
/// let mask = poisson_disc([32, 32], 4.0, 8, 1.0, 7)?;
/// assert_eq!(mask.iter().filter(|&&played| played).count(), 32 * 32 / 4);
/// assert!((12..20).all(|i| mask[[i, 16]])); // the calibration region is full
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn poisson_disc(
    shape: [usize; 2],
    acceleration: f64,
    calibration: usize,
    slope: f64,
    seed: u64,
) -> Result<Array2<bool>> {
    let [nz, ny] = shape;
    let total = rayspin_core::voxels(&shape)?;
    if total == 0 {
        return Err(Error::shape("phase-encoding grid", &[1, 1], &shape));
    }
    if !(1.0..=total as f64).contains(&acceleration) {
        return Err(Error::value("acceleration", format!("1 to {total}"), acceleration));
    }
    if !(slope >= 0.0 && slope.is_finite()) {
        return Err(Error::value("density slope", "a number of at least 0", slope));
    }
    let wanted = (total as f64 / acceleration).round().max(1.0) as usize;
    let mut base = Array2::from_elem((nz, ny), false);
    if calibration > 0 {
        for z in calibration_range(nz, calibration) {
            for y in calibration_range(ny, calibration) {
                base[[z, y]] = true;
            }
        }
    }
    let calibrated = base.iter().filter(|b| **b).count();
    if calibrated > wanted {
        return Err(Error::value(
            "calibration region",
            format!("at most {wanted} lines at acceleration {acceleration}"),
            format!("{calibrated} lines"),
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<[usize; 2]> =
        (0..nz).flat_map(|z| (0..ny).map(move |y| [z, y])).filter(|p| !base[*p]).collect();
    order.shuffle(&mut rng);
    let growth = growth_map(shape, slope);

    let mut darts = Vec::new();
    // No two points of one grid can be a grid's diagonal apart.
    let (mut low, mut high) = (0.0, (nz as f64).hypot(ny as f64));
    // Counts fall with r₀, in steps: keep the sparsest pattern that still has enough points.
    for _ in 0..40 {
        let r0 = 0.5 * (low + high);
        let candidate = throw(&order, &growth, r0, slope);
        if candidate.len() + calibrated >= wanted {
            darts = candidate;
            low = r0;
        } else {
            high = r0;
        }
        if high - low < 1e-3 * high {
            break;
        }
    }
    if darts.is_empty() {
        darts = order;
    }
    darts.shuffle(&mut rng);
    for p in darts.iter().take(wanted - calibrated) {
        base[*p] = true;
    }
    Ok(base)
}

/// 1 + slope·ρ at every grid point.
fn growth_map([nz, ny]: [usize; 2], slope: f64) -> Array2<f64> {
    let relative = |i: usize, n: usize| {
        if n > 1 { (i as f64 - (n / 2) as f64) / (n as f64 / 2.0) } else { 0.0 }
    };
    Array2::from_shape_fn((nz, ny), |(z, y)| 1.0 + slope * relative(z, nz).hypot(relative(y, ny)))
}

/// The points of `order` that keep their distance from all before them.
fn throw(order: &[[usize; 2]], growth: &Array2<f64>, r0: f64, slope: f64) -> Vec<[usize; 2]> {
    let (nz, ny) = growth.dim();
    let mut blocked = Array2::from_elem((nz, ny), false);
    let mut out = Vec::new();
    let largest = r0 * growth.iter().copied().fold(0.0, f64::max);
    // r changes by at most this much per grid step, which bounds how far a point blocks others.
    let per_step = |n: usize| if n > 1 { 2.0 / n as f64 } else { 0.0 };
    let steepness = r0 * slope * per_step(nz).max(per_step(ny));
    for &[z, y] in order {
        if blocked[[z, y]] {
            continue;
        }
        out.push([z, y]);
        let own = r0 * growth[[z, y]];
        let bound = if steepness < 1.9 { own / (1.0 - 0.5 * steepness) } else { f64::INFINITY };
        // A steep growth gives distances beyond the grid.
        let reach = (bound.min(0.5 * (own + largest)).ceil() as usize).min(nz.max(ny));
        for qz in z.saturating_sub(reach)..=(z + reach).min(nz - 1) {
            let dz = qz.abs_diff(z) as f64;
            for qy in y.saturating_sub(reach)..=(y + reach).min(ny - 1) {
                let dy = qy.abs_diff(y) as f64;
                let apart = 0.5 * (own + r0 * growth[[qz, qy]]);
                if dz * dz + dy * dy < apart * apart {
                    blocked[[qz, qy]] = true;
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_acceleration_is_met_and_the_calibration_full() {
        for (shape, acceleration, calibration, slope) in [
            ([64, 64], 4.0, 16, 2.0),
            ([96, 80], 8.0, 12, 3.0),
            ([31, 47], 2.5, 0, 0.0),
            ([1, 256], 3.0, 24, 2.0),
            ([17, 1], 2.0, 3, 1.0),
            ([1, 1], 1.0, 0, 0.0),
            ([20, 20], 1.2, 4, 1.0),
        ] {
            let mask = poisson_disc(shape, acceleration, calibration, slope, 5).unwrap();
            let count = mask.iter().filter(|b| **b).count() as f64;
            let achieved = (shape[0] * shape[1]) as f64 / count;
            assert!((achieved / acceleration - 1.0).abs() < 0.06, "{shape:?} {achieved}");
            for z in calibration_range(shape[0], calibration) {
                for y in calibration_range(shape[1], calibration) {
                    assert!(calibration == 0 || mask[[z, y]]);
                }
            }
            assert_eq!(mask, poisson_disc(shape, acceleration, calibration, slope, 5).unwrap());
        }
        assert_ne!(
            poisson_disc([40, 40], 4.0, 0, 1.0, 1).unwrap(),
            poisson_disc([40, 40], 4.0, 0, 1.0, 2).unwrap()
        );
    }

    #[test]
    fn points_keep_their_distance_and_thin_out() {
        let (n, slope) = (96usize, 2.0);
        let growth = growth_map([n, n], slope);
        let mut order: Vec<[usize; 2]> = (0..n * n).map(|i| [i / n, i % n]).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(8));
        let r0 = 1.7;
        let darts = throw(&order, &growth, r0, slope);
        let mut nearest = f64::INFINITY;
        for (i, p) in darts.iter().enumerate() {
            for q in &darts[..i] {
                let apart = (p[0].abs_diff(q[0]) as f64).hypot(p[1].abs_diff(q[1]) as f64);
                nearest = nearest.min(apart / (0.5 * r0 * (growth[*p] + growth[*q])));
            }
        }
        assert!((1.0..1.2).contains(&nearest), "{nearest}");
        // And it is maximal: every point left out is too close to one taken.
        for p in &order {
            let conflict = darts.iter().any(|q| {
                let apart = (p[0].abs_diff(q[0]) as f64).hypot(p[1].abs_diff(q[1]) as f64);
                apart < 0.5 * r0 * (growth[*p] + growth[*q])
            });
            assert!(conflict || darts.contains(p));
        }
        let mask = poisson_disc([n, n], 6.0, 0, slope, 3).unwrap();
        let density = |from: f64, to: f64| {
            let inside = |(z, y): (usize, usize)| {
                let rho = (z as f64 - 48.0).hypot(y as f64 - 48.0) / 48.0;
                (from..to).contains(&rho)
            };
            let (hit, all) = mask
                .indexed_iter()
                .filter(|(p, _)| inside(*p))
                .fold((0.0, 0.0), |(h, a), (_, b)| (h + f64::from(u8::from(*b)), a + 1.0));
            hit / all
        };
        assert!(density(0.0, 0.25) > 2.5 * density(0.75, 1.0));
    }

    #[test]
    fn impossible_requests_are_refused() {
        assert!(poisson_disc([16, 16], 0.9, 0, 1.0, 0).is_err());
        assert!(poisson_disc([16, 16], f64::NAN, 0, 1.0, 0).is_err());
        assert!(poisson_disc([16, 16], 500.0, 0, 1.0, 0).is_err());
        assert!(poisson_disc([16, 16], 8.0, 16, 1.0, 0).is_err());
        assert!(poisson_disc([16, 16], 2.0, 4, -1.0, 0).is_err());
        assert!(poisson_disc([0, 16], 2.0, 4, 1.0, 0).is_err());
    }
}
