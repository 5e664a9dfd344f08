//! Times of histograms on a CPU, a line of JSON each: what `benches/peers/histogram.py` compares with OpenCV.
//!
//! `histogram_bench [threads]`

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_planes::histogram::input::Input;
use rayspin_planes::histogram::{Form, Histogram, Problem, Width};
use rayspin_tune::{Algorithm, Ladder, Which, tuned};

mod timed;

/// The row that the public function runs.
const BEST: &str = "cpu-threads";

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let device = Device::cpu_with_threads(threads)?;
    for (width, name, cases) in [(Width::U32, "u32", "counts"), (Width::U16, "u16", "u16")] {
        // What the public function takes, which does not know the input.
        let (form, input) = (Form::Counts, Input::Walk);
        let walk = Problem { samples: 3984 * 4096, width, bins: 1024, form, input };
        let rows = Histogram.variants(&walk);
        let Some(best) = rows.iter().position(|row| row.name == BEST) else { continue };
        let config = tuned(&Histogram, &walk, &rows[best], &device);
        for input in [Input::Walk, Input::Uniform, Input::Constant] {
            let case = format!("{input}-{cases}");
            let mut session = Histogram.open(Which::Case(Some(&case), None), &device, 1)?;
            // Two that no cache holds.
            session.rotate(2)?;
            timed::show(&device, &format!("{input} {name}"), &mut |turn| session.run(best, &config, turn))?;
        }
    }
    Ok(())
}
