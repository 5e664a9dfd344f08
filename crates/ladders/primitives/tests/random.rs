//! Random numbers: the published vectors, the same bits everywhere, and whether they look random. Seeds are
//! fixed, so that a test either passes always or never; thresholds are such that a good generator would fail
//! one in a million seeds.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Array, Device, cpu::simd::levels};
use rayspin_primitives::random::{
    Stream, fill_bits, fill_log_normal, fill_normal, fill_poisson, fill_uniform, philox, reference,
};

const STREAM: Stream = Stream { seed: 0x0123_4567_89ab_cdef, number: 42 };

/// The numbers of every law as bits.
fn all(device: &Device, n: usize) -> Vec<Vec<u64>> {
    let words = || Array::<u32>::zeros(device, &[n]).unwrap();
    let single = || Array::<f32>::zeros(device, &[n]).unwrap();
    let double = || Array::<f64>::zeros(device, &[n]).unwrap();
    let mut made = Vec::new();
    let mut out = words();
    fill_bits(STREAM, &mut out).unwrap();
    made.push(out.read().unwrap().iter().map(|&v| v.into()).collect());
    for lambda in [0.0, 0.3, 50.0, 123_456.7] {
        fill_poisson(STREAM, lambda, &mut out).unwrap();
        made.push(out.read().unwrap().iter().map(|&v| v.into()).collect());
    }
    type Fill<T> = fn(&mut Array<T>);
    let singles: [Fill<f32>; 6] = [
        |out| fill_uniform(STREAM, out).unwrap(),
        |out| fill_normal(STREAM, 1.5, 0.3, out).unwrap(),
        |out| fill_log_normal(STREAM, 0.1, 20.0, out).unwrap(),
        // Whose powers of 2 are all normal numbers, and whose are not for the least of scales.
        |out| fill_log_normal(STREAM, 0.3, 0.5, out).unwrap(),
        |out| fill_log_normal(STREAM, -80.0, 1e-5, out).unwrap(),
        |out| fill_log_normal(STREAM, 7.25, 1e-8, out).unwrap(),
    ];
    for fill in singles {
        let mut out = single();
        fill(&mut out);
        made.push(out.read().unwrap().iter().map(|v| v.to_bits().into()).collect());
    }
    let doubles: [Fill<f64>; 4] = [
        |out| fill_uniform(STREAM, out).unwrap(),
        |out| fill_normal(STREAM, 1.5, 0.3, out).unwrap(),
        |out| fill_log_normal(STREAM, 0.1, 150.0, out).unwrap(),
        |out| fill_log_normal(STREAM, -3.0, 0.5, out).unwrap(),
    ];
    for fill in doubles {
        let mut out = double();
        fill(&mut out);
        made.push(out.read().unwrap().iter().map(|v| v.to_bits()).collect());
    }
    made
}

#[test]
fn the_generator_gives_the_published_vectors() {
    // Random123, kat_vectors: philox4x32-10.
    let vectors = [
        ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ];
    for (counter, key, want) in vectors {
        assert_eq!(philox(counter, key), want);
        assert_eq!(reference::philox(counter, key), want);
    }
}

#[test]
fn a_stream_is_the_same_bits_on_every_processor() {
    let n = 2051;
    let scalar = all(&Device::cpu_with_level(1, levels()[0]).unwrap(), n);
    for level in levels() {
        assert_eq!(all(&Device::cpu_with_level(2, level).unwrap(), n), scalar, "{level:?}");
    }
    for device in rayspin_emu::devices().unwrap() {
        for (law, (found, want)) in all(&device, n).iter().zip(&scalar).enumerate() {
            let first = found.iter().zip(want).position(|(a, b)| a != b);
            assert_eq!(first, None, "law {law} on {}", device.describe());
        }
    }
}

#[test]
fn a_shorter_array_is_the_beginning_and_streams_differ() {
    let cpu = Device::cpu_with_threads(1).unwrap();
    let make = |n: usize, stream| {
        let mut out = Array::<f64>::zeros(&cpu, &[n]).unwrap();
        fill_normal(stream, 0.0, 1.0, &mut out).unwrap();
        out.to_vec().unwrap()
    };
    let long = make(40_000, STREAM);
    for n in [0, 1, 33, 16_384, 16_385, 39_999] {
        assert_eq!(make(n, STREAM), long[..n]);
    }
    let others = [Stream { seed: STREAM.seed + 1, ..STREAM }, Stream { number: STREAM.number + 1, ..STREAM }];
    for other in others {
        assert!(make(1000, other).iter().zip(&long).all(|(a, b)| a != b));
    }
}

