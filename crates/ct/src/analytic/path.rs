//! The path of a scan that filtered back-projection can take: a circle around z, or parallel rays across it.

use std::f64::consts::{PI, TAU};

use rayspin_core::{Error, ProjectionGeometry, RaySource, Result};

/// How far, in radian, directions may be from where a circle has them, and how far heights may differ in pixels.
const TOLERANCE: f64 = 1e-3;
/// A gap between views is part of the path up to this multiple of the median gap.
const GAP: f64 = 3.0;

/// Where a view is on its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// θ of [`rayspin_core::Orbit`], from 0 to 2π.
    pub(super) angle: f64,
    /// Distance of the source from the axis and from the detector, mm; none for parallel rays.
    pub(super) distances: Option<[f64; 2]>,
    /// The row and column that the ray through the axis at right angles meets.
    pub(super) principal: [f64; 2],
    /// 1 where columns are numbered along (cos θ, sin θ, 0), else −1.
    pub(super) sense: f64,
}

/// Which part of a turn the views cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Coverage {
    /// All of it: every line is measured twice.
    Turn,
    /// Parallel rays over half a turn: every line once.
    HalfTurn,
    /// A part of it, from this angle on over this span.
    Arc {
        /// The first angle.
        start: f64,
        /// From the first to the last.
        span: f64,
    },
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|axis| a[axis] * b[axis]).sum()
}

/// Places of all views.
///
/// Errors: a path that is no circle around z, a detector that is curved, tilted or turned away from the axis.
pub(super) fn places(geometry: &ProjectionGeometry) -> Result<Vec<Place>> {
    if let Some(radius) = geometry.detector().radius_mm {
        let found = format!("one of radius {radius} mm");
        return Err(Error::value("detector of filtered back-projection", "a flat one", found));
    }
    let mut places = Vec::with_capacity(geometry.views().len());
    let mut height = None;
    for (index, view) in geometry.views().iter().enumerate() {
        let fail = |expected: &str, found: String| {
            Err(Error::value(format!("view {index} of filtered back-projection"), expected, found))
        };
        let detector = geometry.detector();
        let normal = view.towards_source();
        if normal[2].abs() > TOLERANCE || view.u[2].abs() > TOLERANCE {
            return fail(
                "a detector whose columns are parallel to z",
                format!("u {:?}, v {:?}", view.u, view.v),
            );
        }
        let (away, distances) = match view.source {
            RaySource::Direction(along) => (along.map(|x| -x), None),
            RaySource::Point(source) => {
                let radius = source[0].hypot(source[1]);
                let depth = (0..3).map(|axis| (source[axis] - view.detector_mm[axis]) * normal[axis]).sum();
                let first = *height.get_or_insert(source[2]);
                if (source[2] - first).abs() > TOLERANCE * detector.pitch_mm[1] {
                    return fail(
                        "sources at one height (helices need an iterative method)",
                        format!("{} mm and {first} mm", source[2]),
                    );
                }
                if radius <= 0.0 {
                    return fail("a source beside the axis", format!("{source:?}"));
                }
                ([source[0] / radius, source[1] / radius, 0.0], Some([radius, depth]))
            }
        };
        if (0..3).any(|axis| (normal[axis] - away[axis]).abs() > TOLERANCE) {
            return fail(
                "a detector whose normal meets the axis",
                format!("a normal of {normal:?}, with the source towards {away:?}"),
            );
        }
        let angle = away[0].atan2(-away[1]).rem_euclid(TAU);
        let origin = match view.source {
            RaySource::Point(source) => source,
            RaySource::Direction(_) => [0.0; 3],
        };
        let from_middle: [f64; 3] = std::array::from_fn(|axis| origin[axis] - view.detector_mm[axis]);
        let principal = [
            dot(from_middle, view.v) / detector.pitch_mm[1] + 0.5 * (detector.rows - 1) as f64,
            dot(from_middle, view.u) / detector.pitch_mm[0] + 0.5 * (detector.columns - 1) as f64,
        ];
        let sense = dot(view.u, [angle.cos(), angle.sin(), 0.0]).signum();
        places.push(Place { angle, distances, principal, sense });
    }
    Ok(places)
}

/// The coverage of the places, and the angle that each stands for.
pub(super) fn coverage(places: &[Place]) -> (Coverage, Vec<f64>) {
    let whole = shares(places, TAU);
    if whole.closed {
        return (Coverage::Turn, whole.shares);
    }
    if places.iter().all(|place| place.distances.is_none()) {
        let half = shares(places, PI);
        if half.closed {
            return (Coverage::HalfTurn, half.shares);
        }
    }
    (Coverage::Arc { start: whole.start, span: TAU - whole.largest }, whole.shares)
}

struct Shares {
    /// Whether no gap is left out.
    closed: bool,
    /// Half of the gaps on both sides of each place, in its order.
    shares: Vec<f64>,
    /// The first angle after the largest gap.
    start: f64,
    largest: f64,
}

fn shares(places: &[Place], period: f64) -> Shares {
    let angle = |at: usize| places[at].angle.rem_euclid(period);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| angle(a).total_cmp(&angle(b)));
    let count = order.len();
    // The gap after each place in the order.
    let gaps: Vec<f64> = (0..count)
        .map(|at| match at + 1 == count {
            true => angle(order[0]) + period - angle(order[at]),
            false => angle(order[at + 1]) - angle(order[at]),
        })
        .collect();
    let mut sorted: Vec<f64> = gaps.iter().copied().filter(|gap| *gap > 1e-9).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(period);
    let largest = gaps.iter().copied().fold(0.0, f64::max);
    let within = |gap: f64| if gap > GAP * median { median } else { gap };
    let mut shares = vec![0.0; count];
    for (at, &place) in order.iter().enumerate() {
        shares[place] = 0.5 * (within(gaps[at]) + within(gaps[(at + count - 1) % count]));
    }
    let last = gaps.iter().position(|gap| *gap == largest).unwrap_or(0);
    Shares { closed: largest <= GAP * median, shares, start: angle(order[(last + 1) % count]), largest }
}
