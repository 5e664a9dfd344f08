//! Arrays of the caller, used where they lie: NumPy's by their address, CuPy's by the CUDA array interface,
//! all others (torch, JAX) through DLPack.

// What Python says about memory cannot be checked. Every call states what it relies on.
#![allow(unsafe_code)]

pub(crate) mod copied;
mod fingerprint;
mod line;
mod refusals;

use std::cell::Cell;
use std::ffi::c_void;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::python::consumer::stream::no_sync;
use dlpark::python::{DlpackStream, ImportRequest, ImportedDlpack, StreamArg};
use ndarray::ArrayD;
use num_complex::Complex;
use numpy::{PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rayspin::core::format_shape;
use rayspin::device::{Array, Device, Element, ForeignStream, HostCopy, Lent};

use crate::error::{raised, wrong_type};
use crate::processor::{DeviceName, Processor};
use crate::signals::Detached;

pub(crate) use fingerprint::fingerprint;
pub(crate) use line::Line;
pub(crate) use refusals::expect_unmasked;
use refusals::{elsewhere, expect_plain, strided, unknown};

/// The types of elements that are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F64,
    C64,
    C128,
}

impl Dtype {
    const ALL: [Self; 4] = [Self::F32, Self::F64, Self::C64, Self::C128];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }

    /// Whether its real numbers have 64 bits.
    pub(crate) fn is_double(self) -> bool {
        matches!(self, Self::F64 | Self::C128)
    }

    /// The type that a name, a type or an object such as `numpy.dtype("complex64")` or `torch.complex64`
    /// stands for. A name of a real type is that real type.
    pub(crate) fn named(dtype: Option<&Bound<'_, PyAny>>, default: Self) -> PyResult<Self> {
        let Some(dtype) = dtype else { return Ok(default) };
        let name = match dtype.getattr("__name__") {
            Ok(name) => name.str()?.to_string(),
            Err(_) => dtype.str()?.to_string(),
        };
        match name.rsplit('.').next().unwrap_or_default() {
            "float32" | "single" => Ok(Self::F32),
            "float64" | "double" | "float" => Ok(Self::F64),
            "complex64" => Ok(Self::C64),
            "complex128" | "complex" => Ok(Self::C128),
            _ => Err(wrong_type("dtype", "float32, float64, complex64 or complex128", name)),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Its description in array interfaces.
    fn description(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::C64 => "<c8",
            Self::C128 => "<c16",
        }
    }

    fn of_numpy(array: &Bound<'_, PyUntypedArray>) -> Option<Self> {
        let (py, stored) = (array.py(), array.dtype());
        Self::ALL.into_iter().find(|dtype| {
            stored.is_equiv_to(&match dtype {
                Self::F32 => numpy::dtype::<f32>(py),
                Self::F64 => numpy::dtype::<f64>(py),
                Self::C64 => numpy::dtype::<Complex<f32>>(py),
                Self::C128 => numpy::dtype::<Complex<f64>>(py),
            })
        })
    }

    fn of_dlpack(dtype: DLDataType) -> Option<Self> {
        let known = [DLDataType::F32, DLDataType::F64, DLDataType::C64, DLDataType::C128];
        known.iter().position(|one| *one == dtype).map(|index| Self::ALL[index])
    }
}

/// An element type with its name in Python.
pub(crate) trait Item: Element + numpy::Element {
    const DTYPE: Dtype;
}

impl Item for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Item for f64 {
    const DTYPE: Dtype = Dtype::F64;
}
impl Item for Complex<f32> {
    const DTYPE: Dtype = Dtype::C64;
}
impl Item for Complex<f64> {
    const DTYPE: Dtype = Dtype::C128;
}

/// An array of the caller.
pub(crate) struct Given<'py> {
    /// What errors call it.
    what: &'static str,
    object: Bound<'py, PyAny>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) place: DeviceName,
    /// Why nothing may write to it, where that is so.
    locked: Option<&'static str>,
    lent: Lent,
    address: usize,
    /// Elements from one element of a single axis to the next, where they are not in C order without gaps.
    stride: Option<isize>,
}

impl<'py> Given<'py> {
    /// Takes an array as the caller has it. Errors: a `TypeError` for what is no array, another element type
    /// or another order of the elements, each with what to do.
    pub(crate) fn new(what: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let given = Self::with_stride(what, object)?;
        if given.stride.is_some() { Err(strided(what)) } else { Ok(given) }
    }

