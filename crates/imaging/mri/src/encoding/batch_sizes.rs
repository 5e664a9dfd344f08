//! How an encoding is cut into batches.

use rayspin_core::{Error, Result};
use rayspin_run::BatchSize;
use serde::Serialize;

use super::LEAST_POINTS;

/// How much is done at once; all of it where absent. Less takes less memory and more time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BatchSizes {
    /// Coils that are transformed together where they need not all be.
    pub coils: Option<usize>,
    /// Coils whose sensitivity maps a GPU holds at once. The others' lie in the host's memory, and are copied
    /// while those before are applied; maps are then estimated slab by slab.
    pub maps: Option<usize>,
    /// Time segments, or spectra of a temporal subspace, that a GPU holds at once. The others' are copied
    /// from the host while those before are applied.
    pub segments: Option<usize>,
    /// Points of a trajectory planned at once.
    pub points: Option<usize>,
    /// Coils that the first of several devices takes, where coils go to all of them. It also solves for the
    /// image, so fewer coils leave it room for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
}

/// What [`BatchSizes`] may cut: how much there is of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Coils once they are prepared.
    pub coils: usize,
    /// Whether maps of each coil are used, one set of them.
    pub maps: bool,
    /// Time segments of the normal operator, or spectra of a temporal subspace.
    pub segments: usize,
    /// Whether these are spectra of a temporal subspace.
    pub subspace: bool,
    /// Points of a trajectory; 0 on a grid.
    pub points: usize,
    /// The even share of the first device if several share the coils, and 0 where one device takes all.
    pub first: usize,
}

impl BatchSizes {
    /// The batch sizes that a plan may reduce, the cheapest reduction first: coils, spectra of time segments
    /// on a GPU, maps on a GPU, points of a trajectory. Where coils go to several GPUs, the first one may
    /// take fewer of them, or none.
    pub fn list(&self, extent: &Extent) -> Vec<BatchSize> {
        let now = |cut: Option<usize>, full: usize| cut.map_or(full, |cut| cut.min(full));
        vec![
            BatchSize {
                name: "coils",
                now: now(self.coils, extent.coils),
                least: 1,
                gpu_only: false,
                describe: |n| format!("coils taken {n} at a time"),
            },
            BatchSize {
                name: "first",
                // One more than its coils, of which none may be left.
                now: if extent.first == 0 { 0 } else { 1 + now(self.first, extent.first) },
                least: 1,
                gpu_only: true,
                describe: |n| match n - 1 {
                    0 => "no coils on the first GPU".into(),
                    n => format!("{n} coils on the first GPU"),
                },
            },
            BatchSize {
                name: "segments",
                now: now(self.segments, extent.segments),
                least: 1,
                gpu_only: true,
                describe: match extent.subspace {
                    true => |n| format!("{n} of the normal operator's spectra held at a time"),
                    false => |n| match n {
                        1 => "the spectrum of 1 time segment held at a time".into(),
                        n => format!("the spectra of {n} time segments held at a time"),
                    },
                },
            },
            BatchSize {
                name: "maps",
                now: if extent.maps { now(self.maps, extent.coils) } else { 0 },
                // Two buffers on the GPU take turns.
                least: 2,
                gpu_only: true,
                describe: |n| format!("sensitivity maps of {n} coils held at a time"),
            },
            BatchSize {
                name: "points",
                now: now(self.points, extent.points),
                least: LEAST_POINTS,
                gpu_only: false,
                describe: |n| format!("points taken {n} at a time"),
            },
        ]
    }

    /// Sets the batch size called `name` to `to`. A name that is not on the [list](Self::list) changes
    /// nothing.
    pub fn set(&mut self, name: &str, to: usize) {
        match name {
            "coils" => self.coils = Some(to),
            "maps" => self.maps = Some(to),
            "segments" => self.segments = Some(to),
            "points" => self.points = Some(to),
            "first" => self.first = Some(to.saturating_sub(1)),
            _ => {}
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let cuts = [
            ("coil batch", self.coils),
            ("maps held", self.maps),
            ("segment batch", self.segments),
            ("point batch", self.points),
        ];
        match cuts.iter().find(|(_, cut)| *cut == Some(0)) {
            Some((name, _)) => Err(Error::value(*name, "at least 1", 0)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rayspin_run::halve;

    use super::*;

    #[test]
    fn the_first_device_may_be_left_without_coils_and_no_further() {
        let extent = Extent { coils: 8, first: 4, ..Extent::default() };
        let mut sizes = BatchSizes { coils: Some(1), ..BatchSizes::default() };
        let mut left = Vec::new();
        while let Some((size, to)) = halve(&sizes.list(&extent), true) {
            assert_eq!(size.name, "first");
            sizes.set(size.name, to);
            left.push((sizes.first, sizes.list(&extent)[1].now));
            assert!(left.len() < 9, "{left:?}");
        }
        // The number on the list is one more than the coils.
        assert_eq!(left, [(Some(2), 3), (Some(1), 2), (Some(0), 1)]);
        // One device takes all: there is nothing to reduce.
        assert_eq!(sizes.list(&Extent { coils: 8, ..Extent::default() })[1].now, 0);
    }
}
