//! An open measurement.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{ArcArray1, ArcArray2, s};
use rayon::prelude::*;
use rayspin_core::{C32, Monitor, all_finite};
use rayspin_device::cpu::{expect_memory, prefer_huge_pages, zeroed};
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Label, Scan, ScanHeader, SlicePlace, SlicePlaces};

use super::block::{Block, bit};
use super::file::{Generation, Measurement, TwixFile};
use super::geometry;
use super::header::{self, Dwell};
use super::list::Blocks;
use super::text::Texts;
use crate::ismrmrd::{Contents, parse_header};
use crate::scan_reader::{ScanReader, batches};
use crate::{Error, Result};

/// A measurement whose header and heads are read.
pub(super) struct Reader {
    file: TwixFile,
    header: ScanHeader,
    readouts: Vec<Block>,
    dwell: Dwell,
    /// Slices as the protocol has them, for heads without a place.
    slices: BTreeMap<u16, geometry::Slice>,
    notes: Vec<String>,
    /// The measurement's place in the file.
    index: usize,
}

impl Reader {
    /// Opens a measurement; the last one without a name.
    ///
    /// Errors: a file that is none of Siemens', a measurement that it does not hold, a broken header, no
    /// readouts, image readouts of different numbers of coils.
    pub(super) fn open(path: &Path, name: Option<&str>, monitor: &Monitor<'_>) -> Result<Self> {
        let file = TwixFile::open(path)?;
        let index = file.choose(name)?;
        let count = file.measurements.len();
        let measurement = file.measurements.get(index).cloned();
        let Some(measurement) = measurement else {
            return Err(Error::field(path, "measurements", "at least one", "none"));
        };
        let texts = Texts::read(&file, &measurement)?;
        let blocks = Blocks::list(&file, &measurement, texts.length, monitor)?;
        let mut notes = Vec::new();
        if count > 1 && name.is_none() {
            notes.push(format!(
                "the file holds {count} measurements, and the last one is read ({}:1 is the first); noise of the others is not used",
                path.file_name().unwrap_or_default().to_string_lossy()
            ));
        }
        // A measurement that is cut short breaks off, too.
        if blocks.broken_off.is_none() {
            notes.extend(measurement.note.clone());
        }
        say(&blocks, &texts, &mut notes);
        expect_coils(path, &blocks.readouts)?;
        let xml = header::xml(&texts, &blocks.readouts, &mut notes);
        let (mut header, of_header) = parse_header(path, xml.as_bytes())?;
        header.xml = Some(xml);
        notes.extend(of_header);
        let mut slices = BTreeMap::new();
        for slice in blocks.readouts.iter().map(|block| block.counters.slice) {
            if !slices.contains_key(&slice)
                && let Some(place) = geometry::of_protocol(&texts, slice)
            {
                slices.insert(slice, place);
            }
        }
        let dwell = Dwell::of(&texts, file.generation == Generation::Vb);
        let reader = Self { header, readouts: blocks.readouts, dwell, slices, notes, index, file };
        Ok(reader.with_repairs_said())
    }

    /// The size of a readout in memory, bytes.
    fn resident(block: &Block) -> u64 {
        (block.count() * size_of::<C32>() + size_of::<Acquisition>()) as u64
    }

    fn label(block: &Block) -> Label {
        Label::of(0, &block.counters)
    }

    /// Where a readout's slice lies: position and directions as its head states them, else as the protocol
    /// does.
    fn slice_place(&self, block: &Block) -> SlicePlace {
        let own = self.slices.get(&block.counters.slice);
        let SlicePlace { position, directions } = own.map_or_else(SlicePlace::default, |slice| SlicePlace {
            position: slice.position,
            directions: slice.directions,
        });
        SlicePlace {
            position: if block.states_position() { block.position } else { position },
            directions: geometry::of_quaternion(block.quaternion).unwrap_or(directions),
        }
    }

    /// With notes on image readouts whose heads state no place.
    fn with_repairs_said(mut self) -> Self {
        let images = || self.readouts.iter().filter(|block| block.flags.is_image());
        let positions = images().filter(|block| !block.states_position()).count();
        let directions = images().filter(|block| geometry::of_quaternion(block.quaternion).is_none()).count();
        for (count, what) in [(positions, "position"), (directions, "directions")] {
            if count > 0 {
                self.notes
                    .push(format!("{count} readouts state no {what} that can be, and have the protocol's"));
            }
        }
        self
    }

    fn acquisition(&self, block: &Block, data: ArcArray2<C32>) -> Acquisition {
        let place = self.slice_place(block);
        let [read_dir, phase_dir, slice_dir] = place.directions;
        let [discard_pre, discard_post] = block.discard.map(usize::from);
        Acquisition {
            flags: block.flags,
            counters: block.counters,
            encoding: 0,
            centre_sample: usize::from(block.centre_sample),
            discard_pre,
            discard_post,
            sample_time_us: self.dwell.of_readout(block),
            time_stamp: block.time_stamp,
            position: place.position,
            read_dir,
            phase_dir,
            slice_dir,
            data,
            trajectory: None,
        }
    }

