//! What this machine is.

use rayspin::device::{Backend, Device, cpu, cuda, private};
use rayspin::report::number;
use rayspin::tune::limits::{StoredLimits, stored};
use rayspin_shell::Context;
use serde::Serialize;

use super::{Rows, row};

/// This machine, as `info --json` writes it; docs/info.md explains the fields.
#[derive(Serialize)]
pub(super) struct Machine {
    rayspin: &'static str,
    processor: String,
    threads: usize,
    instruction_set: &'static str,
    memory_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    limits: Vec<Limit>,
    gpus: Vec<Gpu>,
    /// Why there are no GPUs.
    no_gpu: Option<String>,
    kernel_compiler: Option<[u32; 2]>,
    precompiled_kernels: Precompiled,
    cufft: Option<[u32; 2]>,
    kernel_cache: Option<String>,
    /// Why compiled kernels are not kept.
    no_kernel_cache: Option<String>,
    system: &'static str,
    architecture: &'static str,
}

/// A rate that rayspin-ladder has measured of a processor before.
#[derive(Serialize)]
struct Limit {
    name: &'static str,
    per_second: f64,
    unit: &'static str,
}

#[derive(Serialize)]
struct Gpu {
    name: String,
    description: Option<String>,
    error: Option<String>,
    compute_capability: Option<[u32; 2]>,
    driver: Option<[u32; 2]>,
    memory_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    copy_bytes_per_second: Option<f64>,
    copy_error: Option<String>,
    limits: Vec<Limit>,
}

/// Kernels compiled beforehand, or the reason for their absence.
#[derive(Serialize)]
struct Precompiled {
    programs: usize,
    capabilities: Vec<[u32; 2]>,
    cuda: Option<[u32; 2]>,
    origin: Option<String>,
    ignored: Option<String>,
}

impl Machine {
    pub(super) fn look(context: &Context) -> Self {
        let memory = cpu::memory();
        let (gpus, no_gpu) = gpus(context);
        let folder = cuda::cache_folder();
        let checked = folder.as_deref().map(private::check);
        Self {
            rayspin: env!("CARGO_PKG_VERSION"),
            processor: cpu::model_name(),
            threads: context.threads(),
            instruction_set: context.simd_name(),
            memory_bytes: memory.map(|(total, _)| total),
            memory_available_bytes: memory.map(|(_, available)| available),
            limits: limits(&context.device.host()),
            kernel_compiler: cuda::compiler_version().map(|(major, minor)| [major, minor]),
            precompiled_kernels: precompiled(),
            cufft: cuda::fft_version().map(|(major, minor)| [major, minor]),
            kernel_cache: folder.filter(|_| matches!(checked, Some(Ok(())))).map(|f| f.display().to_string()),
            no_kernel_cache: match checked {
                Some(Err(error)) => Some(error.to_string()),
                _ => None,
            },
            gpus,
            no_gpu,
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
        }
    }

    pub(super) fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        row(&mut rows, "rayspin", self.rayspin);
        row(&mut rows, "processor", &self.processor);
        row(&mut rows, "threads", self.threads);
        row(&mut rows, "instruction set", self.instruction_set);
        memory(&mut rows, "memory", self.memory_bytes.zip(self.memory_available_bytes));
        show_limits(&mut rows, &self.limits);
        match &self.no_gpu {
            Some(why) => row(&mut rows, "GPU", format!("none: {why}")),
            None => self.show_gpus(&mut rows),
        }
        row(&mut rows, "system", format!("{} {}", self.system, self.architecture));
        rows
    }

    fn show_gpus(&self, rows: &mut Rows) {
        for gpu in &self.gpus {
            gpu.show(rows);
        }
        match self.kernel_compiler {
            Some(version) => row(rows, "kernel compiler", format!("NVRTC {}", dotted(version))),
            None => row(rows, "kernel compiler", "none: NVRTC (libnvrtc.so) was not found"),
        }
        let words = match &self.precompiled_kernels {
            Precompiled { ignored: Some(why), .. } => format!("ignored: {why}"),
            Precompiled { programs, capabilities, cuda: Some(cuda), origin: Some(origin), .. } => {
                let listed: Vec<_> = capabilities.iter().map(|capability| dotted(*capability)).collect();
                let machine = match listed.is_empty() {
                    true => String::new(),
                    false => format!("machine code for {}, ", listed.join(", ")),
                };
                format!("{programs} programs of CUDA {}, {machine}{origin}", dotted(*cuda))
            }
            _ => "none".into(),
        };
        row(rows, "precompiled kernels", words);
        match self.cufft {
            Some(version) => row(rows, "cuFFT", format!("{}, for benchmarks", dotted(version))),
            None => row(rows, "cuFFT", "none; only benchmarks use it"),
        }
        match (&self.kernel_cache, &self.no_kernel_cache) {
            (Some(folder), _) => row(rows, "kernel cache", folder),
            (None, Some(error)) => row(rows, "kernel cache", format!("off: {error}")),
            (None, None) => row(rows, "kernel cache", "off"),
        }
    }
}

