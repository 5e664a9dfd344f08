//! Outputs leave inputs, and each other, as they are.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use rayspin_io::{expect_apart, parts, sources};

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

#[test]
fn files_that_an_hdf5_file_leads_to_are_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let create = |name: &str| hdf5::File::create(at(name)).unwrap();
    std::fs::create_dir(at("disk")).unwrap();
    for name in ["disk/counts.h5", "first.h5", "second.h5"] {
        create(name).new_dataset_builder().with_data(&[5f32; 6]).create("d").unwrap();
    }
    std::fs::write(at("numbers.npy"), [0; 24]).unwrap();
    // The ending does not tell the format.
    let group = create("master.nxs").create_group("entry").unwrap();
    group.link_external("disk/counts.h5", "/d", "data").unwrap();
    group.link_external("gone.h5", "/d", "flat").unwrap();
    create("soft.h5").link_external("master.nxs", "/entry", "other").unwrap();
    hdf5::File::append(at("soft.h5")).unwrap().link_soft("/other/data", "data").unwrap();
    let blocks = create("blocks.h5");
    let mut block = blocks.new_dataset::<f32>().shape(12);
    for (first, name) in [(0, "first.h5"), (6, "second.h5")] {
        block = block.virtual_map(name, "d", 6, .., 12, first..first + 6);
    }
    block.create("d").unwrap();
    blocks.new_dataset::<f32>().shape(6).virtual_map(".", "d", 12, 0..6, 6, ..).create("half").unwrap();
    drop(blocks);
    let nested = create("nested.h5");
    nested.new_dataset::<f32>().shape(12).virtual_map("blocks.h5", "d", 12, .., 12, ..).create("d").unwrap();
    let numbers = at("numbers.npy");
    let stored = nested.new_dataset::<f32>().external(numbers.to_str().unwrap(), 0, 24);
    stored.shape(6).create("raw").unwrap();
    drop(nested);
    for (name, next) in [("one.h5", "two.h5"), ("two.h5", "three.h5"), ("three.h5", "two.h5")] {
        let file = create(name);
        file.link_external(next, "/", "next").unwrap();
        file.link_hard("/", "again").unwrap();
    }
    for (input, linked) in [
        ("master.nxs", &["disk/counts.h5"][..]),
        ("soft.h5", &["master.nxs", "disk/counts.h5"]),
        ("blocks.h5", &["first.h5", "second.h5"]),
        ("nested.h5", &["blocks.h5", "first.h5", "second.h5", "numbers.npy"]),
        ("one.h5", &["two.h5", "three.h5"]),
        ("first.h5", &[]),
        ("numbers.npy", &[]),
    ] {
        let all = [&[input], linked].concat();
        assert_eq!(sources(at(input)), all.iter().map(|name| at(name)).collect::<Vec<_>>(), "{input}");
        assert_eq!(parts(at(input)), [at(input)]);
        let error = |output: &str| expect_apart(&[at(input)], &[at("new.npy"), at(output)]).unwrap_err();
        for output in linked {
            assert!(error(output).to_string().contains("an input of this run"), "{input} {output}");
        }
    }
    // An old file that leads to an input is replaced, and the input is not.
    expect_apart(&[at("disk/counts.h5")], &[at("master.nxs"), at("gone.h5")]).unwrap();
}
