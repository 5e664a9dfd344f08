//! Times of the filters on a CPU, a line of JSON each: what `benches/peers/filters.py` compares with OpenCV.
//!
//! `filters_bench [threads]`

use rayspin_core::Result;
use rayspin_device::{Array, Device};
use rayspin_planes::{bicubic, box_filter, convolution};
use rayspin_primitives::sobel;
use rayspin_tune::input::bits;
use rayspin_tune::uniform;

mod timed;

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let device = Device::cpu_with_threads(threads)?;
    let n = 4096;
    let bytes = (0..n * n).map(|index| bits(1, index as u64) as u8).collect();
    let bytes = Array::<u8>::from_vec(&device, &[n, n], bytes)?;
    let floats = Array::<f32>::from_vec(&device, &[n, n], uniform(device.cpu_side(), 2, n * n)?)?;
    let (mut bytes_out, mut floats_out) =
        (Array::<u8>::zeros(&device, &[n, n])?, Array::<f32>::zeros(&device, &[n, n])?);
    // Pages that nobody wrote to come into being when they are.
    bytes_out.fill(1)?;
    floats_out.fill(1.0)?;
    let show = |name: &str, run: &mut dyn FnMut() -> Result<()>| timed::show(&device, name, &mut |_| run());
    show("sobel u8", &mut || sobel::sobel(&bytes, 1.0, &mut bytes_out))?;
    for radius in [1, 8, 64] {
        show(&format!("box u8 radius {radius}"), &mut || {
            box_filter::box_mean(&bytes, radius, &mut bytes_out)
        })?;
        show(&format!("box f32 radius {radius}"), &mut || {
            box_filter::box_mean(&floats, radius, &mut floats_out)
        })?;
    }
    for sigma in [0.5, 2.0] {
        show(&format!("gaussian f32 sigma {sigma}"), &mut || {
            convolution::gaussian(&floats, sigma, &mut floats_out)
        })?;
    }
    let half = n / 2;
    let small = (0..half * half).map(|index| bits(3, index as u64) as u8).collect();
    let small = Array::<u8>::from_vec(&device, &[half, half], small)?;
    let small_floats =
        Array::<f32>::from_vec(&device, &[half, half], uniform(device.cpu_side(), 4, half * half)?)?;
    let kernel = bicubic::Kernel::Keys(-0.75);
    show("bicubic u8 2048 to 4096", &mut || bicubic::resize(&small, kernel, &mut bytes_out))?;
    show("bicubic f32 2048 to 4096", &mut || bicubic::resize(&small_floats, kernel, &mut floats_out))?;
    let mut fewer = Array::<u8>::zeros(&device, &[2867, 2867])?;
    fewer.fill(1)?;
    show("bicubic u8 4096 to 2867", &mut || bicubic::resize(&bytes, kernel, &mut fewer))?;
    let mut fewer = Array::<f32>::zeros(&device, &[2867, 2867])?;
    fewer.fill(1.0)?;
    show("bicubic f32 4096 to 2867", &mut || bicubic::resize(&floats, kernel, &mut fewer))
}
