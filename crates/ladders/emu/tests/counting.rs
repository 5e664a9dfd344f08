//! The numbers that counting gives, for kernels whose true numbers are known.

#![allow(clippy::unwrap_used, clippy::panic)]

mod trusted;

use std::sync::Arc;

use rayspin_device::cuda::{Argument, Kernel, Launch, Source};
use rayspin_device::{Array, Backend, Device, Element};
use rayspin_emu::Emulator;
use rayspin_emu::counting::{Access, Counts, Kind, Space};
use trusted::Trusted;

/// Without variables of its own.
static PLAIN: Source = Source {
    name: "plain",
    files: &[(
        "plain.cu",
        "extern \"C\" __global__ void many(const float* in, float* out, int n) {\n\
         \x20   float sum = 0;\n\
         \x20   for (int k = 0; k < n; k++) sum += in[k];\n\
         \x20   out[blockIdx.x * 256 + threadIdx.x] = sum;\n}\n",
    )],
};
static SOURCE: Source = Source { name: "counting", files: &[("counting.cu", include_str!("counting.cu"))] };

struct Counting {
    emulator: Arc<Emulator>,
    device: Device,
}

impl Counting {
    fn new() -> Self {
        let emulator = Arc::new(Emulator::new().unwrap().counting(None).unwrap());
        let device = Device::with_driver(emulator.clone(), Device::cpu_with_threads(1).unwrap());
        Self { emulator, device }
    }

    fn kernel(&self, source: &'static Source, name: &str) -> Kernel {
        match self.device.backend() {
            Backend::Cuda(cuda) => cuda.kernel(source, &[], name).unwrap(),
            Backend::Cpu(_) => unreachable!("the emulator is a CUDA device"),
        }
    }

    fn upload<T: Element>(&self, values: &[T]) -> Array<T> {
        Array::from_slice(&self.device, &[values.len()], values).unwrap()
    }

    fn zeros<T: Element>(&self, count: usize) -> Array<T> {
        Array::zeros(&self.device, &[count]).unwrap()
    }

    /// Runs a kernel and takes its counts.
    fn count(&self, name: &str, launch: Launch, arguments: &mut [Argument<'_>]) -> Counts {
        self.count_of(&SOURCE, name, launch, arguments)
    }

    fn count_of(
        &self,
        source: &'static Source,
        name: &str,
        launch: Launch,
        arguments: &mut [Argument<'_>],
    ) -> Counts {
        let kernel = self.kernel(source, name);
        self.emulator.take_counts();
        kernel.go(launch, arguments).unwrap();
        let mut counts = self.emulator.take_counts();
        assert_eq!(counts.len(), 1);
        counts.pop().unwrap()
    }
}

fn grid(blocks: [u32; 3], threads: [u32; 3], shared: u32) -> Launch {
    Launch { blocks, threads, shared }
}

/// The accesses of an array, which have to be of one line.
fn access<'a>(counts: &'a Counts, array: &str, kind: Kind) -> (&'a Access, u32) {
    let mut accesses = counts.lines.iter().flat_map(|line| {
        line.accesses.iter().filter(|a| a.array == array && a.kind == kind).map(|a| (a, line.place.line))
    });
    let first = accesses.next().unwrap_or_else(|| panic!("no {kind:?} of {array}: {counts:#?}"));
    assert!(accesses.next().is_none(), "{kind:?} of {array} in several lines");
    first
}

fn line_of(text: &str) -> u32 {
    let source = include_str!("counting.cu");
    1 + source.lines().position(|line| line.contains(text)).unwrap() as u32
}

#[test]
fn a_transpose_has_the_sectors_that_a_profiler_shows() {
    let counting = Counting::new();
    let n = 1024usize;
    let (input, mut out) = (counting.upload(&vec![1.0f32; n * n]), counting.zeros::<f32>(n * n));
    let launch = grid([32, 32, 1], [32, 32, 1], 0);
    let counts = counting.count(
        "transpose",
        launch,
        &mut [input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
    );
    assert_eq!((counts.counted, counts.whole, counts.twin), (1024, true, false));
    // Seen with Nsight Compute on an H100.
    let (load, line) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.sectors), (32_768.0, 131_072.0));
    assert_eq!(line, line_of("out[x * n + y] = in"));
    let (store, _) = access(&counts, "out", Kind::Write);
    assert_eq!((store.requests, store.sectors, store.space), (32_768.0, 1_048_576.0, Space::Global));
    assert_eq!(store.lanes, 32.0 * 32_768.0);
    let touched: Vec<_> = counts.touched.iter().map(|t| (t.array.as_str(), t.sectors)).collect();
    assert_eq!(touched, [("in", 131_072), ("out", 131_072)]);
    let counts = counting.count(
        "transpose_tile",
        launch,
        &mut [input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
    );
    assert_eq!(access(&counts, "out", Kind::Write).0.sectors, 131_072.0);
    let (load, _) = access(&counts, "tile", Kind::Read);
    assert_eq!((load.requests, load.turns, load.least), (32_768.0, 32.0 * 32_768.0, 32_768.0));
    assert_eq!(access(&counts, "tile", Kind::Write).0.turns, 32_768.0);
    assert_eq!(counts.lines.iter().map(|line| line.barriers).sum::<f64>(), 32_768.0);
}

#[test]
fn lanes_that_part_in_a_loop_meet_again() {
    let counting = Counting::new();
    let (input, mut out) = (counting.upload(&[1.0f32; 64 * 32]), counting.zeros::<f32>(32));
    let counts = counting.count(
        "every_second",
        Launch::linear(1, 32),
        &mut [input.cuda().into(), out.cuda_mut().into(), 64.into()],
    );
    let (load, _) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.sectors, load.lanes), (64.0, 256.0, 64.0 * 16.0));
    let line = counts.lines.iter().find(|line| line.text.contains("if ((i + lane) & 1)")).unwrap();
    assert_eq!(line.splits, 64.0, "{counts:#?}");
    assert_eq!(access(&counts, "out", Kind::Write).0.requests, 1.0);
}

