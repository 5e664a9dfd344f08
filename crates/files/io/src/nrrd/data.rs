//! The numbers: behind the header, in another file, or in several; raw, compressed by gzip, as text, or as
//! hexadecimal digits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rayspin_core::C32;

use super::header::{DATA_FILE, Header, LIST};
use crate::data_files::{self, MOST_FILES, Pattern};
use crate::element::{self, ByteOrder, Element, Numbers, Origin, Stop, Value};
use crate::gzip::GzipReader;
use crate::{Error, Result, opening};

/// The names of types; of several names the first is written.
const TYPES: [(Element, &[&str]); 10] = [
    (Element::I8, &["int8", "signed char", "int8_t"]),
    (Element::U8, &["uchar", "unsigned char", "uint8", "uint8_t"]),
    (Element::I16, &["short", "short int", "signed short", "signed short int", "int16", "int16_t"]),
    (Element::U16, &["ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"]),
    (Element::I32, &["int", "signed int", "int32", "int32_t"]),
    (Element::U32, &["uint", "unsigned int", "uint32", "uint32_t"]),
    (
        Element::I64,
        &[
            "longlong",
            "long long",
            "long long int",
            "signed long long",
            "signed long long int",
            "int64",
            "int64_t",
        ],
    ),
    (Element::U64, &["ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"]),
    (Element::F32, &["float"]),
    (Element::F64, &["double"]),
];

/// The name of a type that is written.
pub(super) fn type_name(element: Element) -> Option<&'static str> {
    TYPES.iter().find(|(other, _)| *other == element).map(|(_, names)| names[0])
}

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Raw,
    Gzip,
    Text,
    Hex,
}

/// How numbers are stored.
pub(super) struct Stored {
    /// The type of one real number.
    pub(super) element: Element,
    encoding: Encoding,
    order: ByteOrder,
    line_skip: u64,
    /// None where the numbers are the last bytes of their file.
    byte_skip: Option<u64>,
}

impl Stored {
    pub(super) fn of(path: &Path, header: &Header) -> Result<Self> {
        let kind = header.expect(path, "type")?;
        let words = kind.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        let Some((element, _)) = TYPES.iter().find(|(_, names)| names.contains(&words.as_str())) else {
            return Err(Error::field(path, "type", "one number of 8 to 64 bits", kind));
        };
        let name = header.expect(path, "encoding")?;
        let encoding = match name.to_ascii_lowercase().as_str() {
            "raw" => Encoding::Raw,
            "gz" | "gzip" => Encoding::Gzip,
            "txt" | "text" | "ascii" => Encoding::Text,
            "hex" => Encoding::Hex,
            other @ ("bz2" | "bzip2" | "zrl") => {
                return Err(Error::unsupported(path, format!("numbers in the encoding {other}"))
                    .with_hint("write them raw or with gzip"));
            }
            _ => return Err(Error::field(path, "encoding", "raw, gzip, ascii or hex", name)),
        };
        let order = match header.get("endian").map(str::to_ascii_lowercase).as_deref() {
            Some("little") => ByteOrder::Little,
            Some("big") => ByteOrder::Big,
            None if encoding == Encoding::Text || element.size() == 1 => ByteOrder::Little,
            other => return Err(Error::field(path, "endian", "little or big", other.unwrap_or("none"))),
        };
        let skip = |field: &str| match header.get(field) {
            None => Ok(0),
            Some(text) => text.parse().map_err(|_| Error::field(path, field, "a number of at least 0", text)),
        };
        let byte_skip = match header.get("byte skip") {
            Some("-1") if encoding == Encoding::Raw => None,
            Some("-1") => return Err(Error::field(path, "byte skip", "-1 with raw numbers alone", name)),
            _ => Some(skip("byte skip")?),
        };
        Ok(Self { element: *element, encoding, order, line_skip: skip("line skip")?, byte_skip })
    }
}

/// Some of the numbers of an image.
pub(super) struct Part {
    /// Their file; none where they follow the header.
    pub(super) file: Option<PathBuf>,
    /// How many real numbers it has.
    count: usize,
}

