//! The variables of a MATLAB 5 file: arrays, and what structs and cells hold of them.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use crate::element::{self, ByteOrder, Element};
use crate::hdf5_file::fill_at;
use crate::{Error, Result, opening};

use super::stream::{COMPRESSED, INT8, INT32, MATRIX, Stream, UINT8, UINT32, UTF8};

/// Bytes of the header of a file.
pub(super) const HEADER: u64 = 128;
/// How deep structs and cells may lie in each other.
const DEEPEST: usize = 8;
/// The most variables, fields and cells of a file that are looked at.
const MOST: usize = 100_000;
/// The most axes of an array, and the longest names of one and of all fields of a struct.
const AXES: usize = 64;
const LONGEST_NAME: usize = 4096;
const LONGEST_NAMES: usize = 1 << 20;
/// The largest factor by which zlib shrinks numbers.
const LARGEST_RATIO: u64 = 1100;
/// Bits of the flags of an array.
const COMPLEX: u32 = 0x800;
const LOGICAL: u32 = 0x200;

/// What a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Numbers, in memory as such.
    Numbers(Element),
    /// Something else, in a word.
    Other(&'static str),
    Cell,
    Struct,
    Object,
}

impl Class {
    fn of(number: u32, flags: u32) -> Self {
        match number {
            1 => Self::Cell,
            2 => Self::Struct,
            3 => Self::Object,
            4 => Self::Other("text"),
            5 => Self::Other("sparse"),
            6 => Self::Numbers(Element::F64),
            7 => Self::Numbers(Element::F32),
            8 => Self::Numbers(Element::I8),
            9 if flags & LOGICAL != 0 => Self::Numbers(Element::Bool),
            9 => Self::Numbers(Element::U8),
            10 => Self::Numbers(Element::I16),
            11 => Self::Numbers(Element::U16),
            12 => Self::Numbers(Element::I32),
            13 => Self::Numbers(Element::U32),
            14 => Self::Numbers(Element::I64),
            15 => Self::Numbers(Element::U64),
            16 => Self::Other("function"),
            17 => Self::Other("object"),
            _ => Self::Other("something unknown"),
        }
    }
}

/// A variable, without its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    /// As MATLAB names it: `a`, `s.field`, `s(2).field`, `c{3}`.
    pub(super) name: String,
    pub(super) class: Class,
    pub(super) complex: bool,
    /// As MATLAB shows it; the first axis varies fastest.
    pub(super) shape: Vec<usize>,
}

/// What a visitor gets: a variable, and the stream that stands before its numbers and ends at the last
/// number.
type Visit<'v> = dyn FnMut(&Variable, &mut Stream<'_>, u64) -> Result<ControlFlow<()>> + 'v;

/// The file, its header checked.
pub(super) struct Mat5<'a> {
    path: &'a Path,
    file: File,
    order: ByteOrder,
    /// Bytes of the file.
    length: u64,
    /// What the header says of the program that wrote it.
    pub(super) writer: String,
}

