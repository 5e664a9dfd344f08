use ndarray::{Array2, Array5, ArrayD, Axis, IxDyn, s};
use proptest::prelude::*;
use rayspin_core::{C32, Trajectory};
use rayspin_io::cfl::{
    self, Axes, Cartesian, Layout, dim, samples_from_bart, samples_to_bart, trajectory_from_bart,
    trajectory_to_bart,
};
use rayspin_io::{Error, detect};

use crate::real_data::real_data;
use crate::support::{folder, python, random};

#[test]
fn files_are_exchanged_with_numpy() {
    let folder = folder();
    let dims = [3, 4, 2, 5, 1, 2];
    let expected = ArrayD::from_shape_fn(IxDyn(&dims), |i| {
        let sum: f32 = (0..6).map(|n| 10f32.powi(n as i32) * (i[n] + 1) as f32).sum();
        C32::new(sum, i[0] as f32)
    });
    cfl::write(folder.path().join("ours"), expected.view()).unwrap();
    if python("cfl_numpy.py", "write", folder.path()) {
        let theirs = cfl::read(folder.path().join("theirs.hdr")).unwrap();
        assert_eq!(theirs.shape(), [3, 4, 2, 5, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(theirs.iter().eq(expected.iter()));
        python("cfl_numpy.py", "check", folder.path());
    }
}

#[test]
fn every_way_to_name_the_pair_works() {
    let folder = folder();
    let array = random(1, &[4, 3, 2]);
    for (n, name) in ["plain", "with.dots", "end.cfl", "end2.hdr"].into_iter().enumerate() {
        let path = folder.path().join(name);
        cfl::write(&path, array.view()).unwrap();
        let base = folder.path().join(name.trim_end_matches(".cfl").trim_end_matches(".hdr"));
        for end in ["", ".cfl", ".hdr"] {
            let path = format!("{}{end}", base.display());
            assert!(cfl::read(&path).unwrap().iter().eq(array.iter()), "{n} {path}");
            assert_eq!(detect(&path).unwrap().name, "BART array", "{path}");
        }
    }
}

#[test]
fn damaged_pairs_are_refused_by_name() {
    let folder = folder();
    let path = folder.path().join("a");
    let (data, header) = cfl::file_pair(&path);
    let array = random(2, &[4, 3]);
    let fresh = || cfl::write(&path, array.view()).unwrap();
    let refused = |what: &str| {
        let error = cfl::read(&path).expect_err(what);
        assert!(!error.to_string().contains('\n'), "{error}");
        error
    };

    fresh();
    std::fs::remove_file(&header).unwrap();
    assert!(matches!(refused("no header"), Error::Open { path, .. } if path == header));
    fresh();
    std::fs::remove_file(&data).unwrap();
    assert!(matches!(refused("no data"), Error::Open { path, .. } if path == data));
    fresh();
    std::fs::write(&data, vec![0; 4 * 3 * 8 - 1]).unwrap();
    let short = refused("short");
    assert!(matches!(short, Error::Truncated { .. }) && short.to_string().contains(".hdr"), "{short}");
    std::fs::write(&data, vec![0; 4 * 3 * 8 + 8]).unwrap();
    let long = refused("long");
    assert!(long.hint().is_some() && long.to_string().contains("96 bytes for dimensions 4 3 1"), "{long}");

    for text in [
        "",
        "4 3\n",
        "# Dimensions",
        "# Dimensions\n# Command\n",
        "# Dimensions\n4 x\n",
        "# Dimensions\n4 0\n",
        "# Dimensions\n4 -3\n",
        "# Dimensions\n99999999999999999999 1\n",
        "# Dimensions\n1000000000 1000000000 1000000000\n",
        "# Dimensions\n1000000000\n",
        "# Dimensions\n1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
        "# Dimensions\n5 3\n",
    ] {
        fresh();
        std::fs::write(&header, text).unwrap();
        refused(text);
    }
    std::fs::write(&header, format!("# Dimensions\n{}", "1 ".repeat(1_000_000))).unwrap();
    refused("a million dimensions");
    std::fs::write(&header, "# Creator\nBART\n\n#Dimensions\n\n 4 3 \n").unwrap();
    fresh();
    assert!(cfl::write(&path, ArrayD::zeros(IxDyn(&[2, 0])).view()).is_err());
    assert!(cfl::write(&path, ArrayD::zeros(IxDyn(&[1; 17])).view()).is_err());
    assert!(cfl::write(folder.path().join("missing/a"), array.view()).is_err());
}

/// The array as the layout has it, without sizes of 1 at its end.
fn back(layout: Layout, data: &Array5<C32>) -> ArrayD<C32> {
    let mut array = layout.to_bart(data.view().into_dyn()).unwrap().into_owned();
    while array.shape().last() == Some(&1) {
        array.index_axis_inplace(Axis(array.ndim() - 1), 0);
    }
    array
}

#[test]
fn a_volume_keeps_its_axes_and_a_cut_across_the_readout_lies_flat() {
    let volume = random(3, &[5, 4, 3, 2]);
    let ours = Cartesian::from_bart(volume.view()).unwrap();
    assert_eq!((ours.data.dim(), ours.layout.axes), ((1, 2, 3, 4, 5), Axes::ReadIsX));
    assert_eq!(ours.data[[0, 1, 2, 3, 4]], volume[[4, 3, 2, 1]]);
    assert_eq!(ours.layout, Layout::default());
    assert_eq!(back(ours.layout, &ours.data), volume);
    assert_eq!(ours.single().unwrap().dim(), (2, 3, 4, 5));

    let cut = random(4, &[1, 4, 3, 2]);
    let ours = Cartesian::from_bart(cut.view()).unwrap();
    assert_eq!((ours.data.dim(), ours.layout.axes), ((1, 2, 1, 4, 3), Axes::ReadIsZ));
    assert_eq!(ours.data[[0, 1, 0, 3, 2]], cut[[0, 3, 2, 1]]);
    assert!(ours.layout.axes.note().is_some());
    assert_eq!(back(ours.layout, &ours.data), cut);

    // Slices of a 2-D scan are z of an image; k-space has them as frames.
    let slices = random(5, &[5, 4, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3]);
    let image = Cartesian::image_from_bart(slices.view()).unwrap();
    assert_eq!((image.data.dim(), image.layout.axes), ((2, 1, 3, 4, 5), Axes::SliceIsZ));
    assert_eq!(image.data[[1, 0, 2, 3, 4]], slices[[4, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]]);
    assert_eq!(back(image.layout, &image.data), slices);
    assert_eq!(Cartesian::from_bart(slices.view()).unwrap().data.dim(), (6, 1, 1, 4, 5));

    // Slices across the readout: x is PHS2.
    let slices = random(6, &[1, 4, 5, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3]);
    let image = Cartesian::image_from_bart(slices.view()).unwrap();
    assert_eq!((image.data.dim(), image.layout.axes), ((2, 1, 3, 4, 5), Axes::SliceIsZOfCut));
    assert_eq!(image.data[[1, 0, 2, 3, 4]], slices[[0, 3, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]]);
    assert_eq!(back(image.layout, &image.data), slices);
}

#[test]
fn frames_run_through_the_later_dimensions() {
    let series = random(5, &[3, 2, 1, 2, 1, 4, 1, 1, 1, 1, 5]);
    let ours = Cartesian::from_bart(series.view()).unwrap();
    assert_eq!(ours.data.dim(), (20, 2, 1, 2, 3));
    // TE varies faster than TIME.
    let expected = series.slice(s![2, 1, 0, 1, 0, 3, 0, 0, 0, 0, 2]);
    assert_eq!(ours.data[[3 + 4 * 2, 1, 0, 1, 2]], expected[[]]);
    assert_eq!(back(ours.layout, &ours.data), series);
    let several = ours.clone().single().unwrap_err().to_string();
    assert!(several.contains("TE (dimension 5) of 4, TIME (dimension 10) of 5"), "{several}");
    let other = ours.layout.with_frames(7, dim::TIME);
    assert_eq!(other.frames, [1, 1, 1, 1, 1, 1, 7, 1, 1, 1, 1, 1]);
    assert!(other.to_bart(ours.data.view().into_dyn()).is_err());
    assert_eq!(ours.layout.with_frames(20, dim::TIME), ours.layout);
    // The values' order in memory does not matter.
    let turned = ours.data.t().as_standard_layout().into_owned();
    assert_eq!(
        ours.layout.to_bart(turned.t().into_dyn()).unwrap(),
        ours.layout.to_bart(ours.data.view().into_dyn()).unwrap()
    );
}

#[test]
fn trajectories_and_samples_run_along_readouts() {
    let points = Array2::from_shape_fn((12, 2), |(i, d)| i as f64 * 0.5 - 3.0 + 10.0 * d as f64);
    let planar = Trajectory::from_cycles_per_fov(points).unwrap();
    let bart = trajectory_to_bart(&planar, 4).unwrap();
    assert_eq!(bart.shape(), [3, 4, 3]);
    assert_eq!(bart[[1, 2, 1]].re, planar.points()[[6, 1]] as f32);
    assert_eq!(trajectory_from_bart(bart.view()).unwrap(), planar);

    let spatial =
        Trajectory::from_cycles_per_fov(Array2::from_shape_fn((6, 3), |(i, d)| (i * 3 + d) as f64)).unwrap();
    let bart = trajectory_to_bart(&spatial, 6).unwrap();
    assert_eq!(trajectory_from_bart(bart.view()).unwrap(), spatial);
    assert!(trajectory_to_bart(&spatial, 4).is_err() && trajectory_to_bart(&spatial, 0).is_err());

    let samples = random(6, &[3, 12]).into_dimensionality().unwrap();
    let bart = samples_to_bart(samples.view(), 4).unwrap();
    assert_eq!(bart.shape(), [1, 4, 3, 3]);
    assert_eq!(bart[[0, 2, 1, 2]], samples[[2, 6]]);
    assert_eq!(samples_from_bart(bart.view()).unwrap(), samples);

    for shape in [&[2, 4, 3][..], &[3, 4, 3, 2], &[3, 4, 3, 1, 1, 2], &[3, 0, 3]] {
        assert!(trajectory_from_bart(ArrayD::zeros(IxDyn(shape)).view()).is_err(), "{shape:?}");
    }
    let complex = ArrayD::from_elem(IxDyn(&[3, 4]), C32::new(0.0, 1.0));
    assert!(trajectory_from_bart(complex.view()).is_err());
    let nan = ArrayD::from_elem(IxDyn(&[3, 4]), C32::new(f32::NAN, 0.0));
    assert!(trajectory_from_bart(nan.view()).is_err());
    assert!(samples_from_bart(ArrayD::zeros(IxDyn(&[3, 4])).view()).is_err());
}

#[test]
fn the_real_head_scan_is_a_plane_of_eight_coils() {
    let Some(path) = real_data("mri/brain_cartesian_8ch.hdr") else {
        return;
    };
    let array = cfl::read(&path).unwrap();
    assert_eq!(&array.shape()[..5], [1, 230, 180, 8, 1]);
    assert_eq!((array.shape()[dim::READ], array.shape()[dim::COIL]), (1, 8));
    let ours = Cartesian::from_bart(array.view()).unwrap();
    assert_eq!(ours.layout.axes, Axes::ReadIsZ);
    let kspace = ours.single().unwrap();
    assert_eq!(kspace.dim(), (8, 1, 230, 180));
    let power = kspace.mapv(|v| f64::from(v.norm_sqr())).sum_axis(Axis(0));
    let kept = power.iter().filter(|p| **p > 0.0).count() as f64 / power.len() as f64;
    assert!((kept - 0.1243).abs() < 1e-3, "{kept}");
    let ((_, y, x), _) = power.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    assert!(y.abs_diff(115) <= 2 && x.abs_diff(90) <= 2, "{y} {x}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn arrays_round_trip(seed in any::<u64>(), shape in prop::collection::vec(1usize..5, 0..9)) {
        let folder = folder();
        let array = random(seed, &shape);
        cfl::write(folder.path().join("a"), array.view()).unwrap();
        let back = cfl::read(folder.path().join("a")).unwrap();
        prop_assert_eq!(back.ndim(), 16);
        prop_assert_eq!(&back.shape()[..shape.len()], &shape[..]);
        prop_assert!(back.iter().eq(array.iter()));
        for ours in [Cartesian::from_bart(back.view()).unwrap(), Cartesian::image_from_bart(back.view()).unwrap()] {
            prop_assert_eq!(&ours.layout.to_bart(ours.data.view().into_dyn()).unwrap(), &back);
        }
    }
}
