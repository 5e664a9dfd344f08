//! Scans of Bruker's ParaVision: real ones, which are no part of the project, and files that
//! `tests/interop/bruker.py` lays out as two public readers take them apart.

use std::path::{Path, PathBuf};
use std::process::Command;

use ndarray::{Array2, IxDyn};
use rayspin_core::{C32, Monitor};
use rayspin_io::{ScanFile, ScanOptions, describe, detect, npy, read_array, read_scan};
use rayspin_scan::mri::{Flags, Scan, TrajectoryKind};

use crate::real_data::real_data;
use crate::support::{folder, python};

/// The folder of a real scan, unpacked; none where it or the program that unpacks it is absent.
fn unpacked(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = real_data(&format!("mri/bruker/{name}.tar.xz"))?;
    let Ok(status) = Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(folder).status() else {
        println!("skipped: tar is not there to unpack {name}");
        return None;
    };
    assert!(status.success(), "{name}");
    Some(folder.join(name))
}

fn read(path: &Path) -> Scan {
    match read_scan(path, &ScanOptions::default(), &Monitor::silent()).unwrap() {
        ScanFile::Scan(scan) => *scan,
        _ => panic!("expected a scan with a header"),
    }
}

fn near(a: [f32; 3], b: [f64; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5)
}

/// By NumPy from `visu_pars`: rows of VisuCoreOrientation, the first two exchanged for transposed images, and
/// VisuCorePosition + n/2 pixels along both.
const FLASH: [[[f64; 3]; 3]; 3] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
];

#[test]
fn lines_of_flash_are_the_numbers_of_fid_and_lie_where_its_images_do() {
    let folder = folder();
    let Some(path) = unpacked("flash_pv51", folder.path()) else { return };
    assert_eq!(detect(&path).unwrap().name, "Bruker ParaVision");
    assert_eq!(describe(&path).unwrap()[0].1.to_string(), "ParaVision (PV 5.1), method mic_flash");
    let scan = read(&path);
    assert!(scan.notes.is_empty(), "{:?}", scan.notes);
    let words: Vec<i32> = std::fs::read(path.join("fid"))
        .unwrap()
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| i32::from_le_bytes(*word))
        .collect();
    assert_eq!(scan.acquisitions.len(), 384);
    for (number, readout) in scan.acquisitions.iter().enumerate() {
        let slice = [0, 2, 1][number % 3];
        assert_eq!(readout.counters.step_1 as usize, number / 3);
        assert_eq!((usize::from(readout.counters.slice), readout.centre_sample), (slice, 64));
        let raw = &words[256 * number..256 * (number + 1)];
        let fits = |(sample, value): (usize, &C32)| {
            [value.re, value.im] == [raw[2 * sample] as f32, raw[2 * sample + 1] as f32]
        };
        assert!(readout.data.iter().enumerate().all(fits), "{number}");
        let [read_dir, phase_dir, centre] = FLASH[slice];
        assert!(near(readout.read_dir, read_dir) && near(readout.phase_dir, phase_dir), "{readout:?}");
        assert!(near(readout.position, centre), "{readout:?}");
    }
    let header = &scan.header;
    assert_eq!((header.vendor.as_deref(), header.patient_position.as_deref()), (Some("Bruker"), Some("HFS")));
    assert!((header.field_strength_t.unwrap() - 9.398).abs() < 1e-2);
    let encoding = &header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.recon.fov_mm), ([128, 128, 1], [25.0, 25.0, 1.0]));
    assert!((scan.acquisitions[0].sample_time_us - 9.9).abs() < 1e-4);
}

