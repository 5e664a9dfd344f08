//! Numbers as files store them, read in pieces so that memory follows what the file holds, not what its
//! header says.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use rayon::prelude::*;
use rayspin_core::{C32, C64};
use rayspin_device::cpu::{try_reserve, zeroed};

use crate::{NumberType, Slices, Values};

/// A stored number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    C32,
    C64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The processor's.
    const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

impl Element {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    pub(crate) fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    /// Whether a number of the type may have this value, and single precision as well.
    pub(crate) fn holds(self, value: f64) -> bool {
        let whole = |low: f64, high: f64| value.fract() == 0.0 && (low..=high).contains(&value);
        match self {
            Self::Bool => whole(0.0, 1.0),
            Self::I8 => whole(i8::MIN.into(), i8::MAX.into()),
            Self::U8 => whole(0.0, u8::MAX.into()),
            Self::I16 => whole(i16::MIN.into(), i16::MAX.into()),
            Self::U16 => whole(0.0, u16::MAX.into()),
            Self::I32 => whole(i32::MIN.into(), i32::MAX.into()),
            Self::U32 => whole(0.0, u32::MAX.into()),
            Self::I64 => whole(i64::MIN as f64, i64::MAX as f64),
            Self::U64 => whole(0.0, u64::MAX as f64),
            Self::F16 | Self::F32 | Self::F64 | Self::C32 | Self::C64 => {
                !value.is_finite() || value.abs() <= f64::from(f32::MAX)
            }
        }
    }

    /// The name as NumPy has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C32 => "complex64",
            Self::C64 => "complex128",
        }
    }

    /// The least and the largest number of an integer type.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Bool => (0, 1),
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::I64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
            Self::F16 | Self::F32 | Self::F64 | Self::C32 | Self::C64 => return None,
        })
    }

    /// Appends the values of little-endian `bytes`, and tells whether memory rounds one of them; the index of
    /// one that does not fit, if any.
    fn decode<T: Value>(
        self,
        bytes: &[u8],
        map: impl Fn(C64) -> C64,
        values: &mut Vec<T>,
    ) -> Result<bool, Stop> {
        fn each<const N: usize, T: Value>(
            bytes: &[u8],
            values: &mut Vec<T>,
            value: impl Fn([u8; N]) -> (C64, bool),
        ) -> Result<bool, Stop> {
            let mut rounded = false;
            for number in bytes.as_chunks::<N>().0 {
                let (value, exact) = value(*number);
                rounded |= !exact;
                values.push(T::from_c64(value).ok_or(Stop::Range(values.len()))?);
            }
            Ok(rounded && T::SINGLE)
        }
        let exact = |number: f64| f64::from(number as f32) == number || number.is_nan();
        // One loop a type, so that nothing is decided number by number.
        macro_rules! real {
            ($of:expr) => {
                each(bytes, values, |b| (map(C64::new($of(b), 0.0)), true))
            };
        }
        // The note on numbers with more digits than single precision.
        macro_rules! wide {
            ($of:expr) => {
                each(bytes, values, |b| {
                    let number = f64::from($of(b));
                    (map(C64::new(number, 0.0)), exact(number))
                })
            };
        }
        macro_rules! widest {
            ($of:expr) => {
                each(bytes, values, |b| {
                    let number = $of(b);
                    (map(C64::new(number as f64, 0.0)), (number as f32) as i128 == i128::from(number))
                })
            };
        }
        match self {
            Self::Bool => real!(|[b]: [u8; 1]| f64::from(u8::from(b != 0))),
            Self::I8 => real!(|b| f64::from(i8::from_le_bytes(b))),
            Self::U8 => real!(|b| f64::from(u8::from_le_bytes(b))),
            Self::I16 => real!(|b| f64::from(i16::from_le_bytes(b))),
            Self::U16 => real!(|b| f64::from(u16::from_le_bytes(b))),
            Self::I32 => wide!(i32::from_le_bytes),
            Self::U32 => wide!(u32::from_le_bytes),
            Self::I64 => widest!(i64::from_le_bytes),
            Self::U64 => widest!(u64::from_le_bytes),
            Self::F16 => real!(|b| half(u16::from_le_bytes(b))),
            Self::F32 => real!(|b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => wide!(f64::from_le_bytes),
            Self::C32 => each(bytes, values, |[a, b, c, d, e, f, g, h]: [u8; 8]| {
                let re = f32::from_le_bytes([a, b, c, d]);
                (map(C64::new(re.into(), f32::from_le_bytes([e, f, g, h]).into())), true)
            }),
            Self::C64 => each(bytes, values, |b: [u8; 16]| {
                let bits = u128::from_le_bytes(b);
                let (re, im) = (f64::from_bits(bits as u64), f64::from_bits((bits >> 64) as u64));
                (map(C64::new(re, im)), exact(re) && exact(im))
            }),
        }
    }
}

