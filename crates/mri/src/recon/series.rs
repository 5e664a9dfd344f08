use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, Error, Image, Monitor, Result};
use rayspin_device::Device;

use super::run::{Run, RunEnd, as_volumes, grid_of};
use super::{Certificate, ReconOptions, Reconstructor, Searched, Solve};
use crate::methods::Span;
use crate::prepare::{self, Preparation};
use crate::scan::{Frame, FrameIndex, FrameOptions, Label, Scan};

/// Which images of a scan are reconstructed. Slices and repetitions are all taken unless one is named; of the other
/// counters one value is taken, since an image file has no axes for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Encoding.
    pub encoding: usize,
    /// Only this slice.
    pub slice: Option<u16>,
    /// Only this repetition.
    pub repetition: Option<u16>,
    /// Contrast (echo); the first that the scan holds when absent.
    pub contrast: Option<u16>,
    /// Cardiac phase; the first that the scan holds when absent.
    pub phase: Option<u16>,
    /// Set; the first that the scan holds when absent.
    pub set: Option<u16>,
}

/// The images of a scan and how they came about.
#[derive(Debug, Clone)]
pub struct ScanImage {
    /// `[z, y, x]`, or `[repetition, z, y, x]` when there are several; coil images that are not combined are
    /// `[coil, z, y, x]`.
    pub image: Image,
    /// One entry a frame that was solved for iteratively.
    pub solves: Vec<Solve>,
    /// Sensitivity maps `[coil, z, y, x]`, or `[set, coil, z, y, x]`, of the first repetition, when the method used any;
    /// of the scan's own coils, whatever was done to them.
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed, for the user to see.
    pub notes: Vec<String>,
    /// What was measured of the transforms, once for each plan: of every trajectory, or grid, that the images have.
    pub certificates: Vec<Certificate>,
    /// The λ that was searched for, with [`ReconOptions::search_lambda`].
    pub searched: Option<Searched>,
}

/// Reconstructs the selected slices and repetitions of a scan, one frame after another; plans are reused while the
/// trajectory stays the same.
///
/// Errors: an option out of range; a selection that the scan does not hold; repetitions with different slices; whatever
/// assembling or reconstructing a frame refuses.
pub fn reconstruct_scan(
    device: &Device,
    scan: &Scan,
    selection: &Selection,
    frames: &FrameOptions,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let mut notes = scan.notes.clone();
    let index = scan.frames()?;
    let labels = selection.labels(&index, &mut notes)?;
    let slices: std::collections::BTreeSet<u16> = index.labels().map(|l| l.slice).collect();
    let slices: Vec<u16> = slices.into_iter().collect();
    let mut source = |label: Label, notes: &mut Vec<String>| index.assemble(label, frames, notes);
    let mut options = options.clone();
    if options.prepare.noise.is_none() {
        options.prepare.noise = Some(prepare::measure(scan));
    }
    let frames = Frames { labels: &labels, slices: &slices, notes };
    reconstruct_frames(device, frames, &mut source, &options, monitor)
}

/// The frames of a series.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    /// Their labels, in the order in which they come: repetition slowest.
    pub labels: &'a [Label],
    /// The slice counters of the whole scan, which given maps are for.
    pub slices: &'a [u16],
    /// What their reader assumed.
    pub notes: Vec<String>,
}

/// [`reconstruct_scan`] of frames that come from anywhere: `source` makes the frame of each label, in their order.
///
/// Errors: as [`reconstruct_scan`], and errors of `source`.
pub fn reconstruct_frames(
    device: &Device,
    frames: Frames<'_>,
    source: &mut dyn FnMut(Label, &mut Vec<String>) -> Result<Frame>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let labels = frames.labels;
    let (repetitions, _) = grid_of(labels)?;
    let mut run = Run::new(device, frames, options)?;
    let mut stacked = Stack::new(labels.len());
    for label in labels {
        let frame = source(*label, &mut run.notes)?;
        if let Some(image) = run.image(*label, frame, monitor)? {
            stacked.push(image)?;
        }
        monitor.check()?;
    }
    run.all_together(labels, monitor)?.into_iter().try_for_each(|image| stacked.push(image))?;
    let (end, geometry) = run.finish()?;
    let data = stacked.finish(repetitions)?;
    let RunEnd { solves, maps, notes, certificates, searched } = end;
    Ok(ScanImage { image: Image::new(data, geometry)?, solves, maps, notes, certificates, searched })
}

/// Reconstructs one frame, `[z, y, x]` or `[y, x]` as it is; `notes` are what its reader assumed.
///
/// Errors: as [`reconstruct_scan`].
pub fn reconstruct_frame(
    device: &Device,
    frame: Frame,
    mut notes: Vec<String>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let mut reconstructor = Reconstructor::new(device, options.clone())?;
    let mut preparation = Preparation::new(&options.prepare, &mut notes)?;
    let (label, geometry, dims) = (frame.label, frame.geometry, frame.matrix.len());
    reconstructor.prepare(&mut preparation, &frame, &mut notes, monitor)?;
    if let Some(given) = &options.maps
        && preparation.changes_coils()
    {
        reconstructor.set_maps(Some(preparation.maps_of_prepared(&label, given.as_ref().clone())?));
    }
    let searched = match options.search_lambda {
        true => Some(reconstructor.search(&frame, &mut notes, monitor)?),
        false => None,
    };
    let mut result = match options.method.uses().span {
        Span::Frame => reconstructor.frame(frame, monitor)?,
        Span::Series => {
            let mut all = reconstructor.series(&[frame], monitor)?;
            all.image.index_axis_inplace(ndarray::Axis(0), 0);
            all
        }
    };
    if options.coil_images() {
        result.image = as_volumes(result.image, dims);
    }
    notes.extend(result.notes);
    let of_scan = |maps| Ok(as_volumes(preparation.maps_of_scan(&label, maps, dims)?, dims));
    Ok(ScanImage {
        image: Image::new(result.image, geometry)?,
        solves: result.solve.into_iter().collect(),
        maps: result.maps.map(of_scan).transpose()?,
        notes,
        certificates: result.certificates.into_iter().map(|certificate| certificate.of(label)).collect(),
        searched,
    })
}

