//! A scan with a header, made of samples that came without one.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewD, Axis, IxDyn, s};
use rayspin_core::{C32, Error, Geometry, Result, Trajectory, TrajectoryUnits};

use super::frame::check_finite;
use super::{
    Acquisition, Counters, EncodedSpace, Encoding, Flags, Frame, Label, Limits, Pattern, Samples, Scan,
    ScanHeader, TrajectoryKind, readouts,
};

/// Samples of a readout at most: files count them in 16 bits.
const LONGEST: usize = u16::MAX as usize;

/// Makes a [`Scan`] of frames: a readout for each line of a grid, or for each run of a trajectory.
/// [`FrameIndex::assemble`] gives the same frames back.
///
/// All frames have one matrix and one grid, or trajectories of one number of dimensions; their labels become
/// the counters of their readouts. A line of a grid that was measured in part holds its measured samples, one
/// readout for each run of them. Points are stored in cycles per field of view, in single precision.
///
/// [`FrameIndex::assemble`]: super::FrameIndex::assemble
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry};
/// use rayspin_scan::mri::{Frame, FrameOptions, Label, Samples, ScanBuilder};
///
/// // Two coils on a grid of 6 × 8; every other line was measured.
/// let kspace = ArrayD::from_shape_fn(IxDyn(&[2, 6, 8]), |i| {
///     if i[1] % 2 == 0 { C32::new(1.0 + i[0] as f32, i[2] as f32) } else { C32::ZERO }
/// });
/// let frame = Frame::from_grid(kspace.clone(), Geometry { spacing_mm: [2.0, 2.0, 5.0], ..Geometry::default() })?;
///
/// let mut builder = ScanBuilder::new(4.0)?;
/// builder.frame(&frame, None)?;
/// let scan = builder.finish()?;
/// assert_eq!(scan.acquisitions.len(), 3);
/// assert_eq!(scan.header.encodings[0].recon.fov_mm, [16.0, 12.0, 5.0]);
///
/// let again = scan.frames()?.assemble(Label::default(), &FrameOptions::default(), &mut Vec::new())?;
/// let Samples::Cartesian { kspace: found, .. } = again.samples else { unreachable!("it was on a grid") };
/// assert_eq!(found, kspace);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScanBuilder {
    dwell_us: f32,
    encoding: Option<Encoding>,
    coils: Option<usize>,
    noise: Vec<Acquisition>,
    readouts: Vec<Acquisition>,
}

impl ScanBuilder {
    /// A scan whose samples are `dwell_us` microseconds apart; 0 where that is not known.
    ///
    /// Errors: a time that is negative or not finite.
    pub fn new(dwell_us: f64) -> Result<Self> {
        if !(dwell_us >= 0.0 && (dwell_us as f32).is_finite()) {
            return Err(Error::value("dwell time", "0 or more microseconds", dwell_us));
        }
        Ok(Self {
            dwell_us: dwell_us as f32,
            encoding: None,
            coils: None,
            noise: Vec::new(),
            readouts: Vec::new(),
        })
    }

    /// Adds noise `[coil, sample]`, measured without a signal at the same dwell time.
    ///
    /// Errors: another number of coils than the frames have; no samples, or some that are not finite.
    pub fn noise(&mut self, samples: ArrayView2<'_, C32>) -> Result<()> {
        self.expect_coils("noise samples", samples.nrows())?;
        if samples.is_empty() {
            return Err(Error::value("noise samples", "at least one of each coil", "none"));
        }
        check_finite("noise samples", samples.iter())?;
        for part in samples.axis_chunks_iter(Axis(1), LONGEST) {
            let mut readout = self.blank(part.to_owned(), &Label::default(), &Geometry::default());
            readout.flags = Flags::NOISE;
            self.noise.push(readout);
        }
        Ok(())
    }

