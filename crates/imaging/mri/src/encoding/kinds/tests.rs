//! What holds for every encoding, on the examples that each row brings.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::{Array2, ArrayD};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Geometry, Monitor, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_linop::{SoftSense, batches};
use rayspin_run::{Bytes, Certify, Ledger};

use super::{ENCODINGS, Row, Seen, row_of};
use crate::encoding::solving::{FrameCache, Solving};
use crate::encoding::spec::{Context, Inputs};
use crate::encoding::{COMPLEX, count};
use crate::methods::CgSense;
use crate::recon::{BatchSizes, ReconOptions};
use crate::scan::{Frame, Label, Samples};

/// Coils of the examples.
const COILS: usize = 3;
/// Relative l2 error of results in single precision, with transforms of [`options`].
const TOLERANCE: f64 = 2e-5;

/// A frame of random samples, and its encoding by the equation.
pub(super) struct Example {
    pub(super) frame: Frame,
    /// The number of samples of each frame, where several are joined.
    pub(super) of_frames: Option<Vec<usize>>,
    pub(super) options: ReconOptions,
    /// A of one coil, `[sample, image]`.
    pub(super) matrix: Array2<C64>,
    /// s of A ρ = s d.
    pub(super) scale: f64,
}

/// Random numbers.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    pub(super) fn real(&mut self, low: f64, high: f64) -> f64 {
        self.0.random_range(low..high)
    }

    pub(super) fn complex(&mut self) -> C32 {
        C32::new(self.0.random_range(-1.0..1.0), self.0.random_range(-1.0..1.0))
    }

    fn array(&mut self, shape: &[usize]) -> ArrayD<C32> {
        ArrayD::from_shape_fn(shape, |_| self.complex())
    }

    /// A frame of points drawn over k-space.
    pub(super) fn points(&mut self, matrix: &[usize], samples: usize) -> (Frame, Trajectory) {
        let points = Array2::from_shape_fn((samples, matrix.len()), |(_, component)| {
            let n = matrix[matrix.len() - 1 - component] as f64;
            self.real(-n / 2.0, n / 2.0)
        });
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        let data = self.array(&[COILS, samples]).into_dimensionality().unwrap();
        let samples = Samples::NonCartesian { trajectory: trajectory.clone(), data };
        (frame(matrix, samples), trajectory)
    }

    /// A frame on a grid. Two thirds of the grid are measured.
    pub(super) fn grid(&mut self, matrix: &[usize], grid: &[usize]) -> Frame {
        let sampled = ArrayD::from_shape_fn(grid, |_| self.real(0.0, 3.0) < 2.0);
        let mut kspace = self.array(&[&[COILS], grid].concat());
        for mut coil in kspace.outer_iter_mut() {
            coil.zip_mut_with(&sampled, |value, known| {
                if !known {
                    *value = C32::ZERO;
                }
            });
        }
        frame(matrix, Samples::Cartesian { kspace, sampled })
    }
}

fn frame(matrix: &[usize], samples: Samples) -> Frame {
    Frame {
        label: Label::default(),
        matrix: matrix.to_vec(),
        geometry: Geometry::default(),
        samples,
        times: None,
        calibration: None,
        interpolated: false,
    }
}

/// Options with accurate transforms.
pub(super) fn options() -> ReconOptions {
    ReconOptions { nufft_tolerance: 1e-6, field_tolerance: 1e-6, ..ReconOptions::of(CgSense::default()) }
}

/// e^{−i2πk·x} for places k in cycles per field of view, components x, y, z; `[place, voxel]`.
pub(super) fn waves(places: &[Vec<f64>], matrix: &[usize]) -> Array2<C64> {
    let voxels: usize = matrix.iter().product();
    Array2::from_shape_fn((places.len(), voxels), |(row, voxel)| {
        let (mut rest, mut turns) = (voxel, 0.0);
        for (component, &n) in matrix.iter().rev().enumerate() {
            turns += places[row][component] * ((rest % n) as f64 - (n / 2) as f64) / n as f64;
            rest /= n;
        }
        C64::cis(-std::f64::consts::TAU * turns)
    })
}