/// IEEE 754 half precision.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

/// The factor of stored numbers and what is added to the product. Both parts of a complex number take both.
pub(crate) type Scale = (f64, f64);

/// A number type in memory.
pub(crate) trait Value: Pod + Send {
    /// What it is in a file.
    const ELEMENT: Element;
    /// Whether it has the digits of single precision.
    const SINGLE: bool = true;

    /// The nearest value, absent when a finite number leaves the range.
    fn from_c64(value: C64) -> Option<Self>;
}

impl Value for C32 {
    const ELEMENT: Element = Element::C32;

    fn from_c64(value: C64) -> Option<Self> {
        let narrow = |v: f64| Some(v as f32).filter(|n| n.is_finite() || !v.is_finite());
        Some(C32::new(narrow(value.re)?, narrow(value.im)?))
    }
}

impl Value for f32 {
    const ELEMENT: Element = Element::F32;

    fn from_c64(value: C64) -> Option<Self> {
        C32::from_c64(value).map(|value| value.re)
    }
}

impl Value for f64 {
    const ELEMENT: Element = Element::F64;
    const SINGLE: bool = false;

    fn from_c64(value: C64) -> Option<Self> {
        Some(value.re)
    }
}

/// Numbers that were read.
pub(crate) struct Numbers<T> {
    pub(crate) values: Vec<T>,
    /// Whether the file has digits of a number that memory has not.
    pub(crate) rounded: bool,
}

/// What stopped [`read`].
#[derive(Debug)]
pub(crate) enum Stop {
    /// The stream failed.
    Io(io::Error),
    /// The stream ended after this many bytes.
    Short(u64),
    /// A finite number that the memory type cannot hold, at this index.
    Range(usize),
    /// No memory for the numbers.
    Memory(rayspin_core::Error),
}

const CHUNK: usize = 1 << 18;

/// Bytes from which on a file is read by all threads.
const LARGE: u64 = 1 << 24;

