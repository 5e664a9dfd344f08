//! MRI scans in pickles: what all acquisitions have as a few large arrays, and the header as numbers and
//! texts.

use std::collections::HashMap;
use std::sync::Arc;

use ndarray::{ArcArray1, ArcArray2, Array1, Array2, ArrayD, Ix1, Ix2, IxDyn, s};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{C32, Error, Trajectory, TrajectoryUnits};
use rayspin::io::ArrayFrame;
use rayspin::mri::scan::{
    Acquisition, CalibrationLines, Counters, EncodedSpace, Encoding, Flags, Frame, Label, Limits, RampShape,
    Ramps, Samples, ScanHeader, TrajectoryKind,
};

use super::{Held, Scan};
use crate::error::{raised, raised_of};
use crate::exchange::to_numpy;
use crate::remade::{Parts, Remade, geometry_of, layout_of, layout_parts, place_of};
use crate::signals::Detached;

impl Remade for Scan {
    fn parts<'py>(object: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (object.py(), object.get());
        let parts = PyDict::new(py);
        match &*own.held {
            Held::Whole(scan) => {
                parts.set_item("kind", "acquisitions")?;
                put_header(&parts, &scan.header)?;
                py.detached(|| Packed::of(&scan.acquisitions))??.put(&parts)?;
                parts.set_item("notes", &scan.notes)?;
            }
            Held::Image(array) => {
                parts.set_item("kind", "image")?;
                put_frame(&parts, &array.frame)?;
                parts.set_item("layout", layout_parts(&array.layout))?;
                parts.set_item("readout", array.readout)?;
                parts.set_item("notes", &array.notes)?;
            }
        }
        parts.set_item("sources", own.sources.iter().map(|file| file.as_os_str()).collect::<Vec<_>>())?;
        Ok(parts)
    }

    fn of_parts<'py>(parts: &Parts<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, kind) = (parts.python(), parts.get::<String>("kind")?);
        let notes = parts.get("notes")?;
        let held = match &kind[..] {
            "acquisitions" => {
                let (header, packed) = (header_of(parts)?, Packed::taken(parts)?);
                let scan = py.detached(|| {
                    let acquisitions = packed.acquisitions()?;
                    let scan = rayspin::mri::scan::Scan { header, acquisitions, notes };
                    scan.check().map(|()| scan)
                });
                Held::Whole(Arc::new(scan?.map_err(raised)?))
            }
            "image" => {
                let frame = frame_of(parts)?;
                py.detached(|| frame.check())?.map_err(raised)?;
                let (layout, readout) = (layout_of(parts.get("layout")?)?, parts.get("readout")?);
                Held::Image(Arc::new(ArrayFrame { frame, layout, readout, notes }))
            }
            _ => return Err(raised(Error::value("kind", "acquisitions or image", kind))),
        };
        let scan = Self { held: Arc::new(held), sources: parts.get("sources")? };
        Ok(Bound::new(py, scan)?.into_any())
    }
}

/// Whole numbers of an acquisition: flags, encoding, centre sample, discarded samples before and after, time
/// stamp, nine counters, coils, samples, dimensions of the trajectory (-1: none), and where its samples and
/// points begin in the arrays of all.
const NUMBERS: usize = 20;
/// Lengths of an acquisition: dwell time, position and directions.
const LENGTHS: usize = 13;
const OF_ACQUISITIONS: &str = "[acquisition, number]";

/// Acquisitions as a few arrays. What acquisitions share is there once.
struct Packed {
    numbers: Array2<i64>,
    lengths: Array2<f32>,
    samples: Array1<C32>,
    points: Array1<f32>,
}

/// Arrays one behind the other, each once.
struct Joined<T> {
    values: Vec<T>,
    places: HashMap<(usize, [usize; 2], [isize; 2]), usize>,
}

impl<T: Copy> Joined<T> {
    fn new() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }

    /// Where an array begins, which is added unless it is there. Errors: no memory.
    fn place(&mut self, array: &ArcArray2<T>) -> PyResult<usize> {
        let (rows, columns) = array.dim();
        let strides = [array.strides()[0], array.strides()[1]];
        let key = (array.as_ptr().addr(), [rows, columns], strides);
        if let Some(&place) = self.places.get(&key) {
            return Ok(place);
        }
        let place = self.values.len();
        let short = |_| PyMemoryError::new_err("no memory for a copy of the scan's samples");
        self.values.try_reserve(array.len()).map_err(short)?;
        self.values.extend(array.iter());
        self.places.insert(key, place);
        Ok(place)
    }
}

