//! Ladders whose variants are CPU functions on flat arrays of f32. A [`Flat`] describes one such ladder.

use std::borrow::Cow;
use std::fmt::Display;

use num_complex::Complex32;
use rayspin_core::{C64, Error, Result, voxels};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Cpu, Device};
use rayspin_tune::input::{bits, filled, signed_unit};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, HostTransfer, Row, Runnable, Signature, TransferArray,
};

use crate::variant::Variant;

/// A ladder with problems `P` and implementations `I`. `T` holds helpers: a plan, or lists.
pub(crate) struct Flat<P: 'static, I: 'static, T: 'static = ()> {
    pub(crate) about: About,
    pub(crate) cases: fn() -> Vec<Case<P>>,
    pub(crate) trials: fn() -> Vec<P>,
    /// A problem in another size; its numbers are at least 1 each. `None` if there are too few or too many
    /// numbers.
    pub(crate) sized: fn(&P, &[usize]) -> Option<P>,
    /// The meaning of the numbers of [`Flat::sized`].
    pub(crate) size: &'static str,
    pub(crate) counts: fn(&P) -> Counts,
    pub(crate) rows: fn() -> Vec<Variant<P, I>>,
    pub(crate) given: fn(&P, &mut Numbers<'_>) -> Result<Given<T>>,
    pub(crate) run: fn(&I, &Cpu, &P, Arrays<'_, T>) -> Result<()>,
    pub(crate) want: fn(&P, &Held<'_, T>) -> Want,
    /// A kernel of a user's own.
    pub(crate) own: Own<P, T>,
}

/// What a kernel of a user's own is called with for a problem; none where one kernel cannot compute it.
pub(crate) type Own<P, T> = fn(&P) -> Option<Signature<P, Data<P, T>>>;

impl<P, I, T> Clone for Flat<P, I, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// The inputs of a problem.
pub(crate) struct Given<T> {
    pub(crate) inputs: Vec<Vec<Complex32>>,
    pub(crate) reals: Vec<f32>,
    pub(crate) out: Out,
    pub(crate) tools: T,
}

/// Where results go.
pub(crate) enum Out {
    /// To a separate array of this length.
    Fresh(usize),
    /// In place over these numbers. Each run continues from the values that the previous run left. Values
    /// grow or shrink; times do not.
    InPlace(Vec<Complex32>),
}

/// The inputs of the oracle.
pub(crate) struct Held<'a, T> {
    inputs: Vec<Cow<'a, [Complex32]>>,
    pub(crate) reals: Cow<'a, [f32]>,
    start: &'a [Complex32],
    pub(crate) tools: &'a T,
}

impl<T> Held<'_, T> {
    /// The numbers of an input in double precision.
    pub(crate) fn wide(&self, input: usize) -> Vec<C64> {
        widen(&self.inputs[input])
    }

    /// The numbers that a run overwrites.
    pub(crate) fn start(&self) -> Vec<C64> {
        widen(self.start)
    }
}

fn widen(values: &[Complex32]) -> Vec<C64> {
    values.iter().map(|v| C64::new(v.re.into(), v.im.into())).collect()
}

/// The arguments of a launch.
pub(crate) struct Arrays<'a, T> {
    pub(crate) inputs: Vec<&'a [Complex32]>,
    pub(crate) reals: &'a [f32],
    pub(crate) out: &'a mut [Complex32],
    pub(crate) tools: &'a mut T,
}

/// The expected results.
pub(crate) struct Want {
    /// The indices of these outputs; `None` means all outputs.
    pub(crate) indices: Option<Vec<usize>>,
    pub(crate) values: Vec<C64>,
}

impl Want {
    pub(crate) fn all(values: Vec<C64>) -> Self {
        Self { indices: None, values }
    }

    /// `count` of `len` outputs, with values from `value`.
    pub(crate) fn some(len: usize, count: u64, value: impl Fn(usize) -> C64) -> Self {
        let indices: Vec<usize> = (0..count).map(|i| (bits(5, i) % len as u64) as usize).collect();
        Self { values: indices.iter().map(|&index| value(index)).collect(), indices: Some(indices) }
    }
}

/// Random inputs: multiples of 2⁻²³ from −1 to 1.
pub(crate) struct Numbers<'a> {
    pub(crate) cpu: &'a Cpu,
    pub(crate) seed: u64,
    drawn: u64,
}

impl Numbers<'_> {
    fn next(&mut self) -> u64 {
        self.drawn += 1;
        bits(self.seed, self.drawn)
    }

    /// Errors: memory.
    pub(crate) fn complex(&mut self, len: usize) -> Result<Vec<Complex32>> {
        let seeds = [self.next(), self.next()];
        filled(self.cpu, "random numbers", len, |index| {
            let [re, im] = seeds.map(|seed| signed_unit(seed, index));
            Complex32::new(re, im)
        })
    }

    /// Errors: memory.
    pub(crate) fn reals(&mut self, len: usize) -> Result<Vec<f32>> {
        let seed = self.next();
        filled(self.cpu, "random numbers", len, |index| signed_unit(seed, index))
    }
}

/// A problem's arrays on a device.
pub(crate) struct Data<P, T> {
    pub(crate) problem: P,
    pub(crate) inputs: Vec<Array<Complex32>>,
    pub(crate) reals: Array<f32>,
    /// The initial values of `out`, if a run changes it in place.
    start: Option<Vec<Complex32>>,
    pub(crate) out: Array<Complex32>,
    pub(crate) tools: T,
}

