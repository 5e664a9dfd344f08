//! Beam hardening: soft X-rays are absorbed first, so that thick objects seem to attenuate less.
//!
//! ```text
//! p' = p + a₂ p² + a₃ p³                      with coefficients, or
//! p' = q   where s(q) = p                     with a tube's voltage
//! ```
//!
//! s(q) is what water whose line integral at 60 keV is q attenuates of the spectrum of [`Spectrum::tube`]:
//! the correction makes an object of water exact, in units of 60 keV. Bone hardens the beam more than water
//! does, and stays corrected in part.
//!
//! G. T. Herman, *Correction for beam hardening in computed tomography*, Phys Med Biol 24:81, 1979.

use ndarray::Axis;
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::Device;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Correction, GROUP, Views, missing};
use crate::simulate::Spectrum;

/// Places of the table of s⁻¹. Its error is below 1e-6 of the largest line integral.
const PLACES: usize = 2048;

const fn coefficient(help: &'static str) -> Param {
    Param::new(GROUP, help)
        .expects("-100 to 100", |v| matches!(v, Value::Number(a) if (-100.0..=100.0).contains(a)))
        .remedies(&[(
            &["hardening"],
            "`--hardening-2` and `--hardening-3` are coefficients; `--tube` is the voltage for water",
        )])
}

params! {
    /// Line integrals as rays of one energy would have them.
    pub struct Hardening {
        /// a₂.
        hardening_2: f64 = 0.0 => coefficient("Coefficient of the line integral's square, for beam hardening"),
        /// a₃.
        hardening_3: f64 = 0.0 => coefficient("Coefficient of the line integral's cube, for beam hardening"),
        /// The tube's voltage, kV, of the correction for water.
        tube: Option<f64> = None => Param::new(GROUP, "Tube voltage in kV: corrects the hardening of the tube's beam by water, instead of coefficients").title("tube voltage")
            .expects("40 to 150 kV", |v| matches!(v, Value::Number(kv) if (40.0..=150.0).contains(kv))),
    }
}

impl Correction for Hardening {
    fn about(&self) -> About {
        About { name: "hardening", help: "Beam hardening, by a polynomial or for water and a tube's voltage" }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Lines
    }

    fn check(&self) -> Result<()> {
        let coefficients = self.hardening_2 != 0.0 || self.hardening_3 != 0.0;
        match (self.tube, coefficients) {
            (None, false) => {
                Err(missing("hardening", "coefficients", "`--hardening-2`, `--hardening-3` or `--tube`"))
            }
            (Some(tube), true) => {
                Err(Error::value("hardening", "coefficients or a tube's voltage", format!("both, {tube} kV")))
            }
            _ => Ok(()),
        }
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let cpu = device.cpu_side();
        let table = self.tube.map(Spectrum::tube).transpose()?.map(|tube| {
            let most = cpu.run(|| {
                views
                    .values
                    .as_slice_memory_order()
                    .unwrap_or_default()
                    .par_iter()
                    .copied()
                    .reduce(|| 0.0, f32::max)
            });
            Inverse::new(&tube, f64::from(most))
        });
        cpu.run(|| {
            let stack: Vec<_> = views.values.axis_iter_mut(Axis(0)).collect();
            stack.into_par_iter().for_each(|mut view| {
                view.mapv_inplace(|p| {
                    let p = f64::from(p);
                    (match &table {
                        Some(table) => table.at(p),
                        None => p * (1.0 + p * (self.hardening_2 + p * self.hardening_3)),
                    }) as f32
                });
            });
        });
        Ok(0)
    }
}

/// s⁻¹ at even places from 0 on; between them cubic through values and slopes.
struct Inverse {
    step: f64,
    /// Values and slopes.
    places: Vec<[f64; 2]>,
}

impl Inverse {
    fn new(tube: &Spectrum, most: f64) -> Self {
        let step = most.max(1e-3) / (PLACES - 1) as f64;
        let slope = |q: f64| {
            let h = 1e-4;
            (tube.seen(q + h, 0.0) - tube.seen(q - h, 0.0)) / (2.0 * h)
        };
        let mut q = 0.0;
        let places = (0..PLACES).map(|index| {
            let wanted = step * index as f64;
            // s is smooth, rises and bends down: Newton's steps from the place before end in a few.
            for _ in 0..20 {
                let change = (wanted - tube.seen(q, 0.0)) / slope(q);
                q += change;
                if change.abs() < 1e-12 * (1.0 + q) {
                    break;
                }
            }
            [q, 1.0 / slope(q)]
        });
        Self { step, places: places.collect() }
    }

    fn at(&self, p: f64) -> f64 {
        // Noise around 0 goes on along the line there.
        if p <= 0.0 {
            return p * self.places[0][1];
        }
        let place = (p / self.step).min((PLACES - 1) as f64);
        let index = (place as usize).min(PLACES - 2);
        let t = place - index as f64;
        let ([a, slope_a], [b, slope_b]) = (self.places[index], self.places[index + 1]);
        let (slope_a, slope_b) = (slope_a * self.step, slope_b * self.step);
        let (square, cube) = (t * t, t * t * t);
        (2.0 * cube - 3.0 * square + 1.0) * a
            + (cube - 2.0 * square + t) * slope_a
            + (3.0 * square - 2.0 * cube) * b
            + (cube - square) * slope_b
    }
}
