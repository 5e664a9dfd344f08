use std::ops::Range;

use rayspin_core::{Error, Result, format_shape};

/// A box of an array's indices: the cartesian product of one list of index ranges an axis.
///
/// Pruned transforms ([`super::Options`]) take the region where the input is nonzero and the region of the
/// output that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    shape: Vec<usize>,
    axes: Vec<Vec<Range<usize>>>,
}

impl Region {
    /// The product of `axes[a]`, ascending disjoint nonempty ranges of `0..shape[a]`.
    ///
    /// Errors: another number of axes than `shape`, an axis without ranges, or ranges that are empty, out of
    /// bounds, overlapping or out of order.
    pub fn new(shape: &[usize], axes: Vec<Vec<Range<usize>>>) -> Result<Self> {
        if axes.len() != shape.len() {
            return Err(Error::value(
                "region of a transform",
                format!("ranges for {} axes", shape.len()),
                format!("{} axes", axes.len()),
            ));
        }
        for (axis, (ranges, &n)) in axes.iter().zip(shape).enumerate() {
            let mut end = 0;
            let mut sound = !ranges.is_empty();
            for range in ranges {
                sound &= range.start >= end && range.start < range.end && range.end <= n;
                end = range.end;
            }
            if !sound {
                return Err(Error::value(
                    format!("region of a transform, axis {axis}"),
                    format!("ascending disjoint nonempty ranges within 0..{n}"),
                    format!("{ranges:?}"),
                ));
            }
        }
        Ok(Self { shape: shape.to_vec(), axes })
    }

    /// Every index.
    pub fn full(shape: &[usize]) -> Result<Self> {
        Self::new(shape, shape.iter().map(|&n| one(0..n)).collect())
    }

    /// Positions −⌊m/2⌋ … m−⌊m/2⌋−1 modulo n along each axis, m = `inner[a]` ≤ n = `shape[a]`: where a
    /// centred array of shape `inner` lies in a zero-padded one whose index 0 is position 0.
    pub fn wrapped(shape: &[usize], inner: &[usize]) -> Result<Self> {
        Self::check_inner(shape, inner)?;
        let axes = shape.iter().zip(inner).map(|(&n, &m)| {
            let negative = n - m / 2..n;
            let positive = 0..m - m / 2;
            if m == n {
                one(0..n)
            } else if negative.is_empty() {
                one(positive)
            } else {
                vec![positive, negative]
            }
        });
        Self::new(shape, axes.collect())
    }

    /// The same positions in an array whose index ⌊n/2⌋ is position 0.
    pub fn centred(shape: &[usize], inner: &[usize]) -> Result<Self> {
        Self::check_inner(shape, inner)?;
        let axes = shape.iter().zip(inner).map(|(&n, &m)| {
            let start = n / 2 - m / 2;
            one(start..start + m)
        });
        Self::new(shape, axes.collect())
    }

    fn check_inner(shape: &[usize], inner: &[usize]) -> Result<()> {
        let fits = inner.len() == shape.len() && inner.iter().zip(shape).all(|(&m, &n)| (1..=n).contains(&m));
        if fits {
            Ok(())
        } else {
            Err(Error::Shape {
                what: "inner box of a padded transform".into(),
                expected: format!("1 to n along each axis of {}", format_shape(shape)),
                found: format_shape(inner),
            })
        }
    }

    /// The shape of the array it is a part of.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The ranges along one axis.
    pub fn axis(&self, axis: usize) -> &[Range<usize>] {
        &self.axes[axis]
    }

    /// Number of indices along one axis.
    pub fn count(&self, axis: usize) -> usize {
        self.axes[axis].iter().map(ExactSizeIterator::len).sum()
    }

    /// Ascending flat indices, in C order over the axes `axes`, of the region's indices along them.
    pub(crate) fn flat(&self, axes: Range<usize>) -> Vec<usize> {
        let mut flat = vec![0];
        for axis in axes {
            let mut next = Vec::with_capacity(flat.len() * self.count(axis));
            for base in flat {
                for range in &self.axes[axis] {
                    next.extend(range.clone().map(|i| base * self.shape[axis] + i));
                }
            }
            flat = next;
        }
        flat
    }
}

fn one(range: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(range).collect()
}
