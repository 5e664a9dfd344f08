use super::*;
use std::f64::consts::PI;

fn grid(dims: usize, matrix: [usize; 3], fov: f64) -> Grid {
    let voxel = fov / matrix[0] as f64;
    Grid { dims, matrix, fov_mm: matrix.map(|n| n as f64 * voxel), oversampling: 1 }
}

fn every_sampling() -> Vec<(Sampling, Grid)> {
    let flat = grid(2, [24, 20, 1], 220.0);
    let solid = grid(3, [12, 10, 7], 200.0);
    let poisson = CartesianPattern::PoissonDisc { acceleration: 2.5, calibration: 4, slope: 1.5 };
    let uniform = |r| CartesianPattern::Uniform { acceleration: r, calibration: 4 };
    vec![
        (Sampling::Cartesian(CartesianPattern::Full), flat),
        (Sampling::Cartesian(CartesianPattern::Full), solid),
        (Sampling::Cartesian(uniform([3, 1])), flat),
        (Sampling::Cartesian(uniform([2, 2])), solid),
        (Sampling::Cartesian(poisson), flat),
        (Sampling::Cartesian(poisson), solid),
        (Sampling::Radial { spokes: 17, angles: SpokeAngles::Uniform }, flat),
        (Sampling::Radial { spokes: 17, angles: SpokeAngles::Golden }, flat),
        (Sampling::Spiral { interleaves: 6, acceleration: 1 }, flat),
        (Sampling::Epi { shots: 1 }, flat),
        (Sampling::Epi { shots: 3 }, flat),
        (Sampling::Kooshball { spokes: 31, order: SphereOrder::Spiral }, solid),
        (Sampling::Kooshball { spokes: 31, order: SphereOrder::GoldenMeans }, solid),
        (Sampling::StackOfStars { spokes: 9, angles: SpokeAngles::Golden }, solid),
        (Sampling::StackOfSpirals { interleaves: 4, acceleration: 1 }, solid),
        (Sampling::Random { shots: 5, samples: 100 }, flat),
        (Sampling::Random { shots: 5, samples: 100 }, solid),
    ]
}

#[test]
fn every_layout_is_finite_inside_k_space_counted_and_reproducible() {
    for (sampling, grid) in every_sampling() {
        let hardware = Hardware::default();
        let layout = sampling.layout(&grid, &hardware, 4, 0).unwrap();
        assert_eq!(layout, sampling.layout(&grid, &hardware, 4, 0).unwrap(), "{sampling:?}");
        for shot in &layout.shots {
            assert_eq!(shot.points.ncols(), grid.dims, "{sampling:?}");
            assert!(shot.centre_sample < shot.points.nrows());
            assert!(usize::from(shot.counters.step_1) <= layout.step_1.maximum);
            assert!(usize::from(shot.counters.step_2) <= layout.step_2.maximum);
            for ((_, axis), k) in shot.points.indexed_iter() {
                let edge = 0.5 * grid.matrix[axis] as f64;
                assert!(k.is_finite() && k.abs() <= edge + 1e-9, "{sampling:?} axis {axis}: {k}");
            }
            // The centre sample is the one nearest the centre along the readout.
            let radius = |i: usize| shot.points.row(i).iter().take(2).map(|k| k * k).sum::<f64>();
            if !matches!(sampling, Sampling::Random { .. } | Sampling::Cartesian(_)) {
                let least = (0..shot.points.nrows()).map(radius).fold(f64::INFINITY, f64::min);
                assert!(radius(shot.centre_sample) <= least + 1e-9, "{sampling:?}");
            }
        }
        assert!(
            layout.step_1.centre <= layout.step_1.maximum && layout.step_2.centre <= layout.step_2.maximum
        );
    }
}