    /// Reads the samples of a readout `[coil, sample]`.
    fn fill(&self, number: usize, block: &Block, bytes: &mut Vec<u8>, to: &mut [C32]) -> Result<()> {
        let generation = self.file.generation;
        bytes.resize(block.length(generation) as usize, 0);
        self.file.fill(block.place, bytes)?;
        let (length, head) =
            (generation.coil_length(block.samples) as usize, generation.coil_head() as usize);
        let rows = bytes.chunks_exact(length).zip(to.chunks_exact_mut(usize::from(block.samples)));
        for (coil, (bytes, row)) in rows.enumerate() {
            // A head of VB stands before each coil and states the samples again.
            let stated = bytes.get(28..30).map(|two| u16::from_le_bytes([two[0], two[1]]));
            if generation == Generation::Vb && stated != Some(block.samples) {
                let field = format!("readout {number}: samples of coil {coil}");
                let value = stated.map_or_else(String::new, |value| value.to_string());
                return Err(Error::field(&self.file.path, field, block.samples, value));
            }
            for (value, pair) in row.iter_mut().zip(bytes[head..].chunks_exact(8)) {
                let part = |first: usize| {
                    f32::from_le_bytes([pair[first], pair[first + 1], pair[first + 2], pair[first + 3]])
                };
                *value = C32::new(part(0), part(4));
            }
        }
        if block.flags.is_image() && !all_finite(bytemuck::cast_slice(to)) {
            let place = to.iter().position(|value| !value.is_finite()).unwrap_or(0);
            let samples = usize::from(block.samples);
            let field = format!("readout {number}: sample {} of coil {}", place % samples, place / samples);
            let value = to.get(place).copied().unwrap_or_default();
            return Err(Error::field(&self.file.path, field, "a finite number", value));
        }
        Ok(())
    }

    /// Reads readouts that share memory.
    fn together(
        &self,
        wanted: &[usize],
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let core = |error| Error::core(&self.file.path, error);
        let blocks: Vec<(usize, &Block)> =
            wanted.iter().filter_map(|number| Some((*number, self.readouts.get(*number)?))).collect();
        let mut samples: Vec<C32> =
            zeroed("samples of readouts", blocks.iter().map(|(_, block)| block.count()).sum())
                .map_err(core)?;
        prefer_huge_pages(&mut samples);
        let mut parts = Vec::with_capacity(blocks.len());
        let mut rest = &mut samples[..];
        for (number, block) in &blocks {
            let (own, behind) = rest.split_at_mut(block.count());
            parts.push((*number, *block, own));
            rest = behind;
        }
        let read = |bytes: &mut Vec<u8>, (number, block, own): (usize, &Block, &mut [C32])| {
            monitor.check().map_err(core)?;
            self.fill(number, block, bytes, own)
        };
        // The error is the first of the file, whichever thread meets one first.
        let results: Vec<Result<()>> = parts.into_par_iter().map_init(Vec::new, read).collect();
        results.into_iter().collect::<Result<()>>()?;
        let samples = ArcArray1::from_vec(samples);
        let mut first = 0;
        for (number, block) in blocks {
            let own = part(&samples, first, block);
            first += block.count();
            if let Some(data) = own {
                take(number, self.acquisition(block, data));
            }
        }
        Ok(())
    }
}

/// The samples of a readout that begin at an element of `samples`.
fn part(samples: &ArcArray1<C32>, first: usize, block: &Block) -> Option<ArcArray2<C32>> {
    let own = samples.clone().slice_move(s![first..first + block.count()]);
    own.into_shape_with_order((usize::from(block.coils), usize::from(block.samples))).ok()
}

/// Errors: image readouts of different numbers of coils.
fn expect_coils(path: &Path, readouts: &[Block]) -> Result<()> {
    let mut images = readouts.iter().enumerate().filter(|(_, block)| block.flags.is_image());
    let Some((first, block)) = images.next() else { return Ok(()) };
    match images.find(|(_, other)| other.coils != block.coils) {
        Some((number, other)) => {
            let expected = format!("{} coils, as readout {first} has", block.coils);
            Err(Error::field(path, format!("readout {number}: coils"), expected, other.coils))
        }
        None => Ok(()),
    }
}