    /// [`Given::new`], which also takes an array of one axis with gaps between its elements, or that leads
    /// backwards.
    fn with_stride(what: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return Self::of_numpy(what, array);
        }
        if library(object)?.is("cupy")
            && let Some(given) = Self::of_cupy(what, object)?
        {
            return Ok(given);
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            return Self::of_dlpack(what, object);
        }
        let expected = "an array of NumPy, CuPy, torch or another library with DLPack";
        let found = object.get_type().name()?;
        Err(wrong_type(
            what,
            expected,
            format!("{found}; numpy.asarray({what}) makes one of lists and numbers"),
        ))
    }

    fn of_numpy(what: &'static str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        expect_unmasked(what, array.as_any())?;
        let Some(dtype) = Dtype::of_numpy(array) else { return Err(unknown(what, array.dtype())) };
        let stride = match (array.is_c_contiguous(), array.strides()) {
            (true, _) => None,
            (false, &[bytes]) if bytes % dtype.bytes() as isize == 0 => Some(bytes / dtype.bytes() as isize),
            _ => return Err(strided(what)),
        };
        // SAFETY: the pointer is a live NumPy array's, whose fields may be read while the interpreter is
        //     attached.
        let (address, flags) = unsafe {
            let fields = &*array.as_array_ptr();
            (fields.fields.data.expose_provenance(), fields.fields.flags)
        };
        // Messages of other processes hand over arrays at any address.
        if flags & numpy::npyffi::flags::NPY_ARRAY_ALIGNED == 0 {
            let moved = array.call_method1(intern!(array.py(), "copy"), ("C",))?;
            let locked = Some("one at an odd address");
            return Ok(Self { locked, ..Self::of_numpy(what, moved.cast::<PyUntypedArray>()?)? });
        }
        let owner: Py<PyAny> = array.clone().into_any().unbind();
        Ok(Self {
            what,
            object: array.clone().into_any(),
            shape: array.shape().to_vec(),
            dtype,
            place: DeviceName::Cpu,
            locked: (flags & numpy::npyffi::flags::NPY_ARRAY_WRITEABLE == 0).then_some("a read-only one"),
            lent: Lent::new(address as u64, owner),
            address,
            stride,
        })
    }

    /// An array of CuPy by its own description (the CUDA array interface, version 3), which takes less time
    /// than DLPack's. `None` for what is no array, an array without elements or without a stream, one of
    /// another GPU than CuPy's current one, whose stream is described, and other element types.
    fn of_cupy(what: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let described = object.getattr(intern!(py, "__cuda_array_interface__")).ok();
        let Some(described) = described.and_then(|described| described.cast_into::<PyDict>().ok()) else {
            return Ok(None);
        };
        let field = |name: &Bound<'py, PyString>| {
            described.get_item(name).map(|field| field.filter(|field| !field.is_none()))
        };
        let (Some(shape), Some(kind), Some(data), Some(stream)) = (
            field(intern!(py, "shape"))?,
            field(intern!(py, "typestr"))?,
            field(intern!(py, "data"))?,
            field(intern!(py, "stream"))?,
        ) else {
            return Ok(None);
        };
        let kind = kind.cast::<PyString>()?.to_str()?.to_owned();
        let Some(dtype) = Dtype::ALL.into_iter().find(|dtype| dtype.description() == kind) else {
            return Ok(None);
        };
        let (shape, (address, read_only)): (Vec<usize>, (usize, bool)) = (shape.extract()?, data.extract()?);
        let gpu: usize = object.getattr(intern!(py, "data"))?.getattr(intern!(py, "device_id"))?.extract()?;
        let runtime = py.import(intern!(py, "cupy.cuda.runtime"))?;
        let current: usize = runtime.call_method0(intern!(py, "getDevice"))?.extract()?;
        if address == 0 || shape.contains(&0) || gpu != current {
            return Ok(None);
        }
        let item = dtype.bytes() as isize;
        let stride = match field(intern!(py, "strides"))?
            .map(|strides| strides.extract::<Vec<isize>>())
            .transpose()?
        {
            None => None,
            Some(strides) => match strides[..] {
                [bytes] if bytes % item == 0 => Some(bytes / item),
                _ => return Err(strided(what)),
            },
        };
        // The description's 1 is the default stream, whose handle is 0.
        let stream = match stream.extract::<u64>()? {
            1 => 0,
            handle => handle,
        };
        // SAFETY: it is CuPy's current stream on the array's GPU, which stays alive while it is current:
        //     until the call ends.
        let stream = unsafe { ForeignStream::new(stream) };
        let owner: Py<PyAny> = object.clone().unbind();
        Ok(Some(Self {
            what,
            object: object.clone(),
            shape,
            dtype,
            place: DeviceName::Cuda(gpu),
            locked: read_only.then_some("a read-only one"),
            lent: Lent::new(address as u64, owner).on(stream),
            address,
            stride,
        }))
    }

    fn of_dlpack(what: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        expect_plain(what, object)?;
        let request = ImportRequest::new(object.as_borrowed())?;
        let device = request.device()?;
        let on_gpu = matches!(device.device_type, DLDeviceType::CUDA | DLDeviceType::CUDAMANAGED);
        let place = match device.device_type {
            DLDeviceType::CPU | DLDeviceType::CUDAHOST => DeviceName::Cpu,
            _ if on_gpu => DeviceName::Cuda(device.device_id.max(0) as usize),
            _ => return Err(wrong_type(what, "an array on the CPU or an NVIDIA GPU", "another device")),
        };
        let stream = CallersStream::default();
        let stream_of_import: Option<&dyn DlpackStream> = if on_gpu { Some(&stream) } else { None };
        let tensor = request.import(stream_of_import, None)?;
        let view = tensor.validate().map_err(|error| PyValueError::new_err(format!("{what}: {error}")))?;
        let Some(dtype) = Dtype::of_dlpack(view.dtype()) else {
            return Err(unknown(what, object.getattr("dtype")?));
        };
        let compact = view.is_compact().map_err(|error| PyValueError::new_err(format!("{what}: {error}")))?;
        let stride = match (compact, view.strides()) {
            (true, _) => None,
            // CuPy divides the negative bytes of a reversed array as if they were unsigned (14.2): the
            // product wraps back to them.
            (false, Some(&[stride])) => {
                let item = dtype.bytes() as i64;
                Some((stride.wrapping_mul(item) / item) as isize)
            }
            _ => return Err(strided(what)),
        };
        let shape = view.shape().iter().map(|&n| n as usize).collect();
        let address = view.data_ptr().expose_provenance().wrapping_add(view.byte_offset() as usize);
        let library = library(object)?;
        let locked = match &tensor {
            _ if library.is("jax") || library.is("jaxlib") => Some("one of JAX, whose arrays never change"),
            ImportedDlpack::Versioned(_) => {
                tensor.flags().contains(dlpark::DlpackFlags::READ_ONLY).then_some("a read-only one")
            }
            // Arrays of these libraries are always writable.
            ImportedDlpack::Legacy(_) if library.is("torch") || library.is("cupy") => None,
            ImportedDlpack::Legacy(_) => {
                Some("one of a library whose DLPack does not say whether it is (versions from 1.0 do)")
            }
        };
        let handle = match stream.seen.get() {
            Some(handle) => Some(handle),
            None if on_gpu => stream_of(object)?,
            None => None,
        };
        let mut lent = Lent::new(address as u64, tensor.into_deleter());
        if let Some(handle) = handle {
            // SAFETY: it is the current stream of the library that owns the array, on the array's GPU.
            //     Libraries keep their streams.
            lent = lent.on(unsafe { ForeignStream::new(handle) });
        }
        Ok(Self { what, object: object.clone(), shape, dtype, place, locked, lent, address, stride })
    }

    pub(crate) fn python(&self) -> Python<'py> {
        self.object.py()
    }

    /// Errors: a `TypeError` for another element type.
    pub(crate) fn expect<T: Item>(&self) -> PyResult<()> {
        if self.dtype == T::DTYPE {
            return Ok(());
        }
        let (expected, found) = (T::DTYPE.name(), self.dtype.name());
        let text = format!(
            "{}: expected {expected}, found {found}; convert it with .astype('{expected}') (torch: .to(torch.{expected})), or make the \
             plan or operator with another dtype",
            self.what
        );
        Err(PyTypeError::new_err(text))
    }

    /// Errors: a `TypeError` for an array of a GPU where `processor` is another device. Arrays of the host
    /// are copied to a GPU.
    pub(crate) fn expect_within_reach(&self, processor: &Processor) -> PyResult<()> {
        if self.place == processor.place || self.place == DeviceName::Cpu {
            return Ok(());
        }
        Err(elsewhere(self.what, self.place, processor.place))
    }

    fn bytes(&self) -> std::ops::Range<usize> {
        self.address..self.address + self.shape.iter().product::<usize>() * self.dtype.bytes()
    }

    /// The array in its own memory. The caller uses it by shared references alone unless it is writable.
    fn lend<T: Item>(self, device: &Device) -> PyResult<Array<T>> {
        self.expect::<T>()?;
        // SAFETY: the library that owns the memory says that these elements are there, and its owner is kept.
        // Rayspin writes only to arrays that were given to be written to, which `Output` checks to be
        // writable and apart from the inputs. A program that changes an array in another thread while a call
        // uses it gets wrong numbers, as with every library that releases the interpreter.
        unsafe { Array::lent(device, &self.shape, self.lent) }.map_err(raised)
    }

    /// The array on the processor: where it lies, or copied to the GPU.
    ///
    /// Errors: a `TypeError` for another element type, and for an array of a GPU that this is not.
    pub(crate) fn read<T: Item>(self, processor: &Processor) -> PyResult<Array<T>> {
        if self.place == processor.place {
            return self.lend(&processor.device);
        }
        self.expect_within_reach(processor)?;
        let host = self.lend::<T>(&processor.device.host())?;
        host.to_device(&processor.device).map_err(raised)
    }
}

