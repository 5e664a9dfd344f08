//! Whether a scan or a frame that another program made is one that reconstruction can rely on.

use rayspin_core::{Error, Geometry, Result, all_finite, expect_shape, format_shape};

use super::frame::{check_finite, check_matrix};
use super::{Acquisition, Encoding, Frame, Limits, Samples, Scan};

/// The largest counter of a readout.
const MOST: usize = u16::MAX as usize;

impl Scan {
    /// Checks what readers of files guarantee.
    ///
    /// Errors: an encoding that the header lacks, counters or a matrix beyond 65535, image readouts without
    /// samples or of different numbers of coils, points of another number than samples, numbers that are not
    /// finite.
    pub fn check(&self) -> Result<()> {
        for (index, encoding) in self.header.encodings.iter().enumerate() {
            check_encoding(index, encoding)?;
        }
        let mut coils = None;
        for (index, readout) in self.acquisitions.iter().enumerate() {
            check_readout(index, readout, self.header.encodings.len(), &mut coils)?;
        }
        Ok(())
    }
}

fn check_encoding(index: usize, encoding: &Encoding) -> Result<()> {
    let wrong = |what: &str, expected: String, found: String| {
        Err(Error::value(format!("encoding {index}: {what}"), expected, found))
    };
    for space in [&encoding.encoded, &encoding.recon] {
        if space.matrix.iter().any(|&n| n == 0 || n > MOST) {
            return wrong("matrix", format!("whole numbers from 1 to {MOST}"), format_shape(&space.matrix));
        }
        if space.fov_mm.iter().any(|fov| !(fov.is_finite() && *fov > 0.0)) {
            return wrong("field of view", "positive lengths in mm".into(), format!("{:?}", space.fov_mm));
        }
    }
    let limits = [encoding.step_1, encoding.step_2, encoding.slice, encoding.repetition];
    for Limits { minimum, maximum, centre } in limits.into_iter().flatten() {
        if minimum > maximum || maximum.max(centre) > MOST {
            return wrong(
                "limits",
                format!("a range up to {MOST}"),
                format!("{minimum} to {maximum}, {centre}"),
            );
        }
    }
    match encoding.acceleration {
        Some(factors) if factors.iter().any(|&n| n == 0 || n > MOST) => {
            wrong("acceleration", format!("whole numbers from 1 to {MOST}"), format!("{factors:?}"))
        }
        _ => Ok(()),
    }
}

fn check_readout(
    index: usize,
    readout: &Acquisition,
    encodings: usize,
    coils_of_images: &mut Option<usize>,
) -> Result<()> {
    let wrong = |what: &str, expected: String, found: String| {
        Err(Error::value(format!("acquisition {index}: {what}"), expected, found))
    };
    let (coils, samples) = readout.data.dim();
    let discarded = readout.discard_pre.checked_add(readout.discard_post);
    if discarded.is_none_or(|discarded| discarded > 0 && discarded >= samples) {
        let found = format!("{} and {}", readout.discard_pre, readout.discard_post);
        return wrong("discarded samples", format!("fewer than {samples}"), found);
    }
    if u32::try_from(readout.centre_sample).is_err() {
        return wrong("centre sample", "a number of 32 bits".into(), readout.centre_sample.to_string());
    }
    if !(readout.sample_time_us.is_finite() && readout.sample_time_us >= 0.0) {
        return wrong("dwell time", "0 or more microseconds".into(), readout.sample_time_us.to_string());
    }
    let place = [readout.position, readout.read_dir, readout.phase_dir, readout.slice_dir];
    if !all_finite(place.as_flattened()) {
        return wrong("position and directions", "finite numbers".into(), format!("{place:?}"));
    }
    if let Some(points) = &readout.trajectory {
        let (count, dims) = points.dim();
        if count != samples || !(1..=4).contains(&dims) {
            let expected = format!("[{samples}, 1 to 4]");
            return wrong("trajectory", expected, format_shape(points.shape()));
        }
    }
    if !readout.flags.is_image() {
        return Ok(());
    }
    let expected = *coils_of_images.get_or_insert(coils);
    if coils == 0 || samples == 0 || coils != expected {
        let expected = format!("{} coils and at least 1 sample", expected.max(1));
        return wrong("samples", expected, format_shape(readout.data.shape()));
    }
    if readout.encoding >= encodings {
        return wrong("encoding", format!("below {encodings}"), readout.encoding.to_string());
    }
    if readout.trajectory.iter().flatten().any(|point| !point.is_finite()) {
        return wrong("trajectory", "finite numbers".into(), "others".into());
    }
    check_finite(&format!("acquisition {index}"), readout.data.iter())
}

