//! Memory: stated, limited, and kernels that are kept.

use crate::{files, ok, rayspin, reconstructed, refused, simulated, with_scan};

#[test]
fn memory_is_stated_before_the_run_as_the_system_measures_it() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (scan, methods) in [
        ("--matrix 256,256 --coils 24", &["cartesian", "cg-sense -i 2"][..]),
        ("--trajectory stack-of-spirals --dims 3 --matrix 64,64,48 --shots 6 --coils 8", &["gridding"]),
    ] {
        simulated(f, scan);
        for method in methods {
            let (parameters, peak, _) = reconstructed(f, &format!("--method {method}"));
            let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
            assert!((0.9..1.1).contains(&ratio), "{scan} {method}: {ratio} of {peak}");
        }
    }
    // Nothing is computed or written, and no output need be named.
    let before = files(f);
    let output = ok(&["recon", "mri", "scan.h5", "--dry-run", "--method", "cg-sense"], f);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Toeplitz kernel") && text.contains("conjugate gradients"), "{text}");
    assert_eq!(files(f), before);
}

#[test]
fn a_run_fits_its_memory_or_is_refused_with_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 192,192,12 --dims 2 --coils 8");
    let (parameters, _, whole) = reconstructed(f, "--method cartesian");
    let needed = parameters["memory stated"].as_f64().unwrap();
    let limit = (needed * 0.75) as u64;
    let (parameters, peak, parts) = reconstructed(f, &format!("--method cartesian --memory {limit}"));
    assert_eq!(parameters["read image by image"], true);
    assert!(parts == whole, "another image");
    assert!(peak < 1.1 * limit as f64, "{peak} of {limit}");
    refused(
        &["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "1M"],
        f,
        &["--memory", "at least", "MiB"],
    );
    let wrong = rayspin(&["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "much"], f);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn kept_kernels_give_the_same_image_and_broken_ones_are_made_anew() {
    let folder = with_scan();
    let f = folder.path();
    let run = |name: &str| {
        let output = ok(
            &[
                "recon",
                "mri",
                "scan.h5",
                "-o",
                name,
                "--method",
                "cg-sense",
                "--iterations",
                "5",
                "--cache",
                "kernels",
            ],
            f,
        );
        (std::fs::read(f.join(name)).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (first, text) = run("a.npy");
    assert!(text.contains("cache miss"), "{text}");
    let (second, text) = run("b.npy");
    assert!(text.contains("cache hit") && second == first, "{text}");
    let kernel = files(&f.join("kernels")).remove(0);
    let bytes = std::fs::read(&kernel).unwrap();
    std::fs::write(&kernel, &bytes[..bytes.len() / 2]).unwrap();
    let (third, text) = run("c.npy");
    assert!(text.contains("cache miss") && text.contains("made anew") && third == first, "{text}");
    assert!(std::fs::read(&kernel).unwrap() == bytes, "the kernel is not replaced");
    let gridding = ["recon", "mri", "scan.h5", "-o", "d.npy", "--method", "gridding", "--cache", "kernels"];
    refused(&gridding, f, &["--cache", "gridding"]);
}
