//! The numbers of a MetaImage: in the header's file, in another one, or in several.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::{DATA_FILE, Header};
use crate::data_files::{self, MOST_FILES, Pattern};
use crate::element::{self, ByteOrder, Element, Numbers, Origin, Stop};
use crate::gzip::GzipReader;
use crate::{Error, Result, opening};

/// The value of `ElementDataFile` before a list of files.
pub(super) const LIST: &str = "LIST";

/// Some of the numbers of an image.
pub(super) struct Part {
    /// Their file; none where they follow the header.
    pub(super) file: Option<PathBuf>,
    count: usize,
}

/// Where the numbers of `shape` are, one file after another.
///
/// Errors: a list of other than the needed files; a pattern that names none.
pub(super) fn files(path: &Path, header: &Header, shape: &[usize]) -> Result<Vec<Part>> {
    let name = header.expect(path, DATA_FILE)?;
    let beside = |name: &str| Some(path.with_file_name(name));
    // The last axes count the files, the others lie in each.
    let parts = |axes: usize| {
        let (over, within) = shape.split_at(shape.len() - axes);
        (over.iter().product::<usize>(), within.iter().product::<usize>())
    };
    if name.eq_ignore_ascii_case("LOCAL") {
        return Ok(vec![Part { file: None, count: parts(shape.len()).1 }]);
    }
    if let Some(rest) = name.strip_prefix(LIST) {
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let axes =
            digits.parse().ok().filter(|axes| rest.starts_with(' ') && (1..=shape.len()).contains(axes));
        let (count, each) = parts(axes.unwrap_or(shape.len() - 1));
        if header.list.len() != count || header.list.iter().any(String::is_empty) {
            let names = header.list.iter().filter(|name| !name.is_empty()).count();
            let expected = format!("{count} names of files, a line each");
            return Err(Error::field(path, format!("{DATA_FILE} = {name}"), expected, names));
        }
        return Ok(header.list.iter().map(|name| Part { file: beside(name), count: each }).collect());
    }
    if name.contains('%') {
        let (count, each) = parts(shape.len() - 1);
        let names = numbered(name, count).ok_or_else(|| {
            let expected = "a name with one %d or %03d, then the first number, the last one and the step";
            Error::field(path, DATA_FILE, expected, name)
        })?;
        return Ok(names.iter().map(|name| Part { file: beside(name), count: each }).collect());
    }
    Ok(vec![Part { file: beside(name), count: parts(shape.len()).1 }])
}

/// `count` names of a pattern `name%03d.raw first last step`, as ITK understands it; the numbers may be left
/// out from the end.
fn numbered(pattern: &str, count: usize) -> Option<Vec<String>> {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    // Names may have spaces, if all three numbers are there.
    let numbers = if words.len() > 4 { 3 } else { words.len().checked_sub(1)? };
    let (name, numbers) = words.split_at(words.len() - numbers);
    let numbers: Vec<usize> = numbers.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (first, step) = match numbers[..] {
        [] => (1, 1),
        [first] => (first, 1),
        [first, last] if last.checked_sub(first)? + 1 == count => (first, 1),
        [first, last, step] if step > 0 && last.checked_sub(first)? / step + 1 >= count => (first, step),
        _ => return None,
    };
    if count > MOST_FILES {
        return None;
    }
    let name = name.join(" ");
    let pattern = Pattern::of(&name)?;
    let number = |index: usize| first.checked_add(index.checked_mul(step)?);
    (0..count).map(|index| number(index).map(|number| pattern.name(number))).collect()
}

/// How a header says that its numbers are stored.
#[derive(Clone, Copy)]
pub(super) struct ElementType {
    pub(super) element: Element,
    pub(super) order: ByteOrder,
}

/// All numbers.
pub(super) fn read(
    path: &Path,
    header: &Header,
    shape: &[usize],
    stored: ElementType,
) -> Result<Numbers<f32>> {
    let parts = files(path, header, shape)?;
    data_files::joined(path, parts.iter().map(|part| part.read(path, header, stored)))
}

