//! The search for the fastest configuration of a space.

use std::collections::HashMap;
use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_tune::input::bits;
use rayspin_tune::wisdom::{CostEstimate, Record, Trial};
use rayspin_tune::{Config, Space};
use serde::Serialize;

use crate::cost_model::pareto;

/// A way to find out about configurations: a device, or a replay of results.
pub trait Evaluate {
    /// Metrics before timing. `Err(Failed)` where the configuration cannot be launched; `Ok(None)` where
    /// nothing can be known.
    fn estimate(&mut self, config: &Config) -> Result<std::result::Result<Option<CostEstimate>, String>>;
    /// Verifies and times; may stop early where it is slower than `best` seconds.
    fn evaluate(&mut self, config: &Config, best: Option<f64>) -> Result<Trial>;
}

/// How a space is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Seconds, as long as the default was timed.
    pub budget: f64,
    /// Times every configuration, to see what pruning would have lost.
    pub exhaustive: bool,
    /// Configurations up to which all that pruning leaves are timed; larger sets are searched from neighbour
    /// to neighbour.
    pub brute: usize,
    /// Seed of the random starts.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { budget: 60.0, exhaustive: false, brute: 64, seed: 1 }
    }
}

/// Why a configuration was not timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pruned {
    /// Another is better in efficiency and utilisation.
    Dominated,
    /// It cannot be faster than the best that was measured.
    Bound,
    /// Time was up.
    Budget,
}

/// One configuration of a finished search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// The configuration.
    pub config: Config,
    /// Metrics.
    pub estimate: Option<CostEstimate>,
    /// What became of it, where it was timed or failed.
    pub trial: Option<Trial>,
    /// Why it was not timed; of an exhaustive search, why it would not have been.
    pub pruned: Option<Pruned>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResult {
    /// The fastest.
    pub best: Config,
    /// Its seconds.
    pub seconds: f64,
    /// Seconds of the default, where it works.
    pub default_seconds: Option<f64>,
    /// Every configuration of the space.
    pub tried: Vec<Tried>,
}

impl SearchResult {
    /// The share of the space that pruning left out.
    pub fn pruned(&self) -> f64 {
        let left_out = |t: &&Tried| matches!(t.pruned, Some(Pruned::Dominated | Pruned::Bound));
        self.tried.iter().filter(left_out).count() as f64 / self.tried.len().max(1) as f64
    }

    /// The fastest of those that pruning keeps, over the fastest of all: what an exhaustive search shows; 1
    /// where nothing is lost.
    pub fn kept(&self) -> Option<f64> {
        let kept = self.tried.iter().filter(|t| t.pruned.is_none());
        let best = kept.filter_map(|t| t.trial.as_ref()?.seconds()).min_by(f64::total_cmp)?;
        Some(best / self.seconds)
    }
}

/// Configurations up to which the cost of all is estimated before any is timed.
const ESTIMATED: usize = 256;

/// Called after each configuration, with the search so far; a stop is an error that it returns.
pub type Progress<'a> = &'a mut dyn FnMut(&Config, &Trial, Option<CostEstimate>) -> Result<()>;

struct Search<'a> {
    evaluate: &'a mut dyn Evaluate,
    progress: Progress<'a>,
    known: HashMap<Config, Trial>,
    estimate: HashMap<Config, CostEstimate>,
    best: Option<(Config, f64)>,
    began: Instant,
    budget: f64,
}

impl Search<'_> {
    fn out_of_time(&self) -> bool {
        self.began.elapsed().as_secs_f64() > self.budget
    }

    fn keep(&mut self, config: &Config, trial: Trial) {
        let faster = |&seconds: &f64| self.best.as_ref().is_none_or(|(_, best)| seconds < *best);
        if let Some(seconds) = trial.seconds().filter(faster) {
            self.best = Some((config.clone(), seconds));
        }
        self.known.insert(config.clone(), trial);
    }

    fn time(&mut self, config: &Config, race: bool) -> Result<&Trial> {
        if !self.known.contains_key(config) {
            let best = self.best.as_ref().filter(|_| race).map(|(_, seconds)| *seconds);
            let trial = self.evaluate.evaluate(config, best)?;
            (self.progress)(config, &trial, self.estimate.get(config).copied())?;
            self.keep(config, trial);
        }
        Ok(&self.known[config])
    }

    /// Metrics of a configuration, once. One that cannot be launched is a failure.
    fn estimate(&mut self, config: &Config) -> Result<()> {
        if self.estimate.contains_key(config) || matches!(self.known.get(config), Some(Trial::Failed(_))) {
            return Ok(());
        }
        match self.evaluate.estimate(config)? {
            Ok(Some(estimate)) => {
                self.estimate.insert(config.clone(), estimate);
            }
            Ok(None) => {}
            Err(why) => {
                let trial = Trial::Failed(why);
                if !self.known.contains_key(config) {
                    (self.progress)(config, &trial, None)?;
                }
                self.keep(config, trial);
            }
        }
        Ok(())
    }

    fn cannot_win(&self, config: &Config) -> bool {
        let least = self.estimate.get(config).map_or(0.0, |f| f.least);
        self.best.as_ref().is_some_and(|(_, best)| least >= *best)
    }
}

