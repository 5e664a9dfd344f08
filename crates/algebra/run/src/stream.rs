//! A stream of many images: one image is read while the previous one is computed and the one before that is
//! written.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use rayspin_core::{Error, Result};
use serde::Serialize;

/// Number of items that wait to be computed, and of results that wait to be written.
const QUEUE: usize = 1;
/// Number of items that are read before they are needed: those in the queue and the one that the reader
/// holds.
pub const ITEMS_AHEAD: usize = QUEUE + 1;
/// Number of results that are not yet written: the one that is being made, those in the queue and the one
/// that the writer holds.
pub const RESULTS_BEHIND: usize = QUEUE + 2;

/// Seconds of work of each part of a stream, and of the whole stream. The whole is shorter than the sum if
/// the parts overlapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct StreamTimes {
    /// The source: reading, and making items.
    pub read: f64,
    /// The computation.
    pub reconstruct: f64,
    /// The sink.
    pub write: f64,
    /// From the start of the stream to the last result written.
    pub wall: f64,
}

/// Returns the next item, or `None` after the last. Adds its assumptions to the notes.
pub type Source<'a, I, E> = dyn FnMut(&mut Vec<String>) -> std::result::Result<Option<I>, E> + Send + 'a;
/// Takes each result as soon as it is done.
pub type Sink<'a, O, E> = dyn FnMut(O) -> std::result::Result<(), E> + Send + 'a;

/// The two ends of a stream.
pub struct Endpoints<'a, I, O, E> {
    /// Reads items.
    pub source: &'a mut Source<'a, I, E>,
    /// Writes results.
    pub sink: &'a mut Sink<'a, O, E>,
}

/// Computes items as they come. `source` reads them and `sink` writes each result, both on threads of their
/// own. At most [`ITEMS_AHEAD`] items and [`RESULTS_BEHIND`] results are in memory.
///
/// `compute` gets each item, the source's notes on it, and a function that takes results. After the last item
/// it is called once more without an item. If the function returns `false`, the sink has failed and takes no
/// more results.
///
/// Errors: the first error of source, computation or sink. The sink has got every result that was complete
/// before.
pub fn stream<I: Send, O: Send, E: From<Error> + Send>(
    ends: Endpoints<'_, I, O, E>,
    mut compute: impl FnMut(Option<I>, Vec<String>, &mut dyn FnMut(O) -> bool) -> Result<()>,
) -> std::result::Result<StreamTimes, E> {
    let begun = Instant::now();
    let Endpoints { source, sink } = ends;
    let (items_in, items) = sync_channel(QUEUE);
    let (results, results_out) = sync_channel(QUEUE);
    let mut seconds = 0.0;
    let ends = std::thread::scope(|scope| {
        let refused = |error: std::io::Error| Error::Device {
            what: "starting a thread that reads or writes".to_owned(),
            detail: error.to_string(),
        };
        let start = std::thread::Builder::new;
        let reader = start().spawn_scoped(scope, move || read(source, &items_in)).map_err(refused)?;
        let writer = start().spawn_scoped(scope, move || write(sink, &results_out)).map_err(refused)?;
        let done = computing(&items, &results, &mut seconds, &mut compute);
        // Closing the queues stops both ends.
        drop((items, results));
        Ok::<_, Error>((join(reader), done, join(writer)))
    });
    let ((read, given), done, (write, taken)) = ends?;
    taken?;
    // If the source failed, the items ended early; the source's error comes first.
    given?;
    done?;
    Ok(StreamTimes { read, reconstruct: seconds, write, wall: begun.elapsed().as_secs_f64() })
}

type Sent<I> = (I, Vec<String>);

