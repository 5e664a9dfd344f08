//! A scan of ParaVision as readouts of the scan model.

use std::f64::consts::TAU;
use std::path::Path;

use rayspin_core::{C32, Monitor};
use rayspin_device::cpu::try_reserve;
use rayspin_scan::mri::{Counters, Flags};

use super::axes::{Axis, MOST, axes, fit_lines, shifts};
use super::folder::{Folder, Stored, expect_images};
use super::geometry;
use super::header::{self, Spaces};
use super::jcamp;
use super::order::{self, Objects};
use super::paths::{self, Phase, Train};
use crate::bare_scan::{BareScan, Readout};
use crate::ismrmrd::parse_header;
use crate::{Error, Result, opening};

/// How the scans of a file fill k-space.
enum Kind {
    Grid,
    Train(Train),
    /// Along this many paths.
    Paths(usize),
}

/// Opens a scan: its folder or its raw data.
///
/// Errors: parameters that are absent or contradict each other; methods that are not read; raw data of
/// another size than the parameters say.
pub(super) fn open(path: &Path, monitor: &Monitor<'_>) -> Result<BareScan> {
    let folder = Folder::open(path)?;
    let mut notes = Vec::new();
    expect_images(&folder, &mut notes)?;
    let stored = Stored::of(&folder)?;
    let dims = folder.dims()?;
    let objects = Objects::of(&folder, &mut notes)?;
    let kind = kind(&folder, &stored, &mut notes)?;
    let steps = match kind {
        Kind::Paths(_) => Vec::new(),
        _ => order::steps(&folder, dims)?,
    };
    let mut axes = axes(&folder, dims)?;
    let file = opening::open(&folder.data)?;
    let mut scan = BareScan {
        path: folder.data.clone(),
        file,
        word: stored.word,
        big_endian: stored.big_endian,
        coils: stored.receivers,
        coil_stride: stored.samples as u64 * 2 * stored.word.bytes(),
        header: Default::default(),
        sample_time_us: sample_time_us(&folder)?,
        readouts: Vec::new(),
        places: Vec::new(),
        paths: Vec::new(),
        coil_factors: Vec::new(),
        notes: Vec::new(),
    };
    fit_lines(&mut axes, &steps);
    let offsets = geometry::offsets(&folder, objects.slices)?;
    let on_lines = !matches!(kind, Kind::Paths(_));
    let scales = scales(&folder, stored.receivers, &mut notes)?;
    let mut making = Making {
        folder: &folder,
        stored,
        objects: &objects,
        steps: &steps,
        axes,
        shifts: if on_lines { shifts(&folder, &objects, &offsets, &axes, &mut notes)? } else { Vec::new() },
        scales,
        monitor,
    };
    match &kind {
        Kind::Grid => making.grid(&mut scan, &mut notes)?,
        Kind::Train(train) => making.trains(&mut scan, train, dims, &mut notes)?,
        Kind::Paths(projections) => making.paths(&mut scan, *projections, dims, &mut notes)?,
    }
    if matches!(kind, Kind::Train(_)) && offsets.iter().any(|own| own.read != 0.0) {
        notes.push(
            "the field of view is offset along the readout: phase that the receiver's frequency adds on ramps is not taken off, and \
             images may have ghosts"
                .into(),
        );
    }
    if !on_lines && offsets.iter().any(|own| own.read != 0.0 || own.phase != 0.0) {
        notes.push(
            "the field of view lies at the isocentre in its plane: offsets of radial scans are not applied"
                .into(),
        );
    }
    scan.places = geometry::places(&folder, &objects, &offsets, on_lines, &mut notes)?;
    let spaces = making.spaces(&scan, &kind)?;
    let xml = header::xml(&folder, &spaces)?;
    let (mut header, of_header) = parse_header(&folder.data, xml.as_bytes())?;
    header.xml = Some(xml);
    notes.extend(of_header);
    scan.header = header;
    scan.notes = notes;
    Ok(scan)
}

