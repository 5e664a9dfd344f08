//! The axes of an array without a header, as its owner names them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ndarray::{Array2, ArrayD, Axis, IxDyn};
use rayspin_core::{C32, format_shape};

use crate::arrays::{Grid, Reading, Runs, without_ones};
use crate::cfl::{DIMS, Layout, dim};
use crate::{Error, Result};

/// What an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    X,
    Y,
    Z,
    Coil,
    Slice,
    Repetition,
    Contrast,
    Phase,
    Set,
    Readout,
    Spoke,
    Sample,
    /// Nothing: it is 1.
    One,
}

impl Name {
    const ALL: [(&'static [&'static str], Self); 13] = [
        (&["x", "kx"], Self::X),
        (&["y", "ky"], Self::Y),
        (&["z", "kz"], Self::Z),
        (&["coil", "channel"], Self::Coil),
        (&["slice"], Self::Slice),
        (&["repetition", "time"], Self::Repetition),
        (&["contrast", "echo"], Self::Contrast),
        (&["phase"], Self::Phase),
        (&["set"], Self::Set),
        (&["readout"], Self::Readout),
        (&["spoke", "shot"], Self::Spoke),
        (&["sample"], Self::Sample),
        (&["1"], Self::One),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, name)| *name == self).map_or("", |(words, _)| words[0])
    }

    fn is_of_grid(self) -> bool {
        matches!(self, Self::X | Self::Y | Self::Z)
    }

    fn is_of_samples(self) -> bool {
        matches!(self, Self::Readout | Self::Spoke | Self::Sample)
    }

    fn counts_images(self) -> bool {
        matches!(self, Self::Slice | Self::Repetition | Self::Contrast | Self::Phase | Self::Set)
    }

    /// BART's dimension for it.
    fn dimension(self) -> Option<usize> {
        Some(match self {
            Self::X => dim::READ,
            Self::Y | Self::Readout | Self::Sample => dim::PHS1,
            Self::Z | Self::Spoke => dim::PHS2,
            Self::Coil => dim::COIL,
            Self::Contrast => dim::TE,
            Self::Repetition => dim::TIME,
            Self::Phase => dim::TIME2,
            Self::Slice => dim::SLICE,
            Self::Set => dim::BATCH,
            Self::One => return None,
        })
    }
}

/// What each axis of an array counts, in the order in which the owner of its format sees them: NumPy's and
/// h5py's with the last axis fastest, MATLAB's and BART's with the first axis fastest.
///
/// On a grid the axes are x, y, z and coil; along a trajectory readout, spoke and coil, or sample and coil.
/// Beside them, slice, repetition, contrast, (cardiac) phase and set count images. An axis of length 1 may be
/// `1`. `channel`, `time`, `echo` and `shot` are other words for coil, repetition, contrast and spoke.
///
/// ```
/// use rayspin_io::AxisOrder;
/// let order: AxisOrder = "x, y, slice, coil".parse()?;
/// assert_eq!((order.to_string(), order.counts_images()), ("x,y,slice,coil".to_owned(), true));
/// assert!("x,coil".parse::<AxisOrder>().is_err()); // no y
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisOrder(Vec<Name>);

impl fmt::Display for AxisOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|name| name.word()).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for AxisOrder {
    type Err = rayspin_core::Error;

    fn from_str(text: &str) -> rayspin_core::Result<Self> {
        let refuse = |expected: &str, found: &str| Err(rayspin_core::Error::value("order", expected, found));
        let mut names = Vec::new();
        for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            let known = Name::ALL.iter().find(|(words, _)| words.contains(&&*word));
            let Some(&(_, name)) = known else {
                let words: Vec<&str> = Name::ALL.iter().map(|(_, name)| name.word()).collect();
                return refuse(&format!("axes by their names: {}", words.join(", ")), &word);
            };
            if name != Name::One && names.contains(&name) {
                return refuse("each axis once", text);
            }
            names.push(name);
        }
        let has = |name| names.contains(&name);
        let [grid, samples] =
            [Name::is_of_grid, Name::is_of_samples].map(|of| names.iter().any(|&name| of(name)));
        let sound = match (grid, samples) {
            (true, false) => has(Name::X) && has(Name::Y),
            (false, true) => {
                has(Name::Readout) != has(Name::Sample) && !(has(Name::Spoke) && has(Name::Sample))
            }
            _ => false,
        };
        let expected = "x and y of a grid, or readout (and spoke) or sample along a trajectory";
        if sound && names.len() <= DIMS { Ok(Self(names)) } else { refuse(expected, text) }
    }
}

impl AxisOrder {
    /// Whether one of the axes counts images.
    pub fn counts_images(&self) -> bool {
        self.0.iter().any(|name| name.counts_images())
    }

