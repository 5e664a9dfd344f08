//! What `rayspin-device` promises of a GPU's memory, launches and recordings, on the emulator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod trusted;

use std::fmt::Debug;
use std::sync::Arc;
use trusted::Trusted;

use bytemuck::Zeroable;
use rayspin_core::{C32, C64, Error};
use rayspin_device::cuda::{Argument, Define, FftPlan, Kernel, Launch, Program, Recording, Source};
use rayspin_device::{Array, Backend, BackendKind, Cuda, Device, Element, Pinned};
use rayspin_emu::Emulator;

static SOURCE: Source = Source {
    name: "device",
    files: &[(
        "device.cu",
        r#"
        extern "C" __global__ void __launch_bounds__(256) axpy(const real alpha, const cplx* __restrict__ x, cplx* y,
                                                               unsigned long long n) {
            unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
            if (i < n) y[i] = y[i] + alpha * x[i];
        }
        extern "C" __global__ void add(int* x, int by) { atomicAdd(x, by); }
        extern "C" __global__ void fixed(float* x) {
            __shared__ float own[1024];
            own[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = own[blockDim.x - 1 - threadIdx.x];
        }
        "#,
    )],
};

fn define(double: bool) -> [Define; 1] {
    [("DOUBLE", u32::from(double).to_string())]
}

fn with_memory(bytes: u64) -> Device {
    let host = Device::cpu_with_threads(1).unwrap();
    Device::with_driver(Arc::new(Emulator::with_memory(bytes).unwrap()), host)
}

fn gpu() -> Device {
    with_memory(64 << 20)
}

fn cuda(device: &Device) -> &Cuda {
    match device.backend() {
        Backend::Cuda(cuda) => cuda,
        Backend::Cpu(_) => panic!("the emulator is a CUDA device"),
    }
}

fn kernel(device: &Device, name: &str) -> Kernel {
    cuda(device).kernel(&SOURCE, &define(false), name).unwrap()
}

fn refused<T: Debug>(result: rayspin_core::Result<T>, words: &[&str]) {
    let text = result.unwrap_err().to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in {text:?}");
    }
}

fn numbers<T: Element>(n: usize, value: impl Fn(usize) -> T) -> Vec<T> {
    (0..n).map(value).collect()
}

#[test]
fn a_gpu_is_one_and_has_a_host() {
    let device = gpu();
    assert_eq!(device.kind(), BackendKind::Cuda);
    assert_eq!(device.host().kind(), BackendKind::Cpu);
    assert!(device.describe().contains("132 multiprocessors"), "{}", device.describe());
    assert!(device.same_as(&device.clone()) && !device.same_as(&gpu()));
}

fn round_trip<T: Element + PartialEq + Zeroable>(device: &Device, value: impl Fn(usize) -> T) {
    for shape in [vec![], vec![0], vec![1], vec![3, 5], vec![2, 0, 4], vec![7, 11, 13]] {
        let n = shape.iter().product();
        let values = numbers(n, &value);
        let array = Array::from_slice(device, &shape, &values).unwrap();
        assert_eq!((array.shape(), array.len(), array.is_empty()), (&shape[..], n, n == 0));
        assert_eq!(array.to_vec().unwrap(), values);
        assert_eq!(array.try_clone().unwrap().to_vec().unwrap(), values);
        let host = array.to_device(&device.host()).unwrap();
        assert_eq!(host.cpu(), values);
        assert_eq!(host.to_device(device).unwrap().to_vec().unwrap(), values);
        assert_eq!(array.to_device(&gpu()).unwrap().to_vec().unwrap(), values);
        let mut zeros = Array::<T>::zeros(device, &shape).unwrap();
        assert_eq!(zeros.to_vec().unwrap(), vec![T::zeroed(); n]);
        zeros.copy_from(&array).unwrap();
        assert_eq!(zeros.to_vec().unwrap(), values);
        zeros.copy_from(&Array::zeros(&device.host(), &shape).unwrap()).unwrap();
        assert_eq!(zeros.to_vec().unwrap(), vec![T::zeroed(); n]);
        let mut back = Array::zeros(&device.host(), &shape).unwrap();
        back.copy_from(&array).unwrap();
        assert_eq!(back.cpu(), values);
        let mut filled = array.reshape(&[n]).unwrap();
        filled.fill(value(5)).unwrap();
        assert_eq!(filled.to_vec().unwrap(), vec![value(5); n]);
        filled.fill(T::zeroed()).unwrap();
        assert_eq!(filled.to_vec().unwrap(), vec![T::zeroed(); n]);
    }
}

