//! The files of a command line: what a run reads, and what it writes. Each command lists them once; checks,
//! records, `rerun` and `-` take the list.

use std::path::PathBuf;

use rayspin_shell::stdin::Input;
use rayspin_shell::stdout::{self, Output};

use super::{Command, Recon, Simulate};
use rayspin::job::rows::{Kind, Table};

use crate::options::OptionArgs;

/// A file or a folder that an option names.
pub(crate) enum Named<'a> {
    /// An input that may be `-`, standard input.
    Input(Input<'a>),
    /// An output that may be `-`, standard output.
    Output(Output<'a>),
    /// An output that is a file.
    File(&'a mut PathBuf),
    /// A folder to which a run adds files.
    Folder(&'a mut PathBuf),
}

/// The option of images, beside whose first one the record lies.
const IMAGES: &str = "--output";
/// The option of the record.
pub(crate) const RECORD: &str = "--record";

/// The files of a command line.
#[derive(Default)]
pub(crate) struct Files<'a> {
    pub(crate) named: Vec<Named<'a>>,
    /// The output after which the record is named, where the command line names no record.
    pub(crate) record_of: Option<PathBuf>,
    /// Whether its name with the ending .json is the name of another file.
    pub(crate) has_sidecar: bool,
}

impl<'a> Files<'a> {
    fn read(mut self, files: impl IntoIterator<Item = &'a mut PathBuf>) -> Self {
        self.named.extend(files.into_iter().map(|path| Named::Input(Input { path, arriving: false })));
        self
    }

    /// Views, which may be taken as they arrive.
    fn read_views(mut self, path: &'a mut PathBuf) -> Self {
        self.named.push(Named::Input(Input { path, arriving: true }));
        self
    }

    /// Outputs that may be `-`, which is written with `ending`.
    fn write(
        mut self,
        option: &'static str,
        files: impl IntoIterator<Item = &'a mut PathBuf>,
        ending: &'static str,
    ) -> Self {
        self.named.extend(files.into_iter().map(|path| Named::Output(Output { option, path, ending })));
        self
    }

    fn file(mut self, file: &'a mut Option<PathBuf>) -> Self {
        self.named.extend(file.as_mut().map(Named::File));
        self
    }

    /// The files that options of a table name.
    fn of_options<T: Table>(mut self, options: &'a mut OptionArgs<T>) -> Self {
        self.named.extend(options.files().map(|(kind, path)| match kind {
            Kind::Folder => Named::Folder(path),
            Kind::Picture => Named::File(path),
            _ => Named::Input(Input { path, arriving: false }),
        }));
        self
    }

    fn folder(mut self, folder: Option<&'a mut PathBuf>) -> Self {
        self.named.extend(folder.map(Named::Folder));
        self
    }

    fn with_sidecar(mut self, has_sidecar: bool) -> Self {
        self.has_sidecar = has_sidecar;
        self
    }

    /// With a record, unless none is written.
    fn recorded(mut self, record: &'a mut Option<PathBuf>, written: bool) -> Self {
        match record {
            _ if !written => self,
            Some(record) => self.write(RECORD, [record], "json"),
            None => {
                self.record_of = self.named.iter().find_map(|named| match named {
                    Named::Output(Output { option, path, .. }) if *option == IMAGES => {
                        (!stdout::stands_for(path)).then(|| path.to_path_buf())
                    }
                    _ => None,
                });
                self
            }
        }
    }
}

impl Command {
    /// The files that the command line names.
    pub(crate) fn files(&mut self) -> Files<'_> {
        let files = Files::default();
        match self {
            Self::Demo(args) => files.folder(Some(&mut args.out)),
            Self::Simulate(Simulate::Mri(args)) => files
                .write(IMAGES, [&mut args.output], "h5")
                .write("--truth", &mut args.truth, "npy")
                .write("--maps", &mut args.maps, "npy")
                .write("--save-field-map", &mut args.save_field_map, "npy")
                .recorded(&mut args.record.record, !args.record.no_record),
            Self::Simulate(Simulate::Ct(args)) => files
                .write(IMAGES, [&mut args.output], "h5")
                .write("--truth", &mut args.truth, "npy")
                .recorded(&mut args.record.record, !args.record.no_record),
            Self::Recon(Recon::Mri(args)) => files
                .read([&mut args.scan])
                .read(&mut args.run.reference)
                .read(&mut args.dicom_template)
                .read(args.method.files())
                .write(IMAGES, &mut args.outputs, "npy")
                .write("--save-maps", &mut args.save_maps, "npy")
                .of_options(&mut args.options)
                .with_sidecar(args.bids)
                .recorded(&mut args.run.record, !args.run.no_record && !args.run.dry_run),
            Self::Recon(Recon::Ct(args)) => files
                .read_views(&mut args.scan)
                .read(&mut args.run.reference)
                .read(&mut args.dicom_template)
                .read(args.method.files().chain(args.corrections.files()))
                .write(IMAGES, &mut args.outputs, "npy")
                .of_options(&mut args.options)
                .recorded(&mut args.run.record, !args.run.no_record && !args.run.dry_run),
            // Its scans and images are patterns, which it looks at itself.
            Self::Batch(args) => files.read(&mut args.merge).file(&mut args.page).file(&mut args.summary),
            Self::Render(args) => {
                files.read([&mut args.image]).read(&mut args.transfer).write(IMAGES, &mut args.outputs, "png")
            }
            Self::Filter(args) => files
                .read([&mut args.image])
                .write(IMAGES, &mut args.outputs, "npy")
                .write("--compare", &mut args.compare, "png")
                .write("--histogram", &mut args.histogram, "csv"),
            Self::Metrics(args) => files.read(&mut args.images).read([&mut args.reference]),
            Self::Convert(args) => {
                let scan = || rayspin::io::holds_scan(&args.from).unwrap_or(false);
                let scan = args.to.as_os_str() == "-" && scan();
                files
                    .read([&mut args.from])
                    .read(&mut args.dicom_template)
                    .read([&mut args.raw.traj, &mut args.raw.noise].into_iter().flatten())
                    .write("TO", [&mut args.to], if scan { "h5" } else { "npy" })
            }
            Self::Info(args) => {
                files.read(&mut args.files).read(&mut args.traj).write(IMAGES, &mut args.output, "png")
            }
            Self::Rerun(args) => files.read([&mut args.record]).folder(args.out.as_mut()),
            Self::Ladder(_) | Self::Tune(_) | Self::Completions(_) => files,
        }
    }

    /// The inputs that may be `-`, standard input.
    pub(crate) fn inputs(&mut self) -> impl Iterator<Item = Input<'_>> {
        self.files().named.into_iter().filter_map(|named| match named {
            Named::Input(input) => Some(input),
            Named::Output(_) | Named::File(_) | Named::Folder(_) => None,
        })
    }

    /// The outputs that may be `-`, standard output.
    pub(crate) fn outputs(&mut self) -> impl Iterator<Item = Output<'_>> {
        self.files().named.into_iter().filter_map(|named| match named {
            Named::Output(output) => Some(output),
            Named::Input(_) | Named::File(_) | Named::Folder(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, FromArgMatches as _, ValueHint};

    use super::*;
    use crate::args::{self, Cli};

    /// The files of a command line by their names.
    fn names(line: &[&str]) -> Vec<PathBuf> {
        let matches = args::command().try_get_matches_from(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let mut cli = Cli::from_arg_matches(&matches).unwrap();
        let named = cli.command.files().named.into_iter();
        named
            .map(|named| match named {
                Named::Input(Input { path, .. }) => path.clone(),
                Named::Output(Output { path, .. }) | Named::File(path) | Named::Folder(path) => path.clone(),
            })
            .collect()
    }

    #[test]
    fn every_option_that_names_a_file_is_listed() {
        for (line, named) in [
            ("demo", vec![]),
            ("simulate mri -o 0.h5 --field-map-hz 1", vec!["0.h5"]),
            ("simulate ct -o 0.h5", vec!["0.h5"]),
            ("recon mri 0.h5 -o 1.npy -o 2.npy", vec!["0.h5", "1.npy", "2.npy"]),
            (
                "recon ct 0.h5 -o 1.npy -o 2.npy --flat 3.npy --dark 4.npy",
                vec!["0.h5", "3.npy", "4.npy", "1.npy"],
            ),
            ("render 0.npy -o 1.png -o 2.png", vec!["0.npy", "1.png", "2.png"]),
            ("filter 0.npy -o 1.npy -o 2.npy", vec!["0.npy", "1.npy", "2.npy"]),
            ("metrics 0.npy 1.npy 2.npy", vec!["0.npy", "1.npy", "2.npy"]),
            ("convert --raw 0.npy 1.npy", vec!["0.npy", "1.npy"]),
            ("info 0.npy 1.npy", vec!["0.npy", "1.npy"]),
            ("rerun 0.json", vec!["0.json"]),
            ("batch 0.h5 -o 1.npy", vec![]),
        ] {
            let line: Vec<&str> = std::iter::once("rayspin").chain(line.split(' ')).collect();
            let found = names(&line);
            assert!(named.iter().all(|name| found.contains(&name.into())), "{line:?}: {found:?}");
            let mut program = args::command();
            program.build();
            let command = line[1..].iter().map_while({
                let mut at = program.clone();
                move |word| {
                    at = at.find_subcommand(word)?.clone();
                    Some(at.clone())
                }
            });
            let command = command.last().unwrap();
            for option in command.get_arguments() {
                let names_file = matches!(option.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath);
                let Some(long) = option.get_long().filter(|_| names_file) else { continue };
                // An option that may stand once stands in the line already.
                let given = option.get_short().is_some_and(|short| line.contains(&&*format!("-{short}")));
                let given = given || line.contains(&&*format!("--{long}"));
                if given && matches!(option.get_action(), ArgAction::Set) {
                    continue;
                }
                let long = format!("--{long}");
                let found = names(&[&line[..], &[&*long, "named.json"]].concat());
                assert!(found.contains(&"named.json".into()), "{line:?} {long}: {found:?}");
            }
        }
    }
}
