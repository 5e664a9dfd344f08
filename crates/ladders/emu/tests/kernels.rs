//! The features that kernels may use, each compared with Rust code. Runs on the emulator and on the GPUs of
//! this machine, which checks the emulator against the hardware.

#![allow(clippy::unwrap_used)]

mod trusted;

use rayspin_core::C64;
use rayspin_device::cuda::{Argument, Define, Kernel, Launch, Source};
use rayspin_device::{Array, Backend, BackendKind, Cuda, Device, Element};
use rayspin_emu::Emulator;
use trusted::Trusted;

static SOURCE: Source = Source { name: "kernels", files: &[("kernels.cu", include_str!("kernels.cu"))] };

fn device() -> Device {
    Emulator::device().unwrap()
}

/// The emulator and the real ones.
fn everywhere(test: impl Fn(&Device)) {
    for device in rayspin_emu::devices().unwrap().iter().filter(|d| d.kind() == BackendKind::Cuda) {
        test(device);
    }
}

fn emulated(device: &Device) -> bool {
    cuda(device).properties().name.contains("Emulated")
}

fn cuda(device: &Device) -> &Cuda {
    match device.backend() {
        Backend::Cuda(cuda) => cuda,
        Backend::Cpu(_) => unreachable!("the emulator is a CUDA device"),
    }
}

fn define(double: bool) -> [Define; 1] {
    [("DOUBLE", u32::from(double).to_string())]
}

fn kernel(device: &Device, name: &str) -> Kernel {
    cuda(device).kernel(&SOURCE, &define(false), name).unwrap()
}

fn grid(blocks: [u32; 3], threads: [u32; 3], shared: u32) -> Launch {
    Launch { blocks, threads, shared }
}

fn upload<T: Element>(device: &Device, values: &[T]) -> Array<T> {
    Array::from_slice(device, &[values.len()], values).unwrap()
}

fn failure(result: rayspin_core::Result<()>) -> String {
    result.unwrap_err().to_string()
}

/// Numbers that are not in order.
fn shuffled(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 - 500.0).collect()
}

#[test]
fn sums_over_warps_and_blocks_in_both_precisions() {
    everywhere(|device| {
        let values = shuffled(3000);
        let wanted: Vec<f64> = values.chunks(256).map(|c| c.iter().sum()).collect();
        let launch = Launch::covering(values.len(), 256);
        let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        let (x, mut sums) = (upload(device, &single), Array::<f32>::zeros(device, &[wanted.len()]).unwrap());
        kernel(device, "block_sums")
            .go(launch, &mut [x.cuda().into(), Argument::from(values.len() as i32), sums.cuda_mut().into()])
            .unwrap();
        let block_sums: Vec<f64> = sums.to_vec().unwrap().iter().map(|&v| v.into()).collect();
        assert_eq!(block_sums, wanted);
        let (x, mut sums) = (upload(device, &values), Array::<f64>::zeros(device, &[wanted.len()]).unwrap());
        cuda(device)
            .kernel(&SOURCE, &define(true), "block_sums")
            .unwrap()
            .go(launch, &mut [x.cuda().into(), Argument::from(values.len() as i32), sums.cuda_mut().into()])
            .unwrap();
        assert_eq!(sums.to_vec().unwrap(), wanted);
    });
}

#[test]
fn a_transpose_through_shared_memory() {
    everywhere(|device| {
        let (rows, columns) = (37usize, 50usize);
        let values: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let (x, mut y) = (upload(device, &values), Array::<f32>::zeros(device, &[columns, rows]).unwrap());
        kernel(device, "transpose")
            .go(
                grid([2, 2, 1], [32, 32, 1], 0),
                &mut [x.cuda().into(), y.cuda_mut().into(), (rows as i32).into(), (columns as i32).into()],
            )
            .unwrap();
        let y = y.to_vec().unwrap();
        for r in 0..rows {
            for c in 0..columns {
                assert_eq!(y[c * rows + r], values[r * columns + c]);
            }
        }
    });
}

