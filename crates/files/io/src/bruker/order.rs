//! The order of scans in a file: loops of the pulse program, from the outermost to the innermost
//!
//! ```text
//! repetition, group of lines, object (a slice, or an echo of one), line of the group
//! ```
//!
//! A group has `ACQ_phase_factor` lines, as RARE reads them after one excitation. Objects come in the order
//! of `ACQ_obj_order`; without it, slices come in the order of `PVM_ObjOrderList`. The lines that they read
//! are the steps of `PVM_EncSteps1` and `PVM_EncSteps2`.

use rayspin_scan::mri::Counters;

use super::folder::Folder;
use super::jcamp::MOST;
use crate::Result;

/// Values of a counter at most.
const MOST_COUNTED: usize = 65_536;

/// The images of a scan.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    /// Numbers of objects, in the order in which they were acquired.
    pub(super) order: Vec<usize>,
    pub(super) repetitions: usize,
    pub(super) slices: usize,
    /// Numbers of slices, likewise.
    pub(super) slice_order: Vec<usize>,
    /// What objects of all repetitions count, the fastest first.
    loops: Vec<(Loop, usize)>,
}

/// What images are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loop {
    Slice,
    Echo,
    Phase,
    Repetition,
}

impl Objects {
    /// What had to be assumed goes to `notes`.
    ///
    /// Errors: counts that are absent, 0 or do not fit each other; an order that is no order.
    pub(super) fn of(folder: &Folder, notes: &mut Vec<String>) -> Result<Self> {
        let Folder { acqp, method, .. } = folder;
        let least = |name: &str| match acqp.expect_count(name)? {
            count @ 1..=MOST_COUNTED => Ok(count),
            other => Err(acqp.field(name, format!("1 to {MOST_COUNTED}"), other)),
        };
        let (objects, repetitions, slices) = (least("NI")?, least("NR")?, least("NSLICES")?);
        if !objects.is_multiple_of(slices) {
            return Err(acqp.field("NI", format!("a multiple of the {slices} slices (NSLICES)"), objects));
        }
        let order = match acqp.counts("ACQ_obj_order")? {
            Some(order) => Some(permutation(folder, "ACQ_obj_order", Some(order), objects)?),
            None => None,
        };
        let own = method.counts("PVM_ObjOrderList")?.filter(|own| own.len() == slices);
        let listed = own.is_some();
        let slice_order = match own {
            Some(own) => permutation(folder, "PVM_ObjOrderList", Some(own), slices)?,
            None => match &order {
                Some(order) if objects == slices => order.clone(),
                _ => (0..slices).collect(),
            },
        };
        let order = order.unwrap_or_else(|| {
            let of_slice = objects / slices;
            if slices > 1 {
                let instead = match listed {
                    true => "in the order of PVM_ObjOrderList",
                    false => "in ascending order, which a scan of interleaved slices is not",
                };
                notes.push(format!("acqp has no ACQ_obj_order: slices are taken {instead}"));
            }
            slice_order
                .iter()
                .flat_map(|slice| (0..of_slice).map(move |own| slice * of_slice + own))
                .collect()
        });
        let loops = match seen(folder, objects * repetitions, slices) {
            Some(loops) => loops,
            None => {
                let echoes = acqp.count("ACQ_n_echo_images")?.unwrap_or(1).max(1);
                let echoes = if objects % (echoes * slices) == 0 { echoes } else { 1 };
                let others = objects / (echoes * slices) * repetitions;
                vec![(Loop::Echo, echoes), (Loop::Slice, slices), (Loop::Repetition, others)]
            }
        };
        let objects = Self { order, repetitions, slices, slice_order, loops };
        for kind in [Loop::Slice, Loop::Echo, Loop::Phase, Loop::Repetition] {
            let mut count = objects.loops.iter().filter(|(own, _)| *own == kind).map(|(_, count)| *count);
            let count = count.try_fold(1usize, usize::checked_mul).unwrap_or(usize::MAX);
            if count > MOST_COUNTED {
                return Err(acqp.field(
                    "NI and NR",
                    format!("at most {MOST_COUNTED} images of a kind"),
                    count,
                ));
            }
        }
        Ok(objects)
    }

    /// The counters of an image.
    pub(super) fn counters(&self, object: usize, repetition: usize) -> Counters {
        let mut rest = repetition * self.order.len() + object;
        let mut counters = Counters::default();
        let mut step = 1usize;
        for (kind, count) in &self.loops {
            let value = rest % count;
            rest /= count;
            // Counts were checked.
            match kind {
                Loop::Slice => counters.slice = value as u16,
                Loop::Echo => counters.contrast = value as u16,
                Loop::Phase => counters.phase = value as u16,
                Loop::Repetition => {
                    counters.repetition = counters.repetition.saturating_add((value * step) as u16);
                    step = step.saturating_mul(*count);
                }
            }
        }
        counters
    }

    /// The first image of a slice, as images are counted.
    pub(super) fn frame_of_slice(&self, slice: usize) -> usize {
        let before = self.loops.iter().take_while(|(kind, _)| *kind != Loop::Slice).map(|(_, count)| count);
        before.product::<usize>().saturating_mul(slice)
    }

    /// The echo of an object.
    pub(super) fn echo(&self, object: usize) -> usize {
        usize::from(self.counters(object, 0).contrast)
    }
}

