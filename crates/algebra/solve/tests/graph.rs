//! Conjugate gradients on every device, with and without recorded iterations: the same numbers, few calls,
//! the same errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;

use ndarray::Array2;
use num_complex::Complex;
use rayspin_core::{C32, Error, Monitor, Real, Result, Trajectory};
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_kernels::{nudft, toeplitz, vector};
use rayspin_linop::{
    Diagonal, FiniteDifference, LinearOp, OffResonanceToeplitz, SenseToeplitz, ToeplitzNormal, random,
};
use rayspin_solve::{
    CgOptions, CgResult, LeastSquaresOptions, Regularisation, Step, Watch, cg, least_squares,
};

/// The devices to test on, recording what is repeated three times: not worth it, but the same.
fn devices() -> Vec<Device> {
    let devices = rayspin_emu::devices().unwrap();
    devices.iter().for_each(|device| graphs(device, true));
    devices
}

fn graphs(device: &Device, yes: bool) {
    if let Backend::Cuda(cuda) = device.backend() {
        cuda.allow_graphs(yes);
    }
}

/// The iteration as it is written, every scalar on the host.
fn plain<R: Real>(
    normal: &dyn LinearOp<Complex<R>>,
    rhs: &Array<Complex<R>>,
    iterations: usize,
) -> (Vec<Complex<R>>, Vec<f64>) {
    let (mut x, mut q) = (rhs.try_clone().unwrap(), rhs.try_clone().unwrap());
    vector::scale(0.0.into(), &mut x).unwrap();
    let (mut r, mut p) = (rhs.try_clone().unwrap(), rhs.try_clone().unwrap());
    let mut rho = vector::norm_squared(&r).unwrap();
    let size = rho.sqrt();
    let mut residuals = vec![1.0];
    for _ in 0..iterations {
        normal.forward_into(&p, &mut q).unwrap();
        let alpha = rho / vector::dot(&p, &q).unwrap().re;
        let next = vector::cg_update(alpha, &p, &q, &mut x, &mut r).unwrap();
        vector::xpby(&r, (next / rho).into(), &mut p).unwrap();
        rho = next;
        residuals.push(rho.sqrt() / size);
    }
    (x.to_vec().unwrap(), residuals)
}

fn sense(device: &Device, n: usize, coils: usize) -> SenseToeplitz<f32> {
    let points = Array2::from_shape_fn((9 * n, 2), |(i, d)| {
        let (r, angle) = ((i % n) as f64 - n as f64 / 2.0, (i / n) as f64 * 1.941_6);
        [r * angle.cos(), r * angle.sin()][d]
    });
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let maps = random::<f32>(device, &[coils, n, n], 3).unwrap();
    let toeplitz = ToeplitzNormal::exact(device, &[], &trajectory, None, &[n, n]).unwrap();
    SenseToeplitz::new(maps, toeplitz.toeplitz().clone()).unwrap()
}

/// An operator that makes an array each time it is applied.
struct Allocates<T>(T);

impl<T: LinearOp<Complex<f32>>> LinearOp<Complex<f32>> for Allocates<T> {
    fn name(&self) -> &str {
        "an operator that allocates"
    }
    fn domain(&self) -> &[usize] {
        self.0.domain()
    }
    fn range(&self) -> &[usize] {
        self.0.range()
    }
    fn forward_into(&self, x: &Array<C32>, y: &mut Array<C32>) -> Result<()> {
        let own = x.try_clone()?;
        self.0.forward_into(&own, y)
    }
    fn adjoint_into(&self, y: &Array<C32>, x: &mut Array<C32>) -> Result<()> {
        self.forward_into(y, x)
    }
}

fn options(max_iterations: usize, tolerance: f64) -> CgOptions {
    CgOptions { max_iterations, tolerance }
}

