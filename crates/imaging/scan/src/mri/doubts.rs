//! Facts about the samples of an array without a header that speak against the order of its axes.
//!
//! `docs/reading.md` lists the rules for users.

use ndarray::{Array2, ArrayD};
use rayspin_core::{C32, Trajectory};

use super::{Frame, Samples};

/// More coils than any receiver array has.
const MOST_COILS: usize = 128;
/// Positions along an axis from which on its energy is judged.
const LEAST_POSITIONS: usize = 4;
/// Energy at the peak over its mean along an axis of k-space, at least. Over simulated scans of every kind
/// and the real ones the least is 3.3 for 16 positions, 3.5 for 8 and 2.1 for 4; slices, spokes and images
/// have 1.0 to 2.1, coils up to 3.7.
const PEAK: f64 = 2.0;
/// The same for coils that are an axis of k-space, and the part of the peak that the outer half of the axis
/// has at most.
const COIL_PEAK: f64 = 4.0;
const COIL_EDGE: f64 = 0.1;
/// Mean energy of samples near the centre of a trajectory over the mean energy in its outer half, at least.
const CENTRE: f64 = 2.0;
/// Samples that are enough for a mean.
const ENOUGH: usize = 8;

impl Frame {
    /// Facts about the samples that make it doubtful that their axes are what they were taken as, one
    /// sentence each. Only convention tells the axes of an array without a header: ask this of its frame.
    pub fn doubts(&self) -> Vec<String> {
        match &self.samples {
            Samples::Cartesian { kspace, sampled } => of_grid(kspace, sampled),
            Samples::NonCartesian { trajectory, data } => of_samples(trajectory, data),
        }
    }
}

fn of_grid(kspace: &ArrayD<C32>, sampled: &ArrayD<bool>) -> Vec<String> {
    let mut doubts = Vec::new();
    if kspace.iter().all(|v| v.im == 0.0) {
        doubts.push(
            "all imaginary parts are 0, and k-space is complex: is this a real part or a magnitude?".into(),
        );
    }
    let (coils, axes) = profiles(kspace, sampled);
    let count = coils.energy.len();
    if count > MOST_COILS {
        doubts.push(format!("{count} coils are more than any coil array has ({ORDER})"));
    } else if coils.is_of_k_space() {
        doubts.push(format!(
            "the energy of the {count} coils peaks in the middle as along an axis of k-space ({ORDER})"
        ));
    }
    let judged: Vec<(&Profile, Shape)> = axes.iter().filter_map(|axis| Some((axis, axis.shape()?))).collect();
    let any = |wanted: Shape| judged.iter().any(|(_, shape)| *shape == wanted);
    if judged.len() > 1 && any(Shape::Even) && !any(Shape::Peaked) {
        doubts
            .push("the energy does not peak in the middle as that of k-space does: are these images?".into());
        return doubts;
    }
    for (axis, shape) in judged {
        let (name, n) = (axis.name, axis.energy.len());
        match shape {
            Shape::Peaked => {}
            Shape::Even => doubts.push(format!(
                "the energy hardly differs along {name} ({n}), and that of k-space peaks in the middle: spokes and spirals need \
                 `--traj`; slices, repetitions and coils belong on no axis of the matrix"
            )),
            Shape::Aside(peak) => doubts.push(format!(
                "the energy along {name} peaks at {peak} of {n}, and the centre of k-space belongs at {}: shift it \
                 (numpy.fft.fftshift), or name the axes in their order",
                n / 2
            )),
        }
    }
    doubts
}

const ORDER: &str = "axes are [coil, z, y, x] in NumPy files, READ PHS1 PHS2 COIL in BART's";

fn of_samples(trajectory: &Trajectory, data: &Array2<C32>) -> Vec<String> {
    let extent = trajectory.extent();
    // Sums and counts of energy within 0.15 and 0.3 of the extent, and beyond half of it.
    let mut sums = [(0.0, 0usize); 3];
    for (sample, energy) in data.columns().into_iter().map(|column| energy_of(column.iter())).enumerate() {
        let part = |(k, &most): (&f64, &f64)| if most > 0.0 { k.abs() / most } else { 0.0 };
        let radius = trajectory.point(sample).iter().zip(&extent).map(part).fold(0.0, f64::max);
        for (ring, within) in [radius < 0.15, radius < 0.3, radius > 0.5].into_iter().enumerate() {
            if within {
                sums[ring] = (sums[ring].0 + energy, sums[ring].1 + 1);
            }
        }
    }
    let [centre, wider, outer] = sums;
    let centre = if centre.1 >= ENOUGH { centre } else { wider };
    let mean = |(sum, count): (f64, usize)| sum / count as f64;
    if centre.1 >= ENOUGH && outer.1 >= ENOUGH && mean(centre) < CENTRE * mean(outer) {
        return vec![format!(
            "samples near the centre of the trajectory have {:.2} times the energy of those far from it, and those of an \
             object have many times as much: do samples and trajectory run in the same order?",
            mean(centre) / mean(outer)
        )];
    }
    Vec::new()
}

