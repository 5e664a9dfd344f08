//! Geometry from `sform` and `qform`, and the quaternion of a geometry.

use std::path::Path;

use nifti::NiftiHeader;
use rayspin_core::Geometry;
use rayspin_core::vector::norm;

use crate::{Error, Result};

type Affine = [[f64; 4]; 3];

pub(super) fn geometry(
    path: &Path,
    raw: &NiftiHeader,
    shape_zyx: [usize; 3],
) -> Result<(Geometry, Vec<String>)> {
    let mut notes = Vec::new();
    let to_mm = units(raw, &mut notes);
    let scaled = |affine: Affine| affine.map(|row| row.map(|v| v * to_mm));
    let parse = |affine: Affine| Geometry::from_affine_ras(scaled(affine), shape_zyx);

    let refused = if raw.sform_code > 0 {
        match parse(sform(raw)) {
            Ok(geometry) => {
                notes.extend(other_place(path, raw, &geometry, shape_zyx, to_mm));
                return Ok((geometry, notes));
            }
            Err(error) => Some(error),
        }
    } else {
        None
    };
    if raw.qform_code > 0 {
        let spacing = spacing(path, raw, &mut notes)?;
        let geometry = parse(qform(path, raw, spacing)?)
            .map_err(|e| Error::field(path, "qform", "an affine with orthogonal axes", e))?;
        if refused.is_some() {
            notes.push("sform is sheared or singular: the geometry is that of qform".into());
        }
        return Ok((geometry, notes));
    }
    if refused.is_some() {
        return Err(Error::field(path, "sform", "orthogonal columns", format!("{:?}", sform(raw)))
            .with_hint("resample the image on a grid without shear"));
    }
    let spacing_mm = spacing(path, raw, &mut notes)?.map(|s| s * to_mm);
    notes.push("the file states no orientation (qform_code and sform_code are 0): axes are taken as left, posterior, superior".into());
    let geometry = Geometry { spacing_mm, ..Geometry::default() };
    Ok((geometry, notes))
}

/// Says how far the corners of the image by `qform` are from those by `sform`, where this is more than a
/// tenth of a voxel.
fn other_place(
    path: &Path,
    raw: &NiftiHeader,
    taken: &Geometry,
    shape_zyx: [usize; 3],
    to_mm: f64,
) -> Option<String> {
    let spacing = (raw.qform_code > 0).then(|| spacing(path, raw, &mut Vec::new()).ok())??;
    let other = qform(path, raw, spacing).ok()?;
    let taken_at = taken.affine_ras(shape_zyx);
    let corners = (0..8).map(|corner| {
        let index = |axis: usize| if corner >> axis & 1 == 1 { shape_zyx[2 - axis] as f64 } else { 0.0 };
        let off = |row: usize| {
            let along = (0..3).map(|axis| (other[row][axis] * to_mm - taken_at[row][axis]) * index(axis));
            along.sum::<f64>() + other[row][3] * to_mm - taken_at[row][3]
        };
        norm([off(0), off(1), off(2)])
    });
    let most = corners.fold(0.0, f64::max);
    let least = taken.spacing_mm.iter().copied().fold(f64::MAX, f64::min);
    (most > 0.1 * least)
        .then(|| format!("sform and qform place the image up to {most:.2} mm apart: sform is taken"))
}

/// Factor from the file's unit of length to mm.
fn units(raw: &NiftiHeader, notes: &mut Vec<String>) -> f64 {
    match raw.xyzt_units & 7 {
        1 => {
            notes.push("lengths are in metres in the file".into());
            1e3
        }
        3 => {
            notes.push("lengths are in micrometres in the file".into());
            1e-3
        }
        2 => 1.0,
        _ => {
            notes.push("the file states no unit of length: mm is assumed".into());
            1.0
        }
    }
}

fn sform(raw: &NiftiHeader) -> Affine {
    [raw.srow_x, raw.srow_y, raw.srow_z].map(|row| row.map(f64::from))
}

