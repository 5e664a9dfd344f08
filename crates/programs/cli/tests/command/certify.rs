//! `--certify`: transforms against exact sums.

use crate::{ok, parameters, rayspin, refused, simulated, with_scan};

#[test]
fn a_run_certifies_its_transforms() {
    let folder = with_scan();
    let f = folder.path();
    let output =
        ok(&["recon", "mri", "scan.h5", "-o", "a.npy", "--method", "cg-sense", "--certify", "200"], f);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("NUFFT adjoint") && text.contains("99 % confidence"), "{text}");
    let (parameters, _) = parameters(&f.join("a.json"));
    let certificates = parameters["certificates"].as_array().unwrap();
    assert_eq!(certificates.len(), 3);
    for certificate in certificates {
        assert!(certificate["error"].as_f64().unwrap() <= 1e-4 && certificate["outputs"] == 200);
    }
    assert_eq!(parameters["certify"]["seed"], 1);
    refused(&["recon", "mri", "scan.h5", "-o", "a.npy", "--certify", "0"], f, &["certify", "1 to"]);
}

#[test]
fn each_trajectory_of_a_series_is_certified_once() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "recon mri scan.h5 -o a.npy --method gridding --certify 50";
    for (angles, plans) in [("golden", 3), ("uniform", 1)] {
        simulated(f, &format!("-t radial --matrix 24,24 --coils 2 --repetitions 3 --angles {angles}"));
        // Whether so few outputs meet the tolerance is not asked here.
        let output = rayspin(&run.split_whitespace().collect::<Vec<_>>(), f);
        let (parameters, _) = parameters(&f.join("a.json"));
        let certificates = parameters["certificates"].as_array().unwrap();
        let first: Vec<u64> =
            certificates.iter().map(|c| c["first"]["repetition"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = (0..plans).flat_map(|repetition| [repetition; 2]).collect();
        assert_eq!(first, expected, "{angles}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.contains("NUFFT adjoint, slice 0 repetition 2"), plans == 3, "{text}");
    }
}

#[test]
fn a_transform_that_misses_its_tolerance_fails_the_run_after_its_images_are_written() {
    // Single precision does not reach 1e-6 where the centre of k-space outweighs everything else.
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-t kooshball --matrix 24,24,24 --coils 1");
    let line = "recon mri scan.h5 -o a.npy --method ls -i 1 --epsilon 1e-6 --certify 300";
    let output = rayspin(&line.split_whitespace().collect::<Vec<_>>(), f);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let error = text.lines().find(|line| line.starts_with("error:")).unwrap();
    assert!(error.contains("NUFFT adjoint: relative error"), "{text}");
    assert!(error.contains("above the tolerance of 3e-6"), "{text}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("missed"));
    let (parameters, _) = parameters(&f.join("a.json"));
    let adjoint = &parameters["certificates"][0];
    assert!(adjoint["error"].as_f64().unwrap() > adjoint["tolerance"].as_f64().unwrap());
    assert!(f.join("a.npy").exists());
}
