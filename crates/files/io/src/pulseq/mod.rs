//! Pulseq sequences (`.seq`, versions 1.2 to 1.5): where the samples of a scan lie in k-space.
//!
//! ```text
//! k(t) = ∫_{t_e}^{t} G(τ) dτ,   t_e the centre of the last excitation;   k → −k at the centre of a refocusing pulse
//! ```
//!
//! G is the gradient in Hz/m, and k is in cycles/m. Sample i of a readout is taken at (i + ½) dwell after its
//! delay. Before version 1.5 files do not state the use of a pulse: a flip angle up to 90° excites, a larger
//! one refocuses. Inversion and saturation come before an excitation, so that they do not count.
//!
//! Readouts that are lines along x, whole cycles per field of view apart, make a Cartesian or echo-planar
//! scan. All others lie along a trajectory. An axis along which k is the same for all samples is not encoded.
//!
//! K. J. Layton et al., *Pulseq: a rapid and hardware-independent pulse sequence prototyping framework*, Magn
//! Reson Med 77:1544, 2017; the format's specification (pulseq.github.io).

mod kspace;
mod lines;
mod parse;
mod shape;
#[cfg(test)]
mod tests;
mod timing;

use std::path::{Path, PathBuf};

use ndarray::{ArcArray2, Array2};
use rayspin_core::{Monitor, TrajectoryUnits};
use rayspin_scan::mri::{
    Acquisition, AcquisitionHead, EncodedSpace, Flags, MAX_MATRIX, Scan, ScanHeader, SlicePlaces,
    TrajectoryKind,
};

use self::lines::{Line, Lines};
use self::timing::Times;
use crate::ismrmrd::with_sequence;
use crate::scan_reader::{Contents, ScanReader};
use crate::{Error, Result, read_text};

/// Cycles per field of view that a line of phase encoding is wide at most.
const LINE: f64 = 1e-2;
/// How much k may change along an axis that is not encoded, as a part of its change along the widest axis.
/// Rounding of areas in the file stays below 1e-5.
const CONSTANT: f64 = 1e-4;
/// Cycles per field of view by which all samples may lie off the centre without a word.
const OFFSET: f64 = 0.5;
/// Cycles per field of view by which samples may lie beyond the edge of the matrix.
const EDGE: f64 = 0.25;

/// The readouts of a sequence.
///
/// ```
/// use rayspin_io::pulseq::Sequence;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("line.seq");
/// // A block pulse, then a trapezoid whose flat top is sampled four times.
/// std::fs::write(&file, "\
/// [VERSION]\nmajor 1\nminor 4\nrevision 0\n[DEFINITIONS]\nFOV 0.2 0.2 0.005\n
/// [BLOCKS]\n1 10 1 0 0 0 0 0\n2 60 0 1 0 0 1 0\n[RF]\n1 2500 1 2 0 0 0 0\n
/// [TRAP]\n1 50000 100 400 100 0\n[ADC]\n1 4 100000 100 0 0\n
/// [SHAPES]\nshape_id 1\nnum_samples 100\n1\n0\n0\n97\n\nshape_id 2\nnum_samples 100\n0\n0\n98\n")?;
/// let sequence = Sequence::read(&file)?;
/// let k = &sequence.readouts()[0]; // [sample, axis], cycles/m
/// // The ramp has 50000 · 100e-6 / 2 = 2.5, and a sample more has 5.
/// assert!((k[[0, 0]] - 5.0).abs() < 1e-9 && (k[[3, 0]] - 20.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequence {
    path: PathBuf,
    readouts: Vec<Array2<f64>>,
    fov_mm: Option<[f64; 3]>,
    /// The note on a field of view that the sequence does not state as three lengths in m.
    fov_said: Option<String>,
    times: Times,
    on_lines: bool,
}

