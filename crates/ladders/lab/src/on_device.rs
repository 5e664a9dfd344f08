//! The search on a device.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};
use rayspin_tune::wisdom::{self, CostEstimate, Key, Trial};
use rayspin_tune::{Config, Session, source_of, source_of_texts, sources};

use crate::cost_model::{Bounds, CostModel};
use crate::measure::{Protocol, measure};
use crate::search::Evaluate;

/// How much slower than the best the fastest of a few rounds may be before a configuration is given up.
const RACE: f64 = 1.15;

/// One variant of a session, to be searched.
pub struct OnDevice<'a> {
    session: &'a mut dyn Session,
    device: &'a Device,
    variant: usize,
    bounds: Bounds,
    protocol: Protocol,
    cost_model: CostModel,
}

impl<'a> OnDevice<'a> {
    /// The variant with this number.
    pub fn new(session: &'a mut dyn Session, device: &'a Device, variant: usize, bounds: Bounds) -> Self {
        let protocol = Protocol { rounds: 9, budget: 0.5, ..Protocol::default() };
        Self { session, device, variant, bounds, protocol, cost_model: CostModel::default() }
    }

    /// What results belong to. `ladder` is the algorithm's name. Errors: a run with the default configuration
    /// fails.
    pub fn key(&mut self, ladder: &str) -> Result<Key> {
        let (kind, sizes) = self.session.key();
        let (device, driver) = wisdom::identity(self.device);
        let variant =
            self.session.variants().get(self.variant).map(|r| r.name).unwrap_or_default().to_owned();
        Ok(Key { ladder: ladder.to_owned(), variant, source: self.source()?, device, driver, kind, sizes })
    }

    /// The hash of the sources of the variant's programs, or of those that the default configuration
    /// launches; on a CPU of the version of Rayspin.
    fn source(&mut self) -> Result<String> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Ok(source_of(&[])) };
        let variant = self.session.variants().get(self.variant);
        let sources = variant.map(|variant| sources(&variant.forms)).unwrap_or_default();
        if !sources.is_empty() {
            return Ok(source_of(&sources));
        }
        let config =
            self.session.variants().get(self.variant).map(|r| r.space.default_config()).unwrap_or_default();
        let launched = cuda.launches(|| self.session.run(self.variant, &config, 0))?;
        Ok(source_of_texts(launched.iter().map(|l| l.program.text.as_str())))
    }
}

/// What belongs to a configuration, not to the machine: a launch or a compilation that is refused.
fn is_of_config(error: &Error) -> bool {
    !matches!(error, Error::Interrupted)
}

impl Evaluate for OnDevice<'_> {
    fn estimate(&mut self, config: &Config) -> Result<std::result::Result<Option<CostEstimate>, String>> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Ok(Ok(None)) };
        let launched = cuda.launches(|| self.session.run(self.variant, config, 0));
        match launched.and_then(|launched| self.device.synchronize().map(|()| launched)) {
            Ok(launched) => {
                let variant = self.session.variants().get(self.variant).filter(|r| r.predictable);
                let Some(work) = variant.map(|r| r.work) else { return Ok(Ok(None)) };
                self.cost_model.of(self.device, &launched, &work, &self.bounds).map(Ok)
            }
            Err(error) if is_of_config(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn evaluate(&mut self, config: &Config, best: Option<f64>) -> Result<Trial> {
        let tolerance = self.session.variants().get(self.variant).map_or(0.0, |r| r.tolerance);
        let variant = self.variant;
        let mut run = || -> Result<Trial> {
            let error = self.session.verify(variant, config)?;
            if error.is_nan() || error > tolerance {
                return Ok(Trial::Failed(format!("error {error:.2e}, at most {tolerance:.0e} is allowed")));
            }
            if let Some(best) = best {
                let few = Protocol { rounds: 3, budget: 0.1, ..self.protocol };
                let quick = measure(self.device, &few, |turn| self.session.run(variant, config, turn))?;
                if quick.low > RACE * best {
                    return Ok(Trial::Slow { seconds: quick.low });
                }
            }
            let timing =
                measure(self.device, &self.protocol, |turn| self.session.run(variant, config, turn))?;
            Ok(Trial::Timed { seconds: timing.median, error })
        };
        match run() {
            Err(error) if is_of_config(&error) => Ok(Trial::Failed(error.to_string())),
            other => other,
        }
    }
}
