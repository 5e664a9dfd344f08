//! `DICOMDIR`, the index of a medium: which files it holds (PS3.3 F).

use std::path::{Component, Path, PathBuf};

use super::{dataset, tag};
use crate::{Error, Result};

/// The files that an index names. Names on a medium are in capitals; the files of a copy may be in small
/// letters.
///
/// Errors: no DICOM file; a name that leads out of the folder; no names.
pub(crate) fn indexed(index: &Path) -> Result<Vec<PathBuf>> {
    let file = dataset::File::read(index)?;
    let dataset = file.dataset()?;
    let names = dataset.items(tag::RECORDS).iter().filter_map(|record| record.text(tag::REFERENCED_FILE));
    let files: Vec<PathBuf> = names
        .map(|name| {
            let within: PathBuf = name.split('\\').map(str::trim).collect();
            if !within.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(Error::field(
                    index,
                    tag::REFERENCED_FILE.name,
                    "a file in the folder of the index",
                    name,
                ));
            }
            let small = || PathBuf::from(within.to_string_lossy().to_lowercase());
            let candidates = [within.clone(), small()].map(|name| index.with_file_name(name));
            Ok(candidates.iter().find(|file| file.is_file()).unwrap_or(&candidates[0]).clone())
        })
        .collect::<Result<_>>()?;
    match files.is_empty() {
        true => Err(Error::field(index, tag::REFERENCED_FILE.name, "the names of files", "none")),
        false => Ok(files),
    }
}
