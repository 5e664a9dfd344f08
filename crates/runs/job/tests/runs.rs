//! Runs of scans in memory: what they refuse, what they state, and what they make.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use rayspin_core::{C32, C64, Monitor};
use rayspin_device::Device;
use rayspin_job::asked::{Asked, Typed};
use rayspin_job::mri::{Finished, Input, Planned, Request, options};
use rayspin_job::rows::{Setting, Settings};
use rayspin_job::{ComputeTarget, Error, Result, ct};
use rayspin_mri::recon::{ReconOptions, Selection, reconstruct_scan};
use rayspin_mri::scan::{FrameOptions, Scan, Window};
use rayspin_mri::simulate::trajectory::{Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};
use rayspin_report::RunRecorder;
use rayspin_run::{Given, Value};

fn scan(options: &SimulateOptions) -> Scan {
    simulate(options, &Monitor::silent()).unwrap().scan
}

fn recorder() -> RunRecorder {
    RunRecorder::start("test", "1", [""; 0], "cpu", 1)
}

fn target() -> ComputeTarget {
    ComputeTarget::of(Device::cpu().unwrap())
}

fn cg_sense(iterations: u64) -> Asked<rayspin_job::mri::Mri> {
    let mut asked = Asked::new(Some("cg-sense".to_owned()));
    asked.insert("iterations", Typed::Value(Value::Count(iterations)));
    asked
}

fn planned(mut request: Request, memory: Option<u64>) -> Result<Planned<'static>> {
    request.memory = memory;
    request.begin(target(), Monitor::silent(), recorder())?.read()?.choose()?.plan()
}

fn finished(request: Request) -> Finished<'static> {
    planned(request, None).unwrap().run::<Error>(&mut |_| Ok(())).unwrap()
}

#[test]
fn an_empty_middle_slice_leaves_the_others_their_images() {
    let options = SimulateOptions { matrix: [24, 24, 3], coils: 4, ..SimulateOptions::default() };
    let mut scan = scan(&options);
    for readout in scan.acquisitions.iter_mut().filter(|readout| readout.counters.slice == 1) {
        readout.data.fill(C32::ZERO);
    }
    let finished = finished(Request { method: cg_sense(3), ..Request::of(Input::Scan(Arc::new(scan))) });
    let image = finished.image.unwrap();
    let energy = |z: usize| {
        let slice = image.data().index_axis(ndarray::Axis(0), z);
        slice.iter().map(|value| value.norm_sqr()).sum::<f32>()
    };
    assert!(energy(0) > 0.0 && energy(2) > 0.0);
    assert_eq!(energy(1), 0.0);
    let said = "slice 1 has samples of 0 alone: there is no image";
    assert!(finished.told.notes.iter().any(|note| note.contains(said)), "{:?}", finished.told.notes);
}

#[test]
fn windows_of_a_scan_in_memory_are_those_of_the_library_and_their_plan_counts_all_images() {
    let options =
        SimulateOptions { matrix: [32, 32, 1], coils: 4, repetitions: 12, ..SimulateOptions::default() };
    let scan = Arc::new(scan(&options));
    let of = |repetitions: usize, window: Option<Window>| {
        let repetition = Some(format!("0-{}", repetitions - 1).parse().unwrap());
        let selection = Selection { repetition, window, ..Selection::default() };
        Request { method: cg_sense(2), selection, ..Request::of(Input::Scan(scan.clone())) }
    };
    let peak = |repetitions| planned(of(repetitions, None), None).unwrap().plan().budget.peak();
    // An image more takes its own bytes, and no maps.
    let image = 8 * 32 * 32;
    assert_eq!((peak(12) - peak(6), peak(6) - peak(3)), (6 * image, 3 * image));

    let window = Window { readouts: 32, stride: 64, frames: Some(3) };
    let request = of(12, Some(window));
    let selection = request.selection.clone();
    let finished = finished(request);
    let options = ReconOptions::with_method(finished.options.method.clone());
    let frames = FrameOptions::default();
    let device = Device::cpu().unwrap();
    let theirs = reconstruct_scan(&device, &scan, &selection, &frames, &options, &Monitor::silent()).unwrap();
    assert_eq!(finished.image.unwrap().data(), theirs.image.data());
    assert_eq!(finished.volumes, 3);
}

