//! Every tolerance at every upsampling, on every kind of size and set of points, against the direct sums.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Trajectory};

use super::tests::{SETS, Set, cpu, distance, nan, narrow, points, random, widen};
use super::*;

/// Every size kind: 1, small, odd, even, prime.
const MATRICES: [&[usize]; 12] = [
    &[1],
    &[2],
    &[31],
    &[64],
    &[1, 1],
    &[5, 1],
    &[12, 17],
    &[33, 20],
    &[1, 1, 1],
    &[2, 1, 9],
    &[7, 8, 11],
    &[12, 10, 13],
];

const POINTS: usize = 150;
/// Random inputs of a problem: the error of one, where there is a single output, is a matter of luck.
const BATCH: usize = 2;

/// A problem's inputs, exact in single precision, and its exact results; a batch each.
struct Exact {
    matrix: &'static [usize],
    set: Set,
    trajectory: Trajectory,
    image: Vec<C64>,
    data: Vec<C64>,
    forward: Vec<C64>,
    adjoint: Vec<C64>,
}

impl Exact {
    fn new(matrix: &'static [usize], set: Set, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let voxels: usize = matrix.iter().product();
        let trajectory = points(set, POINTS, matrix, &mut rng);
        let (_, image) = narrow::<f32>(&random(BATCH * voxels, &mut rng));
        let (_, data) = narrow::<f32>(&random(BATCH * POINTS, &mut rng));
        let forward =
            image.chunks(voxels).flat_map(|f| reference::forward(&trajectory, matrix, f, 0..POINTS));
        let adjoint = data.chunks(POINTS).flat_map(|s| reference::adjoint(&trajectory, matrix, s));
        let (forward, adjoint) = (forward.collect(), adjoint.collect());
        Self { matrix, set, trajectory, image, data, forward, adjoint }
    }
}

/// The worst error of a tolerance over problems, in units of the tolerance, where it was, and how many were
/// refused.
#[derive(Default)]
struct Worst {
    ratio: f64,
    case: String,
    refused: usize,
}

fn inner(a: &[C64], b: &[C64]) -> C64 {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

fn norm(a: &[C64]) -> f64 {
    inner(a, a).re.sqrt()
}

fn check<R: Real>(
    device: &Device,
    exact: &Exact,
    tolerance: f64,
    upsampling: Option<f64>,
    worst: &mut Worst,
) {
    let Exact { matrix, set, trajectory, .. } = exact;
    let dims = matrix.len();
    let unit = <R as Real>::EPSILON.to_f64();
    let case = format!("{}, {matrix:?}, {set:?}, ε {tolerance:e}, σ {upsampling:?}", R::NAME);
    let plan = match Nufft::<R>::new(device, trajectory, matrix, &Options { tolerance, upsampling }) {
        Ok(plan) => plan,
        Err(error) => {
            // Refused only where no kernel reaches the tolerance; upsampling 2, and so the choice, reaches
            // all.
            let least = upsampling.map(|s| Kernel::for_tolerance(0.0, s, dims, unit).err().unwrap_or(0.0));
            assert!(
                upsampling != Some(2.0) && least.is_some_and(|least| least > tolerance),
                "{case}: {error}"
            );
            worst.refused += 1;
            return;
        }
    };
    let image = Array::from_vec(device, &[&[BATCH], *matrix].concat(), narrow::<R>(&exact.image).0).unwrap();
    let data = Array::from_vec(device, &[BATCH, POINTS], narrow::<R>(&exact.data).0).unwrap();
    let (mut forward, mut adjoint) = (nan::<R>(device, data.shape()), nan::<R>(device, image.shape()));
    plan.forward(&image, &mut forward).unwrap();
    plan.adjoint(&data, &mut adjoint).unwrap();
    let (forward, adjoint) = (widen(&forward.to_vec().unwrap()), widen(&adjoint.to_vec().unwrap()));
    for (kind, computed, expected) in [(2, &forward, &exact.forward), (1, &adjoint, &exact.adjoint)] {
        let ratio = distance(computed, expected) / tolerance;
        assert!(ratio <= BOUND, "type {kind}, {case}: {ratio:.2} ε");
        if ratio > worst.ratio {
            (worst.ratio, worst.case) = (ratio, format!("type {kind}, {case}"));
        }
    }
    let difference = (inner(&forward, &exact.data) - inner(&exact.image, &adjoint)).norm();
    let rounding = plan.kernel.rounding(plan.upsampling, dims, unit);
    let allowed = 4.0 * rounding * norm(&forward) * norm(&exact.data);
    assert!(difference <= allowed, "adjoint, {case}: {difference:e} above {allowed:e}");
}

#[test]
fn errors_stay_within_the_bound_on_a_gpu() {
    for device in crate::cuda::gpus() {
        // Each kernel is compiled: fewer of them, and the emulator takes fewer problems.
        let emulated = device.describe().starts_with("Emulated");
        let mut worst = Worst::default();
        for (m, matrix) in MATRICES.into_iter().enumerate() {
            for (s, set) in SETS.into_iter().enumerate() {
                if emulated && (m % 4 == 0 || ![Set::Uniform, Set::OnePoint, Set::Lattice].contains(&set)) {
                    continue;
                }
                let exact = Exact::new(matrix, set, (100 * m + s) as u64);
                check::<f32>(device, &exact, 1e-3, Some(2.0), &mut worst);
                check::<f64>(device, &exact, 1e-6, Some(1.25), &mut worst);
                if emulated {
                    continue;
                }
                for (tolerance, upsampling) in [(1e-1, None), (1e-2, Some(1.25)), (1e-6, Some(2.0))] {
                    check::<f32>(device, &exact, tolerance, upsampling, &mut worst);
                }
                for (tolerance, upsampling) in [(1e-2, Some(2.0)), (1e-9, None), (1e-13, Some(2.0))] {
                    check::<f64>(device, &exact, tolerance, upsampling, &mut worst);
                }
            }
        }
        println!("{:.2} ε: {}; {} refused", worst.ratio, worst.case, worst.refused);
    }
}

#[test]
fn errors_stay_within_the_bound_and_types_are_adjoint() {
    let device = cpu();
    let single: Vec<f64> = (1..=6).map(|p| 10f64.powi(-p)).collect();
    let double: Vec<f64> = (1..=13).map(|p| 10f64.powi(-p)).collect();
    let mut worst: Vec<Worst> = Vec::new();
    let settings = [Some(2.0), Some(1.25), None];
    worst.resize_with(settings.len() * (single.len() + double.len()), Worst::default);
    for (m, matrix) in MATRICES.into_iter().enumerate() {
        for (s, set) in SETS.into_iter().enumerate() {
            let exact = Exact::new(matrix, set, (100 * m + s) as u64);
            let mut row = worst.iter_mut();
            for upsampling in settings {
                for &tolerance in &single {
                    check::<f32>(&device, &exact, tolerance, upsampling, row.next().unwrap());
                }
                for &tolerance in &double {
                    check::<f64>(&device, &exact, tolerance, upsampling, row.next().unwrap());
                }
            }
        }
    }
    for worst in worst {
        println!("{:.2} ε: {}; {} refused", worst.ratio, worst.case, worst.refused);
    }
}
