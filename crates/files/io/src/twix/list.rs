//! The list of a measurement's blocks. Only their heads are read.
//!
//! Where a block begins follows from the blocks before it. A long measurement is cut into pieces, so that all
//! threads read heads: each piece looks for a place where a block seems to begin, and follows the blocks from
//! there. Then the pieces are joined. A piece that does not know the place to which the blocks before it lead
//! is followed again from that place, so that the list never depends on what seemed to be a block.

use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem;
use rayon::prelude::*;
use rayspin_core::Monitor;

use super::block::{Block, Head, read_head};
use super::file::{Generation, Measurement, TwixFile, word};
use crate::{Error, Result};

/// Bytes of a piece.
const PIECE: u64 = 16 << 20;
/// Bytes of a piece in which a block is looked for at most, and that are read at once.
const SEARCH: u64 = 8 << 20;
const CHUNK: u64 = 256 << 10;
/// Places where a block may begin that are looked at in a piece. In VD the head of a coil is one, too. In VB
/// every head leads to the next block.
const MOST_PLACES: [usize; 2] = [16, 2048];
/// Heads of blocks up to this length are read together, in a window.
const SHORT: u64 = 4 << 10;
const WINDOW: u64 = 64 << 10;
/// Bytes of a head up to the number of its measurement, and behind the number of its readout.
const NUMBER: u64 = 4;
const NUMBERS: u64 = 12;

/// The blocks of a measurement.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Readouts, in the order of the file.
    pub(super) readouts: Vec<Block>,
    /// Blocks of physiology and the like.
    pub(super) physiology: usize,
    /// Why the measurement is not complete, in a sentence.
    pub(super) broken_off: Option<String>,
}

impl Blocks {
    /// Lists the blocks of a measurement whose header has this length.
    ///
    /// Errors: a measurement that does not begin with a block; [`rayspin_core::Error::Interrupted`].
    pub(super) fn list(
        file: &TwixFile,
        measurement: &Measurement,
        header: u64,
        monitor: &Monitor<'_>,
    ) -> Result<Self> {
        Self::of_pieces(file, measurement, header, PIECE, monitor)
    }

    /// [`Blocks::list`] by pieces of this many bytes.
    pub(super) fn of_pieces(
        file: &TwixFile,
        measurement: &Measurement,
        header: u64,
        piece: u64,
        monitor: &Monitor<'_>,
    ) -> Result<Self> {
        let first = measurement.start.saturating_add(header);
        let source = Source { file, end: measurement.end, first, monitor };
        let count = source.end.saturating_sub(first).div_ceil(piece).max(1);
        let bounds = |index: u64| (first + index * piece, first + (index + 1) * piece);
        let number = source.number(first)?;
        // Behind the piece where blocks end, nothing is to be looked for.
        let last = AtomicU64::new(u64::MAX);
        let followed: Vec<Option<Run>> = (0..count)
            .into_par_iter()
            .map(|index| {
                let (start, limit) = bounds(index);
                let is_needed = || index <= last.load(Ordering::Relaxed);
                let start = match index {
                    0 => Some(start),
                    _ => source.seeming_block(start, limit, number?, &is_needed),
                };
                // What fails here fails again where pieces are joined, if it matters.
                let run = source.follow(start?, limit).ok()?;
                if run.end.is_some() {
                    last.fetch_min(index, Ordering::Relaxed);
                }
                Some(run)
            })
            .collect();
        let mut blocks = Self::default();
        let (mut place, mut end) = (first, None);
        for (index, run) in (0..count).zip(followed) {
            let (_, limit) = bounds(index);
            if end.is_some() {
                break;
            }
            if index > 0 && place >= limit {
                continue;
            }
            let run = match run.and_then(|run| run.starting_at(place, file.generation)) {
                Some(run) => run,
                None => source.follow(place, limit)?,
            };
            blocks.readouts.extend(run.readouts);
            blocks.physiology += run.physiology.len();
            (place, end) = (run.next, run.end);
        }
        // A last block that reaches to the end leaves nothing behind it.
        let end = end.unwrap_or_else(|| End::Broken(NO_MARK.to_owned()));
        blocks.broken_off = match end {
            End::Mark => None,
            End::Broken(why) => Some(why),
        };
        if blocks.readouts.is_empty() {
            let why = blocks.broken_off.unwrap_or_else(|| "none".into());
            return Err(Error::field(&file.path, "readouts of the measurement", "at least one", why));
        }
        Ok(blocks)
    }
}

