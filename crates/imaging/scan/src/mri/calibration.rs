//! Lines that calibrate an image and are no part of it.

use rayspin_core::{Error, Result};

use super::centre::{MIN_WIDTH, sampled_centre};
use super::frames::expect_finite;
use super::{Acquisition, CalibrationLines, Samples, ScanHeader, cartesian};
use crate::mri::corrections::{Corrections, Readouts};
use crate::mri::raw::{Flags, is_known, note};

/// Said of embedded calibration.
pub(super) const EMBEDDED: &str =
    "lines flagged for calibration alone lie between the lines of the image: they are a part of it";

/// Said of lines of another encoding: references of the image need not be theirs.
const NOT_ALIGNED: &str = "calibration readouts of another encoding run in two directions and are not aligned: coil sensitivities may have \
                           ghosts (`--maps` gives sensitivities)";

/// By how much fields of view of one size may differ.
const ROUNDED: f64 = 1e-3;

/// An image that calibration lines serve.
pub(super) struct Image<'a> {
    pub(super) header: &'a ScanHeader,
    /// Its own readouts.
    pub(super) readouts: &'a Readouts<'a>,
    pub(super) corrections: &'a Corrections,
    pub(super) coils: usize,
}

impl<'a> Image<'a> {
    /// The lines on the image's grid. Lines of another image or encoding serve an image that has no
    /// calibration region of its own.
    ///
    /// Errors: lines of the image's encoding that contradict it.
    pub(super) fn calibration(
        &self,
        lines: &[(usize, &'a Acquisition)],
        samples: &Samples,
        notes: &mut Vec<String>,
    ) -> Result<Option<CalibrationLines>> {
        let Some((first, readout)) = lines.first() else { return Ok(None) };
        let Samples::Cartesian { sampled, .. } = samples else {
            let text = "calibration readouts on a grid are not used for images along a trajectory (`--maps` gives sensitivities)";
            note(notes, text);
            return Ok(None);
        };
        let same = readout.encoding == self.readouts.label.encoding;
        let alone = lines.iter().any(|(_, a)| a.flags.is_calibration_line());
        if !(same && alone) && sampled_centre(sampled) >= MIN_WIDTH {
            return Ok(None);
        }
        if lines.iter().any(|(_, a)| a.data.nrows() != self.coils) {
            note(notes, "calibration readouts have other coils than the images and are left out");
            return Ok(None);
        }
        expect_finite(lines)?;
        let placed = match same {
            true => cartesian::assemble(&mut self.readouts.others(lines), self.corrections, None, notes),
            false => self.of_other_encoding(lines, readout.encoding, notes),
        };
        let lines = match placed {
            Ok((_, Samples::Cartesian { kspace, sampled: own }, _)) if own.shape() == sampled.shape() => {
                Ok(CalibrationLines { kspace, sampled: own })
            }
            Ok(_) => {
                Err(Error::value(format!("acquisition {first}"), "calibration on the grid", "another grid"))
            }
            Err(error) => Err(error),
        };
        let encoding = readout.encoding;
        match lines {
            Ok(lines) => {
                let text = match (same, alone) {
                    (true, true) => {
                        "calibration readouts apart from the images tell the coils' sensitivities".to_owned()
                    }
                    (true, false) => {
                        "the calibration lines of another image tell the coils' sensitivities".to_owned()
                    }
                    (false, _) => {
                        format!("calibration readouts of encoding {encoding} tell the coils' sensitivities")
                    }
                };
                note(notes, text);
                Ok(Some(lines))
            }
            Err(error) if same => Err(error),
            Err(error) => {
                let text = "are not used (`--maps` gives sensitivities)";
                note(notes, format!("calibration readouts of encoding {encoding} {text}: {error}"));
                Ok(None)
            }
        }
    }

    /// Lines of another encoding, on the image's grid. Errors: one whose lines and samples do not lie on that
    /// grid.
    fn of_other_encoding(
        &self,
        lines: &[(usize, &'a Acquisition)],
        number: usize,
        notes: &mut Vec<String>,
    ) -> Result<(Vec<usize>, Samples, Option<Vec<f64>>)> {
        let missing = || Error::value("encoding of calibration readouts", "one of the header's", number);
        let other = self.header.encodings.get(number).ok_or_else(missing)?;
        let (own, theirs) = (self.readouts.encoding.encoded, other.encoded);
        for axis in 0..3 {
            let (wanted, theirs_mm) = (own.fov_mm[axis], theirs.fov_mm[axis]);
            let alike =
                !(is_known(wanted) && is_known(theirs_mm)) || (theirs_mm / wanted - 1.0).abs() < ROUNDED;
            if own.matrix[axis] > 1 && !alike {
                let name = ["x", "y", "z"][axis];
                let what = format!("encoded field of view along {name}");
                return Err(Error::value(
                    what,
                    format!("the images' {wanted} mm"),
                    format!("{theirs_mm} mm"),
                ));
            }
        }
        let runs =
            |reversed: bool| lines.iter().any(|(_, line)| line.flags.contains(Flags::REVERSE) == reversed);
        if runs(false) && runs(true) {
            note(notes, NOT_ALIGNED);
        }
        // What is given is the images'.
        let corrections = Corrections::default();
        let mut lines = Readouts::new(self.readouts.label, other.clone(), self.readouts.heads, lines, &[]);
        corrections.image(&mut lines, notes);
        (lines.encoding.encoded, lines.encoding.recon) = (own, self.readouts.encoding.recon);
        cartesian::assemble(&mut lines, &corrections, None, notes)
    }
}
