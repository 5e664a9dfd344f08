//! Every operator obeys the laws, on several shapes, in both precisions; and what is no operator is found
//! out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::laws::{self, Violation, check, check_positive, check_unitary};
use rayspin_linop::*;

/// Runs a test body for f32 and for f64.
macro_rules! both {
    ($name:ident, $body:ident) => {
        #[test]
        fn $name() {
            let device = Device::cpu_with_threads(2).unwrap();
            $body::<f32>(&device);
            $body::<f64>(&device);
        }
    };
}

const SHAPES: [&[usize]; 7] = [&[1], &[7], &[1, 1, 1], &[6, 5], &[1, 9, 8], &[5, 1, 11], &[4, 7, 13]];

fn real_weights<R: Real>(device: &Device, shape: &[usize], seed: u64) -> Array<R> {
    let values = random::<R>(device, shape, seed).unwrap();
    Array::from_vec(device, shape, values.cpu().iter().map(|v| v.re).collect()).unwrap()
}

fn checker(shape: &[usize]) -> ArrayD<bool> {
    ArrayD::from_shape_fn(IxDyn(shape), |i| (0..shape.len()).map(|a| i[a]).sum::<usize>() % 2 == 0)
}

fn with_batch(batch: usize, shape: &[usize]) -> Vec<usize> {
    [&[batch], shape].concat()
}

fn elementary<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let seed = seed as u64;
        check_unitary(&Identity::<Complex<R>>::new(shape), device, seed, laws::tolerance::<R>()).unwrap();
        let coils = with_batch(3, shape);
        for full in [shape, &coils] {
            let d = Diagonal::complex(full, random::<R>(device, shape, seed).unwrap()).unwrap();
            check(&d, device, seed).unwrap();
            let w = Diagonal::<Complex<R>>::real(full, real_weights::<R>(device, shape, seed)).unwrap();
            check(&w, device, seed).unwrap();
            let mask = SamplingMask::<R>::new(device, full, checker(shape).view()).unwrap();
            check_positive(&mask, device, seed, laws::tolerance::<R>()).unwrap();
            let twice = mask.forward(&mask.forward(&random(device, full, 9).unwrap()).unwrap()).unwrap();
            assert_eq!(twice.cpu(), mask.forward(&random(device, full, 9).unwrap()).unwrap().cpu());
        }
    }
}
both!(identity_diagonal_and_mask, elementary);

/// Operators over real numbers.
fn real<S: Scalar<Real = S> + Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let seed = seed as u64;
        let tolerance = laws::tolerance::<S>();
        let factors = |seed: u64| random_of::<S>(device, shape, seed).unwrap();
        check_unitary(&Identity::<S>::new(shape), device, seed, tolerance).unwrap();
        let diagonal = || Diagonal::<S>::complex(shape, factors(seed)).unwrap();
        check(&diagonal(), device, seed).unwrap();
        let weights = random_of::<S>(device, shape, seed).unwrap();
        check(&Diagonal::<S>::real(shape, weights).unwrap(), device, seed).unwrap();
        let differences = || FiniteDifference::<S>::new(shape).unwrap();
        check(&differences(), device, seed).unwrap();
        let edges = differences().range().to_vec();
        let weights = random_of::<S>(device, &edges, seed).unwrap();
        check(&weighted_differences::<S>(weights).unwrap(), device, seed).unwrap();
        check(&differences().compose(diagonal()).unwrap(), device, seed).unwrap();
        check(&differences().stack(diagonal().scaled(-1.5)).unwrap(), device, seed).unwrap();
        check(&diagonal().plus(Identity::new(shape)).unwrap(), device, seed).unwrap();
        check(&differences().adjoint_op(), device, seed).unwrap();
        check_positive(&differences().normal_op(), device, seed, tolerance).unwrap();
        let i: Complex<f64> = Complex::new(0.0, 1.0);
        let refused = diagonal().scaled(i).forward(&factors(1)).unwrap_err();
        assert!(refused.to_string().contains("real"), "{refused}");
    }
}
both!(operators_over_real_numbers, real);

