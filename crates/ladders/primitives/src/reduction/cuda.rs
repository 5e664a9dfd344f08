#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Source, ViewMut};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config};

use rayspin_tune::blocks::{expect, whole_warps};

use super::number::{Max, Min, Operation, Plain, SquareError, Sum};

static STEPS: Source = Source {
    name: "reduction_steps",
    files: &[
        ("reduce.cuh", include_str!("cuda/reduce.cuh")),
        ("01_steps.cu", include_str!("cuda/01_steps.cu")),
    ],
};

static SHUFFLE: Source = Source {
    name: "reduction_shuffle",
    files: &[
        ("reduce.cuh", include_str!("cuda/reduce.cuh")),
        ("02_shuffle.cu", include_str!("cuda/02_shuffle.cu")),
    ],
};

/// Threads of the smallest block that the spaces have: what the room for blocks' numbers is counted by.
pub(super) const FEWEST_THREADS: usize = 64;
/// The most blocks a multiprocessor, for grids that are a number of blocks for each multiprocessor.
pub(super) const MOST_BLOCKS: usize = 32;

/// Threads of a block that trees are written out for.
pub(super) const MADE: [u32; 3] = [128, 256, 512];

fn builds(source: &'static Source, forms: Vec<Vec<Define>>) -> Vec<Build> {
    forms.into_iter().map(|defines| Build { defines, ..Build::plain(source) }).collect()
}

/// Trees for blocks of these numbers of threads.
pub(super) fn trees(threads: &[u32]) -> Vec<Build> {
    let mut forms = vec![first::<f32, Min>(Form::TREES), first::<i32, Max>(Form::TREES)];
    forms.extend([first::<f32, Sum>(Form::TREES), first::<f64, Sum>(Form::TREES)]);
    for form in threads.iter().map(|&threads| Form::Threads(threads)) {
        forms.extend([first::<i32, Sum>(form), rest::<i32, Sum>(form), first::<f32, SquareError>(form)]);
    }
    builds(&STEPS, forms)
}

/// Kernels that join registers and load no vectors, and kernels for the numbers that blocks have left.
pub(super) fn shuffles() -> Vec<Build> {
    let (one, two) = (Form::shuffles(false), Form::shuffles(true));
    let sums = [first::<i32, Sum>(one), first::<f32, Sum>(one), first::<f64, Sum>(one)];
    let extremes = [first::<f32, Min>(one), first::<i32, Max>(one), rest::<i32, Sum>(one)];
    let errors =
        [first::<f32, SquareError>(two), first::<f64, SquareError>(two), first::<i32, SquareError>(two)];
    builds(&SHUFFLE, [sums, extremes, errors].concat())
}

/// The same with other numbers of loads at once.
pub(super) fn loads() -> Vec<Build> {
    let mut forms = vec![first::<f32, Min>(Form::Unroll(1)), first::<i32, Max>(Form::Unroll(1))];
    for form in [Form::Unroll(1), Form::Unroll(4)] {
        forms.extend([first::<i32, Sum>(form), first::<f32, Sum>(form), first::<f64, Sum>(form)]);
    }
    [shuffles(), builds(&SHUFFLE, forms)].concat()
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
    /// For kernels that fix neither number: the program that others need anyway.
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

/// Definitions of the program that reduces the elements.
fn first<T: Plain, O: Operation<T>>(form: Form) -> Vec<Define> {
    defines::<T, O::Acc>(O::OP, form)
}

/// Definitions of the program that reduces the numbers that blocks have left.
fn rest<T: Plain, O: Operation<T>>(form: Form) -> Vec<Define> {
    defines::<O::Acc, O::Acc>(O::REST, form)
}

/// The arrays of a run.
pub(super) struct Arrays<'a, T: Plain, A: Plain> {
    pub(super) a: &'a Array<T>,
    pub(super) b: &'a Array<T>,
    pub(super) parts: &'a mut Array<A>,
    pub(super) more: &'a mut Array<A>,
    /// Of [`one_pass`]: 0 before and after.
    pub(super) ticket: &'a mut Array<u32>,
    pub(super) out: &'a mut Array<A>,
}

