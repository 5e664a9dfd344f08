//! What help shows and in which order. `-h` fits a screen: options of every day, a line each. `--help` shows
//! all, with details.

use clap::{Arg, Command};
use rayspin::job::rows::{Kind, Table};

use crate::methods::{Ct, Mri};

/// The options of a command, by the names of their fields.
struct Page {
    /// The command.
    path: &'static [&'static str],
    /// Titles and their options in order; the first group has the title `Options`.
    groups: &'static [(&'static str, &'static [&'static str])],
    /// Options that `--help` alone shows.
    rare: &'static [&'static str],
    /// The options of the command's table.
    rows: fn() -> Vec<Placed>,
}

/// An option of a table: its name, the title that it stands under, and whether `--help` alone shows it.
type Placed = (&'static str, &'static str, bool);

fn of_rows<T: Table>() -> Vec<Placed> {
    let own = T::rows().iter().filter(|row| row.kind != Kind::Program);
    own.map(|row| (row.name, row.group, row.rare)).collect()
}

const RECON: Page = Page {
    path: &["recon", "mri"],
    groups: &[
        ("", &["outputs", "method", "complex", "phase", "bids", "dicom_template", "dry_run"]),
        (METHOD, &["lambda", "iterations", "tolerance", "regulariser", "anatomy", "anatomy_edge", "combine"]),
        ("Scan", &[]),
        (rayspin::mri::corrections::GROUP, &[]),
        ("Coils", &["save_maps"]),
        ("Field and accuracy", &[]),
        ("Quality and record", &["reference", "fit", "record", "no_record", "keep_identity"]),
        (RUN, &[]),
    ],
    rare: &[
        "tolerance",
        "regulariser",
        "combine",
        "save_maps",
        "anatomy",
        "anatomy_edge",
        "wavelet",
        "wavelet_levels",
        "wavelet_seed",
        "low_rank",
        "sparse",
        "partial_fourier",
        "record",
        "no_record",
        "keep_identity",
        "bids",
        "dicom_template",
        "gpu_memory",
    ],
    rows: || of_rows::<Mri>(),
};

const SIMULATE: Page = Page {
    path: &["simulate", "mri"],
    groups: &[
        ("", &["output", "truth", "maps"]),
        (
            "Object",
            &[
                "matrix",
                "fov",
                "dims",
                "coils",
                "phantom",
                "contrast",
                "repetitions",
                "dynamics",
                "period",
                "tr",
                "window",
                "stride",
            ],
        ),
        (
            "Sampling",
            &[
                "trajectory",
                "shots",
                "angles",
                "acceleration",
                "calibration",
                "density_slope",
                "samples",
                "oversampling",
                "gradient",
                "slew",
                "dwell",
            ],
        ),
        (
            "Noise and field",
            &[
                "snr",
                "noise_readouts",
                "noise_correlation",
                "seed",
                "field_map_hz",
                "field_shape",
                "save_field_map",
            ],
        ),
        ("Record", &["record", "no_record"]),
    ],
    rare: &[
        "contrast",
        "period",
        "tr",
        "window",
        "stride",
        "density_slope",
        "samples",
        "oversampling",
        "gradient",
        "slew",
        "dwell",
        "noise_correlation",
        "field_shape",
        "save_field_map",
        "record",
        "no_record",
    ],
    rows: Vec::new,
};

const RECON_CT: Page = Page {
    path: &["recon", "ct"],
    groups: &[
        ("", &["outputs", "method", "correct", "dicom_template", "dry_run"]),
        ("Volume", &[]),
        (METHOD, &[]),
        ("Scan", &[]),
        ("Quality and record", &["reference", "fit", "record", "no_record"]),
        (RUN, &[]),
    ],
    rare: &[
        "dicom_template",
        "cutoff",
        "accuracy",
        "outlier_threshold",
        "outlier_size",
        "bin_views",
        "bin_rows",
        "bin_columns",
        "ring_snr",
        "ring_large",
        "ring_small",
        "ring_drop",
        "ring_sigma",
        "ring_levels",
        "energy",
        "distance",
        "delta_beta",
        "hardening_2",
        "hardening_3",
        "tube",
        "water",
        "air",
        "water_mask",
        "air_mask",
        "tolerance",
        "relaxation",
        "subsets",
        "fit",
        "record",
        "no_record",
        "gpu_memory",
    ],
    rows: || of_rows::<Ct>(),
};

const SIMULATE_CT: Page = Page {
    path: &["simulate", "ct"],
    groups: &[
        ("", &["output", "truth"]),
        (
            "Rays",
            &[
                "geometry",
                "views",
                "arc",
                "detector",
                "pixel",
                "source_to_axis",
                "axis_to_detector",
                "curved",
                "offset",
                "tilt",
                "advance",
            ],
        ),
        ("Object", &["phantom", "contrast", "attenuation", "matrix", "fov", "motion", "cycles", "kilovolts"]),
        ("Detector", &["lines", "rays", "photons", "electronic", "dark", "gain", "drift", "frames", "seed"]),
        ("Record", &["record", "no_record"]),
    ],
    rare: &[
        "curved",
        "tilt",
        "contrast",
        "cycles",
        "electronic",
        "dark",
        "gain",
        "frames",
        "record",
        "no_record",
    ],
    rows: Vec::new,
};

