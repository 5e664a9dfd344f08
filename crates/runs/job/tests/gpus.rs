//! Runs on several GPUs, which are emulated: the images of every method, what goes to which GPU, what the
//! plan states, and what it fits.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Monitor};
use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_ct::scan::{Measured, Scan as CtScan};
use rayspin_device::{Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_io::data_exchange;
use rayspin_job::asked::{Asked, Typed};
use rayspin_job::ct;
use rayspin_job::mri::{Beside, Finished, Input, Mri, Planned, Request, methods};
use rayspin_job::{ComputeTarget, Error, Result};
use rayspin_mri::recon::Selection;
use rayspin_mri::scan::{Scan, Window};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, simulate};
use rayspin_report::RunRecorder;
use rayspin_run::Value;

fn scan(coils: usize, repetitions: usize) -> Arc<Scan> {
    let sampling = Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden };
    let matrix = [64, 64, 1];
    let options = SimulateOptions { matrix, coils, repetitions, sampling, ..SimulateOptions::default() };
    Arc::new(simulate(&options, &Monitor::silent()).unwrap().scan)
}

/// Smooth maps of six coils.
fn maps() -> ArrayD<C32> {
    ArrayD::from_shape_fn(vec![6, 1, 64, 64], |i| {
        let (y, x) = (i[2] as f32 / 64.0, i[3] as f32 / 64.0);
        C32::from_polar(1.0 / (1.0 + i[0] as f32 * x + y), i[0] as f32 * y)
    })
}

fn method(name: &str) -> Asked<Mri> {
    let mut asked = Asked::new(Some(name.to_owned()));
    if name != "gridding" {
        asked.insert("iterations", Typed::Value(Value::Count(2)));
    }
    asked
}

fn cards(count: usize) -> (Vec<Arc<Faulty>>, ComputeTarget) {
    let card = |ordinal| {
        // Blocks of one thread come in one order: what differs from run to run is the order between GPUs.
        let emulator = Emulator::new().unwrap().measuring(1, None, false).unwrap();
        let driver = Arc::new(Faulty::numbered(Arc::new(emulator), ordinal));
        (driver.clone(), Device::with_driver(driver, Device::cpu_with_threads(1).unwrap()))
    };
    let (drivers, devices): (Vec<_>, Vec<_>) = (0..count).map(card).unzip();
    (drivers, target(&devices))
}

/// The first GPU leads.
fn target(gpus: &[Device]) -> ComputeTarget {
    let mut target = ComputeTarget::of(gpus[0].clone());
    target.beside = gpus[1..].to_vec();
    target
}

/// The first of some GPUs.
fn first(
    (drivers, all): &(Vec<Arc<Faulty>>, ComputeTarget),
    count: usize,
) -> (&[Arc<Faulty>], ComputeTarget) {
    let gpus: Vec<Device> = std::iter::once(&all.device).chain(&all.beside).take(count).cloned().collect();
    (&drivers[..count], target(&gpus))
}

/// GPUs whose arrays may take as many bytes.
fn limited(count: usize, bytes: u64) -> ComputeTarget {
    let mut target = cards(count).1;
    target.gpu_memory = Some(bytes);
    target
}

fn planned(scan: &Arc<Scan>, name: &str, target: ComputeTarget) -> Result<Planned<'static>> {
    // Given maps leave the solver, and what it takes, alone.
    let maps = (name == "tv").then(|| Beside::Array(Arc::new(maps())));
    let request = Request { method: method(name), maps, ..Request::of(Input::Scan(scan.clone())) };
    let recorder = RunRecorder::start("test", "1", [""; 0], "cpu", 1);
    request.begin(target, Monitor::silent(), recorder)?.read()?.choose()?.plan()
}