/// Blocks that fill the processor, and the threads of each.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) threads: u32,
    pub(super) blocks: usize,
}

/// That the second array and the result are there, and room for what `blocks` blocks leave.
fn check(a: usize, b: usize, blocks: usize, room: usize, out: usize) -> Result<()> {
    if b < a {
        return Err(Error::value("elements of the second array", format!("at least {a}"), b));
    }
    if out == 0 {
        return Err(Error::value("result of a reduction", "one number", 0));
    }
    if room < blocks {
        return Err(Error::value("room for the numbers of blocks", format!("at least {blocks}"), room));
    }
    Ok(())
}

/// Blocks that halve themselves down to a warp; `made` are the threads that a program whose steps are written
/// out is for.
fn tree(threads: u32, made: Option<u32>) -> Result<()> {
    if threads.is_power_of_two() && (64..=1024).contains(&threads) && made.is_none_or(|made| made == threads)
    {
        return Ok(());
    }
    let expected = made.map_or("a power of two from 64 to 1024".to_owned(), |made| made.to_string());
    Err(Error::value("threads of a block", expected, threads))
}

/// A kernel that is launched again on what its blocks have left until that is one number: every thread takes
/// `each` elements.
pub(super) fn by_levels<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    name: &str,
    form: Form,
    threads: u32,
    each: usize,
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let made = match form {
        Form::Threads(made) if matches!(name, "k6_unrolled" | "k7_many") => Some(made),
        _ => None,
    };
    tree(threads, made)?;
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
        let room = if level % 2 == 0 { arrays.parts.len() } else { arrays.more.len() };
        let b = if level == 0 { arrays.b.len() } else { n };
        check(n, b, blocks, if last { blocks } else { room }, arrays.out.len())?;
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
        // SAFETY: there are n elements of both arrays, room for a number of each block, and shared memory for
        // one of each thread.
        unsafe { kernel.launch(launch, &mut [a, b, (n as u64).into(), to, scale.into()]) }?;
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
    name: &str,
    second: &str,
    form: Form,
    Grid { threads, blocks }: Grid,
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let source = if matches!(form, Form::Threads(_)) { &STEPS } else { &SHUFFLE };
    let rest_form = if matches!(form, Form::Unroll(_)) { Form::shuffles(false) } else { form };
    // Trees lie in shared memory, whose size the launch sets. Shuffles need none.
    let shared = if matches!(form, Form::Threads(_)) { threads as usize * size_of::<O::Acc>() } else { 0 };
    let kernel = cuda.kernel(source, &first::<T, O>(form), name)?;
    let again = cuda.kernel(source, &rest::<T, O>(rest_form), second)?;
    match form {
        Form::Threads(made) => tree(threads, Some(made))?,
        Form::Unroll(_) => whole_warps(threads)?,
    }
    check(arrays.a.len(), arrays.b.len(), blocks, arrays.parts.len(), arrays.out.len())?;
    let n = arrays.a.len() as u64;
    let shape = Launch::linear(blocks as u32, threads).with_shared(shared);
    let arguments = &mut [
        arrays.a.cuda().into(),
        arrays.b.cuda().into(),
        n.into(),
        arrays.parts.cuda_mut().into(),
        1.0.into(),
    ];
    // SAFETY: both arrays have n elements; there is room for a number of each block, and trees have shared
    // memory for one of each thread.
    unsafe { kernel.launch(shape, arguments) }?;
    let parts: Argument<'_> = arrays.parts.cuda().into();
    let scale = O::scale(arrays.a.len());
    let out = arrays.out.cuda_mut().into();
    let shape = Launch::linear(1, threads).with_shared(shared);
    let arguments = &mut [parts, parts, (blocks as u64).into(), out, scale.into()];
    // SAFETY: the blocks before have left as many numbers as said; there is a result, and shared memory as
    // before.
    unsafe { again.launch(shape, arguments) }
}