impl Packed {
    fn of(acquisitions: &[Acquisition]) -> PyResult<Self> {
        let mut numbers = Array2::zeros((acquisitions.len(), NUMBERS));
        let mut lengths = Array2::zeros((acquisitions.len(), LENGTHS));
        let (mut samples, mut points) = (Joined::new(), Joined::new());
        let rows = numbers.rows_mut().into_iter().zip(lengths.rows_mut());
        for (one, (mut numbers, mut lengths)) in acquisitions.iter().zip(rows) {
            let Counters { step_1, step_2, average, slice, contrast, phase, repetition, set, segment } =
                one.counters;
            let counters = [step_1, step_2, average, slice, contrast, phase, repetition, set, segment];
            let (coils, count) = one.data.dim();
            let from = match &one.trajectory {
                Some(trajectory) => points.place(trajectory)?,
                None => 0,
            };
            let dims = one.trajectory.as_ref().map_or(-1, |trajectory| trajectory.ncols() as i64);
            let first = [
                one.flags.0.cast_signed(),
                one.encoding as i64,
                one.centre_sample as i64,
                one.discard_pre as i64,
                one.discard_post as i64,
                one.time_stamp.into(),
            ];
            let last = [coils as i64, count as i64, dims, samples.place(&one.data)? as i64, from as i64];
            let row = first.into_iter().chain(counters.map(i64::from)).chain(last);
            numbers.iter_mut().zip(row).for_each(|(to, from)| *to = from);
            let place = [one.position, one.read_dir, one.phase_dir, one.slice_dir];
            let row = std::iter::once(one.sample_time_us).chain(place.into_iter().flatten());
            lengths.iter_mut().zip(row).for_each(|(to, from)| *to = from);
        }
        Ok(Self { numbers, lengths, samples: samples.values.into(), points: points.values.into() })
    }

    fn put(self, parts: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = parts.py();
        parts.set_item("numbers", numpy::PyArray::from_owned_array(py, self.numbers))?;
        parts.set_item("lengths", to_numpy(py, self.lengths.into_dyn()))?;
        parts.set_item("samples", to_numpy(py, self.samples.into_dyn()))?;
        parts.set_item("points", to_numpy(py, self.points.into_dyn()))
    }

    /// Errors: arrays of another type or with other axes.
    fn taken(parts: &Parts<'_>) -> PyResult<Self> {
        let numbers = parts.array::<i64, Ix2>("numbers", OF_ACQUISITIONS)?;
        let lengths = parts.array::<f32, Ix2>("lengths", OF_ACQUISITIONS)?;
        let samples = parts.array::<C32, Ix1>("samples", "[sample]")?;
        let points = parts.array::<f32, Ix1>("points", "[component]")?;
        for (what, found, expected) in
            [("numbers", numbers.shape(), NUMBERS), ("lengths", lengths.shape(), LENGTHS)]
        {
            let expected = [numbers.nrows(), expected];
            if found != expected {
                return Err(raised(Error::shape(what, &expected, found)));
            }
        }
        Ok(Self { numbers, lengths, samples, points })
    }

    /// Errors: numbers that are out of range or name samples that there are not.
    fn acquisitions(self) -> Result<Vec<Acquisition>, Error> {
        let (samples, points) = (self.samples.into_shared(), self.points.into_shared());
        let rows = self.numbers.rows().into_iter().zip(self.lengths.rows());
        let made = rows.enumerate().map(|(index, (numbers, lengths))| {
            let wrong = |column: usize| {
                let what = format!("acquisition {index}: number {column}");
                Error::value(what, "one in range, of samples that are there", numbers[column])
            };
            let number = |column: usize| usize::try_from(numbers[column]).map_err(|_| wrong(column));
            let counter = |column: usize| u16::try_from(numbers[column]).map_err(|_| wrong(column));
            let vector = |first: usize| std::array::from_fn(|axis| lengths[first + axis]);
            let (coils, count) = (number(15)?, number(16)?);
            let trajectory = match numbers[17] {
                -1 => None,
                _ => Some(part(&points, number(19)?, [count, number(17)?]).ok_or_else(|| wrong(19))?),
            };
            Ok(Acquisition {
                flags: Flags(numbers[0].cast_unsigned()),
                counters: Counters {
                    step_1: counter(6)?,
                    step_2: counter(7)?,
                    average: counter(8)?,
                    slice: counter(9)?,
                    contrast: counter(10)?,
                    phase: counter(11)?,
                    repetition: counter(12)?,
                    set: counter(13)?,
                    segment: counter(14)?,
                },
                encoding: number(1)?,
                centre_sample: number(2)?,
                discard_pre: number(3)?,
                discard_post: number(4)?,
                sample_time_us: lengths[0],
                time_stamp: u32::try_from(numbers[5]).map_err(|_| wrong(5))?,
                position: vector(1),
                read_dir: vector(4),
                phase_dir: vector(7),
                slice_dir: vector(10),
                data: part(&samples, number(18)?, [coils, count]).ok_or_else(|| wrong(18))?,
                trajectory,
            })
        });
        made.collect()
    }
}

