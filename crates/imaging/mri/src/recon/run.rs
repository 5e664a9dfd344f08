//! The frames of a series, one after another: what is kept from one to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::slices::Stack;
use rayspin_core::{C32, Error, Geometry, Monitor, Result};
use rayspin_device::Device;
use rayspin_run::Recoverable;

use super::intensity::divide_images;
use super::judge::{Judge, is_empty};
use super::{
    AXES_OF_SETS, Certificate, FrameImage, Frames, LAMBDA, ReconOptions, Reconstructor, RunOptions, Searched,
    Solve,
};
use crate::encoding::{SharedMaps, joined, notes_of_joined};
use crate::methods::{self, Kind, Span, Value};
use crate::prepare::{Mixing, Preparation};
use crate::scan::{self, Frame, Label, grid_of, in_time, varying};

/// What coil images that are kept apart need.
pub(super) const ONE_VOLUME: &str = "one, to keep its coil images apart (choose with `--repetition`, `--contrast`, `--cardiac-phase` or `--set`)";

/// A run over the frames of a series.
pub(super) struct SeriesRun {
    preparation: Preparation,
    reconstructor: Reconstructor,
    options: ReconOptions,
    /// Slice counters of the whole scan, which given maps are for.
    scan_slices: Vec<u16>,
    /// Slices of each volume.
    taken: usize,
    /// What a slice of the first volume leaves for the others.
    cache: BTreeMap<u16, SliceCache>,
    repeated: bool,
    /// Slices of which the first device has made an image.
    learned: BTreeSet<u16>,
    /// The slices of the first volume, and where they lie.
    places: Vec<(u16, Geometry)>,
    /// How many images came, and how far their slices lay at most from the first volume's, in voxels.
    came: usize,
    moved: f64,
    judge: Judge,
    /// Frames of each slice that are solved for together.
    together: BTreeMap<u16, Vec<Frame>>,
    maps: Vec<ArrayD<C32>>,
    solves: Vec<Solve>,
    certificates: Vec<Certificate>,
    searched: Option<Searched>,
    pub(super) notes: Vec<String>,
}

/// What is the same for all images of a slice.
#[derive(Default)]
struct SliceCache {
    maps: Option<SharedMaps>,
    eigenvalue: Option<f64>,
}

/// What becomes of a frame.
pub(super) enum Begun {
    /// Its image is made of it alone.
    Frame,
    /// It holds no signal, and its image is 0.
    Empty(Box<Nothing>),
    /// The method solves for all frames together.
    Together,
}

/// The image of a slice without signal, and its maps if they are kept: both are 0.
pub(super) struct Nothing {
    image: ArrayD<C32>,
    maps: Option<ArrayD<C32>>,
}

/// What differs from frame to frame in the options of a reconstructor.
#[derive(Clone)]
pub(super) struct Choice {
    keep_maps: bool,
    eigenvalue: Option<f64>,
    maps: MapsOfSlice,
    method: Arc<dyn methods::Method>,
    field_map: Option<Arc<ArrayD<f32>>>,
    mixing: Option<Arc<Mixing>>,
}

/// Where a frame's sensitivity maps are from.
#[derive(Clone)]
enum MapsOfSlice {
    /// Another frame of the slice.
    Shared(SharedMaps),
    /// The options.
    Given(Arc<ArrayD<C32>>),
    /// The options as they are, or the frame itself.
    Own,
}

impl Choice {
    /// The maps of another frame.
    pub(super) fn shared_maps(&mut self) -> Option<&mut SharedMaps> {
        match &mut self.maps {
            MapsOfSlice::Shared(maps) => Some(maps),
            MapsOfSlice::Given(_) | MapsOfSlice::Own => None,
        }
    }

    pub(super) fn apply_to(self, reconstructor: &mut Reconstructor) {
        let Self { keep_maps, eigenvalue, maps, method, field_map, mixing } = self;
        reconstructor.options.keep_maps = keep_maps;
        reconstructor.cache.eigenvalue = eigenvalue;
        match maps {
            MapsOfSlice::Shared(maps) => reconstructor.cache.shared = Some(maps),
            MapsOfSlice::Given(maps) => {
                reconstructor.options.maps = Some(maps);
                reconstructor.cache.shared = None;
            }
            MapsOfSlice::Own => reconstructor.cache.shared = None,
        }
        reconstructor.options.method = method;
        if field_map.is_some() {
            reconstructor.options.field_map = field_map;
        }
        reconstructor.mixing = mixing;
    }
}

