//! Series whose frames are encoded over a temporal subspace.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::of;
use ndarray::{Array2, ArrayD, Axis};
use rayspin_core::{C32, C64, Error, Geometry, Monitor, Result, Trajectory};
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_kernels::nufft::{Nufft, Options};
use rayspin_mri::basis::{Basis, t2_decays};
use rayspin_mri::methods::{CgSense, LowRankSparse, Methods, Regulariser, Value};
use rayspin_mri::recon::plan::{self, Planned};
use rayspin_mri::recon::{
    BatchSizes, Certify, Frames, KernelStore, ReconOptions, ScanImage, Selection, StreamItem, Volume,
    compile_ahead, reconstruct_frame, reconstruct_frames, reconstruct_scan, reconstruct_stream,
};
use rayspin_mri::scan::{Facts, Frame, FrameOptions, Label, Samples, Window};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};
use rayspin_run::Endpoints;

fn cpu() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

/// A still object, a few golden-angle spokes each time.
fn still(n: usize, spokes: usize, repetitions: usize, slices: usize) -> Simulation {
    let options = SimulateOptions {
        matrix: [n, n, slices],
        coils: 4,
        sampling: Sampling::Radial { spokes, angles: SpokeAngles::Golden },
        repetitions,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn frames(simulation: &Simulation) -> Vec<Frame> {
    let index = simulation.scan.frames().unwrap();
    let assemble = |label| index.assemble(label, &FrameOptions::default(), &mut Vec::new()).unwrap();
    index.labels().map(assemble).collect()
}

fn scaled(frame: &mut Frame, by: f32) {
    match &mut frame.samples {
        Samples::Cartesian { kspace, .. } => kspace.mapv_inplace(|v| v * by),
        Samples::NonCartesian { data, .. } => data.mapv_inplace(|v| v * by),
    }
}

fn recon(device: &Device, frames: &[Frame], options: &ReconOptions) -> Result<ScanImage> {
    let labels: Vec<Label> = frames.iter().map(|frame| frame.label).collect();
    let mut slices: Vec<u16> = labels.iter().map(|label| label.slice).collect();
    slices.sort_unstable();
    slices.dedup();
    let mut next = frames.iter().cloned();
    let mut source = |_, _: &mut Vec<String>| next.next().ok_or_else(|| Error::value("frames", "more", 0));
    let series = Frames { labels: &labels, slices: &slices, notes: Vec::new() };
    reconstruct_frames(device, series, &mut source, options, &Monitor::silent())
}

fn with(basis: Basis, options: ReconOptions) -> ReconOptions {
    ReconOptions { basis: Some(Arc::new(basis)), ..options }
}

fn constant(frames: usize) -> Basis {
    Basis::new(Array2::from_elem((frames, 1), C64::ONE)).unwrap()
}

fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let apart: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (apart / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

/// All frames of a trajectory as one.
fn all(frames: &[Frame]) -> Frame {
    let parts: Vec<_> = frames
        .iter()
        .map(|frame| match &frame.samples {
            Samples::NonCartesian { trajectory, data } => (trajectory.points(), data.view()),
            Samples::Cartesian { .. } => unreachable!("frames of a trajectory"),
        })
        .collect();
    let points = ndarray::concatenate(Axis(0), &parts.iter().map(|(points, _)| *points).collect::<Vec<_>>());
    let data = ndarray::concatenate(Axis(1), &parts.iter().map(|(_, data)| *data).collect::<Vec<_>>());
    let trajectory = Trajectory::from_cycles_per_fov(points.unwrap()).unwrap();
    Frame { samples: Samples::NonCartesian { trajectory, data: data.unwrap() }, ..frames[0].clone() }
}

#[test]
fn one_constant_column_is_one_image_of_all_frames() {
    let frames = frames(&still(32, 7, 5, 1));
    for options in [of("cg-sense"), of("wavelet"), of("tv")] {
        let options = common::iterations(options, 12);
        let whole =
            reconstruct_frame(&cpu(), all(&frames), Vec::new(), &options, &Monitor::silent()).unwrap();
        let found = recon(&cpu(), &frames, &with(constant(5), options.clone())).unwrap();
        assert_eq!(found.image.data().shape(), [1, 32, 32]);
        let apart = error(found.image.data(), whole.image.data());
        assert!(apart < 1e-5, "{}: {apart}", options.method.about().name);
        assert!(
            found.notes.iter().any(|note| note.contains("5 frames from 1 coefficient;")),
            "{:?}",
            found.notes
        );
        assert!(found.notes.iter().any(|note| note.contains("not orthonormal")), "{:?}", found.notes);
        assert_eq!(found.maps.unwrap().shape(), whole.maps.unwrap().shape());
    }
}

/// Frames of a grid, each with other lines: the image of all lines, by a NUFFT instead of an FFT.
#[test]
fn frames_of_a_grid_are_joined() {
    let full = SimulateOptions {
        matrix: [30, 24, 1],
        coils: 3,
        sampling: Sampling::Cartesian(CartesianPattern::Full),
        ..SimulateOptions::default()
    };
    let simulation = simulate(&full, &Monitor::silent()).unwrap();
    let whole = frames(&simulation).remove(0);
    let maps = Some(Arc::new(simulation.maps.clone().into_dyn()));
    let options = ReconOptions { maps, nufft_tolerance: 1e-5, ..of("cg-sense") };
    let parts: Vec<Frame> = (0..3u16)
        .map(|part| {
            let mut frame = whole.clone();
            frame.label.repetition = part;
            if let Samples::Cartesian { kspace, sampled } = &mut frame.samples {
                for (line, mut row) in sampled.rows_mut().into_iter().enumerate() {
                    row.iter_mut().for_each(|known| *known &= line % 3 == usize::from(part));
                }
                let known = sampled.broadcast(kspace.raw_dim()).unwrap().to_owned();
                kspace.zip_mut_with(&known, |v, known| *v = if *known { *v } else { C32::ZERO });
            }
            frame
        })
        .collect();
    let found = recon(&cpu(), &parts, &with(constant(3), options.clone())).unwrap();
    let wanted = reconstruct_frame(&cpu(), whole, Vec::new(), &options, &Monitor::silent()).unwrap();
    let apart = error(found.image.data(), wanted.image.data());
    assert!(apart < 1e-3, "{apart}");
    assert!(found.notes.iter().any(|note| note.contains("by a NUFFT")), "{:?}", found.notes);
}

/// Samples of the object as its maps show it, times the frame's part of a decay: what the model says, without
/// noise.
fn decayed(frames: &mut [Frame], object: &ArrayD<C32>, maps: &ArrayD<C32>, decay: &[f64]) {
    let seen = maps.outer_iter().map(|map| &map * object).collect::<Vec<_>>();
    let voxels = object.len() as f32;
    for (frame, decay) in frames.iter_mut().zip(decay) {
        let Samples::NonCartesian { trajectory, data } = &mut frame.samples else { unreachable!("points") };
        let plan =
            Nufft::<f32>::new(&cpu(), &*trajectory, object.shape(), &Options::tolerance(1e-6)).unwrap();
        for (mut row, image) in data.rows_mut().into_iter().zip(&seen) {
            let image = Array::from_host(plan.device(), image).unwrap();
            let mut samples = Array::zeros(plan.device(), &[row.len()]).unwrap();
            plan.forward(&image, &mut samples).unwrap();
            row.iter_mut().zip(samples.cpu()).for_each(|(to, v)| *to = v * (*decay as f32 / voxels));
        }
    }
}

/// The object decays; its coefficients are the object times the coefficients of the decay.
#[test]
fn coefficients_of_a_decay_are_found_by_each_method() {
    let simulation = still(40, 16, 12, 1);
    let mut frames = frames(&simulation);
    let times: Vec<f64> = (1..=12).map(|echo| 0.02 * f64::from(echo)).collect();
    let decay: Vec<f64> = times.iter().map(|t| (-t / 0.08).exp()).collect();
    // Smooth: spokes do not reach the corners of k-space.
    let object = ArrayD::from_shape_fn(vec![40, 40], |at| {
        let blob = |y: f64, x: f64, width: f64| {
            (-((at[0] as f64 - y).powi(2) + (at[1] as f64 - x).powi(2)) / (2.0 * width * width)).exp()
        };
        C32::new(
            (blob(18.0, 21.0, 5.0) + 0.7 * blob(25.0, 12.0, 2.5)) as f32,
            (0.4 * blob(14.0, 27.0, 3.0)) as f32,
        )
    });
    let maps = simulation.maps.clone().into_dyn();
    decayed(&mut frames, &object, &maps.index_axis(Axis(1), 0).to_owned(), &decay);
    let basis = Arc::new(Basis::svd(t2_decays(&times).unwrap().view(), 3).unwrap());
    let of_decay: Vec<C64> = basis
        .matrix()
        .columns()
        .into_iter()
        .map(|column| column.iter().zip(&decay).map(|(phi, d)| phi.conj() * d).sum())
        .collect();
    let wanted = ArrayD::from_shape_fn(vec![3, 1, 40, 40], |at| {
        let phi = of_decay[at[0]];
        object[[at[2], at[3]]] * C32::new(phi.re as f32, phi.im as f32)
    });
    let maps = Some(Arc::new(maps));
    let check = |options: ReconOptions, most: f64, what: &str| {
        let options = ReconOptions { maps: maps.clone(), basis: Some(basis.clone()), ..options };
        let apart = error(recon(&cpu(), &frames, &options).unwrap().image.data(), &wanted);
        println!("{what}: {apart:.4}");
        assert!(apart < most, "{what}: {apart}");
    };
    let values = |lambda| [("lambda", Value::Number(lambda)), ("iterations", Value::Count(60))];
    check(common::changed(of("cg-sense"), &values(1e-6)), 0.01, "cg-sense");
    check(common::changed(of("wavelet"), &values(1e-4)), 0.03, "wavelet");
    check(common::changed(of("tv"), &values(1e-4)), 0.03, "tv");
    // Differences, with and without a reference image.
    let smooth =
        CgSense { regulariser: Regulariser::Differences, lambda: 1e-6, iterations: 60, ..CgSense::default() };
    check(ReconOptions::of(smooth.clone()), 0.01, "differences");
    let anatomy = Some(Arc::new(object.mapv(|v| v.norm())));
    check(ReconOptions::of(CgSense { anatomy, ..smooth }), 0.01, "differences beside edges");
}

fn random_basis(frames: usize, k: usize, complex: bool) -> Basis {
    let value = |f: usize, i: usize| {
        let turn = ((f * f) as f64 * 0.7 + 1.3 * (i * f) as f64 + i as f64 + 0.2).sin();
        C64::new(turn, if complex { (f as f64 * (1.0 + 0.4 * i as f64)).cos() } else { 0.0 })
    };
    Basis::new(Array2::from_shape_fn((frames, k), |(f, i)| value(f, i))).unwrap()
}

/// Kernels kept in memory; the `wrong` one comes back with its spectrum changed.
#[derive(Debug, Default)]
struct Kept {
    kernels: Mutex<BTreeMap<[u8; 32], Vec<f32>>>,
    wrong: bool,
}

impl KernelStore for Kept {
    fn load(&self, key: &[u8; 32], len: usize, _: &mut Vec<String>) -> Option<Vec<f32>> {
        let kernels = self.kernels.lock().unwrap();
        let first = kernels.keys().next().copied();
        let mut values = kernels.get(key).filter(|values| values.len() == len)?.clone();
        if self.wrong && first == Some(*key) {
            values.iter_mut().for_each(|v| *v *= 1.01);
        }
        Some(values)
    }
    fn keep(&self, key: &[u8; 32], values: &[f32], _: &mut Vec<String>) {
        self.kernels.lock().unwrap().insert(*key, values.to_vec());
    }
}

#[test]
fn certificates_are_met_and_find_a_wrong_spectrum() {
    let frames = frames(&still(24, 6, 4, 1));
    for (complex, spectra) in [(false, 6), (true, 9)] {
        let store = Arc::new(Kept::default());
        let certify = Some(Certify { outputs: 400, seed: 3 });
        let mut options = with(random_basis(4, 3, complex), ReconOptions { certify, ..of("cg-sense") });
        options.run.kernels = Some(store.clone());
        let found = recon(&cpu(), &frames, &options).unwrap();
        let names: Vec<&str> = found.certificates.iter().map(|c| c.transform.as_str()).collect();
        assert_eq!(names, ["subspace adjoint", "subspace forward", "subspace Toeplitz normal operator"]);
        assert!(found.certificates.iter().all(|c| c.met()), "{:?}", found.certificates);
        let kernels = store.kernels.lock().unwrap().clone();
        assert_eq!(kernels.len(), spectra);
        assert!(found.notes.iter().any(|note| note.contains(&format!("{spectra} real spectra"))));
        options.run.kernels = Some(Arc::new(Kept { kernels: Mutex::new(kernels), wrong: true }));
        let found = recon(&cpu(), &frames, &options).unwrap();
        let met: Vec<bool> = found.certificates.iter().map(|c| c.met()).collect();
        assert_eq!(met, [true, true, false], "{:?}", found.certificates);
    }
}

/// On the emulator, which counts every array: the same coefficients as on the CPU in the memory that was
/// stated. Returns the peaks.
fn check_memory(list: &[(&str, bool, BatchSizes)]) -> Vec<u64> {
    let frames = frames(&still(32, 5, 4, 1));
    let device = Emulator::device().unwrap();
    let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
    let mut peaks = Vec::new();
    for &(method, complex, batch_sizes) in list {
        let count = if method == "wavelet" { 8 } else { 1 };
        let options = ReconOptions { density_iterations: 1, ..common::iterations(of(method), count) };
        let mut options = with(random_basis(4, 3, complex), options);
        options.run.batch_sizes = batch_sizes;
        let planned = Planned { count: 4, held: 0, assembled: false, coils: frames[0].coils() };
        let budget =
            plan::of_frames(&frames[0], &planned, &options, &device, &plan::Known::default()).unwrap();
        assert_eq!(budget.frames, 4);
        compile_ahead(&device, &frames[0], &options);
        cuda.reset_peak();
        let before = cuda.memory_used().0;
        let found = recon(&device, &frames, &options).unwrap();
        let (_, measured) = cuda.memory_used();
        assert_eq!(before, 0);
        let stated = budget.gpu_peak();
        let ratio = stated as f64 / measured as f64;
        println!("{method} {batch_sizes:?}: stated {stated}, measured {measured}");
        assert!(
            (0.97..1.06).contains(&ratio),
            "{method} {batch_sizes:?}: stated {stated}, measured {measured}"
        );
        peaks.push(measured);
        let on_cpu = recon(&cpu(), &frames, &options).unwrap();
        let apart = error(found.image.data(), on_cpu.image.data());
        assert!(apart < 1e-3, "{method} {batch_sizes:?}: {apart}");
    }
    peaks
}

/// With all spectra held, with fewer and fewer of them, and some coils and some points at a time.
#[test]
fn a_gpu_gives_the_same_coefficients_in_the_memory_that_was_stated() {
    let all = BatchSizes::default();
    let few = BatchSizes { segments: Some(1), coils: Some(1), points: Some(250), ..all };
    let peaks = check_memory(&[
        ("cg-sense", false, all),
        ("cg-sense", false, BatchSizes { segments: Some(3), ..all }),
        ("cg-sense", true, few),
    ]);
    assert!(peaks[1] < peaks[0] && peaks[2] < peaks[1], "{peaks:?}");
}

#[test]
fn sparse_coefficients_on_a_gpu_take_the_memory_that_was_stated() {
    check_memory(&[("wavelet", false, BatchSizes::default())]);
    check_memory(&[("tv", true, BatchSizes { coils: Some(2), ..BatchSizes::default() })]);
}

/// Where one coil at a time is still too much, spectra leave the GPU one by one, and the coefficients stay
/// the same.
#[test]
fn spectra_leave_a_gpu_whose_memory_runs_out() {
    let frames = frames(&still(16, 6, 3, 1));
    let driver = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
    let device = Device::with_driver(driver.clone(), cpu());
    let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
    let options = ReconOptions { density_iterations: 1, ..common::iterations(of("cg-sense"), 1) };
    let mut options = with(random_basis(3, 2, false), options);
    let mut peak = |coils, segments| {
        options.run.batch_sizes = BatchSizes { coils, segments, ..BatchSizes::default() };
        cuda.reset_peak();
        let found = recon(&device, &frames, &options).unwrap();
        (found.image.into_data(), cuda.memory_used().1)
    };
    let ((expected, most), (found, least)) = (peak(Some(1), None), peak(Some(1), Some(1)));
    assert_eq!(found, expected);
    assert!(least < most, "{least} {most}");
    driver.set(Fault::Memory { after: 30, bytes: least + 512 });
    options.run.batch_sizes = BatchSizes::default();
    let found = recon(&device, &frames, &options).unwrap();
    assert!(error(found.image.data(), &expected) < 1e-5);
    let cut = "GPU memory ran out: 1 of the normal operator's spectra held at a time from here on";
    assert!(found.notes.iter().any(|note| note == cut), "{:?}", found.notes);
}

/// The host holds what was stated of the spectra: k(k + 1)/2 real ones, or k² of a complex basis.
#[test]
fn spectra_are_stated() {
    let frames = frames(&still(32, 5, 6, 1));
    let stated = |basis: Basis| {
        let planned = Planned { count: 6, held: 0, assembled: false, coils: 4 };
        let options = with(basis, of("cg-sense"));
        let budget =
            plan::of_frames(&frames[0], &planned, &options, &cpu(), &plan::Known::default()).unwrap();
        budget.stages.iter().find(|stage| stage.name == "conjugate gradients").unwrap().bytes
    };
    // A spectrum of 64 × 64 real numbers.
    let one = 4 * 64 * 64;
    let real = stated(random_basis(6, 4, false));
    assert!(real > 10 * one && real < 10 * one + 3_000_000, "{real}");
    assert_eq!(stated(random_basis(6, 4, true)) - real, 6 * one);
}

#[test]
fn slices_streams_and_windows_have_the_same_coefficients() {
    let simulation = still(16, 5, 4, 3);
    let options = common::iterations(with(random_basis(4, 2, false), of("cg-sense")), 4);
    let (selection, frame_options) = (Selection::default(), FrameOptions::default());
    let monitor = Monitor::silent();
    let whole =
        reconstruct_scan(&cpu(), &simulation.scan, &selection, &frame_options, &options, &monitor).unwrap();
    assert_eq!(whole.image.data().shape(), [2, 3, 16, 16]);
    for slice in 0..3usize {
        let selection = Selection { slice: Some(slice.into()), ..Selection::default() };
        let alone =
            reconstruct_scan(&cpu(), &simulation.scan, &selection, &frame_options, &options, &monitor)
                .unwrap();
        let own = whole.image.data().slice_axis(Axis(1), (slice..slice + 1).into());
        assert_eq!(own, alone.image.data());
    }
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let mut next = labels.iter();
    let mut source = |notes: &mut Vec<String>| {
        let Some(&label) = next.next() else { return Ok(None) };
        Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
    };
    let mut volumes = Vec::new();
    let mut sink = |volume: Volume| -> Result<()> {
        volumes.push(volume.data);
        Ok(())
    };
    let series = Frames { labels: &labels, slices: &[0, 1, 2], notes: Vec::new() };
    let ends = Endpoints { source: &mut source, sink: &mut sink };
    reconstruct_stream(&cpu(), series, ends, &options, &monitor).unwrap();
    assert_eq!(volumes.len(), 2);
    for (volume, wanted) in volumes.iter().zip(whole.image.data().outer_iter()) {
        assert_eq!(volume, &wanted);
    }
    // Windows of five spokes are the repetitions.
    let window = Some(Window { readouts: 5, stride: 5, frames: None });
    let slice = Selection { slice: Some(1usize.into()), window, ..Selection::default() };
    let windows =
        reconstruct_scan(&cpu(), &simulation.scan, &slice, &frame_options, &options, &monitor).unwrap();
    let own = whole.image.data().slice_axis(Axis(1), (1..2).into());
    assert_eq!(own, windows.image.data());
}

/// A series over a basis has the undersampling of its coefficients, and a method that takes them.
#[test]
fn a_method_for_coefficients_is_chosen() {
    let methods = Methods::default();
    let chosen = |spokes, k, coils| {
        let options = SimulateOptions {
            matrix: [32, 32, 1],
            coils,
            sampling: Sampling::Radial { spokes, angles: SpokeAngles::Golden },
            repetitions: 8,
            snr: Some(30.0),
            ..SimulateOptions::default()
        };
        let frames = frames(&simulate(&options, &Monitor::silent()).unwrap());
        let facts = Facts::of(&frames[0], None, 8).unwrap().in_series(8, &frames[0], &frames[1]);
        let over = facts.clone().over(8, k);
        assert_eq!((over.coefficients, over.samples), (Some(k), 8 * facts.samples));
        let (method, reason) = methods.suited(&over, false).unwrap();
        (methods.suited(&facts, false).unwrap().0.about().name, method.about().name, reason)
    };
    // Of 5 spokes an image, 4 coefficients of 8 images have half the undersampling of an image.
    let (images, coefficients, reason) = chosen(5, 4, 4);
    assert_eq!((images, coefficients), ("low-rank-sparse", "wavelet"), "{reason}");
    assert_eq!(chosen(7, 2, 4).1, "cg-sense");
    let (images, coefficients, reason) = chosen(50, 2, 1);
    assert_eq!((images, coefficients, &reason[..]), ("ls", "cg-sense", "2 coefficients of a temporal basis"));
}

/// Slices without signal have coefficients of 0.
#[test]
fn an_empty_slice_is_no_error() {
    let mut frames = frames(&still(16, 5, 3, 3));
    frames.iter_mut().filter(|frame| frame.label.slice == 0).for_each(|frame| scaled(frame, 0.0));
    let found = recon(&cpu(), &frames, &with(random_basis(3, 2, false), of("cg-sense"))).unwrap();
    assert_eq!(found.image.data().shape(), [2, 3, 16, 16]);
    assert!(found.image.data().slice_axis(Axis(1), (0..1).into()).iter().all(|v| *v == C32::ZERO));
    assert!(found.image.data().slice_axis(Axis(1), (1..2).into()).iter().any(|v| *v != C32::ZERO));
}

#[test]
fn what_does_not_go_together_is_refused_with_both() {
    let frames = frames(&still(16, 6, 4, 1));
    let refused = |options: ReconOptions| recon(&cpu(), &frames, &options).unwrap_err().to_string();
    let basis = || random_basis(4, 2, false);
    let found = refused(with(random_basis(5, 2, false), of("cg-sense")));
    assert!(found.contains("4 rows") && found.contains('5'), "{found}");
    let found = refused(with(basis(), of("gridding")));
    assert!(found.contains("cg-sense, wavelet or tv") && found.contains("gridding"), "{found}");
    assert!(refused(with(basis(), ReconOptions::of(LowRankSparse::default()))).contains("low-rank-sparse"));
    let field_map = Some(Arc::new(ArrayD::zeros(vec![16, 16])));
    assert!(refused(with(basis(), ReconOptions { field_map, ..of("cg-sense") })).contains("field map"));
    assert!(
        refused(with(basis(), ReconOptions { search_lambda: true, ..of("cg-sense") })).contains("lambda")
    );
    let apart = ReconOptions { independent: true, ..of("cg-sense") };
    assert!(refused(with(basis(), apart)).contains("independent"));
    let maps = Some(Arc::new(ArrayD::from_elem(vec![2, 4, 1, 16, 16], C32::ONE)));
    assert!(refused(with(basis(), ReconOptions { maps, ..of("cg-sense") })).contains("sets of maps"));
    // One frame has a basis of one row.
    let monitor = Monitor::silent();
    let one = |basis| {
        reconstruct_frame(&cpu(), frames[0].clone(), Vec::new(), &with(basis, of("cg-sense")), &monitor)
    };
    assert!(one(basis()).unwrap_err().to_string().contains("1 rows"));
    let twice = Basis::new(Array2::from_elem((1, 1), C64::from(2.0))).unwrap();
    let found = one(twice).unwrap();
    assert_eq!(found.image.data().shape(), [1, 16, 16]);
    // Planned for another number of frames.
    let planned = Planned { count: 6, held: 0, assembled: false, coils: 4 };
    let options = with(basis(), of("cg-sense"));
    assert!(plan::of_frames(&frames[0], &planned, &options, &cpu(), &plan::Known::default()).is_err());
    let grid = Frame::from_grid(ArrayD::from_elem(vec![2, 8, 8], C32::ONE), Geometry::default()).unwrap();
    let mut reconstructor = rayspin_mri::recon::Reconstructor::new(&cpu(), options).unwrap();
    assert!(reconstructor.frame(grid, &monitor).unwrap_err().to_string().contains("temporal basis"));
}
