use std::path::Path;
use std::process::Command;

use ndarray::{ArrayD, IxDyn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Geometry, Image};
use rayspin_io::read_volume;

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs a script of `tests/interop` with the Python that RAYSPIN_PYTHON names; false, with a printed word,
/// without one.
pub(crate) fn python(script: &str, action: &str, folder: &Path) -> bool {
    let Ok(python) = std::env::var("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/interop").join(script);
    let run = Command::new(python).arg(script).arg(action).arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    true
}

pub(crate) fn random(seed: u64, shape: &[usize]) -> ArrayD<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        C32::new(rng.random::<f32>() - 0.5, rng.random::<f32>() - 0.5)
    })
}

/// A geometry with three turned axes; left-handed when `mirrored`.
pub(crate) fn oblique(spacing: [f64; 3], position: [f64; 3], angles: [f64; 3], mirrored: bool) -> Geometry {
    let turn = |v: [f64; 3], angle: f64, i: usize, j: usize| {
        let (s, c) = angle.sin_cos();
        let mut out = v;
        out[i] = c * v[i] - s * v[j];
        out[j] = s * v[i] + c * v[j];
        out
    };
    let axis = |v: [f64; 3]| turn(turn(turn(v, angles[0], 0, 1), angles[1], 1, 2), angles[2], 0, 2);
    let third = if mirrored { -1.0 } else { 1.0 };
    Geometry::new(spacing, position, axis([1.0, 0.0, 0.0]), axis([0.0, 1.0, 0.0]), axis([0.0, 0.0, third]))
        .unwrap()
}

pub(crate) fn assert_same_place(found: &Geometry, expected: &Geometry, shape: [usize; 3], tolerance_mm: f64) {
    let (a, b) = (found.affine_ras(shape), expected.affine_ras(shape));
    for corner in 0..8 {
        let index: [f64; 3] =
            std::array::from_fn(|axis| if corner >> axis & 1 == 1 { shape[2 - axis] as f64 } else { 0.0 });
        for (p, q) in a.iter().zip(&b) {
            let at = |row: &[f64; 4]| row[3] + (0..3).map(|i| row[i] * index[i]).sum::<f64>();
            assert!((at(p) - at(q)).abs() < tolerance_mm, "{found:?}\n{expected:?}");
        }
    }
}

/// Replaces a file. Writing over the old one would make some file systems flush it to disk each time.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

/// The volume that `tests/interop/volumes.py` writes.
pub(crate) fn expected() -> ArrayD<f32> {
    ArrayD::from_shape_fn(IxDyn(&[3, 4, 5]), |at| (100 * at[0] + 10 * at[1] + at[2]) as f32)
}

pub(crate) fn read(path: &Path) -> Image<f32> {
    read_volume(path).unwrap().image
}

/// The message with which a volume is refused.
pub(crate) fn refused(path: &Path) -> String {
    let error = read_volume(path).unwrap_err();
    assert!(matches!(error.kind(), rayspin_core::ErrorKind::Input), "{error}");
    error.to_string()
}
