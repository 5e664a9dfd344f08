//! What one request of a warp costs: sectors, turns, lanes at the same address.

use super::SECTOR;

/// Sectors of a row of the caches: a request takes a turn for each row.
pub(crate) const ROW: u64 = 4;
/// Banks of shared memory, each 4 bytes wide.
const BANKS: usize = 32;

/// Address and lane of each active lane.
pub(crate) type Lanes = [(u64, u8)];

/// The distinct sectors that the lanes touch, sorted.
pub(crate) fn sectors(lanes: &Lanes, size: u64, found: &mut Vec<u64>) {
    found.clear();
    for &(address, _) in lanes {
        let (first, last) = (address / SECTOR, (address + size - 1) / SECTOR);
        for sector in first..=last {
            if found.last() != Some(&sector) {
                found.push(sector);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
}

/// The sectors that an atomic operation of a warp sends: lanes at the same address go one after another, each
/// time with the sector. Nsight Compute counts these.
pub(crate) fn atomic_sectors(lanes: &Lanes) -> u64 {
    let mut addresses: Vec<u64> = lanes.iter().map(|&(address, _)| address).collect();
    addresses.sort_unstable();
    let alike = |a: &u64, b: &u64| a == b;
    let of_sector = |a: &[u64], b: &[u64]| a[0] / SECTOR == b[0] / SECTOR;
    let runs: Vec<&[u64]> = addresses.chunk_by(alike).collect();
    runs.chunk_by(|a, b| of_sector(a, b))
        .map(|sector| sector.iter().map(|run| run.len() as u64).max().unwrap_or(0))
        .sum()
}

/// The least number of turns for what the lanes want: a word from each bank in each turn.
pub(crate) fn least_turns(lanes: &Lanes, size: u64) -> u64 {
    (all_words(lanes.iter(), size).len() as u64).div_ceil(BANKS as u64).max(1)
}

/// The distinct words of 4 bytes that the lanes want, sorted.
fn all_words<'a>(lanes: impl Iterator<Item = &'a (u64, u8)>, size: u64) -> Vec<u64> {
    let mut words: Vec<u64> = Vec::with_capacity(128);
    for &(address, _) in lanes {
        let (first, last) = (address / 4, (address + size - 1) / 4);
        // Lanes that want what the lane before wants are common.
        if words.last() != Some(&last) || size > 4 {
            words.extend(first..=last);
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// Turns of shared memory: in each, a bank serves one word of 4 bytes, to any number of lanes.
///
/// Accesses of 8 bytes are served by halves of a warp, of 16 bytes by quarters; two parts go together where
/// lanes that are neighbours want the same.
pub(crate) fn turns(lanes: &Lanes, size: u64) -> u64 {
    match size {
        8 if pairs(lanes) => part(lanes.iter(), size),
        8 => (0..2).map(|half| part(lanes.iter().filter(|(_, lane)| lane / 16 == half), size)).sum(),
        16 => (0..2)
            .map(|half| {
                let own: Vec<_> = lanes.iter().filter(|(_, lane)| lane / 16 == half).copied().collect();
                if pairs(&own) {
                    return part(own.iter(), size);
                }
                let quarter = |q: u8| part(own.iter().filter(move |(_, lane)| lane / 8 == q), size);
                quarter(2 * half) + quarter(2 * half + 1)
            })
            .sum(),
        _ => part(lanes.iter(), size),
    }
}

/// Whether each lane wants what its neighbour wants, by one or by two places.
fn pairs(lanes: &Lanes) -> bool {
    [1, 2].iter().any(|by| {
        lanes.iter().all(|&(address, lane)| {
            lanes.iter().find(|(_, other)| *other == lane ^ by).is_none_or(|&(other, _)| other == address)
        })
    })
}

/// The most distinct words that one bank has to serve.
fn part<'a>(lanes: impl Iterator<Item = &'a (u64, u8)>, size: u64) -> u64 {
    let mut banks = [0u64; BANKS];
    for word in all_words(lanes, size) {
        banks[(word % BANKS as u64) as usize] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}

/// How many different words the lanes want, and how many lanes want the most wanted.
pub(crate) fn words(lanes: &Lanes) -> (u64, u64) {
    let mut addresses: Vec<u64> = lanes.iter().map(|&(address, _)| address).collect();
    addresses.sort_unstable();
    let (mut distinct, mut most, mut run, mut last) = (0, 0, 0, None);
    for address in addresses {
        run = if last == Some(address) { run + 1 } else { 1 };
        distinct += u64::from(run == 1);
        most = most.max(run);
        last = Some(address);
    }
    (distinct, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(address: impl Fn(u64) -> u64) -> Vec<(u64, u8)> {
        (0..32u8).map(|lane| (address(lane.into()), lane)).collect()
    }

    fn count(lanes: &Lanes, size: u64) -> usize {
        let mut found = Vec::new();
        sectors(lanes, size, &mut found);
        found.len()
    }

    #[test]
    fn sectors_of_rows_columns_and_vectors() {
        assert_eq!(count(&lanes(|l| 4 * l), 4), 4);
        assert_eq!(count(&lanes(|l| 4096 * l), 4), 32);
        assert_eq!(count(&lanes(|l| 4 * l + 4), 4), 5, "shifted by one number");
        assert_eq!(count(&lanes(|l| 16 * l), 16), 16);
        assert_eq!(count(&lanes(|_| 64), 4), 1);
        assert_eq!(count(&lanes(|l| 8 * l), 4), 8, "every second number");
    }

    #[test]
    fn atomic_operations_send_a_sector_again_for_lanes_at_one_address() {
        assert_eq!(atomic_sectors(&lanes(|l| 4 * l)), 4);
        assert_eq!(atomic_sectors(&lanes(|_| 64)), 32);
        // Pairs of lanes at an address: each sector twice. Seven lanes at one, the others apart in three.
        assert_eq!(atomic_sectors(&lanes(|l| l / 2 * 4)), 4);
        assert_eq!(atomic_sectors(&lanes(|l| if l < 7 { 0 } else { 4 * l })), 7 + 3);
    }

    #[test]
    fn turns_of_strides_broadcasts_and_vectors() {
        for (stride, expected) in [(1, 1), (2, 2), (3, 1), (32, 32), (33, 1), (16, 16), (0, 1)] {
            assert_eq!(turns(&lanes(|l| 4 * stride * l), 4), expected, "stride {stride}");
        }
        assert_eq!(turns(&lanes(|l| 8 * l), 8), 2);
        assert_eq!(turns(&lanes(|l| 16 * l), 16), 4);
        assert_eq!(turns(&lanes(|l| l), 1), 1, "bytes of the same words");
        assert_eq!(turns(&lanes(|_| 0), 8), 1, "one number for all");
        assert_eq!(
            turns(&lanes(|l| 16 * (l / 8)), 16),
            2,
            "one vector for a quarter: two parts of two quarters"
        );
        for size in [4, 8, 16] {
            assert_eq!(least_turns(&lanes(|l| size * l), size), size / 4);
            assert_eq!(least_turns(&lanes(|_| 64), size), 1, "one address for all");
        }
        let few = |size: u64| lanes(|l| size * l)[..4].to_vec();
        assert_eq!([4, 8, 16].map(|size| least_turns(&few(size), size)), [1, 1, 1]);
    }

    #[test]
    fn lanes_at_one_address_are_counted() {
        assert_eq!(words(&lanes(|l| l / 4)), (8, 4));
        assert_eq!(words(&lanes(|_| 7)), (1, 32));
        assert_eq!(words(&lanes(|l| l)), (32, 1));
    }
}