/// Cone, parallel and fan beams; f64 on a CPU alone.
fn projections<R: Scalar<Real = R> + Real + rayspin_kernels::projection::Number>(device: &Device) {
    use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
    if size_of::<R>() == 8 && matches!(device.backend(), rayspin_device::Backend::Cuda(_)) {
        return;
    }
    for (seed, source, rows, radius_mm) in [
        (1, Some(60.0), 5, None),
        (2, None, 3, None),
        (3, Some(30.0), 1, Some(60.0)),
        (4, Some(9.0), 4, None),
    ] {
        let detector = Detector { rows, columns: 9, pitch_mm: [2.1, 1.7], radius_mm };
        let orbit = Orbit {
            source_to_axis_mm: source,
            axis_to_detector_mm: 30.0,
            advance_mm: 3.0,
            ..Orbit::default()
        };
        let geometry = ProjectionGeometry::orbit(detector, &orbit.arc(0.3, 5.0, 7)).unwrap();
        let grid = VolumeGrid::new([rows, 8, 7], [1.0, 1.2, 0.9], [0.3, -0.2, 0.1]).unwrap();
        let project = Projection::<R>::new(device, &geometry, &grid).unwrap();
        let report = check(&project, device, seed).unwrap();
        assert!(report.adjointness < 1e-6, "{report:?}");
    }
}
both!(line_integrals, projections);

fn blocks<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let seed = seed as u64;
        let block = |of: u64| {
            let values = random::<R>(device, shape, 100 * seed + of).unwrap();
            Arc::new(Diagonal::complex(shape, values).unwrap()) as Arc<dyn LinearOp<Complex<R>>>
        };
        let all: Vec<_> = (0..3).map(block).collect();
        let op = BlockDiagonal::new(all.clone()).unwrap();
        check(&op, device, seed).unwrap();
        // Each block sees its own part.
        let x = random::<R>(device, op.domain(), seed).unwrap();
        let y = op.forward(&x).unwrap();
        let len = x.len() / 3;
        for (part, block) in all.iter().enumerate() {
            let one = Array::from_slice(device, shape, &x.cpu()[part * len..(part + 1) * len]).unwrap();
            assert_eq!(block.forward(&one).unwrap().cpu(), &y.cpu()[part * len..(part + 1) * len]);
        }
    }
    let others: [Arc<dyn LinearOp<Complex<R>>>; 2] =
        [Arc::new(Identity::new(&[4])), Arc::new(Identity::new(&[5]))];
    assert!(
        BlockDiagonal::<Complex<R>>::new(others.to_vec()).is_err()
            && BlockDiagonal::<Complex<R>>::new(vec![]).is_err()
    );
}
both!(blocks_along_the_diagonal, blocks);

fn differences<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        check(&FiniteDifference::<Complex<R>>::new(shape).unwrap(), device, seed as u64).unwrap();
        let weights: Vec<f64> = (0..shape.len()).map(|axis| 0.3 + axis as f64).collect();
        let anisotropic = FiniteDifference::<Complex<R>>::new(shape).unwrap().weighted(&weights).unwrap();
        check(&anisotropic, device, seed as u64).unwrap();
        let x = random::<R>(device, shape, seed as u64).unwrap();
        let d = anisotropic.forward(&x).unwrap();
        let (size, most) =
            (vector::norm_squared(&d).unwrap(), anisotropic.bound() * vector::norm_squared(&x).unwrap());
        assert!(size <= most * (1.0 + 1e-5), "{size} {most}");
        for axis in 0..shape.len() {
            let one = FiniteDifference::<Complex<R>>::along(shape, &[axis]).unwrap();
            assert_eq!(one.range(), with_batch(1, shape));
            check(&one, device, seed as u64).unwrap();
        }
    }
}
both!(finite_differences, differences);