#[test]
fn trains_of_the_banana_have_places_directions_and_partial_fourier() {
    let folder = folder();
    let Some(path) = unpacked("epi_pv51", folder.path()) else { return };
    let scan = read(&path);
    assert_eq!(scan.acquisitions.len(), 230);
    let encoding = &scan.header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.trajectory), ([80, 64, 1], TrajectoryKind::Epi));
    assert_eq!(
        encoding.step_1.map(|limits| (limits.minimum, limits.maximum, limits.centre)),
        Some((18, 63, 32))
    );
    for (number, readout) in scan.acquisitions.iter().enumerate() {
        let (slice, line) = ([0, 2, 4, 1, 3][number / 46], number % 46);
        assert_eq!(usize::from(readout.counters.slice), slice);
        assert_eq!(readout.flags.contains(Flags::REVERSE), line % 2 == 1);
        let path = readout.trajectory.as_ref().unwrap();
        assert_eq!(path.dim(), (80, 2));
        assert_eq!(path[[7, 1]], line as f32 - 14.0);
        // As visu_pars has it: -22 + 44/2, -21.2 + 44/2, and 2 mm from slice to slice.
        assert!(near(readout.position, [0.0, 0.8, 2.0 * slice as f64 - 4.0]), "{:?}", readout.position);
        assert!(near(readout.read_dir, [1.0, 0.0, 0.0]) && near(readout.phase_dir, [0.0, 1.0, 0.0]));
    }
    assert!(
        scan.notes.iter().any(|note| note.contains("RECO_rotate") && note.contains("0.11 mm")),
        "{:?}",
        scan.notes
    );
    // What has no visu_pars lies where acqp says, which is the same.
    std::fs::remove_dir_all(path.join("pdata")).unwrap();
    let alone = read(&path);
    for (own, other) in scan.acquisitions.iter().zip(&alone.acquisitions) {
        assert!(near(own.position, other.position.map(f64::from)));
        assert_eq!((own.read_dir, own.phase_dir), (other.read_dir, other.phase_dir));
    }
}

#[test]
fn paravision_6_7_and_360_are_sorted_as_two_other_readers_sort() {
    let folder = folder();
    if !python("bruker.py", "write", folder.path()) {
        return;
    }
    for name in ["rare6", "msme6", "volume7", "flash360", "flash360_64"] {
        let path = folder.path().join(name);
        let told = describe(&path).unwrap()[0].1.to_string();
        assert!(told.contains("not tried on a real file of this version"), "{told}");
        let scan = read(&path);
        let wanted = npy::read_complex(folder.path().join(format!("{name}.npy"))).unwrap();
        let [.., lines, samples] = wanted.shape()[..] else { panic!("{name}") };
        let mut seen = 0;
        for readout in &scan.acquisitions {
            let own = readout.counters;
            let place = [own.repetition, own.slice, own.contrast, own.step_2, own.step_1].map(usize::from);
            let [repetition, slice, echo, partition, line] = place;
            assert!(line < lines);
            let data: Array2<C32> = readout.data.to_owned();
            for ((coil, sample), value) in data.indexed_iter() {
                assert_eq!(
                    *value,
                    wanted[IxDyn(&[repetition, slice, echo, coil, partition, line, sample])],
                    "{name} {place:?}"
                );
                seen += 1;
            }
            assert_eq!(readout.centre_sample, samples / 2);
        }
        assert_eq!(seen, wanted.len(), "{name}");
    }
}

#[test]
fn projections_lie_where_two_other_readers_have_them() {
    let folder = folder();
    if !python("bruker.py", "write", folder.path()) {
        return;
    }
    for (name, objects) in [("ute6", 2), ("ute6_groups", 2), ("ute3d6", 1)] {
        let path = folder.path().join(name);
        assert!(describe(&path).unwrap()[0].1.to_string().contains("not tried on a real file"));
        let scan = read(&path);
        let wanted = npy::read_complex(folder.path().join(format!("{name}.npy"))).unwrap();
        let places = npy::read_real(folder.path().join(format!("{name}_places.npy"))).unwrap();
        assert_eq!(scan.acquisitions.len(), objects * 6);
        for readout in &scan.acquisitions {
            let [slice, projection] = [readout.counters.slice, readout.counters.step_1].map(usize::from);
            for ((coil, sample), value) in readout.data.indexed_iter() {
                assert_eq!(*value, wanted[IxDyn(&[slice, coil, projection, sample])], "{name}");
            }
            let path = readout.trajectory.as_ref().unwrap();
            assert_eq!(path.nrows(), readout.data.ncols());
            for ((sample, axis), place) in path.indexed_iter() {
                assert!((f64::from(*place) - places[IxDyn(&[projection, sample, axis])]).abs() < 1e-5);
            }
        }
        assert!(scan.notes.iter().any(|note| note.contains("not tried on a real file")), "{:?}", scan.notes);
    }
}

