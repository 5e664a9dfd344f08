//! Series along BART's dimensions: every image of an array laid out by hand has a factor of its own, which
//! shows where it went.

use std::path::Path;

use ndarray::{Array2, Array3, ArrayD, Axis, IxDyn, s};
use rayspin::core::C32;
use rayspin::io::{cfl, npy, read_image};
use rayspin::mri::scan::Samples;

use crate::arrays::{command, frame, nrmse, said};
use crate::bart::dims;
use crate::{ok, parameters, refused, simulated};

const TE: usize = 5;
const TIME: usize = 10;
const TIME2: usize = 11;
const SLICE: usize = 13;

/// A grid `[coil, y, x]` of 27 × 23, measured in part.
fn grid(folder: &Path) -> Array3<C32> {
    simulated(folder, "--matrix 27,23 --coils 3 --acceleration 2 --calibration 9");
    let Samples::Cartesian { kspace, .. } = frame(&folder.join("scan.h5")).samples else {
        panic!("expected a grid")
    };
    kspace.into_dimensionality().unwrap()
}

/// The factor of an image.
fn factor(te: usize, time: usize, time2: usize, slice: usize) -> f32 {
    1.0 + te as f32 + 0.5 * time as f32 + 3.0 * time2 as f32 + 0.25 * slice as f32
}

/// An array with BART's dimensions and these numbers of images along TE, TIME, TIME2 and SLICE. `base` holds
/// the numbers of one image.
fn series(base: &ArrayD<C32>, [te, time, time2, slice]: [usize; 4]) -> ArrayD<C32> {
    let mut shape = vec![1; 14];
    shape[..base.ndim()].copy_from_slice(base.shape());
    (shape[TE], shape[TIME], shape[TIME2], shape[SLICE]) = (te, time, time2, slice);
    ArrayD::from_shape_fn(IxDyn(&shape), |i| {
        let place: Vec<usize> = (0..base.ndim()).map(|axis| i[axis]).collect();
        base[&place[..]] * factor(i[TE], i[TIME], i[TIME2], i[SLICE])
    })
}

/// `[x, y, 1, coil]`
fn plane(grid: &Array3<C32>) -> ArrayD<C32> {
    grid.view().insert_axis(Axis(1)).reversed_axes().to_owned().into_dyn()
}

fn values(path: &Path) -> ArrayD<C32> {
    cfl::read(path).unwrap()
}

fn expect_close(found: C32, wanted: C32, what: &str) {
    assert!((found - wanted).norm() < 2e-5 * (1.0 + wanted.norm()), "{what}: {found} is not {wanted}");
}

