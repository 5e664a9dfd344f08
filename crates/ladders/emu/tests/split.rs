//! Kernels with barriers, as loops split at them and as fibres: the same results, bit for bit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod trusted;

use std::sync::Arc;
use trusted::Trusted;

use rayspin_device::cuda::{Argument, Launch, Program, Source};
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::{Emulator, How};

static SOURCE: Source = Source { name: "split", files: &[("split.cu", include_str!("split.cu"))] };

fn run(
    device: &Device,
    name: &str,
    threads: [u32; 3],
    input: &[i32],
    n: i32,
) -> rayspin_core::Result<Vec<i32>> {
    let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
    let count: u32 = threads.iter().product();
    let from = Array::from_slice(device, &[input.len()], input)?;
    let mut to = Array::from_slice(device, &[input.len()], &vec![-77; input.len()])?;
    let launch = Launch { blocks: [(input.len() as u32).div_ceil(count), 1, 1], threads, shared: 4 * count };
    let kernel = cuda.kernel(&SOURCE, &[], name)?;
    kernel.go(launch, &mut [from.cuda().into(), to.cuda_mut().into(), Argument::from(n)])?;
    to.to_vec()
}

#[test]
fn split_kernels_make_what_fibres_make() {
    let ways = Emulator::new().unwrap().ways(&Program::new(&SOURCE, &[])).unwrap();
    let looped = Arc::new(Emulator::new().unwrap().measuring(2, None, true).unwrap());
    let host = Device::cpu_with_threads(2).unwrap();
    let split = Device::with_driver(looped.clone(), host.clone());
    let written = Device::with_driver(Arc::new(Emulator::new().unwrap()), host);
    for (name, loops) in [("ended", 5), ("kept", 4), ("loops", 9), ("called", 10), ("asked", 4)] {
        assert!(matches!(ways[name], How::Loops(n) if n >= loops), "{name}: {:?}", ways[name]);
        for threads in [[1, 1, 1], [7, 1, 1], [16, 4, 1], [5, 3, 2], [128, 1, 1]] {
            for n in [1, 61, 300] {
                let input: Vec<i32> = (0..n).map(|i| (i * 7919 + 13) % 1009 - 400).collect();
                let expected = run(&written, name, threads, &input, n).unwrap();
                let output = run(&split, name, threads, &input, n).unwrap();
                assert_eq!(output, expected, "{name} {threads:?} {n}");
            }
        }
        assert_eq!(looped.take_ran()[&format!("split::{name}")], ways[name]);
    }
    let wrong = run(&split, "raced", [8, 1, 1], &[1; 8], 8).unwrap_err().to_string();
    assert!(wrong.contains("threads take different ways to a barrier: turn ++ > 0"), "{wrong}");
}

#[test]
fn kernels_that_cannot_be_split_say_why_and_run_as_written() {
    let ways = Emulator::new().unwrap().ways(&Program::new(&SOURCE, &[])).unwrap();
    let emulator = Arc::new(Emulator::new().unwrap().measuring(2, None, true).unwrap());
    let device = Device::with_driver(emulator.clone(), Device::cpu_with_threads(2).unwrap());
    let reasons = [
        (
            "by_thread",
            "a barrier in a loop whose condition depends on the thread: i < ( t < 4096 ? 2 : 3 )",
            1,
        ),
        ("referred", "the reference own lives across a barrier", 0),
        ("addressed", "the address of v, which lives across a barrier, is kept", 1),
        ("by_lambda", "a barrier inside an expression", 3),
        ("voted", "__syncthreads_count in a kernel with barriers", 0),
    ];
    for (name, why, more) in reasons {
        assert_eq!(ways[name], How::Written(why.to_owned()), "{name}");
        let input: Vec<i32> = (1..=40).collect();
        let output = run(&device, name, [40, 1, 1], &input, 40).unwrap();
        let expected = if name == "voted" { vec![40; 40] } else { input.iter().map(|v| v + more).collect() };
        assert_eq!(output, expected, "{name}");
        assert_eq!(emulator.take_ran()[&format!("split::{name}")], ways[name]);
    }
}