const NO_MARK: &str = "it ends without the block that marks the end";

/// How blocks end.
#[derive(Debug)]
enum End {
    /// By the block that marks the end.
    Mark,
    /// Without it, for this reason.
    Broken(String),
}

/// Blocks that follow each other.
#[derive(Debug, Default)]
struct Run {
    readouts: Vec<Block>,
    /// First bytes of blocks of physiology.
    physiology: Vec<u64>,
    /// The place behind the last block.
    next: u64,
    /// What stands at that place, where no block does.
    end: Option<End>,
}

impl Run {
    /// The blocks from a place on; none where no block begins at the place.
    fn starting_at(mut self, place: u64, generation: Generation) -> Option<Self> {
        let start = |block: &Block| block.place - generation.before_coils();
        let readouts = self.readouts.partition_point(|block| start(block) < place);
        let physiology = self.physiology.partition_point(|start| *start < place);
        let begins = self.readouts.get(readouts).is_some_and(|block| start(block) == place)
            || self.physiology.get(physiology) == Some(&place)
            || self.next == place;
        self.readouts.drain(..readouts);
        self.physiology.drain(..physiology);
        begins.then_some(self)
    }
}

/// A measurement whose blocks are listed.
struct Source<'a> {
    file: &'a TwixFile,
    /// The byte behind the measurement.
    end: u64,
    /// The first block.
    first: u64,
    monitor: &'a Monitor<'a>,
}

impl Source<'_> {
    /// The number of the measurement in the head at a place, which all heads of a measurement state; none
    /// where it is 0 or beyond the end.
    fn number(&self, place: u64) -> Result<Option<u32>> {
        Ok(self.numbers(place)?.map(|[number, _]| number).filter(|number| *number != 0))
    }

    /// The numbers of the measurement and of the readout in the head at a place.
    fn numbers(&self, place: u64) -> Result<Option<[u32; 2]>> {
        if self.end.saturating_sub(place) < NUMBERS {
            return Ok(None);
        }
        let mut head = [0; NUMBERS as usize];
        self.file.fill(place, &mut head)?;
        Ok(word(&head, NUMBER as usize).zip(word(&head, 8)).map(|(own, readout)| [own, readout]))
    }

    /// Follows the blocks that begin from `place` on, until one begins at `limit` or behind it.
    ///
    /// Errors: a file that cannot be read; [`rayspin_core::Error::Interrupted`].
    fn follow(&self, place: u64, limit: u64) -> Result<Run> {
        let generation = self.file.generation;
        let mut run = Run { next: place, ..Run::default() };
        let mut window = Window::default();
        let mut last = u64::MAX;
        while run.next < limit {
            let place = run.next;
            let left = self.end.saturating_sub(place);
            if left < generation.head() {
                run.end = Some(End::Broken(NO_MARK.to_owned()));
                break;
            }
            if run.readouts.len().is_multiple_of(4096) {
                self.monitor.check().map_err(|error| Error::core(&self.file.path, error))?;
            }
            let ahead = if last <= SHORT { WINDOW.min(left) } else { generation.head() };
            let head = window.at(self.file, place, generation.head(), ahead)?;
            let length = match read_head(head, place, generation) {
                Head::End => {
                    run.end = Some(End::Mark);
                    break;
                }
                Head::Physiology(length) => {
                    if length <= left {
                        run.physiology.push(place);
                    }
                    length
                }
                Head::Readout(block) => {
                    let length = generation.before_coils() + block.length(generation);
                    if length <= left {
                        run.readouts.push(block);
                    }
                    length
                }
                Head::Impossible(why) => {
                    run.end = Some(End::Broken(format!("no block begins at byte {place} ({why})")));
                    break;
                }
            };
            if length > left {
                run.end = Some(End::Broken(format!("its last block has {left} of {length} bytes")));
                break;
            }
            run.next += length;
            last = length;
        }
        Ok(run)
    }

    /// A place from `from` up to `limit` where a block seems to begin: its head, and the head behind it,
    /// state the number of the measurement.
    fn seeming_block(&self, from: u64, limit: u64, number: u32, is_needed: &dyn Fn() -> bool) -> Option<u64> {
        let wanted = number.to_le_bytes();
        let finder = memmem::Finder::new(&wanted);
        let limit = limit.min(self.end).min(from + SEARCH);
        let mut bytes = Vec::new();
        let mut start = from;
        let mut left = match self.file.generation {
            Generation::Vb => MOST_PLACES[0],
            Generation::Vd => MOST_PLACES[1],
        };
        while start < limit {
            self.monitor.check().ok()?;
            if !is_needed() {
                return None;
            }
            // The number of a head that begins in this chunk may stand behind it.
            bytes.resize((CHUNK + 2 * NUMBER).min(self.end - start) as usize, 0);
            self.file.fill(start, &mut bytes).ok()?;
            for found in finder.find_iter(&bytes) {
                let place = (start + found as u64).checked_sub(NUMBER).filter(|place| *place >= from);
                let block = place.and_then(|place| self.seems(place, number));
                if block.is_some() {
                    return block;
                }
                left -= 1;
                if left == 0 {
                    return None;
                }
            }
            start += CHUNK;
        }
        None
    }

    /// The block that seems to begin at a place where a head of a block or of a coil begins; in VB, the next
    /// block.
    fn seems(&self, place: u64, number: u32) -> Option<u64> {
        let generation = self.file.generation;
        // Lengths of blocks are multiples of 8 bytes.
        if !(place - self.first).is_multiple_of(8) || self.end - place < generation.head() {
            return None;
        }
        let mut head = [0; 192];
        let head = head.get_mut(..generation.head() as usize)?;
        self.file.fill(place, head).ok()?;
        let follows = |place: u64| self.numbers(place).ok().flatten().filter(|[own, _]| *own == number);
        match read_head(head, place, generation) {
            Head::Physiology(length) => follows(place.checked_add(length)?).map(|_| place),
            Head::Readout(block) if generation == Generation::Vd => {
                follows(block.place + block.length(generation)).map(|_| place)
            }
            // All coils of a block state the number of the readout.
            Head::Readout(block) => {
                let own = word(head, 8)?;
                let coil = generation.coil_length(block.samples);
                let places = (1..=u64::from(block.coils)).map(|coils| place + coils * coil);
                let mut numbers = places.map_while(|place| Some((place, follows(place)?)));
                numbers.find(|(_, [_, readout])| *readout != own).map(|(place, _)| place)
            }
            Head::End | Head::Impossible(_) => None,
        }
    }
}

