//! Scans of Bruker's and GE's scanners, from the scanner's files to images.

use std::path::{Path, PathBuf};
use std::process::Command;

use rayspin::core::C32;
use rayspin::io::{npy, read_image};

use crate::real_data::real_data;
use crate::{ok, rayspin, refused};

fn command(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Unpacks a real scan; none where it is absent.
fn unpacked(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = real_data(&format!("mri/bruker/{name}.tar.xz"))?;
    let status = Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(folder).status().unwrap();
    assert!(status.success(), "{name}");
    Some(folder.join(name))
}

/// The scanner's own images `[slice, y, x]`.
fn images_of_scanner(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path.join("pdata/1/2dseq")).unwrap();
    bytes.as_chunks::<2>().0.iter().map(|word| f64::from(i16::from_le_bytes(*word))).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let (own, other) = (mean(a), mean(b));
    let product = |left: &[f64], right: &[f64], l: f64, r: f64| -> f64 {
        left.iter().zip(right).map(|(a, b)| (a - l) * (b - r)).sum()
    };
    product(a, b, own, other) / (product(a, a, own, own) * product(b, b, other, other)).sqrt()
}

fn magnitudes(path: &Path) -> (Vec<usize>, Vec<f64>) {
    let image = npy::read_complex(path).unwrap();
    (image.shape().to_vec(), image.iter().map(|value: &C32| f64::from(value.norm())).collect())
}

#[test]
fn flash_is_the_scanners_image_in_each_direction() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = unpacked("flash_pv51", folder.path()) else { return };
    let theirs = images_of_scanner(&path);
    for slice in 0..3 {
        ok(&command(&format!("recon mri flash_pv51 -q --slice {slice} -o slice.npy")), folder.path());
        let (shape, own) = magnitudes(&folder.path().join("slice.npy"));
        assert_eq!(shape[shape.len() - 2..], [128, 128]);
        let stored = &theirs[slice * 128 * 128..(slice + 1) * 128 * 128];
        // The scanner stores two of the slices transposed.
        let stored: Vec<f64> = match slice {
            0 => stored.to_vec(),
            _ => (0..128 * 128).map(|index| stored[index % 128 * 128 + index / 128]).collect(),
        };
        let agreement = correlation(&own, &stored);
        assert!(agreement > 0.999_999, "{slice}: {agreement}");
    }
    let told = ok(&command("info flash_pv51/fid"), folder.path());
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("PV 5.1") && told.contains("mic_flash"), "{told}");
}

#[test]
fn the_banana_is_the_scanners_and_lies_where_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = unpacked("epi_pv51", folder.path()) else { return };
    ok(&command("recon mri epi_pv51 -q -o banana.npy -o banana.nii.gz"), folder.path());
    let (shape, own) = magnitudes(&folder.path().join("banana.npy"));
    assert_eq!(shape[shape.len() - 3..], [5, 64, 80]);
    let theirs = images_of_scanner(&path);
    for slice in 0..5 {
        let part = slice * 64 * 80..(slice + 1) * 64 * 80;
        let agreement = correlation(&own[part.clone()], &theirs[part]);
        assert!(agreement > 0.99, "{slice}: {agreement}");
    }
    // visu_pars: the first pixel of the first slice at (-22, -21.2, -4) mm, slices 2 mm apart.
    let image = read_image(folder.path().join("banana.nii.gz")).unwrap().image;
    let geometry = image.geometry();
    assert!(
        geometry.spacing_mm.iter().zip([0.55, 0.6875, 2.0]).all(|(a, b)| (a - b).abs() < 1e-5),
        "{geometry:?}"
    );
    let first = geometry.affine_lps([5, 64, 80]).map(|row| row[3]);
    assert!(first.iter().zip([-22.0, -21.2, -4.0]).all(|(a, b)| (a - b).abs() < 1e-3), "{first:?}");

    ok(&command("convert epi_pv51 scan.h5"), folder.path());
    ok(&command("recon mri scan.h5 -q -o again.npy"), folder.path());
    let again = magnitudes(&folder.path().join("again.npy")).1;
    assert!(correlation(&again, &own) > 0.999_999);
    let told = ok(&command("info scan.h5 --json"), folder.path());
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(!told.contains("APM_Fruits") && !told.contains("Douglas"), "{told}");
}

#[test]
fn p_files_become_images_or_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, coils) in [("epi_s64_1ch.7", 1), ("epi_s64_8ch.7", 8)] {
        let Some(path) = real_data(&format!("mri/ge/{name}.xz")) else { return };
        let unpacked = Command::new("xz").arg("-dc").arg(&path).output().unwrap();
        std::fs::write(folder.path().join(name), unpacked.stdout).unwrap();
        ok(&command(&format!("recon mri {name} -q -o image.npy")), folder.path());
        let (shape, own) = magnitudes(&folder.path().join("image.npy"));
        assert_eq!(shape[shape.len() - 2..], [64, 64], "{coils}");
        // A phantom in the middle, and noise around it.
        let mean = |rows: std::ops::Range<usize>| {
            let values = rows.flat_map(|row| (24..40).map(move |column| (row, column)));
            let values: Vec<f64> = values.map(|(row, column)| own[64 * row + column]).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        assert!(mean(24..40) > 5.0 * mean(0..3), "{name}: {} {}", mean(24..40), mean(0..3));
    }
    let Some(path) = real_data("mri/ge/epi_ss_1ch.7.xz") else { return };
    let unpacked = Command::new("xz").arg("-dc").arg(&path).output().unwrap();
    std::fs::write(folder.path().join("train.7"), unpacked.stdout).unwrap();
    let told = |line: &str| {
        let output = rayspin(&command(line), folder.path());
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let train = told("recon mri train.7 -o image.npy");
    assert!(train.contains("samples of a readout") && train.contains("9200"), "{train}");
    let mut other = vec![0; 70_000];
    other[..4].copy_from_slice(&24f32.to_le_bytes());
    std::fs::write(folder.path().join("P1.7"), other).unwrap();
    refused(&command("recon mri P1.7 -o image.npy"), folder.path(), &["revision 24"]);
    assert!(told("info P1.7").contains("ge_to_ismrmrd"));
    std::fs::write(folder.path().join("raw.lab"), [7; 500]).unwrap();
    std::fs::write(folder.path().join("raw.raw"), [7; 500]).unwrap();
    for file in ["raw.lab", "raw.raw"] {
        let other = told(&format!("recon mri {file} -o image.npy"));
        assert!(other.contains("philips_to_ismrmrd"), "{other}");
    }
}