#[test]
fn rows_of_different_length_keep_the_longest_waiting() {
    let counting = Counting::new();
    let begin: Vec<i32> = (0..33).map(|row| row * (row + 1) / 2).collect();
    let (begin, input) = (counting.upload(&begin), counting.upload(&[1.0f32; 33 * 16]));
    let mut out = counting.zeros::<f32>(32);
    let counts = counting.count(
        "rows",
        Launch::linear(1, 32),
        &mut [begin.cuda().into(), input.cuda().into(), out.cuda_mut().into()],
    );
    // Row r has r + 1 numbers: the last needs 32 turns, and 33 · 16 lanes are active in all.
    let (load, _) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.lanes), (32.0, 528.0));
    let sectors: u64 = (0..32u64)
        .map(|turn| {
            let rows = turn..32;
            rows.map(|row| (row * (row + 1) / 2 + turn) / 8).collect::<std::collections::BTreeSet<_>>().len()
                as u64
        })
        .sum();
    assert_eq!(load.sectors, sectors as f64);
    assert_eq!(access(&counts, "out", Kind::Write).0.requests, 1.0);
}

#[test]
fn lanes_chosen_at_random_go_together() {
    let counting = Counting::new();
    let n = 200usize;
    let random: Vec<f32> = (0..n * 32).map(|i| ((i * 7919 + 13) % 1009) as f32 / 1009.0).collect();
    let (chance, input) = (counting.upload(&random), counting.upload(&vec![1.0f32; n * 32]));
    let mut out = counting.zeros::<f32>(32);
    let counts = counting.count(
        "quarter",
        Launch::linear(1, 32),
        &mut [chance.cuda().into(), input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
    );
    let rows: Vec<_> = random.chunks(32).collect();
    let active = random.iter().filter(|&&v| v < 0.25).count();
    let busy = rows.iter().filter(|row| row.iter().any(|&v| v < 0.25)).count();
    let sectors: usize =
        rows.iter().map(|row| row.chunks(8).filter(|part| part.iter().any(|&v| v < 0.25)).count()).sum();
    let (load, _) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.lanes, load.sectors), (busy as f64, active as f64, sectors as f64));
    assert_eq!(access(&counts, "random", Kind::Read).0.requests, n as f64);
}

#[test]
fn threads_that_return_early_do_not_keep_others_apart() {
    let counting = Counting::new();
    // Lane 3 returns, and the last block has 40 of 64 threads with work.
    let values: Vec<f32> = (0..104).map(|i| if i % 32 == 3 { -1.0 } else { 1.0 }).collect();
    let (input, mut out) = (counting.upload(&values), counting.zeros::<f32>(104));
    let counts = counting.count(
        "early",
        Launch::linear(2, 64),
        &mut [input.cuda().into(), out.cuda_mut().into(), 104.into()],
    );
    let (load, _) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.lanes), (4.0, 104.0));
    let (store, _) = access(&counts, "out", Kind::Write);
    assert_eq!((store.requests, store.lanes), (4.0, 100.0));
}

