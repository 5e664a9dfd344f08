//! The path of a scan that filtered back-projection can take: a circle around z, or parallel rays across it.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use rayspin_core::{Error, ProjectionGeometry, RaySource, Result};

/// How far, in radian, directions may be from where a circle has them, and how far heights may differ in
/// pixels.
const TOLERANCE: f64 = 1e-3;
/// A gap between directions is unusual above this multiple of the usual gap.
const GAP: f64 = 3.0;
/// The largest gap stands out above this multiple of the next one. It is then the end of the path. Where
/// several gaps are alike, none is.
const SECOND: f64 = 1.5;
/// Angles count as one direction up to this part of the gaps beside them: the noise of an encoder.
const SAME: f64 = 0.05;
/// Larger gaps are no steps of a scan, radian.
pub(super) const WIDE: f64 = PI / 12.0;
/// The largest gap, radian, that a shifted detector may leave: the views beside it then stand for it. Such a
/// scan needs the whole turn. In FBP of ellipses a gap of 30° makes the error twice as large, 60° 6 times,
/// 90° 10 times, and leaving out the margin 13 times.
const FILLED_SHIFTED: f64 = PI / 3.0;

/// Where source and detector of a view are on their path.
#[derive(Debug, Clone, Copy)]
pub(super) struct ViewPosition {
    /// θ of [`rayspin_core::Orbit`], from 0 to 2π.
    pub(super) angle: f64,
    /// Distance of the source from the axis and from the detector, mm; none for parallel rays.
    pub(super) distances: Option<[f64; 2]>,
    /// The row and column that the ray through the axis at right angles meets.
    pub(super) principal: [f64; 2],
    /// 1 where columns are numbered along (cos θ, sin θ, 0), else −1.
    pub(super) sense: f64,
}

/// How the views cover a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Coverage {
    /// All of it: every line is measured twice.
    Turn,
    /// Parallel rays over half a turn, each line as if it were measured once. Views beside a gap stand for
    /// it.
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

/// Positions of all views.
///
/// Errors: a path that is no circle around z, a detector that is curved, tilted or turned away from the axis.
pub(super) fn positions(geometry: &ProjectionGeometry) -> Result<Vec<ViewPosition>> {
    if let Some(radius) = geometry.detector().radius_mm {
        let found = format!("one of radius {radius} mm");
        return Err(Error::value("detector of filtered back-projection", "a flat one", found));
    }
    let mut positions = Vec::with_capacity(geometry.views().len());
    let mut height = None;
    for (index, view) in geometry.views().iter().enumerate() {
        let fail = |expected: &str, found: String| {
            Err(Error::value(format!("rays of view {index} of filtered back-projection"), expected, found))
        };
        view.expect_square(index, " of filtered back-projection")?;
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
        positions.push(ViewPosition { angle, distances, principal, sense });
    }
    Ok(positions)
}

/// The directions of a scan's views, and the weights that follow from them.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub(super) coverage: Coverage,
    /// The angle that the views cover, at most a turn. For parallel rays that do not cover half a turn, it is
    /// the part that they cover.
    pub(super) span: f64,
    /// Δθ of each view: half of the gaps on both sides of its direction, shared by the views in this
    /// direction.
    pub(super) shares: Vec<f64>,
    /// Directions around the whole turn that differ.
    pub(super) directions: usize,
    /// The usual gap between directions.
    pub(super) usual: f64,
    /// The gaps for which the views beside them stand, where they are unusual.
    pub(super) gaps: Option<Gaps>,
}

/// Gaps that are larger than usual.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gaps {
    pub(super) count: usize,
    /// Their sum.
    pub(super) sum: f64,
    /// The ends of the largest one.
    pub(super) widest: [f64; 2],
}

/// The directions of views in these positions. `shifted` says that the detector sees one side of the axis
/// alone, so that the whole turn is needed.
pub(super) fn course(positions: &[ViewPosition], shifted: bool) -> Course {
    let turn = Circle::new(positions, TAU);
    let directions = turn.directions.len();
    Course { directions, ..part(positions, turn, shifted) }
}

