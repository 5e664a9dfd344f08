//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) and what
//! is made of its words, for W blocks side by side. Every operation is rounded as written, so that a GPU's
//! numbers are the same bits: the functions of `cuda/philox.cuh`, `cuda/reals.cu` and `cuda/ziggurat.cu`,
//! line by line.

use rayspin_core::Real;

use super::Stream;
use super::poisson::Table;
use super::ziggurat;

/// Words of W blocks: word i of block l is `[i][l]`.
pub type Words<const W: usize> = [[u32; W]; 4];

/// The four words of one counter under a key. Inlined, so that a loop over counters becomes vector
/// instructions.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let a = 0xD251_1F53u64 * u64::from(c0);
        let b = 0xCD9E_8D57u64 * u64::from(c2);
        c0 = (b >> 32) as u32 ^ c1 ^ k0;
        c2 = (a >> 32) as u32 ^ c3 ^ k1;
        c1 = b as u32;
        c3 = a as u32;
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [c0, c1, c2, c3]
}

/// W blocks from `block` on of a stream.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "lanes, of several arrays at once")]
pub(crate) fn blocks<const W: usize>(block: u64, stream: u64, seed: u64) -> Words<W> {
    let (stream, key) = ([stream as u32, (stream >> 32) as u32], [seed as u32, (seed >> 32) as u32]);
    let mut made = [[0; W]; 4];
    // All rounds of a block in one turn of the loop: the compiler makes vectors of its turns. The other way
    // round it would keep the words of all blocks in registers, which there are too few of.
    for l in 0..W {
        let counter = block.wrapping_add(l as u64);
        let block = philox([counter as u32, (counter >> 32) as u32, stream[0], stream[1]], key);
        for i in 0..4 {
            made[i][l] = block[i];
        }
    }
    made
}

/// Blocks of a stream, from one of them on.
#[derive(Debug, Clone, Copy)]
pub struct From {
    /// The stream.
    pub stream: Stream,
    /// The first block.
    pub block: u64,
}

/// A distribution: how words become numbers.
pub trait Draw: Sync {
    /// A number.
    type Out: Copy + Default + Send + Sync;
    /// Numbers of a block.
    const EACH: usize;
    /// `EACH` numbers of each of the W blocks whose words these are, in order.
    fn draw<const W: usize>(&self, from: From, words: &Words<W>, out: &mut [Self::Out]);
}

/// The words.
#[derive(Debug, Clone, Copy)]
pub struct Bits;

impl Draw for Bits {
    type Out = u32;
    const EACH: usize = 4;
    #[inline(always)]
    fn draw<const W: usize>(&self, _: From, words: &Words<W>, out: &mut [u32]) {
        interleave(words, out);
    }
}

#[inline(always)]
fn interleave<T: Copy, const N: usize, const W: usize>(values: &[[T; W]; N], out: &mut [T]) {
    for (l, out) in out.chunks_exact_mut(N).enumerate().take(W) {
        for i in 0..N {
            out[i] = values[i][l];
        }
    }
}

/// Block b + 2⁶³, which no array reaches, holds the lower halves of the 64-bit numbers whose upper halves are
/// block b.
pub(crate) const LOWER: u64 = 1 << 63;

/// Poisson numbers: word for word, and a word of another block where 32 bits leave it open.
impl Draw for Table {
    type Out = u32;
    const EACH: usize = 4;
    #[inline(always)]
    fn draw<const W: usize>(&self, from: From, words: &Words<W>, out: &mut [u32]) {
        for (l, out) in out.chunks_exact_mut(4).enumerate().take(W) {
            for (i, out) in out.iter_mut().enumerate() {
                let word = words[i][l];
                *out = match self.number(word) {
                    Some(number) => number,
                    None => self.undecided(from, l, i, word),
                };
            }
        }
    }
}

impl Table {
    #[cold]
    fn undecided(&self, from: From, after: usize, i: usize, word: u32) -> u32 {
        let block = (from.block + after as u64) | LOWER;
        let lower = blocks::<1>(block, from.stream.number, from.stream.seed)[i][0];
        self.number_of(wide(lower, word))
    }
}

#[inline(always)]
pub(crate) fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Σ c_j x^j by Horner's rule, the highest first.
macro_rules! horner {
    ($x:expr, $first:expr $(, $next:expr)*) => {{
        let p = $first;
        $(let p = p.mul_add($x, $next);)*
        p
    }};
}

/// What a normal number becomes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape<T> {
    /// Uniform on [0, 1), from bits alone.
    Uniform,
    /// location + scale · z.
    Normal(T, T),
    /// e^(location + scale · z).
    LogNormal(T, T),
}