#[test]
fn images_are_chosen_by_their_counters_and_keep_their_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let grid = grid(f);
    npy::write(f.join("one.npy"), grid.view()).unwrap();
    cfl::write(f.join("all.cfl"), series(&plane(&grid), [2, 3, 2, 4]).view()).unwrap();
    let mut cut = plane(&grid);
    cut.swap_axes(0, 2);
    cfl::write(f.join("cut.cfl"), series(&cut, [2, 3, 2, 4]).view()).unwrap();
    ok(&command("recon mri one.npy -q --no-record -m cartesian -o one.cfl"), f);
    let one = values(&f.join("one.cfl"));
    assert_eq!(dims(f, "one.cfl"), [27, 23]);

    for (name, is_cut) in [("all", false), ("cut", true)] {
        let place = |x: usize, y: usize, time: usize, slice: usize| {
            let mut place = [0; 16];
            place[1] = y;
            place[if is_cut { 2 } else { 0 }] = x;
            (place[TIME], place[SLICE]) = (time, slice);
            IxDyn(&place)
        };
        let recon = |more: &str| {
            said(&format!("recon mri {name}.cfl --no-record -m cartesian -o i.cfl -o i.npy {more}"), f)
        };
        let plane = if is_cut { vec![1, 23, 27] } else { vec![27, 23, 1] };
        let with = |times: usize, slices: usize| {
            let mut dims = plane.clone();
            dims.resize(14, 1);
            (dims[TIME], dims[SLICE]) = (times, slices);
            let used = dims.iter().rposition(|&d| d > 1).unwrap() + 1;
            dims.truncate(used);
            dims
        };
        // (options, [TE, TIME2], the first repetition and how many, the first slice and how many)
        for (more, [te, time2], times, slices) in [
            ("--contrast 0 --cardiac-phase 0", [0, 0], (0, 3), (0, 4)),
            ("--contrast 1 --cardiac-phase 1", [1, 1], (0, 3), (0, 4)),
            ("--contrast 1 --cardiac-phase 0 --repetition 2", [1, 0], (2, 1), (0, 4)),
            ("--contrast 0 --cardiac-phase 1 --slice 3", [0, 1], (0, 3), (3, 1)),
            ("--contrast 0 --cardiac-phase 0 --repetition 1 --slice 2", [0, 0], (1, 1), (2, 1)),
        ] {
            let text = recon(more);
            assert!(text.contains("understood as 3 coils, "), "{text}");
            assert_eq!(dims(f, "i.cfl"), with(times.1, slices.1), "{name} {more}");
            let (image, other) = (values(&f.join("i.cfl")), read_image(f.join("i.npy")).unwrap().image);
            let other = other.data().to_shape((times.1, slices.1, 23, 27)).unwrap().to_owned();
            for (time, slice) in (0..times.1).flat_map(|time| (0..slices.1).map(move |s| (time, s))) {
                let factor = factor(te, times.0 + time, time2, slices.0 + slice);
                for (y, x) in (0..23).flat_map(|y| (0..27).map(move |x| (y, x))) {
                    let wanted = one[place_of(x, y)] * factor;
                    let what = format!("{name} {more}: {time} {slice} {y} {x}");
                    expect_close(image[place(x, y, time, slice)], wanted, &what);
                    expect_close(other[[time, slice, y, x]], wanted, &what);
                }
            }
        }
        // All images: each lies where the array had its samples.
        recon("");
        let mut wanted = with(3, 4);
        (wanted[TE], wanted[TIME2]) = (2, 2);
        assert_eq!(dims(f, "i.cfl"), wanted);
        let all = values(&f.join("i.cfl"));
        let array = npy::read_complex(f.join("i.npy")).unwrap();
        assert_eq!(array.shape(), [2, 3, 2, 4, 23, 27], "{name}"); // cardiac phase, repetition, contrast, slice
        let array = array.into_dimensionality::<ndarray::Ix6>().unwrap();
        for ((time2, time, te, slice, y, x), value) in array.indexed_iter() {
            let wanted = one[place_of(x, y)] * factor(te, time, time2, slice);
            let what = format!("{name}: {te} {time} {time2} {slice} {y} {x}");
            expect_close(*value, wanted, &what);
            let mut place = place(x, y, time, slice);
            (place[TE], place[TIME2]) = (te, time2);
            expect_close(all[place], wanted, &what);
        }
        // What is written is read again: convert keeps it, byte for byte, and metrics sees as many images.
        ok(&command("-q convert i.cfl again.cfl"), f);
        for end in ["cfl", "hdr"] {
            let bytes = |name: &str| std::fs::read(f.join(format!("{name}.{end}"))).unwrap();
            assert!(bytes("i") == bytes("again"), "{name}");
        }
        assert!(nrmse("i.cfl", "i.npy", f) < 1e-6);
        // Coil images.
        recon("--combine none --contrast 1 --cardiac-phase 0 --repetition 1");
        let mut wanted = with(1, 4);
        wanted[3] = 3;
        assert_eq!(dims(f, "i.cfl"), wanted);
        refused(
            &command(&format!("recon mri {name}.cfl -o x.cfl -m cartesian --combine none")),
            f,
            &["--repetition"],
        );
    }
    let info = String::from_utf8(ok(&command("info all.cfl"), f).stdout).unwrap();
    assert!(info.contains("48") && info.contains("3 coils, 27 × 23"), "{info}");
}

