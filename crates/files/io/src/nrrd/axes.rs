//! What the axes of the numbers stand for, and where the image lies.
//!
//! The voxel at (i, j, k) lies at `space origin` + i·x + j·y + k·z, where x, y and z are the `space
//! directions` of the three axes of space.

use std::path::Path;

use rayspin_core::Geometry;

use super::header::Header;
use crate::{Error, Result};

/// The axes of an image.
pub(super) struct Axes {
    /// The sizes of the axes of space and of repetitions, the slowest first.
    pub(super) shape: Vec<usize>,
    /// The axis of `shape` along which repetitions lie.
    pub(super) repetitions: Option<usize>,
    /// Whether two numbers are one complex one.
    pub(super) is_complex: bool,
    pub(super) geometry: Geometry,
    /// The time between repetitions, where it is stated with its unit.
    pub(super) step_s: Option<f64>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Space,
    Repetitions,
    Complex,
    /// An axis of one entry.
    Idle,
}

/// The space in which an image lies.
struct Space {
    /// The signs that make LPS of its coordinates.
    signs: [f64; 3],
    /// 2 to 4, the last one time; 0 where the header states no space.
    dimension: usize,
    /// What makes mm of each coordinate.
    to_mm: [f64; 3],
    /// What makes s of the fourth coordinate.
    to_s: Option<f64>,
}

pub(super) fn axes(path: &Path, header: &Header) -> Result<Axes> {
    let sizes = header.sizes(path)?;
    let count = sizes.len();
    let mut notes = Vec::new();
    let space = space(path, header, &mut notes)?;
    let stated = match space.dimension {
        0 => None,
        dimension => header.vectors(path, "space directions", count, dimension)?,
    };
    let kinds = header.words(path, "kinds", count)?;
    let mut roles = Vec::with_capacity(count);
    for (axis, &size) in sizes.iter().enumerate() {
        let kind = kinds.get(axis).map(|kind| kind.to_ascii_lowercase()).unwrap_or_default();
        let direction = stated.as_ref().map(|directions| directions[axis].as_deref());
        roles.push(match (kind.as_str(), direction) {
            ("complex", _) if size == 2 && axis == 0 => Role::Complex,
            ("complex", _) => {
                let expected = "two numbers along the first axis where it is complex";
                return Err(Error::field(path, "kinds", expected, format!("{size} along axis {}", axis + 1)));
            }
            ("list" | "time", _) => Role::Repetitions,
            // The axis of time of a space that has one.
            ("" | "domain" | "space" | "none" | "???", Some(Some(vector))) => {
                match vector.len() == 4 && vector[..3] == [0.0; 3] {
                    true => Role::Repetitions,
                    false => Role::Space,
                }
            }
            ("" | "domain" | "space" | "none" | "???", None) => Role::Space,
            _ if size == 1 => Role::Idle,
            ("" | "domain" | "space" | "none" | "???", Some(None)) => {
                notes.push(format!(
                    "axis {} of {size} has no direction in space: its entries are taken as repetitions",
                    axis + 1
                ));
                Role::Repetitions
            }
            _ => {
                let expected = "domain, space, list, time, or complex";
                return Err(Error::field(path, "kinds", expected, kind)
                    .with_hint("write each channel as an image of its own"));
            }
        });
    }
    settle(path, &sizes, &mut roles)?;
    let of_space: Vec<usize> = (0..count).filter(|&axis| roles[axis] == Role::Space).collect();
    let series = roles.iter().position(|role| *role == Role::Repetitions);
    let step_s = match series {
        Some(axis) => {
            let direction = stated.as_ref().and_then(|directions| directions[axis].as_ref());
            step(path, header, count, axis, &space, direction)?
        }
        None => None,
    };
    let spatial = SpatialAxes { path, header, sizes: &sizes, axes: &of_space, space: &space };
    let geometry = spatial.geometry(stated.as_deref(), &mut notes)?;
    let kept: Vec<usize> =
        (0..count).rev().filter(|&axis| matches!(roles[axis], Role::Space | Role::Repetitions)).collect();
    let is_quantised = ["old min", "old max"].iter().any(|field| header.get(field).is_some());
    notes.extend(is_quantised.then(|| {
        "numbers are read as they are stored: the range that old min and old max state is not applied".into()
    }));
    Ok(Axes {
        shape: kept.iter().map(|&axis| sizes[axis]).collect(),
        repetitions: series.and_then(|series| kept.iter().position(|&axis| axis == series)),
        is_complex: roles[0] == Role::Complex,
        geometry,
        step_s,
        notes,
    })
}

