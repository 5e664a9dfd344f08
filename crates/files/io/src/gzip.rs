//! gzip files: all threads compress the files that Rayspin writes, and files of all programs are read.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use gzp::deflate::Gzip;
use gzp::par::compress::{ParCompress, ParCompressBuilder};
use gzp::{GzpError, ZWriter as _};

/// Bytes that a thread compresses at a time: a file is larger by 0.1 % than as one stream.
const BLOCK: usize = 1 << 18;

/// A gzip file of one member, as every reader takes it, compressed block by block on the threads of the pool.
pub(crate) struct GzipWriter {
    /// None after an error.
    stream: Option<ParCompress<'static, Gzip, BufWriter<File>>>,
}

fn failed(error: GzpError) -> io::Error {
    match error {
        GzpError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl GzipWriter {
    /// For about `bytes` bytes, which need no more threads than they have blocks.
    pub(crate) fn new(file: File, bytes: u64) -> io::Result<Self> {
        let blocks = usize::try_from(bytes.div_ceil(BLOCK as u64)).unwrap_or(usize::MAX);
        let threads = rayon::current_num_threads().min(blocks).max(1);
        // The least level: others take 1.7 times as long and more for files smaller by 3 % at most.
        let builder = ParCompressBuilder::new().compression_level(Compression::fast());
        let builder = builder.buffer_size(BLOCK).and_then(|builder| builder.num_threads(threads));
        let to = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { stream: Some(builder.map_err(failed)?.from_writer(to)) })
    }

    /// Writes the rest, and gives back the file.
    pub(crate) fn finish(mut self) -> io::Result<File> {
        let mut stream = self.stream.take().ok_or_else(broken)?;
        let file = stream.finish().map_err(failed)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut ParCompress<'static, Gzip, BufWriter<File>>) -> io::Result<T>,
    ) -> io::Result<T> {
        let done = act(self.stream.as_mut().ok_or_else(broken)?);
        if done.is_err() {
            // Its threads have ended: it must not be told to finish.
            self.stream = None;
        }
        done
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

impl Write for GzipWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Write::flush)
    }
}

impl Drop for GzipWriter {
    /// Ends the threads of a file that is given up; the stream itself would panic where it cannot write.
    fn drop(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            drop(stream.finish());
        }
    }
}

/// What a gzip file holds, one member after another. Zeros behind a member count for nothing, as gzip has it:
/// tapes and some copies fill their blocks with them.
pub(crate) struct GzipReader<R> {
    /// None at the end of the file.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipReader<R> {
    pub(crate) fn new(file: R) -> Self {
        Self { member: Some(GzDecoder::new(file)) }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let got = member.read(to)?;
            if got > 0 || to.is_empty() {
                return Ok(got);
            }
            let rest = self.member.take().map(GzDecoder::into_inner);
            if let Some(mut rest) = rest
                && !ends_in_zeros(&mut rest)?
            {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Passes over zeros; whether the file ends behind them.
fn ends_in_zeros(file: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = file.fill_buf()?;
        let (zeros, length) = (bytes.iter().take_while(|&&byte| byte == 0).count(), bytes.len());
        file.consume(zeros);
        if zeros < length || length == 0 {
            return Ok(length == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_behind_members_are_no_damage_and_other_bytes_are() {
        let member = |bytes: &[u8]| {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).unwrap();
            packed.finish().unwrap()
        };
        let read = |file: &[u8]| {
            let mut all = Vec::new();
            GzipReader::new(io::BufReader::with_capacity(7, file)).read_to_end(&mut all).map(|_| all)
        };
        let (one, two) = (member(b"first"), member(b"second"));
        assert_eq!(read(&one).unwrap(), b"first");
        assert_eq!(read(&[&one[..], &[0; 512]].concat()).unwrap(), b"first");
        assert_eq!(read(&[&one[..], &[0; 3], &two, &[0; 20]].concat()).unwrap(), b"firstsecond");
        assert!(read(&[&one[..], b"x"].concat()).is_err());
        assert!(read(&[&one[..], &[0; 9], b"x"].concat()).is_err());
        assert!(read(&one[..one.len() - 1]).is_err());
    }

    #[test]
    fn files_are_one_member_with_every_byte() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * at / 1000 % 251) as u8).collect();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.gz");
            for piece in [1 << 10, length.max(1)] {
                let mut writer = GzipWriter::new(File::create(&path).unwrap(), length as u64).unwrap();
                bytes.chunks(piece).for_each(|part| writer.write_all(part).unwrap());
                writer.finish().unwrap();
                // The first member alone, and nothing behind it.
                let file = std::fs::read(&path).unwrap();
                let (mut read, mut rest) = (Vec::new(), Vec::new());
                let mut decoder = GzDecoder::new(&file[..]);
                decoder.read_to_end(&mut read).unwrap();
                decoder.into_inner().read_to_end(&mut rest).unwrap();
                assert!(read == bytes && rest.is_empty(), "{length} bytes, {} left", rest.len());
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_whenever_it_is_found() {
        let noise: Vec<u8> =
            (0..40 * BLOCK as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        let full =
            || GzipWriter::new(File::options().write(true).open("/dev/full").unwrap(), 1 << 30).unwrap();
        let mut writer = full();
        let told = writer.write_all(&noise).and_then(|()| writer.finish().map(drop));
        assert_eq!(told.unwrap_err().kind(), io::ErrorKind::StorageFull);
        // Given up unfinished.
        let mut writer = full();
        writer.write_all(&noise[..100]).unwrap();
        drop(writer);
    }
}
