//! Counting on the CPU.
#![allow(unsafe_code)]

use std::hint::black_box;

use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::Level;

use super::Sample;

/// Tables that a thread may count in.
const MOST_TABLES: usize = 8;

/// Up to this number of bins, which 16-bit samples need, counts have 16 bits. With more bins it takes longer
/// to add up the counts before they overflow than 16 bits save.
const NARROW: usize = 1 << 16;

/// Samples that are compared with the number of bins before one of them is counted.
pub(super) const BLOCK: usize = 256;

/// Samples that take tables of one number: as many as the counts of most tables have room for.
const PART: usize = most(MOST_TABLES);

/// The number of samples, in whole blocks, that `tables` tables of 16-bit counts take without overflow.
const fn most(tables: usize) -> usize {
    u16::MAX as usize / (BLOCK / tables) * BLOCK
}

/// Bytes between the sample that is counted and the one that is asked of memory, a small page: processors
/// fetch ahead by themselves, but not beyond the end of one.
const AHEAD: usize = 4096;

/// Words that a thread counts `bins` bins in, and what lies beyond.
fn words_each(bins: usize) -> usize {
    MOST_TABLES * (bins + 1)
}

/// Words that `threads` threads count `bins` bins in.
pub(super) fn words(threads: usize, bins: usize) -> usize {
    threads * words_each(bins)
}

fn bin<T: Sample>(v: T) -> usize {
    v.into() as usize
}

/// `table[b] += `samples of value b, one after the other.
pub(super) fn scalar<T: Sample>(samples: &[T], table: &mut [u32]) {
    for &v in samples {
        if let Some(count) = table.get_mut(bin(v)) {
            *count += 1;
        }
    }
}

/// Neighbours count in tables of their own: an addition to a word that was just written waits for that write.
/// The words of a bin lie side by side, so that one address does for all tables.
fn interleaved<T: Sample, const TABLES: usize>(samples: &[T], memory: &mut [u32], bins: usize) {
    let memory = &mut memory[..TABLES * bins];
    memory.fill(0);
    let (tables, _) = memory.as_chunks_mut::<TABLES>();
    let (groups, rest) = samples.as_chunks::<TABLES>();
    for group in groups {
        for (lane, &v) in group.iter().enumerate() {
            if let Some(bin) = tables.get_mut(bin(v)) {
                bin[lane] += 1;
            }
        }
    }
    for &v in rest {
        if let Some(bin) = tables.get_mut(bin(v)) {
            bin[0] += 1;
        }
    }
    for bin in 0..bins {
        memory[bin] = memory[TABLES * bin..][..TABLES].iter().sum();
    }
}

/// Counts of `samples` in the first `bins` words of `memory`, which has room for `tables` tables.
pub(super) fn tables<T: Sample>(samples: &[T], tables: usize, memory: &mut [u32], bins: usize) {
    match tables {
        0 | 1 => interleaved::<T, 1>(samples, memory, bins),
        2 => interleaved::<T, 2>(samples, memory, bins),
        3 | 4 => interleaved::<T, 4>(samples, memory, bins),
        _ => interleaved::<T, 8>(samples, memory, bins),
    }
}

/// The value of all samples of a block, where they have one.
fn alike<T: Sample>(block: &[T; BLOCK]) -> Option<T> {
    let first = block[0];
    let maybe = first == block[BLOCK / 2] && first == block[BLOCK - 1];
    (maybe && block.iter().fold(true, |same, &v| same & (v == first))).then_some(first)
}

/// Whether hardly a sample is counted where one close to it was, in what is looked at here and there: then
/// one table is as good, and smaller.
fn apart<T: Sample>(samples: &[T], bins: usize) -> bool {
    const PLACES: usize = 8;
    const NEAR: usize = 32;
    const DISTANCES: [usize; 3] = [1, 2, 4];
    // One pair in 160. Of 1024 values of equal chance one in 1024 is of one bin; of a tomogram in 4096 bins
    // it is one in 80, which many tables take less time for.
    const FEW: usize = PLACES * NEAR * DISTANCES.len() / 160;
    let mut met = 0;
    for place in samples.chunks((samples.len() / PLACES).max(1)).take(PLACES) {
        let Some(near) = place.first_chunk::<{ NEAR + 4 }>() else { return false };
        let near = near.map(|v| bin(v).min(bins));
        for distance in DISTANCES {
            met += near[distance..].iter().zip(&near[..NEAR]).filter(|(a, b)| a == b).count();
        }
    }
    met <= FEW
}