#[test]
fn cartesian_lines_follow_the_pattern() {
    let hardware = Hardware::default();
    for (n, r, width) in [(20usize, 3usize, 4usize), (21, 4, 5), (7, 2, 0), (5, 5, 100), (1, 1, 0)] {
        let g = grid(2, [8, n, 1], 200.0);
        let pattern = CartesianPattern::Uniform { acceleration: [r, 1], calibration: width };
        let layout = Sampling::Cartesian(pattern).layout(&g, &hardware, 0, 0).unwrap();
        let played: Vec<usize> = layout.shots.iter().map(|s| usize::from(s.counters.step_1)).collect();
        let expected: Vec<usize> = (0..n)
            .filter(|y| {
                let k = *y as i64 - (n / 2) as i64;
                let half = (width.min(n) / 2) as i64;
                let calibrates = width >= n || (k >= -half && k < width as i64 - half);
                k.rem_euclid(r as i64) == 0 || (width > 0 && calibrates)
            })
            .collect();
        assert_eq!(played, expected, "n {n} R {r} calibration {width}");
        let flagged =
            layout.shots.iter().filter(|s| s.flags.contains(Flags::CALIBRATION_AND_IMAGING)).count();
        assert_eq!(flagged, width.min(n));
        assert!(layout.shots.iter().all(|s| s.flags.is_image()));
        for shot in &layout.shots {
            assert_eq!(shot.points[[0, 0]], -4.0);
            assert_eq!(shot.points[[shot.centre_sample, 0]], 0.0);
            assert_eq!(shot.points[[3, 1]], f64::from(shot.counters.step_1) - (n / 2) as f64);
        }
    }
    let doubled = Grid { oversampling: 2, ..grid(2, [8, 4, 1], 200.0) };
    let layout = Sampling::Cartesian(CartesianPattern::Full).layout(&doubled, &hardware, 0, 0).unwrap();
    let x: Vec<f64> = layout.shots[0].points.column(0).to_vec();
    assert_eq!((x.len(), x[0], x[1], layout.shots[0].centre_sample), (16, -4.0, -3.5, 8));
}

#[test]
fn spokes_have_their_angles_and_spacing() {
    let g = grid(2, [32, 32, 1], 200.0);
    let hardware = Hardware::default();
    let angle = |shot: &Shot| {
        let end = shot.points.row(0);
        (-end[1]).atan2(-end[0]).rem_euclid(2.0 * PI)
    };
    let uniform = Sampling::Radial { spokes: 12, angles: SpokeAngles::Uniform };
    for (m, shot) in uniform.layout(&g, &hardware, 0, 3).unwrap().shots.iter().enumerate() {
        assert!((angle(shot) - PI * m as f64 / 12.0).abs() < 1e-12);
        let step = &shot.points.row(9) - &shot.points.row(8);
        assert!((step.dot(&step).sqrt() - 1.0).abs() < 1e-12, "one cycle per field of view");
    }
    let golden = Sampling::Radial { spokes: 12, angles: SpokeAngles::Golden };
    let first = golden.layout(&g, &hardware, 0, 0).unwrap();
    let second = golden.layout(&g, &hardware, 0, 1).unwrap();
    let mut previous: Option<f64> = None;
    for shot in first.shots.iter().chain(&second.shots) {
        if let Some(before) = previous {
            let turn = (angle(shot) - before).rem_euclid(2.0 * PI).to_degrees();
            assert!((turn - 111.246_117_975).abs() < 1e-6, "{turn}");
        }
        previous = Some(angle(shot));
    }
}

