use rayspin_core::{Error, Result, Trajectory};

/// A run of samples on a line through the centre.
struct Spoke {
    first: usize,
    /// Signed distances from the centre, ascending.
    positions: Vec<f64>,
}

/// Cosine of the largest turn between steps of one spoke.
const STRAIGHT: f64 = 0.999;

/// w_j = (v(b_j) − v(a_j)) / (n_j N) for spokes through the centre, in 2-D (v(r) = π r|r|) and 3-D (v(r) =
/// 4π/3 r³).
///
/// a_j and b_j are halfway to the neighbours along the spoke, signed distances from the centre; n_j is the
/// number of arms (half spokes) that reach sample j's radius, N the number of voxels. For equal steps Δ and
/// full spokes this is the ramp 2π|k|Δ/n in 2-D, with Δ/4 in place of |k| at the centre itself, and 4π(k² +
/// Δ²/12)Δ/n in 3-D. Spokes may be full, partial or centre-out, with equal or unequal steps. Their directions
/// are assumed to be evenly spread. Σ w is the disc's or ball's volume over N.
///
/// Samples of a spoke must follow one another in the trajectory. Errors: another number of dimensions, or
/// samples that are not on lines through the centre (off by more than half a step).
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::Trajectory;
/// use rayspin_kernels::density::radial;
///
/// // Two spokes of five samples at −2 … 2 cycles per field of view, one after the other.
/// let points = Array2::from_shape_fn((10, 2), |(i, dim)| if i / 5 == dim { (i % 5) as f64 - 2.0 } else { 0.0 });
/// let weights = radial(&Trajectory::from_cycles_per_fov(points)?, &[4, 4])?;
/// assert!((weights[4] / weights[3] - 2.0).abs() < 1e-5); // proportional to |k|
/// assert!((weights[2] / weights[3] - 0.25).abs() < 1e-5); // Δ/4 in place of |k| at the centre
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn radial(trajectory: &Trajectory, matrix: &[usize]) -> Result<Vec<f32>> {
    super::check_matrix(trajectory, matrix)?;
    let dims = trajectory.dims();
    if dims < 2 {
        return Err(Error::value("radial density compensation", "2 or 3 dimensions", dims));
    }
    let spokes = find_spokes(trajectory)?;
    let pi = std::f64::consts::PI;
    let volume = |r: f64| match dims {
        2 => pi * r * r.abs(),
        _ => 4.0 / 3.0 * pi * r.powi(3),
    };
    let edges: Vec<Vec<f64>> = spokes.iter().map(|spoke| edges(&spoke.positions)).collect();
    let mut reach: Vec<f64> =
        edges.iter().flat_map(|e| [-e[0], e[e.len() - 1]]).filter(|r| *r > 0.0).collect();
    reach.sort_by(f64::total_cmp);
    let voxels: f64 = matrix.iter().map(|&n| n as f64).product();
    let mut weights = vec![0.0; trajectory.samples()];
    for (spoke, edges) in spokes.iter().zip(&edges) {
        for (i, &position) in spoke.positions.iter().enumerate() {
            let arms = reach.len() - reach.partition_point(|&r| r < position.abs());
            let shell = volume(edges[i + 1]) - volume(edges[i]);
            weights[spoke.first + i] = (shell / (arms as f64 * voxels)) as f32;
        }
    }
    Ok(weights)
}

/// Halfway points between positions, and as far beyond the ends; a spoke that starts within a step of the
/// centre starts at the centre.
fn edges(positions: &[f64]) -> Vec<f64> {
    let n = positions.len();
    let mut edges = vec![0.0; n + 1];
    for i in 1..n {
        edges[i] = 0.5 * (positions[i - 1] + positions[i]);
    }
    edges[0] = 2.0 * positions[0] - edges[1];
    edges[n] = 2.0 * positions[n - 1] - edges[n - 1];
    let steps = [positions[1] - positions[0], positions[n - 1] - positions[n - 2]];
    // A centre-out spoke (or one towards the centre): its innermost cell has no other side.
    if positions[0] > -1e-6 * steps[0] && positions[0] < steps[0] {
        edges[0] = 0.0;
    }
    if positions[n - 1] < 1e-6 * steps[1] && positions[n - 1] > -steps[1] {
        edges[n] = 0.0;
    }
    edges
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The step between two samples and its length, or `None` when they coincide.
fn step(from: &[f64], to: &[f64]) -> Option<(Vec<f64>, f64)> {
    let difference: Vec<f64> = to.iter().zip(from).map(|(t, f)| t - f).collect();
    let length = dot(&difference, &difference).sqrt();
    (length > 0.0).then(|| (difference.iter().map(|d| d / length).collect(), length))
}

fn find_spokes(trajectory: &Trajectory) -> Result<Vec<Spoke>> {
    let refused = |sample: usize| {
        Error::value(
            "radial density compensation",
            "samples in order along spokes through the centre",
            format!("sample {sample} at {:?}", trajectory.point(sample)),
        )
    };
    let samples = trajectory.samples();
    let mut spokes = Vec::new();
    let mut first = 0;
    while first < samples {
        if first + 1 == samples {
            return Err(refused(first));
        }
        let (start, second) = (trajectory.point(first), trajectory.point(first + 1));
        let (direction, _) = step(start, second).ok_or_else(|| refused(first))?;
        let mut end = first + 2;
        while end < samples {
            match step(trajectory.point(end - 1), trajectory.point(end)) {
                Some((next, _)) if dot(&next, &direction) > STRAIGHT => end += 1,
                _ => break,
            }
        }
        // The whole spoke's direction is more exact than its first step's.
        let (direction, length) = step(start, trajectory.point(end - 1)).ok_or_else(|| refused(first))?;
        let allowed = 0.5 * length / (end - first - 1) as f64;
        let mut positions = Vec::with_capacity(end - first);
        for sample in first..end {
            let k = trajectory.point(sample);
            let along = dot(k, &direction);
            let aside = (dot(k, k) - along * along).max(0.0).sqrt();
            if aside > allowed {
                return Err(refused(sample));
            }
            positions.push(along);
        }
        spokes.push(Spoke { first, positions });
        first = end;
    }
    Ok(spokes)
}