#[test]
fn vectors_are_one_access() {
    let counting = Counting::new();
    let (input, mut pairs) = (counting.upload(&[1.0f32; 128]), counting.upload(&[1.0f32; 64]));
    let mut out = counting.zeros::<f32>(64);
    let counts = counting.count(
        "vectors",
        Launch::linear(1, 32),
        &mut [input.cuda().into(), pairs.cuda_mut().into(), out.cuda_mut().into()],
    );
    let (load, _) = access(&counts, "in", Kind::Read);
    assert_eq!((load.requests, load.sectors, load.bytes), (1.0, 16.0, 512.0));
    let (members, _) = access(&counts, "numbers", Kind::Read);
    assert_eq!((members.requests, members.sectors), (1.0, 8.0));
    let (store, _) = access(&counts, "numbers", Kind::Write);
    assert_eq!((store.requests, store.sectors), (1.0, 8.0));
}

#[test]
fn atomics_constants_and_shared_memory_have_turns() {
    let counting = Counting::new();
    let (input, mut counters) = (counting.upload(&[0i32; 32]), counting.zeros::<u32>(2));
    let mut out = counting.zeros::<f32>(32);
    let counts = counting.count(
        "memories",
        grid([1, 1, 1], [32, 1, 1], 256),
        &mut [input.cuda().into(), counters.cuda_mut().into(), out.cuda_mut().into()],
    );
    let (own, _) = access(&counts, "own", Kind::Atomic);
    assert_eq!((own.requests, own.most, own.distinct), (1.0, 8.0, 4.0));
    let (global, _) = access(&counts, "counts", Kind::Atomic);
    assert_eq!((global.requests, global.most, global.sectors, global.space), (1.0, 16.0, 1.0, Space::Global));
    let (own, _) = access(&counts, "own", Kind::Read);
    assert_eq!((own.turns, own.least), (2.0, 1.0));
    // The first request is of one address, the second of two.
    let (weights, _) = access(&counts, "weights", Kind::Read);
    assert_eq!(
        (weights.requests, weights.turns, weights.alike, weights.space),
        (2.0, 3.0, 1.0, Space::Constant)
    );
    let dynamic = access(&counts, "dynamic shared memory", Kind::Write).0;
    assert_eq!((dynamic.turns, dynamic.least), (2.0, 2.0));
    let shuffles: f64 = counts.lines.iter().map(|line| line.exchanges).sum();
    assert_eq!((shuffles, counts.lines.iter().map(|line| line.barriers).sum::<f64>()), (1.0, 2.0));
    assert_eq!(counters.to_vec().unwrap(), [16, 16]);
    assert_eq!(counts.shared, 64 * 4 + 256);
}

#[test]
fn lanes_meet_again_behind_a_call() {
    let counting = Counting::new();
    let (input, mut out) = (counting.upload(&[1.0f32; 64]), counting.zeros::<f32>(32));
    let counts =
        counting.count("calls", Launch::linear(1, 32), &mut [input.cuda().into(), out.cuda_mut().into()]);
    assert_eq!(access(&counts, "out", Kind::Write).0.requests, 1.0);
    assert_eq!(counts.sum(|a| a.requests, |a| a.array == "in"), 2.0);
}

#[test]
fn big_grids_are_sampled_and_still_right() {
    let counting = Counting::new();
    let (blocks, n) = (400u32, 1000i32);
    let (input, mut out) = (counting.upload(&[1.0f32; 1000]), counting.zeros::<f32>(400 * 256));
    let counts = counting.count(
        "many",
        Launch::linear(blocks, 256),
        &mut [input.cuda().into(), out.cuda_mut().into(), n.into()],
    );
    assert!(counts.counted < 100 && counts.whole, "{}", counts.counted);
    assert_eq!(access(&counts, "in", Kind::Read).0.requests, 400.0 * 8.0 * 1000.0);
    assert!(out.to_vec().unwrap().iter().all(|&sum| sum == 1000.0));
}

