use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Error};
use rayspin_device::BackendKind;

use super::super::BOUND;
use super::super::coordinates::tests::{Held, held};
use super::super::tests::{cpu, distance, nan, narrow, random, widen};
use super::*;
use crate::cuda::gpus;

/// Where positions or frequencies lie.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Set {
    /// In a box about zero.
    Uniform,
    /// In a box far from zero.
    Far,
    /// In two clumps at the box's ends.
    Ends,
    /// All at one place, which is not zero.
    Same,
    /// One point.
    One,
}

const SETS: [Set; 5] = [Set::Uniform, Set::Far, Set::Ends, Set::Same, Set::One];

/// About `count` points in a box of half-widths `half`.
fn points(set: Set, count: usize, half: &[f64], rng: &mut ChaCha8Rng) -> Array2<f64> {
    let count = if set == Set::One { 1 } else { count };
    let place = rng.random::<f64>();
    Array2::from_shape_fn((count, half.len()), |(_, d)| {
        let random = 2.0 * rng.random::<f64>() - 1.0;
        half[d]
            * match set {
                Set::Uniform | Set::One => random,
                Set::Far => 3.7e8 * (1.0 + d as f64) + random,
                Set::Ends => random.signum() * (1.0 - 0.01 * random.abs()),
                Set::Same => place + d as f64,
            }
    })
}

fn rows(points: &Array2<f64>) -> Coordinates<'_> {
    Coordinates::rows("points", points.view()).unwrap()
}

fn inner(a: &[C64], b: &[C64]) -> C64 {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

/// Half-widths of positions and frequencies: of other sizes along every axis, and in other units.
const HALVES: [(&[f64], &[f64]); 3] =
    [(&[0.4], &[30.0]), (&[2000.0, 3.0], &[0.002, 0.7]), (&[1.0, 0.1, 1e-3], &[1.5, 8.0, 1e3])];
const BATCH: usize = 2;

/// Positions and frequencies, the inputs of both directions, and their exact results.
struct Problem {
    x: Array2<f64>,
    s: Array2<f64>,
    values: Vec<C64>,
    data: Vec<C64>,
    forward: Vec<C64>,
    adjoint: Vec<C64>,
}

fn check<R: Real>(device: &Device, problem: &Problem, options: Options, case: &str) -> f64 {
    let Problem { x, s, values, data, forward: exact_forward, adjoint: exact_adjoint } = problem;
    let case = format!("{case}, {}, {options:?}", R::NAME);
    let plan = match Type3::<R>::new(device, rows(x), rows(s), &options) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(size_of::<R>() == 4 && options.tolerance < 1e-5 && x.ncols() > 1, "{case}: {error}");
            return 0.0;
        }
    };
    assert_eq!(plan.transform.device().kind(), device.kind(), "{case}");
    let values = Array::from_vec(device, &[BATCH, x.nrows()], narrow::<R>(values).0).unwrap();
    let data = Array::from_vec(device, &[BATCH, s.nrows()], narrow::<R>(data).0).unwrap();
    let (mut forward, mut adjoint) = (nan::<R>(device, data.shape()), nan::<R>(device, values.shape()));
    plan.forward(&values, &mut forward).unwrap();
    plan.adjoint(&data, &mut adjoint).unwrap();
    let [forward, adjoint, values, data] =
        [forward, adjoint, values, data].map(|array| widen(&array.to_vec().unwrap()));
    let ratios = [(&forward, exact_forward), (&adjoint, exact_adjoint)]
        .map(|(f, e)| distance(f, e) / options.tolerance);
    let difference = (inner(&forward, &data) - inner(&values, &adjoint)).norm();
    let norm = |a: &[C64]| inner(a, a).re.sqrt();
    let allowed = 1e3 * <R as Real>::EPSILON.to_f64() * norm(&forward) * norm(&data);
    assert!(difference <= allowed, "adjoint, {case}: {difference:e} above {allowed:e}");
    ratios[0].max(ratios[1])
}

