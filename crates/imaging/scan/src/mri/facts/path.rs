use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rayspin_core::{Result, Trajectory};
use rayspin_device::cpu;

use super::edge::Readouts;
use super::noise::point;
use super::region::{Region, shell};
use super::{Found, Pattern, covered};

/// Cells along each axis of a block, whose samples count as all of its cells at most: a power of two.
const BLOCK: usize = 8;
/// A length of 1 as a whole number.
const FIXED: f64 = (1u64 << 32) as f64;
/// A step this many times as long as the usual one leads to another readout.
const JUMP: f64 = 3.0;
/// Samples among which a thread looks for the first long step.
const STRETCH: usize = 1 << 16;
/// Readouts that are looked at to tell the pattern, at most, and the part of them that must agree.
const LOOKED_AT: usize = 64;
const AGREE: f64 = 0.8;
/// Shorter readouts are not looked at.
const LONG: usize = 4;
/// Readouts whose radii differ by no more sample a disc, and no ellipse.
const ROUND: f64 = 0.95;
/// A path is a line if at least this part of its squared steps runs forth and back in one direction.
const STRAIGHT: f64 = 0.9;
/// Files round their trajectories by this much, in cycles per field of view.
const ROUNDING: f64 = 1e-4;
/// What is nearer than this part of the extent is at one place.
const NEAR: f64 = 0.03;
/// The part of the cells at about one distance from the centre that samples cover, at least, within the
/// calibration region, and how far "about" reaches: turns of a spiral lie a cell apart.
const DENSE: f64 = 0.85;
const ABOUT: usize = 2;

/// What the path of the samples says.
pub(super) fn of(trajectory: &Trajectory, matrix: &[usize]) -> Result<Found> {
    let extent = trajectory.extent();
    let points = || (0..trajectory.samples()).into_par_iter().with_min_len(1 << 12);
    let region = Region::spanned(&extent, points().map(|sample| point(trajectory, sample)));
    let readouts = readouts(trajectory);
    let Density { undersampling, width, counts } = density(trajectory, &region)?;
    let sides = |axis: usize| {
        let along = points().map(|sample| trajectory.point(sample)[axis]).map(|k| [-k, k]);
        along.reduce(|| [0.0f64; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])])
    };
    let coverage = (0..trajectory.dims()).map(sides).map(|[low, high]| covered(low, high, 1.0));
    Ok(Found {
        readouts: readouts.len(),
        samples: trajectory.samples(),
        pattern: pattern(trajectory, &readouts),
        undersampling,
        steps: vec![None; trajectory.dims()],
        calibration: matrix.iter().rev().map(|&n| n.min(width)).collect(),
        coverage: coverage.collect(),
        along: Readouts::of(trajectory, &readouts),
        region,
        counts,
    })
}

/// How far a trajectory reaches from the centre along each axis; its matrix must reach as far. If all
/// readouts go equally far, as spokes and spirals do, this is the radius of the disc or ball that they
/// sample. A few spokes miss its edge along an axis.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_scan::mri::reach;
///
/// // Three spokes of 64 samples, at 0°, 60° and 120°: along y they reach 27.7.
/// let points = ndarray::Array2::from_shape_fn((192, 2), |(i, d)| {
///     let angle = (i / 64) as f64 * std::f64::consts::FRAC_PI_3;
///     ((i % 64) as f64 - 32.0) * [angle.cos(), angle.sin()][d]
/// });
/// assert_eq!(reach(&Trajectory::from_cycles_per_fov(points)?), [32.0, 32.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn reach(trajectory: &Trajectory) -> Vec<f64> {
    let mut extent = trajectory.extent();
    let readouts = readouts(trajectory);
    let axes = match pattern(trajectory, &readouts) {
        Pattern::Radial | Pattern::Spiral => trajectory.dims(),
        Pattern::StackOfStars | Pattern::StackOfSpirals => 2,
        _ => return extent,
    };
    let radius = |readout: &Range<usize>| {
        let squares =
            readout.clone().map(|sample| trajectory.point(sample)[..axes].iter().map(|k| k * k).sum());
        squares.fold(0.0f64, f64::max).sqrt()
    };
    let radii = || readouts.iter().filter(|readout| readout.len() >= LONG).map(radius);
    let most = radii().fold(0.0f64, f64::max);
    if radii().all(|radius| radius >= ROUND * most) {
        // An axis that is hardly sampled is none of the disc's.
        for axis in extent[..axes].iter_mut().filter(|extent| **extent >= 0.5 * most) {
            *axis = most;
        }
    }
    extent
}

