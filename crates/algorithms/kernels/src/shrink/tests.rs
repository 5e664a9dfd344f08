use num_complex::Complex;
use rayspin_core::C64;
use rayspin_device::Device;

use super::*;

#[test]
fn known_numbers_are_shrunk_and_clipped() {
    let device = Device::cpu_with_threads(1).unwrap();
    let x = vec![C64::new(3.0, 4.0), C64::new(0.0, -1.0), C64::new(0.0, 0.0), C64::new(6.0, 8.0)];
    let w = Array::from_vec(&device, &[2, 2], vec![1.0, 1.0, 1.0, 0.0]).unwrap();
    let mut a = Array::from_vec(&device, &[2, 2], x.clone()).unwrap();
    let norm = soft(2.5, &w, &mut a).unwrap();
    assert_eq!(a.cpu(), [C64::new(1.5, 2.0), C64::ZERO, C64::ZERO, C64::new(6.0, 8.0)]);
    assert_eq!(norm, 2.5);

    let mut a = Array::from_vec(&device, &[2, 2], x).unwrap();
    // Groups (3+4i, 0) and (−i, 6+8i).
    assert!((joint_norm(&a).unwrap() - 5.0 - 101f64.sqrt()).abs() < 1e-12);
    clip(5.0, &mut a).unwrap();
    assert_eq!(a.cpu()[0], C64::new(3.0, 4.0));
    assert!((a.cpu()[1].norm_sqr() + a.cpu()[3].norm_sqr() - 25.0).abs() < 1e-12);
    clip(0.0, &mut a).unwrap();
    assert!(a.cpu().iter().all(|v| *v == C64::ZERO));
}

#[test]
fn what_cannot_be_shrunk_is_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let mut x = Array::<Complex<f32>>::zeros(&device, &[2, 3]).unwrap();
    let w = Array::<f32>::zeros(&device, &[2, 3]).unwrap();
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(soft(bad, &w, &mut x).is_err());
        assert!(clip(bad, &mut x).is_err());
    }
    assert!(soft(1.0, &Array::zeros(&device, &[3]).unwrap(), &mut x).is_err());
    let mut empty = Array::<Complex<f32>>::zeros(&device, &[2, 0]).unwrap();
    assert!(clip(1.0, &mut empty).is_ok());
    assert_eq!(joint_norm(&empty).unwrap(), 0.0);
    let mut scalar = Array::<Complex<f32>>::zeros(&device, &[]).unwrap();
    assert!(clip(1.0, &mut scalar).is_err());
}
