//! What an acquisition states against what it holds.

use std::path::Path;

use ndarray::{ArcArray1, ArcArray2, s};
use rayspin_core::{C32, all_finite};
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Counters, Flags, Label, ScanHeader, SlicePlace};

use super::layout::{Head, Index};
use crate::error::{Error, Result};

/// The parts of a head that needed a check, checked.
pub(super) struct Checked {
    index: usize,
    image: bool,
    encoding: usize,
    samples: usize,
    coils: usize,
    dims: usize,
    discard: [usize; 2],
    counters: Counters,
}

/// An acquisition as the file has it.
pub(super) struct Stored<'a> {
    pub(super) head: &'a Head,
    pub(super) points: &'a [f32],
    pub(super) samples: &'a [f32],
}

/// Memory for samples and for the components of points.
#[derive(Default)]
pub(super) struct Room<'a> {
    pub(super) samples: &'a mut [C32],
    pub(super) points: &'a mut [f32],
}

impl<'a> Room<'a> {
    /// The memory of an acquisition or of several, and what lies behind it.
    pub(super) fn split(self, values: usize, components: usize) -> [Self; 2] {
        let (samples, samples_behind) = self.samples.split_at_mut(values);
        let (points, points_behind) = self.points.split_at_mut(components);
        [Room { samples, points }, Room { samples: samples_behind, points: points_behind }]
    }
}

/// Values of an acquisition's head after checks and repairs.
pub(super) struct Settled {
    centre_sample: usize,
    dirs: [[f32; 3]; 3],
    position: [f32; 3],
    sample_time_us: f32,
    has_points: bool,
}

/// Counts of what was repaired, for one sentence each.
#[derive(Default)]
pub(super) struct Repairs {
    encoding: usize,
    centre: usize,
    discard: usize,
    directions: usize,
    position: usize,
    sample_time: usize,
    no_points: usize,
}

fn field(path: &Path, index: usize, what: &str, expected: impl ToString, found: impl ToString) -> Error {
    Error::field(path, format!("acquisition {index}: {what}"), expected, found)
}

impl Checked {
    /// Checks everything that the head alone tells. `coils` is the first image acquisition and its channels.
    pub(super) fn new(
        path: &Path,
        header: &ScanHeader,
        index: usize,
        head: &Head,
        coils: &mut Option<(usize, u32)>,
        repairs: &mut Repairs,
    ) -> Result<Self> {
        let image = Flags(head.flags).is_image();
        let fail = |what: &str, expected: String, found: u32| field(path, index, what, expected, found);
        // Three components, and density weights behind them.
        if head.trajectory_dimensions > 4 {
            return Err(fail("trajectory_dimensions", "at most 4".into(), head.trajectory_dimensions));
        }
        if image {
            if head.number_of_samples == 0 {
                return Err(fail("number_of_samples", "at least 1".into(), 0));
            }
            if head.active_channels == 0 {
                return Err(fail("active_channels", "at least 1".into(), 0));
            }
            let (first, expected) = *coils.get_or_insert((index, head.active_channels));
            if head.active_channels != expected {
                let expected = format!("{expected}, as acquisition {first} has");
                return Err(fail("active_channels", expected, head.active_channels));
            }
        }
        let mut encoding = head.encoding_space_ref as usize;
        if encoding >= header.encodings.len() {
            if image && header.encodings.len() != 1 {
                let expected = format!("below {}, the number of encodings", header.encodings.len());
                return Err(fail("encoding_space_ref", expected, head.encoding_space_ref));
            }
            repairs.encoding += usize::from(image);
            encoding = 0;
        }
        let (pre, post) = (head.discard_pre, head.discard_post);
        let mut discard = [pre as usize, post as usize];
        if u64::from(pre) + u64::from(post) >= u64::from(head.number_of_samples) && (pre, post) != (0, 0) {
            repairs.discard += usize::from(image);
            discard = [0, 0];
        }
        Ok(Self {
            index,
            image,
            encoding,
            samples: head.number_of_samples as usize,
            coils: head.active_channels as usize,
            dims: head.trajectory_dimensions as usize,
            discard,
            counters: counters(path, index, &head.idx)?,
        })
    }

    /// The image that it is part of, if any.
    pub(super) fn label(&self) -> Option<Label> {
        self.image.then(|| self.counted())
    }

    /// The image that its counters name, whatever its flags say.
    pub(super) fn counted(&self) -> Label {
        Label::of(self.encoding, &self.counters)
    }

