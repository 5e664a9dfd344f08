//! Mathematics: P A = L U with the pivots that the method prescribes, and systems with known solutions.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Array, Device};

use super::*;

fn factors(device: &Device, n: usize, a: &[f64]) -> (Vec<f64>, Vec<i32>) {
    let a = Array::from_slice(device, &[n, n], a).unwrap();
    let mut lu = Array::zeros(device, &[n, n]).unwrap();
    let mut pivots = Array::zeros(device, &[n]).unwrap();
    factorize(&a, &mut lu, &mut pivots).unwrap();
    (lu.to_vec().unwrap(), pivots.to_vec().unwrap())
}

#[test]
fn a_matrix_of_three_rows_is_factored_by_hand() {
    // Row 2 leads with 4; of what is left, 3/2 and 1/2, the first is larger.
    let a = [2.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, -2.0, 2.0];
    for device in rayspin_emu::devices().unwrap() {
        let (lu, pivots) = factors(&device, 3, &a);
        assert_eq!(pivots, [2, 1, 2], "{}", device.describe());
        let want = [4.0, -2.0, 2.0, 0.25, 2.5, 2.5, 0.5, 0.8, -2.0];
        assert!(lu.iter().zip(want).all(|(l, w)| (l - w).abs() < 1e-15), "{lu:?}");
    }
}

/// A permutation has factors without rounding, and takes a change of rows at nearly every step. The rows of
/// the smaller matrix fit in one block of the emulated GPU, the rows of the larger one do not.
#[test]
fn a_permutation_is_undone() {
    for n in [75, 900] {
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            a[i * n + (i * 31 + 7) % n] = if i % 2 == 0 { 1.0 } else { -3.0 };
        }
        let want: Vec<_> = (0..n).map(|i| i as f64 - 20.0).collect();
        let b: Vec<f64> =
            a.chunks_exact(n).map(|row| row.iter().zip(&want).map(|(a, x)| a * x).sum()).collect();
        for device in rayspin_emu::devices().unwrap() {
            let (lu, pivots) = factors(&device, n, &a);
            assert_eq!(reference::solve(&lu, &pivots, &b), want, "{n} on {}", device.describe());
            assert!(pivots.iter().enumerate().filter(|&(k, &p)| p as usize != k).count() > n / 2);
        }
    }
}

/// Wilkinson's matrix: ones on the diagonal and in the last column, -1 below. Its last column doubles with
/// every step.
#[test]
fn the_last_pivot_grows_as_wilkinson_says() {
    let n = 40;
    let number = |at: usize| match (at / n, at % n) {
        (i, j) if i == j || j == n - 1 => 1.0,
        (i, j) if j < i => -1.0,
        _ => 0.0,
    };
    let a: Vec<_> = (0..n * n).map(number).collect();
    for device in rayspin_emu::devices().unwrap() {
        let (lu, pivots) = factors(&device, n, &a);
        assert_eq!(lu[n * n - 1], 2f64.powi(n as i32 - 1), "{}", device.describe());
        assert!(pivots.iter().enumerate().all(|(k, &p)| p as usize == k), "of equals the first");
    }
}

#[test]
fn saxpy_of_known_vectors_and_refusals() {
    for device in rayspin_emu::devices().unwrap() {
        let vector = |v: &[f32]| Array::from_slice(&device, &[v.len()], v).unwrap();
        let mut z = vector(&[f32::NAN; 5]);
        saxpy(2.0, &vector(&[1.0, 2.0, 3.0, 4.0, 5.0]), &vector(&[0.5; 5]), &mut z).unwrap();
        assert_eq!(z.to_vec().unwrap(), [2.5, 4.5, 6.5, 8.5, 10.5]);
        assert!(saxpy(2.0, &vector(&[1.0]), &vector(&[0.5; 5]), &mut z).is_err());
        let (mut lu, mut pivots) =
            (Array::zeros(&device, &[2, 2]).unwrap(), Array::zeros(&device, &[2]).unwrap());
        let oblong = Array::<f64>::zeros(&device, &[2, 3]).unwrap();
        assert!(factorize(&oblong, &mut lu, &mut pivots).is_err());
    }
}

#[test]
fn the_residual_sees_one_wrong_number() {
    let cpu = Device::cpu_with_threads(1).unwrap();
    let mut data = Linpack.data(&Problem::Lu(60), &cpu, 3).unwrap();
    let rows = Linpack.variants(&Problem::Lu(60));
    rows[1].implementation.launch(&Default::default(), &mut data).unwrap();
    assert!(Linpack.error(&Problem::Lu(60), &data).unwrap() < 1.0);
    data.matrix().unwrap().lu.cpu_mut()[60 * 31 + 40] *= 1.0 + 1e-9;
    assert!(Linpack.error(&Problem::Lu(60), &data).unwrap() > 16.0);
}