/// The field of view in mm that a sequence defines, and a note where it is not three lengths in m.
fn field_of_view(text: &parse::Text) -> (Option<[f64; 3]>, Option<String>) {
    let own = text.numbers("FOV").and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
    match own.filter(|own| own.iter().all(|length| length.is_finite() && *length > 0.0)) {
        // No scanner is as wide as a metre along all axes.
        Some(own) if own.iter().all(|length| *length > 1.0) => {
            let [x, y, z] = own;
            (
                Some(own),
                Some(format!("defines a FOV of {x} {y} {z}, which is read as mm: in m no scanner holds it")),
            )
        }
        Some(own) => (Some(own.map(|metres| 1e3 * metres)), None),
        None => {
            let stated = text.definitions.get("FOV");
            let what =
                |stated: &String| format!("defines the FOV '{stated}', which is not three lengths in m");
            (None, Some(stated.map_or_else(|| "defines no FOV".to_owned(), what)))
        }
    }
}

impl Sequence {
    /// Reads a `.seq` file.
    ///
    /// Errors: a file that cannot be read, another format or version, events and shapes that are not there or
    /// contradict themselves, an extension that changes gradients (rotations).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = parse::Text::parse(path, &read_text(path)?)?;
        let (fov_mm, fov_said) = field_of_view(&text);
        let (readouts, times) = kspace::Timeline::new(path, &text).readouts()?;
        if readouts.is_empty() {
            return Err(Error::field(path, "ADC events", "at least one", 0));
        }
        Ok(Self { path: path.to_owned(), readouts, fov_mm, fov_said, times, on_lines: true })
    }

    /// The sequence whose readouts lie along trajectories, also where they are the lines of a grid.
    pub fn along_trajectories(self) -> Self {
        Self { on_lines: false, ..self }
    }

    /// The places of the samples of each ADC event that is played, in order: `[sample, axis]`, cycles/m.
    pub fn readouts(&self) -> &[Array2<f64>] {
        &self.readouts
    }

    /// The field of view along x, y and z in mm, where the file defines it.
    pub fn fov_mm(&self) -> Option<[f64; 3]> {
        self.fov_mm
    }

    /// Where each of a scan's acquisitions lies, by what each is for and its samples; noise lies nowhere. The
    /// header is the scan's.
    ///
    /// Errors: other numbers of readouts or samples than the sequence has.
    fn placement(&self, header: &ScanHeader, heads: &[AcquisitionHead]) -> Result<Placement> {
        let played = || heads.iter().filter(|head| !head.flags.contains(Flags::NOISE));
        let count = played().count();
        if count != self.readouts.len() {
            let expected = format!("{count}, one for each readout of the scan");
            return Err(Error::field(&self.path, "ADC events", expected, self.readouts.len()));
        }
        for (number, (AcquisitionHead { samples, .. }, own)) in played().zip(&self.readouts).enumerate() {
            if *samples != own.nrows() {
                let field = format!("samples of ADC event {number}");
                return Err(Error::field(
                    &self.path,
                    field,
                    format!("{samples}, as the scan has"),
                    own.nrows(),
                ));
            }
        }
        let mut header = self.header(header);
        header.xml = header.xml.map(|xml| with_sequence(xml, &self.followed(played())));
        let flags: Vec<Flags> = played().map(|head| head.flags).collect();
        let lines = self.lines(&header, &flags);
        let images = flags.iter().filter(|flags| flags.is_image()).count();
        let notes = self.said(&header, lines.as_ref(), images);
        let places: Vec<Place> = match &lines {
            Ok(lines) => {
                header.trajectory_units = None;
                header.encodings.iter_mut().for_each(|encoding| lines.describe(encoding));
                lines.each.iter().map(|line| Place::of(lines, line)).collect()
            }
            Err(_) => {
                let encoded = self.encoded();
                let dims = dims(encoded);
                let along = |places: &Array2<f64>| {
                    Array2::from_shape_fn((places.nrows(), dims), |(sample, axis)| match encoded[axis] {
                        true => places[[sample, axis]] as f32,
                        false => 0.0,
                    })
                };
                self.readouts.iter().map(|places| Place::Along(along(places).into_shared())).collect()
            }
        };
        let mut places = places.into_iter();
        let mut of = |flags: Flags| match flags.contains(Flags::NOISE) {
            true => Place::Nowhere,
            false => places.next().unwrap_or(Place::Nowhere),
        };
        let places = heads.iter().map(|head| of(head.flags)).collect();
        Ok(Placement { header, places, notes })
    }

    /// The lines of a grid that the readouts are. Errors: why they are none, in words.
    fn lines(&self, header: &ScanHeader, flags: &[Flags]) -> std::result::Result<Lines, &'static str> {
        if !self.on_lines {
            return Err("the method takes samples along one, and readouts of two directions are not aligned");
        }
        let Some(first) = header.encodings.first() else { return Err("the header has no encoding") };
        if header.encodings.iter().any(|encoding| encoding.recon != first.recon) {
            return Err("the header has several fields of view");
        }
        Lines::of(&self.readouts, flags, &first.recon, self.encoded())
    }

    /// Says what was understood of readouts, among which are this number of images'.
    fn said(
        &self,
        header: &ScanHeader,
        lines: std::result::Result<&Lines, &&'static str>,
        images: usize,
    ) -> Vec<String> {
        let Some(encoding) = header.encodings.first() else { return Vec::new() };
        let [x, y, z] = encoding.recon.matrix;
        let size = if z == 1 { format!("{x} × {y}") } else { format!("{x} × {y} × {z}") };
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let how = match lines {
            Ok(lines) => match lines.each.iter().filter(|line| line.reversed).count() {
                0 => format!("{} lines of a grid", lines.each.len()),
                reversed => format!("{} lines of a grid, {reversed} of them run backwards", lines.each.len()),
            },
            Err(why) => format!("along a trajectory, as {why}"),
        };
        let mut notes = vec![format!(
            "samples lie where {file} has them ({how}): they fill a matrix of {size} (`--matrix` sets another)"
        )];
        if let Some(said) = &self.fov_said {
            let [x, y, z] = encoding.recon.fov_mm;
            let instead = match self.fov_mm {
                Some(_) => String::new(),
                None => format!(": the protocol's field of view of {x} × {y} × {z} mm is taken"),
            };
            notes.push(format!("{file} {said}{instead}"));
        }
        let encoded = self.encoded();
        if encoded == [true, false, false] && images > 1 {
            notes.push(format!("k does not change along y: {images} readouts measure one line of k-space"));
        }
        for axis in (0..3).filter(|axis| !encoded[*axis]) {
            let fov_mm = self.fov_mm.map_or(encoding.recon.fov_mm[axis], |own| own[axis]);
            let [low, high] = self.span(axis);
            let off = low.midpoint(high) * 1e-3 * fov_mm;
            if off.abs() >= OFFSET {
                notes.push(format!(
                    "all samples lie {off:.2} cycles per field of view off the centre of k-space along {}, where nothing is \
                     encoded: signal varies in phase across {fov_mm} mm, and part of it is lost",
                    ["x", "y", "z"][axis]
                ));
            }
        }
        notes
    }

    /// The lowest and the highest k along an axis.
    fn span(&self, axis: usize) -> [f64; 2] {
        let places = self.readouts.iter().flat_map(|places| places.column(axis).into_iter());
        places.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], k| [low.min(*k), high.max(*k)])
    }

    /// Along which axes k changes, and so encodes. A k that is the same for all samples is a phase along its
    /// axis and no more.
    fn encoded(&self) -> [bool; 3] {
        let spread = [0, 1, 2].map(|axis| {
            let [low, high] = self.span(axis);
            high - low
        });
        let most = spread.into_iter().fold(0.0, f64::max);
        spread.map(|spread| spread > CONSTANT * most || !most.is_finite())
    }

    /// The matrix that holds all samples along an axis: n numbers from −n/2 to n/2 − 1, n even.
    fn matrix_along(&self, axis: usize, fov_mm: f64) -> usize {
        let cycles = fov_mm * 1e-3;
        let (mut lowest, mut highest, mut widest) = (0.0f64, 0.0f64, 0.0f64);
        for places in &self.readouts {
            let ends =
                places.column(axis).iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &k| {
                    [low.min(k * cycles), high.max(k * cycles)]
                });
            (lowest, highest) = (lowest.min(ends[0]), highest.max(ends[1]));
            widest = widest.max(ends[1] - ends[0]);
        }
        let (below, above) = ((-lowest).round(), highest.round());
        let half = match widest < LINE {
            // Lines lie at whole numbers from −n/2 to n/2 − 1, or from 1 − n/2 to n/2 where blips are
            // inverted.
            true if above > below && above != below + 1.0 || above == below => above + 1.0,
            true => above.max(below),
            // Along a readout the last sample may lie on the edge.
            false => (highest.max(-lowest) - EDGE).ceil(),
        };
        2 * half.clamp(1.0, MAX_MATRIX as f64) as usize
    }

    /// A header of a scan that this sequence made: samples along trajectories in cycles/m, the sequence's
    /// field of view, and the matrix that its extent in k-space fills.
    fn header(&self, header: &ScanHeader) -> ScanHeader {
        let mut header = header.clone();
        header.trajectory_units = Some(TrajectoryUnits::CyclesPerMetre);
        let encoded = self.encoded();
        let axes = dims(encoded);
        for encoding in &mut header.encodings {
            encoding.trajectory = TrajectoryKind::Other;
            (encoding.step_1, encoding.step_2) = (None, None);
            (encoding.ramps, encoding.places) = (None, None);
            let mut fov_mm = encoding.recon.fov_mm;
            if let Some(own) = self.fov_mm {
                fov_mm[..axes].copy_from_slice(&own[..axes]);
            }
            let mut matrix = encoding.recon.matrix;
            if axes == 2 {
                matrix[2] = 1;
            }
            for axis in 0..axes {
                matrix[axis] = if encoded[axis] { self.matrix_along(axis, fov_mm[axis]) } else { 1 };
            }
            let space = EncodedSpace { matrix, fov_mm };
            (encoding.encoded, encoding.recon) = (space, space);
        }
        header
    }

    /// Gives the acquisitions of a scan their places in k-space.
    ///
    /// Errors: other numbers of readouts or samples than the sequence has.
    pub fn place(&self, scan: &mut Scan) -> Result<()> {
        let heads: Vec<AcquisitionHead> = scan.acquisitions.iter().map(AcquisitionHead::from).collect();
        self.placement(&scan.header, &heads)?.put_all(scan);
        Ok(())
    }

    /// The open scan, whose acquisitions have their places in k-space.
    ///
    /// Errors: other numbers of readouts or samples than the sequence has.
    pub fn place_reader(&self, reader: Box<dyn ScanReader>) -> Result<Box<dyn ScanReader>> {
        let placement = self.placement(reader.header(), &reader.heads())?;
        Ok(Box::new(Placed { reader, placement }))
    }
}

