//! Algorithms whatever their types: what the command line, the tuner and the conformance tests go over.

use std::any::Any;
use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::{BackendKind, Device};

use crate::algorithm::{About, Algorithm, Counts, Flow, Peak, Published, PublishedApplication, Row, Unit};
use crate::build::{Build, distinct};
use crate::host_transfer::EndToEnd;
use crate::own::Own;
use crate::space::{Config, Space};
use crate::variant::Work;

/// Which of a ladder's problems.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// A case by its name, or the first case if no name is given, in another size if one is given.
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
    /// The default case for one kind of processor, where it is not the first.
    fn default_case(&self, kind: BackendKind) -> Option<&'static str>;
    /// How many trials there are.
    fn trials(&self) -> usize;
    /// The rows of the lecture or journal that it follows.
    fn published(&self) -> &'static [Published];
    /// Its row of the lecture's application table.
    fn published_application(&self) -> Option<PublishedApplication>;
    /// Every program in every form that the variants of its cases and trials may launch.
    fn programs(&self) -> Vec<Build>;
    /// Name and declaration of the kernel that a user may write for a problem; `None` where one kernel cannot
    /// compute it. Errors: an unknown case, an impossible size.
    fn signature(&self, which: Which<'_>) -> Result<Option<(&'static str, &'static str)>>;
    /// [`Ladder::open`] with a kernel of the user's own as the last row. Errors: those, a problem that one
    /// kernel cannot compute.
    fn open_with(&self, which: Which<'_>, device: &Device, seed: u64, own: Own) -> Result<Box<dyn Session>>;
    /// A problem and its variants without their data. Errors: an unknown case, an impossible size.
    fn outline(&self, which: Which<'_>) -> Result<Outline>;
    /// A problem with its data on a device. Errors: an unknown case (the nearest is named), an impossible
    /// size, memory.
    fn open(&self, which: Which<'_>, device: &Device, seed: u64) -> Result<Box<dyn Session>>;
}

/// A variant of an opened problem.
#[derive(Debug, Clone)]
pub struct VariantInfo {
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
    /// What its rate counts, of one run.
    pub amount: f64,
    /// The units that do its operations, where these are not the problem's.
    pub peak: Option<Peak>,
    /// Whether its work and its kernels tell how fast it can be.
    pub predictable: bool,
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
    /// Its variants, for every kind of processor.
    pub variants: Vec<VariantInfo>,
}

/// A problem on a device, with its sets of inputs and outputs ([`Session::rotate`]).
pub trait Session {
    /// The problem, in words.
    fn problem(&self) -> String;
    /// What tuning results of it belong to.
    fn key(&self) -> (String, Vec<usize>);
    /// What bounds its operations.
    fn peak(&self) -> Peak;
    /// Its variants, for other kinds of processor too.
    fn variants(&self) -> &[VariantInfo];
    /// Makes as many sets of data as memory allows, up to `sets`; gives how many there are.
    fn rotate(&mut self, sets: usize) -> Result<usize>;
    /// Poisons the outputs of the first set, runs a variant and gives its error against the oracle.
    fn verify(&mut self, variant: usize, config: &Config) -> Result<f64>;
    /// Runs a variant on the set `turn`, counted round.
    fn run(&mut self, variant: usize, config: &Config, turn: usize) -> Result<()>;
    /// Runs a variant on the first set, from memory of the host to memory of the host. Inputs are copied to
    /// new memory of a GPU. Outputs get new memory. The set-up of a first run is made, and outputs are copied
    /// back. `None`: the algorithm does not name the arrays that are copied.
    fn end_to_end(&mut self, variant: usize, config: &Config) -> Result<Option<EndToEnd>>;
    /// The error against the oracle of what the first set's outputs hold.
    fn found(&self) -> Result<f64>;
    /// What the first set's outputs say, in a line for people ([`Algorithm::result`]).
    fn result(&self) -> Result<Option<String>> {
        Ok(None)
    }
    /// What the first set's outputs hold, a `Vec` of elements each: of the arrays that the algorithm names to
    /// be copied back. Empty where it names none.
    fn outputs(&mut self, _variant: usize) -> Result<Vec<Box<dyn Any>>> {
        Ok(Vec::new())
    }
}

impl<A: Algorithm + Clone> Ladder for A {
    fn about(&self) -> About {
        Algorithm::about(self)
    }

    fn cases(&self) -> Vec<(&'static str, &'static str, String)> {
        Algorithm::cases(self).into_iter().map(|c| (c.name, c.summary, c.problem.to_string())).collect()
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        Algorithm::default_case(self, kind)
    }

    fn trials(&self) -> usize {
        Algorithm::trials(self).len()
    }

    fn published(&self) -> &'static [Published] {
        Algorithm::published(self)
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        Algorithm::published_application(self)
    }

    fn programs(&self) -> Vec<Build> {
        let mut problems = Algorithm::trials(self);
        problems.extend(Algorithm::cases(self).into_iter().map(|case| case.problem));
        distinct(problems.iter().flat_map(|problem| self.variants(problem)).flat_map(|row| (row.forms)()))
    }

    fn outline(&self, which: Which<'_>) -> Result<Outline> {
        let problem = find(self, which)?;
        let Counts { peak, flow, .. } = self.counts(&problem);
        let variants = infos(self, &problem, &self.variants(&problem));
        Ok(Outline { problem: problem.to_string(), peak, flow, variants })
    }

    fn signature(&self, which: Which<'_>) -> Result<Option<(&'static str, &'static str)>> {
        let signature = Algorithm::signature(self, &find(self, which)?);
        Ok(signature.map(|signature| (signature.kernel, signature.declaration)))
    }

    fn open(&self, which: Which<'_>, device: &Device, seed: u64) -> Result<Box<dyn Session>> {
        let problem = find(self, which)?;
        let rows = self.variants(&problem);
        open(self, problem, rows, device, seed)
    }

    fn open_with(&self, which: Which<'_>, device: &Device, seed: u64, own: Own) -> Result<Box<dyn Session>> {
        let problem = find(self, which)?;
        let mut rows = self.variants(&problem);
        rows.push(own.row(self, &problem)?);
        own.compile(self, &problem, device)?;
        open(self, problem, rows, device, seed)
    }
}

fn open<A: Algorithm + Clone>(
    algorithm: &A,
    problem: A::Problem,
    rows: Vec<Row<A>>,
    device: &Device,
    seed: u64,
) -> Result<Box<dyn Session>> {
    let mut variants = infos(algorithm, &problem, &rows);
    for (variant, row) in variants.iter_mut().zip(&rows) {
        if variant.backend == device.kind() && variant.refuses.is_none() {
            variant.refuses = (row.lacks)(device);
        }
    }
    let data = vec![algorithm.data(&problem, device, seed)?];
    Ok(Box::new(Opened {
        algorithm: algorithm.clone(),
        problem,
        rows,
        variants,
        device: device.clone(),
        seed,
        data,
        kept: None,
    }))
}

fn infos<A: Algorithm>(algorithm: &A, problem: &A::Problem, rows: &[Row<A>]) -> Vec<VariantInfo> {
    let counts = algorithm.counts(problem);
    let amount = |work: Work| match algorithm.about().unit {
        Unit::Bytes => work.bytes,
        Unit::Flops => counts.flops.unwrap_or(work.flops),
        Unit::Items(_) => counts.items,
    };
    let info = |v: &Row<A>| VariantInfo {
        name: v.name,
        backend: v.backend,
        summary: v.summary,
        refuses: (v.refuses)(problem),
        competes: v.competes,
        work: (v.work)(problem),
        amount: amount((v.work)(problem)),
        peak: v.peak,
        predictable: v.predictable,
        tolerance: v.tolerance,
        reproduces: v.reproduces,
        space: (v.space)(problem),
        forms: (v.forms)(),
    };
    rows.iter().map(info).collect()
}

fn find<A: Algorithm>(algorithm: &A, which: Which<'_>) -> Result<A::Problem> {
    match which {
        Which::Trial(trial) => {
            let trials = algorithm.trials();
            let count = trials.len();
            trials
                .into_iter()
                .nth(trial)
                .ok_or_else(|| Error::value("trial", format!("a number below {count}"), trial))
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
    rows: Vec<Row<A>>,
    variants: Vec<VariantInfo>,
    device: Device,
    seed: u64,
    data: Vec<A::Data>,
    /// Inputs of the first set on the host, once a run of this variant began there.
    kept: Option<(usize, Vec<Box<dyn Any>>)>,
}

impl<A: Algorithm> Opened<A> {
    fn row(&self, variant: usize) -> Result<&Row<A>> {
        let missing = || Error::value("variant", format!("a number below {}", self.rows.len()), variant);
        self.rows.get(variant).ok_or_else(missing)
    }

    /// Copies inputs to a GPU; gives the bytes of inputs and outputs.
    fn upload(&mut self, variant: usize) -> Result<Option<(u64, u64)>> {
        let Some(mut transfer) = self.rows[variant].implementation.transferred(&mut self.data[0]) else {
            return Ok(None);
        };
        if let Some((_, kept)) = &self.kept {
            for (input, values) in transfer.inputs.iter_mut().zip(kept) {
                input.receive(values.as_ref())?;
            }
            self.device.synchronize()?;
        }
        let inputs = transfer.inputs.iter().map(|input| input.bytes()).sum();
        Ok(Some((inputs, transfer.outputs.iter().map(|output| output.bytes()).sum())))
    }

    /// Keeps inputs on the host, where a GPU's runs begin.
    fn keep(&mut self, variant: usize) -> Result<()> {
        let known = self.kept.as_ref().is_some_and(|(kept, _)| *kept == variant);
        if !known && self.device.kind() == BackendKind::Cuda {
            let transfer = self.rows[variant].implementation.transferred(&mut self.data[0]);
            let inputs = transfer.into_iter().flat_map(|transfer| transfer.inputs);
            self.kept = Some((variant, inputs.map(|input| input.fetch()).collect::<Result<_>>()?));
        }
        Ok(())
    }

    fn run_on(&mut self, variant: usize, config: &Config, set: usize) -> Result<()> {
        self.row(variant)?;
        let row = &self.rows[variant];
        if row.backend != self.device.kind() {
            let kind = format!("a {:?}", row.backend);
            return Err(Error::value(format!("device of {}", row.name), kind, self.device.describe()));
        }
        let count = self.data.len();
        row.implementation.launch(config, &mut self.data[set % count])
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

    fn variants(&self) -> &[VariantInfo] {
        &self.variants
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

    fn verify(&mut self, variant: usize, config: &Config) -> Result<f64> {
        self.algorithm.poison(&mut self.data[0])?;
        self.run_on(variant, config, 0)?;
        self.device.synchronize()?;
        self.algorithm.error(&self.problem, &self.data[0])
    }

    fn run(&mut self, variant: usize, config: &Config, turn: usize) -> Result<()> {
        self.run_on(variant, config, turn)
    }

    fn end_to_end(&mut self, variant: usize, config: &Config) -> Result<Option<EndToEnd>> {
        self.row(variant)?;
        self.keep(variant)?;
        self.device.synchronize()?;
        let began = Instant::now();
        let Some((bytes_in, bytes_out)) = self.upload(variant)? else { return Ok(None) };
        let uploaded = began.elapsed().as_secs_f64();
        let transfer = self.rows[variant].implementation.transferred(&mut self.data[0]);
        for output in transfer.into_iter().flat_map(|transfer| transfer.outputs) {
            output.renew()?;
        }
        self.rows[variant].implementation.prepare(&self.problem, &mut self.data[0])?;
        self.device.synchronize()?;
        let ready = began.elapsed().as_secs_f64();
        self.run_on(variant, config, 0)?;
        self.device.synchronize()?;
        let ran = began.elapsed().as_secs_f64();
        let mut results = Vec::new();
        if self.device.kind() == BackendKind::Cuda {
            let transfer = self.rows[variant].implementation.transferred(&mut self.data[0]);
            for output in transfer.into_iter().flat_map(|transfer| transfer.outputs) {
                results.push(output.fetch()?);
            }
        }
        let ended = began.elapsed().as_secs_f64();
        Ok(Some(EndToEnd {
            upload: uploaded,
            set_up: ready - uploaded,
            kernel: ran - ready,
            download: ended - ran,
            bytes_in,
            bytes_out,
        }))
    }

    fn result(&self) -> Result<Option<String>> {
        self.algorithm.result(&self.problem, &self.data[0])
    }

    fn found(&self) -> Result<f64> {
        self.algorithm.error(&self.problem, &self.data[0])
    }

    fn outputs(&mut self, variant: usize) -> Result<Vec<Box<dyn Any>>> {
        self.row(variant)?;
        let transfer = self.rows[variant].implementation.transferred(&mut self.data[0]);
        transfer.into_iter().flat_map(|transfer| transfer.outputs).map(|output| output.fetch()).collect()
    }
}
