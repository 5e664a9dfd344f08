//! The operations as a ladder, in f32.

use std::fmt;

use rayspin_core::{C32, C64, Result};
use rayspin_device::cpu::copied;
use rayspin_tune::{About, Call, Case, Counts, Flow, Signature, Unit};

use super::reference;
use super::variants::{Implementation, Operation, Problem, variants};
use crate::flat::{Data, Flat, Given, Out, Want, own};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::Dot => "scalar product",
            Operation::NormSquared => "squared norm",
            Operation::Axpy => "axpy",
            Operation::Xpby => "xpby",
            Operation::Scale => "scaling",
            Operation::Multiply => "product",
            Operation::Weight => "real weights",
            Operation::CgUpdate => "update of conjugate gradients",
        };
        write!(f, "{name}, {} complex f32", self.len)
    }
}

/// Numbers of a case: more than a core's caches hold.
const LEN: usize = 1 << 22;

const OPERATIONS: [(&str, &str, Operation); 8] = [
    ("dot", "scalar product of two vectors", Operation::Dot),
    ("norm", "squared norm", Operation::NormSquared),
    ("axpy", "y ← αx + y", Operation::Axpy),
    ("xpby", "y ← x + βy", Operation::Xpby),
    ("scale", "x ← αx", Operation::Scale),
    ("multiply", "y ← d ⊙ x", Operation::Multiply),
    ("weight", "y ← w ⊙ x with real w", Operation::Weight),
    ("cg-update", "a step of conjugate gradients and the new norm, fused", Operation::CgUpdate),
];

/// α and β, of magnitude 1, so that repeated runs in place neither fade nor overflow.
const FACTOR: C32 = C32::new(0.6, 0.8);
const STEP: f32 = 0.6;

/// Every operation by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation<f32>> {
    Flat {
        about: About {
            name: "vector",
            title: "Sums and updates of vectors that solvers do",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        },
        cases: || {
            let case =
                |(name, summary, operation)| Case { name, summary, problem: Problem { operation, len: LEN } };
            OPERATIONS.map(case).to_vec()
        },
        trials: || {
            let each = |len| OPERATIONS.map(|(.., operation)| Problem { operation, len });
            [1, 17, 70_001].into_iter().flat_map(each).collect()
        },
        sized: |problem, size| match *size {
            [len] => Some(Problem { len, ..*problem }),
            _ => None,
        },
        size: "LENGTH",
        counts: |problem| {
            let sums = matches!(problem.operation, Operation::Dot | Operation::NormSquared);
            Counts { flow: if sums { Flow::Read } else { Flow::Copy }, ..Counts::default() }
        },
        rows: || variants().into(),
        given: |problem, numbers| {
            let n = problem.len;
            let mut vector = || numbers.complex(n);
            let (inputs, out) = match problem.operation {
                // The product of random vectors is small beside its terms. The product of a vector with
                // itself is not.
                Operation::Dot => {
                    let x = vector()?;
                    (vec![copied("second vector", &x)?, x], Out::Fresh(1))
                }
                Operation::NormSquared => (vec![vector()?], Out::Fresh(1)),
                Operation::Axpy | Operation::Xpby => (vec![vector()?], Out::InPlace(vector()?)),
                Operation::Scale => (vec![], Out::InPlace(vector()?)),
                Operation::Multiply => (vec![vector()?, vector()?], Out::Fresh(n)),
                Operation::Weight => (vec![vector()?], Out::Fresh(n)),
                // x, r and ‖r‖.
                Operation::CgUpdate => {
                    let inputs = vec![vector()?, vector()?];
                    (inputs, Out::InPlace(numbers.complex(2 * n + 1)?))
                }
            };
            let weighted = problem.operation == Operation::Weight;
            Ok(Given { inputs, reals: numbers.reals(if weighted { n } else { 0 })?, out, tools: () })
        },
        run: |implementation, cpu, problem, arrays| {
            let (inputs, out) = (&arrays.inputs, arrays.out);
            let narrow = |sum: C64| C32::new(sum.re as f32, sum.im as f32);
            match problem.operation {
                Operation::Dot => out[0] = narrow((implementation.dot)(cpu, inputs[0], inputs[1])),
                Operation::NormSquared => {
                    out[0] = narrow((implementation.norm_squared)(cpu, inputs[0]).into())
                }
                Operation::Axpy => (implementation.axpy)(cpu, FACTOR, inputs[0], out),
                Operation::Xpby => (implementation.xpby)(cpu, inputs[0], FACTOR, out),
                Operation::Scale => (implementation.scale)(cpu, FACTOR, out),
                Operation::Multiply => (implementation.multiply)(cpu, inputs[0], inputs[1], out),
                Operation::Weight => (implementation.weight)(cpu, arrays.reals, inputs[0], out),
                Operation::CgUpdate => {
                    let (x, rest) = out.split_at_mut(problem.len);
                    let (r, norm) = rest.split_at_mut(problem.len);
                    let squared = (implementation.cg_update)(cpu, STEP, inputs[0], inputs[1], x, r);
                    norm[0] = narrow(squared.sqrt().into());
                }
            }
            Ok(())
        },
        want: |problem, held| {
            let factor = C64::new(FACTOR.re.into(), FACTOR.im.into());
            let (x, start) = (|| held.wide(0), || held.start());
            Want::all(match problem.operation {
                Operation::Dot => vec![reference::dot(&x(), &x())],
                Operation::NormSquared => vec![reference::norm_squared(&x()).into()],
                Operation::Axpy => reference::axpy(factor, &x(), &start()),
                Operation::Xpby => reference::xpby(&x(), factor, &start()),
                Operation::Scale => start().iter().map(|x| factor * x).collect(),
                Operation::Multiply => reference::multiply(&x(), &held.wide(1)),
                Operation::Weight => {
                    x().iter().zip(held.reals.iter()).map(|(x, &w)| x * f64::from(w)).collect()
                }
                Operation::CgUpdate => {
                    let start = start();
                    let (old, rest) = start.split_at(problem.len);
                    let residual = &rest[..problem.len];
                    let (x, r, squared) =
                        reference::cg_update(STEP.into(), &x(), &held.wide(1), old, residual);
                    [x, r, vec![squared.sqrt().into()]].concat()
                }
            })
        },
        own: own_kernel,
    }
}

