//! GRAPPA: missing lines of a regularly undersampled grid from their neighbours, then inverse FFT.
//!
//! ```text
//! s_j(k) = Σ_{i,δ} w_{jiδ} s_i(k + δ),   w from calibration lines by least squares
//! ```
//!
//! Griswold et al., *Generalized autocalibrating partially parallel acquisitions (GRAPPA)*, Magn Reson Med
//! 47:1202, 2002; [`crate::grappa`] does it.

use std::cell::OnceCell;
use std::rc::Rc;

use ndarray::ArrayD;
use rayspin_core::{Error, Result};
use rayspin_run::{Bytes, Cost, Memory, Step};

use super::{About, Combine, MapUse, Method, SampleKind, Uses, direct, shared};
use crate::encoding::{Grid, Solving, Spec};
use crate::grappa::{grappa, plan_filling};
use crate::params;
use crate::partial::PartialFourier;

params! {
    /// Missing lines of a regularly undersampled grid from their neighbours ([`crate::grappa`]), then inverse
    /// FFT.
    pub struct Grappa {
        /// How coil images become one; by what is given when absent.
        combine: Option<Combine> = None => shared::COMBINE,
        /// How the missing side of k-space is filled in (partial Fourier). By default
        /// [`PartialFourier::Pocs`] if one side of the centre is measured farther than the other.
        partial_fourier: Option<PartialFourier> = None => shared::PARTIAL_FOURIER,
    }
}

fn fill(grid: Grid<'_>, state: &mut Solving<'_>) -> Result<ArrayD<bool>> {
    let lines = match grid.calibration {
        Some(lines) => Some((state.prepared(lines.kspace.view().into())?, &lines.sampled)),
        None => None,
    };
    let kspace = state.take_all_samples()?;
    let lines = lines.as_ref().map(|(own, offset)| (own, *offset));
    let filled = grappa(state.device(), kspace, grid.sampled, lines)?;
    state.note(format!(
        "GRAPPA: acceleration {} along y and {} along z, weights from {} calibration lines",
        filled.acceleration[1], filled.acceleration[0], filled.calibration
    ));
    state.put_samples(filled.kspace);
    Ok(filled.sampled)
}

/// What filling takes, and where k-space is known then.
fn filling(spec: &Spec<'_>, grid: Grid<'_>) -> (Cost, Option<ArrayD<bool>>) {
    let lines = grid.calibration.map(|lines| &lines.sampled);
    let Some(filling) = plan_filling(spec.device(), grid.sampled, lines, spec.coils()) else {
        return (Cost::default(), None);
    };
    let calibrated = match grid.calibration {
        Some(lines) => 8 * (spec.coils() * lines.sampled.len()) as u64,
        None => 0,
    };
    // It takes all coils at once.
    let samples = Memory::held(spec.arrays(spec.samples_to_come()));
    let passing = match spec.on_gpu() {
        true => Bytes { gpu: calibrated + filling.gpu, host: filling.host },
        false => Bytes::host(calibrated + filling.host),
    };
    (Cost::of(samples.then(Memory::temporary(passing))), Some(filling.sampled))
}

impl Method for Grappa {
    fn about(&self) -> About {
        About {
            name: "grappa",
            help: "Missing lines of a regularly undersampled grid from their neighbours, then inverse FFT",
        }
    }

    fn uses(&self) -> Uses {
        Uses { samples: SampleKind::Grid, ..Uses::new(MapUse::Combining(self.combine)) }
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let how = self.partial_fourier;
        let grid = spec.expect_grid()?;
        // Where k-space is known, from the first step to the second.
        let sampled: Rc<OnceCell<ArrayD<bool>>> = Rc::default();
        let [filled, stated, known] = [sampled.clone(), sampled.clone(), sampled.clone()];
        let missing = || Error::value("GRAPPA", "lines that were filled", "none");
        Ok(vec![
            Step::new("GRAPPA", move |state, _| {
                let _ = filled.set(fill(grid, state)?);
                Ok(())
            })
            .needs(move || {
                let (needs, sampled) = filling(spec, grid);
                let _ = stated.set(sampled.unwrap_or_else(|| grid.sampled.clone()));
                Ok(needs)
            }),
            Step::new("inverse FFT", move |state, _| {
                direct::transform(spec, known.get().ok_or_else(missing)?, how, state)
            })
            .needs(move || direct::needs(spec, sampled.get().ok_or_else(missing)?, how)),
        ])
    }
}
