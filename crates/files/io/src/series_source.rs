//! The frames of a dynamic scan, read as they are needed.

use std::collections::{BTreeMap, BTreeSet};

use rayspin_core::Monitor;
use rayspin_scan::mri::corrections::{ReadoutHeads, Sources};
use rayspin_scan::mri::{
    Acquisition, Encoding, Frame, FrameOptions, Label, Parts, Scan, Series, StreamItem, assemble,
    maps_of_first_readouts,
};

use crate::error::{Error, Result};
use crate::scan_reader::ScanReader;

/// A source for `rayspin_mri::recon::reconstruct_stream`: an open file, the images to make of it, and the
/// acquisitions that the current image and the next have in common. No others are in memory.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::SeriesSource;
/// use rayspin_io::ismrmrd::{Identity, write};
/// use rayspin_io::open_scan;
/// use rayspin_scan::mri::{FrameOptions, Label, Series, StreamItem};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let monitor = Monitor::silent();
/// let options = SimulateOptions { matrix: [16, 16, 1], repetitions: 3, ..SimulateOptions::default() };
/// let scan = simulate(&options, &monitor)?.scan;
/// let file = folder.path().join("raw.h5");
/// write(&file, &scan, Identity::LeaveOut)?;
///
/// let reader = open_scan(&file, &monitor)?;
/// let labels: Vec<Label> = scan.frames()?.labels().collect();
/// let series = Series::of_labels(reader.heads(), &labels, None)?;
/// let mut source = SeriesSource::new(reader, series, FrameOptions::default());
/// let (mut repetitions, mut notes) = (Vec::new(), Vec::new());
/// while let Some(StreamItem::Image(label, _frame)) = source.next(&mut notes, &monitor)? {
///     repetitions.push(label.repetition);
/// }
/// assert_eq!(repetitions, [0, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SeriesSource {
    reader: Box<dyn ScanReader>,
    series: Series,
    options: FrameOptions,
    held: BTreeMap<usize, Acquisition>,
    /// Slices whose maps were given.
    maps: usize,
    /// The frame for the first slice's maps, when [`SeriesSource::learn_maps`] has read it ahead.
    first_maps: Option<Frame>,
    /// The next image.
    next: usize,
    heads: ReadoutHeads,
}

impl SeriesSource {
    /// The images of `series`. Its places must be the places of `reader`.
    pub fn new(reader: Box<dyn ScanReader>, series: Series, options: FrameOptions) -> Self {
        let maps = series.slices();
        let mut heads = ReadoutHeads::default();
        for place in series.heads() {
            heads.add(place.encoding, place.flags, place.samples, place.centre_sample);
        }
        Self { reader, series, options, held: BTreeMap::new(), maps, first_maps: None, next: 0, heads }
    }

    /// Makes frames for the coil sensitivities come before the images, if a single image has too few samples
    /// to estimate the sensitivities well and others add to them. Each slice then has one such frame: its
    /// first readouts, with 1.5 samples for each voxel of the encoded matrix. Returns the frame of the first
    /// slice, to look at, if so.
    ///
    /// Errors: as [`SeriesSource::next`].
    pub fn learn_maps(&mut self, notes: &mut Vec<String>, monitor: &Monitor) -> Result<Option<&Frame>> {
        if let Some(first) = self.readouts_of_maps(0) {
            self.maps = 0;
            self.first_maps = Some(self.maps_frame(0, notes, monitor)?);
            notes.push(maps_of_first_readouts(first.len()));
        }
        Ok(self.first_maps.as_ref())
    }

    /// The images.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What the heads of the scan's readouts say.
    pub fn heads(&self) -> &ReadoutHeads {
        &self.heads
    }

    /// The open file.
    pub fn reader(&self) -> &dyn ScanReader {
        &*self.reader
    }