/// One kernel sets the sum to 0, every block of another adds its own: in whichever order they end.
pub(super) fn atomic<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    Grid { threads, blocks }: Grid,
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let defines = first::<T, O>(Form::shuffles(O::PAIRS));
    whole_warps(threads)?;
    check(arrays.a.len(), arrays.b.len(), 0, 0, arrays.out.len())?;
    let kernel = cuda.kernel(&SHUFFLE, &defines, "atomic_start")?;
    // SAFETY: there is a result.
    unsafe { kernel.launch(Launch::linear(1, 1), &mut [arrays.out.cuda_mut().into()]) }?;
    let scale = O::scale(arrays.a.len());
    let mut arguments = [
        arrays.a.cuda().into(),
        arrays.b.cuda().into(),
        (arrays.a.len() as u64).into(),
        arrays.out.cuda_mut().into(),
        scale.into(),
    ];
    let kernel = cuda.kernel(&SHUFFLE, &defines, "atomic_sum")?;
    // SAFETY: both arrays have as many elements as said, and there is a result; blocks are whole warps.
    unsafe { kernel.launch(Launch::linear(blocks as u32, threads), &mut arguments) }
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
        let unroll = config.get("unroll")?;
        expect("loads of a thread", 1..=64, unroll)?;
        Ok(Self { threads: config.get("threads")?, blocks_each: config.get("blocks")?, unroll })
    }

    /// Blocks for `n` elements: no more than there are tiles.
    pub(super) fn blocks<T: Plain>(self, cuda: &Cuda, n: usize) -> usize {
        let tile = self.threads as usize * self.unroll as usize * (16 / size_of::<T>());
        resident(cuda, self.blocks_each).min(n.div_ceil(tile.max(1))).max(1)
    }
}

/// Blocks of a grid with `each` on every multiprocessor.
pub(super) fn resident(cuda: &Cuda, each: u32) -> usize {
    cuda.properties().multiprocessors as usize * each as usize
}

/// Wide loads, then the number of all blocks by the one that ends last.
pub(super) fn one_pass<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    shape: Shape,
    arrays: &mut Arrays<'_, T, O::Acc>,
) -> Result<()> {
    let Arrays { a, b, parts, ticket, out, .. } = arrays;
    let n = a.len();
    let blocks = shape.blocks::<T>(cuda, n);
    whole_warps(shape.threads)?;
    check(n, b.len(), blocks, parts.len(), out.len().min(ticket.len()))?;
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
    // SAFETY: both arrays have n elements; there is room for a number of each block, for the ticket and for
    // the result.
    unsafe { kernel.launch(Launch::linear(blocks as u32, shape.threads), &mut arguments) }
}

/// Words of 64 bits a block that [`flagged`] takes.
pub(super) const WORDS: usize = 2;

/// Wide loads, then the number of all blocks by the last one, which waits for the flags of the others.
/// `words` are 0 before and after.
pub(super) fn flagged<T: Plain, O: Operation<T>>(
    cuda: &Cuda,
    shape: Shape,
    a: &Array<T>,
    b: &Array<T>,
    words: ViewMut<'_, u64>,
    out: ViewMut<'_, O::Acc>,
) -> Result<()> {
    let n = a.len();
    let blocks = shape.blocks::<T>(cuda, n);
    whole_warps(shape.threads)?;
    check(n, b.len(), blocks, words.len() / WORDS, out.len())?;
    let kernel = cuda.kernel(&SHUFFLE, &first::<T, O>(Form::Unroll(shape.unroll)), "flags")?;
    let mut arguments =
        [a.cuda().into(), b.cuda().into(), (n as u64).into(), words.into(), out.into(), O::scale(n).into()];
    let launch = Launch::linear(blocks as u32, shape.threads);
    // SAFETY: both arrays have n elements; there are words for each block, and a result. The kernel first of
    // all waits for the launch before it.
    unsafe { kernel.launch_early(launch, &mut arguments) }
}
