#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::blocks::expect;
use rayspin_tune::{Build, Config};

use super::sparse::Matrix;
use super::{MOST_SUMS, Problem, Room};

const MESH: (&str, &str) = ("mesh.cuh", include_str!("cuda/mesh.cuh"));
static VECTORS: Source =
    Source { name: "fem_vectors", files: &[MESH, ("01_vectors.cu", include_str!("cuda/01_vectors.cu"))] };
static PRODUCTS: Source =
    Source { name: "fem_products", files: &[MESH, ("02_products.cu", include_str!("cuda/02_products.cu"))] };
static FUSED: Source =
    Source { name: "fem_fused", files: &[MESH, ("03_fused.cu", include_str!("cuda/03_fused.cu"))] };

/// Threads of the blocks that go along vectors.
const THREADS: u32 = 256;

fn lanes_defines(lanes: u32) -> Vec<Define> {
    vec![("LANES", lanes.to_string())]
}

pub(super) fn plain_forms() -> Vec<Build> {
    vec![Build::plain(&VECTORS), Build::plain(&PRODUCTS)]
}

pub(super) fn lanes_forms() -> Vec<Build> {
    let lanes = [4, 32].map(|lanes| Build { defines: lanes_defines(lanes), ..Build::plain(&PRODUCTS) });
    [vec![Build::plain(&VECTORS)], lanes.to_vec()].concat()
}

pub(super) fn fused_forms() -> Vec<Build> {
    vec![Build::plain(&VECTORS), Build::plain(&FUSED)]
}

/// How q = A d is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Product {
    /// From the assembled matrix, a thread a row.
    Rows,
    /// The same with several threads a row.
    Lanes,
    /// A thread an element, which adds atomically.
    Elements,
    /// A thread a node.
    Nodes,
}

/// Blocks along a vector: few enough that their sums are soon added up.
fn along(items: usize) -> Launch {
    Launch::linear(items.div_ceil(THREADS as usize).clamp(1, 1024) as u32, THREADS)
}

fn count(shape: Launch) -> i32 {
    shape.blocks.iter().product::<u32>().cast_signed()
}

/// What all launches of a problem share.
struct Steps<'a> {
    sizes: [Argument<'a>; 3],
    nodes: Argument<'a>,
    vector: Launch,
}

impl Steps<'_> {
    /// Errors: arrays of another length.
    fn new(p: &Problem, kappa: &Array<f32>, vectors: &[&Array<f32>], sums: &[&Array<f64>]) -> Result<Self> {
        let p = p.checked()?;
        expect_len("coefficients of elements", &p.shape, kappa.len())?;
        for vector in vectors {
            expect_len("vector on nodes", &p.grid(), vector.len())?;
        }
        for sums in sums {
            expect_len("sums of blocks", &[MOST_SUMS], sums.len())?;
        }
        let [nz, ny, nx] = p.shape.map(|n| (n as i32).into());
        Ok(Self { sizes: [nx, ny, nz], nodes: (p.nodes() as i64).into(), vector: along(p.nodes()) })
    }

    /// u = 0, r and both directions b; r·r in `squares[0]`.
    fn begin(&self, cuda: &Cuda, b: &Array<f32>, room: &mut Room, u: &mut Array<f32>) -> Result<()> {
        let Room { r, d, other, squares, .. } = room;
        let vectors = [u, r, d, other].map(|vector| vector.cuda_mut().into());
        let squares = [squares[0].cuda_mut().into()];
        let arguments = &mut [&[b.cuda().into()], &vectors[..], &squares, &self.sizes].concat();
        let kernel = cuda.kernel(&VECTORS, &[], "begin")?;
        // SAFETY: all vectors have the nodes of these sizes, and there is room for a sum of each block.
        unsafe { kernel.launch(self.vector, arguments) }
    }

    /// A kernel on vectors of all nodes, whose number is its last argument.
    fn launch(&self, kernel: &Kernel, arguments: &[Argument<'_>]) -> Result<()> {
        let arguments = &mut [arguments, &[self.nodes]].concat();
        // SAFETY: `new` has checked that all vectors have this number of nodes, and that sums have room for
        // one of each block.
        unsafe { kernel.launch(self.vector, arguments) }
    }
}