/// The readouts that a trajectory consists of, as ranges of its samples: a new one begins after a step much
/// longer than the usual one, and where the path turns back.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_scan::mri::readouts;
///
/// // Two spokes along x and y.
/// let points = ndarray::Array2::from_shape_fn((64, 2), |(i, d)| if i / 32 == d { (i % 32) as f64 - 16.0 } else { 0.0 });
/// assert_eq!(readouts(&Trajectory::from_cycles_per_fov(points)?), [0..32, 32..64]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn readouts(trajectory: &Trajectory) -> Vec<Range<usize>> {
    let samples = trajectory.samples();
    let usual = usual_step(trajectory);
    let (long, known) = ((JUMP * usual).powi(2), (0.25 * usual).powi(2));
    // What a long step ends does not depend on what came before, so that each thread can begin there.
    let is_long = |&sample: &usize| {
        let step = step(trajectory, sample);
        dot(step, step) > long
    };
    let firsts = (1..samples).step_by(STRETCH).collect::<Vec<usize>>();
    let mut cuts: Vec<usize> =
        firsts.par_iter().filter_map(|&first| (first..samples.min(first + STRETCH)).find(is_long)).collect();
    cuts.insert(0, 0);
    let parts: Vec<Vec<usize>> = (0..cuts.len())
        .into_par_iter()
        .map(|part| {
            starts_within(trajectory, cuts[part]..cuts.get(part + 1).copied().unwrap_or(samples), long, known)
        })
        .collect();
    let starts = parts.concat();
    let ends = starts.iter().skip(1).copied().chain([samples]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// The first sample of each readout among `samples`. The first of `samples` begins a readout. A step whose
/// square is beyond `long` leads to another readout. The direction of a step is known if the square of its
/// length is beyond `known`.
fn starts_within(trajectory: &Trajectory, samples: Range<usize>, long: f64, known: f64) -> Vec<usize> {
    let mut starts = vec![samples.start];
    let mut before: Option<[f64; 3]> = None;
    for sample in samples.skip(1) {
        let step = step(trajectory, sample);
        let square = dot(step, step);
        // Where the path slows down to turn, its direction is not known.
        let is_known = square > known;
        if square > long || (is_known && before.is_some_and(|before| dot(before, step) < 0.0)) {
            starts.push(sample);
            before = None;
        } else if is_known {
            before = Some(step);
        }
    }
    starts
}

/// The median length of a step.
fn usual_step(trajectory: &Trajectory) -> f64 {
    let samples = trajectory.samples();
    let every = (samples / 4096).max(1);
    let mut lengths: Vec<f64> =
        (1..samples).step_by(every).map(|sample| norm(step(trajectory, sample))).collect();
    if lengths.is_empty() {
        return 0.0;
    }
    let middle = lengths.len() / 2;
    *lengths.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// From the sample before to this one.
#[inline]
fn step(trajectory: &Trajectory, sample: usize) -> [f64; 3] {
    let mut step = [0.0; 3];
    let (from, to) = (trajectory.point(sample - 1), trajectory.point(sample));
    for (step, (to, from)) in step.iter_mut().zip(to.iter().zip(from)) {
        *step = to - from;
    }
    step
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// How densely samples fill a region.
struct Density {
    undersampling: f64,
    /// The width of the centre that is not undersampled.
    width: usize,
    /// The number of cells at each rounded distance from the centre.
    counts: Vec<f64>,
}

fn density(trajectory: &Trajectory, region: &Region) -> Result<Density> {
    let shape = region.shape();
    let blocks: Vec<usize> = shape.iter().map(|n| n.div_ceil(BLOCK)).collect();
    let cells_of = |shape: &[usize]| rayspin_core::voxels(shape);
    // The path through each block, and its cells with samples. Sums of whole numbers do not depend on their
    // order.
    let zeros = |len: usize| -> Result<Vec<AtomicU64>> {
        let mut zeros = cpu::try_with_capacity("cells of k-space", len)?;
        zeros.resize_with(len, AtomicU64::default);
        Ok(zeros)
    };
    let (path, touched) = (zeros(cells_of(&blocks)?)?, zeros(cells_of(&blocks)?)?);
    let seen = zeros(cells_of(&shape)?.div_ceil(64))?;
    let place = |cell: &[i64], shift: u32, shape: &[usize]| {
        let axes = cell.iter().zip(&region.cells).zip(shape);
        axes.rev().fold(0, |index, ((cell, [low, _]), n)| index * n + ((cell - low) >> shift) as usize)
    };
    let counts = region.counts();
    let of_blocks = region.counts_by(path.len(), |cell| place(cell, BLOCK.ilog2(), &blocks));
    let add = |mut part: Part, sample: usize| {
        // Lines half a cell from the centre fill neighbouring cells, all of them to one side.
        let cell = point(trajectory, sample).map(|k| floor(k + 0.5 + ROUNDING));
        let cell = &cell[..shape.len()];
        if region.contains(cell) {
            let length = if sample == 0 { 1.0 } else { norm(step(trajectory, sample)).min(1.0) };
            let length = (length * FIXED) as u64;
            let (block, index) = (place(cell, BLOCK.ilog2(), &blocks), place(cell, 0, &shape));
            let bit = 1 << (index % 64);
            let seen = &seen[index / 64];
            if seen.load(Ordering::Relaxed) & bit == 0 && seen.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                touched[block].fetch_add(1, Ordering::Relaxed);
            }
            part.enter(block, &path);
            part.within += length;
            part.lengths[shell(cell.iter().map(|&coordinate| coordinate as f64))] += length;
        }
        part
    };
    let none = || Part { lengths: vec![0; counts.len()], block: 0, within: 0 };
    let whole = |mut part: Part| {
        part.enter(usize::MAX, &path);
        part.lengths
    };
    let sum = |mut one: Vec<u64>, other: Vec<u64>| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        one
    };
    let samples = (0..trajectory.samples()).into_par_iter().with_min_len(1 << 14);
    let lengths = samples.fold(none, add).map(whole).reduce(|| vec![0; counts.len()], sum);
    let lengths: Vec<f64> = lengths.into_iter().map(|length| length as f64 / FIXED).collect();
    let (mut whole, mut measured) = (0.0, 0.0);
    for (cells, (touched, path)) in of_blocks.into_iter().zip(touched.into_iter().zip(path)) {
        whole += cells;
        measured += cells.min(touched.into_inner() as f64).min(path.into_inner() as f64 / FIXED);
    }
    let near = |list: &[f64], shell: usize| {
        let end = (shell + ABOUT + 1).min(list.len());
        list[shell.saturating_sub(ABOUT)..end].iter().sum::<f64>()
    };
    let dense = |shell: &usize| near(&lengths, *shell) >= DENSE * near(&counts, *shell);
    let radius = (0..counts.len()).take_while(dense).count();
    let undersampling = if measured > 0.0 { whole / measured } else { 1.0 };
    Ok(Density { undersampling, width: 2 * radius, counts })
}

/// What a thread has seen: lengths of the path by shell, and the length in the block that the path is in. All
/// spokes meet in few blocks, whose sums threads would otherwise fight for with every sample.
struct Part {
    lengths: Vec<u64>,
    block: usize,
    within: u64,
}

impl Part {
    /// Goes to a block; the length in the block before goes to the path through it.
    fn enter(&mut self, block: usize, path: &[AtomicU64]) {
        if block == self.block {
            return;
        }
        let within = std::mem::take(&mut self.within);
        if let Some(path) = path.get(std::mem::replace(&mut self.block, block)) {
            path.fetch_add(within, Ordering::Relaxed);
        }
    }
}

/// The largest whole number that is not larger; without the call that `f64::floor` is on the oldest
/// processors.
fn floor(x: f64) -> i64 {
    let towards_zero = x as i64;
    towards_zero - i64::from(towards_zero as f64 > x)
}

/// The kind of a readout.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Spoke,
    SpokeOfStack,
    Spiral,
    SpiralOfStack,
    /// Straight, and not through the centre: its direction.
    Line([f64; 3]),
    Other,
}