fn run(planned: Planned<'static>) -> Result<Finished<'static>> {
    planned.run::<Error>(&mut |_| Ok(()))
}

fn relative(found: &Finished<'_>, expected: &Finished<'_>) -> f64 {
    let energy = |values: &mut dyn Iterator<Item = C32>| values.map(|v| v.norm_sqr()).sum::<f32>();
    let data = |finished: &Finished<'_>| finished.image.as_ref().unwrap().data().clone();
    let (found, expected) = (data(found), data(expected));
    let apart = energy(&mut found.iter().zip(&expected).map(|(a, b)| a - b));
    f64::from(apart / energy(&mut expected.iter().copied())).sqrt()
}

#[test]
fn coils_or_images_go_to_gpus_and_the_plan_says_which() {
    let (one, three) = (scan(6, 1), scan(6, 3));
    let cut = |scan: &Arc<Scan>, name: &str, count: usize| {
        let planned = planned(scan, name, cards(count).1).unwrap();
        let told = planned
            .notes()
            .iter()
            .any(|note| note.starts_with("coils ") && note.contains("GPUs, which hold"));
        let idle = planned.notes().iter().any(|note| note.starts_with("one GPU computes"));
        (planned.cut(), planned.plan().budget.cards.len(), told, idle)
    };
    let (text, held, told, idle) = cut(&one, "cg-sense", 2);
    assert!(
        text.starts_with("1 image, coils 3 + 3 on 2 GPUs, which hold ") && text.contains("iB + "),
        "{text}"
    );
    assert_eq!((held, told, idle), (2, true, false));
    // One image of a method that goes coil by coil, and more images than GPUs.
    let (text, held, told, idle) = cut(&one, "gridding", 2);
    assert_eq!((text.as_str(), held, told, idle), ("1 image", 0, false, true));
    let (text, held, told, idle) = cut(&three, "cg-sense", 2);
    assert_eq!((text.as_str(), held, told, idle), ("3 images", 0, false, false));
    let (text, held, ..) = cut(&three, "cg-sense", 4);
    assert!(text.starts_with("3 images, coils 1 + 2 + 2 + 1 on 4 GPUs"), "{text}");
    assert_eq!(held, 4);
}

#[test]
fn an_image_that_one_gpu_has_no_memory_for_is_made_by_two() {
    let (scan, two) = (scan(6, 1), scan(6, 2));
    let whole = run(planned(&scan, "tv", cards(1).1).unwrap()).unwrap();
    let on_one = |bytes: u64| planned(&scan, "tv", limited(1, bytes));
    // The least that one GPU takes.
    let (mut least, mut most) = (0u64, 64 << 20);
    while most - least > 4096 {
        let middle = (least + most) / 2;
        match on_one(middle) {
            Ok(_) => most = middle,
            Err(Error::Gpu(_)) => least = middle,
            Err(error) => panic!("{error}"),
        }
    }
    let refused = on_one(least).err().unwrap().to_string();
    assert!(refused.starts_with("GPU memory: expected at least "), "{refused}");
    for (count, share) in [(2, 100), (2, 95)] {
        let bytes = least * share / 100;
        let target = limited(count, bytes);
        let devices: Vec<Device> = std::iter::once(&target.device).chain(&target.beside).cloned().collect();
        let planned = planned(&scan, "tv", target).unwrap();
        let (cut, stated) = (planned.cut(), planned.plan().budget.cards.clone());
        assert!(stated.iter().all(|stated| *stated <= bytes), "{cut}: {stated:?} of {bytes}");
        let finished = run(planned).unwrap();
        for (device, stated) in devices.iter().zip(stated) {
            let Backend::Cuda(cuda) = device.backend() else { unreachable!("an emulated GPU") };
            let measured = cuda.memory_used().1;
            assert!(
                measured <= bytes && measured <= stated * 103 / 100,
                "{cut}: {measured}, stated {stated}"
            );
        }
        assert!(relative(&finished, &whole) < 1e-4, "{cut}");
        let ran_out = finished.told.notes.iter().any(|note| note.contains("ran out"));
        assert!(!ran_out, "{:?}", finished.told.notes);
    }
    // Two GPUs take an image each, unless they have too little memory for that.
    let separate = planned(&two, "tv", limited(2, 64 << 20)).unwrap();
    assert_eq!(separate.cut(), "2 images");
    let shared = planned(&two, "tv", limited(2, least * 95 / 100)).unwrap();
    assert!(shared.cut().starts_with("2 images, coils 3 + 3 on 2 GPUs"), "{}", shared.cut());
    assert!(relative(&run(shared).unwrap(), &run(separate).unwrap()) < 1e-4);
}

#[test]
fn a_gpu_that_fails_ends_the_run_with_its_name() {
    let scan = scan(6, 1);
    let calls = {
        let (drivers, target) = cards(2);
        run(planned(&scan, "cg-sense", target).unwrap()).unwrap();
        drivers[1].calls()
    };
    for number in [calls / 2, calls - 3] {
        let (drivers, target) = cards(2);
        let planned = planned(&scan, "cg-sense", target).unwrap();
        drivers[1].set(Fault::Call { number, sticky: true });
        let text = run(planned).err().unwrap().to_string();
        assert!(text.contains("on cuda:1 (") && !text.contains('\n'), "{number}: {text}");
    }
}

/// Two ellipsoids in a cone beam.
fn ellipsoids() -> Arc<CtScan> {
    lines_of(
        &Orbit { source_to_axis_mm: Some(400.0), axis_to_detector_mm: 200.0, ..Orbit::default() }.turn(37),
    )
}

/// The line integrals of two ellipsoids.
fn lines_of(orbit: &Orbit) -> Arc<CtScan> {
    let detector = Detector { rows: 40, columns: 41, pitch_mm: [4.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, orbit).unwrap();
    let solid = |middle, radii, value| Solid::new(Form::Ellipsoid, middle, radii, value);
    let (skull, inside) =
        (solid([0.0; 3], [24.0, 27.0, 25.0], 0.02), solid([6.0, 4.0, -3.0], [8.0; 3], 0.01));
    let phantom = Phantom::new(vec![skull, inside]).unwrap();
    let lines = phantom.project(Device::cpu().unwrap().cpu_side(), &geometry).unwrap();
    let lines = ndarray::Array3::from_shape_vec(geometry.shape(), lines).unwrap();
    Arc::new(CtScan::new(Measured::Lines(lines), orbit.angles.clone(), Some(geometry)).unwrap())
}

fn ct_planned(
    scan: &Arc<CtScan>,
    name: &str,
    slices: usize,
    target: ComputeTarget,
) -> Result<ct::Planned<'static>> {
    ct_planned_of(ct::Request::of(ct::Input::Scan(scan.clone())), name, slices, target)
}

fn ct_planned_of(
    request: ct::Request,
    name: &str,
    slices: usize,
    target: ComputeTarget,
) -> Result<ct::Planned<'static>> {
    let mut method = Asked::new(Some(name.to_owned()));
    if ct::methods().named(name)?.get("iterations").is_some() {
        method.insert("iterations", Typed::Value(Value::Count(2)));
    }
    let grid = Some(VolumeGrid::new([slices, 24, 23], [2.5; 3], [0.0; 3]).unwrap());
    let request = ct::Request { method, grid, ..request };
    let recorder = RunRecorder::start("test", "1", [""; 0], "cpu", 1);
    request.begin(target, Monitor::silent(), recorder)?.read()?.choose()?.plan()
}

