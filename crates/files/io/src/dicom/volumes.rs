//! Which slices of a series are one volume: echoes, points in time and others share their places.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayspin_core::slices::{SAME_PLACE, median, near};
use rayspin_core::vector::{cross, dot};

use super::plane::{Plane, Scopes};
use super::series::{FRAMES_APART, Stack, expect_alike};
use super::tag::{self, Tag};
use crate::{Error, Result};

/// Slices whose heights differ by no more than this part of a pixel have rounded numbers for one place.
const ROUNDED: f64 = 1e-3;

/// What may tell volumes apart: elements with the group that holds them among functional groups, in the order
/// in which volumes are sorted, the first one slowest.
const TELLING: [(Tag, Tag); 10] = [
    (tag::TEMPORAL_POSITION, tag::FRAME_CONTENT),
    (tag::TEMPORAL_INDEX, tag::FRAME_CONTENT),
    (tag::ACQUISITION, tag::FRAME_CONTENT),
    (tag::TRIGGER_TIME, tag::FRAME_CONTENT),
    (tag::B_VALUE, tag::MR_DIFFUSION),
    (tag::FLIP_ANGLE, tag::MR_TIMING),
    (tag::INVERSION_TIME, tag::MR_TIMING),
    (tag::ECHO_NUMBERS, tag::MR_ECHO),
    (tag::ECHO_TIME, tag::MR_ECHO),
    (tag::EFFECTIVE_ECHO_TIME, tag::MR_ECHO),
];
/// Places in [`TELLING`], in the order in which they are tried. The elements of the first row number volumes
/// and are taken wherever they differ. The others may differ from slice to slice, too.
const NUMBERS: [usize; 3] = [0, 1, 7];
const OTHERS: [usize; 7] = [8, 9, 6, 5, 4, 2, 3];

/// The values of a slice, in the order of [`TELLING`]. What cannot be read tells nothing.
pub(super) type Telling = [Option<f64>; TELLING.len()];

pub(super) fn telling(scopes: &Scopes<'_>) -> Telling {
    TELLING.map(|(tag, group)| {
        let holder = scopes.of(group, tag);
        let number = || holder.text(tag)?.split('\\').next()?.trim().parse::<f64>().ok();
        let value = match tag {
            tag::TEMPORAL_INDEX => holder.long(tag).map(f64::from),
            tag::B_VALUE | tag::EFFECTIVE_ECHO_TIME => holder.double(tag),
            _ => number(),
        };
        value.filter(|value| value.is_finite())
    })
}

/// What tells a volume from others: values of some elements, after its rank among images of the same place.
type Key = (usize, Vec<Option<f64>>);

