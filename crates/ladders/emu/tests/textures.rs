//! Textures against their formula in f64, on the emulator and on the GPUs of this machine: all axes, filters,
//! coordinates beyond the edges, kinds of texels.

#![allow(clippy::unwrap_used, reason = "tests")]

mod trusted;

use num_complex::Complex32;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_device::cuda::{
    AddressMode, Argument, Filter, Launch, Sampling, Source, Texel, TexelKind, Texture,
};
use rayspin_device::{Array, Backend, BackendKind, Cuda, Device};
use rayspin_emu::devices;
use trusted::Trusted;

static SOURCE: Source = Source { name: "textures", files: &[("textures.cu", include_str!("textures.cu"))] };

const ADDRESS_MODES: [AddressMode; 4] =
    [AddressMode::Clamp, AddressMode::Border, AddressMode::Wrap, AddressMode::Mirror];

fn cuda(device: &Device) -> &Cuda {
    match device.backend() {
        Backend::Cuda(cuda) => cuda,
        Backend::Cpu(_) => unreachable!("chosen by kind"),
    }
}

fn gpus() -> impl Iterator<Item = Device> {
    devices().unwrap().into_iter().filter(|device| device.kind() == BackendKind::Cuda)
}

/// The texel that stands for index i of n.
fn texel(i: i64, n: usize, outside: AddressMode) -> Option<usize> {
    let n = n as i64;
    let inside = (0..n).contains(&i);
    Some(match outside {
        AddressMode::Clamp => i.clamp(0, n - 1),
        AddressMode::Border => inside.then_some(i)?,
        AddressMode::Wrap => i.rem_euclid(n),
        AddressMode::Mirror => {
            let i = i.rem_euclid(2 * n);
            if i < n { i } else { 2 * n - 1 - i }
        }
    } as usize)
}

/// The value at `x` (x, y, z, in texels) of `[z, y, x]`, z a layer where there are layers.
fn formula(values: &[f64], shape: &[usize], x: &[f64], sampling: Sampling, layered: bool) -> f64 {
    let axes = shape.len();
    let mut sum = 0.0;
    for corner in 0..1usize << axes {
        let (mut weight, mut place) = (1.0, Some(0));
        for (axis, &n) in shape.iter().enumerate() {
            let (d, far) = (axes - 1 - axis, corner >> axis & 1);
            let linear = sampling.filter == Filter::Linear && !(layered && d == 2);
            let (first, part) = match linear {
                true => ((x[d] - 0.5).floor(), (x[d] - 0.5) - (x[d] - 0.5).floor()),
                false => (x[d].floor(), 0.0),
            };
            weight *= if far == 1 { part } else { 1.0 - part };
            place =
                place.and_then(|p| Some(p * n + texel(first as i64 + far as i64, n, sampling.address_mode)?));
        }
        sum += weight * place.map_or(0.0, |p| values[p]);
    }
    sum
}

/// What a kernel reads at these coordinates, `[point][3]`.
fn look<const CHANNELS: usize>(
    device: &Device,
    name: &str,
    texture: &Texture,
    points: &[[f32; 3]],
) -> Vec<[f32; CHANNELS]> {
    let flat: Vec<f32> = points.iter().flatten().copied().collect();
    let at_there = Array::from_slice(device, &[flat.len()], &flat).unwrap();
    let mut out = Array::<f32>::zeros(device, &[points.len() * CHANNELS]).unwrap();
    out.fill(f32::NAN).unwrap();
    let n = points.len();
    let arguments =
        &mut [texture.into(), at_there.cuda().into(), out.cuda_mut().into(), Argument::count(n).unwrap()];
    cuda(device).kernel(&SOURCE, &[], name).unwrap().go(Launch::covering(n, 128), arguments).unwrap();
    out.to_vec().unwrap().as_chunks().0.to_vec()
}

/// Coordinates in texels, within and around, at 1/256 of a texel so that the hardware's weights are exact;
/// for points away from the edges of texels.
fn coordinates(rng: &mut ChaCha8Rng, shape: &[usize], filter: Filter, count: usize) -> Vec<[f64; 3]> {
    (0..count)
        .map(|_| {
            std::array::from_fn(|d| {
                let n = shape.len().checked_sub(1 + d).map_or(1, |axis| shape[axis]) as i64;
                let whole = rng.random_range(-2 * n - 2..3 * n + 2) as f64;
                whole
                    + f64::from(if filter == Filter::Point {
                        rng.random_range(16..240)
                    } else {
                        rng.random_range(0..256)
                    }) / 256.0
            })
        })
        .collect()
}

fn samplings() -> impl Iterator<Item = Sampling> {
    [Filter::Point, Filter::Linear].into_iter().flat_map(|filter| {
        [false, true].into_iter().flat_map(move |normalized| {
            ADDRESS_MODES
                .into_iter()
                .filter(move |outside| {
                    normalized || matches!(outside, AddressMode::Clamp | AddressMode::Border)
                })
                .map(move |outside| Sampling { filter, address_mode: outside, normalized })
        })
    })
}

