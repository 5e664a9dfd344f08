use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::reference::{P, Q};
use super::{Search, WORDS, reference};

/// Keys side by side: two vectors of AVX-512, so that one is computed while the other waits.
const WIDTH: usize = 32;
/// Keys of a task.
const TASK: usize = 1 << 15;

/// Stores candidates as kernels do: their number first.
fn store(candidates: impl Iterator<Item = u32>, list: &mut [u32]) {
    list[0] = 0;
    for candidate in candidates {
        list[0] += 1;
        if let Some(to) = list.get_mut(list[0] as usize) {
            *to = candidate;
        }
    }
}

/// A key at a time, as the definition has it.
pub(super) fn scalar(search: &Search, list: &mut [u32]) {
    store((0..search.keys as u32).filter(|&key| reference::is_candidate(search, key)), list);
}

pub(super) fn simd(level: Level, search: &Search, list: &mut [u32]) {
    let mut candidates = Vec::new();
    part(level, search, 0..search.keys as u32, &mut candidates);
    store(candidates.into_iter(), list);
}

pub(super) fn threads(cpu: &Cpu, search: &Search, list: &mut [u32]) {
    let level = cpu.level();
    let task = |task: usize| {
        let mut candidates = Vec::new();
        let end = ((task + 1) * TASK).min(search.keys);
        part(level, search, (task * TASK) as u32..end as u32, &mut candidates);
        candidates
    };
    let candidates: Vec<_> = cpu.run(|| (0..search.keys.div_ceil(TASK)).into_par_iter().map(task).collect());
    store(candidates.into_iter().flatten(), list);
}

fn part(level: Level, search: &Search, keys: std::ops::Range<u32>, candidates: &mut Vec<u32>) {
    dispatch!(level, simd => part_of(simd, search, keys.clone(), candidates));
}

/// Plain loops over arrays of fixed length, which the compiler makes vectors of.
#[inline(always)]
fn part_of<S: Simd>(_: S, search: &Search, keys: std::ops::Range<u32>, candidates: &mut Vec<u32>) {
    for from in keys.clone().step_by(WIDTH) {
        let mut l = [[0; WIDTH]; 3];
        for lane in 0..WIDTH {
            let words = search.words(from + lane as u32);
            for (l, word) in l.iter_mut().zip(words) {
                l[lane] = word;
            }
        }
        let first = first_word(&mut l, search.plain);
        for (key, word) in (from..keys.end).zip(first) {
            if (word ^ search.cipher[0]) & search.mask() == 0 {
                candidates.push(key);
            }
        }
    }
}

/// The first word of the ciphertext for WIDTH keys.
#[inline(always)]
fn first_word(l: &mut [[u32; WIDTH]; 3], plain: [u32; 2]) -> [u32; WIDTH] {
    let mut s = [[0; WIDTH]; WORDS];
    for (i, s) in s.iter_mut().enumerate() {
        *s = [P.wrapping_add(Q.wrapping_mul(i as u32)); WIDTH];
    }
    let (mut a, mut b) = ([0u32; WIDTH], [0u32; WIDTH]);
    for step in 0..3 * WORDS {
        let (s, l) = (&mut s[step % WORDS], &mut l[step % 3]);
        for lane in 0..WIDTH {
            a[lane] = s[lane].wrapping_add(a[lane]).wrapping_add(b[lane]).rotate_left(3);
            s[lane] = a[lane];
            let by = a[lane].wrapping_add(b[lane]);
            b[lane] = l[lane].wrapping_add(by).rotate_left(by);
            l[lane] = b[lane];
        }
    }
    for lane in 0..WIDTH {
        a[lane] = plain[0].wrapping_add(s[0][lane]);
        b[lane] = plain[1].wrapping_add(s[1][lane]);
    }
    for round in 1..WORDS / 2 {
        let (even, odd) = (&s[2 * round], &s[2 * round + 1]);
        for lane in 0..WIDTH {
            a[lane] = (a[lane] ^ b[lane]).rotate_left(b[lane]).wrapping_add(even[lane]);
            b[lane] = (b[lane] ^ a[lane]).rotate_left(a[lane]).wrapping_add(odd[lane]);
        }
    }
    a
}
