//! Normal numbers of double precision by the ziggurat (Marsaglia and Tsang, "The ziggurat method for
//! generating random variables", 2000). It has more layers than usual: words that a layer leaves open cost
//! most, above all where neighbours wait.
//!
//! N layers of the same area A cover the region under y = e^(−x²/2), x ≥ 0. A layer is the rectangle
//! \[0, xᵢ\] × \[yᵢ, yᵢ₊₁\]. Only the lowest is the rectangle below y₁ and the tail beyond x₁. A word's lower
//! bits are a layer, the word itself a place m on [−1, 1). The number is m · xᵢ if that is within xᵢ₊₁, and
//! else with the probability that it lies under the curve.

use std::sync::LazyLock;

use super::draw::{Exact, From, blocks, wide};

/// N layers.
pub(crate) const LAYERS: usize = 1 << 11;

/// x₁ and A of N layers: the root of y_N = 1, by bisection in 40 digits.
const TAIL: f64 = 4.216_370_409_511_897;
const AREA: f64 = 0.000_612_606_517_624_046_1;

/// The layers as they are asked.
pub(crate) struct Ziggurat {
    /// xᵢ/2⁶³, which makes a number of a word, and xᵢ₊₁: whatever is nearer is under the curve.
    pub(crate) layers: [[f64; 2]; LAYERS],
    /// yᵢ and yᵢ₊₁ − yᵢ; nothing for layer 0.
    pub(crate) sides: [[f64; 2]; LAYERS],
    /// x₀ to x_N.
    pub(crate) edges: Vec<f64>,
}

impl Ziggurat {
    /// By functions that are the same everywhere, because the numbers are to be.
    fn new() -> Self {
        let mut y = f64::density(TAIL);
        let mut x = vec![AREA / y, TAIL];
        let mut sides = [[0.0; 2]; LAYERS];
        for i in 1..LAYERS {
            let height = AREA / x[i];
            sides[i] = [y, height];
            y += height;
            x.push(if i + 1 < LAYERS { (-2.0 * f64::logarithm(y)).sqrt() } else { 0.0 });
        }
        let layers = std::array::from_fn(|i| [x[i] / 9_223_372_036_854_775_808.0, x[i + 1]]);
        Self { layers, sides, edges: x }
    }

    /// The number that a word stands for unless the second is false: then [`Ziggurat::decide`] has to.
    #[inline(always)]
    pub(crate) fn point(&self, word: u64) -> (f64, bool) {
        let [scale, within] = self.layers[word as usize & (LAYERS - 1)];
        let value = word as i64 as f64 * scale;
        (value, value.abs() < within)
    }

    /// The number of a word that leaves it open: of word `slot` of the block `after` after `from`. Attempt a
    /// is decided by block b + (2a + `slot` + 1) · 2⁴⁸ of the stream, which no array reaches.
    #[cold]
    pub(crate) fn decide(&self, from: From, after: usize, slot: usize, mut word: u64) -> f64 {
        let mut block = from.block.wrapping_add(after as u64).wrapping_add((slot as u64 + 1) << 48);
        loop {
            let (value, decided) = self.point(word);
            if decided {
                return value;
            }
            let [a, b, c, d] = blocks::<1>(block, from.stream.number, from.stream.seed).map(|[word]| word);
            let open = |w: u64| ((w >> 12) as i64 as f64 + 0.5) / 4_503_599_627_370_496.0;
            let u = open(wide(a, b));
            let layer = word as usize & (LAYERS - 1);
            if layer == 0 {
                // Marsaglia, 1964: beyond the tail's beginning by an exponential number, if a second one
                // allows.
                let beyond = -f64::logarithm(u) * (1.0 / TAIL);
                if -2.0 * f64::logarithm(open(wide(c, d))) > beyond * beyond {
                    return (TAIL + beyond).copysign(value);
                }
            } else {
                let [low, height] = self.sides[layer];
                if u.mul_add(height, low) < f64::density(value) {
                    return value;
                }
                word = wide(c, d);
            }
            block = block.wrapping_add(2 << 48);
        }
    }
}