#[test]
fn iterates_are_those_of_the_plain_iteration_bit_for_bit() {
    for device in devices() {
        let on_gpu = matches!(device.backend(), Backend::Cuda(_));
        let normal = sense(&device, 15, 3);
        let rhs = random::<f32>(&device, &[15, 15], 7).unwrap();
        let (expected, residuals) = plain(&normal, &rhs, 9);
        let what = device.describe();
        let same = |found: CgResult<Complex<f32>>, replayed: usize| {
            assert_eq!(found.solution.to_vec().unwrap(), expected, "{what}");
            assert_eq!((&found.residuals, found.iterations), (&residuals, 9), "{what}");
            assert_eq!(found.replayed, if on_gpu { replayed } else { 0 }, "{what}");
        };
        let run = |normal: &dyn LinearOp<Complex<f32>>| {
            cg(normal, &rhs, None, &options(9, 0.0), &Monitor::silent()).unwrap()
        };
        same(run(&normal), 8);
        same(run(&Allocates(sense(&device, 15, 3))), 0);
        graphs(&device, false);
        same(run(&normal), 0);
        graphs(&device, true);
        // Iterates are shown as they are, though more than one may be asked for at once.
        let mut seen = Vec::new();
        let silent = Monitor::silent();
        same(
            cg(
                &normal,
                &rhs,
                None,
                &options(9, 0.0),
                Watch::from(&silent).with_observer(&mut |step| {
                    assert_eq!(step.residual, residuals[step.iteration]);
                    seen.push(step.solution.to_vec()?);
                    Ok(())
                }),
            )
            .unwrap(),
            8,
        );
        assert_eq!(seen.len(), 9);
        assert_eq!(seen[3], plain(&normal, &rhs, 4).0);
    }
}

#[test]
fn runs_end_where_they_would_without_looking_ahead() {
    for device in devices() {
        let what = device.describe();
        let diagonal = |values: &[f32]| {
            let factors = values.iter().map(|&v| v.into()).collect();
            let factors = Array::from_vec(&device, &[values.len()], factors).unwrap();
            Diagonal::<Complex<f32>>::complex(&[values.len()], factors).unwrap()
        };
        let both = |normal: &dyn LinearOp<Complex<f32>>, rhs: &Array<C32>, options: CgOptions| {
            let [with, without, watched] = [0, 1, 2].map(|how| {
                graphs(&device, how != 1);
                let silent = Monitor::silent();
                let mut nothing = |_: &Step<'_, Complex<f32>>| Ok(());
                let watch = Watch::from(&silent);
                let watch = if how == 2 { watch.with_observer(&mut nothing) } else { watch };
                cg(normal, rhs, None, &options, watch)
            });
            for other in [without, watched] {
                match (&with, other) {
                    (Ok(a), Ok(b)) => {
                        assert_eq!(a.residuals, b.residuals, "{what}");
                        assert_eq!((a.iterations, a.converged), (b.iterations, b.converged), "{what}");
                        assert_eq!(a.solution.to_vec().unwrap(), b.solution.to_vec().unwrap(), "{what}");
                    }
                    (Err(a), Err(b)) => assert_eq!(a, &b, "{what}"),
                    (a, b) => panic!("{what}: {a:?}, {b:?}"),
                }
            }
            with
        };
        // The tolerance is met long before the last iteration that may be.
        let values: Vec<f32> = (0..40).map(|i| 1.0 + i as f32).collect();
        let rhs = random::<f32>(&device, &[40], 5).unwrap();
        let (_, residuals) = plain(&diagonal(&values), &rhs, 40);
        let needed = residuals.iter().position(|&r| r <= 1e-3).unwrap();
        let found = both(&diagonal(&values), &rhs, options(200, 1e-3)).unwrap();
        assert!(found.converged && found.iterations == needed && needed > 5, "{what}: {needed}");
        assert_eq!(found.residuals, residuals[..=needed]);
        assert_eq!(found.solution.to_vec().unwrap(), plain(&diagonal(&values), &rhs, needed).0);
        // Beyond the precision: residuals are computed anew and iteration goes on from there, as long as that
        // helps.
        let found = both(&diagonal(&values), &rhs, options(500, 0.0)).unwrap();
        assert!(!found.converged && found.iterations < 200, "{what}: {}", found.iterations);
        // A vanishes along a direction that b has.
        let singular: Vec<f32> = (0..40).map(|i| if i < 30 { 1.0 + i as f32 } else { 0.0 }).collect();
        let found = both(&diagonal(&singular), &rhs, options(200, 1e-30)).unwrap();
        assert!(!found.converged && found.iterations < 200, "{what}: {}", found.iterations);
        assert!(vector::norm_squared(&found.solution).unwrap().is_finite(), "{what}");
        // Not positive, not Hermitian, not finite.
        let mut negative = values.clone();
        negative[17] = -2.0;
        let error = both(&diagonal(&negative), &rhs, options(200, 1e-6)).unwrap_err();
        assert!(error.to_string().contains("not positive semidefinite"), "{what}: {error}");
        let turned = diagonal(&values).scaled(Complex::new(1.0, 0.3));
        let error = both(&turned, &rhs, options(200, 1e-6)).unwrap_err();
        assert!(error.to_string().contains("not Hermitian"), "{what}: {error}");
        let mut endless = values.clone();
        endless[3] = f32::INFINITY;
        assert!(matches!(both(&diagonal(&endless), &rhs, options(200, 1e-6)), Err(Error::Numerical { .. })));
        graphs(&device, true);
    }
}

