//! The oracle: the generator from its definition, and the formulas in f64 with the library's functions.

/// Philox4x32-10 as its paper states it: ten rounds of S-boxes and permutations, keys by Weyl sequences.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    for round in 0..10u32 {
        let k = [
            key[0].wrapping_add(round.wrapping_mul(0x9E37_79B9)),
            key[1].wrapping_add(round.wrapping_mul(0xBB67_AE85)),
        ];
        let (p, q) = (u128::from(c[0]) * 0xD251_1F53, u128::from(c[2]) * 0xCD9E_8D57);
        let halves = |p: u128| ((p >> 32) as u32, (p & 0xffff_ffff) as u32);
        let ((high0, low0), (high2, low2)) = (halves(p), halves(q));
        c = [high2 ^ c[1] ^ k[0], low2, high0 ^ c[3] ^ k[1], low0];
    }
    c
}

/// Word pairs of block `block` of a stream.
pub fn words(block: u64, stream: u64, seed: u64) -> [u32; 4] {
    let parts = |v: u64| [v as u32, (v >> 32) as u32];
    let ([a, b], [c, d]) = (parts(block), parts(stream));
    philox([a, b, c, d], parts(seed))
}

/// Two normal numbers from u in (0, 1] and v in turns, by Box and Muller.
pub fn normals(u: f64, v: f64) -> [f64; 2] {
    let r = (-2.0 * u.ln()).sqrt();
    let angle = std::f64::consts::TAU * v;
    [r * angle.cos(), r * angle.sin()]
}

/// The two normal numbers of words 0 and 1, or of 2 and 3, in single precision: 31 bits of the radius, and a
/// half turn by the second word after the first one's uppermost bit.
pub fn normals_f32(w0: u32, w1: u32) -> [f64; 2] {
    // As rounded numbers, which is what u is of.
    let u = f64::from((w0 << 1 | 1) as f32) / 2f64.powi(32);
    let turns = f64::from(w1 as i32) / 2f64.powi(33);
    let [x, y] = normals(u, turns);
    [if w0 >> 31 == 1 { -x } else { x }, y]
}

/// The normal number of a block's first or second 64-bit word by the ziggurat, with the exponential and the
/// logarithm of the library. `edges` are x₀ to x_N of its layers. Every layer has the area of the lowest: x₀
/// e^(−x₁²/2).
///
/// The number of a word w is x_(w mod N) · w / 2⁶³, w as a signed integer. Attempt a at slot s of block b
/// takes its spare words from block b + (2a + s + 1) · 2⁴⁸. One of them replaces a word that is refused.
pub fn normal_f64(edges: &[f64], block: u64, slot: usize, stream: u64, seed: u64) -> f64 {
    let wide = |w: [u32; 4], half: usize| u64::from(w[2 * half + 1]) << 32 | u64::from(w[2 * half]);
    let density = |x: f64| (-0.5 * x * x).exp();
    let area = edges[0] * density(edges[1]);
    let layers = edges.len() as u64 - 1;
    let mut word = wide(words(block, stream, seed), slot);
    let mut next = block + ((slot as u64 + 1) << 48);
    loop {
        let layer = (word % layers) as usize;
        let x = edges[layer] * (word as i64 as f64 / 2f64.powi(63));
        if x.abs() < edges[layer + 1] {
            return x;
        }
        let spare = words(next, stream, seed);
        next = next.wrapping_add(2 << 48);
        let open = |i: usize| ((wide(spare, i) >> 12) as f64 + 0.5) / 2f64.powi(52);
        if layer == 0 {
            let beyond = -open(0).ln() / edges[1];
            if -2.0 * open(1).ln() > beyond * beyond {
                return (edges[1] + beyond).copysign(x);
            }
        } else {
            // Between the densities at both edges, the outer one being the smaller.
            if density(edges[layer]) + open(0) * area / edges[layer] < density(x) {
                return x;
            }
            word = wide(spare, 1);
        }
    }
}
