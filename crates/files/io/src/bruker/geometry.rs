//! Where slices lie.
//!
//! Rows r, p and s of `ACQ_grad_matrix` are the directions of read, phase and slice. With d = P r and so on,
//! patient coordinates (LPS) of an image have
//!
//! ```text
//! x = −d_r,   y = −d_p,   centre = P (o_r r + o_p p + o_s s)
//! P = diag(−1, −1, 1),   P = diag(−1, −1, 1) M in ParaVision 360
//! ```
//!
//! o are offsets, and M takes the magnet's axes to the subject's: ParaVision 360 states the matrix for the
//! magnet, and older versions for the subject, whatever its position. Signs agree with `visu_pars` of real
//! scans. Where `visu_pars` is there, it holds: the axes of its images are x and y, or y and x of transposed
//! images, and their pixel n/2 is the centre.

use rayspin_scan::mri::SlicePlace;

use super::folder::{Folder, Version};
use super::jcamp::MOST;
use super::order::Objects;
use crate::Result;

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Slices at most.
const MOST_SLICES: usize = 65_535;
/// From this distance on, mm, a note tells that `visu_pars` lies elsewhere than `acqp` says.
const APART: f64 = 0.01;

/// Offsets of the field of view along read, phase and slice, mm.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Offsets {
    pub(super) read: f64,
    pub(super) phase: f64,
    /// Along the second phase encoding of a volume.
    pub(super) partition: f64,
    pub(super) slice: f64,
}

/// Offsets of each slice. Errors: numbers that cannot be read.
pub(super) fn offsets(folder: &Folder, slices: usize) -> Result<Vec<Offsets>> {
    let of_slices = |name: &str| {
        let own = folder.acqp.numbers(name, MOST_SLICES)?.unwrap_or_default();
        let last = own.last().copied().unwrap_or(0.0);
        let each = (0..slices).map(move |slice| own.get(slice).copied().unwrap_or(last));
        Ok::<Vec<f64>, crate::Error>(each.collect())
    };
    let [read, phase, partition, slice] =
        ["ACQ_read_offset", "ACQ_phase1_offset", "ACQ_phase2_offset", "ACQ_slice_offset"].map(of_slices);
    let (read, phase, partition, slice) = (read?, phase?, partition?, slice?);
    let effective = folder.method.numbers("PVM_EffPhase2Offset", MOST_SLICES)?;
    let partition = effective.filter(|own| own.len() == slices).unwrap_or(partition);
    let each = read.into_iter().zip(phase).zip(partition.into_iter().zip(slice));
    Ok(each.map(|((read, phase), (partition, slice))| Offsets { read, phase, partition, slice }).collect())
}

/// The places of slices. `shifted` tells whether the samples are for a field of view that is shifted in its
/// plane.
///
/// Errors: directions that are absent or not three for each slice.
pub(super) fn places(
    folder: &Folder,
    objects: &Objects,
    offsets: &[Offsets],
    shifted: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<SlicePlace>> {
    let volume = folder.dims()? == 3;
    let matrices = matrices(folder, objects)?;
    let to_patient = to_patient(folder)?;
    let visu = Visu::of(folder)?;
    let mut places = Vec::with_capacity(objects.slices);
    let mut farthest = 0.0f64;
    for (slice, offsets) in offsets.iter().enumerate().take(objects.slices) {
        let rows = matrices.get(slice).or(matrices.first()).copied().unwrap_or_default();
        let rows = rows.map(|row| apply(to_patient, row));
        let shift = |along: f64, row: Vector| row.map(|part| if shifted { along * part } else { 0.0 });
        let depth = if volume { offsets.partition } else { offsets.slice };
        let in_plane = add(shift(offsets.read, rows[0]), shift(offsets.phase, rows[1]));
        let mut centre = add(in_plane, rows[2].map(|part| depth * part));
        let [mut read, mut phase, slice_row] = rows.map(|row| row.map(|part| 0.0 - part));
        if let Some(seen) = visu.as_ref().and_then(|visu| visu.slice(objects, slice, slice_row)) {
            let [own_read, own_phase] = [read, phase].map(|axis| seen.nearest(axis));
            let off = norm(sub(seen.centre, centre));
            let turned = norm(sub(own_read, read)).max(norm(sub(own_phase, phase)));
            if shifted {
                farthest = farthest.max(if turned > 1e-3 { f64::INFINITY } else { off });
                centre = seen.centre;
            }
            (read, phase) = (own_read, own_phase);
        }
        let across = cross(read, phase);
        // Partitions run along the third axis of a volume, whichever hand that makes.
        let third = match volume && dot(across, slice_row) < 0.0 {
            true => across.map(|part| 0.0 - part),
            false => across,
        };
        let single = |vector: Vector| vector.map(|part| part as f32);
        places.push(SlicePlace {
            position: single(centre),
            directions: [single(read), single(phase), single(third)],
        });
    }
    if farthest == f64::INFINITY {
        notes.push("visu_pars states other directions than acqp, and holds".into());
    } else if farthest > APART {
        notes.push(format!("visu_pars places slices {farthest:.2} mm from where acqp does, and holds"));
    }
    Ok(places)
}

/// The rows of each slice's matrix, by the slice's number: the file has them as slices were acquired.
fn matrices(folder: &Folder, objects: &Objects) -> Result<Vec<Matrix>> {
    let acqp = &folder.acqp;
    let name = if acqp.has("ACQ_GradientMatrix") { "ACQ_GradientMatrix" } else { "ACQ_grad_matrix" };
    let numbers = acqp.numbers(name, 9 * MOST_SLICES)?.unwrap_or_default();
    if numbers.is_empty() || numbers.len() % 9 != 0 {
        let expected = "three rows of three numbers for each slice";
        return Err(acqp.field(name, expected, format!("{} numbers", numbers.len())));
    }
    let as_acquired: Vec<Matrix> = numbers
        .chunks_exact(9)
        .map(|own| std::array::from_fn(|row| std::array::from_fn(|column| own[3 * row + column])))
        .collect();
    let sound = |rows: &Matrix| {
        (0..3).all(|a| (0..3).all(|b| (dot(rows[a], rows[b]) - f64::from(u8::from(a == b))).abs() < 1e-3))
    };
    if let Some(index) = as_acquired.iter().position(|rows| !sound(rows)) {
        return Err(acqp.field(
            name,
            "three orthonormal rows in each matrix",
            format!("others in matrix {index}"),
        ));
    }
    let mut of_slices = as_acquired.clone();
    if as_acquired.len() == objects.slices {
        for (rows, slice) in as_acquired.iter().zip(&objects.slice_order) {
            if let Some(own) = of_slices.get_mut(*slice) {
                *own = *rows;
            }
        }
    }
    Ok(of_slices)
}

/// Takes directions of the file to patient coordinates.
fn to_patient(folder: &Folder) -> Result<Matrix> {
    let subject: Matrix = [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]];
    if folder.version != Version::ThreeSixty {
        return Ok(subject);
    }
    let magnet: Matrix = match folder.acqp.word("ACQ_patient_pos") {
        "Head_Supine" => [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]],
        "Head_Prone" => [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]],
        "Head_Left" => [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]],
        "Head_Right" => [[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]],
        "Foot_Supine" => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        "Foot_Prone" => [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]],
        "Foot_Left" => [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        "Foot_Right" => [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        other => {
            let expected = "Head_ or Foot_ and Supine, Prone, Left or Right";
            return Err(folder.acqp.field(
                "ACQ_patient_pos",
                expected,
                if other.is_empty() { "nothing" } else { other },
            ));
        }
    };
    Ok(std::array::from_fn(|row| {
        std::array::from_fn(|column| (0..3).map(|inner| subject[row][inner] * magnet[inner][column]).sum())
    }))
}

