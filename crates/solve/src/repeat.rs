use rayspin_core::Result;
use rayspin_device::cuda::{Recorded, Recording};
use rayspin_device::{Backend, Cuda, Device};

/// Recordings after which memory that comes and goes meanwhile is taken to do so always.
const MOST_RECORDINGS: usize = 3;

/// The same work again and again: on a GPU recorded once and then repeated as one, where the work can be recorded.
///
/// The first time it is done as it is, which loads programs and makes workspaces. Work that allocates, or reads from the host, goes
/// on as it is. So does all work where graphs are not allowed, or the repetitions to come fewer than [`Cuda::graphs_from`]. What is computed is the same.
pub(crate) struct Repeat {
    device: Device,
    done: usize,
    recordings: usize,
    recorded: Option<Recorded>,
    plain: bool,
    /// How often the recording was launched.
    pub(crate) replayed: usize,
}

impl Repeat {
    pub(crate) fn new(device: &Device) -> Self {
        Self { device: device.clone(), done: 0, recordings: 0, recorded: None, plain: false, replayed: 0 }
    }

    /// Asks for `work`, which is to be asked for `left` times in all from now on, always the same.
    pub(crate) fn again(&mut self, left: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let device = self.device.clone();
        let cuda = match device.backend() {
            Backend::Cuda(cuda) if cuda.graphs_from() < usize::MAX && !self.plain && self.done > 0 => cuda,
            _ => {
                self.done += 1;
                return work();
            }
        };
        self.done += 1;
        if self.recorded.as_ref().is_some_and(|recorded| !recorded.current()) {
            self.recorded = None;
        }
        if self.recorded.is_none() && left >= cuda.graphs_from() && self.recordings < MOST_RECORDINGS {
            self.record(cuda, work)?;
        }
        match &self.recorded {
            Some(recorded) => {
                self.replayed += 1;
                recorded.launch()
            }
            None => work(),
        }
    }

    fn record(&mut self, cuda: &Cuda, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.recordings += 1;
        match cuda.try_record(work)? {
            Recording::Ready(recorded) => self.recorded = Some(recorded),
            Recording::Refused(_) => self.plain = true,
        }
        Ok(())
    }
}