    /// Where the acquisition stands.
    pub(super) fn place(&self, head: &Head, bytes: u64) -> AcquisitionHead {
        AcquisitionHead {
            flags: Flags(head.flags),
            counters: self.counters,
            encoding: self.encoding,
            time_stamp: head.acquisition_time_stamp,
            trajectory: self.dims > 0,
            samples: self.samples,
            centre_sample: head.center_sample as usize,
            bytes,
        }
    }

    /// What the head states of the place of its slice, as [`Self::settle`] repairs it.
    pub(super) fn slice_place(&self, head: &Head) -> SlicePlace {
        let stated = [head.read_dir, head.phase_dir, head.slice_dir];
        let finite = head.position.iter().all(|p| p.is_finite());
        SlicePlace {
            position: if finite { head.position } else { [0.0; 3] },
            directions: if orthonormal(&stated) { stated } else { [[0.0; 3]; 3] },
        }
    }

    /// The number of its samples, of all coils.
    pub(super) fn values(&self) -> usize {
        self.coils * self.samples
    }

    /// The number of the components of its points.
    pub(super) fn components(&self) -> usize {
        self.samples * self.dims
    }

    /// The acquisition of a head and its arrays, with which these numbers begin: samples `[coil, sample]`,
    /// and points `[sample, dim]` where it has any.
    pub(super) fn acquisition(
        &self,
        head: &Head,
        settled: &Settled,
        samples: Tail<'_, C32>,
        points: Tail<'_, f32>,
    ) -> Option<Acquisition> {
        let [read_dir, phase_dir, slice_dir] = settled.dirs;
        Some(Acquisition {
            flags: Flags(head.flags),
            counters: self.counters,
            encoding: self.encoding,
            centre_sample: settled.centre_sample,
            discard_pre: self.discard[0],
            discard_post: self.discard[1],
            sample_time_us: settled.sample_time_us,
            time_stamp: head.acquisition_time_stamp,
            position: settled.position,
            read_dir,
            phase_dir,
            slice_dir,
            data: samples.array([self.coils, self.samples])?,
            trajectory: match settled.has_points {
                true => Some(points.array([self.samples, self.dims])?),
                false => None,
            },
        })
    }

    /// Checks the arrays against the head, settles what the head leaves open or states wrongly, and copies
    /// the arrays to `room`, which has [`Self::values`] samples and [`Self::components`] components of
    /// points.
    pub(super) fn settle(
        &self,
        path: &Path,
        header: &ScanHeader,
        &Stored { head, points, samples }: &Stored<'_>,
        room: Room<'_>,
        repairs: &mut Repairs,
    ) -> Result<Settled> {
        let index = self.index;
        let expected = 2 * self.samples * self.coils;
        if samples.len() != expected {
            let expected =
                format!("{expected} numbers (2 × {} samples × {} coils)", self.samples, self.coils);
            return Err(field(path, index, "data", expected, samples.len()));
        }
        let data: &[C32] = bytemuck::cast_slice(samples);
        if self.image
            && !all_finite(samples)
            && let Some(number) = data.iter().position(|z| !z.re.is_finite() || !z.im.is_finite())
        {
            let (coil, sample) = (number / self.samples, number % self.samples);
            let what = format!("data of coil {coil}, sample {sample}");
            return Err(field(path, index, &what, "finite numbers", data[number]));
        }
        room.samples.copy_from_slice(data);
        let has_points = self.check_points(path, points, repairs)?;
        if has_points {
            room.points.copy_from_slice(points);
        }
        let centre_sample = self.centre(header, head, has_points, repairs);
        let mut dirs = [head.read_dir, head.phase_dir, head.slice_dir];
        if dirs != [[0.0; 3]; 3] && !orthonormal(&dirs) {
            repairs.directions += usize::from(self.image);
            dirs = [[0.0; 3]; 3];
        }
        let mut position = head.position;
        if position.iter().any(|p| !p.is_finite()) {
            repairs.position += usize::from(self.image);
            position = [0.0; 3];
        }
        let mut sample_time_us = head.sample_time_us;
        if !sample_time_us.is_finite() || sample_time_us < 0.0 {
            repairs.sample_time += usize::from(self.image);
            sample_time_us = 0.0;
        }
        Ok(Settled { centre_sample, dirs, position, sample_time_us, has_points })
    }

