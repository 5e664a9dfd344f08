use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::{COURANT, Problem};

/// As the first program would have it: all of H, then all of E, a cell after another.
pub(super) fn scalar(p: &Problem, start: &[f32], out: &mut [f32]) {
    out.copy_from_slice(start);
    let ([nz, ny, nx], cells) = (p.shape, p.cells());
    let base = |c: usize| p.field(c).map(|f| f * cells);
    let [ex, ey, ez, hx, hy, hz] = [0, 1, 2, 3, 4, 5].map(base);
    let get = |f: &[f32], base: Option<usize>, cell: usize| base.map_or(0.0, |base| f[base + cell]);
    let add = |f: &mut [f32], base: Option<usize>, cell: usize, v: f32| {
        if let Some(base) = base {
            f[base + cell] += COURANT * v;
        }
    };
    for _ in 0..p.steps {
        for cell in 0..cells {
            let [z, y, x] = [cell / nx / ny, cell / nx % ny, cell % nx];
            let f = &mut *out;
            let ahead =
                |f: &[f32], base, there: bool, by: usize| if there { get(f, base, cell + by) } else { 0.0 };
            let by_z = |f: &[f32], base| ahead(f, base, z + 1 < nz, nx * ny) - get(f, base, cell);
            let by_y = |f: &[f32], base| ahead(f, base, y + 1 < ny, nx) - get(f, base, cell);
            let by_x = |f: &[f32], base| ahead(f, base, x + 1 < nx, 1) - get(f, base, cell);
            add(f, hx, cell, by_z(f, ey) - by_y(f, ez));
            add(f, hy, cell, by_x(f, ez) - by_z(f, ex));
            add(f, hz, cell, by_y(f, ex) - by_x(f, ey));
        }
        for cell in 0..cells {
            let [z, y, x] = [cell / nx / ny, cell / nx % ny, cell % nx];
            let f = &mut *out;
            let less = |f: &[f32], base, by: usize| get(f, base, cell) - get(f, base, cell - by);
            if z > 0 && y > 0 {
                add(f, ex, cell, less(f, hz, nx) - less(f, hy, nx * ny));
            }
            if z > 0 && x > 0 {
                add(f, ey, cell, less(f, hx, nx * ny) - less(f, hz, 1));
            }
            if y > 0 && x > 0 {
                add(f, ez, cell, less(f, hy, 1) - less(f, hx, nx));
            }
        }
    }
}

/// Some planes (rows in two dimensions) of all components; in two dimensions Ex, Ey and Hz are empty.
type Slab<'a> = [&'a mut [f32]; 6];

/// Row after row, E of a row right after its H: a row of H needs the old E ahead of it, and a row of E the
/// new H behind it. So a step passes once over memory. On one thread, or with a slab for each thread of
/// `cpu`.
pub(super) fn rows(level: Level, cpu: Option<&Cpu>, p: &Problem, start: &[f32], out: &mut [f32]) {
    let ([nz, ny, nx], cells) = (p.shape, p.cells());
    out.copy_from_slice(start);
    // What a slab is cut between, and how many there are.
    let (layer, layers) = if p.flat() { (nx, ny) } else { (nx * ny, nz) };
    let thick = layers.div_ceil(cpu.map_or(1, Cpu::threads));
    for _ in 0..p.steps {
        // New H of the last layer of each slab but the last one needs E of the next slab, so it is made
        // before E changes.
        let old = &*out;
        let between = |slab: usize| {
            let first = ((slab + 1) * thick - 1) * layer;
            let mut made = [3, 4, 5]
                .map(|c| p.field(c).map_or(Vec::new(), |f| old[f * cells + first..][..layer].to_vec()));
            let field = |c: usize| p.field(c).map_or(&[][..], |f| &old[f * cells..(f + 1) * cells]);
            let e = [field(0), field(1), field(2)];
            for row in 0..layer / nx {
                let [hx, hy, hz] = &mut made;
                let to = [hx, hy, hz].map(|h| h.chunks_exact_mut(nx).nth(row).unwrap_or_default());
                let row = first / nx + row;
                dispatch!(level, simd => magnetic(simd, e, p, row, row, to));
            }
            made
        };
        let count = layers.div_ceil(thick);
        let ends: Vec<[Vec<f32>; 3]> = match cpu {
            None => (0..count - 1).map(between).collect(),
            Some(cpu) => cpu.run(|| (0..count - 1).into_par_iter().map(between).collect()),
        };
        let mut parts: Vec<_> = out.chunks_exact_mut(cells).map(|f| f.chunks_mut(thick * layer)).collect();
        let slabs: Vec<Slab<'_>> = (0..count)
            .map(|_| [0, 1, 2, 3, 4, 5].map(|c| p.field(c).and_then(|f| parts[f].next()).unwrap_or_default()))
            .collect();
        let sweep = |(slab, f): (usize, Slab<'_>)| {
            let before = slab.checked_sub(1).map(|slab| &ends[slab]);
            dispatch!(level, simd => sweep(simd, p, slab * thick * layer / nx, f, before, ends.get(slab)));
        };
        match cpu {
            None => slabs.into_iter().enumerate().for_each(sweep),
            Some(cpu) => cpu.run(|| slabs.into_par_iter().enumerate().for_each(sweep)),
        }
    }
}