/// The arguments of a kernel of a user's own. Its call gets the kernel's name and declaration, elements that
/// want a thread each, and this.
pub(crate) type Arguments<P, T> = fn(&mut Data<P, T>, &mut Call<'_>) -> Result<()>;

/// The [`Flat::own`] of a kernel without macros.
pub(crate) fn own<P: 'static, T: 'static>(
    [kernel, declaration]: [&'static str; 2],
    extent: fn(&P) -> [usize; 3],
    call: Arguments<P, T>,
) -> Option<Signature<P, Data<P, T>>> {
    Some(Signature { kernel, declaration, extent, defines: |_| Vec::new(), call })
}

/// A size as an `int`. Errors: 2³¹ and more.
pub(crate) fn int(size: usize) -> Result<Argument<'static>> {
    let fits = i32::try_from(size).map(Argument::from);
    fits.map_err(|_| Error::value("size for a kernel of your own", format!("at most {}", i32::MAX), size))
}

/// Sizes along z, y and x as three `int`s: 1 for axes that a shape lacks.
pub(crate) fn zyx(shape: &[usize]) -> Result<[Argument<'static>; 3]> {
    let size = |axis: usize| (axis + shape.len()).checked_sub(3).map_or(1, |axis| shape[axis]);
    Ok([int(size(0))?, int(size(1))?, int(size(2))?])
}

impl<P, T> Data<P, T> {
    fn restore(&mut self) -> Result<()> {
        match &self.start {
            None => self.out.fill(Complex32::new(f32::NAN, f32::NAN)),
            Some(start) => self.out.update(|out| out.copy_from_slice(start)),
        }
    }
}

impl<P, I, T> Algorithm for Flat<P, I, T>
where
    P: Clone + Display + Send + Sync + 'static,
    I: Send + Sync + 'static,
    T: 'static,
{
    type Problem = P;
    type Data = Data<P, T>;

    fn about(&self) -> About {
        self.about
    }

    fn cases(&self) -> Vec<Case<P>> {
        (self.cases)()
    }

    fn trials(&self) -> Vec<P> {
        (self.trials)()
    }

    fn sized(&self, problem: &P, size: &[usize]) -> Result<P> {
        let there = (!size.contains(&0)).then(|| voxels(&[size, &[16]].concat()).ok()).flatten();
        there.and_then(|_| (self.sized)(problem, size)).ok_or_else(|| {
            let expected = format!("{}, each at least 1, that fit the address space", self.size);
            Error::value(format!("size of {}", self.about.name), expected, format!("{size:?}"))
        })
    }

    fn variants(&self, _: &P) -> Vec<Row<Self>> {
        let run = self.run;
        let to_run = |implementation| {
            Runnable::new(move |_, data: &mut Data<P, T>| {
                let Data { problem, inputs, reals, out, tools, .. } = data;
                let device = out.device().clone();
                let inputs = inputs.iter().map(Array::cpu).collect();
                let arrays = Arrays { inputs, reals: reals.cpu(), out: out.cpu_mut(), tools };
                run(&implementation, device.cpu_side(), problem, arrays)
            })
            .host_transfer(host_transfer)
            .set_up(|_, data| data.restore())
        };
        (self.rows)().into_iter().map(|row| row.run_by(to_run)).collect()
    }

    fn counts(&self, problem: &P) -> Counts {
        (self.counts)(problem)
    }

    fn signature(&self, problem: &P) -> Option<Signature<P, Data<P, T>>> {
        (self.own)(problem)
    }

    fn data(&self, problem: &P, device: &Device, seed: u64) -> Result<Data<P, T>> {
        let given = (self.given)(problem, &mut Numbers { cpu: device.cpu_side(), seed, drawn: 0 })?;
        let (len, start) = match given.out {
            Out::Fresh(len) => (len, None),
            Out::InPlace(start) => (start.len(), Some(start)),
        };
        let upload = |values: Vec<Complex32>| Array::from_vec(device, &[values.len()], values);
        Ok(Data {
            problem: problem.clone(),
            inputs: given.inputs.into_iter().map(upload).collect::<Result<_>>()?,
            reals: Array::from_vec(device, &[given.reals.len()], given.reals)?,
            start,
            out: Array::zeros(device, &[len])?,
            tools: given.tools,
        })
    }

    fn poison(&self, data: &mut Data<P, T>) -> Result<()> {
        data.restore()
    }

    /// ‖found − expected‖ / ‖expected‖, or ‖found‖ if the expected values are 0. Infinite for NaN.
    fn error(&self, problem: &P, data: &Data<P, T>) -> Result<f64> {
        let outputs = data.out.read()?;
        let held = Held {
            inputs: data.inputs.iter().map(Array::read).collect::<Result<_>>()?,
            reals: data.reals.read()?,
            start: data.start.as_deref().unwrap_or_default(),
            tools: &data.tools,
        };
        let Want { indices, values } = (self.want)(problem, &held);
        if indices.is_none() && values.len() != outputs.len() {
            return Ok(f64::INFINITY);
        }
        let (mut wrong, mut whole) = (0.0, 0.0);
        for (i, want) in values.iter().enumerate() {
            let output = outputs[indices.as_ref().map_or(i, |indices| indices[i])];
            wrong += (C64::new(output.re.into(), output.im.into()) - want).norm_sqr();
            whole += want.norm_sqr();
        }
        let error = if whole > 0.0 { (wrong / whole).sqrt() } else { wrong.sqrt() };
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}

fn host_transfer<P, T>(data: &mut Data<P, T>) -> Option<HostTransfer<'_>> {
    let mut inputs: Vec<&mut dyn TransferArray> =
        data.inputs.iter_mut().map(|input| input as &mut dyn TransferArray).collect();
    if !data.reals.is_empty() {
        inputs.push(&mut data.reals);
    }
    Some(HostTransfer { inputs, outputs: vec![&mut data.out] })
}
