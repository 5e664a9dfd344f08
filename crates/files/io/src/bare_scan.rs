//! Scans whose samples stand in a file without heads: a header before them, or parameters beside them, say
//! where each readout begins.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use ndarray::{ArcArray1, ArcArray2, s};
use rayon::prelude::*;
use rayspin_core::{C32, Monitor, all_finite};
use rayspin_device::cpu::{expect_memory, prefer_huge_pages, zeroed};
use rayspin_scan::mri::{
    Acquisition, AcquisitionHead, Counters, Flags, Label, Scan, ScanHeader, SlicePlace, SlicePlaces,
};

use crate::ismrmrd::Contents;
use crate::scan_reader::{ScanReader, batches};
use crate::{Error, Result};

/// How the two parts of a sample are stored, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    I16,
    I32,
    F32,
    F64,
}

impl Word {
    /// Bytes of a part of a sample.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Decodes samples, in either byte order.
    fn decode(self, big_endian: bool, bytes: &[u8], samples: &mut [C32]) {
        fn pairs<const N: usize>(
            bytes: &[u8],
            big_endian: bool,
            samples: &mut [C32],
            number: impl Fn([u8; N]) -> f32,
        ) {
            let part = |mut word: [u8; N]| {
                if big_endian {
                    word.reverse();
                }
                number(word)
            };
            let (words, _) = bytes.as_chunks::<N>();
            for (sample, pair) in samples.iter_mut().zip(words.as_chunks::<2>().0) {
                *sample = C32::new(part(pair[0]), part(pair[1]));
            }
        }
        match self {
            Self::I16 => {
                pairs(bytes, big_endian, samples, |word| f32::from(i16::from_le_bytes(word)));
            }
            Self::I32 => pairs(bytes, big_endian, samples, |word| i32::from_le_bytes(word) as f32),
            Self::F32 => pairs(bytes, big_endian, samples, f32::from_le_bytes),
            Self::F64 => pairs(bytes, big_endian, samples, |word| f64::from_le_bytes(word) as f32),
        }
    }
}

/// A readout of all coils.
#[derive(Debug, Clone)]
pub(crate) struct Readout {
    /// The byte of the file where its first coil begins.
    pub(crate) place: u64,
    pub(crate) samples: usize,
    pub(crate) flags: Flags,
    pub(crate) counters: Counters,
    pub(crate) centre_sample: usize,
    /// Its path, in [`BareScan::paths`].
    pub(crate) path: Option<usize>,
    /// What its samples are multiplied by.
    pub(crate) factor: C32,
    /// What the samples of each coil are multiplied by, in [`BareScan::coil_factors`].
    pub(crate) coil_factors: Option<usize>,
}

/// An open file, and all that is known of its readouts.
pub(crate) struct BareScan {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) word: Word,
    pub(crate) big_endian: bool,
    pub(crate) coils: usize,
    /// Bytes from a coil of a readout to the next one.
    pub(crate) coil_stride: u64,
    pub(crate) header: ScanHeader,
    /// Time between samples, µs; 0 where it is not known.
    pub(crate) sample_time_us: f32,
    pub(crate) readouts: Vec<Readout>,
    /// Places of slices, by the counter.
    pub(crate) places: Vec<SlicePlace>,
    /// Paths through k-space `[sample, dim]`, which readouts share.
    pub(crate) paths: Vec<ArcArray2<f32>>,
    pub(crate) coil_factors: Vec<Vec<C32>>,
    pub(crate) notes: Vec<String>,
}

impl BareScan {
    /// The size of a readout in memory, bytes.
    fn resident(&self, readout: &Readout) -> u64 {
        (self.count(readout) * size_of::<C32>() + size_of::<Acquisition>()) as u64
    }

    /// Samples of all coils.
    fn count(&self, readout: &Readout) -> usize {
        readout.samples * self.coils
    }

    fn place_of(&self, readout: &Readout) -> SlicePlace {
        self.places.get(usize::from(readout.counters.slice)).copied().unwrap_or_default()
    }

    fn trajectory(&self, readout: &Readout) -> Option<ArcArray2<f32>> {
        readout.path.and_then(|path| self.paths.get(path)).cloned()
    }

    fn acquisition(&self, readout: &Readout, data: ArcArray2<C32>) -> Acquisition {
        let SlicePlace { position, directions: [read_dir, phase_dir, slice_dir] } = self.place_of(readout);
        Acquisition {
            flags: readout.flags,
            counters: readout.counters,
            encoding: 0,
            centre_sample: readout.centre_sample,
            discard_pre: 0,
            discard_post: 0,
            sample_time_us: self.sample_time_us,
            time_stamp: 0,
            position,
            read_dir,
            phase_dir,
            slice_dir,
            data,
            trajectory: self.trajectory(readout),
        }
    }