impl Gpu {
    fn show(&self, rows: &mut Rows) {
        let name = format!("GPU {}", self.name);
        let description = match (&self.description, &self.error) {
            (Some(text), _) => text.clone(),
            (None, error) => format!("not usable: {}", error.as_deref().unwrap_or("unknown")),
        };
        row(rows, &name, description);
        if let Some(version) = self.compute_capability {
            row(rows, "  compute capability", dotted(version));
        }
        if let Some(version) = self.driver {
            row(rows, "  driver", format!("CUDA {}", dotted(version)));
        }
        memory(rows, "  memory", self.memory_bytes.zip(self.memory_available_bytes));
        if let Some(bandwidth) = self.copy_bytes_per_second {
            let text = format!("{:.2} TB/s read and written, measured", bandwidth / 1e12);
            row(rows, "  copy bandwidth", text);
        }
        if let Some(error) = &self.copy_error {
            row(rows, "  copy bandwidth", error);
        }
        show_limits(rows, &self.limits);
    }
}

fn dotted([major, minor]: [u32; 2]) -> String {
    format!("{major}.{minor}")
}

fn memory(rows: &mut Rows, name: &str, memory: Option<(u64, u64)>) {
    if let Some((total, available)) = memory {
        row(rows, name, format!("{}, {} available", number::bytes(total), number::bytes(available)));
    }
}

fn limits(device: &Device) -> Vec<Limit> {
    let StoredLimits::Found(limits) = stored(cuda::cache_folder().as_deref(), device) else {
        return Vec::new();
    };
    let limit = |(name, per_second, unit)| Limit { name, per_second, unit };
    limits.rates.rows().into_iter().map(limit).collect()
}

fn show_limits(rows: &mut Rows, limits: &[Limit]) {
    for limit in limits {
        let rate = number::significant(limit.per_second / 1e9, 4);
        let text = format!("{rate} ×10⁹ {}, measured by rayspin-ladder", limit.unit);
        row(rows, &format!("  {}", limit.name), text);
    }
}

/// The GPUs of this machine, or the reason for their absence.
fn gpus(context: &Context) -> (Vec<Gpu>, Option<String>) {
    match cuda::count() {
        Ok(count) => ((0..count).map(|ordinal| gpu(context, ordinal)).collect(), None),
        Err(absent) => (Vec::new(), Some(absent.to_string())),
    }
}

fn gpu(context: &Context, ordinal: usize) -> Gpu {
    let mut facts = Gpu {
        name: format!("cuda:{ordinal}"),
        description: None,
        error: None,
        compute_capability: None,
        driver: None,
        memory_bytes: None,
        memory_available_bytes: None,
        copy_bytes_per_second: None,
        copy_error: None,
        limits: Vec::new(),
    };
    let device = match Device::cuda(ordinal, context.device.host()) {
        Ok(device) => device,
        Err(error) => {
            facts.error = Some(error.to_string());
            return facts;
        }
    };
    facts.description = Some(device.describe());
    let Backend::Cuda(gpu) = device.backend() else { return facts };
    let properties = gpu.properties();
    let (major, minor) = properties.capability;
    facts.compute_capability = Some([major, minor]);
    facts.driver = Some([properties.driver.0, properties.driver.1]);
    facts.memory_bytes = Some(properties.memory);
    facts.memory_available_bytes = gpu.memory_left().ok();
    match rayspin::device::copy_bandwidth(&device) {
        Ok(bandwidth) => facts.copy_bytes_per_second = Some(bandwidth),
        Err(error) => facts.copy_error = Some(error.to_string()),
    }
    facts.limits = limits(&device);
    facts
}

fn precompiled() -> Precompiled {
    let none = Precompiled { programs: 0, capabilities: Vec::new(), cuda: None, origin: None, ignored: None };
    match cuda::archive() {
        Ok(Some(archive)) => {
            let (major, minor) = archive.compiler();
            let origin = Some(archive.origin().to_string());
            let capabilities =
                archive.machine_code().into_keys().map(|(major, minor)| [major, minor]).collect();
            let programs = archive.len();
            Precompiled { programs, capabilities, cuda: Some([major, minor]), origin, ignored: None }
        }
        Ok(None) => Precompiled { ignored: cuda::ignored_archive().map(|why| why.to_string()), ..none },
        Err(error) => Precompiled { ignored: Some(error.to_string()), ..none },
    }
}
