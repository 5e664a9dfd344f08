//! A series that is written volume by volume. The `.hdr` file is written at the end, and both get their names
//! in one step.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ndarray::{Axis, IxDyn};

use crate::atomic::{Pending, together};
use crate::cfl::{Axes, Layout, dim, file_pair, write_header};
use crate::format::VolumeWriter;
use crate::{Error, Result, Slices, Values, element};

/// The pair of files in the making.
pub(super) struct CflSeries {
    pending: Pending,
    file: BufWriter<File>,
    values: Values,
    layout: Layout,
    /// `[z, y, x]`
    volume: [usize; 3],
    frames: usize,
    pushed: usize,
    /// Planes from the start of the file to where it stands.
    next: usize,
}

impl CflSeries {
    /// For `frames` volumes `[z, y, x]`, in the dimensions of `layout` where it has as many, else along TIME.
    pub(super) fn create(
        path: &Path,
        frames: usize,
        volume: [usize; 3],
        layout: &Layout,
        values: Values,
    ) -> Result<Self> {
        let layout = layout.with_frames(frames, dim::TIME);
        if layout.axes == Axes::SliceIsZOfCut && layout.frames[dim::SLICE - dim::MAPS] != 1 {
            return Err(Error::unsupported(
                path,
                "an image of slices across the readout whose READ is not 1",
            ));
        }
        let pending = Pending::create(&file_pair(path).0)?;
        let file = BufWriter::with_capacity(1 << 20, pending.open()?);
        Ok(Self { pending, file, values, layout, volume, frames, pushed: 0, next: 0 })
    }

    /// The planes of the file before plane `index` of the volume that is pushed.
    fn place(&self, index: usize, planes: usize) -> usize {
        match self.layout.axes {
            Axes::ReadIsX | Axes::ReadIsZ => self.pushed * planes + index,
            // The frames of the dimensions below SLICE, which is z, lie between two of its planes.
            Axes::SliceIsZ | Axes::SliceIsZOfCut => {
                let slice = dim::SLICE - dim::MAPS;
                let lower: usize = self.layout.frames[..slice].iter().product();
                let second = self.layout.frames[slice];
                let (low, rest) = (self.pushed % lower, self.pushed / lower);
                rest % second + second * (low + lower * (index + planes * (rest / second)))
            }
        }
    }

    /// Makes the file one of the first `frames` volumes, whose planes have room for all volumes between them.
    fn close_gaps(&mut self, frames: usize) -> std::io::Result<()> {
        let [nz, ny, nx] = self.volume;
        let mut plane = vec![0; 8 * ny * nx];
        let bytes = plane.len() as u64;
        let file = self.file.get_mut();
        for (slice, frame) in (0..nz).flat_map(|slice| (0..frames).map(move |frame| (slice, frame))) {
            // A plane never moves on, so that none is overwritten before it has moved.
            file.seek(SeekFrom::Start((slice * self.frames + frame) as u64 * bytes))?;
            file.read_exact(&mut plane)?;
            file.seek(SeekFrom::Start((slice * frames + frame) as u64 * bytes))?;
            file.write_all(&plane)?;
        }
        file.set_len((nz * frames) as u64 * bytes)
    }
}

impl VolumeWriter for CflSeries {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        let volume = slices.complex();
        let volume = volume.view();
        let volume = match self.layout.axes {
            // READ, the fastest, is z.
            Axes::ReadIsZ => volume.reversed_axes(),
            // PHS1, the faster of a plane's two, is y.
            Axes::SliceIsZOfCut => volume.permuted_axes(IxDyn(&[0, 2, 1])),
            Axes::ReadIsX | Axes::SliceIsZ => volume,
        };
        let planes = volume.len_of(Axis(0));
        let bytes = 8 * (volume.len() / planes.max(1)) as u64;
        for (index, plane) in volume.outer_iter().enumerate() {
            let fail = |e| Error::write(self.pending.wanted(), e);
            let place = self.place(index, planes);
            if place != self.next {
                self.file.seek(SeekFrom::Start(place as u64 * bytes)).map_err(fail)?;
            }
            let written = match self.values {
                Values::Complex => element::write(&mut self.file, &plane.into(), Values::Complex, None),
                some => {
                    let plane = plane.mapv(|value| some.of(value));
                    element::write(&mut self.file, &plane.view().into(), Values::Complex, None)
                }
            };
            written.map_err(fail)?;
            self.next = place + 1;
        }
        self.pushed += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>> {
        let (data, header) = file_pair(path);
        self.file.flush().map_err(|e| Error::write(&data, e))?;
        if frames < self.frames && self.layout.axes.slice_is_z() {
            if self.layout != self.layout.with_all_along(self.frames, dim::TIME) {
                return Err(Error::unsupported(
                    path,
                    "a part of a series along several of BART's dimensions",
                ));
            }
            self.close_gaps(frames).map_err(|e| Error::write(&data, e))?;
        }
        let Self { pending, file, layout, volume, .. } = *self;
        drop(file);
        let dims = layout.with_frames(frames, dim::TIME).dims(1, volume);
        together(|| {
            pending.finish_as(&data)?;
            write_header(&header, &dims)
        })?;
        Ok(None)
    }
}