fn computing<I, O>(
    items: &Receiver<Sent<I>>,
    results: &SyncSender<O>,
    seconds: &mut f64,
    compute: &mut impl FnMut(Option<I>, Vec<String>, &mut dyn FnMut(O) -> bool) -> Result<()>,
) -> Result<()> {
    let mut waited = 0.0;
    let mut gone = false;
    let mut emit = |result: O| {
        let start = Instant::now();
        gone |= results.send(result).is_err();
        waited += start.elapsed().as_secs_f64();
        !gone
    };
    let start = Instant::now();
    let mut idle = 0.0;
    let mut ended = Ok(());
    let mut last = Instant::now();
    for (item, notes) in items {
        idle += last.elapsed().as_secs_f64();
        ended = compute(Some(item), notes, &mut emit);
        if ended.is_err() {
            break;
        }
        last = Instant::now();
    }
    if ended.is_ok() {
        idle += last.elapsed().as_secs_f64();
        ended = compute(None, Vec::new(), &mut emit);
    }
    *seconds = (start.elapsed().as_secs_f64() - idle - waited).max(0.0);
    // The sink failed, and returns the reason.
    if gone { Ok(()) } else { ended }
}

fn read<I, E>(
    source: &mut Source<'_, I, E>,
    items: &SyncSender<Sent<I>>,
) -> (f64, std::result::Result<(), E>) {
    let (mut seconds, mut said) = (0.0, 0);
    let mut notes = Vec::new();
    loop {
        let start = Instant::now();
        let item = source(&mut notes);
        seconds += start.elapsed().as_secs_f64();
        let item = match item {
            Ok(Some(item)) => item,
            Ok(None) => return (seconds, Ok(())),
            Err(error) => return (seconds, Err(error)),
        };
        // A source adds only new notes to its list, so the list stays with the source.
        let new = notes[said..].to_vec();
        said = notes.len();
        if items.send((item, new)).is_err() {
            return (seconds, Ok(()));
        }
    }
}

fn write<O, E>(sink: &mut Sink<'_, O, E>, results: &Receiver<O>) -> (f64, std::result::Result<(), E>) {
    let mut seconds = 0.0;
    for result in results {
        let start = Instant::now();
        let taken = sink(result);
        seconds += start.elapsed().as_secs_f64();
        if taken.is_err() {
            return (seconds, taken);
        }
    }
    (seconds, Ok(()))
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams the numbers below `count`; results are sums of two. `broken` is what fails: source,
    /// computation, or sink.
    fn sums(count: usize, broken: Option<&str>) -> (Vec<usize>, std::result::Result<StreamTimes, Error>) {
        let mut next = 0;
        let fail = |what: &str| Error::value(what, "work", "failure");
        let mut source = |notes: &mut Vec<String>| {
            if next == 3 && broken == Some("source") {
                return Err(fail("source"));
            }
            next += 1;
            notes.push(format!("item {next}"));
            Ok((next <= count).then_some(next - 1))
        };
        let mut taken = Vec::new();
        let mut sink = |sum: usize| {
            if taken.len() == 1 && broken == Some("sink") {
                return Err(fail("sink"));
            }
            taken.push(sum);
            Ok(())
        };
        let (mut pair, mut told) = (Vec::new(), Vec::new());
        let ends = Endpoints { source: &mut source, sink: &mut sink };
        let done = stream(ends, |item, notes, emit| {
            told.extend(notes);
            match item {
                Some(3) if broken == Some("computation") => return Err(fail("computation")),
                Some(item) => pair.push(item),
                None => {}
            }
            if pair.len() == 2 || (item.is_none() && !pair.is_empty()) {
                emit(pair.drain(..).sum());
            }
            Ok(())
        });
        if broken.is_none() {
            assert_eq!(told, (1..=count).map(|n| format!("item {n}")).collect::<Vec<_>>());
        }
        (taken, done)
    }

    #[test]
    fn every_item_is_computed_in_order_and_the_rest_at_the_end() {
        let (taken, done) = sums(5, None);
        assert_eq!(taken, [1, 5, 4]);
        let times = done.unwrap();
        assert!(times.wall >= times.reconstruct);
        assert_eq!(sums(0, None).0, Vec::<usize>::new());
    }

    #[test]
    fn what_fails_is_what_is_told_and_what_was_complete_is_kept() {
        for what in ["source", "computation", "sink"] {
            let (taken, done) = sums(9, Some(what));
            assert!(done.unwrap_err().to_string().contains(what), "{what}");
            assert_eq!(taken[0], 1, "{what}");
        }
    }
}
