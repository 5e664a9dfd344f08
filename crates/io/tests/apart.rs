//! Outputs leave inputs, and each other, as they are.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use rayspin_io::expect_apart;

#[test]
fn a_file_is_the_same_by_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["scan.npy", "maps.cfl", "maps.hdr", "both.npz"] {
        std::fs::write(at(name), "").unwrap();
    }
    std::fs::create_dir_all(at("a/b")).unwrap();
    std::fs::write(at("a/b/flat.npy"), "").unwrap();
    let mut others = vec![("scan.npy", "a/../scan.npy"), ("maps.cfl", "maps.hdr"), ("maps", "maps.hdr")];
    others.extend([("both.npz:kspace", "both.npz"), ("a/b/flat.npy", "a"), ("no/x.npy", "no/./x.npy")]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(at("scan.npy"), at("link.npy")).unwrap();
        std::os::unix::fs::symlink(at("a"), at("elsewhere")).unwrap();
        std::fs::hard_link(at("scan.npy"), at("hard.npy")).unwrap();
        others.extend([("scan.npy", "link.npy"), ("hard.npy", "link.npy"), ("link.npy", "hard.npy")]);
        others.extend([("a/b/flat.npy", "elsewhere/b/flat.npy"), ("elsewhere/x.npy", "a/x.npy")]);
    }
    for (input, output) in others {
        let error = expect_apart(&[at("none.npy"), at(input)], &[at("good.npy"), at(output)]);
        let error = error.expect_err(output).to_string();
        assert!(error.contains(&at(output).display().to_string()) && error.contains("input"), "{error}");
        // Outputs replace names: two hard links become two files.
        let outputs = expect_apart::<PathBuf, _>(&[], &[at(input), at(output)]);
        assert_eq!(outputs.is_ok(), input.contains("hard") || output.contains("hard"), "{input} {output}");
    }
    let stream = || PathBuf::from("-");
    expect_apart(&[at("scan.npy"), stream()], &[at("scan.nii"), stream(), at("a/scan.npy")]).unwrap();
}

#[test]
fn a_folder_that_is_an_image_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("in.dicom")).unwrap();
    std::fs::write(at("in.dicom/1"), [&[0; 128][..], b"DICM"].concat()).unwrap();
    let apart = |input: &str, outputs: &[&str]| {
        expect_apart(&[at(input)], &Vec::from_iter(outputs.iter().map(|name| at(name))))
    };
    for (input, outputs) in [
        ("in.dicom", &["in.dicom"][..]),
        ("in.dicom", &["in.dicom/x.png"]),
        ("in.dicom/1", &["in.dicom"]),
        ("x.npy", &["out.dicom", "out.dicom/x.npy"]),
        ("x.npy", &["out.dicom/x.npy", "out.dicom"]),
    ] {
        let error = apart(input, outputs).unwrap_err().to_string();
        assert!(error.contains("folder") || outputs == ["in.dicom"], "{error}");
    }
    apart("in.dicom/1", &["in.dicom/x.png", "out.dicom"]).unwrap();
    apart("in.dicom", &["out.dicom", "x.png"]).unwrap();
}
