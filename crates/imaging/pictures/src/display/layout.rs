use ndarray::{Array2, ArrayView2, ArrayView3, s};
use rayspin_core::{Error, Result, format_shape};
use serde::{Deserialize, Serialize};

/// How [`montage`] lays out slices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Montage {
    /// The slices to show, in this order; `None` shows all. See [`evenly_spaced`].
    pub slices: Option<Vec<usize>>,
    /// Number of slices side by side; `None` makes the picture nearly square.
    pub columns: Option<usize>,
    /// Empty rows and columns between slices.
    pub gap: usize,
}

/// `count` evenly spread slices of `n`: the middle slices of `count` equal parts. All slices if `count ≥ n`.
///
/// ```
/// assert_eq!(rayspin_imaging::display::evenly_spaced(100, 4), [12, 37, 62, 87]);
/// assert_eq!(rayspin_imaging::display::evenly_spaced(9, 1), [4]);
/// ```
pub fn evenly_spaced(n: usize, count: usize) -> Vec<usize> {
    let count = count.min(n);
    (0..count).map(|i| ((2 * i as u128 + 1) * n as u128 / (2 * count as u128)) as usize).collect()
}

/// [`montage_filled`] with `T::default()`: black, for grey levels.
///
/// ```
/// use rayspin_imaging::display::{Montage, montage};
///
/// let volume = ndarray::Array3::<u8>::zeros((4, 10, 12));
/// let layout = Montage { columns: Some(2), ..Montage::default() };
/// assert_eq!(montage(volume.view(), &layout)?.dim(), (20, 24));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn montage<T: Copy + Default>(volume: ArrayView3<'_, T>, layout: &Montage) -> Result<Array2<T>> {
    montage_filled(volume, layout, T::default())
}

/// The slices of a `[z, y, x]` volume in rows, left to right and downwards, in one `[y, x]` picture. Gaps and
/// unused places hold `fill`. For values that are windowed afterwards, NaN shows as the lowest value.
///
/// Errors: an empty volume; no slice, or a slice that does not exist; zero columns; a picture that exceeds
/// the address space.
pub fn montage_filled<T: Copy>(volume: ArrayView3<'_, T>, layout: &Montage, fill: T) -> Result<Array2<T>> {
    let (nz, ny, nx) = volume.dim();
    if volume.is_empty() {
        let found = format_shape(volume.shape());
        return Err(Error::value("montage", "a volume that is not empty", found));
    }
    let slices = layout.slices.clone().unwrap_or_else(|| (0..nz).collect());
    if let Some(slice) = slices.iter().find(|&&slice| slice >= nz) {
        return Err(Error::value("slice of the montage", format!("0 to {}", nz - 1), slice));
    }
    let columns = match layout.columns {
        _ if slices.is_empty() => return Err(Error::value("slices of the montage", "at least 1", 0)),
        Some(0) => return Err(Error::value("columns of the montage", "at least 1", 0)),
        Some(columns) => columns.min(slices.len()),
        None => square_columns(slices.len(), ny, nx),
    };
    let rows = slices.len().div_ceil(columns);
    let extent = |count: usize, n: usize| {
        let gaps = layout.gap.checked_mul(count - 1)?;
        count.checked_mul(n)?.checked_add(gaps)
    };
    let (height, width) = extent(rows, ny)
        .zip(extent(columns, nx))
        .filter(|&(h, w)| h.checked_mul(w).is_some_and(|n| n <= isize::MAX as usize / 16))
        .ok_or_else(|| Error::value("montage", "a picture that fits the address space", "a larger one"))?;

    let mut picture = Array2::from_elem((height, width), fill);
    for (place, &slice) in slices.iter().enumerate() {
        let top = place / columns * (ny + layout.gap);
        let left = place % columns * (nx + layout.gap);
        picture.slice_mut(s![top..top + ny, left..left + nx]).assign(&volume.slice(s![slice, .., ..]));
    }
    Ok(picture)
}

/// The number of columns that makes `count` slices of `ny` × `nx` most nearly square, the wider of two
/// equals.
fn square_columns(count: usize, ny: usize, nx: usize) -> usize {
    let elongation = |columns: usize| {
        let (height, width) = (count.div_ceil(columns) * ny, columns * nx);
        (height as f64 / width as f64).ln().abs()
    };
    (1..=count).rev().min_by(|&a, &b| elongation(a).total_cmp(&elongation(b))).unwrap_or(1)
}