fn place_of(x: usize, y: usize) -> IxDyn {
    let mut place = [0; 16];
    (place[0], place[1]) = (x, y);
    IxDyn(&place)
}

#[test]
fn slices_have_a_place_and_a_field_of_view() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    cfl::write(f.join("k.cfl"), series(&plane(&grid(f)), [1, 1, 1, 5]).view()).unwrap();
    ok(&command("recon mri k.cfl -q --no-record -m cartesian --fov 270,230,40 -o i.nii"), f);
    let image = read_image(f.join("i.nii")).unwrap().image;
    let spacing = image.geometry().spacing_mm;
    assert!(spacing.iter().zip([10.0, 10.0, 8.0]).all(|(a, b)| (a - b).abs() < 1e-4), "{spacing:?}");
    ok(&command("recon mri k.cfl -q --no-record -m cartesian --fov 270,230,40 --slice 4 -o one.nii"), f);
    let one = read_image(f.join("one.nii")).unwrap().image;
    let (all, one) = (image.geometry().position_mm[2], one.geometry().position_mm[2]);
    assert!((one - all - 16.0).abs() < 1e-4, "{all} {one}");
}

/// Samples `[coil, spoke, readout]` and points `[spoke, readout, dim]` of a radial scan of 48 × 40.
fn spokes(folder: &Path) -> (Array3<C32>, Array3<f64>) {
    simulated(folder, "--matrix 48,40 --trajectory radial --angles golden --shots 63 --coils 3");
    let Samples::NonCartesian { trajectory, data } = frame(&folder.join("scan.h5")).samples else {
        panic!("expected a trajectory")
    };
    let readout = data.ncols() / 63;
    let points = trajectory.points().to_owned();
    (
        data.into_shape_with_order((3, 63, readout)).unwrap(),
        points.into_shape_with_order((63, readout, 2)).unwrap(),
    )
}

fn bart_points(points: &Array3<f64>) -> ArrayD<C32> {
    let (spokes, readout, _) = points.dim();
    ArrayD::from_shape_fn(IxDyn(&[3, readout, spokes]), |i| {
        C32::new(points.get((i[2], i[1], i[0])).map_or(0.0, |k| *k as f32), 0.0)
    })
}

/// Arrays one behind the other along a dimension.
fn along(parts: &[ArrayD<C32>], dim: usize) -> ArrayD<C32> {
    let parts: Vec<ArrayD<C32>> = parts
        .iter()
        .cloned()
        .map(|mut part| {
            while part.ndim() <= dim {
                let axis = Axis(part.ndim());
                part.insert_axis_inplace(axis);
            }
            part
        })
        .collect();
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    ndarray::concatenate(Axis(dim), &views).unwrap()
}

/// Seven frames of nine spokes, each with its own trajectory: as BART arrays, and each alone as NumPy arrays.
fn with_frames(folder: &Path) {
    let (data, points) = spokes(folder);
    let (mut samples, mut trajectories) = (Vec::new(), Vec::new());
    for time in 0..7 {
        let own = data.slice(s![.., time * 9..(time + 1) * 9, ..]).mapv(|v| v * factor(0, time, 0, 0));
        let places = points.slice(s![time * 9..(time + 1) * 9, .., ..]).to_owned();
        npy::write(folder.join(format!("samples-{time}.npy")), own.view()).unwrap();
        npy::write(folder.join(format!("traj-{time}.npy")), places.view()).unwrap();
        samples.push(own.insert_axis(Axis(3)).reversed_axes().into_dyn());
        trajectories.push(bart_points(&places));
    }
    cfl::write(folder.join("samples.cfl"), along(&samples, TIME).view()).unwrap();
    cfl::write(folder.join("trajs.cfl"), along(&trajectories, TIME).view()).unwrap();
    // The same spokes for all.
    let same: Vec<_> = (0..7).map(|time| samples[0].mapv(|v| v * (1 << time) as f32)).collect();
    cfl::write(folder.join("same.cfl"), along(&same, TIME).view()).unwrap();
    cfl::write(folder.join("traj.cfl"), trajectories[0].view()).unwrap();
}

