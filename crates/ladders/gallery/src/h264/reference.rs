//! The oracle: one macroblock as the definitions have it, with matrices.

use super::block::{Quantizer, ZIGZAG, bits, class, signed};
use super::{Problem, pixel};

/// A macroblock's displacement, and its blocks in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macroblock {
    /// The displacement along y and x.
    pub vector: [i16; 2],
    /// Levels, bits and reconstructed pixels of each block.
    pub blocks: Vec<([i16; 16], u32, [u8; 16])>,
}

/// The displacement of the least sum of absolute differences; of equal sums the least |v| + |u|, then the
/// first.
pub fn vector([current, reference]: [&[u8]; 2], p: &Problem, macroblock: [usize; 2]) -> [i16; 2] {
    let ([rows, columns], r) = (p.pixels(macroblock), p.radius as isize);
    let mut best = (u32::MAX, 0, [0, 0]);
    for v in -r..=r {
        for u in -r..=r {
            let mut sum = 0;
            for y in rows.clone().map(|y| y as isize) {
                for x in columns.clone().map(|x| x as isize) {
                    let there = pixel(reference, p, y + v, x + u);
                    sum += u32::from(pixel(current, p, y, x).abs_diff(there));
                }
            }
            let far = v.abs() + u.abs();
            if (sum, far) < (best.0, best.1) {
                best = (sum, far, [v as i16, u as i16]);
            }
        }
    }
    best.2
}

const FORWARD: [[i32; 4]; 4] = [[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]];
/// Twice the inverse's rows.
const TWICE_INVERSE: [[i32; 4]; 4] = [[2, 2, 2, 1], [2, 1, -2, -2], [2, -1, -2, 2], [2, -2, 2, -1]];

/// Σ_k matrix[i][k] · values_k for each i, halves of `values` rounded down.
fn product(matrix: &[[i32; 4]; 4], values: [i32; 4], halves: u32) -> [i32; 4] {
    matrix.map(|row| {
        let term = |(&m, x): (&i32, i32)| match halves {
            0 => m * x,
            _ => m.signum() * if m.abs() == 1 { x.div_euclid(2) } else { x },
        };
        row.iter().zip(values).map(term).sum()
    })
}

fn transformed(matrix: &[[i32; 4]; 4], block: [[i32; 4]; 4], halves: u32) -> [[i32; 4]; 4] {
    let rows = block.map(|row| product(matrix, row, halves));
    let columns = [0, 1, 2, 3].map(|x| product(matrix, rows.map(|row| row[x]), halves));
    [0, 1, 2, 3].map(|y| columns.map(|column| column[y]))
}

/// A macroblock, coded and decoded.
pub fn macroblock(frames: [&[u8]; 2], p: &Problem, q: &Quantizer, macroblock: [usize; 2]) -> Macroblock {
    let [current, reference] = frames;
    let vector = vector(frames, p, macroblock);
    let [rows, columns] = p.pixels(macroblock);
    let corners = rows.step_by(4).flat_map(|y| columns.clone().step_by(4).map(move |x| [y, x]));
    let block = |(index, corner): (usize, [usize; 2])| {
        let place = |y: usize, x: usize| [(corner[0] + y) as isize, (corner[1] + x) as isize];
        let predicted = |y, x| {
            let [y, x] = place(y, x);
            i32::from(pixel(reference, p, y + vector[0] as isize, x + vector[1] as isize))
        };
        let matrix =
            |entry: &dyn Fn(usize, usize) -> i32| [0, 1, 2, 3].map(|y| [0, 1, 2, 3].map(|x| entry(y, x)));
        let residual = matrix(&|y, x| {
            let [at_y, at_x] = place(y, x);
            i32::from(pixel(current, p, at_y, at_x)) - predicted(y, x)
        });
        let coefficients = transformed(&FORWARD, residual, 0);
        let level = |y: usize, x: usize| {
            let c = i64::from(coefficients[y][x]);
            let size = (c.abs() * i64::from(q.forward[class(4 * y + x)]) + i64::from(q.rounding)) >> q.shift;
            (size * c.signum()) as i32
        };
        let back = transformed(&TWICE_INVERSE, matrix(&|y, x| level(y, x) * q.back[class(4 * y + x)]), 1);
        let levels = ZIGZAG.map(|index| level(index / 4, index % 4) as i16);
        let of_vector = if index == 0 { vector.map(|d| signed(d.into())).iter().sum() } else { 0 };
        let decoded = |index: usize| {
            let (y, x) = (index / 4, index % 4);
            (predicted(y, x) + (back[y][x] + 32).div_euclid(64)).clamp(0, 255) as u8
        };
        (levels, bits(&levels) + of_vector, std::array::from_fn(decoded))
    };
    Macroblock { vector, blocks: corners.enumerate().map(block).collect() }
}
