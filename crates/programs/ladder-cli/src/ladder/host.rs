//! `rayspin-ladder host`: a variant as a complete CUDA program, with its data.

mod kernels;
mod program;
mod record;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rayspin::device::BackendKind;
use rayspin::tune::{Ladder, Which};
use rayspin_shell::{BadInput, Context, files};

pub(super) use record::record;

use super::benchmark::size;
use super::{Ladders, emulate};
use crate::args::ladder::Host;

/// Writes the program of a variant and the file with its data.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Host) -> Result<()> {
    let ladders = ladders.named(std::slice::from_ref(&args.name))?;
    let Some(&ladder) = ladders.first() else { return Ok(()) };
    let size = args.size.as_deref().map(size).transpose()?;
    let (case, size) = (args.case.as_deref(), size.as_deref());
    let (which, variant) = chosen(ladder, case, size, args.variant.as_deref())?;
    let recorded = record(context, ladder, which, variant, args.seed)?;
    let stem = format!("{}-{}", args.name, recorded.variant);
    let written =
        program::written(&args.name, &stem, &recorded).map_err(|why| refused(&args.name, variant, &why))?;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let write = |ending: &str, bytes: &[u8]| -> Result<PathBuf> {
        let path = folder.join(format!("{stem}.{ending}"));
        std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    };
    let data = write("bin", &written.data)?;
    let text = write("cu", written.text.as_bytes())?;
    files::print(&format!(
        "{}: {}, {} launches, {} bytes of data in {}\n\
         rayspin-ladder run {}\n\
         nvcc -std=c++17 -arch=native {} -o {stem} && ./{stem}",
        text.display(),
        recorded.problem,
        recorded.launches().count(),
        written.data.len(),
        data.display(),
        text.display(),
        text.display(),
    ))
}

/// The refusal of a variant that cannot be written as a program.
fn refused(ladder: &str, variant: &str, why: &str) -> anyhow::Error {
    let message = format!(
        "host {ladder} {variant}: expected a run of kernels that a program can repeat, found that {why}"
    );
    BadInput::new(message).hint(format!("rayspin-ladder list {ladder} lists other variants")).into()
}

/// The problem, and the variant for a GPU that the user names, else the first that takes the problem. Without
/// a case or a size the problem is a small one that the variant takes.
pub(super) fn chosen<'a>(
    ladder: &'a dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
    variant: Option<&str>,
) -> Result<(Which<'a>, &'static str)> {
    let name = ladder.about().name;
    let wanted: Vec<String> = variant.map(str::to_owned).into_iter().collect();
    emulate::check(&wanted, &[ladder])?;
    let plans = emulate::plan(ladder, case, size, &wanted)?;
    for plan in &plans {
        let variants = ladder.outline(plan.which)?.variants;
        let own = variants
            .iter()
            .find(|v| v.backend == BackendKind::Cuda && plan.names.contains(&v.name) && v.refuses.is_none());
        if let Some(own) = own {
            return Ok((plan.which, own.name));
        }
    }
    let why = plans.iter().find_map(|plan| {
        let variants = ladder.outline(plan.which).ok()?.variants;
        variants.iter().find(|v| wanted.iter().any(|w| w == v.name)).and_then(|v| v.refuses.clone())
    });
    let message = match why {
        Some(why) => format!("{name}: expected a problem that the variant takes: {why}"),
        None => format!("{name}: expected a variant for a GPU, found none"),
    };
    Err(BadInput::new(message).hint(format!("rayspin-ladder list {name} says where its variants run")).into())
}