/// Finds the fastest configuration of `space`.
///
/// `known` are results of earlier searches, which are not repeated. The default is timed first. Where costs
/// can be estimated, the configurations that another exceeds in both of Ryoo's metrics (in spaces that are
/// estimated whole) and those whose bound is above the best time are left out. If at most [`Options::brute`]
/// remain, all are timed. The search then steps from the best to better neighbours, and also tries neighbours
/// that the metrics left out. If more remain, it steps to better neighbours from random starts, until time is
/// up. Errors: `evaluate` fails for a reason that is not the configuration's; no configuration works.
pub fn search(
    space: &Space,
    known: HashMap<Config, Trial>,
    evaluate: &mut dyn Evaluate,
    options: &Options,
    progress: Progress<'_>,
) -> Result<SearchResult> {
    let configs = space.configs();
    let mut s = Search {
        evaluate,
        progress,
        known: HashMap::new(),
        estimate: HashMap::new(),
        best: None,
        began: Instant::now(),
        budget: options.budget,
    };
    for (config, trial) in known.into_iter().filter(|(config, _)| space.contains(config)) {
        s.keep(&config, trial);
    }
    let default = space.default_config();
    s.time(&default, false)?;
    // In a large space only the configurations on the way are estimated: compiling a program takes longer
    // than most of them run.
    let whole = options.exhaustive || configs.len() <= ESTIMATED;
    for config in configs.iter().filter(|_| whole) {
        if !options.exhaustive && s.began.elapsed().as_secs_f64() > 0.5 * s.budget {
            break;
        }
        s.estimate(config)?;
    }
    let mut pruned = dominated(&configs, &s.estimate);
    let candidates: Vec<Config> = configs.iter().filter(|c| !pruned.contains_key(*c)).cloned().collect();
    let every = whole && candidates.len() <= options.brute;
    if options.exhaustive {
        for config in &configs {
            // A bound that would have saved the time is noted with the best that was known at that moment.
            if s.cannot_win(config) {
                pruned.entry(config.clone()).or_insert(Pruned::Bound);
            }
            s.time(config, false)?;
        }
    } else if every {
        let mut order = candidates.clone();
        order.sort_by(|a, b| {
            let least = |c: &Config| s.estimate.get(c).map_or(0.0, |f| f.least);
            least(a).total_cmp(&least(b))
        });
        for config in &order {
            if s.cannot_win(config) && !s.known.contains_key(config) {
                pruned.insert(config.clone(), Pruned::Bound);
            } else if !s.out_of_time() {
                s.time(config, true)?;
            }
        }
        // The metrics know nothing of caches: from the best on, what they left out is tried, too.
        if let Some((best, _)) = s.best.clone() {
            steps(space, best, &mut s, &mut pruned, true)?;
        }
    } else {
        descend(space, &candidates, &mut s, &mut pruned, options.seed)?;
    }
    let (best, seconds) = s.best.clone().ok_or_else(|| {
        let why = match s.known.get(&default) {
            Some(Trial::Failed(why)) => why.clone(),
            _ => "nothing could be timed".to_owned(),
        };
        Error::Device { what: format!("tuning: none of {} configurations works", configs.len()), detail: why }
    })?;
    let default_seconds = s.known.get(&default).and_then(Trial::seconds);
    let tried = configs
        .into_iter()
        .map(|config| {
            let trial = s.known.get(&config).cloned();
            let missing = trial.is_none().then_some(Pruned::Budget);
            let timed = trial.as_ref().is_some_and(|t| t.seconds().is_some()) && !options.exhaustive;
            Tried {
                estimate: s.estimate.get(&config).copied(),
                pruned: pruned.get(&config).copied().filter(|_| !timed).or(missing),
                trial,
                config,
            }
        })
        .collect();
    Ok(SearchResult { best, seconds, default_seconds, tried })
}

