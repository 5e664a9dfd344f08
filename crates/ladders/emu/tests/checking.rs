//! Races and memory errors that checking finds, with their lines, in kernels that have one; none in others.

#![allow(clippy::unwrap_used, clippy::panic)]

mod trusted;

use std::sync::Arc;

use rayspin_device::cuda::{Argument, Driver as _, Launch, Source};
use rayspin_device::{Array, Backend, Device, Element};
use rayspin_emu::Emulator;
use rayspin_emu::checking::{Does, Fault, Wrong};
use trusted::Trusted;

static SOURCE: Source = Source { name: "checking", files: &[("checking.cu", include_str!("checking.cu"))] };

struct Checking {
    emulator: Arc<Emulator>,
    device: Device,
}

impl Checking {
    fn new() -> Self {
        let emulator = Arc::new(Emulator::new().unwrap().checking(None).unwrap());
        let device = Device::with_driver(emulator.clone(), Device::cpu_with_threads(1).unwrap());
        Self { emulator, device }
    }

    fn upload<T: Element>(&self, values: &[T]) -> Array<T> {
        Array::from_slice(&self.device, &[values.len()], values).unwrap()
    }

    fn zeros<T: Element>(&self, count: usize) -> Array<T> {
        Array::zeros(&self.device, &[count]).unwrap()
    }