/// What a run leaves besides its images.
#[derive(Debug, Default)]
pub(super) struct RunEnd {
    pub(super) solves: Vec<Solve>,
    pub(super) maps: Option<ArrayD<C32>>,
    pub(super) notes: Vec<String>,
    pub(super) certificates: Vec<Certificate>,
    pub(super) searched: Option<Searched>,
}

impl SeriesRun {
    pub(super) fn new(device: &Device, frames: Frames<'_>, options: &ReconOptions) -> Result<Self> {
        let Frames { labels, slices, mut notes } = frames;
        device.cpu_side().run(|| options.validate())?;
        let preparation = Preparation::new(&options.prepare, &mut notes)?;
        let (volumes, taken) = grid_of(labels)?;
        if volumes > 1 && options.coil_images() {
            return Err(Error::value("volumes", ONE_VOLUME, volumes));
        }
        if volumes > 1 && options.method.uses().span == Span::Series && !in_time(labels) {
            let counters: Vec<String> =
                varying(labels).iter().map(|(name, values)| format!("{} {name}s", values.len())).collect();
            let expected = "repetitions or cardiac phases alone, because it fits one series in time (choose \
                            with `--contrast`, `--set`, `--cardiac-phase` or `--repetition`)";
            let what = format!("images of method {}", options.method.about().name);
            return Err(Error::value(what, expected, counters.join(", ")));
        }
        if let Some(basis) = &options.basis {
            basis.expect_frames(volumes)?;
        }
        let mut reconstructor = Reconstructor::of_checked(device, options.clone());
        let repeated = volumes > 1 && !options.independent && options.basis.is_none();
        reconstructor.remember = repeated;
        Ok(Self {
            preparation,
            reconstructor,
            options: options.clone(),
            scan_slices: slices.to_vec(),
            taken,
            cache: BTreeMap::new(),
            repeated,
            learned: BTreeSet::new(),
            places: Vec::with_capacity(taken),
            came: 0,
            moved: 0.0,
            judge: Judge::default(),
            together: BTreeMap::new(),
            maps: Vec::new(),
            solves: Vec::new(),
            certificates: Vec::new(),
            searched: None,
            notes,
        })
    }

    /// Images that frames of a slice give ([`ReconOptions::images_of`]).
    pub(super) fn images_of(&self, frames: usize) -> usize {
        self.options.images_of(frames)
    }

    /// Slices of each volume.
    pub(super) fn slices(&self) -> usize {
        self.taken
    }

    /// Estimates the maps of a slice from a frame that is no image of the series, for all its images.
    pub(super) fn learn_maps(&mut self, label: Label, frame: &Frame, monitor: &Monitor<'_>) -> Result<()> {
        self.prepare(frame, monitor)?;
        let dims = frame.matrix.len();
        let mut notes = Vec::new();
        let maps = self.reconstructor.estimate(frame, &mut notes, monitor)?;
        self.note(notes);
        if self.options.keep_maps {
            self.keep_maps(&label, maps.to_host()?, dims)?;
        }
        self.cache.entry(label.slice).or_default().maps = Some(maps);
        Ok(())
    }

    /// What becomes of the frame's coils first.
    fn prepare(&mut self, frame: &Frame, monitor: &Monitor<'_>) -> Result<()> {
        let Self { preparation, reconstructor, notes, .. } = self;
        reconstructor.prepare(preparation, frame, notes, monitor)
    }

