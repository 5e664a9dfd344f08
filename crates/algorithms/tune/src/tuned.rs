//! Chooses the configurations of variants: the best one that was measured on a device, else the default of
//! the row.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use rayspin_device::Device;
use rayspin_device::cuda::{Program, Source};

use crate::algorithm::Algorithm;
use crate::build::sources;
use crate::space::{Config, Space};
use crate::variant::Variant;
use crate::wisdom::{self, Basis, Key, Wisdom};

/// The hash that results belong to, of the programs that a variant launches; without any, of this version of
/// Rayspin.
pub fn source_of(sources: &[&'static Source]) -> String {
    if sources.is_empty() {
        return format!("rayspin {}", env!("CARGO_PKG_VERSION"));
    }
    let texts: Vec<String> = sources.iter().map(|source| Program::new(source, &[]).text).collect();
    source_of_texts(texts.iter().map(String::as_str))
}

/// The same of the texts of programs, in any order.
pub fn source_of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut texts: Vec<&str> = texts.into_iter().collect();
    texts.sort_unstable();
    texts.dedup();
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

static WISDOM: LazyLock<Wisdom> =
    LazyLock::new(|| wisdom::file().and_then(|path| Wisdom::open(&path).ok()).unwrap_or_default());

/// Algorithms and variants that anything is known of: who has none asks no further.
static KNOWN: LazyLock<HashSet<(&'static str, &'static str)>> = LazyLock::new(|| {
    WISDOM.records().iter().map(|r| (r.key.ladder.as_str(), r.key.variant.as_str())).collect()
});

/// Configurations by device, algorithm, variant and problem.
type Chosen = HashMap<(String, &'static str, &'static str, String), Option<Config>>;

/// The configuration of a row of an algorithm for a problem: the best of what `rayspin-ladder tune` measured
/// on this device, else the default of the row's space.
///
/// The file of results is read once a process. Results of a GPU belong to the sources of the row's programs.
pub fn tuned<A: Algorithm, I>(
    algorithm: &A,
    problem: &A::Problem,
    row: &Variant<A::Problem, I>,
    device: &Device,
) -> Config {
    let space = || (row.space)(problem);
    tuned_as(algorithm.about().name, row, || algorithm.key(problem), space, device)
        .unwrap_or_else(|| space().default_config())
}

/// The same by the name of the algorithm, what [`Algorithm::key`] gives and a space, for who has no problem
/// at hand; `None` where nothing was measured that says anything.
pub fn tuned_as<P, I>(
    ladder: &'static str,
    row: &Variant<P, I>,
    key: impl FnOnce() -> (String, Vec<usize>),
    space: impl FnOnce() -> Space,
    device: &Device,
) -> Option<Config> {
    static CHOSEN: LazyLock<Mutex<Chosen>> = LazyLock::new(Mutex::default);
    let variant = row.name;
    if !KNOWN.contains(&(ladder, variant)) {
        return None;
    }
    let (name, driver) = wisdom::identity(device);
    let (kind, sizes) = key();
    let entry = (name.clone(), ladder, variant, format!("{kind} {sizes:?}"));
    if let Some(config) = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).get(&entry) {
        return config.clone();
    }
    let source = source_of(&sources(&(row.forms)()));
    let key = Key {
        ladder: ladder.to_owned(),
        variant: variant.to_owned(),
        source,
        device: name,
        driver,
        kind,
        sizes,
    };
    let (config, basis) = WISDOM.best(&key, &space());
    let config = (basis != Basis::Default).then_some(config);
    CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(entry, config.clone());
    config
}
