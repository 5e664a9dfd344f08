//! The plan of a line of one length: stages, threads, and their share of a block.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cuda::{Define, Properties};

use crate::cuda::define;

/// Longest line: in f64 its 8192 elements fill more than half of a multiprocessor's shared memory.
pub(crate) const LONGEST: usize = 8192;
/// Threads of a block, where lines are short enough to have a choice.
const THREADS: usize = 256;
/// Threads per multiprocessor for kernels that transform once: 40 registers each. Columns of 512 points took
/// 11 to 23 % less time than with 1024 threads (benches/results/2026-11-21-h100).
pub(crate) const LIGHT: usize = 1536;
/// Threads per multiprocessor for kernels that do more.
pub(crate) const HEAVY: usize = 1024;
/// Bytes of neighbouring columns that are read together: two sectors.
const ROW_BYTES: usize = 64;

/// Stages of the transform of one length without prime factors above 7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) n: usize,
    /// Powers of two first: half of the input of an even radix may be known to be 0.
    radices: Vec<usize>,
    /// Threads a line.
    pub(crate) team: usize,
}

/// How a block's threads lie on lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Neighbouring columns of a block; 0 for rows.
    pub(crate) columns: usize,
    /// Rows of a block; 1 for columns.
    pub(crate) lines: usize,
    pad: usize,
    /// Threads, of one group.
    pub(crate) threads: u32,
    /// Bytes of shared memory, of one group.
    pub(crate) shared: usize,
}

impl Line {
    /// `None` for 0, for lengths above [`LONGEST`] and for those with larger prime factors.
    pub(crate) fn new(n: usize) -> Option<Self> {
        if n == 0 || n > LONGEST {
            return None;
        }
        let twos = n.trailing_zeros() as usize;
        let mut rest = n >> twos;
        // A thread holds 8 elements: with 16, half as many threads hide less of the memory's latency.
        let mut radices = vec![8; twos / 3];
        match (twos / 3, twos % 3) {
            (0, 0) => {}
            (0, some) => radices.push(1 << some),
            (_, 1) => {
                // 16 = 4 · 4 rather than 8 · 2.
                radices.pop();
                radices.extend([4, 4]);
            }
            (_, 2) => radices.push(4),
            _ => {}
        }
        for radix in [7, 5, 3] {
            while rest.is_multiple_of(radix) {
                radices.push(radix);
                rest /= radix;
            }
        }
        if rest != 1 {
            return None;
        }
        if radices.is_empty() {
            radices.push(1);
        }
        // Threads of a block end at 1024: the longest lines leave more to each.
        let most = if n > 4096 { 16 } else { radices.iter().copied().max().unwrap_or(1).max(10) };
        let held = |team: usize| radices.iter().map(move |r| (n / r).div_ceil(team) * r);
        let team = (1..=n.min(1024))
            .filter(|&team| held(team).max().is_some_and(|elements| elements <= most))
            .min_by_key(|&team| {
                // Idle lanes first; then as near as may be to eight elements a thread.
                let work: usize = held(team).map(|elements| elements * team).sum();
                (work, held(team).max().unwrap_or(0).abs_diff(8), usize::MAX - team)
            })?;
        Some(Self { n, radices, team })
    }

    /// Whether half of a line, its lower one, can be all that is read or written.
    pub(crate) fn halves(&self, count: usize) -> bool {
        self.radices[0].is_multiple_of(2) && 2 * count <= self.n
    }

    /// The same stages in the opposite order.
    pub(crate) fn reversed(&self) -> Self {
        Self { radices: self.radices.iter().rev().copied().collect(), ..self.clone() }
    }

    /// Elements that a thread holds.
    pub(crate) fn elements(&self) -> usize {
        self.radices.iter().map(|r| (self.n / r).div_ceil(self.team) * r).max().unwrap_or(1)
    }

    /// e^{−i2πjm/(n r)} for every stage but the first, of radix r after n points: `[m − 1][j]`.
    pub(crate) fn table<R: Real>(&self) -> Vec<Complex<R>> {
        let mut table = Vec::new();
        let mut done = self.radices[0];
        for &radix in &self.radices[1..] {
            for m in 1..radix {
                for j in 0..done {
                    table.push(unit::<R>(j * m, done * radix));
                }
            }
            done *= radix;
        }
        // A kernel's argument has an address.
        if table.is_empty() {
            table.push(unit::<R>(0, 1));
        }
        table
    }

