//! Scans of Bruker's ParaVision: a folder with raw data (`fid` or `rawdata.job0`) and their parameters
//! (`acqp`, `method`, and `reco` and `visu_pars` of the scanner's own images).
//!
//! The layout was read in real files of ParaVision 5.1, in Bruker's pulse programs that lie beside them, and
//! in the readers brukerapi (T. Pšorn), BrkRaw (S.-H. Lee) and MRIReco.jl. The order of scans is that of the
//! pulse programs' loops ([`order`]), places of echo-planar samples and phases come from the method
//! ([`paths`]), and places of slices from `visu_pars` and `acqp` ([`geometry`]).

mod axes;
mod folder;
mod geometry;
mod header;
mod jcamp;
mod order;
mod paths;
mod samples;
mod scan;
#[cfg(test)]
mod tests;

use std::path::Path;

use rayspin_core::Monitor;

pub(crate) use folder::{is_scan, parts};
pub(crate) use samples::samples;

use crate::Result;
use crate::format::{Detail, Rows};
use crate::scan_reader::ScanReader;
use folder::Folder;

/// Versions and methods whose real files were read, and compared with the scanner's images.
const TRIED: [(&str, [&str; 3]); 1] = [("PV 5.1", ["FLASH", "mic_flash", "EPI"])];

/// The software of the scanner, and the method.
pub(crate) fn describe(path: &Path) -> Result<Rows> {
    let folder = Folder::open(path)?;
    let (software, method) = (folder.acqp.word("ACQ_sw_version"), folder.method_name());
    let of_version = TRIED.iter().find(|(version, _)| software == *version);
    let doubt = match of_version {
        Some((_, methods)) if methods.contains(&method) => "",
        Some(_) => "; not tried on a real file of this method",
        None => "; not tried on a real file of this version",
    };
    let software = if software.is_empty() { "unknown version" } else { software };
    Ok(vec![(
        "software".to_owned(),
        Detail::Text(format!("ParaVision ({software}), method {method}{doubt}")),
    )])
}

/// Opens a scan.
pub(crate) fn open(path: &Path, _: Option<&str>, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    Ok(Box::new(scan::open(path, monitor)?))
}
