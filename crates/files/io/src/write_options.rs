use rayspin_imaging::display::{Montage, Part, Window};
use rayspin_scan::mri::{Label, varying};

use crate::cfl::Layout;
use crate::{NumberType, Origin, Values};

/// How [`write_image`](crate::write_image) writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteOptions {
    /// The numbers stored; when absent, the format's usual ones: magnitude in NIfTI and ISMRMRD, and complex
    /// numbers in `.npy` and `.cfl`.
    pub values: Option<Values>,
    /// How the image's file stored its numbers ([`ImageFile::stored`](crate::ImageFile::stored)). Real
    /// numbers that were integers, and still are those that the file had, are stored as such where the format
    /// has them; [`SeriesWriter`](crate::SeriesWriter), which does not know all numbers, leaves them floats.
    pub stored: Option<NumberType>,
    /// Whether the numbers are Hounsfield units
    /// ([`ImageFile::states_hounsfield`](crate::ImageFile::states_hounsfield)), for formats that state it.
    /// When absent, numbers that reach down to −500 are.
    pub hounsfield: Option<bool>,
    /// Time between repetitions in s, for formats that keep it.
    pub repetition_time_s: Option<f64>,
    /// Where the image's axes go in a BART array. Repetitions other in number than its frames go to TIME.
    pub layout: Layout,
    /// The volumes of an MRI scan, as the labels of their slices 0, for formats that number contrasts,
    /// cardiac phases and sets. Without as many as the image has, volumes are repetitions.
    pub volumes: Vec<Label>,
    /// Where the image comes from, for formats that state it.
    pub origin: Origin,
    /// How the picture is made, for PNG; `values` of phases or real parts decide its part.
    pub png: PngOptions,
}

impl WriteOptions {
    /// The labels of `count` volumes.
    pub(crate) fn labels(&self, count: usize) -> Vec<Label> {
        match self.volumes.len() == count {
            true => self.volumes.clone(),
            false => {
                let label = |index| Label {
                    repetition: u16::try_from(index).unwrap_or(u16::MAX),
                    ..Label::default()
                };
                (0..count).map(label).collect()
            }
        }
    }

    /// The sizes of the axes along which `count` volumes lie in order, one axis for each counter that they
    /// differ in; one axis of all where the volumes are no full grid.
    pub(crate) fn axes(&self, count: usize) -> Vec<usize> {
        let axes: Vec<usize> = varying(&self.labels(count)).iter().map(|(_, values)| values.len()).collect();
        if axes.iter().product::<usize>() == count { axes } else { vec![count] }
    }
}

/// How an image becomes a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PngOptions {
    /// The real number that is shown of complex ones. Real numbers show themselves, unless the caller sets
    /// [`WriteOptions::values`].
    pub part: Part,
    /// What is black and what is white; phase is shown from −π to π unless a range is given. Percentiles are
    /// taken over the whole volume, and over all that is shown of a series.
    pub window: Window,
    /// Slices of each repetition, and how they are laid out. Several slices of several repetitions have a row
    /// a repetition unless columns are given.
    pub montage: Montage,
    /// Repetitions of a series that are shown; all when absent.
    pub repetitions: Option<Vec<usize>>,
    /// Each pixel becomes a block of this many, squared; 0 counts as 1.
    pub enlarge: usize,
    /// Pixels of the longer side, at least: blocks of smaller pictures are made larger. 0 leaves them as they
    /// are.
    pub least_side: usize,
}
