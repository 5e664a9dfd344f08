use rayspin_core::Result;
use rayspin_device::cuda::{Argument, Define, Launch, Source, ViewMut};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config};

use super::number::{Max, Min, Operation, Plain, SquareError, Sum};

static STEPS: Source = Source {
    name: "reduction_steps",
    files: &[
        ("reduce.cuh", include_str!("cuda/reduce.cuh")),
        ("01_steps.cu", include_str!("cuda/01_steps.cu")),
    ],
};

pub(super) static SHUFFLE: Source = Source {
    name: "reduction_shuffle",
    files: &[
        ("reduce.cuh", include_str!("cuda/reduce.cuh")),
        ("02_shuffle.cu", include_str!("cuda/02_shuffle.cu")),
    ],
};

/// Threads of the smallest block that the spaces have: what the room for blocks' numbers is counted by.
pub(super) const FEWEST_THREADS: usize = 64;
/// Blocks of a multiprocessor, at most, where a grid is of so many.
pub(super) const MOST_BLOCKS: usize = 32;

pub(crate) fn programs() -> Vec<Build> {
    let build = |source, defines| Build { source, defines, spill_bytes: 0 };
    let mut all = Vec::new();
    for threads in [128, 256, 512] {
        all.push(build(&STEPS, first::<i32, Sum>(Form::Threads(threads))));
        all.push(build(&STEPS, rest::<i32, Sum>(Form::Threads(threads))));
        all.push(build(&STEPS, first::<f32, SquareError>(Form::Threads(threads))));
    }
    all.push(build(&STEPS, first::<f32, Min>(Form::Threads(256))));
    for unroll in [1, 4, 8] {
        all.push(build(&SHUFFLE, first::<i32, Sum>(Form::Unroll(unroll))));
        all.push(build(&SHUFFLE, first::<f32, Sum>(Form::Unroll(unroll))));
        all.push(build(&SHUFFLE, first::<f64, Sum>(Form::Unroll(unroll))));
    }
    for unroll in [1, 8] {
        all.push(build(&SHUFFLE, first::<f32, Min>(Form::Unroll(unroll))));
        all.push(build(&SHUFFLE, first::<i32, Max>(Form::Unroll(unroll))));
    }
    all.push(build(&SHUFFLE, rest::<i32, Sum>(Form::Unroll(8))));
    all.push(build(&SHUFFLE, first::<f32, SquareError>(Form::Unroll(4))));
    all.push(build(&SHUFFLE, first::<f64, SquareError>(Form::Unroll(4))));
    all.push(build(&SHUFFLE, first::<i32, SquareError>(Form::Unroll(4))));
    all
}

/// What a program fixes beside its types.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Threads of a block, of those kernels that are written out for them.
    Threads(u32),
    /// Loads of a thread at once, of those kernels that load vectors.
    Unroll(u32),
}

impl Form {
    /// Of kernels that fix neither: the program that others need anyway.
    pub(super) const TREES: Self = Self::Threads(256);

    /// As [`Form::TREES`], of what is not a tree.
    pub(super) const fn shuffles(pairs: bool) -> Self {
        Self::Unroll(if pairs { 4 } else { 8 })
    }
}

fn defines<T: Plain, A: Plain>(operation: u32, form: Form) -> Vec<Define> {
    let form = match form {
        Form::Threads(threads) => ("THREADS", threads.to_string()),
        Form::Unroll(unroll) => ("UNROLL", unroll.to_string()),
    };
    vec![("ELEMENT", T::C.to_owned()), ("ACC", A::C.to_owned()), ("OP", operation.to_string()), form]
}

/// Of the elements.
fn first<T: Plain, O: Operation<T>>(form: Form) -> Vec<Define> {
    defines::<T, O::Acc>(O::OP, form)
}

/// Of the numbers that blocks have left.
fn rest<T: Plain, O: Operation<T>>(form: Form) -> Vec<Define> {
    defines::<O::Acc, O::Acc>(O::REST, form)
}

/// The arrays of a run.
pub(super) struct Arrays<'a, T: Plain, A: Plain> {
    pub(super) a: &'a Array<T>,
    pub(super) b: &'a Array<T>,
    pub(super) parts: &'a mut Array<A>,
    pub(super) more: &'a mut Array<A>,
    pub(super) out: &'a mut Array<A>,
}

/// A kernel that is launched again on what its blocks have left until that is one number: every thread takes `each` elements.
pub(super) fn by_levels<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    (name, form): (&str, Form),
    (threads, each): (u32, usize),
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let mut n = arrays.a.len();
    let shared = threads as usize * size_of::<O::Acc>();
    let mut level = 0;
    loop {
        let blocks = n.div_ceil(threads as usize * each);
        let launch = Launch::linear(u32::try_from(blocks).unwrap_or(u32::MAX), threads).with_shared(shared);
        let last = blocks <= 1;
        let scale = if last { O::scale(arrays.a.len()) } else { 1.0 };
        let defines = if level == 0 { first::<T, O>(form) } else { rest::<T, O>(form) };
        let kernel = cuda.kernel(&STEPS, &defines, name)?;
        let (parts, more, out) = (&mut *arrays.parts, &mut *arrays.more, &mut *arrays.out);
        let (from, to): ([Argument<'_>; 2], Argument<'_>) = match (level, last) {
            (0, true) => ([arrays.a.cuda().into(), arrays.b.cuda().into()], out.cuda_mut().into()),
            (0, false) => ([arrays.a.cuda().into(), arrays.b.cuda().into()], parts.cuda_mut().into()),
            (level, last) => {
                let (from, to) = if level % 2 == 1 { (parts, more) } else { (more, parts) };
                let to = if last { out } else { to };
                ([from.cuda().into(), from.cuda().into()], to.cuda_mut().into())
            }
        };
        let [a, b] = from;
        kernel.launch(launch, &mut [a, b, (n as u64).into(), to, scale.into()])?;
        if last {
            return Ok(());
        }
        n = blocks;
        level += 1;
    }
}