/// A slab from row `first` of the box on. `before` is the new H behind it, `last` the new H of its own last
/// layer, if made already.
#[inline(always)]
fn sweep<S: Simd>(
    simd: S,
    p: &Problem,
    first: usize,
    f: Slab<'_>,
    before: Option<&[Vec<f32>; 3]>,
    last: Option<&[Vec<f32>; 3]>,
) {
    let [_, ny, nx] = p.shape;
    let [ex, ey, ez, hx, hy, hz] = f;
    let rows = ez.len() / nx;
    let layer = if p.flat() { 1 } else { ny };
    for row in 0..rows {
        let line = row * nx..(row + 1) * nx;
        let made = last.filter(|_| row + layer >= rows);
        let mut h = [&mut *hx, &mut *hy, &mut *hz].map(|h| h.get_mut(line.clone()).unwrap_or_default());
        match made {
            Some(made) => {
                for (h, made) in h.iter_mut().zip(made) {
                    h.copy_from_slice(&made[(row + layer - rows) * nx..][..h.len()]);
                }
            }
            None => {
                // The slab ends where the box ends, or the layer ahead is in it.
                magnetic(simd, [&*ex, &*ey, &*ez], p, row, first + row, h);
            }
        }
        let behind = |c: usize, by: usize| -> &[f32] {
            let (h, before) = match c {
                0 => (&*hx, before.map(|b| &b[0])),
                1 => (&*hy, before.map(|b| &b[1])),
                _ => (&*hz, before.map(|b| &b[2])),
            };
            match row.checked_sub(by) {
                Some(row) => h.get(row * nx..(row + 1) * nx).unwrap_or_default(),
                None => before.and_then(|h| h.get((layer + row - by) * nx..)).map_or(&[], |h| &h[..nx]),
            }
        };
        let [h_x, h_y, h_z] = [0, 1, 2].map(|c| behind(c, 0));
        let [e_x, e_y, e_z] =
            [&mut *ex, &mut *ey, &mut *ez].map(|e| e.get_mut(line.clone()).unwrap_or_default());
        let (z, y) = ((first + row) / ny, (first + row) % ny);
        if z > 0 && y > 0 {
            curl(e_x, [h_z, behind(2, 1), h_y, behind(1, ny)]);
        }
        if z > 0 {
            curl(&mut e_y[1..], [&h_x[1..], &behind(0, ny)[1..], &h_z[1..], h_z]);
        }
        if y > 0 {
            curl(&mut e_z[1..], [&h_y[1..], h_y, &h_x[1..], &behind(0, 1)[1..]]);
        }
    }
}

/// e += s ((a − b) − (c − d)).
#[inline(always)]
fn curl(e: &mut [f32], [a, b, c, d]: [&[f32]; 4]) {
    let n = e.len();
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    for x in 0..n {
        e[x] += COURANT * ((a[x] - b[x]) - (c[x] - d[x]));
    }
}

/// H of a row from E: `row` of these arrays, `of_box` of the box.
#[inline(always)]
fn magnetic<S: Simd>(_: S, e: [&[f32]; 3], p: &Problem, row: usize, of_box: usize, h: [&mut [f32]; 3]) {
    let [nz, ny, nx] = p.shape;
    let line = |c: usize, row: usize| e[c].get(row * nx..(row + 1) * nx);
    let above = |c: usize| if of_box / ny + 1 < nz { line(c, row + ny) } else { None };
    let ahead = |c: usize| if of_box % ny + 1 < ny { line(c, row + 1) } else { None };
    let [hx, hy, hz] = h;
    let (Some(ez), ez_y) = (line(2, row), ahead(2)) else { return };
    difference(hx, ez_y, ez, -COURANT);
    along(hy, ez, COURANT);
    if let (Some(ex), Some(ey)) = (line(0, row), line(1, row)) {
        difference(hx, above(1), ey, COURANT);
        difference(hy, above(0), ex, -COURANT);
        difference(hz, ahead(0), ex, COURANT);
        along(hz, ey, -COURANT);
    }
}

/// h += s (next − e), where beyond the box `next` is 0.
#[inline(always)]
fn difference(h: &mut [f32], next: Option<&[f32]>, e: &[f32], s: f32) {
    match next {
        Some(next) => {
            for ((h, next), e) in h.iter_mut().zip(next).zip(e) {
                *h += s * (next - e);
            }
        }
        None => {
            for (h, e) in h.iter_mut().zip(e) {
                *h -= s * e;
            }
        }
    }
}

/// h += s (e ahead along x − e).
#[inline(always)]
fn along(h: &mut [f32], e: &[f32], s: f32) {
    for ((h, next), e) in h.iter_mut().zip(&e[1..]).zip(e) {
        *h += s * (next - e);
    }
    if let (Some(h), Some(e)) = (h.last_mut(), e.last()) {
        *h -= s * e;
    }
}
