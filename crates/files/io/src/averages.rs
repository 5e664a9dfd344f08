//! Scans of which some averages are left out.

use std::collections::BTreeSet;
use std::path::Path;

use rayspin_core::{Monitor, Ranges};
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Counters, Flags, Scan, ScanHeader, SlicePlaces};

use crate::scan_reader::{Contents, ScanReader};
use crate::{Error, Result};

/// The averages that images are made of. Readouts of images with another counter of averages become dummies,
/// which no image takes; noise and calibration stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Averages(Ranges);

impl Averages {
    /// These averages, counted from 0.
    pub fn new(chosen: Ranges) -> Self {
        Self(chosen)
    }

    fn flags(&self, flags: Flags, counters: &Counters) -> Flags {
        match flags.is_image() && !self.0.contains(counters.average.into()) {
            true => flags.with(Flags::DUMMY),
            false => flags,
        }
    }

    /// Errors: an average that no image of the scan has.
    fn expect_among(&self, readouts: impl Iterator<Item = (Flags, Counters)>) -> rayspin_core::Result<()> {
        let images = readouts.filter(|(flags, _)| flags.is_image());
        let present: BTreeSet<usize> = images.map(|(_, counters)| counters.average.into()).collect();
        self.0.expect_among("average", &Vec::from_iter(present))
    }

    fn note(&self) -> String {
        format!("only averages {} are used", self.0)
    }

    /// Leaves the other averages of a scan out.
    ///
    /// Errors: an average that no image of the scan has.
    ///
    /// ```
    /// use rayspin_core::Monitor;
    /// use rayspin_io::Averages;
    /// use rayspin_mri::simulate::{SimulateOptions, simulate};
    ///
    /// let options = SimulateOptions { matrix: [16, 16, 1], ..SimulateOptions::default() };
    /// let mut scan = simulate(&options, &Monitor::silent())?.scan;
    /// let first = scan.acquisitions.len();
    /// scan.acquisitions.extend(scan.acquisitions.clone());
    /// scan.acquisitions[first..].iter_mut().for_each(|readout| readout.counters.average = 1);
    /// Averages::new("1".parse()?).keep(&mut scan)?;
    /// assert!(scan.acquisitions[..first].iter().all(|readout| !readout.flags.is_image()));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn keep(&self, scan: &mut Scan) -> rayspin_core::Result<()> {
        self.expect_among(scan.acquisitions.iter().map(|readout| (readout.flags, readout.counters)))?;
        for readout in &mut scan.acquisitions {
            readout.flags = self.flags(readout.flags, &readout.counters);
        }
        scan.notes.push(self.note());
        Ok(())
    }

    /// The open scan without the other averages.
    ///
    /// Errors: an average that no image of the scan has.
    pub fn keep_of(self, reader: Box<dyn ScanReader>) -> Result<Box<dyn ScanReader>> {
        let heads = reader.heads();
        let found = self.expect_among(heads.iter().map(|head| (head.flags, head.counters)));
        found.map_err(|error| Error::core(reader.path(), error))?;
        Ok(Box::new(Kept { reader, averages: self }))
    }
}

/// An open scan of which some averages are left out.
struct Kept {
    reader: Box<dyn ScanReader>,
    averages: Averages,
}

impl ScanReader for Kept {
    fn images_elsewhere(&self) -> Option<String> {
        self.reader.images_elsewhere()
    }

    fn path(&self) -> &Path {
        self.reader.path()
    }

    fn header(&self) -> &ScanHeader {
        self.reader.header()
    }

    fn contents(&self) -> Contents {
        let mut contents = self.reader.contents();
        contents.images.clear();
        for head in self.heads() {
            if let Some(label) = head.label() {
                *contents.images.entry(label).or_insert(0) += head.bytes;
            }
        }
        contents
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        let mut heads = self.reader.heads();
        for head in &mut heads {
            head.flags = self.averages.flags(head.flags, &head.counters);
        }
        heads
    }

    fn slice_places(&self) -> SlicePlaces {
        self.reader.slice_places()
    }

    fn memory_bytes(&self) -> u64 {
        self.reader.memory_bytes()
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
        let averages = &self.averages;
        self.reader.read(wanted, monitor, &mut |number, mut readout| {
            readout.flags = averages.flags(readout.flags, &readout.counters);
            take(number, readout);
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.reader.notes();
        notes.push(self.averages.note());
        notes
    }

    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        let Self { reader, averages } = *self;
        let path = reader.path().to_owned();
        let mut scan = reader.into_scan(monitor)?;
        averages.keep(&mut scan).map_err(|error| Error::core(&path, error))?;
        Ok(scan)
    }
}