#[test]
fn three_dimensional_spokes_cover_the_sphere_evenly() {
    let g = grid(3, [16, 16, 16], 200.0);
    for order in [SphereOrder::Spiral, SphereOrder::GoldenMeans] {
        let spokes = 800;
        let layout = Sampling::Kooshball { spokes, order }.layout(&g, &Hardware::default(), 0, 0).unwrap();
        let ends: Vec<[f64; 3]> =
            layout.shots.iter().map(|s| std::array::from_fn(|axis| -s.points[[0, axis]] / 8.0)).collect();
        for e in &ends {
            assert!((e.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // Second moments of an even half sphere: ⟨x²⟩ = ⟨y²⟩ = ⟨z²⟩ = 1/3, and mixed ones vanish.
        for a in 0..3 {
            for b in 0..3 {
                let moment = ends.iter().map(|e| e[a] * e[b]).sum::<f64>() / spokes as f64;
                let expected = if a == b { 1.0 / 3.0 } else { 0.0 };
                assert!((moment - expected).abs() < 0.02, "{order:?} {a}{b} {moment}");
            }
        }
        // Neighbours stay apart: d = √(2π/M) would be a square lattice.
        let even = (2.0 * PI / spokes as f64).sqrt();
        let near = |i: usize| {
            let dot = |j: usize| (0..3).map(|a| ends[i][a] * ends[j][a]).sum::<f64>().abs();
            (0..spokes).filter(|j| *j != i).map(dot).fold(0.0, f64::max).min(1.0).acos()
        };
        let mean = (0..spokes).map(near).sum::<f64>() / spokes as f64;
        assert!(mean > 0.6 * even, "{order:?}: {mean} of {even}");
    }
}

/// Largest gradient (mT/m) and slew rate (T/m/s) of points in cycles/m, by differences, starting from rest.
fn demands(points: &[[f64; 2]], dwell_us: f64) -> (f64, f64) {
    let dwell = dwell_us * 1e-6;
    let gamma = GAMMA_MHZ_PER_T * 1e6;
    let gradients: Vec<[f64; 2]> =
        points.windows(2).map(|w| [0, 1].map(|a| (w[1][a] - w[0][a]) / dwell / gamma)).collect();
    let largest = |v: &mut dyn Iterator<Item = [f64; 2]>| v.map(|g| g[0].hypot(g[1])).fold(0.0, f64::max);
    let slew = largest(&mut gradients.windows(2).map(|w| [0, 1].map(|a| (w[1][a] - w[0][a]) / dwell)));
    // From rest, the mean gradient of the first dwell is at most half the slew rate times the dwell.
    let start = gradients.first().map_or(0.0, |g| 2.0 * g[0].hypot(g[1]) / dwell);
    (largest(&mut gradients.iter().copied()) * 1e3, slew.max(start))
}

#[test]
fn spirals_respect_and_use_the_gradient_and_slew_limits() {
    for (fov, n, interleaves, gradient, slew, dwell) in [
        (220.0, 256.0, 16, 40.0, 150.0, 4.0),
        (240.0, 64.0, 1, 30.0, 120.0, 5.0),
        (300.0, 192.0, 48, 22.0, 200.0, 2.0),
        (200.0, 128.0, 8, 80.0, 40.0, 2.5),
    ] {
        let hardware = Hardware { gradient_mt_m: gradient, slew_t_m_s: slew, dwell_us: dwell };
        let k_max = n / (2.0 * fov * 1e-3);
        let readout = spiral_readout(fov, k_max, interleaves, &hardware).unwrap();
        let (g, s) = demands(&readout.points, dwell);
        println!(
            "FOV {fov} n {n} M {interleaves}: {} samples, {g:.2} mT/m, {s:.1} T/m/s",
            readout.points.len()
        );
        assert!(g <= gradient * 1.0001 && g <= readout.gradient_mt_m * 1.0001, "{g}");
        assert!(s <= slew * 1.001, "{s}");
        assert!(s > 0.97 * slew, "the slew rate is used: {s}");
        let radius = |p: &[f64; 2]| p[0].hypot(p[1]);
        let last = radius(readout.points.last().unwrap());
        assert!(last <= k_max && last > k_max - 1.5e3 / fov);
        for pair in readout.points.windows(2) {
            // No gaps along the readout, and always outward.
            let step = (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]) * fov * 1e-3;
            assert!(step <= 1.0001 && radius(&pair[1]) > radius(&pair[0]));
        }
        // Turns of all interleaves are one cycle per field of view apart: r = λθ with λ = M/(2π FOV).
        let mut turned = 0.0;
        for pair in readout.points.windows(2).skip(1) {
            let cross = pair[0][0] * pair[1][1] - pair[0][1] * pair[1][0];
            let dot = pair[0][0] * pair[1][0] + pair[0][1] * pair[1][1];
            turned += cross.atan2(dot);
        }
        let grown = last - radius(&readout.points[1]);
        let spacing = grown / turned * 2.0 * PI / interleaves as f64 * fov * 1e-3;
        assert!((spacing - 1.0).abs() < 1e-9, "{spacing}");
    }
}

#[test]
fn spirals_that_cannot_be_played_are_refused() {
    let weak = Hardware { gradient_mt_m: 0.01, ..Hardware::default() };
    assert!(spiral_readout(220.0, 1000.0, 1, &weak).is_err());
    assert!(spiral_readout(220.0, 1000.0, 0, &Hardware::default()).is_err());
    assert!(spiral_readout(-1.0, 1000.0, 4, &Hardware::default()).is_err());
    let broken = Hardware { slew_t_m_s: f64::NAN, ..Hardware::default() };
    assert!(spiral_readout(220.0, 1000.0, 4, &broken).is_err());
}

#[test]
fn echo_trains_alternate_sample_their_ramps_and_respect_the_limits() {
    for (n, fov, shots) in [(64usize, 220.0, 1usize), (33, 200.0, 2), (128, 240.0, 4)] {
        let g = grid(2, [n, n, 1], fov);
        let hardware = Hardware { gradient_mt_m: 35.0, slew_t_m_s: 150.0, dwell_us: 2.0 };
        let layout = Sampling::Epi { shots }.layout(&g, &hardware, 0, 0).unwrap();
        assert_eq!(layout.shots.len(), n);
        let mut lines: Vec<u16> = layout.shots.iter().map(|s| s.counters.step_1).collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..n as u16).collect::<Vec<_>>());
        for train in 0..shots {
            let of_train = layout.shots.iter().filter(|s| usize::from(s.counters.segment) == train);
            for (echo, shot) in of_train.enumerate() {
                let reverse = echo % 2 == 1;
                assert_eq!(shot.flags.contains(Flags::REVERSE), reverse);
                let x = shot.points.column(0);
                let rising = x.windows(2).into_iter().all(|w| w[1] > w[0]);
                let falling = x.windows(2).into_iter().all(|w| w[1] < w[0]);
                assert_eq!((rising, falling), (!reverse, reverse));
                let edge = 0.5 * n as f64;
                assert!(x[0].abs() > edge - 1.0 && x[x.len() - 1].abs() > edge - 1.0);
                assert!((x[0] + x[x.len() - 1]).abs() < 1e-9, "symmetric");
                let metres: Vec<[f64; 2]> = x.iter().map(|k| [(k + edge) / (fov * 1e-3), 0.0]).collect();
                if !reverse {
                    let gamma = GAMMA_MHZ_PER_T * 1e6;
                    let largest = |order: usize, scale: f64| {
                        let difference = |w: &[[f64; 2]]| match order {
                            1 => w[1][0] - w[0][0],
                            _ => w[2][0] - 2.0 * w[1][0] + w[0][0],
                        };
                        metres
                            .windows(order + 1)
                            .map(|w| difference(w).abs() / scale / gamma)
                            .fold(0.0, f64::max)
                    };
                    let (gradient, slew) = (largest(1, 2e-6) * 1e3, largest(2, 4e-12));
                    // Short lines end in a triangle whose top the slew rate sets: √(area · slew).
                    let area = n as f64 / (fov * 1e-3) / gamma;
                    let top = 35f64.min(hardware.readout_gradient(fov)).min((area * 150.0).sqrt() * 1e3);
                    assert!(gradient <= top * 1.0001 && gradient > 0.97 * top, "{gradient} of {top}");
                    assert!(slew <= 150.001 && slew > 149.9, "{slew}");
                    // Ramp samples are closer together than samples of the flat top.
                    let middle = (x[x.len() / 2] - x[x.len() / 2 - 1]).abs();
                    assert!((x[1] - x[0]).abs() < 0.5 * middle && middle <= 1.0 + 1e-9);
                }
            }
        }
    }
}

