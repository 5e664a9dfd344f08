//! The energy of water in the basis STO-3G, by a self-consistent field of closed shells (Roothaan, "New
//! developments in molecular orbital theory", 1951). Each device makes the repulsion integrals; the oracle's
//! Hermite functions make all others.

#![allow(clippy::unwrap_used, clippy::needless_range_loop, reason = "tests; matrices by their indices")]

use std::f64::consts::PI;

use super::reference::{Product, boys, coulomb, hermite};
use super::{Integrals, Shell, repulsion};

type Matrix = Vec<Vec<f64>>;

/// Charges and places in bohr, and energy in hartree: "Project 3" of Crawford's programming projects in
/// quantum chemistry (<https://github.com/CrawfordGroup/ProgrammingProjects>).
const ATOMS: [(f64, [f64; 3]); 3] = [
    (8.0, [0.0, -0.143225816552, 0.0]),
    (1.0, [1.638036840407, 1.136548822547, 0.0]),
    (1.0, [-1.638036840407, 1.136548822547, 0.0]),
];
const ENERGY: f64 = -74.942079928192;

fn water() -> Vec<Shell> {
    let inner = [0.15432897, 0.53532814, 0.44463454];
    let outer = [5.0331513, 1.1695961, 0.3803890];
    let hydrogen = [3.42525091, 0.62391373, 0.16885540];
    let [o, h1, h2] = ATOMS.map(|(_, place)| place);
    vec![
        Shell::normalised(o, false, [130.7093200, 23.8088610, 6.4436083], inner),
        Shell::normalised(o, false, outer, [-0.09996723, 0.39951283, 0.70011547]),
        Shell::normalised(o, true, outer, [0.15591627, 0.60768372, 0.39195739]),
        Shell::normalised(h1, false, hydrogen, inner),
        Shell::normalised(h2, false, hydrogen, inner),
    ]
}

/// Overlap, and kinetic energy with the attraction of the nuclei, of two functions.
fn one_electron(shells: [&Shell; 2], components: [usize; 2]) -> [f64; 2] {
    let (mut overlap, mut core) = (0.0, 0.0);
    for e in 0..9 {
        let product = Product::new(shells, [e / 3, e % 3], components);
        let (p, b) = (product.p, shells[1].exponents[e % 3]);
        let axis = |d: usize| {
            let ([i, j], [pa, pb]) = (product.powers[d], product.distances[d]);
            let overlap = |j| hermite(i, j, 0, p, pa, pb);
            // Functions of s and p have no third term of the second derivative.
            [overlap(j), -2.0 * b * b * overlap(j + 2) + b * f64::from(2 * j + 1) * overlap(j)]
        };
        let ([x, tx], [y, ty], [z, tz]) = (axis(0), axis(1), axis(2));
        let size = product.size * (PI / p).powf(1.5);
        overlap += size * x * y * z;
        core += size * (tx * y * z + x * ty * z + x * y * tz);
        for (charge, place) in ATOMS {
            let from = [0, 1, 2].map(|d| product.center[d] - place[d]);
            let f = boys(2, p * from.iter().map(|x| x * x).sum::<f64>());
            let potential: f64 =
                product.terms().iter().map(|(order, e)| e * coulomb(*order, 0, p, from, &f)).sum();
            core -= charge * 2.0 * PI / p * potential;
        }
    }
    [overlap, core]
}

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    let n = a.len();
    let entry = |i: usize, j: usize| (0..n).map(|k| a[i][k] * b[k][j]).sum();
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