#[test]
fn dynamic_shared_memory_of_two_types() {
    everywhere(|device| {
        let values = shuffled(64);
        let x = upload(device, &values);
        let mut y = Array::<f64>::zeros(device, &[64]).unwrap();
        let mut bytes = Array::<u8>::zeros(device, &[64]).unwrap();
        let launch = |shared| grid([1, 1, 1], [64, 1, 1], shared);
        let reverse = kernel(device, "reverse");
        reverse
            .go(launch(64 * 8), &mut [x.cuda().into(), y.cuda_mut().into(), bytes.cuda_mut().into()])
            .unwrap();
        let mut wanted = values;
        wanted.reverse();
        assert_eq!(y.to_vec().unwrap(), wanted);
        assert_eq!(bytes.to_vec().unwrap(), wanted.iter().map(|v| v.to_le_bytes()[7]).collect::<Vec<_>>());
        if emulated(device) {
            let too_little = launch(63 * 8);
            let mut arguments = [x.cuda().into(), y.cuda_mut().into(), bytes.cuda_mut().into()];
            let words = failure(reverse.go(too_little, &mut arguments));
            assert!(words.contains("kernels::reverse") && words.contains("past the 504 bytes"), "{words}");
        }
    });
}

#[test]
fn every_exchange_of_a_warp() {
    everywhere(|device| {
        let mut out = Array::<i32>::zeros(device, &[16, 32]).unwrap();
        kernel(device, "exchanges").go(Launch::linear(1, 32), &mut [out.cuda_mut().into()]).unwrap();
        let out = out.to_vec().unwrap();
        let row = |i: usize| &out[i * 32..(i + 1) * 32];
        let lanes = |f: &dyn Fn(i32) -> i32| (0..32).map(f).collect::<Vec<_>>();
        let value = |l: i32| l * l - 100;
        assert_eq!(row(0), lanes(&|_| value(5)), "shfl");
        assert_eq!(row(1), lanes(&|l| value(l / 8 * 8 + 3)), "shfl of 8 lanes");
        assert_eq!(row(2), lanes(&|l| value(if l < 3 { l } else { l - 3 })), "up");
        assert_eq!(row(3), lanes(&|l| value(if l % 16 + 5 > 15 { l } else { l + 5 })), "down of 16 lanes");
        assert_eq!(row(4), lanes(&|l| value(l ^ 9)), "xor");
        assert_eq!(row(5), lanes(&|_| 0x4924_9249), "ballot");
        assert_eq!(row(6), lanes(&|_| 1), "any");
        assert_eq!(row(7), lanes(&|_| 0), "all");
        assert_eq!(row(8), lanes(&|_| (0..32).map(value).sum()), "add");
        assert_eq!(row(9), lanes(&|_| -100), "min");
        assert_eq!(row(10), lanes(&|_| value(31)), "max");
        assert_eq!(
            row(11),
            lanes(&|l| (0..32).filter(|m| m % 5 == l % 5).map(|m| 1u32 << m).sum::<u32>() as i32)
        );
        assert_eq!(row(12), lanes(&|l| if l % 2 == 1 { value(1) } else { value(30) }), "halves apart");
        assert_eq!(row(13), lanes(&|l| (f64::from(31 - l) / 3.0 * 1e6) as i32), "64 bits");
        if emulated(device) {
            assert_eq!(
                row(14),
                lanes(&|_| -1),
                "a lane that takes no part, which the hardware does not define"
            );
        }
        assert_eq!(row(15), lanes(&|_| 0x0fff_ffffu32 as i32), "sync with lanes that have gone");
    });
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    everywhere(|device| {
        for n in [1, 31, 33, 100, 128] {
            let mut out = Array::<i32>::zeros(device, &[n]).unwrap();
            kernel(device, "early_exit")
                .go(Launch::linear(1, 128), &mut [out.cuda_mut().into(), (n as i32).into()])
                .unwrap();
            let wanted: Vec<_> = (0..n as i32).map(|i| n as i32 - 1 - i).collect();
            assert_eq!(out.to_vec().unwrap(), wanted);
        }
    });
}

