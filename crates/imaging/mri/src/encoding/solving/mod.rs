//! An encoding while a method runs.

mod estimate;
mod solve;

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{CoilMaps, LinearOp, SoftSense, batches};
use rayspin_solve::{Eigenvalue, LanczosOptions};

use super::kinds::{Encoding, Scale, Seen, values_at};
use super::samples::{CoilSamples, HostSamples};
use super::spec::Spec;
use super::{Certificate, SharedMaps};
use crate::crop::centre_crop;
use crate::prepare::Mixing;
pub use solve::Solve;

/// Sees the image `[z, y, x]` or `[y, x]` after each iteration of a method that solves for one image.
pub type Observer = Box<dyn FnMut(usize, &ArrayD<C32>)>;

/// Values that a run reuses from frame to frame.
#[derive(Default)]
pub(crate) struct FrameCache {
    /// The encoding of the last frame, with its plans.
    encoding: Option<Box<dyn Encoding>>,
    /// Whether it was certified.
    certified: Certified,
    /// Maps of the frames to come.
    pub(crate) shared: Option<SharedMaps>,
    /// The eigenvalue to which λ is relative in the frames to come.
    pub(crate) eigenvalue: Option<f64>,
    /// What sees iterates.
    pub(crate) observer: Option<Observer>,
}

/// Whether an encoding was certified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Certified {
    #[default]
    No,
    /// By the frame in work.
    Now,
    /// By a frame that is done.
    Before,
}

impl FrameCache {
    /// Frees the plans.
    pub(crate) fn give_back(&mut self) {
        self.encoding = self.encoding.take().and_then(Encoding::give_back);
        if self.encoding.is_none() {
            self.certified = Certified::No;
        }
    }

    /// The frame is done, or failed: of one that failed nothing is certified.
    pub(crate) fn close(&mut self, done: bool) {
        if self.certified == Certified::Now {
            self.certified = if done { Certified::Before } else { Certified::No };
        }
    }
}

/// What a method made of a frame.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) image: ArrayD<C32>,
    pub(crate) solve: Option<Solve>,
    pub(crate) maps: Option<CoilMaps<f32>>,
    pub(crate) notes: Vec<String>,
    pub(crate) certificates: Vec<Certificate>,
}

/// The encoding of a frame while a method runs on it: samples, plans, maps, and what is found on the way.
pub struct Solving<'a> {
    spec: &'a Spec<'a>,
    mixing: Option<&'a Mixing>,
    samples: Option<CoilSamples<'a>>,
    cache: &'a mut FrameCache,
    has_plans: bool,
    maps: Option<CoilMaps<f32>>,
    /// Maps that were estimated before plans were made.
    own_maps: Option<ArrayD<C32>>,
    rhs: Option<Array<C32>>,
    normal: Option<Arc<dyn LinearOp<C32>>>,
    eigenvalue: Option<Eigenvalue>,
    image: Option<ArrayD<C32>>,
    solve: Option<Solve>,
    notes: Vec<String>,
    certificates: Vec<Certificate>,
}

impl<'a> Solving<'a> {
    /// With samples of the host, and what the frames before left.
    pub(crate) fn new(
        spec: &'a Spec<'a>,
        samples: HostSamples<'a>,
        mixing: Option<&'a Mixing>,
        cache: &'a mut FrameCache,
    ) -> Result<Self> {
        // Plans that do not fit make room before others are made.
        let reused = match cache.encoding.take() {
            Some(before) => spec.kind().reuse(spec, before)?,
            None => None,
        };
        let has_plans = reused.is_some();
        if !has_plans {
            cache.certified = Certified::No;
        }
        cache.encoding = Some(reused.unwrap_or_else(|| spec.kind().unplanned()));
        let samples = Some(CoilSamples::on_host(spec.device(), samples, mixing));
        Ok(Self { mixing, samples, has_plans, ..Self::empty(spec, cache) })
    }

    /// The frames of a series, whose right-hand sides `[frame, image…]` and normal operator are there.
    pub(crate) fn of_series(
        spec: &'a Spec<'a>,
        cache: &'a mut FrameCache,
        rhs: Array<C32>,
        normal: Arc<dyn LinearOp<C32>>,
    ) -> Self {
        Self { rhs: Some(rhs), normal: Some(normal), ..Self::empty(spec, cache) }
    }