/// Errors of all problems with sets of points that are `wanted`, in f32 and in f64.
fn sweep(device: &Device, wanted: impl Fn(Set, Set) -> bool, single: &[Options], double: &[Options]) {
    let mut beyond = Vec::new();
    let mut worst = [(0.0, String::new()), (0.0, String::new())];
    for (x_half, s_half) in HALVES {
        for (i, (x_set, s_set)) in SETS.iter().flat_map(|&x| SETS.map(|s| (x, s))).enumerate() {
            if !wanted(x_set, s_set) {
                continue;
            }
            let mut rng = ChaCha8Rng::seed_from_u64((x_half.len() * 100 + i) as u64);
            let (x, s) = (points(x_set, 70, x_half, &mut rng), points(s_set, 80, s_half, &mut rng));
            let (_, values) = narrow::<f32>(&random(BATCH * x.nrows(), &mut rng));
            let (_, data) = narrow::<f32>(&random(BATCH * s.nrows(), &mut rng));
            let items = values.chunks(x.nrows());
            let forward: Vec<C64> = items.flat_map(|v| reference::forward(x.view(), s.view(), v)).collect();
            let items = data.chunks(s.nrows());
            let adjoint: Vec<C64> = items.flat_map(|v| reference::adjoint(x.view(), s.view(), v)).collect();
            let case = format!("{} dimensions, {x_set:?} to {s_set:?}", x_half.len());
            let problem = Problem { x, s, values, data, forward, adjoint };
            let single = single.iter().map(|&o| (0, o, check::<f32>(device, &problem, o, &case)));
            let double = double.iter().map(|&o| (1, o, check::<f64>(device, &problem, o, &case)));
            for (real, Options { tolerance, .. }, ratio) in single.chain(double) {
                if ratio > BOUND {
                    beyond.push(format!("{case}, ε {tolerance:e}: {ratio:.2} ε"));
                }
                if ratio > worst[real].0 {
                    worst[real] = (ratio, format!("{case}, ε {tolerance:e}"));
                }
            }
        }
    }
    println!("worst: f32 {:.2} ε ({}), f64 {:.2} ε ({})", worst[0].0, worst[0].1, worst[1].0, worst[1].1);
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// Tolerances from 0.1 to 1e-12, in f32 to 2e-6.
fn tolerances() -> [Vec<Options>; 2] {
    let to = |most: i32| (1..=most).map(|p| 10f64.powi(-p));
    [to(6).map(|t| Options::tolerance(t.max(2e-6))).collect(), to(12).map(Options::tolerance).collect()]
}

#[test]
fn errors_stay_within_the_bound_and_directions_are_adjoint() {
    let [single, double] = tolerances();
    sweep(&cpu(), |_, _| true, &single, &double);
}

/// All tests on the emulator use these few kernels, because it compiles each one. Other tests of the NUFFT
/// use the same kernel in f32.
fn few<R: Real>() -> Options {
    Options { tolerance: if size_of::<R>() == 4 { 4e-3 } else { 4e-6 }, upsampling: Some(2.0) }
}

#[test]
fn errors_stay_within_the_bound_and_directions_are_adjoint_on_a_gpu() {
    for device in gpus() {
        if device.describe().starts_with("Emulated") {
            // Each set on either side.
            let wanted = |x, s| (s as usize + 5 - x as usize) % 5 == 1;
            sweep(device, wanted, &[few::<f32>()], &[few::<f64>()]);
        } else {
            let [single, double] = tolerances();
            sweep(device, |_, _| true, &single, &double);
        }
    }
}

#[test]
fn batches_repeat_and_take_the_stated_memory_on_a_gpu() {
    fn check<R: Real>(device: &Device, dims: usize) {
        let Backend::Cuda(cuda) = device.backend() else { panic!("not a GPU") };
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let half = &[1.0, 3.0, 2.0][..dims];
        let (x, s) = (points(Set::Uniform, 500, half, &mut rng), points(Set::Far, 300, half, &mut rng));
        let (values, _) = narrow::<R>(&random(5 * 500, &mut rng));
        let (data, _) = narrow::<R>(&random(5 * 300, &mut rng));
        let run = |plan: &Type3<R>, together: usize| {
            let (mut forward, mut adjoint) = (Vec::new(), Vec::new());
            for (values, data) in values.chunks(together * 500).zip(data.chunks(together * 300)) {
                let values = Array::from_slice(device, &[values.len() / 500, 500], values).unwrap();
                let data = Array::from_slice(device, &[data.len() / 300, 300], data).unwrap();
                let (mut f, mut a) = (nan(device, data.shape()), nan(device, values.shape()));
                plan.forward(&values, &mut f).unwrap();
                plan.adjoint(&data, &mut a).unwrap();
                forward.extend(f.to_vec().unwrap());
                adjoint.extend(a.to_vec().unwrap());
            }
            [forward, adjoint]
        };
        let plan = || Type3::<R>::new(device, rows(&x), rows(&s), &few::<R>()).unwrap();
        let before = cuda.memory_used().0;
        let whole = plan();
        let together = run(&whole, 5);
        assert_eq!(cuda.memory_used().0 - before, whole.bytes(5), "{dims} dimensions");
        assert_eq!(run(&whole, 5), together, "{dims} dimensions");
        drop(whole);
        assert_eq!(cuda.memory_used().0, before);
        // If memory is short, groups are smaller.
        let short = plan();
        let held = cuda.memory_used().0;
        let (one, two) = (short.bytes(1), short.bytes(2));
        assert!(short.bytes(5) > two && two > one);
        cuda.limit_memory(Some(held + short.bytes(3) + 50 * (500 + 300)));
        let parts = run(&short, 5);
        cuda.limit_memory(None);
        let bound = 1e3 * <R as Real>::EPSILON.to_f64();
        for other in [parts, run(&plan(), 1)] {
            for (found, expected) in other.iter().zip(&together) {
                assert!(distance(&widen(found), &widen(expected)) < bound, "{dims} dimensions, {}", R::NAME);
            }
        }
    }
    // Devices of their own: on those that tests share, others allocate too.
    let mut devices = vec![rayspin_emu::Emulator::device().unwrap()];
    devices.extend(rayspin_device::cuda::count().is_ok().then(|| Device::cuda(0, cpu()).unwrap()));
    for device in &devices {
        check::<f32>(device, 1);
        check::<f32>(device, 2);
        check::<f32>(device, 3);
        check::<f64>(device, 2);
    }
}

/// A GPU's Fourier transforms end at 8192 points.
#[test]
fn long_grids_of_a_gpu_are_computed_by_the_host() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (x, s) = (points(Set::Uniform, 50, &[40.0], &mut rng), points(Set::Uniform, 40, &[90.0], &mut rng));
    let values = random(50, &mut rng);
    let expected = reference::forward(x.view(), s.view(), &values);
    for device in gpus() {
        let plan = Type3::<f64>::new(device, rows(&x), rows(&s), &Options::tolerance(1e-6)).unwrap();
        assert!(plan.transform.device().same_as(&device.host()) && plan.device().same_as(device));
        let values = Array::from_slice(device, &[50], &values).unwrap();
        let mut found = nan::<f64>(device, &[40]);
        plan.forward(&values, &mut found).unwrap();
        assert!(distance(&found.to_vec().unwrap(), &expected) < 3e-6);
    }
}