#[test]
fn values_of_every_size_round_trip_and_fill() {
    let device = gpu();
    round_trip(&device, |i| i as u8);
    round_trip(&device, |i| i as u16 * 3);
    round_trip(&device, |i| i as i32 - 4);
    round_trip(&device, |i| i as f32 * 0.5);
    round_trip(&device, |i| [i as u16, 2, 9]);
    round_trip(&device, |i| i as f64 / 3.0);
    round_trip(&device, |i| C32::new(i as f32, -1.0));
    round_trip(&device, |i| [i as f32, 1.0, 2.0]);
    round_trip(&device, |i| C64::new(-1.0, i as f64));
    round_trip(&device, |i| [i as u32, 7, 8, 9]);
    device.synchronize().unwrap();
}

#[test]
fn transposed_host_arrays_arrive_in_their_own_order() {
    let device = gpu();
    let host = ndarray::ArrayD::from_shape_fn(ndarray::IxDyn(&[4, 6]), |i| (10 * i[0] + i[1]) as i32);
    let array = Array::from_host(&device, host.t()).unwrap();
    assert_eq!(array.to_host().unwrap(), host.t());
    assert_eq!(array.into_host().unwrap(), host.t());
}

#[test]
fn parts_are_copied_and_ranges_checked() {
    let device = gpu();
    let from = Array::from_slice(&device, &[10], &numbers(10, |i| i as f64)).unwrap();
    let mut to = Array::<f64>::zeros(&device, &[2, 4]).unwrap();
    to.copy_range(3, &from, 6, 4).unwrap();
    to.copy_range(8, &from, 10, 0).unwrap();
    assert_eq!(to.to_vec().unwrap(), [0.0, 0.0, 0.0, 6.0, 7.0, 8.0, 9.0, 0.0]);
    refused(to.copy_range(0, &from, 7, 4), &["source", "4 of 10", "start 7"]);
    refused(to.copy_range(5, &from, 0, 4), &["target", "4 of 8", "start 5"]);
    refused(to.copy_range(usize::MAX, &from, 0, 2), &["target"]);
    refused(to.copy_range(0, &Array::zeros(&device.host(), &[10]).unwrap(), 0, 2), &["copy of a part"]);
    refused(to.copy_range(0, &Array::zeros(&gpu(), &[10]).unwrap(), 0, 2), &["copy of a part"]);
    refused(to.copy_from(&Array::zeros(&device, &[8]).unwrap()), &["[2, 4]", "[8]"]);
    refused(Array::from_slice(&device, &[3], &[1.0f32]), &["[3]", "[1]"]);
}

#[test]
fn parts_of_views_stay_inside() {
    let device = gpu();
    let mut x = Array::from_slice(&device, &[8], &numbers(8, |i| C32::new(i as f32, 0.0))).unwrap();
    let y = x.try_clone().unwrap();
    assert!(y.cuda().part(7, 2).is_none() && y.cuda().part(usize::MAX, 1).is_none());
    assert!(x.cuda_mut().part(9, 0).is_none());
    let (from, mut to) = (y.cuda().part(2, 3).unwrap(), x.cuda_mut());
    let mut part = to.part(5, 3).unwrap();
    kernel(&device, "axpy")
        .go(Launch::covering(3, 32), &mut [10.0f32.into(), from.into(), part.reborrow().into(), 3u64.into()])
        .unwrap();
    let values: Vec<f32> = x.to_vec().unwrap().iter().map(|v| v.re).collect();
    assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0, 25.0, 36.0, 47.0]);
}

