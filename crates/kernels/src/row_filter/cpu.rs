use num_complex::Complex32;
use rayon::prelude::*;
use rayspin_device::Cpu;

use super::RowFilter;

pub(super) fn apply(filter: &RowFilter, cpu: &Cpu, rows: &mut [f32]) {
    let len = filter.len;
    cpu.run(|| {
        rows.par_chunks_mut(2 * len).for_each_init(
            || filter.scratch(),
            |(line, inner), pair| {
                let (first, second) = pair.split_at_mut(len);
                line.fill(Complex32::default());
                line.iter_mut().zip(&*first).for_each(|(to, from)| to.re = *from);
                line.iter_mut().zip(&*second).for_each(|(to, from)| to.im = *from);
                filter.forward.process_with_scratch(line, inner);
                line.iter_mut().zip(&filter.spectrum).for_each(|(value, factor)| *value *= *factor);
                filter.inverse.process_with_scratch(line, inner);
                first.iter_mut().zip(&*line).for_each(|(to, from)| *to = from.re);
                second.iter_mut().zip(&*line).for_each(|(to, from)| *to = from.im);
            },
        );
    });
}
