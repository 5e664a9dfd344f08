//! The string of a file that holds the XML header.

use std::path::Path;

use hdf5::H5Type;
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};

use super::references;
use crate::error::{Error, Result};
use crate::hdf5_file::reading;

/// The bytes of the header, from a string of fixed or variable length.
pub(super) fn xml_bytes(path: &Path, dataset: &hdf5::Dataset) -> Result<Vec<u8>> {
    let fail = |e: hdf5::Error| reading(path, "the XML header", &e);
    let shape = dataset.get_shape().map_err(fail)?;
    // A product of hostile sizes may overflow, so it is not asked for.
    if shape.iter().any(|n| *n != 1) {
        return Err(Error::field(path, "xml", "one string", format!("shape {shape:?}")));
    }
    let file_bytes = std::fs::metadata(dataset.filename())
        .or_else(|_| std::fs::metadata(path))
        .map_err(|e| Error::read(path, e))?
        .len();
    let variable = |dataset: &hdf5::Dataset| {
        references::lengths(path, dataset, [0], |_, [length]| {
            if u64::from(length) > file_bytes {
                let expected = format!("at most the {file_bytes} bytes of the file");
                return Err(Error::field(path, "xml", expected, format!("{length} bytes")));
            }
            Ok(())
        })
    };
    let first = |missing| Error::field(path, "xml", "one string", missing);
    fn only<T: H5Type>(dataset: &hdf5::Dataset) -> hdf5::Result<Option<T>> {
        Ok(dataset.read_raw::<T>()?.into_iter().next())
    }
    /// A string of at most `N` bytes; the value stays on the heap.
    fn fixed<T: H5Type>(dataset: &hdf5::Dataset, bytes: impl Fn(&T) -> &[u8]) -> hdf5::Result<Vec<u8>> {
        let values = dataset.read_raw::<T>()?;
        Ok(values.first().map(|v| bytes(v).to_vec()).unwrap_or_default())
    }
    const SMALL: usize = 1 << 16;
    const LARGE: usize = 1 << 24;
    let descriptor = dataset.dtype().and_then(|t| t.to_descriptor()).map_err(fail)?;
    if matches!(descriptor, TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode) {
        variable(dataset)?;
    }
    match descriptor {
        TypeDescriptor::VarLenAscii => only::<VarLenAscii>(dataset)
            .map_err(fail)?
            .map(|s| s.as_bytes().to_vec())
            .ok_or_else(|| first("none")),
        TypeDescriptor::VarLenUnicode => only::<VarLenUnicode>(dataset)
            .map_err(fail)?
            .map(|s| s.as_bytes().to_vec())
            .ok_or_else(|| first("none")),
        TypeDescriptor::FixedAscii(n) if n <= SMALL => {
            fixed::<FixedAscii<SMALL>>(dataset, |s| s.as_bytes()).map_err(fail)
        }
        TypeDescriptor::FixedAscii(n) if n <= LARGE => {
            fixed::<FixedAscii<LARGE>>(dataset, |s| s.as_bytes()).map_err(fail)
        }
        TypeDescriptor::FixedUnicode(n) if n <= SMALL => {
            fixed::<FixedUnicode<SMALL>>(dataset, |s| s.as_bytes()).map_err(fail)
        }
        TypeDescriptor::FixedUnicode(n) if n <= LARGE => {
            fixed::<FixedUnicode<LARGE>>(dataset, |s| s.as_bytes()).map_err(fail)
        }
        other => Err(Error::field(path, "xml", "a string of at most 16 MiB", other)),
    }
}
