//! Element-wise algorithms: vectors, differences, sensitivities.

use num_complex::Complex;
use rayspin_core::{C64, Real};
use rayspin_kernels::{difference, off_resonance, sensitivity, shrink, vector, wavelet};

use super::{conform, cpu, device, narrow, poison, real, widen};

#[test]
fn vector() {
    fn precision<R: Real>() {
        let device = device();
        use vector::Operation::*;
        let operations = [Dot, NormSquared, Axpy, Xpby, Scale, Multiply, Weight, CgUpdate];
        let problems: Vec<_> = [1, 17, 4096, 70_001]
            .into_iter()
            .flat_map(|len| operations.map(|operation| vector::Problem { operation, len }))
            // The oracle adds one by one in double precision: too inexact to judge long sums that are double
            // too.
            .filter(|p| {
                let sums = matches!(p.operation, Dot | NormSquared | CgUpdate);
                !sums || R::NAME == "f32" || p.len < 100
            })
            .collect();
        let rows = vector::variants::<R>();
        conform(&format!("vector {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let cpu = cpu(&device);
            let (alpha, x, y) = (numbers.complex(1)[0], numbers.complex(p.len), numbers.complex(p.len));
            let factor: Complex<R> = narrow(&[alpha])[0];
            let (xs, ys) = (narrow::<R>(&x), narrow::<R>(&y));
            let one = |value: C64| vec![value];
            match p.operation {
                // The sum of products of random signs is small beside its terms: x with itself is not.
                Dot => vec![(one((implementation.dot)(cpu, &xs, &xs)), one(vector::reference::dot(&x, &x)))],
                NormSquared => {
                    let expected = vector::reference::norm_squared(&x);
                    vec![(one((implementation.norm_squared)(cpu, &xs).into()), one(expected.into()))]
                }
                Axpy => {
                    let mut out = ys;
                    (implementation.axpy)(cpu, factor, &xs, &mut out);
                    vec![(widen(&out), vector::reference::axpy(alpha, &x, &y))]
                }
                Xpby => {
                    let mut out = ys;
                    (implementation.xpby)(cpu, &xs, factor, &mut out);
                    vec![(widen(&out), vector::reference::xpby(&x, alpha, &y))]
                }
                Scale => {
                    let mut out = xs;
                    (implementation.scale)(cpu, factor, &mut out);
                    vec![(widen(&out), x.iter().map(|x| alpha * x).collect())]
                }
                Multiply => {
                    let (mut plain, mut conjugate) = (poison(p.len), poison(p.len));
                    (implementation.multiply)(cpu, &ys, &xs, &mut plain);
                    (implementation.multiply_conj)(cpu, &ys, &xs, &mut conjugate);
                    vec![
                        (widen(&plain), vector::reference::multiply(&y, &x)),
                        (widen(&conjugate), vector::reference::multiply_conj(&y, &x)),
                    ]
                }
                Weight => {
                    let weights = numbers.reals(p.len);
                    let narrow: Vec<R> = weights.iter().map(|&w| real(w)).collect();
                    let mut out = poison(p.len);
                    (implementation.weight)(cpu, &narrow, &xs, &mut out);
                    vec![(widen(&out), x.iter().zip(&weights).map(|(x, w)| x * w).collect())]
                }
                CgUpdate => {
                    let (p_, q) = (numbers.complex(p.len), numbers.complex(p.len));
                    let (mut found_x, mut found_r) = (xs, ys);
                    let (step, direction, image) = (real(alpha.re), narrow::<R>(&p_), narrow::<R>(&q));
                    let norm =
                        (implementation.cg_update)(cpu, step, &direction, &image, &mut found_x, &mut found_r);
                    let (x, r, n) = vector::reference::cg_update(alpha.re, &p_, &q, &x, &y);
                    vec![(widen(&found_x), x), (widen(&found_r), r), (one(norm.into()), one(n.into()))]
                }
            }
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn difference() {
    fn precision<R: Real>() {
        let device = device();
        let shapes: [&[usize]; 5] = [&[1], &[29], &[13, 8], &[1, 40], &[6, 7, 10]];
        let operations =
            [difference::Operation::Forward, difference::Operation::Adjoint, difference::Operation::Normal];
        let problem = |shape: &[usize], operation| difference::Problem { operation, shape: shape.to_vec() };
        let problems: Vec<_> =
            shapes.iter().flat_map(|shape| operations.map(|operation| problem(shape, operation))).collect();
        let rows = difference::variants::<R>();
        conform(&format!("difference {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let shape = &p.shape;
            let all: Vec<usize> = (0..shape.len()).collect();
            let step = |axis: usize| shape[axis + 1..].iter().product();
            let weights: Vec<f64> = all.iter().map(|&axis| 0.5 + axis as f64).collect();
            let axes = all.iter().map(|&axis| difference::Axis {
                size: shape[axis],
                step: step(axis),
                weight: weights[axis],
            });
            let axes: Vec<_> = axes.collect();
            let forward = |x: &[C64]| difference::reference::forward(shape, &all, &weights, x);
            let adjoint = |d: &[C64]| difference::reference::adjoint(shape, &all, &weights, d);
            let differences = p.len() * shape.len();
            let (input, output) = match p.operation {
                difference::Operation::Forward => (p.len(), differences),
                difference::Operation::Adjoint => (differences, p.len()),
                difference::Operation::Normal => (p.len(), p.len()),
            };
            let x = numbers.complex(input);
            let (apply, expected) = match p.operation {
                difference::Operation::Forward => (implementation.forward, forward(&x)),
                difference::Operation::Adjoint => (implementation.adjoint, adjoint(&x)),
                difference::Operation::Normal => (implementation.normal, adjoint(&forward(&x))),
            };
            let mut out = poison::<R>(output);
            apply(cpu(&device), &axes, &narrow(&x), &mut out);
            vec![(widen(&out), expected)]
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn sensitivity() {
    fn precision<R: Real>() {
        let device = device();
        use sensitivity::Operation::*;
        let problems: Vec<_> = [(1, 1), (3, 17), (8, 4099)]
            .into_iter()
            .flat_map(|(coils, voxels)| {
                [Expand, Combine, SumOfSquares].map(|operation| sensitivity::Problem {
                    operation,
                    coils,
                    voxels,
                })
            })
            .collect();
        let rows = sensitivity::variants::<R>();
        conform(&format!("sensitivity {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let cpu = cpu(&device);
            let all = p.coils * p.voxels;
            let (maps, images, image) =
                (numbers.complex(all), numbers.complex(all), numbers.complex(p.voxels));
            let complex = |values: &[R]| values.iter().map(|&v| C64::from(Real::to_f64(v))).collect();
            match p.operation {
                Expand => {
                    let mut out = poison::<R>(all);
                    (implementation.expand)(cpu, &narrow(&maps), &narrow(&image), &mut out);
                    vec![(widen(&out), sensitivity::reference::expand(&maps, &image))]
                }
                Combine => {
                    let expected = sensitivity::reference::combine(&maps, &images, p.voxels);
                    let mut out = poison::<R>(p.voxels);
                    (implementation.combine)(cpu, &narrow(&maps), &narrow(&images), &mut out, false);
                    let mut added = narrow::<R>(&image);
                    (implementation.combine)(cpu, &narrow(&maps), &narrow(&images), &mut added, true);
                    let sum = expected.iter().zip(&image).map(|(a, b)| a + b).collect();
                    vec![(widen(&out), expected), (widen(&added), sum)]
                }
                SumOfSquares => {
                    let expected = sensitivity::reference::sum_of_squares(&images, p.voxels);
                    let (mut squares, mut roots) = (vec![R::nan(); p.voxels], vec![R::nan(); p.voxels]);
                    (implementation.sum_of_squares)(cpu, &narrow(&images), &mut squares, false);
                    (implementation.sum_of_squares)(cpu, &narrow(&images), &mut roots, true);
                    vec![
                        (complex(&squares), expected.iter().map(|&v| v.into()).collect()),
                        (complex(&roots), expected.iter().map(|&v| v.sqrt().into()).collect()),
                    ]
                }
            }
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn off_resonance() {
    fn precision<R: Real>() {
        let device = device();
        use off_resonance::Operation::*;
        let problems: Vec<_> = [(1, 1), (3, 17), (2, 4099), (1, 70_001)]
            .into_iter()
            .flat_map(|(batch, len)| {
                [Modulate, Weigh].map(|operation| off_resonance::Problem { operation, batch, len })
            })
            .collect();
        let rows = off_resonance::variants::<R>();
        conform(&format!("off-resonance {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let cpu = cpu(&device);
            let (x, y) = (numbers.complex(p.batch * p.len), numbers.complex(p.batch * p.len));
            let (mut out, mut added) = (poison::<R>(x.len()), narrow::<R>(&y));
            let expected = match p.operation {
                Modulate => {
                    let field: Vec<f64> = numbers.reals(p.len).iter().map(|f| 256.0 * f).collect();
                    let narrow_field: Vec<R> = field.iter().map(|&f| real(f)).collect();
                    let tau = 0.0371;
                    (implementation.modulate)(cpu, &narrow_field, tau, &narrow(&x), &mut out, false);
                    (implementation.modulate)(cpu, &narrow_field, tau, &narrow(&x), &mut added, true);
                    off_resonance::reference::modulate(&field, tau, &x)
                }
                Weigh => {
                    let weights = numbers.complex(7);
                    let index: Vec<u32> = (0..p.len).map(|m| (m * m % 7) as u32).collect();
                    let by_time = narrow::<R>(&weights);
                    let narrow_weights =
                        off_resonance::Weights { by_time: &by_time, index: &index, conjugate: true };
                    (implementation.weigh)(cpu, narrow_weights, &narrow(&x), &mut out, false);
                    (implementation.weigh)(cpu, narrow_weights, &narrow(&x), &mut added, true);
                    off_resonance::reference::weigh(&weights, &index, &x, true)
                }
            };
            let sum = expected.iter().zip(&y).map(|(a, b)| a + b).collect();
            vec![(widen(&out), expected), (widen(&added), sum)]
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn shrink() {
    fn precision<R: Real>() {
        let device = device();
        use shrink::Operation::*;
        let problem = |operation, components, len| shrink::Problem { operation, components, len };
        let lens = [1, 17, 4099, 70_001].into_iter().filter(|&len| R::NAME == "f32" || len < 100);
        let problems: Vec<_> = lens
            .flat_map(|len| [problem(Soft, 1, len), problem(Clip, 3, len), problem(JointNorm, 2, len)])
            .collect();
        let rows = shrink::variants::<R>();
        conform(&format!("shrink {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let cpu = cpu(&device);
            let x = numbers.complex(p.components * p.len);
            let mut out = narrow::<R>(&x);
            match p.operation {
                Soft => {
                    let w: Vec<f64> = numbers.reals(p.len).iter().map(|w| w.abs()).collect();
                    let narrow: Vec<R> = w.iter().map(|&w| real(w)).collect();
                    let norm = (implementation.soft)(cpu, real(0.5), &narrow, &mut out);
                    let (expected, sum) = shrink::reference::soft(0.5, &w, &x);
                    vec![(widen(&out), expected), (vec![norm.into()], vec![sum.into()])]
                }
                Clip => {
                    (implementation.clip)(cpu, real(0.75), p.len, &mut out);
                    vec![(widen(&out), shrink::reference::clip(0.75, p.len, &x))]
                }
                JointNorm => {
                    let norm = (implementation.joint_norm)(cpu, p.len, &out);
                    vec![(vec![norm.into()], vec![shrink::reference::joint_norm(p.len, &x).into()])]
                }
            }
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn wavelet() {
    fn precision<R: Real>() {
        let device = device();
        let shapes: [&[usize]; 7] =
            [&[1], &[101], &[16, 40], &[33, 1], &[300, 257], &[18, 5, 17], &[35, 44, 50]];
        let families = [wavelet::Family::Haar, wavelet::Family::Daubechies2];
        let problems: Vec<_> = shapes
            .iter()
            .flat_map(|shape| families.map(|family| wavelet::Plan::new(shape, family).unwrap()))
            .collect();
        let rows = wavelet::variants::<R>();
        conform(&format!("wavelet {}", R::NAME), &rows, &problems, |implementation, plan, numbers| {
            let len = plan.shape().iter().product();
            let shift: Vec<usize> = plan.shape().iter().map(|n| n / 3 + 1).collect();
            let (x, c) = (numbers.complex(len), numbers.complex(len));
            let (mut found, mut back) = (poison::<R>(len), poison::<R>(len));
            let mut work = poison(5);
            (implementation.forward)(cpu(&device), plan, &shift, &narrow(&x), &mut found, &mut work);
            (implementation.inverse)(cpu(&device), plan, &shift, &narrow(&c), &mut back, &mut work);
            vec![
                (widen(&found), wavelet::reference::forward(plan, &shift, &x)),
                (widen(&back), wavelet::reference::inverse(plan, &shift, &c)),
            ]
        });
    }
    precision::<f32>();
    precision::<f64>();
}
