//! Files that hold several arrays, image series or scans: a name after a colon chooses one, wherever an input
//! is named.

use std::path::Path;

use ndarray::Array2;
use rayspin::core::C32;
use rayspin::io::npy;

use crate::arrays::{command, frame, write_npz};
use crate::{ok, rayspin, refused};

/// `all.npz` and its arrays as `.npy` files, and `both.h5`: the scans `one.h5` and `two.h5`, and the images
/// `one.npy` and `two.npy`.
fn with_several() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, more) in [("one", "--seed 1"), ("two", "--seed 2 --contrast standard")] {
        let line = format!(
            "simulate mri -q --no-record -o {name}.h5 --truth {name}.npy --maps maps.npy --matrix 32,24 --coils 3 --snr 30 {more}"
        );
        ok(&command(&line), f);
        ok(&["-q", "convert", &format!("{name}.npy"), &format!("{name}-image.h5")], f);
    }
    let rayspin::mri::scan::Samples::Cartesian { kspace, .. } = frame(&f.join("one.h5")).samples else {
        panic!("expected a grid")
    };
    npy::write(f.join("kspace.npy"), kspace.view()).unwrap();
    let covariance = Array2::from_diag_elem(3, C32::new(2.0, 0.0));
    npy::write(f.join("covariance.npy"), covariance.view()).unwrap();
    write_npz(&f.join("all.npz"), &["kspace", "maps", "one", "covariance"]);
    let both = hdf5::File::create(f.join("both.h5")).unwrap();
    for name in ["one", "two"] {
        both.link_external(&format!("{name}.h5"), "dataset", name).unwrap();
        both.link_external(&format!("{name}-image.h5"), "dataset", &format!("images-{name}")).unwrap();
    }
    folder
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

/// Escape sequences in names of files, arrays and protocols: a terminal would obey them.
#[test]
fn names_from_files_do_not_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    ok(&command("simulate mri -q --no-record -o scan.h5 --matrix 16,16 --coils 2"), f);
    let mut scan = rayspin::io::ismrmrd::read(f.join("scan.h5")).unwrap();
    let xml = scan.header.xml.take().unwrap();
    let name = "knee&#x9b;31m&#x202e;gnp\u{1b}]0;mine\u{7}";
    let xml = xml.replacen("Shepp-Logan, Cartesian", name, 1);
    assert!(xml.contains(name), "{xml}");
    scan.header = rayspin::io::ismrmrd::parse_header("scan.h5", xml.as_bytes()).unwrap().0;
    rayspin::io::ismrmrd::write(f.join("scan.h5"), &scan, rayspin::io::ismrmrd::Identity::Keep).unwrap();
    let file = "a\u{1b}[2J\u{9b}1mb.h5";
    std::fs::copy(f.join("scan.h5"), f.join(file)).unwrap();
    std::fs::write(f.join("none\u{1b}[1m.h5"), "no scan").unwrap();
    let image = "i\u{1b}[7m.npy";
    for line in [
        &["info", "scan.h5"][..],
        &["info", file],
        &["info", file, "--json"],
        &["info", "."],
        &["info", "none\u{1b}[1m.h5"],
        &["recon", "mri", file, "-o", image, "--device", "cpu"],
        &["recon", "mri", file, "-o", "x\u{1b}c.jpg"],
        &["recon", "mri", file, "-o", image, "--m\u{1b}[1m"],
        &["metrics", image, image],
        &["convert", image, "j\u{1b}[7m.nii"],
        &["batch", file, "-o", "{stem}.npy", "--page", "page.html", "--device", "cpu"],
        &["rerun", "i\u{1b}[7m.json"],
    ] {
        let output = rayspin(line, f);
        for text in [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap()) {
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(acts), "{line:?}: {text:?}");
            assert!(
                !line.contains(&"--json")
                    || serde_json::from_str::<serde_json::Value>(&text).is_ok()
                    || text.is_empty()
            );
        }
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(line != ["info", "scan.h5"] || shown.contains(r"knee\u009b31m\u202egnp"), "{shown}");
    }
    let page = std::fs::read_to_string(f.join("page.html")).unwrap();
    assert!(page.contains(r"a\u001b[2J\u009b1mb") && !page.contains('\u{1b}'), "{page}");
}

