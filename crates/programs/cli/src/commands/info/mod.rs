//! `rayspin info`

mod ct;
mod draw;
mod file;
mod machine;

use std::path::PathBuf;

use anyhow::Result;
use rayspin::core::{Monitor, printable};
use rayspin::io::{self, Format};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context};
use serde::Serialize;

use super::files;
use crate::args::Info;
use crate::args::arrays::array_options;
use file::{Described, Description};

/// Labels and texts.
type Rows = Vec<(String, String)>;

fn row(rows: &mut Rows, name: &str, value: impl ToString) {
    rows.push((name.to_owned(), value.to_string()));
}

/// What an option may need.
enum Requirement {
    /// One file.
    File,
    /// One array.
    Array,
}

/// The options of `rayspin info`.
const TABLE: &[Row<Requirement>] = &[
    ("files", &[]),
    ("traj", &[Requirement::Array]),
    ("order", &[Requirement::Array]),
    ("traj_units", &[]),
    ("matrix", &[]),
    ("fov", &[]),
    ("output", &[Requirement::File]),
    ("json", &[]),
];

impl Need for Requirement {
    /// The files.
    type Facts<'a> = &'a [PathBuf];

    fn met(&self, files: &Self::Facts<'_>) -> Option<bool> {
        let [file] = files else { return Some(false) };
        let known = io::detect(file);
        Some(match self {
            Self::File => !file.is_dir() || known.is_ok(),
            Self::Array => known.is_ok_and(Format::reads_arrays),
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::File => "one raw scan or trajectory, whose sampling pattern it draws".into(),
            Self::Array => {
                format!("samples without a header ({})", io::endings(Format::reads_arrays).join(", "))
            }
        }
    }

    fn found(&self, files: &Self::Facts<'_>) -> String {
        match files {
            [] => "this machine".into(),
            [file] if file.is_dir() && io::detect(file).is_err() => "a folder".into(),
            [file] => {
                io::detect(io::Input::of(file).file).map_or_else(|_| "another".into(), ToString::to_string)
            }
            several => format!("{} files", several.len()),
        }
    }
}

/// Describes this machine or files.
pub(crate) fn run(context: &Context, args: &Info) -> Result<()> {
    refuse_idle(TABLE, &context.given, &args.files.as_slice())?;
    if args.files.is_empty() {
        let machine = machine::Machine::look(context);
        return print(args, &machine, &machine.rows());
    }
    if let Some(picture) = &args.output {
        files::check_output(picture, Format::is_picture)?;
    }
    let inputs = files::inputs(&args.files, |path| io::detect(path).is_ok())?;
    if let [path] = &inputs.files[..]
        && !inputs.several
    {
        let texts = [&args.traj_units, &args.matrix, &args.fov, &args.order].map(|text| text.as_deref());
        let options = array_options(args.traj.clone(), texts)?;
        let Description { told, sampling } = context.run(|| file::describe(path, &options))?;
        if let Some(picture) = &args.output {
            let Some(sampling) = sampling else {
                let message = format!("--output: expected a raw scan or a trajectory, found {}", told.kind());
                return Err(BadInput::new(message).hint("leave --output out").into());
            };
            let (pixels, words) = draw::picture(&sampling)?;
            io::png::write_rgb(picture, pixels.view())?;
            Monitor::new(&context.console, None).note(&format!("{}: {words}", picture.display()));
        }
        return print(args, &told, &told.rows());
    }
    let mut described = Vec::new();
    for path in &inputs.files {
        let description = context.run(|| file::describe(path, &Default::default()));
        described.push(
            description.map_or_else(|error| Described::broken(path, &error), |description| description.told),
        );
    }
    if args.json {
        files::print(&serde_json::to_string_pretty(&described)?)?;
    } else {
        for (index, told) in described.iter().enumerate() {
            if index > 0 {
                files::print(&"")?;
            }
            print(args, told, &told.rows())?;
        }
    }
    inputs.say_left_out(context, "of no format that Rayspin knows");
    let broken = described.iter().filter(|told| told.is_broken()).count();
    if broken > 0 {
        let message = format!("{broken} of {} files cannot be described", described.len());
        return Err(BadInput::new(message).hint("the lines named 'error' say why").into());
    }
    Ok(())
}

fn print(args: &Info, typed: &impl Serialize, rows: &Rows) -> Result<()> {
    if args.json {
        return files::print(&serde_json::to_string_pretty(typed)?);
    }
    let width = rows.iter().map(|(name, _)| printable(name).chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        let (name, value) = (printable(name), printable(value));
        files::print(&format!("{name:width$}  {value}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["info"], super::TABLE);
    }
}
