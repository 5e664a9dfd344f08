use std::sync::Arc;

use ndarray::{Array3, ArrayD, IxDyn};
use proptest::prelude::*;
use rayspin_core::vector::dot;
use rayspin_kernels::median::reference as medians;
use rayspin_planes::bicubic::{Kernel, reference as bicubic};

use super::*;

fn device() -> Device {
    Device::cpu_with_threads(3).unwrap()
}

/// Numbers from −1 to 1 around `mean`.
fn noise(shape: [usize; 3], seed: u64, mean: f32) -> Array3<f32> {
    let mut state = seed | 1;
    Array3::from_shape_simple_fn(shape, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        mean + (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    })
}

fn volume(values: Array3<f32>, spacing_mm: [f64; 3]) -> Volume {
    Volume { values, geometry: Geometry { spacing_mm, ..Geometry::default() } }
}

fn filtered_on(device: &Device, text: &str, image: &Volume) -> Volume {
    let mut out = image.clone();
    Filters::default().parse(text).unwrap().apply(device, &mut out).unwrap();
    out
}

fn filtered(text: &str, image: &Volume) -> Volume {
    filtered_on(&device(), text, image)
}

/// Weights along one axis; beyond an edge the nearest voxel counts. `weights[j]` weighs the voxel j − r away.
fn along(values: &Array3<f64>, axis: usize, weights: &[f64]) -> Array3<f64> {
    let (count, reach) = (values.shape()[axis] as isize, weights.len() as isize / 2);
    Array3::from_shape_fn(values.dim(), |(z, y, x)| {
        let mut sum = 0.0;
        for (weight, offset) in weights.iter().zip(-reach..) {
            let mut at = [z, y, x];
            at[axis] = (at[axis] as isize + offset).clamp(0, count - 1) as usize;
            sum += weight * values[at];
        }
        sum
    })
}

fn wide(values: &Array3<f32>) -> Array3<f64> {
    values.mapv(f64::from)
}

fn close(found: &Array3<f32>, wanted: &Array3<f64>, tolerance: f64) {
    assert_eq!(found.dim(), wanted.dim());
    for ((at, found), wanted) in found.indexed_iter().zip(wanted) {
        assert!((f64::from(*found) - wanted).abs() <= tolerance, "{at:?}: {found} for {wanted}");
    }
}

/// The axes z, y and x, or y and x.
fn axes(name: &str) -> std::ops::Range<usize> {
    if name == "xy" { 1..3 } else { 0..3 }
}

fn shapes() -> impl Strategy<Value = [usize; 3]> {
    prop_oneof![
        prop::array::uniform3(1usize..14),
        (1usize..40, 1usize..40).prop_map(|(y, x)| [1, y, x]),
        (1usize..30).prop_map(|z| [z, 1, 2]),
    ]
}