fn ct_run(planned: ct::Planned<'static>) -> Result<ct::Finished<'static>> {
    planned.run::<Error>(&mut |_| Ok(()))
}

#[test]
fn slices_or_views_go_to_gpus_and_the_plan_says_which() {
    let scan = ellipsoids();
    let cut = |name: &str, slices: usize, count: usize| {
        let planned = ct_planned(&scan, name, slices, cards(count).1).unwrap();
        (planned.cut(), planned.plan().budget.cards.len(), planned.notes().to_vec())
    };
    let (text, held, notes) = cut("fdk", 21, 2);
    assert!(text.starts_with("23 x 24 x 21 voxels, slices 10 + 11 on 2 GPUs, which hold "), "{text}");
    assert!(held == 2 && notes.iter().any(|note| note.starts_with("slices 10 + 11 on 2 GPUs")), "{notes:?}");
    let (text, held, _) = cut("sirt", 21, 3);
    assert!(text.contains(", views 12 + 12 + 13 on 3 GPUs, which hold ") && held == 3, "{text}");
    // Fewer slices than GPUs, and methods and volumes that one GPU makes.
    let (text, held, notes) = cut("fdk", 2, 3);
    assert!(text.contains("slices 1 + 1 on 2 GPUs") && held == 2, "{text}");
    assert!(notes.contains(&"2 of 3 GPUs compute: method fdk shares 2 slices".to_owned()), "{notes:?}");
    let (text, held, notes) = cut("fdk", 1, 3);
    assert_eq!((text.as_str(), held), ("23 x 24 x 1 voxels", 0));
    let idle = "one GPU computes, and those beside it do not: method fdk cannot share 1 slices";
    assert!(notes.contains(&idle.to_owned()), "{notes:?}");
}

#[test]
fn a_volume_that_one_gpu_has_no_memory_for_is_made_by_two() {
    let scan = ellipsoids();
    for (name, share) in [("sirt", 75), ("fdk", 90)] {
        let whole = ct_run(ct_planned(&scan, name, 21, cards(1).1).unwrap()).unwrap();
        let on_one = |bytes: u64| ct_planned(&scan, name, 21, limited(1, bytes));
        let (mut least, mut most) = (0u64, 64 << 20);
        while most - least > 1024 {
            let middle = (least + most) / 2;
            match on_one(middle) {
                Ok(_) => most = middle,
                Err(Error::Gpu(_)) => least = middle,
                Err(error) => panic!("{error}"),
            }
        }
        let bytes = least * share / 100;
        let refused = on_one(bytes).err().unwrap().to_string();
        assert!(refused.starts_with("GPU memory: expected at least "), "{refused}");
        let target = limited(2, bytes);
        let devices: Vec<Device> = std::iter::once(&target.device).chain(&target.beside).cloned().collect();
        let planned = ct_planned(&scan, name, 21, target).unwrap();
        let (cut, stated) = (planned.cut(), planned.plan().budget.cards.clone());
        assert!(cut.contains(" on 2 GPUs, which hold "), "{cut}");
        assert!(stated.iter().all(|stated| *stated <= bytes), "{cut}: {stated:?} of {bytes}");
        let mut finished = ct_run(planned).unwrap();
        for (device, stated) in devices.iter().zip(stated) {
            let Backend::Cuda(cuda) = device.backend() else { unreachable!("an emulated GPU") };
            let measured = cuda.memory_used().1;
            assert!(measured <= bytes && measured <= stated * 103 / 100, "{cut}: {measured} of {stated}");
        }
        let most = whole.made.volume.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let apart = finished.made.volume.iter().zip(&whole.made.volume).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-5 * most, "{cut}");
        let ran_out = finished.told.notes.iter().any(|note| note.contains("ran out"));
        assert!(!ran_out, "{:?}", finished.told.notes);
        finished.record().unwrap();
    }
}