/// The layers.
pub(crate) fn layers() -> &'static Ziggurat {
    static LAYERS: LazyLock<Ziggurat> = LazyLock::new(Ziggurat::new);
    &LAYERS
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use rayspin_device::{Array, Backend, Device};

    use super::super::draw::Shape;
    use super::super::{Stream, cuda, fill_log_normal, fill_normal, reference};
    use super::*;

    /// ∫ e^(−x²/2) from `from` on, by Simpson's rule as far as doubles show it.
    fn beyond(from: f64) -> f64 {
        let (n, width) = (20_000, 12.0);
        let h = width / f64::from(n);
        let f = |i: i32| (-0.5 * (from + h * f64::from(i)).powi(2)).exp();
        let inner: f64 = (1..n).map(|i| f64::from(2 + 2 * (i & 1)) * f(i)).sum();
        h / 3.0 * (f(0) + inner + f(n))
    }

    #[test]
    fn layers_have_the_same_area_and_cover_the_curve() {
        let ziggurat = layers();
        let x = &ziggurat.edges;
        assert_eq!((x.len(), x[LAYERS]), (LAYERS + 1, 0.0));
        let density = |x: f64| (-0.5 * x * x).exp();
        let area = x[0] * density(x[1]);
        assert!(((x[1] * density(x[1]) + beyond(x[1])) / area - 1.0).abs() < 1e-9);
        for i in 1..LAYERS {
            let [low, height] = ziggurat.sides[i];
            assert!(x[i] > x[i + 1]);
            assert!((low - density(x[i])).abs() < 1e-12 && (low + height - density(x[i + 1])).abs() < 1e-12);
            assert!((x[i] * height / area - 1.0).abs() < 1e-9, "layer {i}");
        }
        // All of them are little more than half of √2π.
        let excess = LAYERS as f64 * area / (std::f64::consts::PI / 2.0).sqrt();
        assert!((1.0..1.0 + 2.5 / LAYERS as f64).contains(&excess), "{excess}");
    }

    /// Every device's number of a block's word that is left open, against the formulas.
    fn all_devices_decide(stream: Stream, block: u64, slot: usize) {
        let want = reference::normal_f64(&layers().edges, block, slot, stream.number, stream.seed);
        let n = 2 * (block as usize + 1);
        let mut devices = rayspin_emu::devices().unwrap();
        devices.push(Device::cpu_with_threads(1).unwrap());
        for device in devices {
            let mut out = Array::<f64>::zeros(&device, &[n]).unwrap();
            fill_normal(stream, 0.0, 1.0, &mut out).unwrap();
            let found = out.to_vec().unwrap()[2 * block as usize + slot];
            let close = (found - want).abs() <= 1e-15 * want.abs();
            assert!(close, "{found} for {want} of {stream:?} on {}", device.describe());
        }
    }

    #[test]
    fn words_that_are_left_open_are_decided_on_every_device() {
        let edges = &layers().edges;
        // One that is taken where it is, one that is refused, and one of the tail.
        let mut missing = [true; 3];
        for (seed, block, slot) in (0..100_000).flat_map(|i| [(i / 16, i % 16, 0), (i / 16, i % 16, 1)]) {
            let stream = Stream { seed, number: 9 };
            let w = reference::words(block, stream.number, stream.seed);
            let word = wide(w[2 * slot], w[2 * slot + 1]);
            let layer = word as usize % LAYERS;
            let x = edges[layer] * (word as i64 as f64 / 2f64.powi(63));
            if x.abs() < edges[layer + 1] {
                continue;
            }
            let want = reference::normal_f64(edges, block, slot, stream.number, stream.seed);
            let kind = if layer == 0 { 2 } else { usize::from(want != x) };
            if std::mem::take(&mut missing[kind]) {
                all_devices_decide(stream, block, slot);
            }
        }
        assert_eq!(missing, [false; 3]);
    }

    #[test]
    fn a_full_list_is_emptied_and_goes_on() {
        // One block of threads, which leaves more open than its list has room for.
        let stream = Stream { seed: 77, number: 1 };
        let n = 700_001;
        let cpu = Device::cpu_with_threads(2).unwrap();
        let mut want = Array::<f64>::zeros(&cpu, &[n]).unwrap();
        fill_log_normal(stream, 0.1, 0.5, &mut want).unwrap();
        let want = want.to_vec().unwrap();
        for device in rayspin_emu::devices().unwrap() {
            let Backend::Cuda(gpu) = device.backend() else { continue };
            let mut out = Array::<f64>::zeros(&device, &[n]).unwrap();
            out.fill(f64::NAN).unwrap();
            let way = cuda::Way::Fill { threads: 64, blocks: Some(1) };
            cuda::reals(gpu, way, stream, Shape::LogNormal(0.1, 0.5), &mut out).unwrap();
            let found = out.to_vec().unwrap();
            let first = found.iter().zip(&want).position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(first, None, "on {}", device.describe());
        }
    }

    #[test]
    fn long_streams_are_several_launches() {
        let stream = Stream { seed: 5, number: 2 };
        let cpu = Device::cpu_with_threads(1).unwrap();
        // Beyond, at and before the end of a launch, with and without numbers over.
        for n in [1, 255, 256, 257, 258, 259, 512, 1003] {
            let (mut single, mut double) =
                (Array::<f32>::zeros(&cpu, &[n]).unwrap(), Array::<f64>::zeros(&cpu, &[n]).unwrap());
            fill_normal(stream, 0.5, 2.0, &mut single).unwrap();
            fill_normal(stream, 0.5, 2.0, &mut double).unwrap();
            for device in rayspin_emu::devices().unwrap() {
                let Backend::Cuda(gpu) = device.backend() else { continue };
                let way = || cuda::Way::Fill { threads: 32, blocks: Some(2) };
                let mut out = Array::<f32>::zeros(&device, &[n]).unwrap();
                out.fill(f32::NAN).unwrap();
                cuda::spanning(64, gpu, way(), stream, Shape::Normal(0.5, 2.0), &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), single.to_vec().unwrap(), "{n} on {}", device.describe());
                let mut out = Array::<f64>::zeros(&device, &[n]).unwrap();
                out.fill(f64::NAN).unwrap();
                cuda::spanning(64, gpu, way(), stream, Shape::Normal(0.5, 2.0), &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), double.to_vec().unwrap(), "{n} on {}", device.describe());
            }
        }
    }
}