#[test]
fn options_that_do_nothing_and_limits_that_nothing_fits_are_refused() {
    let scan =
        Arc::new(scan(&SimulateOptions { matrix: [24, 24, 1], coils: 2, ..SimulateOptions::default() }));
    let request = || Request { method: cg_sense(2), ..Request::of(Input::Scan(scan.clone())) };
    let given: Given = [("epsilon".to_owned(), "tolerance=".to_owned())].into_iter().collect();
    let refused = planned(Request { given, ..request() }, None).err().unwrap();
    let Error::Input(refused) = refused else { panic!("{refused}") };
    assert!(refused.to_string().starts_with("tolerance=: expected a scan with a trajectory"), "{refused}");
    assert!(refused.remedy().unwrap().starts_with("leave tolerance= out"));
    let refused = planned(request(), Some(1 << 20)).err().unwrap();
    let text = refused.to_string();
    assert!(
        text.starts_with("`--memory`: expected at least ") && text.ends_with("for the scan, found 1.00 MiB"),
        "{text}"
    );
}

#[test]
fn a_ct_scan_in_memory_is_reconstructed_and_rays_that_it_states_are_not_stated_again() {
    use rayspin_ct::recon::even_angles;
    use rayspin_ct::scan::{Measured, Scan};
    let lines = ndarray::Array3::from_elem((12, 1, 16), 0.1f32);
    let scan = Scan::new(Measured::Lines(lines), even_angles(12, std::f64::consts::PI), None).unwrap();
    let request = || ct::Request::of(ct::Input::Scan(Arc::new(scan.clone())));
    let begun = request().begin(target(), Monitor::silent(), recorder()).unwrap();
    let planned = begun.read().unwrap().choose().unwrap().plan().unwrap();
    assert!(planned.plan().budget.peak() > 0 && !planned.is_cut());
    let mut finished = planned.run::<Error>(&mut |_| Ok(())).unwrap();
    assert_eq!(finished.made.volume.dim(), (1, 16, 16));
    finished.record().unwrap();
    assert!(
        finished.told.notes.iter().any(|note| note.starts_with("method fbp: ")),
        "{:?}",
        finished.told.notes
    );

    let mut stated = scan.clone();
    stated.geometry = Some(finished.geometry.clone());
    let given: Given = [("pixel".to_owned(), "pixel_mm".to_owned())].into_iter().collect();
    let request = ct::Request { given, ..ct::Request::of(ct::Input::Scan(Arc::new(stated))) };
    let refused = request.begin(target(), Monitor::silent(), recorder()).err().unwrap();
    let expected = "pixel_mm: expected a scan that does not state its rays, found one that does";
    assert!(refused.to_string().starts_with(expected), "{refused}");
}

