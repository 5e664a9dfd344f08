#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::{C32, C64, ErrorKind};
use rayspin_device::cpu::simd::levels;
use rayspin_device::{Array, Device};
use rayspin_tune::input::bits;

use super::{Entry, transpose};

fn devices() -> Vec<Device> {
    let mut all = rayspin_emu::devices().unwrap();
    all.push(Device::cpu_with_threads(3).unwrap());
    all.extend(levels().into_iter().map(|level| Device::cpu_with_level(1, level).unwrap()));
    all
}

fn check<T: Entry>(device: &Device, rows: usize, columns: usize, random: fn(u64) -> T) {
    let values: Vec<T> = (0..rows * columns).map(|i| random(bits(3, i as u64))).collect();
    let mut want = Vec::new();
    for x in 0..columns {
        for y in 0..rows {
            want.push(values[y * columns + x]);
        }
    }
    let a = Array::from_slice(device, &[rows, columns], &values).unwrap();
    // Poison: no element of any type is all ones here.
    let mut b = Array::<T>::zeros(device, &[columns, rows]).unwrap();
    b.fill(bytemuck::pod_read_unaligned(&[0xff; 16][..size_of::<T>()])).unwrap();
    transpose(&a, &mut b).unwrap();
    let bytes = |values: &[T]| bytemuck::cast_slice::<T, u8>(values).to_vec();
    assert!(
        bytes(&b.read().unwrap()) == bytes(&want),
        "{rows} x {columns} {} on {}",
        T::C,
        device.describe()
    );
}

#[test]
fn every_element_of_every_type_goes_to_its_place() {
    for device in devices() {
        for (rows, columns) in
            [(1, 1), (1, 9), (1000, 1), (63, 65), (64, 128), (129, 40), (3, 700), (700, 6), (200, 68)]
        {
            check::<f32>(&device, rows, columns, |bits| (bits >> 40) as f32);
            check::<f64>(&device, rows, columns, |bits| (bits >> 40) as f64);
            check::<u8>(&device, rows, columns, |bits| (bits >> 57) as u8);
        }
        for (rows, columns) in [(33, 70), (36, 68)] {
            check::<u16>(&device, rows, columns, |bits| (bits >> 49) as u16);
            check::<i32>(&device, rows, columns, |bits| (bits >> 33) as i32);
            check::<C32>(&device, rows, columns, |bits| C32::new((bits >> 40) as f32, (bits & 0xff) as f32));
            check::<C64>(&device, rows, columns, |bits| C64::new((bits >> 40) as f64, (bits & 0xff) as f64));
        }
    }
}

#[test]
fn nothing_has_a_transpose_and_shapes_must_agree() {
    for device in devices() {
        for shape in [[0, 5], [5, 0], [0, 0]] {
            let a = Array::<f32>::zeros(&device, &shape).unwrap();
            let mut b = Array::zeros(&device, &[shape[1], shape[0]]).unwrap();
            transpose(&a, &mut b).unwrap();
        }
        let mut b = Array::<f32>::zeros(&device, &[2, 3]).unwrap();
        for shape in [&[2, 3][..], &[6], &[3, 2, 1]] {
            let a = Array::<f32>::zeros(&device, shape).unwrap();
            assert_eq!(transpose(&a, &mut b).unwrap_err().kind(), ErrorKind::Input);
        }
    }
}