#[test]
fn a_gpu_that_fails_ends_a_ct_run_with_its_name() {
    let scan = ellipsoids();
    for name in ["fdk", "cgls"] {
        let (drivers, target) = cards(2);
        let planned = ct_planned(&scan, name, 21, target).unwrap();
        // Counts the calls from here on.
        drivers[1].set(Fault::Never);
        ct_run(planned).unwrap();
        let calls = drivers[1].calls();
        for number in [calls / 2, calls - 3] {
            let (drivers, target) = cards(2);
            let planned = ct_planned(&scan, name, 21, target).unwrap();
            drivers[1].set(Fault::Call { number, sticky: true });
            let text = ct_run(planned).err().unwrap().to_string();
            assert!(text.contains("on cuda:1 (") && !text.contains('\n'), "{name} {number}: {text}");
        }
    }
}

/// What a run on several GPUs made, and how.
struct Ran {
    cut: String,
    values: Vec<[f32; 2]>,
    /// The GPUs that compute, as the notes have it: all where they do not say why some do not.
    told: usize,
    /// Whether each ran kernels.
    worked: Vec<bool>,
}

impl Ran {
    fn of(
        drivers: &[Arc<Faulty>],
        (cut, notes): (String, &[String]),
        run: impl FnOnce() -> Result<Vec<[f32; 2]>>,
    ) -> Result<Self> {
        let told = |note: &String| {
            let all = format!(" of {} GPUs compute: method ", drivers.len());
            match note.split_once(&all) {
                Some((count, _)) => count.parse().ok(),
                None => note.starts_with("one GPU computes, and those beside it do not: ").then_some(1),
            }
        };
        let told = notes.iter().find_map(told).unwrap_or(drivers.len());
        drivers.iter().for_each(|driver| driver.set(Fault::Never));
        let values = run()?;
        let worked = drivers.iter().map(|driver| driver.counts().contains_key("launch")).collect();
        Ok(Self { cut, values, told, worked })
    }