#[test]
fn memory_is_counted_and_limited() {
    let device = gpu();
    let cuda = cuda(&device);
    assert_eq!((cuda.memory_used(), cuda.memory_left().unwrap()), ((0, 0), 64 << 20));
    let first = Array::<f32>::zeros(&device, &[1000]).unwrap();
    {
        let _second = first.try_clone().unwrap();
        assert_eq!(cuda.memory_used(), (8000, 8000));
    }
    assert_eq!(cuda.memory_used(), (4000, 8000));
    cuda.reset_peak();
    assert_eq!(cuda.memory_used(), (4000, 4000));

    cuda.limit_memory(Some(10_000));
    assert_eq!(cuda.memory_left().unwrap(), 6000);
    let Err(Error::Memory { what, needed, available }) = Array::<u8>::zeros(&device, &[6001]) else {
        panic!("more than the limit")
    };
    assert_eq!((needed, available), (6001, 6000));
    assert!(what.contains("[6001]") && what.contains("GPU"), "{what}");
    assert_eq!(cuda.memory_used(), (4000, 4000), "what was refused is not counted");
    let rest = Array::<u8>::zeros(&device, &[6000]).unwrap();
    assert_eq!(cuda.memory_left().unwrap(), 0);
    drop((first, rest));
    cuda.limit_memory(None);
    assert_eq!((cuda.memory_used(), cuda.memory_left().unwrap()), ((0, 10_000), 64 << 20));

    let Err(Error::Memory { needed, available, .. }) = Array::<u8>::zeros(&device, &[(64 << 20) + 1]) else {
        panic!("more than the device has")
    };
    assert_eq!((needed, available), ((64 << 20) + 1, 64 << 20));
    assert_eq!(cuda.memory_used().0, 0);
    assert!(matches!(Array::<C64>::zeros(&device, &[1 << 29, 1 << 29]), Err(Error::Memory { .. })));
    assert!(Array::<C64>::zeros(&device, &[usize::MAX, 2]).is_err());
}

#[test]
fn memory_of_another_device_is_refused() {
    let (here, there) = (gpu(), gpu());
    let axpy = kernel(&here, "axpy");
    let launch = Launch::covering(4, 64);
    let (alpha, n) = (Argument::real(2.0f32), Argument::from(4u64));
    let mut own = Array::<C32>::zeros(&here, &[4]).unwrap();
    let mut other = Array::<C32>::zeros(&there, &[4]).unwrap();
    let elsewhere = &["own GPU", "another device's"];
    refused(axpy.go(launch, &mut [alpha, other.cuda().into(), own.cuda_mut().into(), n]), elsewhere);
    refused(axpy.go(launch, &mut [alpha, own.cuda().into(), other.cuda_mut().into(), n]), elsewhere);
    let plan = FftPlan { axes: vec![4], stride: 1, distance: 4, batch: 1, double: false };
    refused(cuda(&here).fft(&plan, -1, other.cuda_mut()), elsewhere);
}