/// Two or three axes of space and at most one of repetitions. Errors: others.
fn settle(path: &Path, sizes: &[usize], roles: &mut [Role]) -> Result<()> {
    let count_of = |roles: &[Role], role: Role| roles.iter().filter(|other| **other == role).count();
    // Repetitions of one entry are none.
    for (role, size) in roles.iter_mut().zip(sizes) {
        if *role == Role::Repetitions && *size == 1 {
            *role = Role::Idle;
        }
    }
    // Without a word on it the fourth axis is time, as in arrays.
    if count_of(roles, Role::Space) == 4
        && count_of(roles, Role::Repetitions) == 0
        && let Some(last) = roles.iter_mut().rev().find(|role| **role == Role::Space)
    {
        *last = Role::Repetitions;
    }
    let (space, series) = (count_of(roles, Role::Space), count_of(roles, Role::Repetitions));
    if !(2..=3).contains(&space) || series > 1 {
        let found = format!("{space} of space and {series} of repetitions (sizes {sizes:?})");
        return Err(Error::field(
            path,
            "kinds",
            "2 or 3 axes of space and at most one of repetitions",
            found,
        )
        .with_hint("split the image along its other axes"));
    }
    Ok(())
}

fn space(path: &Path, header: &Header, notes: &mut Vec<String>) -> Result<Space> {
    let stated = header.get("space dimension");
    let dimension = match stated.map(str::parse::<usize>) {
        None => None,
        Some(Ok(dimension @ 2..=4)) => Some(dimension),
        Some(_) => return Err(Error::field(path, "space dimension", "2 to 4", stated.unwrap_or_default())),
    };
    let name = header.get("space").map(str::to_ascii_lowercase);
    let (signs, dimension) = match name.as_deref() {
        Some(name) => {
            // The same space with time as a fourth coordinate.
            let (base, with_time) = match (name.strip_suffix("-time"), name.strip_suffix('t')) {
                (Some(base), _) => (base, true),
                (_, Some(base)) if base.len() == 3 => (base, true),
                _ => (name, false),
            };
            let signs = match base {
                "left-posterior-superior" | "lps" => [1.0, 1.0, 1.0],
                "right-anterior-superior" | "ras" => [-1.0, -1.0, 1.0],
                "left-anterior-superior" | "las" => [1.0, -1.0, 1.0],
                "scanner-xyz" | "3d-right-handed" | "3d-left-handed" => {
                    let taken = "its axes are taken as left, posterior, superior";
                    notes.push(format!("{base} does not say where the patient lies: {taken}"));
                    [1.0, 1.0, 1.0]
                }
                _ => {
                    let expected = "left-posterior-superior, right-anterior-superior, \
                                    left-anterior-superior or scanner-xyz";
                    return Err(Error::field(path, "space", expected, name));
                }
            };
            (signs, if with_time { 4 } else { 3 })
        }
        None => {
            if dimension.is_some() || header.get("spacings").is_some() {
                let text = "the header names no space: axes are taken as left, posterior, superior";
                notes.push(text.into());
            }
            ([1.0; 3], dimension.unwrap_or(0))
        }
    };
    let units = match dimension {
        0 => Vec::new(),
        _ => header.words(path, "space units", dimension)?,
    };
    let to_mm = std::array::from_fn(|row| units.get(row).map_or(1.0, |unit| length(unit, notes)));
    Ok(Space { signs, dimension, to_mm, to_s: units.get(3).and_then(|unit| time(unit)) })
}

/// What makes mm of a unit.
fn length(unit: &str, notes: &mut Vec<String>) -> f64 {
    let to_mm = match unit.trim().to_ascii_lowercase().as_str() {
        "mm" | "millimeter" | "millimeters" | "millimetre" | "millimetres" | "" | "???" => return 1.0,
        "m" | "meter" | "meters" | "metre" | "metres" => 1e3,
        "cm" => 10.0,
        "um" | "µm" | "μm" | "micron" | "microns" | "micrometer" | "micrometers" => 1e-3,
        "nm" => 1e-6,
        _ => {
            let text = format!("lengths are taken as mm: the unit {unit:?} is none that is known");
            notes.extend((!notes.contains(&text)).then_some(text));
            return 1.0;
        }
    };
    let text = format!("lengths are in {unit} in the file");
    notes.extend((!notes.contains(&text)).then_some(text));
    to_mm
}

/// What makes s of a unit.
fn time(unit: &str) -> Option<f64> {
    match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => Some(1.0),
        "ms" | "millisecond" | "milliseconds" => Some(1e-3),
        "us" | "µs" | "microseconds" => Some(1e-6),
        _ => None,
    }
}

/// The time between repetitions in s, where it is stated with its unit.
fn step(
    path: &Path,
    header: &Header,
    count: usize,
    axis: usize,
    space: &Space,
    direction: Option<&Vec<f64>>,
) -> Result<Option<f64>> {
    let spacing = header.numbers(path, "spacings", count)?.map(|spacings| spacings[axis]);
    let unit = header.words(path, "units", count)?.get(axis).and_then(|unit| time(unit));
    let along = direction.and_then(|vector| vector.get(3).copied());
    let step = spacing.zip(unit).or(along.zip(space.to_s)).map(|(step, to_s)| step * to_s);
    Ok(step.filter(|step| step.is_finite() && *step > 0.0))
}