/// Eigenvalues and eigenvectors (columns) of a symmetric matrix, smallest first, by Jacobi's rotations.
fn eigen(mut a: Matrix) -> (Vec<f64>, Matrix) {
    let n = a.len();
    let mut v: Matrix = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..30 {
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let angle = 0.5 * (2.0 * a[i][j]).atan2(a[j][j] - a[i][i]);
            let (sin, cos) = angle.sin_cos();
            let turn = |row: &mut Vec<f64>| {
                (row[i], row[j]) = (cos * row[i] - sin * row[j], sin * row[i] + cos * row[j])
            };
            a.iter_mut().for_each(turn);
            v.iter_mut().for_each(turn);
            for k in 0..n {
                (a[i][k], a[j][k]) = (cos * a[i][k] - sin * a[j][k], sin * a[i][k] + cos * a[j][k]);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    let sorted = v.iter().map(|row| order.iter().map(|&k| row[k]).collect()).collect();
    (order.iter().map(|&k| a[k][k]).collect(), sorted)
}

fn energy(shells: &[Shell], integrals: &Integrals) -> f64 {
    let components =
        |(index, shell): (usize, &Shell)| (0..if shell.p { 3 } else { 1 }).map(move |c| (index, c));
    let functions: Vec<(usize, usize)> = shells.iter().enumerate().flat_map(components).collect();
    let n = functions.len();
    assert_eq!(n, integrals.functions());
    let both = |i: usize, j: usize| {
        let [(a, c), (b, d)] = [functions[i], functions[j]];
        one_electron([&shells[a], &shells[b]], [c, d])
    };
    let one_electron: Vec<Vec<[f64; 2]>> = (0..n).map(|i| (0..n).map(|j| both(i, j)).collect()).collect();
    let part = |which: usize| -> Matrix {
        one_electron.iter().map(|row| row.iter().map(|x| x[which]).collect()).collect()
    };
    let (overlap, core) = (part(0), part(1));
    assert!((0..n).all(|i| (overlap[i][i] - 1.0).abs() < 1e-6), "functions are normalised");
    // Functions that are orthogonal, the nearest to these.
    let (values, vectors) = eigen(overlap);
    let root =
        |i: usize, j: usize| (0..n).map(|k| vectors[i][k] * vectors[j][k] / values[k].sqrt()).sum::<f64>();
    let root: Matrix = (0..n).map(|i| (0..n).map(|j| root(i, j)).collect()).collect();
    let two = |i, j, k, l| integrals.get([i, j, k, l]).unwrap();
    let (mut fock, mut last) = (core.clone(), 0.0);
    let nuclei = |a: usize, b: usize| {
        let apart: f64 = (0..3).map(|d| (ATOMS[a].1[d] - ATOMS[b].1[d]).powi(2)).sum();
        ATOMS[a].0 * ATOMS[b].0 / apart.sqrt()
    };
    let nuclei = nuclei(0, 1) + nuclei(0, 2) + nuclei(1, 2);
    for _ in 0..200 {
        let (_, c) = eigen(times(&times(&root, &fock), &root));
        let orbitals = times(&root, &c);
        // Five orbitals of two electrons each.
        let density = |i: usize, j: usize| (0..5).map(|k| orbitals[i][k] * orbitals[j][k]).sum::<f64>();
        let density: Matrix = (0..n).map(|i| (0..n).map(|j| density(i, j)).collect()).collect();
        for i in 0..n {
            for j in 0..n {
                let pairs = (0..n).flat_map(|k| (0..n).map(move |l| (k, l)));
                let field =
                    |(k, l): (usize, usize)| density[k][l] * (2.0 * two(i, j, k, l) - two(i, k, j, l));
                fock[i][j] = core[i][j] + pairs.map(field).sum::<f64>();
            }
        }
        let row_energy = |i: usize| (0..n).map(|j| density[i][j] * (core[i][j] + fock[i][j])).sum::<f64>();
        let energy = nuclei + (0..n).map(row_energy).sum::<f64>();
        if (energy - last).abs() < 1e-11 {
            return energy;
        }
        last = energy;
    }
    f64::NAN
}

#[test]
fn the_energy_of_water_is_the_published_one() {
    let shells = water();
    for device in rayspin_emu::devices().unwrap() {
        let found = energy(&shells, &repulsion(&shells, &device).unwrap());
        assert!((found - ENERGY).abs() < 1e-8, "{}: {found}", device.describe());
    }
}

#[test]
fn bad_shells_are_refused() {
    for device in rayspin_emu::devices().unwrap() {
        let good = water()[0];
        assert!(repulsion(&[], &device).is_err());
        assert!(repulsion(&[Shell { exponents: [1.0, 0.0, 1.0], ..good }], &device).is_err());
        assert!(repulsion(&[Shell { center: [f64::NAN; 3], ..good }], &device).is_err());
        let integrals = repulsion(&[good], &device).unwrap();
        assert!(integrals.get([0, 0, 0, 1]).is_err());
        // (ss|ss) of one function with itself: the Coulomb energy of its charge.
        let want = super::reference::integral([&good; 4], [0; 4]);
        assert!((integrals.get([0; 4]).unwrap() / want - 1.0).abs() < 1e-12);
    }
}
