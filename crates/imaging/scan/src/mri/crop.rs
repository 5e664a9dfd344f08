use ndarray::{ArrayD, IxDyn, Slice};
use rayspin_core::{Error, Result, format_shape};

/// The centre of `array` cut or zero-padded to `shape` along each axis, index n/2 staying the centre.
///
/// Errors: another number of axes.
pub fn centre_crop<T: Clone + Default>(array: ArrayD<T>, shape: &[usize]) -> Result<ArrayD<T>> {
    if array.shape() == shape {
        return Ok(array);
    }
    if array.ndim() != shape.len() {
        return Err(Error::Shape {
            what: "image".into(),
            expected: format!("{} axes", shape.len()),
            found: format_shape(array.shape()),
        });
    }
    let mut out = ArrayD::from_elem(IxDyn(shape), T::default());
    let range = |from: usize, to: usize| {
        // The first index of the part that both share, on the side of `from`.
        let start = (from / 2).saturating_sub(to / 2);
        Slice::from(start..start + from.min(to))
    };
    let source = array.slice_each_axis(|axis| range(axis.len, shape[axis.axis.index()]));
    let from = array.shape().to_vec();
    out.slice_each_axis_mut(|axis| range(axis.len, from[axis.axis.index()])).assign(&source);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rayspin_core::C32;

    proptest! {
        #[test]
        fn padding_and_cropping_back_changes_nothing(
            small in prop::collection::vec(1usize..9, 1..4),
            more in prop::array::uniform3(0usize..9),
        ) {
            let large: Vec<usize> = small.iter().zip(more).map(|(n, m)| n + m).collect();
            let mut next = 0.0;
            let array = ArrayD::from_shape_simple_fn(IxDyn(&small), || { next += 1.0; next });
            let padded = centre_crop(array.clone(), &large).unwrap();
            prop_assert_eq!(padded.sum(), array.sum());
            let centre = |shape: &[usize]| shape.iter().map(|n| n / 2).collect::<Vec<_>>();
            prop_assert_eq!(padded[&centre(&large)[..]], array[&centre(&small)[..]]);
            prop_assert_eq!(centre_crop(padded, &small).unwrap(), array);
        }
    }

    #[test]
    fn cropping_and_padding_keep_the_centre() {
        for (from, to) in [(8, 4), (8, 5), (7, 4), (7, 3), (4, 8), (5, 8), (4, 7), (6, 6)] {
            let array = ArrayD::from_shape_fn(IxDyn(&[from, 2]), |i| {
                C32::new(i[0] as f32 - (from / 2) as f32, i[1] as f32)
            });
            let out = centre_crop(array, &[to, 2]).unwrap();
            for i in 0..to {
                let position = i as isize - (to / 2) as isize;
                let inside =
                    position >= -((from / 2) as isize) && position < from as isize - (from / 2) as isize;
                let wanted = if inside { C32::new(position as f32, 1.0) } else { C32::ZERO };
                assert_eq!(out[[i, 1]], wanted, "{from} to {to} at {i}");
            }
        }
    }
}