fn kind(folder: &Folder, stored: &Stored, notes: &mut Vec<String>) -> Result<Kind> {
    if let Some(train) = Train::of(folder, stored.samples, notes)? {
        return Ok(Kind::Train(train));
    }
    let radial = folder.method_name().to_ascii_uppercase().contains("UTE") || folder.method.has("NPro");
    if radial {
        let projections = folder.method.expect_count("NPro")?;
        if !(1..=jcamp::MOST).contains(&projections) {
            return Err(folder.method.field("NPro", format!("1 to {}", jcamp::MOST), projections));
        }
        return Ok(Kind::Paths(projections));
    }
    Ok(Kind::Grid)
}

fn sample_time_us(folder: &Folder) -> Result<f32> {
    let bandwidth = match folder.method.number("PVM_EffSWh")? {
        Some(hertz) => Some(hertz),
        None => folder.acqp.number("SW_h")?,
    };
    Ok(bandwidth.filter(|hertz| *hertz > 0.0).map_or(0.0, |hertz| (1e6 / hertz) as f32))
}

/// Factors of the receivers; none where all are 1.
fn scales(folder: &Folder, receivers: usize, notes: &mut Vec<String>) -> Result<Option<Vec<f32>>> {
    let Some(scales) = folder.method.numbers("PVM_EncChanScaling", 1 << 12)? else { return Ok(None) };
    if scales.len() != receivers || scales.iter().all(|scale| *scale == 1.0) {
        return Ok(None);
    }
    if scales.contains(&0.0) {
        return Err(folder.method.field("PVM_EncChanScaling", "factors other than 0", format!("{scales:?}")));
    }
    notes.push("samples of coils are multiplied by PVM_EncChanScaling".into());
    Ok(Some(scales.into_iter().map(|scale| scale as f32).collect()))
}

/// What the readouts of a scan are made from.
struct Making<'a> {
    folder: &'a Folder,
    stored: Stored,
    objects: &'a Objects,
    steps: &'a [[i32; 2]],
    axes: [Axis; 3],
    /// For each object.
    shifts: Vec<[f64; 2]>,
    scales: Option<Vec<f32>>,
    monitor: &'a Monitor<'a>,
}

