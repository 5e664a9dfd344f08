//! Times of histograms on a CPU, a line of JSON each: what `benches/peers/histogram.py` compares with OpenCV.
//!
//! `histogram_bench [threads]`

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_primitives::histogram::input::Input;
use rayspin_primitives::histogram::{Form, Histogram, Problem, Width};
use rayspin_tune::{Algorithm, tuned};

mod timed;

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let device = Device::cpu_with_threads(threads)?;
    for (width, name) in [(Width::U32, "u32"), (Width::U16, "u16")] {
        for input in [Input::Walk, Input::Uniform, Input::Constant] {
            let problem = Problem { samples: 3984 * 4096, width, bins: 1024, form: Form::Counts, input };
            let rows = Histogram.variants(&problem);
            let Some(best) = rows.iter().find(|row| row.name == "cpu-threads") else { continue };
            // What the public function takes: it does not know the input.
            let walk = Problem { input: Input::Walk, ..problem };
            let config = tuned(&Histogram, &walk, best.name, &device);
            // Two that no cache holds.
            let mut data = [Histogram.data(&problem, &device, 1)?, Histogram.data(&problem, &device, 2)?];
            timed::show(&device, &format!("{input} {name}"), &mut |turn| {
                Histogram.run(best, &config, &mut data[turn % 2])
            })?;
        }
    }
    Ok(())
}