impl Given<'_> {
    /// A copy on the processor that outlives the call: what the caller does with the array later does not
    /// matter.
    ///
    /// Errors: as [`Given::read`], and memory.
    pub(crate) fn keep<T: Item>(self, processor: &Processor) -> PyResult<Array<T>> {
        let lies_there = self.place == processor.place;
        let array = self.read(processor)?;
        if lies_there { array.try_clone().map_err(raised) } else { Ok(array) }
    }
}

/// An array as one of the library that `like` is of, on its device. For NumPy it takes over the memory.
pub(crate) fn give<'py, T: Item>(
    array: Array<T>,
    like: &Bound<'py, PyAny>,
    processor: &Processor,
) -> PyResult<Bound<'py, PyAny>> {
    let given = Given::new("array", like)?;
    if given.place == DeviceName::Cpu && like.cast::<PyUntypedArray>().is_ok() {
        return Ok(to_numpy(like.py(), array.into_host().map_err(raised)?));
    }
    let shape = array.shape().to_vec();
    let mut output = Output::new(None, &shape, &given, processor)?;
    output.array.copy_from(&array).map_err(raised)?;
    output.finish()
}

/// The array that a call fills: the caller's `out`, or a new array of the input's library.
pub(crate) struct Output<'py, T: Item> {
    object: Bound<'py, PyAny>,
    pub(crate) array: Array<T>,
    /// The caller's array where the call fills a copy on a GPU.
    host: Option<Array<T>>,
}

