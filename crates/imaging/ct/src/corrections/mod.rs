//! Corrections between what a detector measured and a volume. Each is a value, a struct of its parameters, in
//! a file of its own that opens with its equation; [`Table::default`] lists them in the order in which they
//! act.
//!
//! Some act on what was [measured](ActsOn::Measured): counts with their flat and dark fields. Then
//! [`Scan::into_lines`] makes line integrals of the counts. Others act on [these](ActsOn::Lines) or on the
//! [volume](ActsOn::Volume).

mod bin;
mod hardening;
mod hounsfield;
mod outliers;
mod phase;
mod rings;
mod rings_wavelet;

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use ndarray::Array3;
use rayspin_core::{Error, Result};
use rayspin_device::cpu::Stop;
use rayspin_device::{Cpu, Device};
use rayspin_run::table;
pub use rayspin_run::{About, Idle, Param, Parameters, Value};

use crate::scan::{Counts, Measured, Scan};
pub use bin::{Bin, binned};
pub use hardening::Hardening;
pub use hounsfield::Hounsfield;
pub use outliers::Outliers;
pub use phase::Phase;
pub use rings::Rings;
pub use rings_wavelet::RingsWavelet;

/// What a correction acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActsOn {
    /// Counts, flat and dark fields. Where a scan has line integrals alone, these.
    Measured,
    /// Line integrals.
    Lines,
    /// The volume.
    Volume,
}

/// What the numbers of a stack of views are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Counts with the object in the beam.
    Counts,
    /// Flat or dark fields, whose frames are no views.
    Fields,
    /// Line integrals.
    Lines,
}

/// Views that are corrected.
#[derive(Debug)]
pub struct Views {
    /// The numbers `[view, row, column]`.
    pub values: Array3<f32>,
    /// What they are.
    pub content: Content,
    /// The distance between pixels along columns and rows, mm; none where nobody states it.
    pub pixel_mm: Option<[f64; 2]>,
}

/// A step between what a detector measured and a volume in the user's unit.
pub trait Correction: Parameters + CopyCorrection {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// What it acts on.
    fn acts_on(&self) -> ActsOn;

    /// Fails where its parameters do not go together, or one is missing.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether it corrects a view with `rows` rows without the others, so that views may arrive one after
    /// another.
    fn alone(&self, _rows: usize) -> bool {
        true
    }

    /// Views, rows and columns that become one.
    fn bins(&self) -> [usize; 3] {
        [1; 3]
    }

    /// Bytes that it takes beside views of this shape.
    fn bytes(&self, _shape: [usize; 3], _threads: usize) -> u64 {
        0
    }

    /// Corrects views, and says how many numbers it replaced; 0 where it changes all of them.
    ///
    /// Errors: views that it cannot correct; memory.
    fn views(&self, _device: &Device, _views: &mut Views) -> Result<u64> {
        Ok(0)
    }

    /// Fails where it cannot correct a volume of this shape.
    fn expect_volume(&self, _shape: [usize; 3]) -> Result<()> {
        Ok(())
    }

    /// Corrects the volume `[z, y, x]`.
    ///
    /// Errors: a volume that it cannot correct.
    fn volume(&self, _cpu: &Cpu, _volume: &mut Array3<f32>) -> Result<()> {
        Ok(())
    }
}

table! {
    /// The table of corrections, each with the defaults of its parameters, in the order in which they act.
    ///
    /// ```
    /// use rayspin_ct::corrections::Table;
    ///
    /// let table = Table::default();
    /// assert_eq!(table.named("rings")?.about().name, "rings");
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub struct Table of dyn Correction, called "correction", copied by CopyCorrection, checked by Correction::check:
        // Stripes are narrow until the phase is retrieved, and a hot pixel is one pixel until pixels are
        // binned.
        Outliers, Bin, Rings, RingsWavelet, Phase, Hardening, Hounsfield;
}