/// Where the numbers are, one file after another.
///
/// Errors: a list of other than the needed files; a pattern that names none.
pub(super) fn files(path: &Path, header: &Header) -> Result<Vec<Part>> {
    let sizes = header.sizes(path)?;
    let total: usize = sizes.iter().product();
    let Some(text) = header.get(DATA_FILE) else { return Ok(vec![Part { file: None, count: total }]) };
    let words: Vec<&str> = text.split_whitespace().collect();
    let beside = |name: &str| Some(path.with_file_name(name));
    // Each file holds the first axes, or a part of the last one where it holds all.
    let each = |names: usize, axes: Option<&&str>| {
        let axes = match axes {
            None => sizes.len().checked_sub(1).filter(|&axes| axes > 0),
            Some(axes) => axes.parse().ok().filter(|axes| (1..=sizes.len()).contains(axes)),
        };
        let slowest = sizes.last().copied().unwrap_or(1);
        match axes? {
            axes if axes == sizes.len() => (names > 0 && slowest % names == 0).then(|| total / names),
            axes => {
                let each: usize = sizes[..axes].iter().product();
                (total / each == names).then_some(each)
            }
        }
    };
    let parts = |names: Vec<String>, axes: Option<&&str>| {
        let wrong = || {
            let expected = format!("files that hold the numbers of sizes {sizes:?}");
            Error::field(path, DATA_FILE, expected, format!("{} files ({text})", names.len()))
        };
        let each = each(names.len(), axes).ok_or_else(wrong)?;
        Ok(names.iter().map(|name| Part { file: beside(name), count: each }).collect())
    };
    if words.first() == Some(&LIST) {
        if words.len() > 2 || header.list.iter().any(String::is_empty) {
            return Err(Error::field(
                path,
                DATA_FILE,
                "LIST, perhaps a number of axes, then a name a line",
                text,
            ));
        }
        return parts(header.list.clone(), words.get(1));
    }
    if let Some((pattern, numbers)) = words.split_first().filter(|(name, _)| name.contains('%'))
        && (3..=4).contains(&numbers.len())
    {
        let names = numbered(pattern, numbers).ok_or_else(|| {
            let expected = "a name with one %d or %03d, then the first number, the last one and the step";
            Error::field(path, DATA_FILE, expected, text)
        })?;
        return parts(names, numbers.get(3));
    }
    Ok(vec![Part { file: beside(text), count: total }])
}

/// The names of a pattern `name%03d.raw first last step`. The step may be negative.
fn numbered(pattern: &str, numbers: &[&str]) -> Option<Vec<String>> {
    let pattern = Pattern::of(pattern)?;
    let [first, last] = [numbers[0], numbers[1]].map(|word| word.parse::<usize>().ok());
    let (first, last, step) = (first?, last?, numbers[2].parse::<i64>().ok()?);
    let size = usize::try_from(step.unsigned_abs()).ok().filter(|&size| size > 0)?;
    let span = if step > 0 { last.checked_sub(first)? } else { first.checked_sub(last)? };
    let count = (span / size).checked_add(1)?;
    let number = |index: usize| if step > 0 { first + index * size } else { first - index * size };
    (count <= MOST_FILES).then(|| (0..count).map(|index| pattern.name(number(index))).collect())
}

/// All real numbers.
pub(super) fn real(path: &Path, header: &Header, stored: &Stored) -> Result<Numbers<f32>> {
    let parts = files(path, header)?.into_iter();
    data_files::joined(path, parts.map(|part| part.real(path, header, stored)))
}

/// All complex numbers, whose parts follow each other.
pub(super) fn complex(path: &Path, header: &Header, stored: &Stored) -> Result<Numbers<C32>> {
    let element = match stored.element {
        Element::F32 => Element::C32,
        Element::F64 => Element::C64,
        _ => stored.element,
    };
    let parts = files(path, header)?.into_iter();
    if stored.encoding != Encoding::Text && element.is_complex() {
        let read = |part: Part| match part.count % 2 {
            0 => part.binary(path, header, stored, element, part.count / 2),
            _ => Err(Error::field(
                path,
                DATA_FILE,
                "files that hold both parts of each complex number",
                "others",
            )),
        };
        return data_files::joined(path, parts.map(read));
    }
    let read = data_files::joined(path, parts.map(|part| part.real(path, header, stored)))?;
    let pairs = read.values.as_chunks::<2>().0;
    let values = pairs.iter().map(|[re, im]| C32::new(*re, *im)).collect();
    Ok(Numbers { values, rounded: read.rounded })
}

impl Part {
    fn real(&self, path: &Path, header: &Header, stored: &Stored) -> Result<Numbers<f32>> {
        if stored.encoding != Encoding::Text {
            return self.binary(path, header, stored, stored.element, self.count);
        }
        let (opened, file) = self.open(path)?;
        let mut text = self.start(&opened, &file, header, stored)?;
        skip(&mut text, stored.byte_skip.unwrap_or(0), &file, |e| Error::read(&file, e))?;
        let expected = "a number of the stated type as text (encoding ascii)";
        data_files::text(&file, text, self.count, stored.element, expected)
    }