impl<'a> Mat5<'a> {
    /// Errors: another file, or one of another version.
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let file = opening::open(path)?;
        let read = |e| Error::read(path, e);
        let length = file.metadata().map_err(read)?.len();
        let mut header = [0; HEADER as usize];
        let got = fill_at(&file, 0, &mut header).map_err(read)?;
        if super::is_version_4(&header[..got]) {
            return Err(Error::unsupported(path, "a MATLAB file of version 4")
                .with_hint("load it in MATLAB or Octave, and save it with -v7"));
        }
        if got < header.len() {
            let (expected, found) = (format!("{HEADER} bytes"), format!("{got} bytes"));
            return Err(Error::truncated(path, "the header", expected, found));
        }
        let order = match &header[126..] {
            b"IM" => ByteOrder::Little,
            b"MI" => ByteOrder::Big,
            _ => return Err(Error::not_this_format(path, "a MATLAB file", "no byte order (IM or MI)")),
        };
        let version = match order {
            ByteOrder::Little => u16::from_le_bytes([header[124], header[125]]),
            ByteOrder::Big => u16::from_be_bytes([header[124], header[125]]),
        };
        if version != 0x100 {
            let found = format!("0x{version:04x}");
            return Err(Error::field(path, "version of the MATLAB file", "0x0100 (version 5 to 7)", found));
        }
        let writer = String::from_utf8_lossy(&header[..116]).trim_matches(['\0', ' ']).to_owned();
        Ok(Self { path, file, order, length, writer })
    }

    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    pub(super) fn is_big_endian(&self) -> bool {
        self.order == ByteOrder::Big
    }

    fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| Error::read(self.path, e))
    }

    /// Shows every variable, fields and cells included, until the visitor has what it wants.
    ///
    /// Errors: a damaged file.
    pub(super) fn each(&self, visit: &mut Visit<'_>) -> Result<()> {
        let mut top = Stream::of_file(self.path, self.file()?, self.order, HEADER);
        let mut walk = Walk { visit, seen: 0 };
        while top.place < self.length {
            let tag = top.tag(self.length)?;
            let (start, size) = (top.place, tag.size);
            let found = match tag.kind {
                MATRIX => {
                    let mut stream = Stream::of_file(self.path, self.file()?, self.order, start);
                    walk.matrix(&mut stream, start + size, None, 0)?
                }
                COMPRESSED => {
                    let mut stream = Stream::unpacked(self.path, self.file()?, self.order, start, size)?;
                    let inner = stream.tag(u64::MAX)?;
                    if inner.kind != MATRIX {
                        let found = format!("one of kind {}", inner.kind);
                        return Err(stream.refuse("content", "an array", found));
                    }
                    let most = size.saturating_mul(LARGEST_RATIO);
                    if inner.size > most {
                        let expected = format!("at most {most} bytes, unpacked from {size}");
                        return Err(stream.refuse("size", &expected, inner.size));
                    }
                    let end = stream.place.saturating_add(inner.size);
                    stream.end = end;
                    walk.matrix(&mut stream, end, None, 0)?
                }
                other => {
                    return Err(top.refuse(
                        "element",
                        "an array, compressed or not",
                        format!("kind {other}"),
                    ));
                }
            };
            if found.is_break() {
                return Ok(());
            }
            top.place = start + size;
        }
        Ok(())
    }
}

struct Walk<'w, 'v> {
    visit: &'w mut Visit<'v>,
    seen: usize,
}

impl Walk<'_, '_> {
    /// An array whose data end at `end`; `named` where a struct or a cell names it.
    fn matrix(
        &mut self,
        stream: &mut Stream<'_>,
        end: u64,
        named: Option<String>,
        depth: usize,
    ) -> Result<ControlFlow<()>> {
        if let Some(name) = &named {
            stream.name.clone_from(name);
        }
        self.seen += 1;
        if self.seen > MOST {
            return Err(stream.refuse("variables", &format!("at most {MOST}"), "more"));
        }
        // A field that was never set.
        if stream.place == end {
            return Ok(ControlFlow::Continue(()));
        }
        let flags = stream.short_element(end, "flags", &[UINT32], 8)?;
        let &[first] = flags.as_chunks::<4>().0.get(..1).unwrap_or_default() else {
            return Err(stream.refuse("flags", "8 bytes", flags.len()));
        };
        let flags = stream.number(first);
        let class = Class::of(flags & 0xff, flags);
        if class == Class::Other("object") {
            // Its parts are in another order.
            return Ok(ControlFlow::Continue(()));
        }
        let shape = self.shape(stream, end)?;
        let own = stream.short_element(end, "name", &[INT8, UINT8, UTF8], LONGEST_NAME)?;
        let name = named.unwrap_or_else(|| String::from_utf8_lossy(&own).trim_end_matches('\0').to_owned());
        stream.name = if name.is_empty() { "an array without a name".into() } else { name.clone() };
        let variable = Variable { name, class, complex: flags & COMPLEX != 0, shape };
        let left = end.saturating_sub(stream.place);
        // Each number takes a byte at least, whatever stores it.
        if matches!(class, Class::Numbers(_)) && count(stream, &variable)? as u64 > left {
            let expected = format!("at most {left} numbers, as many as bytes are left");
            return Err(stream.refuse("dimensions", &expected, rayspin_core::format_shape(&variable.shape)));
        }
        match class {
            Class::Cell => self.cells(stream, end, &variable, depth),
            Class::Struct => self.fields(stream, end, &variable, depth),
            Class::Object => {
                stream.short_element(end, "class", &[INT8, UINT8, UTF8], LONGEST_NAME)?;
                self.fields(stream, end, &variable, depth)
            }
            // MATLAB keeps an array without a name for itself.
            _ if variable.name.is_empty() => Ok(ControlFlow::Continue(())),
            _ => (self.visit)(&variable, stream, end),
        }
    }