/// Axes of a trajectory: without z where it is not encoded.
fn dims(encoded: [bool; 3]) -> usize {
    if encoded[2] { 3 } else { 2 }
}

/// Said of a scan that a sequence of Pulseq made, while the sequence is not given. More may follow.
pub(crate) const UNTOLD: &str = "a Pulseq sequence made the scan: only its file tells where samples lie, such as lines that run backwards, \
                                 and TE, TR and flip angle (`--sequence scan.seq`)";

/// Where the acquisitions of a scan lie, and what its header says of that.
struct Placement {
    header: ScanHeader,
    places: Vec<Place>,
    notes: Vec<String>,
}

impl Placement {
    fn put_all(self, scan: &mut Scan) {
        for (readout, place) in scan.acquisitions.iter_mut().zip(&self.places) {
            place.put(readout);
        }
        scan.header = self.header;
        scan.notes.retain(|note| !note.starts_with(UNTOLD));
        scan.notes.extend(self.notes);
    }
}

/// Where an acquisition lies.
enum Place {
    /// It measures noise.
    Nowhere,
    /// Along a trajectory `[sample, axis]`, cycles/m.
    Along(ArcArray2<f32>),
    /// On a line of a grid.
    Line { steps: [u16; 2], centre: usize, reversed: bool },
}