    fn binary<T: Value>(
        &self,
        path: &Path,
        header: &Header,
        stored: &Stored,
        element: Element,
        count: usize,
    ) -> Result<Numbers<T>> {
        let (opened, file) = self.open(path)?;
        let file = file.as_path();
        let bytes = (count * element.size()) as u64;
        let mut stream = self.start(&opened, file, header, stored)?;
        let damaged = |e: io::Error| match stored.encoding {
            Encoding::Gzip => Error::field(file, "compressed numbers", "a sound gzip stream", e),
            Encoding::Hex => Error::field(file, "numbers", "hexadecimal digits", e),
            Encoding::Raw | Encoding::Text => Error::read(file, e),
        };
        let read = |origin: Origin<'_>| {
            element::read(origin, count, element, stored.order, None).map_err(|stop| match stop {
                Stop::Io(e) => damaged(e),
                Stop::Memory(e) => Error::core(file, e),
                Stop::Short(got) => {
                    let expected = format!("{bytes} bytes for sizes");
                    Error::truncated(file, "the image", expected, format!("{got} bytes"))
                }
                Stop::Range(index) => {
                    let found = format!("a larger one at {index}");
                    Error::field(file, "voxel", "values within single precision", found)
                }
            })
        };
        match stored.encoding {
            Encoding::Gzip => {
                let mut packed = GzipReader::new(stream);
                skip(&mut packed, stored.byte_skip.unwrap_or(0), file, damaged)?;
                let numbers = read(Origin::Stream(&mut packed))?;
                // The checksum follows the values; reading on to the end verifies it.
                io::copy(&mut packed.take(1 << 20), &mut io::sink()).map_err(damaged)?;
                Ok(numbers)
            }
            Encoding::Hex => {
                skip(&mut stream, stored.byte_skip.unwrap_or(0), file, damaged)?;
                read(Origin::Stream(&mut HexReader { text: stream }))
            }
            Encoding::Raw | Encoding::Text => {
                let length = opened.metadata().map_err(|e| Error::read(file, e))?.len();
                let place = stream.stream_position().map_err(|e| Error::read(file, e))?;
                let start = match stored.byte_skip {
                    Some(skip) => place.checked_add(skip).filter(|start| *start <= length),
                    None => length.checked_sub(bytes).filter(|start| *start >= place),
                };
                let Some(start) = start else {
                    let skip = stored.byte_skip.map_or("-1".to_owned(), |skip| skip.to_string());
                    let expected = format!("{bytes} bytes behind {skip}");
                    let found = format!("{length} bytes of {}", file.display());
                    return Err(Error::field(path, "byte skip", expected, found));
                };
                read(Origin::File(&opened, start))
            }
        }
    }

    fn open(&self, path: &Path) -> Result<(File, PathBuf)> {
        let file = self.file.as_deref().unwrap_or(path);
        match opening::open(file) {
            Ok(opened) => Ok((opened, file.to_owned())),
            // A name that no file can have is an error of the header.
            Err(Error::Open { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
                Err(Error::field(path, DATA_FILE, "the name of a file", file.to_string_lossy()))
            }
            Err(error) => Err(error),
        }
    }

    /// The file behind the header and the lines that are skipped.
    fn start<'a>(
        &self,
        mut opened: &'a File,
        file: &Path,
        header: &Header,
        stored: &Stored,
    ) -> Result<BufReader<&'a File>> {
        let start = if self.file.is_some() { 0 } else { header.end };
        opened.seek(SeekFrom::Start(start)).map_err(|e| Error::read(file, e))?;
        let mut stream = BufReader::with_capacity(1 << 18, opened);
        for line in 0..stored.line_skip {
            if stream.skip_until(b'\n').map_err(|e| Error::read(file, e))? == 0 {
                let expected = format!("{} lines (line skip)", stored.line_skip);
                return Err(Error::truncated(file, "the file", expected, line));
            }
        }
        Ok(stream)
    }
}

/// Passes over bytes. Errors: a stream that has fewer, or that fails.
fn skip(stream: &mut impl Read, bytes: u64, file: &Path, failed: impl Fn(io::Error) -> Error) -> Result<()> {
    let got = io::copy(&mut stream.take(bytes), &mut io::sink()).map_err(failed)?;
    if got < bytes {
        let expected = format!("{bytes} bytes (byte skip)");
        return Err(Error::truncated(file, "the image", expected, format!("{got} bytes")));
    }
    Ok(())
}

/// The bytes that pairs of hexadecimal digits stand for, with white space anywhere.
struct HexReader<R> {
    text: R,
}

impl<R: BufRead> HexReader<R> {
    /// Up to the end of the text.
    fn digit(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = self.text.fill_buf()?.first() else { return Ok(None) };
            self.text.consume(1);
            match char::from(byte).to_digit(16) {
                Some(digit) => return Ok(Some(digit as u8)),
                None if byte.is_ascii_whitespace() => {}
                None => {
                    let text = format!("the byte {byte}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
    }
}

impl<R: BufRead> Read for HexReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        for (index, byte) in to.iter_mut().enumerate() {
            let Some(high) = self.digit()? else { return Ok(index) };
            let Some(low) = self.digit()? else { return Ok(index) };
            *byte = 16 * high + low;
        }
        Ok(to.len())
    }
}