/// The points of a trajectory.
pub(super) fn rows(trajectory: &Trajectory) -> Vec<Vec<f64>> {
    trajectory.points().outer_iter().map(|point| point.to_vec()).collect()
}

/// All places of a grid, in cycles over its own field of view.
pub(super) fn places_of(grid: &[usize]) -> Vec<Vec<f64>> {
    let place = |flat: usize| {
        let mut rest = flat;
        grid.iter().rev().map(move |&n| {
            let index = rest % n;
            rest /= n;
            index as f64 - (n / 2) as f64
        })
    };
    (0..grid.iter().product()).map(|flat| place(flat).collect()).collect()
}

fn wide(values: &[C32]) -> Vec<C64> {
    values.iter().map(|v| C64::new(v.re.into(), v.im.into())).collect()
}

fn forward(matrix: &Array2<C64>, image: &[C64]) -> Vec<C64> {
    matrix.outer_iter().map(|row| row.iter().zip(image).map(|(a, x)| a * x).sum()).collect()
}

fn adjoint(matrix: &Array2<C64>, samples: &[C64]) -> Vec<C64> {
    let column = |at: usize| matrix.column(at).iter().zip(samples).map(|(a, d)| a.conj() * d).sum();
    (0..matrix.ncols()).map(column).collect()
}

/// Σ a_i b_i of two lists whose second one repeats.
fn times(a: &[C64], b: &[C64], conj: bool) -> Vec<C64> {
    a.iter().zip(b.iter().cycle()).map(|(a, b)| a * if conj { b.conj() } else { *b }).collect()
}