/// Says what of a measurement is not read, or not as the scanner would.
fn say(blocks: &Blocks, texts: &Texts, notes: &mut Vec<String>) {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let count = blocks.readouts.len();
    if let Some(why) = &blocks.broken_off {
        notes.push(format!(
            "the measurement was broken off: {why}. Its {count} whole readout{} are used",
            plural(count)
        ));
    }
    let physiology = blocks.physiology;
    if physiology > 0 {
        notes.push(format!("physiology ({physiology} block{}) is passed over", plural(physiology)));
    }
    let with =
        |bit: u32| blocks.readouts.iter().filter(|block| block.flags.is_image() && block.has(bit)).count();
    let corrected = with(bit::RAW_DATA_CORRECTION);
    if corrected > 0 {
        notes.push(format!(
            "{corrected} readout{} are marked for the raw-data correction of coils, which is not made",
            plural(corrected)
        ));
    }
    let bands = texts.number("sSliceAcceleration.lMultiBandFactor").filter(|bands| *bands > 1.0);
    if let Some(bands) = bands {
        notes.push(format!(
            "{bands} slices were excited together, and are not separated: images hold their sum"
        ));
    }
}

impl ScanReader for Reader {
    fn path(&self) -> &Path {
        &self.file.path
    }

    fn header(&self) -> &ScanHeader {
        &self.header
    }

    fn contents(&self) -> Contents {
        let mut images = BTreeMap::new();
        for block in self.readouts.iter().filter(|block| block.flags.is_image()) {
            let bytes = images.entry(Self::label(block)).or_insert(0u64);
            *bytes = bytes.saturating_add(Self::resident(block));
        }
        let resident = self.readouts.iter().map(Self::resident).fold(0, u64::saturating_add);
        Contents {
            header: self.header.clone(),
            acquisitions: self.readouts.len(),
            memory_bytes: resident.saturating_add(self.memory_bytes()),
            library_bytes: 0,
            images,
        }
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        let place = |block: &Block| AcquisitionHead {
            flags: block.flags,
            counters: block.counters,
            encoding: 0,
            time_stamp: block.time_stamp,
            trajectory: false,
            samples: usize::from(block.samples),
            centre_sample: usize::from(block.centre_sample),
            bytes: Self::resident(block),
        };
        self.readouts.iter().map(place).collect()
    }

    fn slice_places(&self) -> SlicePlaces {
        let mut places = SlicePlaces::default();
        for block in self.readouts.iter().filter(|block| block.flags.is_image()) {
            places.add(&Self::label(block), self.slice_place(block));
        }
        places
    }

    fn memory_bytes(&self) -> u64 {
        let largest = self.readouts.iter().map(|block| block.length(self.file.generation)).max().unwrap_or(0);
        let buffers = largest.saturating_mul(rayon::current_num_threads() as u64);
        buffers.saturating_add((self.readouts.len() * size_of::<Block>()) as u64)
    }

    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let wanted: Vec<usize> = wanted.filter(|number| *number < self.readouts.len()).collect();
        // Acquisitions of a batch share memory, which is free once the last of them is.
        for batch in batches(&wanted, |number| Self::resident(&self.readouts[*number])) {
            self.together(batch, monitor, take)?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn images_elsewhere(&self) -> Option<String> {
        if self.readouts.iter().any(|block| block.flags.is_image()) {
            return None;
        }
        let has_images = |measurement: &Measurement| {
            let texts = Texts::read(&self.file, measurement).ok()?;
            let blocks = Blocks::list(&self.file, measurement, texts.length, &Monitor::silent()).ok()?;
            blocks.readouts.iter().any(|block| block.flags.is_image()).then_some(())
        };
        let measurements = &self.file.measurements;
        let file = self.file.path.file_name().unwrap_or_default().to_string_lossy();
        let with: Vec<String> = (measurements.iter().enumerate())
            .filter(|(index, measurement)| *index != self.index && has_images(measurement).is_some())
            .map(|(index, _)| format!("{file}:{}", index + 1))
            .collect();
        let (number, count) = (self.index + 1, measurements.len());
        (!with.is_empty())
            .then(|| format!("measurement {number} of {count} was read; images are in {}", with.join(", ")))
    }

    fn without_samples(&self) -> Option<Scan> {
        let largest = self.readouts.iter().map(Block::count).max().unwrap_or(0);
        let zeros = ArcArray1::from_vec(zeroed("samples of readouts", largest).ok()?);
        let acquisition = |block: &Block| Some(self.acquisition(block, part(&zeros, 0, block)?));
        let acquisitions = self.readouts.iter().map(acquisition).collect::<Option<Vec<_>>>()?;
        Some(Scan { header: self.header.clone(), acquisitions, notes: self.notes.clone() })
    }

    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        let wanted: Vec<usize> = (0..self.readouts.len()).collect();
        let bytes = wanted.iter().map(|number| Self::resident(&self.readouts[*number]));
        expect_memory("readouts", bytes.fold(0, u64::saturating_add))
            .map_err(|error| Error::core(&self.file.path, error))?;
        let mut acquisitions = Vec::with_capacity(wanted.len());
        self.together(&wanted, monitor, &mut |_, acquisition| acquisitions.push(acquisition))?;
        Ok(Scan { header: self.header, acquisitions, notes: self.notes })
    }
}