/// Coordinates as the kernel gets them, and what they are in texels.
fn given(points: &[[f64; 3]], shape: &[usize], sampling: Sampling) -> Vec<([f32; 3], [f64; 3])> {
    let n = |d: usize| shape.len().checked_sub(1 + d).map_or(1, |axis| shape[axis]) as f64;
    let scale = |d: usize| if sampling.normalized { n(d) } else { 1.0 };
    points
        .iter()
        .map(|point| {
            let sent: [f32; 3] = std::array::from_fn(|d| (point[d] / scale(d)) as f32);
            (sent, std::array::from_fn(|d| f64::from(sent[d]) * scale(d)))
        })
        .collect()
}

/// How a texture is read: as it is, or as layers.
#[derive(Clone, Copy)]
struct Taken {
    sampling: Sampling,
    layered: bool,
}

fn check<T: Texel, const CHANNELS: usize>(
    device: &Device,
    shape: &[usize],
    values: &[T],
    wide: &dyn Fn(&T, usize) -> f64,
    Taken { sampling, layered }: Taken,
    rng: &mut ChaCha8Rng,
) {
    let array = Array::from_slice(device, shape, values).unwrap();
    let texture = if layered {
        cuda(device).layered_texture(&array, sampling).unwrap()
    } else {
        cuda(device).texture(&array, sampling).unwrap()
    };
    let mut points = coordinates(rng, shape, sampling.filter, 400);
    if layered {
        // A layer is a whole number; beyond the last, or before the first, it is that one.
        points.iter_mut().for_each(|p| p[2] = rng.random_range(0..shape[0]) as f64);
    }
    let mut sent = given(&points, shape, sampling);
    if layered {
        sent.iter_mut().zip(&points).for_each(|((sent, meant), p)| (sent[2], meant[2]) = (p[2] as f32, p[2]));
    }
    let kernel =
        format!("{}{}", if layered { "layered" } else { ["", "one", "two", "three"][shape.len()] }, CHANNELS);
    let coordinates: Vec<_> = sent.iter().map(|(sent, _)| *sent).collect();
    let texels = look::<CHANNELS>(device, &kernel, &texture, &coordinates);
    // With coordinates in texels the weights follow the formula. Otherwise they are rounded to 1/256 along
    // every axis, from coordinates that were rounded before.
    let exact = !sampling.normalized || sampling.filter == Filter::Point;
    let axes = shape.len() - usize::from(layered);
    // How many bits the hardware keeps of bytes between texels is not documented. Nor is what it makes of
    // weights along several
    // axes: an H100 rounds each texel's product of them to 1/256 (44/256 where it is 43.875/256).
    let between = sampling.filter == Filter::Linear && !device.describe().contains("Emulated");
    let bytes = if between && T::KIND == TexelKind::U8 { 0.25 / 255.0 } else { 0.0 };
    let products = if between && axes > 1 { 0.5 / 256.0 * f64::from(1u32 << axes) } else { 0.0 };
    let weights = if exact { 2e-6 } else { 0.6 / 256.0 * 2.0 * axes as f64 + 1e-5 };
    let bound = weights + bytes + products;
    for channel in 0..CHANNELS {
        let values: Vec<f64> = values.iter().map(|v| wide(v, channel)).collect();
        for ((_, meant), texel) in sent.iter().zip(&texels) {
            let expected = formula(&values, shape, meant, sampling, layered);
            let far = (f64::from(texel[channel]) - expected).abs();
            assert!(
                far <= bound,
                "{}, {shape:?} {sampling:?} at {meant:?}: {} for {expected}",
                device.describe(),
                texel[channel]
            );
        }
    }
}

#[test]
fn every_kind_of_texture_is_that_of_the_formula() {
    for device in gpus() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        for shape in [&[1][..], &[7], &[64], &[1, 1], &[5, 9], &[33, 17], &[1, 1, 1], &[4, 3, 6], &[9, 16, 5]]
        {
            let len = shape.iter().product::<usize>();
            for sampling in samplings() {
                let real: Vec<f32> = (0..len).map(|_| rng.random_range(-1.0..1.0)).collect();
                check::<f32, 1>(
                    &device,
                    shape,
                    &real,
                    &|v, _| f64::from(*v),
                    Taken { sampling, layered: false },
                    &mut rng,
                );
                let pairs: Vec<_> = real.iter().map(|&v| Complex32::new(v, 0.5 - v)).collect();
                let part = |v: &Complex32, c: usize| f64::from([v.re, v.im][c]);
                check::<Complex32, 2>(
                    &device,
                    shape,
                    &pairs,
                    &part,
                    Taken { sampling, layered: false },
                    &mut rng,
                );
                let bytes: Vec<u8> = (0..len).map(|_| rng.random()).collect();
                let share = |v: &u8, _: usize| f64::from(*v) / 255.0;
                check::<u8, 1>(&device, shape, &bytes, &share, Taken { sampling, layered: false }, &mut rng);
                if shape.len() == 3 {
                    check::<f32, 1>(
                        &device,
                        shape,
                        &real,
                        &|v, _| f64::from(*v),
                        Taken { sampling, layered: true },
                        &mut rng,
                    );
                }
            }
        }
    }
}