impl<T: Real> Shape<T> {
    /// The same of the nearest single parameters.
    pub(crate) fn to_single(self) -> Shape<f32> {
        let single = |v: T| nearest(v.to_f64());
        match self {
            Shape::Uniform => Shape::Uniform,
            Shape::Normal(location, scale) => Shape::Normal(single(location), single(scale)),
            Shape::LogNormal(location, scale) => Shape::LogNormal(single(location), single(scale)),
        }
    }
}

#[inline(always)]
fn each<T: Copy, const N: usize, const W: usize>(values: &mut [[T; W]; N], f: impl Fn(T) -> T) {
    for row in values {
        for value in row {
            *value = f(*value);
        }
    }
}

/// Single numbers: a shape, and the polynomials that its parameters are multiplied into.
#[derive(Debug, Clone, Copy)]
pub struct Singles {
    shape: Shape<f32>,
    /// −2 ln(1 + f) s² / f, the highest power first, what an exponent adds of that, and a little more than 0.
    /// s is [`SPREAD`], times the scale where `narrow`.
    radius: [f32; 7],
    exponent: f32,
    least: f32,
    /// 2^f times what the rounded location leaves, the highest power first.
    power: [f32; 6],
    /// The rounded location, where adding it leaves no room for fractions.
    shift: f32,
    /// Whether this is a log-normal law whose powers of 2 all stay within the normal numbers.
    narrow: bool,
    location: f32,
    scale: f32,
}

impl Singles {
    pub(crate) fn new(shape: Shape<f32>) -> Self {
        let (location, scale, narrow) = match shape {
            Shape::Uniform => (0.0, 0.0, false),
            Shape::Normal(location, scale) => (location.into(), scale.into(), false),
            Shape::LogNormal(location, scale) => {
                let (location, scale) = base_two(location, scale);
                // Nor may squares of the scale.
                let narrow = scale > 1e-6 && location.abs() + FARTHEST_F32 * scale < 125.0;
                (location, scale, narrow)
            }
        };
        let (whole, spread) = if narrow { (location.round(), scale * SPREAD) } else { (0.0, SPREAD) };
        let part = if narrow { f64::power_of_two(location - whole) } else { 1.0 };
        let squared = spread * spread;
        Self {
            shape,
            radius: RADIUS.map(|c| (c * squared) as f32),
            exponent: (-1.6525917e-7 * squared) as f32,
            least: (1e-14 * squared) as f32,
            power: POWERS_F32.map(|c| (f64::from(c) * part) as f32),
            shift: (12_582_912.0 + whole) as f32,
            narrow,
            location: nearest(location),
            scale: nearest(scale),
        }
    }

    /// What a program is compiled for.
    pub(crate) fn kind(&self) -> u32 {
        match self.shape {
            Shape::Uniform => 0,
            Shape::Normal(..) => 1,
            Shape::LogNormal(..) => 2 + u32::from(self.narrow),
        }
    }

    /// As a kernel takes them.
    pub(crate) fn packed(&self) -> [[f32; 4]; 5] {
        let ([r0, r1, r2, r3, r4, r5, r6], [p0, p1, p2, p3, p4, p5]) = (self.radius, self.power);
        [
            [r0, r1, r2, r3],
            [r4, r5, r6, self.exponent],
            [self.least, self.shift, p0, p1],
            [p2, p3, p4, p5],
            [self.location, self.scale, 0.0, 0.0],
        ]
    }

    /// Box and Muller's √(−2 ln u) (cos, sin)(2π v) as products of two, the radius times [`SPREAD`] and a
    /// cosine or sine over that. 31 bits of the first word are u and one says in which half of the circle the
    /// second one's angle is: a half turn, whose sine and cosine need no octants.
    #[inline(always)]
    #[allow(clippy::excessive_precision, reason = "as in the kernel")]
    fn polar(&self, w0: u32, w1: u32) -> [(f32, f32); 2] {
        let r = self.radius_squared((w0 << 1 | 1) as f32).sqrt();
        // Such a multiple of the angle that both polynomials begin with 1.
        let t = w1 as i32 as f32 * 8.219707553491773e-11;
        let z = t * t;
        let s =
            (((z + -0.96132326f32).mul_add(z, 0.5107131)).mul_add(z, -0.12898985)).mul_add(z, 0.0097732665);
        let c =
            (((z + -0.75556856f32).mul_add(z, 0.28694412)).mul_add(z, -0.04348531)).mul_add(z, 0.0010982623);
        [(f32::from_bits(r.to_bits() ^ (w0 & 0x8000_0000)), c), (r, s * t)]
    }

