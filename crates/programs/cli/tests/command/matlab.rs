//! Arrays of MATLAB and HDF5 files, axes that the user names, and scans of fastMRI.

use std::path::Path;
use std::process::Command;

use ndarray::ArrayD;
use rayspin::io::{npy, read_any_image};

use crate::arrays::{command, said};
use crate::real_data::real_data;
use crate::{ok, refused};

/// Runs a script of `tests/interop`; false, with a printed word, without RAYSPIN_PYTHON.
pub(crate) fn python(script: &str, folder: &Path) -> bool {
    let Ok(python) = std::env::var("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/interop").join(script);
    let run = Command::new(python).arg(script).arg("write").arg(folder).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    true
}

/// The magnitudes of a NumPy array.
fn magnitudes(path: &Path) -> ArrayD<f64> {
    npy::read_complex(path).unwrap().mapv(|value| f64::from(value.norm()))
}

/// The correlation of the magnitudes of two images with the same axes.
fn correlation(image: &Path, reference: &str) -> f64 {
    let of = |path: &str| -> Vec<f64> {
        let image = read_any_image(path).unwrap().image.into_complex();
        image.data().iter().map(|value| f64::from(value.norm())).collect()
    };
    let (a, b) = (of(&image.display().to_string()), of(reference));
    assert_eq!(a.len(), b.len());
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// A phantom that MIRT reconstructed, from MATLAB 7.3: k-space on a grid, and an echo-planar readout along
/// its nominal trajectory in cycles per centimetre.
#[test]
fn a_real_phantom_agrees_with_the_images_of_another_program() {
    let Some(file) = real_data("mri/mat/epi_phantom_1ch_v73.mat") else { return };
    let Some(older) = real_data("mri/ge/epi_ss_trajectory.mat") else { return };
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let (file, older) = (file.display(), older.display());
    let text = said(&format!("recon mri {file}:ycart -m cartesian --no-record -o grid.nii.gz"), f);
    assert!(text.contains("axes are taken as x, y"), "{text}");
    let found = correlation(&f.join("grid.nii.gz"), &format!("{file}:xref_cg"));
    assert!(found > 0.999_999, "{found}");
    said(&format!("recon mri {file}:ycart -m cartesian --order x,y --no-record -o named.nii.gz"), f);
    assert_eq!(std::fs::read(f.join("grid.nii.gz")).unwrap(), std::fs::read(f.join("named.nii.gz")).unwrap());
    // The same points in a file of version 5, in a cell of a struct.
    for (number, trajectory) in
        [format!("{file}:kss"), format!("{older}:in_traj.trajectory{{1}}")].iter().enumerate()
    {
        let image = f.join(format!("along{number}.nii.gz"));
        let run = format!(
            "recon mri {file}:yss --traj {trajectory} --traj-units cycles/cm --fov 240,240 --matrix 64,64 -m ls --no-record"
        );
        let mut run = command(&run);
        let name = image.display().to_string();
        run.extend(["-o", &name]);
        ok(&run, f);
        for reference in ["xss_cg", "xss_conj"] {
            let found = correlation(&image, &format!("{file}:{reference}"));
            assert!(found > 0.999_99, "{trajectory} {reference}: {found}");
        }
    }
    let told = String::from_utf8(ok(&["info", &file.to_string()], f).stdout).unwrap();
    for words in ["7.3 (HDF5)", "[64, 64], complex128", "[4096, 2], float64", "[64, 64], bool"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let told = String::from_utf8(ok(&["info", &older.to_string()], f).stdout).unwrap();
    assert!(told.contains("in_traj.trajectory{1}") && told.contains("little-endian"), "{told}");
}

#[test]
fn arrays_are_chosen_by_name_and_their_axes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    if !python("arrays.py", f) {
        return;
    }
    said("recon mri kspace.npy -m cartesian --no-record -o wanted.npy", f);
    let wanted = magnitudes(&f.join("wanted.npy"));
    for scan in [
        "plain.mat:DATA",
        "packed.mat:s.k",
        "big.mat",
        "newer.mat:s.k",
        "arrays.h5:kspace",
        "arrays.h5:group/half --order coil,y,x",
        "plain.mat:DATA --order x,y,coil",
    ] {
        said(&format!("recon mri {scan} -m cartesian --no-record -o image.npy"), f);
        let image = magnitudes(&f.join("image.npy"));
        let off = (&image - &wanted).fold(0.0f64, |most, value| most.max(value.abs()));
        assert!(off < 1e-6, "{scan}: {off}");
    }
    // All images of a scan in one run, and some of them.
    said("recon mri many.mat --order x,y,slice,coil,time -m cartesian --no-record -o many.npy", f);
    let many = magnitudes(&f.join("many.npy"));
    assert_eq!(many.shape(), [2, 2, 10, 12]);
    said(
        "recon mri many.mat --order x,y,slice,coil,time --repetition 1 -m cartesian --no-record -o one.npy",
        f,
    );
    assert_eq!(magnitudes(&f.join("one.npy")).shape(), [2, 10, 12]);
    said("recon mri many.mat --order x,y,slice,coil,set --set 1 -m cartesian --no-record -o set.npy", f);
    assert_eq!(magnitudes(&f.join("set.npy")), magnitudes(&f.join("one.npy")));
    refused(&command("recon mri many.mat -o x.npy"), f, &["many.mat", "axes of the k-space"]);
    refused(&command("recon mri many.mat --order x,y -o x.npy"), f, &["x,y: 2 axes"]);
    refused(&command("recon mri many.mat --order x,q -o x.npy"), f, &["order", "found q"]);
    refused(&command("recon mri plain.mat -o x.npy"), f, &["DATA, real"]);
    refused(&command("recon mri plain.mat:text -o x.npy"), f, &["array text", "expected numbers"]);
    refused(&command("recon mri plain.mat:real -o x.npy"), f, &["complex numbers", "float64"]);
    refused(&command("recon mri old.mat -o x.npy"), f, &["version 4"]);
    let told =
        String::from_utf8(ok(&command("info many.mat --order x,y,slice,coil,time"), f).stdout).unwrap();
    assert!(told.contains("12 × 10, Cartesian, fully sampled"), "{told}");
    // Along a trajectory.
    let radial = "--matrix 32,32 --traj-units cycles/voxel -m gridding --no-record";
    said(&format!("recon mri radial.npz:y --traj radial.npz:k {radial} -o wanted.npy"), f);
    for scan in
        ["radial.mat:y --traj radial.mat:k", "radial.mat:y --traj radial.mat:kxy --order readout,spoke,coil"]
    {
        said(&format!("recon mri {scan} {radial} -o image.npy"), f);
        let error = crate::arrays::nrmse("image.npy", "wanted.npy", f);
        assert!(error < 1e-5, "{scan}: {error}");
    }
    ok(&command("convert --raw plain.mat:DATA scan.h5 --order x,y,coil"), f);
    said("recon mri scan.h5 -m cartesian --no-record -o image.npy", f);
    said("recon mri kspace.npy -m cartesian --no-record -o wanted.npy", f);
    let error = crate::arrays::nrmse("image.npy", "wanted.npy", f);
    assert!(error < 1e-5, "{error}");
}

#[test]
fn images_of_fastmri_are_those_of_its_authors() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    if !python("fastmri.py", f) {
        return;
    }
    for (file, reference) in [
        ("multicoil.h5", "rss.npy"),
        ("singlecoil.h5", "esc.npy"),
        ("test.h5", "test.npy"),
        ("no_header.h5", "rss.npy"),
    ] {
        let text = said(&format!("recon mri {file} -m cartesian --no-record -o image.npy"), f);
        let image = magnitudes(&f.join("image.npy"));
        let wanted = magnitudes(&f.join(reference));
        assert_eq!(image.shape(), [3, 32, 32], "{text}");
        // [slice, column, row] as [slice, row, column].
        let image = image.permuted_axes(vec![0, 2, 1]);
        let most = wanted.iter().fold(0.0f64, |most, value| most.max(*value));
        let off = image.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0f64, f64::max);
        assert!(off < 2e-6 * most, "{file}: {off} of {most}");
    }
    let run =
        "recon mri multicoil.h5 -m cartesian -o image.nii.gz --reference multicoil.h5:reconstruction_rss";
    let told = String::from_utf8(ok(&command(run), f).stdout).unwrap();
    assert!(told.contains("error (NRMSE)"), "{told}");
    let error = crate::arrays::nrmse("image.nii.gz", "multicoil.h5:reconstruction_rss", f);
    assert!(error < 1e-5, "{error}");
    let told = String::from_utf8(ok(&command("info multicoil.h5"), f).stdout).unwrap();
    for words in ["not tried on a real file", "CORPD_FBK", "reconstruction_rss", "64 × 44 × 1 over 280.0"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("0f1e2d3c"), "{told}");
    refused(&command("recon mri short_mask.h5 -o x.npy"), f, &["mask", "44 values"]);
    refused(&command("recon mri multicoil.h5 --order x,y -o x.npy"), f, &["--order", "without a header"]);
    ok(&command("convert multicoil.h5 scan.h5"), f);
    said("recon mri scan.h5 -m cartesian --no-record -o image.npy", f);
    said("recon mri multicoil.h5 -m cartesian --no-record -o same.npy", f);
    assert!(crate::arrays::nrmse("image.npy", "same.npy", f) < 1e-6);
}