fn weighted<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let weights = real_weights::<R>(device, &with_batch(shape.len(), shape), seed as u64);
        let ones = weights.cpu().iter().map(|_| R::one()).collect();
        check(&weighted_differences::<Complex<R>>(weights).unwrap(), device, seed as u64).unwrap();
        let plain = Array::from_vec(device, &with_batch(shape.len(), shape), ones).unwrap();
        let x = random::<R>(device, shape, seed as u64).unwrap();
        let expected = FiniteDifference::new(shape).unwrap().forward(&x).unwrap();
        assert_eq!(
            weighted_differences::<Complex<R>>(plain).unwrap().forward(&x).unwrap().cpu(),
            expected.cpu()
        );
    }
    assert!(weighted_differences::<Complex<R>>(real_weights::<R>(device, &[3, 4, 5], 1)).is_err());
}
both!(weighted_finite_differences, weighted);

fn wavelets<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().chain([&[33, 50][..], &[17, 18, 16]]).enumerate() {
        for family in [WaveletFamily::Haar, WaveletFamily::Daubechies2] {
            let mut op = Wavelet::<R>::new(shape, family).unwrap();
            check_unitary(&op, device, seed as u64, laws::tolerance::<R>()).unwrap();
            op.set_shift(&shape.iter().map(|n| n / 2 + 1).collect::<Vec<_>>()).unwrap();
            check_unitary(&op, device, seed as u64, laws::tolerance::<R>()).unwrap();
        }
    }
    assert!(Wavelet::<R>::new(&[20], WaveletFamily::Haar).unwrap().set_shift(&[1, 2]).is_err());
}
both!(wavelets_are_unitary, wavelets);

fn sense<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        for coils in [1, 2, 8] {
            let maps = random::<R>(device, &with_batch(coils, shape), seed as u64).unwrap();
            let op = Sense::new(maps).unwrap();
            assert_eq!((op.domain(), op.range()), (shape, &with_batch(coils, shape)[..]));
            check(&op, device, seed as u64).unwrap();
        }
    }
}
both!(coil_sensitivities, sense);

fn soft_sense<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        for (sets, coils) in [(1, 3), (2, 1), (2, 5)] {
            let maps =
                random::<R>(device, &with_batch(sets, &with_batch(coils, shape)), seed as u64).unwrap();
            let op = SoftSense::new(&maps).unwrap();
            assert_eq!(op.domain(), with_batch(sets, shape));
            assert_eq!(op.range(), with_batch(coils, shape));
            check(&op, device, seed as u64).unwrap();
            if sets == 1 {
                let plain = Sense::new(maps.reshape(&with_batch(coils, shape)).unwrap()).unwrap();
                let image = random::<R>(device, shape, 7).unwrap();
                let wanted = plain.forward(&image).unwrap();
                let found = op.forward(&image.reshape(&with_batch(1, shape)).unwrap()).unwrap();
                assert_eq!(found.cpu(), wanted.cpu());
            }
        }
    }
    assert!(SoftSense::<R>::new(&random(device, &[3], 1).unwrap()).is_err());
    assert!(SoftSense::<R>::new(&random(device, &[0, 2, 3], 1).unwrap()).is_err());
}
both!(sets_of_coil_sensitivities, soft_sense);

fn fourier<R: Real>(device: &Device) {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        for batch in [&[][..], &[3], &[2, 2]] {
            let op = Fourier::<R>::new(device, batch, shape).unwrap();
            check_unitary(&op, device, seed as u64, laws::tolerance::<R>()).unwrap();
        }
    }
}
both!(fourier_is_unitary, fourier);