fn by_key(a: &Key, b: &Key) -> Ordering {
    let values =
        |key: &Key| key.1.iter().map(|value| value.unwrap_or(f64::NEG_INFINITY)).collect::<Vec<f64>>();
    let (of_a, of_b) = (values(a), values(b));
    let differ = of_a.iter().zip(&of_b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
    a.0.cmp(&b.0).then(differ.unwrap_or(Ordering::Equal))
}

/// The volumes of a series, and a sentence on what tells them apart where there are several. Slices that need
/// not share places are one volume, whose [`Stack`] checks them.
///
/// Errors: slices that share a place and have nothing that tells them apart; volumes with other places than
/// the others have.
pub(super) fn split(planes: Vec<Plane>) -> Result<(Vec<Vec<Plane>>, Option<String>)> {
    let Some(places) = places(&planes) else { return Ok((vec![planes], None)) };
    let count = places.iter().max().map_or(0, |last| last + 1);
    if count == planes.len() {
        return Ok((vec![planes], None));
    }
    expect_alike(&planes)?;
    let (used, ranks) = elements(&planes, &places, count)?;
    let key = |index: usize| -> Key {
        (ranks[index], used.iter().map(|&element| planes[index].telling[element]).collect())
    };
    let mut order: Vec<usize> = (0..planes.len()).collect();
    order.sort_by(|&a, &b| by_key(&key(a), &key(b)).then(places[a].cmp(&places[b])));
    let volumes: Vec<&[usize]> = order.chunk_by(|&a, &b| by_key(&key(a), &key(b)).is_eq()).collect();
    let name = |volume: &[usize]| -> String {
        let (rank, values) = key(volume[0]);
        let rank =
            (ranks.iter().any(|&rank| rank > 0)).then(|| format!("{} in InstanceNumber", ordinal(rank)));
        let values = used.iter().zip(values).map(|(&element, value)| {
            let value = value.map_or_else(|| "none".to_owned(), |value| value.to_string());
            format!("{} {value}", TELLING[element].0.name)
        });
        values.chain(rank).collect::<Vec<_>>().join(", ")
    };
    for volume in &volumes {
        let here: Vec<usize> = volume.iter().map(|&index| places[index]).collect();
        if let Some(missing) = (0..count).find(|place| !here.contains(place)) {
            let other = (0..planes.len()).find(|&index| places[index] == missing).unwrap_or_default();
            let found = format!(
                "{} of {count} in the volume of {}: none where {} lies",
                volume.len(),
                name(volume),
                planes[other]
            );
            return Err(Error::field(
                &planes[volume[0]].file,
                "series",
                "the same slices in each volume",
                found,
            )
            .with_hint("add the missing slices, or give each volume a folder of its own"));
        }
    }
    let ranks_count = ranks.iter().max().map_or(0, |last| last + 1);
    let mut told: Vec<String> = used.iter().map(|&element| TELLING[element].0.name.to_owned()).collect();
    if ranks_count > 1 {
        told.push("the order of InstanceNumber at each place".to_owned());
    }
    let note = format!("the series is {} volumes, told apart by {}", volumes.len(), told.join(" and "));
    let sorted: Vec<Vec<usize>> = volumes.into_iter().map(<[usize]>::to_vec).collect();
    let mut left: Vec<Option<Plane>> = planes.into_iter().map(Some).collect();
    let volumes =
        sorted.into_iter().map(|own| own.into_iter().filter_map(|index| left[index].take()).collect());
    Ok((volumes.collect(), Some(note)))
}

fn ordinal(rank: usize) -> String {
    format!("number {}", rank + 1)
}

/// The number of each slice's place along the normal; none where slices have no places.
fn places(planes: &[Plane]) -> Option<Vec<usize>> {
    let [row, column] = planes.first()?.axes?;
    let pixel = planes[0].spacing.map_or(1.0, |[y, x]| y.min(x));
    let normal = cross(row, column);
    let heights: Vec<f64> =
        planes.iter().map(|plane| Some(dot(plane.position?, normal))).collect::<Option<_>>()?;
    let mut order: Vec<usize> = (0..planes.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let steps = order.windows(2).map(|two| heights[two[1]] - heights[two[0]]);
    let usual = median(steps.filter(|&step| step > ROUNDED * pixel).collect()).unwrap_or(0.0);
    let mut places = vec![0; planes.len()];
    for two in order.windows(2) {
        let step = heights[two[1]] - heights[two[0]];
        places[two[1]] = places[two[0]] + usize::from(step > (SAME_PLACE * usual).max(ROUNDED * pixel));
    }
    Some(places)
}

/// The elements that tell volumes apart, and the rank of each slice by `InstanceNumber` among those that they
/// do not tell apart; 0 where they do.
///
/// Errors: slices of one place with nothing that tells them apart.
fn elements(planes: &[Plane], places: &[usize], count: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); count];
    places.iter().enumerate().for_each(|(index, &place)| at[place].push(index));
    let bits = |index: usize, element: usize| planes[index].telling[element].map(f64::to_bits);
    let values = |place: &Vec<usize>, element: usize| -> Vec<Option<u64>> {
        let mut all: Vec<_> = place.iter().map(|&index| bits(index, element)).collect();
        all.sort_unstable();
        all
    };
    let differs =
        |element: usize| at.iter().any(|place| values(place, element).windows(2).any(|two| two[0] != two[1]));
    let fullest = at.iter().map(Vec::len).max().unwrap_or(0);
    // Slices of a volume share the values of what numbers volumes.
    let is_shared = |element: usize| {
        let mut full = at.iter().filter(|place| place.len() == fullest).map(|place| values(place, element));
        let first = full.next();
        full.all(|other| Some(&other) == first.as_ref())
    };
    let mut used: Vec<usize> = NUMBERS.into_iter().filter(|&element| differs(element)).collect();
    let group = |used: &[usize], index: usize| -> (usize, Vec<Option<u64>>) {
        (places[index], used.iter().map(|&element| bits(index, element)).collect())
    };
    let groups = |used: &[usize]| {
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        (0..planes.len()).for_each(|index| groups.entry(group(used, index)).or_default().push(index));
        groups
    };
    for element in OTHERS {
        let before = groups(&used).len();
        if before == planes.len() {
            break;
        }
        let with = [&used[..], &[element]].concat();
        if differs(element) && is_shared(element) && groups(&with).len() > before {
            used = with;
        }
    }
    used.sort_unstable();
    let mut ranks = vec![0; planes.len()];
    let groups = groups(&used);
    let alike = groups.values().map(Vec::len).max().unwrap_or(0);
    for mut own in groups.into_values().filter(|_| alike > 1) {
        own.sort_by_key(|&index| (planes[index].number, index));
        let same = own
            .windows(2)
            .find(|two| planes[two[0]].number.is_none() || planes[two[0]].number == planes[two[1]].number);
        // A slice that is here once more than others is a copy, and no volume.
        let extra = || own.windows(2).next().filter(|_| at.iter().any(|place| place.len() < fullest));
        if let Some(two) = same.or_else(extra) {
            let (one, next) = (&planes[two[0].min(two[1])], &planes[two[0].max(two[1])]);
            let expected =
                "a place of its own for each slice, or numbers of echoes or times that tell volumes apart";
            let hint = match one.file == next.file {
                true => FRAMES_APART.to_owned(),
                false => format!(
                    "remove copies, or give each volume a folder of its own: no TemporalPositionIdentifier, \
                     EchoNumbers, EchoTime or InstanceNumber tells {} slices at {count} places apart",
                    planes.len()
                ),
            };
            let found = format!("that of {one} in {next}");
            return Err(Error::field(&next.file, tag::POSITION.name, expected, found).with_hint(hint));
        }
        own.iter().enumerate().for_each(|(rank, &index)| ranks[index] = rank);
    }
    Ok((used, ranks))
}

/// Errors: a volume that lies elsewhere than the first.
pub(super) fn expect_same_places(stacks: &[Stack]) -> Result<()> {
    let first = &stacks[0];
    let flat = |stack: &Stack| [&stack.origin[..], &stack.heights].concat();
    let tolerance = 0.1 * first.spacing[0].min(first.spacing[1]);
    match stacks.iter().find(|stack| !near(&flat(stack), &flat(first), tolerance)) {
        None => Ok(()),
        Some(other) => {
            let text = |stack: &Stack| format!("{:.3?} in {}", stack.origin, stack.planes[0]);
            let name = tag::POSITION.name;
            Err(Error::field(
                &other.planes[0].file,
                name,
                format!("that of the first volume, {}", text(first)),
                text(other),
            )
            .with_hint("give each volume a folder of its own"))
        }
    }
}
