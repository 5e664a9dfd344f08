//! Tuning on a device, and the configurations that the library takes without being asked.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Program, Source};
use rayspin_device::{Backend, Device};

use crate::algorithm::Algorithm;
use crate::build::sources;
use crate::foresee::{Bounds, Foreseen, Foresight};
use crate::ladder::Session;
use crate::measure::{Protocol, measure};
use crate::search::{Evaluate, Trial};
use crate::space::{Config, Space};
use crate::wisdom::{self, Basis, Key, Wisdom};

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
        let mut texts: Vec<&str> = launched.iter().map(|l| l.program.text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        Ok(hash(&texts))
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

fn hash(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The hash that results belong to, of the programs that a variant launches; without any, of this version of Rayspin.
pub fn source_of(sources: &[&'static Source]) -> String {
    if sources.is_empty() {
        return format!("rayspin {}", env!("CARGO_PKG_VERSION"));
    }
    let mut texts: Vec<String> = sources.iter().map(|source| Program::new(source, &[]).text).collect();
    texts.sort_unstable();
    texts.dedup();
    hash(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

static WISDOM: LazyLock<Wisdom> =
    LazyLock::new(|| wisdom::file().and_then(|path| Wisdom::open(&path).ok()).unwrap_or_default());

/// Algorithms and variants that anything is known of: who has none asks no further.
static KNOWN: LazyLock<HashSet<(&'static str, &'static str)>> =
    LazyLock::new(|| WISDOM.records().iter().map(|r| (r.key.ladder.as_str(), r.key.rung.as_str())).collect());

/// Configurations by device, algorithm, variant and problem.
type Chosen = HashMap<(String, &'static str, &'static str, String), Option<Config>>;

/// The configuration of the variant `rung` of an algorithm for a problem: the best of what `rayspin tune` measured on this
/// device, else the default of its space; of a name that no row has, none.
///
/// The file of results is read once a process. Results of a GPU belong to the sources of the variant's programs.
pub fn tuned<A: Algorithm>(
    algorithm: &A,
    problem: &A::Problem,
    rung: &'static str,
    device: &Device,
) -> Config {
    let Some(row) = algorithm.variants(problem).into_iter().find(|row| row.name == rung) else {
        return Config::default();
    };
    let key = || algorithm.key(problem);
    let space = || (row.space)(problem);
    tuned_as((algorithm.about().name, rung), key, space, device, || sources(&(row.forms)()))
        .unwrap_or_else(|| space().default_config())
}

/// The same by the names of algorithm and variant, what [`Algorithm::key`] gives, space and sources, for who has no problem at hand; `None`
/// where nothing was measured that says anything.
pub fn tuned_as(
    (ladder, rung): (&'static str, &'static str),
    key: impl FnOnce() -> (String, Vec<usize>),
    space: impl FnOnce() -> Space,
    device: &Device,
    sources: impl FnOnce() -> Vec<&'static Source>,
) -> Option<Config> {
    static CHOSEN: LazyLock<Mutex<Chosen>> = LazyLock::new(Mutex::default);
    if !KNOWN.contains(&(ladder, rung)) {
        return None;
    }
    let (name, driver) = wisdom::identity(device);
    let (kind, sizes) = key();
    let entry = (name.clone(), ladder, rung, format!("{kind} {sizes:?}"));
    if let Some(config) = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).get(&entry) {
        return config.clone();
    }
    let source = source_of(&sources());
    let key =
        Key { ladder: ladder.to_owned(), rung: rung.to_owned(), source, device: name, driver, kind, sizes };
    let (config, basis) = WISDOM.best(&key, &space());
    let config = (basis != Basis::Default).then_some(config);
    CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(entry, config.clone());
    config
}