    /// −2 ln(u / 2³²) s² for u to 2³², and not quite 0 at 2³², where a kernel's root could not be taken.
    #[inline(always)]
    fn radius_squared(&self, u: f32) -> f32 {
        let i = u.to_bits().wrapping_sub(0x4f35_04f3);
        let e = i & 0xff80_0000;
        let f = f32::from_bits(u.to_bits().wrapping_sub(e).wrapping_sub(0x1000_0000)) - 1.0;
        let [c0, c1, c2, c3, c4, c5, c6] = self.radius;
        let p = horner!(f, c0, c1, c2, c3, c4, c5, c6);
        (e as i32 as f32).mul_add(self.exponent, p.mul_add(f, self.least))
    }

    /// 2^(location + scale · z) where the product of two is scale · z.
    #[inline(always)]
    fn power(&self, r: f32, q: f32) -> f32 {
        let m = r.mul_add(q, self.shift);
        let f = r.mul_add(q, self.shift - m);
        let [p0, p1, p2, p3, p4, p5] = self.power;
        let p = horner!(f, p0, p1, p2, p3, p4, p5);
        f32::from_bits(p.to_bits().wrapping_add(m.to_bits() << 23))
    }

    /// `make` of both numbers of each pair of words.
    #[inline(always)]
    fn pairs<const W: usize>(&self, words: &Words<W>, make: impl Fn((f32, f32)) -> f32) -> [[f32; W]; 4] {
        let mut values = [[0.0; W]; 4];
        for pair in [0, 2] {
            for l in 0..W {
                let [a, b] = self.polar(words[pair][l], words[pair + 1][l]);
                values[pair][l] = make(a);
                values[pair + 1][l] = make(b);
            }
        }
        values
    }
}

impl Draw for Singles {
    type Out = f32;
    const EACH: usize = 4;
    #[inline(always)]
    fn draw<const W: usize>(&self, _: From, words: &Words<W>, out: &mut [f32]) {
        let law = *self;
        let value = |(r, q): (f32, f32)| law.scale.mul_add(r * q, law.location);
        let values = match (law.shape, law.narrow) {
            (Shape::Uniform, _) => words.map(|row| row.map(|w| (w >> 8) as f32 / (1 << 24) as f32)),
            (Shape::Normal(..), _) => law.pairs(words, value),
            (Shape::LogNormal(..), false) => law.pairs(words, |pair| power_of_two(value(pair))),
            (Shape::LogNormal(..), true) => law.pairs(words, |(r, q)| law.power(r, q)),
        };
        interleave(&values, out);
    }
}

/// One normal number a word, from the layers of the ziggurat.
#[inline(always)]
fn normals_f64<const W: usize>(from: From, words: &[[u64; W]; 2]) -> [[f64; W]; 2] {
    let layers = ziggurat::layers();
    let mut values = [[0.0; W]; 2];
    let mut all_decided = true;
    for (values, words) in values.iter_mut().zip(words) {
        for (value, &word) in values.iter_mut().zip(words) {
            let (point, decided) = layers.point(word);
            *value = point;
            all_decided &= decided;
        }
    }
    if !all_decided {
        for (slot, (values, words)) in values.iter_mut().zip(words).enumerate() {
            for (after, (value, &word)) in values.iter_mut().zip(words).enumerate() {
                if !layers.point(word).1 {
                    *value = layers.decide(from, after, slot, word);
                }
            }
        }
    }
    values
}

impl Draw for Shape<f64> {
    type Out = f64;
    const EACH: usize = 2;
    #[inline(always)]
    fn draw<const W: usize>(&self, from: From, words: &Words<W>, out: &mut [f64]) {
        let mut wides = [[0; W]; 2];
        for (i, row) in wides.iter_mut().enumerate() {
            for (l, word) in row.iter_mut().enumerate() {
                *word = wide(words[2 * i][l], words[2 * i + 1][l]);
            }
        }
        let values = match *self {
            Shape::Uniform => wides.map(|row| row.map(|w| (w >> 11) as i64 as f64 / (1u64 << 53) as f64)),
            Shape::Normal(location, scale) => {
                let mut values = normals_f64(from, &wides);
                each(&mut values, |z| scale.mul_add(z, location));
                values
            }
            Shape::LogNormal(location, scale) => {
                let (location, scale) = base_two(location, scale);
                let mut values = normals_f64(from, &wides);
                each(&mut values, |z| f64::power_of_two(scale.mul_add(z, location)));
                values
            }
        };
        interleave(&values, out);
    }
}

/// −2 ln(1 + f)/f for f from √½ − 1 to √2 − 1, the highest power first: 4.4 · 10⁻⁷ of −2 ln(1 + f).
const RADIUS: [f64; 7] = [
    -0.23654964943509374,
    0.3780395981348016,
    -0.4120934483188343,
    0.497626789369218,
    -0.6660659668389665,
    1.0000393028336967,
    -2.000006495356198,
];