#[test]
fn each_frame_has_its_own_trajectory_or_all_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    with_frames(f);
    let maps = "--maps maps.npy";
    ok(&command("recon mri scan.h5 -q --no-record -m cg-sense -o x.npy --save-maps maps.npy"), f);
    for (method, more) in [("gridding", ""), ("cg-sense", maps), ("cg-sense", "--independent")] {
        let run = |input: &str, output: &str, more: &str| {
            ok(&command(&format!("recon mri {input} -q --no-record -m {method} -o {output} {more}")), f);
        };
        let more_alone = if more == "--independent" { "" } else { more };
        for (samples, traj, alone) in [("samples", "trajs", true), ("same", "traj", false)] {
            let matrix = "--matrix 48,40";
            run(&format!("{samples}.cfl --traj {traj}.cfl {matrix}"), "all.cfl", more);
            assert_eq!(dims(f, "all.cfl"), [48, 40, 1, 1, 1, 1, 1, 1, 1, 1, 7]);
            let all = read_image(f.join("all.cfl")).unwrap().image.into_data();
            for time in [0, 3, 6] {
                let own = if alone { time } else { 0 };
                let input =
                    format!("samples-{own}.npy --traj traj-{own}.npy {matrix} --traj-units cycles/fov");
                run(&input, "one.npy", more_alone);
                let one = read_image(f.join("one.npy")).unwrap().image.into_data();
                let scale = if alone { 1.0 } else { (1 << time) as f32 };
                let (mut error, mut size) = (0.0, 0.0);
                for (a, b) in all.index_axis(Axis(0), time).iter().zip(&one) {
                    error += (a - b * scale).norm_sqr();
                    size += (b * scale).norm_sqr();
                }
                // One λ holds for all frames: eigenvalues of nine spokes differ little.
                let limit = if more == maps { 2e-2 } else { 1e-3 };
                let error = (error / size).sqrt();
                assert!(error < limit, "{method} {more} {samples} {time}: {error}");
            }
        }
    }
    // Maps for all from the first readouts of several frames: the streaks of nine spokes are in none of them.
    let text =
        said("recon mri samples.cfl --traj trajs.cfl --matrix 48,40 -m cg-sense -o x.cfl --no-record", f);
    assert!(text.contains("estimated from the first readouts"), "{text}");
    let one = said(
        "recon mri samples.cfl --traj trajs.cfl --matrix 48,40 -m gridding -o x.cfl --no-record --repetition 4",
        f,
    );
    assert!(one.contains("understood as 3 coils, 48 × 40, "), "{one}");
    assert_eq!(dims(f, "x.cfl"), [48, 40]);
    ok(
        &command(
            "recon mri samples-4.npy --traj traj-4.npy --matrix 48,40 --traj-units cycles/fov -q -m gridding -o y.cfl --no-record",
        ),
        f,
    );
    assert!(nrmse("x.cfl", "y.cfl", f) < 1e-6);
    // BART's own unit tells the matrix, over all frames.
    let text = said("recon mri samples.cfl --traj trajs.cfl -m gridding -o x.cfl --no-record", f);
    assert!(text.contains("by the trajectory's extent"), "{text}");
}