#[inline(always)]
fn prefetch<T>(samples: &[T; 16]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it neither reads nor writes, and any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(samples.as_ptr().cast::<i8>().wrapping_add(AHEAD)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = samples;
}

/// Adds the counts of `samples` to the first `bins` words: samples are compared with `bins` many at a time,
/// in vectors, and counted in 16 bits. A function of its own, compiled for the baseline: where the compiler
/// has vectors of 16 samples it reads samples through them, which takes longer than a load each.
#[inline(never)]
fn counted<T: Sample, const TABLES: usize>(level: Level, samples: &[T], memory: &mut [u32], bins: usize) {
    let (sums, rest) = memory.split_at_mut(bins);
    let counts: &mut [u16] = bytemuck::cast_slice_mut(rest);
    // The last bin counts all larger values.
    let (tables, _) = counts[..TABLES * (bins + 1)].as_chunks_mut::<TABLES>();
    // In a register: Intel's processors decode an addition of one to fewer operations than an increment.
    let one = black_box(1u16);
    for part in samples.chunks(most(TABLES)) {
        tables.as_flattened_mut().fill(0);
        let clamped = |samples: &[T], tables: &mut [[u16; TABLES]]| {
            for (index, &v) in samples.iter().enumerate() {
                tables[bin(v).min(bins)][index % TABLES] += one;
            }
        };
        let (blocks, rest) = part.as_chunks::<BLOCK>();
        for block in blocks {
            if let Some(value) = alike(block) {
                if let Some(sum) = sums.get_mut(bin(value)) {
                    *sum += BLOCK as u32;
                }
            } else if T::below(level, block, bins as u32) {
                for group in block.as_chunks::<16>().0 {
                    prefetch(group);
                    for (lane, &v) in group.iter().enumerate() {
                        // SAFETY: there are more than `bins` elements, and every sample of the block is less
                        // than that.
                        let counts = unsafe { tables.get_unchecked_mut(bin(v)) };
                        counts[lane % TABLES] += one;
                    }
                }
            } else {
                clamped(block, tables);
            }
        }
        clamped(rest, tables);
        for (sum, bin) in sums.iter_mut().zip(&*tables) {
            *sum += bin.iter().map(|&count| u32::from(count)).sum::<u32>();
        }
    }
}

/// [`tables`] by blocks, in one table where that is as good.
pub(super) fn blocks<T: Sample>(level: Level, samples: &[T], count: usize, memory: &mut [u32], bins: usize) {
    if bins > NARROW {
        return tables(samples, count, memory, bins);
    }
    memory[..bins].fill(0);
    for part in samples.chunks(PART) {
        match if apart(part, bins) { 1 } else { count } {
            0 | 1 => counted::<T, 1>(level, part, memory, bins),
            2 => counted::<T, 2>(level, part, memory, bins),
            3 | 4 => counted::<T, 4>(level, part, memory, bins),
            _ => counted::<T, 8>(level, part, memory, bins),
        }
    }
}

/// The same on all threads, a part of the samples each.
pub(super) fn threads<T: Sample>(cpu: &Cpu, samples: &[T], count: usize, memory: &mut [u32], bins: usize) {
    let (level, threads) = (cpu.level(), cpu.threads());
    let share = samples.len().div_ceil(threads).max(1);
    // What a thread has to do for a task pays from some thousands of samples on.
    let share = share.max(1 << 13).max(bins);
    cpu.run(|| {
        memory
            .par_chunks_mut(words_each(bins))
            .zip(samples.par_chunks(share))
            .for_each(|(memory, samples)| blocks(level, samples, count, memory, bins));
    });
    let parts = samples.len().div_ceil(share);
    if parts == 0 {
        memory[..bins].fill(0);
    }
    let (first, others) = memory.split_at_mut(words_each(bins));
    for other in others.chunks(words_each(bins)).take(parts.saturating_sub(1)) {
        for (sum, &more) in first[..bins].iter_mut().zip(other) {
            *sum += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use rayspin_device::cpu::simd::levels;
    use rayspin_tune::input::bits;

    use super::super::reference;
    use super::*;

    fn check<T: Sample>(samples: &[T], bins: usize, what: &str) {
        let want = reference::counts(samples, bins).unwrap();
        for level in levels() {
            for count in [1, 2, 4, 8] {
                let mut memory = vec![u32::MAX; words(1, bins)];
                blocks(level, samples, count, &mut memory, bins);
                let same = memory[..bins].iter().zip(&want).all(|(&found, &want)| u64::from(found) == want);
                assert!(same, "{what}: {} samples, {bins} bins, {count} tables, {level:?}", samples.len());
            }
        }
    }

    /// Checks samples of every width; narrow ones are the lower bits of `samples`.
    fn check_all(samples: &[u32], bins: usize, what: &str) {
        check(samples, bins, what);
        check(&samples.iter().map(|&v| v as u16).collect::<Vec<_>>(), bins, what);
        check(&samples.iter().map(|&v| v as u8).collect::<Vec<_>>(), bins, what);
    }

    #[test]
    fn blocks_within_beyond_alike_and_cut_short() {
        for (seed, n) in [0, 1, 255, 256, 257, 1021, 4099].into_iter().enumerate() {
            for (bins, below) in
                [(1, 1), (1, 2), (7, 7), (250, 251), (1024, 1024), (NARROW + 1, NARROW as u64 + 9)]
            {
                let random = |at: usize| (bits(seed as u64, at as u64) % below) as u32;
                check_all(&(0..n).map(random).collect::<Vec<_>>(), bins, "random");
                // Blocks of one value, of one beyond the last bin, and of both; the largest number is no bin.
                let some = |at: usize| match at / 256 % 4 {
                    0 => bins as u32 - 1,
                    1 => u32::MAX,
                    2 => [0, u32::MAX, bins as u32][at % 3],
                    _ => random(at),
                };
                check_all(&(0..n).map(some).collect::<Vec<_>>(), bins, "blocks");
            }
        }
    }

    /// One value in every place of a table, in blocks that are not of one value.
    #[test]
    fn sixteen_bits_do_not_overflow() {
        let samples: Vec<u32> = (0..540_000).map(|at| u32::from(at % BLOCK == 7)).collect();
        check(&samples, 3, "one value");
    }

    /// What is looked at is apart, the rest is one value in blocks that are not of one value: one table, many
    /// times full.
    #[test]
    fn one_table_does_not_overflow() {
        let near = PART / 8;
        let samples: Vec<u32> = (0..PART)
            .map(|at| match at % near {
                place @ 0..40 => 1000 + place as u32,
                _ => u32::from(at % BLOCK == 7),
            })
            .collect();
        assert!(apart(&samples, 2000) && !apart(&samples, 1000));
        check(&samples, 2000, "hardly apart");
    }

    #[test]
    fn one_table_is_for_what_seldom_meets() {
        let random: Vec<u16> = (0..9000).map(|at| (bits(4, at) % 1024) as u16).collect();
        assert!(apart(&random, 1024) && !apart(&random, 1) && !apart(&random[..200], 1024));
        let walk: Vec<u16> = random.iter().map(|v| v / 100).collect();
        assert!(!apart(&walk, 1024));
    }

    #[test]
    fn any_number_of_threads_gives_the_same() {
        let samples: Vec<u32> = (0..50_021).map(|at| (bits(3, at) % 300) as u32).collect();
        for (threads_, n, bins) in
            [(1, 50_021, 299), (2, 50_021, 299), (3, 8193, 5), (7, 50_021, 300), (5, 0, 4)]
        {
            let device = rayspin_device::Device::cpu_with_threads(threads_).expect("a device");
            let mut memory = vec![u32::MAX; words(threads_, bins)];
            threads(device.cpu_side(), &samples[..n], 8, &mut memory, bins);
            let want = reference::counts(&samples[..n], bins).unwrap();
            let found: Vec<u64> = memory[..bins].iter().map(|&count| count.into()).collect();
            assert_eq!(found, want, "{n} samples, {bins} bins, {threads_} threads");
        }
    }
}
