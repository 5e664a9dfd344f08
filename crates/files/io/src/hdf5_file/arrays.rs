//! Data sets of an HDF5 file as arrays without a header, as h5py, h5write and MATLAB 7.3 write them.
//!
//! MATLAB stores an array with its axes reversed, and says in `MATLAB_class` what it is. A struct is a group.
//! Cells, and fields of several structs, are references to what lies in `#refs#`.

use std::collections::VecDeque;
use std::path::Path;

use hdf5::types::{FloatSize, IntSize, Reference, TypeDescriptor};
use hdf5::{Dataset, Group, H5Type, LocationToken, ObjectReference1, ReferencedObject};
use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, voxels};
use rayspin_device::cpu::expect_memory;

use super::data::expect_readable;
use super::{attribute, expect_within, is_text, open, reading};
use crate::arrays::Numbers;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::named_arrays::{AnyArray, Entry, Stored, choose, expect_numbers};

/// How deep groups are searched, how many, and how many data sets.
const DEEPEST: usize = 8;
const MOST_GROUPS: usize = 1000;
const MOST: usize = 10_000;

/// What a cell is called, and the attribute of a sparse array.
const CELL: &str = "cell";
const SPARSE: &str = "MATLAB_sparse";

/// In which order the axes of a data set are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axes {
    /// As HDF5 and NumPy have them.
    Kept,
    /// As MATLAB shows them.
    Reversed,
}

impl Axes {
    fn of<T>(self, array: ArrayD<T>) -> ArrayD<T> {
        match self {
            Self::Kept => array,
            Self::Reversed => array.reversed_axes(),
        }
    }
}

