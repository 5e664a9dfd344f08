//! The oracle.

use super::Grid;

/// (Σ q_i / |r − r_i|, Σ |q_i| / |r − r_i|) in f64 at one point; infinite where an atom is.
pub fn potential(atoms: &[[f32; 4]], grid: &Grid, [iz, iy, ix]: [usize; 3]) -> (f64, f64) {
    let point = [grid.place(0, ix), grid.place(1, iy), grid.place(2, iz)].map(f64::from);
    let (mut sum, mut size) = (0.0, 0.0);
    for atom in atoms {
        let square: f64 = point.iter().zip(atom).map(|(p, &a)| (p - f64::from(a)).powi(2)).sum();
        let term = f64::from(atom[3]) / square.sqrt();
        sum += term;
        size += term.abs();
    }
    (sum, size)
}