fn spacing(path: &Path, raw: &NiftiHeader, notes: &mut Vec<String>) -> Result<[f64; 3]> {
    let mut spacing = [1.0; 3];
    for (axis, to) in spacing.iter_mut().enumerate() {
        let stated = f64::from(raw.pixdim[axis + 1]);
        if !stated.is_finite() {
            return Err(Error::field(path, "pixdim", "finite voxel sizes", stated));
        }
        if stated == 0.0 {
            notes.push(format!("pixdim[{}] is 0: a voxel size of 1 is assumed", axis + 1));
        } else {
            *to = stated.abs();
        }
    }
    Ok(spacing)
}

/// The affine of the quaternion b, c, d (a ≥ 0 completes it to unit length), voxel sizes, and qfac =
/// pixdim[0], which turns the third axis when it is negative.
fn qform(path: &Path, raw: &NiftiHeader, spacing: [f64; 3]) -> Result<Affine> {
    let [mut b, mut c, mut d] = [raw.quatern_b, raw.quatern_c, raw.quatern_d].map(f64::from);
    let squares = b * b + c * c + d * d;
    if squares.is_nan() || squares > 1.0 + 1e-4 {
        let found = format!("({b}, {c}, {d})");
        return Err(Error::field(path, "quatern_b, _c, _d", "part of a unit quaternion", found));
    }
    if squares > 1.0 {
        let norm = squares.sqrt();
        (b, c, d) = (b / norm, c / norm, d / norm);
    }
    let a = (1.0 - squares).max(0.0).sqrt();
    let rotation = [
        [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
        [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b)],
        [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - b * b - c * c],
    ];
    let qfac = if raw.pixdim[0] < 0.0 { -1.0 } else { 1.0 };
    let scale = [spacing[0], spacing[1], spacing[2] * qfac];
    let offset = [raw.quatern_x, raw.quatern_y, raw.quatern_z].map(f64::from);
    Ok(std::array::from_fn(|row| {
        [rotation[row][0] * scale[0], rotation[row][1] * scale[1], rotation[row][2] * scale[2], offset[row]]
    }))
}

/// Components b, c, d of the unit quaternion (a ≥ 0) of an affine's rotation, and qfac: −1 when the axes are
/// left-handed.
///
/// The component of largest magnitude is found first, from the diagonal, and the others from it, which loses
/// no accuracy near half turns.
pub(super) fn quaternion(affine: Affine, spacing: [f64; 3]) -> ([f64; 3], f32) {
    let mut r: [[f64; 3]; 3] =
        std::array::from_fn(|row| std::array::from_fn(|axis| affine[row][axis] / spacing[axis]));
    let determinant = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1])
        - r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0])
        + r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
    let qfac = if determinant < 0.0 { -1.0 } else { 1.0 };
    for row in &mut r {
        row[2] *= qfac;
    }
    // Four times the products of component i with a, b, c, d, for each i.
    let diagonal = [r[0][0], r[1][1], r[2][2]];
    let trace: f64 = diagonal.iter().sum();
    let (ab, ac, ad) = (r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]);
    let (bc, bd, cd) = (r[0][1] + r[1][0], r[0][2] + r[2][0], r[1][2] + r[2][1]);
    let products = [
        [1.0 + trace, ab, ac, ad],
        [ab, 1.0 + 2.0 * diagonal[0] - trace, bc, bd],
        [ac, bc, 1.0 + 2.0 * diagonal[1] - trace, cd],
        [ad, bd, cd, 1.0 + 2.0 * diagonal[2] - trace],
    ];
    let largest = (0..4).max_by(|&i, &j| products[i][i].total_cmp(&products[j][j])).unwrap_or(0);
    let row = products[largest];
    let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
    let sign = if row[0] < 0.0 { -1.0 } else { 1.0 };
    ([row[1], row[2], row[3]].map(|v| sign * v / norm), qfac as f32)
}