/// The equations of a problem: coefficients, right-hand side, and the assembled matrix where there is one.
pub(super) struct Equations<'a> {
    pub(super) problem: &'a Problem,
    pub(super) kappa: &'a Array<f32>,
    pub(super) b: &'a Array<f32>,
    pub(super) matrix: Option<&'a Matrix>,
}

/// Each operation of a step by a kernel of its own.
pub(super) fn plain(
    cuda: &Cuda,
    product: Product,
    config: &Config,
    Equations { problem: p, kappa, b, matrix }: Equations<'_>,
    room: &mut Room,
    u: &mut Array<f32>,
) -> Result<()> {
    let sums = [&room.squares[0], &room.squares[1], &room.curvature];
    let steps = Steps::new(p, kappa, &[b, &*u, &room.r, &room.d, &room.other, &room.q], &sums)?;
    let lanes = if let Product::Lanes = product { config.get("lanes")? } else { 1 };
    if !lanes.is_power_of_two() || lanes > 32 {
        return Err(Error::value("threads of a row", "a power of two up to 32", lanes));
    }
    let defines = if let Product::Lanes = product { lanes_defines(lanes) } else { Vec::new() };
    let name = match product {
        Product::Rows => "rows",
        Product::Lanes => "lanes",
        Product::Elements => "elements",
        Product::Nodes => "nodes",
    };
    let apply = cuda.kernel(&PRODUCTS, &defines, name)?;
    let clear = cuda.kernel(&PRODUCTS, &defines, "clear")?;
    let [dot, add, turn] = ["dot", "add", "turn"].map(|name| cuda.kernel(&VECTORS, &[], name));
    let (dot, add, turn) = (dot?, add?, turn?);
    steps.begin(cuda, b, room, u)?;
    let sums: Argument<'_> = count(steps.vector).into();
    let Room { r, d, q, squares, curvature, .. } = room;
    let [now, next] = squares;
    let (mut now, mut next) = (now, next);
    for _ in 0..p.iterations {
        match (product, matrix) {
            (Product::Rows | Product::Lanes, Some(m)) => {
                expect_len("rows of a matrix", &[p.nodes() + 1], m.starts.len())?;
                let nodes = p.nodes().saturating_mul(lanes as usize);
                let shape = Launch::covering(nodes, THREADS);
                let arrays = [m.starts.cuda().into(), m.columns.cuda().into(), m.values.cuda().into()];
                let arguments =
                    &mut [&arrays[..], &[d.cuda().into(), q.cuda_mut().into(), steps.nodes]].concat();
                // SAFETY: the matrix was assembled for these nodes, and its rows and columns lie among them.
                unsafe { apply.launch(shape, arguments) }?;
            }
            (Product::Rows | Product::Lanes, None) => {
                return Err(Error::value("assembled matrix", "one", "none"));
            }
            (Product::Elements, _) => {
                steps.launch(&clear, &[q.cuda_mut().into()])?;
                let arrays = [kappa.cuda().into(), d.cuda().into(), q.cuda_mut().into()];
                let shape = Launch::covering(kappa.len(), THREADS);
                // SAFETY: coefficients and vectors have the elements and nodes of these sizes.
                unsafe { apply.launch(shape, &mut [&arrays[..], &steps.sizes].concat()) }?;
            }
            (Product::Nodes, _) => {
                let arrays = [kappa.cuda().into(), d.cuda().into(), q.cuda_mut().into()];
                let shape = Launch::covering(p.nodes(), THREADS);
                // SAFETY: coefficients and vectors have the elements and nodes of these sizes.
                unsafe { apply.launch(shape, &mut [&arrays[..], &steps.sizes].concat()) }?;
            }
        }
        steps.launch(&dot, &[d.cuda().into(), q.cuda().into(), curvature.cuda_mut().into()])?;
        let alpha = [now.cuda().into(), sums, curvature.cuda().into(), sums];
        let along = [u.cuda_mut().into(), d.cuda().into()];
        steps.launch(&add, &[&along[..], &alpha, &[1.0f32.into()]].concat())?;
        let along = [r.cuda_mut().into(), q.cuda().into()];
        steps.launch(&add, &[&along[..], &alpha, &[(-1.0f32).into()]].concat())?;
        steps.launch(&dot, &[r.cuda().into(), r.cuda().into(), next.cuda_mut().into()])?;
        let beta = [next.cuda().into(), sums, now.cuda().into(), sums];
        steps.launch(&turn, &[&[d.cuda_mut().into(), r.cuda().into()], &beta[..]].concat())?;
        std::mem::swap(&mut now, &mut next);
    }
    Ok(())
}