#[test]
fn a_colon_names_an_array_scan_or_series_wherever_an_input_is_named() {
    let folder = with_several();
    let f = folder.path();
    let recon = |scan: &str, output: &str, more: &str| {
        ok(&command(&format!("recon mri {scan} -q -o {output} -m cg-sense -i 3 {more}")), f);
        bytes(f, output)
    };
    let apart = "--maps maps.npy --reference one.npy --noise-covariance covariance.npy";
    let together = "--maps all.npz:maps --reference all.npz:one --noise-covariance all.npz:covariance";
    assert!(recon("kspace.npy", "a.npy", apart) == recon("all.npz:kspace", "b.npy", together));
    let record: serde_json::Value = serde_json::from_slice(&bytes(f, "b.json")).unwrap();
    assert_eq!(record["parameters"]["maps"], "all.npz:maps");
    assert!(record["inputs"][0]["path"].as_str().unwrap().ends_with("all.npz"), "{}", record["inputs"]);

    assert!(recon("two.h5", "c.npy", "") == recon("both.h5:two", "d.npy", ""));
    ok(&command("-q convert both.h5:two again.h5"), f);
    assert!(recon("again.h5", "e.npy", "") == bytes(f, "c.npy"));

    ok(&command("-q convert both.h5:images-two/image_0 g.npy"), f);
    ok(&command("-q convert two-image.h5 h.npy"), f);
    assert!(bytes(f, "g.npy") == bytes(f, "h.npy"));
    ok(&command("-q convert all.npz:one i.npy"), f);
    assert!(bytes(f, "i.npy") == bytes(f, "one.npy"));
    let table = ok(&command("metrics both.h5:/images-one/image_0 all.npz:one --json"), f).stdout;
    let table: serde_json::Value = serde_json::from_slice(&table).unwrap();
    assert!(table["nrmse"].as_f64().unwrap() < 1e-12, "{table}");
    let info = String::from_utf8(ok(&["info", "both.h5:one"], f).stdout).unwrap();
    assert!(info.contains("understood as") && info.contains("3 coils, 32 × 24"), "{info}");
}

#[test]
fn a_file_that_holds_several_is_listed_with_the_way_to_name_one() {
    let folder = with_several();
    let f = folder.path();
    let arrays = "kspace, maps, one, covariance";
    for (line, words) in [
        ("recon mri all.npz -o x.npy", [arrays, "name one after a colon: all.npz:kspace"]),
        ("recon mri all.npz:traj -o x.npy", [arrays, "found traj"]),
        ("recon mri kspace.npy -o x.npy --maps all.npz", [arrays, "all.npz:kspace"]),
        ("recon mri both.h5 -o x.npy", ["one, two", "name one after a colon: both.h5:one"]),
        ("recon mri both.h5:three -o x.npy", ["one, two", "found three"]),
        ("convert both.h5 x.npy", ["images-one/image_0, images-two/image_0", "both.h5:images-one/image_0"]),
        ("metrics all.npz one.npy", [arrays, "all.npz:kspace"]),
        ("convert one.npy:k x.nii", ["name after the colon", ".npz, .mat, .h5, .hdf5, .dicom or .dat"]),
        ("convert nowhere.npz:k x.nii", ["nowhere.npz: cannot open", "spelling"]),
    ] {
        refused(&command(line), f, &words[..1]);
        let said = String::from_utf8(rayspin(&command(line), f).stderr).unwrap();
        assert!(said.contains(words[1]), "{line}: {said}");
    }
    let info = String::from_utf8(ok(&["info", "both.h5"], f).stdout).unwrap();
    for row in ["scan          one", "scan          two", "image series  images-two/image_0"] {
        assert!(info.contains(row), "{row} is not in {info}");
    }
    for of in [&["recon", "mri", "--help"][..], &["convert", "-h"], &["metrics", "-h"], &["info", "-h"]] {
        let help = String::from_utf8(ok(of, f).stdout).unwrap();
        assert!(help.contains("A colon names one of several"), "{help}");
    }
}

#[test]
fn names_are_taken_as_they_stand() {
    let folder = crate::with_scan();
    let f = folder.path();
    // An option of one letter, an equals sign and the name.
    ok(&command("recon mri scan.h5 -m gridding -qo=equals.npy"), f);
    ok(&command("recon mri scan.h5 -m gridding -q -o=other.npy"), f);
    for name in ["equals", "other"] {
        ok(&["rerun", &format!("{name}.json"), "-q", "--out", "again"], f);
        assert_eq!(bytes(f, &format!("again/{name}.npy")), bytes(f, "equals.npy"));
    }
    // The name of a scan that is a word of the pattern.
    std::fs::create_dir(f.join("day")).unwrap();
    for name in ["{folder}", "{stem}"] {
        std::fs::copy(f.join("scan.h5"), f.join(format!("day/{name}.h5"))).unwrap();
    }
    ok(&command("batch day -q -o out/{folder}/{x}{stem}.npy -- -m gridding"), f);
    for name in ["{folder}", "{stem}"] {
        assert_eq!(bytes(f, &format!("out/day/{{x}}{name}.npy")), bytes(f, "equals.npy"));
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_not_there_yet_is_followed() {
    let folder = crate::with_scan();
    let f = folder.path();
    std::fs::create_dir(f.join("disk")).unwrap();
    for name in ["image.npy", "image.json"] {
        std::os::unix::fs::symlink(f.join("disk").join(name), f.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("gone/image.npy", f.join("lost.npy")).unwrap();
    ok(&command("recon mri scan.h5 -m gridding -q -o image.npy"), f);
    for name in ["image.npy", "image.json"] {
        assert!(f.join("disk").join(name).is_file() && f.join(name).is_symlink(), "{name}");
    }
    refused(&command("recon mri scan.h5 -o lost.npy"), f, &["lost.npy", "gone to exist"]);
}