const UNITS: [f64; 3] = [-0.5, 2.0, 1.0];

fn with_units(held: &[Held], count: usize) -> Coordinates<'_> {
    let components: Vec<_> =
        held.iter().zip(UNITS).map(|(held, unit)| held.component("points", unit, count)).collect();
    Coordinates::new(&components).unwrap()
}

/// Components in memory of the host and of the plan's device, in either precision, with gaps, backwards and
/// in other units, give the plan of their numbers.
#[test]
fn points_are_read_where_they_lie() {
    let mut rng = ChaCha8Rng::seed_from_u64(19);
    for device in std::iter::once(&cpu()).chain(gpus()) {
        // The last grid is too long for a GPU.
        for (dims, half) in [(3, 2.0f32), (2, 3.0), (1, 60.0)] {
            let mut set = |count: usize, turn: usize| {
                // Numbers of f32, so that both precisions hold the same.
                let numbers =
                    Array2::from_shape_fn((count, dims), |_| f64::from(rng.random_range(-half..half)));
                let places = [(3, 2), (2 * count, -2), (0, 1)];
                let held: Vec<Held> = (0..dims)
                    .map(|d| {
                        let owner = if (d + turn) % 3 == 2 { &device.host() } else { device };
                        let (first, stride) = places[(d + turn) % 3];
                        held(owner, &numbers.column(d).to_vec(), first, stride, d == turn)
                    })
                    .collect();
                (numbers * ndarray::aview1(&UNITS[..dims]), held)
            };
            let ((x, x_held), (s, s_held)) = (set(500, 0), set(300, 1));
            let options = few::<f64>();
            let (x_points, s_points) = (with_units(&x_held, 500), with_units(&s_held, 300));
            let plan = Type3::<f64>::new(device, x_points, s_points, &options).unwrap();
            let on_host = plan.transform.device().same_as(&device.host());
            assert_eq!(on_host, device.kind() == BackendKind::Cpu || dims == 1);
            let values = random(500, &mut rng);
            let expected = reference::forward(x.view(), s.view(), &values);
            let values = Array::from_vec(device, &[500], values).unwrap();
            let mut transformed = nan::<f64>(device, &[300]);
            plan.forward(&values, &mut transformed).unwrap();
            assert!(distance(&transformed.to_vec().unwrap(), &expected) < BOUND * options.tolerance);
        }
    }
}

#[test]
fn a_number_that_is_not_finite_is_named() {
    for device in std::iter::once(&cpu()).chain(gpus()) {
        let good: Vec<f64> = (0..700).map(|i| f64::from(i % 11) - 5.0).collect();
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut bad = good.clone();
            (bad[699], bad[613]) = (wrong, wrong);
            let (right, faulty) = (held(device, &good, 0, 1, false), held(device, &bad, 1, 2, true));
            let right = right.component("x", 1.0, 700);
            let faulty = faulty.component("s", 1.0, 700);
            let [right, faulty] = [right, faulty].map(|component| Coordinates::new(&[component]).unwrap());
            let error = Type3::<f32>::new(device, right, faulty, &few::<f32>()).unwrap_err();
            let Error::NotFinite { what, index, found } = &error else { panic!("{error}") };
            assert_eq!((&what[..], *index, &found[..]), ("s", 613, &wrong.to_string()[..]));
        }
    }
}