fn add(sum: &mut [C64], more: &[C64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[track_caller]
fn same(what: &str, found: &Array<C32>, exact: &[C64]) {
    let found = wide(&found.to_vec().unwrap());
    assert_eq!(found.len(), exact.len(), "{what}");
    let apart: f64 = found.iter().zip(exact).map(|(a, b)| (a - b).norm_sqr()).sum();
    let apart = (apart / exact.iter().map(|v| v.norm_sqr()).sum::<f64>()).sqrt();
    assert!(apart < TOLERANCE, "{what}: {apart:.1e}");
}

/// An example with a device, maps, and what it is called in messages.
struct Case<'a> {
    what: String,
    row: &'a Row,
    device: &'a Device,
    example: Example,
    draw: Draw,
}

impl Case<'_> {
    /// Plans, right-hand side, adjoint and normal operators by the encoding, against the example's matrix.
    fn check(mut self, cache: &mut FrameCache) {
        let Example { frame, of_frames, mut options, matrix, scale } = self.example;
        let (what, device) = (self.what, self.device);
        // A grid whose places are encoded as points has the measured samples alone.
        let data: Vec<Vec<C32>> = match &frame.samples {
            Samples::Cartesian { kspace, sampled } => {
                let all = matrix.nrows() == sampled.len();
                let taken = |coil: ndarray::ArrayViewD<'_, C32>| {
                    let values = coil.iter().zip(sampled).filter(|(_, known)| all || **known);
                    values.map(|(value, _)| *value).collect()
                };
                kspace.outer_iter().map(taken).collect()
            }
            Samples::NonCartesian { data, .. } => data.outer_iter().map(|c| c.to_vec()).collect(),
        };
        let data: Vec<Vec<C64>> = data.iter().map(|coil| wide(coil)).collect();
        options.maps = Some(Arc::new(self.draw.array(&[&[COILS], &frame.matrix[..]].concat())));
        options.certify = Some(Certify { outputs: 30, seed: 1 });
        options.validate().unwrap();
        let on_grid = matches!(frame.samples, Samples::Cartesian { .. });
        assert!(std::ptr::eq(row_of(on_grid, &options.settings()), self.row), "{what}: another row takes it");
        let extent = (self.row.extent)(&frame, &options.settings());
        let context = Context {
            coils: COILS,
            prepared: false,
            shared_maps: false,
            field_range: None,
            together: 1,
            maps_alone: false,
            spread: false,
        };
        let mut inputs = Inputs::new(Cow::Owned(frame)).of_frames(of_frames);
        let samples = inputs.take_samples().unwrap();
        let spec = options.encoding(device, &inputs, context).unwrap();

        // Shapes and memory.
        assert_eq!(spec.image_shape().iter().product::<usize>(), matrix.ncols(), "{what}");
        assert!(spec.domain().iter().zip(spec.voxels().matrix()).all(|(grid, n)| grid >= n), "{what}");
        let measured = matrix.outer_iter().filter(|row| row.iter().any(|v| *v != C64::ZERO)).count();
        // Several frames count as copies of the frame that is given.
        assert!(extent.points.is_multiple_of(measured), "{what}: {extent:?}");
        let mut ledger = Ledger::new(Bytes::default(), 1);
        ledger.hold(spec.frame_bytes());
        spec.frame_of_series().into_iter().for_each(|step| ledger.add(step).unwrap());
        let least = COMPLEX * (COILS * measured + matrix.ncols()) as u64;
        assert!(ledger.finish().peak() > least, "{what}");
        assert!(spec.kept_in_series().unwrap().host > COMPLEX * count(&spec.image_shape()), "{what}");
        assert!(spec.normal_effort(2).unwrap().flops > spec.normal_effort(1).unwrap().flops, "{what}");

        // The right-hand side; plans of other encodings are in the way.
        let mut solving = Solving::new(&spec, samples.view().into(), None, cache).unwrap();
        assert!(!solving.has_plans() && !solving.is_certified(), "{what}: takes plans of another");
        rayspin_run::run(spec.frame_of_series(), &mut solving, &Monitor::silent()).unwrap();
        let maps: Vec<Vec<C64>> = {
            let all = solving.maps().unwrap().to_host().unwrap();
            all.outer_iter().map(|map| wide(&map.iter().copied().collect::<Vec<_>>())).collect()
        };
        let mut exact = vec![C64::ZERO; matrix.ncols()];
        for (data, map) in data.iter().zip(&maps) {
            let scaled: Vec<C64> = data.iter().map(|d| d * scale).collect();
            add(&mut exact, &times(&adjoint(&matrix, &scaled), map, true));
        }
        let rhs = solving.take_rhs().unwrap();
        assert_eq!(rhs.shape(), spec.image_shape(), "{what}");
        same(&format!("{what}: right-hand side"), &rhs, &exact);

        // ⟨A x, y⟩ = ⟨x, Aᴴ y⟩.
        let image = self.draw.array(&spec.image_shape());
        let x = wide(image.as_slice().unwrap());
        let seen = forward(&matrix, &x);
        let of_coil = match spec.kind().grid() {
            Some(grid) => grid.sampled.shape().to_vec(),
            None => vec![matrix.nrows()],
        };
        let mut y = self.draw.array(&[&[2], &of_coil[..]].concat());
        for (at, value) in y.iter_mut().enumerate() {
            if matrix.row(at % matrix.nrows()).iter().all(|v| *v == C64::ZERO) {
                *value = C32::ZERO;
            }
        }
        let back = solving.adjoint(Array::from_host(device, y.view()).unwrap()).unwrap();
        let (y, back) = (wide(y.as_slice().unwrap()), wide(&back.to_vec().unwrap()));
        for (y, back) in y.chunks(matrix.nrows()).zip(back.chunks(matrix.ncols())) {
            let dot = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(a, b)| a * b.conj()).sum::<C64>();
            let (one, other) = (dot(&seen, y), dot(&x, back));
            let size = (dot(&seen, &seen).re * dot(y, y).re).sqrt();
            assert!((one - other).norm() < TOLERANCE * size, "{what}: {one} and {other}");
        }

        // AᴴA.
        let on_device = Array::from_host(device, image.view()).unwrap();
        let normal = solving.encoding().unwrap().normal(&spec, Seen::Alone).unwrap();
        same(&format!("{what}: AᴴA"), &normal.forward(&on_device).unwrap(), &adjoint(&matrix, &seen));
        let through =
            |map: &[C64]| times(&adjoint(&matrix, &forward(&matrix, &times(&x, map, false))), map, true);
        let mut exact = vec![C64::ZERO; matrix.ncols()];
        maps.iter().for_each(|map| add(&mut exact, &through(map)));
        let normal = solving.normal().unwrap();
        same(&format!("{what}: EᴴE"), &normal.forward(&on_device).unwrap(), &exact);
        rayspin_linop::laws::check_positive(&*normal, device, 3, 1e-4).unwrap();
        if spec.coefficients().is_none() {
            let soft = self.draw.array(&[&[2, COILS], spec.domain()].concat());
            let images = self.draw.array(&[&[2], spec.domain()].concat());
            let n = matrix.ncols();
            let (of_sets, x) = (wide(soft.as_slice().unwrap()), wide(images.as_slice().unwrap()));
            let map = |set: usize, coil: usize| &of_sets[(set * COILS + coil) * n..][..n];
            let mut exact = vec![C64::ZERO; 2 * n];
            for coil in 0..COILS {
                let mut sum = vec![C64::ZERO; n];
                (0..2).for_each(|set| add(&mut sum, &times(&x[set * n..][..n], map(set, coil), false)));
                let back = adjoint(&matrix, &forward(&matrix, &sum));
                (0..2).for_each(|set| {
                    add(&mut exact[set * n..][..n], &times(&back, map(set, coil), true));
                });
            }
            let soft = SoftSense::new(&Array::from_host(device, soft.view()).unwrap()).unwrap();
            let normal = solving.encoding().unwrap().normal(&spec, Seen::Sets(Arc::new(soft))).unwrap();
            let found = normal.forward(&Array::from_host(device, images.view()).unwrap()).unwrap();
            same(&format!("{what}: EᴴE of two sets"), &found, &exact);
        }

        // Certificates.
        let made = solving.into_encoded();
        assert!(!made.certificates.is_empty(), "{what}");
        for certificate in &made.certificates {
            assert!(certificate.met() && certificate.outputs == 30, "{what}: {certificate:?}");
        }
        cache.close(true);

        // The same frame again, with its plans; and without them.
        for given_back in [false, true] {
            if given_back {
                cache.give_back();
            }
            let mut again = Solving::new(&spec, samples.view().into(), None, cache).unwrap();
            assert!(again.has_plans() || given_back, "{what}");
            rayspin_run::run(spec.frame_of_series(), &mut again, &Monitor::silent()).unwrap();
            assert_eq!(again.take_rhs().unwrap().to_vec().unwrap(), rhs.to_vec().unwrap(), "{what}");
        }
    }
}

#[test]
fn every_encoding_is_its_matrix_and_keeps_its_own_plans() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(now.as_nanos() as u64));
    let device = Device::cpu_with_threads(2).unwrap();
    let mut cache = FrameCache::default();
    for (number, row) in ENCODINGS.iter().enumerate() {
        let sizes = [
            BatchSizes::default(),
            BatchSizes { coils: Some(2), points: Some(7), segments: Some(2), ..BatchSizes::default() },
        ];
        for sizes in sizes {
            let seed: u64 = draw.0.random();
            let examples = (row.examples)(&mut Draw(ChaCha8Rng::seed_from_u64(seed)));
            assert!(!examples.is_empty());
            for (which, mut example) in examples.into_iter().enumerate() {
                example.options.run.batch_sizes = sizes;
                let what = format!("row {number}, example {which}, {sizes:?}, seed {seed}");
                let draw = Draw(ChaCha8Rng::seed_from_u64(seed ^ 1));
                Case { what, row, device: &device, example, draw }.check(&mut cache);
            }
        }
    }
    assert_eq!(batches(COILS, Some(2)).count(), 2);
}