fn part(positions: &[ViewPosition], turn: Circle, shifted: bool) -> Course {
    let parallel = positions.iter().all(|position| position.distances.is_none());
    let end = turn.end();
    let span = TAU - end.unwrap_or(0.0);
    let closes = match end {
        // Where views are missing, the opposite ones measured the same lines of parallel rays.
        None => shifted || !parallel || !turn.is_unusual(turn.largest),
        // A turn without this part lacks a step more.
        Some(end) => shifted && end - turn.usual <= FILLED_SHIFTED + TOLERANCE,
    };
    if closes { turn.closed(Coverage::Turn, span) } else { half_turn_or_arc(positions, turn, span) }
}

fn half_turn_or_arc(positions: &[ViewPosition], turn: Circle, span: f64) -> Course {
    if positions.iter().any(|position| position.distances.is_some()) {
        return turn.open(span);
    }
    // What parallel rays measure is the same from the other side, however the angles are numbered.
    let half = Circle::new(positions, PI);
    match half.end() {
        None => half.closed(Coverage::HalfTurn, span.max(PI)),
        // In FBP of ellipses the error is smaller where the views beside the gap stand for it, up to half of
        // the half turn.
        Some(end) if end <= FRAC_PI_2 => half.closed(Coverage::HalfTurn, PI - end),
        Some(end) => half.open(PI - end),
    }
}

/// Views whose angles are one up to noise.
struct Direction {
    first: f64,
    last: f64,
    /// The sum of the angles less the first one.
    beyond: f64,
    views: Vec<usize>,
}

/// Directions around a circle, in ascending order from the one after the largest gap on.
struct Circle {
    views: usize,
    period: f64,
    directions: Vec<Direction>,
    /// The gap after each direction. The last is the largest.
    gaps: Vec<f64>,
    largest: f64,
    /// The largest of the others, and the usual one among these.
    second: f64,
    usual: f64,
}

impl Circle {
    fn new(positions: &[ViewPosition], period: f64) -> Self {
        let mut angles: Vec<(f64, usize)> = positions
            .iter()
            .enumerate()
            .map(|(view, position)| (position.angle.rem_euclid(period), view))
            .collect();
        angles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gaps = |angles: &[(f64, usize)]| -> Vec<f64> {
            let next = angles.iter().skip(1).map(|next| next.0);
            let next = next.chain(angles.first().map(|first| first.0 + period));
            next.zip(angles).map(|(next, one)| next - one.0).collect()
        };
        // The largest gap comes last, so that no direction lies on both sides of the end.
        let all_gaps = gaps(&angles);
        let largest = all_gaps.iter().copied().fold(0.0, f64::max);
        let last = all_gaps.iter().position(|gap| *gap == largest).unwrap_or(0);
        let split = (last + 1) % angles.len().max(1);
        angles[..split].iter_mut().for_each(|angle| angle.0 += period);
        angles.rotate_left(split);
        let directions = directions(&angles, period, SAME * usual(&all_gaps));
        let mean = |one: &Direction| one.first + one.beyond / one.views.len() as f64;
        let middles: Vec<(f64, usize)> = directions.iter().map(|one| (mean(one), 0)).collect();
        let gaps = gaps(&middles);
        let second = gaps.iter().rev().skip(1).copied().fold(0.0, f64::max);
        Self { views: positions.len(), period, directions, largest, second, usual: usual(&gaps), gaps }
    }

    fn is_unusual(&self, gap: f64) -> bool {
        gap > GAP * self.usual
    }

    /// The gap that is no part of the path: one that stands out among the others, or more than half of the
    /// circle.
    fn end(&self) -> Option<f64> {
        let gap = self.largest;
        let stands_out = self.is_unusual(gap) && gap > SECOND * self.second;
        (stands_out || gap > 0.5 * self.period * (1.0 + 1e-9)).then_some(gap)
    }

