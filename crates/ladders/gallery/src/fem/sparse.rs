//! The assembled matrix in compressed rows (CSR): the numbers of a row side by side, with their columns.

use rayspin_core::{Result, voxels};
use rayspin_device::{Array, Device, cpu};

use super::Problem;
use super::reference::STIFFNESS;

/// Numbers of a row of an inner node: itself, 12 at a distance of √2 and 8 at √3; at 1 they are 0 for cubes.
pub(super) const ROW: usize = 21;

/// Rows of all nodes. Those of the boundary are empty, and none has a column there.
pub(super) struct Matrix {
    /// Where each row begins, and the last ends.
    pub(super) starts: Array<u32>,
    pub(super) columns: Array<u32>,
    pub(super) values: Array<f32>,
}

/// Why no matrix of a problem is assembled.
pub(super) fn refuses(p: &Problem) -> Option<String> {
    (p.nodes() > 1 << 25).then(|| format!("{p}: its matrix would take {} GB", (p.nodes() * ROW * 8) >> 30))
}

impl Matrix {
    /// Assembles it on the host. Errors: memory.
    pub(super) fn new(p: &Problem, kappa: &[f32], device: &Device) -> Result<Self> {
        let [_, ny, nx] = p.shape;
        let most = voxels(&[p.nodes(), ROW])?;
        let mut starts = cpu::try_with_capacity("rows of a matrix", p.nodes() + 1)?;
        let mut columns = cpu::try_with_capacity("columns of a matrix", most)?;
        let mut values = cpu::try_with_capacity("numbers of a matrix", most)?;
        for index in 0..p.nodes() {
            starts.push(columns.len() as u32);
            let node = p.place(index);
            if !p.inner(node) {
                continue;
            }
            let mut row = [0.0; 27];
            for octant in 0..8 {
                let element = [0, 1, 2].map(|axis| node[axis] - (octant >> axis & 1));
                let k = f64::from(kappa[(element[0] * ny + element[1]) * nx + element[2]]);
                for corner in 0..8 {
                    // Place in the 3 x 3 x 3 nodes around this one.
                    let [z, y, x] = [0, 1, 2].map(|axis| 1 - (octant >> axis & 1) + (corner >> axis & 1));
                    row[(z * 3 + y) * 3 + x] += k * STIFFNESS[(octant ^ corner).count_ones() as usize] / 12.0;
                }
            }
            for (near, &value) in row.iter().enumerate() {
                let other = [node[0] + near / 9 - 1, node[1] + near / 3 % 3 - 1, node[2] + near % 3 - 1];
                if value != 0.0 && p.inner(other) {
                    columns.push(p.index(other) as u32);
                    values.push(value as f32);
                }
            }
        }
        starts.push(columns.len() as u32);
        let array = |values: Vec<u32>| Array::from_vec(device, &[values.len()], values);
        Ok(Self {
            starts: array(starts)?,
            columns: array(columns)?,
            values: Array::from_vec(device, &[values.len()], values)?,
        })
    }
}