#[test]
fn regularised_least_squares_are_recorded_whole() {
    for device in devices() {
        let normal = sense(&device, 12, 2);
        let smooth = FiniteDifference::new(&[12, 12]).unwrap().normal_op();
        let rhs = random::<f32>(&device, &[12, 12], 9).unwrap();
        let options = LeastSquaresOptions { cg: options(8, 0.0), ..LeastSquaresOptions::default() };
        let run = |yes: bool| {
            graphs(&device, yes);
            least_squares(
                &normal,
                &rhs,
                None,
                Regularisation::new(1e-3, &[&smooth]),
                &options,
                &Monitor::silent(),
            )
            .unwrap()
            .cg
        };
        let (without, with) = (run(false), run(true));
        assert_eq!(with.solution.to_vec().unwrap(), without.solution.to_vec().unwrap());
        assert_eq!(with.residuals, without.residuals);
        let wanted = if matches!(device.backend(), Backend::Cuda(_)) { 7 } else { 0 };
        assert_eq!((with.replayed, without.replayed), (wanted, 0), "{}", device.describe());
        let mut last = None;
        let silent = Monitor::silent();
        let watched = least_squares(
            &normal,
            &rhs,
            None,
            Regularisation::new(1e-3, &[&smooth]),
            &options,
            Watch::from(&silent).with_observer(&mut |step| {
                last = Some(step.solution.to_vec()?);
                Ok(())
            }),
        );
        assert_eq!(watched.unwrap().cg.replayed, wanted);
        assert_eq!(last.unwrap(), with.solution.to_vec().unwrap());
    }
}

/// Spectra that come to the GPU one after another are copied: no recording, the same image, and nothing is
/// lost.
#[test]
fn spectra_that_come_and_go_are_not_recorded() {
    let (n, count) = (8, 4);
    let points = Array2::from_shape_fn((60, 2), |(i, d)| ((i * (7 + 6 * d)) % 61) as f64 / 8.0 - 3.8);
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let moments: Vec<f64> = (0..count).map(|i| 1e-3 * i as f64).collect();
    for device in devices() {
        let what = device.describe();
        let on_gpu = matches!(device.backend(), Backend::Cuda(_));
        let rhs = random::<f32>(&device, &[n, n], 4).unwrap();
        let run = |resident: Option<usize>| {
            let mut q = Array::zeros(&device, &[2 * n, 2 * n]).unwrap();
            nudft::q::<f32>(&trajectory, None, &[n, n], &mut q).unwrap();
            let mut series = toeplitz::Series::new(&device, &[n, n], count, resident).unwrap();
            for i in 0..count {
                vector::scale((1.0 / (1.0 + i as f64)).into(), &mut q).unwrap();
                series.push(toeplitz::Toeplitz::from_kernel(&device, &[n, n], &q).unwrap()).unwrap();
            }
            let field = Array::from_vec(&device, &[n, n], (0..n * n).map(|i| i as f32).collect()).unwrap();
            let normal = OffResonanceToeplitz::new(&[], &moments, series, field).unwrap();
            let twice =
                [0, 1].map(|_| cg(&normal, &rhs, None, &options(6, 0.0), &Monitor::silent()).unwrap());
            twice.map(|found| (found.solution.to_vec().unwrap(), found.replayed))
        };
        let [(expected, replayed), again] = run(None);
        assert_eq!(replayed, if on_gpu { 5 } else { 0 }, "{what}");
        assert_eq!(again.0, expected, "{what}");
        for resident in 1..count {
            for (found, replayed) in run(Some(resident)) {
                assert_eq!((found == expected, replayed), (true, 0), "{what}: {resident}");
            }
        }
    }
}

fn rig() -> (Arc<Faulty>, Device) {
    let driver = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
    let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(1).unwrap());
    graphs(&device, true);
    (driver, device)
}

