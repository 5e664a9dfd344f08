//! What was encoded along each axis, and the shift of images along both phase encodings.

use super::folder::Folder;
use super::geometry::Offsets;
use super::jcamp;
use super::order::Objects;
use crate::{Error, Result};

/// Places of k-space along an axis at most.
pub(super) const MOST: usize = 65_535;

/// What was encoded along an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// Places of k-space, and the one in the centre.
    pub(super) places: usize,
    pub(super) centre: usize,
    /// Voxels of the image.
    pub(super) voxels: usize,
    pub(super) fov_mm: f64,
    pub(super) encoded_fov_mm: f64,
}

/// What the parameters say of each axis.
pub(super) fn axes(folder: &Folder, dims: usize) -> Result<[Axis; 3]> {
    let method = &folder.method;
    let (voxels, fov) = (folder.lengths("PVM_Matrix", dims)?, folder.lengths("PVM_Fov", dims)?);
    let wider = method.numbers("PVM_AntiAlias", 16)?.unwrap_or_default();
    let filled = match method.numbers("PVM_EncZf", 16)? {
        Some(filled) => filled,
        None => {
            let of = |name: &str| Ok::<f64, Error>(method.number(name)?.unwrap_or(1.0));
            vec![of("PVM_EncZfRead")?, of("PVM_EncZfAccel1")?, of("PVM_EncZfAccel2")?]
        }
    };
    let thickness = method.number("PVM_SliceThick")?.filter(|length| *length > 0.0);
    let mut axes = [Axis { places: 1, centre: 0, voxels: 1, fov_mm: 1.0, encoded_fov_mm: 1.0 }; 3];
    axes[2].fov_mm = thickness.unwrap_or(1.0);
    axes[2].encoded_fov_mm = axes[2].fov_mm;
    for (axis, own) in axes.iter_mut().enumerate().take(dims) {
        let factor = |list: &[f64]| {
            list.get(axis).copied().filter(|factor| (1.0..=32.0).contains(factor)).unwrap_or(1.0)
        };
        let wide = factor(&wider);
        if voxels[axis].fract() != 0.0 || voxels[axis] * wide > MOST as f64 {
            return Err(method.field("PVM_Matrix", format!("whole numbers up to {MOST}"), voxels[axis]));
        }
        let whole = (voxels[axis] * wide).round();
        let left = 2.0 * ((whole - whole / factor(&filled)) / 2.0).floor();
        let places = ((whole - left) as usize).max(1);
        *own = Axis {
            places,
            centre: places / 2,
            voxels: voxels[axis] as usize,
            fov_mm: fov[axis],
            encoded_fov_mm: fov[axis] * wide,
        };
    }
    Ok(axes)
}

/// Makes room for all steps.
pub(super) fn fit_lines(axes: &mut [Axis; 3], steps: &[[i32; 2]]) {
    for (index, own) in axes.iter_mut().skip(1).enumerate() {
        let steps = || steps.iter().map(|step| step[index]);
        let (least, most) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
        let needed =
            (2 * least.min(0).unsigned_abs()).max(2 * most.max(0).unsigned_abs() + u32::from(most > 0));
        if needed as usize > own.places {
            own.places = needed as usize;
            own.centre = own.places / 2;
        }
    }
}

/// By how much of the encoded field of view images are shifted along both phase encodings, for each object.
///
/// The scanner's own reconstruction shifts by `RECO_rotate`, which may be rounded to whole pixels, beside the
/// half that its Fourier transform needs.
pub(super) fn shifts(
    folder: &Folder,
    objects: &Objects,
    offsets: &[Offsets],
    axes: &[Axis; 3],
    notes: &mut Vec<String>,
) -> Result<Vec<[f64; 2]>> {
    let rotate = match &folder.reco {
        Some(reco) => reco.numbers("RECO_rotate", jcamp::MOST)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let dims = folder.dims()?;
    let count = objects.order.len();
    let of_object = |axis: usize, object: usize| {
        let each = rotate.len() / dims;
        let index = if each == count { object } else { 0 };
        (axis < dims && each > 0 && rotate.len() % dims == 0).then(|| rotate[axis * each + index])
    };
    let mut farthest = 0.0f64;
    let mut shifts = Vec::with_capacity(count);
    for object in 0..count {
        let slice = usize::from(objects.counters(object, 0).slice);
        let own = offsets.get(slice).copied().unwrap_or_default();
        let wanted = [own.phase, if dims == 3 { own.partition } else { 0.0 }];
        let mut shift = [0.0; 2];
        for (index, (own, millimetres)) in shift.iter_mut().zip(wanted).enumerate() {
            let axis = axes[index + 1];
            let exact = millimetres / axis.encoded_fov_mm;
            let scanner = of_object(index + 1, object).map(|rotate| {
                let halves = 2.0 * (rotate - exact);
                rotate - halves.round() / 2.0
            });
            let within = |shift: &f64| (shift - exact).abs() <= 1.0 / axis.places.max(1) as f64;
            *own = scanner.filter(within).unwrap_or(exact);
            farthest = farthest.max((*own - exact).abs() * axis.encoded_fov_mm);
        }
        shifts.push(shift);
    }
    if farthest > 1e-3 {
        notes.push(format!(
            "images are shifted along the phase encoding as the scanner's own are (RECO_rotate), which is {farthest:.2} mm off the \
             stated offset"
        ));
    }
    Ok(shifts)
}