#[test]
fn barriers_that_count() {
    everywhere(|device| {
        let mut out = Array::<i32>::zeros(device, &[3, 96]).unwrap();
        kernel(device, "counting").go(Launch::linear(1, 96), &mut [out.cuda_mut().into()]).unwrap();
        let out = out.to_vec().unwrap();
        assert!(out[..96].iter().all(|&v| v == 32) && out[96..192].iter().all(|&v| v == 1));
        assert!(out[192..].iter().all(|&v| v == 0));
    });
}

#[test]
fn a_block_of_1024_threads_scans_its_values() {
    everywhere(|device| {
        let values: Vec<i32> = (0..1024).map(|i| (i * 37) % 11 - 5).collect();
        let mut x = upload(device, &values);
        kernel(device, "scan").go(Launch::linear(1, 1024), &mut [x.cuda_mut().into()]).unwrap();
        let mut sum = 0;
        let wanted: Vec<_> = values
            .iter()
            .map(|v| {
                sum += v;
                sum
            })
            .collect();
        assert_eq!(x.to_vec().unwrap(), wanted);
    });
}

#[test]
fn atomics_of_many_blocks_lose_nothing() {
    everywhere(|device| {
        let n = 20_000;
        let mut counts = Array::<u32>::zeros(device, &[7]).unwrap();
        let mut sums = Array::<f32>::zeros(device, &[1]).unwrap();
        let mut wide = Array::<f64>::zeros(device, &[1]).unwrap();
        let mut ends = upload(device, &[u64::MAX, 0, 0]);
        kernel(device, "atomics")
            .go(
                Launch::covering(n, 128),
                &mut [
                    (n as i32).into(),
                    counts.cuda_mut().into(),
                    sums.cuda_mut().into(),
                    wide.cuda_mut().into(),
                    ends.cuda_mut().into(),
                ],
            )
            .unwrap();
        let wanted: Vec<u32> = (0..7).map(|r| (0..n).filter(|i| i % 7 == r).count() as u32).collect();
        assert_eq!(counts.to_vec().unwrap(), wanted);
        assert_eq!(sums.to_vec().unwrap(), [n as f32]);
        assert_eq!(wide.to_vec().unwrap(), [n as f64 / 4.0]);
        assert_eq!(ends.to_vec().unwrap(), [100, 100 + n as u64 - 1, n as u64]);
    });
}

#[test]
fn grids_of_three_axes_number_every_thread_once() {
    everywhere(|device| {
        let (blocks, threads) = ([3u32, 4, 2], [5u32, 2, 3]);
        let n = (blocks.iter().product::<u32>() * threads.iter().product::<u32>()) as usize;
        let mut out = Array::<u32>::zeros(device, &[n]).unwrap();
        kernel(device, "number").go(grid(blocks, threads, 0), &mut [out.cuda_mut().into()]).unwrap();
        assert_eq!(out.to_vec().unwrap(), (0..n as u32).collect::<Vec<_>>());
    });
}

#[test]
fn constants_belong_to_one_emulator() {
    let devices = [device(), device()];
    for (i, device) in devices.iter().enumerate() {
        let bytes: Vec<u8> = (0..4).flat_map(|k| (10.0f32 * i as f32 + k as f32).to_le_bytes()).collect();
        cuda(device).set_variable(&SOURCE, &define(false), "weights", &bytes).unwrap();
        assert!(cuda(device).set_variable(&SOURCE, &define(false), "weights", &[0; 17]).is_err());
        assert!(cuda(device).set_variable(&SOURCE, &define(false), "nothing", &[0; 4]).is_err());
    }
    for (i, device) in devices.iter().enumerate() {
        let mut out = Array::<f32>::zeros(device, &[4]).unwrap();
        kernel(device, "read_constant").go(Launch::linear(1, 4), &mut [out.cuda_mut().into()]).unwrap();
        assert_eq!(out.to_vec().unwrap(), (0..4).map(|k| 10.0 * i as f32 + k as f32).collect::<Vec<_>>());
    }
}

