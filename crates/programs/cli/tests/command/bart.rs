//! BART's arrays keep BART's dimensions.

use std::path::Path;

use ndarray::{ArrayD, Axis, Dimension as _, IxDyn};
use rayspin::core::C32;
use rayspin::io::{cfl, npy};
use rayspin::mri::scan::Samples;

use crate::arrays::{command, frame, nrmse, real_scan, said};
use crate::{ok, simulated};

/// The header's dimensions, without ones at the end.
pub(crate) fn dims(folder: &Path, name: &str) -> Vec<usize> {
    let dims = cfl::read_dims(folder.join(name)).unwrap();
    let used = dims.iter().rposition(|&d| d > 1).map_or(1, |last| last + 1);
    dims[..used].to_vec()
}

/// The same k-space as `[coil, y, x]` in `plane.npy`, as BART's `x y 1 coil` in `plane.cfl`, and as a slice
/// across the readout, `1 y x coil`, in `cut.cfl`.
fn with_planes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 64,48 --coils 5 --acceleration 2 --calibration 24 --snr 60");
    let Samples::Cartesian { kspace, .. } = frame(&f.join("scan.h5")).samples else {
        panic!("expected a grid")
    };
    npy::write(f.join("plane.npy"), kspace.view()).unwrap();
    let volume = kspace.insert_axis(Axis(1));
    cfl::write(f.join("plane.cfl"), volume.view().reversed_axes()).unwrap();
    let mut cut = volume.view().reversed_axes();
    cut.swap_axes(0, 2);
    cfl::write(f.join("cut.cfl"), cut.view()).unwrap();
    assert_eq!((dims(f, "plane.cfl"), dims(f, "cut.cfl")), (vec![64, 48, 1, 5], vec![1, 48, 64, 5]));
    folder
}

#[test]
fn images_and_maps_have_the_dimensions_of_the_scan() {
    let folder = with_planes();
    let f = folder.path();
    let recon = |scan: &str, name: &str, more: &str| {
        let outputs: String = ["cfl", "npy", "nii", "png"].map(|end| format!(" -o of-{name}.{end}")).concat();
        said(&format!("recon mri {scan} --no-record -m cg-sense -i 8 {outputs} {more}"), f)
    };
    let expected = [
        ("scan.h5", "scan", vec![64, 48], "64 × 48"),
        ("plane.npy", "array", vec![64, 48], "64 × 48"),
        ("plane.cfl", "plane", vec![64, 48], "64 × 48"),
        ("cut.cfl", "cut", vec![1, 48, 64], "48 × 64"),
    ];
    for (scan, name, image, sizes) in expected {
        let text = recon(scan, name, &format!("--save-maps {name}-maps.cfl"));
        assert!(text.contains(&format!("understood as 5 coils, {sizes}, Cartesian, ")), "{scan}: {text}");
        let mut maps = image.clone();
        maps.resize(3, 1);
        maps.push(5);
        assert_eq!((dims(f, &format!("of-{name}.cfl")), dims(f, &format!("{name}-maps.cfl"))), (image, maps));
        // One image, whatever it was read from and is written to.
        for end in ["cfl", "npy"] {
            let error = nrmse(&format!("of-{name}.{end}"), "of-scan.npy", f);
            assert!(error < 1e-6, "{name}.{end}: {error}");
        }
        let bytes = |name: &str, end: &str| std::fs::read(f.join(format!("of-{name}.{end}"))).unwrap();
        assert!(bytes(name, "nii")[352..] == bytes("scan", "nii")[352..], "{name}");
        // The scan's voxels are not square.
        assert!(name == "scan" || bytes(name, "png") == bytes("array", "png"), "{name}");
        // Maps survive writing and reading.
        recon(scan, "again", &format!("--maps {name}-maps.cfl"));
        let error = nrmse("of-again.npy", "of-scan.npy", f);
        assert!(error < 1e-5, "{name}: {error}");
    }
    recon("cut.cfl", "sets", "--sensitivities espirit --map-sets 2 --save-maps sets-maps.cfl");
    assert_eq!(dims(f, "sets-maps.cfl"), [1, 48, 64, 5, 2]);
    recon("cut.cfl", "again", "--maps sets-maps.cfl");
    let error = nrmse("of-again.npy", "of-sets.npy", f);
    assert!(error < 1e-4, "{error}");
}

#[test]
fn images_are_converted_in_their_own_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for shape in [
        &[6, 5][..],
        &[1, 5, 4],
        &[6, 1, 4],
        &[6, 5, 4, 1, 2, 3],
        &[6, 5, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 4],
        &[1, 5, 4, 1, 1, 1, 1, 1, 1, 1, 3],
    ] {
        let array = ArrayD::from_shape_fn(IxDyn(shape), |i| {
            let place = i.as_array_view().iter().zip(1u8..).map(|(&i, n)| i as f32 * f32::from(n)).sum();
            C32::new(place, i[1] as f32)
        });
        cfl::write(f.join("a.cfl"), array.view()).unwrap();
        ok(&["-q", "convert", "a.cfl", "b.cfl"], f);
        assert_eq!(dims(f, "b.cfl"), shape);
        assert_eq!(
            std::fs::read(f.join("a.cfl")).unwrap(),
            std::fs::read(f.join("b.cfl")).unwrap(),
            "{shape:?}"
        );
        // Without BART's dimensions: x, y, z, and repetitions in TIME.
        ok(&["-q", "convert", "a.cfl", "c.npy"], f);
        ok(&["-q", "convert", "c.npy", "c.cfl"], f);
        let image = npy::describe(f.join("c.npy")).unwrap().shape;
        let mut expected: Vec<usize> = image.iter().rev().take(3).copied().collect();
        if image.len() == 4 {
            expected.extend([1; 7]);
            expected.push(image[0]);
        }
        let mut found = dims(f, "c.cfl");
        found.resize(expected.len(), 1);
        assert_eq!(found, expected);
    }
}

#[test]
fn the_real_head_scan_comes_out_as_bart_has_it() {
    let Some(scan) = real_scan("brain_cartesian_8ch.cfl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let scan = scan.display();
    ok(
        &command(&format!("recon mri {scan} -q --no-record -m cg-sense -i 5 -o a.cfl --save-maps maps.cfl")),
        f,
    );
    assert_eq!((dims(f, "a.cfl"), dims(f, "maps.cfl")), (vec![1, 230, 180], vec![1, 230, 180, 8]));
}