#[test]
fn impossible_layouts_are_refused() {
    let flat = grid(2, [16, 16, 1], 200.0);
    let solid = grid(3, [16, 16, 16], 200.0);
    let hardware = Hardware::default();
    let refused = |sampling: Sampling, g: &Grid| sampling.layout(g, &hardware, 0, 0).is_err();
    assert!(refused(Sampling::Radial { spokes: 0, angles: SpokeAngles::Uniform }, &flat));
    assert!(refused(Sampling::Radial { spokes: 70_000, angles: SpokeAngles::Uniform }, &flat));
    assert!(refused(Sampling::Radial { spokes: 8, angles: SpokeAngles::Uniform }, &solid));
    assert!(refused(Sampling::Kooshball { spokes: 8, order: SphereOrder::Spiral }, &flat));
    assert!(refused(Sampling::Spiral { interleaves: usize::MAX, acceleration: 2 }, &flat));
    assert!(refused(Sampling::Spiral { interleaves: 0, acceleration: 1 }, &flat));
    assert!(refused(Sampling::Epi { shots: 17 }, &flat));
    assert!(refused(Sampling::Random { shots: 0, samples: 3 }, &flat));
    let uniform =
        |ry, rz| Sampling::Cartesian(CartesianPattern::Uniform { acceleration: [ry, rz], calibration: 0 });
    assert!(refused(uniform(0, 1), &flat));
    assert!(refused(uniform(1, 2), &flat));
    assert!(!refused(uniform(2, 2), &solid));
    assert!(refused(Sampling::Cartesian(CartesianPattern::Full), &Grid { matrix: [0, 4, 1], ..flat }));
    assert!(refused(
        Sampling::Cartesian(CartesianPattern::Full),
        &Grid { fov_mm: [f64::NAN, 4.0, 1.0], ..flat }
    ));
    assert!(refused(Sampling::Cartesian(CartesianPattern::Full), &Grid { dims: 4, ..flat }));
}

#[test]
fn lines_beyond_the_most_points_are_refused_before_they_are_made() {
    // One line of the pattern, and all others for calibration.
    let all = CartesianPattern::Uniform { acceleration: [4096, 4096], calibration: 4096 };
    for (sampling, grid) in [
        (Sampling::Cartesian(all), grid(3, [4096; 3], 220.0)),
        (Sampling::Cartesian(CartesianPattern::Full), grid(3, [4096; 3], 220.0)),
        (Sampling::StackOfStars { spokes: 65_535, angles: SpokeAngles::Golden }, grid(3, [4096; 3], 220.0)),
    ] {
        let Err(Error::Value { expected, found, .. }) = sampling.layout(&grid, &Hardware::default(), 4, 0)
        else {
            panic!("{sampling:?}");
        };
        assert_eq!(expected, "at most 268435456 points", "{sampling:?}: {found}");
    }
}
