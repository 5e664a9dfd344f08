//! What a call of `reduction::sum` takes, from the host's call to the number in the host's hands: 2²² i32
//! over buffers in rotation that together exceed the second-level cache threefold, then over one buffer again
//! and again. Microseconds by the host's clock: the median and the middle half of the calls.
//!
//!     cargo run --release -p rayspin-primitives --example sum_calls [-- cpu]

use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::{Array, Device};
use rayspin_primitives::reduction::sum;
use rayspin_tune::input;

const SETS: u64 = 10;
const LEN: usize = 1 << 22;
/// Calls that are timed, after as many as warm up.
const CALLS: usize = 3750;
const WARM: usize = 750;

fn main() -> Result<()> {
    let cpu = Device::cpu()?;
    let device = match std::env::args().nth(1).as_deref() {
        Some("cpu") => cpu,
        _ => Device::auto(cpu).0,
    };
    let host = |seed| (0..LEN as u64).map(move |i| input::bits(seed, i) as i32);
    let buffers = (0..SETS)
        .map(|seed| {
            let values: Vec<i32> = host(seed).collect();
            let want: i64 = values.iter().map(|&v| i64::from(v)).sum();
            Ok((Array::from_vec(&device, &[LEN], values)?, want))
        })
        .collect::<Result<Vec<_>>>()?;
    for (name, sets) in [("in rotation", buffers.len()), ("one buffer", 1)] {
        let mut times = Vec::with_capacity(CALLS);
        for call in 0..WARM + CALLS {
            let (values, want) = &buffers[call % sets];
            let began = Instant::now();
            let total = sum(values)?;
            let time = 1e6 * began.elapsed().as_secs_f64();
            if total != *want {
                return Err(Error::value(format!("sum of buffer {}", call % sets), want.to_string(), total));
            }
            if call >= WARM {
                times.push(time);
            }
        }
        times.sort_by(f64::total_cmp);
        let [low, median, high] = [1, 2, 3].map(|quarter| times[quarter * (CALLS - 1) / 4]);
        println!("sum 2^22 i32, {}, {name}: {median:.2} us ({low:.2} to {high:.2})", device.describe());
    }
    Ok(())
}