fn compositions<R: Real>(device: &Device) {
    let shape = [4, 7, 6];
    let coils = with_batch(3, &shape);
    let mask = || SamplingMask::<R>::new(device, &coils, checker(&shape).view()).unwrap();
    let fourier = || Fourier::<R>::new(device, &[3], &shape).unwrap();
    let sense = || Sense::new(random::<R>(device, &coils, 5).unwrap()).unwrap();
    let gradient = || FiniteDifference::<Complex<R>>::new(&shape).unwrap();
    let encode = || mask().compose(fourier()).unwrap().compose(sense()).unwrap();
    assert_eq!(encode().name(), "sampling mask ∘ Fourier ∘ SENSE");
    check(&encode(), device, 1).unwrap();

    let i = Complex::new(0.0, 1.0);
    check(&encode().scaled(i * 2.5), device, 2).unwrap();
    check(&encode().plus(sense().scaled(i)).unwrap(), device, 3).unwrap();
    let stacked = encode().stack(gradient().scaled(0.3)).unwrap();
    assert_eq!(stacked.range(), [2 * 3 * 168]);
    check(&stacked, device, 4).unwrap();
    check(&encode().adjoint_op(), device, 5).unwrap();
    check_positive(&encode().normal_op(), device, 6, laws::tolerance::<R>()).unwrap();
    let sum = Sum::new(vec![
        (2.0.into(), std::sync::Arc::new(encode().normal_op()) as Op<Complex<R>>),
        (0.1.into(), std::sync::Arc::new(gradient().normal_op())),
        ((-i) * 0.5, std::sync::Arc::new(Identity::new(&shape))),
    ]);
    check(&sum.unwrap(), device, 7).unwrap();

    // Shared and unsized operators compose like any other.
    let shared: Op<Complex<R>> = std::sync::Arc::new(sense());
    check(&fourier().compose(shared.clone()).unwrap(), device, 8).unwrap();
    check(shared.as_ref(), device, 9).unwrap();

    assert!(sense().compose(fourier()).is_err());
    let error = sense().plus(Identity::new(&shape)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "SENSE + identity: range of identity: expected shape [3, 4, 7, 6], found [4, 7, 6]"
    );
    assert!(sense().stack(Identity::new(&coils)).is_err());
    assert!(Sum::<Complex<R>>::new(vec![]).is_err());
    assert!(Stack::<Complex<R>>::new(vec![]).is_err());
}
both!(composed_operators, compositions);

fn composition_is_one_after_the_other<R: Real>(device: &Device) {
    let shape = [5, 6];
    let maps = random::<R>(device, &[2, 5, 6], 1).unwrap();
    let sense = Sense::new(maps).unwrap();
    let x = random::<R>(device, &shape, 2).unwrap();
    let fourier = Fourier::<R>::new(device, &[2], &shape).unwrap();
    let by_hand = fourier.forward(&sense.forward(&x).unwrap()).unwrap();
    let composed = fourier.compose(sense).unwrap();
    assert_eq!(composed.forward(&x).unwrap().cpu(), by_hand.cpu());
    let stack = Identity::new(&shape).stack(Identity::new(&shape).scaled(2.0)).unwrap();
    let y = stack.forward(&x).unwrap();
    assert_eq!(&y.cpu()[..30], x.cpu());
    assert_eq!(y.cpu()[31], x.cpu()[1] + x.cpu()[1]);
    let sum = Identity::new(&shape).plus(Identity::new(&shape).scaled(2.0)).unwrap();
    let three = sum.forward(&x).unwrap();
    assert!((three.cpu()[7] - x.cpu()[7] * R::from_u8(3).unwrap()).norm() < R::from_f32(1e-5).unwrap());
}
both!(values_of_compositions, composition_is_one_after_the_other);

/// An operator whose faults can be chosen.
struct Faulty {
    shape: [usize; 1],
    fault: &'static str,
}