/// The corrections of a run, in the order in which they act.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_ct::corrections::{Corrections, Outliers, Rings};
/// use rayspin_ct::scan::{Counts, Measured, Scan};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let mut views = Array3::from_shape_fn((40, 1, 30), |(view, _, column)| 500.0 + ((view * 7 + column * 3) % 11) as f32);
/// views[[20, 0, 15]] = 60_000.0; // a hit
/// let counts = Counts { views, flats: Array3::from_elem((3, 1, 30), 1000.0), darks: Array3::zeros((0, 1, 30)) };
/// let scan = Scan::new(Measured::Counts(counts), vec![0.0; 40], None)?;
/// let corrections = Corrections::new([Outliers::default().into()])?;
/// let mut notes = Vec::new();
/// let scan = corrections.lines(&device, scan, None, &mut notes)?;
/// let Measured::Lines(lines) = scan.measured else { panic!("line integrals") };
/// assert!((lines[[20, 0, 15]] - 2f32.ln()).abs() < 0.05);
/// assert!(notes[0].starts_with("outliers: 1 of 1200"), "{notes:?}");
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Corrections(Vec<Arc<dyn Correction>>);

impl<C: Correction + 'static> From<C> for Box<dyn Correction> {
    fn from(correction: C) -> Self {
        Box::new(correction)
    }
}

impl Corrections {
    /// These corrections, which act in the order of the table.
    ///
    /// Errors: as [`Correction::check`]; the same correction twice.
    pub fn new(corrections: impl IntoIterator<Item = Box<dyn Correction>>) -> Result<Self> {
        Self::of(corrections.into_iter().map(Arc::from))
    }