    fn apart(&self, other: &Self) -> f32 {
        assert_eq!(self.values.len(), other.values.len());
        let most = |values: &mut dyn Iterator<Item = f32>| values.map(f32::abs).fold(0.0, f32::max);
        let pairs = self.values.as_flattened().iter().zip(other.values.as_flattened());
        most(&mut pairs.map(|(a, b)| a - b)) / most(&mut other.values.as_flattened().iter().copied())
    }
}

/// Checks a run on two and three GPUs against that on one: the image is the same to rounding, or to the bit
/// where no image is made by several. It has the same bits again. All GPUs work, or a note says why not.
fn check(what: &str, most: f32, one: &Ran, ran: impl Fn(usize) -> Ran) {
    assert!(one.values.iter().any(|value| *value != [0.0; 2]), "{what}");
    for count in [2, 3] {
        let several = ran(count);
        let error = several.apart(one);
        let divided = several.cut.contains(" GPUs, which hold ");
        let what = format!("{what} on {count}: {}", several.cut);
        assert!(error <= if divided { most } else { 0.0 }, "{what}: {error:e}");
        assert!(ran(count).values == several.values, "{what}");
        // Images go to whichever GPU is free.
        let images = several.cut.starts_with("2 images") && !divided && several.told == count;
        let expected: Vec<bool> = (0..count).map(|gpu| gpu < several.told).collect();
        assert!(images || several.worked == expected, "{what}: {:?}", several.worked);
    }
}

/// The parameters of a method that has them: few iterations, and a search of λ.
fn asked(name: &str, parameters: impl Fn(&str) -> bool, search: bool) -> Option<Asked<Mri>> {
    let mut asked = Asked::new(Some(name.to_owned()));
    if parameters("iterations") {
        asked.insert("iterations", Typed::Value(Value::Count(2)));
    }
    if search {
        parameters("lambda").then(|| asked.insert("lambda", Typed::Searched))?;
    }
    Some(asked)
}