impl Making<'_> {
    /// How many repetitions the file holds whole, where each has `scans` scans; the list of readouts has room
    /// for `each` of a scan then.
    ///
    /// Errors: a file that holds no whole one, or more than all; more than memory has.
    fn repetitions(
        &self,
        scan: &mut BareScan,
        scans: usize,
        each: usize,
        notes: &mut Vec<String>,
    ) -> Result<usize> {
        let path = &self.folder.data;
        let bytes = scan.file.metadata().map_err(|e| Error::read(path, e))?.len();
        let repetitions = self.objects.repetitions;
        let own = self.stored.block.checked_mul(scans as u64);
        let whole = own.and_then(|own| own.checked_mul(repetitions as u64));
        let (Some(own), Some(whole)) = (own, whole) else {
            return Err(Error::field(
                path,
                "size of the file",
                format!("{bytes} bytes"),
                "a larger one by the parameters",
            ));
        };
        let stated = format!("{repetitions} × {scans} scans of {} bytes", self.stored.block);
        if bytes > whole {
            let expected = format!("{whole} bytes ({stated}, as acqp and method say)");
            return Err(Error::field(path, "size of the file", expected, format!("{bytes} bytes"))
                .with_hint("the method may store more than rayspin knows of"));
        }
        let there = usize::try_from(bytes / own.max(1)).unwrap_or(0).min(repetitions);
        if there == 0 {
            let expected = format!("{own} bytes of a repetition ({stated})");
            return Err(Error::truncated(path, "raw data", expected, format!("{bytes}")));
        }
        if there < repetitions {
            notes.push(format!(
                "the scan was broken off: its {there} whole repetitions of {repetitions} are used"
            ));
        }
        // The file holds all of them, so that memory follows its size.
        let count = there * scans * each;
        try_reserve("readouts", &mut scan.readouts, count).map_err(|e| Error::core(path, e))?;
        Ok(there)
    }

    /// What samples of a line are multiplied by.
    fn factor(&self, object: usize, step: [i32; 2]) -> C32 {
        let shift = self.shifts.get(object).copied().unwrap_or_default();
        let turns = f64::from(step[0]) * shift[0] + f64::from(step[1]) * shift[1];
        if turns == 0.0 {
            return C32::ONE;
        }
        let angle = (-TAU * turns.rem_euclid(1.0)) as f32;
        C32::new(angle.cos(), angle.sin())
    }

    /// Counters of a line.
    fn counters(&self, object: usize, repetition: usize, step: [i32; 2]) -> Result<Counters> {
        let mut counters = self.objects.counters(object, repetition);
        for (counter, (step, axis)) in [&mut counters.step_1, &mut counters.step_2]
            .into_iter()
            .zip(step.into_iter().zip(&self.axes[1..]))
        {
            let place = i64::from(step) + axis.centre as i64;
            *counter = u16::try_from(place).map_err(|_| {
                self.folder.method.field("PVM_EncSteps1 and PVM_EncSteps2", "lines from 0 to 65535", place)
            })?;
        }
        Ok(counters)
    }

    fn coil_scales(&self, scan: &mut BareScan) -> Option<usize> {
        let scales = self.scales.as_ref()?;
        scan.coil_factors.push(scales.iter().map(|scale| C32::new(*scale, 0.0)).collect());
        Some(scan.coil_factors.len() - 1)
    }

    /// Lines of a grid, one a scan.
    fn grid(&mut self, scan: &mut BareScan, notes: &mut Vec<String>) -> Result<()> {
        let group = order::group(self.folder, self.steps.len())?;
        let samples = self.stored.samples;
        let stated = self.folder.method.counts("PVM_EncMatrix")?.and_then(|own| own.first().copied());
        if stated.is_some_and(|stated| stated != samples) {
            let expected = format!("{samples}, the samples of a scan");
            return Err(self.folder.method.field("PVM_EncMatrix", expected, stated.unwrap_or(0)));
        }
        // A partial echo lacks samples at its start.
        let read = &mut self.axes[0];
        if samples > read.places {
            (read.places, read.centre) = (samples, samples / 2);
        }
        let lacking = read.places - samples;
        let centre = read.centre.checked_sub(lacking).ok_or_else(|| {
            let expected = format!("more than half of {} places", read.places);
            self.folder.method.field("PVM_EncMatrix", expected, samples)
        })?;
        if lacking > 0 {
            notes.push(format!(
                "readouts lack {lacking} of {} samples before the centre of k-space (partial echo); not tried on a real file",
                read.places
            ));
            let own = 100.0 * centre as f64 / samples as f64;
            let stated = self.folder.method.number("PVM_EchoPosition")?;
            if let Some(stated) = stated.filter(|stated| (stated - own).abs() > 200.0 / samples as f64) {
                notes.push(format!(
                    "the echo is stated at {stated:.1} % of a readout (PVM_EchoPosition), and the matrix has it at {own:.1} %, which is taken"
                ));
            }
        }
        let repetitions = self.repetitions(scan, self.steps.len() * self.objects.order.len(), 1, notes)?;
        let coil_factors = self.coil_scales(scan);
        // Every other echo of a train of gradient echoes is read backwards.
        let both_ways = self.folder.method.word("EchoAcqMode") == "allEchoes";
        let mut place = 0;
        for repetition in 0..repetitions {
            self.monitor.check().map_err(|e| Error::core(&scan.path, e))?;
            for lines in self.steps.chunks(group) {
                for &object in &self.objects.order {
                    for &step in lines {
                        let reversed = both_ways && self.objects.echo(object) % 2 == 1;
                        scan.readouts.push(Readout {
                            place,
                            samples,
                            flags: if reversed { Flags::REVERSE } else { Flags::default() },
                            counters: self.counters(object, repetition, step)?,
                            centre_sample: if reversed {
                                samples - 1 - centre.min(samples - 1)
                            } else {
                                centre
                            },
                            path: None,
                            factor: self.factor(object, step),
                            coil_factors,
                        });
                        place += self.stored.block;
                    }
                }
            }
        }
        Ok(())
    }

    /// Trains of echo-planar lines, one a scan.
    fn trains(
        &mut self,
        scan: &mut BareScan,
        train: &Train,
        dims: usize,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let own = train.shots * train.lines;
        if !self.steps.len().is_multiple_of(own) {
            let expected = format!("a multiple of {own} ({} shots of {} lines)", train.shots, train.lines);
            return Err(self.folder.method.field(
                "PVM_EncSteps1",
                expected,
                format!("{} steps", self.steps.len()),
            ));
        }
        let objects = self.objects.order.len();
        let repetitions =
            self.repetitions(scan, self.steps.len() / train.lines * objects, train.lines, notes)?;
        let voxels = self.axes[0].places;
        let phases = paths::phases(self.folder, objects, self.stored.receivers, voxels, notes)?;
        if train.shots > 1 {
            notes.push("echo-planar imaging of several shots was not tried on a real file".into());
        }
        let scaled = |factors: &[C32]| -> Vec<C32> {
            let scale = |coil: usize| {
                self.scales.as_ref().and_then(|scales| scales.get(coil)).copied().unwrap_or(1.0)
            };
            (0..self.stored.receivers)
                .map(|coil| factors.get(coil).copied().unwrap_or(C32::ONE) * scale(coil))
                .collect()
        };
        let plain = self.coil_scales(scan);
        let first = scan.coil_factors.len();
        scan.coil_factors.extend(phases.iter().map(|phase| scaled(&phase.factors)));
        let blank = Phase::default();
        // Lines of an object have paths of their own, which all repetitions share.
        let count = self.steps.len().saturating_mul(objects);
        try_reserve("paths of lines", &mut scan.paths, count).map_err(|e| Error::core(&scan.path, e))?;
        for number in 0..objects {
            let phase = phases.get(number).unwrap_or(&blank);
            for (line, step) in self.steps.iter().enumerate() {
                let reversed = line % train.lines % 2 == 1;
                let steps = step.map(|step| step as f32);
                let shift = if reversed { phase.shift } else { 0.0 };
                scan.paths.push(train.path(reversed, shift, &steps[..dims - 1]));
            }
        }
        let line_bytes = train.samples as u64 * 2 * self.stored.word.bytes();
        let before = train.before as u64 * 2 * self.stored.word.bytes();
        let mut place = 0;
        for repetition in 0..repetitions {
            self.monitor.check().map_err(|e| Error::core(&scan.path, e))?;
            for (shot, lines) in self.steps.chunks(train.lines).enumerate() {
                for (number, &object) in self.objects.order.iter().enumerate() {
                    for (line, &step) in lines.iter().enumerate() {
                        let reversed = line % 2 == 1;
                        scan.readouts.push(Readout {
                            place: place + before + line as u64 * line_bytes,
                            samples: train.samples,
                            flags: if reversed { Flags::REVERSE } else { Flags::default() },
                            counters: Counters {
                                segment: (shot % train.shots) as u16,
                                ..self.counters(object, repetition, step)?
                            },
                            centre_sample: train.samples / 2,
                            path: Some(number * self.steps.len() + shot * train.lines + line),
                            factor: self.factor(object, step),
                            coil_factors: match reversed && number < phases.len() {
                                true => Some(first + number),
                                false => plain,
                            },
                        });
                    }
                    place += self.stored.block;
                }
            }
        }
        Ok(())
    }

    /// Projections along the paths of `traj`, one a scan.
    fn paths(
        &mut self,
        scan: &mut BareScan,
        projections: usize,
        dims: usize,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let group = order::group(self.folder, projections)?;
        let objects = self.objects.order.len();
        let repetitions = self.repetitions(scan, projections.saturating_mul(objects), 1, notes)?;
        let matrix: Vec<usize> = self.axes.iter().take(dims).map(|axis| axis.voxels).collect();
        scan.paths = paths::of_file(self.folder, projections, &matrix)?;
        let samples = self.stored.samples;
        let own = scan.paths.first().map_or(0, |path| path.nrows());
        if own > samples || self.folder.method.word("AcqMode") == "ECHO" && own != samples {
            let expected = format!("{samples} samples of a projection, as the raw data have");
            return Err(Error::field(
                self.folder.path.join("traj"),
                "samples of a projection",
                expected,
                own,
            ));
        }
        if own < samples {
            notes.push(format!(
                "traj has places of {own} of the {samples} samples of a projection: the others are left out"
            ));
        }
        notes.push(
            "traj is taken in cycles per voxel, along read, phase and slice; not tried on a real file".into(),
        );
        for axis in self.axes.iter_mut() {
            (axis.places, axis.centre, axis.encoded_fov_mm) = (axis.voxels, axis.voxels / 2, axis.fov_mm);
        }
        let coil_factors = self.coil_scales(scan);
        let mut place = 0;
        for repetition in 0..repetitions {
            self.monitor.check().map_err(|e| Error::core(&scan.path, e))?;
            for first in (0..projections).step_by(group) {
                for &object in &self.objects.order {
                    for projection in first..first + group {
                        let counters = self.objects.counters(object, repetition);
                        scan.readouts.push(Readout {
                            place,
                            samples: own,
                            flags: Flags::default(),
                            counters: Counters {
                                step_1: u16::try_from(projection).unwrap_or(u16::MAX),
                                ..counters
                            },
                            centre_sample: 0,
                            path: Some(projection),
                            factor: C32::ONE,
                            coil_factors,
                        });
                        place += self.stored.block;
                    }
                }
            }
        }
        Ok(())
    }

    /// What the header says of k-space and of the images.
    fn spaces(&self, scan: &BareScan, kind: &Kind) -> Result<Spaces> {
        if self.axes.iter().any(|axis| axis.places > MOST || axis.voxels > MOST) {
            let found = format!("{:?}", self.axes.map(|axis| axis.places));
            return Err(self.folder.method.field(
                "PVM_EncMatrix",
                format!("at most {MOST} places along an axis"),
                found,
            ));
        }
        let range = |counter: fn(&Readout) -> u16, centre: usize| {
            let values = || scan.readouts.iter().map(counter).map(usize::from);
            [values().min().unwrap_or(0), values().max().unwrap_or(0), centre]
        };
        let on_grid = !matches!(kind, Kind::Paths(_));
        let factor = |name: &str, index: usize, old: &str| {
            let own = self.folder.method.numbers(name, 16)?.and_then(|own| own.get(index).copied());
            let own = match own {
                Some(own) => Some(own),
                None => self.folder.method.number(old)?,
            };
            Ok::<usize, Error>(
                own.filter(|own| on_grid && (1.0..=64.0).contains(own)).map_or(1, |own| own.round() as usize),
            )
        };
        Ok(Spaces {
            encoded: (self.axes.map(|axis| axis.places), self.axes.map(|axis| axis.encoded_fov_mm)),
            recon: (self.axes.map(|axis| axis.voxels), self.axes.map(|axis| axis.fov_mm)),
            lines: range(|readout| readout.counters.step_1, if on_grid { self.axes[1].centre } else { 0 }),
            partitions: range(
                |readout| readout.counters.step_2,
                if on_grid { self.axes[2].centre } else { 0 },
            ),
            slices: self.objects.slices,
            repetitions: 1 + scan
                .readouts
                .iter()
                .map(|readout| usize::from(readout.counters.repetition))
                .max()
                .unwrap_or(0),
            coils: self.stored.receivers,
            trajectory: match kind {
                Kind::Grid => "cartesian",
                Kind::Train(_) => "epi",
                Kind::Paths(_) => "radial",
            },
            acceleration: [
                factor("PVM_EncPpi", 1, "PVM_EncPpiAccel1")?,
                factor("PVM_EncPpi", 2, "PVM_EncPpiAccel2")?,
            ],
        })
    }
}
