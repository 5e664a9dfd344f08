//! Arrays beside the scan: sensitivity maps, noise covariances.

use std::path::Path;

use anyhow::{Context as _, Result};
use ndarray::{ArrayD, ArrayViewD, Axis};
use rayspin::core::{C32, C64};
use rayspin::io;
use rayspin::io::cfl::{Cartesian, Layout, dim};
use rayspin_shell::BadInput;

/// `[coil, coil]` from `.npy` or `.cfl`.
pub(super) fn read_covariance(path: &Path) -> Result<ndarray::Array2<C64>> {
    let array = match io::detect(path)? {
        io::Format::Cfl => io::cfl::read(path)?,
        io::Format::Npy => io::npy::read_complex(path)?,
        other => {
            return Err(BadInput::new(format!(
                "{}: expected a noise covariance as .npy or .cfl, found {other}",
                path.display()
            ))
            .into());
        }
    };
    let shape: Vec<usize> = array.shape().iter().copied().filter(|&n| n != 1).collect();
    let (n, m) = match shape[..] {
        [n, m] => (n, m),
        [] => (1, 1),
        _ => (0, 1),
    };
    if n != m {
        return Err(BadInput::new(format!(
            "{}: expected a noise covariance [coil, coil], found {:?}",
            path.display(),
            array.shape()
        ))
        .into());
    }
    let mut values = array.iter().map(|v| C64::new(v.re.into(), v.im.into()));
    Ok(ndarray::Array2::from_shape_simple_fn((n, n), || values.next().unwrap_or_default()))
}

/// Maps `[coil, z, y, x]` from `.cfl`, `.npy` or `.npz`.
pub(super) fn read_maps(path: &Path) -> Result<ArrayD<C32>> {
    let array = match io::detect(path)? {
        io::Format::Cfl => {
            let array = io::cfl::read(path)?;
            let cartesian = Cartesian::from_bart(array.view()).with_context(|| path.display().to_string())?;
            cartesian.single().with_context(|| path.display().to_string())?.into_dyn()
        }
        io::Format::Npy => io::npy::read_complex(path)?,
        io::Format::Npz => io::npy::read_npz_complex(path, None)?,
        other => {
            return Err(BadInput::new(format!(
                "{}: expected maps as .cfl, .npy or .npz, found {other}",
                path.display()
            ))
            .into());
        }
    };
    Ok(array)
}

/// A field map `[z, y, x]` in Hz, of either sign.
pub(super) fn read_field_map(path: &Path) -> Result<ArrayD<f32>> {
    let image = io::read_image(path, &io::ReadOptions::default())?.image;
    let refuse = |expected: &str, found: String| -> Result<_> {
        Err(BadInput::new(format!("{}: expected {expected}, found {found}", path.display()))
            .hint("--field-map takes one real map in Hz")
            .into())
    };
    if image.repetitions() > 1 {
        return refuse("one field map", format!("{} repetitions", image.repetitions()));
    }
    if let Some(value) = image.data().iter().find(|v| v.im != 0.0) {
        return refuse("a real field map in Hz", format!("the complex number {value}"));
    }
    Ok(image.data().mapv(|v| v.re))
}

/// Writes `[coil, z, y, x]` or `[set, coil, z, y, x]` as `.cfl` or `.npy`; `layout` is where axes go in a BART array.
pub(crate) fn write_coil_array(path: &Path, maps: ArrayViewD<'_, C32>, layout: Layout) -> Result<()> {
    match io::Format::of_name(path) {
        Some(io::Format::Npy) => Ok(io::npy::write(path, maps)?),
        Some(io::Format::Cfl) => {
            let sets = if maps.ndim() < 5 { maps.insert_axis(Axis(0)) } else { maps };
            let layout = layout.with_frames(sets.shape()[0], dim::MAPS);
            Ok(io::cfl::write(path, layout.to_bart(sets)?.view())?)
        }
        _ => Err(BadInput::new(format!(
            "{}: name of the output: expected the ending .cfl or .npy, found another",
            path.display()
        ))
        .into()),
    }
}