    /// Runs a kernel; what is wrong, and the error.
    fn run(
        &self,
        name: &str,
        launch: Launch,
        arguments: &mut [Argument<'_>],
    ) -> (Vec<Fault>, Option<String>) {
        let Backend::Cuda(cuda) = self.device.backend() else {
            unreachable!("the emulator is a CUDA device")
        };
        let kernel = cuda.kernel(&SOURCE, &[], name).unwrap();
        let done = kernel.go(launch, arguments).err().map(|error| error.to_string());
        (self.emulator.take_faults(), done)
    }

    fn faults(&self, name: &str, launch: Launch, arguments: &mut [Argument<'_>]) -> Vec<Fault> {
        let (faults, error) = self.run(name, launch, arguments);
        assert_eq!(error, None);
        faults
    }
}

fn line_of(text: &str) -> u32 {
    let all = include_str!("checking.cu");
    let mut found = all.lines().enumerate().filter(|(_, line)| line.contains(text));
    let (at, _) = found.next().unwrap();
    assert!(found.next().is_none(), "{text} stands twice");
    1 + at as u32
}

/// The lines of a fault's accesses.
fn lines(fault: &Fault) -> Vec<u32> {
    let accesses = [&fault.access, &fault.other];
    accesses.into_iter().flatten().map(|access| access.place.as_ref().unwrap().line).collect()
}

/// Values below 64, many of them equal.
fn values(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i * i % 61 % 64).collect()
}

#[test]
fn additions_without_atomics_race() {
    let checking = Checking::new();
    let (n, launch) = (200, Launch::linear(2, 128));
    let input = checking.upload(&values(n));
    let run = |kernel: &str| {
        let mut counts = checking.zeros::<u32>(64);
        checking.faults(
            kernel,
            launch,
            &mut [input.cuda().into(), counts.cuda_mut().into(), (n as i32).into()],
        )
    };
    for (kernel, array, text) in [
        ("count_global", "counts", "counts[values[i]] += 1;  // race"),
        ("count_shared", "own", "own[values[i]] += 1;  // race in shared memory"),
    ] {
        let faults = run(kernel);
        let races: Vec<_> = faults.iter().filter(|fault| fault.wrong == Wrong::Race).collect();
        assert!(!races.is_empty(), "{kernel}: {faults:#?}");
        for race in races {
            assert_eq!(race.array.as_deref(), Some(array));
            assert_eq!(lines(race), [line_of(text); 2], "{race}");
            let (one, other) = (race.access.as_ref().unwrap(), race.other.as_ref().unwrap());
            assert_ne!((one.block, one.thread), (other.block, other.thread));
            // Both threads have this value.
            let of = |access: &rayspin_emu::checking::Access| {
                values(n)[(access.block[0] * 128 + access.thread[0]) as usize]
            };
            assert_eq!([i64::from(of(one)), i64::from(of(other))], [race.index; 2]);
        }
    }
    assert_eq!(run("count_atomic"), []);
    assert_eq!(run("tested"), []);
}

#[test]
fn each_missing_barrier_is_found() {
    let checking = Checking::new();
    let (n, launch) = (200, Launch::linear(2, 128));
    let input = checking.upload(&values(n));
    let run = |skip: i32| {
        let mut counts = checking.zeros::<u32>(64);
        checking.faults(
            "three_barriers",
            launch,
            &mut [input.cuda().into(), counts.cuda_mut().into(), (n as i32).into(), skip.into()],
        )
    };
    let (zero, add) = (line_of("// clears"), line_of("// adds"));
    let (read, write) = (line_of("// reads what others counted"), line_of("// writes again"));
    let of = |faults: Vec<Fault>| {
        let races = faults.iter().filter(|fault| fault.wrong == Wrong::Race);
        races
            .map(|race| {
                let mut both = lines(race);
                both.sort_unstable();
                both
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(0), []);
    assert!(of(run(1)).contains(&vec![zero, add]));
    assert!(of(run(2)).contains(&vec![add, read]));
    assert!(of(run(3)).contains(&vec![read, write]));
}

#[test]
fn barriers_with_numbers_order_those_who_come_to_them() {
    let checking = Checking::new();
    let input = checking.upload(&(0..128).map(|i| i as f32).collect::<Vec<_>>());
    let run = |which: i32| {
        let mut out = checking.zeros::<f32>(128);
        let arguments = &mut [input.cuda().into(), out.cuda_mut().into(), which.into()];
        let faults = checking.faults("numbered_pairs", Launch::linear(1, 128), arguments);
        (faults, out.to_vec().unwrap())
    };
    let expected: Vec<f32> = (0..128).map(|t| (t / 64 * 64 + 63 - t % 64) as f32).collect();
    let (faults, out) = run(0);
    assert_eq!((faults, out), (Vec::new(), expected));
    for which in [1, 2] {
        let faults = run(which).0;
        let race = faults.iter().find(|fault| fault.wrong == Wrong::Race).unwrap();
        let mut both = lines(race);
        both.sort_unstable();
        assert_eq!(both, [line_of("// one of a pair writes"), line_of("// the other of a pair reads")]);
    }
}

#[test]
fn an_arrival_hands_over_and_does_not_wait() {
    let checking = Checking::new();
    let run = |turns: i32, awaits: i32| {
        let mut out = checking.zeros::<f32>(64 * turns as usize);
        let arguments = &mut [out.cuda_mut().into(), turns.into(), awaits.into()];
        let (faults, error) = checking.run("hand_over", Launch::linear(2, 128), arguments);
        (
            faults.into_iter().filter(|fault| !fault.is_note()).collect::<Vec<_>>(),
            error,
            out.to_vec().unwrap(),
        )
    };
    let (faults, error, out) = run(5, 1);
    assert_eq!((faults, error), (Vec::new(), None));
    assert!(out.iter().enumerate().all(|(i, &value)| value as usize == i / 64 * 64 + 63 - i % 64), "{out:?}");
    assert_eq!(run(1, 0).0, []);
    // Who makes does not wait for those who take: the next number comes too soon, or a barrier is met twice.
    let (faults, error, _) = run(2, 0);
    let taken = [line_of("// makes"), line_of("// takes")];
    let races: Vec<_> = faults
        .iter()
        .map(|fault| {
            let mut both = lines(fault);
            both.sort_unstable();
            both
        })
        .collect();
    let again = error
        .as_ref()
        .is_some_and(|error| error.contains("comes to barrier 1 again before 128 threads have come"));
    assert!(races.contains(&taken.to_vec()) || again, "{races:?} {error:?}");
}

#[test]
fn wrong_barriers_with_numbers_are_told_with_their_line() {
    let checking = Checking::new();
    for (which, words) in [
        (0, "barrier 16: expected a number below 16"),
        (1, "barrier 1: expected a multiple of 32 threads up to the block's 64, found 48"),
        (2, "where others wait for"),
        (3, "32 wait at barrier 1 of line"),
    ] {
        let mut out = checking.zeros::<f32>(64);
        let arguments = &mut [out.cuda_mut().into(), which.into()];
        let error = checking.run("numbered_wrongly", Launch::linear(1, 64), arguments).1.unwrap();
        assert!(error.contains(words), "{error}");
    }
    let mut out = checking.zeros::<f32>(64);
    let arguments = &mut [out.cuda_mut().into(), 3.into()];
    let error = checking.run("numbered_wrongly", Launch::linear(1, 64), arguments).1.unwrap();
    let line = line_of("// one warp alone");
    assert!(error.contains(&format!("barrier 1 of line {line}, where 32 of 64 have come")), "{error}");
}

#[test]
fn exchanges_through_shared_memory_need_a_barrier() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 256]);
    for threads in [32, 256] {
        let run = |barrier: i32| {
            let mut out = checking.zeros::<f32>(256);
            checking.faults(
                "swap",
                Launch::linear(1, threads),
                &mut [input.cuda().into(), out.cuda_mut().into(), barrier.into()],
            )
        };
        let faults = run(0);
        let race = faults.iter().find(|fault| fault.wrong == Wrong::Race).unwrap();
        let mut both = lines(race);
        both.sort_unstable();
        assert_eq!(both, [line_of("// written"), line_of("tile[blockDim.x - 1 - t]")]);
        assert_eq!(race.array.as_deref(), Some("tile"));
        assert_eq!(run(1), []);
    }
}