/// A request with options as a front end gives them.
fn with(mut request: Request, chosen: &[(&'static str, Setting)]) -> Result<Request> {
    let (mut settings, mut given) = (Settings::default(), Given::default());
    for (name, setting) in chosen {
        settings.insert(name, setting.clone());
        given.insert(*name, *name);
    }
    request.given = given.clone();
    settings.put(options(), &given, &mut request)?;
    Ok(request)
}

/// A scan of 4 coils along spokes, and its maps.
fn radial(matrix: [usize; 3]) -> Simulation {
    let sampling = Sampling::Radial { spokes: 40, angles: SpokeAngles::Golden };
    let options = SimulateOptions { matrix, coils: 4, sampling, ..SimulateOptions::default() };
    simulate(&options, &Monitor::silent()).unwrap()
}

#[test]
fn a_dwell_time_stands_for_a_header_that_states_0() {
    let mut scan = radial([24, 24, 1]).scan;
    let field = Arc::new(ndarray::ArrayD::from_shape_fn(&[24, 24][..], |index| 4.0 * index[0] as f32));
    let stated = f64::from(scan.acquisitions[0].sample_time_us);
    assert!(stated > 0.0);
    let field = ("field_map", Setting::Real(field));
    let dwell = |us: f64| ("dwell", Setting::Number(us));
    let of =
        |scan: &Scan| Request { method: cg_sense(4), ..Request::of(Input::Scan(Arc::new(scan.clone()))) };
    let expected = finished(with(of(&scan), std::slice::from_ref(&field)).unwrap()).image.unwrap();
    let twice = planned(with(of(&scan), &[field.clone(), dwell(stated)]).unwrap(), None).err().unwrap();
    assert!(twice.to_string().contains("dwell time: expected none beside that of the scan"), "{twice}");
    scan.acquisitions.iter_mut().for_each(|readout| readout.sample_time_us = 0.0);
    let missing = planned(with(of(&scan), std::slice::from_ref(&field)).unwrap(), None).err().unwrap();
    assert!(missing.to_string().contains("sample_time_us, which a field map needs"), "{missing}");
    let found = finished(with(of(&scan), &[field, dwell(stated)]).unwrap()).image.unwrap();
    assert_eq!(found.data(), expected.data());
    let alone = with(of(&scan), &[dwell(4.0)]).unwrap_err().to_string();
    assert_eq!(alone, "dwell: expected `--field-map` beside it, found none");
    for wrong in [0.0, -1.0, f64::NAN] {
        let options =
            [("field_map", Setting::Real(Arc::new(ndarray::ArrayD::zeros(&[24, 24][..])))), dwell(wrong)];
        assert!(with(of(&scan), &options).unwrap_err().to_string().starts_with("dwell: expected a positive"));
    }
}

#[test]
fn maps_of_any_magnitude_give_the_image_divided_by_it() {
    let options = SimulateOptions { matrix: [24, 24, 1], coils: 4, ..SimulateOptions::default() };
    let made = simulate(&options, &Monitor::silent()).unwrap();
    let maps = made.maps.into_dyn();
    let shaded = ndarray::ArrayD::from_shape_fn(maps.shape(), |index| {
        maps[&index] * (0.2 + 0.1 * index[2] as f32 + 0.03 * index[3] as f32)
    });
    let scan = Arc::new(made.scan);
    let image = |maps: &ndarray::ArrayD<C32>, iterations: u64, intensity: bool| {
        let mut method = cg_sense(iterations);
        method.insert("regulariser", Typed::Value(Value::Choice("none")));
        method.insert("tolerance", Typed::Value(Value::Number(1e-6)));
        let request = Request { method, ..Request::of(Input::Scan(scan.clone())) };
        let mut options = vec![("maps", Setting::Complex(Arc::new(maps.clone())))];
        options.extend(intensity.then_some(("intensity", Setting::On)));
        finished(with(request, &options).unwrap()).image.unwrap().into_data()
    };
    let error = |a: &ndarray::ArrayD<C32>, b: &ndarray::ArrayD<C32>| {
        let sum = |x: &ndarray::ArrayD<C32>| x.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>();
        (sum(&(a - b)) / sum(b)).sqrt()
    };
    // Iterations that converged find the same image, and those with maps of unit intensity are sooner there.
    let converged = image(&shaded, 200, false);
    assert!(error(&image(&shaded, 200, true), &converged) < 1e-4);
    let (with, without) = (image(&shaded, 4, true), image(&shaded, 4, false));
    let (near, far) = (error(&with, &converged), error(&without, &converged));
    assert!(near < 0.1 * far, "{near} {far}");
    // A factor of all maps comes out of the image again.
    let doubled = image(&shaded.mapv(|value| value * 2.0), 4, true).mapv(|value| value * 2.0);
    assert!(error(&doubled, &with) < 1e-5);
}

/// 12 spokes.
fn spokes(angles: SpokeAngles) -> Sampling {
    Sampling::Radial { spokes: 12, angles }
}

/// A series of 6 equal images.
fn series_of(sampling: Sampling) -> Simulation {
    let options = SimulateOptions {
        matrix: [20, 20, 1],
        coils: 3,
        repetitions: 6,
        sampling,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

/// Its scan.
fn series(sampling: Sampling) -> Arc<Scan> {
    Arc::new(series_of(sampling).scan)
}

#[test]
fn equal_images_are_one_coefficient_of_a_temporal_basis() {
    // Spokes of golden angles differ from image to image. Uniform ones and a grid are the same, and
    // orthogonal columns cancel there.
    let grid = SimulateOptions::default().sampling;
    for sampling in [spokes(SpokeAngles::Golden), spokes(SpokeAngles::Uniform), grid] {
        let golden = matches!(sampling, Sampling::Radial { angles: SpokeAngles::Golden, .. });
        let on_grid = !matches!(sampling, Sampling::Radial { .. });
        // Maps of a grid and of points are estimated otherwise, with another phase.
        let Simulation { scan, maps, .. } = series_of(sampling);
        let (scan, maps) = (Arc::new(scan), ("maps", Setting::Complex(Arc::new(maps.into_dyn()))));
        // Given, since its rule looks at the samples of an image.
        let mut method = cg_sense(8);
        method.insert("lambda", Typed::Value(Value::Number(1e-3)));
        let of = || Request { method: method.clone(), ..Request::of(Input::Scan(scan.clone())) };
        let columns = ndarray::Array2::from_shape_fn((6, 2), |(frame, column)| {
            C64::from(if column == 0 { 6f64.sqrt().recip() } else { (frame as f64 - 2.5) / 17.5f64.sqrt() })
        });
        let basis = ("basis", Setting::Double(Arc::new(columns.into_dyn())));
        let made = finished(with(of(), &[basis, maps.clone()]).unwrap());
        let image = made.image.unwrap().into_data();
        assert_eq!((image.shape(), made.volumes), (&[2, 1, 20, 20][..], 2));
        let part = |at: usize| image.index_axis(ndarray::Axis(0), at).into_owned();
        let norm = |of: &ndarray::ArrayD<C32>| of.iter().map(|v| v.norm_sqr()).sum::<f32>();
        // The phantom has more frequencies than 20 voxels, and spokes of other angles see others of them.
        let most = if golden { 1e-2 } else { 1e-6 };
        assert!(norm(&part(1)) < most * norm(&part(0)), "{} {}", norm(&part(1)), norm(&part(0)));
        // With equal sampling the columns do not mix: one image of all readouts is the first coefficient.
        let all = [("window", Setting::Count(if on_grid { 120 } else { 72 })), maps];
        let all = with(of(), &all).unwrap();
        let together = finished(all).image.unwrap().into_data();
        let together = together.to_shape(part(0).raw_dim()).unwrap().to_owned();
        let difference = norm(&(part(0) / C32::from(6f32.sqrt()) - &together));
        assert!(golden || difference < 1e-5 * norm(&together), "{difference} {}", norm(&together));
        let notes = made.told.notes.join("\n");
        assert!(notes.contains("temporal subspace: 6 frames from 2 coefficients"), "{notes}");
    }
}

#[test]
fn a_temporal_basis_fits_the_series_and_its_echo_times() {
    let scan = series(spokes(SpokeAngles::Golden));
    let of = || Request { method: cg_sense(2), ..Request::of(Input::Scan(scan.clone())) };
    let columns = ndarray::Array2::from_shape_fn((6, 2), |(frame, column)| {
        C64::from(if column == 0 { 1.0 } else { frame as f64 })
    });
    let basis = |columns: ndarray::Array2<C64>| ("basis", Setting::Double(Arc::new(columns.into_dyn())));
    // Decays at the echo times: the header has none.
    let refusal = |options: &[(&'static str, Setting)]| match with(of(), options) {
        Ok(request) => planned(request, None).err().unwrap().to_string(),
        Err(error) => error.to_string(),
    };
    let decays = ("basis", Setting::Text("svd:2".to_owned()));
    let times =
        |count: usize| ("echo_times", Setting::Numbers((1..=count).map(|echo| 20.0 * echo as f64).collect()));
    let found = finished(with(of(), &[decays.clone(), times(6)]).unwrap()).image.unwrap();
    assert_eq!(found.data().shape(), [2, 1, 20, 20]);
    for (options, said) in [
        (vec![decays.clone()], "`--basis svd`: expected the echo time of each image, found none in a header"),
        (
            vec![decays.clone(), times(5)],
            "temporal basis: expected 6 rows, one for each image of the series, found 5",
        ),
        (
            vec![("basis", Setting::Text("svd:".to_owned()))],
            "basis: expected svd: and a number of coefficients",
        ),
        (vec![basis(columns.clone()), times(6)], "echo_times: expected `--basis svd:K` beside it"),
        (vec![times(6)], "echo_times: expected `--basis` beside it, found none"),
        (
            vec![basis(columns.clone()), ("repetition", Setting::Ranges(0.into()))],
            "basis: expected several repetitions",
        ),
        (
            vec![basis(ndarray::Array2::ones((6, 2)))],
            "temporal basis: expected 2 columns that do not depend on each other",
        ),
        (
            vec![basis(columns), ("independent", Setting::On)],
            "independent frames: expected frames that share maps",
        ),
    ] {
        let found = refusal(&options);
        assert!(found.starts_with(said), "{found}");
    }
}

#[test]
fn nearly_equal_trajectories_cancel_and_the_header_states_echo_times() {
    let mut scan = (*series(spokes(SpokeAngles::Uniform))).clone();
    // Points of one readout that were computed apart differ by rounding.
    if let Some(points) = &mut scan.acquisitions[20].trajectory {
        points.mapv_inplace(|k| k * (1.0 + f32::EPSILON));
    }
    let times: String = (1..=6).map(|echo| format!("<TE>{}</TE>", 20 * echo)).collect();
    let xml = "<ismrmrdHeader><sequenceParameters>".to_owned() + &times;
    scan.header.xml = Some(xml + "</sequenceParameters></ismrmrdHeader>");
    let scan = Arc::new(scan);
    let of = || Request { method: cg_sense(8), ..Request::of(Input::Scan(scan.clone())) };
    let decays = ("basis", Setting::Text("svd:2".to_owned()));
    let stated = finished(with(of(), std::slice::from_ref(&decays)).unwrap()).image.unwrap();
    let times = ("echo_times", Setting::Numbers((1..=6).map(|echo| 20.0 * f64::from(echo)).collect()));
    let given = finished(with(of(), &[decays.clone(), times]).unwrap()).image.unwrap();
    assert_eq!(stated.data(), given.data());
    // Without that rounding the images are the same.
    let exact =
        Request { method: cg_sense(8), ..Request::of(Input::Scan(series(spokes(SpokeAngles::Uniform)))) };
    let times = ("echo_times", Setting::Numbers((1..=6).map(|echo| 20.0 * f64::from(echo)).collect()));
    let exact = finished(with(exact, &[decays, times]).unwrap()).image.unwrap();
    let norm = |of: &ndarray::ArrayD<C32>| of.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
    let error = norm(&(stated.data() - exact.data())) / norm(exact.data());
    assert!(error < 2e-3, "{error}");
}