#[test]
fn what_no_law_has_is_refused() {
    let cpu = Device::cpu_with_threads(1).unwrap();
    let mut out = Array::<f32>::zeros(&cpu, &[4]).unwrap();
    for (location, scale) in [(f32::NAN, 1.0), (0.0, f32::INFINITY), (0.0, -1.0)] {
        assert!(fill_normal(STREAM, location, scale, &mut out).is_err());
        assert!(fill_log_normal(STREAM, location, scale, &mut out).is_err());
    }
    let mut out = Array::<u32>::zeros(&cpu, &[4]).unwrap();
    for lambda in [f64::NAN, -1.0, f64::INFINITY, 1.1e6] {
        assert!(fill_poisson(STREAM, lambda, &mut out).is_err());
    }
}

/// Φ(x) by its series Σ x^(2k+1) / (1·3·…·(2k+1)).
fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 7.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Kolmogorov's distance √n sup |F_n − F|: above 2.69 for one sample in a million.
fn kolmogorov(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().map(|(i, &v)| {
        let f = cdf(v);
        (f - i as f64 / n).abs().max((f - (i + 1) as f64 / n).abs())
    });
    distance.fold(0.0, f64::max) * n.sqrt()
}

/// (χ² − d)/√2d of counts against what is expected: beyond ±5.5 for fewer than one in a million where d is
/// large.
fn chi_square(counts: &[u64], expected: &[f64]) -> f64 {
    let chi: f64 = counts.iter().zip(expected).map(|(&c, &e)| (c as f64 - e).powi(2) / e).sum();
    let d = counts.len() as f64 - 1.0;
    (chi - d) / (2.0 * d).sqrt()
}

#[test]
fn bits_and_uniform_numbers_are_even_and_neighbours_independent() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let n = 200_000;
    let mut out = Array::<u32>::zeros(&cpu, &[n]).unwrap();
    fill_bits(STREAM, &mut out).unwrap();
    let words = out.to_vec().unwrap();
    for shift in [0, 8, 16, 24] {
        let mut counts = [0; 256];
        words.iter().for_each(|w| counts[(w >> shift & 255) as usize] += 1);
        let z = chi_square(&counts, &[n as f64 / 256.0; 256]);
        assert!(z.abs() < 5.5, "byte at {shift}: {z}");
    }
    // Pairs of neighbours, 4 bits each.
    let mut counts = [0; 256];
    words.chunks_exact(2).for_each(|w| counts[(w[0] >> 28 << 4 | w[1] >> 28) as usize] += 1);
    assert!(chi_square(&counts, &[n as f64 / 512.0; 256]).abs() < 5.5);
    let mut out = Array::<f32>::zeros(&cpu, &[n]).unwrap();
    fill_uniform(STREAM, &mut out).unwrap();
    let single: Vec<f64> = out.read().unwrap().iter().map(|&v| v.into()).collect();
    let mut out = Array::<f64>::zeros(&cpu, &[n]).unwrap();
    fill_uniform(STREAM, &mut out).unwrap();
    for values in [single, out.to_vec().unwrap()] {
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        for lag in [1, 2, 3, 4, 7, 64, 1024] {
            let sum: f64 = values.windows(lag + 1).map(|w| (w[0] - 0.5) * (w[lag] - 0.5)).sum();
            // A sum of n products of deviation 1/12; one sum in a million lies beyond 4.9 deviations.
            assert!(sum.abs() < 4.9 / 12.0 * (n as f64).sqrt(), "lag {lag}");
        }
        let d = kolmogorov(values, |v| v);
        assert!(d < 2.69, "{d}");
    }
}

/// Mean, variance, skewness and excess within 4.9 of their standard errors, and the distribution.
fn looks_normal(values: Vec<f64>) {
    let n = values.len() as f64;
    let moment = |p: i32| values.iter().map(|v| v.powi(p)).sum::<f64>() / n;
    for (p, want, variance) in
        [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (6, 15.0, 10_170.0)]
    {
        let z = (moment(p) - want) * (n / variance).sqrt();
        assert!(z.abs() < 4.9, "moment {p} is {z} standard errors off");
    }
    for lag in [1, 2, 3] {
        let sum: f64 = values.windows(lag + 1).map(|w| w[0] * w[lag]).sum();
        assert!(sum.abs() < 4.9 * n.sqrt(), "lag {lag}");
    }
    let d = kolmogorov(values, normal_cdf);
    assert!(d < 2.69, "{d}");
}