const RENDER: Page = Page {
    path: &["render"],
    groups: &[
        ("", &["outputs", "mode", "turntable", "frame_time"]),
        ("Values", &["hu", "water", "grey", "invert", "preset", "transfer", "iso", "colour", "background"]),
        ("Camera", &["view", "azimuth", "elevation", "perspective", "distance", "width", "size", "step"]),
    ],
    rare: &[
        "water",
        "invert",
        "colour",
        "background",
        "frame_time",
        "distance",
        "width",
        "step",
        "gpu_memory",
    ],
    rows: Vec::new,
};

const FILTER: Page = Page {
    path: &["filter"],
    groups: &[
        ("", &["outputs", "steps"]),
        ("Pictures", &["compare", "slice", "grey"]),
        ("Histogram", &["histogram", "bins", "range"]),
    ],
    rare: &["gpu_memory"],
    rows: Vec::new,
};

const PAGES: [Page; 6] = [RECON, SIMULATE, RECON_CT, SIMULATE_CT, RENDER, FILTER];

/// The title of the parameters that most methods have.
const METHOD: &str = "Method";
/// The title of the options that say how a command runs.
pub(super) const RUN: &str = "Run";

/// Commands that compute on the CPU alone: their help leaves out the options of the device.
const WITHOUT_GPU: [&str; 4] = ["simulate", "metrics", "convert", "completions"];
const OF_THE_DEVICE: [&str; 2] = ["device", "gpu_memory"];

/// The command with its options in groups: rare ones in `--help` alone, options of the device where they act.
pub(super) fn arrange(mut command: Command) -> Command {
    let shared: Vec<Arg> = command.get_arguments().filter(|option| option.is_global_set()).cloned().collect();
    for option in &shared {
        command =
            command.mut_arg(option.get_id().as_str(), |option| option.help_heading(RUN).display_order(900));
    }
    for page in &PAGES {
        command = change(command, page.path, &|inner| page.arrange(inner, &shared));
    }
    let hidden = |option: &&Arg| OF_THE_DEVICE.contains(&option.get_id().as_str());
    for name in WITHOUT_GPU {
        // A subcommand's own option stands before the one of the same name above it.
        let own = shared.iter().filter(hidden).map(|option| option.clone().hide(true));
        command = command.mut_subcommand(name, |inner| inner.args(own));
    }
    command
}

/// The command with the subcommand at `path` changed.
fn change(command: Command, path: &[&str], by: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => by(command),
        [first, rest @ ..] => command.mut_subcommand(*first, |inner| change(inner, rest, by)),
    }
}

impl Page {
    /// The command with its options in the order of the groups: titles stand in the order in which options
    /// bring them.
    fn arrange(&self, mut command: Command, shared: &[Arg]) -> Command {
        let rows = (self.rows)();
        let is_rare = |name: &str| self.rare.contains(&name) || rows.iter().any(|row| row.0 == name && row.2);
        let rare = |option: &Arg| is_rare(option.get_id().as_str());
        let in_groups = |name: &str| self.groups.iter().any(|(_, names)| names.contains(&name));
        let listed = |name: &str| in_groups(name) || rows.iter().any(|row| row.0 == name);
        let own = |option: &&Arg| !option.is_global_set() && !option.is_positional();
        let options: Vec<String> =
            command.get_arguments().filter(own).map(|one| one.get_id().to_string()).collect();
        let mut order = 0;
        for (title, names) in self.groups {
            let names = names.iter().copied();
            let names = names.chain(rows.iter().filter(|row| row.1 == *title).map(|row| row.0));
            // Parameters of few methods follow the parameters of most, under the titles of their own table.
            let others = options.iter().map(String::as_str).filter(|name| *title == METHOD && !listed(name));
            for name in names.chain(others) {
                command = command.mut_arg(name, |option| {
                    let option = match (listed(name), title.is_empty()) {
                        (true, true) => option.help_heading(None),
                        (true, false) => option.help_heading(*title),
                        (false, _) => option,
                    };
                    let rare = rare(&option);
                    option.display_order(order).hide_short_help(rare)
                });
                order += 1;
            }
        }
        let of_run = shared.iter().filter(|option| rare(option));
        let of_run =
            of_run.map(|option| option.clone().help_heading(RUN).display_order(900).hide_short_help(true));
        command.args(of_run)
    }
}

#[cfg(test)]
mod tests {
    use super::PAGES;
    use crate::args::command;

    #[test]
    fn every_option_has_a_place_in_help() {
        let mut command = command();
        command.build();
        for page in &PAGES {
            let found = page.path.iter().try_fold(&command, |at, name| at.find_subcommand(name)).unwrap();
            let rows = (page.rows)();
            let groups = page.groups.iter().flat_map(|(_, names)| names.iter().copied());
            let listed: Vec<&str> = groups.chain(rows.iter().map(|row| row.0)).collect();
            for (name, title, _) in &rows {
                assert!(page.groups.iter().any(|(group, _)| group == title), "{name}: no title {title}");
            }
            let own =
                found.get_arguments().filter(|option| !option.is_global_set() && !option.is_positional());
            for option in own.filter(|option| !["help", "version"].contains(&option.get_id().as_str())) {
                let (name, heading) = (option.get_id().as_str(), option.get_help_heading());
                let place = listed.iter().filter(|listed| **listed == name).count();
                assert!(
                    place == 1 || (place == 0 && heading.is_some()),
                    "{name} is {place} times in the groups"
                );
            }
            let known = |name: &str| found.get_arguments().any(|option| option.get_id().as_str() == name);
            for name in listed.iter().chain(page.rare) {
                assert!(known(name), "{name} is no option of {:?}", page.path);
            }
        }
    }
}
