//! Rows of the GPU with configurations and data that are not theirs: anyone may run them so, and no kernel is
//! launched on what lies outside its arrays.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use rayspin_core::Error;
use rayspin_device::{BackendKind, Device};
use rayspin_emu::Emulator;
use rayspin_planes::histogram::{Form, input::Input};
use rayspin_planes::{box_filter, convolution, histogram};
use rayspin_primitives::{access, coulomb, matrix_product, pi, reduction, sad, sobel, transfers, transpose};
use rayspin_tune::Algorithm;

/// Runs row `name` of `problem` on data made for `data`, with its default configuration but for the changes.
#[track_caller]
fn refused<A: Algorithm>(
    device: &Device,
    algorithm: A,
    problem: &A::Problem,
    data: &A::Problem,
    name: &str,
    changes: &[(&str, i64)],
) {
    let rows = algorithm.variants(problem);
    let row = rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row.backend, BackendKind::Cuda, "{name}");
    let mut data = algorithm.data(data, device, 3).unwrap();
    let mut config = (row.space)(problem).default_config();
    for &(name, value) in changes {
        config = config.with(name, value);
    }
    match row.implementation.launch(&config, &mut data) {
        Err(Error::Value { .. } | Error::Shape { .. }) => {}
        other => panic!("{name} {config}: {other:?}"),
    }
}

#[test]
fn access_patterns_run_on_data_of_their_topic() {
    let device = Emulator::device().unwrap();
    let of = |topic| access::Problem { topic, n: 100 };
    use access::Topic::{Banks, Constant, Order, Records, Texture};
    for (row, topic, others) in [
        ("gpu-random", Order, [Records, Banks]),
        ("gpu-stride", Order, [Constant, Texture]),
        ("gpu-copy", Order, [Banks, Texture]),
        ("gpu-by-columns", Records, [Order, Constant]),
        ("gpu-global", Constant, [Order, Banks]),
        ("gpu-image", Texture, [Order, Banks]),
    ] {
        for other in others {
            refused(&device, access::Access, &of(topic), &of(other), row, &[]);
        }
    }
    let order = of(Order);
    refused(&device, access::Access, &order, &order, "gpu-stride", &[("stride", 0)]);
    for segment in [0, 3, 96] {
        refused(&device, access::Access, &order, &order, "gpu-permuted", &[("segment", segment)]);
    }
    let texture = of(Texture);
    for x in [0, 512] {
        refused(&device, access::Access, &texture, &texture, "gpu-image", &[("x", x)]);
    }
}

#[test]
fn filters_refuse_what_their_strips_and_tiles_do_not_hold() {
    let device = Emulator::device().unwrap();
    // A line has one tap along y, whatever the radius says.
    let line = convolution::Problem { rows: 1, columns: 70, rx: 2, ry: 3, line: true };
    for row in ["gpu-naive", "gpu-shared", "gpu-sliding", "gpu-constant"] {
        refused(&device, convolution::Convolution, &line, &line, row, &[]);
    }
    let far = box_filter::Problem { rows: 9, columns: 300, radius: 100, bytes: true };
    refused(&device, box_filter::BoxFilter, &far, &far, "gpu-fused", &[("v", 8)]);
    let near = box_filter::Problem { radius: 2, ..far };
    let wrong: [(&str, &[(&str, i64)]); 4] = [
        ("gpu-fused", &[("v", 16)]),
        ("gpu-fused", &[("threads", 48)]),
        ("gpu-fused", &[("threads", 16)]),
        ("gpu-scanned", &[("threads", 48)]),
    ];
    for (row, changes) in wrong {
        refused(&device, box_filter::BoxFilter, &near, &near, row, changes);
    }
    let odd = sobel::Problem { rows: 20, columns: 33, scale: 1.0 };
    let wrong: [(&str, &[(&str, i64)]); 5] = [
        ("gpu-packed", &[("align", 16)]),
        ("gpu-halves", &[("align", 2)]),
        ("gpu-packed", &[("rows", 0)]),
        // 2^32 rows of a block, and bytes of a tile that 32 bits do not hold.
        ("gpu-shared", &[("x", 32), ("y", 1 << 10), ("rows", 1 << 22)]),
        ("gpu-shared", &[("rows", 0)]),
    ];
    for (row, changes) in wrong {
        refused(&device, sobel::Sobel, &odd, &odd, row, changes);
    }
    let frames = sad::Problem { height: 9, width: 37, radius: 5 };
    for changes in
        [[("blocks", 0), ("threads", 64)], [("blocks", 65), ("threads", 64)], [("blocks", 4), ("threads", 0)]]
    {
        refused(&device, sad::Sad, &frames, &frames, "gpu-packed", &changes);
    }
}

