//! X-rays of many energies through tissue and bone: beam hardening.

use rayspin_core::{Error, Result};
use serde::Serialize;

/// Energies of the tables, keV.
const ENERGIES: [f64; 9] = [15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0];
/// Mass attenuation coefficients μ/ρ in cm²/g of water, cortical bone (ICRU-44) and aluminium at
/// [`ENERGIES`].
const WATER: [f64; 9] = [1.673, 0.8096, 0.3756, 0.2683, 0.2269, 0.2059, 0.1837, 0.1707, 0.1505];
const BONE: [f64; 9] = [9.032, 4.001, 1.331, 0.6655, 0.4242, 0.3148, 0.2229, 0.1855, 0.1480];
const ALUMINIUM: [f64; 9] = [7.955, 3.441, 1.128, 0.5685, 0.3681, 0.2778, 0.2018, 0.1704, 0.1378];
/// Density of aluminium, g/cm³.
const ALUMINIUM_DENSITY: f64 = 2.699;
/// Thickness of a tube's filter of aluminium, cm.
const FILTER_CM: f64 = 0.6;
/// The energy at which line integrals are given, keV.
pub const REFERENCE_KEV: f64 = 60.0;

/// The energies of an X-ray tube, and how water and bone attenuate each.
///
/// The tube's radiation is Kramers's law behind 6 mm of aluminium, S(E) ∝ (V/E − 1) exp(−μ_Al(E) 6 mm), and
/// the detector counts energy:
///
/// ```text
/// I/I₀ = Σ_E E S(E) exp(−p_w w(E) − p_b b(E)) / Σ_E E S(E),   w(E) = μ_water(E)/μ_water(60 keV),  b alike for bone
/// ```
///
/// where p_w and p_b are the line integrals of what tissue and bone attenuate at 60 keV. A detector's
/// −ln(I/I₀) is then less than p_w +
/// p_b behind thick objects: the beam becomes harder.
///
/// Coefficients: J. H. Hubbell, S. M. Seltzer, *Tables of X-ray mass attenuation coefficients*, NISTIR 5632,
/// 1995, interpolated in logarithms of both.
///
/// ```
/// use rayspin_ct::simulate::Spectrum;
///
/// let tube = Spectrum::tube(120.0)?;
/// // Water first takes what is soft: 2 cm take less than twice as much as 1 cm.
/// let (one, two) = (tube.seen(1.0, 0.0), tube.seen(2.0, 0.0));
/// assert!(two < 2.0 * one && two > one);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spectrum {
    /// The tube's voltage, kV.
    pub kilovolts: f64,
    /// Three numbers for each energy: its share of the signal, w(E) and b(E).
    #[serde(skip)]
    lines: Vec<[f64; 3]>,
}

/// μ/ρ at an energy in keV.
fn coefficient(table: &[f64; 9], energy: f64) -> f64 {
    let above = ENERGIES.iter().take_while(|e| **e <= energy).count().clamp(1, ENERGIES.len() - 1);
    let (low, high) = (ENERGIES[above - 1].ln(), ENERGIES[above].ln());
    let share = (energy.ln() - low) / (high - low);
    ((1.0 - share) * table[above - 1].ln() + share * table[above].ln()).exp()
}

impl Spectrum {
    /// The spectrum of a tube.
    ///
    /// Errors: a voltage that is not between 40 and 150 kV.
    pub fn tube(kilovolts: f64) -> Result<Self> {
        if !(40.0..=150.0).contains(&kilovolts) {
            return Err(Error::value("tube voltage", "40 to 150 kV", kilovolts));
        }
        let (first, step) = (15.0, 1.0);
        let energies = (0..).map(|i| first + step * f64::from(i)).take_while(|e| *e < kilovolts);
        let relative = |table, energy| coefficient(table, energy) / coefficient(table, REFERENCE_KEV);
        let line = |energy: f64| {
            let filtered = (-coefficient(&ALUMINIUM, energy) * ALUMINIUM_DENSITY * FILTER_CM).exp();
            [(kilovolts - energy) * filtered, relative(&WATER, energy), relative(&BONE, energy)]
        };
        let mut lines: Vec<[f64; 3]> = energies.map(line).collect();
        let sum: f64 = lines.iter().map(|line| line[0]).sum();
        lines.iter_mut().for_each(|line| line[0] /= sum);
        Ok(Self { kilovolts, lines })
    }

    /// −ln(I/I₀) behind line integrals of tissue and of bone at 60 keV.
    pub fn seen(&self, tissue: f64, bone: f64) -> f64 {
        -self.lines.iter().map(|[share, w, b]| share * (-tissue * w - bone * b).exp()).sum::<f64>().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_those_of_the_tables_and_between() {
        for (at, energy) in ENERGIES.iter().enumerate() {
            assert!((coefficient(&WATER, *energy) / WATER[at] - 1.0).abs() < 1e-12);
        }
        // NIST has 0.5685 and 0.4242 on both sides of 45 keV; bone is steeper than water.
        let bone = coefficient(&BONE, 45.0);
        assert!(bone < 0.6655 && bone > 0.4242, "{bone}");
    }

    #[test]
    fn thin_objects_are_seen_at_the_mean_energy_and_thick_ones_are_harder() {
        let tube = Spectrum::tube(120.0).unwrap();
        let slope = |p: f64| tube.seen(p, 0.0) / p;
        let mean: f64 = tube.lines.iter().map(|line| line[0] * line[1]).sum();
        assert!((slope(1e-6) - mean).abs() < 1e-4 && mean > 0.9 && mean < 1.3, "{mean}");
        assert!(slope(0.1) > slope(1.0) && slope(1.0) > slope(4.0) && slope(4.0) > 0.7);
        // Bone hardens the beam more.
        let bone = |p: f64| tube.seen(0.0, p) / p;
        assert!(bone(4.0) / bone(1e-6) < slope(4.0) / slope(1e-6));
        assert!(tube.seen(0.0, 0.0).abs() < 1e-12);
        for bad in [39.0, 151.0, f64::NAN] {
            assert!(Spectrum::tube(bad).is_err());
        }
    }
}