    /// Adds a frame. `readout` is the number of samples of each readout along a trajectory; where it is not
    /// known, a readout ends where the path breaks off or turns back ([`readouts`]).
    ///
    /// Errors: a frame of other coils, another matrix or another kind of samples than the ones before;
    /// numbers that are not finite; nothing measured.
    pub fn frame(&mut self, frame: &Frame, readout: Option<usize>) -> Result<()> {
        self.expect_coils("coils of a frame", frame.coils())?;
        let own = encoding_of(frame);
        let encoding = self.encoding.get_or_insert_with(|| own.clone());
        let on_grid = |encoding: &Encoding| encoding.trajectory == TrajectoryKind::Cartesian;
        if (encoding.encoded, encoding.recon) != (own.encoded, own.recon)
            || on_grid(encoding) != on_grid(&own)
        {
            let text = |encoding: &Encoding| {
                let place = if on_grid(encoding) { "a grid" } else { "a trajectory" };
                format!("{place} of {:?} for a matrix {:?}", encoding.encoded.matrix, encoding.recon.matrix)
            };
            return Err(Error::value("samples of a frame", text(encoding), text(&own)));
        }
        let first = self.readouts.len();
        match &frame.samples {
            Samples::Cartesian { kspace, sampled } => self.lines(frame, kspace.view(), sampled.view())?,
            Samples::NonCartesian { trajectory, data } => {
                let runs = match readout.filter(|&length| length > 0) {
                    Some(length) => (0..trajectory.samples())
                        .step_by(length)
                        .map(|start| start..(start + length).min(trajectory.samples()))
                        .collect(),
                    None => readouts(trajectory),
                };
                self.runs(frame, trajectory, data.view(), &runs)?;
            }
        }
        if self.readouts.len() == first {
            return Err(Error::value("samples of a frame", "at least one", "none"));
        }
        let last = self.readouts.len() - 1;
        for (index, flag) in [(first, Flags::FIRST_IN_SLICE), (last, Flags::LAST_IN_SLICE)] {
            self.readouts[index].flags = self.readouts[index].flags.with(flag);
        }
        let encoding = self.encoding.get_or_insert(own);
        for (limits, counter) in
            [(&mut encoding.slice, frame.label.slice), (&mut encoding.repetition, frame.label.repetition)]
        {
            let counter = usize::from(counter);
            let limits = limits.get_or_insert(Limits { minimum: counter, maximum: counter, centre: counter });
            limits.minimum = limits.minimum.min(counter);
            limits.maximum = limits.maximum.max(counter);
            limits.centre = limits.minimum.midpoint(limits.maximum);
        }
        Ok(())
    }

    /// The scan, noise first.
    ///
    /// Errors: no frame.
    pub fn finish(mut self) -> Result<Scan> {
        let Some(encoding) = self.encoding else {
            return Err(Error::value("frames of a scan", "at least one", "none"));
        };
        if let Some(last) = self.readouts.last_mut() {
            last.flags = last.flags.with(Flags::LAST_IN_MEASUREMENT);
        }
        let along_trajectory = encoding.trajectory != TrajectoryKind::Cartesian;
        let header = ScanHeader {
            encodings: vec![encoding],
            coils: self.coils,
            trajectory_units: along_trajectory.then_some(TrajectoryUnits::CyclesPerFov),
            ..ScanHeader::default()
        };
        let mut acquisitions = self.noise;
        acquisitions.append(&mut self.readouts);
        Ok(Scan { header, acquisitions, notes: Vec::new() })
    }

    fn expect_coils(&mut self, what: &str, count: usize) -> Result<()> {
        let coils = *self.coils.get_or_insert(count);
        if count != coils || coils == 0 {
            return Err(Error::value(what, format!("{} coils, as the samples before", coils.max(1)), count));
        }
        Ok(())
    }

