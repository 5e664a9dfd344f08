//! Reads a file in every way there is: whole, by the HDF5 library alone, acquisition by acquisition, and
//! image by image as a stream does. All must give the same scan or the same error. The tests and the fuzzer
//! of `fuzz/` call it with altered files.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use rayspin_core::Monitor;
use rayspin_io::Error;
use rayspin_io::SeriesSource;
use rayspin_io::ismrmrd::{ReadOptions, Reader, open_by_library, read_by_library, read_with};
use rayspin_mri::corrections::{ReadoutHeads, Sources};
use rayspin_mri::recon::StreamItem;
use rayspin_mri::scan::{
    Acquisition, AcquisitionHead, Flags, Frame, FrameOptions, Label, Parts, Scan, ScanHeader, Series, Window,
    assemble,
};

/// Voxels of all coils that a frame may have here.
const VOXELS: usize = 1 << 18;
/// Acquisitions that are read one by one by the library, which is slow.
const BY_LIBRARY: usize = 64;

/// An acquisition, or the text of the error that its reading ends in.
type Alone = Result<Acquisition, String>;

/// [`read_with`], whose result is compared with every other way of reading.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> Result<Scan, Error> {
    let monitor = Monitor::silent();
    let whole = read_with(path, options, &monitor);
    let by_library = read_by_library(path, options, &monitor);
    // Texts, since no NaN equals another.
    assert_eq!(format!("{whole:#?}"), format!("{by_library:#?}"));
    if matches!(&whole, Err(Error::Core { source: rayspin_core::Error::Memory { .. }, .. })) {
        return whole;
    }
    match Reader::open(path, None) {
        Ok(reader) => compare_pieces(path, reader, &whole),
        Err(error) => assert_eq!(whole.as_ref().err().map(text), Some(text(&error))),
    }
    whole
}

fn text(what: &impl Debug) -> String {
    format!("{what:#?}")
}

/// Compares what a whole file gives with what its acquisitions give one by one, and these with images.
fn compare_pieces(path: &Path, reader: Reader, whole: &Result<Scan, Error>) {
    let monitor = Monitor::silent();
    let places = reader.heads();
    let header = reader.header().clone();
    let count = places.len();
    // Neither the order nor the blocks may matter, nor that one is read again.
    let (alone, reader) = one_by_one(reader, (0..count).rev());
    let (_, reader) = one_by_one(reader, 0..count.min(3));
    let bad = alone.iter().find_map(|acquisition| acquisition.as_ref().err());
    match whole {
        Ok(scan) => {
            assert_eq!(bad, None);
            assert_eq!(scan.acquisitions.len(), count);
            for (index, (whole, alone)) in scan.acquisitions.iter().zip(&alone).enumerate() {
                let Ok(alone) = alone else { continue };
                assert!(whole == alone || text(whole) == text(alone), "acquisition {index}");
            }
            assert_eq!((text(&scan.header), &scan.notes), (text(&header), &reader.notes()));
        }
        Err(error) => assert_eq!(Some(&text(error)), bad),
    }
    // Behind a bad acquisition only those of the same reader say what is right.
    if whole.is_err() && count <= BY_LIBRARY {
        let (by_library, _) = one_by_one(open_by_library(path).expect("it opened before"), 0..count);
        assert_eq!(text(&alone), text(&by_library));
    }
    drop(reader);
    let labels: BTreeSet<Label> = places.iter().filter_map(AcquisitionHead::label).collect();
    for label in labels.iter().take(2) {
        compare_one_image(path, *label, &places, &alone, &monitor);
    }
    let coils = alone.iter().flatten().map(|acquisition| acquisition.data.nrows()).max().unwrap_or(1);
    let voxels = |matrix: [usize; 3]| matrix.iter().fold(coils, |n, &size| n.saturating_mul(size));
    let small =
        header.encodings.iter().all(|e| voxels(e.encoded.matrix).max(voxels(e.recon.matrix)) <= VOXELS);
    let labels: Vec<Label> = labels.into_iter().collect();
    if !small || labels.is_empty() {
        return;
    }
    let compare = Compare { path, header: &header, alone: &alone, whole };
    if let Ok(series) = Series::of_labels(places.clone(), &labels, None) {
        for maps in [false, true] {
            compare.images(&series, true, maps);
        }
    }
    for (readouts, stride) in [(2, 1), (3, 5)] {
        let window = Window { readouts, stride, frames: None };
        if let Ok(series) = Series::of_windows(places.clone(), &labels, &window, None) {
            compare.images(&series, false, false);
        }
    }
}

/// Acquisitions in the order given, each by a call of its own; by number.
fn one_by_one(mut reader: Reader, wanted: impl Iterator<Item = usize>) -> (Vec<Alone>, Reader) {
    let mut all: Vec<(usize, Alone)> = Vec::new();
    for index in wanted {
        let mut found = None;
        let result = reader.read(std::iter::once(index), &Monitor::silent(), &mut |number, acquisition| {
            assert_eq!(number, index);
            assert!(found.replace(acquisition).is_none());
        });
        all.push((index, result.map_err(|e| text(&e)).map(|()| found.expect("the acquisition"))));
    }
    all.sort_by_key(|(index, _)| *index);
    (all.into_iter().map(|(_, alone)| alone).collect(), reader)
}

