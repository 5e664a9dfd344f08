//! An algorithm of another crate: y = 3 x.

use std::fmt;

use rayspin::core::{Error, Result};
use rayspin::device::cuda::Source;
use rayspin::device::{Array, BackendKind, Device};
use rayspin::tune::variant::{Runnable, Variant, Work};
use rayspin::tune::{
    About, Algorithm, Build, Case, HostTransfer, Ladder, Own, Row, Signature, Unit, With, uniform,
};

/// The kernel.
pub(crate) static SOURCE: Source = Source {
    name: "scale",
    files: &[(
        "scale.cu",
        r#"extern "C" __global__ void scale(const float* x, float* y, unsigned long long n) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3.0f * x[i];
}
"#,
    )],
};

/// How many numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Problem(usize);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} f32", self.0)
    }
}

pub(crate) struct Data {
    x: Array<f32>,
    y: Array<f32>,
}

#[derive(Debug, Clone, Copy)]
struct Scale;

/// The algorithm with a variant for each kind of processor.
pub(crate) fn ladder() -> Box<dyn Ladder> {
    Box::new(With::new(Scale, |problem| {
        let own = Own::of("gpu-thread-each", &SOURCE, 256);
        vec![own.row(&Scale, problem).unwrap().forms(|| vec![Build::plain(&SOURCE)])]
    }))
}

impl Algorithm for Scale {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        let readme =
            "# Scale\n\ny = 3 x. `cpu-plain` is one loop, `gpu-thread-each` a thread for each number.\n";
        About { name: "scale", title: "Three times a vector", readme, unit: Unit::Bytes }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        vec![Case { name: "2^16", summary: "in the cache", problem: Problem(1 << 16) }]
    }

    fn trials(&self) -> Vec<Problem> {
        [1, 257, 1000].map(Problem).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [n @ 1..=0xffff_ffff] => Ok(Problem(n)),
            _ => Err(Error::value("size of scale", "one number from 1 to 2^32 - 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        let run = Runnable::new(|_, data: &mut Data| {
            for (y, x) in data.y.cpu_mut().iter_mut().zip(data.x.cpu()) {
                *y = 3.0 * x;
            }
            Ok(())
        });
        let run = run.host_transfer(|data| {
            Some(HostTransfer { inputs: vec![&mut data.x], outputs: vec![&mut data.y] })
        });
        let work = |p: &Problem| Work { bytes: 8.0 * p.0 as f64, flops: p.0 as f64 };
        vec![Variant::new("cpu-plain", BackendKind::Cpu, "one loop", run, work)]
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "scale",
            declaration: "\
// y[i] = 3 x[i] for n numbers.
extern \"C\" __global__ void scale(const float* x, float* y, unsigned long long n)",
            extent: |p| [p.0, 1, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let n = (data.y.len() as u64).into();
                call(data.x.device(), &mut [data.x.cuda().into(), data.y.cuda_mut().into(), n])
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let x = Array::from_vec(device, &[problem.0], uniform(device.cpu_side(), seed, problem.0)?)?;
        Ok(Data { x, y: Array::zeros(device, &[problem.0])? })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.y.fill(f32::NAN)
    }

    fn error(&self, _: &Problem, data: &Data) -> Result<f64> {
        let (x, y) = (data.x.read()?, data.y.read()?);
        let wrong = y.iter().zip(x.iter()).filter(|&(&y, &x)| y != (3.0 * f64::from(x)) as f32).count();
        Ok(wrong as f64 / y.len() as f64)
    }
}