/// Distances are judged by the extent of the trajectory, whatever its unit.
pub(super) fn pattern(trajectory: &Trajectory, readouts: &[Range<usize>]) -> Pattern {
    if readouts.len() * 3 > trajectory.samples() {
        return Pattern::Scattered;
    }
    let long: Vec<&Range<usize>> = readouts.iter().filter(|readout| readout.len() >= LONG).collect();
    let every = (long.len() / LOOKED_AT).max(1);
    let reach = trajectory.extent().into_iter().fold(0.0f64, f64::max);
    let kinds: Vec<Kind> =
        long.iter().step_by(every).map(|readout| kind(trajectory, readout, reach)).collect();
    let agree = |fits: &dyn Fn(&Kind) -> bool| {
        !kinds.is_empty()
            && kinds.iter().filter(|kind| fits(kind)).count() as f64 >= AGREE * kinds.len() as f64
    };
    let direction = kinds.iter().find_map(|kind| match kind {
        Kind::Line(direction) => Some(*direction),
        _ => None,
    });
    // One plane of a stack goes through the centre itself.
    let stacked =
        |stack: Kind, plane: Kind| agree(&|kind| *kind == stack || *kind == plane) && kinds.contains(&stack);
    if agree(&|kind| *kind == Kind::Spoke) {
        Pattern::Radial
    } else if stacked(Kind::SpokeOfStack, Kind::Spoke) {
        Pattern::StackOfStars
    } else if agree(&|kind| *kind == Kind::Spiral) {
        Pattern::Spiral
    } else if stacked(Kind::SpiralOfStack, Kind::Spiral) {
        Pattern::StackOfSpirals
    } else if let Some(along) = direction
        && agree(&|kind| match kind {
            Kind::Line(direction) => dot(*direction, along).abs() > 0.99,
            Kind::Spoke | Kind::SpokeOfStack => true,
            _ => false,
        })
    {
        Pattern::Lines
    } else {
        Pattern::Other
    }
}