    fn shape(&self, stream: &mut Stream<'_>, end: u64) -> Result<Vec<usize>> {
        let bytes = stream.short_element(end, "dimensions", &[INT32, UINT32], 4 * AXES)?;
        let (words, rest) = bytes.as_chunks::<4>();
        let sizes = words.iter().map(|word| i32::try_from(stream.number(*word)).ok());
        let sizes: Option<Vec<usize>> = sizes.map(|size| usize::try_from(size?).ok()).collect();
        match sizes {
            Some(sizes) if sizes.len() >= 2 && rest.is_empty() => Ok(sizes),
            _ => Err(stream.refuse("dimensions", "two or more sizes, none negative", format!("{bytes:?}"))),
        }
    }

    fn cells(
        &mut self,
        stream: &mut Stream<'_>,
        end: u64,
        variable: &Variable,
        depth: usize,
    ) -> Result<ControlFlow<()>> {
        let count = count(stream, variable)?;
        for number in 1..=count {
            let name = format!("{}{{{number}}}", variable.name);
            if self.member(stream, end, name, depth)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn fields(
        &mut self,
        stream: &mut Stream<'_>,
        end: u64,
        variable: &Variable,
        depth: usize,
    ) -> Result<ControlFlow<()>> {
        let longest = stream.short_element(end, "length of field names", &[INT32, UINT32], 4)?;
        let longest = longest.as_chunks::<4>().0.first().map_or(0, |word| stream.number(*word) as usize);
        let names = stream.short_element(end, "field names", &[INT8, UINT8, UTF8], LONGEST_NAMES)?;
        if names.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if longest == 0 || !names.len().is_multiple_of(longest) {
            let expected = format!("a multiple of {longest} bytes, the length of each");
            return Err(stream.refuse("field names", &expected, names.len()));
        }
        let text = |name: &[u8]| {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            String::from_utf8_lossy(&name[..end]).into_owned()
        };
        let names: Vec<String> = names.chunks_exact(longest).map(text).collect();
        let count = count(stream, variable)?;
        for number in 1..=count {
            for field in &names {
                let name = match count {
                    1 => format!("{}.{field}", variable.name),
                    _ => format!("{}({number}).{field}", variable.name),
                };
                if self.member(stream, end, name, depth)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// An array in a struct or a cell.
    fn member(
        &mut self,
        stream: &mut Stream<'_>,
        end: u64,
        name: String,
        depth: usize,
    ) -> Result<ControlFlow<()>> {
        if depth == DEEPEST || name.len() > LONGEST_NAME {
            let expected = format!("at most {DEEPEST}, one in the other");
            return Err(stream.refuse("structs and cells", &expected, "more"));
        }
        stream.name.clone_from(&name);
        let tag = stream.tag(end)?;
        if tag.kind != MATRIX {
            return Err(stream.refuse("element", "an array", format!("kind {}", tag.kind)));
        }
        let own_end = stream.place.saturating_add(tag.size);
        let found = self.matrix(stream, own_end, Some(name), depth + 1)?;
        if found.is_continue() {
            stream.skip_to(own_end)?;
        }
        Ok(found)
    }
}

/// How many arrays a struct or a cell holds for each field.
fn count(stream: &Stream<'_>, variable: &Variable) -> Result<usize> {
    element::count(&variable.shape, 1).ok_or_else(|| {
        let found = rayspin_core::format_shape(&variable.shape);
        stream.refuse("dimensions", "a product that fits the address space", found)
    })
}
