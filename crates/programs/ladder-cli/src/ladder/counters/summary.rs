//! The counts of a variant in a few numbers, as columns of any table.

use rayspin::report::table::{Cell, Column};
use rayspin_emu::counting::{self, Access, Kind, Space};
use serde::{Deserialize, Serialize};

use super::{Counted, gpus};

const SECTOR: f64 = counting::SECTOR as f64;

/// What the kernels of a variant do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::ladder) struct Summary {
    /// Requests of warps to memory of the device, and the pieces of 32 bytes that they move.
    pub(in crate::ladder) load_requests: f64,
    pub(in crate::ladder) load_sectors: f64,
    pub(in crate::ladder) store_requests: f64,
    pub(in crate::ladder) store_sectors: f64,
    /// Bytes that loads move over bytes that lanes ask for.
    pub(in crate::ladder) loads_moved_over_asked: Option<f64>,
    pub(in crate::ladder) stores_moved_over_asked: Option<f64>,
    /// Both together.
    pub(in crate::ladder) moved_over_asked: Option<f64>,
    /// Turns of shared memory over the least for that width.
    pub(in crate::ladder) turns_over_least: Option<f64>,
    /// Active lanes of an instruction.
    pub(in crate::ladder) lanes: Option<f64>,
    /// Branches at which lanes of a warp part.
    pub(in crate::ladder) splits: f64,
    /// The predicted time of all kernels, and what limits the one that takes longest; or why there is none.
    pub(in crate::ladder) seconds: Option<f64>,
    pub(in crate::ladder) limited_by: String,
}

fn ratio(above: f64, below: f64) -> Option<f64> {
    (below > 0.0).then(|| above / below)
}

impl Summary {
    pub(in crate::ladder) fn of(counted: &Counted) -> Self {
        let sum = |value: fn(&Access) -> f64, wanted: fn(&Access) -> bool| -> f64 {
            counted.kernels.iter().map(|kernel| kernel.counts.sum(value, wanted)).sum()
        };
        fn global(a: &Access) -> bool {
            matches!(a.space, Space::Global | Space::Texture)
        }
        let loads = |a: &Access| global(a) && matches!(a.kind, Kind::Read | Kind::Texel);
        let stores = |a: &Access| global(a) && matches!(a.kind, Kind::Write | Kind::Atomic);
        let moved = |wanted| ratio(sum(|a| a.sectors, wanted) * SECTOR, sum(|a| a.bytes, wanted));
        let weights = || counted.kernels.iter().map(|kernel| kernel.counts.instructions());
        let lanes = counted.kernels.iter().zip(weights()).map(|(k, n)| k.counts.lanes_per_instruction() * n);
        let splits = counted.kernels.iter().flat_map(|k| &k.counts.lines).map(|line| line.splits);
        let shared = |a: &Access| a.space == Space::Shared;
        Self {
            load_requests: sum(|a| a.requests, loads),
            load_sectors: sum(|a| a.sectors, loads),
            store_requests: sum(|a| a.requests, stores),
            store_sectors: sum(|a| a.sectors, stores),
            loads_moved_over_asked: moved(loads),
            stores_moved_over_asked: moved(stores),
            moved_over_asked: moved(global),
            turns_over_least: ratio(sum(|a| a.turns, shared), sum(|a| a.least, shared)),
            lanes: ratio(lanes.sum(), weights().sum()),
            splits: splits.sum(),
            seconds: counted.seconds(),
            limited_by: match counted.limit() {
                Some(limit) if counted.seconds().is_some() => limit.to_string(),
                _ if counted.is_twin() => "not predicted: twin".to_owned(),
                _ if counted.kernels.iter().any(|k| !k.counts.whole) => "not predicted: too much".to_owned(),
                _ => String::new(),
            },
        }
    }

    /// What the columns mean that stand beside others.
    pub(in crate::ladder) fn columns(gpu: &gpus::Gpu) -> Vec<Column> {
        vec![
            moved_over_asked("Moved / asked"),
            turns_over_least(),
            lanes(),
            predicted(gpu.card),
            Column::text("Limited by"),
        ]
    }

    /// The cells of [`columns`](Self::columns).
    pub(in crate::ladder) fn cells(summary: Option<&Self>) -> Vec<Cell> {
        let Some(summary) = summary else { return vec![Cell::Empty; 5] };
        vec![
            summary.moved_over_asked.into(),
            summary.turns_over_least.into(),
            summary.lanes.into(),
            summary.seconds.into(),
            summary.limited_by.as_str().into(),
        ]
    }

    /// What the columns mean of the table of counts.
    pub(super) fn all_columns(gpu: &gpus::Gpu) -> Vec<Column> {
        vec![
            Column::number("Load requests").significant(4).legend("of warps, to memory of the device"),
            Column::number("Sectors").significant(4).legend("pieces of 32 bytes that loads move"),
            moved_over_asked("Moved / asked"),
            Column::number("Store requests").significant(4),
            Column::number("sectors").significant(4).legend("of stores and atomic operations"),
            Column::number("moved / asked").decimals(2),
            turns_over_least(),
            lanes(),
            Column::number("Splits").significant(3).legend("branches at which lanes of a warp part"),
            predicted(gpu.card),
            Column::text("Limited by"),
        ]
    }

    /// The cells of [`all_columns`](Self::all_columns).
    pub(super) fn all_cells(&self) -> Vec<Cell> {
        vec![
            self.load_requests.into(),
            self.load_sectors.into(),
            self.loads_moved_over_asked.into(),
            self.store_requests.into(),
            self.store_sectors.into(),
            self.stores_moved_over_asked.into(),
            self.turns_over_least.into(),
            self.lanes.into(),
            self.splits.into(),
            self.seconds.into(),
            self.limited_by.as_str().into(),
        ]
    }
}

fn moved_over_asked(name: &str) -> Column {
    Column::number(name).decimals(2).legend("bytes of these sectors over the bytes that lanes ask for")
}

fn turns_over_least() -> Column {
    Column::number("Turns / least")
        .decimals(2)
        .legend("times that shared memory is busy, over the least for that width: bank conflicts")
}

fn lanes() -> Column {
    Column::number("Lanes").decimals(1).legend("active lanes of an instruction, of 32")
}

fn predicted(card: &str) -> Column {
    Column::number(format!("Time on {card}")).seconds().legend("predicted, not measured")
}
