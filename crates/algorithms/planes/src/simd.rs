//! Instructions that the SIMD library has no name for.
#![allow(unsafe_code)]
#![cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]

use fearless_simd::{f32x16, i32x16, u16x16, u16x32};
use rayspin_device::cpu::simd::Simd;
use rayspin_device::cpu::simd::prelude::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    fearless_simd::kernel!(
        #[inline(always)]
        pub(super) fn upper_512(token: Avx512, a: __m512i, by: u16) -> __m512i {
            _mm512_mulhi_epu16(a, _mm512_set1_epi16(by.cast_signed()))
        }
    );
    fearless_simd::kernel!(
        #[inline(always)]
        pub(super) fn upper_256(token: Avx2, a: __m256i, by: u16) -> __m256i {
            _mm256_mulhi_epu16(a, _mm256_set1_epi16(by.cast_signed()))
        }
    );
    fearless_simd::kernel!(
        #[inline(always)]
        pub(super) fn stream_512(token: Avx512, a: __m512, out: &mut [f32; 16]) {
            let to = out.as_mut_ptr();
            assert!(to.cast::<__m512>().is_aligned());
            // SAFETY: 64 bytes that are borrowed and begin on a multiple of 64; `fence` comes before they are
            // handed on.
            unsafe { _mm512_stream_ps(to, a) }
        }
    );
    fearless_simd::kernel!(
        #[inline(always)]
        pub(super) fn fence_512(token: Avx512) {
            _mm_sfence();
        }
    );
    fearless_simd::kernel!(
        #[inline(always)]
        pub(super) fn pick_512(token: Avx512, a: __m512, b: __m512, index: __m512i) -> __m512 {
            _mm512_permutex2var_ps(a, index, b)
        }
    );
}

/// The upper halves of products.
#[inline(always)]
pub(crate) fn upper<S: Simd>(simd: S, a: u16x32<S>, by: u16) -> u16x32<S> {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(token) = simd.level().as_avx512() {
            return x86::upper_512(token, a.into(), by).simd_into(simd);
        }
        if let Some(token) = simd.level().as_avx2() {
            let (low, high) = a.split();
            let low: u16x16<S> = x86::upper_256(token, low.into(), by).simd_into(simd);
            let high: u16x16<S> = x86::upper_256(token, high.into(), by).simd_into(simd);
            return low.combine(high);
        }
    }
    let (low, high) = a.widening_mul(by);
    (low >> 16).relaxed_narrow(high >> 16)
}

/// Sixteen of the 32 numbers of two vectors, where the processor has an instruction for it.
#[inline(always)]
pub(crate) fn pick<S: Simd>(simd: S, a: f32x16<S>, b: f32x16<S>, index: i32x16<S>) -> Option<f32x16<S>> {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = simd.level().as_avx512() {
        return Some(x86::pick_512(token, a.into(), b.into(), index.into()).simd_into(simd));
    }
    None
}

/// Bytes of an output beyond which it is stored past the caches, which would not hold it: memory is then not
/// read before it is written.
pub(crate) const PAST_CACHES: usize = 32 << 20;

/// Elements up to the first that [`stream`] may begin with.
pub(crate) fn to_line<T>(out: &[T]) -> usize {
    out.as_ptr().align_offset(64).min(out.len())
}

/// Stores 64 numbers past the caches, `out` from a multiple of 64 bytes on; [`fence`] ends such stores.
#[inline(always)]
pub(crate) fn stream<S: Simd>(simd: S, values: [f32x16<S>; 4], out: &mut [f32]) {
    let (parts, _) = out.as_chunks_mut::<16>();
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = simd.level().as_avx512() {
        for i in 0..4 {
            x86::stream_512(token, values[i].into(), &mut parts[i]);
        }
        return;
    }
    for i in 0..4 {
        values[i].store_slice(&mut parts[i]);
    }
}

/// Orders earlier stores past the caches before all later stores. A thread that sees a later store sees them,
/// too.
#[inline(always)]
pub(crate) fn fence<S: Simd>(simd: S) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = simd.level().as_avx512() {
        x86::fence_512(token);
    }
}