    /// Looks at a frame whose turn it is, and prepares its coils.
    pub(super) fn begin(&mut self, label: Label, frame: &Frame, monitor: &Monitor<'_>) -> Result<Begun> {
        self.expect_slices(frame)?;
        // Nothing has changed yet if a device fails here.
        if self.options.basis.is_none() {
            self.prepare(frame, monitor)?;
        }
        match self.places.get(self.came % self.taken) {
            Some((_, first)) => self.moved = self.moved.max(scan::moved(first, &frame.geometry)),
            None => self.places.push((label.slice, frame.geometry)),
        }
        self.came += 1;
        let empty = self.judge.look(label, frame);
        if self.options.solves_together() {
            return Ok(Begun::Together);
        }
        if empty && self.taken > 1 && (self.estimates_maps_of(&label) || !self.options.needs_maps()) {
            return Ok(Begun::Empty(Box::new(self.nothing(frame))));
        }
        Ok(Begun::Frame)
    }

    /// Keeps a frame that the method solves for together with others.
    pub(super) fn keep(&mut self, label: Label, frame: Frame) {
        self.together.entry(label.slice).or_default().push(frame);
    }

    /// Whether a frame needs no other frame's result any more, so that any device may make its image.
    pub(super) fn is_learned(&self, label: Label) -> bool {
        let searches = self.options.search_lambda && self.searched.is_none();
        !searches && (!self.repeated || self.learned.contains(&label.slice))
    }

    /// Reconstructs a frame on the first device.
    pub(super) fn frame(&mut self, label: Label, frame: Frame, monitor: &Monitor<'_>) -> Result<FrameImage> {
        self.choose_for(&label, &frame, monitor)?;
        let result = self.reconstructor.frame(frame, monitor)?;
        self.learn(label, &result)?;
        Ok(result)
    }

    /// [`Self::frame`] of a frame that the caller keeps.
    pub(super) fn kept_frame(
        &mut self,
        label: Label,
        frame: &Frame,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        self.choose_for(&label, frame, monitor)?;
        let result = self.reconstructor.kept_frame(frame, monitor)?;
        self.learn(label, &result)?;
        Ok(result)
    }

    /// Reconstructs a frame on the first device, as was chosen before for it. The coils of a later frame may
    /// have been prepared since then, and stay so.
    pub(super) fn chosen_frame(
        &mut self,
        label: Label,
        frame: &Frame,
        choice: Choice,
        monitor: &Monitor<'_>,
    ) -> Result<FrameImage> {
        let later = self.reconstructor.mixing.take();
        choice.apply_to(&mut self.reconstructor);
        let result = self.reconstructor.kept_frame(frame, monitor);
        self.reconstructor.mixing = later;
        let result = result?;
        self.learn(label, &result)?;
        Ok(result)
    }

    /// The image `[z, y, x]` of a frame. Results of frames come in their order.
    pub(super) fn end(&mut self, label: Label, result: FrameImage, dims: usize) -> Result<ArrayD<C32>> {
        let mut image = as_volumes(self.taken_from(label, result, dims)?, dims);
        self.divide(&label, &mut image)?;
        Ok(image)
    }

    /// The image of a slice without signal, when its turn has come.
    pub(super) fn end_empty(&mut self, Nothing { image, maps }: Nothing) -> ArrayD<C32> {
        self.maps.extend(maps.filter(|_| self.maps.len() < self.taken));
        image
    }

    /// The device that leads.
    pub(super) fn device(&self) -> &Device {
        &self.reconstructor.device
    }

    /// The devices beside it, for frames; none where the method solves for all frames together, and where
    /// coils go to them.
    pub(super) fn beside(&self) -> Vec<Device> {
        let run = &self.options.run;
        if self.options.solves_together() || run.coils_beside { Vec::new() } else { run.beside.clone() }
    }

    /// What reconstructors beside the first start with. A frame that fails there comes back.
    pub(super) fn options_beside(&self) -> ReconOptions {
        let run = RunOptions { finish_on_cpu: false, beside: Vec::new(), ..self.options.run.clone() };
        ReconOptions { run, ..self.options.clone() }
    }

    /// Another device leads from now on.
    pub(super) fn lead_by(&mut self, device: Device) {
        self.reconstructor.move_to(device);
    }

    /// Says that a device failed and others go on.
    pub(super) fn note_failure(&mut self, device: &str, error: &Error) {
        self.note(vec![format!("computing without {device}: {error}")]);
    }

