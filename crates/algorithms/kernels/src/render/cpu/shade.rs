//! What vectors of rays do with their samples.

use rayspin_device::cpu::simd::Simd;
use rayspin_device::cpu::simd::prelude::*;

use super::DARK;

/// A vector of samples.
#[derive(Clone, Copy)]
pub(super) struct Sample<S: Simd> {
    pub(super) value: S::f32s,
    /// The part of the cell that each ray is in.
    pub(super) part: S::f32s,
    /// Length in a cell, mm.
    pub(super) step: S::f32s,
    pub(super) cell: f32,
}

/// What a vector of rays does with its samples.
pub(super) trait Shade: Copy + Sync {
    /// What a ray starts with.
    const START: [f32; 4];

    /// Takes a sample. Rays that are not in the cell have no part in it.
    fn add<S: Simd>(self, simd: S, state: &mut [S::f32s; 4], sample: Sample<S>);

    /// Whether no sample changes the rays any more whose blocks have numbers up to `key`.
    fn is_done<S: Simd>(self, simd: S, state: &[S::f32s; 4], key: f32) -> bool;
}

#[inline(always)]
pub(super) fn any<S: Simd>(mask: S::mask32s) -> bool {
    mask.to_bitmask() != 0
}

#[derive(Clone, Copy)]
pub(super) struct Sum;

impl Shade for Sum {
    const START: [f32; 4] = [0.0; 4];

    #[inline(always)]
    fn add<S: Simd>(self, _: S, state: &mut [S::f32s; 4], sample: Sample<S>) {
        state[0] = sample.value.mul_add(sample.part, state[0]);
    }

    #[inline(always)]
    fn is_done<S: Simd>(self, _: S, _: &[S::f32s; 4], _: f32) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
pub(super) struct Largest;

impl Shade for Largest {
    const START: [f32; 4] = [f32::NEG_INFINITY, 0.0, 0.0, 0.0];

    #[inline(always)]
    fn add<S: Simd>(self, simd: S, state: &mut [S::f32s; 4], sample: Sample<S>) {
        let zero = S::f32s::splat(simd, 0.0);
        state[0] = sample.part.simd_gt(zero).select(state[0].max(sample.value), state[0]);
    }

    #[inline(always)]
    fn is_done<S: Simd>(self, simd: S, state: &[S::f32s; 4], key: f32) -> bool {
        !any::<S>(state[0].simd_lt(S::f32s::splat(simd, key)))
    }
}

/// Emission and absorption: red, green, blue and the light that is left.
#[derive(Clone, Copy)]
pub(super) struct Glow<'a> {
    pub(super) base: [f32; 4],
    pub(super) ramps: &'a [[f32; 6]],
}

/// e^−x for x ≥ 0, to 2e-7: 2ⁿ 2ᶠ with a polynomial in f from −½ to ½.
#[inline(always)]
fn decay<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let turns = (x * S::f32s::splat(simd, -std::f32::consts::LOG2_E)).max(S::f32s::splat(simd, -126.0));
    let whole = turns.round_ties_even();
    let f = turns - whole;
    let mut sum = S::f32s::splat(simd, 1.540_353e-4);
    for coefficient in [1.333_355_8e-3, 9.618_129e-3, 5.550_411e-2, 0.240_226_5, std::f32::consts::LN_2, 1.0]
    {
        sum = sum.mul_add(f, S::f32s::splat(simd, coefficient));
    }
    let exponent: S::i32s = whole.to_int();
    let power: S::i32s = (exponent + S::i32s::splat(simd, 127)) << 23;
    sum * power.bitcast::<S::f32s>()
}

impl Shade for Glow<'_> {
    const START: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

    #[inline(always)]
    fn add<S: Simd>(self, simd: S, state: &mut [S::f32s; 4], sample: Sample<S>) {
        let zero = S::f32s::splat(simd, 0.0);
        let mut opacity = S::f32s::splat(simd, self.base[3]);
        for [from, width, _, _, _, slope] in self.ramps {
            let rise = (sample.value - *from).max(zero).min(S::f32s::splat(simd, *width));
            opacity = rise.mul_add(S::f32s::splat(simd, *slope), opacity);
        }
        if !any::<S>(opacity.simd_gt(zero)) {
            return;
        }
        let through = decay(simd, opacity.max(zero) * sample.part * sample.step);
        let weight = state[3] - state[3] * through;
        let mut colour = [
            S::f32s::splat(simd, self.base[0]),
            S::f32s::splat(simd, self.base[1]),
            S::f32s::splat(simd, self.base[2]),
        ];
        for [from, width, slopes @ ..] in self.ramps {
            let rise = (sample.value - *from).max(zero).min(S::f32s::splat(simd, *width));
            for (colour, slope) in colour.iter_mut().zip(slopes) {
                *colour = rise.mul_add(S::f32s::splat(simd, *slope), *colour);
            }
        }
        for (light, colour) in state.iter_mut().zip(colour) {
            *light = weight.mul_add(colour, *light);
        }
        state[3] -= weight;
    }

    #[inline(always)]
    fn is_done<S: Simd>(self, simd: S, state: &[S::f32s; 4], _: f32) -> bool {
        !any::<S>(state[3].simd_ge(S::f32s::splat(simd, DARK)))
    }
}

/// The first cell in which a value is reached, or −1.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub(super) value: f32,
}

impl Shade for First {
    const START: [f32; 4] = [-1.0, 0.0, 0.0, 0.0];

    #[inline(always)]
    fn add<S: Simd>(self, simd: S, state: &mut [S::f32s; 4], sample: Sample<S>) {
        let zero = S::f32s::splat(simd, 0.0);
        let reached = sample.value.simd_ge(S::f32s::splat(simd, self.value)) & sample.part.simd_gt(zero);
        let hit = reached & state[0].simd_lt(zero);
        state[0] = hit.select(S::f32s::splat(simd, sample.cell), state[0]);
    }

    #[inline(always)]
    fn is_done<S: Simd>(self, simd: S, state: &[S::f32s; 4], _: f32) -> bool {
        !any::<S>(state[0].simd_lt(S::f32s::splat(simd, 0.0)))
    }
}