#[test]
fn weights_have_eight_bits_behind_the_point() {
    for device in gpus() {
        let values: Vec<f32> = vec![0.0, 1.0, 0.0];
        let array = Array::from_slice(&device, &[3], &values).unwrap();
        let texture = cuda(&device).texture(&array, Sampling::LINEAR).unwrap();
        let points: Vec<[f32; 3]> = (0..1000).map(|i| [0.5 + i as f32 / 1000.0, 0.0, 0.0]).collect();
        for ([x, ..], [texel]) in points.iter().zip(look::<1>(&device, "one1", &texture, &points)) {
            let steps = texel * 256.0;
            assert_eq!(steps, steps.round(), "{}, at {x}: {texel}", device.describe());
            assert!((texel - (x - 0.5)).abs() <= 1.01 / 256.0, "{}, at {x}: {texel}", device.describe());
        }
    }
}

#[test]
fn new_values_reach_later_launches_only() {
    for device in gpus() {
        let array = |value: f32| Array::from_slice(&device, &[4, 4], &[value; 16]).unwrap();
        let mut texture = cuda(&device).texture(&array(1.0), Sampling::LINEAR).unwrap();
        let mut texels = Vec::new();
        for value in [2.0, 3.0, 4.0] {
            texels.push(look::<1>(&device, "two1", &texture, &[[2.0, 2.0, 0.0]])[0][0]);
            texture.set(&array(value)).unwrap();
        }
        texels.push(look::<1>(&device, "two1", &texture, &[[2.0, 2.0, 0.0]])[0][0]);
        assert_eq!(texels, [1.0, 2.0, 3.0, 4.0]);
        let wrong = Array::from_slice(&device, &[2, 8], &[0f32; 16]).unwrap();
        assert!(texture.set(&wrong).is_err());
        let bytes = Array::from_slice(&device, &[4, 4], &[0u8; 16]).unwrap();
        assert!(texture.set(&bytes).is_err());
        let elsewhere = Array::from_slice(&device.host(), &[4, 4], &[0f32; 16]).unwrap();
        assert!(texture.set(&elsewhere).is_err());
        let before = cuda(&device).memory_used().0;
        drop(texture);
        assert_eq!(before - cuda(&device).memory_used().0, 64);
    }
}

#[test]
fn what_the_hardware_cannot_hold_or_do_is_refused() {
    for device in gpus() {
        let cuda = cuda(&device);
        let texture = |shape: &[usize], sampling| {
            let made = cuda.texture(&Array::<u8>::zeros(&device, shape).unwrap(), sampling);
            made.err().map_or(String::new(), |error| error.to_string())
        };
        assert_eq!(texture(&[131_072], Sampling::LINEAR), "");
        assert!(texture(&[131_073], Sampling::LINEAR).contains("131072"));
        assert!(texture(&[2, 2, 16_385], Sampling::LINEAR).contains("16384"));
        assert!(texture(&[1, 1, 2, 2], Sampling::LINEAR).contains("one to three axes"));
        assert!(texture(&[3, 0], Sampling::LINEAR).contains("texels"));
        let wrap = Sampling { address_mode: AddressMode::Wrap, ..Sampling::LINEAR };
        assert!(texture(&[4], wrap).contains("normalised"));
        let image = Array::<f32>::zeros(&device, &[4, 4]).unwrap();
        assert!(cuda.layered_texture(&image, Sampling::LINEAR).is_err());
        // A kernel takes a texture for what it declares as one, and nothing else.
        let texture = cuda.texture(&image, Sampling::LINEAR).unwrap();
        let kernel = cuda.kernel(&SOURCE, &[], "two1").unwrap();
        let (point, mut out) =
            (Array::<f32>::zeros(&device, &[3]).unwrap(), Array::<f32>::zeros(&device, &[1]).unwrap());
        let one = Launch::linear(1, 1);
        let refused =
            kernel.go(one, &mut [7u64.into(), point.cuda().into(), out.cuda_mut().into(), 1u32.into()]);
        assert!(refused.unwrap_err().to_string().contains("cudaTextureObject_t"));
        let refused =
            kernel.go(one, &mut [(&texture).into(), (&texture).into(), out.cuda_mut().into(), 1u32.into()]);
        assert!(refused.is_err());
    }
}
