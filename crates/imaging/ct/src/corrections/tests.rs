use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use ndarray::{Array2, Array3, ArrayD, Axis, s};
use proptest::prelude::*;
use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin_device::Device;
use rayspin_imaging::phantom::Contrast;
use rayspin_kernels::median::reference as medians;

use super::*;
use crate::methods::Fbp;
use crate::phantom::{Form, Phantom, Solid};
use crate::recon::{ReconOptions, reconstruct};
use crate::simulate::{Beam, DetectorOptions, Spectrum, beam_lines, counted};

fn device() -> Device {
    Device::cpu_with_threads(3).unwrap()
}

/// Numbers from −1 to 1.
fn noise(seed: u64, at: usize) -> f64 {
    let mut state = seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        state = (state ^ (state >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn corrected(correction: &dyn Correction, values: &Array3<f32>) -> Array3<f32> {
    let mut views = Views { values: values.clone(), content: Content::Lines, pixel_mm: Some([0.01, 0.02]) };
    correction.views(&device(), &mut views).unwrap();
    views.values
}

fn close(found: &Array3<f32>, wanted: &Array3<f64>, tolerance: f64) {
    assert_eq!(found.dim(), wanted.dim());
    for ((at, found), wanted) in found.indexed_iter().zip(wanted) {
        assert!((f64::from(*found) - wanted).abs() <= tolerance, "{at:?}: {found} for {wanted}");
    }
}

/// A smooth object with noise, and columns that respond in their own way.
fn sinogram(views: usize, columns: usize, seed: u64) -> Array2<f64> {
    Array2::from_shape_fn((views, columns), |(view, column)| {
        let x = (column as f64 - 0.5 * columns as f64) / columns as f64;
        let shift = 0.1 * (PI * view as f64 / views as f64).cos();
        let body = (0.16 - (x - shift).powi(2)).max(0.0).sqrt();
        let gain = if column % 7 == 3 { 0.1 * noise(seed, column) } else { 0.01 * noise(seed, column) };
        let flutter = if column == columns / 3 { 0.5 * noise(seed ^ 5, view) } else { 0.0 };
        4.0 * body + gain + flutter + 0.02 * noise(seed ^ 9, view * columns + column)
    })
}

/// The same sinogram in each of a few rows, with different noise.
fn stack(views: usize, rows: usize, columns: usize, seed: u64) -> Array3<f32> {
    let mut all = Array3::zeros((views, rows, columns));
    for (row, mut plane) in all.axis_iter_mut(Axis(1)).enumerate() {
        plane.assign(&sinogram(views, columns, seed + row as u64).mapv(|p| p as f32));
    }
    all
}

/// Algorithms 6, 5 and 3 of Vo, Atwood and Drakopoulos on a transmission `[view, column]`, as plain as their
/// text.
mod vo {
    use super::*;

    fn sorted_with(values: &Array2<f64>, column: usize) -> Vec<(f64, usize)> {
        let mut list: Vec<(f64, usize)> = values.column(column).iter().copied().zip(0..).collect();
        list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        list
    }

    fn median(list: &[f64], width: usize) -> Vec<f64> {
        let reach = (width / 2) as i64;
        let window = |at: usize| {
            let mut window: Vec<f64> = (at as i64 - reach..=at as i64 + reach)
                .map(|i| list[medians::mirrored(i, list.len())])
                .collect();
            window.sort_by(f64::total_cmp);
            window[width / 2]
        };
        (0..list.len()).map(window).collect()
    }

    pub(super) fn stand_out(list: &[f64], snr: f64) -> Vec<bool> {
        let n = list.len();
        let mut sorted = list.to_vec();
        sorted.sort_by(f64::total_cmp);
        let drop = n / 4;
        let points: Vec<(f64, f64)> = (drop..n - drop - 1).map(|i| (i as f64, sorted[i])).collect();
        let m = points.len() as f64;
        let (sx, sy) = points.iter().fold((0.0, 0.0), |(sx, sy), (x, y)| (sx + x, sy + y));
        let (sxx, sxy) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x * x, b + x * y));
        let slope = (m * sxy - sx * sy) / (m * sxx - sx * sx);
        let first = (sy - slope * sx) / m;
        let last = first + slope * (n - 1) as f64;
        let level = (last - first).abs();
        let mut mask = vec![false; n];
        if level >= 1e-5 {
            for (mask, value) in mask.iter_mut().zip(list) {
                *mask = ((sorted[n - 1] - last).abs() / level >= snr && *value > last + 0.5 * level * snr)
                    || ((first - sorted[0]).abs() / level >= snr && *value <= first - 0.5 * level * snr);
            }
        }
        (0..n).map(|i| (i.saturating_sub(1)..=(i + 1).min(n - 1)).any(|i| mask[i])).collect()
    }

    fn smoothed(values: &Array2<f64>, width: usize) -> Vec<Vec<f64>> {
        let (views, columns) = values.dim();
        let sorted: Vec<Vec<(f64, usize)>> = (0..columns).map(|c| sorted_with(values, c)).collect();
        let mut out = vec![vec![0.0; views]; columns];
        for rank in 0..views {
            let list: Vec<f64> = sorted.iter().map(|column| column[rank].0).collect();
            for (column, value) in median(&list, width).into_iter().enumerate() {
                out[column][rank] = value;
            }
        }
        out
    }

    pub(super) fn all_stripes(mut t: Array2<f64>, rings: &Rings) -> Array2<f64> {
        let (views, columns) = t.dim();
        // Dead stripes.
        let mean_of_ten = |v: usize, c: usize| {
            (v as i64 - 5..v as i64 + 5).map(|v| t[[medians::mirrored(v, views), c]]).sum::<f64>() / 10.0
        };
        let sums: Vec<f64> =
            (0..columns).map(|c| (0..views).map(|v| (t[[v, c]] - mean_of_ten(v, c)).abs()).sum()).collect();
        let typical = median(&sums, rings.ring_large.unwrap());
        let factors: Vec<f64> = sums.iter().zip(&typical).map(|(a, b)| a / b).collect();
        let mut mask = stand_out(&factors, rings.ring_snr);
        for c in [0, 1, columns - 2, columns - 1] {
            mask[c] = false;
        }
        if mask.iter().filter(|m| **m).count() < columns / 3 {
            for c in (0..columns).filter(|c| mask[*c]) {
                let (Some(a), Some(b)) = ((0..c).rev().find(|c| !mask[*c]), (c..columns).find(|c| !mask[*c]))
                else {
                    continue;
                };
                for v in 0..views {
                    let part = (c - a) as f64 / (b - a) as f64;
                    t[[v, c]] = (1.0 - part) * t[[v, a]] + part * t[[v, b]];
                }
            }
        }
        // Large stripes.
        let smooth = smoothed(&t, rings.ring_large.unwrap());
        let drop = (0.5 * rings.ring_drop * views as f64) as usize;
        let sorted: Vec<Vec<(f64, usize)>> = (0..columns).map(|c| sorted_with(&t, c)).collect();
        let factors: Vec<f64> = (0..columns)
            .map(|c| {
                let above: f64 = sorted[c][drop..views - drop].iter().map(|(t, _)| t).sum();
                above / smooth[c][drop..views - drop].iter().sum::<f64>()
            })
            .collect();
        let mask = stand_out(&factors, rings.ring_snr);
        for c in 0..columns {
            for rank in 0..views {
                let (value, view) = sorted[c][rank];
                t[[view, c]] = if mask[c] { smooth[c][rank] } else { value / factors[c] };
            }
        }
        // Small stripes.
        let smooth = smoothed(&t, rings.ring_small.unwrap());
        let mut out = t.clone();
        for (c, smooth) in smooth.iter().enumerate() {
            for (rank, (_, view)) in sorted_with(&t, c).into_iter().enumerate() {
                out[[view, c]] = smooth[rank];
            }
        }
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn rings_are_removed_as_the_plain_algorithm_does(
        views in 8usize..50,
        rows in 1usize..5,
        columns in 8usize..70,
        seed in any::<u64>(),
    ) {
        let rings = Rings { ring_large: Some(15), ring_small: Some(5), ..Rings::default() };
        let values = stack(views, rows, columns, seed);
        let found = corrected(&rings, &values);
        for (row, found) in found.axis_iter(Axis(1)).enumerate() {
            // Rounded as the transmissions in f32 are, so that both sort the same numbers.
            let t = values.index_axis(Axis(1), row).mapv(|p| f64::from((-p).exp()));
            let wanted = vo::all_stripes(t, &rings).mapv(|t| -t.ln());
            for (found, wanted) in found.iter().zip(&wanted) {
                prop_assert!((f64::from(*found) - wanted).abs() < 1e-4, "{found} for {wanted}");
            }
        }
    }

    #[test]
    fn outliers_are_those_of_the_formula(
        views in 1usize..4,
        rows in 1usize..12,
        columns in 1usize..30,
        hits in prop::collection::vec((any::<prop::sample::Index>(), -500.0f64..500.0), 0..6),
        seed in any::<u64>(),
    ) {
        let mut values =
            Array3::from_shape_fn((views, rows, columns), |(v, r, c)| (100.0 + 3.0 * noise(seed, (v * rows + r) * columns + c)) as f32);
        for (place, height) in hits {
            let at = place.index(values.len());
            values.as_slice_mut().unwrap()[at] += height as f32;
        }
        let outliers = Outliers { outlier_size: 3, ..Outliers::default() };
        let found = corrected(&outliers, &values);
        // Views of a few rows are no images; then these are views beside views.
        let (axis, radius, most) = if rows < 3 { (Axis(1), [0, 1, 1], 2) } else { (Axis(0), [0, 1, 1], 2) };
        for (plane, found) in found.axis_iter(axis).enumerate() {
            let plane = values.index_axis(axis, plane);
            let (high, wide) = plane.dim();
            let shape = [1, high, wide];
            let x: Vec<f32> = plane.iter().copied().collect();
            let m = medians::boxed(&x, shape, radius);
            let distance: Vec<f32> = x.iter().zip(&m).map(|(x, m)| (x - m).abs()).collect();
            let d = medians::boxed(&distance, shape, radius);
            let mut sorted = d.clone();
            sorted.sort_by(f32::total_cmp);
            let least = sorted[sorted.len() / 2];
            for (at, found) in found.iter().enumerate() {
                let far = distance[at] > 8.0 * 1.4826 * d[at].max(least);
                let mut beyond = 0;
                for (row, column) in (0..9).map(|i| ((at / wide + i / 3) as i64 - 1, (at % wide + i % 3) as i64 - 1)) {
                    let near = x[medians::mirrored(row, high) * wide + medians::mirrored(column, wide)];
                    beyond += usize::from((near > 0.5 * (x[at] + m[at])) == (x[at] > m[at]));
                }
                prop_assert_eq!(*found, if far && beyond <= most { m[at] } else { x[at] }, "{}", at);
            }
        }
    }

    #[test]
    fn bins_are_means_of_counts_and_of_transmissions(
        shape in prop::array::uniform3(1usize..9),
        bins in prop::array::uniform3(1usize..4),
        seed in any::<u64>(),
    ) {
        prop_assume!((0..3).all(|axis| bins[axis] <= shape[axis]) && bins != [1; 3]);
        let values = Array3::from_shape_fn(shape, |(v, r, c)| (2.0 + noise(seed, (v * 9 + r) * 9 + c)) as f32);
        let bin = Bin { bin_views: bins[0], bin_rows: bins[1], bin_columns: bins[2] };
        for content in [Content::Counts, Content::Lines, Content::Fields] {
            let mut views = Views { values: values.clone(), content, pixel_mm: None };
            bin.views(&device(), &mut views).unwrap();
            let [v, h, w] = if content == Content::Fields { [1, bins[1], bins[2]] } else { bins };
            let wanted = Array3::from_shape_fn([shape[0] / v, shape[1] / h, shape[2] / w], |(a, b, c)| {
                let bin = values.slice(s![a * v..(a + 1) * v, b * h..(b + 1) * h, c * w..(c + 1) * w]);
                let mean = |f: fn(f64) -> f64| bin.iter().map(|x| f(f64::from(*x))).sum::<f64>() / bin.len() as f64;
                if content == Content::Lines { -mean(|p| (-p).exp()).ln() } else { mean(|x| x) }
            });
            close(&views.values, &wanted, 1e-5);
        }
    }

    #[test]
    fn stripes_are_removed_as_damped_coefficients_remove_them(
        views in 8usize..24,
        columns in 8usize..24,
        levels in 1usize..4,
        seed in any::<u64>(),
    ) {
        let values = stack(views, 2, columns, seed);
        let rings = RingsWavelet { ring_levels: Some(levels), ring_sigma: 1.3 };
        let found = corrected(&rings, &values);
        for (row, found) in found.axis_iter(Axis(1)).enumerate() {
            let lines = values.index_axis(Axis(1), row).mapv(f64::from);
            let wanted = rings_wavelet::reference::damped(&lines, levels, 1.3);
            for (found, wanted) in found.iter().zip(&wanted) {
                prop_assert!((f64::from(*found) - wanted).abs() < 1e-4, "{found} for {wanted}");
            }
        }
    }
}

#[test]
fn hits_are_removed_and_cracks_stay() {
    let crack = |view: usize, row: usize, column: usize| {
        let line = (2 * column).abs_diff(view + row + 30) < 2;
        (1000.0 + 10.0 * noise(3, (view * 40 + row) * 50 + column) - if line { 600.0 } else { 0.0 }) as f32
    };
    for (views, rows) in [(2, 40), (40, 1), (40, 2)] {
        let clean = Array3::from_shape_fn((views, rows, 50), |(view, row, column)| crack(view, row, column));
        let mut hit = clean.clone();
        let places = [(0, 0, 3), (1, rows / 2, 30), (1, rows / 2, 31)];
        places.iter().for_each(|at| hit[*at] = 5e4);
        let found = corrected(&Outliers::default(), &hit);
        for ((at, found), clean) in found.indexed_iter().zip(&clean) {
            let kept = if places.contains(&at) { (found - 1000.0).abs() < 60.0 } else { found == clean };
            assert!(kept, "{views} {rows} {at:?}: {found} for {clean}");
        }
    }
}

#[test]
fn the_phase_is_retrieved_of_an_object_whose_intensity_is_known() {
    // I = (1 − (z δ/μ) ∇²) e^(−μt): its inverse is the method's filter. A bump that is smooth over a few
    // pixels.
    let (rows, columns, pitch) = (41, 60, [0.001, 0.0015]);
    let phase = Phase { energy: Some(20.0), distance: Some(100.0), delta_beta: Some(20.0) };
    let area = 100.0 * 1.239_841_984e-6 / 20.0 * 20.0 / (4.0 * PI);
    let width = 0.006;
    let place =
        |row: usize, column: usize| [(column as f64 - 25.3) * pitch[0], (row as f64 - 19.1) * pitch[1]];
    let truth = |row, column| {
        let [x, y] = place(row, column);
        0.5 * (-(x * x + y * y) / (2.0 * width * width)).exp()
    };
    let intensity = |row, column| {
        let ([x, y], p) = (place(row, column), truth(row, column));
        let gradient = p * p * (x * x + y * y) / width.powi(4);
        let laplacian = p * ((x * x + y * y) / width.powi(4) - 2.0 / (width * width));
        // ∇² e^(−p) = e^(−p) (|∇p|² − ∇²p)
        (-p).exp() * (1.0 - area * (gradient - laplacian))
    };
    let lines = Array3::from_shape_fn((3, rows, columns), |(_, r, c)| -intensity(r, c).ln() as f32);
    let mut views = Views { values: lines.clone(), content: Content::Lines, pixel_mm: Some(pitch) };
    phase.views(&device(), &mut views).unwrap();
    let wanted = Array3::from_shape_fn((3, rows, columns), |(_, r, c)| truth(r, c));
    close(&views.values, &wanted, 2e-3);
    // Before, edges are far off; a view does not depend on the others.
    assert!(lines.iter().zip(&wanted).any(|(a, b)| (f64::from(*a) - b).abs() > 0.1));
    let mut alone = Views {
        values: lines.slice(s![..1, .., ..]).to_owned(),
        content: Content::Lines,
        pixel_mm: Some(pitch),
    };
    phase.views(&device(), &mut alone).unwrap();
    close(&alone.values, &views.values.slice(s![..1, .., ..]).mapv(f64::from), 1e-6);
    let mut unknown = Views { pixel_mm: None, ..alone };
    assert!(phase.views(&device(), &mut unknown).unwrap_err().to_string().contains("--pixel"));
}

#[test]
fn hardened_line_integrals_are_those_of_one_energy() {
    let tube = Spectrum::tube(120.0).unwrap();
    let truth = Array3::from_shape_fn((1, 1, 300), |(_, _, at)| 0.03 * at as f64);
    let seen = truth.mapv(|q| tube.seen(q, 0.0) as f32);
    close(&corrected(&Hardening { tube: Some(120.0), ..Hardening::default() }, &seen), &truth, 1e-5);
    let polynomial = Hardening { hardening_2: 0.1, hardening_3: -0.02, tube: None };
    let wanted = seen.mapv(|p| f64::from(p) + 0.1 * f64::from(p).powi(2) - 0.02 * f64::from(p).powi(3));
    close(&corrected(&polynomial, &seen), &wanted, 1e-5);
    // Noise around 0 keeps its mean.
    let around = Array3::from_shape_fn((1, 1, 2), |(_, _, at)| if at == 0 { 1e-3 } else { -1e-3 });
    let found = corrected(&Hardening { tube: Some(80.0), ..Hardening::default() }, &around);
    assert!((found[[0, 0, 0]] + found[[0, 0, 1]]).abs() < 1e-5);
}

#[test]
fn water_becomes_0_and_air_minus_1000() {
    let volume = Array3::from_shape_fn((1, 2, 3), |(_, y, x)| 0.01 * (3 * y + x) as f32);
    let mut stated = volume.clone();
    let cpu = device();
    let hounsfield = Hounsfield { water: Some(0.02), ..Hounsfield::default() };
    hounsfield.volume(cpu.cpu_side(), &mut stated).unwrap();
    close(&stated, &volume.mapv(|mu| 1000.0 * (f64::from(mu) - 0.02) / 0.02), 1e-3);
    // Water is 0.03 and 0.05 in the mean, air 0.01.
    let mask = |list: [f32; 6]| Some(Arc::new(ArrayD::from_shape_vec(vec![2, 3], list.to_vec()).unwrap()));
    let (water, air) = (mask([0., 0., 0., 1., 0., 2.]), mask([0., 1., 0., 0., 0., 0.]));
    let marked = Hounsfield { water_mask: water.clone(), air_mask: air, ..Hounsfield::default() };
    let mut measured = volume.clone();
    marked.volume(cpu.cpu_side(), &mut measured).unwrap();
    close(&measured, &volume.mapv(|mu| 1000.0 * (f64::from(mu) - 0.04) / 0.03), 1e-2);
    assert!(marked.expect_volume([1, 3, 3]).unwrap_err().to_string().contains("marks water"));
    assert!(
        Hounsfield { water_mask: mask([0.0; 6]), ..Hounsfield::default() }.expect_volume([1, 2, 3]).is_err()
    );
    for bad in [
        Hounsfield::default(),
        Hounsfield { water: Some(0.02), water_mask: water, ..Hounsfield::default() },
        Hounsfield { water: Some(0.02), air: 0.03, ..Hounsfield::default() },
    ] {
        assert!(bad.check().is_err());
    }
}

#[test]
fn binned_rays_are_in_the_middle_of_their_pixels() {
    let detector = Detector { rows: 5, columns: 8, pitch_mm: [0.5, 0.7], radius_mm: None };
    let orbit = Orbit {
        source_to_axis_mm: Some(100.0),
        axis_to_detector_mm: 50.0,
        offset_mm: [3.0, -2.0],
        tilt: 0.1,
        ..Orbit::default()
    };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.arc(0.0, TAU, 36)).unwrap();
    let pixel = |geometry: &ProjectionGeometry, view: usize, row: usize, column: usize| -> [f64; 3] {
        let (detector, view) = (geometry.detector(), &geometry.views()[view]);
        let u = (column as f64 - 0.5 * (detector.columns - 1) as f64) * detector.pitch_mm[0];
        let v = (row as f64 - 0.5 * (detector.rows - 1) as f64) * detector.pitch_mm[1];
        std::array::from_fn(|axis| view.detector_mm[axis] + u * view.u[axis] + v * view.v[axis])
    };
    let found = binned(&geometry, [3, 2, 3]).unwrap();
    assert_eq!(found.shape(), [12, 2, 2]);
    for (view, row, column) in [(0, 0, 0), (5, 1, 1), (11, 0, 1)] {
        let wanted: [f64; 3] = std::array::from_fn(|axis| {
            let pixels =
                (0..6).map(|at| pixel(&geometry, 3 * view + 1, 2 * row + at / 3, 3 * column + at % 3)[axis]);
            pixels.sum::<f64>() / 6.0
        });
        let found = pixel(&found, view, row, column);
        assert!((0..3).all(|axis| (found[axis] - wanted[axis]).abs() < 1e-9), "{found:?} for {wanted:?}");
    }
    assert!(binned(&geometry, [1, 6, 1]).is_err() && binned(&geometry, [0, 1, 1]).is_err());
    let curved = Detector { radius_mm: Some(150.0), ..detector };
    let curved = ProjectionGeometry::new(curved, geometry.views().to_vec()).unwrap();
    assert!(binned(&curved, [1, 1, 3]).is_err() && binned(&curved, [2, 2, 4]).is_ok());
}

#[test]
fn corrections_act_in_the_order_of_the_table() {
    let table = Table::default();
    table.check_agreement().unwrap();
    table.iter().try_for_each(Parameters::check_values).unwrap();
    let list = Corrections::new([
        Rings::default().into(),
        Bin { bin_views: 2, ..Bin::default() }.into(),
        Outliers::default().into(),
    ]);
    let list = list.unwrap();
    let names: Vec<_> = list.iter().map(|one| one.about().name).collect();
    assert_eq!(names, ["outliers", "bin", "rings"]);
    assert_eq!(list.bins(), [2, 1, 1]);
    assert!(list.check_arriving(9).unwrap_err().to_string().contains("bin"));
    assert!(Corrections::new([Rings::default().into(), Rings::default().into()]).is_err());
    assert!(Corrections::new([Phase::default().into()]).unwrap_err().to_string().contains("--energy"));
    assert!(Corrections::new([Hardening::default().into()]).unwrap_err().to_string().contains("--tube"));
    assert!(Corrections::new([Bin::default().into()]).is_err());
    assert!(Corrections::new([Rings { ring_small: Some(4), ..Rings::default() }.into()]).is_err());
    // Angles of views that become one, around the turn.
    let scan = Scan::new(
        Measured::Lines(Array3::from_elem((5, 1, 16), 1.0)),
        vec![6.2, TAU - 6.2, 0.1, 0.3, 9.0],
        None,
    );
    let bin = Corrections::new([Bin { bin_views: 2, ..Bin::default() }.into()]).unwrap();
    let found = bin.lines(&device(), scan.unwrap(), None, &mut Vec::new()).unwrap();
    assert_eq!(found.shape(), [2, 1, 16]);
    assert!(
        (found.angles[0] - TAU).abs() < 1e-9 && (found.angles[1] - 0.2).abs() < 1e-12,
        "{:?}",
        found.angles
    );
    // Sinograms that are none of transmissions.
    let scan = Scan::new(Measured::Lines(Array3::from_elem((9, 1, 16), 1e4)), vec![0.0; 9], None).unwrap();
    let rings = Corrections::new([Rings::default().into()]).unwrap();
    assert!(
        rings.lines(&device(), scan, None, &mut Vec::new()).unwrap_err().to_string().contains("remove rings")
    );
}

/// A slice of a scan of the head whose gains drift, by filtered back-projection.
fn slice(drift: f64, corrections: &Corrections) -> Array2<f64> {
    let device = device();
    let detector = Detector { rows: 1, columns: 384, pitch_mm: [0.5; 2], radius_mm: None };
    let orbit = Orbit::default().arc(0.0, PI, 480);
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let head = Phantom::shepp_logan(2, 170.0, Contrast::Modified, 0.0206).unwrap();
    let scan =
        beam_lines(device.cpu_side(), &head, &geometry, &orbit.angles, &Beam { rays: 2, ..Beam::default() })
            .unwrap();
    let options = DetectorOptions { drift, ..DetectorOptions::default() };
    let scan = counted(device.cpu_side(), scan, &options).unwrap();
    let scan = corrections.lines(&device, scan, None, &mut Vec::new()).unwrap();
    let Measured::Lines(lines) = scan.measured else { panic!("line integrals") };
    let grid = VolumeGrid::new([1, 384, 384], [0.5; 3], [0.0; 3]).unwrap();
    let options = ReconOptions::new(Fbp::default(), grid);
    let made = reconstruct(&device, lines, &geometry, &options, &Monitor::silent()).unwrap();
    made.volume.index_axis(Axis(0), 0).mapv(f64::from)
}

#[test]
fn rings_of_gains_that_drift_are_removed_and_edges_stay() {
    let none = Corrections::default();
    let clean = slice(0.0, &none);
    let energy = |image: &Array2<f64>| (image - &clean).iter().map(|x| x * x).sum::<f64>().sqrt();
    let before = energy(&slice(0.02, &none));
    let lists: [(Box<dyn Correction>, f64); 2] = [
        (Rings::default().into(), 0.35),
        (RingsWavelet { ring_levels: Some(3), ..RingsWavelet::default() }.into(), 0.55),
    ];
    for (correction, most) in lists {
        let name = correction.about().name;
        let list = Corrections::new([correction]).unwrap();
        let (after, harm) = (energy(&slice(0.02, &list)), energy(&slice(0.0, &list)));
        println!("{name}: rings {before:.4}, after {after:.4}, of none {harm:.4}");
        assert!(after < most * before && harm < 0.5 * before, "{name}: {before} {after} {harm}");
    }
}

#[test]
fn cupping_of_water_is_removed() {
    let device = device();
    let detector = Detector { rows: 1, columns: 128, pitch_mm: [2.0; 2], radius_mm: None };
    let orbit = Orbit::default().arc(0.0, PI, 180);
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let water =
        Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [100.0, 100.0, 1e3], 0.0206)]).unwrap();
    let tube = Spectrum::tube(120.0).unwrap();
    let beam = Beam { spectrum: Some(&tube), rays: 2, ..Beam::default() };
    let scan = beam_lines(device.cpu_side(), &water, &geometry, &orbit.angles, &beam).unwrap();
    let grid = VolumeGrid::new([1, 128, 128], [2.0; 3], [0.0; 3]).unwrap();
    let cup = |list: Corrections| {
        let scan = list.lines(&device, scan.clone(), None, &mut Vec::new()).unwrap();
        let Measured::Lines(lines) = scan.measured else { panic!("line integrals") };
        let options = ReconOptions::new(Fbp::default(), grid);
        let volume = reconstruct(&device, lines, &geometry, &options, &Monitor::silent()).unwrap().volume;
        let at = |least: f64, most: f64| {
            let inside = volume.indexed_iter().filter(|((_, y, x), _)| {
                (least..most).contains(&(2.0 * (*x as f64 - 63.5).hypot(*y as f64 - 63.5)))
            });
            let (sum, count) =
                inside.fold((0.0, 0.0), |(sum, count), (_, mu)| (sum + f64::from(*mu), count + 1.0));
            sum / count
        };
        (at(0.0, 20.0), at(80.0, 90.0))
    };
    let (middle, edge) = cup(Corrections::default());
    assert!(edge / middle > 1.03, "{middle} {edge}");
    let tube = Hardening { tube: Some(120.0), ..Hardening::default() };
    let (middle, edge) = cup(Corrections::new([tube.into()]).unwrap());
    assert!((edge / middle - 1.0).abs() < 3e-3 && (middle / 0.0206 - 1.0).abs() < 5e-3, "{middle} {edge}");
}
