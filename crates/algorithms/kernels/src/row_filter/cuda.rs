//! The filter on a GPU: padding, both transforms and the weights in one pass over the rows.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex32;
use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Source};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::Weights;
use crate::cuda::limits;
use crate::fft::cuda::line::{Block, HEAVY, Line, even_length};
use crate::fft::cuda::{LIGHT_SPILL, LINE, Lie, general, launch};

static SOURCE: Source =
    Source { name: "row filter", files: &[LINE, ("filter.cu", include_str!("cuda/filter.cu"))] };

fn defines(line: &Line, block: &Block, lower: bool, weighted: bool) -> Vec<Define> {
    let flag = |yes: bool| u32::from(yes).to_string();
    let mut defines = line.defines::<f32>(block, 1, HEAVY);
    defines.extend([("LOWER", flag(lower)), ("WEIGHTED", flag(weighted))]);
    defines
}

pub(crate) fn builds() -> Vec<Build> {
    let limits = limits();
    let line = even_length(2 * 512).and_then(Line::new);
    let Some((line, block)) = line.and_then(|line| Some((line.clone(), line.rows::<f32>(1 << 16, &limits)?)))
    else {
        return Vec::new();
    };
    let build = |weighted| Build {
        source: &SOURCE,
        defines: defines(&line, &block, true, weighted),
        spill_bytes: LIGHT_SPILL,
    };
    vec![build(false), build(true)]
}

/// The general programs: rows whose transforms are no longer than `longest`.
pub(crate) fn precompiled(longest: usize, shared: u32) -> Vec<Build> {
    let lines = (4..=longest).step_by(4).filter_map(Line::new);
    let blocks = lines.filter_map(|line| {
        let [rows, _] = general::<f32>(&line, shared);
        rows.map(|block| (line, block))
    });
    blocks
        .flat_map(|(line, block)| {
            [false, true].map(|weighted| Build {
                source: &SOURCE,
                defines: defines(&line, &block, false, weighted),
                spill_bytes: LIGHT_SPILL,
            })
        })
        .collect()
}

/// Whether a GPU has the kernels of rows of `len` elements.
pub(super) fn offered(cuda: &Cuda, len: usize) -> bool {
    let Some(line) = length(len).and_then(Line::new) else { return false };
    let Ok(block) = Lie::Rows(1).general().block::<f32>(&line, cuda) else { return false };
    [false, true].iter().all(|&weighted| cuda.offers(&SOURCE, &defines(&line, &block, false, weighted)))
}

/// The length of the transforms of rows of `len` elements; none where they are too long.
pub(super) fn length(len: usize) -> Option<usize> {
    even_length(2 * len)
}

/// A filter's tables on a GPU.
pub(super) struct Plan {
    line: Line,
    tables: [Array<Complex32>; 2],
    spectrum: Array<f32>,
}

impl Plan {
    pub(super) fn new(device: &Device, spectrum: Vec<f32>) -> Result<Self> {
        let line = Line::new(spectrum.len()).ok_or_else(|| super::too_long(spectrum.len() / 2))?;
        let upload = |line: &Line| {
            let table = line.table::<f32>();
            Array::from_vec(device, &[table.len()], table)
        };
        let tables = [upload(&line)?, upload(&line.reversed())?];
        Ok(Self { tables, spectrum: Array::from_vec(device, &[spectrum.len()], spectrum)?, line })
    }

    pub(super) fn transform(&self) -> usize {
        self.line.n
    }

    /// Rows of as many elements as the filter takes, from rows of `columns`.
    pub(super) fn apply(
        &self,
        cuda: &Cuda,
        from: &Array<f32>,
        to: &mut Array<f32>,
        weights: Option<&Weights>,
        [columns, len, before]: [usize; 3],
    ) -> Result<()> {
        let total = from.len() / columns.max(1);
        if total == 0 {
            return Ok(());
        }
        let lines = total.div_ceil(2);
        let (block, defines) =
            Lie::Rows(lines).program::<f32>(cuda, &SOURCE, &self.line, |block, lower| {
                defines(&self.line, block, lower && self.line.halves(len), weights.is_some())
            })?;
        let kernel = cuda.kernel(&SOURCE, &defines, "filter_rows")?;
        let narrow =
            |n: usize| u32::try_from(n).map_err(|_| Error::value("rows of a filter", "less than 2^32", n));
        // A kernel that does not weigh reads neither list.
        let (table, points, rows, pitch) = match weights {
            Some(w) => (w.table.cuda(), w.points.cuda(), total / w.views(), w.pitch_mm),
            None => (self.spectrum.cuda(), self.spectrum.cuda(), 1, [0.0; 2]),
        };
        let arguments: &mut [Argument<'_>] = &mut [
            from.cuda().into(),
            to.cuda_mut().into(),
            self.spectrum.cuda().into(),
            self.tables[0].cuda().into(),
            self.tables[1].cuda().into(),
            table.into(),
            points.into(),
            narrow(total)?.into(),
            narrow(rows)?.into(),
            narrow(columns)?.into(),
            narrow(len)?.into(),
            narrow(before)?.into(),
            pitch[0].into(),
            pitch[1].into(),
        ];
        // SAFETY: `from` has `total` rows of `columns` elements, and `to` has `total` rows of `len`. The
        // tables belong to the line, and the spectrum has its length. There are weights for each column and
        // three points for each view.
        unsafe { kernel.launch(launch(&block, lines, 1)?, arguments) }
    }
}
