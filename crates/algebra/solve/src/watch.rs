use rayspin_core::{Monitor, Result};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};

/// The state of a solver after an iteration, as an observer sees it.
pub struct Step<'a, S: Scalar> {
    /// 1 after the first iteration.
    pub iteration: usize,
    /// The residual, as in the solver's result.
    pub residual: f64,
    /// The image so far.
    pub solution: &'a Array<S>,
}

/// Sees every iterate. Its error ends the run.
pub type Observer<'a, S> = &'a mut (dyn FnMut(&Step<'_, S>) -> Result<()> + 'a);

/// The callbacks of a run. `monitor` receives the progress and may interrupt; `observe` sees the iterates.
///
/// Every solver also takes a plain [`Monitor`], without an observer.
///
/// ```
/// use rayspin_core::{C32, Monitor, Result};
/// use rayspin_device::Device;
/// use rayspin_linop::{Identity, random};
/// use rayspin_solve::{CgOptions, Step, Watch, cg};
///
/// # fn main() -> Result<()> {
/// let rhs = random::<f32>(&Device::cpu()?, &[8, 8], 1)?;
/// let mut residuals = Vec::new();
/// let mut observe = |step: &Step<'_, C32>| {
///     residuals.push(step.residual);
///     Ok(())
/// };
/// let silent = Monitor::silent();
/// let watch = Watch::from(&silent).with_observer(&mut observe);
/// let found = cg(&Identity::new(&[8, 8]), &rhs, None, &CgOptions::default(), watch)?;
/// assert_eq!(found.residuals[1..], residuals);
/// # Ok(())
/// # }
/// ```
pub struct Watch<'a, S: Scalar> {
    /// Progress and interruption.
    pub monitor: &'a Monitor<'a>,
    /// The observer. Observing may cost the memory of an image and a pass over it in each iteration.
    pub observe: Option<Observer<'a, S>>,
}

impl<'a, S: Scalar> Watch<'a, S> {
    /// The same with an observer of the iterates.
    #[must_use]
    pub fn with_observer(self, observe: Observer<'a, S>) -> Self {
        Self { observe: Some(observe), ..self }
    }

    /// Runs `work` with an observer that receives each iterate times `scale`, in an image of its own.
    pub(crate) fn scaled<T>(self, scale: f64, work: impl FnOnce(Watch<'_, S>) -> Result<T>) -> Result<T> {
        let Self { monitor, observe } = self;
        let Some(observe) = observe else { return work(monitor.into()) };
        let mut shown: Option<Array<S>> = None;
        let mut show = |step: &Step<'_, S>| {
            let image = match &mut shown {
                Some(image) => {
                    image.copy_from(step.solution)?;
                    image
                }
                None => shown.insert(step.solution.try_clone()?),
            };
            vector::scale(scale.into(), image)?;
            observe(&Step { iteration: step.iteration, residual: step.residual, solution: image })
        };
        work(Watch::from(monitor).with_observer(&mut show))
    }

    /// Reports the end of an iteration.
    pub(crate) fn step(&mut self, step: &Step<'_, S>, detail: &str) -> Result<()> {
        if let Some(observe) = &mut self.observe {
            observe(step)?;
        }
        self.monitor.step(detail)
    }
}

impl<'a, S: Scalar> From<&'a Monitor<'_>> for Watch<'a, S> {
    fn from(monitor: &'a Monitor<'_>) -> Self {
        Self { monitor, observe: None }
    }
}