    /// The measured lines of a grid, each run of samples a readout.
    fn lines(
        &mut self,
        frame: &Frame,
        kspace: ArrayViewD<'_, C32>,
        sampled: ArrayViewD<'_, bool>,
    ) -> Result<()> {
        check_finite("k-space", kspace.iter())?;
        let axes = sampled.ndim();
        let whole = |axis: usize| if axes == 3 { sampled.shape()[axis] } else { 1 };
        let (nz, ny, nx) = (whole(0), sampled.shape()[axes - 2], sampled.shape()[axes - 1]);
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let steps = if axes == 3 { vec![z, y] } else { vec![y] };
            let line = |mut array: ArrayViewD<'_, C32>| -> Array2<C32> {
                for &index in &steps {
                    array = array.index_axis_move(Axis(1), index);
                }
                let shape = (array.shape()[0], nx);
                Array2::from_shape_fn(shape, |(coil, x)| array[IxDyn(&[coil, x])])
            };
            let measured = |x: usize| sampled[IxDyn(&[&steps[..], &[x]].concat())];
            let runs = runs_of(nx, measured);
            if runs.is_empty() {
                continue;
            }
            let line = line(kspace.view());
            for run in runs {
                // The readout reaches the centre of k-space, which is one of its samples.
                let stored = run.start.min(nx / 2)..run.end.max(nx / 2 + 1);
                let data = line.slice(s![.., stored.clone()]).to_owned();
                let mut readout = self.blank(data, &frame.label, &frame.geometry);
                readout.centre_sample = nx / 2 - stored.start;
                readout.discard_pre = run.start - stored.start;
                readout.discard_post = stored.end - run.end;
                readout.counters.step_1 = y as u16;
                readout.counters.step_2 = z as u16;
                self.readouts.push(readout);
            }
        }
        Ok(())
    }

    /// The runs of a trajectory, each a readout.
    fn runs(
        &mut self,
        frame: &Frame,
        trajectory: &Trajectory,
        data: ArrayView2<'_, C32>,
        runs: &[Range<usize>],
    ) -> Result<()> {
        check_finite("samples", data.iter())?;
        let points = trajectory.points();
        let parts = runs
            .iter()
            .flat_map(|run| run.clone().step_by(LONGEST).map(|start| start..(start + LONGEST).min(run.end)));
        for (index, run) in parts.enumerate() {
            let own = points.slice(s![run.clone(), ..]);
            let mut readout = self.blank(data.slice(s![.., run]).to_owned(), &frame.label, &frame.geometry);
            let size = |k: ndarray::ArrayView1<'_, f64>| k.iter().map(|k| k * k).sum::<f64>();
            let centre = own.outer_iter().enumerate().min_by(|a, b| size(a.1).total_cmp(&size(b.1)));
            readout.centre_sample = centre.map_or(0, |(sample, _)| sample);
            readout.counters.step_1 = index.min(usize::from(u16::MAX)) as u16;
            readout.trajectory = Some(own.mapv(|k| k as f32).into_shared());
            self.readouts.push(readout);
            if let Some(limits) = self.encoding.as_mut().and_then(|encoding| encoding.step_1.as_mut()) {
                limits.maximum = limits.maximum.max(index.min(usize::from(u16::MAX)));
            }
        }
        Ok(())
    }

    fn blank(&self, data: Array2<C32>, label: &Label, geometry: &Geometry) -> Acquisition {
        let narrow = |v: [f64; 3]| v.map(|v| v as f32);
        Acquisition {
            flags: Flags::default(),
            counters: Counters {
                slice: label.slice,
                contrast: label.contrast,
                phase: label.phase,
                repetition: label.repetition,
                set: label.set,
                ..Counters::default()
            },
            encoding: 0,
            centre_sample: 0,
            discard_pre: 0,
            discard_post: 0,
            sample_time_us: self.dwell_us,
            time_stamp: 0,
            position: narrow(geometry.position_mm),
            read_dir: narrow(geometry.read_dir),
            phase_dir: narrow(geometry.phase_dir),
            slice_dir: narrow(geometry.slice_dir),
            data: data.into_shared(),
            trajectory: None,
        }
    }
}

/// The ranges of 0 … n − 1 in which every place is inside.
fn runs_of(n: usize, is_inside: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for x in (0..n).filter(|&x| is_inside(x)) {
        match runs.last_mut().filter(|run| run.end == x) {
            Some(run) => run.end = x + 1,
            None => runs.push(x..x + 1),
        }
    }
    runs
}

