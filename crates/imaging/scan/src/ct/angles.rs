//! Angles that no scan can have.

use std::f64::consts::{PI, TAU};

use rayspin_core::ProjectionGeometry;

/// Fewer views are chosen by hand.
const VIEWS: usize = 10;
/// The span of a scan of half a turn to two turns whose angles are radian and count as degrees.
const NARROW_DEG: std::ops::Range<f64> = 2.9..13.0;
/// The step of such a scan is smaller than this. Views that were chosen from a scan in degrees lie farther
/// apart.
const FINE_DEG: f64 = 0.12;
/// The turns of a scan over half a turn to two turns if its angles, which are degrees, count as radian; and
/// the views in each turn.
const TURNS: std::ops::Range<f64> = 14.0..116.0;
const VIEWS_A_TURN: f64 = 100.0;
/// Steps by the golden section, of half a turn and of a turn, which make many turns on purpose; the smaller
/// one fills half a turn too.
const GOLDEN_DEG: [f64; 4] = [111.246, 137.508, 68.754, 42.492];

/// The angle of each view about z, radian, from its detector towards its source as
/// [`Orbit`](rayspin_core::Orbit) counts it. Each is less than half a turn from the one before.
pub fn view_angles(geometry: &ProjectionGeometry) -> Vec<f64> {
    let mut angles: Vec<f64> = Vec::with_capacity(geometry.views().len());
    for view in geometry.views() {
        let normal = view.towards_source();
        let angle = normal[0].atan2(-normal[1]);
        angles.push(match angles.last() {
            Some(last) => last + (angle - last + PI).rem_euclid(TAU) - PI,
            None => angle,
        });
    }
    angles
}

/// What is odd about the angles of a scan's views, radian, for people: one direction for all views, or
/// numbers in another unit than they are taken in.
///
/// ```
/// use rayspin_scan::ct::angle_notes;
///
/// let degrees: Vec<f64> = (0..180).map(f64::from).collect();
/// let radian: Vec<f64> = degrees.iter().map(|angle| angle.to_radians()).collect();
/// assert!(angle_notes(&radian).is_empty());
/// assert!(angle_notes(&degrees)[0].contains("turn 28.5 times"));
/// ```
pub fn angle_notes(angles: &[f64]) -> Vec<String> {
    let views = angles.len();
    let low = angles.iter().copied().fold(f64::INFINITY, f64::min);
    let high = angles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).to_degrees();
    let note = if views > 0 && span < 1e-6 {
        let kind = match views {
            1 => "there is one view".to_owned(),
            _ => {
                format!("all {views} views look from {:.2}°, check the angles of the scan", low.to_degrees())
            }
        };
        format!("{kind}: the volume is smeared along its rays and shows no depth")
    } else if views >= VIEWS && NARROW_DEG.contains(&span) && span < FINE_DEG * views as f64 {
        format!(
            "the {views} views cover {span:.2}°: if the angles of the scan are radian that it calls degrees, correct their unit"
        )
    } else if let Some(turns) = turns_of_degrees(angles) {
        format!(
            "the {views} views turn {turns:.1} times: if the angles of the scan are degrees that it calls radian, correct their unit"
        )
    } else {
        return Vec::new();
    };
    vec![note]
}

/// The number of turns that the angles make, if it suggests that they are degrees which count as radian. None
/// for other angles.
///
/// ```
/// use rayspin_scan::ct::turns_of_degrees;
///
/// assert!(turns_of_degrees(&[0.0, 60.0, 120.0, 180.0]).is_some());
/// assert_eq!(turns_of_degrees(&[0.0, 60f64.to_radians(), 120f64.to_radians()]), None);
/// ```
pub fn turns_of_degrees(angles: &[f64]) -> Option<f64> {
    let low = angles.iter().copied().fold(f64::INFINITY, f64::min);
    let high = angles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let turns = (high - low) / TAU;
    let many = TURNS.contains(&turns) && (angles.len() as f64) < VIEWS_A_TURN * turns;
    (many && !is_golden(angles) && !repeats(angles)).then_some(turns)
}

/// Whether most steps are the golden section of a turn or of half a turn.
fn is_golden(angles: &[f64]) -> bool {
    let golden = |pair: &[f64]| {
        let step = (pair[1] - pair[0]).rem_euclid(TAU).to_degrees();
        GOLDEN_DEG.iter().any(|wanted| [step, 360.0 - step].iter().any(|step| (step - wanted).abs() < 0.05))
    };
    2 * angles.windows(2).filter(|pair| golden(pair)).count() > angles.len()
}

/// Whether a turn is a whole number of steps: many such turns are made on purpose, to follow what changes.
/// Steps in degrees that count as radian do not divide a turn.
fn repeats(angles: &[f64]) -> bool {
    let [Some(first), Some(last)] = [angles.first(), angles.last()] else { return false };
    let steps = TAU * (angles.len() - 1) as f64 / (last - first).abs();
    (steps - steps.round()).abs() < 0.01 && steps > 3.0
}