/// Acquisitions by their numbers, or the error of the first that is bad.
fn good(
    alone: &[Alone],
    wanted: impl IntoIterator<Item = usize>,
) -> Result<Vec<(usize, &Acquisition)>, String> {
    wanted.into_iter().map(|index| Ok((index, alone[index].as_ref().map_err(String::clone)?))).collect()
}

fn compare_one_image(
    path: &Path,
    label: Label,
    places: &[AcquisitionHead],
    alone: &[Alone],
    monitor: &Monitor<'_>,
) {
    let options = ReadOptions { only: Some(label), ..ReadOptions::default() };
    let Sources { of_image, of_scan } = Sources::all();
    let common = |place: &AcquisitionHead| {
        let same = (place.encoding, place.counters.slice) == (label.encoding, label.slice);
        place.flags.contains(of_scan.with(Flags::CALIBRATION)) || same && place.flags.contains(of_image)
    };
    let wanted = |place: &AcquisitionHead| place.label() == Some(label) || common(place);
    let wanted = places.iter().enumerate().filter(|(_, place)| wanted(place)).map(|(index, _)| index);
    let expected =
        good(alone, wanted).map(|all| all.into_iter().map(|(_, one)| one.clone()).collect::<Vec<_>>());
    let found = read_with(path, &options, monitor).map(|scan| scan.acquisitions);
    assert_eq!(found.map_err(|e| text(&e)).map(|all| text(&all)), expected.map(|all| text(&all)));
}

struct Compare<'a> {
    path: &'a Path,
    header: &'a ScanHeader,
    alone: &'a [Alone],
    whole: &'a Result<Scan, Error>,
}

impl Compare<'_> {
    /// The images of a series, or the error of the first that cannot be made. `counted`: whether the file's
    /// counters number the images, as in the whole scan. `maps`: whether frames for maps come
    /// first.
    fn images(&self, series: &Series, counted: bool, maps: bool) {
        let monitor = Monitor::silent();
        let options = FrameOptions { times: true, ..FrameOptions::default() };
        let reader = Reader::open(self.path, None).expect("it opened before");
        let mut source = SeriesSource::new(Box::new(reader), series.clone(), options.clone());
        let noise = source.noise(&monitor).map(|scan| text(&scan.acquisitions)).map_err(|e| text(&e));
        let purposes = series.heads().iter().enumerate();
        let noisy = purposes.filter(|(_, place)| place.flags.contains(Flags::NOISE)).map(|(index, _)| index);
        let wanted: BTreeSet<usize> = noisy.chain(series.readouts(0).first().copied()).collect();
        let expected = good(self.alone, wanted);
        assert_eq!(noise, expected.map(|all| text(&all.iter().map(|(_, one)| one).collect::<Vec<_>>())));
        let mut notes = Vec::new();
        // The command looks at the first image, learns maps, and starts over.
        let first = source.image(0, &mut notes, &monitor).map_err(|e| text(&e));
        let wanted = [series.readouts(0).to_vec(), series.calibration(0)].concat();
        self.same(first, self.expected(series, 0, wanted, counted, &options));
        if maps && source.learn_maps(&mut notes, &monitor).is_err() {
            return;
        }
        for (frame, label) in series.labels().enumerate() {
            let found = loop {
                match source.next(&mut notes, &monitor) {
                    Ok(Some(StreamItem::Maps(..))) if maps => {}
                    Ok(Some(StreamItem::Image(found, image))) => {
                        assert_eq!(found, label);
                        break Ok(image);
                    }
                    Ok(other) => panic!("image {frame} of {}: {}", series.labels().len(), text(&other)),
                    Err(error) => break Err(text(&error)),
                }
            };
            let needed = series.needed(frame / series.slices());
            let expected = self.expected(series, frame, needed, counted, &options);
            // The command ends with the first error.
            let ended = found.is_err();
            // Frames for maps are read before the images, and their errors come first.
            if !(maps && ended) {
                self.same(found, expected);
            }
            if ended {
                return;
            }
        }
        assert!(source.next(&mut notes, &monitor).is_ok_and(|end| end.is_none()));
        if let (Ok(scan), true) = (self.whole, counted) {
            assert_eq!(source.notes(), scan.notes);
        }
    }

    /// What image `frame` must be where `read` are read for it.
    fn expected(
        &self,
        series: &Series,
        frame: usize,
        read: impl IntoIterator<Item = usize>,
        counted: bool,
        options: &FrameOptions,
    ) -> Result<Frame, String> {
        let read: BTreeSet<usize> = read.into_iter().collect();
        good(self.alone, read)?;
        let label = series.labels().nth(frame).expect("a label");
        let mut notes = Vec::new();
        let made = match self.whole {
            Ok(scan) if counted => scan.frames().and_then(|all| all.assemble(label, options, &mut notes)),
            _ => {
                let readouts = good(self.alone, series.readouts(frame).iter().copied())?;
                let calibration = good(self.alone, series.calibration(frame))?;
                let references = series.references(series.readouts(frame)).into_iter();
                let references = good(self.alone, references)?;
                let (readouts, calibration, references) = (&readouts[..], &calibration[..], &references[..]);
                let (header, heads) = (self.header, &ReadoutHeads::default());
                let parts = Parts { header, heads, label, readouts, calibration, references };
                assemble(parts, options, &mut notes)
            }
        };
        made.map_err(|e| text(&Error::core(self.path, e)))
    }

    fn same(&self, found: Result<Frame, String>, expected: Result<Frame, String>) {
        assert_eq!(found.map(|frame| text(&frame)), expected.map(|frame| text(&frame)));
    }
}