/// The array of this shape that begins at an element of `values`; none where it ends beyond.
fn part<T>(values: &ArcArray1<T>, first: usize, [rows, columns]: [usize; 2]) -> Option<ArcArray2<T>> {
    let end = rows.checked_mul(columns)?.checked_add(first).filter(|&end| end <= values.len())?;
    values.clone().slice_move(s![first..end]).into_shape_with_order((rows, columns)).ok()
}

const KINDS: [(TrajectoryKind, &str); 6] = [
    (TrajectoryKind::Cartesian, "cartesian"),
    (TrajectoryKind::Epi, "epi"),
    (TrajectoryKind::Radial, "radial"),
    (TrajectoryKind::GoldenAngle, "goldenangle"),
    (TrajectoryKind::Spiral, "spiral"),
    (TrajectoryKind::Other, "other"),
];

type SpaceParts = ([usize; 3], [f64; 3]);
type LimitsParts = Option<(usize, usize, usize)>;
/// The spaces to encode and to reconstruct, the trajectory, limits of both phase encodings, slices and
/// repetitions, the acceleration, and the ramps of the readout gradient.
type EncodingParts =
    (SpaceParts, SpaceParts, String, [LimitsParts; 4], Option<[usize; 2]>, Option<RampParts>);
/// Whether ramps are a sine's, their times, and the number of samples.
type RampParts = (bool, [f64; 5], usize);

fn put_header(parts: &Bound<'_, PyDict>, header: &ScanHeader) -> PyResult<()> {
    let space = |space: &EncodedSpace| (space.matrix, space.fov_mm);
    let limits =
        |limits: Option<Limits>| limits.map(|Limits { minimum, maximum, centre }| (minimum, maximum, centre));
    let encoding = |one: &Encoding| -> EncodingParts {
        let name = KINDS.iter().find(|(kind, _)| *kind == one.trajectory).map_or("other", |(_, name)| name);
        let limits = [one.step_1, one.step_2, one.slice, one.repetition].map(limits);
        let ramps = one.ramps.map(|ramps| {
            let Ramps { shape, up_us, flat_us, down_us, delay_us, sampling_us, samples } = ramps;
            (shape == RampShape::Sinusoid, [up_us, flat_us, down_us, delay_us, sampling_us], samples)
        });
        (space(&one.encoded), space(&one.recon), name.to_owned(), limits, one.acceleration, ramps)
    };
    parts.set_item("encodings", header.encodings.iter().map(encoding).collect::<Vec<_>>())?;
    parts.set_item("coils", header.coils)?;
    parts.set_item("field_strength_t", header.field_strength_t)?;
    parts.set_item("vendor", &header.vendor)?;
    parts.set_item("model", &header.model)?;
    parts.set_item("protocol", &header.protocol)?;
    parts.set_item("patient_position", &header.patient_position)?;
    parts.set_item("trajectory_units", header.trajectory_units.map(TrajectoryUnits::name))?;
    parts.set_item("xml", &header.xml)
}

