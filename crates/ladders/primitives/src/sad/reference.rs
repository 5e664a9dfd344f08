//! The oracle.

use super::Problem;

/// Σ |current − reference displaced| of one block and displacement (row, column, each from 0), frames
/// continued by their edges.
pub fn sum(current: &[u8], reference: &[u8], p: &Problem, [by, bx, row, column]: [usize; 4]) -> u16 {
    let pixel = |frame: &[u8], y: isize, x: isize| {
        let y = y.clamp(0, p.height as isize - 1) as usize;
        let x = x.clamp(0, p.width as isize - 1) as usize;
        frame[y * p.width + x]
    };
    let mut sum = 0;
    for y in 4 * by as isize..4 * by as isize + 4 {
        for x in 4 * bx as isize..4 * bx as isize + 4 {
            let (dy, dx) = (row as isize - p.radius as isize, column as isize - p.radius as isize);
            sum += u16::from(pixel(current, y, x).abs_diff(pixel(reference, y + dy, x + dx)));
        }
    }
    sum
}