/// A kernel of a grid that fills the processor, then `second` of one block on what its blocks have left.
pub(super) fn in_two<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    (name, second, form): (&str, &str, Form),
    (threads, blocks): (u32, usize),
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let source = if matches!(form, Form::Threads(_)) { &STEPS } else { &SHUFFLE };
    let rest_form = if matches!(form, Form::Unroll(_)) { Form::shuffles(false) } else { form };
    // Trees lie in memory that the launch asks for, shuffles need none.
    let shared = if matches!(form, Form::Threads(_)) { threads as usize * size_of::<O::Acc>() } else { 0 };
    let kernel = cuda.kernel(source, &first::<T, O>(form), name)?;
    let again = cuda.kernel(source, &rest::<T, O>(rest_form), second)?;
    let n = arrays.a.len() as u64;
    kernel.launch(
        Launch::linear(blocks as u32, threads).with_shared(shared),
        &mut [
            arrays.a.cuda().into(),
            arrays.b.cuda().into(),
            n.into(),
            arrays.parts.cuda_mut().into(),
            1.0.into(),
        ],
    )?;
    let parts: Argument<'_> = arrays.parts.cuda().into();
    let scale = O::scale(arrays.a.len());
    let out = arrays.out.cuda_mut().into();
    again.launch(
        Launch::linear(1, threads).with_shared(shared),
        &mut [parts, parts, (blocks as u64).into(), out, scale.into()],
    )
}

/// One kernel sets the sum to 0, every block of another adds its own: in whichever order they end.
pub(super) fn atomic<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    (threads, blocks): (u32, usize),
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let defines = first::<T, O>(Form::shuffles(O::PAIRS));
    cuda.kernel(&SHUFFLE, &defines, "atomic_start")?
        .launch(Launch::linear(1, 1), &mut [arrays.out.cuda_mut().into()])?;
    let scale = O::scale(arrays.a.len());
    let mut arguments = [
        arrays.a.cuda().into(),
        arrays.b.cuda().into(),
        (arrays.a.len() as u64).into(),
        arrays.out.cuda_mut().into(),
        scale.into(),
    ];
    cuda.kernel(&SHUFFLE, &defines, "atomic_sum")?
        .launch(Launch::linear(blocks as u32, threads), &mut arguments)
}

/// How [`one_pass`] divides the work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) threads: u32,
    pub(super) blocks_each: u32,
    pub(super) unroll: u32,
}

impl Shape {
    pub(super) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            threads: config.get("threads")?,
            blocks_each: config.get("blocks")?,
            unroll: config.get("unroll")?,
        })
    }

    /// Blocks for `n` elements: no more than there are tiles.
    pub(super) fn blocks<T: Plain>(self, cuda: &Cuda, n: usize) -> usize {
        let tile = self.threads as usize * self.unroll as usize * (16 / size_of::<T>());
        resident(cuda, self.blocks_each).min(n.div_ceil(tile)).max(1)
    }
}

/// Blocks of a grid with `each` on every multiprocessor.
pub(super) fn resident(cuda: &Cuda, each: u32) -> usize {
    cuda.properties().multiprocessors as usize * each as usize
}

/// Wide loads, then the number of all blocks by the one that ends last. `ticket` is 0 before and after.
pub(super) fn one_pass<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    shape: Shape,
    a: &Array<T>,
    b: &Array<T>,
    parts: &mut Array<O::Acc>,
    ticket: &mut Array<u32>,
    out: &mut Array<O::Acc>,
) -> Result<()> {
    let n = a.len();
    let kernel = cuda.kernel(&SHUFFLE, &first::<T, O>(Form::Unroll(shape.unroll)), "one_pass")?;
    let mut arguments = [
        a.cuda().into(),
        b.cuda().into(),
        (n as u64).into(),
        parts.cuda_mut().into(),
        ticket.cuda_mut().into(),
        out.cuda_mut().into(),
        O::scale(n).into(),
    ];
    kernel.launch(Launch::linear(shape.blocks::<T>(cuda, n) as u32, shape.threads), &mut arguments)
}

/// Words of 64 bits a block that [`flagged`] takes.
pub(super) const WORDS: usize = 2;

/// Wide loads, then the number of all blocks by the last one, which waits for the flags of the others. `words` are 0 before and after.
pub(super) fn flagged<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    shape: Shape,
    a: &Array<T>,
    b: &Array<T>,
    words: ViewMut<'_, u64>,
    out: ViewMut<'_, O::Acc>,
) -> Result<()> {
    let n = a.len();
    let kernel = cuda.kernel(&SHUFFLE, &first::<T, O>(Form::Unroll(shape.unroll)), "flags")?;
    let mut arguments =
        [a.cuda().into(), b.cuda().into(), (n as u64).into(), words.into(), out.into(), O::scale(n).into()];
    let launch = Launch::linear(shape.blocks::<T>(cuda, n) as u32, shape.threads);
    kernel.launch_early(launch, &mut arguments)
}
