//! Where a slice lies: from the head of a readout, else from the protocol.
//!
//! Siemens' frame has the directions of phase encoding P, readout R and slice S, with P × R = S. Heads state
//! it as a quaternion, protocols as the normal S and an angle about it. Siemens' samples are
//!
//! ```text
//! d(k) = ∫ ρ(x) e^{+i2πk·x} dx
//! ```
//!
//! in this frame. With the other sign, which ISMRMRD and Rayspin have, all three directions are opposite:
//! images have x along −R, y along −P and z along −S. Scans of phantoms show it by bubbles, which rise.

use super::text::Texts;

type Vector = [f64; 3];

/// How far the length of a quaternion or a normal may be from 1.
const TOLERANCE: f64 = 1e-2;

/// A slice's centre, and the directions of read, phase and slice of its image, LPS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slice {
    pub(super) position: [f32; 3],
    pub(super) directions: [[f32; 3]; 3],
}

/// The directions that a head states, scalar first; none where it states none.
pub(super) fn of_quaternion(quaternion: [f32; 4]) -> Option<[[f32; 3]; 3]> {
    let [w, x, y, z] = quaternion.map(f64::from);
    let length = (w * w + x * x + y * y + z * z).sqrt();
    if !is_one(length) {
        return None;
    }
    let [w, x, y, z] = [w, x, y, z].map(|part| part / length);
    let phase = [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)];
    let read = [2.0 * (x * y - z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + x * w)];
    let slice = [2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)];
    Some(of_image(read, phase, slice))
}

/// Whether a vector of this length is a unit vector, to the accuracy of files.
fn is_one(length: f64) -> bool {
    (length - 1.0).abs() < TOLERANCE
}

/// The directions of the image, of Siemens' frame.
fn of_image(read: Vector, phase: Vector, slice: Vector) -> [[f32; 3]; 3] {
    // Without negative zeros, which only disturb readers.
    [read, phase, slice].map(|axis| axis.map(|part| if part == 0.0 { 0.0 } else { -part as f32 }))
}

/// A slice of the protocol; none where it states no normal.
pub(super) fn of_protocol(texts: &Texts, slice: u16) -> Option<Slice> {
    let number = |name: &str| texts.number(&format!("sSliceArray.asSlice[{slice}].{name}"));
    let vector =
        |name: &str| ["dSag", "dCor", "dTra"].map(|axis| number(&format!("{name}.{axis}")).unwrap_or(0.0));
    let normal = vector("sNormal");
    let length = dot(normal, normal).sqrt();
    if !is_one(length) {
        return None;
    }
    let normal = normal.map(|part| part / length);
    let (read, phase) = turned(normal, number("dInPlaneRot").unwrap_or(0.0));
    let position = vector("sPosition").map(|part| part as f32);
    Some(Slice { position, directions: of_image(read, phase, normal) })
}

/// Readout and phase encoding of a slice with this normal that is turned by an angle about it.
fn turned(normal: Vector, angle: f64) -> (Vector, Vector) {
    let [sag, cor, tra] = normal.map(f64::abs);
    // A slice between two directions counts as the later of sagittal, coronal and transversal.
    let reaches = |a: f64, b: f64| a > b || (a - b).abs() <= 1e-5 * b;
    let [x, y, z] = normal;
    let phase = if reaches(tra, sag) && reaches(tra, cor) {
        let length = (y * y + z * z).sqrt();
        [0.0, z / length, -y / length]
    } else {
        let length = (x * x + y * y).sqrt();
        match reaches(cor, sag) {
            true => [y / length, -x / length, 0.0],
            false => [-y / length, x / length, 0.0],
        }
    };
    let read = cross(normal, phase);
    let (sin, cos) = angle.sin_cos();
    let phase: Vector = std::array::from_fn(|axis| cos * phase[axis] - sin * read[axis]);
    (cross(normal, phase), phase)
}

fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_a_transversal_slice_run_against_the_gradients() {
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let directions = of_quaternion([half, 0.0, 0.0, half]).unwrap_or_default();
        let wanted = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]];
        let off = directions
            .as_flattened()
            .iter()
            .zip(wanted.as_flattened())
            .map(|(a, b): (&f32, &f32)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 1e-6, "{directions:?}");
        assert!(of_quaternion([0.0; 4]).is_none() && of_quaternion([f32::NAN; 4]).is_none());
        assert!(of_quaternion([2.0, 0.0, 0.0, 0.0]).is_none());
    }

    #[test]
    fn protocols_tell_the_same_as_heads() {
        // Of a gradient echo of VE11, from its head and from its protocol.
        let head =
            of_quaternion([0.706_976_5, -0.013_574_637, 0.013_574_64, 0.706_976_5]).unwrap_or_default();
        let normal = [6.584_230_05e-9, 0.038_387_801_5, 0.999_262_988_6];
        let (read, phase) = turned(normal, 0.0);
        let protocol = of_image(read, phase, normal);
        let off = head.as_flattened().iter().zip(protocol.as_flattened()).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 1e-6, "{head:?} {protocol:?}");
        for (normal, wanted) in [
            ([0.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
            ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
            ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
        ] {
            let (read, phase) = turned(normal, 0.0);
            assert_eq!(phase, wanted);
            assert_eq!(cross(phase, read), normal);
            // A quarter of a turn makes the phase encoding a readout.
            let (_, quarter) = turned(normal, -std::f64::consts::FRAC_PI_2);
            assert!(dot(quarter, read) > 0.999_999, "{quarter:?}");
        }
    }
}