#[test]
fn launches_with_wrong_arguments_are_refused() {
    let device = gpu();
    let axpy = kernel(&device, "axpy");
    let x = Array::<C32>::zeros(&device, &[4]).unwrap();
    let mut y = Array::<C32>::zeros(&device, &[4]).unwrap();
    let mut wide = Array::<C64>::zeros(&device, &[4]).unwrap();
    let launch = Launch::covering(4, 64);
    let alpha = Argument::real(2.0f32);
    let n = Argument::from(4u64);
    refused(
        axpy.go(launch, &mut [alpha, x.cuda().into(), y.cuda_mut().into()]),
        &["device::axpy", "4 arguments", "found 3"],
    );
    refused(
        axpy.go(launch, &mut [Argument::real(2.0f64), x.cuda().into(), y.cuda_mut().into(), n]),
        &["argument 1", "float alpha", "double"],
    );
    refused(
        axpy.go(launch, &mut [alpha, x.cuda().into(), wide.cuda_mut().into(), n]),
        &["argument 3", "float2* y", "double2*"],
    );
    refused(
        axpy.go(launch, &mut [alpha, x.cuda().into(), x.cuda().into(), n]),
        &["argument 3", "float2* y", "const float2*"],
    );
    refused(
        axpy.go(launch, &mut [alpha, x.cuda().into(), y.cuda_mut().into(), Argument::from(4u32)]),
        &["argument 4", "unsigned long long n", "unsigned int"],
    );
    refused(Argument::count(1 << 32), &["32 bits"]);
    axpy.go(launch, &mut [alpha, x.cuda().into(), y.cuda_mut().into(), n]).unwrap();
    // What may be written may also be read.
    axpy.go(launch, &mut [alpha, y.try_clone().unwrap().cuda_mut().into(), y.cuda_mut().into(), n]).unwrap();
    refused(
        cuda(&device).kernel(&SOURCE, &define(false), "nothing").map(|_| ()),
        &["add, axpy, fixed", "nothing"],
    );
}

#[test]
fn launches_beyond_the_device_name_the_limit() {
    let device = gpu();
    let mut x = Array::<f32>::zeros(&device, &[1024]).unwrap();
    let fixed = kernel(&device, "fixed");
    assert_eq!((fixed.resources().shared, fixed.resources().threads), (4096, 1024));
    assert_eq!(kernel(&device, "axpy").resources().threads, 256);
    let grid = |blocks, threads, shared| Launch { blocks, threads, shared };
    let mut run = |launch| fixed.go(launch, &mut [x.cuda_mut().into()]);
    refused(run(Launch::linear(1, 1025)), &["device::fixed", "threads of a block", "at most 1024", "1025"]);
    refused(run(Launch::linear(1, 0)), &["threads of a block"]);
    refused(run(grid([1; 3], [1, 1, 65], 0)), &["along z", "at most 64"]);
    refused(run(grid([1; 3], [1 << 31, 1 << 31, 1], 0)), &["threads of a block"]);
    let most = 232_448 - 4096;
    refused(run(Launch::linear(1, 32).with_shared(most + 1)), &["shared memory", "at most 232448", "232449"]);
    refused(run(grid([1, 65_536, 1], [1; 3], 0)), &["blocks along an axis", "65535"]);
    run(Launch::linear(1, 32).with_shared(most)).unwrap();
    run(grid([0, 1, 1], [32, 1, 1], 0)).unwrap();
    assert_eq!(fixed.occupancy(256, 0).unwrap(), 8);
    assert_eq!(fixed.occupancy(32, 100 << 10).unwrap(), 2);
    assert_eq!(fixed.occupancy(2048, 0).unwrap(), 0);
    let axpy = kernel(&device, "axpy");
    let y = Array::<C32>::zeros(&device, &[4]).unwrap();
    let mut z = y.try_clone().unwrap();
    let mut arguments = [Argument::real(1.0f32), y.cuda().into(), z.cuda_mut().into(), 4u64.into()];
    refused(axpy.go(Launch::linear(1, 257), &mut arguments), &["at most 256", "257"]);
}

#[test]
fn recorded_work_is_done_when_it_is_launched() {
    let device = gpu();
    let cuda = cuda(&device);
    let add = kernel(&device, "add");
    let mut x = Array::<i32>::zeros(&device, &[1]).unwrap();
    let mut copy = Array::<i32>::zeros(&device, &[1]).unwrap();
    let graph = cuda
        .record(|| {
            // The values themselves are recorded: what they were read from need not live on.
            for by in [3, 4] {
                add.go(Launch::linear(5, 2), &mut [x.cuda_mut().into(), Argument::from(by)])?;
            }
            copy.copy_range(0, &x, 0, 1)
        })
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [0]);
    for times in 1..4 {
        graph.launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [70 * times]);
        assert_eq!(copy.to_vec().unwrap(), [70 * times]);
    }
    refused(cuda.record(|| x.to_vec().map(|_| ())).map(|_| ()), &["while work is recorded"]);
    refused(cuda.record(|| Array::<i32>::zeros(&device, &[1]).map(|_| ())).map(|_| ()), &["recorded"]);
    assert_eq!(x.to_vec().unwrap(), [210], "a recording that failed is over");
    refused(cuda.record(|| cuda.record(|| Ok(())).map(|_| ())).map(|_| ()), &["recorded"]);
    assert_eq!(x.to_vec().unwrap(), [210]);
}