#[test]
fn functions_agree_with_those_of_the_host() {
    everywhere(|device| {
        let values: Vec<f32> = (-40..40).map(|i| i as f32 * 0.37).collect();
        let x = upload(device, &values);
        let mut out = Array::<f32>::zeros(device, &[8, values.len()]).unwrap();
        let mut whole = Array::<i32>::zeros(device, &[12, values.len()]).unwrap();
        kernel(device, "functions")
            .go(
                Launch::linear(1, 80),
                &mut [x.cuda().into(), 80.into(), out.cuda_mut().into(), whole.cuda_mut().into()],
            )
            .unwrap();
        let (out, whole) = (out.to_vec().unwrap(), whole.to_vec().unwrap());
        for (i, &v) in values.iter().enumerate() {
            let near_by = |tolerance: f64, row: usize, wanted: f64| {
                let result = f64::from(out[row * 80 + i]);
                let close = (result - wanted).abs() <= tolerance * wanted.abs().max(1.0);
                assert!(close, "row {row} of {v}: {result}, {wanted}");
            };
            let near = |row, wanted| near_by(3e-6, row, wanted);
            let w = f64::from(v);
            // The hardware's fast functions lose accuracy with the angle.
            near_by(1e-5, 0, w.sin());
            near_by(1e-5, 1, w.cos());
            near(2, (std::f64::consts::PI * w).sin());
            near(3, (std::f64::consts::PI * w).cos());
            near(4, 1.0 / (w.abs() + 1.0).sqrt());
            near(5, w * w + 2.0);
            near(6, w.clamp(-1.0, 1.0));
            near(7, w.abs().exp());
            let bits = v.to_bits();
            let bytes = bits.to_ne_bytes().into_iter().zip(0x12fe_8001u32.to_ne_bytes());
            let differences: Vec<u8> = bytes.map(|(a, b)| a.abs_diff(b)).collect();
            let differ = (bits as i32).abs_diff(100).wrapping_add(bits.abs_diff(100)).wrapping_add(7);
            let wanted = [
                v.round_ties_even() as i32,
                v.floor() as i32,
                bits as i32,
                (i as u32).leading_zeros() as i32,
                bits.count_ones() as i32,
                bits.reverse_bits() as i32,
                if i == 0 { 0 } else { i.trailing_zeros() as i32 + 1 },
                ((u64::from(bits) * 0x1234_5678) >> 32) as i32,
                i32::MAX,
                i32::from_ne_bytes([differences[0], differences[1], differences[2], differences[3]]),
                differences.iter().map(|&d| i32::from(d)).sum(),
                differ as i32,
            ];
            for (row, wanted) in wanted.into_iter().enumerate() {
                assert_eq!(whole[row * 80 + i], wanted, "row {row} of {v}");
            }
        }
    });
}

#[test]
fn memory_that_nothing_was_written_to_is_not_a_number() {
    let device = device();
    let mut out = Array::<f32>::zeros(&device, &[2]).unwrap();
    kernel(&device, "unwritten").go(grid([2, 1, 1], [1, 1, 1], 16), &mut [out.cuda_mut().into()]).unwrap();
    assert!(out.to_vec().unwrap().iter().all(|v| v.is_nan()));
}

#[test]
fn a_forgotten_barrier_gives_what_was_never_written() {
    let device = device();
    let x = upload(&device, &[1.0f32; 64]);
    for from in [1, 63] {
        let mut out = Array::<f32>::zeros(&device, &[2, 64]).unwrap();
        let mut arguments = [x.cuda().into(), out.cuda_mut().into(), Argument::from(from)];
        kernel(&device, "forgotten_barrier").go(Launch::linear(2, 64), &mut arguments).unwrap();
        let out = out.to_vec().unwrap();
        // Blocks differ in the order of their threads: a mistake that one order hides shows in the other.
        let wrong = [0, 1].map(|b| out[b * 64..(b + 1) * 64].iter().filter(|v| v.is_nan()).count());
        assert_eq!(wrong, if from == 1 { [63, 1] } else { [1, 63] });
    }
}

