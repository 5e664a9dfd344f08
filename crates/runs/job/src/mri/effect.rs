//! Which options act on a reconstruction.

use rayspin_io::{self as io, Format};
use rayspin_mri::methods::{MapUse, Method, SampleKind};
use rayspin_run::{Need, Value};

use super::methods;
use super::request::{Input, Request};
use crate::rows::{origin_expected, writes_origin};

/// What is known of a reconstruction: the request and where its scan lies at once, the method and the scan
/// later.
pub struct RunFacts<'a> {
    pub(super) request: &'a Request,
    pub(super) known: Known,
}

/// What becomes known of a run.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The format of the scan's file; none of a scan in memory.
    pub(super) format: Option<&'static Format>,
    /// Whether the scan has a header.
    pub(super) header: bool,
    /// Whether its images are numbered.
    pub(super) numbered: bool,
    pub(super) method: Option<&'static dyn Method>,
    pub(super) scan: Option<Scan>,
}

/// What the scan says.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    /// Whether samples lie on a grid.
    pub(super) on_grid: bool,
    /// Receive coils.
    pub(super) coils: usize,
    /// Volumes or windows.
    pub(super) volumes: usize,
    /// Whether there are noise readouts.
    pub(super) noise: bool,
}

impl RunFacts<'_> {
    fn uses_maps(&self) -> Option<bool> {
        let combines = match self.request.method.value("combine") {
            Some(how) => *how == Value::Choice("maps"),
            None => self.request.maps.is_some(),
        };
        if combines { Some(true) } else { self.known.method.map(sees_all_coils) }
    }

    /// Whether maps are found from the scan. One coil that sees everything alike needs none.
    pub(super) fn estimates_maps(&self) -> Option<bool> {
        if self.request.maps.is_some() || self.uses_maps() == Some(false) {
            return Some(false);
        }
        let alone = self.known.method?.uses().maps == MapUse::One && self.known.scan?.coils == 1;
        Some(self.uses_maps()? && !alone)
    }

    /// Whether the image has a phase: a root of a sum of squares has none, and one coil is not squared.
    fn has_phase(&self) -> Option<bool> {
        let apart = self.request.method.value("combine") == Some(&Value::Choice("none"));
        if apart || self.uses_maps()? {
            return Some(true);
        }
        Some(self.known.scan?.coils == 1)
    }

    /// Whether λ is relative to an eigenvalue that one image could take from another.
    fn shares_eigenvalue(&self) -> Option<bool> {
        let none = self.request.method.value("regulariser") == Some(&Value::Choice("none"));
        Some(self.known.method.map(shares_eigenvalue)? && !none)
    }

    /// Whether samples are transformed where they lie, and not on their grid.
    fn scattered(&self) -> Option<bool> {
        Some(self.request.field_map.is_some() || !self.known.scan?.on_grid)
    }

    /// Where the samples come from: the format of their file.
    fn place(&self) -> String {
        self.known.format.map_or_else(|| "in memory".to_owned(), ToString::to_string)
    }
}

/// Whether a method iterates with the normal operator.
pub fn iterates(method: &dyn Method) -> bool {
    method.uses().normal
}

/// Whether a method makes the coefficients of a temporal basis.
pub fn over_a_basis(method: &dyn Method) -> bool {
    method.uses().coefficients
}

/// Whether a method takes samples of an inhomogeneous field.
pub fn in_a_field(method: &dyn Method) -> bool {
    method.uses().samples != SampleKind::Grid
}

/// Whether the largest eigenvalue of one image serves the next.
fn shares_eigenvalue(method: &dyn Method) -> bool {
    let uses = method.uses();
    uses.normal && !uses.own_eigenvalue
}

fn sees_all_coils(method: &dyn Method) -> bool {
    !matches!(method.uses().maps, MapUse::Combining(_))
}

/// What an option may need.
#[derive(Clone, Copy)]
pub enum Requirement {
    /// One of some methods.
    Method(fn(&dyn Method) -> bool),
    /// Samples along a trajectory.
    Trajectory,
    /// A transform that is approximate.
    Nufft,
    /// Density weights.
    Weights,
    /// Sensitivity maps, whatever their source.
    Maps,
    /// Sensitivity maps that are estimated.
    Estimate,
    /// An image that has a phase.
    Phase,
    /// A file that holds numbers, and not a picture alone.
    Numbers,
    /// A file that states whose image it is.
    Origin,
    /// Maps or an eigenvalue that an image could take from another.
    Shared,
    /// An ISMRMRD scan.
    Header,
    /// A file that numbers its images.
    Numbered,
    /// A scan that is read from a file or has a header: arrays in memory are complete.
    Described,
    /// Images, not coefficients of a temporal basis.
    Images,
    /// k-space as an array.
    Array,
    /// Readouts: a scan with a header, or samples along a trajectory.
    Readouts,
    /// Several coils.
    Coils,
    /// Several volumes or windows.
    Volumes,
    /// Noise readouts.
    Noise,
}

pub(super) const HEADER: &[Requirement] = &[Requirement::Header];
pub(super) const NUMBERED: &[Requirement] = &[Requirement::Numbered];
pub(super) const ITERATES: Requirement = Requirement::Method(iterates);
pub(super) const OVER_A_BASIS: Requirement = Requirement::Method(over_a_basis);
pub(super) const IN_A_FIELD: Requirement = Requirement::Method(in_a_field);