#[test]
fn lanes_of_a_warp_need_its_barrier() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 32]);
    let mut out = checking.zeros::<f32>(1);
    let mut run = |sync: i32| {
        checking.faults(
            "warp_sum",
            Launch::linear(1, 32),
            &mut [input.cuda().into(), out.cuda_mut().into(), sync.into()],
        )
    };
    let faults = run(0);
    let race = faults.iter().find(|fault| fault.wrong == Wrong::Race).unwrap();
    let mut both = lines(race);
    both.sort_unstable();
    assert_eq!(both, [line_of("// reads a neighbour's"), line_of("// writes its own")]);
    assert_eq!(run(1), []);
    let old =
        checking.faults("old_warp", Launch::linear(1, 32), &mut [input.cuda().into(), out.cuda_mut().into()]);
    assert!(old.iter().any(|fault| fault.wrong == Wrong::Race), "{old:#?}");
    let shuffled =
        checking.faults("shuffled", Launch::linear(1, 32), &mut [input.cuda().into(), out.cuda_mut().into()]);
    assert_eq!(shuffled, []);
}

#[test]
fn fences_and_atomics_order_blocks() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 40]);
    let run = |fence: i32| {
        let (mut parts, mut ticket) = (checking.zeros::<f32>(40), checking.zeros::<u32>(1));
        let mut out = checking.zeros::<f32>(1);
        checking.faults(
            "last_block",
            Launch::linear(40, 32),
            &mut [
                input.cuda().into(),
                parts.cuda_mut().into(),
                ticket.cuda_mut().into(),
                out.cuda_mut().into(),
                fence.into(),
            ],
        )
    };
    assert_eq!(run(1), []);
    let faults = run(0);
    let race = faults.iter().find(|fault| fault.array.as_deref() == Some("parts")).unwrap();
    assert_eq!(lines(race), [line_of("// all parts"), line_of("// a part")]);
    let flags = |by_volatile: i32| {
        let (mut values, mut flags) = (checking.zeros::<f32>(8), checking.zeros::<i32>(8));
        checking.faults(
            "flags",
            Launch::linear(8, 32),
            &mut [values.cuda_mut().into(), flags.cuda_mut().into(), by_volatile.into()],
        )
    };
    assert_eq!(flags(1), []);
    let faults = flags(0);
    assert!(faults.iter().any(|fault| lines(fault).contains(&line_of("// a plain flag"))), "{faults:#?}");
    let (mut lock, mut sum) = (checking.zeros::<i32>(1), checking.zeros::<f32>(1));
    let locked = checking.faults(
        "spin_lock",
        Launch::linear(9, 64),
        &mut [lock.cuda_mut().into(), sum.cuda_mut().into()],
    );
    assert_eq!(locked, []);
}

