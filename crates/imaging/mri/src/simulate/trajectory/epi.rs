use ndarray::Array2;
use rayspin_core::{Error, Result};

use super::{
    COUNTER_LIMIT, Grid, Hardware, Layout, Shot, cycles_per_metre, expect_count, expect_total, limits,
};
use crate::scan::{Counters, Flags, TrajectoryKind};

/// A gradient lobe of given area that starts and ends at 0: rise, flat top, fall at the slew limit; a
/// triangle where the area is small.
pub(super) struct Trapezoid {
    /// Top amplitude, cycles/m/s.
    pub(super) top: f64,
    /// Duration of each ramp, s.
    pub(super) ramp: f64,
    /// Duration of the flat top, s.
    pub(super) flat: f64,
}

impl Trapezoid {
    /// The shortest for `area` (cycles/m) under `top` (cycles/m/s) and `slew` (cycles/m/s²).
    pub(super) fn new(area: f64, top: f64, slew: f64) -> Self {
        let top = top.min((area * slew).sqrt());
        let ramp = top / slew;
        Self { top, ramp, flat: (area / top - ramp).max(0.0) }
    }

    pub(super) fn duration(&self) -> f64 {
        2.0 * self.ramp + self.flat
    }

    /// Area up to time t.
    pub(super) fn area(&self, t: f64) -> f64 {
        let rising = |t: f64| 0.5 * self.top * t * t / self.ramp;
        let whole = self.top * (self.ramp + self.flat);
        if t <= 0.0 {
            0.0
        } else if t < self.ramp {
            rising(t)
        } else if t <= self.ramp + self.flat {
            self.top * (t - 0.5 * self.ramp)
        } else if t < self.duration() {
            whole - rising(self.duration() - t)
        } else {
            whole
        }
    }
}

/// Echo trains: one acquisition a line, odd lines of each train backwards, samples in time order.
///
/// The readout lobe sweeps −n/2 … n/2 along x, and the receiver runs during its ramps too, so samples lie
/// closer together at the ends of a line. Blips along y are played between the lobes, while nothing is
/// sampled. Train s of S plays the lines s, s + S, …
pub(super) fn trains(grid: &Grid, hardware: &Hardware, trains: usize) -> Result<Layout> {
    let [nx, ny, _] = grid.matrix;
    expect_count("echo trains", trains, ny)?;
    let [fov_x, fov_y] = [grid.fov_mm[0] * 1e-3, grid.fov_mm[1] * 1e-3];
    let slew = cycles_per_metre(hardware.slew_t_m_s * 1e3);
    let top = cycles_per_metre(hardware.readout_gradient(grid.fov_mm[0]));
    let lobe = Trapezoid::new(nx as f64 / fov_x, top, slew);
    let blip = Trapezoid::new(trains as f64 / fov_y, cycles_per_metre(hardware.gradient_mt_m), slew);
    let dwell = hardware.dwell_us * 1e-6;
    let samples = (lobe.duration() / dwell).floor();
    if !(samples >= nx as f64 && samples <= COUNTER_LIMIT as f64) {
        return Err(Error::value(
            "samples of an echo-planar line",
            format!("{nx} to {COUNTER_LIMIT} (dwell time in µs)"),
            format!("{samples} at {} µs", hardware.dwell_us),
        ));
    }
    let samples = samples as usize;
    expect_total("echo-planar lines", ny, samples)?;
    // The window is centred on the lobe, so that forward and backward lines mirror each other.
    let margin = 0.5 * (lobe.duration() - (samples - 1) as f64 * dwell);
    let line: Vec<f64> =
        (0..samples).map(|i| lobe.area(margin + i as f64 * dwell) * fov_x - 0.5 * nx as f64).collect();
    let mut shots = Vec::with_capacity(ny);
    for train in 0..trains {
        for (echo, y) in (train..ny).step_by(trains).enumerate() {
            let sign = if echo % 2 == 1 { -1.0 } else { 1.0 };
            let points = Array2::from_shape_fn((samples, 2), |(i, axis)| {
                if axis == 0 { sign * line[i] } else { y as f64 - (ny / 2) as f64 }
            });
            shots.push(Shot {
                flags: if echo % 2 == 1 { Flags::REVERSE } else { Flags::default() },
                counters: Counters { step_1: y as u16, segment: train as u16, ..Counters::default() },
                centre_sample: samples / 2,
                points,
            });
        }
    }
    Ok(Layout {
        kind: TrajectoryKind::Epi,
        on_grid: false,
        shots,
        step_1: limits(ny, ny / 2),
        step_2: limits(1, 0),
        acceleration: None,
        notes: vec![format!(
            "echo-planar lines: {samples} samples, {:.0} µs ramps and {:.0} µs flat top at {:.1} mT/m, echo spacing {:.0} µs",
            lobe.ramp * 1e6,
            lobe.flat * 1e6,
            lobe.top / cycles_per_metre(1.0),
            (lobe.duration() + blip.duration()) * 1e6
        )],
    })
}