    /// The array in BART's dimensions. `may_lack` says that the file keeps no last axes of 1.
    ///
    /// Errors: another number of axes; an axis of 1 that is longer; axes of a grid along a trajectory, or the
    /// other way round.
    pub(crate) fn arranged(
        &self,
        path: &Path,
        mut array: ArrayD<C32>,
        may_lack: bool,
        along_trajectory: bool,
    ) -> Result<ArrayD<C32>> {
        if along_trajectory != self.0.iter().any(|name| name.is_of_samples()) {
            let (expected, hint) = match along_trajectory {
                true => ("readout, spoke or sample beside a trajectory", "name them in `--order`"),
                false => ("x and y of a grid", "`--traj` names the trajectory of samples"),
            };
            return Err(Error::field(path, "order", expected, self).with_hint(hint));
        }
        let shape = array.shape().to_vec();
        let wrong = || {
            let expected = format!("{self}: {} axes", self.0.len());
            Error::field(path, "axes of the array", expected, format_shape(&shape))
                .with_hint("`--order` names each axis once, and axes of length 1 as 1")
        };
        while array.ndim() > self.0.len() && array.shape().last() == Some(&1) {
            let last = Axis(array.ndim() - 1);
            array.index_axis_inplace(last, 0);
        }
        while array.ndim() < self.0.len() && may_lack {
            let last = Axis(array.ndim());
            array.insert_axis_inplace(last);
        }
        if array.ndim() != self.0.len() || array.is_empty() {
            return Err(wrong());
        }
        for (axis, _) in self.0.iter().enumerate().rev().filter(|(_, name)| **name == Name::One) {
            if array.shape()[axis] != 1 {
                return Err(wrong());
            }
            array.index_axis_inplace(Axis(axis), 0);
        }
        let named: Vec<usize> = self.0.iter().filter_map(|name| name.dimension()).collect();
        while array.ndim() < DIMS {
            let last = Axis(array.ndim());
            array.insert_axis_inplace(last);
        }
        let mut free = named.len()..;
        let order: Vec<usize> = (0..DIMS)
            .filter_map(|dimension| named.iter().position(|&own| own == dimension).or_else(|| free.next()))
            .collect();
        Ok(array.permuted_axes(IxDyn(&order)))
    }
}

/// How arrays are read whose axes are named.
pub(crate) const READING: Reading = Reading { grid, samples, copies: [4, 4] };

/// The first four of BART's dimensions; the others are 1.
fn image(mut array: ArrayD<C32>) -> ArrayD<C32> {
    while array.ndim() > dim::MAPS {
        let last = Axis(array.ndim() - 1);
        array.index_axis_inplace(last, 0);
    }
    array
}

fn grid(_: &Path, array: ArrayD<C32>) -> Result<Grid> {
    let values = image(array).reversed_axes().as_standard_layout().into_owned();
    Ok(Grid { values, layout: Layout::default(), axes: None, notes: Vec::new() })
}

fn samples(path: &Path, array: ArrayD<C32>, _: Option<usize>) -> Result<Runs<C32>> {
    let array = image(array);
    let [_, readout, spokes, coils] = array.shape() else {
        return Err(Error::field(path, "samples", "readout, spoke, coil", format_shape(array.shape())));
    };
    let (runs, coils) = ([*spokes, *readout], *coils);
    let values: Vec<C32> = array.t().iter().copied().collect();
    let data = Array2::from_shape_vec((coils, runs.iter().product()), values)
        .map_err(|e| Error::field(path, "samples", "readout, spoke, coil", e))?;
    Ok((data, without_ones(&runs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(order: &str, shape: &[usize], may_lack: bool, along: bool) -> Result<ArrayD<C32>> {
        let array = ArrayD::from_shape_fn(IxDyn(shape), |at| {
            C32::from(ndarray::Dimension::slice(&at).iter().fold(0, |all, &i| 10 * all + i) as f32)
        });
        order.parse::<AxisOrder>().unwrap().arranged(Path::new("a.mat"), array, may_lack, along)
    }

    #[test]
    fn named_axes_go_to_their_dimensions() {
        let array = arranged("repetition,coil,1,y,x", &[2, 3, 1, 4, 5], false, false).unwrap();
        let mut shape = [1; DIMS];
        (shape[dim::READ], shape[dim::PHS1], shape[dim::COIL], shape[dim::TIME]) = (5, 4, 3, 2);
        assert_eq!(array.shape(), shape);
        let mut at = [0; DIMS];
        (at[dim::READ], at[dim::PHS1], at[dim::COIL], at[dim::TIME]) = (4, 3, 2, 1);
        assert_eq!(array[IxDyn(&at)], C32::from(12034.0));
        let samples = arranged("readout,spoke,coil", &[6, 3, 2], false, true).unwrap();
        assert_eq!(samples.shape()[..4], [1, 6, 3, 2]);
        let (data, runs) = super::samples(Path::new("a"), samples, None).unwrap();
        assert_eq!((data.dim(), &runs[..]), ((2, 18), &[3, 6][..]));
        // Coil 1, spoke 2, sample 5.
        assert_eq!(data[[1, 17]], C32::from(521.0));
    }

    #[test]
    fn last_axes_of_one_may_lack_or_be_left_out() {
        assert_eq!(arranged("x,y,coil", &[6, 5], true, false).unwrap().shape()[..4], [6, 5, 1, 1]);
        assert!(arranged("x,y,coil", &[6, 5], false, false).is_err());
        assert_eq!(arranged("x,y", &[6, 5, 1, 1], false, false).unwrap().shape()[..4], [6, 5, 1, 1]);
        assert!(arranged("x,y", &[6, 5, 2], false, false).is_err());
        assert!(arranged("x,1,y", &[6, 5, 2], false, false).is_err());
    }

    #[test]
    fn orders_that_name_no_scan_are_refused() {
        for text in
            ["", "x", "x,coil", "x,x,y", "x,y,readout", "sample,spoke", "spoke", "u,v", "coil", "x,y,"]
        {
            assert!(text.parse::<AxisOrder>().is_err(), "{text}");
        }
        for text in ["kx,ky,channel", "Sample, COIL", "set,time,echo,phase,slice,z,y,x,coil", "shot,readout"]
        {
            let order: AxisOrder = text.parse().unwrap();
            assert_eq!(order.to_string().parse::<AxisOrder>().unwrap(), order);
        }
        let error = arranged("x,y", &[3, 3], false, true).unwrap_err();
        assert!(error.to_string().contains("expected readout, spoke or sample"), "{error}");
        assert!(arranged("readout", &[3], false, false).is_err());
    }
}