    fn empty(spec: &'a Spec<'a>, cache: &'a mut FrameCache) -> Self {
        let known = cache.eigenvalue.filter(|_| !spec.uses().own_eigenvalue);
        let eigenvalue =
            known.map(|value| Eigenvalue { value, residual: 0.0, iterations: 0, converged: true });
        Self {
            spec,
            mixing: None,
            samples: None,
            cache,
            has_plans: false,
            maps: None,
            own_maps: None,
            rhs: None,
            normal: None,
            eigenvalue,
            image: None,
            solve: None,
            notes: Vec::new(),
            certificates: Vec::new(),
        }
    }

    /// Where it is computed.
    pub fn device(&self) -> &Device {
        self.spec.device()
    }

    /// Says something to the user.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    fn samples(&mut self) -> Result<&mut CoilSamples<'a>> {
        self.samples.as_mut().ok_or_else(|| lost("samples"))
    }

    /// Samples come to the device, as many coils at a time as are taken.
    pub(super) fn move_samples_to_device(&mut self, _: &Monitor<'_>) -> Result<()> {
        let samples = self.samples.take().ok_or_else(|| lost("samples"))?;
        let mut samples = samples.into_device(self.spec.batch_sizes().coils)?;
        if let Scale::Arriving(scale) = self.spec.scale() {
            samples.scale(scale)?;
        }
        self.samples = Some(samples);
        Ok(())
    }

    /// The samples of a grid's places, in place of the grid's.
    pub(super) fn take_places(&mut self, places: &[usize]) -> Result<()> {
        let device = self.spec.device();
        let (kspace, mixing) = self.samples.take().ok_or_else(|| lost("samples"))?.into_host()?;
        // A mixing along the readout is of the grid, any other of its samples as well.
        let (kspace, mixing) = match mixing {
            Some(mixing) if mixing.needs_lines() => {
                (Cow::Owned(mixing.on_host(device, &kspace.view())?), None)
            }
            _ => (Cow::Owned(kspace.into_owned()), mixing),
        };
        let data = values_at(&kspace, places).into_dyn();
        self.samples = Some(CoilSamples::on_host(device, data.into(), mixing));
        Ok(())
    }

    pub(super) fn encoding(&self) -> Result<&dyn Encoding> {
        self.cache.encoding.as_deref().ok_or_else(|| lost("encoding"))
    }

    fn encoding_mut(&mut self) -> Result<&mut dyn Encoding> {
        self.cache.encoding.as_deref_mut().ok_or_else(|| lost("encoding"))
    }

    /// The encoding as the kind that it is. Errors: another kind.
    pub(super) fn encoding_as<E: Encoding>(&mut self) -> Result<&mut E> {
        let any: &mut dyn Any = self.encoding_mut()?;
        any.downcast_mut().ok_or_else(|| lost("plans of this encoding"))
    }

    pub(super) fn has_plans(&self) -> bool {
        self.has_plans
    }

    pub(super) fn is_certified(&self) -> bool {
        self.cache.certified != Certified::No
    }

    pub(super) fn certify(&mut self) -> Result<()> {
        let Some(certify) = self.spec.settings().certify else { return Ok(()) };
        let samples = self.samples.as_ref().ok_or_else(|| lost("samples"))?;
        let certificates = self.encoding()?.certify(self.spec, certify, samples)?;
        self.certificates.extend(certificates);
        self.cache.certified = Certified::Now;
        Ok(())
    }

    /// The maps, where the method uses any.
    pub(crate) fn maps(&self) -> Option<CoilMaps<f32>> {
        self.maps.clone()
    }

    /// Maps in several sets, `[set, coil, image…]`.
    fn soft(&self) -> Result<Option<Arc<SoftSense<f32>>>> {
        let Some(maps) = &self.maps else { return Ok(None) };
        if maps.shape().len() < self.spec.domain().len() + 2 {
            return Ok(None);
        }
        let maps = maps.resident().ok_or_else(|| lost("sets of sensitivity maps on the device"))?;
        Ok(Some(Arc::new(SoftSense::new(maps)?)))
    }

    /// The samples `[taken, …]` of a range of coils, to be taken in turn.
    pub(crate) fn take_samples(&mut self, coils: &Range<usize>) -> Result<Array<C32>> {
        self.samples()?.take(coils)
    }

    pub(crate) fn take_all_samples(&mut self) -> Result<Array<C32>> {
        self.samples.take().ok_or_else(|| lost("samples"))?.all()
    }

    /// Other samples in place of those that were taken.
    pub(crate) fn put_samples(&mut self, samples: Array<C32>) {
        self.samples = Some(samples.into());
    }

    pub(crate) fn drop_samples(&mut self) {
        self.samples = None;
    }

    /// Samples of the host as the coils of the frame become: all of them, on the device.
    pub(crate) fn prepared(&self, samples: HostSamples<'_>) -> Result<Array<C32>> {
        CoilSamples::on_host(self.spec.device(), samples, self.mixing).all()
    }

    /// The weights of the samples by their density. Errors: a method that does not use them.
    pub(crate) fn density(&self) -> Result<&Array<f32>> {
        self.encoding()?.density()
    }

    /// Fᴴ of samples `[taken, …]`: `[taken, image…]`.
    pub(crate) fn adjoint(&mut self, samples: Array<C32>) -> Result<Array<C32>> {
        let spec = self.spec;
        self.encoding_mut()?.adjoint(spec, samples)
    }

    /// The samples s d of F ρ = s d of a range of coils, to be taken in turn.
    fn take_scaled(&mut self, coils: &Range<usize>) -> Result<Array<C32>> {
        let mut samples = self.take_samples(coils)?;
        if let Scale::Transformed(scale) = self.spec.scale() {
            vector::scale(scale.into(), &mut samples)?;
        }
        Ok(samples)
    }

    /// Fᴴ s d of a range of coils, `[taken, image…]`, to be taken in turn. The scale s makes ρ of F ρ = s d a
    /// density.
    pub fn take_images(&mut self, coils: &Range<usize>) -> Result<Array<C32>> {
        let samples = self.take_scaled(coils)?;
        self.adjoint(samples)
    }

    /// Eᴴ s d = Σ_j c̄_j Fᴴ s d_j; the samples are gone.
    pub(super) fn make_rhs(&mut self) -> Result<()> {
        let spec = self.spec;
        self.rhs = Some(match self.soft()? {
            Some(soft) => soft.adjoint(&self.take_images(&(0..spec.coils()))?)?,
            None => {
                let maps = self.maps.clone().ok_or_else(|| lost("sensitivity maps"))?;
                let mut rhs = Array::zeros(spec.device(), &spec.image_shape())?;
                for range in batches(spec.coils(), spec.batch_sizes().coils) {
                    let samples = self.take_scaled(&range)?;
                    self.encoding_mut()?.combine(spec, samples, &maps, range, &mut rhs)?;
                }
                rhs
            }
        });
        self.samples = None;
        Ok(())
    }

    /// Eᴴd, `[image…]`, `[set, image…]`, or `[coefficient, image…]` of a temporal subspace. Errors: it was
    /// taken, or never made.
    pub fn take_rhs(&mut self) -> Result<Array<C32>> {
        self.rhs.take().ok_or_else(|| lost("right-hand side"))
    }

    pub(super) fn make_normal(&mut self) -> Result<()> {
        let seen = match &self.maps {
            Some(maps) if self.spec.sees_all_coils() => match self.soft()? {
                Some(soft) => Seen::Sets(soft),
                None => Seen::Coils(maps.clone()),
            },
            _ => Seen::Alone,
        };
        self.normal = Some(self.encoding()?.normal(self.spec, seen)?);
        Ok(())
    }

    /// EᴴE, or FᴴF for a method that goes coil by coil. Errors: it was never made.
    pub fn normal(&self) -> Result<Arc<dyn LinearOp<C32>>> {
        self.normal.clone().ok_or_else(|| lost("normal operator"))
    }

    pub(super) fn has_eigenvalue(&self) -> bool {
        self.eigenvalue.is_some()
    }

    pub(super) fn find_eigenvalue(&mut self) -> Result<()> {
        let normal = self.normal()?;
        self.eigenvalue = Some(match &self.rhs {
            Some(rhs) => rayspin_solve::largest_eigenvalue_from(&*normal, rhs, &EIGENVALUE)?,
            // A method that goes coil by coil makes each right-hand side later.
            None => rayspin_solve::largest_eigenvalue(&*normal, self.spec.device(), &EIGENVALUE)?,
        });
        Ok(())
    }

    /// The largest eigenvalue of the normal operator. Errors: it was never found.
    pub fn eigenvalue(&self) -> Result<Eigenvalue> {
        self.eigenvalue.ok_or_else(|| lost("largest eigenvalue"))
    }

    /// What is to see iterates.
    pub fn observer(&mut self) -> &mut Option<Observer> {
        &mut self.cache.observer
    }

    /// Leaves the image, on the [domain](Spec::domain), and how it came about.
    pub fn finish(&mut self, image: ArrayD<C32>, solve: Option<Solve>) {
        self.image = Some(image);
        self.solve = solve;
    }

    /// The maps alone, where the frame is no image of the series.
    pub(crate) fn into_maps(mut self) -> Result<(CoilMaps<f32>, Vec<String>)> {
        self.samples = None;
        Ok((self.maps.take().ok_or_else(|| lost("sensitivity maps"))?, self.notes))
    }

    /// What a frame of a series leaves: all but an image.
    pub(crate) fn into_encoded(mut self) -> Made {
        self.samples = None;
        self.made(ArrayD::zeros(vec![0]))
    }

    /// What the method made: the image, or `[frame, image…]`, cut to the matrix.
    pub(crate) fn into_made(mut self) -> Result<Made> {
        let image = self.image.take().ok_or_else(|| lost("image"))?;
        let matrix = self.spec.voxels().matrix();
        let leading = image.ndim().saturating_sub(matrix.len());
        let shape = [&image.shape()[..leading], matrix].concat();
        Ok(self.made(centre_crop(image, &shape)?))
    }

    fn made(self, image: ArrayD<C32>) -> Made {
        let Self { cache, maps, solve, notes, certificates, .. } = self;
        let mut texts = cache.encoding.as_ref().map_or(&[][..], |encoding| encoding.notes()).to_vec();
        texts.extend(notes);
        texts.extend(solve.as_ref().and_then(Solve::note));
        Made { image, solve, maps, notes: texts, certificates }
    }
}