    /// Reads the samples of a readout `[coil, sample]`.
    fn fill(&self, number: usize, readout: &Readout, bytes: &mut Vec<u8>, to: &mut [C32]) -> Result<()> {
        let length = 2 * self.word.bytes() * readout.samples as u64;
        bytes.resize(length as usize, 0);
        let factors = readout.coil_factors.and_then(|index| self.coil_factors.get(index));
        for (coil, row) in to.chunks_exact_mut(readout.samples.max(1)).enumerate() {
            let place = readout.place + coil as u64 * self.coil_stride;
            self.file.read_exact_at(bytes, place).map_err(|e| Error::read(&self.path, e))?;
            self.word.decode(self.big_endian, bytes, row);
            let own = factors.and_then(|factors| factors.get(coil)).copied().unwrap_or(C32::ONE);
            let factor = own * readout.factor;
            if factor != C32::ONE {
                row.iter_mut().for_each(|value| *value *= factor);
            }
        }
        if readout.flags.is_image() && !all_finite(bytemuck::cast_slice(to)) {
            let place = to.iter().position(|value| !value.is_finite()).unwrap_or(0);
            let samples = readout.samples.max(1);
            let field = format!("readout {number}: sample {} of coil {}", place % samples, place / samples);
            let value = to.get(place).copied().unwrap_or_default();
            return Err(Error::field(&self.path, field, "a finite number", value));
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
        let core = |error| Error::core(&self.path, error);
        let chosen: Vec<(usize, &Readout)> =
            wanted.iter().filter_map(|number| Some((*number, self.readouts.get(*number)?))).collect();
        let total = chosen.iter().map(|(_, readout)| self.count(readout)).sum();
        let mut samples: Vec<C32> = zeroed("samples of readouts", total).map_err(core)?;
        prefer_huge_pages(&mut samples);
        let mut parts = Vec::with_capacity(chosen.len());
        let mut rest = &mut samples[..];
        for (number, readout) in &chosen {
            let (own, behind) = rest.split_at_mut(self.count(readout));
            parts.push((*number, *readout, own));
            rest = behind;
        }
        let read = |bytes: &mut Vec<u8>, (number, readout, own): (usize, &Readout, &mut [C32])| {
            monitor.check().map_err(core)?;
            self.fill(number, readout, bytes, own)
        };
        // The error is the first of the file, whichever thread meets one first.
        let results: Vec<Result<()>> = parts.into_par_iter().map_init(Vec::new, read).collect();
        results.into_iter().collect::<Result<()>>()?;
        let samples = ArcArray1::from_vec(samples);
        let mut first = 0;
        for (number, readout) in chosen {
            let own = self.part(&samples, first, readout);
            first += self.count(readout);
            if let Some(data) = own {
                take(number, self.acquisition(readout, data));
            }
        }
        Ok(())
    }

    /// The samples of a readout that begin at an element of `samples`.
    fn part(&self, samples: &ArcArray1<C32>, first: usize, readout: &Readout) -> Option<ArcArray2<C32>> {
        let own = samples.clone().slice_move(s![first..first + self.count(readout)]);
        own.into_shape_with_order((self.coils, readout.samples)).ok()
    }
}

impl ScanReader for BareScan {
    fn path(&self) -> &Path {
        &self.path
    }

    fn header(&self) -> &ScanHeader {
        &self.header
    }

    fn contents(&self) -> Contents {
        let mut images = BTreeMap::new();
        for readout in self.readouts.iter().filter(|readout| readout.flags.is_image()) {
            let bytes = images.entry(Label::of(0, &readout.counters)).or_insert(0u64);
            *bytes = bytes.saturating_add(self.resident(readout));
        }
        let resident = self.readouts.iter().map(|readout| self.resident(readout));
        Contents {
            header: self.header.clone(),
            acquisitions: self.readouts.len(),
            memory_bytes: resident.fold(self.memory_bytes(), u64::saturating_add),
            library_bytes: 0,
            images,
        }
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        let head = |readout: &Readout| AcquisitionHead {
            flags: readout.flags,
            counters: readout.counters,
            encoding: 0,
            time_stamp: 0,
            trajectory: readout.path.is_some(),
            samples: readout.samples,
            centre_sample: readout.centre_sample,
            bytes: self.resident(readout),
        };
        self.readouts.iter().map(head).collect()
    }

    fn slice_places(&self) -> SlicePlaces {
        let mut places = SlicePlaces::default();
        for readout in self.readouts.iter().filter(|readout| readout.flags.is_image()) {
            places.add(&Label::of(0, &readout.counters), self.place_of(readout));
        }
        places
    }

    fn memory_bytes(&self) -> u64 {
        let longest = self.readouts.iter().map(|readout| readout.samples as u64).max().unwrap_or(0);
        let buffers = (2 * self.word.bytes() * longest).saturating_mul(rayon::current_num_threads() as u64);
        let paths: usize = self.paths.iter().map(|path| path.len() * size_of::<f32>()).sum();
        buffers.saturating_add((self.readouts.len() * size_of::<Readout>() + paths) as u64)
    }

    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let wanted: Vec<usize> = wanted.filter(|number| *number < self.readouts.len()).collect();
        // Acquisitions of a batch share memory, which is free once the last of them is.
        for batch in batches(&wanted, |number| self.resident(&self.readouts[*number])) {
            self.together(batch, monitor, take)?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn without_samples(&self) -> Option<Scan> {
        let most = self.readouts.iter().map(|readout| self.count(readout)).max().unwrap_or(0);
        let zeros = ArcArray1::from_vec(zeroed("samples of readouts", most).ok()?);
        let acquisition = |readout: &Readout| Some(self.acquisition(readout, self.part(&zeros, 0, readout)?));
        let acquisitions = self.readouts.iter().map(acquisition).collect::<Option<Vec<_>>>()?;
        Some(Scan { header: self.header.clone(), acquisitions, notes: self.notes.clone() })
    }

    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        let wanted: Vec<usize> = (0..self.readouts.len()).collect();
        let bytes = self.readouts.iter().map(|readout| self.resident(readout));
        expect_memory("readouts", bytes.fold(0, u64::saturating_add))
            .map_err(|error| Error::core(&self.path, error))?;
        let mut acquisitions = Vec::with_capacity(wanted.len());
        self.together(&wanted, monitor, &mut |_, acquisition| acquisitions.push(acquisition))?;
        Ok(Scan { header: self.header, acquisitions, notes: self.notes })
    }
}