/// A type with the parts of a complex number.
#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct RealImag<T: H5Type> {
    real: T,
    imag: T,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Ri<T: H5Type> {
    r: T,
    i: T,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct ReIm<T: H5Type> {
    re: T,
    im: T,
}

/// The type of numbers in memory; pairs of real and imaginary parts are complex numbers. None of others.
pub(crate) fn element_of(descriptor: &TypeDescriptor) -> Option<Element> {
    Some(match descriptor {
        TypeDescriptor::Boolean => Element::Bool,
        TypeDescriptor::Integer(IntSize::U1) => Element::I8,
        TypeDescriptor::Integer(IntSize::U2) => Element::I16,
        TypeDescriptor::Integer(IntSize::U4) => Element::I32,
        TypeDescriptor::Integer(IntSize::U8) => Element::I64,
        TypeDescriptor::Unsigned(IntSize::U1) => Element::U8,
        TypeDescriptor::Unsigned(IntSize::U2) => Element::U16,
        TypeDescriptor::Unsigned(IntSize::U4) => Element::U32,
        TypeDescriptor::Unsigned(IntSize::U8) => Element::U64,
        TypeDescriptor::Float(FloatSize::U4) => Element::F32,
        TypeDescriptor::Float(FloatSize::U8) => Element::F64,
        TypeDescriptor::Compound(pair) if pair.fields.len() == 2 => {
            let type_of =
                |name: &str| pair.fields.iter().find(|field| field.name == name).map(|field| &field.ty);
            let parts = PARTS.iter().find_map(|[re, im]| Some([type_of(re)?, type_of(im)?]))?;
            match parts.map(|part| element_of(part).filter(|part| !part.is_complex())) {
                [Some(re), Some(im)] if re == Element::F64 || im == Element::F64 => Element::C64,
                [Some(_), Some(_)] => Element::C32,
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Names of the parts of complex numbers: MATLAB's, h5py's, and Julia's.
const PARTS: [[&str; 2]; 3] = [["real", "imag"], ["r", "i"], ["re", "im"]];

/// The data sets of a file, by their paths. MATLAB's own groups are left out.
///
/// Errors: another file, or a damaged one.
pub(crate) fn entries(path: &Path, axes: Axes) -> Result<Vec<Entry>> {
    let file = open(path, "an HDF5 file")?;
    let root = file.group("/").map_err(|e| reading(path, "the root", &e))?;
    let found = Search::of(path, axes, root)?;
    Ok(found.into_iter().map(|(entry, _)| entry).collect())
}

/// A search for data sets.
struct Search<'a> {
    path: &'a Path,
    axes: Axes,
    /// What MATLAB's references are relative to.
    root: Group,
    /// Groups that are still to be searched, with how deep they lie.
    groups: VecDeque<(String, Group, usize)>,
    found: Vec<(Entry, Option<Dataset>)>,
    /// References that were followed.
    followed: usize,
    /// Data sets whose references were followed: a cell that holds itself is searched once.
    cells: Vec<(u64, LocationToken)>,
}

impl<'a> Search<'a> {
    /// What the groups hold, a group after the ones above it.
    fn of(path: &'a Path, axes: Axes, root: Group) -> Result<Vec<(Entry, Option<Dataset>)>> {
        let groups = VecDeque::from([(String::new(), root.clone(), 0)]);
        let mut search = Self { path, axes, root, groups, found: Vec::new(), followed: 0, cells: Vec::new() };
        let mut seen = Vec::new();
        while let Some((prefix, group, depth)) = search.groups.pop_front() {
            let Ok(info) = group.loc_info() else { continue };
            if seen.len() == MOST_GROUPS || seen.contains(&(info.fileno, info.token)) {
                continue;
            }
            seen.push((info.fileno, info.token));
            search.group(&prefix, &group, depth)?;
            if search.found.len() >= MOST {
                break;
            }
        }
        Ok(search.found)
    }

    fn group(&mut self, prefix: &str, group: &Group, depth: usize) -> Result<()> {
        let names: Vec<String> = group.member_names().unwrap_or_default();
        for member in names.iter().filter(|name| is_text(name)).take(MOST) {
            if depth == 0 && member.starts_with('#') {
                continue;
            }
            let name = format!("{prefix}{member}");
            if let Ok(data) = group.dataset(member) {
                self.data(name, data, depth)?;
            } else if let Ok(child) = group.group(member) {
                self.child(name, child, depth);
            }
            if self.found.len() >= MOST {
                break;
            }
        }
        Ok(())
    }

    fn child(&mut self, name: String, child: Group, depth: usize) {
        let is_sparse = || child.attr_names().is_ok_and(|names| names.iter().any(|one| one == SPARSE));
        if self.axes == Axes::Reversed && is_sparse() {
            let kind = "sparse, which is not read: store full(...)".to_owned();
            self.found.push((Entry { name, shape: Vec::new(), element: None, kind }, None));
        } else if depth < DEEPEST {
            self.groups.push_back((format!("{name}/"), child, depth + 1));
        }
    }

    /// A data set, or what the references of a cell or of a field of several structs lead to.
    fn data(&mut self, name: String, data: Dataset, depth: usize) -> Result<()> {
        let place = data.loc_info().map(|info| (info.fileno, info.token)).ok();
        if place.is_some_and(|place| self.cells.contains(&place)) {
            return Ok(());
        }
        let entry = entry(self.path, &name, &data, self.axes)?;
        let references = match self.axes {
            Axes::Reversed if entry.element.is_none() && depth < DEEPEST => {
                references(self.path, &name, &data)
            }
            _ => Vec::new(),
        };
        if references.is_empty() {
            self.found.push((entry, Some(data)));
            return Ok(());
        }
        self.cells.extend(place);
        let is_cell = entry.kind == CELL;
        for (number, reference) in (1..).zip(references) {
            if self.followed == MOST || self.found.len() >= MOST {
                break;
            }
            self.followed += 1;
            // MATLAB counts along the first of its axes first, as the file does.
            let own = match name.rsplit_once('/') {
                _ if is_cell => format!("{name}{{{number}}}"),
                Some((of, field)) => format!("{of}({number})/{field}"),
                None => format!("{name}({number})"),
            };
            match self.root.dereference(&reference) {
                Ok(ReferencedObject::Dataset(held)) => self.data(own, held, depth + 1)?,
                Ok(ReferencedObject::Group(held)) => self.child(own, held, depth),
                // Nothing to read.
                Ok(ReferencedObject::Datatype(_)) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// The references that a data set holds; none of other data sets, and of more than a file has arrays.
fn references(path: &Path, name: &str, data: &Dataset) -> Vec<ObjectReference1> {
    let descriptor = data.dtype().and_then(|kind| kind.to_descriptor());
    let holds = matches!(descriptor, Ok(TypeDescriptor::Reference(Reference::Object)));
    let few = voxels(&data.shape()).is_ok_and(|count| count <= MOST);
    if holds && few && expect_readable(path, data, name, 0, true).is_ok() {
        data.read_raw::<ObjectReference1>().unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn entry(path: &Path, name: &str, data: &Dataset, axes: Axes) -> Result<Entry> {
    let mut shape = data.shape();
    if axes == Axes::Reversed {
        shape.reverse();
    }
    let descriptor = data.dtype().and_then(|kind| kind.to_descriptor());
    let has = |attribute: &str| data.attr_names().is_ok_and(|names| names.iter().any(|one| one == attribute));
    let class = match has("MATLAB_class") {
        true => attribute(path, data, name, "MATLAB_class")?.and_then(super::Value::text),
        false => None,
    };
    let other = match class.as_deref() {
        _ if has("MATLAB_empty") => Some("empty".to_owned()),
        Some("char") => Some("text".to_owned()),
        Some("cell") => Some(CELL.to_owned()),
        Some("function_handle") => Some("function".to_owned()),
        _ => None,
    };
    let mut element = descriptor.as_ref().ok().and_then(element_of).filter(|_| other.is_none());
    if class.as_deref() == Some("logical") && element == Some(Element::U8) {
        element = Some(Element::Bool);
    }
    let kind = match (&element, other) {
        (Some(element), _) => element.name().to_owned(),
        (None, Some(other)) => other,
        (None, None) => descriptor.map_or_else(|_| "an unknown type".into(), |kind| kind.to_string()),
    };
    Ok(Entry { name: name.to_owned(), shape, element, kind })
}

/// The data set to read, its size checked: the one named, or the only one. A struct's fields may follow
/// dots, as in MATLAB.
fn chosen(path: &Path, name: Option<&str>, axes: Axes) -> Result<(Dataset, Entry)> {
    let file = open(path, "an HDF5 file")?;
    let root = file.group("/").map_err(|e| reading(path, "the root", &e))?;
    let found = Search::of(path, axes, root)?;
    let entries: Vec<Entry> = found.iter().map(|(entry, _)| entry.clone()).collect();
    let dotted = name
        .map(|name| name.trim_matches('/'))
        .filter(|name| axes == Axes::Reversed && !entries.iter().any(|entry| entry.name == *name));
    let slashes = dotted.map(|name| name.replace('.', "/"));
    let wanted = slashes.as_deref().filter(|name| entries.iter().any(|entry| entry.name == *name));
    let chosen = choose(path, entries, wanted.or(name.map(|name| name.trim_matches('/'))))?;
    let data = found.into_iter().find(|(entry, _)| *entry == chosen).and_then(|(_, data)| data);
    let data = data.ok_or_else(|| Error::field(path, "array", &chosen.name, "none"))?;
    let stored = data.dtype().map_err(|e| reading(path, &chosen.name, &e))?.size();
    expect_within(path, &data, &chosen.name, stored)?;
    expect_readable(path, &data, &chosen.name, 0, true)?;
    Ok((data, chosen))
}

/// Errors: more bytes than memory has, for the numbers as they lie in the file and as they are given.
fn expect_room<T>(path: &Path, data: &Dataset, name: &str) -> Result<usize> {
    let count = voxels(&data.shape()).map_err(|e| Error::core(path, e))?;
    let stored = data.dtype().map_err(|e| reading(path, name, &e))?.size().max(16);
    let bytes = count as u128 * (stored + size_of::<T>()) as u128;
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    expect_memory(name, bytes).map_err(|e| Error::core(path, e))?;
    Ok(count)
}

fn shaped<T>(path: &Path, data: &Dataset, name: &str, values: Vec<T>, axes: Axes) -> Result<ArrayD<T>> {
    let array = ArrayD::from_shape_vec(IxDyn(&data.shape()), values)
        .map_err(|e| Error::field(path, name, "as many values as the shape has", e))?;
    Ok(axes.of(array))
}

/// Reads a data set as complex numbers.
///
/// Errors: no such data set, several and no name, text and the like, values beyond single precision.
pub(crate) fn complex(path: &Path, name: Option<&str>, axes: Axes, numbers: Numbers) -> Result<ArrayD<C32>> {
    let (data, chosen) = chosen(path, name, axes)?;
    expect_numbers(path, &chosen, numbers)?;
    let values = match chosen.element.is_some_and(Element::is_complex) {
        true => pairs(path, &data, &chosen)?,
        false => reals(path, &data, &chosen)?.0.into_iter().map(C32::from).collect(),
    };
    shaped(path, &data, &chosen.name, values, axes)
}

/// Reads a data set of real numbers in double precision. Errors: as [`complex`]; complex numbers.
pub(crate) fn real(path: &Path, name: Option<&str>, axes: Axes) -> Result<ArrayD<f64>> {
    let (data, chosen) = chosen(path, name, axes)?;
    expect_numbers(path, &chosen, Numbers::Real)?;
    let values = raw::<f64>(path, &data, &chosen.name)?;
    shaped(path, &data, &chosen.name, values, axes)
}

/// Reads a data set in the numbers that the file has. Errors: as [`complex`].
pub(crate) fn any(path: &Path, name: Option<&str>, axes: Axes) -> Result<Stored> {
    let (data, chosen) = chosen(path, name, axes)?;
    let element = chosen.element.unwrap_or(Element::F32);
    if element.is_complex() {
        let values = pairs(path, &data, &chosen)?;
        let array = AnyArray::Complex(shaped(path, &data, &chosen.name, values, axes)?);
        return Ok(Stored { array, stored: element.into(), rounded: element == Element::C64 });
    }
    let (values, rounded) = reals(path, &data, &chosen)?;
    let array = AnyArray::Real(shaped(path, &data, &chosen.name, values, axes)?);
    Ok(Stored { array, stored: element.into(), rounded })
}

/// Bytes that the numbers of a data set take in memory. Errors: as [`complex`].
pub(crate) fn bytes(path: &Path, name: Option<&str>, axes: Axes) -> Result<u64> {
    let (_, chosen) = chosen(path, name, axes)?;
    Ok(size_of::<C32>() as u64 * chosen.shape.iter().fold(1u64, |count, &n| count.saturating_mul(n as u64)))
}

fn raw<T: H5Type + Clone>(path: &Path, data: &Dataset, name: &str) -> Result<Vec<T>> {
    let count = expect_room::<T>(path, data, name)?;
    let values = data.read_raw::<T>().map_err(|e| reading(path, &format!("reading {name}"), &e))?;
    match values.len() == count {
        true => Ok(values),
        false => Err(Error::field(path, name, format!("{count} values"), values.len())),
    }
}

/// Real numbers, and whether one of them is rounded.
fn reals(path: &Path, data: &Dataset, chosen: &Entry) -> Result<(Vec<f32>, bool)> {
    let name = &chosen.name;
    match chosen.element {
        // Single precision holds all digits of these.
        Some(element) if element.size() < 4 || element == Element::F32 => {
            Ok((raw::<f32>(path, data, name)?, false))
        }
        _ => {
            let wide = raw::<f64>(path, data, name)?;
            let beyond = |number: &f64| number.is_finite() && number.abs() > f64::from(f32::MAX);
            if let Some(index) = wide.iter().position(beyond) {
                return Err(too_large(path, name, index));
            }
            let rounded = wide.iter().any(|&number| f64::from(number as f32) != number && !number.is_nan());
            Ok((wide.into_iter().map(|number| number as f32).collect(), rounded))
        }
    }
}

fn too_large(path: &Path, name: &str, index: usize) -> Error {
    Error::field(path, name, "values within single precision", format!("a larger one at {index}"))
}

fn pairs(path: &Path, data: &Dataset, chosen: &Entry) -> Result<Vec<C32>> {
    let name = &chosen.name;
    let kind = data.dtype().and_then(|kind| kind.to_descriptor());
    let kind = kind.map_err(|e| reading(path, name, &e))?;
    let has = |part: &str| match &kind {
        TypeDescriptor::Compound(pair) => pair.fields.iter().any(|field| field.name == part),
        _ => false,
    };
    // HDF5 turns numbers that are too large into infinity. Double precision tells the two apart.
    let wide = chosen.element == Some(Element::C64);
    let values: Vec<C32> = match (has("real"), has("r"), wide) {
        (true, _, false) => {
            raw::<RealImag<f32>>(path, data, name)?.iter().map(|z| C32::new(z.real, z.imag)).collect()
        }
        (_, true, false) => raw::<Ri<f32>>(path, data, name)?.iter().map(|z| C32::new(z.r, z.i)).collect(),
        (_, _, false) => raw::<ReIm<f32>>(path, data, name)?.iter().map(|z| C32::new(z.re, z.im)).collect(),
        (true, _, true) => narrow(path, name, raw::<RealImag<f64>>(path, data, name)?, |z| [z.real, z.imag])?,
        (_, true, true) => narrow(path, name, raw::<Ri<f64>>(path, data, name)?, |z| [z.r, z.i])?,
        (_, _, true) => narrow(path, name, raw::<ReIm<f64>>(path, data, name)?, |z| [z.re, z.im])?,
    };
    Ok(values)
}

/// Numbers in single precision. Errors: a finite one that it does not hold.
fn narrow<T>(path: &Path, name: &str, wide: Vec<T>, parts: impl Fn(&T) -> [f64; 2]) -> Result<Vec<C32>> {
    let mut values = Vec::with_capacity(wide.len());
    for (index, number) in wide.iter().enumerate() {
        let parts = parts(number);
        let [re, im] = parts.map(|part| part as f32);
        if parts.iter().zip([re, im]).any(|(wide, narrow)| wide.is_finite() && !narrow.is_finite()) {
            return Err(too_large(path, name, index));
        }
        values.push(C32::new(re, im));
    }
    Ok(values)
}

/// The numbers of one index of the first axis of a complex data set, in C order.
pub(crate) fn complex_slab(
    path: &Path,
    data: &Dataset,
    name: &str,
    index: usize,
) -> Result<ndarray::Array1<C32>> {
    fn read<T: H5Type + Clone>(data: &Dataset, index: usize) -> hdf5::Result<Vec<T>> {
        let values: ArrayD<T> = match data.ndim() {
            4 => data.read_slice::<T, _, ndarray::Ix3>(ndarray::s![index, .., .., ..])?.into_dyn(),
            _ => data.read_slice::<T, _, ndarray::Ix2>(ndarray::s![index, .., ..])?.into_dyn(),
        };
        Ok(values.into_raw_vec_and_offset().0)
    }
    let fail = |e: hdf5::Error| reading(path, &format!("reading {name}"), &e);
    let count = voxels(&data.shape()[1..]).map_err(|e| Error::core(path, e))?;
    expect_memory(name, 2 * (count * size_of::<C32>()) as u64).map_err(|e| Error::core(path, e))?;
    let kind = data.dtype().and_then(|kind| kind.to_descriptor()).map_err(fail)?;
    let has = |part: &str| match &kind {
        TypeDescriptor::Compound(pair) => pair.fields.iter().any(|field| field.name == part),
        _ => false,
    };
    let values: Vec<C32> = if has("real") {
        read::<RealImag<f32>>(data, index).map_err(fail)?.iter().map(|z| C32::new(z.real, z.imag)).collect()
    } else if has("r") {
        read::<Ri<f32>>(data, index).map_err(fail)?.iter().map(|z| C32::new(z.r, z.i)).collect()
    } else {
        read::<ReIm<f32>>(data, index).map_err(fail)?.iter().map(|z| C32::new(z.re, z.im)).collect()
    };
    Ok(values.into())
}

/// A list of flags: booleans, or numbers that are not zero.
pub(crate) fn flags(path: &Path, data: &Dataset, name: &str) -> Result<Vec<bool>> {
    expect_within(path, data, name, 1)?;
    let kind = data.dtype().and_then(|kind| kind.to_descriptor());
    match kind.as_ref().ok().and_then(element_of) {
        Some(Element::Bool) => raw::<bool>(path, data, name),
        Some(element) if !element.is_complex() => {
            Ok(raw::<f64>(path, data, name)?.into_iter().map(|number| number != 0.0).collect())
        }
        _ => Err(Error::field(path, name, "booleans or numbers", "another type")),
    }
}
