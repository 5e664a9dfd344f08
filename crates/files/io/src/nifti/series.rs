//! A series that is written volume by volume.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::bufread::GzDecoder;
use rayspin_core::Geometry;

use super::{NiftiOptions, header, is_compressed};
use crate::atomic::Pending;
use crate::format::VolumeWriter;
use crate::gzip::GzipWriter;
use crate::{Error, NumberType, Result, Slices, element};

/// A NIfTI-1 file in the making.
pub(super) struct NiftiSeries {
    pending: Pending,
    stream: Stream,
    repetitions: Option<usize>,
    shape: [usize; 3],
    geometry: Geometry,
    options: NiftiOptions,
    integers: Option<NumberType>,
}

enum Stream {
    Plain(BufWriter<File>),
    Compressed(Box<GzipWriter>),
}

impl Stream {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            Self::Compressed(stream) => stream.as_mut(),
        }
    }

    fn finish(self) -> io::Result<File> {
        match self {
            Self::Plain(file) => file.into_inner().map_err(io::IntoInnerError::into_error),
            Self::Compressed(stream) => stream.finish(),
        }
    }
}

impl NiftiSeries {
    /// For the volumes of a series, or for one image.
    pub(super) fn create(
        path: &Path,
        repetitions: Option<usize>,
        shape: [usize; 3],
        geometry: &Geometry,
        options: NiftiOptions,
        integers: Option<NumberType>,
    ) -> Result<Self> {
        let header = header::bytes(path, shape, repetitions, geometry, &options, integers)?;
        let pending = Pending::create(path)?;
        let fail = |e| Error::write(path, e);
        let file = pending.open()?;
        let mut stream = match is_compressed(path) {
            true => {
                let count = shape.iter().product::<usize>().saturating_mul(repetitions.unwrap_or(1));
                Stream::Compressed(Box::new(GzipWriter::new(file, 4 * count as u64).map_err(fail)?))
            }
            false => Stream::Plain(BufWriter::with_capacity(1 << 20, file)),
        };
        stream.writer().write_all(&header).map_err(fail)?;
        Ok(Self { pending, stream, repetitions, shape, geometry: *geometry, options, integers })
    }
}

impl VolumeWriter for NiftiSeries {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        element::write(self.stream.writer(), slices, self.options.values, self.integers)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    fn finish(self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>> {
        let fail = |e| Error::write(path, e);
        if frames == self.repetitions.unwrap_or(1) {
            self.stream.finish().map_err(fail)?;
            return self.pending.finish_as(path).map(|()| None);
        }
        let repetitions = (frames > 1).then_some(frames);
        let Self { shape, geometry, options, integers, .. } = &*self;
        let header = header::bytes(path, *shape, repetitions, geometry, options, *integers)?;
        let compressed = matches!(self.stream, Stream::Compressed(_));
        let mut file = self.stream.finish().map_err(fail)?;
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        if !compressed {
            file.write_all(&header).map_err(fail)?;
            return self.pending.finish_as(path).map(|()| None);
        }
        // The header cannot be changed within the compressed stream: it is made anew.
        let whole = Pending::create(path)?;
        let bytes = file.metadata().map_err(fail)?.len();
        let mut values = GzDecoder::new(BufReader::new(file));
        io::copy(&mut io::Read::take(&mut values, header.len() as u64), &mut io::sink()).map_err(fail)?;
        let mut stream = GzipWriter::new(whole.open()?, bytes).map_err(fail)?;
        stream.write_all(&header).map_err(fail)?;
        io::copy(&mut values, &mut stream).map_err(fail)?;
        stream.finish().map_err(fail)?;
        whole.finish_as(path).map(|()| None)
    }
}