#[test]
fn echoes_are_the_series_of_a_temporal_basis() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    with_frames(f);
    for name in ["samples", "trajs"] {
        let mut array = values(&f.join(format!("{name}.cfl")));
        array.swap_axes(TE, TIME);
        cfl::write(f.join(format!("echo-{name}.cfl")), array.view()).unwrap();
    }
    let basis =
        Array2::from_shape_fn((7, 2), |(frame, i)| C32::new((frame as f32 + 1.0).powi(i as i32), 0.0));
    npy::write(f.join("basis.npy"), basis.view()).unwrap();
    let run = |prefix: &str, more: &str, output: &str| {
        let arrays = format!("{prefix}samples.cfl --traj {prefix}trajs.cfl --matrix 48,40");
        said(&format!("recon mri {arrays} -m cg-sense --device cpu --no-record -o {output} {more}"), f)
    };
    run("", "--basis basis.npy", "times.cfl");
    run("echo-", "--basis basis.npy", "echoes.cfl");
    // Coefficients lie in COEFF, as in BART's own tools.
    assert_eq!(dims(f, "echoes.cfl"), [48, 40, 1, 1, 1, 1, 2]);
    assert_eq!(values(&f.join("times.cfl")), values(&f.join("echoes.cfl")));
    // Without a basis echoes are contrasts.
    run("echo-", "--contrast 2", "one.cfl");
    assert_eq!(dims(f, "one.cfl"), [48, 40]);
    run("echo-", "--contrast 2-4", "three.cfl");
    assert_eq!(dims(f, "three.cfl"), [48, 40, 1, 1, 1, 3]);
    let line = "recon mri echo-samples.cfl --traj echo-trajs.cfl --matrix 48,40 --basis basis.npy --contrast 2 -o x.cfl";
    refused(&command(line), f, &["--basis", "several repetitions"]);
}

#[test]
fn maps_come_in_sets_and_slices() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let grid = grid(f);
    cfl::write(f.join("slices.cfl"), series(&plane(&grid), [1, 1, 1, 3]).view()).unwrap();
    cfl::write(f.join("times.cfl"), series(&plane(&grid), [1, 2, 1, 3]).view()).unwrap();
    cfl::write(f.join("one.cfl"), plane(&grid).view()).unwrap();
    let mut cut = plane(&grid);
    cut.swap_axes(0, 2);
    cfl::write(f.join("cut.cfl"), series(&cut, [1, 2, 1, 3]).view()).unwrap();
    let eye = Array2::from_diag(&ndarray::arr1(&[1.0, 1.5, 0.7])).mapv(|v| C32::new(v, 0.0));
    npy::write(f.join("covariance.npy"), eye.view()).unwrap();
    for (scan, image, maps) in [
        ("one", vec![27, 23], vec![27, 23, 1, 3, 2]),
        ("slices", vec![27, 23, 1, 1], vec![27, 23, 1, 3, 2]),
        ("times", vec![27, 23, 1, 1], vec![27, 23, 1, 3, 2]),
        ("cut", vec![1, 23, 27, 1], vec![1, 23, 27, 3, 2]),
    ] {
        for sets in [1, 2] {
            let estimated = format!("--sensitivities espirit --map-sets {sets} --calibration 9");
            for more in ["", "--noise-covariance covariance.npy"] {
                let run = |what: &str, output: &str| {
                    let line =
                        format!("recon mri {scan}.cfl -q --no-record -m cg-sense {what} {more} -o {output}");
                    ok(&command(&line), f);
                };
                run(&format!("{estimated} --save-maps maps.cfl"), "a.cfl");
                let mut wanted = maps.clone();
                wanted[4] = sets;
                let (mut dims_image, slices) = (image.clone(), scan != "one");
                if slices {
                    wanted.resize(14, 1);
                    wanted[SLICE] = 3;
                    dims_image.resize(14, 1);
                    dims_image[SLICE] = 3;
                    dims_image[TIME] = if scan == "slices" { 1 } else { 2 };
                }
                let used = wanted.iter().rposition(|&d| d > 1).unwrap() + 1;
                wanted.truncate(used);
                assert_eq!((dims(f, "a.cfl"), dims(f, "maps.cfl")), (dims_image, wanted), "{scan}");
                run("--maps maps.cfl", "b.cfl");
                let error = nrmse("b.cfl", "a.cfl", f);
                assert!(error < 1e-4, "{scan}, {sets} sets, {more}: {error}");
            }
        }
    }
    ok(&command("recon mri slices.cfl -q --no-record -m cg-sense --maps maps.cfl --slice 1 -o x.cfl"), f);
    refused(
        &command("recon mri one.cfl -o x.nii -m wavelet --maps maps.cfl"),
        f,
        &["sets of maps", "found 2"],
    );
    refused(
        &command("recon mri times.cfl -o x.nii --maps times.cfl"),
        f,
        &["times.hdr", "TIME (dimension 10)", "2"],
    );
}