    /// Divides the images of a slice by the intensity of its maps, where the options have it.
    fn divide(&self, label: &Label, images: &mut ArrayD<C32>) -> Result<()> {
        let Some(intensity) = &self.options.intensity else { return Ok(()) };
        let position = self.scan_slices.iter().position(|&slice| slice == label.slice).unwrap_or(0);
        divide_images(images, intensity, position, self.scan_slices.len())
    }

    /// Whether the slice's maps are estimated from its own samples.
    fn estimates_maps_of(&self, label: &Label) -> bool {
        let has_maps = self.cache.get(&label.slice).is_some_and(|cache| cache.maps.is_some());
        self.options.needs_maps() && self.options.maps.is_none() && !has_maps
    }

    /// The image of a slice without signal, from which neither maps nor weights of GRAPPA can be estimated:
    /// 0, as its maps are. The other slices of the volume have their images.
    fn nothing(&self, frame: &Frame) -> Nothing {
        let dims = frame.matrix.len();
        let maps = (self.options.needs_maps() && self.options.keep_maps).then(|| {
            let sets = self.options.map_sets();
            let leading: &[usize] = if sets > 1 { &[sets, frame.coils()] } else { &[frame.coils()] };
            as_volumes(ArrayD::zeros([leading, &frame.matrix[..]].concat()), dims)
        });
        let coils = [self.reconstructor.coils(frame)];
        let leading: &[usize] = if self.options.coil_images() { &coils } else { &[] };
        Nothing { image: as_volumes(ArrayD::zeros([leading, &frame.matrix[..]].concat()), dims), maps }
    }

    /// The images `[z, y, x]` of all frames that the method solves for together, in the order of the labels,
    /// or the coefficients of a temporal basis, all slices of one after all of the one before; none where it
    /// solves for each alone.
    pub(super) fn all_together(
        &mut self,
        labels: &[Label],
        monitor: &Monitor<'_>,
    ) -> Result<Vec<ArrayD<C32>>> {
        if self.together.is_empty() {
            return Ok(Vec::new());
        }
        let mut images = BTreeMap::new();
        let count = self.options.images_of(labels.len() / self.taken);
        for (slice, frames) in std::mem::take(&mut self.together) {
            let Some(first) = frames.first() else { continue };
            let (label, dims) = (first.label, first.matrix.len());
            if self.taken > 1 && self.estimates_maps_of(&label) && frames.iter().all(is_empty) {
                let nothing = self.nothing(first);
                let nothing = self.end_empty(nothing);
                images.insert(slice, vec![nothing; count]);
                continue;
            }
            // What coils become is found once for a slice.
            let result = if self.options.basis.is_some() {
                self.note(notes_of_joined(&frames));
                let (frame, of_frames) = joined(frames)?;
                self.prepare(&frame, monitor)?;
                self.choose(&label, &frame)?;
                self.reconstructor.frame_of(frame, Some(of_frames), monitor)?
            } else {
                self.prepare(first, monitor)?;
                self.choose(&label, first)?;
                self.reconstructor.series(&frames, monitor)?
            };
            let mut volumes = as_volumes(self.taken_from(label, result, dims)?, dims);
            self.divide(&label, &mut volumes)?;
            images
                .insert(slice, volumes.outer_iter().map(|image| image.to_owned()).rev().collect::<Vec<_>>());
        }
        let next = |label: &Label| images.get_mut(&label.slice).and_then(Vec::pop);
        let missing = || Error::value("frames of a series", "one for every label", "fewer");
        let order = labels[..self.taken].iter().cycle().take(count * self.taken);
        order.map(next).map(|image| image.ok_or_else(missing)).collect()
    }

    /// Searches for λ with a frame, for all frames.
    fn search(&mut self, frame: &Frame, monitor: &Monitor<'_>) -> Result<()> {
        let search = self.reconstructor.search(frame, &mut self.notes, monitor)?;
        let lambda = (LAMBDA.to_owned(), Value::Number(search.lambda));
        self.options.method = methods::with(&*self.options.method, [lambda])?;
        self.searched = Some(search);
        Ok(())
    }