impl<'py, T: Item> Output<'py, T> {
    /// `out` of this shape, or a new array beside `input`.
    ///
    /// Errors: `out` is read-only, of another shape or element type, on another device, or overlaps the
    /// input.
    pub(crate) fn new(
        out: Option<&Bound<'py, PyAny>>,
        shape: &[usize],
        input: &Given<'py>,
        processor: &Processor,
    ) -> PyResult<Self> {
        let object = match out {
            Some(out) => out.clone(),
            None => empty(&input.object, shape, T::DTYPE)?,
        };
        let mut given = Given::new("out", &object)?;
        given.expect::<T>()?;
        if given.place == input.place {
            given.lent = given.lent.beside(&input.lent);
        }
        if given.shape != shape {
            let (expected, found) = (format_shape(shape), format_shape(&given.shape));
            return Err(PyValueError::new_err(format!("out: expected shape {expected}, found {found}")));
        }
        if let Some(why) = given.locked {
            return Err(PyValueError::new_err(format!("out: expected a writable array, found {why}")));
        }
        let (a, b) = (given.bytes(), input.bytes());
        if given.place == input.place && a.start < b.end && b.start < a.end {
            return Err(PyValueError::new_err(
                "out: expected memory apart from the input, found an array that shares it",
            ));
        }
        if given.place == processor.place {
            return Ok(Self { array: given.lend(&processor.device)?, object, host: None });
        }
        given.expect_within_reach(processor)?;
        let host = given.lend(&processor.device.host())?;
        let array = Array::zeros(&processor.device, shape).map_err(raised)?;
        Ok(Self { array, object, host: Some(host) })
    }