fn kind(trajectory: &Trajectory, readout: &Range<usize>, reach: f64) -> Kind {
    let every = (readout.len() / 512).max(1);
    let points: Vec<[f64; 3]> = each_in(trajectory, readout.clone().step_by(every));
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return Kind::Other };
    let minus = |a: [f64; 3], b: [f64; 3]| std::array::from_fn::<f64, 3, _>(|d| a[d] - b[d]);
    let chord = minus(last, first);
    let length = norm(chord);
    let near = NEAR * reach;
    if length > 0.25 * reach {
        let along = chord.map(|k| k / length);
        let aside = |from: [f64; 3], point: [f64; 3]| {
            let offset = minus(point, from);
            let part = dot(offset, along);
            norm(std::array::from_fn(|d| offset[d] - part * along[d]))
        };
        if points.iter().all(|&point| aside(first, point) <= NEAR * length) {
            let of_centre = aside(first, [0.0; 3]);
            let in_plane = [0.0, 0.0, first[2]];
            return if of_centre <= near {
                Kind::Spoke
            } else if chord[2].abs() <= near && aside(first, in_plane) <= near {
                Kind::SpokeOfStack
            } else {
                Kind::Line(along)
            };
        }
    }
    // Forth and back, as an echo-planar train.
    let steps = || points.windows(2).map(|pair| minus(pair[1], pair[0]));
    let longest = steps().max_by(|a, b| norm(*a).total_cmp(&norm(*b))).unwrap_or_default();
    let along = longest.map(|k| k / norm(longest).max(f64::MIN_POSITIVE));
    let squares = |part: &dyn Fn([f64; 3]) -> f64| steps().map(|step| part(step).powi(2)).sum::<f64>();
    if squares(&|step| dot(step, along)) > STRAIGHT * squares(&norm) {
        return Kind::Line(along);
    }
    let mut turned = [0.0f64; 2];
    for pair in points.windows(2) {
        let [[ax, ay, _], [bx, by, _]] = [pair[0], pair[1]];
        // Near the centre the direction is not known.
        if ax.hypot(ay).min(bx.hypot(by)) > near {
            let angle = (ax * by - ay * bx).atan2(ax * bx + ay * by);
            turned[usize::from(angle < 0.0)] += angle.abs();
        }
    }
    let radii = || points.iter().map(|[x, y, _]| x.hypot(*y));
    let (least, most) = (radii().fold(f64::INFINITY, f64::min), radii().fold(0.0, f64::max));
    let winds = turned[0].max(turned[1]) > 0.75 * std::f64::consts::PI
        && turned[0].min(turned[1]) < 0.1 * turned[0].max(turned[1])
        && most - least > 0.25 * reach;
    let flat = points.iter().all(|point| (point[2] - first[2]).abs() <= near);
    match (winds, flat) {
        (true, true) if first[2].abs() <= near => Kind::Spiral,
        (true, true) => Kind::SpiralOfStack,
        _ => Kind::Other,
    }
}

fn each_in(trajectory: &Trajectory, samples: impl Iterator<Item = usize>) -> Vec<[f64; 3]> {
    samples.map(|sample| point(trajectory, sample)).collect()
}