/// Two kernels a step.
pub(super) fn fused(
    cuda: &Cuda,
    config: &Config,
    Equations { problem: p, kappa, b, .. }: Equations<'_>,
    room: &mut Room,
    u: &mut Array<f32>,
) -> Result<()> {
    let sums = [&room.squares[0], &room.squares[1], &room.curvature];
    let steps = Steps::new(p, kappa, &[b, &*u, &room.r, &room.d, &room.other, &room.q], &sums)?;
    let [x, y, planes] = ["x", "y", "planes"].map(|name| config.get(name));
    let (x, y, planes) = (x?, y?, planes?);
    if !x.is_power_of_two() || !y.is_power_of_two() || x.saturating_mul(y) > THREADS {
        let expected = format!("powers of two, at most {THREADS} threads");
        return Err(Error::value("threads of a block", expected, config));
    }
    expect("planes of a block", 1..=1 << 20, planes)?;
    let inner = p.shape.map(|n| (n as u32 - 1).max(1));
    let blocks = [inner[2].div_ceil(x), inner[1].div_ceil(y), inner[0].div_ceil(planes)];
    let shape = Launch { blocks, threads: [x, y, 1], shared: 0 };
    if blocks.iter().map(|&n| n as usize).product::<usize>() > MOST_SUMS {
        return Err(Error::value(
            "blocks of a product",
            format!("at most {MOST_SUMS}"),
            format!("{blocks:?}"),
        ));
    }
    let product = cuda.kernel(&FUSED, &[], "product")?;
    let change = cuda.kernel(&FUSED, &[], "change")?;
    steps.begin(cuda, b, room, u)?;
    let (squares_left, curvatures_left) = (count(steps.vector).into(), count(shape).into());
    let Room { r, d, other, q, squares, curvature } = room;
    let [now, before] = squares;
    let (mut now, mut before, mut d, mut next) = (now, before, d, other);
    for step in 0..p.iterations {
        let vectors = [kappa.cuda().into(), r.cuda().into(), d.cuda().into()];
        let made = [next.cuda_mut().into(), q.cuda_mut().into()];
        let beta = [now.cuda().into(), before.cuda().into(), squares_left, i32::from(step == 0).into()];
        let rest = [curvature.cuda_mut().into()];
        let planes = [planes.cast_signed().into()];
        let arguments = &mut [&vectors[..], &made, &beta, &rest, &steps.sizes, &planes].concat();
        // SAFETY: coefficients and vectors have the elements and nodes of these sizes, and there is room for
        // a sum of each block.
        unsafe { product.launch(shape, arguments) }?;
        // The sums of the step before are read no more.
        let vectors = [u.cuda_mut().into(), r.cuda_mut().into(), next.cuda().into(), q.cuda().into()];
        let alpha = [now.cuda().into(), squares_left, curvature.cuda().into(), curvatures_left];
        let rest = [before.cuda_mut().into()];
        let arguments = &mut [&vectors[..], &alpha, &rest, &steps.sizes].concat();
        // SAFETY: as above.
        unsafe { change.launch(steps.vector, arguments) }?;
        std::mem::swap(&mut now, &mut before);
        std::mem::swap(&mut d, &mut next);
    }
    Ok(())
}