#[test]
fn normal_numbers_are_normal() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let n = 300_000;
    let mut out = Array::<f32>::zeros(&cpu, &[n]).unwrap();
    fill_normal(STREAM, 0.0, 1.0, &mut out).unwrap();
    looks_normal(out.read().unwrap().iter().map(|&v| v.into()).collect());
    fill_log_normal(STREAM, -1.0, 2.0, &mut out).unwrap();
    looks_normal(out.read().unwrap().iter().map(|&v| (f64::from(v).ln() + 1.0) / 2.0).collect());
    let mut out = Array::<f64>::zeros(&cpu, &[n]).unwrap();
    fill_normal(STREAM, 3.0, 0.5, &mut out).unwrap();
    looks_normal(out.read().unwrap().iter().map(|&v| (v - 3.0) / 0.5).collect());
}

#[test]
fn normal_numbers_far_out_are_as_many_as_they_should_be() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let n = 1 << 23;
    let mut single = Array::<f32>::zeros(&cpu, &[n]).unwrap();
    fill_normal(STREAM, 0.0, 1.0, &mut single).unwrap();
    let single: Vec<f64> = single.read().unwrap().iter().map(|&v| v.into()).collect();
    let mut double = Array::<f64>::zeros(&cpu, &[n]).unwrap();
    fill_normal(STREAM, 0.0, 1.0, &mut double).unwrap();
    for values in [single, double.to_vec().unwrap()] {
        // On either side of where the ziggurat's tail begins, 4.22.
        for (from, deviations) in
            [(3.5, 5.0), (4.0, 5.0), (4.216_370_409_511_897, 5.0), (4.5, 4.5), (4.7, 4.0)]
        {
            let found = values.iter().filter(|v| v.abs() > from).count() as f64;
            let expected = 2.0 * n as f64 * (1.0 - normal_cdf(from));
            assert!((found - expected).abs() < deviations * expected.sqrt(), "{from}: {found} of {expected}");
            let right = values.iter().filter(|&&v| v > from).count() as f64;
            assert!(
                (2.0 * right - found).abs() < 5.0 * found.sqrt(),
                "{from}: {right} of {found} are positive"
            );
        }
    }
}

#[test]
fn a_deviation_of_nothing_leaves_the_mean() {
    for device in rayspin_emu::devices().unwrap().into_iter().chain([Device::cpu_with_threads(1).unwrap()]) {
        let mut single = Array::<f32>::zeros(&device, &[1001]).unwrap();
        fill_normal(STREAM, 2.5, 0.0, &mut single).unwrap();
        assert!(single.to_vec().unwrap().iter().all(|&v| v == 2.5));
        fill_log_normal(STREAM, 2.5, 0.0, &mut single).unwrap();
        assert!(single.to_vec().unwrap().iter().all(|&v| (v / 2.5f32.exp() - 1.0).abs() < 1e-6));
        // On both sides of the least scale that is multiplied into the radius.
        for scale in [0.6e-6f32, 0.8e-6, 1e-3] {
            fill_log_normal(STREAM, -1.5, scale, &mut single).unwrap();
            let far = single.to_vec().unwrap().iter().map(|v| (v.ln() + 1.5).abs()).fold(0.0, f32::max);
            assert!(far < 6.8 * scale + 1e-6, "{scale}: {far}");
        }
        let mut double = Array::<f64>::zeros(&device, &[1001]).unwrap();
        fill_normal(STREAM, 2.5, 0.0, &mut double).unwrap();
        assert!(double.to_vec().unwrap().iter().all(|&v| v == 2.5));
        fill_log_normal(STREAM, 2.5, 0.0, &mut double).unwrap();
        assert!(double.to_vec().unwrap().iter().all(|&v| (v / 2.5f64.exp() - 1.0).abs() < 1e-15));
    }
}

#[test]
fn poisson_numbers_follow_their_law() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let n = 100_000;
    let mut out = Array::<u32>::zeros(&cpu, &[n]).unwrap();
    for lambda in [0.5f64, 4.0, 60.0] {
        fill_poisson(STREAM, lambda, &mut out).unwrap();
        // Classes that expect ten at least; what lies outside counts with the outermost.
        let mut p = (-lambda).exp();
        let mut expected = Vec::new();
        for k in 0..200 {
            expected.push(p * n as f64);
            p *= lambda / f64::from(k + 1);
        }
        let low = expected.iter().position(|&e| e >= 10.0).unwrap();
        let high = expected.iter().rposition(|&e| e >= 10.0).unwrap();
        let mut counts = vec![0; high - low + 1];
        out.read().unwrap().iter().for_each(|&k| counts[(k as usize).clamp(low, high) - low] += 1);
        let mut classes = expected[low..=high].to_vec();
        classes[0] += expected[..low].iter().sum::<f64>();
        classes[high - low] += expected[high + 1..].iter().sum::<f64>();
        // Few classes: χ² is far from normal above, so wider than above.
        let z = chi_square(&counts, &classes);
        assert!(z < 9.0, "{lambda}: {z}");
    }
}