fn either() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("xyz"), Just("xy")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_gaussian_is_the_sum_of_its_weights(
        shape in shapes(), axes_of in either(), sigma in 0.2f64..4.0, spacing in prop::array::uniform3(0.4f64..3.0),
        in_voxels in any::<bool>(), seed in any::<u64>(),
    ) {
        let image = volume(noise(shape, seed, 3.0), spacing);
        let mut wanted = wide(&image.values);
        for axis in axes(axes_of) {
            let sigma = if in_voxels { sigma } else { sigma / spacing[2 - axis] };
            let reach = (4.0 * sigma).ceil() as i32;
            let weights: Vec<f64> = (-reach..=reach).map(|i| (-0.5 * (f64::from(i) / sigma).powi(2)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            wanted = along(&wanted, axis, &weights.iter().map(|w| w / sum).collect::<Vec<_>>());
        }
        let unit = if in_voxels { "voxel" } else { "mm" };
        let out = filtered(&format!("gaussian:{sigma},{axes_of},{unit}"), &image);
        close(&out.values, &wanted, 1e-5);
        prop_assert_eq!(out.geometry, image.geometry);
    }

    #[test]
    fn a_box_is_the_mean_of_its_voxels(shape in shapes(), axes_of in either(), reach in 0usize..9, seed in any::<u64>()) {
        let image = volume(noise(shape, seed, -2.0), [1.0; 3]);
        let size = 2 * reach + 1;
        let mut wanted = wide(&image.values);
        for axis in axes(axes_of) {
            wanted = along(&wanted, axis, &vec![1.0 / size as f64; size]);
        }
        close(&filtered(&format!("box:{size},{axes_of}"), &image).values, &wanted, 1e-5);
    }

    #[test]
    fn a_median_is_the_middle_of_its_sorted_voxels(
        shape in shapes(), axes_of in either(), reach in 0usize..4, seed in any::<u64>(),
    ) {
        let image = volume(noise(shape, seed, 0.0), [1.0; 3]);
        let out = filtered(&format!("median:{},{axes_of}", 2 * reach + 1), &image);
        let through = if axes_of == "xy" { 0 } else { reach };
        let values = image.values.as_slice().unwrap();
        let wanted = medians::boxed(values, shape, [through, reach, reach]);
        prop_assert_eq!(out.values.as_slice().unwrap(), &wanted[..]);
    }

    #[test]
    fn sobel_is_the_length_of_the_gradient(
        shape in shapes(), axes_of in either(), spacing in prop::array::uniform3(0.4f64..3.0), seed in any::<u64>(),
    ) {
        let image = volume(noise(shape, seed, 5.0), spacing);
        let mut squares = Array3::<f64>::zeros(shape);
        for axis in axes(axes_of) {
            let mut gradient = wide(&image.values);
            for other in axes(axes_of) {
                let slope = 0.5 / spacing[2 - axis];
                gradient = along(&gradient, other, &if other == axis { [-slope, 0.0, slope] } else { [0.25, 0.5, 0.25] });
            }
            squares += &gradient.mapv(|g| g * g);
        }
        close(&filtered(&format!("sobel:{axes_of}"), &image).values, &squares.mapv(f64::sqrt), 1e-5);
    }

    #[test]
    fn resize_interpolates_along_each_axis(
        shape in shapes(), to in prop::array::uniform3(1usize..30), seed in any::<u64>(),
    ) {
        let image = volume(noise(shape, seed, 1.0), [0.7, 1.1, 3.0]);
        let mut wanted = wide(&image.values);
        for (axis, (from, to)) in shape.into_iter().zip(to).enumerate() {
            let sigma = 0.5 * (from as f64 / to as f64 - 1.0);
            if sigma > 0.0 {
                let reach = (4.0 * sigma).ceil() as i32;
                let weights: Vec<f64> = (-reach..=reach).map(|i| (-0.5 * (f64::from(i) / sigma).powi(2)).exp()).collect();
                let sum: f64 = weights.iter().sum();
                wanted = along(&wanted, axis, &weights.iter().map(|w| w / sum).collect::<Vec<_>>());
            }
        }
        for (axis, (from, to)) in shape.into_iter().zip(to).enumerate() {
            let mut size = wanted.dim();
            match axis { 0 => size.0 = to, 1 => size.1 = to, _ => size.2 = to }
            let before = wanted;
            wanted = Array3::from_shape_fn(size, |(z, y, x)| {
                let (first, part) = bicubic::place([z, y, x][axis], from, to);
                (-1..=2isize).map(|i| {
                    let mut at = [z, y, x];
                    at[axis] = (first + i).clamp(0, from as isize - 1) as usize;
                    bicubic::weight(Kernel::Keys(-0.5), part - i as f64) * before[at]
                }).sum()
            });
        }
        let out = filtered(&format!("resize:x={},y={},z={}", to[2], to[1], to[0]), &image);
        close(&out.values, &wanted, 1e-5);
        // Both faces of the box stay where they are.
        let faces = |image: &Volume| {
            let (depth, rows, columns) = image.values.dim();
            let affine = image.geometry.affine_lps([depth, rows, columns]);
            let counts = [columns, rows, depth];
            [0.0, 1.0].map(|side| affine.map(|row| {
                let at: [f64; 3] = std::array::from_fn(|axis| side * counts[axis] as f64 - 0.5);
                dot([row[0], row[1], row[2]], at) + row[3]
            }))
        };
        for (a, b) in faces(&image).into_iter().flatten().zip(faces(&out).into_iter().flatten()) {
            prop_assert!((a - b).abs() < 1e-9, "{} {}", a, b);
        }
    }

    #[test]
    fn equalised_numbers_are_the_parts_of_voxels_below(shape in shapes(), bins in 2usize..300, seed in any::<u64>()) {
        let values = noise(shape, seed, 0.0).mapv(|v| v * v * v * 100.0 - 7.0);
        let image = volume(values, [1.0; 3]);
        let list: Vec<f64> = image.values.iter().map(|&v| f64::from(v)).collect();
        let (low, high) = list.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
        let out = filtered(&format!("equalise:{bins}"), &image);
        if low == high {
            prop_assert_eq!(out, image);
        } else {
            let mut counts = vec![0.0; bins];
            let place = |v: f64| (v - low) * bins as f64 / (high - low);
            list.iter().for_each(|&v| counts[(place(v) as usize).min(bins - 1)] += 1.0);
            let wanted = wide(&image.values).mapv(|v| {
                let bin = (place(v) as usize).min(bins - 1);
                let below: f64 = counts[..bin].iter().sum();
                low + (high - low) * (below + (place(v) - bin as f64) * counts[bin]) / list.len() as f64
            });
            close(&out.values, &wanted, 1e-4);
        }
    }

    #[test]
    fn histograms_count_every_number_once(
        count in 1usize..500, bins in 1usize..90, low in -1.5f64..1.0, width in 0.01f64..3.0, seed in any::<u64>(),
    ) {
        let values = noise([1, 1, count], seed, 0.0).into_raw_vec_and_offset().0;
        for range in [None, Some([low, low + width])] {
            let found = Histogram::of(&device(), &values, bins, range).unwrap();
            let within: Vec<f64> = values.iter().map(|&v| f64::from(v)).filter(|v| (found.low..=found.high).contains(v)).collect();
            prop_assert_eq!(found.outside as usize, count - within.len());
            let mut wanted = vec![0u64; bins];
            for value in within {
                let bin = (value - found.low) * bins as f64 / (found.high - found.low);
                wanted[(bin as usize).min(bins - 1)] += 1;
            }
            prop_assert_eq!(found.counts, wanted);
        }
    }
}

/// One of each filter, with windows that reach beyond small images.
const SOME: [&str; 9] = [
    "gaussian:2.5",
    "gaussian:40,voxel=voxel",
    "box:9",
    "box:301",
    "median:7",
    "sobel",
    "resize:2",
    "resize:0.3",
    "equalise",
];

fn some() -> impl Iterator<Item = String> {
    SOME.iter().map(|text| text.replace(",voxel=", ",unit="))
}

#[test]
fn a_constant_image_stays_constant() {
    for shape in [[1, 1, 1], [1, 9, 4], [5, 1, 3], [6, 7, 8], [2, 33, 70]] {
        let image = volume(Array3::from_elem(shape, -1000.0), [0.5, 0.8, 2.0]);
        for text in some() {
            let wanted = if text == "sobel" { 0.0 } else { -1000.0 };
            let out = filtered(&text, &image);
            let far = out.values.iter().map(|v| (v - wanted).abs()).fold(0.0, f32::max);
            assert!(far <= 4e-3, "{text} of {shape:?} is {far} off");
        }
    }
}

#[test]
fn an_impulse_becomes_the_kernel() {
    let mut image = volume(Array3::zeros([9, 9, 9]), [1.0; 3]);
    image.values[[4, 4, 4]] = 1.0;
    let smooth = filtered("gaussian:0.7", &image).values;
    let weight = |i: usize| (-0.5 * ((i as f64 - 4.0) / 0.7).powi(2)).exp();
    let sum: f64 = (1..8).map(weight).sum();
    for ((z, y, x), &value) in smooth.indexed_iter() {
        let wanted = match [z, y, x].iter().all(|i| (1..8).contains(i)) {
            true => weight(z) * weight(y) * weight(x) / sum.powi(3),
            false => 0.0,
        };
        assert!((f64::from(value) - wanted).abs() < 1e-7, "{z} {y} {x}: {value} for {wanted}");
    }
    let cube = filtered("box:5", &image).values;
    let inside = |i: usize| (2..7).contains(&i);
    for ((z, y, x), &value) in cube.indexed_iter() {
        let wanted = if inside(z) && inside(y) && inside(x) { 1.0 / 125.0 } else { 0.0 };
        assert!((value - wanted).abs() < 1e-8, "{z} {y} {x}: {value} for {wanted}");
    }
    assert_eq!(filtered("median", &image).values, Array3::<f32>::zeros([9, 9, 9]));
    // Smoothing moves numbers and makes none.
    for text in ["gaussian:0.7", "box:5"] {
        let sum: f64 = filtered(text, &image).values.iter().map(|&v| f64::from(v)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{text}: {sum}");
    }
}

#[test]
fn a_ramp_has_its_slope_for_a_gradient_and_stays_a_ramp_when_resized() {
    let (spacing, slope) = ([0.5, 2.0, 3.0], [3.0, -4.0, 12.0]);
    let ramp = |z: usize, y: usize, x: usize, spacing: [f64; 3], shift: f64| {
        [x, y, z].iter().zip(spacing).zip(slope).map(|((&i, h), g)| g * h * (i as f64 + shift)).sum::<f64>()
    };
    let image = Array3::from_shape_fn([7, 8, 9], |(z, y, x)| ramp(z, y, x, spacing, 0.5) as f32);
    let image = volume(image, spacing);
    let edges = filtered("sobel", &image).values;
    let plane = filtered("sobel:xy", &image).values;
    let twice = filtered("resize:2", &image);
    for ((z, y, x), &value) in edges.indexed_iter() {
        if (1..6).contains(&z) && (1..7).contains(&y) && (1..8).contains(&x) {
            assert!((value - 13.0).abs() < 1e-4 && (plane[[z, y, x]] - 5.0).abs() < 1e-4, "{value}");
        }
    }
    assert_eq!(twice.geometry.spacing_mm, [0.25, 1.0, 1.5]);
    for ((z, y, x), &value) in twice.values.indexed_iter() {
        if (4..10).contains(&z) && (4..12).contains(&y) && (4..14).contains(&x) {
            let wanted = ramp(z, y, x, twice.geometry.spacing_mm, 0.5);
            assert!((f64::from(value) - wanted).abs() < 1e-4, "{value} for {wanted}");
        }
    }
}

#[test]
fn resize_takes_a_factor_a_voxel_or_numbers() {
    let image = volume(Array3::zeros([10, 20, 30]), [1.0, 2.0, 4.0]);
    for (text, shape) in [
        ("resize:0.5", (5, 10, 15)),
        ("resize:1.26", (13, 25, 38)),
        ("resize:0.001", (1, 1, 1)),
        ("resize:voxel=2", (20, 20, 15)),
        ("resize:voxel=2,z=7", (7, 20, 15)),
        ("resize:x=8", (10, 20, 8)),
        ("resize:2,y=3", (20, 3, 60)),
    ] {
        assert_eq!(filtered(text, &image).values.dim(), shape, "{text}");
    }
    // A 2-D image stays one.
    let flat = volume(Array3::zeros([1, 20, 30]), [1.0, 2.0, 4.0]);
    assert_eq!(filtered("resize:2", &flat).values.dim(), (1, 40, 60));
    assert_eq!(filtered("resize:voxel=1", &flat).values.dim(), (1, 40, 30));
    assert_eq!(filtered("resize:2,z=3", &flat).values.dim(), (3, 40, 60));
}

#[test]
fn texts_that_name_no_filter_are_refused() {
    let filters = Filters::default();
    for (text, words) in [
        ("blur", "filter: expected gaussian, box, median, sobel, resize or equalise, found blur"),
        ("gaussian:0", "sigma of the Gaussian: expected a number above 0, found 0"),
        ("gaussian:nan", "sigma of the Gaussian: expected a number above 0, found NaN"),
        ("gaussian:wide", "sigma of the Gaussian: expected a number above 0, found 'wide'"),
        ("gaussian:1,sigma=2", "sigma of gaussian: expected one value, found two"),
        ("gaussian:1,xz", "axes: expected xyz or xy, found 'xz'"),
        ("gaussian:width=2", "parameter of gaussian: expected sigma, axes, unit, found width"),
        ("box:4", "width of the window: expected an odd number from 1 to 4095, found 4"),
        ("box:-3", "width of the window: expected an odd number from 1 to 4095, found '-3'"),
        ("sobel:xyz,3", "parameter of sobel: expected axes, found 3"),
        ("resize", "resize: expected one of factor, voxel, x, y, z, found none"),
        ("resize:2,voxel=1", "resize: expected factor or voxel, found both"),
        (
            "resize:2,x=1,y=1,z=1",
            "resize: expected factor or voxel for an axis without a number, found x, y and z",
        ),
        ("resize:x=0", "x: expected 1 to 1048576, found 0"),
        ("equalise:1", "bins: expected 2 to 65535, found 1"),
        ("median:", "width of the window: expected an odd number from 1 to 4095, found ''"),
    ] {
        let told = filters.parse(text).expect_err(text).to_string();
        assert_eq!(told, words, "{text}");
    }
    assert!(filters.check_agreement().is_ok());
    // What a filter is called makes the same filter.
    for given in some() {
        let filter = filters.parse(&given).unwrap();
        let name = text(&*filter);
        assert_eq!(text(&*filters.parse(&name).unwrap()), name);
    }
}

#[test]
fn images_that_cannot_be_filtered_are_refused() {
    let filters = Filters::default();
    let run = |text: &str, shape: &[usize], value: f32| {
        let image = Image::new(ArrayD::from_elem(IxDyn(shape), value), Geometry::default()).unwrap();
        run(&device(), &[filters.parse(text).unwrap()], image, &Monitor::silent())
    };
    for value in [f32::NAN, f32::INFINITY] {
        let told = run("box", &[3, 4], value).unwrap_err().to_string();
        assert!(
            told.starts_with("image to filter: expected finite numbers, found")
                && told.ends_with("at index 0"),
            "{told}"
        );
    }
    for (text, words) in [
        ("median:17", "at most 4096 voxels"),
        ("gaussian:1e6", "sigma of a Gaussian"),
        ("resize:1e9", "at most 1048576"),
        ("resize:1e5", "memory"),
    ] {
        let told = run(text, &[3, 4, 5], 1.0).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
    assert!(Histogram::of(&device(), &[], 3, None).is_err());
    assert!(Histogram::of(&device(), &[1.0], 0, None).is_err());
    assert!(Histogram::of(&device(), &[1.0], MOST_BINS + 1, None).is_err());
    assert!(Histogram::of(&device(), &[1.0], 3, Some([2.0, 2.0])).is_err());
    assert!(Histogram::of(&device(), &[f32::NAN], 3, None).is_err());
}

#[test]
fn each_repetition_of_a_series_is_filtered_alone() {
    let filters = Filters::default();
    let steps: Vec<Arc<dyn Filter>> =
        ["gaussian:1", "resize:2", "equalise"].map(|text| filters.parse(text).unwrap()).into();
    let of = |values: ArrayD<f32>| {
        run(&device(), &steps, Image::new(values, Geometry::default()).unwrap(), &Monitor::silent()).unwrap()
    };
    let two = [4, 5].map(|seed| noise([3, 6, 7], seed, 1.0).into_dyn());
    let series = of(ndarray::stack(Axis(0), &[two[0].view(), two[1].view()]).unwrap());
    assert_eq!((series.repetitions(), series.shape_zyx()), (2, [6, 12, 14]));
    for (alone, together) in two.into_iter().map(of).zip(series.data().outer_iter()) {
        assert_eq!(alone.data(), together);
        assert_eq!(alone.geometry(), series.geometry());
    }
}

#[test]
fn a_gpu_gives_the_same_image() {
    let image = volume(noise([4, 17, 21], 3, 2.0), [1.0, 1.5, 2.0]);
    for device in rayspin_emu::devices().unwrap() {
        for text in some() {
            let wanted = filtered(&text, &image);
            let found = filtered_on(&device, &text, &image);
            close(&found.values, &wide(&wanted.values), 1e-4);
            assert_eq!(found.geometry, wanted.geometry, "{text}");
        }
    }
}
