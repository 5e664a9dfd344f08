//! Phase retrieval from one distance: X-rays of a coherent source interfere on their way to the detector,
//! which makes edges bright and dark.
//!
//! ```text
//! p' = −ln F⁻¹[ F[e^(−p)] / (1 + π z λ (δ/β) |f|²) ]
//! ```
//!
//! z is the distance from the object to the detector, λ the wavelength, and f the frequency on the detector
//! in 1/mm. The object is made of one material, whose refractive index has the decrement δ and the imaginary
//! part β. p' is the line integral of its attenuation. The rays are parallel.
//!
//! D. Paganin, S. C. Mayo, T. E. Gureyev, P. R. Miller, S. W. Wilkins, *Simultaneous phase and amplitude
//! extraction from a single defocused image of a homogeneous object*, J Microsc 206:33, 2002.

use std::f64::consts::PI;

use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use rayspin_core::{C32, Result, voxels};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::median::reference::mirrored;
use rayspin_run::{About, Param, params};

use super::{ActsOn, Correction, GROUP, Views, missing, positive};

/// hc, keV mm.
const HC: f64 = 1.239_841_984e-6;
/// Lengths √(z λ (δ/β) / 4π) of the filter by which the mirrored margin is wide: e^−6 of it is left there.
const MARGIN: f64 = 6.0;
/// The least transmission whose logarithm is taken.
const LEAST: f32 = 1e-30;

params! {
    /// Phase retrieval from one distance, of an object of one material and parallel rays (Paganin et al., J
    /// Microsc 206:33, 2002).
    pub struct Phase {
        /// Energy of the X-rays, keV.
        energy: Option<f64> = None => Param::new(GROUP, "Energy of the X-rays in keV").title("energy")
            .expects("above 0", positive).absent("no phase retrieval"),
        /// Distance from the object to the detector, mm.
        distance: Option<f64> = None => Param::new(GROUP, "Distance from the object to the detector in mm").title("distance of propagation")
            .expects("above 0", positive).absent("no phase retrieval"),
        /// δ/β of the object.
        delta_beta: Option<f64> = None => Param::new(GROUP, "Ratio δ/β of the object's refractive index").title("ratio of delta to beta")
            .expects("above 0", positive).absent("no phase retrieval"),
    }
}

impl Phase {
    /// z λ (δ/β), mm².
    fn area(&self) -> Result<f64> {
        let stated =
            |value: Option<f64>, param, expected| value.ok_or_else(|| missing("phase", param, expected));
        let energy = stated(self.energy, "energy", "`--energy` in keV")?;
        let distance = stated(self.distance, "distance", "`--distance` in mm")?;
        Ok(distance * HC / energy * stated(self.delta_beta, "ratio", "`--delta-beta`")?)
    }

    /// Rows and columns with their margins, of pixels of this size.
    fn padded(&self, rows: usize, columns: usize, pixel_mm: [f64; 2]) -> Result<[usize; 2]> {
        let length = MARGIN * (self.area()? / (4.0 * PI)).sqrt();
        let wide = |count: usize, pixel: f64| match count {
            // One row shows nothing along rows.
            1 => 1,
            _ => {
                let margin = ((length / pixel).ceil() + 1.0).min(count as f64) as usize;
                quick(count + 2 * margin)
            }
        };
        Ok([wide(rows, pixel_mm[1]), wide(columns, pixel_mm[0])])
    }
}

/// The next length of factors 2, 3 and 5, whose transform is quick.
fn quick(length: usize) -> usize {
    let smooth = |mut n: usize| {
        for factor in [2, 3, 5] {
            while n.is_multiple_of(factor) {
                n /= factor;
            }
        }
        n == 1
    };
    (length..).find(|n| smooth(*n)).unwrap_or(length)
}

impl Correction for Phase {
    fn about(&self) -> About {
        About {
            name: "phase",
            help: "Phase retrieval from one distance, parallel rays (Paganin et al. 2002)",
        }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Lines
    }

    fn check(&self) -> Result<()> {
        self.area().map(|_| ())
    }

    fn bytes(&self, [views, rows, columns]: [usize; 3], threads: usize) -> u64 {
        // Margins are at most as wide as the view, and complex numbers hold two views.
        let wide = |count: usize| if count == 1 { 1 } else { quick(3 * count) };
        (views.div_ceil(2).min(threads) * 8 * wide(rows) * wide(columns)) as u64
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let pixel_mm =
            views.pixel_mm.ok_or_else(|| missing("phase", "size of a pixel", "`--pixel` in mm"))?;
        let (_, rows, columns) = views.values.dim();
        let padded = self.padded(rows, columns, pixel_mm)?;
        let filter = self.filter(padded, pixel_mm)?;
        let host = device.host();
        let fft = Fft::new(&host, &padded, Norm::Unitary)?;
        let cpu = device.cpu_side();
        let [high, wide] = padded;
        let [above, before] = [(high - rows) / 2, (wide - columns) / 2];
        let mut stack: Vec<ArrayViewMut2<'_, f32>> = views.values.axis_iter_mut(Axis(0)).collect();
        // Two views are one complex image: the filter is real and even, and keeps them apart.
        for some in stack.chunks_mut(2 * cpu.threads()) {
            let pairs = some.len().div_ceil(2);
            let mut images = zeroed("transmissions", voxels(&[pairs, high, wide])?)?;
            let each = images.par_chunks_mut(high * wide).zip(some.par_chunks(2));
            cpu.run(|| {
                each.for_each(|(image, pair)| {
                    let value = |view: &ArrayView2<'_, f32>, row, column| (-view[[row, column]]).exp();
                    let (first, second) = (pair[0].view(), pair.get(1).map(|view| view.view()));
                    for (index, to) in image.iter_mut().enumerate() {
                        let row = mirrored((index / wide) as i64 - above as i64, rows);
                        let column = mirrored((index % wide) as i64 - before as i64, columns);
                        let second = second.as_ref().map_or(0.0, |view| value(view, row, column));
                        *to = C32::new(value(&first, row, column), second);
                    }
                });
            });
            let mut images = Array::from_vec(&host, &[pairs, high, wide], images)?;
            fft.forward(&mut images)?;
            cpu.run(|| {
                images.cpu_mut().par_chunks_mut(high * wide).for_each(|image| {
                    image.iter_mut().zip(&filter).for_each(|(value, factor)| *value *= *factor);
                });
            });
            fft.inverse(&mut images)?;
            let images = images.cpu();
            cpu.run(|| {
                some.par_chunks_mut(2).zip(images.par_chunks(high * wide)).for_each(|(pair, image)| {
                    for (part, view) in pair.iter_mut().enumerate() {
                        for ((row, column), to) in view.indexed_iter_mut() {
                            let value = image[(row + above) * wide + column + before];
                            let left = if part == 0 { value.re } else { value.im };
                            *to = -left.max(LEAST).ln();
                        }
                    }
                });
            });
        }
        Ok(0)
    }
}

impl Phase {
    /// 1 / (1 + π z λ (δ/β) |f|²), frequency 0 in the middle.
    fn filter(&self, [high, wide]: [usize; 2], pixel_mm: [f64; 2]) -> Result<Vec<f32>> {
        let area = self.area()?;
        let square = |index: usize, count: usize, pixel: f64| {
            ((index as f64 - (count / 2) as f64) / (count as f64 * pixel)).powi(2)
        };
        let response = |index: usize| {
            let f = square(index / wide, high, pixel_mm[1]) + square(index % wide, wide, pixel_mm[0]);
            (1.0 / (1.0 + PI * area * f)) as f32
        };
        Ok((0..high * wide).map(response).collect())
    }
}