/// Bytes of a file that are in memory.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// `length` bytes from `place` on. If they are not in memory, `ahead` bytes are read.
    fn at(&mut self, file: &TwixFile, place: u64, length: u64, ahead: u64) -> Result<&[u8]> {
        let behind = self.start + self.bytes.len() as u64;
        if place < self.start || place + length > behind {
            self.bytes.resize(ahead.max(length) as usize, 0);
            self.start = place;
            file.fill(place, &mut self.bytes)?;
        }
        let first = (place - self.start) as usize;
        Ok(self.bytes.get(first..first + length as usize).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::samples::{self, Part, Readout, file, measurement, vb_first};
    use super::super::text::Texts;
    use super::*;

    /// Readouts of several lengths, and physiology between them.
    fn parts(rng: &mut ChaCha8Rng) -> Vec<Part> {
        let mut parts: Vec<Part> = (0..60)
            .map(|line| match rng.random_range(0..5) {
                0 => Part::Physiology(32 * rng.random_range(1..9)),
                kind => Part::Readout(Readout {
                    samples: [8, 8, 8, 40][kind - 1],
                    coils: rng.random_range(1..4),
                    counters: [line, 0, 0, 0, 0, 0, 0, 0, 0],
                    ..Readout::default()
                }),
            })
            .collect();
        parts.push(Part::End);
        parts
    }

    /// Everything that a list says; the error of a measurement without blocks.
    fn said(path: &std::path::Path, piece: u64) -> (usize, String) {
        let file = TwixFile::open(path).unwrap();
        let own = file.measurements.first().unwrap();
        let header = Texts::read(&file, own).unwrap().length;
        match Blocks::of_pieces(&file, own, header, piece, &Monitor::silent()) {
            Ok(blocks) => (blocks.readouts.len(), format!("{blocks:?}")),
            Err(error) => (0, error.to_string()),
        }
    }

    #[test]
    fn pieces_give_the_list_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dat");
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let texts = samples::texts("");
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        for round in 0..60 {
            let later = round % 2 == 0;
            let bytes = measurement(&texts, &parts(&mut rng), later);
            let mut bytes = if later { file(&[("small", bytes)], |_| 0) } else { vb_first(&bytes) };
            // Behind the header: half of the files are altered, and some are cut.
            let behind = 13_000.min(bytes.len() - 1);
            for _ in 0..if round % 4 < 2 { 0 } else { 6 } {
                let place = rng.random_range(behind..bytes.len());
                bytes[place] = rng.random();
            }
            if round % 3 == 2 {
                bytes.truncate(rng.random_range(behind..bytes.len()));
            }
            std::fs::write(&path, &bytes).unwrap();
            let whole = said(&path, u64::MAX / 4);
            assert!(round % 4 >= 2 || round % 3 == 2 || whole.0 > 20, "{}", whole.0);
            for piece in [256, 1000, 1024, 4096, 9999] {
                assert_eq!(said(&path, piece), whole, "round {round}, pieces of {piece} bytes");
            }
        }
    }

    #[test]
    fn pieces_find_blocks_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dat");
        let texts = samples::texts("");
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for later in [false, true] {
            let bytes = measurement(&texts, &parts(&mut rng), later);
            let bytes = if later { file(&[("small", bytes)], |_| 0) } else { vb_first(&bytes) };
            std::fs::write(&path, bytes).unwrap();
            let file = TwixFile::open(&path).unwrap();
            let own = file.measurements.first().unwrap();
            let first = own.start + Texts::read(&file, own).unwrap().length;
            let monitor = Monitor::silent();
            let source = Source { file: &file, end: own.end, first, monitor: &monitor };
            let number = source.number(first).unwrap().unwrap();
            let whole = source.follow(first, own.end).unwrap();
            let starts: Vec<u64> =
                whole.readouts.iter().map(|b| b.place - file.generation.before_coils()).collect();
            // From any place but among the last blocks, the block that seems to begin is one.
            for place in (first + 8..starts[50.min(starts.len() - 3)]).step_by(40) {
                let found = source.seeming_block(place, own.end, number, &|| true).unwrap();
                assert!(starts.contains(&found) || whole.physiology.contains(&found), "{place}: {found}");
                assert!(found - place < 4000);
            }
        }
    }

    /// A measurement with junk behind its first block: `copies` of its number, and then its other blocks.
    fn with_junk(later: bool, copies: usize, path: &std::path::Path) -> (TwixFile, u64, u64, u32) {
        let texts = samples::texts("");
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let bytes = measurement(&texts, &parts(&mut rng), later);
        let mut bytes = if later { file(&[("small", bytes)], |_| 0) } else { vb_first(&bytes) };
        std::fs::write(path, &bytes).unwrap();
        let file = TwixFile::open(path).unwrap();
        let own = file.measurements.first().unwrap();
        let first = own.start + Texts::read(&file, own).unwrap().length;
        let monitor = Monitor::silent();
        let source = Source { file: &file, end: own.end, first, monitor: &monitor };
        let number = source.number(first).unwrap().unwrap();
        let next = source.follow(first, first + 1).unwrap().next;
        let mut junk = number.to_le_bytes().repeat(copies);
        junk.resize(junk.len().next_multiple_of(8), 0);
        let behind = next + junk.len() as u64;
        bytes.splice(next as usize..next as usize, junk);
        std::fs::write(path, &bytes).unwrap();
        (TwixFile::open(path).unwrap(), first, behind, number)
    }

    #[test]
    fn the_search_for_a_block_stops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.dat");
        for (later, most) in [(false, MOST_PLACES[0]), (true, MOST_PLACES[1])] {
            let search = |copies: usize, monitor: &Monitor<'_>, is_needed: &dyn Fn() -> bool| {
                let (file, first, behind, number) = with_junk(later, copies, &path);
                let end = std::fs::metadata(&path).unwrap().len();
                let source = Source { file: &file, end, first, monitor };
                let from = behind - 4 * copies.next_multiple_of(2) as u64;
                // In VB, a head leads to the next block.
                let next = source.follow(behind, behind + 1).unwrap_or_default().next;
                (source.seeming_block(from, end, number, is_needed), if later { behind } else { next })
            };
            let silent = Monitor::silent();
            // The block behind the junk is the last place that is looked at, or one too many.
            let (found, block) = search(most - 1, &silent, &|| true);
            assert_eq!(found, Some(block), "{later}");
            assert_eq!(search(most, &silent, &|| true).0, None, "{later}");
            // Where the blocks before end, and where the run is interrupted, nothing is looked for.
            assert_eq!(search(2, &silent, &|| false).0, None);
            let stop = AtomicBool::new(true);
            assert_eq!(search(2, &Monitor::new(&rayspin_core::Silent, Some(&stop)), &|| true).0, None);
            assert!(search(2, &silent, &|| true).0.is_some());
        }
    }
}