/// Loops over images as `visu_pars` states them; none where they are not as many images.
fn seen(folder: &Folder, images: usize, slices: usize) -> Option<Vec<(Loop, usize)>> {
    let groups = folder.visu.as_ref()?.structs("VisuFGOrderDesc");
    let loops: Vec<(Loop, usize)> = groups
        .iter()
        .map(|group| {
            let count = group.first()?.parse().ok().filter(|count| (1..=MOST_COUNTED).contains(count))?;
            let kind = match group.get(1)?.as_str() {
                "FG_SLICE" => Loop::Slice,
                "FG_ECHO" => Loop::Echo,
                "FG_MOVIE" | "FG_CARDIAC_MOVIE" => Loop::Phase,
                _ => Loop::Repetition,
            };
            Some((kind, count))
        })
        .collect::<Option<_>>()?;
    let product = loops.iter().try_fold(1usize, |product, (_, count)| product.checked_mul(*count));
    let own: usize = loops.iter().filter(|(kind, _)| *kind == Loop::Slice).map(|(_, count)| count).product();
    let once = |kind| loops.iter().filter(|(own, _)| *own == kind).count() <= 1;
    let sound = product == Some(images)
        && own == slices
        && once(Loop::Slice)
        && once(Loop::Echo)
        && once(Loop::Phase);
    sound.then_some(loops)
}

/// Errors: a list that does not have each number up to `count` once.
fn permutation(folder: &Folder, name: &str, list: Option<Vec<usize>>, count: usize) -> Result<Vec<usize>> {
    let Some(list) = list else { return Ok((0..count).collect()) };
    let mut there = vec![false; count];
    let fits = list.len() == count
        && list
            .iter()
            .all(|number| there.get_mut(*number).is_some_and(|seen| !std::mem::replace(seen, true)));
    if fits {
        return Ok(list);
    }
    let file = if folder.acqp.has(name) { &folder.acqp } else { &folder.method };
    Err(file.field(
        name,
        format!("each number below {count} once"),
        format!("{} numbers, others", list.len()),
    ))
}

/// Steps of both phase encodings, in the order in which they were acquired.
pub(super) fn steps(folder: &Folder, dims: usize) -> Result<Vec<[i32; 2]>> {
    let method = &folder.method;
    let own = |name: &str| {
        let Some(numbers) = method.numbers(name, MOST)? else { return Ok(None) };
        let steps = numbers
            .iter()
            .map(|step| (step.fract() == 0.0 && step.abs() <= 32_767.0).then_some(*step as i32));
        let steps = steps.collect::<Option<Vec<i32>>>();
        steps.map(Some).ok_or_else(|| method.field(name, "whole numbers from -32767 to 32767", "others"))
    };
    // ParaVision 360 has a list of the pairs of both steps.
    if let Some(total) = method.count("PVM_EncGenTotalSteps")?.filter(|total| *total > 0)
        && let Some(first) = own("PVM_EncGenSteps1")?
    {
        let second = own("PVM_EncGenSteps2")?.unwrap_or_default();
        let second = if dims == 3 { second } else { vec![0; first.len()] };
        if first.len() != total || second.len() != total {
            let expected = format!("{total} steps (PVM_EncGenTotalSteps)");
            let found = format!("{} and {}", first.len(), second.len());
            return Err(method.field("PVM_EncGenSteps1 and PVM_EncGenSteps2", expected, found));
        }
        return Ok(first.into_iter().zip(second).map(|(first, second)| [first, second]).collect());
    }
    if method.is_on("PVM_EncCS") {
        let expected = "the steps of compressed sensing";
        return Err(method.field("PVM_EncGenSteps1", expected, "nothing, and PVM_EncCS Yes"));
    }
    let first = own("PVM_EncSteps1")?;
    let first =
        first.ok_or_else(|| method.field("PVM_EncSteps1", "the steps of the phase encoding", "nothing"))?;
    let second = match dims {
        3 => own("PVM_EncSteps2")?.ok_or_else(|| {
            method.field("PVM_EncSteps2", "the steps of the second phase encoding", "nothing")
        })?,
        _ => vec![0],
    };
    if first.len().checked_mul(second.len()).is_none_or(|count| count > MOST || count == 0) {
        let found = format!("{} × {}", first.len(), second.len());
        return Err(method.field(
            "PVM_EncSteps1 and PVM_EncSteps2",
            format!("1 to {MOST} pairs of steps"),
            found,
        ));
    }
    Ok(second.iter().flat_map(|second| first.iter().map(|first| [*first, *second])).collect())
}

/// Lines of an object that follow each other. Errors: a number that does not divide the lines.
pub(super) fn group(folder: &Folder, lines: usize) -> Result<usize> {
    let rare = folder.method_name().to_ascii_uppercase().contains("RARE");
    let (file, name) = match rare && folder.method.has("PVM_RareFactor") {
        true => (&folder.method, "PVM_RareFactor"),
        false => (&folder.acqp, "ACQ_phase_factor"),
    };
    let factor = file.count(name)?.unwrap_or(1).max(1);
    if !lines.is_multiple_of(factor) {
        return Err(file.field(name, format!("a divisor of the {lines} lines"), factor));
    }
    Ok(factor)
}