impl Part {
    fn read(&self, path: &Path, header: &Header, stored: ElementType) -> Result<Numbers<f32>> {
        let ElementType { element, order } = stored;
        let (opened, file, packed) = self.open(path)?;
        let file = file.as_path();
        let length = opened.metadata().map_err(|e| Error::read(file, e))?.len();
        let bytes = (self.count * element.size()) as u64;
        let text = !header.flag(path, &["BinaryData"], true)? && !packed;
        let compressed = packed || !text && header.flag(path, &["CompressedData"], false)?;
        let skipped = match header.get(&["HeaderSize"]) {
            None => 0,
            Some("-1") if compressed => 0,
            Some("-1") if text => {
                return Err(Error::field(path, "HeaderSize", "a number of bytes for numbers as text", -1));
            }
            Some("-1") => length.saturating_sub(bytes),
            Some(size) => size
                .parse()
                .map_err(|_| Error::field(path, "HeaderSize", "a number of bytes, or -1", size))?,
        };
        let start = if self.file.is_some() { skipped } else { header.end.max(skipped) };
        if start > length {
            let expected = format!("at most {length} bytes, as the file has");
            return Err(Error::field(path, "HeaderSize", expected, start));
        }
        (&opened).seek(SeekFrom::Start(start)).map_err(|e| Error::read(file, e))?;
        if text {
            let expected = "a number of ElementType as text (BinaryData = False)";
            return data_files::text(file, BufReader::new(opened), self.count, element, expected);
        }
        if let (true, None, Some(stated)) = (compressed, &self.file, header.get(&["CompressedDataSize"]))
            && let Ok(stated) = stated.parse::<u64>()
            && stated > length - start
        {
            let expected = format!("{stated} bytes (CompressedDataSize)");
            return Err(Error::truncated(file, "the image", expected, format!("{} bytes", length - start)));
        }
        let (mut zlib, mut gzip);
        let mut unpacked: Option<&mut dyn Read> = match compressed {
            true => {
                let mut stream = BufReader::with_capacity(1 << 18, &opened);
                match stream.fill_buf().is_ok_and(|start| start.starts_with(crate::format::GZIP)) {
                    true => {
                        gzip = GzipReader::new(stream);
                        Some(&mut gzip)
                    }
                    false => {
                        zlib = ZlibDecoder::new(stream);
                        Some(&mut zlib)
                    }
                }
            }
            false => None,
        };
        let damaged = |e| Error::field(file, "compressed numbers", "a sound zlib or gzip stream", e);
        let origin = match &mut unpacked {
            Some(stream) => Origin::Stream(&mut **stream),
            None => Origin::File(&opened, start),
        };
        let read = element::read(origin, self.count, element, order, None);
        let read = read.map_err(|stop| match stop {
            Stop::Io(e) if compressed => damaged(e),
            Stop::Io(e) => Error::read(file, e),
            Stop::Memory(e) => Error::core(file, e),
            Stop::Short(got) => {
                let expected = format!("{bytes} bytes for DimSize");
                Error::truncated(file, "the image", expected, format!("{got} bytes"))
            }
            Stop::Range(index) => Error::field(
                file,
                "voxel",
                "values within single precision",
                format!("a larger one at {index}"),
            ),
        })?;
        // The checksum follows the values; reading on to the end verifies it.
        if let Some(stream) = unpacked {
            io::copy(&mut stream.take(1 << 20), &mut io::sink()).map_err(damaged)?;
        }
        Ok(read)
    }

    /// The file of the numbers, its path, and whether it is `name.gz` for `name`, which ITK looks for, too.
    fn open(&self, path: &Path) -> Result<(File, PathBuf, bool)> {
        let file = self.file.as_deref().unwrap_or(path);
        let packed = with_gz(file);
        match opening::open(file) {
            Ok(opened) => Ok((opened, file.to_owned(), false)),
            Err(_) if packed.is_file() => opening::open(&packed).map(|opened| (opened, packed, true)),
            // A name that no file can have is an error of the header.
            Err(Error::Open { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
                let name = self.file.as_deref().unwrap_or(path).to_string_lossy().into_owned();
                Err(Error::field(path, DATA_FILE, "the name of a file", name))
            }
            Err(error) => Err(error),
        }
    }
}

/// `name.gz` for `name`, in which the numbers are where `name` is not there.
fn with_gz(file: &Path) -> PathBuf {
    let mut packed = file.as_os_str().to_owned();
    packed.push(".gz");
    packed.into()
}

/// The file in which the numbers are that the header seeks in `file`.
pub(super) fn holder(file: PathBuf) -> PathBuf {
    let packed = with_gz(&file);
    if !file.exists() && packed.is_file() { packed } else { file }
}