/// What `visu_pars` says of an image.
struct Seen {
    /// Directions of its axes, LPS.
    axes: Vec<Vector>,
    /// Its pixel n/2, LPS mm.
    centre: Vector,
}

impl Seen {
    /// The axis that is nearest to a direction or to the opposite one: transposed images have others first.
    fn nearest(&self, direction: Vector) -> Vector {
        let along = |axis: &&Vector| dot(**axis, direction).abs();
        self.axes.iter().max_by(|a, b| along(a).total_cmp(&along(b))).copied().unwrap_or(direction)
    }
}

/// What `visu_pars` says of all images.
struct Visu {
    orientation: Vec<f64>,
    position: Vec<f64>,
    extent: Vec<f64>,
    size: Vec<usize>,
}

impl Visu {
    /// None where a parameter is absent. Errors: numbers that cannot be read.
    fn of(folder: &Folder) -> Result<Option<Self>> {
        let Some(visu) = &folder.visu else { return Ok(None) };
        let [orientation, position, extent] = ["VisuCoreOrientation", "VisuCorePosition", "VisuCoreExtent"]
            .map(|name| visu.numbers(name, MOST));
        let (Some(orientation), Some(position), Some(extent)) = (orientation?, position?, extent?) else {
            return Ok(None);
        };
        let size = visu.counts("VisuCoreSize")?;
        Ok(size.map(|size| Self { orientation, position, extent, size }))
    }

    /// A slice, whose partitions run along `across`. None where these are other images.
    fn slice(&self, objects: &Objects, slice: usize, across: Vector) -> Option<Seen> {
        let chosen = |images: usize| match images {
            1 => Some(0),
            _ if images == objects.slices => Some(slice),
            _ => Some(objects.frame_of_slice(slice)).filter(|image| *image < images),
        };
        // One position does not serve several slices.
        if objects.slices > 1 && self.position.len() == 3 {
            return None;
        }
        let (turn, place) = (chosen(self.orientation.len() / 9)?, chosen(self.position.len() / 3)?);
        let turn = self.orientation.get(9 * turn..9 * turn + 9)?;
        let place = self.position.get(3 * place..3 * place + 3)?;
        let axes: Matrix = std::array::from_fn(|row| std::array::from_fn(|column| turn[3 * row + column]));
        let mut centre: Vector = std::array::from_fn(|axis| place[axis]);
        for (index, (axis, (n, length))) in axes.iter().zip(self.size.iter().zip(&self.extent)).enumerate() {
            // Partitions may be stored from the other end.
            let backwards = index == 2 && dot(*axis, across) < 0.0;
            let pixel = if backwards { n.saturating_sub(1 + n / 2) } else { n / 2 };
            let half = pixel as f64 * length / (*n).max(1) as f64;
            centre = add(centre, axis.map(|part| half * part));
        }
        let axes = axes.iter().take(self.size.len().clamp(2, 3)).copied().collect();
        Some(Seen { axes, centre })
    }
}

fn apply(matrix: Matrix, vector: Vector) -> Vector {
    matrix.map(|row| dot(row, vector))
}

fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

fn add(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

fn sub(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}
