//! The request of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{Monitor, Ranges, VolumeGrid};
use rayspin_ct::corrections::Corrections;
use rayspin_ct::recon::{GridOptions, RayOptions};
use rayspin_ct::scan::Scan;
use rayspin_report::RunRecorder;
use rayspin_run::{Certify, Given};

use super::{Begun, Ct};
use crate::asked::Asked;
use crate::told::of_scan;
use crate::{ComputeTarget, Result};

/// The scan of a run.
#[derive(Debug, Clone)]
pub enum Input {
    /// A file, or a pipe.
    File(PathBuf),
    /// A scan in memory.
    Scan(Arc<Scan>),
}

impl Input {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Scan(_) => None,
        }
    }

    /// An error about this scan, with the file's name where it has one.
    pub(super) fn error(&self, error: rayspin_core::Error) -> crate::Error {
        of_scan(self.file(), error)
    }

    pub(super) fn name(&self) -> String {
        self.file().map_or_else(|| "the scan".to_owned(), |path| path.display().to_string())
    }
}

/// What a detector counts without the object, or without the beam.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// The same in every pixel.
    Number(f32),
    /// An image, or several, in a file.
    File(PathBuf),
    /// An image, or several, in memory.
    Image(Arc<ArrayD<f32>>),
}

/// The request of a run: the scan, and all that a user chose.
#[derive(Debug, Clone)]
pub struct Request {
    /// The scan.
    pub input: Input,
    /// Whether its views are added as they arrive.
    pub stream: bool,
    /// The method, and values of its parameters.
    pub method: Asked<Ct>,
    /// What is done to the scan and the volume.
    pub corrections: Corrections,
    /// The files of images among the parameters of corrections, by the parameters' names.
    pub correction_files: BTreeMap<String, PathBuf>,
    /// The voxels; none where [`Self::wanted`] describes them.
    pub grid: Option<VolumeGrid>,
    /// What is wanted of the voxels.
    pub wanted: GridOptions,
    /// What is known of rays that the scan does not state, and of the axis.
    pub rays: RayOptions,
    /// The angle over which views are spread that state none, rad.
    pub arc: Option<f64>,
    /// A geometry file of RTK.
    pub rtk: Option<PathBuf>,
    /// Flat fields in place of the scan's.
    pub flat: Option<Field>,
    /// Dark fields in place of the scan's.
    pub dark: Option<Field>,
    /// Only these views.
    pub view: Option<Ranges>,
    /// Only these rows of the detector.
    pub row: Option<Ranges>,
    /// Only these columns.
    pub column: Option<Ranges>,
    /// The options that the user gave, by the fields of [`options`](super::options) and the names of
    /// parameters. One that does nothing is refused.
    pub given: Given,
    /// The files that the volume will be written to, whose writers take memory.
    pub outputs: Vec<PathBuf>,
    /// Whether the volume is compared with a reference, which takes memory.
    pub compared: bool,
    /// A picture of the middle slice, written again while views arrive.
    pub preview: Option<PathBuf>,
    /// Bytes of memory that the process may take.
    pub memory: Option<u64>,
    /// Checks of the transforms against exact sums.
    pub certify: Option<Certify>,
    /// Whether only the plan is wanted.
    pub dry_run: bool,
}

impl Request {
    /// A scan, with the defaults of all else.
    pub fn of(input: Input) -> Self {
        Self {
            input,
            stream: false,
            method: Asked::default(),
            corrections: Corrections::default(),
            correction_files: BTreeMap::new(),
            grid: None,
            wanted: GridOptions::default(),
            rays: RayOptions::default(),
            arc: None,
            rtk: None,
            flat: None,
            dark: None,
            view: None,
            row: None,
            column: None,
            given: Given::default(),
            outputs: Vec::new(),
            compared: false,
            preview: None,
            memory: None,
            certify: None,
            dry_run: false,
        }
    }

    /// Begins a run: checks what can be checked before the scan is read.
    ///
    /// Errors: an option out of range, or one that does nothing; a scan of another kind.
    pub fn begin(
        self,
        target: ComputeTarget,
        monitor: Monitor<'_>,
        recorder: RunRecorder,
    ) -> Result<Begun<'_>> {
        Begun::new(self, target, monitor, recorder)
    }
}
