//! How arrays are read that `convert` and `info` take.

use std::path::PathBuf;

use anyhow::Result;
use rayspin::core::TrajectoryUnits;
use rayspin::io::{AxisOrder, ScanOptions};
use rayspin::job::rows::expect_fov;

use rayspin_shell::args::numbers;

/// How arrays are read, from what `--traj-units`, `--matrix`, `--fov` and `--order` say. Errors: what is no
/// unit, no number or no axis.
pub(crate) fn array_options(
    trajectory: Option<PathBuf>,
    [units, matrix, fov, order]: [Option<&str>; 4],
) -> Result<ScanOptions> {
    let units = units.map(str::parse::<TrajectoryUnits>).transpose()?;
    let matrix = matrix.map(|text| numbers::<usize>("--matrix", text, &[2, 3])).transpose()?;
    let fov_mm = fov.map(|text| numbers::<f64>("--fov", text, &[2, 3])).transpose()?;
    fov_mm.as_deref().map_or(Ok(()), |fov| expect_fov("`--fov`", fov))?;
    let order = order.map(str::parse::<AxisOrder>).transpose()?;
    Ok(ScanOptions { trajectory, units, matrix, fov_mm, order, ..ScanOptions::default() })
}