#[test]
fn a_batch_is_its_items_and_threads_do_not_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (x, s) =
        (points(Set::Uniform, 40_000, &[2.0, 2.0], &mut rng), points(Set::Far, 900, &[2.0, 2.0], &mut rng));
    let (values, _) = narrow::<f32>(&random(5 * 40_000, &mut rng));
    let (data, _) = narrow::<f32>(&random(5 * 900, &mut rng));
    let run = |threads: usize| {
        let device = Device::cpu_with_threads(threads).unwrap();
        let plan = Type3::<f32>::new(&device, rows(&x), rows(&s), &Options::tolerance(1e-4)).unwrap();
        assert!(plan.bytes(5) > 0);
        let both = |values: &[Complex<f32>], data: &[Complex<f32>], batch: usize| {
            let values = Array::from_vec(&device, &[batch, 40_000], values.to_vec()).unwrap();
            let data = Array::from_vec(&device, &[batch, 900], data.to_vec()).unwrap();
            let (mut forward, mut adjoint) = (nan(&device, data.shape()), nan(&device, values.shape()));
            plan.forward(&values, &mut forward).unwrap();
            plan.adjoint(&data, &mut adjoint).unwrap();
            [forward.cpu().to_vec(), adjoint.cpu().to_vec()]
        };
        let single = values.chunks(40_000).zip(data.chunks(900)).map(|(v, d)| both(v, d, 1));
        let single: Vec<_> = single.collect();
        let single = [0, 1].map(|i| single.iter().flat_map(|item| item[i].clone()).collect::<Vec<_>>());
        (both(&values, &data, 5), single)
    };
    let (together, single) = run(2);
    assert_eq!(run(1).0, together);
    assert_eq!(run(3).0, together);
    for (together, single) in together.iter().zip(&single) {
        assert!(distance(&widen(together), &widen(single)) < 1e-6);
    }
}

#[test]
fn bad_input_is_named() {
    for device in std::iter::once(&cpu()).chain(gpus()) {
        bad_input(device);
    }
}

fn bad_input(device: &Device) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (x, s) =
        (points(Set::Uniform, 9, &[1.0, 1.0], &mut rng), points(Set::Uniform, 7, &[1.0, 1.0], &mut rng));
    let error = |x: &Array2<f64>, s: &Array2<f64>, tolerance: f64, upsampling: Option<f64>| {
        let plan = || {
            let (x, s) =
                (Coordinates::rows("positions", x.view())?, Coordinates::rows("frequencies", s.view())?);
            Type3::<f32>::new(device, x, s, &Options { tolerance, upsampling })
        };
        plan().err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(error(&x, &s, 1e-3, None), "");
    assert!(error(&x, &Array2::zeros((7, 3)), 1e-3, None).contains("frequencies"));
    assert!(error(&Array2::zeros((0, 2)), &s, 1e-3, None).contains("positions"));
    assert!(error(&Array2::zeros((2, 4)), &s, 1e-3, None).contains("1 to 3"));
    assert!(error(&x, &(&s * f64::NAN), 1e-3, None).contains("frequencies"));
    assert!(error(&(&x * 1e6), &(&s * 1e4), 1e-3, None).contains("half-width"));
    assert!(error(&(&x * 1e2), &(&s * 1e4), 1e-3, None).contains("memory"));
    assert!(error(&(&x * 1e300), &(&s * 1e300), 1e-3, None).contains("half-width"));
    assert!(error(&x, &s, 1e-9, None).contains("tolerance"));
    assert!(error(&x, &s, f64::NAN, None).contains("tolerance"));
    assert!(error(&x, &s, 1e-3, Some(3.0)).contains("upsampling"));
    let plan = Type3::<f32>::new(device, rows(&x), rows(&s), &Options::tolerance(1e-3)).unwrap();
    let array = |shape: &[usize]| Array::<Complex<f32>>::zeros(device, shape).unwrap();
    assert!(plan.forward(&array(&[2, 9]), &mut array(&[2, 7])).is_ok());
    assert!(plan.forward(&array(&[9]), &mut array(&[8])).is_err());
    assert!(plan.adjoint(&array(&[2, 7]), &mut array(&[3, 9])).is_err());
    assert!(plan.adjoint(&array(&[]), &mut array(&[9])).is_err());
    let other = Device::cpu_with_threads(1).unwrap();
    assert!(plan.forward(&Array::zeros(&other, &[9]).unwrap(), &mut array(&[7])).is_err());
}