impl LinearOp<Complex<f64>> for Faulty {
    fn name(&self) -> &str {
        self.fault
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<f64>>, y: &mut Array<Complex<f64>>) -> Result<()> {
        if self.fault == "fails" {
            return Err(Error::Interrupted);
        }
        y.copy_from(x)?;
        match self.fault {
            "offset" => y.cpu_mut()[3] += 1e-6,
            "magnitude" => y.cpu_mut()[3].im = y.cpu()[3].im.abs(),
            "conjugate" => y.cpu_mut()[3].im *= -1.0,
            "unwritten" => y.cpu_mut()[3].re = f64::NAN,
            _ => {}
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<Complex<f64>>, x: &mut Array<Complex<f64>>) -> Result<()> {
        x.copy_from(y)?;
        if self.fault == "adjoint" {
            x.cpu_mut()[3] *= 1.0 + 1e-9;
        }
        Ok(())
    }
    fn normal_into(&self, x: &Array<Complex<f64>>, y: &mut Array<Complex<f64>>) -> Result<()> {
        y.copy_from(x)?;
        if self.fault == "normal" {
            y.cpu_mut()[3] *= 1.0 + 1e-9;
        }
        Ok(())
    }
}

#[test]
fn what_is_no_operator_is_found_out() {
    let device = Device::cpu_with_threads(1).unwrap();
    let broken = |fault| check(&Faulty { shape: [500], fault }, &device, 1).unwrap_err();
    let law = |fault| match broken(fault) {
        Violation::Law { law, .. } => law,
        other => panic!("{fault}: {other}"),
    };
    assert!(check(&Faulty { shape: [500], fault: "" }, &device, 1).is_ok());
    assert_eq!(law("offset"), "A(αx + y) = αAx + Ay");
    assert_eq!(law("magnitude"), "A(αx + y) = αAx + Ay");
    assert_eq!(law("conjugate"), "A(αx + y) = αAx + Ay");
    assert_eq!(law("unwritten"), "A(αx + y) = αAx + Ay");
    assert_eq!(law("adjoint"), "⟨Ax, y⟩ = ⟨x, Aᴴy⟩");
    assert_eq!(law("normal"), "normal = adjoint ∘ forward");
    assert!(matches!(broken("fails"), Violation::Failed { error: Error::Interrupted, .. }));
    let text = broken("adjoint").to_string();
    assert!(text.starts_with("adjoint: ⟨Ax, y⟩ = ⟨x, Aᴴy⟩ misses by"), "{text}");

    let minus = Identity::<Complex<f64>>::new(&[9]).scaled(-1.0);
    let error = check_positive(&minus, &device, 1, 1e-12).unwrap_err();
    assert!(error.to_string().contains("⟨x, Ax⟩ ≥ 0"));
    let turned = Identity::<Complex<f64>>::new(&[9]).scaled(Complex::new(0.0, 1.0));
    assert!(check_positive(&turned, &device, 1, 1e-12).is_err());
    assert!(check_unitary(&Identity::<Complex<f64>>::new(&[9]).scaled(1.1), &device, 1, 1e-12).is_err());
}

#[test]
fn mismatches_name_the_operator() {
    let device = Device::cpu_with_threads(1).unwrap();
    let sense = Sense::new(random::<f32>(&device, &[3, 4, 5], 1).unwrap()).unwrap();
    let error = sense.forward(&random(&device, &[5, 4], 1).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "SENSE: input of forward: expected shape [4, 5], found [5, 4]");
    assert!(Sense::new(random::<f32>(&device, &[3], 1).unwrap()).is_err());
    assert!(Diagonal::complex(&[4, 5], random::<f32>(&device, &[4], 1).unwrap()).is_err());
    assert!(SamplingMask::<f32>::new(&device, &[4, 5], checker(&[5, 4]).view()).is_err());
    assert!(FiniteDifference::<Complex<f32>>::along(&[4, 5], &[2]).is_err());
    for weights in [&[1.0][..], &[1.0, 0.0], &[1.0, f64::INFINITY]] {
        assert!(FiniteDifference::<Complex<f32>>::new(&[4, 5]).unwrap().weighted(weights).is_err());
    }
    let mask = SamplingMask::<f32>::new(&device, &[4, 5], checker(&[4, 5]).view()).unwrap();
    assert_eq!(mask.fraction(), 0.5);
}
