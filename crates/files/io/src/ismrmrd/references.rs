//! The lengths that variable-length members state, read before HDF5 sees them: it clears a buffer of the
//! stated length before it looks at what is there, 16 GiB for a damaged one.

use std::path::Path;

use hdf5::{Dataset, plist::dataset_create::Layout};

use crate::error::{Error, Result};
use crate::hdf5_file::{fill_at, place, reading};
use crate::opening;

/// Bytes read at a time from a dataset that is not in chunks.
const STRETCH: usize = 1 << 20;

/// A stretch of elements that lie next to each other in the file.
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// Calls `check` with the index of each element of the one-dimensional `dataset` and the lengths that its
/// variable-length members at the byte offsets `members` state.
///
/// Elements in compressed chunks (which carry checksums) and in the header of the dataset itself are passed
/// over.
pub(super) fn lengths<const N: usize>(
    path: &Path,
    dataset: &Dataset,
    members: [usize; N],
    mut check: impl FnMut(u64, [u32; N]) -> Result<()>,
) -> Result<()> {
    let fail = |e: hdf5::Error| reading(path, "where the data lie", &e);
    let element = dataset.dtype().map_err(fail)?.size();
    let count = dataset.get_shape().map_err(fail)?.iter().product::<usize>() as u64;
    if element == 0 || members.iter().any(|offset| offset + 4 > element) {
        return Ok(());
    }
    let name = dataset.filename();
    let file = opening::open(Path::new(&name))?;
    for piece in pieces(dataset, element as u64, count).map_err(fail)? {
        let mut index = piece.first;
        let mut address = piece.address;
        let mut left = (piece.bytes / element as u64).min(count.saturating_sub(index));
        let most = (STRETCH / element).max(1) as u64;
        let mut buffer = vec![0; element * most.min(left) as usize];
        while left > 0 {
            let now = most.min(left);
            let bytes = &mut buffer[..element * now as usize];
            let known = fill_at(&file, address, bytes).map_err(|e| Error::read(path, e))?;
            for one in bytes[..known].chunks_exact(element) {
                let stated = members.map(|offset| {
                    one[offset..].first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length))
                });
                check(index, stated)?;
                index += 1;
            }
            if known < bytes.len() {
                // The file is short; HDF5 will report it.
                return Ok(());
            }
            address += known as u64;
            left -= now;
        }
    }
    Ok(())
}

pub(super) fn pieces(dataset: &Dataset, element: u64, count: u64) -> hdf5::Result<Vec<Piece>> {
    let mut out = Vec::new();
    match dataset.layout() {
        Layout::Contiguous => {
            if let Some((_, address)) = place(dataset) {
                out.push(Piece { first: 0, address, bytes: element.saturating_mul(count) });
            }
        }
        Layout::Chunked => {
            let Ok(filters) = dataset.dcpl().and_then(|plist| plist.get_filters()) else { return Ok(out) };
            let filters = filters.len() as u32;
            let none = 1u32.checked_shl(filters).map_or(u32::MAX, |bit| bit - 1);
            dataset.chunks_visit(|chunk| {
                if chunk.filter_mask & none == none {
                    out.push(Piece {
                        first: chunk.offset.first().copied().unwrap_or(0),
                        address: chunk.addr,
                        bytes: chunk.size,
                    });
                }
                0
            })?;
        }
        _ => {}
    }
    Ok(out)
}
