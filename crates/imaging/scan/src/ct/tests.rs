use ndarray::Array3;
use proptest::prelude::*;
use rayspin_device::Device;

use super::*;

fn counts(views: Array3<f32>, flat: f32, dark: f32) -> Counts {
    let (_, rows, columns) = views.dim();
    let frames = |value| Array3::from_elem((2, rows, columns), value);
    Counts { views, flats: frames(flat), darks: frames(dark) }
}

fn lines(counts: Counts) -> (Result<Array3<f32>>, Vec<String>) {
    let angles = vec![0.0; counts.views.dim().0];
    let scan = Scan::new(Measured::Counts(counts), angles, None).unwrap();
    let mut notes = Vec::new();
    let device = Device::cpu().unwrap();
    (scan.into_lines(device.cpu_side(), &mut notes), notes)
}

proptest! {
    #[test]
    fn counts_become_the_integrals_that_made_them(
        truth in prop::collection::vec(0.0f64..5.0, 24),
        flat in 100.0f64..1e5,
        dark in 0.0f64..90.0,
    ) {
        let views = Array3::from_shape_vec((2, 3, 4), truth.iter().map(|p| (dark + (flat - dark) * (-p).exp()) as f32).collect()).unwrap();
        let (found, notes) = lines(counts(views, flat as f32, dark as f32));
        for (found, wanted) in found.unwrap().iter().zip(&truth) {
            // Rounding of the counts to f32, divided by what is left of the beam.
            let tolerance = 1e-6 + 2e-7 * flat / ((flat - dark) * (-wanted).exp());
            prop_assert!((f64::from(*found) - wanted).abs() < tolerance, "{found} for {wanted}");
        }
        prop_assert!(notes.is_empty());
    }
}

#[test]
fn dead_pixels_and_missing_photons_are_mended_and_counted() {
    let mut measured = counts(Array3::from_elem((2, 1, 5), 60.0), 110.0, 10.0);
    measured.flats.slice_mut(ndarray::s![.., 0, 0]).fill(0.0);
    measured.flats.slice_mut(ndarray::s![.., 0, 2]).fill(10.0);
    measured.views[[0, 0, 1]] = 35.0;
    measured.views[[1, 0, 4]] = 3.0;
    let (found, notes) = lines(measured);
    let found = found.unwrap();
    let (half, quarter) = (2f32.ln(), 4f32.ln());
    assert!((found[[0, 0, 1]] - quarter).abs() < 1e-6);
    assert!(
        (found[[0, 0, 0]] - quarter).abs() < 1e-6 && (found[[0, 0, 2]] - 0.5 * (half + quarter)).abs() < 1e-6
    );
    // Half of the smallest signal of its view, 50.
    assert!((found[[1, 0, 4]] - quarter).abs() < 1e-6);
    assert!(notes[0].starts_with("2 dead") && notes[1].starts_with("1 measurement"), "{notes:?}");
}

#[test]
fn scans_without_sense_are_refused() {
    let good = || counts(Array3::from_elem((2, 3, 4), 5.0), 9.0, 1.0);
    let refused = |measured: Measured, angles: usize, message: &str| {
        let text = Scan::new(measured, vec![0.0; angles], None).unwrap_err().to_string();
        assert!(text.contains(message), "{text} has no {message}");
    };
    refused(Measured::Counts(good()), 3, "angles");
    refused(Measured::Lines(Array3::zeros((0, 3, 4))), 0, "at least one view");
    refused(Measured::Counts(Counts { flats: Array3::zeros((1, 3, 3)), ..good() }), 2, "flat fields");
    refused(Measured::Counts(Counts { darks: Array3::zeros((1, 2, 4)), ..good() }), 2, "dark fields");
    refused(Measured::Counts(Counts { flats: Array3::zeros((0, 3, 4)), ..good() }), 2, "flat fields");
    assert!(Scan::new(Measured::Lines(Array3::zeros((1, 1, 1))), vec![f64::NAN], None).is_err());
    let mut dark_view = good().views;
    dark_view.index_axis_mut(ndarray::Axis(0), 1).fill(1.0);
    for (change, message) in [
        (Counts { flats: Array3::zeros((1, 3, 4)), ..good() }, "flat fields"),
        (Counts { views: Array3::zeros((2, 3, 4)), ..good() }, "above the dark field"),
        (Counts { views: Array3::from_elem((2, 3, 4), f32::NAN), ..good() }, "finite"),
        (Counts { views: dark_view, ..good() }, "view 1"),
    ] {
        let text = lines(change).0.unwrap_err().to_string();
        assert!(text.contains(message), "{text} has no {message}");
    }
}
