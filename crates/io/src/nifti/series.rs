//! A series that is written volume by volume.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use ndarray::ArrayViewD;
use rayspin_core::{C32, Geometry};

use super::{NiftiOptions, header, is_compressed, write_values};
use crate::atomic::Pending;
use crate::{Error, Result};

/// A NIfTI-1 file in the making.
pub(crate) struct NiftiSeries {
    pending: Pending,
    stream: Stream,
    shape: [usize; 3],
    geometry: Geometry,
    options: NiftiOptions,
}

enum Stream {
    Plain(BufWriter<File>),
    Compressed(Box<GzEncoder<BufWriter<File>>>),
}

impl Stream {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            Self::Compressed(stream) => stream.as_mut(),
        }
    }

    fn finish(self) -> io::Result<File> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Compressed(stream) => stream.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl NiftiSeries {
    /// For `frames` volumes.
    pub(crate) fn create(
        path: &Path,
        frames: usize,
        shape: [usize; 3],
        geometry: &Geometry,
        options: NiftiOptions,
    ) -> Result<Self> {
        let header = header::bytes(path, shape, several(frames), geometry, &options)?;
        let pending = Pending::create(path)?;
        let file = BufWriter::with_capacity(1 << 20, pending.open()?);
        let mut stream = match is_compressed(path) {
            true => Stream::Compressed(Box::new(GzEncoder::new(file, Compression::fast()))),
            false => Stream::Plain(file),
        };
        stream.writer().write_all(&header).map_err(|e| Error::write(path, e))?;
        Ok(Self { pending, stream, shape, geometry: *geometry, options })
    }

    pub(crate) fn push(&mut self, volume: ArrayViewD<'_, C32>) -> Result<()> {
        write_values(self.stream.writer(), volume, self.options.values)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.stream.finish().map_err(|e| Error::write(self.pending.wanted(), e))?;
        self.pending.finish()
    }

    /// Ends the file after `frames` volumes, fewer than were announced, under another name.
    pub(crate) fn finish_as(self, path: &Path, frames: usize) -> Result<()> {
        let fail = |e| Error::write(path, e);
        let header = header::bytes(path, self.shape, several(frames), &self.geometry, &self.options)?;
        let compressed = matches!(self.stream, Stream::Compressed(_));
        let mut file = self.stream.finish().map_err(fail)?;
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        if !compressed {
            file.write_all(&header).map_err(fail)?;
            return self.pending.finish_as(path);
        }
        // The header cannot be changed within the compressed stream: it is made anew.
        let whole = Pending::create(path)?;
        let mut values = GzDecoder::new(BufReader::new(file));
        io::copy(&mut io::Read::take(&mut values, header.len() as u64), &mut io::sink()).map_err(fail)?;
        let to = BufWriter::with_capacity(1 << 20, whole.open()?);
        let mut stream = GzEncoder::new(to, Compression::fast());
        stream.write_all(&header).map_err(fail)?;
        io::copy(&mut values, &mut stream).map_err(fail)?;
        stream.finish().and_then(|mut file| file.flush()).map_err(fail)?;
        whole.finish()
    }
}

/// One volume is an image and no series.
fn several(frames: usize) -> Option<usize> {
    (frames > 1).then_some(frames)
}