    /// Bytes of the acquisitions that are in memory at once: the acquisitions of one volume, and what the
    /// next adds.
    pub fn held_bytes(&self) -> u64 {
        let bytes_of = |indices: &BTreeSet<usize>| -> u64 {
            indices.iter().map(|&index| self.series.heads()[index].bytes).sum()
        };
        let first = self.series.needed(0);
        let images = match self.series.volumes() {
            1 => bytes_of(&first),
            _ => bytes_of(&first.union(&self.series.needed(1)).copied().collect()),
        };
        let each = (0..self.series.slices()).map(|frame| self.bytes(self.series.readouts(frame))).max();
        let images = images + self.corrections_bytes(each.unwrap_or(0));
        // The acquisitions of a frame that is made already are gone.
        let made = self.maps + usize::from(self.first_maps.is_some());
        images.max(if made < self.series.slices() { self.maps_bytes() } else { 0 })
    }

    /// Bytes of the acquisitions that are in memory while [`SeriesSource::learn_maps`] makes a frame of them.
    pub fn maps_bytes(&self) -> u64 {
        let readouts = Vec::from_iter(self.readouts_of_maps(0).unwrap_or_default());
        let corrected = self.corrections_bytes(self.bytes(&readouts));
        self.bytes(&readouts) + self.bytes(&self.series.references(&readouts)) + corrected
    }

    fn bytes(&self, readouts: &[usize]) -> u64 {
        readouts.iter().map(|&index| self.series.heads()[index].bytes).sum()
    }

    fn encoding(&self) -> Option<&Encoding> {
        let label = self.series.labels().next().unwrap_or_default();
        self.reader.header().encodings.get(label.encoding)
    }

    /// Bytes that corrections take beside readouts of an image, which take `readouts` bytes.
    fn corrections_bytes(&self, readouts: u64) -> u64 {
        let corrections = &self.options.corrections;
        self.encoding().map_or(0, |encoding| corrections.bytes(&self.heads, encoding, readouts))
    }

    fn readouts_of_maps(&self, slice: usize) -> Option<BTreeSet<usize>> {
        let encoding = self.encoding();
        self.series.readouts_of_maps(slice, &encoding.map_or([0; 3], |encoding| encoding.encoded.matrix))
    }

    /// What was assumed of the acquisitions so far.
    pub fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    /// Reads what corrections learn from the whole scan, its noise readouts, and one of an image's: what
    /// [`measure`](rayspin_scan::mri::corrections::measure) looks at.
    ///
    /// Errors: as [`SeriesSource::next`].
    pub fn noise(&mut self, monitor: &Monitor) -> Result<Scan> {
        let (places, kinds) = (self.series.heads().iter().enumerate(), Sources::all().of_scan);
        let noise = places.filter(|(_, place)| place.flags.contains(kinds)).map(|(index, _)| index);
        let image = |index: &usize| self.series.heads()[*index].flags.is_image();
        let image = self.series.readouts(0).iter().copied().find(image);
        let wanted: BTreeSet<usize> = noise.chain(image).collect();
        let mut acquisitions = Vec::with_capacity(wanted.len());
        self.reader
            .read(&mut wanted.into_iter(), monitor, &mut |_, acquisition| acquisitions.push(acquisition))?;
        Ok(Scan { header: self.reader.header().clone(), acquisitions, notes: Vec::new() })
    }

    /// Image `frame`, without going on to it.
    ///
    /// Errors: as [`SeriesSource::next`].
    pub fn image(&mut self, frame: usize, notes: &mut Vec<String>, monitor: &Monitor) -> Result<Frame> {
        let (readouts, calibration) = (self.series.readouts(frame), self.series.calibration(frame));
        let wanted = [readouts, &calibration, &self.series.references(readouts)].concat();
        self.fetch(&wanted.into_iter().collect(), monitor)?;
        let (label, calibration) = (self.label(frame), self.series.calibration(frame));
        let image = self.frame(label, self.series.readouts(frame), &calibration, notes)?;
        notes.extend(self.series.unused_calibration(frame).filter(|text| !notes.contains(text)));
        Ok(image)
    }

