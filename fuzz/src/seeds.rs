//! Small files for the targets to start from.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, ArrayD, IxDyn};
use rayspin_core::{C32, Detector, Geometry, Image, Monitor, Orbit, ProjectionGeometry};
use rayspin_ct::scan::{Counts, Measured, Scan};
use rayspin_io::{FORMATS, Values, WriteOptions, data_exchange, ismrmrd, npy, rtk, write_image};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling};
use rayspin_mri::simulate::{SimulateOptions, simulate};

use super::samples;

/// A pulse and a sampled trapezoid, and a pulse and a sampled shape.
const SEQUENCES: [&str; 2] = [
    "[VERSION]\nmajor 1\nminor 3\nrevision 1\n[BLOCKS]\n1 0 1 0 0 0 0\n2 1 0 1 0 0 1\n[RF]\n1 2500 1 2 0 0 0\n\
     [TRAP]\n1 50000 100 400 100 0\n[ADC]\n1 4 100000 100 0 0\n[DELAYS]\n1 900\n[SHAPES]\nshape_id 1\nnum_samples 100\n\
     1\n0\n0\n97\n\nshape_id 2\nnum_samples 100\n0\n0\n98\n",
    "[VERSION]\nmajor 1\nminor 4\nrevision 0\n[DEFINITIONS]\nFOV 0.2 0.2 0.005\nGradientRasterTime 1e-05\n[BLOCKS]\n\
     1 10 1 0 0 0 0 0\n2 60 0 1 1 0 1 0\n[RF]\n1 2500 1 2 0 0 0 0\n[GRADIENTS]\n1 50000 3 0 0\n[ADC]\n1 4 100000 100 0 0\n\
     [SHAPES]\nshape_id 1\nnum_samples 100\n1\n0\n0\n97\n\nshape_id 2\nnum_samples 100\n0\n0\n98\n\n\
     shape_id 3\nnum_samples 4\n0.25\n0.5\n1\n0.5\n",
];

/// Writes the seeds to `FOLDER/TARGET`, and files of each format to `FOLDER/format/NAME`.
pub fn write(corpus: &Path) -> Result<(), Box<dyn Error>> {
    let place = |target: &str, name: &str| -> std::io::Result<PathBuf> {
        fs::create_dir_all(corpus.join(target))?;
        Ok(corpus.join(target).join(name))
    };
    let empty = tempfile::tempdir()?;
    for format in &FORMATS {
        for (at, files) in samples::samples(format, empty.path()).iter().enumerate() {
            let seed = place(&format!("format/{}", format.name), &at.to_string())?;
            fs::write(seed, samples::joined(files))?;
        }
    }
    let array =
        ArrayD::from_shape_fn(IxDyn(&[2, 3, 4]), |i| C32::new(i[0] as f32 - 0.5, (i[1] * i[2]) as f32));
    let points = Array2::from_shape_fn((24, 3), |(i, d)| (i * (d + 1)) as f32 % 7.0 - 3.0);
    npy::write(place("format/NumPy array", "points")?, points.view().into_dyn())?;
    let image = Image::new(array, Geometry::default())?;
    let options = WriteOptions { values: Some(Values::Complex), ..WriteOptions::default() };
    write_image(place("ismrmrd", "images.h5")?, &image, &options)?;
    for (name, sampling, repetitions) in [
        ("grid.h5", Sampling::Cartesian(CartesianPattern::Full), 1),
        ("random.h5", Sampling::Random { shots: 2, samples: 9 }, 1),
        ("dynamic.h5", Sampling::Cartesian(CartesianPattern::Full), 3),
    ] {
        let matrix = [8, 4, if repetitions > 1 { 2 } else { 1 }];
        let options =
            SimulateOptions { matrix, coils: 2, sampling, repetitions, ..SimulateOptions::default() };
        let scan = simulate(&options, &Monitor::silent())?.scan;
        let path = place("ismrmrd", name)?;
        ismrmrd::write(&path, &scan, ismrmrd::Identity::LeaveOut)?;
        if let Some(xml) = ismrmrd::read(&path)?.header.xml {
            fs::write(place("xml", name)?, xml)?;
        }
    }
    let orbit =
        Orbit { source_to_axis_mm: Some(50.0), axis_to_detector_mm: 20.0, ..Orbit::default() }.turn(3);
    let detector = Detector { rows: 2, columns: 4, pitch_mm: [1.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
    let projections = rayspin_ct::geometry::to_rtk(&geometry)?;
    rtk::write(place("rtk", "turn.xml")?, &rtk::RtkGeometry { projections, radius_mm: Some(90.0) })?;
    let frames = |count| Array3::from_elem((count, 2, 4), 9.0f32);
    for (name, measured) in [
        ("lines.h5", Measured::Lines(frames(3))),
        ("counts.h5", Measured::Counts(Counts { views: frames(3), flats: frames(2), darks: frames(1) })),
    ] {
        let scan = Scan::new(measured, orbit.angles.clone(), Some(geometry.clone()))?;
        data_exchange::write(place("data_exchange", name)?, &scan)?;
    }
    for (name, text) in [("1.3", SEQUENCES[0]), ("1.4", SEQUENCES[1])] {
        fs::write(place("pulseq", name)?, text)?;
    }
    for (name, units) in [("1", "cycles/fov"), ("2", "radians/voxel"), ("3", "cycles/m")] {
        fs::write(place("units", name)?, units)?;
    }
    Ok(())
}