    fn expect_slices(&self, frame: &Frame) -> Result<()> {
        if self.taken > 1 && frame.matrix.len() == 3 && frame.matrix[0] > 1 {
            let expected = "one slab of a three-dimensional scan (choose with `--slice`)";
            return Err(Error::value("slices", expected, self.taken));
        }
        Ok(())
    }

    /// Keeps what the first device's result leaves to the other frames of the slice.
    fn learn(&mut self, label: Label, result: &FrameImage) -> Result<()> {
        if self.repeated {
            let cache = self.cache.entry(label.slice).or_default();
            // They may have come to another device.
            cache.maps = self.reconstructor.cache.shared.clone().or(cache.maps.take());
            if let Some(used) = self.reconstructor.used.take().filter(|_| cache.maps.is_none()) {
                cache.maps = Some(SharedMaps::new(used, self.options.run.copies_maps())?);
            }
            let eigenvalue = result.solve.as_ref().map(|solve| solve.eigenvalue);
            cache.eigenvalue = cache.eigenvalue.or(eigenvalue);
            self.learned.insert(label.slice);
        }
        Ok(())
    }

    /// Keeps what a result leaves besides its image, and returns that.
    fn taken_from(&mut self, label: Label, result: FrameImage, dims: usize) -> Result<ArrayD<C32>> {
        self.note(result.notes);
        self.certificates.extend(result.certificates.into_iter().map(|certificate| certificate.of(label)));
        if let Some(mut solve) = result.solve {
            solve.label = label;
            self.solves.push(solve);
        }
        if let Some(maps) = result.maps {
            self.keep_maps(&label, maps, dims)?;
        }
        Ok(result.image)
    }

    /// [`Self::choose`], and λ, if it is searched for with this frame.
    fn choose_for(&mut self, label: &Label, frame: &Frame, monitor: &Monitor<'_>) -> Result<()> {
        self.choose(label, frame)?;
        if self.options.search_lambda && self.searched.is_none() {
            self.search(frame, monitor)?;
        }
        Ok(())
    }

    /// Maps and images of the label's slice, for the first device.
    fn choose(&mut self, label: &Label, frame: &Frame) -> Result<()> {
        let mixing = self.reconstructor.mixing.take();
        let choice = Choice { mixing, ..self.choice(label, frame)? };
        choice.apply_to(&mut self.reconstructor);
        Ok(())
    }

    /// Maps and images of the label's slice, for the device that makes the frame's image.
    pub(super) fn choice(&self, label: &Label, frame: &Frame) -> Result<Choice> {
        let cache = self.cache.get(&label.slice);
        let position = self.scan_slices.iter().position(|&slice| slice == label.slice).unwrap_or(0);
        let several = self.scan_slices.len() > 1;
        let maps = if let Some(maps) = cache.and_then(|cache| cache.maps.clone()) {
            MapsOfSlice::Shared(maps)
        } else if let Some(given) = &self.options.maps
            && (several || self.preparation.changes_coils())
        {
            let given = maps_of_slice(given, &frame.matrix, position, self.scan_slices.len())?;
            MapsOfSlice::Given(Arc::new(self.preparation.maps_of_prepared(label, given)?))
        } else {
            MapsOfSlice::Own
        };
        let method = match several {
            true => {
                let images = images_of_slice(&*self.options.method, frame, position, self.scan_slices.len())?;
                methods::with(&*self.options.method, images)?
            }
            false => self.options.method.clone(),
        };
        let field_map = match &self.options.field_map {
            Some(given) if several => {
                let shape = [&[self.scan_slices.len()], &frame.matrix[..]].concat();
                rayspin_core::expect_shape("field map", &shape, given.shape())?;
                Some(Arc::new(given.index_axis(ndarray::Axis(0), position).to_owned()))
            }
            _ => None,
        };
        Ok(Choice {
            // Maps of later volumes are not asked for.
            keep_maps: self.options.keep_maps && self.maps.len() < self.taken,
            eigenvalue: cache.and_then(|cache| cache.eigenvalue),
            maps,
            method,
            field_map,
            mixing: self.reconstructor.mixing.clone(),
        })
    }

