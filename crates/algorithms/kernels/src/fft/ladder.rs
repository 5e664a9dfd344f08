//! The transform as a ladder, in f32.

use std::fmt;

use rayspin_core::Result;
use rayspin_tune::{About, Call, Case, Counts, Unit};

use super::cpu::FftNd;
use super::variants::{Implementation, Problem, VARIANTS};
use super::{Direction, reference};
use crate::flat::{Data, Flat, Given, Out, Want, int, own, zyx};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        write!(f, "{} transforms of {} complex f32", self.batch, shape.join(" x "))
    }
}

/// Elements up to which all of them are compared, and how many else.
const ALL: usize = 1 << 12;
const COMPARED: u64 = 8;

fn problem(shape: &[usize], batch: usize) -> Problem {
    Problem { shape: shape.to_vec(), batch }
}

/// Forward transforms by every variant.
pub(crate) fn ladder() -> Flat<Problem, Implementation, FftNd<f32>> {
    Flat {
        about: About {
            name: "fft",
            title: "Fourier transform of images of any size",
            readme: include_str!("README.md"),
            unit: Unit::Flops,
        },
        cases: || {
            let case = |name, summary, problem| Case { name, summary, problem };
            vec![
                case("256x256x12", "a slice of twelve coils", problem(&[256, 256], 12)),
                case("128x128x128", "a volume", problem(&[128; 3], 1)),
                case("320x320", "a slice, whose sides are no powers of two", problem(&[320, 320], 1)),
                case("127x127x8", "sides that are prime", problem(&[127, 127], 8)),
                case("4096x512", "lines of 4096, which readouts are", problem(&[4096], 512)),
            ]
        },
        trials: || {
            vec![
                problem(&[1], 2),
                problem(&[127], 3),
                problem(&[33, 64], 1),
                problem(&[12, 1, 50], 2),
                problem(&[17, 8, 30], 1),
            ]
        },
        sized: |_, size| match size.split_last() {
            Some((&batch, shape)) if (1..=3).contains(&shape.len()) => Some(problem(shape, batch)),
            _ => None,
        },
        size: "one to three axes and the number of transforms, as in 256x256x12",
        counts: |_| Counts::default(),
        rows: || VARIANTS.to_vec(),
        given: |p, numbers| {
            let data = numbers.complex(p.batch * p.shape.iter().product::<usize>())?;
            Ok(Given { inputs: vec![], reals: vec![], out: Out::InPlace(data), tools: FftNd::new(&p.shape)? })
        },
        run: |implementation, cpu, _, arrays| {
            implementation(cpu, arrays.tools, arrays.out, Direction::Forward)
        },
        want: |p, held| {
            let data = held.start();
            if data.len() <= ALL {
                return Want::all(reference::dft(&data, &p.shape, Direction::Forward, false));
            }
            let item = p.shape.iter().product();
            Want::some(data.len(), COMPARED, |index| {
                reference::dft_at(&data[index / item * item..][..item], &p.shape, index % item)
            })
        },
        own: |_| own(["fft", OWN], |p| [p.batch * p.shape.iter().product::<usize>(), 1, 1], called_by),
    }
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// Fourier transforms of `count` volumes, in place: data[((b * nz + z) * ny + y) * nx + x] becomes the sum
// over all places (zz, yy, xx) of volume b of e^(-i 2 pi (x xx / nx + y yy / ny + z zz / nz)) times its
// number at (zz, yy, xx). Axes that an image lacks have size 1; sizes may be prime. Complex numbers are
// float2: real part x, imaginary part y. A relative error of 1e-6 is allowed. An axis needs all results of
// another: a list of launches has several kernels.
extern \"C\" __global__ void fft(float2* data, int count, int nz, int ny, int nx)";

fn called_by(data: &mut Data<Problem, FftNd<f32>>, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, out, .. } = data;
    let device = out.device().clone();
    let [nz, ny, nx] = zyx(&problem.shape)?;
    call(&device, &mut [out.cuda_mut().into(), int(problem.batch)?, nz, ny, nx])
}
