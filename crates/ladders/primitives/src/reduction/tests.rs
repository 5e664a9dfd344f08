#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests; sums of small whole numbers are exact")]

use rayspin_core::{Error, ErrorKind};
use rayspin_device::cpu::simd::levels;
use rayspin_device::{Array, Device};
use rayspin_tune::{gpu, uniform};

use super::{max, mean_square_error, min, reference, sum};

fn devices() -> Vec<Device> {
    let mut all = rayspin_emu::devices().unwrap();
    all.extend(levels().into_iter().map(|level| Device::cpu_with_level(1, level).unwrap()));
    all
}

#[test]
fn every_length_gives_what_the_oracle_gives() {
    let host = Device::cpu_with_threads(2).unwrap();
    let numbers = uniform(host.cpu_side(), 11, 40_001).unwrap();
    let whole: Vec<i32> = numbers.iter().map(|x| (x * 2f32.powi(31)) as i32).collect();
    for device in devices() {
        for n in [1, 2, 3, 5, 15, 16, 127, 4095, 32_769, 40_001] {
            let (x, y) = (&numbers[..n], &numbers[40_001 - n..]);
            let doubles: Vec<f64> = x.iter().map(|&x| f64::from(x) / 3.0).collect();
            let on = |x: &[f32]| Array::from_slice(&device, &[n], x).unwrap();
            let (a, b) = (on(x), on(y));
            let d = Array::from_slice(&device, &[n], &doubles).unwrap();
            let i = Array::from_slice(&device, &[n], &whole[..n]).unwrap();
            let close = |found: f64, want: (f64, f64)| (found - want.0).abs() <= 1e-13 * want.1;
            assert!(close(sum(&a).unwrap(), reference::sum(x)), "{n}");
            assert!(close(sum(&d).unwrap(), reference::sum(&doubles)), "{n}");
            assert_eq!(i128::from(sum(&i).unwrap()), reference::sum_i32(&whole[..n]), "{n}");
            assert_eq!(Some(min(&a).unwrap()), reference::min(x));
            assert_eq!(Some(max(&d).unwrap()), reference::max(&doubles));
            assert_eq!(Some(max(&i).unwrap()), reference::max(&whole[..n]));
            assert_eq!(Some(min(&i).unwrap()), reference::min(&whole[..n]));
            let want = reference::mean_square_error(x, y);
            assert!(close(mean_square_error(&a, &b).unwrap(), (want, want)), "{n}");
        }
    }
}

#[test]
fn the_mean_square_error_is_a_mean() {
    for device in devices() {
        let a = Array::from_slice(&device, &[2, 2], &[1, 2, 3, 4]).unwrap();
        let b = Array::from_slice(&device, &[2, 2], &[1, 2, 3, 8]).unwrap();
        assert_eq!(mean_square_error(&a, &b).unwrap(), 4.0);
        // A difference that i32 does not hold.
        let a = Array::from_slice(&device, &[1], &[i32::MAX]).unwrap();
        let b = Array::from_slice(&device, &[1], &[i32::MIN]).unwrap();
        assert_eq!(mean_square_error(&a, &b).unwrap(), (2f64.powi(32) - 1.0).powi(2));
    }
}

#[test]
fn nan_is_the_extreme_wherever_it_stands_and_infinity_is_a_number() {
    for device in devices() {
        for at in [0, 1, 63, 64, 500, 998, 999] {
            let mut x = uniform(device.cpu_side(), 5, 999 + 1).unwrap();
            x[(at + 7) % 1000] = f32::NEG_INFINITY;
            let a = Array::from_slice(&device, &[1000], &x).unwrap();
            assert_eq!(min(&a).unwrap(), f32::NEG_INFINITY);
            assert_eq!(sum(&a).unwrap(), f64::NEG_INFINITY);
            x[at] = f32::NAN;
            let a = Array::from_slice(&device, &[1000], &x).unwrap();
            assert!(min(&a).unwrap().is_nan() && max(&a).unwrap().is_nan() && sum(&a).unwrap().is_nan());
        }
        let all = Array::from_slice(&device, &[100], &[f64::INFINITY; 100]).unwrap();
        assert_eq!((min(&all).unwrap(), max(&all).unwrap()), (f64::INFINITY, f64::INFINITY));
    }
}

#[test]
fn nothing_has_a_sum_and_no_extreme_and_shapes_must_agree() {
    for device in devices() {
        let none = Array::<f32>::zeros(&device, &[0]).unwrap();
        assert_eq!(sum(&none).unwrap(), 0.0);
        let input =
            |found: Option<rayspin_core::Error>| assert_eq!(found.map(|e| e.kind()), Some(ErrorKind::Input));
        input(min(&none).err());
        input(max(&none).err());
        input(mean_square_error(&none, &none).err());
        let (a, b) =
            (Array::<f32>::zeros(&device, &[2, 3]).unwrap(), Array::zeros(&device, &[3, 2]).unwrap());
        input(mean_square_error(&a, &b).err());
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let host = Device::cpu_with_threads(2).unwrap();
    let x = uniform(host.cpu_side(), 3, 200_003).unwrap();
    let bits = |threads| {
        let device = Device::cpu_with_threads(threads).unwrap();
        sum(&Array::from_slice(&device, &[x.len()], &x).unwrap()).unwrap().to_bits()
    };
    assert_eq!([bits(1), bits(2), bits(3)], [bits(1); 3]);
}

#[test]
fn calls_from_several_threads_keep_apart_and_take_memory_once() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let cuda = gpu(&device).unwrap();
    let whole = |n: i32| Array::from_vec(&device, &[n as usize], (0..n).collect()).unwrap();
    let sizes = [1, 700, 5000];
    let arrays = sizes.map(whole);
    let squares = Array::from_vec(&device, &[900], vec![1.5f64; 900]).unwrap();
    let check = || {
        for (n, a) in sizes.iter().zip(&arrays) {
            let n = i64::from(*n);
            assert_eq!((sum(a).unwrap(), max(a).unwrap()), (n * (n - 1) / 2, n as i32 - 1));
        }
        assert_eq!(mean_square_error(&squares, &squares).unwrap(), 0.0);
        assert_eq!(sum(&squares).unwrap(), 1350.0);
    };
    check();
    let (used, _) = cuda.memory_used();
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(check);
        }
    });
    cuda.reset_peak();
    check();
    assert_eq!(cuda.memory_used(), (used, used));
    // A number cannot be had of what is only recorded.
    let error = cuda.record(|| sum(&arrays[1]).map(drop)).unwrap_err();
    assert!(error.to_string().contains("reduction"), "{error}");
    let failing: Result<f32, Error> =
        cuda.read_scalar("reduction", 1, |_, _| Err(Error::value("test", "a failure", "one")));
    assert!(failing.is_err());
    let wide = cuda.read_scalar::<[u64; 2]>("reduction", 1, |_, _| Ok(()));
    assert_eq!(wide.err().map(|e| e.kind()), Some(ErrorKind::Input));
    check();
}
