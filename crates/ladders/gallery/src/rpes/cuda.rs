#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_device::{Array, Cuda, Element};
use rayspin_tune::blocks::expect;
use rayspin_tune::{Build, Config, Space, gpu};

use super::{CLASSES, Data, FUNCTIONS, Layout, Problem, Tables};

const COMMON: (&str, &str) = ("rpes.cuh", include_str!("cuda/rpes.cuh"));
static NAIVE: Source =
    Source { name: "rpes_naive", files: &[COMMON, ("naive.cu", include_str!("cuda/naive.cu"))] };
static CLASS: Source =
    Source { name: "rpes_class", files: &[COMMON, ("class.cu", include_str!("cuda/class.cu"))] };

/// What distinguishes the rows that have a program a class.
#[derive(Clone, Copy)]
struct Form {
    double: bool,
    ready: bool,
}

fn defines(form: Form, [bra, ket]: [usize; 2], threads: u32) -> Vec<Define> {
    vec![
        ("DOUBLE", u8::from(form.double).to_string()),
        ("MADE", u8::from(form.ready).to_string()),
        ("BRA", bra.to_string()),
        ("KET", ket.to_string()),
        ("THREADS", threads.to_string()),
    ]
}

fn forms(form: Form) -> Vec<Build> {
    CLASSES.map(|class| Build { defines: defines(form, class, 64), ..Build::plain(&CLASS) }).to_vec()
}

pub(super) fn naive_forms() -> Vec<Build> {
    vec![Build { defines: vec![("DOUBLE", "1".to_owned())], ..Build::plain(&NAIVE) }]
}

pub(super) fn sorted_forms() -> Vec<Build> {
    forms(Form { double: true, ready: false })
}

pub(super) fn pairs_forms() -> Vec<Build> {
    forms(Form { double: true, ready: true })
}

pub(super) fn single_forms() -> Vec<Build> {
    forms(Form { double: false, ready: true })
}

pub(super) fn space(_: &Problem) -> Space {
    Space::none().axis("threads", &[32, 64, 128, 256], 64)
}

/// Shells fit 32 bits, and so do quartets of the 8256 pairs that [`super::MOST_SHELLS`] have.
fn count(n: usize) -> Result<Argument<'static>> {
    Argument::count(n)
}

pub(super) fn naive(config: &Config, data: &mut Data) -> Result<()> {
    let threads = config.get("threads")?;
    expect("threads of a block", 1..=256, threads)?;
    let device = data.integrals.device().clone();
    let kernel = gpu(&device)?.kernel(&NAIVE, &[("DOUBLE", "1".to_owned())], "naive")?;
    let Data { layout, double, integrals, .. } = data;
    let pairs = layout.pairs.len();
    let [_, ps, pp, _] = layout.begin;
    let arguments = &mut [
        double.shells.cuda().into(),
        double.pairs.cuda().into(),
        double.order.cuda().into(),
        count(pairs)?,
        count(ps)?,
        count(pp)?,
        double.roots.cuda().into(),
        integrals.cuda_mut().into(),
    ];
    let shape = Launch::covering(pairs * (pairs + 1) / 2, threads);
    // SAFETY: pairs and their order are the layout's, pairs name shells, and integrals have a place for each
    // function of all quartets of pairs.
    unsafe { kernel.launch(shape, arguments) }
}

/// A launch a class, the largest first.
fn classes<R: Element>(
    cuda: &Cuda,
    form: Form,
    threads: u32,
    layout: &Layout,
    tables: &mut Tables<R>,
    integrals: &mut Array<f64>,
) -> Result<()> {
    expect("threads of a block", 32..=256, threads)?;
    let pairs = layout.pairs.len();
    if form.ready {
        let kernel = cuda.kernel(&CLASS, &defines(form, CLASSES[0], threads), "ready")?;
        let arguments = &mut [
            tables.shells.cuda().into(),
            tables.pairs.cuda().into(),
            count(pairs)?,
            tables.rows.cuda_mut().into(),
        ];
        // SAFETY: rows have 60 numbers of each pair, and pairs name shells.
        unsafe { kernel.launch(Launch::covering(pairs, 128), arguments) }?;
    }
    for (index, class) in CLASSES.into_iter().enumerate().rev() {
        let (quartets, [bra, ket]) = (layout.quartets(class), class);
        if quartets == 0 {
            continue;
        }
        let kernel = cuda.kernel(&CLASS, &defines(form, class, threads), "quartets")?;
        // Quartets of four p shells have three threads each, along y.
        let parts = if FUNCTIONS[bra] * FUNCTIONS[ket] == 81 { 3 } else { 1 };
        let mut shape = Launch::covering(quartets, threads);
        shape.blocks[1] = parts;
        let from = layout.start(index) as u64;
        let arguments = &mut [
            tables.shells.cuda().into(),
            tables.pairs.cuda().into(),
            tables.rows.cuda().into(),
            count(pairs)?,
            count(layout.begin[bra])?,
            count(layout.begin[ket])?,
            count(layout.of(ket))?,
            count(quartets)?,
            tables.roots.cuda().into(),
            integrals.cuda_mut().into(),
            from.into(),
        ];
        // SAFETY: the kernel makes the `quartets` quartets of pairs of this class, which the layout has, and
        // their integrals lie behind `from`.
        unsafe { kernel.launch(shape, arguments) }?;
    }
    Ok(())
}

fn in_double(config: &Config, ready: bool, data: &mut Data) -> Result<()> {
    let device = data.integrals.device().clone();
    let form = Form { double: true, ready };
    classes(gpu(&device)?, form, config.get("threads")?, &data.layout, &mut data.double, &mut data.integrals)
}

pub(super) fn sorted(config: &Config, data: &mut Data) -> Result<()> {
    in_double(config, false, data)
}

pub(super) fn pairs(config: &Config, data: &mut Data) -> Result<()> {
    in_double(config, true, data)
}

pub(super) fn single(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.integrals.device().clone();
    let Data { layout, single, integrals, .. } = data;
    let tables = single
        .as_mut()
        .ok_or_else(|| Error::value("device of repulsion integrals", "a GPU", device.describe()))?;
    let form = Form { double: false, ready: true };
    classes(gpu(&device)?, form, config.get("threads")?, layout, tables, integrals)
}
