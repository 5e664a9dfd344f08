//! `rayspin.images`: the images of a series one after another, as they are made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ndarray::ArrayD;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayspin::core::{C32, Error, Monitor, Silent};
use rayspin::job::Error as RunError;

use crate::error::{of_run, raised};
use crate::exchange::to_numpy;
use crate::recon::Wanted;
use crate::record;
use crate::signals::{count_run, is_closing};
use crate::words::Call;

/// How long a run waits for its images to be taken, and a caller for an image, before each looks at signals.
const TURN: Duration = Duration::from_millis(20);

/// What a run tells its caller.
enum Item {
    /// Its method, and what it noted so far.
    Begun(&'static str, Vec<String>),
    Image(ArrayD<C32>),
    Failed(RunError),
}

/// The images of a scan as they are made: what `rayspin.images` returns.
///
/// `__iter__() -> Images`
/// `__next__() -> NDArray[np.complex64]`
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Images {
    items: Mutex<Option<Receiver<Item>>>,
    stop: Arc<AtomicBool>,
    told: Mutex<(Option<&'static str>, Vec<String>)>,
}

#[pymethods]
impl Images {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The next image, complex64 `[z, y, x]`.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let next = py.detach(|| {
                let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
                items.as_ref().map_or(Err(RecvTimeoutError::Disconnected), |items| items.recv_timeout(TURN))
            });
            match next {
                Ok(Item::Image(image)) => return Ok(Some(to_numpy(py, image))),
                Ok(Item::Begun(method, notes)) => {
                    let notes = notes.iter().map(|note| Call::Recon.told(note)).collect();
                    *self.told.lock().unwrap_or_else(PoisonError::into_inner) = (Some(method), notes);
                }
                Ok(Item::Failed(error)) => {
                    self.close();
                    return Err(of_run(Call::Recon, error));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(signal) = py.check_signals() {
                self.close();
                return Err(signal);
            }
        }
    }

    /// The method's name; None before the first image.
    /// `-> str | None`
    #[getter]
    fn method(&self) -> Option<&'static str> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// What was assumed before the first image, one sentence each.
    /// `-> list[str]`
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Raises TypeError: the run goes on in this process.
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "images that are still being made cannot be pickled or copied: pickle list(images), or the scan and \
             call rayspin.images in the other process",
        ))
    }

    /// Ends the run before its last image. Returns None; what was made stays. Raises nothing.
    ///
    /// `() -> None`
    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        *self.items.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Gives an item to the caller. Errors: the caller wants no more.
fn give(items: &SyncSender<Item>, stop: &AtomicBool, mut item: Item) -> Result<(), Error> {
    loop {
        if stop.load(Ordering::Relaxed) || is_closing() {
            return Err(Error::Interrupted);
        }
        match items.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(again)) => item = again,
            Err(TrySendError::Disconnected(_)) => return Err(Error::Interrupted),
        }
        std::thread::sleep(TURN / 10);
    }
}

/// The images of a scan one after another, as they are made: the volumes of a series. One is held
/// at a time.
///
/// scan, method, device, options: as `rayspin.recon` takes them. The path of a file is read repetition by
///     repetition.
///
/// Returns an iterator of complex64 images `[z, y, x]`, with the attributes `method` and `notes` and the
/// function `close`. The run goes on in a thread of its own, one image ahead of the caller; `close`, the end
/// of the iterator, or Ctrl-C ends it. Raises as `rayspin.recon` does: at once for the keywords, and at the
/// first image for the scan.
///
/// >>> import rayspin
/// >>> scan = rayspin.simulate.mri(matrix=(24, 24), coils=2, repetitions=3).scan
/// >>> for image in rayspin.images(scan, "cartesian", device="cpu"):
/// ...     print(image.shape)
/// (1, 24, 24)
/// (1, 24, 24)
/// (1, 24, 24)
///
/// `(scan: Scan | str | PathLike[str], method: str | None, *, device: str, **options: Any) -> Images`
#[pyfunction]
#[pyo3(name = "stream_recon", signature = (scan, method=None, *, device="auto", **options))]
pub(crate) fn images(
    scan: &Bound<'_, PyAny>,
    method: Option<&str>,
    device: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Images> {
    let Wanted { mut request, place, .. } = Wanted::of(scan, method, device, options)?;
    request.collects = false;
    request.options.keep_maps = false;
    let recorder = record::start(&place.device);
    let (to_caller, items) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, counted) = (stop.clone(), count_run());
    let run = move || {
        let monitor = Monitor::new(&Silent, Some(&stopped));
        let made = || -> Result<(), RunError> {
            let planned = request.begin(place, monitor, recorder)?.read()?.choose()?.plan()?;
            let begun = Item::Begun(planned.method(), planned.notes().to_vec());
            give(&to_caller, &stopped, begun)?;
            let mut sink = |volume: rayspin::mri::recon::Volume| {
                Ok::<_, RunError>(give(&to_caller, &stopped, Item::Image(volume.data))?)
            };
            let image = planned.run::<RunError>(&mut sink)?.image.map(|image| image.into_data());
            let Some(image) = image else { return Ok(()) };
            match image.ndim() {
                4 => image
                    .outer_iter()
                    .try_for_each(|one| Ok(give(&to_caller, &stopped, Item::Image(one.to_owned()))?)),
                _ => Ok(give(&to_caller, &stopped, Item::Image(image))?),
            }
        };
        if let Err(error) = made() {
            // A caller who wants no more is gone.
            let _ = give(&to_caller, &stopped, Item::Failed(error));
        }
        drop(counted);
    };
    let started = std::thread::Builder::new().name("rayspin images".to_owned()).spawn(run);
    started.map_err(|error| raised(Error::value("thread", "one to compute in", error)))?;
    Ok(Images { items: Mutex::new(Some(items)), stop, told: Mutex::default() })
}
