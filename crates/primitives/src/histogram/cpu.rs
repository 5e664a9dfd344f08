use rayon::prelude::*;
use rayspin_device::Cpu;

/// Tables that a thread may count in.
pub(super) const MOST_TABLES: usize = 8;

/// Words that `threads` threads count `bins` bins in.
pub(super) fn words(threads: usize, bins: usize) -> usize {
    threads * MOST_TABLES * bins
}

/// `table[b] += `samples of value b, one after the other.
pub(super) fn scalar(samples: &[u32], table: &mut [u32]) {
    for &v in samples {
        if let Some(count) = table.get_mut(v as usize) {
            *count += 1;
        }
    }
}

/// Neighbours count in tables of their own: an addition to a word that was just written waits for that write. The words of a bin lie
/// side by side, so that one address does for all tables.
fn interleaved<const TABLES: usize>(samples: &[u32], memory: &mut [u32], bins: usize) {
    let (tables, _) = memory[..TABLES * bins].as_chunks_mut::<TABLES>();
    let (groups, rest) = samples.as_chunks::<TABLES>();
    for group in groups {
        for (at, &v) in group.iter().enumerate() {
            if let Some(bin) = tables.get_mut(v as usize) {
                bin[at] += 1;
            }
        }
    }
    for &v in rest {
        if let Some(bin) = tables.get_mut(v as usize) {
            bin[0] += 1;
        }
    }
    for bin in 0..bins {
        memory[bin] = memory[TABLES * bin..][..TABLES].iter().sum();
    }
}

/// Counts of `samples` in the first `bins` words of `memory`, which has room for `tables` tables.
pub(super) fn tables(samples: &[u32], tables: usize, memory: &mut [u32], bins: usize) {
    let memory = &mut memory[..tables.next_power_of_two().min(MOST_TABLES) * bins];
    memory.fill(0);
    match tables {
        0 | 1 => scalar(samples, memory),
        2 => interleaved::<2>(samples, memory, bins),
        3 | 4 => interleaved::<4>(samples, memory, bins),
        _ => interleaved::<8>(samples, memory, bins),
    }
}

/// The same on all threads, a part of the samples each.
pub(super) fn threads(cpu: &Cpu, samples: &[u32], count: usize, memory: &mut [u32], bins: usize) {
    let threads = cpu.threads();
    let share = samples.len().div_ceil(threads).max(1);
    // What a thread has to do for a task pays from some thousands of samples on.
    let share = share.max(1 << 13).max(bins);
    cpu.run(|| {
        memory
            .par_chunks_mut(MOST_TABLES * bins)
            .zip(samples.par_chunks(share))
            .for_each(|(memory, samples)| tables(samples, count, memory, bins));
    });
    let parts = samples.len().div_ceil(share);
    if parts == 0 {
        memory[..bins].fill(0);
    }
    let (first, others) = memory.split_at_mut(MOST_TABLES * bins);
    for other in others.chunks(MOST_TABLES * bins).take(parts.saturating_sub(1)) {
        for (sum, &more) in first[..bins].iter_mut().zip(other) {
            *sum += more;
        }
    }
}
