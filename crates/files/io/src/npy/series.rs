//! An array that is written volume by volume.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use super::MAGIC;
use crate::atomic::Pending;
use crate::element::{self, Element};
use crate::format::VolumeWriter;
use crate::{Error, NumberType, Result, Slices, Values};

/// A header in C order for numbers of type `descr`, as long as one with a `longest` shape would be.
fn header_bytes(descr: &str, shape: &[usize], longest: &[usize]) -> Vec<u8> {
    let text = |shape: &[usize]| {
        let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma})}}", sizes.join(", "))
    };
    // Ten bytes before the dictionary, at least one space and a newline after it, in a multiple of 64: as
    // `write` has it.
    let length = (text(longest).len() + 12).next_multiple_of(64) - 10;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{:<1$}\n", text(shape), length - 1).into_bytes());
    bytes
}

/// A `.npy` file in the making, volume by volume.
pub(super) struct NpySeries {
    pending: Pending,
    file: BufWriter<File>,
    values: Values,
    integers: Option<NumberType>,
    shape: Vec<usize>,
}

impl NpySeries {
    /// For an array of `shape`: `[z, y, x]` after the axes of the volumes.
    pub(super) fn create(
        path: &Path,
        shape: &[usize],
        values: Values,
        integers: Option<NumberType>,
    ) -> Result<Self> {
        let pending = Pending::create(path)?;
        let shape = shape.to_vec();
        let mut file = BufWriter::with_capacity(1 << 20, pending.open()?);
        let header = header_bytes(descr(values, integers), &shape, &shape);
        file.write_all(&header).map_err(|e| Error::write(path, e))?;
        Ok(Self { pending, file, values, integers, shape })
    }
}

impl VolumeWriter for NpySeries {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        element::write(&mut self.file, slices, self.values, self.integers)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    fn finish(mut self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>> {
        let fail = |e| Error::write(path, e);
        let mut shape = self.shape.clone();
        let outer = shape.len().saturating_sub(3);
        if outer > 0 && shape[..outer].iter().product::<usize>() != frames {
            shape.splice(..outer, [frames]);
            let header = header_bytes(descr(self.values, self.integers), &shape, &self.shape);
            self.file.seek(SeekFrom::Start(0)).map_err(fail)?;
            self.file.write_all(&header).map_err(fail)?;
        }
        self.file.flush().map_err(fail)?;
        drop(self.file);
        self.pending.finish_as(path).map(|()| None)
    }
}

fn descr(values: Values, integers: Option<NumberType>) -> &'static str {
    match integers.map(|integers| integers.element) {
        Some(Element::Bool | Element::U8) => "|u1",
        Some(Element::I8) => "|i1",
        Some(Element::U16) => "<u2",
        Some(Element::I16) => "<i2",
        Some(Element::U32) => "<u4",
        Some(Element::I32) => "<i4",
        Some(Element::U64) => "<u8",
        Some(Element::I64) => "<i8",
        _ if values == Values::Complex => "<c8",
        _ => "<f4",
    }
}