/// `--method ls, cg-sense, wavelet or tv`
#[expect(
    clippy::redundant_closure,
    reason = "a function of any method is none of methods that live for ever"
)]
fn named(fits: fn(&dyn Method) -> bool) -> String {
    format!("`--method {}`", methods().names(|method| fits(method)))
}

impl Need for Requirement {
    type Facts<'a> = RunFacts<'a>;

    fn met(&self, run: &RunFacts<'_>) -> Option<bool> {
        match self {
            Self::Method(fits) => run.known.method.map(fits),
            Self::Trajectory => Some(!run.known.scan?.on_grid),
            Self::Nufft => run.scattered(),
            Self::Weights => {
                let grids = run.known.method?.uses().density && run.scattered()?;
                Some(grids || (!run.known.scan?.on_grid && run.estimates_maps()?))
            }
            Self::Maps => run.uses_maps(),
            Self::Estimate => run.estimates_maps(),
            Self::Phase => run.has_phase(),
            Self::Numbers => {
                let picture = |path| Format::of_name(path).is_some_and(Format::is_picture);
                Some(run.request.outputs.is_empty() || !run.request.outputs.iter().all(picture))
            }
            Self::Origin => Some(writes_origin(&run.request.outputs)),
            Self::Shared => Some(run.estimates_maps()? || run.shares_eigenvalue()?),
            Self::Header => Some(run.known.header),
            Self::Numbered => Some(run.known.numbered),
            Self::Images => Some(run.request.basis.is_none()),
            Self::Described => Some(!matches!(run.request.input, Input::Image(_))),
            Self::Array => Some(!run.known.header),
            Self::Readouts => Some(run.known.header || run.request.arrays.trajectory.is_some()),
            Self::Coils => Some(run.known.scan?.coils > 1),
            Self::Volumes => Some(run.known.scan?.volumes > 1),
            Self::Noise => Some(run.known.scan?.noise),
        }
    }

    fn expected(&self) -> String {
        let all_coils = named(sees_all_coils);
        match self {
            Self::Method(fits) => named(*fits),
            Self::Trajectory => "a scan with a trajectory".into(),
            Self::Nufft => "a scan with a trajectory, or `--field-map`".into(),
            Self::Weights => {
                let weights = named(|method| method.uses().density);
                format!("{weights}, or maps estimated along a trajectory ({all_coils}, or `--combine maps`)")
            }
            Self::Maps => format!("a run with sensitivity maps ({all_coils}, or `--combine maps`)"),
            Self::Estimate => {
                format!(
                    "a run that estimates sensitivity maps ({all_coils}, or `--combine maps`, without `--maps`)"
                )
            }
            Self::Numbers => {
                let holds = |format: &Format| format.writes_images() && !format.is_picture();
                format!("an output that holds numbers ({})", io::endings(holds).join(", "))
            }
            Self::Origin => origin_expected(),
            Self::Phase => {
                format!("an image with a phase ({all_coils}, `--combine maps` or `--combine none`)")
            }
            Self::Shared => {
                format!("estimated sensitivity maps, or a penalty ({})", named(shares_eigenvalue))
            }
            Self::Header => "a scan with counters (ISMRMRD)".into(),
            Self::Numbered => {
                "a scan with counters (ISMRMRD, BART's TE, TIME, TIME2, SLICE and BATCH, or axes of `--order`)"
                    .into()
            }
            Self::Images => "a run without `--basis`".into(),
            Self::Described => "a scan from a file, or one with a header".into(),
            Self::Array => {
                format!("k-space without a header ({})", io::endings(Format::reads_arrays).join(", "))
            }
            Self::Readouts => "a scan with readouts (ISMRMRD), or `--traj`".into(),
            Self::Coils => "several coils".into(),
            Self::Volumes => "several repetitions or other volumes, or `--window`".into(),
            Self::Noise => "a scan with noise readouts".into(),
        }
    }

    fn found(&self, run: &RunFacts<'_>) -> String {
        let method = || {
            run.known.method.map_or_else(|| "another".into(), |m| format!("`--method {}`", m.about().name))
        };
        let place =
            || if run.known.scan.is_some_and(|scan| scan.on_grid) { "a grid" } else { "a trajectory" };
        match self {
            Self::Method(_) | Self::Shared => method(),
            Self::Trajectory | Self::Nufft => place().into(),
            Self::Weights => format!("{} on {}", method(), place()),
            Self::Maps | Self::Estimate => match (&run.request.maps, run.request.method.value("combine")) {
                (Some(_), _) if matches!(self, Self::Estimate) => "`--maps`".into(),
                (_, Some(Value::Choice("rss"))) => "`--combine rss`".into(),
                (_, Some(Value::Choice("none"))) => "`--combine none`".into(),
                _ => method(),
            },
            Self::Numbers => "pictures only".into(),
            Self::Origin => "others".into(),
            Self::Phase => "a root of a sum of squares over coils".into(),
            Self::Readouts if run.known.format.is_none() => "the samples of one image (in memory)".into(),
            Self::Readouts => format!("a grid of k-space ({})", run.place()),
            Self::Header if run.known.numbered => format!("samples without a header ({})", run.place()),
            Self::Header | Self::Numbered => format!("the samples of one image ({})", run.place()),
            Self::Images => "coefficients".into(),
            Self::Described => "arrays, which Scan.from_arrays describes".into(),
            Self::Array => format!("a scan with a header, which states it ({})", run.place()),
            Self::Coils => "one coil".into(),
            Self::Volumes => "one image".into(),
            Self::Noise => "a scan without".into(),
        }
    }
}
