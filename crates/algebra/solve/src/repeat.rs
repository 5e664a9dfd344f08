use rayspin_core::Result;
use rayspin_device::cuda::{Recorded, Recording};
use rayspin_device::{Backend, Cuda, Device};

/// Maximum number of recordings. After these, memory is assumed to be freed between any two repetitions, and
/// the work runs unrecorded.
const MOST_RECORDINGS: usize = 3;

/// Repeats the same work. On a GPU it records the work once and then launches the recording, if the work can
/// be recorded.
///
/// The first repetition runs unrecorded, which loads programs and makes workspaces. Work that allocates, or
/// reads from the host, is never recorded. Nor is work if graphs are not allowed, or if fewer than
/// [`Cuda::graphs_from`] repetitions are left. The results are the same.
pub(crate) struct Repeat {
    device: Device,
    done: usize,
    recordings: usize,
    recorded: Option<Recorded>,
    plain: bool,
    /// Number of launches of the recording.
    pub(crate) replayed: usize,
}

impl Repeat {
    pub(crate) fn new(device: &Device) -> Self {
        Self { device: device.clone(), done: 0, recordings: 0, recorded: None, plain: false, replayed: 0 }
    }

    /// Queues `work`. The caller will queue the same work `left` times in all from now on.
    pub(crate) fn run(&mut self, left: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
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