    /// The same of corrections that are shared.
    ///
    /// Errors: as [`new`](Self::new).
    pub fn of(corrections: impl IntoIterator<Item = Arc<dyn Correction>>) -> Result<Self> {
        let table = Table::default();
        let names: Vec<_> = table.iter().map(|one| one.about().name).collect();
        let place = |one: &dyn Correction| {
            let name = one.about().name;
            (one.acts_on() as usize, names.iter().position(|known| *known == name).unwrap_or(usize::MAX))
        };
        let mut list: Vec<Arc<dyn Correction>> = corrections.into_iter().collect();
        list.sort_by_key(|one| place(&**one));
        list.iter().try_for_each(|one| {
            one.check_values()?;
            one.check()
        })?;
        match list.windows(2).find(|pair| pair[0].about().name == pair[1].about().name) {
            None => Ok(Self(list)),
            Some(pair) => Err(Error::value("corrections", "each once", pair[0].about().name)),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Correction> {
        self.0.iter().map(|one| &**one)
    }

    fn acting_on(&self, what: ActsOn) -> impl Iterator<Item = &dyn Correction> {
        self.iter().filter(move |one| one.acts_on() == what)
    }

    /// Views, rows and columns that become one.
    pub fn bins(&self) -> [usize; 3] {
        self.iter().fold([1; 3], |product, one| {
            let bins = one.bins();
            std::array::from_fn(|axis| product[axis] * bins[axis])
        })
    }

    /// Bytes that the corrections take at most beside views of this shape.
    pub fn bytes(&self, mut shape: [usize; 3], threads: usize) -> u64 {
        let mut most = 0;
        for one in self.iter() {
            most = most.max(one.bytes(shape, threads));
            let bins = one.bins();
            shape = std::array::from_fn(|axis| shape[axis] / bins[axis].max(1));
        }
        most
    }

    /// The corrected line integrals of a scan, with the angles and rays of the views that it has then. Pixels
    /// are `pixel_mm` apart where the scan's own rays do not say it.
    ///
    /// Errors: as [`Scan::into_lines`] and each correction; interruption.
    pub fn lines(
        &self,
        device: &Device,
        scan: Scan,
        pixel_mm: Option<[f64; 2]>,
        notes: &mut Vec<String>,
    ) -> Result<Scan> {
        let Scan { mut measured, angles, geometry, .. } = scan;
        let bins = self.bins();
        let mut pixel_mm = geometry.as_ref().map(|rays| rays.detector().pitch_mm).or(pixel_mm);
        for one in self.acting_on(ActsOn::Measured) {
            let correct =
                |values: &mut Array3<f32>, content| self.correct(device, one, values, content, pixel_mm);
            let (count, total) = match &mut measured {
                Measured::Lines(lines) => (correct(lines, Content::Lines)?, lines.len()),
                Measured::Counts(Counts { views, flats, darks }) => {
                    let total = views.len();
                    let count = correct(views, Content::Counts)?;
                    correct(flats, Content::Fields)?;
                    if !darks.is_empty() {
                        correct(darks, Content::Fields)?;
                    }
                    (count, total)
                }
            };
            replaced(one, count, total, notes);
        }
        if bins != [1; 3] {
            pixel_mm = pixel_mm.map(|[u, v]| [u * bins[2] as f64, v * bins[1] as f64]);
        }
        // The one in the middle, or half-way between two.
        let angles = angles.chunks_exact(bins[0]).map(|some| {
            let [a, b] = [some[(bins[0] - 1) / 2], some[bins[0] / 2]];
            a + 0.5 * ((b - a + PI).rem_euclid(TAU) - PI)
        });
        let geometry = geometry.map(|rays| binned(&rays, bins)).transpose()?;
        let scan = Scan::new(measured, angles.collect(), geometry)?;
        let (angles, geometry) = (scan.angles.clone(), scan.geometry.clone());
        let mut lines = scan.into_lines(device.cpu_side(), notes)?;
        for one in self.acting_on(ActsOn::Lines) {
            let count = self.correct(device, one, &mut lines, Content::Lines, pixel_mm)?;
            replaced(one, count, lines.len(), notes);
        }
        Scan::new(Measured::Lines(lines), angles, geometry)
    }

    fn correct(
        &self,
        device: &Device,
        one: &dyn Correction,
        values: &mut Array3<f32>,
        content: Content,
        pixel_mm: Option<[f64; 2]>,
    ) -> Result<u64> {
        let mut views = Views { values: std::mem::take(values), content, pixel_mm };
        let count = one.views(device, &mut views)?;
        Stop::of_caller().check()?;
        *values = views.values;
        Ok(count)
    }

    /// Fails with the first correction that needs all views at once where views have `rows` rows.
    pub fn check_arriving(&self, rows: usize) -> Result<()> {
        match self.iter().find(|one| !one.alone(rows)) {
            None => Ok(()),
            Some(one) => {
                let expected = "corrections of one view after another";
                Err(Error::value("corrections of views that arrive", expected, one.about().name))
            }
        }
    }

    /// Corrects line integrals of some views, which arrive without the others.
    ///
    /// Errors: as [`check_arriving`](Self::check_arriving) and each correction.
    pub fn arriving(
        &self,
        device: &Device,
        lines: &mut Array3<f32>,
        pixel_mm: Option<[f64; 2]>,
    ) -> Result<()> {
        self.check_arriving(lines.dim().1)?;
        for one in self.acting_on(ActsOn::Measured).chain(self.acting_on(ActsOn::Lines)) {
            self.correct(device, one, lines, Content::Lines, pixel_mm)?;
        }
        Ok(())
    }

    /// Fails with the first correction that cannot correct a volume of this shape.
    pub fn expect_volume(&self, shape: [usize; 3]) -> Result<()> {
        self.iter().try_for_each(|one| one.expect_volume(shape))
    }

    /// Corrects the volume.
    ///
    /// Errors: as each correction.
    pub fn volume(&self, cpu: &Cpu, volume: &mut Array3<f32>) -> Result<()> {
        self.acting_on(ActsOn::Volume).try_for_each(|one| one.volume(cpu, volume))
    }
}

fn replaced(one: &dyn Correction, count: u64, total: usize, notes: &mut Vec<String>) {
    if count > 0 {
        let part = 100.0 * count as f64 / total.max(1) as f64;
        notes.push(format!("{}: {count} of {total} measurements replaced ({part:.2} %)", one.about().name));
    }
}

/// The error of a parameter without which a correction cannot act.
fn missing(correction: &str, param: &str, expected: &str) -> Error {
    Error::value(format!("{param} of the correction {correction}"), expected, "none")
}

/// Whether a value is an odd number within limits.
fn odd(value: &Value, limits: std::ops::RangeInclusive<u64>) -> bool {
    matches!(value, Value::Count(count) if count % 2 == 1 && limits.contains(count))
}

/// Whether a value is a number above 0.
fn positive(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.is_finite() && *number > 0.0)
}

/// The heading of all corrections in help.
pub const GROUP: &str = "Corrections";

#[cfg(test)]
mod tests;
