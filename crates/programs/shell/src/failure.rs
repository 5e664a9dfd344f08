//! From an error to what the user reads and the exit code the shell gets.

use rayspin_core::ErrorKind;
use rayspin_run::BadInput;

use crate::Program;

/// Prints the error and its hint on stderr; 2 when the input is at fault, 130 when interrupted, 1 otherwise.
pub(crate) fn report(program: &Program, error: &anyhow::Error) -> u8 {
    if broken_pipe(error) {
        return 0;
    }
    say!("error: {}", line_of(error));
    if let Some(hint) = hint(program, error) {
        say!("hint: {hint}");
    }
    code(error)
}

/// An error in one line: its causes, each once. Errors that wrap others repeat these in their own text, and
/// errors of files repeat the file.
pub fn line_of(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string().replace('\n', " ");
        if text.starts_with(&message) {
            message = text;
        } else if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
    }
    rayspin_core::as_options(&message).into_owned()
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
            .downcast_ref::<rayspin_io::Error>()
            .map(rayspin_io::Error::kind)
            .or_else(|| cause.downcast_ref::<rayspin_core::Error>().map(rayspin_core::Error::kind));
        if let Some(kind) = kind {
            return if kind == ErrorKind::Input { 2 } else { 1 };
        }
    }
    1
}

/// Whether a run ended because it was asked to.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    error.chain().any(interrupted)
}

fn interrupted(cause: &(dyn std::error::Error + 'static)) -> bool {
    use rayspin_core::Error::Interrupted;
    matches!(cause.downcast_ref(), Some(Interrupted))
        || matches!(cause.downcast_ref(), Some(rayspin_io::Error::Core { source: Interrupted, .. }))
}

/// What to do about it: the error's own advice, else where to look, for whatever the user can mend.
fn hint(program: &Program, error: &anyhow::Error) -> Option<String> {
    let specific = error.chain().find_map(|cause| {
        if let Some(bad) = cause.downcast_ref::<BadInput>() {
            return bad.remedy().map(str::to_owned);
        }
        match cause.downcast_ref::<rayspin_io::Error>() {
            Some(rayspin_io::Error::Field { hint: None, .. }) => {
                Some("`rayspin info FILE` says what the file holds, docs/reading.md which axes and types are expected".to_owned())
            }
            Some(rayspin_io::Error::Core { source, .. }) => {
                (program.hint)(source).or_else(|| core_hint(source))
            }
            Some(io) => io.hint(),
            None => (program.hint)(cause).or_else(|| cause.downcast_ref().and_then(core_hint)),
        }
    });
    let general = || {
        (code(error) == 2)
            .then(|| format!("`{} COMMAND --help` lists the options and what they take", program.name))
    };
    specific.or_else(general)
}

fn core_hint(error: &rayspin_core::Error) -> Option<String> {
    use rayspin_core::Error as E;
    let text = match error {
        E::NotFinite { .. } => "the file holds NaN or infinite values: was it written completely?",
        // The compiler's message names the line, and no device is at fault.
        E::Device { what, .. } if what.starts_with("compiling ") => {
            match what.ends_with("for the emulator") {
                true => return None,
                false => "`--device cpu` computes without the GPU",
            }
        }
        E::Device { .. } => {
            "`--device cpu` computes without the GPU; with RAYSPIN_CUDA_WAIT=1 an error names its kernel"
        }
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
