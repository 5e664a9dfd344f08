//! Which options act on a reconstruction.

use rayspin_run::Need;

use super::read::Kind;
use super::request::{Input, Request};
use crate::rows::{origin_expected, writes_origin};

/// What is known of a run.
pub struct RunFacts<'a> {
    pub(super) request: &'a Request,
    pub(super) kind: Kind,
    /// Whether the scan states its rays, and its angles; none while it is not read.
    pub(super) rays: Option<bool>,
    pub(super) angles: Option<bool>,
}

/// What an option may need.
#[derive(Clone, Copy)]
pub enum Requirement {
    /// A scan that does not state its rays.
    NoRays,
    /// A scan without angles.
    NoAngles,
    /// All views at once.
    Whole,
    /// Views that arrive one after another.
    Stream,
    /// A file that states whose image it is.
    Origin,
    /// A scan in a file: one in memory has its own fields.
    File,
}

pub(super) const NO_RAYS: &[Requirement] = &[Requirement::NoRays];
pub(super) const WHOLE: &[Requirement] = &[Requirement::Whole];

impl Need for Requirement {
    type Facts<'a> = RunFacts<'a>;

    fn met(&self, run: &RunFacts<'_>) -> Option<bool> {
        match self {
            Self::NoRays => run.rays.map(|rays| !rays || run.request.rtk.is_some()),
            Self::NoAngles => run.angles.map(|angles| !angles),
            Self::Whole => Some(!run.kind.is_stream()),
            Self::Stream => Some(run.kind.is_stream()),
            Self::Origin => Some(writes_origin(&run.request.outputs)),
            Self::File => Some(matches!(run.request.input, Input::File(_))),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::NoRays => "a scan that does not state its rays".into(),
            Self::NoAngles => "a scan that does not state its angles".into(),
            Self::Whole => "a scan that is read as a whole".into(),
            Self::Stream => "views that arrive (`--stream`, or - as the scan)".into(),
            Self::Origin => origin_expected(),
            Self::File => "a scan in a file".into(),
        }
    }

    fn found(&self, _: &RunFacts<'_>) -> String {
        match self {
            Self::NoRays => "one that does".into(),
            Self::NoAngles => "one that does".into(),
            Self::Whole => "views that arrive".into(),
            Self::Stream => "a scan that is read as a whole".into(),
            Self::Origin => "others".into(),
            Self::File => "one in memory".into(),
        }
    }
}
