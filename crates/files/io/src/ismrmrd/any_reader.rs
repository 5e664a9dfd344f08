//! A scan of an HDF5 file, for callers of any format.

use std::path::Path;

use rayspin_core::Monitor;
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Scan, ScanHeader, SlicePlaces};

use super::{Contents, Reader};
use crate::Result;
use crate::scan_reader::ScanReader;

impl ScanReader for Reader {
    fn path(&self) -> &Path {
        Self::path(self)
    }

    fn header(&self) -> &ScanHeader {
        Self::header(self)
    }

    fn contents(&self) -> Contents {
        Self::contents(self)
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        Self::heads(self)
    }

    fn slice_places(&self) -> SlicePlaces {
        Self::slice_places(self)
    }

    fn memory_bytes(&self) -> u64 {
        Self::memory_bytes(self)
    }

    fn library_bytes(&self) -> u64 {
        Self::library_bytes(self)
    }

    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        Self::read(self, wanted, monitor, take)
    }

    fn notes(&self) -> Vec<String> {
        Self::notes(self)
    }

    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        Self::into_scan(*self, None, monitor)
    }
}