/// The axes along which an image lies in space.
struct SpatialAxes<'a> {
    path: &'a Path,
    header: &'a Header,
    /// The sizes of all axes of the numbers.
    sizes: &'a [usize],
    /// Which of them are axes of space.
    axes: &'a [usize],
    space: &'a Space,
}

impl SpatialAxes<'_> {
    /// Where the image lies. `stated` are the directions of all axes of the numbers.
    fn geometry(&self, stated: Option<&[Option<Vec<f64>>]>, notes: &mut Vec<String>) -> Result<Geometry> {
        let Self { path, header, sizes, axes, space } = *self;
        let mut columns = [[0.0; 3]; 3];
        let mut origin = [0.0; 3];
        let world = |vector: &[f64]| -> [f64; 3] {
            std::array::from_fn(|row| {
                vector.get(row).map_or(0.0, |v| v * space.signs[row] * space.to_mm[row])
            })
        };
        if let Some(directions) = stated {
            let vectors = axes.iter().filter_map(|&axis| directions[axis].as_deref());
            columns.iter_mut().zip(vectors).for_each(|(column, vector)| *column = world(vector));
        } else {
            let spacings = self.spacings(notes)?;
            for (axis, spacing) in spacings.iter().enumerate() {
                columns[axis][axis] = spacing * space.signs[axis];
            }
            origin = self.first_voxel(&spacings, notes)?;
        }
        if space.dimension > 0 {
            match header
                .vectors(path, "space origin", 1, space.dimension)?
                .and_then(|mut vectors| vectors.pop().flatten())
            {
                Some(vector) => origin = world(&vector),
                None => notes
                    .push("the header states no space origin: the first voxel is taken at 0, 0, 0".into()),
            }
        }
        if axes.len() == 2 {
            // A plane is a slice of 1 mm.
            let [x, y, _] = columns;
            let normal = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
            let length = normal.iter().map(|v| v * v).sum::<f64>().sqrt();
            columns[2] = normal.map(|v| v / length);
        }
        let row = |row: usize| [columns[0][row], columns[1][row], columns[2][row], origin[row]];
        let ras = [row(0).map(|v| -v), row(1).map(|v| -v), row(2)];
        let size = |index: usize| axes.get(index).map_or(1, |&axis| sizes[axis]);
        Geometry::from_affine_ras(ras, [size(2), size(1), size(0)]).map_err(|e| {
            let field = if stated.is_some() { "space directions" } else { "spacings" };
            Error::field(path, field, "three directions that are orthogonal and not zero", e)
                .with_hint("resample the image on a grid without shear")
        })
    }

    /// Voxel sizes in mm, with a sign where an axis runs the other way.
    fn spacings(&self, notes: &mut Vec<String>) -> Result<Vec<f64>> {
        let Self { path, header, sizes, axes, .. } = *self;
        let stated = header.numbers(path, "spacings", sizes.len())?;
        let units = header.words(path, "units", sizes.len())?;
        let mut is_assumed = false;
        let spacings = axes
            .iter()
            .map(|&axis| {
                let spacing = stated.as_ref().map_or(f64::NAN, |spacings| spacings[axis]);
                if spacing == 0.0 {
                    return Err(Error::field(path, "spacings", "a distance other than 0", spacing));
                }
                is_assumed |= spacing.is_nan();
                let to_mm = units.get(axis).map_or(1.0, |unit| length(unit, notes));
                Ok(if spacing.is_nan() { 1.0 } else { spacing * to_mm })
            })
            .collect();
        if is_assumed {
            notes.push("the header states no distance between voxels along each axis: 1 mm is taken".into());
        }
        spacings
    }

    /// The place of the first voxel of an image without directions, from `axis mins`, the places of its edges
    /// or of its centre.
    fn first_voxel(&self, spacings: &[f64], notes: &mut Vec<String>) -> Result<[f64; 3]> {
        let Self { path, header, sizes, axes, space } = *self;
        let mins = header.numbers(path, "axis mins", sizes.len())?;
        let centers = header.words(path, "centers", sizes.len())?;
        let units = header.words(path, "units", sizes.len())?;
        let mut origin = [0.0; 3];
        match mins.filter(|mins| axes.iter().all(|&axis| !mins[axis].is_nan())) {
            Some(mins) => {
                for (row, &axis) in axes.iter().enumerate() {
                    let to_centre =
                        if centers.get(axis).is_some_and(|word| word == "node") { 0.0 } else { 0.5 };
                    let to_mm = units.get(axis).map_or(1.0, |unit| length(unit, notes));
                    origin[row] = space.signs[row] * (mins[axis] * to_mm + to_centre * spacings[row]);
                }
            }
            None if space.dimension == 0 => {
                notes.push("the header states no place: the first voxel is taken at 0, 0, 0".into());
            }
            None => {}
        }
        Ok(origin)
    }
}