#[test]
fn of_blocks_that_do_too_much_fewer_warps_are_counted() {
    let counting = Counting::new();
    let n = 50_000usize;
    let input = counting.upload(&vec![1.0f32; n]);
    // 256 threads tell of 100,000 things each or more; twelve million are kept.
    for blocks in [12, 1] {
        let mut out = counting.zeros::<f32>(blocks as usize * 256);
        let counts = counting.count(
            "many",
            Launch::linear(blocks, 256),
            &mut [input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
        );
        assert!(counts.kept < 8 && counts.whole, "{} warps", counts.kept);
        assert_eq!(access(&counts, "in", Kind::Read).0.requests, f64::from(blocks) * 8.0 * n as f64);
        assert!(out.to_vec().unwrap().iter().all(|&sum| sum == n as f32));
    }
}

#[test]
fn a_warp_that_does_too_much_is_not_whole() {
    let counting = Counting::new();
    let n = 500_000usize;
    let (input, mut out) = (counting.upload(&vec![1.0f32; n]), counting.zeros::<f32>(32));
    let counts = counting.count(
        "many",
        Launch::linear(1, 32),
        &mut [input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
    );
    assert!(!counts.whole);
}

#[test]
fn first_and_last_blocks_stand_for_themselves() {
    let counting = Counting::new();
    let (blocks, n) = (402u32, 1000);
    let (input, mut out) = (counting.upload(&vec![1.0f32; n]), counting.zeros::<f32>(402 * 256));
    let counts = counting.count(
        "borders",
        Launch::linear(blocks, 256),
        &mut [input.cuda().into(), out.cuda_mut().into(), (n as i32).into()],
    );
    // The first block returns early: this does not make the others many.
    assert!(counts.counted < 100, "{}", counts.counted);
    assert_eq!(access(&counts, "in", Kind::Read).0.requests, 400.0 * 8.0 * 1000.0 + 2.0 * 8.0);
    assert_eq!(counts.warps, 402.0 * 8.0);
}

#[test]
fn one_condition_twice_keeps_lanes_together_between() {
    let counting = Counting::new();
    let (input, mut out) = (counting.upload(&[1.0f32; 1024]), counting.zeros::<f32>(1024));
    let counts =
        counting.count("halves", Launch::linear(32, 32), &mut [input.cuda().into(), out.cuda_mut().into()]);
    assert_eq!(counts.lines.iter().map(|line| line.barriers).sum::<f64>(), 32.0);
    assert_eq!(access(&counts, "out", Kind::Write).0.requests, 32.0);
}

#[test]
fn only_types_that_are_aligned_make_wide_accesses() {
    let counting = Counting::new();
    let points = counting.upload(&[1.0f32; 256]);
    let (vectors, numbers) = (counting.upload(&[1.0f32; 128]), counting.upload(&[1.0f64; 64]));
    let mut out = counting.zeros::<f32>(128);
    let counts = counting.count(
        "structures",
        Launch::linear(1, 32),
        &mut [points.cuda().into(), vectors.cuda().into(), numbers.cuda().into(), out.cuda_mut().into()],
    );
    // Two lines of four members.
    let of = |array: &str| counts.sum(|a| a.requests, |a| a.array == array);
    assert_eq!(of("points"), 8.0);
    assert_eq!(counts.sum(|a| a.sectors, |a| a.array == "points"), 8.0 * 16.0);
    let (vectors, _) = access(&counts, "vectors", Kind::Read);
    assert_eq!((vectors.requests, vectors.sectors), (1.0, 16.0));
}

#[test]
fn a_pointer_that_depends_on_the_lane_is_one_request() {
    let counting = Counting::new();
    let (one, other) = (counting.upload(&[1.0f32; 32]), counting.upload(&[1.0f32; 32]));
    let mut out = counting.zeros::<f32>(32);
    let counts = counting.count(
        "choice",
        Launch::linear(1, 32),
        &mut [one.cuda().into(), other.cuda().into(), out.cuda_mut().into(), 1.into()],
    );
    let line = |text: &str| counts.lines.iter().find(|line| line.text.contains(text)).unwrap();
    for text in ["sum = in[t]", "sum += near[t]"] {
        let accesses = &line(text).accesses;
        assert_eq!(accesses.iter().map(|a| a.requests).sum::<f64>(), 1.0, "{accesses:#?}");
        assert_eq!(accesses.iter().map(|a| a.lanes).sum::<f64>(), 32.0);
        assert_eq!(accesses.len(), 2);
    }
}

#[test]
fn lanes_part_at_the_line_of_the_condition() {
    let counting = Counting::new();
    let (input, mut out) = (counting.upload(&[3.0f32; 32]), counting.zeros::<f32>(32));
    let counts = counting.count(
        "late",
        Launch::linear(1, 32),
        &mut [input.cuda().into(), out.cuda_mut().into(), 1.into()],
    );
    let parted: Vec<_> =
        counts.lines.iter().filter(|line| line.splits > 0.0).map(|line| line.place.line).collect();
    assert_eq!(parted, [line_of("if (sum > 2 * t)")]);
}

#[test]
fn emulators_that_count_do_not_share_what_they_keep() {
    let counts: Vec<_> = std::thread::scope(|scope| {
        let one = |_| {
            scope.spawn(|| {
                let counting = Counting::new();
                let (input, mut out) = (counting.upload(&[1.0f32; 1000]), counting.zeros::<f32>(16 * 256));
                counting.count_of(
                    &PLAIN,
                    "many",
                    Launch::linear(16, 256),
                    &mut [input.cuda().into(), out.cuda_mut().into(), 1000.into()],
                )
            })
        };
        let all: Vec<_> = (0..2).map(one).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for counts in counts {
        assert_eq!(access(&counts, "in", Kind::Read).0.requests, 16.0 * 8.0 * 1000.0);
    }
}