#[test]
fn an_iteration_is_two_calls_and_a_wait_and_allocates_nothing() {
    let (driver, device) = rig();
    let normal = sense(&device, 12, 2);
    let rhs = random::<f32>(&device, &[12, 12], 7).unwrap();
    let counts = |iterations: usize| {
        driver.set(Fault::Never);
        cg(&normal, &rhs, None, &options(iterations, 0.0), &Monitor::silent()).unwrap();
        driver.counts()
    };
    // Ten iterations more: the calls of one, times ten.
    let more = |few: usize, many: usize| {
        let (few, many) = (counts(few), counts(many));
        let name = |(name, count): (&&'static str, &u64)| {
            let more = count - few.get(*name).copied().unwrap_or(0);
            (more > 0).then_some((*name, more))
        };
        many.iter().filter_map(name).collect::<Vec<_>>()
    };
    counts(8);
    assert_eq!(more(8, 18), [("download_in_order", 10), ("launch_graph", 10), ("wait", 10)]);
    graphs(&device, false);
    let plain = more(8, 18);
    let launches = plain.iter().find(|(name, _)| *name == "launch").unwrap().1;
    // How many blocks fit is asked of the driver, not of the device.
    assert_eq!(plain, [("download_in_order", 10), ("launch", launches), ("occupancy", 10), ("wait", 10)]);
    assert!(launches > 50, "{launches}");
}

/// Whichever call fails, while work is recorded or repeated or otherwise: an error that names it, or the
/// right image; and the right image afterwards.
#[test]
fn a_call_that_fails_ends_the_recording_and_is_told() {
    let (driver, device) = rig();
    let normal = Diagonal::<Complex<f32>>::real(
        &[6],
        Array::from_vec(&device, &[6], vec![1.0, 2.0, 3.0, 4.5, 5.0, 7.0]).unwrap(),
    )
    .unwrap();
    let rhs = random::<f32>(&device, &[6], 2).unwrap();
    let run = || cg(&normal, &rhs, None, &options(5, 0.0), &Monitor::silent());
    let expected = run().unwrap().solution.to_vec().unwrap();
    driver.set(Fault::Never);
    assert_eq!(run().unwrap().replayed, 4);
    let calls = driver.calls();
    let mut told = std::collections::BTreeSet::new();
    for number in 0..calls {
        for sticky in [false, true] {
            driver.set(Fault::Call { number, sticky });
            let found = run();
            let failed = driver.failed();
            driver.set(Fault::Never);
            match found {
                Ok(found) => assert_eq!(found.solution.to_vec().unwrap(), expected, "{number}: {failed:?}"),
                Err(Error::Device { what, detail }) => {
                    let text = format!("{what}: {detail}");
                    assert!(text.contains(failed[0]), "{number}: {failed:?}, {text}");
                    told.insert(failed[0]);
                }
                Err(error) => panic!("{number}: {error}"),
            }
            let again = run().unwrap();
            assert_eq!(again.solution.to_vec().unwrap(), expected, "{number}: {failed:?}");
            assert_eq!(again.replayed, 4, "{number}: {failed:?}");
        }
    }
    for name in
        ["begin_recording", "end_recording", "launch_graph", "launch", "download_in_order", "allocate"]
    {
        assert!(told.contains(name), "{name}: {told:?}");
    }
    // If memory runs out in an operator that allocates, the error says so.
    let allocates =
        Allocates(Diagonal::<Complex<f32>>::real(&[6], Array::zeros(&device, &[6]).unwrap()).unwrap());
    let allocates = allocates.plus(FiniteDifference::new(&[6]).unwrap().normal_op()).unwrap();
    driver.set(Fault::Memory { after: 100, bytes: 0 });
    let found = cg(&allocates, &rhs, None, &options(50, 0.0), &Monitor::silent());
    assert!(matches!(found, Err(Error::Memory { .. })), "{found:?}");
    driver.set(Fault::Never);
    assert_eq!(run().unwrap().replayed, 4);
}

/// By default, iterations are recorded only if enough of them are left to make up for the recording.
#[test]
fn a_hundred_iterations_to_come_are_recorded_and_a_few_are_not() {
    let device = Emulator::device().unwrap();
    let eigenvalues: Vec<f32> = (0..400).map(|i| 1.0 + i as f32).collect();
    let normal =
        Diagonal::<Complex<f32>>::real(&[400], Array::from_vec(&device, &[400], eigenvalues).unwrap())
            .unwrap();
    let rhs = random::<f32>(&device, &[400], 3).unwrap();
    let run = |iterations| cg(&normal, &rhs, None, &options(iterations, 0.0), &Monitor::silent()).unwrap();
    // The first iteration is never part of a recording.
    assert_eq!((run(20).replayed, run(100).replayed), (0, 0));
    assert_eq!(run(101).replayed, 100);
}