/// The encoding that a frame is of; counters of slices and repetitions are counted later.
fn encoding_of(frame: &Frame) -> Encoding {
    let space = |shape: &[usize]| {
        let mut matrix = [1; 3];
        for (n, &size) in matrix.iter_mut().zip(shape.iter().rev()) {
            *n = size;
        }
        let fov_mm = std::array::from_fn(|axis| matrix[axis] as f64 * frame.geometry.spacing_mm[axis]);
        EncodedSpace { matrix, fov_mm }
    };
    let range = |n: usize, centre: usize| Some(Limits { minimum: 0, maximum: n.saturating_sub(1), centre });
    let recon = space(&frame.matrix);
    let blank = Encoding {
        encoded: recon,
        recon,
        trajectory: TrajectoryKind::Cartesian,
        step_1: range(1, 0),
        step_2: range(1, 0),
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    };
    match &frame.samples {
        Samples::Cartesian { sampled, .. } => {
            let encoded = space(sampled.shape());
            let [_, ny, nz] = encoded.matrix;
            Encoding { encoded, step_1: range(ny, ny / 2), step_2: range(nz, nz / 2), ..blank }
        }
        Samples::NonCartesian { trajectory, .. } => Encoding {
            trajectory: match Pattern::of(trajectory) {
                Pattern::Radial | Pattern::StackOfStars => TrajectoryKind::Radial,
                Pattern::Spiral | Pattern::StackOfSpirals => TrajectoryKind::Spiral,
                _ => TrajectoryKind::Other,
            },
            ..blank
        },
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, ArrayD};
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::mri::FrameOptions;

    fn geometry() -> Geometry {
        Geometry { spacing_mm: [1.5, 2.5, 4.0], position_mm: [3.0, -4.0, 5.0], ..Geometry::default() }
    }

    fn built(frame: &Frame, readout: Option<usize>) -> Scan {
        let mut builder = ScanBuilder::new(3.5).unwrap();
        builder.frame(frame, readout).unwrap();
        builder.finish().unwrap()
    }

    fn assembled(scan: &Scan, label: Label) -> Frame {
        let mut notes = Vec::new();
        let frame = scan.frames().unwrap().assemble(label, &FrameOptions::default(), &mut notes).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        frame
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn a_grid_measured_anywhere_comes_back(
            seed in any::<u64>(), coils in 1usize..4, (nz, ny, nx) in (1usize..4, 1usize..7, 1usize..8), part in 0.05f64..1.0,
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut kspace = ArrayD::from_shape_simple_fn(IxDyn(&[coils, nz, ny, nx]), || {
                C32::new(rng.random_range(1.0..2.0), rng.random_range(-1.0..1.0))
            });
            let mut mask = Array3::from_shape_simple_fn((nz, ny, nx), || rng.random_bool(part));
            mask[[nz - 1, ny - 1, nx - 1]] = true;
            for mut coil in kspace.outer_iter_mut() {
                ndarray::Zip::from(&mut coil).and(&mask.view().into_dyn()).for_each(|v, &m| if !m { *v = C32::ZERO });
            }
            let mut frame = Frame::from_grid(kspace, geometry()).unwrap();
            frame.label = Label { contrast: 1, phase: 2, repetition: 3, slice: 4, ..Label::default() };
            let again = assembled(&built(&frame, None), frame.label);
            let (Samples::Cartesian { kspace: a, sampled: b }, Samples::Cartesian { kspace: c, sampled: d }) =
                (&frame.samples, &again.samples) else { panic!("expected grids") };
            prop_assert_eq!((a, b, &frame.matrix), (c, d, &again.matrix));
            for (a, b) in frame.geometry.spacing_mm.iter().zip(again.geometry.spacing_mm) {
                prop_assert!((a - b).abs() < 1e-12);
            }
            prop_assert_eq!(frame.geometry.position_mm, again.geometry.position_mm);
        }
    }

    #[test]
    fn an_oversampled_grid_keeps_its_field_of_view() {
        let kspace = ArrayD::from_elem(IxDyn(&[2, 5, 14]), C32::new(1.0, 2.0));
        let mut frame = Frame::from_grid(kspace, geometry()).unwrap();
        frame.matrix = vec![5, 7];
        let scan = built(&frame, None);
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.encoded.matrix, encoding.recon.matrix), ([14, 5, 1], [7, 5, 1]));
        assert_eq!((encoding.encoded.fov_mm[0], encoding.recon.fov_mm[0]), (21.0, 10.5));
        assert_eq!(assembled(&scan, frame.label).matrix, [5, 7]);
    }

    fn spokes(dims: usize) -> (Trajectory, Array2<C32>) {
        let points = Array2::from_shape_fn((5 * 16, dims), |(i, d)| {
            let angle = (i / 16) as f64 * 0.7;
            ((i % 16) as f64 - 8.0) * [angle.cos(), angle.sin(), 0.3][d]
        });
        let data = Array2::from_shape_fn((3, 80), |(c, i)| C32::new(i as f32, c as f32));
        (Trajectory::from_cycles_per_fov(points).unwrap(), data)
    }

    #[test]
    fn spokes_come_back_whether_or_not_their_length_is_known() {
        for dims in [2, 3] {
            let (trajectory, data) = spokes(dims);
            let matrix = vec![16; dims];
            let frame = Frame::of_all_samples(data.clone(), trajectory.clone(), matrix, geometry()).unwrap();
            for (readout, count) in [(Some(16), 5), (None, 5), (Some(7), 12)] {
                let scan = built(&frame, readout);
                assert_eq!(scan.acquisitions.len(), count, "{readout:?}");
                assert_eq!(scan.header.encodings[0].step_1.unwrap().maximum, count - 1);
                if count == 5 {
                    assert!(
                        scan.acquisitions.iter().all(|a| a.centre_sample == 8 && a.sample_time_us == 3.5)
                    );
                    assert_eq!(scan.header.encodings[0].trajectory, TrajectoryKind::Radial);
                }
                let again = assembled(&scan, frame.label);
                let Samples::NonCartesian { trajectory: found, data: values } = again.samples else {
                    panic!("expected a trajectory")
                };
                assert_eq!((values, again.matrix), (data.clone(), frame.matrix.clone()));
                let worst = (found.points().to_owned() - trajectory.points())
                    .iter()
                    .fold(0.0, |w: f64, v| w.max(v.abs()));
                assert!(worst < 1e-6, "{worst}");
            }
        }
    }

    #[test]
    fn samples_beyond_the_matrix_are_kept_and_left_out_by_the_reader() {
        let (trajectory, data) = spokes(2);
        let frame = Frame::of_all_samples(data.clone(), trajectory, vec![8, 8], geometry()).unwrap();
        let scan = built(&frame, Some(16));
        assert_eq!(scan.acquisitions.iter().map(|a| a.data.ncols()).sum::<usize>(), 80);
        let mut notes = Vec::new();
        let read =
            scan.frames().unwrap().assemble(frame.label, &FrameOptions::default(), &mut notes).unwrap();
        let Samples::NonCartesian { data, .. } = read.samples else { panic!("expected a trajectory") };
        assert!(data.ncols() < 80 && notes.iter().any(|note| note.contains("beyond")), "{notes:?}");
    }

    #[test]
    fn what_is_no_scan_is_refused() {
        let grid = |coils: usize, nx: usize| {
            Frame::from_grid(ArrayD::from_elem(IxDyn(&[coils, 4, nx]), C32::ONE), geometry()).unwrap()
        };
        let refused = |build: &dyn Fn(&mut ScanBuilder) -> Result<()>, words: &[&str]| {
            let mut builder = ScanBuilder::new(0.0).unwrap();
            builder.frame(&grid(2, 6), None).unwrap();
            let error = build(&mut builder).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        refused(&|b| b.frame(&grid(3, 6), None), &["coils", "2", "3"]);
        refused(&|b| b.frame(&grid(2, 8), None), &["[6, 4, 1]", "[8, 4, 1]"]);
        refused(&|b| b.noise(Array2::zeros((3, 8)).view()), &["noise", "2", "3"]);
        refused(&|b| b.noise(Array2::zeros((2, 0)).view()), &["noise", "at least one"]);
        let nan = Array2::from_elem((2, 4), C32::new(f32::NAN, 0.0));
        refused(&|b| b.noise(nan.view()), &["noise", "finite"]);
        let mut lost = grid(2, 6);
        if let Samples::Cartesian { sampled, .. } = &mut lost.samples {
            sampled.fill(false);
        }
        refused(&|b| b.frame(&lost, None), &["samples of a frame", "none"]);
        assert!(ScanBuilder::new(-1.0).is_err() && ScanBuilder::new(f64::NAN).is_err());
        assert!(ScanBuilder::new(1e60).is_err() && ScanBuilder::new(0.0).unwrap().finish().is_err());
    }
}