    /// Whether there are points.
    fn check_points(&self, path: &Path, points: &[f32], repairs: &mut Repairs) -> Result<bool> {
        let index = self.index;
        if points.is_empty() {
            repairs.no_points += usize::from(self.image && self.dims > 0);
            return Ok(false);
        }
        let expected = self.components();
        if points.len() != expected {
            let expected =
                format!("{expected} numbers ({} samples × {} dimensions)", self.samples, self.dims);
            return Err(field(path, index, "traj", expected, points.len()));
        }
        if self.image
            && !all_finite(points)
            && let Some(number) = points.iter().position(|k| !k.is_finite())
        {
            let what = format!("traj of sample {}, component {}", number / self.dims, number % self.dims);
            return Err(field(path, index, &what, "finite numbers", points[number]));
        }
        Ok(true)
    }

    /// The sample at the k-space centre. Writers leave it 0 or garbage; a Cartesian line as long as the
    /// encoded matrix has its centre in the middle. The centre of a partial line is found later, from its
    /// samples.
    pub(super) fn centre(
        &self,
        header: &ScanHeader,
        head: &Head,
        trajectory: bool,
        repairs: &mut Repairs,
    ) -> usize {
        let stated = head.center_sample as usize;
        let full = header.encodings.get(self.encoding).is_some_and(|e| e.encoded.matrix[0] == self.samples);
        let unset = stated == 0 && full && !trajectory && self.samples > 1;
        if self.samples > 0 && (stated >= self.samples && (full || trajectory || !self.image) || unset) {
            repairs.centre += usize::from(self.image);
            return self.samples / 2;
        }
        stated
    }
}

/// The numbers of several acquisitions, from an index on.
pub(super) struct Tail<'a, T> {
    pub(super) numbers: &'a ArcArray1<T>,
    pub(super) first: usize,
}

impl<T> Tail<'_, T> {
    /// The array of this shape that begins here.
    fn array(&self, shape: [usize; 2]) -> Option<ArcArray2<T>> {
        let own = self.numbers.clone().slice_move(s![self.first..self.first + shape[0] * shape[1]]);
        own.into_shape_with_order((shape[0], shape[1])).ok()
    }
}

fn counters(path: &Path, index: usize, idx: &Index) -> Result<Counters> {
    let narrow = |name: &str, value: u32| {
        u16::try_from(value).map_err(|_| field(path, index, &format!("idx.{name}"), "at most 65535", value))
    };
    Ok(Counters {
        step_1: narrow("kspace_encode_step_1", idx.kspace_encode_step_1)?,
        step_2: narrow("kspace_encode_step_2", idx.kspace_encode_step_2)?,
        average: narrow("average", idx.average)?,
        slice: narrow("slice", idx.slice)?,
        contrast: narrow("contrast", idx.contrast)?,
        phase: narrow("phase", idx.phase)?,
        repetition: narrow("repetition", idx.repetition)?,
        set: narrow("set", idx.set)?,
        segment: narrow("segment", idx.segment)?,
    })
}

/// Whether three vectors are orthonormal as far as files have it.
fn orthonormal(dirs: &[[f32; 3]; 3]) -> bool {
    (0..3).all(|a| {
        (a..3).all(|b| {
            let dot: f64 = (0..3).map(|i| f64::from(dirs[a][i]) * f64::from(dirs[b][i])).sum();
            (dot - f64::from(u8::from(a == b))).abs() < 1e-3
        })
    })
}

impl Repairs {
    pub(super) fn add(&mut self, other: &Self) {
        let Self { encoding, centre, discard, directions, position, sample_time, no_points } = other;
        self.encoding += encoding;
        self.centre += centre;
        self.discard += discard;
        self.directions += directions;
        self.position += position;
        self.sample_time += sample_time;
        self.no_points += no_points;
    }

    /// One sentence for each kind of repair.
    pub(super) fn say(&self, header: &ScanHeader, coils: Option<usize>, notes: &mut Vec<String>) {
        let mut say = |count: usize, text: &str| {
            if count > 0 {
                let s = if count == 1 { "" } else { "s" };
                notes.push(format!("{count} image acquisition{s}: {text}"));
            }
        };
        say(self.encoding, "encoding_space_ref names no encoding; the only one was taken");
        say(self.centre, "center_sample is not stated or outside the readout; the middle was assumed");
        say(self.discard, "discard_pre and discard_post leave nothing of the readout and were ignored");
        say(self.directions, "direction cosines are not orthonormal and were ignored");
        say(self.position, "the position is not finite and was taken as the isocentre");
        say(self.sample_time, "the dwell time is not a time and was ignored");
        say(self.no_points, "trajectory_dimensions is stated and no trajectory is there");
        if let (Some(stated), Some(coils)) = (header.coils, coils)
            && stated != coils
        {
            notes.push(format!(
                "the header states {stated} receiver channels and the acquisitions have {coils}; the latter hold"
            ));
        }
    }
}
