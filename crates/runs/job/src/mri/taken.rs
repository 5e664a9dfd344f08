//! Which part of a scan is reconstructed, and the same part of a reference.

use std::collections::{BTreeMap, BTreeSet};

use ndarray::Axis;
use rayspin_core::{Image, Result};
use rayspin_mri::scan::{Label, varying};

/// The slices and volumes of a run among those of the scan, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    slices: Part,
    volumes: Part,
}

/// Some of several.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    name: &'static str,
    taken: Vec<usize>,
    /// How many there are.
    count: usize,
}

impl Part {
    fn new<K: Ord>(
        name: &'static str,
        present: &[Label],
        labels: &[Label],
        key: impl Fn(&Label) -> K + Copy,
    ) -> Self {
        let mut positions = BTreeMap::new();
        for label in present {
            let next = positions.len();
            positions.entry(key(label)).or_insert(next);
        }
        let chosen: BTreeSet<usize> =
            labels.iter().filter_map(|label| positions.get(&key(label)).copied()).collect();
        Self { name, taken: chosen.into_iter().collect(), count: positions.len() }
    }

    /// Its positions along an axis of a whole reference, where the image's axis has the part alone.
    fn along(&self, reference: usize, image: usize) -> Option<&[usize]> {
        let part = reference == self.count && image == self.taken.len() && image < reference;
        part.then_some(self.taken.as_slice())
    }

    /// `slice 2 of 5`, counted from 0 as options count them
    fn describe(&self) -> String {
        let Self { name, taken, count } = self;
        match &taken[..] {
            [one] => format!("{name} {one} of {count}"),
            several => format!("{} {name}s of {count}", several.len()),
        }
    }
}

impl Taken {
    /// The images of `labels` among those `present` in a scan, in the order of their places. Images of
    /// another encoding do not count.
    pub(super) fn of(mut present: Vec<Label>, labels: &[Label]) -> Self {
        let encoding = labels.first().map(|label| label.encoding);
        present.retain(|label| Some(label.encoding) == encoding);
        let volume = match varying(&present)[..] {
            [(name, _)] => name,
            _ => "volume",
        };
        Self {
            slices: Part::new("slice", &present, labels, |label| label.slice),
            volumes: Part::new(volume, &present, labels, Label::volume),
        }
    }

    /// All volumes, where windows join them.
    pub(super) fn joined(mut self) -> Self {
        self.volumes.taken = (0..self.volumes.count).collect();
        self
    }

    /// The part of a reference of the whole scan that shows what `image` shows, and its name; none where the
    /// reference has not more slices or volumes than the image, or others than the scan.
    ///
    /// Errors: a reference whose slices are several stacks.
    pub fn of_reference(&self, reference: &Image, image: &Image) -> Result<Option<(Image, String)>> {
        let mut names = Vec::new();
        let mut part = reference.data().view();
        let (selected, several);
        if let Some(taken) = self.volumes.along(reference.repetitions(), image.repetitions()) {
            selected = part.select(Axis(0), taken);
            part = selected.view();
            if taken.len() == 1 {
                part.index_axis_inplace(Axis(0), 0);
            }
            names.push(self.volumes.describe());
        }
        let depth = |image: &Image| image.shape_zyx()[0];
        if let Some(taken) = self.slices.along(depth(reference), depth(image)) {
            several = part.select(Axis(part.ndim() - 3), taken);
            part = several.view();
            names.push(self.slices.describe());
        }
        if names.is_empty() {
            return Ok(None);
        }
        let image = Image::new(part.to_owned(), *reference.geometry())?;
        Ok(Some((image, names.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, s};
    use rayspin_core::{C32, Geometry};

    use super::*;

    fn labels(repetitions: &[u16], slices: &[u16]) -> Vec<Label> {
        let each = |repetition: u16| {
            slices.iter().map(move |&slice| Label { repetition, slice, ..Label::default() })
        };
        repetitions.iter().flat_map(|&repetition| each(repetition)).collect()
    }

    fn image(shape: &[usize]) -> Image {
        let data = ArrayD::from_shape_fn(IxDyn(shape), |i| {
            let place: usize =
                (0..shape.len()).map(|axis| i[axis] * [1000, 100, 10, 1][4 - shape.len() + axis]).sum();
            C32::new(place as f32, 0.0)
        });
        Image::new(data, Geometry::default()).unwrap()
    }

    #[test]
    fn a_part_of_a_scan_is_compared_with_the_same_part() {
        // Counters need not begin at 0 nor be without gaps.
        let all = labels(&[1, 2, 5], &[0, 3, 4, 9]);
        let reference = image(&[3, 4, 5, 6]);
        let part = |repetitions: &[u16], slices: &[u16], shape: &[usize]| {
            let taken = Taken::of(all.clone(), &labels(repetitions, slices));
            taken.of_reference(&reference, &image(shape)).unwrap()
        };
        let (found, name) = part(&[5], &[3], &[1, 5, 6]).unwrap();
        assert_eq!(name, "repetition 2 of 3, slice 1 of 4");
        assert_eq!(found.data().view(), reference.data().slice(s![2, 1..2, .., ..]).into_dyn());
        let (found, name) = part(&[1, 2, 5], &[3, 9], &[3, 2, 5, 6]).unwrap();
        assert_eq!((found.data().shape(), &name[..]), (&[3, 2, 5, 6][..], "2 slices of 4"));
        assert_eq!(found.data()[[1, 1, 0, 0]], reference.data()[[1, 3, 0, 0]]);
        let (found, name) = part(&[2, 5], &[0, 3, 4, 9], &[2, 4, 5, 6]).unwrap();
        assert_eq!((found.data()[[0, 0, 0, 0]].re, &name[..]), (1000.0, "2 repetitions of 3"));
        // The whole, and references of another size, are compared as they are.
        assert!(part(&[1, 2, 5], &[0, 3, 4, 9], &[3, 4, 5, 6]).is_none());
        let taken = Taken::of(all.clone(), &labels(&[5], &[3]));
        assert!(taken.of_reference(&image(&[2, 5, 5, 6]), &image(&[1, 5, 6])).unwrap().is_none());
        // A volume serves any repetition.
        let (found, name) = taken.of_reference(&image(&[4, 5, 6]), &image(&[1, 5, 6])).unwrap().unwrap();
        assert_eq!((found.data().shape(), &name[..]), (&[1, 5, 6][..], "slice 1 of 4"));
    }
}
