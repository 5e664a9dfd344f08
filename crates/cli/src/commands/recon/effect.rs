//! Which options act on a reconstruction.

use clap::ValueEnum;
use rayspin::io::{self, Format};
use rayspin::mri::recon::Method;
use rayspin_shell::effect::{Need, Row, any_of};

use super::options::{method_name, method_of};
use crate::args::{CombineArg, MethodArg, ReconMri, RegulariserArg};
use crate::commands::files;

/// What is known of a reconstruction: its options and the scan's format at once, the method and the scan later.
pub(super) struct Run<'a> {
    pub(super) args: &'a ReconMri,
    pub(super) format: &'static Format,
    /// Of the trajectory's own file.
    pub(super) traj: Option<&'static Format>,
    pub(super) method: Option<Method>,
    pub(super) scan: Option<Scan>,
}

/// What the scan says.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    /// Whether samples lie on a grid.
    pub(super) on_grid: bool,
    /// Receive coils.
    pub(super) coils: usize,
    /// Repetitions or windows.
    pub(super) repetitions: usize,
    /// Whether there are noise readouts.
    pub(super) noise: bool,
}

impl Run<'_> {
    fn uses_maps(&self) -> Option<bool> {
        let combines = match self.args.combine {
            Some(how) => how == CombineArg::Maps,
            None => self.args.maps.is_some(),
        };
        if combines { Some(true) } else { Some(self.method?.sees_all_coils()) }
    }

    /// Whether maps are found from the scan. A sparse image of one coil needs none.
    fn estimates_maps(&self) -> Option<bool> {
        if self.args.maps.is_some() || self.uses_maps() == Some(false) {
            return Some(false);
        }
        let alone = self.method?.is_sparse() && self.scan?.coils == 1;
        Some(self.uses_maps()? && !alone)
    }

    fn quadratic(&self) -> Option<bool> {
        self.method.map(|method| method.iterates() && !method.is_sparse())
    }

    /// Whether samples are transformed where they lie, and not on their grid.
    fn scattered(&self) -> Option<bool> {
        Some(self.args.field_map.is_some() || !self.scan?.on_grid)
    }
}

/// What an option may need.
pub(super) enum Needs {
    /// One of some methods.
    Method(fn(Method) -> bool),
    /// A penalty, which λ weighs.
    Penalty,
    /// Differences, which a reference image weighs.
    Differences,
    Trajectory,
    /// A transform that is approximate.
    Nufft,
    /// Density weights.
    Weights,
    /// Sensitivity maps, whatever their source.
    Maps,
    /// Sensitivity maps that are estimated.
    Estimate,
    /// Maps or an eigenvalue that an image could take from another.
    Shared,
    /// An ISMRMRD scan.
    Header,
    /// k-space as an array.
    Array,
    /// A file whose arrays or scans have names.
    Names,
    /// A trajectory's file whose arrays have names.
    TrajectoryNames,
    Coils,
    Repetitions,
    /// Noise readouts.
    Noise,
}

const ALWAYS: &[Needs] = &[];
const HEADER: &[Needs] = &[Needs::Header];
const ITERATES: &[Needs] = &[Needs::Method(Method::iterates)];
const WAVELET: &[Needs] = &[Needs::Method(|method| method == Method::Wavelet)];
const QUADRATIC: Needs = Needs::Method(|method| method.iterates() && !method.is_sparse());
const COIL_BY_COIL: Needs = Needs::Method(|method| !method.sees_all_coils());
const ON_A_GRID: Needs = Needs::Method(|method| matches!(method, Method::Cartesian | Method::Grappa));
const IN_A_FIELD: Needs = Needs::Method(|method| !matches!(method, Method::Cartesian | Method::Grappa));

/// The options of `rayspin recon mri`.
pub(super) const TABLE: &[Row<Needs>] = &[
    ("scan", ALWAYS),
    ("outputs", ALWAYS),
    ("dry_run", ALWAYS),
    ("memory", ALWAYS),
    ("certify", ALWAYS),
    ("certify_seed", ALWAYS),
    ("cache", &[Needs::Method(Method::iterates), Needs::Trajectory]),
    ("method", ALWAYS),
    ("combine", &[COIL_BY_COIL]),
    ("lambda", &[Needs::Method(Method::iterates), Needs::Penalty]),
    ("regulariser", &[QUADRATIC]),
    ("anatomy", &[Needs::Differences]),
    ("anatomy_edge", ALWAYS),
    ("field_map", &[IN_A_FIELD]),
    ("field_tolerance", ALWAYS),
    ("wavelet", WAVELET),
    ("wavelet_levels", WAVELET),
    ("wavelet_seed", WAVELET),
    ("iterations", ITERATES),
    ("tolerance", ITERATES),
    ("epsilon", &[Needs::Nufft]),
    ("density", &[Needs::Weights]),
    ("maps", &[Needs::Maps]),
    ("save_maps", &[Needs::Maps]),
    ("calibration", &[Needs::Estimate]),
    ("partial_fourier", &[ON_A_GRID]),
    ("no_prewhiten", &[Needs::Noise, Needs::Coils]),
    ("noise_covariance", &[Needs::Coils]),
    ("coils", &[Needs::Coils]),
    ("compression", ALWAYS),
    ("sensitivities", &[Needs::Estimate]),
    ("map_sets", ALWAYS),
    ("map_crop", ALWAYS),
    ("traj", &[Needs::Array]),
    ("traj_dataset", &[Needs::TrajectoryNames]),
    ("traj_units", &[Needs::Trajectory]),
    ("matrix", ALWAYS),
    ("fov", &[Needs::Array]),
    ("dataset", &[Needs::Names]),
    ("encoding", HEADER),
    ("slice", HEADER),
    ("repetition", HEADER),
    ("contrast", HEADER),
    ("phase", HEADER),
    ("set", HEADER),
    ("window", HEADER),
    ("stride", ALWAYS),
    ("frames", ALWAYS),
    ("independent", &[Needs::Shared, Needs::Repetitions]),
    ("reference", ALWAYS),
    ("fit", ALWAYS),
    ("record", ALWAYS),
    ("no_record", ALWAYS),
    ("keep_identity", HEADER),
];