fn dominated(configs: &[Config], estimate: &HashMap<Config, CostEstimate>) -> HashMap<Config, Pruned> {
    let (estimated, metrics): (Vec<_>, Vec<_>) =
        configs.iter().filter_map(|c| Some((c, *estimate.get(c)?))).unzip();
    let keep = pareto(&metrics);
    let out = estimated.into_iter().zip(keep).filter(|(_, keep)| !keep);
    out.map(|(config, _)| (config.clone(), Pruned::Dominated)).collect()
}

/// Steps to the best neighbour until none is better or time is up; `with_dominated` tries also those that the
/// metrics leave out.
fn steps(
    space: &Space,
    mut here: Config,
    s: &mut Search<'_>,
    pruned: &mut HashMap<Config, Pruned>,
    with_dominated: bool,
) -> Result<()> {
    loop {
        let mut better = None;
        let mut least = s.known.get(&here).and_then(Trial::seconds).unwrap_or(f64::INFINITY);
        for next in space.neighbours(&here) {
            if s.out_of_time() {
                return Ok(());
            }
            match pruned.get(&next) {
                Some(Pruned::Dominated) if with_dominated => {}
                Some(_) => continue,
                None => {}
            }
            if !s.known.contains_key(&next) {
                s.estimate(&next)?;
            }
            if s.cannot_win(&next) && !s.known.contains_key(&next) {
                pruned.insert(next, Pruned::Bound);
                continue;
            }
            pruned.remove(&next);
            if let Some(seconds) = s.time(&next, true)?.seconds().filter(|&t| t < least) {
                (better, least) = (Some(next), seconds);
            }
        }
        match better {
            Some(next) => here = next,
            None => return Ok(()),
        }
    }
}

/// Steps to the best neighbour from the best so far, then from random starts, until time is up or all
/// candidates are known.
fn descend(
    space: &Space,
    candidates: &[Config],
    s: &mut Search<'_>,
    pruned: &mut HashMap<Config, Pruned>,
    seed: u64,
) -> Result<()> {
    let mut start = s.best.as_ref().map(|(config, _)| config.clone());
    let mut draws = 0;
    loop {
        if let Some(here) = start.take() {
            steps(space, here, s, pruned, false)?;
        }
        let unknown: Vec<_> =
            candidates.iter().filter(|c| !s.known.contains_key(*c) && !pruned.contains_key(*c)).collect();
        if unknown.is_empty() || s.out_of_time() {
            return Ok(());
        }
        let next = unknown[(bits(seed, draws) % unknown.len() as u64) as usize].clone();
        draws += 1;
        if !s.known.contains_key(&next) {
            s.estimate(&next)?;
        }
        if s.cannot_win(&next) {
            pruned.insert(next, Pruned::Bound);
            continue;
        }
        s.time(&next, true)?;
        start = Some(next);
    }
}

/// Results of an earlier search in the place of a device: how the search is tested, and repeated, without
/// one.
#[derive(Debug, Default)]
pub struct Replay {
    records: HashMap<Config, Record>,
    /// Configurations that the search requested, in order.
    pub asked: Vec<Config>,
}

impl Replay {
    /// The last of these results for each configuration.
    pub fn new<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let records = records.into_iter().map(|r| (r.config.clone(), r.clone())).collect();
        Self { records, asked: Vec::new() }
    }
}

impl Evaluate for Replay {
    fn estimate(&mut self, config: &Config) -> Result<std::result::Result<Option<CostEstimate>, String>> {
        Ok(match self.records.get(config).map(|r| (&r.trial, r.estimate)) {
            Some((Trial::Failed(why), None)) => Err(why.clone()),
            Some((_, estimate)) => Ok(estimate),
            None => Ok(None),
        })
    }

    fn evaluate(&mut self, config: &Config, _: Option<f64>) -> Result<Trial> {
        self.asked.push(config.clone());
        let missing = || Trial::Failed("not among the recorded results".to_owned());
        Ok(self.records.get(config).map_or_else(missing, |record| record.trial.clone()))
    }
}

#[cfg(test)]
mod tests;