impl Made {
    /// This, and what another frame was noted for and certified; the maps stay the first one's.
    pub(crate) fn with(mut self, other: Self) -> Self {
        let new: Vec<String> = other.notes.into_iter().filter(|note| !self.notes.contains(note)).collect();
        self.notes.extend(new);
        self.certificates.extend(other.certificates);
        self.maps = self.maps.or(other.maps);
        self
    }
}

/// λ need not be known better than to 1 %, and each iteration costs as much as one of conjugate gradients.
pub(super) const EIGENVALUE: LanczosOptions = LanczosOptions { seed: 0, max_iterations: 50, tolerance: 1e-2 };

fn lost(what: &str) -> Error {
    Error::Numerical { what: what.into(), detail: "not there where a method needs it".into() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, Ordering};

    use rayspin_linop::Identity;
    use rayspin_solve::largest_eigenvalue;

    use super::*;

    /// An operator that grows by 3 % each time it is applied, as one does whose rounding errors run away.
    struct Growing {
        shape: Vec<usize>,
        applied: AtomicI32,
    }

    impl LinearOp<C32> for Growing {
        fn name(&self) -> &str {
            "growing"
        }
        fn domain(&self) -> &[usize] {
            &self.shape
        }
        fn range(&self) -> &[usize] {
            &self.shape
        }
        fn forward_into(&self, x: &Array<C32>, y: &mut Array<C32>) -> Result<()> {
            let size = 1.03f32.powi(self.applied.fetch_add(1, Ordering::Relaxed));
            let ramp = x.to_vec()?.into_iter().enumerate();
            let values: Vec<C32> = ramp.map(|(i, v)| v * size * (1.0 + i as f32)).collect();
            y.copy_from(&Array::from_slice(x.device(), x.shape(), &values)?)
        }
        fn adjoint_into(&self, y: &Array<C32>, x: &mut Array<C32>) -> Result<()> {
            self.forward_into(y, x)
        }
    }

    #[test]
    fn an_eigenvalue_that_is_not_settled_is_told() {
        let device = Device::cpu_with_threads(1).unwrap();
        let normal = Growing { shape: vec![50], applied: AtomicI32::new(0) };
        let found = largest_eigenvalue(&normal, &device, &EIGENVALUE).unwrap();
        assert!(!found.converged, "{found:?}");
        let solve = Solve { eigenvalue_converged: found.converged, ..Solve::default() };
        assert!(solve.note().unwrap().contains("eigenvalue"));
        let fixed = largest_eigenvalue(&Identity::<C32>::new(&[50]), &device, &EIGENVALUE).unwrap();
        assert!(fixed.converged);
        assert_eq!(Solve { eigenvalue_converged: fixed.converged, ..solve }.note(), None);
    }
}