    fn maps_frame(&mut self, slice: usize, notes: &mut Vec<String>, monitor: &Monitor) -> Result<Frame> {
        let mut wanted = self.readouts_of_maps(slice).unwrap_or_default();
        let readouts: Vec<usize> = wanted.iter().copied().collect();
        let calibration = self.series.calibration(slice);
        wanted.extend(&calibration);
        wanted.extend(self.series.references(&readouts));
        self.fetch(&wanted, monitor)?;
        let frame = self.frame(self.label(slice), &readouts, &calibration, notes);
        self.held.clear();
        frame
    }

    /// The next of the stream, none after the last image.
    ///
    /// Errors: errors of reading the file, and of making a frame from the acquisitions.
    pub fn next(&mut self, notes: &mut Vec<String>, monitor: &Monitor) -> Result<Option<StreamItem>> {
        if self.maps < self.series.slices() {
            let slice = self.maps;
            let frame = match self.first_maps.take() {
                Some(frame) => frame,
                None => self.maps_frame(slice, notes, monitor)?,
            };
            self.maps += 1;
            return Ok(Some(StreamItem::Maps(self.label(slice), frame)));
        }
        let frame = self.next;
        if frame == self.series.labels().len() {
            return Ok(None);
        }
        self.fetch_needed(monitor)?;
        let label = self.label(frame);
        let image = self.frame(label, self.series.readouts(frame), &self.series.calibration(frame), notes)?;
        self.next += 1;
        notes.extend(self.series.unused_calibration(frame).filter(|text| !notes.contains(text)));
        Ok(Some(StreamItem::Image(label, image)))
    }

    /// The image that [`SeriesSource::next`] gives next; none while maps come first, and after the last
    /// image.
    pub fn upcoming(&self) -> Option<Label> {
        (self.maps == self.series.slices()).then(|| self.series.labels().nth(self.next)).flatten()
    }

    /// Goes on past the [upcoming](Self::upcoming) image, which [`SeriesSource::image`] has given already.
    ///
    /// Errors: as [`SeriesSource::next`].
    pub fn skip(&mut self, monitor: &Monitor) -> Result<()> {
        if self.series.slices() > 1 {
            self.fetch_needed(monitor)?;
        }
        self.next += 1;
        Ok(())
    }

    /// Reads what the images of a volume need, before the first of them.
    fn fetch_needed(&mut self, monitor: &Monitor) -> Result<()> {
        let slices = self.series.slices();
        if self.next.is_multiple_of(slices) {
            let needed = self.series.needed(self.next / slices);
            self.held.retain(|index, _| needed.contains(index));
            self.fetch(&needed, monitor)?;
        }
        Ok(())
    }

    fn label(&self, frame: usize) -> Label {
        self.series.labels().nth(frame).unwrap_or_default()
    }

    fn fetch(&mut self, wanted: &BTreeSet<usize>, monitor: &Monitor) -> Result<()> {
        let held = &mut self.held;
        let missing: Vec<usize> = wanted.iter().copied().filter(|index| !held.contains_key(index)).collect();
        self.reader.read(&mut missing.into_iter(), monitor, &mut |index, acquisition| {
            held.insert(index, acquisition);
        })
    }

    fn frame(
        &self,
        label: Label,
        readouts: &[usize],
        calibration: &[usize],
        notes: &mut Vec<String>,
    ) -> Result<Frame> {
        let numbered = |indices: &[usize]| -> Vec<(usize, &Acquisition)> {
            indices.iter().filter_map(|index| Some((*index, self.held.get(index)?))).collect()
        };
        let (header, heads) = (self.reader.header(), &self.heads);
        let references = numbered(&self.series.references(readouts));
        let (readouts, calibration) = (numbered(readouts), numbered(calibration));
        let (readouts, calibration, references) = (&readouts[..], &calibration[..], &references[..]);
        assemble(Parts { header, heads, label, readouts, calibration, references }, &self.options, notes)
            .map_err(|e| Error::core(self.reader.path(), e))
    }
}