impl Frame {
    /// Checks that its parts fit each other.
    ///
    /// Errors: a matrix that is empty or absurd, or has other axes than the samples; no coils or no samples;
    /// another number of places or times than of samples; calibration lines on another grid or of other
    /// coils; axes that are no axes; numbers that are not finite.
    ///
    /// ```
    /// use ndarray::ArrayD;
    /// use rayspin_core::{C32, Geometry};
    /// use rayspin_scan::mri::{CalibrationLines, Frame};
    ///
    /// let frame = Frame::from_grid(ArrayD::from_elem(vec![4, 8, 8], C32::ONE), Geometry::default())?;
    /// frame.check()?;
    /// let sampled = ArrayD::from_elem(vec![8, 8], true);
    /// let lines = CalibrationLines { kspace: ArrayD::from_elem(vec![5, 8, 8], C32::ONE), sampled };
    /// assert!(Frame { calibration: Some(lines), ..frame }.check().is_err()); // another coil
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        let mut matrix = [1; 3];
        if !(1..=3).contains(&self.matrix.len()) {
            return Err(Error::value("matrix", "1 to 3 axes", format_shape(&self.matrix)));
        }
        matrix[3 - self.matrix.len()..].copy_from_slice(&self.matrix);
        check_matrix(matrix)?;
        let grid = |what: &str, kspace: &ndarray::ArrayD<rayspin_core::C32>, sampled: &[usize]| {
            let shape = kspace.shape();
            if shape.len() != self.matrix.len() + 1 || shape.contains(&0) || shape.get(1..) != Some(sampled) {
                let expected = format!("[coil, {}]", format_shape(sampled));
                return Err(Error::Shape { what: what.into(), expected, found: format_shape(shape) });
            }
            check_finite(what, kspace.iter())
        };
        let samples = match &self.samples {
            Samples::Cartesian { kspace, sampled } => {
                grid("k-space", kspace, sampled.shape())?;
                if !sampled.iter().any(|&measured| measured) {
                    return Err(Error::value("k-space", "at least one measured sample", "none"));
                }
                sampled.len()
            }
            Samples::NonCartesian { trajectory, data } => {
                if data.nrows() == 0 || data.ncols() != trajectory.samples() {
                    let expected = format!("[coil, {}]", trajectory.samples());
                    let found = format_shape(data.shape());
                    return Err(Error::Shape { what: "samples".into(), expected, found });
                }
                if trajectory.dims() != self.matrix.len() {
                    let expected = format!("{} axes", trajectory.dims());
                    return Err(Error::value("matrix", expected, format_shape(&self.matrix)));
                }
                check_finite("samples", data.iter())?;
                data.ncols()
            }
        };
        if let Some(lines) = &self.calibration {
            let Samples::Cartesian { kspace, .. } = &self.samples else {
                return Err(Error::value("calibration lines", "none beside a trajectory", "some"));
            };
            expect_shape("calibration lines", kspace.shape(), lines.kspace.shape())?;
            grid("calibration lines", &lines.kspace, lines.sampled.shape())?;
        }
        let Geometry { spacing_mm, position_mm, read_dir, phase_dir, slice_dir } = self.geometry;
        Geometry::new(spacing_mm, position_mm, read_dir, phase_dir, slice_dir)?;
        let Some(times) = &self.times else { return Ok(()) };
        expect_shape("times of samples", &[samples], &[times.len()])?;
        match times.iter().enumerate().find(|(_, time)| !time.is_finite()) {
            Some((index, time)) => {
                Err(Error::NotFinite { what: "times of samples".into(), index, found: time.to_string() })
            }
            None => Ok(()),
        }
    }
}