/// 2^f on [−1/2, 1/2], the highest power first: 8 · 10⁻⁸ of it.
#[allow(clippy::excessive_precision, reason = "as in the kernel")]
const POWERS_F32: [f32; 6] = [
    1.327647129073739e-3,
    9.675540961325169e-3,
    5.550713092088699e-2,
    2.4022120237350464e-1,
    6.931469440460205e-1,
    1.0000001192092896,
];

/// What a cosine is of the polynomial that begins with 1.
const SPREAD: f64 = 910.5292913990485;

/// Functions whose bits are the same on every processor.
pub(crate) trait Exact: Sized {
    /// ln u for normal u > 0.
    fn logarithm(u: Self) -> Self;
    /// 2^x.
    fn power_of_two(x: Self) -> Self;
    /// e^(−x²/2).
    fn density(x: Self) -> Self;
}

/// 2^(location + scale · z) = e^(…) of location/ln 2 and scale/ln 2: what log-normal numbers are made with.
pub(crate) fn base_two<T: Real>(location: T, scale: T) -> (f64, f64) {
    let log2 = |v: T| (v.to_f64() * std::f64::consts::LOG2_E).clamp(f64::MIN, f64::MAX);
    (log2(location), log2(scale))
}

/// The nearest finite number.
pub(crate) fn nearest<T: Real>(v: f64) -> T {
    let [least, most] = [T::min_value(), T::max_value()].map(Real::to_f64);
    Real::from_f64(v.clamp(least, most))
}

/// The largest |z|, rounded up: √(2 · 32 ln 2) for single numbers; for double ones where the tail begins, and
/// 53 ln 2 over that.
pub(crate) const FARTHEST_F32: f64 = 6.8;
pub(crate) const FARTHEST_F64: f64 = 13.0;

/// 2^x.
#[inline(always)]
fn power_of_two(x: f32) -> f32 {
    let x = x.clamp(-160.0, 130.0);
    let n = (x + 12_582_912.0) - 12_582_912.0;
    let [p0, p1, p2, p3, p4, p5] = POWERS_F32;
    let y = horner!(x - n, p0, p1, p2, p3, p4, p5);
    let whole = n as i32;
    let half = whole >> 1;
    y * f32::from_bits(((half + 127) << 23) as u32) * f32::from_bits(((whole - half + 127) << 23) as u32)
}

// The logarithm is Sun's fdlibm's. Polynomials of powers of 2 are the least in the largest error, made for
// this.
impl Exact for f64 {
    #[inline(always)]
    #[allow(clippy::excessive_precision, reason = "as published")]
    fn logarithm(u: f64) -> f64 {
        let i = u.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd) as i64;
        let e = f64::from((i >> 52) as i32);
        let f = f64::from_bits(((i & 0xf_ffff_ffff_ffff) + 0x3fe6_a09e_667f_3bcd) as u64) - 1.0;
        let s = f / (2.0 + f);
        let z = s * s;
        let half = 0.5 * (f * f);
        let p = horner!(
            z,
            1.479819860511658591e-1f64,
            1.531383769920937332e-1,
            1.818357216161805012e-1,
            2.222219843214978396e-1,
            2.857142874366239149e-1,
            3.999999999940941908e-1,
            6.666666666666735130e-1
        );
        let low = s.mul_add(p.mul_add(z, half), e * 1.90821492927058770002e-10);
        e.mul_add(6.93147180369123816490e-1, f + (low + -half))
    }

    #[inline(always)]
    fn power_of_two(x: f64) -> f64 {
        let x = x.clamp(-1100.0, 1030.0);
        let n = (x + 6_755_399_441_055_744.0) - 6_755_399_441_055_744.0;
        let f = x - n;
        let y = POWERS.into_iter().reduce(|p, c| p.mul_add(f, c)).unwrap_or_default();
        let whole = n as i32;
        let half = whole >> 1;
        y * f64::from_bits((i64::from(half + 1023) << 52) as u64)
            * f64::from_bits((i64::from(whole - half + 1023) << 52) as u64)
    }

    #[inline(always)]
    fn density(x: f64) -> f64 {
        f64::power_of_two(x * x * -0.721_347_520_444_481_7)
    }
}

/// 2^f on [−1/2, 1/2], the highest power first: 2.8 · 10⁻¹⁶ of it, at most, before rounding.
#[allow(clippy::excessive_precision, reason = "as in the kernel")]
const POWERS: [f64; 11] = [
    7.037278846726901e-09,
    1.0208537929657404e-07,
    1.3215662835959238e-06,
    1.5252658116409854e-05,
    0.00015403529961127076,
    0.0013333558228561767,
    0.009618129108034596,
    0.05550410866445883,
    0.24022650695908768,
    0.6931471805599497,
    1.0,
];