#[test]
fn a_recording_holds_only_while_memory_stays_where_it_is() {
    let device = gpu();
    let cuda = cuda(&device);
    let add = kernel(&device, "add");
    let mut x = Array::<i32>::zeros(&device, &[1]).unwrap();
    let other = Array::<i32>::zeros(&device, &[1]).unwrap();
    let launch = |x: &mut Array<i32>, by: i32| {
        add.go(Launch::linear(1, 1), &mut [x.cuda_mut().into(), Argument::from(by)])
    };
    let graph = cuda.record(|| launch(&mut x, 3)).unwrap();
    graph.launch().unwrap();
    let more = Array::<i32>::zeros(&device, &[1]).unwrap();
    assert!(graph.current(), "new memory takes none of the old");
    graph.launch().unwrap();
    drop(more);
    assert!(!graph.current());
    refused(graph.launch(), &["memory was given back"]);
    assert_eq!(x.to_vec().unwrap(), [6]);
    // Memory that goes while it is recorded may be named by the recording.
    refused(
        cuda.record(|| {
            let mut own = other;
            launch(&mut own, 1)
        })
        .map(|_| ()),
        &["recording"],
    );
    let (used, _) = cuda.memory_used();
    assert_eq!(used, 4, "it is given back all the same");
    // Work that fails otherwise is an error and no refusal.
    let failed = cuda.try_record(|| Err(Error::value("work", "some", "none")));
    assert_eq!(failed.unwrap_err(), Error::value("work", "some", "none"));
    assert!(matches!(cuda.try_record(|| x.to_vec().map(drop)), Ok(Recording::Refused(_))));
    x.set(&[1]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1]);
}

/// Work that another thread queues during the recording is done, and is no part of it.
#[test]
fn a_recording_is_one_thread_s() {
    let device = gpu();
    let cuda = cuda(&device);
    let add = kernel(&device, "add");
    let mut x = Array::from_slice(&device, &[1], &[1]).unwrap();
    let mut y = x.try_clone().unwrap();
    let graph = std::thread::scope(|scope| {
        let (begun, wait) = std::sync::mpsc::channel();
        let (device, add, y) = (&device, &add, &mut y);
        let other = scope.spawn(move || {
            wait.recv().unwrap();
            add.go(Launch::linear(1, 1), &mut [y.cuda_mut().into(), Argument::from(5)]).unwrap();
            let more = Array::from_slice(device, &[2], &[3, 4]).unwrap();
            (y.to_vec().unwrap(), more.to_vec().unwrap())
        });
        let graph = cuda.record(|| {
            begun.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            add.go(Launch::linear(1, 1), &mut [x.cuda_mut().into(), Argument::from(1)])
        });
        assert_eq!(other.join().unwrap(), (vec![6], vec![3, 4]));
        graph.unwrap()
    });
    // The other thread gave its own memory back.
    assert!(!graph.current());
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![1], vec![6]));
    let graph =
        cuda.record(|| add.go(Launch::linear(1, 1), &mut [x.cuda_mut().into(), Argument::from(1)])).unwrap();
    graph.launch().unwrap();
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![2], vec![6]));
}

