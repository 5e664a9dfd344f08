//! Numbers and ranges choose slices, repetitions and readouts, in one syntax.

use std::path::Path;

use ndarray::{ArrayD, Axis};
use rayspin::core::{C32, Ranges};
use rayspin::io::npy;
use rayspin::mri::scan::Samples;

use crate::arrays::{command, frame, nrmse};
use crate::{ok, refused, simulated};

fn image(line: &str, folder: &Path) -> ArrayD<C32> {
    ok(&command(&format!("recon mri -q {line} -o image.npy --complex -m cartesian")), folder);
    read(&folder.join("image.npy"))
}

fn read(path: &Path) -> ArrayD<C32> {
    rayspin::io::read_image(path).unwrap().image.into_data()
}

#[test]
fn chosen_slices_and_repetitions_are_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 12,10,5 --dims 2 --coils 1 --repetitions 4 --snr 20");
    let all = image("scan.h5", f);
    assert_eq!(all.shape(), [4, 5, 10, 12]);
    for (slices, repetitions) in [("1-2", "0,3"), ("4,0,2", "1-3"), ("0-4", "0,2,1"), ("2,4", "0-3")] {
        let part = image(&format!("scan.h5 --slice {slices} --repetition {repetitions}"), f);
        let pick = |text: &str, count| text.parse::<Ranges>().unwrap().below(count).collect::<Vec<_>>();
        let wanted = all.select(Axis(0), &pick(repetitions, 4)).select(Axis(1), &pick(slices, 5));
        assert_eq!(part, wanted, "{slices} {repetitions}");
    }
    assert_eq!(
        image("scan.h5 --slice 3 --repetition 2", f),
        all.index_axis(Axis(0), 2).select(Axis(0), &[3])
    );
    let record = std::fs::read_to_string(f.join("image.json")).unwrap();
    assert!(record.contains("\"slice\": \"3\"") && record.contains("\"repetition\": \"2\""), "{record}");

    // convert takes the same parts of an image, where they lie.
    image("scan.h5", f);
    ok(&command("convert image.npy whole.nii --complex"), f);
    ok(&command("convert whole.nii part.nii --complex --slice 2-3 --repetition 1,3"), f);
    assert_eq!(read(&f.join("part.nii")), all.select(Axis(0), &[1, 3]).select(Axis(1), &[2, 3]));
    let place = |name: &str| {
        let image = rayspin::io::read_image(f.join(name)).unwrap().image;
        image
            .geometry()
            .affine_lps(image.shape_zyx())
            .map(|row| row[3] + row[2] * if name == "part.nii" { 0.0 } else { 2.0 })
    };
    assert_eq!(place("part.nii"), place("whole.nii"));
}

#[test]
fn chosen_readouts_are_the_same_in_scans_and_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 32,32 --trajectory radial --angles golden --shots 60 --coils 2 --snr 50");
    let Samples::NonCartesian { trajectory, data } = frame(&f.join("scan.h5")).samples else {
        panic!("expected a trajectory")
    };
    npy::write(f.join("samples.npy"), data.view()).unwrap();
    npy::write(f.join("points.npy"), trajectory.points().view()).unwrap();
    let spoke = data.ncols() / 60;
    let kept: Vec<usize> = (0..60 * spoke).filter(|at| [3, 10, 11, 12].contains(&(at / spoke))).collect();
    npy::write(f.join("some.npy"), data.select(Axis(1), &kept).view()).unwrap();
    npy::write(f.join("some-points.npy"), trajectory.points().select(Axis(0), &kept).view()).unwrap();
    let options = "-q -m gridding --combine rss --matrix 32,32";
    for (input, output) in [
        ("scan.h5 --readouts 10-12,3", "scan.npy"),
        ("samples.npy --traj points.npy --readouts 3,10-12", "array.npy"),
        ("some.npy --traj some-points.npy", "alone.npy"),
        // The window's readouts are counted in the whole scan.
        ("scan.h5 --readouts 3,10-12 --window 4", "window.npy"),
    ] {
        ok(&command(&format!("recon mri {input} -o {output} {options}")), f);
    }
    for name in ["scan.npy", "array.npy", "window.npy"] {
        let difference = nrmse(name, "alone.npy", f);
        assert!(difference < 1e-5, "{name}: {difference}");
    }
    ok(&command(&format!("recon mri scan.h5 -o all.npy {options}")), f);
    simulated(f, "--matrix 16,16 --coils 2 --snr 50");
    let told = |readouts: &str| {
        let line = format!("recon mri scan.h5 -o lines.npy --readouts {readouts}");
        String::from_utf8(ok(&command(&line), f).stderr).unwrap()
    };
    let (edge, centre) = (told("0-6"), told("4-12"));
    assert!(edge.contains("the centre of k-space is not among the samples"), "{edge}");
    assert!(!centre.contains("is not among") && centre.contains("9 of 16 lines without gaps"), "{centre}");
    assert!(nrmse("all.npy", "alone.npy", f) > 0.1);
}

#[test]
fn numbers_that_are_not_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 12,12,3 --dims 2 --coils 2 --snr 20");
    let recon = |options: &[&str], parts: &[&str]| {
        refused(&[&["recon", "mri", "scan.h5", "-o", "x.npy"], options].concat(), f, parts);
    };
    recon(&["--slice", "1-3"], &["slice", "numbers from 0 to 2", "found 1-3"]);
    recon(&["--repetition", "1"], &["repetition", "expected 0", "found 1"]);
    recon(&["--readouts", "5,12"], &["readouts", "numbers from 0 to 11", "found 12"]);
    for text in ["2-1", "a", "1-", "0,,1"] {
        recon(&["--slice", text], &["--slice", "such as 3, 1-2 or 0,3", &format!("'{text}'")]);
    }
    ok(&command("convert -q scan.h5 copy.h5"), f);
    ok(&command("recon mri -q scan.h5 -o image.npy"), f);
    refused(&["convert", "image.npy", "x.npy", "--slice", "3"], f, &["image.npy", "slice", "found 3"]);
    recon(&["--window", "4", "-m", "ls", "--combine", "none"], &["coil images", "--repetition", "windows"]);
    refused(&["convert", "scan.h5", "x.h5", "--slice", "1"], f, &["--slice", "an image", "a raw scan"]);
    npy::write(f.join("grid.npy"), ArrayD::<C32>::ones(vec![2, 12, 12]).view()).unwrap();
    refused(
        &["recon", "mri", "grid.npy", "-o", "x.npy", "--readouts", "0"],
        f,
        &["--readouts", "--traj", "a grid"],
    );
}
