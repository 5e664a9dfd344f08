//! From an error to what the user reads and the exit code the shell gets.

use std::process::ExitCode;

use rayspin::core::ErrorKind;

/// Bad input that only the command line can judge (options that contradict each other, a missing option).
#[derive(Debug)]
pub(crate) struct BadInput {
    message: String,
    hint: Option<String>,
}

impl BadInput {
    /// Bad input, as one line that names the option, the expected and the found.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// With a word on what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadInput {}

/// Prints the error and its hint on stderr; 2 when the input is at fault, 130 when interrupted, 1 otherwise.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // Wrapping errors repeat their source in their own text.
        if !message.contains(&text) {
            if !message.is_empty() {
                message.push_str(": ");
            }
            message.push_str(&text.replace('\n', " "));
        }
    }
    say!("error: {message}");
    if let Some(hint) = hint(error) {
        say!("hint: {hint}");
    }
    ExitCode::from(code(error))
}

fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<BadInput>() {
            return 2;
        }
        if interrupted(cause) {
            return 130;
        }
        let kind = cause
            .downcast_ref::<rayspin::io::Error>()
            .map(rayspin::io::Error::kind)
            .or_else(|| cause.downcast_ref::<rayspin::core::Error>().map(rayspin::core::Error::kind));
        if let Some(kind) = kind {
            return if kind == ErrorKind::Input { 2 } else { 1 };
        }
    }
    1
}

fn interrupted(cause: &(dyn std::error::Error + 'static)) -> bool {
    use rayspin::core::Error::Interrupted;
    matches!(cause.downcast_ref(), Some(Interrupted))
        || matches!(cause.downcast_ref(), Some(rayspin::io::Error::Core { source: Interrupted, .. }))
}

/// What to do about it: the error's own advice, else where to look, for whatever the user can mend.
fn hint(error: &anyhow::Error) -> Option<String> {
    let specific = error.chain().find_map(|cause| {
        if let Some(bad) = cause.downcast_ref::<BadInput>() {
            return bad.hint.clone();
        }
        match cause.downcast_ref::<rayspin::io::Error>() {
            Some(rayspin::io::Error::Field { hint: None, .. }) => {
                Some("the file breaks its format there: mend it in the program that wrote it".to_owned())
            }
            Some(rayspin::io::Error::Core { source, .. }) => core_hint(source),
            Some(io) => io.hint(),
            None => cause.downcast_ref::<rayspin::core::Error>().and_then(core_hint),
        }
    });
    let general =
        || (code(error) == 2).then(|| "rayspin help COMMAND lists the options and what they take".to_owned());
    specific.or_else(general)
}

fn core_hint(error: &rayspin::core::Error) -> Option<String> {
    use rayspin::core::Error as E;
    let text = match error {
        E::Value { what, .. } if what == "trajectory units" => {
            "say which they are with --traj-units, or the matrix with --matrix; components are kx, ky, kz, not SigPy's kz, ky, kx"
        }
        E::Value { what, .. } if what == "field of view" => "--fov says it of a file without a header",
        E::Value { what, .. } if what == "BART array" => "bart slice takes one frame of several",
        E::Value { what, .. } if what == "calibration centre" => {
            "give sensitivity maps with --maps, or a narrower centre with --calibration"
        }
        E::Value { what, .. } if what == "sampling for grappa" || what == "calibration lines for grappa" => {
            "--method cg-sense takes any pattern, and maps from --maps"
        }
        E::Value { what, .. } if what == "partial Fourier" => "leave --partial-fourier out",
        E::Value { what, .. } if what == "geometric compression" => "--compression svd suits every scan",
        E::Shape { what, .. } if what == "noise covariance" => "it is [coil, coil], of the scan's own coils",
        E::Value { what, .. } if what.starts_with("acquisition") => {
            "rayspin info FILE lists what the scan holds"
        }
        E::NotFinite { .. } => "the file holds NaN or infinite values: was it written completely?",
        E::Device { .. } => {
            "--device cpu computes without the GPU; with RAYSPIN_CUDA_WAIT=1 an error names its kernel"
        }
        E::Memory { .. } => {
            "a smaller problem needs less: --matrix, fewer slices or a single --repetition of a scan, --size of a ladder; \
             recon --memory takes coils, images or points some at a time"
        }
        E::Shape { what, .. } if what.contains("maps") => "maps are [coil, z, y, x] on the scan's own matrix",
        _ => return None,
    };
    Some(text.to_owned())
}

/// `rayspin info FILE | head` closes the pipe early: that is no error.
fn broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
