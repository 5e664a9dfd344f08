//! Algorithms whatever their types: what the command line, the tuner and the conformance tests go over.

use std::any::Any;
use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::{BackendKind, Device};

use crate::algorithm::{About, Algorithm, Counts, Flow, Peak, Published, Row};
use crate::build::{Build, distinct};
use crate::carry::Whole;
use crate::own::Own;
use crate::space::{Config, Space};
use crate::variant::{Variant, Work};

/// Which of a ladder's problems.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// A case by its name, the first where there is none, in another size where one is given.
    Case(Option<&'a str>, Option<&'a [usize]>),
    /// A trial by its number.
    Trial(usize),
}

/// An [`Algorithm`] without its types.
pub trait Ladder: Send + Sync {
    /// Names and texts.
    fn about(&self) -> About;
    /// Names, summaries and problems of the cases.
    fn cases(&self) -> Vec<(&'static str, &'static str, String)>;
    /// How many trials there are.
    fn trials(&self) -> usize;
    /// The rows of the literature.
    fn published(&self) -> &'static [Published];
    /// Every program in every form that the variants of its cases and trials may launch.
    fn programs(&self) -> Vec<Build>;
    /// Name and declaration of the kernel that a user may write for a problem; `None` where one kernel cannot compute it. Errors: an unknown
    /// case, an impossible size.
    fn signature(&self, which: Which<'_>) -> Result<Option<(&'static str, &'static str)>>;
    /// [`Ladder::open`] with a kernel of the user's own as the last row. Errors: those, a problem that one kernel cannot compute.
    fn open_with(&self, which: Which<'_>, device: &Device, seed: u64, own: Own) -> Result<Box<dyn Session>>;
    /// A problem and its variants without their data. Errors: an unknown case, an impossible size.
    fn outline(&self, which: Which<'_>) -> Result<Outline>;
    /// A problem with its data on a device. Errors: an unknown case (the nearest is named), an impossible size, memory.
    fn open(&self, which: Which<'_>, device: &Device, seed: u64) -> Result<Box<dyn Session>>;
}

/// A variant of an opened problem.
#[derive(Debug, Clone)]
pub struct Rung {
    /// The variant's name.
    pub name: &'static str,
    /// The kind of processor it runs on.
    pub backend: BackendKind,
    /// What distinguishes it.
    pub summary: &'static str,
    /// Why it cannot run this problem on this device.
    pub refuses: Option<String>,
    /// Whether it may be the best: what stands there to be compared with may not.
    pub competes: bool,
    /// What it must move and compute.
    pub work: Work,
    /// Whether its work and its kernels tell how fast it can be.
    pub foreseeable: bool,
    /// The error that it may have.
    pub tolerance: f64,
    /// The published row that it reproduces.
    pub reproduces: Option<&'static str>,
    /// Its parameters.
    pub space: Space,
    /// Its programs, in every form.
    pub forms: Vec<Build>,
}

/// A problem before it is opened on a device.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The problem, in words.
    pub problem: String,
    /// What bounds its operations.
    pub peak: Peak,
    /// Which way its bytes go.
    pub flow: Flow,
    /// Its variants, those of every kind of processor.
    pub rungs: Vec<Rung>,
}

/// A problem on a device, with as many sets of inputs and outputs as were asked for.
pub trait Session {
    /// The problem, in words.
    fn problem(&self) -> String;
    /// What tuning results of it belong to.
    fn key(&self) -> (String, Vec<usize>);
    /// What bounds its operations.
    fn peak(&self) -> Peak;
    /// What its rate counts, of one run, by variant.
    fn amount(&self, rung: usize) -> f64;
    /// Its variants, those of other kinds of processor too.
    fn rungs(&self) -> &[Rung];
    /// Makes as many sets of data as memory allows, up to `sets`; gives how many there are.
    fn rotate(&mut self, sets: usize) -> Result<usize>;
    /// Poisons the outputs of the first set, runs a variant and gives its error against the oracle.
    fn verify(&mut self, rung: usize, config: &Config) -> Result<f64>;
    /// Runs a variant on the set `turn`, counted round.
    fn run(&mut self, rung: usize, config: &Config, turn: usize) -> Result<()>;
    /// Runs a variant on the first set from memory of the host to memory of the host: inputs are copied to new memory of a GPU,
    /// outputs get new memory, what a first run takes is made, and outputs are copied back. `None`: the algorithm does not say
    /// what is carried.
    fn whole(&mut self, rung: usize, config: &Config) -> Result<Option<Whole>>;
    /// The error against the oracle of what the first set's outputs hold.
    fn found(&self) -> Result<f64>;
}

impl<A: Algorithm + Clone> Ladder for A {
    fn about(&self) -> About {
        Algorithm::about(self)
    }

    fn cases(&self) -> Vec<(&'static str, &'static str, String)> {
        Algorithm::cases(self).into_iter().map(|c| (c.name, c.summary, c.problem.to_string())).collect()
    }

    fn trials(&self) -> usize {
        Algorithm::trials(self).len()
    }

    fn published(&self) -> &'static [Published] {
        Algorithm::published(self)
    }

    fn programs(&self) -> Vec<Build> {
        let mut problems = Algorithm::trials(self);
        problems.extend(Algorithm::cases(self).into_iter().map(|case| case.problem));
        distinct(problems.iter().flat_map(|problem| self.variants(problem)).flat_map(|row| (row.forms)()))
    }

    fn outline(&self, which: Which<'_>) -> Result<Outline> {
        let problem = find(self, which)?;
        let Counts { peak, flow, .. } = self.counts(&problem);
        let rungs = rungs(&problem, &self.variants(&problem));
        Ok(Outline { problem: problem.to_string(), peak, flow, rungs })
    }

    fn signature(&self, which: Which<'_>) -> Result<Option<(&'static str, &'static str)>> {
        let signature = Algorithm::signature(self, &find(self, which)?);
        Ok(signature.map(|signature| (signature.kernel, signature.declaration)))
    }

    fn open(&self, which: Which<'_>, device: &Device, seed: u64) -> Result<Box<dyn Session>> {
        let problem = find(self, which)?;
        let variants = self.variants(&problem);
        open(self, problem, variants, device, seed)
    }

    fn open_with(&self, which: Which<'_>, device: &Device, seed: u64, own: Own) -> Result<Box<dyn Session>> {
        let problem = find(self, which)?;
        let mut variants = self.variants(&problem);
        variants.push(own.row(self, &problem)?);
        own.compile(self, &problem, device)?;
        open(self, problem, variants, device, seed)
    }
}

fn open<A: Algorithm + Clone>(
    algorithm: &A,
    problem: A::Problem,
    variants: Vec<Row<A>>,
    device: &Device,
    seed: u64,
) -> Result<Box<dyn Session>> {
    let mut rungs = rungs(&problem, &variants);
    for (rung, row) in rungs.iter_mut().zip(&variants) {
        if rung.backend == device.kind() && rung.refuses.is_none() {
            rung.refuses = (row.lacks)(device);
        }
    }
    let data = vec![algorithm.data(&problem, device, seed)?];
    Ok(Box::new(Opened {
        algorithm: algorithm.clone(),
        problem,
        variants,
        rungs,
        device: device.clone(),
        seed,
        data,
        kept: None,
    }))
}

fn rungs<P, L>(problem: &P, variants: &[Variant<P, L>]) -> Vec<Rung> {
    let rung = |v: &Variant<P, L>| Rung {
        name: v.name,
        backend: v.backend,
        summary: v.summary,
        refuses: (v.refuses)(problem),
        competes: v.competes,
        work: (v.work)(problem),
        foreseeable: v.foreseeable,
        tolerance: v.tolerance,
        reproduces: v.reproduces,
        space: (v.space)(problem),
        forms: (v.forms)(),
    };
    variants.iter().map(rung).collect()
}

fn find<A: Algorithm>(algorithm: &A, which: Which<'_>) -> Result<A::Problem> {
    match which {
        Which::Trial(at) => {
            let trials = algorithm.trials();
            let count = trials.len();
            trials
                .into_iter()
                .nth(at)
                .ok_or_else(|| Error::value("trial", format!("a number below {count}"), at))
        }
        Which::Case(name, size) => {
            let cases = algorithm.cases();
            let case = match name {
                None => cases.first(),
                Some(name) => cases.iter().find(|case| case.name == name),
            };
            let case = case.ok_or_else(|| {
                let names: Vec<_> = cases.iter().map(|case| case.name).collect();
                Error::value(
                    format!("case of {}", algorithm.about().name),
                    format!("one of {}", names.join(", ")),
                    name.unwrap_or("none"),
                )
            })?;
            match size {
                None => Ok(case.problem.clone()),
                Some(size) => algorithm.sized(&case.problem, size),
            }
        }
    }
}

struct Opened<A: Algorithm> {
    algorithm: A,
    problem: A::Problem,
    variants: Vec<Row<A>>,
    rungs: Vec<Rung>,
    device: Device,
    seed: u64,
    data: Vec<A::Data>,
    /// Inputs of the first set on the host, once a run of this variant began there.
    kept: Option<(usize, Vec<Box<dyn Any>>)>,
}

impl<A: Algorithm> Opened<A> {
    fn variant(&self, rung: usize) -> Result<&Row<A>> {
        let missing = || Error::value("rung", format!("a number below {}", self.variants.len()), rung);
        self.variants.get(rung).ok_or_else(missing)
    }

    /// Copies inputs to a GPU; gives the bytes of inputs and outputs.
    fn upload(&mut self, rung: usize) -> Result<Option<(u64, u64)>> {
        let Some(mut carried) = self.variants[rung].launch.carries(&mut self.data[0]) else {
            return Ok(None);
        };
        if let Some((_, kept)) = &self.kept {
            for (input, values) in carried.inputs.iter_mut().zip(kept) {
                input.receive(values.as_ref())?;
            }
            self.device.synchronize()?;
        }
        let inputs = carried.inputs.iter().map(|input| input.bytes()).sum();
        Ok(Some((inputs, carried.outputs.iter().map(|output| output.bytes()).sum())))
    }

    /// Keeps inputs on the host, where a GPU's runs begin.
    fn keep(&mut self, rung: usize) -> Result<()> {
        let known = self.kept.as_ref().is_some_and(|(of, _)| *of == rung);
        if !known && self.device.kind() == BackendKind::Cuda {
            let carried = self.variants[rung].launch.carries(&mut self.data[0]);
            let inputs = carried.into_iter().flat_map(|carried| carried.inputs);
            self.kept = Some((rung, inputs.map(|input| input.fetch()).collect::<Result<_>>()?));
        }
        Ok(())
    }

    fn run_on(&mut self, rung: usize, config: &Config, set: usize) -> Result<()> {
        self.variant(rung)?;
        let variant = &self.variants[rung];
        if variant.backend != self.device.kind() {
            let kind = format!("a {:?}", variant.backend);
            return Err(Error::value(format!("device of {}", variant.name), kind, self.device.describe()));
        }
        let count = self.data.len();
        variant.launch.launch(config, &mut self.data[set % count])
    }
}

impl<A: Algorithm> Session for Opened<A> {
    fn problem(&self) -> String {
        self.problem.to_string()
    }

    fn key(&self) -> (String, Vec<usize>) {
        self.algorithm.key(&self.problem)
    }

    fn peak(&self) -> Peak {
        self.algorithm.counts(&self.problem).peak
    }

    fn amount(&self, rung: usize) -> f64 {
        let work = self.rungs.get(rung).map(|r| r.work);
        match self.algorithm.about().unit {
            crate::Unit::Bytes => work.map_or(0.0, |w| w.bytes),
            crate::Unit::Flops => work.map_or(0.0, |w| w.flops),
            crate::Unit::Items(_) => self.algorithm.counts(&self.problem).items,
        }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn rotate(&mut self, sets: usize) -> Result<usize> {
        while self.data.len() < sets {
            let seed = self.seed.wrapping_add(self.data.len() as u64);
            match self.algorithm.data(&self.problem, &self.device, seed) {
                Ok(data) => self.data.push(data),
                Err(Error::Memory { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.data.len())
    }

    fn verify(&mut self, rung: usize, config: &Config) -> Result<f64> {
        self.algorithm.poison(&mut self.data[0])?;
        self.run_on(rung, config, 0)?;
        self.device.synchronize()?;
        self.algorithm.error(&self.problem, &self.data[0])
    }

    fn run(&mut self, rung: usize, config: &Config, turn: usize) -> Result<()> {
        self.run_on(rung, config, turn)
    }

    fn whole(&mut self, rung: usize, config: &Config) -> Result<Option<Whole>> {
        self.variant(rung)?;
        self.keep(rung)?;
        self.device.synchronize()?;
        let began = Instant::now();
        let Some((bytes_in, bytes_out)) = self.upload(rung)? else { return Ok(None) };
        let uploaded = began.elapsed().as_secs_f64();
        let carried = self.variants[rung].launch.carries(&mut self.data[0]);
        for output in carried.into_iter().flat_map(|carried| carried.outputs) {
            output.renew()?;
        }
        self.variants[rung].launch.prepare(&self.problem, &mut self.data[0])?;
        self.device.synchronize()?;
        let ready = began.elapsed().as_secs_f64();
        self.run_on(rung, config, 0)?;
        self.device.synchronize()?;
        let ran = began.elapsed().as_secs_f64();
        let mut results = Vec::new();
        if self.device.kind() == BackendKind::Cuda {
            let carried = self.variants[rung].launch.carries(&mut self.data[0]);
            for output in carried.into_iter().flat_map(|carried| carried.outputs) {
                results.push(output.fetch()?);
            }
        }
        let ended = began.elapsed().as_secs_f64();
        Ok(Some(Whole {
            upload: uploaded,
            set_up: ready - uploaded,
            kernel: ran - ready,
            download: ended - ran,
            bytes_in,
            bytes_out,
        }))
    }

    fn found(&self) -> Result<f64> {
        self.algorithm.error(&self.problem, &self.data[0])
    }
}