    fn course(
        self,
        coverage: Coverage,
        span: f64,
        filled: usize,
        share: impl Fn(&[f64], usize) -> f64,
    ) -> Course {
        let mut shares = vec![0.0; self.views];
        for (index, one) in self.directions.iter().enumerate() {
            let each = share(&self.gaps, index) / one.views.len() as f64;
            one.views.iter().for_each(|&view| shares[view] = each);
        }
        let unusual: Vec<usize> = (0..filled).filter(|&index| self.is_unusual(self.gaps[index])).collect();
        let widest = unusual.iter().copied().max_by(|&a, &b| self.gaps[a].total_cmp(&self.gaps[b]));
        let gaps = widest.map(|index| {
            let start = self.directions[index].last.rem_euclid(self.period);
            let sum = unusual.iter().map(|&index| self.gaps[index]).sum();
            Gaps { count: unusual.len(), sum, widest: [start, start + self.gaps[index]] }
        });
        Course { coverage, span, shares, directions: self.directions.len(), usual: self.usual, gaps }
    }

    /// All gaps are part of the path.
    fn closed(self, coverage: Coverage, span: f64) -> Course {
        let count = self.gaps.len();
        self.course(coverage, span, count, |gaps, index| {
            0.5 * (gaps[index] + gaps[(index + count - 1) % count])
        })
    }

    /// The last gap is no part of the path. Its ends stand for as much outside as a usual gap, but for no
    /// more than inside.
    fn open(self, span: f64) -> Course {
        let (count, usual) = (self.gaps.len(), self.usual);
        let (start, span) = (self.directions[0].first, span.max(0.0));
        let coverage = Coverage::Arc { start, span };
        if count == 1 {
            // Each line of one direction once.
            return self.course(coverage, span, 0, |_, _| PI);
        }
        self.course(coverage, span, count - 1, |gaps, index| {
            let [before, after] = [index.checked_sub(1), (index + 1 < count).then_some(index)]
                .map(|gap| gap.map(|gap| gaps[gap]));
            match (before, after) {
                (Some(before), Some(after)) => 0.5 * (after + before),
                (one, other) => {
                    let inside = one.or(other).unwrap_or(usual);
                    0.5 * (inside + inside.min(usual))
                }
            }
        })
    }
}

/// Ascending angles of views, whose largest gap is at the end, as directions. Views are of one direction if
/// they differ by `most`, and by a small part of the gaps beside them: where steps are small, small
/// differences are steps.
fn directions(angles: &[(f64, usize)], period: f64, most: f64) -> Vec<Direction> {
    let Some(&(least, _)) = angles.first() else { return Vec::new() };
    let around = |index: usize| angles.get(index).map_or(least + period, |angle| angle.0);
    let mut directions: Vec<Direction> = Vec::new();
    let (mut start, mut before) = (0, f64::INFINITY);
    while let Some(&(first, _)) = angles.get(start) {
        let near = angles[start..].iter().take_while(|angle| angle.0 - first <= most).count();
        let is_one = |count: &usize| {
            let last = angles[start + count - 1].0;
            last - first <= SAME * before.min(around(start + count) - last)
        };
        // A single view is a direction.
        let count = (2..=near).rev().find(is_one).unwrap_or(1);
        let views = &angles[start..start + count];
        let last = views[count - 1].0;
        let beyond = views.iter().map(|angle| angle.0 - first).sum();
        directions.push(Direction {
            first,
            last,
            beyond,
            views: views.iter().map(|angle| angle.1).collect(),
        });
        start += count;
        before = around(start) - last;
    }
    directions
}

/// The median gap by length, of all but the largest: half of the path lies in gaps that are no larger. Gaps
/// between views that repeat a direction have next to no length. Gaps beyond [`WIDE`] count where there are
/// no others.
pub(crate) fn usual(gaps: &[f64]) -> f64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.pop();
    let most = sorted.partition_point(|gap| *gap <= WIDE);
    if most > 0 {
        sorted.truncate(most);
    }
    let half = 0.5 * sorted.iter().sum::<f64>();
    let mut covered = 0.0;
    let median = sorted.into_iter().find(|gap| {
        covered += gap;
        covered >= half
    });
    median.unwrap_or(0.0)
}