    /// Splits it into the array that a call fills and the end of the call.
    pub(crate) fn finish(mut self) -> PyResult<Bound<'py, PyAny>> {
        if let Some(mut host) = self.host.take() {
            let values = host.cpu_mut();
            self.object.py().detached(|| self.array.get(0, values, HostCopy::Staged))?.map_err(raised)?;
        }
        Ok(self.object)
    }
}

/// The values of an array anywhere, on the host, without a copy where they lie there.
pub(crate) fn on_host<T: Item>(given: Given<'_>) -> PyResult<Array<T>> {
    let place = given.place;
    let processor = Processor::at(place)?;
    let array = given.read::<T>(&processor)?;
    let host = processor.device.host();
    array.into_device(&host).map_err(raised)
}

/// Loads what `numpy` finds at its first use and panics without, such as after a signal: NumPy's functions,
/// the register of borrowed arrays, and the owner of memory that an array takes over.
pub(crate) fn load_numpy(py: Python<'_>) -> PyResult<()> {
    let array = to_numpy(py, ArrayD::<f32>::zeros(vec![1]));
    let array = array.cast::<numpy::PyArrayDyn<f32>>()?;
    array.try_readonly().map(drop).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A new NumPy array that takes over the values.
pub(crate) fn to_numpy<'py, T: Item>(py: Python<'py>, values: ArrayD<T>) -> Bound<'py, PyAny> {
    numpy::PyArray::from_owned_array(py, values).into_any()
}

/// An array of the library that `like` is of, on its device, not initialised.
pub(crate) fn empty<'py>(
    like: &Bound<'py, PyAny>,
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let shape = PyTuple::new(py, shape)?;
    let library = library(like)?;
    if library.is("torch") {
        let torch = py.import("torch")?;
        let options = pyo3::types::PyDict::new(py);
        options.set_item("dtype", torch.getattr(dtype.name())?)?;
        options.set_item("device", like.getattr("device")?)?;
        return torch.call_method("empty", (shape,), Some(&options));
    }
    let module = if library.is("cupy") { "cupy" } else { "numpy" };
    py.import(module)?.call_method1("empty", (shape, dtype.name()))
}

/// The stream on which the library of an array works now; none for libraries that do not say.
fn stream_of(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let py = object.py();
    let library = library(object)?;
    if library.is("torch") {
        let stream = py.import("torch.cuda")?.call_method1("current_stream", (object.getattr("device")?,))?;
        return stream.getattr("cuda_stream")?.extract().map(Some);
    }
    if library.is("cupy") {
        let stream = py.import("cupy.cuda")?.call_method0("get_current_stream")?;
        return stream.getattr("ptr")?.extract().map(Some);
    }
    Ok(None)
}

/// The library that an object's type is of: the first part of the name of the type's module.
struct Library<'py>(Bound<'py, PyString>);

impl Library<'_> {
    fn is(&self, name: &str) -> bool {
        self.0.to_str().is_ok_and(|module| module.split('.').next() == Some(name))
    }
}

fn library<'py>(object: &Bound<'py, PyAny>) -> PyResult<Library<'py>> {
    object.get_type().module().map(Library)
}

/// The consumer's side of an import: the producer orders nothing, and says which stream it works on where it
/// can.
#[derive(Default)]
struct CallersStream {
    seen: Cell<Option<u64>>,
}

// SAFETY: `no_sync` names no stream.
unsafe impl DlpackStream for CallersStream {
    fn as_python_arg(&self, _: Python<'_>, _: DLDevice) -> PyResult<StreamArg> {
        Ok(no_sync())
    }

    unsafe fn wait_for_producer(&self, _: DLDevice, producer: *mut c_void) -> PyResult<bool> {
        self.seen.set(Some(producer.expose_provenance() as u64));
        Ok(true)
    }
}
