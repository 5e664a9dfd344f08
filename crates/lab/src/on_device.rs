//! The search on a device.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};
use rayspin_tune::wisdom::{self, Foreseen, Key, Trial};
use rayspin_tune::{Config, Session, source_of, source_of_texts, sources};

use crate::foresee::{Bounds, Foresight};
use crate::measure::{Protocol, measure};
use crate::search::Evaluate;

/// How much slower than the best the fastest of a few rounds may be before a configuration is given up.
const RACE: f64 = 1.15;

/// One rung of a session, to be searched.
pub struct OnDevice<'a> {
    session: &'a mut dyn Session,
    device: &'a Device,
    rung: usize,
    bounds: Bounds,
    protocol: Protocol,
    foresight: Foresight,
}

impl<'a> OnDevice<'a> {
    /// The rung with this number.
    pub fn new(session: &'a mut dyn Session, device: &'a Device, rung: usize, bounds: Bounds) -> Self {
        let protocol = Protocol { rounds: 9, budget: 0.5, ..Protocol::default() };
        Self { session, device, rung, bounds, protocol, foresight: Foresight::default() }
    }

    /// What results belong to. `ladder` is the algorithm's name. Errors: those of a run with the default configuration.
    pub fn key(&mut self, ladder: &str) -> Result<Key> {
        let (kind, sizes) = self.session.key();
        let (device, driver) = wisdom::identity(self.device);
        let rung = self.session.rungs().get(self.rung).map(|r| r.name).unwrap_or_default().to_owned();
        Ok(Key { ladder: ladder.to_owned(), rung, source: self.source()?, device, driver, kind, sizes })
    }

    /// The hash of the sources of the variant's programs, or of those that the default configuration launches; on a CPU of the version
    /// of Rayspin.
    fn source(&mut self) -> Result<String> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Ok(source_of(&[])) };
        let rung = self.session.rungs().get(self.rung);
        let sources = rung.map(|rung| sources(&rung.forms)).unwrap_or_default();
        if !sources.is_empty() {
            return Ok(source_of(&sources));
        }
        let config =
            self.session.rungs().get(self.rung).map(|r| r.space.default_config()).unwrap_or_default();
        let launched = cuda.launches(|| self.session.run(self.rung, &config, 0))?;
        Ok(source_of_texts(launched.iter().map(|l| l.program.text.as_str())))
    }
}

/// What belongs to a configuration, not to the machine: a launch or a compilation that is refused.
fn is_of_config(error: &Error) -> bool {
    !matches!(error, Error::Interrupted)
}

impl Evaluate for OnDevice<'_> {
    fn foresee(&mut self, config: &Config) -> Result<std::result::Result<Option<Foreseen>, String>> {
        let Backend::Cuda(cuda) = self.device.backend() else { return Ok(Ok(None)) };
        let launched = cuda.launches(|| self.session.run(self.rung, config, 0));
        match launched.and_then(|launched| self.device.synchronize().map(|()| launched)) {
            Ok(launched) => {
                let rung = self.session.rungs().get(self.rung).filter(|r| r.foreseeable);
                let Some(work) = rung.map(|r| r.work) else { return Ok(Ok(None)) };
                self.foresight.of(self.device, &launched, &work, &self.bounds).map(Ok)
            }
            Err(error) if is_of_config(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn evaluate(&mut self, config: &Config, best: Option<f64>) -> Result<Trial> {
        let tolerance = self.session.rungs().get(self.rung).map_or(0.0, |r| r.tolerance);
        let rung = self.rung;
        let mut run = || -> Result<Trial> {
            let error = self.session.verify(rung, config)?;
            if error.is_nan() || error > tolerance {
                return Ok(Trial::Failed(format!("error {error:.2e}, at most {tolerance:.0e} is allowed")));
            }
            if let Some(best) = best {
                let few = Protocol { rounds: 3, budget: 0.1, ..self.protocol };
                let quick = measure(self.device, &few, |turn| self.session.run(rung, config, turn))?;
                if quick.low > RACE * best {
                    return Ok(Trial::Slow { seconds: quick.low });
                }
            }
            let timing = measure(self.device, &self.protocol, |turn| self.session.run(rung, config, turn))?;
            Ok(Trial::Timed { seconds: timing.median, error })
        };
        match run() {
            Err(error) if is_of_config(&error) => Ok(Trial::Failed(error.to_string())),
            other => other,
        }
    }
}