/// Volumes `[z, y, x]` of one shape, one behind the other in one array from the first on; or coil images `[coil, z, y, x]`.
struct Stack {
    count: usize,
    filled: usize,
    data: Option<ArrayD<C32>>,
}

impl Stack {
    fn new(count: usize) -> Self {
        Self { count, filled: 0, data: None }
    }

    fn push(&mut self, volume: ArrayD<C32>) -> Result<()> {
        if self.count == 1 {
            self.data = Some(volume);
            return Ok(());
        }
        let axis = volume.ndim() - 3;
        let (mut all, depth) = (volume.shape().to_vec(), volume.shape()[axis]);
        all[axis] *= self.count;
        let data = self.data.get_or_insert_with(|| ArrayD::zeros(IxDyn(&all)));
        if data.shape() != all {
            return Err(Error::value("slices", "one matrix throughout", "different matrices"));
        }
        let at = self.filled * depth;
        data.slice_axis_mut(ndarray::Axis(axis), (at..at + depth).into()).assign(&volume);
        self.filled += 1;
        Ok(())
    }

    /// `[z, y, x]`, or `[repetition, z, y, x]` of several; coil images as they are.
    fn finish(self, repetitions: usize) -> Result<ArrayD<C32>> {
        let data = self.data.ok_or_else(|| Error::value("frames", "at least one", 0))?;
        let shape = data.shape().to_vec();
        if repetitions == 1 {
            return Ok(data);
        }
        data.into_shape_with_order(IxDyn(&[repetitions, shape[0] / repetitions, shape[1], shape[2]]))
            .map_err(|_| Error::value("repetitions", "the same slices in each", "different numbers"))
    }
}

impl Selection {
    /// The frames of a scan that are selected, in label order. `notes` names what is left out.
    ///
    /// Errors: a counter that the scan does not hold, or counters that do not occur together.
    pub fn labels(&self, index: &FrameIndex<'_>, notes: &mut Vec<String>) -> Result<Vec<Label>> {
        self.choose(index.labels(), notes)
    }

    /// [`Selection::labels`] of labels that are known without a scan.
    pub fn choose(&self, labels: impl Iterator<Item = Label>, notes: &mut Vec<String>) -> Result<Vec<Label>> {
        select(labels, self, notes)
    }
}

fn select(
    labels: impl Iterator<Item = Label>,
    wanted: &Selection,
    notes: &mut Vec<String>,
) -> Result<Vec<Label>> {
    let all: Vec<Label> = labels.collect();
    let in_encoding = || all.iter().filter(|l| l.encoding == wanted.encoding);
    let first = |of: fn(&Label) -> u16| in_encoding().map(of).min().unwrap_or_default();
    let contrast = wanted.contrast.unwrap_or_else(|| first(|l| l.contrast));
    let phase = wanted.phase.unwrap_or_else(|| first(|l| l.phase));
    let set = wanted.set.unwrap_or_else(|| first(|l| l.set));
    for (name, given, taken) in
        [("contrast", wanted.contrast, contrast), ("phase", wanted.phase, phase), ("set", wanted.set, set)]
    {
        let text = format!("the scan holds no {name} 0: {taken} is reconstructed");
        if given.is_none() && taken != 0 && !notes.contains(&text) {
            notes.push(text);
        }
    }
    let chosen: Vec<Label> = all
        .iter()
        .copied()
        .filter(|l| {
            l.encoding == wanted.encoding
                && l.contrast == contrast
                && l.phase == phase
                && l.set == set
                && wanted.slice.is_none_or(|s| s == l.slice)
                && wanted.repetition.is_none_or(|r| r == l.repetition)
        })
        .collect();
    type Counter = (&'static str, usize, fn(&Label) -> usize);
    let axes: [Counter; 6] = [
        ("encoding", wanted.encoding, |l| l.encoding),
        ("contrast", contrast.into(), |l| l.contrast.into()),
        ("phase", phase.into(), |l| l.phase.into()),
        ("set", set.into(), |l| l.set.into()),
        ("slice", wanted.slice.unwrap_or_default().into(), |l| l.slice.into()),
        ("repetition", wanted.repetition.unwrap_or_default().into(), |l| l.repetition.into()),
    ];
    for (position, (name, value, of)) in axes.iter().enumerate() {
        let mut present: Vec<usize> = all.iter().map(of).collect();
        present.sort_unstable();
        present.dedup();
        let asked = match *name {
            "slice" => wanted.slice.is_some(),
            "repetition" => wanted.repetition.is_some(),
            _ => true,
        };
        if asked && !present.contains(value) {
            return Err(Error::value(*name, format!("one of {present:?}"), value));
        }
        if position < 4 && present.len() > 1 {
            let text = format!("the scan holds {name} {present:?}: only {value} is reconstructed (--{name})");
            if !notes.contains(&text) {
                notes.push(text);
            }
        }
    }
    if chosen.is_empty() {
        return Err(Error::value(
            "selection",
            "counters that occur together in the scan",
            format!("{wanted:?}"),
        ));
    }
    Ok(chosen)
}