    fn keep_maps(&mut self, label: &Label, maps: ArrayD<C32>, dims: usize) -> Result<()> {
        if self.maps.len() < self.taken {
            let of_scan = self.preparation.maps_of_scan(label, maps, dims)?;
            self.maps.push(as_volumes(of_scan, dims));
        }
        Ok(())
    }

    fn note(&mut self, notes: Vec<String>) {
        for text in notes {
            if !self.notes.contains(&text) {
                self.notes.push(text);
            }
        }
    }

    /// Where the slices of a volume lie, whose depth is that; known once each slice was seen.
    pub(super) fn stacks(&mut self, depth: usize) -> Result<Vec<Stack>> {
        let (_, first) = *self.places.first().ok_or_else(|| Error::value("frames", "at least one", 0))?;
        if self.taken == 1 {
            return Ok(vec![Stack { slices: depth, geometry: first }]);
        }
        Ok(scan::stacked(&self.places, &mut self.notes))
    }

    pub(super) fn finish(mut self) -> Result<RunEnd> {
        self.note(self.judge.notes());
        if self.moved > MOVED {
            let how = match self.moved.is_finite() {
                true => format!("move by up to {:.2} voxels", self.moved),
                false => "turn".to_owned(),
            };
            let text =
                format!("slices {how} between volumes: the images state the places of the first volume");
            self.note(vec![text]);
        }
        let maps =
            if self.maps.len() < 2 {
                self.maps.pop()
            } else {
                let views: Vec<_> = self.maps.iter().map(|m| m.view()).collect();
                let stacked = ndarray::concatenate(ndarray::Axis(views[0].ndim() - 3), &views);
                Some(stacked.map_err(|_| {
                    Error::value("sensitivity maps", "one shape throughout", "different shapes")
                })?)
            };
        let Self { solves, notes, certificates, searched, .. } = self;
        Ok(RunEnd { solves, maps, notes, certificates, searched })
    }
}

/// By how many voxels slices may move between volumes unsaid.
const MOVED: f64 = 0.1;

/// The method's parameters that are images, `[slice, y, x]`, cut to one slice.
fn images_of_slice(
    method: &dyn methods::Method,
    frame: &Frame,
    position: usize,
    slices: usize,
) -> Result<Vec<(String, Value)>> {
    let mut of_slice = Vec::new();
    for param in method.table().into_iter().filter(|param| param.kind == Kind::Image) {
        if let Some(Value::Image(given)) = method.get(param.name) {
            let shape = [&[slices], &frame.matrix[..]].concat();
            rayspin_core::expect_shape(&param.what(), &shape, given.shape())?;
            let image = given.index_axis(ndarray::Axis(0), position).to_owned();
            of_slice.push((param.name.to_owned(), Value::Image(std::sync::Arc::new(image))));
        }
    }
    Ok(of_slice)
}

/// The maps of one slice of a two-dimensional scan, from `[coil, slice, y, x]` or `[set, coil, slice, y, x]`;
/// others as they are.
fn maps_of_slice(
    given: &ArrayD<C32>,
    matrix: &[usize],
    position: usize,
    slices: usize,
) -> Result<ArrayD<C32>> {
    if matrix.len() != 2 {
        return Ok(given.clone());
    }
    let axes = given.ndim();
    if !(4..=AXES_OF_SETS).contains(&axes) || given.shape()[axes - 3] != slices {
        return Err(Error::Shape {
            what: "sensitivity maps".into(),
            expected: format!(
                "[coil, {slices}, {}, {}], as the scan has {slices} slices",
                matrix[0], matrix[1]
            ),
            found: rayspin_core::format_shape(given.shape()),
        });
    }
    // z stays, so that sets are not taken as coils.
    Ok(given.slice_axis(ndarray::Axis(axes - 3), (position..position + 1).into()).to_owned())
}

/// `[.., z, y, x]` from `[.., y, x]`.
pub(super) fn as_volumes(images: ArrayD<C32>, dims: usize) -> ArrayD<C32> {
    let axis = images.ndim() - dims;
    if dims == 2 { images.insert_axis(ndarray::Axis(axis)) } else { images }
}
