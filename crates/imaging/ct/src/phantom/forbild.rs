//! The FORBILD head.

use rayspin_core::Result;

use super::{Form, Phantom, Solid};

/// mm in the unit of the definition, cm.
const CM: f64 = 10.0;

fn degrees(angle: f64) -> (f64, f64) {
    angle.to_radians().sin_cos()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

impl Phantom {
    /// The FORBILD head with both ears, 479 solids, whose density 1 attenuates by `attenuation` (1/mm; water
    /// at 60 keV has 0.0206). It is 192 mm wide (x), 240 mm long (y) and 250 mm high (z). The front of the
    /// head is at positive y.
    ///
    /// G. Lauritsch, H. Bruder, *FORBILD head phantom*, Institute of Medical Physics, Erlangen; in two
    /// dimensions Z. Yu et al., Phys Med Biol 57:N237, 2012.
    ///
    /// Errors: an attenuation that is not finite.
    pub fn forbild_head(attenuation: f64) -> Result<Self> {
        let solid = |form: Form, centre: [f64; 3], half: [f64; 3], density: f64| {
            Solid::new(form, centre.map(|x| CM * x), half.map(|x| CM * x), density * attenuation)
        };
        let ellipsoid = |centre, half, density| solid(Form::Ellipsoid, centre, half, density);
        let sphere = |centre, radius: f64, density| ellipsoid(centre, [radius; 3], density);
        let turned = |mut solid: Solid, x: [f64; 3], z: [f64; 3]| {
            solid.axes = [x, cross(z, x), z];
            solid
        };
        let (upright, (s15, c15), (s30, c30)) = ([0.0, 0.0, 1.0], degrees(15.0), degrees(30.0));
        let mut solids = vec![
            ellipsoid([0.0; 3], [9.6, 12.0, 12.5], 1.8),
            ellipsoid([0.0; 3], [9.0, 11.4, 11.9], 1.05),
            ellipsoid([0.0, -3.6, 0.0], [1.8, 3.6, 3.6], 1.045),
            ellipsoid([0.0, 8.4, 0.0], [1.8, 3.0, 3.0], 0.0),
            sphere([-4.7, 4.3, 0.872], 2.0, 1.06),
            sphere([4.7, 4.3, 0.872], 2.0, 1.06),
            sphere([-1.08, -9.0, 0.0], 0.4, 1.0525),
            sphere([1.08, -9.0, 0.0], 0.4, 1.0475),
        ];
        // Bones between the eyes and at the forehead: cylinders whose axis of half length c is given, and
        // then the axis of b.
        for (centre, half, axis, b) in [
            ([0.0, 3.6, 0.0], [1.2, 4.0, 0.25 * c15], [0.0, -c30, s30], [0.0, s30, c30]),
            ([0.0, 9.6, 0.0], [0.525561, 2.0, 0.2], [1.0, 0.0, 0.0], [0.0, -s30, c30]),
        ] {
            solids.push(turned(solid(Form::Cylinder, centre, half, 1.8), cross(b, axis), axis));
        }
        for (sign, angle, half) in
            [(-1.0, 120.0, [1.206483 * c15, 0.420276 * c15, 3.0]), (1.0, 60.0, [1.2 * c15, 0.42 * c15, 3.0])]
        {
            let (sin, cos) = degrees(angle);
            let (z, x) = ([-sign * s15, 0.0, c15], [c15 * cos, sin, sign * s15 * cos]);
            // The axes of the definition are at right angles to four digits.
            let along: f64 = (0..3).map(|axis| x[axis] * z[axis]).sum();
            let x: [f64; 3] = std::array::from_fn(|axis| x[axis] - along * z[axis]);
            let length = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            solids.push(turned(ellipsoid([sign * 1.9, 5.4, 0.0], half, 1.8), x.map(|v| v / length), z));
        }
        for (x, angle) in [(-4.3, 150.0), (4.3, 30.0)] {
            let (sin, cos) = degrees(angle);
            let bone = solid(Form::Cylinder, [x, 6.8, -1.0], [1.8, 0.24, 2.0], 1.8);
            solids.push(turned(bone, [cos, sin, 0.0], upright));
        }
        let (sin, cos) = degrees(58.1);
        solids.push(turned(
            ellipsoid([6.393945, -6.393945, 0.0], [1.2, 0.42, 1.2], 1.055),
            [cos, sin, 0.0],
            upright,
        ));
        // The cones narrow from 0.5 to 0.2 along y.
        for z in [-0.2, 0.2] {
            let cone = solid(Form::Cone(0.4), [0.0, -11.15, z], [0.5, 0.5, 0.75], 1.8);
            solids.push(turned(cone, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]));
        }
        solids.push(ellipsoid([9.1, 0.0, 0.0], [4.2, 1.8, 1.8], 1.8).cut([1.0, 0.0, 0.0], CM * 9.1));
        solids.extend(bubbles().into_iter().map(|centre| sphere(centre, 0.15, 0.0)));
        solids.extend(pattern().into_iter().map(|(centre, half)| ellipsoid(centre, half, 1.8)));
        Self::replacing(solids)
    }
}

/// The first bubble of each row of the right ear and their number, by the distance of its layer and row from
/// the middle.
const ROWS: [[(f64, usize); 4]; 4] = [
    [(8.8, 9), (8.6, 8), (8.8, 8), (8.6, 6)],
    [(8.6, 8), (8.8, 8), (8.6, 7), (8.8, 6)],
    [(8.8, 8), (8.6, 7), (8.8, 7), (8.6, 5)],
    [(8.6, 6), (8.8, 6), (8.6, 5), (8.8, 4)],
];

fn bubbles() -> Vec<[f64; 3]> {
    let height = 0.2 * 3f64.sqrt();
    let mut centres = Vec::new();
    for layer in -3i32..=3 {
        for row in -3i32..=3 {
            let (first, count) = ROWS[layer.unsigned_abs() as usize][row.unsigned_abs() as usize];
            let (y, z) = (f64::from(row) * height, f64::from(layer) * height);
            centres.extend((0..count).map(|step| [first - 0.4 * step as f64, y, z]));
        }
    }
    centres
}

/// Centres and half axes of the resolution pattern of the left ear.
fn pattern() -> Vec<([f64; 3], [f64; 3])> {
    let (widths, heights) = ([0.0357, 0.0312, 0.0278, 0.025], [0.4, 0.2, 0.1, 0.05]);
    let mut parts = Vec::new();
    for (i, width) in widths.into_iter().enumerate() {
        for (j, height) in heights.into_iter().enumerate() {
            let (x, y) = (-7.0 + 2.0 * i as f64 * 0.04, -1.0 + 12.0 * j as f64 * 0.04);
            let half = [0.5 * width, 0.5 * width, 0.5 * height];
            parts.extend((0..5).map(|m| ([x, y + 2.0 * f64::from(m) * width, 0.0], half)));
            parts.extend((1..5).map(|m| ([x, y, 2.0 * f64::from(m) * height], half)));
        }
    }
    parts
}
