//! Scans to test with.

use ndarray::Array2;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, TrajectoryUnits};
use rayspin_mri::scan::{
    Acquisition, Counters, EncodedSpace, Encoding, Flags, Limits, RampShape, Ramps, Scan, ScanHeader,
    TrajectoryKind,
};

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn space(rng: &mut impl Rng) -> EncodedSpace {
    EncodedSpace {
        matrix: std::array::from_fn(|_| rng.random_range(1..=512)),
        fov_mm: std::array::from_fn(|_| f64::from(rng.random_range(1..=5000)) / 8.0),
    }
}

fn limits(rng: &mut impl Rng) -> Option<Limits> {
    rng.random_bool(0.6).then(|| {
        let minimum = rng.random_range(0..100);
        let maximum = minimum + rng.random_range(0..100);
        Limits { minimum, maximum, centre: rng.random_range(minimum..=maximum) }
    })
}

fn encoding(rng: &mut impl Rng) -> Encoding {
    let kinds = [
        TrajectoryKind::Cartesian,
        TrajectoryKind::Epi,
        TrajectoryKind::Radial,
        TrajectoryKind::GoldenAngle,
        TrajectoryKind::Spiral,
        TrajectoryKind::Other,
    ];
    Encoding {
        encoded: space(rng),
        recon: space(rng),
        trajectory: kinds[rng.random_range(0..kinds.len())],
        step_1: limits(rng),
        step_2: limits(rng),
        slice: limits(rng),
        repetition: limits(rng),
        acceleration: rng.random_bool(0.5).then(|| [rng.random_range(1..9), rng.random_range(1..9)]),
        ramps: rng.random_bool(0.3).then(|| {
            let samples = rng.random_range(1..300);
            let shape = [RampShape::Trapezoid, RampShape::Sinusoid][rng.random_range(0..2)];
            let mut quarters = || 0.25 * f64::from(rng.random_range(1..999u16));
            let [up_us, flat_us, down_us, delay_us] = [quarters(), quarters(), quarters(), quarters()];
            let sampling_us = quarters() * samples as f64;
            Ramps { shape, up_us, flat_us, down_us, delay_us, sampling_us, samples }
        }),
        places: None,
    }
}

/// A readout of random numbers; `centre_sample` is stated so that no reader needs to guess it.
pub(crate) fn readout(rng: &mut impl Rng, coils: usize, samples: usize, dims: usize) -> Acquisition {
    let mut number = || rng.random_range(-1.0f32..1.0);
    let data = Array2::from_shape_simple_fn((coils, samples), || C32::new(number(), number())).into_shared();
    let trajectory =
        (dims > 0).then(|| Array2::from_shape_simple_fn((samples, dims), &mut number).into_shared());
    let position = [number(), number(), number()];
    let dwell = number().abs();
    let mut counter = || rng.random_range(0..=u16::MAX);
    Acquisition {
        flags: Flags::default(),
        counters: Counters {
            step_1: counter(),
            step_2: counter(),
            average: counter(),
            slice: counter(),
            contrast: counter(),
            phase: counter(),
            repetition: counter(),
            set: counter(),
            segment: counter(),
        },
        encoding: 0,
        centre_sample: if samples > 1 { rng.random_range(1..samples) } else { 0 },
        discard_pre: samples / 5,
        discard_post: samples / 7,
        sample_time_us: dwell,
        time_stamp: rng.random(),
        position,
        read_dir: [0.6, 0.8, 0.0],
        phase_dir: [-0.8, 0.6, 0.0],
        slice_dir: [0.0, 0.0, 1.0],
        data,
        trajectory,
    }
}

/// A scan with random contents of every kind; a reader needs no repair to give it back.
pub(crate) fn scan(seed: u64) -> Scan {
    let rng = &mut rng(seed);
    let coils = rng.random_range(1..=70);
    let encodings: Vec<Encoding> = (0..rng.random_range(1..=3)).map(|_| encoding(rng)).collect();
    let mut acquisitions = Vec::new();
    for _ in 0..rng.random_range(1..=40) {
        let image = rng.random_bool(0.8);
        let coils = if image { coils } else { rng.random_range(0..=5) };
        let samples = rng.random_range(1..=65);
        let dims = rng.random_range(0..=3);
        let mut acquisition = readout(rng, coils, samples, dims);
        acquisition.encoding = rng.random_range(0..encodings.len());
        acquisition.flags = if image {
            [Flags::default(), Flags::REVERSE, Flags::FIRST_IN_SLICE, Flags::bit(64)][rng.random_range(0..4)]
        } else {
            [Flags::NOISE, Flags::CALIBRATION, Flags::PHASE_CORRECTION][rng.random_range(0..3)]
        };
        acquisitions.push(acquisition);
    }
    let units = TrajectoryUnits::ALL[rng.random_range(0..5)].0;
    let names = ["Siemens <&> \"Söhne\"", "日本", "a  b", "x'y", "]]>"];
    let mut name = || rng.random_bool(0.7).then(|| names[rng.random_range(0..names.len())].to_owned());
    let (vendor, model, protocol) = (name(), name(), name());
    Scan {
        header: ScanHeader {
            encodings,
            coils: Some(coils),
            field_strength_t: rng.random_bool(0.7).then(|| rng.random_range(0.01..14.0)),
            vendor,
            model,
            protocol,
            patient_position: rng.random_bool(0.7).then(|| "HFS".to_owned()),
            trajectory_units: rng.random_bool(0.5).then_some(units),
            xml: None,
        },
        acquisitions,
        notes: Vec::new(),
    }
}

/// A small Cartesian scan: `coils` coils, `lines` lines of `samples` samples.
pub(crate) fn cartesian(coils: usize, lines: usize, samples: usize) -> Scan {
    let space = EncodedSpace { matrix: [samples, lines, 1], fov_mm: [256.0, 256.0, 5.0] };
    let rng = &mut rng(7);
    let acquisitions = (0..lines)
        .map(|line| {
            let mut a = readout(rng, coils, samples, 0);
            a.counters = Counters { step_1: u16::try_from(line).unwrap(), ..Counters::default() };
            a
        })
        .collect();
    let encoding = Encoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Cartesian,
        step_1: Some(Limits { minimum: 0, maximum: lines - 1, centre: lines / 2 }),
        step_2: None,
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    };
    Scan {
        header: ScanHeader { encodings: vec![encoding], coils: Some(coils), ..ScanHeader::default() },
        acquisitions,
        notes: Vec::new(),
    }
}
