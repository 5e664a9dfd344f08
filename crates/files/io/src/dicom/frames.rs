//! Which fragments of encapsulated pixels make up a frame: PS3.5 A.4.

use std::borrow::Cow;

use super::dataset::Pixels;

/// The tables that say where frames begin.
#[derive(Clone, Copy)]
pub(super) struct OffsetTables<'a> {
    /// The basic table, of 32 bits; empty where the file has none.
    pub(super) basic: &'a [u8],
    /// The extended table, of 64 bits; empty where the file has none.
    pub(super) extended: &'a [u8],
}

/// The compressed bytes of frame `frame` of `frames`.
///
/// One fragment is one frame where there are as many. Else a table tells where frames begin, or the code
/// itself does.
///
/// Errors: fragments that do not tell their frames, in words for people.
pub(super) fn encoded<'a>(
    frame: usize,
    frames: usize,
    tables: OffsetTables<'_>,
    fragments: &[(usize, &'a [u8])],
    pixels: Pixels,
) -> Result<Cow<'a, [u8]>, String> {
    if fragments.len() == frames {
        return Ok(fragments.get(frame).map_or(&[][..], |(_, bytes)| bytes).into());
    }
    let starts = match frames {
        1 => vec![0],
        _ => starts(tables, fragments, pixels),
    };
    if starts.len() != frames {
        return Err(format!("{} fragments for {frames} frames", fragments.len()));
    }
    let (start, end) = (starts[frame], starts.get(frame + 1).copied().unwrap_or(usize::MAX));
    let own = fragments.iter().filter(|(place, _)| (start..end).contains(place));
    Ok(own.flat_map(|(_, bytes)| bytes.iter().copied()).collect())
}

/// The places where frames begin.
fn starts(tables: OffsetTables<'_>, fragments: &[(usize, &[u8])], pixels: Pixels) -> Vec<usize> {
    let OffsetTables { basic, extended } = tables;
    if !basic.is_empty() {
        return basic.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four) as usize).collect();
    }
    if !extended.is_empty() {
        let place = |eight: &[u8; 8]| usize::try_from(u64::from_le_bytes(*eight)).unwrap_or(usize::MAX);
        return extended.as_chunks().0.iter().map(place).collect();
    }
    let begins = |bytes: &[u8]| match pixels {
        Pixels::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
        // A codestream, or a file that holds one.
        Pixels::Jpeg2000 => bytes.starts_with(b"\xff\x4f\xff\x51") || bytes.starts_with(b"\0\0\0\x0cjP  "),
        Pixels::Rle | Pixels::Native => false,
    };
    fragments.iter().filter(|(_, bytes)| begins(bytes)).map(|(place, _)| *place).collect()
}