#[test]
fn every_method_makes_its_images_on_one_two_and_three_gpus() {
    let scan = |sampling: Sampling, matrix: [usize; 3], repetitions: usize| {
        let options =
            SimulateOptions { matrix, coils: 3, repetitions, sampling, ..SimulateOptions::default() };
        Arc::new(simulate(&options, &Monitor::silent()).unwrap().scan)
    };
    let spokes = |spokes| Sampling::Radial { spokes, angles: SpokeAngles::Golden };
    let window = Some(Window { readouts: 8, stride: 4, frames: Some(2) });
    let sliding = Selection { window, ..Selection::default() };
    let whole = Selection::default;
    let full = Sampling::Cartesian(CartesianPattern::Full);
    let thin = Sampling::Cartesian(CartesianPattern::Uniform { acceleration: [2, 1], calibration: 8 });
    // Two images go to two GPUs, and the coils of each to three, where the method may share them.
    let cases = [
        ("a grid", scan(thin, [16, 16, 1], 1), whole(), false, ""),
        ("slices", scan(full, [16, 16, 2], 1), whole(), false, ""),
        ("a series", scan(spokes(8), [16, 16, 1], 2), whole(), false, ""),
        ("windows", scan(spokes(8), [16, 16, 1], 2), sliding, false, "cg-sense"),
        ("a search", scan(spokes(16), [32, 32, 1], 1), whole(), true, "cg-sense"),
    ];
    let gpus = cards(3);
    let mut taken = BTreeSet::new();
    for method in methods().iter() {
        let name = method.about().name;
        let of_all = |only: &str| only.is_empty() || only == name;
        for (kind, scan, selection, search, _) in cases.iter().filter(|(.., only)| of_all(only)) {
            let Some(method) = asked(name, |name| method.get(name).is_some(), *search) else { continue };
            let plan = |target: ComputeTarget| {
                let (method, selection) = (method.clone(), selection.clone());
                let mut request = Request { method, selection, ..Request::of(Input::Scan(scan.clone())) };
                request.options.density_iterations = 1;
                let recorder = RunRecorder::start("test", "1", [""; 0], "cpu", 1);
                request.begin(target, Monitor::silent(), recorder)?.read()?.choose()?.plan()
            };
            let ran = |count: usize| -> Result<Ran> {
                let (drivers, target) = first(&gpus, count);
                let planned = plan(target)?;
                let notes = planned.notes().to_vec();
                Ran::of(drivers, (planned.cut(), &notes), || {
                    let mut values = Vec::new();
                    let mut keep = |data: &ArrayD<C32>| values.extend(data.iter().map(|v| [v.re, v.im]));
                    let finished = planned.run::<Error>(&mut |volume| {
                        keep(&volume.data);
                        Ok(())
                    })?;
                    finished.image.iter().for_each(|image| keep(image.data()));
                    Ok(values)
                })
            };
            // A method that does not take this scan.
            let Ok(one) = ran(1) else { continue };
            check(&format!("{name} of {kind}"), 1e-5, &one, |count| ran(count).unwrap());
            taken.extend([name, *kind]);
        }
    }
    assert_eq!(taken.len(), methods().iter().count() + cases.len(), "{taken:?}");
}

#[test]
fn every_ct_method_makes_its_volume_on_one_two_and_three_gpus() {
    let (gpus, cone) = (cards(3), ellipsoids());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ellipsoids.h5");
    data_exchange::write(&file, &cone).unwrap();
    let flat = lines_of(&Orbit::default().arc(0.0, std::f64::consts::PI, 36));
    let whole = |scan: Arc<CtScan>| ct::Request::of(ct::Input::Scan(scan));
    let arriving = ct::Request { stream: true, ..ct::Request::of(ct::Input::File(file)) };
    let cases = [("a cone", whole(cone)), ("parallel rays", whole(flat)), ("views that arrive", arriving)];
    let mut taken = BTreeSet::new();
    for method in ct::methods().iter() {
        let name = method.about().name;
        for (kind, request) in &cases {
            let ran = |count: usize| -> Result<Ran> {
                let (drivers, target) = first(&gpus, count);
                let planned = ct_planned_of(request.clone(), name, 7, target)?;
                let notes = planned.notes().to_vec();
                Ran::of(drivers, (planned.cut(), &notes), || {
                    Ok(ct_run(planned)?.made.volume.iter().map(|value| [*value, 0.0]).collect())
                })
            };
            let Ok(one) = ran(1) else { continue };
            check(&format!("{name} of {kind}"), 2e-5, &one, |count| ran(count).unwrap());
            taken.extend([name, *kind]);
        }
    }
    assert_eq!(taken.len(), ct::methods().iter().count() + cases.len(), "{taken:?}");
}