#[test]
fn counts_and_sums_refuse_blocks_without_room() {
    let device = Emulator::device().unwrap();
    let counted = |bins| histogram::Problem {
        samples: 5000,
        width: histogram::Width::U32,
        bins,
        form: Form::Counts,
        input: Input::Uniform,
    };
    // Beyond the shared memory that the row may count in there are no rows of blocks.
    refused(&device, histogram::Histogram, &counted(20), &counted(20_000), "o10", &[]);
    for changes in [("copies", 3), ("copies", 0), ("unroll", 3), ("unroll", 0), ("threads", 48)] {
        refused(&device, histogram::Histogram, &counted(20), &counted(20), "gpu-copies", &[changes]);
    }
    let sum = reduction::Problem {
        kind: reduction::Kind::Sum,
        element: reduction::Type::I32,
        len: 5000,
        nan: false,
    };
    for threads in [32, 48, 96, 2048] {
        for row in ["gpu-k1", "gpu-k5", "gpu-k6", "gpu-two-level"] {
            refused(&device, reduction::Reduction, &sum, &sum, row, &[("threads", threads)]);
        }
    }
    // More elements a thread than there are blocks, and more blocks than there is room for.
    let long = reduction::Problem { len: 10_000_000, ..sum };
    for (row, changes) in [
        ("gpu-flags", [("threads", 32), ("blocks", 1000), ("unroll", 1)]),
        ("gpu-one-pass", [("threads", 48), ("blocks", 1), ("unroll", 1)]),
        ("gpu-wide", [("threads", 256), ("blocks", 1), ("unroll", 0)]),
    ] {
        refused(&device, reduction::Reduction, &long, &long, row, &changes);
    }
    let mut data = reduction::Reduction.data(&sum, &device, 1).unwrap();
    let row = reduction::Reduction.variants(&sum).into_iter().find(|row| row.name == "gpu-k1").unwrap();
    let config = (row.space)(&sum).default_config();
    // The kernel whose steps are written out, in the program for 256 threads.
    assert!(data.by_levels("k6_unrolled", 2, &config.clone().with("threads", 64)).is_err());
    assert!(data.by_levels("k6_unrolled", 2, &config.with("threads", 256)).is_ok());
    let points = pi::Problem { points: 1000 };
    refused(&device, pi::Pi, &points, &points, "gpu-shuffles", &[("threads", 48)]);
}

#[test]
fn matrices_refuse_tiles_that_threads_do_not_fill() {
    let device = Emulator::device().unwrap();
    let product = matrix_product::Problem { m: 70, n: 68, k: 36 };
    let wrong: [(&str, &[(&str, i64)]); 8] = [
        ("gpu-wide", &[("bk", 6)]),
        ("gpu-wide", &[("tm", 2)]),
        ("gpu-wide", &[("bm", 16)]),
        ("gpu-wide", &[("bm", 1 << 31), ("bn", 1 << 31)]),
        ("gpu-wide", &[("buffers", 0)]),
        ("gpu-async", &[("stages", 0)]),
        ("gpu-async", &[("stages", 1 << 20)]),
        ("gpu-registers", &[("tm", 0)]),
    ];
    for (row, changes) in wrong {
        refused(&device, matrix_product::MatrixProduct, &product, &product, row, changes);
    }
    let turned = transpose::Problem { rows: 33, columns: 66, element: transpose::Type::F32 };
    let wrong: [(&str, &[(&str, i64)]); 8] = [
        ("gpu-wide", &[("v", 2)]),
        ("gpu-wide", &[("v", 0)]),
        ("gpu-wide", &[("tile", 48)]),
        ("gpu-wide", &[("tile", 32), ("tall", 5)]),
        ("gpu-wide", &[("tile", 32), ("tall", 64)]),
        ("gpu-registers", &[("v", 4)]),
        ("gpu-padded", &[("tall", 7)]),
        ("gpu-naive", &[("tall", 0)]),
    ];
    for (row, changes) in wrong {
        refused(&device, transpose::Transpose, &turned, &turned, row, changes);
    }
}

#[test]
fn points_and_copies_refuse_what_32_bits_and_other_places_do_not_hold() {
    let device = Emulator::device().unwrap();
    let grid = coulomb::Problem { atoms: 5, shape: [2, 3, 1100] };
    for changes in [
        [("threads", 1 << 31), ("points", 2)],
        [("threads", 64), ("points", 0)],
        [("threads", 0), ("points", 4)],
    ] {
        refused(&device, coulomb::Coulomb, &grid, &grid, "gpu-points", &changes);
    }
    // Data of an upload have no place on the host to come back to.
    let of = |topic| transfers::Problem { topic, n: 1000, rounds: 3 };
    let (overlap, upload) = (of(transfers::Topic::Overlap), of(transfers::Topic::Upload));
    refused(&device, transfers::Transfers, &overlap, &upload, "gpu-mapped", &[]);
}