#[test]
fn a_barrier_that_cannot_be_passed_is_reported() {
    let device = device();
    let mut out = Array::<i32>::zeros(&device, &[64]).unwrap();
    let mut run = |which: i32| {
        failure(
            kernel(&device, "deadlock").go(Launch::linear(2, 64), &mut [out.cuda_mut().into(), which.into()]),
        )
    };
    let words = run(0);
    assert!(words.contains("kernels::deadlock") && words.contains("no thread can go on"), "{words}");
    assert!(
        words.contains("32 wait at the barrier of line 8") && words.contains("lanes 0xffffffff"),
        "{words}"
    );
    let words = run(1);
    assert!(words.contains("reached the barrier of line"), "{words}");
    let words = run(2);
    assert!(words.contains("is not in the mask 0x0000ffff"), "{words}");
    let words = run(3);
    assert!(
        words.contains("thread (7, 0, 0)") && words.contains("assertion failed: threadIdx.x != 7"),
        "{words}"
    );
    // The device works on.
    kernel(&device, "early_exit").go(Launch::linear(1, 64), &mut [out.cuda_mut().into(), 64.into()]).unwrap();
    assert_eq!(out.to_vec().unwrap()[0], 63);
}

#[test]
fn writes_outside_arrays_are_reported_with_their_kernel() {
    let device = device();
    let mut x = Array::<f32>::zeros(&device, &[10]).unwrap();
    let out = kernel(&device, "outside");
    for (index, place) in
        [(12, "8 bytes past the end of an array of 40 bytes"), (-1, "4 bytes before the beginning")]
    {
        let words = failure(out.go(Launch::linear(1, 1), &mut [x.cuda_mut().into(), index.into()]));
        assert!(words.contains("kernels::outside") && words.contains(place), "{words}");
    }
    out.go(Launch::linear(1, 1), &mut [x.cuda_mut().into(), 9.into()]).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn a_program_that_does_not_compile_says_where() {
    static BAD: Source = Source {
        name: "bad",
        files: &[("bad.cu", "extern \"C\" __global__ void f(int* x) {\n x[0] = y;\n}")],
    };
    let device = device();
    let words = cuda(&device).kernel(&BAD, &[], "f").map(|_| ()).unwrap_err().to_string();
    assert!(words.contains("bad.cu:2") && words.contains('y'), "{words}");
}

#[test]
fn transforms_follow_the_vendor_s_layout() {
    use rayspin_device::cuda::FftPlan;
    let device = device();
    let (axes, stride, distance, batch) = ([3usize, 4], 2usize, 30usize, 2usize);
    let values: Vec<C64> = shuffled(60).into_iter().map(|v| C64::new(v, v * v % 17.0)).collect();
    let plan = FftPlan { axes: axes.to_vec(), stride, distance, batch, double: true };
    for sign in [-1, 1] {
        let mut x = upload(&device, &values);
        cuda(&device).fft(&plan, sign, x.cuda_mut()).unwrap();
        let mut wanted = values.clone();
        for b in 0..batch {
            for k in 0..12 {
                wanted[b * distance + k * stride] = (0..12)
                    .map(|j| {
                        let turns = (k / 4 * (j / 4)) as f64 / 3.0 + (k % 4 * (j % 4)) as f64 / 4.0;
                        values[b * distance + j * stride]
                            * C64::cis(f64::from(sign) * 2.0 * std::f64::consts::PI * turns)
                    })
                    .sum();
            }
        }
        for (transformed, wanted) in x.to_vec().unwrap().iter().zip(&wanted) {
            assert!((transformed - wanted).norm() < 1e-9 * 500.0, "{transformed} {wanted}");
        }
    }
    let mut x = upload(&device, &values);
    let beyond = FftPlan { batch: 3, ..plan };
    assert!(cuda(&device).fft(&beyond, 1, x.cuda_mut()).is_err());
}