#[test]
fn dimensions_that_number_no_images_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let plane = plane(&grid(f));
    for (dim, name) in [(4, "MAPS"), (6, "COEFF"), (9, "CSHIFT"), (12, "LEVEL"), (14, "AVG")] {
        let array = along(&[plane.clone(), plane.clone()], dim);
        cfl::write(f.join("k.cfl"), array.view()).unwrap();
        let wanted = format!("{name} (dimension {dim})");
        for more in ["", "--slice 0", "--traj k.cfl"] {
            refused(&command(&format!("recon mri k.cfl -o x.nii {more}")), f, &["k.hdr", &wanted, "found 2"]);
        }
    }
    cfl::write(f.join("k.cfl"), series(&plane, [1, 3, 1, 1]).view()).unwrap();
    refused(&command("recon mri k.cfl -o x.nii --repetition 3"), f, &["repetition", "from 0 to 2", "3"]);
    refused(&command("recon mri k.cfl -o x.nii --slice 1"), f, &["slice", "expected 0", "1"]);
    refused(&command("recon mri k.cfl -o x.nii --window 4"), f, &["--window", "BART array"]);
    cfl::write(f.join("one.cfl"), plane.view()).unwrap();
    refused(&command("recon mri one.cfl -o x.nii --repetition 0"), f, &["--repetition", "one image"]);
    // A frame without samples.
    let mut empty = series(&plane, [1, 3, 1, 2]);
    empty
        .slice_each_axis_mut(|axis| {
            if [TIME, SLICE].contains(&axis.axis.index()) { (1..2).into() } else { (..).into() }
        })
        .fill(C32::ZERO);
    cfl::write(f.join("empty.cfl"), empty.view()).unwrap();
    refused(
        &command("recon mri empty.cfl -o x.nii -m cartesian --repetition 1"),
        f,
        &["empty.cfl", "k-space, repetition 1, slice 1", "all zero"],
    );
    // Trajectories of other numbers of frames.
    with_frames(f);
    let points = cfl::read(f.join("trajs.cfl")).unwrap();
    let four =
        points.slice_each_axis(|axis| if axis.axis.index() == TIME { (..4).into() } else { (..).into() });
    cfl::write(f.join("four.cfl"), four).unwrap();
    let recon =
        |samples: &str, traj: &str| format!("recon mri {samples} --traj {traj} --matrix 48,40 -o x.npy");
    refused(
        &command(&recon("samples.cfl", "four.cfl")),
        f,
        &["four.hdr", "TIME (dimension 10)", "1 or 7, as the samples have", "found 4"],
    );
    let one = cfl::read(f.join("samples.cfl")).unwrap();
    let one = one.slice_each_axis(|axis| if axis.axis.index() == TIME { (..1).into() } else { (..).into() });
    cfl::write(f.join("sample.cfl"), one).unwrap();
    refused(&command(&recon("sample.cfl", "trajs.cfl")), f, &["trajs.hdr", "TIME", "1, as the samples have"]);
    refused(&command(&recon("samples-0.npy", "trajs.cfl")), f, &["samples", "found"]);
}

#[test]
fn memory_is_that_of_an_image_and_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 128,96 --coils 8");
    let Samples::Cartesian { kspace, .. } = frame(&f.join("scan.h5")).samples else {
        panic!("expected a grid")
    };
    let plane = plane(&kspace.into_dimensionality().unwrap());
    let mut peaks = Vec::new();
    for times in [4, 80] {
        cfl::write(f.join("k.cfl"), series(&plane, [1, times, 1, 1]).view()).unwrap();
        ok(&command("recon mri k.cfl -q -m cartesian -o image.npy"), f);
        let (parameters, peak) = parameters(&f.join("image.json"));
        let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
        assert!((0.9..1.3).contains(&ratio), "{times}: {ratio} of {peak}");
        peaks.push(peak);
    }
    // 80 images of 8 coils take 63 MB.
    assert!(peaks[1] < peaks[0] + 6e6, "{peaks:?}");
}
