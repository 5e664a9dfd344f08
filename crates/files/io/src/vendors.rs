//! Raw data of scanners that Rayspin does not read, by the names of their files, and the programs that
//! convert them.

use std::path::Path;

use crate::Error;
use crate::error::name;

/// What a file seems to be, and which program makes ISMRMRD of it.
pub(crate) fn converter(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
    let beside = |other: &str| {
        path.with_extension(other).is_file() || path.with_extension(other.to_ascii_uppercase()).is_file()
    };
    let philips = "philips_to_ismrmrd makes ISMRMRD (.h5) of it";
    match ending.as_str() {
        "lab" | "sin" => Some(format!("this seems to be of Philips' raw data (.raw, .lab, .sin): {philips}")),
        "raw" if beside("lab") || beside("sin") => {
            Some(format!("this seems to be Philips' raw data (.raw beside .lab): {philips}"))
        }
        "list" => Some(format!("this seems to be of Philips' exported raw data (.data, .list): {philips}")),
        "data" if beside("list") => {
            Some(format!("this seems to be Philips' exported raw data (.data beside .list): {philips}"))
        }
        "h5" if name(path).starts_with("ScanArchive_") => Some(
            "this seems to be a ScanArchive of GE: ge_to_ismrmrd (with GE's Orchestra) makes ISMRMRD (.h5) of it".into(),
        ),
        _ => None,
    }
}

/// The error, with the program that converts the file where it is of another scanner.
pub(crate) fn advised(path: &Path, error: Error) -> Error {
    match converter(path) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn files_of_other_scanners_are_named_with_their_converters() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.LAB", "a.raw", "b.data", "b.list", "c.raw", "d.data"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let told = |file: &str| converter(&folder.path().join(file)).unwrap_or_default();
        for file in ["a.LAB", "a.raw", "b.data", "b.list"] {
            assert!(told(file).contains("philips_to_ismrmrd"), "{file}");
        }
        assert!(told("ScanArchive_1.h5").contains("ge_to_ismrmrd"));
        for file in ["c.raw", "d.data", "scan.h5", "none"] {
            assert_eq!(told(file), "");
        }
    }
}
