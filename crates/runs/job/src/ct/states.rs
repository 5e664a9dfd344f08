//! From a request and its scan to a method and voxels.

use std::sync::Arc;

use rayspin_core::{Error, Monitor};
use rayspin_ct::methods::{Facts, Method};
use rayspin_ct::recon::{ReconOptions, grid};
use rayspin_device::cuda::Starting;
use rayspin_report::RunRecorder;
use rayspin_run::Certify;

use super::effect;
use super::methods;
use super::options::options;
use super::read::{self, Kind, Lines};
use super::request::{Input, Request};
use crate::rows::refuse_idle_rows;
use crate::{ComputeTarget, Result, Told};

/// What all steps of a run share.
pub(super) struct Session<'a> {
    pub(super) request: Arc<Request>,
    pub(super) told: Told<'a>,
    pub(super) target: ComputeTarget,
    /// A GPU that starts while the scan is read.
    pub(super) starting: Option<Starting>,
    /// Bytes of the process before it read anything.
    pub(super) process: u64,
}

impl Session<'_> {
    fn refuse_idle(&self, kind: Kind, stated: [Option<bool>; 2]) -> Result<()> {
        let [rays, angles] = stated;
        let run = effect::RunFacts { request: &self.request, kind, rays, angles };
        refuse_idle_rows(options(), &self.request.given, &run)
    }

    /// The method with its parameters. Errors: a parameter that does nothing; a value out of range.
    fn checked(&self, method: &'static dyn Method) -> Result<Arc<dyn Method>> {
        self.request.method.refuse_idle(&self.request.given, method)?;
        let method = self.request.method.of(method)?;
        method.check()?;
        Ok(method)
    }
}

/// A run whose request was checked, before its scan is read.
pub struct Begun<'a> {
    session: Session<'a>,
    kind: Kind,
}

impl<'a> Begun<'a> {
    pub(super) fn new(
        request: Request,
        mut target: ComputeTarget,
        monitor: Monitor<'a>,
        recorder: RunRecorder,
    ) -> Result<Self> {
        target.memory = request.memory;
        let process = target.bytes_before();
        let kind = read::kind(&request)?;
        let (request, starting, told) = (Arc::new(request), None, Told::new(monitor, recorder));
        let session = Session { request, told, target, starting, process };
        let stated = match &session.request.input {
            Input::Scan(scan) => [Some(scan.geometry.is_some()), Some(true)],
            Input::File(_) => [kind.is_array().then_some(false); 2],
        };
        session.refuse_idle(kind, stated)?;
        if let Some(method) = session.request.method.method() {
            session.checked(method)?;
        }
        Ok(Self { session, kind })
    }

    /// Reads the scan and makes line integrals of it, or opens views that arrive.
    ///
    /// Errors: a scan that cannot be read; rays that neither the scan nor the request states; views, rows or
    /// columns that the scan lacks; corrections that it does not take; an option that does nothing.
    pub fn read(self) -> Result<Understood<'a>> {
        let Self { mut session, kind } = self;
        if let Some(path) = session.request.input.file() {
            session.starting = session.target.starting(path, session.request.dry_run);
        }
        let (request, device) = (&session.request, &session.target.device);
        let stage = if request.input.file().is_some() { "read" } else { "line integrals" };
        let mut lines = session.told.monitor.stage(stage, 0, || read::read(request, kind, device))?;
        session.refuse_idle(kind, [Some(lines.stated.rays), Some(lines.stated.angles)])?;
        std::mem::take(&mut lines.notes).into_iter().for_each(|note| session.told.say(note));
        Ok(Understood { session, lines, method: None })
    }
}

/// A scan that was read, and its rays.
pub struct Understood<'a> {
    session: Session<'a>,
    lines: Lines,
    method: Option<&'static dyn Method>,
}

impl<'a> Understood<'a> {
    /// The method that the user named, or one that suits the rays, which notes then say.
    ///
    /// Errors: no method that suits the scan.
    pub fn method(&mut self) -> Result<&'static dyn Method> {
        if let Some(method) = self.method.or(self.session.request.method.method()) {
            return Ok(method);
        }
        let none = || Error::value("method", "one that suits the scan", "none");
        let (method, reason) = methods().suited(&Facts::of(&self.lines.geometry)).ok_or_else(none)?;
        self.session
            .told
            .say(format!("method {}: {reason} (`--method` chooses another)", method.about().name));
        self.method = Some(method);
        Ok(method)
    }

    /// The method with its parameters, and the voxels.
    ///
    /// Errors: a parameter that does nothing; a value out of range; voxels that are none.
    pub fn choose(mut self) -> Result<Chosen<'a>> {
        let method = self.method()?;
        let Self { mut session, lines, .. } = self;
        session.told.recorder.stage("plan");
        let method = session.checked(method)?;
        let request = session.request.clone();
        request.certify.iter().try_for_each(Certify::validate)?;
        let grid = match request.grid {
            Some(grid) => grid,
            None => {
                let grid = grid(&lines.geometry, &request.wanted)?;
                request.wanted.note(&grid).into_iter().for_each(|note| session.told.say(note));
                grid
            }
        };
        let options = ReconOptions {
            method,
            grid,
            certify: request.certify,
            batch_sizes: Default::default(),
            beside: Vec::new(),
            finish_on_cpu: session.target.finish_on_cpu,
        };
        request.corrections.expect_volume(options.grid.shape_zyx())?;
        Ok(Chosen { session, lines, options })
    }
}

/// A run whose method and voxels are chosen.
pub struct Chosen<'a> {
    pub(super) session: Session<'a>,
    pub(super) lines: Lines,
    pub(super) options: ReconOptions,
}