#[test]
fn values_are_sent_in_the_order_of_the_work() {
    for device in rayspin_emu::devices().unwrap() {
        let mut x = Array::from_slice(&device, &[3], &[1.0f64, 2.0, 3.0]).unwrap();
        let mut first = x.send(Pinned::new(&device, 3).unwrap()).unwrap();
        x.set(&[4.0, 5.0, 6.0]).unwrap();
        let mut second = x.send(Pinned::new(&device, 3).unwrap()).unwrap();
        drop(x);
        assert_eq!(first.values().unwrap(), [1.0, 2.0, 3.0], "{}", device.describe());
        assert_eq!(second.values().unwrap(), [4.0, 5.0, 6.0], "{}", device.describe());
        let x = Array::from_slice(&device, &[2], &[7.0f64, 8.0]).unwrap();
        assert!(x.send(Pinned::new(&device, 3).unwrap()).is_err());
        assert_eq!(x.send(Pinned::new(&device, 2).unwrap()).unwrap().values().unwrap(), [7.0, 8.0]);
    }
}

#[test]
fn work_is_timed() {
    let device = gpu();
    let add = kernel(&device, "add");
    let mut x = Array::<i32>::zeros(&device, &[1]).unwrap();
    let mut run = |blocks| {
        cuda(&device)
            .seconds(|| add.go(Launch::linear(blocks, 128), &mut [x.cuda_mut().into(), 1.into()]))
            .unwrap()
    };
    run(1);
    let (short, long) = (run(1), run(20_000));
    assert!(short >= 0.0 && long > short, "{short} {long}");
    assert_eq!(x.to_vec().unwrap(), [128 * 20_002]);
    refused(cuda(&device).seconds(|| Err(Error::value("work", "some", "none"))), &["work"]);
}

#[test]
fn programs_are_compiled_once_and_kept_apart_by_their_macros() {
    let device = gpu();
    let n = 5u64;
    let mut single = Array::<C32>::zeros(&device, &[5]).unwrap();
    let mut double = Array::<C64>::zeros(&device, &[5]).unwrap();
    for _ in 0..2 {
        let ones = Array::from_slice(&device, &[5], &[C32::new(1.0, 2.0); 5]).unwrap();
        let narrow = cuda(&device).kernel(&SOURCE, &define(false), "axpy").unwrap();
        narrow
            .go(
                Launch::covering(5, 256),
                &mut [Argument::real(0.5f32), ones.cuda().into(), single.cuda_mut().into(), n.into()],
            )
            .unwrap();
        let ones = Array::from_slice(&device, &[5], &[C64::new(1.0, 2.0); 5]).unwrap();
        let wide = cuda(&device).kernel(&SOURCE, &define(true), "axpy").unwrap();
        wide.go(
            Launch::covering(5, 256),
            &mut [Argument::real(0.1f64), ones.cuda().into(), double.cuda_mut().into(), n.into()],
        )
        .unwrap();
    }
    assert_eq!(single.to_vec().unwrap(), [C32::new(1.0, 2.0); 5]);
    assert_eq!(double.to_vec().unwrap(), [C64::new(0.2, 0.4); 5]);
    // A second look for the same program takes no time to speak of: nothing is compiled.
    let start = std::time::Instant::now();
    for _ in 0..100 {
        kernel(&device, "fixed");
    }
    assert!(start.elapsed().as_millis() < 100);
}

#[test]
fn threads_may_share_a_device() {
    let device = gpu();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let device = &device;
            scope.spawn(move || {
                for round in 0..5 {
                    let mut x = Array::<i32>::zeros(device, &[1]).unwrap();
                    kernel(device, "add")
                        .go(Launch::linear(3, 32), &mut [x.cuda_mut().into(), Argument::from(thread + round)])
                        .unwrap();
                    assert_eq!(x.to_vec().unwrap(), [96 * (thread + round)]);
                }
            });
        }
    });
    assert_eq!(cuda(&device).memory_used().0, 0);
}

#[test]
fn every_program_says_what_its_kernels_take() {
    let signatures = Program::new(&SOURCE, &define(true)).signatures().unwrap();
    let axpy: Vec<_> = signatures["axpy"].iter().map(ToString::to_string).collect();
    assert_eq!(axpy, ["double alpha", "const double2* x", "double2* y", "unsigned long long n"]);
}