/// `--method ls, cg-sense, wavelet or tv`
fn methods(of: fn(Method) -> bool) -> String {
    let all = MethodArg::value_variants().iter().map(|&method| method_of(method));
    let names: Vec<&str> = all.filter(|&method| of(method)).map(method_name).collect();
    format!("--method {}", any_of(&names))
}

impl Need for Needs {
    type Run<'a> = Run<'a>;

    fn met(&self, run: &Run<'_>) -> Option<bool> {
        let regulariser = run.args.regulariser;
        match self {
            Self::Method(of) => run.method.map(of),
            Self::Penalty => Some(!(run.quadratic()? && regulariser == Some(RegulariserArg::None))),
            Self::Differences => {
                let differences = regulariser == Some(RegulariserArg::Differences);
                Some(run.method? == Method::TotalVariation || (run.quadratic()? && differences))
            }
            Self::Trajectory => Some(!run.scan?.on_grid),
            Self::Nufft => run.scattered(),
            Self::Weights => {
                let grids = run.method? == Method::Gridding && run.scattered()?;
                Some(grids || (!run.scan?.on_grid && run.estimates_maps()?))
            }
            Self::Maps => run.uses_maps(),
            Self::Estimate => run.estimates_maps(),
            Self::Shared => Some(run.estimates_maps()? || (run.quadratic()? && Self::Penalty.met(run)?)),
            Self::Header => Some(run.format.reads_scans()),
            Self::Array => Some(!run.format.reads_scans()),
            Self::Names => Some(run.format.has_names()),
            Self::TrajectoryNames => Some(run.traj.is_some_and(Format::has_names)),
            Self::Coils => Some(run.scan?.coils > 1),
            Self::Repetitions => Some(run.scan?.repetitions > 1),
            Self::Noise => Some(run.scan?.noise),
        }
    }

    fn expected(&self) -> String {
        let all_coils = methods(Method::sees_all_coils);
        match self {
            Self::Method(of) => methods(*of),
            Self::Penalty => "-W identity or differences".into(),
            Self::Differences => "--method tv, or ls or cg-sense with -W differences".into(),
            Self::Trajectory => "a scan with a trajectory".into(),
            Self::Nufft => "a scan with a trajectory, or --field-map".into(),
            Self::Weights => {
                format!(
                    "--method gridding, or maps estimated along a trajectory ({all_coils}, or --combine maps)"
                )
            }
            Self::Maps => format!("a run with sensitivity maps ({all_coils}, or --combine maps)"),
            Self::Estimate => {
                format!(
                    "a run that estimates sensitivity maps ({all_coils}, or --combine maps, without --maps)"
                )
            }
            Self::Shared => "estimated sensitivity maps, or a penalty of ls or cg-sense".into(),
            Self::Header => "a scan with counters (ISMRMRD)".into(),
            Self::Array => {
                format!("k-space without a header ({})", io::endings(Format::reads_arrays).join(", "))
            }
            Self::Names => files::files_with_names(),
            Self::TrajectoryNames => {
                let of = |format: &Format| format.has_names() && format.reads_arrays();
                format!("a trajectory in a file of several arrays ({})", io::endings(of).join(", "))
            }
            Self::Coils => "several coils".into(),
            Self::Repetitions => "several repetitions, or --window".into(),
            Self::Noise => "a scan with noise readouts".into(),
        }
    }

    fn found(&self, run: &Run<'_>) -> String {
        let method =
            || run.method.map_or_else(|| "another".into(), |m| format!("--method {}", method_name(m)));
        let place = || if run.scan.is_some_and(|scan| scan.on_grid) { "a grid" } else { "a trajectory" };
        match self {
            Self::Method(_) | Self::Differences | Self::Shared => method(),
            Self::Penalty => "-W none".into(),
            Self::Trajectory | Self::Nufft => place().into(),
            Self::Weights => format!("{} on {}", method(), place()),
            Self::Maps | Self::Estimate => match (&run.args.maps, run.args.combine) {
                (Some(_), _) if matches!(self, Self::Estimate) => "--maps".into(),
                (_, Some(CombineArg::Rss)) => "--combine rss".into(),
                _ => method(),
            },
            Self::Header => format!("the samples of one image ({})", run.format),
            Self::Array => "an ISMRMRD scan, which states it".into(),
            Self::Names => run.format.to_string(),
            Self::TrajectoryNames => run.traj.map_or_else(|| "none".into(), |format| format.to_string()),
            Self::Coils => "one coil".into(),
            Self::Repetitions => "one image".into(),
            Self::Noise => "a scan without".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["recon", "mri"], super::TABLE);
    }
}