fn energy_of<'a>(values: impl Iterator<Item = &'a C32>) -> f64 {
    values.map(|v| f64::from(v.re) * f64::from(v.re) + f64::from(v.im) * f64::from(v.im)).sum()
}

/// Mean energy of the sampled places at each position along an axis; none where nothing was sampled.
struct Profile {
    name: &'static str,
    energy: Vec<Option<f64>>,
}

/// How the energy runs along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// It peaks in the middle.
    Peaked,
    /// It peaks at this position.
    Aside(usize),
    /// It has no peak.
    Even,
}

impl Profile {
    fn new(name: &'static str, sums: &[f64], counts: &[usize]) -> Self {
        let mean = |(&sum, &count): (&f64, &usize)| (count > 0).then(|| sum / count as f64);
        Self { name, energy: sums.iter().zip(counts).map(mean).collect() }
    }

    /// The position of the largest energy, and this over the mean.
    fn peak(&self) -> Option<(usize, f64)> {
        let known: Vec<(usize, f64)> =
            self.energy.iter().enumerate().filter_map(|(index, energy)| Some((index, (*energy)?))).collect();
        let mean = known.iter().map(|(_, energy)| energy).sum::<f64>() / known.len() as f64;
        let (index, most) = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (known.len() >= LEAST_POSITIONS && mean > 0.0).then(|| (index, most / mean))
    }

    fn is_middle(&self, position: usize) -> bool {
        let n = self.energy.len();
        position.abs_diff(n / 2) <= (n / 8).max(1)
    }

    fn shape(&self) -> Option<Shape> {
        let (index, peak) = self.peak()?;
        let sampled = self.energy.iter().flatten().count();
        Some(match peak < PEAK.min(1.0 + sampled as f64 / 8.0) {
            true => Shape::Even,
            false if self.is_middle(index) => Shape::Peaked,
            false => Shape::Aside(index),
        })
    }

    fn is_of_k_space(&self) -> bool {
        let Some((index, peak)) = self.peak() else { return false };
        let n = self.energy.len();
        let outer = self.energy.iter().enumerate().filter(|(i, _)| i.abs_diff(n / 2) > n / 4);
        let outer: Vec<f64> = outer.filter_map(|(_, energy)| *energy).collect();
        let mean = self.energy.iter().flatten().sum::<f64>() / n as f64;
        let edge = outer.iter().sum::<f64>() / outer.len().max(1) as f64;
        peak >= COIL_PEAK && self.is_middle(index) && edge < COIL_EDGE * peak * mean
    }
}

/// The energy of each coil, and along each axis of the grid.
fn profiles(kspace: &ArrayD<C32>, sampled: &ArrayD<bool>) -> (Profile, Vec<Profile>) {
    let (coils, shape) = (kspace.shape()[0], sampled.shape());
    let (nx, outer) = (shape[shape.len() - 1], &shape[..shape.len() - 1]);
    let lines: usize = outer.iter().product();
    let (mut of_coils, mut of_lines, mut of_x) = (vec![0.0; coils], vec![0.0; lines], vec![0.0; nx]);
    for (index, row) in kspace.rows().into_iter().enumerate() {
        let mut whole = 0.0;
        for (sum, value) in of_x.iter_mut().zip(row) {
            let energy = energy_of(std::iter::once(value));
            *sum += energy;
            whole += energy;
        }
        of_coils[index / lines] += whole;
        of_lines[index % lines] += whole;
    }
    let mut places_x = vec![0; nx];
    let mut places_lines = vec![0; lines];
    for (line, row) in sampled.rows().into_iter().enumerate() {
        for (count, &known) in places_x.iter_mut().zip(row) {
            *count += usize::from(known);
            places_lines[line] += usize::from(known);
        }
    }
    let places = places_lines.iter().sum();
    let names = ["x", "y", "z"];
    let mut axes = vec![Profile::new(names[0], &of_x, &places_x)];
    // Lines run through y first, then z.
    let mut stride = 1;
    for (&n, name) in outer.iter().rev().zip(&names[1..]) {
        let (mut sums, mut counts) = (vec![0.0; n], vec![0; n]);
        for (line, (energy, count)) in of_lines.iter().zip(&places_lines).enumerate() {
            sums[line / stride % n] += energy;
            counts[line / stride % n] += count;
        }
        axes.push(Profile::new(name, &sums, &counts));
        stride *= n;
    }
    (Profile::new("coil", &of_coils, &vec![places; coils]), axes)
}
