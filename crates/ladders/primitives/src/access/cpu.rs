use rayon::prelude::*;
use rayspin_device::Cpu;

use super::reference::{FIELDS, Pattern, source};

/// Words of a task.
const CHUNK: usize = 1 << 16;

pub(super) fn copy(cpu: &Cpu, pattern: Pattern, input: &[u32], index: &[u32], out: &mut [u32]) {
    let n = out.len();
    cpu.run(|| {
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = input[source(pattern, index, n, chunk * CHUNK + i)];
            }
        });
    });
}

/// Sums of records whose fields are `next` words apart, records `record` apart.
pub(super) fn records(cpu: &Cpu, [record, next]: [usize; 2], input: &[u32], out: &mut [u32]) {
    cpu.run(|| {
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
            for (i, out) in out.iter_mut().enumerate() {
                let first = (chunk * CHUNK + i) * record;
                *out = (0..FIELDS).fold(0u32, |sum, f| sum.wrapping_add(input[first + f * next]));
            }
        });
    });
}