impl Place {
    fn of(lines: &Lines, line: &Line) -> Self {
        Self::Line { steps: lines.counters(line), centre: lines.centre, reversed: line.reversed }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Along(points) => 4 * points.len() as u64,
            Self::Nowhere | Self::Line { .. } => 0,
        }
    }

    /// The flags of an acquisition here. Places along a trajectory rise and fall as they do.
    fn flags(&self, flags: Flags) -> Flags {
        let flags = flags.without(Flags::REVERSE);
        match self {
            Self::Line { reversed: true, .. } => flags.without(Flags::EVENLY_SAMPLED).with(Flags::REVERSE),
            Self::Line { reversed: false, .. } => flags.without(Flags::EVENLY_SAMPLED),
            Self::Nowhere | Self::Along(_) => flags,
        }
    }

    fn put(&self, readout: &mut Acquisition) {
        readout.flags = self.flags(readout.flags);
        readout.trajectory = match self {
            Self::Along(points) => Some(points.clone()),
            Self::Nowhere | Self::Line { .. } => None,
        };
        if let Self::Line { steps, centre, .. } = *self {
            [readout.counters.step_1, readout.counters.step_2] = steps;
            readout.centre_sample = centre;
        }
    }

    /// The head of an acquisition here.
    fn head(&self, head: AcquisitionHead) -> AcquisitionHead {
        let mut head = AcquisitionHead {
            trajectory: matches!(self, Self::Along(_)),
            flags: self.flags(head.flags),
            bytes: head.bytes + self.bytes(),
            ..head
        };
        if let Self::Line { steps, centre, .. } = *self {
            [head.counters.step_1, head.counters.step_2] = steps;
            head.centre_sample = centre;
        }
        head
    }
}

