use std::fs::File;
use std::io::{BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use rayspin_core::format_shape;

use super::{Checked, read_header};
use crate::element::{self, Origin, Stop};
use crate::{Error, Result};

/// A `.npy` array of real numbers that is read piece by piece, from a file or from a pipe that another
/// program writes to.
///
/// ```
/// use ndarray::array;
/// use rayspin_io::npy::{self, NpyStream};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("views.npy");
/// npy::write(&file, array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]].view())?;
/// let mut stream = NpyStream::open(&file)?;
/// assert_eq!(stream.shape(), [3, 2]);
/// assert_eq!(stream.read(2)?, [1.0, 2.0]);
/// assert_eq!(stream.read(9)?, [3.0, 4.0, 5.0, 6.0]); // all that is left
/// assert!(stream.read(1)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NpyStream {
    path: PathBuf,
    stream: Box<dyn Read + Send>,
    header: Checked,
    /// Numbers that were read.
    done: usize,
    /// Whether it ends with the last number. Nobody waits for the end of a pipe.
    ends: bool,
}

impl std::fmt::Debug for NpyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NpyStream({}, {} numbers read)", self.path.display(), self.done)
    }
}

impl NpyStream {
    /// Opens a file or pipe, or standard input where the path is `-`, and reads the header.
    ///
    /// Errors: another format, complex numbers, Fortran order.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (mut stream, ends): (Box<dyn Read + Send>, _) = match path.as_os_str() == "-" {
            true => (Box::new(stdin()), false),
            false => {
                let file = File::open(path).map_err(|e| Error::open(path, e))?;
                let ends = file.metadata().is_ok_and(|metadata| metadata.is_file());
                (Box::new(BufReader::with_capacity(1 << 20, file)), ends)
            }
        };
        let header = read_header(path, "header", &mut stream)?;
        if header.element.is_complex() {
            return Err(Error::field(path, "number type", "real numbers", &header.description.descr));
        }
        if header.description.fortran_order && header.description.shape.len() > 1 {
            return Err(Error::unsupported(path, "a stream in Fortran order")
                .with_hint("numpy.ascontiguousarray puts an array in C order"));
        }
        Ok(Self { path: path.to_owned(), stream, header, done: 0, ends })
    }

    /// The shape of the whole array.
    pub fn shape(&self) -> &[usize] {
        &self.header.description.shape
    }

    /// The next `count` numbers in C order, or as many as are left. Waits for a pipe.
    ///
    /// Errors: a stream that ends before the last number, or a file that goes on behind it; a number beyond
    /// single precision; memory.
    pub fn read(&mut self, count: usize) -> Result<Vec<f32>> {
        let (path, header) = (&self.path, &self.header);
        let count = count.min(header.count - self.done);
        let size = header.element.size() as u64;
        let promise = || {
            let bytes = header.count as u64 * size;
            format!(
                "{bytes} bytes for {} of {}",
                format_shape(&header.description.shape),
                header.description.descr
            )
        };
        let values =
            element::read(Origin::Stream(&mut self.stream), count, header.element, header.order, None);
        let values = values.map(|numbers| numbers.values).map_err(|stop| match stop {
            Stop::Io(e) => Error::read(path, e),
            Stop::Memory(e) => Error::core(path, e),
            Stop::Short(got) => {
                let found = format!("{} bytes", self.done as u64 * size + got);
                Error::truncated(path, "the array", promise(), found)
            }
            Stop::Range(index) => {
                let found = format!("a larger one at {}", self.done + index);
                Error::field(path, "values", "within single precision", found)
            }
        })?;
        self.done += count;
        if self.ends && count > 0 && self.done == header.count {
            let behind = element::fill(&mut self.stream, &mut [0]).map_err(|e| Error::read(path, e))?;
            if behind > 0 {
                return Err(Error::field(path, "size of the values", promise(), "more"));
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, ShapeBuilder};
    use rayspin_core::C32;

    use super::*;
    use crate::npy::{read_real, write};

    #[test]
    fn parts_of_any_length_are_the_array() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.npy");
        let values = Array3::from_shape_fn((5, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as f32);
        write(&file, values.view()).unwrap();
        for length in [1, 7, 12, 59, 60, 61] {
            let mut stream = NpyStream::open(&file).unwrap();
            assert_eq!(stream.shape(), [5, 3, 4]);
            let mut found = Vec::new();
            loop {
                let part = stream.read(length).unwrap();
                if part.is_empty() {
                    break;
                }
                assert!(part.len() <= length);
                found.extend(part);
            }
            assert!(found.iter().eq(values.iter()), "{length}");
        }
        write(&file, values.mapv(f64::from).view()).unwrap();
        let found = NpyStream::open(&file).unwrap().read(60).unwrap();
        assert!(found.iter().zip(&read_real(&file).unwrap()).all(|(a, b)| f64::from(*a) == *b));
    }

    #[test]
    fn streams_that_are_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.npy");
        let values = Array3::from_elem((2, 3, 4), 1.0f32);
        write(&file, values.view()).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        for end in [0, 3, 9, 40] {
            std::fs::write(&file, &bytes[..end]).unwrap();
            assert!(NpyStream::open(&file).is_err(), "{end} bytes");
        }
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        let mut stream = NpyStream::open(&file).unwrap();
        assert_eq!(stream.read(12).unwrap(), [1.0; 12]);
        let error = stream.read(12).unwrap_err().to_string();
        assert!(error.contains("96 bytes") && error.contains("95 bytes"), "{error}");
        std::fs::write(&file, [&bytes[..], &[0]].concat()).unwrap();
        assert!(NpyStream::open(&file).unwrap().read(24).unwrap_err().to_string().contains("more"));
        write(&file, values.mapv(|v| C32::new(v, 0.0)).view()).unwrap();
        assert!(NpyStream::open(&file).unwrap_err().to_string().contains("real numbers"));
        write(&file, values.mapv(|_| 1e300).view()).unwrap();
        assert!(
            NpyStream::open(&file).unwrap().read(1).unwrap_err().to_string().contains("single precision")
        );
        let fortran = Array3::<f32>::zeros((2, 3, 4).f());
        ndarray_npy::write_npy(&file, &fortran).unwrap();
        assert!(NpyStream::open(&file).unwrap_err().to_string().contains("Fortran"));
        assert!(NpyStream::open(folder.path().join("none.npy")).is_err());
    }
}