/// Where numbers come from.
pub(crate) enum Origin<'a> {
    Stream(&'a mut dyn Read),
    /// A file, from a place on.
    File(&'a File, u64),
}

/// How numbers are stored.
#[derive(Clone, Copy)]
struct Stored {
    element: Element,
    order: ByteOrder,
    scale: Option<Scale>,
}

impl Stored {
    /// Whether memory holds numbers as the file does.
    fn is_native<T: Value>(self) -> bool {
        self.element == T::ELEMENT && self.scale.is_none() && self.order == ByteOrder::NATIVE
    }

    /// Appends the numbers of some bytes, and tells whether one of them is rounded.
    fn append<T: Value>(self, bytes: &mut [u8], values: &mut Vec<T>) -> Result<bool, Stop> {
        let Self { element, order, scale } = self;
        let map = |v: C64| match scale {
            None => v,
            Some((slope, intercept)) if element.is_complex() => {
                C64::new(v.re * slope + intercept, v.im * slope + intercept)
            }
            Some((slope, intercept)) => C64::new(v.re * slope + intercept, 0.0),
        };
        if order == ByteOrder::Big {
            let swapped = if element.is_complex() { element.size() / 2 } else { element.size() };
            bytes.chunks_exact_mut(swapped).for_each(<[u8]>::reverse);
        }
        element.decode(bytes, map, values)
    }

    /// Reads a stream. Memory grows with the data that arrive, so that a header that promises more than the
    /// stream holds costs nothing.
    fn stream<T: Value>(self, stream: &mut dyn Read, count: usize) -> Result<Numbers<T>, Stop> {
        let (size, native) = (self.element.size(), self.is_native::<T>());
        let mut rounded = false;
        let mut values: Vec<T> = Vec::new();
        let mut buffer = if native { Vec::new() } else { vec![0u8; CHUNK.min(count.saturating_mul(size))] };
        while values.len() < count {
            let start = values.len();
            let wanted = (count - start).saturating_mul(size).min(CHUNK);
            if values.capacity() < start + wanted / size {
                // Reserves twice the size, but never more than `count`.
                let more = start.max(wanted / size).min(count - start);
                try_reserve("numbers of the file", &mut values, more).map_err(Stop::Memory)?;
            }
            let mut next = |bytes: &mut [u8]| match fill(stream, bytes) {
                Ok(got) if got < bytes.len() => Err(Stop::Short((start * size + got) as u64)),
                Ok(_) => Ok(()),
                Err(e) => Err(Stop::Io(e)),
            };
            if native {
                // Numbers that memory holds as the file does are read where they stay.
                values.resize(start + wanted / size, T::zeroed());
                next(bytemuck::cast_slice_mut(&mut values[start..]))?;
                continue;
            }
            let bytes = &mut buffer[..wanted];
            next(bytes)?;
            rounded |= self.append(bytes, &mut values)?;
        }
        Ok(Numbers { values, rounded })
    }

    /// Reads numbers that the file holds, by all threads: on a virtual machine one thread touched 0.1 GB of
    /// new memory a second.
    fn file<T: Value>(self, file: &File, place: u64, count: usize) -> Result<Numbers<T>, Stop> {
        let (size, native) = (self.element.size(), self.is_native::<T>());
        let rounded = AtomicBool::new(false);
        let mut values: Vec<T> = zeroed("numbers of the file", count).map_err(Stop::Memory)?;
        let part = CHUNK / size;
        values.par_chunks_mut(part).enumerate().try_for_each(|(index, values)| {
            let start = index * part;
            let read = |bytes: &mut [u8]| {
                file.read_exact_at(bytes, place + (start * size) as u64).map_err(|e| match e.kind() {
                    // The file became shorter meanwhile.
                    io::ErrorKind::UnexpectedEof => Stop::Short((start * size) as u64),
                    _ => Stop::Io(e),
                })
            };
            if native {
                return read(bytemuck::cast_slice_mut(values));
            }
            let mut bytes = vec![0u8; values.len() * size];
            read(&mut bytes)?;
            let mut decoded = Vec::with_capacity(values.len());
            let some = self.append(&mut bytes, &mut decoded).map_err(|stop| match stop {
                Stop::Range(index) => Stop::Range(start + index),
                other => other,
            })?;
            rounded.fetch_or(some, Ordering::Relaxed);
            values.copy_from_slice(&decoded);
            Ok(())
        })?;
        Ok(Numbers { values, rounded: rounded.into_inner() })
    }
}

/// Reads `count` numbers, scaled.
pub(crate) fn read<T: Value>(
    origin: Origin<'_>,
    count: usize,
    element: Element,
    order: ByteOrder,
    scale: Option<Scale>,
) -> Result<Numbers<T>, Stop> {
    let stored = Stored { element, order, scale };
    match origin {
        Origin::Stream(stream) => stored.stream(stream, count),
        Origin::File(mut file, place) => {
            let bytes = count as u64 * element.size() as u64;
            let known = file.metadata().map_err(Stop::Io)?;
            if bytes >= LARGE && known.is_file() && known.len().saturating_sub(place) >= bytes {
                return stored.file(file, place, count);
            }
            file.seek(SeekFrom::Start(place)).map_err(Stop::Io)?;
            stored.stream(&mut BufReader::with_capacity(CHUNK, file), count)
        }
    }
}

/// Reads until `bytes` is full or the stream ends; returns how many arrived.
pub(crate) fn fill(stream: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match stream.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// Number of elements of a shape from a file, absent when its bytes would exceed the address space.
pub(crate) fn count(shape: &[usize], size: usize) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    // Sixteen bytes is the largest value in memory.
    let bytes = count.checked_mul(size.max(16))?;
    isize::try_from(bytes).ok().map(|_| count)
}

/// Writes the values of an array in C order, little-endian: complex numbers as pairs, else one number each.
/// Real numbers are stored as `integers` where this type is given; it holds all of them.
pub(crate) fn write(
    stream: &mut dyn Write,
    data: &Slices<'_>,
    values: Values,
    integers: Option<NumberType>,
) -> io::Result<()> {
    const LITTLE: bool = cfg!(target_endian = "little");
    if let (Slices::Real(data), Some(integers)) = (data, integers) {
        return write_integers(stream, data.iter().copied(), integers);
    }
    // The file's bytes are the array's: converting 16 MB number by number takes as long as writing them.
    let bytes = match (data, values) {
        (Slices::Complex(data), Values::Complex) if LITTLE => data.as_slice().map(bytemuck::cast_slice),
        (Slices::Real(data), Values::Real) if LITTLE => data.as_slice().map(bytemuck::cast_slice),
        _ => None,
    };
    match (bytes, data) {
        (Some(bytes), _) => stream.write_all(bytes),
        (None, Slices::Complex(data)) => write_each(stream, data.iter().copied(), values),
        (None, Slices::Real(data)) => write_each(stream, data.iter().map(|&value| value.into()), values),
    }
}

fn write_integers(
    stream: &mut dyn Write,
    data: impl Iterator<Item = f32>,
    integers: NumberType,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(CHUNK);
    // One loop a type, so that nothing is decided number by number.
    macro_rules! each {
        ($type:ty) => {
            for value in data {
                buffer.extend_from_slice(&(integers.stored(value) as $type).to_le_bytes());
                if buffer.len() >= CHUNK - 8 {
                    stream.write_all(&buffer)?;
                    buffer.clear();
                }
            }
        };
    }
    match integers.element {
        Element::Bool | Element::U8 => each!(u8),
        Element::I8 => each!(i8),
        Element::I16 => each!(i16),
        Element::U16 => each!(u16),
        Element::I32 => each!(i32),
        Element::U32 => each!(u32),
        Element::I64 => each!(i64),
        Element::U64 => each!(u64),
        Element::F16 | Element::F32 | Element::F64 | Element::C32 | Element::C64 => {
            return Err(io::Error::other("integers of a type that has none"));
        }
    }
    stream.write_all(&buffer)
}

fn write_each(stream: &mut dyn Write, data: impl Iterator<Item = C32>, values: Values) -> io::Result<()> {
    const BLOCK: usize = 1 << 16;
    let mut buffer = Vec::with_capacity(BLOCK);
    for value in data {
        let value = values.of(value);
        buffer.extend_from_slice(&value.re.to_le_bytes());
        if values == Values::Complex {
            buffer.extend_from_slice(&value.im.to_le_bytes());
        }
        if buffer.len() >= BLOCK - 8 {
            stream.write_all(&buffer)?;
            buffer.clear();
        }
    }
    stream.write_all(&buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_matches_the_standard() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x3555, 0.333251953125),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
        assert_eq!(half(0x8000).to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn both_byte_orders_give_the_same_numbers() {
        let numbers = [C64::new(1.5, -2.25), C64::new(-3e7, 0.125)];
        let little: Vec<u8> = numbers
            .iter()
            .flat_map(|v| [(v.re as f32).to_le_bytes(), (v.im as f32).to_le_bytes()].concat())
            .collect();
        let big: Vec<u8> = numbers
            .iter()
            .flat_map(|v| [(v.re as f32).to_be_bytes(), (v.im as f32).to_be_bytes()].concat())
            .collect();
        let expected = numbers.map(|v| C32::new(v.re as f32, v.im as f32));
        for (bytes, order) in [(little, ByteOrder::Little), (big, ByteOrder::Big)] {
            let found: Vec<C32> =
                read(Origin::Stream(&mut &bytes[..]), 2, Element::C32, order, None).unwrap().values;
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_promise_beyond_the_stream_costs_no_memory() {
        let stop =
            read::<C32>(Origin::Stream(&mut &[0u8; 100][..]), 1 << 58, Element::U8, ByteOrder::Little, None);
        assert!(matches!(stop, Err(Stop::Short(100))));
        let stop = read::<C32>(
            Origin::Stream(&mut &1e300f64.to_le_bytes()[..]),
            1,
            Element::F64,
            ByteOrder::Little,
            None,
        );
        assert!(matches!(stop, Err(Stop::Range(0))));
        assert_eq!(count(&[usize::MAX, 2], 1), None);
        assert_eq!(count(&[1 << 60], 1), None);
        assert_eq!(count(&[], 8), Some(1));
    }

    #[test]
    fn all_threads_read_what_a_stream_gives() {
        let count = (LARGE as usize + 4321) / 2;
        let numbers: Vec<i16> = (0..count).map(|at| (at * 7919 % 65536) as u16 as i16).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"header").unwrap();
        numbers.iter().for_each(|number| file.write_all(&number.to_be_bytes()).unwrap());
        let scale = Some((0.5, -3.0));
        let read = |count| read::<f32>(Origin::File(&file, 6), count, Element::I16, ByteOrder::Big, scale);
        let found = read(count).unwrap().values;
        let wanted = |at: usize| 0.5 * f32::from(numbers[at]) - 3.0;
        assert!(found.len() == count && (0..count).all(|at| found[at] == wanted(at)));
        // Fewer than a header promises.
        assert!(matches!(read(count + 1), Err(Stop::Short(got)) if got == 2 * count as u64));
        // As memory has them.
        let floats: Vec<f32> = (0..count).map(wanted).collect();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(bytemuck::cast_slice(&floats)).unwrap();
        let origin = Origin::File(&file, 4);
        let found = super::read::<f32>(origin, count - 1, Element::F32, ByteOrder::NATIVE, None).unwrap();
        assert_eq!(found.values, floats[1..]);
        // The error names the place of a number that does not fit.
        let doubles: Vec<u8> =
            (0..count).flat_map(|at| if at == count - 5 { 1e300 } else { 1.0f64 }.to_le_bytes()).collect();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&doubles).unwrap();
        let found = super::read::<f32>(Origin::File(&file, 0), count, Element::F64, ByteOrder::Little, None);
        assert!(matches!(found, Err(Stop::Range(at)) if at == count - 5));
    }

    #[test]
    fn digits_that_single_precision_lacks_are_noticed() {
        fn rounded<T: Value>(bytes: &[u8], element: Element) -> bool {
            let count = bytes.len() / element.size();
            read::<T>(Origin::Stream(&mut &*bytes), count, element, ByteOrder::Little, None).unwrap().rounded
        }
        for (number, some) in [(0, false), (1 << 24, false), ((1 << 24) + 1, true), (i32::MAX, true)] {
            assert_eq!(rounded::<f32>(&number.to_le_bytes(), Element::I32), some, "{number}");
            assert_eq!(rounded::<f32>(&i64::from(number).to_le_bytes(), Element::I64), some, "{number}");
            assert!(!rounded::<f64>(&number.to_le_bytes(), Element::I32));
        }
        assert!(rounded::<f32>(&u64::MAX.to_le_bytes(), Element::U64));
        for (number, some) in [(0.5, false), (0.1, true), (f64::NAN, false), (f64::INFINITY, false)] {
            assert_eq!(rounded::<f32>(&number.to_le_bytes(), Element::F64), some, "{number}");
            let pair = [1f64.to_le_bytes(), number.to_le_bytes()].concat();
            assert_eq!(rounded::<C32>(&pair, Element::C64), some, "{number}");
        }
    }
}