#[test]
fn each_pair_without_order_is_found() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 64]);
    let launch = Launch { shared: 256, ..Launch::linear(2, 32) };
    let run = |which: i32| {
        let (mut out, mut count) = (checking.zeros::<f32>(128), checking.zeros::<i32>(1));
        checking.faults(
            "pairs",
            launch,
            &mut [input.cuda().into(), out.cuda_mut().into(), count.cuda_mut().into(), which.into()],
        )
    };
    for (which, array, text) in [
        (0, "count", "// reads beside an atomic operation"),
        (1, "dynamic shared memory", "// dynamic shared memory"),
        (2, "total", "// a variable"),
        (3, "dynamic shared memory", "// of the other half"),
        (4, "out", "// of another block"),
        (5, "out", "// nobody wrote, and all write"),
    ] {
        let faults = run(which);
        let race = |fault: &Fault| {
            // All threads write NaN, the same value.
            let wanted = if which == 5 { Wrong::SameValues } else { Wrong::Race };
            fault.wrong == wanted && fault.array.as_deref() == Some(array)
        };
        let found = faults.iter().find(|fault| race(fault)).unwrap_or_else(|| panic!("{which}: {faults:#?}"));
        assert!(lines(found).contains(&line_of(text)), "{found}");
        let unwritten = faults.iter().filter(|fault| fault.wrong == Wrong::Unwritten).count();
        assert!(which != 5 || unwritten == 1, "{faults:#?}");
    }
}

#[test]
fn barriers_of_parts_and_early_ends_are_no_faults() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 64]);
    let (mut out, mut count) = (checking.zeros::<f32>(128), checking.zeros::<i32>(1));
    let faults = checking.faults(
        "right",
        Launch::linear(2, 64),
        &mut [input.cuda().into(), out.cuda_mut().into(), count.cuda_mut().into(), 100.into()],
    );
    assert!(faults.iter().all(|fault| fault.wrong == Wrong::Ended && fault.is_note()), "{faults:#?}");
    // A fence of the block alone tells other blocks nothing.
    let (mut parts, mut ticket) = (checking.zeros::<f32>(8), checking.zeros::<u32>(1));
    let faults = checking.faults(
        "last_of_block",
        Launch::linear(8, 32),
        &mut [input.cuda().into(), parts.cuda_mut().into(), ticket.cuda_mut().into(), out.cuda_mut().into()],
    );
    let race = faults.iter().find(|fault| fault.wrong == Wrong::Race).unwrap();
    assert!(lines(race).contains(&line_of("// a fence of the block alone")), "{race}");
}

#[test]
fn equal_values_are_a_note() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 100]);
    let mut found = checking.zeros::<i32>(1);
    let faults = checking.faults(
        "same_flag",
        Launch::linear(2, 64),
        &mut [input.cuda().into(), found.cuda_mut().into(), 100.into()],
    );
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].is_note() && faults[0].wrong == Wrong::SameValues);
    assert_eq!(lines(&faults[0]), [line_of("// the same value"); 2]);
}

#[test]
fn accesses_outside_arrays_end_the_kernel_with_line_and_index() {
    let checking = Checking::new();
    let input = checking.upload(&[1.0f32; 32]);
    let launch = Launch::linear(1, 32);
    let outside = |(faults, error): (Vec<Fault>, Option<String>), text: &str| {
        let words = error.unwrap();
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert_eq!((faults[0].wrong, lines(&faults[0])), (Wrong::Outside, vec![line_of(text)]));
        assert!(words.contains("checking.cu:"), "{words}");
        faults.into_iter().next().unwrap()
    };
    let mut out = checking.zeros::<f32>(32);
    let past = checking.run("past_end", launch, &mut [input.cuda().into(), out.cuda_mut().into(), 5.into()]);
    let past = outside(past, "// reads past the end");
    assert_eq!((past.array.as_deref(), past.index, past.elements), (Some("in"), 32, 32));
    assert_eq!(past.access.as_ref().unwrap().does, Does::Reads);
    assert_eq!(past.access.unwrap().thread, [27, 0, 0]);
    let before = checking.run("before_begin", launch, &mut [input.cuda().into(), out.cuda_mut().into()]);
    let before = outside(before, "// writes before the beginning");
    assert_eq!((before.array.as_deref(), before.index), (Some("out"), -1));
    let wild = checking.run("wild", launch, &mut [out.cuda_mut().into(), (1i64 << 40).into()]);
    assert_eq!(outside(wild, "// far away").array, None);
    let own =
        outside(checking.run("shared_end", launch, &mut [out.cuda_mut().into()]), "// past a shared array");
    assert_eq!((own.array.as_deref(), own.index, own.elements), (Some("own"), 32, 32));
    assert_eq!(out.to_vec().unwrap().len(), 32, "memory is whole");
}

