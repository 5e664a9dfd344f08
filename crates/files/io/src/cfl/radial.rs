use ndarray::{Array2, Array3, ArrayD, ArrayView2, ArrayViewD, s};
use rayspin_core::{C32, Error, Result, Trajectory, format_shape};

use super::{DIMS, dim};

/// A BART trajectory `[3, readout, spoke]` as points in cycles per field of view, BART's own unit.
///
/// Samples run along each readout, spoke after spoke. A third component that is zero throughout is dropped:
/// the trajectory is then two-dimensional. Errors: another shape, an imaginary part that is not zero, a value
/// that is not finite.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl::trajectory_from_bart;
///
/// // Two spokes of five samples, [3, readout, spoke]: one along x, one along y.
/// let spokes = |i: ndarray::IxDyn| C32::from(if i[0] == i[2] { i[1] as f32 - 2.0 } else { 0.0 });
/// let trajectory = trajectory_from_bart(ArrayD::from_shape_fn(vec![3, 5, 2], spokes).view())?;
/// assert_eq!((trajectory.samples(), trajectory.dims()), (10, 2)); // z is 0 throughout
/// assert_eq!(trajectory.point(9), [0.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trajectory_from_bart(array: ArrayViewD<'_, C32>) -> Result<Trajectory> {
    let [components, readout, spokes, 1] = first_four("BART trajectory", "[3, readout, spoke]", &array)?
    else {
        return Err(shape_error("BART trajectory", "[3, readout, spoke]", &array));
    };
    if components != 3 {
        return Err(shape_error("BART trajectory", "[3, readout, spoke]", &array));
    }
    let mut points = Array2::zeros((readout * spokes, 3));
    for (index, value) in array.t().iter().enumerate() {
        if value.im != 0.0 {
            return Err(Error::value("BART trajectory", "real numbers", value));
        }
        points[[index / 3, index % 3]] = f64::from(value.re);
    }
    if points.column(2).iter().all(|&kz| kz == 0.0) {
        points = points.slice(s![.., ..2]).to_owned();
    }
    Trajectory::from_cycles_per_fov(points)
}

/// A trajectory as BART has it, `[3, readout, spoke]`, missing components zero. Errors: samples that do not
/// divide into readouts of this length.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::Trajectory;
/// use rayspin_io::cfl::{trajectory_from_bart, trajectory_to_bart};
///
/// let points = Array2::from_shape_fn((10, 2), |(i, dim)| if i / 5 == dim { i as f64 } else { 0.5 });
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let array = trajectory_to_bart(&trajectory, 5)?; // readouts of 5 samples
/// assert_eq!(array.shape()[..3], [3, 5, 2]);
/// assert_eq!(trajectory_from_bart(array.view())?.points(), trajectory.points());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trajectory_to_bart(trajectory: &Trajectory, readout: usize) -> Result<ArrayD<C32>> {
    let spokes = divide(trajectory.samples(), readout)?;
    let points = trajectory.points();
    let array = Array3::from_shape_fn((3, readout, spokes), |(component, sample, spoke)| {
        let value = points.get([spoke * readout + sample, component]).copied().unwrap_or(0.0);
        C32::new(value as f32, 0.0)
    });
    Ok(array.into_dyn())
}

/// BART's non-Cartesian samples `[1, readout, spoke, coil]` as `[coil, sample]`, samples in the order of
/// [`trajectory_from_bart`]. Errors: another shape.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl::samples_from_bart;
///
/// let array = ArrayD::from_shape_fn(vec![1, 5, 2, 4], |i| C32::from((10 * i[3] + 5 * i[2] + i[1]) as f32));
/// let samples = samples_from_bart(array.view())?; // [coil, sample]
/// assert_eq!((samples.dim(), samples[[3, 7]].re), ((4, 10), 37.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn samples_from_bart(array: ArrayViewD<'_, C32>) -> Result<Array2<C32>> {
    let expected = "[1, readout, spoke, coil]";
    let [one, readout, spokes, coils] = first_four("BART samples", expected, &array)?;
    if one != 1 {
        return Err(shape_error("BART samples", expected, &array));
    }
    let values: Vec<C32> = array.t().iter().copied().collect();
    Array2::from_shape_vec((coils, spokes * readout), values)
        .map_err(|_| shape_error("BART samples", expected, &array))
}

/// Samples `[coil, sample]` as BART has them, `[1, readout, spoke, coil]`. Errors: as [`trajectory_to_bart`].
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::C32;
/// use rayspin_io::cfl::{samples_from_bart, samples_to_bart};
///
/// let samples = Array2::from_shape_fn((4, 10), |(coil, i)| C32::new(coil as f32, i as f32));
/// let array = samples_to_bart(samples.view(), 5)?;
/// assert_eq!(array.shape()[..4], [1, 5, 2, 4]); // readouts of 5 samples, 2 spokes, 4 coils
/// assert_eq!(samples_from_bart(array.view())?, samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn samples_to_bart(samples: ArrayView2<'_, C32>, readout: usize) -> Result<ArrayD<C32>> {
    let (coils, count) = samples.dim();
    let spokes = divide(count, readout)?;
    let array = ndarray::Array4::from_shape_fn((1, readout, spokes, coils), |(_, sample, spoke, coil)| {
        samples[[coil, spoke * readout + sample]]
    });
    Ok(array.into_dyn())
}

fn first_four(what: &str, expected: &str, array: &ArrayViewD<'_, C32>) -> Result<[usize; 4]> {
    let shape = array.shape();
    if shape.len() > DIMS || array.is_empty() || shape.iter().skip(dim::MAPS).any(|&size| size != 1) {
        return Err(shape_error(what, expected, array));
    }
    Ok(std::array::from_fn(|axis| shape.get(axis).copied().unwrap_or(1)))
}

fn shape_error(what: &str, expected: &str, array: &ArrayViewD<'_, C32>) -> Error {
    Error::Shape { what: what.into(), expected: expected.into(), found: format_shape(array.shape()) }
}

fn divide(samples: usize, readout: usize) -> Result<usize> {
    if readout == 0 || !samples.is_multiple_of(readout) {
        let expected = format!("a divisor of the {samples} samples");
        return Err(Error::value("readout length", expected, readout));
    }
    Ok(samples / readout)
}