fn header_of(parts: &Parts<'_>) -> PyResult<ScanHeader> {
    let space = |(matrix, fov_mm): SpaceParts| EncodedSpace { matrix, fov_mm };
    let limits =
        |limits: LimitsParts| limits.map(|(minimum, maximum, centre)| Limits { minimum, maximum, centre });
    let encoding = |(encoded, recon, name, counters, acceleration, ramps): EncodingParts| {
        let trajectory = KINDS.iter().find(|(_, one)| *one == name).map(|(kind, _)| *kind);
        let names = || KINDS.map(|(_, name)| name).join(", ");
        let trajectory = trajectory.ok_or_else(|| raised(Error::value("trajectory", names(), &name)))?;
        let [step_1, step_2, slice, repetition] = counters.map(limits);
        let (encoded, recon) = (space(encoded), space(recon));
        let ramps = ramps.map(|(sine, [up_us, flat_us, down_us, delay_us, sampling_us], samples)| {
            let shape = if sine { RampShape::Sinusoid } else { RampShape::Trapezoid };
            Ramps { shape, up_us, flat_us, down_us, delay_us, sampling_us, samples }
        });
        // A scan of Python is as its file has it: without a sequence, which alone gives places.
        let places = None;
        Ok(Encoding {
            encoded,
            recon,
            trajectory,
            step_1,
            step_2,
            slice,
            repetition,
            acceleration,
            ramps,
            places,
        })
    };
    let units: Option<String> = parts.get("trajectory_units")?;
    let units = units.map(|units| units.parse()).transpose();
    Ok(ScanHeader {
        encodings: parts
            .get::<Vec<EncodingParts>>("encodings")?
            .into_iter()
            .map(encoding)
            .collect::<PyResult<_>>()?,
        coils: parts.get("coils")?,
        field_strength_t: parts.get("field_strength_t")?,
        vendor: parts.get("vendor")?,
        model: parts.get("model")?,
        protocol: parts.get("protocol")?,
        patient_position: parts.get("patient_position")?,
        trajectory_units: units.map_err(|error| raised_of("trajectory_units", error))?,
        xml: parts.get("xml")?,
    })
}

fn put_frame(parts: &Bound<'_, PyDict>, frame: &Frame) -> PyResult<()> {
    let py = parts.py();
    let Label { encoding, contrast, phase, set, repetition, slice } = frame.label;
    parts.set_item("label", (encoding, contrast, phase, set, repetition, slice))?;
    parts.set_item("matrix", &frame.matrix)?;
    parts.set_item("place", place_of(&frame.geometry))?;
    match &frame.samples {
        Samples::Cartesian { kspace, sampled } => {
            parts.set_item("trajectory", py.None())?;
            put_grid(parts, ["samples", "sampled"], kspace, sampled)?;
        }
        Samples::NonCartesian { trajectory, data } => {
            parts.set_item("trajectory", to_numpy(py, trajectory.points().to_owned().into_dyn()))?;
            parts.set_item("samples", to_numpy(py, data.clone().into_dyn()))?;
        }
    }
    let times = frame.times.clone().map(|times| to_numpy(py, Array1::from(times).into_dyn()));
    parts.set_item("times", times)?;
    parts.set_item("interpolated", frame.interpolated)?;
    match &frame.calibration {
        None => parts.set_item("calibration", py.None()),
        Some(lines) => put_grid(parts, ["calibration", "calibration_sampled"], &lines.kspace, &lines.sampled),
    }
}

fn put_grid(
    parts: &Bound<'_, PyDict>,
    [values, places]: [&str; 2],
    kspace: &ArrayD<C32>,
    sampled: &ArrayD<bool>,
) -> PyResult<()> {
    let py = parts.py();
    parts.set_item(values, to_numpy(py, kspace.clone()))?;
    parts.set_item(places, numpy::PyArray::from_owned_array(py, sampled.mapv(u8::from)))
}

/// The samples of a grid, and where they were measured.
fn grid_of(parts: &Parts<'_>, [values, places]: [&str; 2]) -> PyResult<(ArrayD<C32>, ArrayD<bool>)> {
    let sampled = parts.array::<u8, IxDyn>(places, "of the grid")?.mapv(|byte| byte != 0);
    Ok((parts.array(values, "[coil, grid]")?, sampled))
}

fn frame_of(parts: &Parts<'_>) -> PyResult<Frame> {
    let (encoding, contrast, phase, set, repetition, slice) = parts.get("label")?;
    let samples = match parts.array_or_none::<f64, Ix2>("trajectory", "[sample, dim]")? {
        None => {
            let (kspace, sampled) = grid_of(parts, ["samples", "sampled"])?;
            Samples::Cartesian { kspace, sampled }
        }
        Some(points) => Samples::NonCartesian {
            trajectory: Trajectory::from_cycles_per_fov(points).map_err(raised)?,
            data: parts.array("samples", "[coil, sample]")?,
        },
    };
    let calibration = match parts.any("calibration")?.is_none() {
        true => None,
        false => {
            let (kspace, sampled) = grid_of(parts, ["calibration", "calibration_sampled"])?;
            Some(CalibrationLines { kspace, sampled })
        }
    };
    Ok(Frame {
        label: Label { encoding, contrast, phase, set, repetition, slice },
        matrix: parts.get("matrix")?,
        geometry: geometry_of(parts.get("place")?),
        samples,
        times: parts.array_or_none::<f64, Ix1>("times", "[sample]")?.map(|times| times.to_vec()),
        calibration,
        interpolated: parts.get("interpolated")?,
    })
}