#[test]
fn lines_of_several_shots_are_in_the_order_of_the_pulse_program() {
    let folder = folder();
    if !python("bruker.py", "write", folder.path()) {
        return;
    }
    for (name, slices) in [("epi6", 1), ("epi6_slices", 3)] {
        let scan = read(&folder.path().join(name));
        let wanted = npy::read_complex(folder.path().join(format!("{name}.npy"))).unwrap();
        assert_eq!(scan.acquisitions.len(), slices * 8);
        for (number, readout) in scan.acquisitions.iter().enumerate() {
            let [slice, line] = [readout.counters.slice, readout.counters.step_1].map(usize::from);
            let reversed = readout.flags.contains(Flags::REVERSE);
            assert_eq!((reversed, usize::from(readout.counters.segment)), (number % 2 == 1, line % 2));
            for ((coil, sample), value) in readout.data.indexed_iter() {
                let place = if reversed { 9 - sample } else { sample };
                assert_eq!(*value, wanted[IxDyn(&[slice, coil, line, place])], "{name} {line}");
            }
        }
        assert!(scan.notes.iter().any(|note| note.contains("several shots was not tried on a real file")));
    }
}

#[test]
fn p_files_hold_the_numbers_that_mirt_has() {
    let folder = folder();
    let unpack = |name: &str| {
        let path = real_data(&format!("mri/ge/{name}.xz"))?;
        let Ok(unpacked) = Command::new("xz").arg("-dc").arg(&path).output() else {
            println!("skipped: xz is not there to unpack {name}");
            return None;
        };
        assert!(unpacked.status.success(), "{name}");
        let target = folder.path().join(name);
        std::fs::write(&target, unpacked.stdout).unwrap();
        Some(target)
    };
    let arrays = real_data("mri/mat/epi_phantom_1ch_v73.mat");
    let (Some(lines), Some(coils), Some(trains), Some(arrays)) =
        (unpack("epi_s64_1ch.7"), unpack("epi_s64_8ch.7"), unpack("epi_ss_1ch.7"), arrays)
    else {
        return;
    };
    let array = |name: &str| read_array(format!("{}:{name}", arrays.display()), "samples").unwrap();
    let scan = read(&lines);
    assert_eq!(detect(&lines).unwrap().name, "GE P-file");
    let wanted: Vec<C32> = array("ycart").iter().copied().collect();
    let own: Vec<C32> = scan.acquisitions.iter().flat_map(|readout| readout.data.iter().copied()).collect();
    assert_eq!((own.len(), scan.acquisitions.len()), (4096, 64));
    // MATLAB's order is the order of the file.
    let transposed: Vec<C32> = (0..4096).map(|index| wanted[index % 64 * 64 + index / 64]).collect();
    assert!(own == wanted || own == transposed);
    let encoding = &scan.header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.encoded.fov_mm), ([64, 64, 1], [240.0, 240.0, 5.0]));
    assert_eq!(read(&coils).acquisitions[0].data.dim(), (8, 64));

    // Ten frames of 9200 samples, the mean of which is MIRT's at the samples that it keeps.
    let scan = read(&trains);
    assert_eq!((scan.acquisitions.len(), scan.acquisitions[0].data.dim()), (10, (1, 9200)));
    let Some(trajectory) = real_data("mri/ge/epi_ss_trajectory.mat") else { return };
    let kept = rayspin_io::read_any_image(format!("{}:in_traj.idx", trajectory.display())).unwrap();
    let kept: Vec<f32> = kept.image.into_real().0.data().iter().copied().collect();
    let least = kept.iter().copied().fold(f32::INFINITY, f32::min);
    let wanted: Vec<C32> = array("yss").iter().copied().collect();
    assert_eq!((kept.len(), wanted.len()), (4096, 4096));
    let mean = |place: usize| {
        let sum: C32 = scan.acquisitions.iter().map(|readout| readout.data[[0, place]]).sum();
        sum / 10.0
    };
    let off = |order: &dyn Fn(usize) -> usize| {
        (0..4096)
            .map(|index| (mean((kept[index] - least) as usize) - wanted[order(index)]).norm())
            .fold(0.0, f32::max)
    };
    let apart = off(&|index| index).min(off(&|index| index % 64 * 64 + index / 64));
    assert!(apart < 0.02, "{apart}");
}
