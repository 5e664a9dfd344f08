//! Mosaics of Siemens: the slices of a volume as tiles of one large slice.
//!
//! The private header (CSA) tells how many slices there are, and in which direction they follow each other.
//! The image position is of the corner of a slice as large as the mosaic, around the same centre as the first
//! slice.

use std::path::Path;

use rayspin_core::vector::{dot, norm, scaled};

use super::dataset::Dataset;
use super::tag;
use crate::{Error, Result};

/// The slices of a mosaic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mosaic {
    pub(super) slices: usize,
    /// Tiles along each side.
    pub(super) side: usize,
    /// From each slice to the next, a unit vector.
    pub(super) normal: [f64; 3],
    /// Whether `ImageType` says so, too.
    named: bool,
}

/// The plane in which a mosaic lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct MosaicPlane {
    /// The centre of its first pixel, mm.
    pub(super) corner: [f64; 3],
    /// Rows and columns.
    pub(super) size: [usize; 2],
    /// mm between rows and between columns.
    pub(super) spacing: [f64; 2],
    /// The directions of a row and of a column.
    pub(super) axes: [[f64; 3]; 2],
}

impl Mosaic {
    /// The mosaic of a file, if it is one: `ImageType` says so, or the private header. Other programs take
    /// slices out of mosaics and keep that header, or lose words of `ImageType`. So the header alone counts
    /// if its tiles fit into a single frame, and none is smaller than what was acquired.
    ///
    /// Errors: a mosaic without a header that tells its slices, or that does not hold them.
    pub(super) fn of(
        path: &Path,
        dataset: &Dataset<'_>,
        [rows, columns]: [usize; 2],
        frames: usize,
    ) -> Result<Option<Self>> {
        let is = |text: &str| text.split('\\').any(|word| word.trim() == "MOSAIC");
        let named = dataset.text(tag::IMAGE_TYPE).is_some_and(|text| is(&text));
        let header = dataset.private(0x0029, "SIEMENS CSA HEADER", 0x10).unwrap_or_default();
        let slices = csa(header, "NumberOfImagesInMosaic").first().copied();
        let side = slices.map_or(0.0, f64::sqrt).ceil();
        let fits =
            (1.0..=rows.min(columns) as f64).contains(&side) && slices.is_some_and(|n| n.fract() == 0.0);
        let side = if fits { side as usize } else { 0 };
        let fits = side > 0 && rows % side == 0 && columns % side == 0;
        let acquired = dataset.shorts(tag::ACQUISITION_MATRIX).into_iter().filter(|&size| size > 0).min();
        let large = || rows.max(columns) / side >= acquired.map_or(0, usize::from);
        let told_by_header = || frames == 1 && fits && side > 1 && large();
        if !(named || told_by_header()) {
            return Ok(None);
        }
        let refuse = |expected: &str, found: String| {
            Err(Error::field(path, Self::what(named), expected, found)
                .with_hint("convert it by a program that reads the scanner's mosaics, such as dcm2niix"))
        };
        let normal: Option<[f64; 3]> = csa(header, "SliceNormalVector").try_into().ok();
        let (Some(slices), Some(normal)) = (slices, normal) else {
            return refuse(
                "Siemens' header (CSA) with NumberOfImagesInMosaic and SliceNormalVector",
                "none".into(),
            );
        };
        if !fits {
            return refuse("tiles of one size", format!("{slices} slices in {rows} x {columns}"));
        }
        let length = norm(normal);
        if !length.is_finite() || (length - 1.0).abs() > 1e-3 {
            return refuse("a SliceNormalVector of length 1", format!("{normal:?}"));
        }
        Ok(Some(Self { slices: slices as usize, side, normal: scaled(normal, 1.0 / length), named }))
    }

    /// What says that there is a mosaic.
    fn what(named: bool) -> &'static str {
        if named { "mosaic (ImageType)" } else { "mosaic (NumberOfImagesInMosaic)" }
    }

    /// The error of a mosaic that lacks something.
    pub(super) fn refused(&self, path: &Path, expected: &str, found: impl ToString) -> Error {
        Error::field(path, Self::what(self.named), expected, found)
    }

    /// A sentence on a mosaic that only the private header tells.
    pub(super) fn note(&self) -> Option<String> {
        (!self.named).then(|| {
            format!(
                "Siemens' header (CSA) tells a mosaic of {} slices (NumberOfImagesInMosaic), ImageType does not: the mosaic is taken apart",
                self.slices
            )
        })
    }

    /// The centre of the first pixel of a slice. Slices are `between` mm apart.
    pub(super) fn place(&self, slice: usize, plane: MosaicPlane, between: f64) -> [f64; 3] {
        let MosaicPlane { corner, size, spacing, axes: [row, column] } = plane;
        let inwards = |n: usize, mm: f64| (n - n / self.side) as f64 / 2.0 * mm;
        let (down, right) = (inwards(size[0], spacing[0]), inwards(size[1], spacing[1]));
        let along = slice as f64 * between;
        std::array::from_fn(|i| corner[i] + right * row[i] + down * column[i] + along * self.normal[i])
    }

    /// Whether the slices follow each other along the normal of their planes.
    pub(super) fn is_straight(&self, normal: [f64; 3]) -> bool {
        dot(self.normal, normal).abs() > 0.99
    }
}

/// The numbers under a name of a CSA header; none of a header that is damaged or does not hold it.
fn csa(header: &[u8], name: &str) -> Vec<f64> {
    entry(header, name).unwrap_or_default().iter().filter_map(|text| text.trim().parse().ok()).collect()
}

/// The texts of an entry: 64 bytes of name, the number of values, the type, and the number of items; each
/// item has four numbers, the length among them, and its bytes up to a multiple of four. A header that begins
/// with `SV10` states the length in the second number, an older one in the first, increased by the number of
/// items of the first entry.
fn entry(header: &[u8], name: &str) -> Option<Vec<String>> {
    let new = header.starts_with(b"SV10");
    let mut rest = &header[if new { 8 } else { 0 }..];
    let take = |rest: &mut &[u8], count: usize| -> Option<Vec<u8>> {
        let (taken, others) = rest.split_at_checked(count)?;
        *rest = others;
        Some(taken.to_vec())
    };
    let number = |rest: &mut &[u8]| -> Option<u32> {
        let (taken, others) = rest.split_first_chunk()?;
        *rest = others;
        Some(u32::from_le_bytes(*taken))
    };
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let entries = number(&mut rest)?;
    number(&mut rest)?;
    let mut offset = None;
    for _ in 0..entries {
        let own = text(&take(&mut rest, 64)?);
        let values = number(&mut rest)? as usize;
        take(&mut rest, 8)?;
        let items = number(&mut rest)?;
        number(&mut rest)?;
        let offset = *offset.get_or_insert(items);
        let mut texts = Vec::new();
        for _ in 0..items {
            let numbers = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
            let length = if new { numbers[1] } else { numbers[0].checked_sub(offset)? } as usize;
            let bytes = take(&mut rest, length)?;
            let padding = (4 - length % 4) % 4;
            rest = rest.get(padding..).unwrap_or_default();
            texts.push(text(&bytes));
        }
        if own == name {
            texts.truncate(values.max(1));
            return Some(texts);
        }
    }
    None
}