/// Arrays of another GPU are refused as arguments. This address comes as a number.
#[test]
fn an_address_in_another_gpu_s_memory_ends_the_kernel() {
    let (here, there) = (Checking::new(), Checking::new());
    let mut out = here.zeros::<f32>(4);
    for (checking, found) in [(&here, 0), (&there, 1)] {
        let address = checking.emulator.allocate(16).unwrap();
        for (writes, text) in [(1, "// writes at an address"), (0, "// reads at an address")] {
            let arguments = &mut [address.into(), writes.into(), out.cuda_mut().into()];
            let (faults, error) = here.run("elsewhere", Launch::linear(1, 4), arguments);
            assert_eq!((faults.len(), error.is_some()), (found, found > 0), "{faults:#?} {error:?}");
            for fault in faults {
                assert_eq!((fault.wrong, lines(&fault)), (Wrong::Outside, vec![line_of(text)]));
            }
        }
    }
}

#[test]
fn reads_of_what_nobody_wrote_are_found() {
    let checking = Checking::new();
    let run = |which: i32| {
        let mut out = checking.zeros::<f32>(32);
        let mut scratch = Array::<f32>::unset(&checking.device, &[32]).unwrap();
        checking.faults(
            "unwritten",
            Launch::linear(1, 32),
            &mut [scratch.cuda_mut().into(), out.cuda_mut().into(), which.into()],
        )
    };
    assert_eq!(run(0), []);
    for (which, array, text) in [(1, "own", "// not all were written"), (2, "scratch", "// nobody wrote it")]
    {
        let faults = run(which);
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert_eq!((faults[0].wrong, faults[0].array.as_deref()), (Wrong::Unwritten, Some(array)));
        assert_eq!(lines(&faults[0]), [line_of(text)]);
    }
}

#[test]
fn bytes_beside_each_other_do_not_race() {
    let checking = Checking::new();
    let input = checking.upload(&[7u8; 500]);
    let mut out = checking.zeros::<u8>(500);
    let faults = checking.faults(
        "bytes",
        Launch::linear(2, 256),
        &mut [input.cuda().into(), out.cuda_mut().into(), 500.into()],
    );
    assert_eq!(faults, []);
}

#[test]
fn a_barrier_that_not_all_reach_is_told_by_its_line() {
    let checking = Checking::new();
    let mut out = checking.zeros::<f32>(32);
    let (_, error) = checking.run("half_barrier", Launch::linear(1, 32), &mut [out.cuda_mut().into()]);
    let words = error.unwrap();
    for text in ["__syncthreads();  // some", "__syncthreads();  // others"] {
        assert!(words.contains(&format!("line {}", line_of(text))), "{words}");
    }
}

#[test]
fn threads_that_end_before_a_barrier_are_noted() {
    let checking = Checking::new();
    let (values, mut out) = (checking.upload(&[1.0f32; 64]), checking.zeros::<f32>(64));
    let mut faults = |count: i32| {
        let arguments = &mut [values.cuda().into(), out.cuda_mut().into(), count.into()];
        checking.faults("left_early", Launch::linear(1, 64), arguments)
    };
    assert_eq!(faults(64), []);
    let found = faults(40);
    let [ended] = found.as_slice() else { panic!("expected a note, found {found:?}") };
    assert!(ended.is_note() && ended.wrong == Wrong::Ended);
    let words = ended.to_string();
    for part in ["compute capability 7.0", "thread 40 of block 0 has ended before: __syncthreads();"] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(
        ended.access.as_ref().unwrap().place.as_ref().unwrap().line,
        line_of("// without those who left")
    );
}

#[test]
fn launches_are_in_order() {
    let checking = Checking::new();
    let (mut one, mut other) = (checking.upload(&[1.0f32; 32]), checking.zeros::<f32>(32));
    for _ in 0..2 {
        let launch = Launch::linear(1, 32);
        let there = &mut [one.cuda().into(), other.cuda_mut().into()];
        assert_eq!(checking.faults("two_launches", launch, there), []);
        let back = &mut [other.cuda().into(), one.cuda_mut().into()];
        assert_eq!(checking.faults("two_launches", launch, back), []);
    }
}
