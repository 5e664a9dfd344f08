//! What filtered back-projection assumed about a scan.

use std::f64::consts::PI;

use super::path::{Course, Coverage, Gaps, WIDE};
use super::{FilteredBackprojection, sides};

/// A note tells of a detector that is shifted by more than this part of half its width. Smaller shifts are
/// usual, and leave the edge of the field of view dark.
const TOLD: f64 = 0.2;
/// A note tells of repeated views that are more than this part of the directions.
const REPEATED: f64 = 0.1;

fn degrees(angle: f64) -> String {
    format!("{:.1}°", angle.to_degrees())
}

impl FilteredBackprojection {
    /// Notes for people.
    pub(super) fn told(&self, course: &Course) -> Vec<String> {
        let mut notes = Vec::new();
        let missing = course.coverage == Coverage::HalfTurn && course.span < PI - WIDE;
        match course.coverage {
            Coverage::Arc { span, .. } => self.tell_of_arc(span, course.usual, &mut notes),
            Coverage::HalfTurn if missing => notes.push(format!(
                "the views cover {}: less than half a turn leaves streaks and blurs edges along the missing directions, for which the views \
                 beside them stand",
                degrees(course.span)
            )),
            _ => {}
        }
        // The note above told of a single gap.
        if let Some(Gaps { count, sum, widest: [start, end] }) =
            course.gaps.filter(|gaps| !missing || gaps.count > 1)
        {
            let others = match count {
                1 => String::new(),
                _ => format!(", nor from {} other gaps ({} in all)", count - 1, degrees(sum)),
            };
            notes.push(format!(
                "no view looks from between {} and {}, a gap of {:.1} usual steps{others}: the views beside it stand for it, which leaves \
                 streaks if it is wide",
                degrees(start),
                degrees(end),
                (end - start) / course.usual
            ));
        }
        let repeats = self.positions.len().saturating_sub(course.directions);
        // A few directions of uneven scans are nearly one, and the first and the last view of a turn may be.
        if repeats > 1 && course.directions > 1 && repeats as f64 > REPEATED * course.directions as f64 {
            notes.push(format!(
                "{} views look from {} directions: views from one direction share its weight",
                self.positions.len(),
                course.directions
            ));
        }
        self.tell_of_shift(course, &mut notes);
        notes
    }

    fn tell_of_arc(&self, span: f64, usual: f64, notes: &mut Vec<String>) {
        let Some(position) = self.positions.first() else { return };
        if span < PI {
            notes.push(format!(
                "the views cover {}: less than half a turn leaves streaks, blurs edges along the missing directions and makes values \
                 too small",
                degrees(span)
            ));
            return;
        }
        // The widest ray of the fan.
        let detector = self.widened.detector();
        let half = 0.5 * detector.columns as f64 * detector.pitch_mm[0];
        let fan = position.distances.map_or(0.0, |[_, depth]| 2.0 * (half / depth).atan());
        notes.push(format!("a short scan of {}, with Parker's weights", degrees(span)));
        // The span of a scan in steps ends at its last view; the scan covers a step more.
        if span + usual < PI + fan - 1e-6 {
            notes.push(format!(
                "a short scan of the whole fan covers {}: the margin of the field of view is measured in part",
                degrees(PI + fan)
            ));
        }
    }

    fn tell_of_shift(&self, course: &Course, notes: &mut Vec<String>) {
        if self.margins != [0, 0] {
            notes.push(
                "the detector is shifted to one side: the two halves of the turn are joined with Wang's weights".into(),
            );
            return;
        }
        let Some([before, after]) =
            self.positions.first().map(|position| sides(self.measured.detector(), position))
        else {
            return;
        };
        if (before - after).abs() > TOLD * (before + after) {
            notes.push(format!(
                "the detector is shifted to one side and the views cover {}: voxels farther than {:.1} mm from the axis, which not all \
                 views see, are 0; the two sides of the detector are joined in scans of a whole turn, and `--method sirt` takes all rays",
                degrees(course.span),
                self.seen_radius_mm()
            ));
        }
    }
}
