//! From a plan to a volume.

use std::sync::Arc;

use ndarray::Array3;
use rayspin_core::ProjectionGeometry;
use rayspin_ct::corrections::Correction;
use rayspin_ct::recon::{ReconOptions, Reconstruction, compile_ahead, reconstruct};
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_run::Value;

use super::arriving::{Arriving, Stream};
use super::plan::Planned;
use super::read::{Lines, Source};
use super::request::Request;
use super::states::Session;
use crate::asked::{record, recorded};
use crate::compute_target::{expect_memory, peaks};
use crate::{Error, Result, Told, rows};

/// A volume, how it came about, and the record so far.
pub struct Finished<'a> {
    /// The request.
    pub request: Arc<Request>,
    /// What decided the volume.
    pub options: ReconOptions,
    /// Where it was computed.
    pub device: Device,
    /// What was told. The running stage of the record is the reconstruction.
    pub told: Told<'a>,
    /// The volume, how the iterations went, and what was measured of the transforms. The volume is empty
    /// where its slabs went to the sink.
    pub made: Reconstruction,
    /// The rays that were used.
    pub geometry: ProjectionGeometry,
    /// The column on which the axis falls, where it was given or found.
    pub axis: Option<f64>,
}

impl<'a> Planned<'a> {
    /// Compiles kernels, reconstructs, and recovers from a GPU that fails. `sink` takes the slabs of a run
    /// that [is cut](Self::is_cut). The result of any other run holds the volume.
    ///
    /// Errors: memory; whatever reading, reconstructing and the sink come to.
    pub fn run<E: From<Error> + From<rayspin_core::Error>>(
        self,
        sink: &mut dyn FnMut(Array3<f32>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Finished<'a>, E> {
        expect_memory(&self.plan)?;
        let is_cut = self.is_cut();
        let Self { mut session, lines, options, plan, limits } = self;
        let Session { request, target, told, .. } = &mut session;
        let Told { recorder, monitor, .. } = told;
        recorder.parameter("memory limit", serde_json::json!(target.memory));
        recorder.parameter("memory stated", plan.peak());
        recorder.parameter("GPU memory limit", serde_json::json!(limits.gpu));
        recorder.parameter("GPU memory stated", plan.budget.gpu_peak());
        recorder.parameter("slices at a time", serde_json::json!(options.batch_sizes.slices));
        recorder.parameter("views at a time", serde_json::json!(options.batch_sizes.views));
        recorder.parameter("budget", serde_json::to_value(&plan.budget).map_err(Error::from)?);
        // A memory limit does not count compilers: with it, a kernel is compiled when it is needed. A
        // rehearsal holds the whole scan, of views that arrive there may be no room for.
        let whole = matches!(lines.values, Source::Whole(_));
        if target.device.kind() == BackendKind::Cuda && target.memory.is_none() && whole {
            recorder.stage("compile kernels");
            compile_ahead(&target.device, &lines.geometry, &options);
        }
        recorder.stage("reconstruct");
        let Lines { values, geometry, pixel_mm, axis, .. } = lines;
        let of_scan = |error| request.input.error(error);
        let mut made = match values {
            Source::Whole(values) => {
                let made = reconstruct(&target.device, values, &geometry, &options, monitor);
                made.map_err(of_scan)?
            }
            Source::Arriving(mut passes) => {
                let preview = request.preview.as_deref();
                let finish_on_cpu = options.finish_on_cpu && passes.repeat();
                let corrections = Arriving { corrections: &request.corrections, pixel_mm };
                let device = target.device.clone();
                let (geometry, options) = (&geometry, &options);
                let mut stream = Stream { geometry, options, preview, device, finish_on_cpu, corrections };
                let [_, ny, nx] = options.grid.shape_zyx();
                let mut volume = Array3::zeros((0, ny, nx));
                let notes = stream.run(&mut passes, monitor, &mut |slab| {
                    if is_cut {
                        return sink(slab);
                    }
                    volume = slab;
                    Ok(())
                })?;
                target.device = stream.device;
                Reconstruction { volume, solve: None, notes, certificates: Vec::new() }
            }
        };
        request.corrections.volume(target.device.cpu_side(), &mut made.volume)?;
        session.told.record_stages();
        std::mem::take(&mut made.notes).into_iter().for_each(|note| session.told.say(note));
        let Session { request, target, told, .. } = session;
        Ok(Finished { request, options, device: target.device, told, made, geometry, axis })
    }
}

impl Finished<'_> {
    /// Records what decided the volume, and how the iterations went.
    pub fn record(&mut self) -> Result<()> {
        let Self { told, options, request, made, axis, .. } = self;
        let recorder = &mut told.recorder;
        record(recorder, &*options.method, |_| None);
        recorder.parameter("voxels", serde_json::to_value(options.grid)?);
        rows::record(super::options::options(), &**request, recorder);
        recorder.parameter("corrections", corrections(request));
        recorder.parameter("axis", serde_json::json!(axis));
        recorder.parameter("iterations done", serde_json::to_value(&made.solve)?);
        recorder.parameter("certificates", serde_json::json!(made.certificates));
        if let Backend::Cuda(cuda) = self.device.backend() {
            recorder.parameter("GPU memory peak", cuda.memory_used().1);
            let beside = peaks(&options.beside);
            if !beside.is_empty() {
                recorder.parameter("GPU memory peaks beside", beside);
            }
        }
        Ok(())
    }
}

/// The corrections with their parameters, in the order in which they act.
fn corrections(request: &Request) -> serde_json::Value {
    let entry = |one: &dyn Correction| {
        let mut entry = serde_json::Map::new();
        entry.insert("name".into(), one.about().name.into());
        for param in one.table() {
            let value = one.get(param.name).unwrap_or(Value::Nothing);
            let file = || request.correction_files.get(param.name).cloned();
            entry.insert(param.name.into(), recorded(&value, file));
        }
        serde_json::Value::Object(entry)
    };
    request.corrections.iter().map(entry).collect()
}