type LadderData = Data<Problem, ()>;

/// Declarations of a user's own kernels.
const OWN_DOT: &str = "\
// sum[0] = the sum over i < n of conj(x[i]) * y[i], as complex numbers (float2: real part x, imaginary part
// y). sum[0] is 0 before. Its relative error may be 4.8e-7: add up in double, or sums of parts.
extern \"C\" __global__ void vector_dot(const float2* x, const float2* y, unsigned long long n, float2* sum)";
const OWN_NORM: &str = "\
// sum[0] = (the sum over i < n of |x[i]|^2, 0). Complex numbers are float2: real part x, imaginary part y.
// sum[0] is 0 before. Its relative error may be 4.8e-7: add up in double, or sums of parts.
extern \"C\" __global__ void vector_norm(const float2* x, unsigned long long n, float2* sum)";
const OWN_AXPY: &str = "\
// y[i] = alpha * x[i] + y[i] for i < n, as complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void vector_axpy(float2 alpha, const float2* x, float2* y, unsigned long long n)";
const OWN_XPBY: &str = "\
// y[i] = x[i] + beta * y[i] for i < n, as complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void vector_xpby(const float2* x, float2 beta, float2* y, unsigned long long n)";
const OWN_SCALE: &str = "\
// x[i] = alpha * x[i] for i < n, as complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void vector_scale(float2 alpha, float2* x, unsigned long long n)";
const OWN_MULTIPLY: &str = "\
// y[i] = d[i] * x[i] for i < n, as complex numbers (float2: real part x, imaginary part y).
extern \"C\" __global__ void vector_multiply(const float2* d, const float2* x, float2* y, unsigned long long n)";
const OWN_WEIGHT: &str = "\
// y[i] = w[i] * x[i] for i < n, with real w and complex x and y (float2: real part x, imaginary part y).
extern \"C\" __global__ void vector_weight(const float* w, const float2* x, float2* y, unsigned long long n)";
const OWN_CG_UPDATE: &str = "\
// A step of conjugate gradients. Complex numbers are float2: real part x, imaginary part y. s holds n numbers
// of the solution, n of the residual, and one for the norm. For i < n: s[i] += alpha * p[i] and
// s[n + i] -= alpha * q[i]. Then s[2 * n] = (the square root of the sum of the new |s[n + i]|^2, 0), to a
// relative error of 4.8e-7. The sum needs all residuals: a list of launches has several kernels.
extern \"C\" __global__ void vector_cg_update(float alpha, const float2* p, const float2* q, float2* s, unsigned long long n)";

/// A kernel of a user's own.
fn own_kernel(problem: &Problem) -> Option<Signature<Problem, LadderData>> {
    let names = match problem.operation {
        Operation::Dot => ["vector_dot", OWN_DOT],
        Operation::NormSquared => ["vector_norm", OWN_NORM],
        Operation::Axpy => ["vector_axpy", OWN_AXPY],
        Operation::Xpby => ["vector_xpby", OWN_XPBY],
        Operation::Scale => ["vector_scale", OWN_SCALE],
        Operation::Multiply => ["vector_multiply", OWN_MULTIPLY],
        Operation::Weight => ["vector_weight", OWN_WEIGHT],
        Operation::CgUpdate => ["vector_cg_update", OWN_CG_UPDATE],
    };
    let extent = |p: &Problem| match p.operation {
        Operation::Dot | Operation::NormSquared => [1; 3],
        _ => [p.len, 1, 1],
    };
    own(names, extent, called_by)
}

fn called_by(data: &mut LadderData, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, reals, out, .. } = data;
    let device = out.device().clone();
    if matches!(problem.operation, Operation::Dot | Operation::NormSquared) {
        out.fill(C32::default())?;
    }
    let (input, n) = (|index: usize| inputs[index].cuda().into(), (problem.len as u64).into());
    let out = out.cuda_mut().into();
    match problem.operation {
        Operation::Dot => call(&device, &mut [input(0), input(1), n, out]),
        Operation::NormSquared => call(&device, &mut [input(0), n, out]),
        Operation::Axpy => call(&device, &mut [FACTOR.into(), input(0), out, n]),
        Operation::Xpby => call(&device, &mut [input(0), FACTOR.into(), out, n]),
        Operation::Scale => call(&device, &mut [FACTOR.into(), out, n]),
        Operation::Multiply => call(&device, &mut [input(0), input(1), out, n]),
        Operation::Weight => call(&device, &mut [reals.cuda().into(), input(0), out, n]),
        Operation::CgUpdate => call(&device, &mut [STEP.into(), input(0), input(1), out, n]),
    }
}