/// Enlarges every pixel to a block of `factor` × `factor` pixels. Errors: factor 0, or a picture that exceeds
/// the address space.
pub fn upscale_nearest<T: Copy>(image: ArrayView2<'_, T>, factor: usize) -> Result<Array2<T>> {
    let shape = upscaled(&image, factor)?;
    Ok(Array2::from_shape_fn(shape, |(y, x)| image[[y / factor, x / factor]]))
}

/// Bilinear enlargement by a whole `factor`. Pixel centres keep their places. Values beyond the outer centres
/// repeat the border. Errors: factor 0, or a picture that exceeds the address space.
pub fn upscale_bilinear(image: ArrayView2<'_, f32>, factor: usize) -> Result<Array2<f32>> {
    let shape = upscaled(&image, factor)?;
    resample(image, shape, true)
}

/// Resamples a picture to square pixels, as large as the smaller side of `spacing` = \[y, x\]. The other axis
/// is interpolated linearly, or by the nearest pixel if intermediate values make no sense (phase). Sides that
/// differ by less than 1 % count as equal.
///
/// Errors: a spacing that is not positive; sides that differ more than 64-fold.
pub fn square_pixels(
    image: ArrayView2<'_, f32>,
    spacing: [f64; 2],
    interpolate: bool,
) -> Result<Array2<f32>> {
    let smaller = spacing[0].min(spacing[1]);
    let ratio = spacing.map(|s| s / smaller);
    if !(smaller > 0.0 && ratio.iter().all(|r| *r <= 64.0)) {
        let expected = "positive sides that differ at most 64-fold";
        return Err(Error::value("pixel spacing", expected, format!("{spacing:?}")));
    }
    let (ny, nx) = image.dim();
    let side =
        |n: usize, ratio: f64| if ratio < 1.01 { n } else { ((n as f64 * ratio).round() as usize).max(1) };
    resample(image, (side(ny, ratio[0]), side(nx, ratio[1])), interpolate)
}

/// Resamples a picture to `shape` pixels over the same extent, linearly or by the nearest pixel. Errors: a
/// picture without pixels, or one that exceeds the address space.
pub fn resample(image: ArrayView2<'_, f32>, shape: (usize, usize), interpolate: bool) -> Result<Array2<f32>> {
    let (ny, nx) = image.dim();
    if image.is_empty() {
        return Err(Error::value("picture to resample", "at least one pixel", format_shape(image.shape())));
    }
    rayspin_core::voxels(&[shape.0, shape.1])?;
    let taps = |from: usize, to: usize| -> Vec<(usize, usize, f32)> {
        (0..to)
            .map(|i| {
                let place = (i as f64 + 0.5) * from as f64 / to as f64 - 0.5;
                let place = place.clamp(0.0, (from - 1) as f64);
                if interpolate {
                    let below = place as usize;
                    (below, (below + 1).min(from - 1), (place - below as f64) as f32)
                } else {
                    (place.round() as usize, place.round() as usize, 0.0)
                }
            })
            .collect()
    };
    let (rows, columns) = (taps(ny, shape.0), taps(nx, shape.1));
    Ok(Array2::from_shape_fn(shape, |(y, x)| {
        let (top, bottom, v) = rows[y];
        let (left, right, u) = columns[x];
        let across = |row: usize| blend(image[[row, left]], image[[row, right]], u);
        blend(across(top), across(bottom), v)
    }))
}

/// (1 − w)·a + w·b. A value of weight 0 does not count, even if it is NaN.
fn blend(a: f32, b: f32, weight: f32) -> f32 {
    if weight == 0.0 { a } else { (1.0 - weight) * a + weight * b }
}

/// Rows and columns of a picture whose pixels become blocks.
fn upscaled<T>(image: &ArrayView2<'_, T>, factor: usize) -> Result<(usize, usize)> {
    let (ny, nx) = image.dim();
    if factor == 0 {
        return Err(Error::value("enlargement", "a factor of at least 1", 0));
    }
    let shape = ny.checked_mul(factor).zip(nx.checked_mul(factor));
    shape.filter(|&(h, w)| h.checked_mul(w).is_some_and(|n| n <= isize::MAX as usize / 16)).ok_or_else(|| {
        Error::value(
            "enlargement",
            "a picture that fits the address space",
            format!("[{ny}, {nx}] times {factor}"),
        )
    })
}
