//! Arrays of a MATLAB file by name, whatever its version.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use rayspin_core::{C32, format_shape};

use super::stream::Stream;
use super::variables::{Class, Mat5, Variable};
use crate::arrays::Numbers;
use crate::element::{self, Element, Value};
use crate::hdf5_file::{self, arrays as hdf5_arrays};
use crate::named_arrays::{AnyArray, Entry, Stored, choose, expect_numbers};
use crate::{Error, Result, opening};

/// Whether the file is HDF5 within: version 7.3.
pub(super) fn is_hdf5(path: &Path) -> Result<bool> {
    let file: File = opening::open(path)?;
    Ok(hdf5_file::start(&file).map_err(|e| Error::read(path, e))?.is_some())
}

/// What the file holds.
pub(super) fn entries(path: &Path) -> Result<Vec<Entry>> {
    if is_hdf5(path)? {
        return hdf5_arrays::entries(path, hdf5_arrays::Axes::Reversed);
    }
    let mut entries = Vec::new();
    Mat5::open(path)?.each(&mut |variable, _, _| {
        entries.push(entry(variable));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

fn entry(variable: &Variable) -> Entry {
    let Variable { name, class, complex, shape } = variable.clone();
    let element = match class {
        Class::Numbers(element) => Some(match (element, complex) {
            (element, false) => element,
            (Element::F64, true) => Element::C64,
            (_, true) => Element::C32,
        }),
        _ => None,
    };
    let kind = match (element, class) {
        (Some(element), _) => element.name().to_owned(),
        (None, Class::Other(word)) => word.to_owned(),
        (None, _) => "no array".to_owned(),
    };
    Entry { name, shape, element, kind }
}

/// Reads an array as complex numbers.
pub(super) fn complex(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<ArrayD<C32>> {
    if is_hdf5(path)? {
        return hdf5_arrays::complex(path, name, hdf5_arrays::Axes::Reversed, numbers);
    }
    let (file, chosen) = chosen(path, name)?;
    expect_numbers(path, &chosen, numbers)?;
    read(&file, &chosen, |stream, end, count, is_complex| {
        let real = stream.numbers::<f32>(end, "real part", count)?.values;
        if !is_complex {
            return Ok(real.into_iter().map(C32::from).collect());
        }
        let imaginary = stream.numbers::<f32>(end, "imaginary part", count)?.values;
        Ok(joined(&real, &imaginary))
    })
}

fn joined(real: &[f32], imaginary: &[f32]) -> Vec<C32> {
    real.iter().zip(imaginary).map(|(&re, &im)| C32::new(re, im)).collect()
}

/// Reads an array of real numbers in double precision.
pub(super) fn real(path: &Path, name: Option<&str>) -> Result<ArrayD<f64>> {
    if is_hdf5(path)? {
        return hdf5_arrays::real(path, name, hdf5_arrays::Axes::Reversed);
    }
    let (file, chosen) = chosen(path, name)?;
    expect_numbers(path, &chosen, Numbers::Real)?;
    read(&file, &chosen, |stream, end, count, _| Ok(stream.numbers::<f64>(end, "real part", count)?.values))
}

/// Reads an array in the numbers that its file has.
pub(super) fn any(path: &Path, name: Option<&str>) -> Result<Stored> {
    if is_hdf5(path)? {
        return hdf5_arrays::any(path, name, hdf5_arrays::Axes::Reversed);
    }
    let (file, chosen) = chosen(path, name)?;
    let mut rounded = false;
    let mut part = |stream: &mut Stream<'_>, end, what, count| {
        let numbers = stream.numbers::<f32>(end, what, count)?;
        rounded |= numbers.rounded;
        Ok::<_, Error>(numbers.values)
    };
    let element = chosen.element.unwrap_or(Element::F32);
    let array = match element.is_complex() {
        false => AnyArray::Real(read(&file, &chosen, |stream, end, count, _| {
            part(stream, end, "real part", count)
        })?),
        true => AnyArray::Complex(read(&file, &chosen, |stream, end, count, _| {
            let real = part(stream, end, "real part", count)?;
            let imaginary = part(stream, end, "imaginary part", count)?;
            Ok(joined(&real, &imaginary))
        })?),
    };
    Ok(Stored { array, stored: element.into(), rounded })
}

/// Bytes that the numbers of an array take in memory.
pub(super) fn bytes(path: &Path, name: Option<&str>) -> Result<u64> {
    if is_hdf5(path)? {
        return hdf5_arrays::bytes(path, name, hdf5_arrays::Axes::Reversed);
    }
    let (_, chosen) = chosen(path, name)?;
    Ok(size_of::<C32>() as u64 * chosen.shape.iter().fold(1u64, |all, &n| all.saturating_mul(n as u64)))
}

fn chosen<'a>(path: &'a Path, name: Option<&str>) -> Result<(Mat5<'a>, Entry)> {
    let file = Mat5::open(path)?;
    let mut entries = Vec::new();
    file.each(&mut |variable, _, _| {
        entries.push(entry(variable));
        Ok(ControlFlow::Continue(()))
    })?;
    let chosen = choose(path, entries, name)?;
    Ok((file, chosen))
}

/// What `numbers` makes of the elements behind the head of an array, with the axes that MATLAB shows.
fn read<T: Value>(
    file: &Mat5<'_>,
    chosen: &Entry,
    mut numbers: impl FnMut(&mut Stream<'_>, u64, usize, bool) -> Result<Vec<T>>,
) -> Result<ArrayD<T>> {
    let mut read = None;
    let path = file.path();
    file.each(&mut |variable, stream, end| {
        if variable.name != chosen.name {
            return Ok(ControlFlow::Continue(()));
        }
        let count = element::count(&variable.shape, 16).ok_or_else(|| {
            let found = format_shape(&variable.shape);
            stream.refuse("dimensions", "a product that fits the address space", found)
        })?;
        let values = numbers(stream, end, count, variable.complex)?;
        let array = ArrayD::from_shape_vec(IxDyn(&variable.shape).f(), values)
            .map_err(|e| stream.refuse("dimensions", "a shape that fits the numbers", e))?;
        stream.finish()?;
        read = Some(array);
        Ok(ControlFlow::Break(()))
    })?;
    read.ok_or_else(|| Error::field(path, "array", &chosen.name, "none"))
}