    /// Whole rows, each in memory without gaps; of `rows` in all.
    pub(crate) fn rows<R: Real>(&self, rows: usize, limits: &Properties) -> Option<Block> {
        let lines = (THREADS / self.team).clamp(1, rows.next_power_of_two().max(1));
        let pad = if size_of::<R>() == 4 { 16 } else { 8 };
        self.block::<R>(0, lines, pad, limits)
    }

    /// Blocks of neighbouring columns of `inner`, and as few as `least` if shared memory allows no more.
    pub(crate) fn columns<R: Real>(&self, inner: usize, limits: &Properties) -> Option<Block> {
        let near =
            (ROW_BYTES / size_of::<Complex<R>>()).max((THREADS / 2 / self.team).next_power_of_two().min(64));
        let mut columns = near.min(inner.next_power_of_two().max(1));
        while columns > 1 && columns * self.team > limits.threads_per_block as usize {
            columns /= 2;
        }
        loop {
            // The first stage writes rows that lie its radix apart: a hole after each radix puts neighbours
            // on other banks.
            let pad = match columns * size_of::<Complex<R>>() {
                128.. => self.n,
                _ => self.radices[0].max(8),
            };
            match self.block::<R>(columns, 1, pad, limits) {
                None if columns > 1 => columns /= 2,
                block => return block,
            }
        }
    }

    fn block<R: Real>(&self, columns: usize, lines: usize, pad: usize, limits: &Properties) -> Option<Block> {
        let width = columns.max(1) * lines;
        let shared = if self.radices.len() == 1 {
            0
        } else {
            (self.n + (self.n - 1) / pad) * width * size_of::<Complex<R>>()
        };
        let threads = self.team * width;
        (shared <= limits.shared_per_block as usize && threads <= limits.threads_per_block as usize)
            .then_some(Block { columns, lines, pad, threads: threads as u32, shared })
    }

    /// The macros of a program for such blocks. `groups` of them make up a block. A multiprocessor should
    /// hold `held` threads if numbers are f32 and a thread has 8 elements.
    pub(crate) fn defines<R: Real>(&self, block: &Block, groups: usize, held: usize) -> Vec<Define> {
        let list = |radices: &mut dyn Iterator<Item = &usize>| {
            radices.map(usize::to_string).collect::<Vec<_>>().join(",")
        };
        let held = held * 4 * 8 / (size_of::<R>() * self.elements().max(8));
        let resident = (held / (block.threads as usize * groups)).clamp(1, 16);
        let mut defines = vec![
            define::<R>(),
            ("LENGTH", self.n.to_string()),
            ("RADICES", list(&mut self.radices.iter())),
            ("REVERSED", list(&mut self.radices.iter().rev())),
            ("TEAM", self.team.to_string()),
            ("COLUMNS", block.columns.to_string()),
            ("PAD", block.pad.to_string()),
            ("RESIDENT", resident.to_string()),
        ];
        if block.columns == 0 {
            defines.push(("LINES", block.lines.to_string()));
        }
        defines
    }
}

/// e^{−i2π turns/n}, in f64, rounded once.
pub(crate) fn unit<R: Real>(turns: usize, n: usize) -> Complex<R> {
    let phase = -std::f64::consts::TAU * (turns % n) as f64 / n as f64;
    Complex::new(<R as Real>::from_f64(phase.cos()), <R as Real>::from_f64(phase.sin()))
}

/// The smallest length of at least `least` that has stages and whose lower half is one of its own.
pub(crate) fn even_length(least: usize) -> Option<usize> {
    (least..=LONGEST).filter(|n| n.is_multiple_of(4)).find(|&n| Line::new(n).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_smooth_length_has_stages() {
        let smooth = |mut n: usize| {
            for p in [2, 3, 5, 7] {
                while n.is_multiple_of(p) {
                    n /= p;
                }
            }
            n == 1
        };
        for n in 0..=LONGEST + 1 {
            let line = Line::new(n);
            assert_eq!(line.is_some(), (1..=LONGEST).contains(&n) && smooth(n), "{n}");
            if let Some(line) = line {
                assert_eq!(line.radices.iter().product::<usize>(), n);
                assert!(line.team <= 1024 && line.elements() <= 16, "{line:?}");
                assert_eq!(line.table::<f64>().len(), n.max(line.radices[0] + 1) - line.radices[0]);
            }
        }
    }
}