/// A scan whose places come from a sequence.
struct Placed {
    reader: Box<dyn ScanReader>,
    placement: Placement,
}

impl Placed {
    fn trajectory_bytes(&self) -> u64 {
        self.placement.places.iter().map(Place::bytes).sum()
    }
}

impl ScanReader for Placed {
    fn path(&self) -> &Path {
        self.reader.path()
    }

    fn header(&self) -> &ScanHeader {
        &self.placement.header
    }

    fn contents(&self) -> Contents {
        let mut contents = self.reader.contents();
        contents.header = self.placement.header.clone();
        contents.memory_bytes += self.trajectory_bytes();
        for (head, place) in self.heads().iter().zip(&self.placement.places) {
            if let Some(bytes) = head.label().and_then(|label| contents.images.get_mut(&label)) {
                *bytes += place.bytes();
            }
        }
        contents
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        let heads = self.reader.heads().into_iter().zip(&self.placement.places);
        heads.map(|(head, place)| place.head(head)).collect()
    }

    fn slice_places(&self) -> SlicePlaces {
        self.reader.slice_places()
    }

    fn memory_bytes(&self) -> u64 {
        self.reader.memory_bytes() + self.trajectory_bytes()
    }

    fn images_elsewhere(&self) -> Option<String> {
        self.reader.images_elsewhere()
    }

    fn library_bytes(&self) -> u64 {
        self.reader.library_bytes()
    }

    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let places = &self.placement.places;
        self.reader.read(wanted, monitor, &mut |index, mut readout| {
            places.get(index).into_iter().for_each(|place| place.put(&mut readout));
            take(index, readout);
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.reader.notes();
        notes.retain(|note| !note.starts_with(UNTOLD));
        notes.extend(self.placement.notes.clone());
        notes
    }

    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        let Self { reader, placement } = *self;
        let mut scan = reader.into_scan(monitor)?;
        placement.put_all(&mut scan);
        Ok(scan)
    }
}
