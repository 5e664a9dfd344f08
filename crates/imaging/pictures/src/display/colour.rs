use ndarray::{Array3, ArrayView2};
use serde::{Deserialize, Serialize};

use super::Limits;

/// Colours for values between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColourMap {
    /// Black, violet, orange, pale yellow, for error maps. Lightness rises evenly, so that equal steps in
    /// value look equal.
    #[default]
    Inferno,
    /// Black to white.
    Grey,
}

/// Every fifteenth entry of the 256-entry map `inferno` by N. J. Smith and S. van der Walt (CC0). Linear
/// interpolation between these entries differs from the map by at most 5 of 255.
const INFERNO: [[u8; 3]; 18] = [
    [0, 0, 4],
    [10, 7, 34],
    [30, 12, 69],
    [56, 9, 98],
    [81, 14, 108],
    [105, 22, 110],
    [128, 31, 108],
    [152, 39, 102],
    [176, 49, 91],
    [198, 61, 77],
    [217, 77, 61],
    [233, 97, 43],
    [244, 121, 24],
    [250, 148, 7],
    [252, 176, 20],
    [248, 205, 55],
    [242, 234, 105],
    [252, 255, 164],
];

impl ColourMap {
    /// The sRGB colour of `value`, clamped to 0 … 1; NaN is 0.
    pub fn colour(self, value: f32) -> [u8; 3] {
        let value = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        match self {
            Self::Grey => [(value * 255.0).round() as u8; 3],
            Self::Inferno => {
                let place = value * (INFERNO.len() - 1) as f32;
                let index = (place as usize).min(INFERNO.len() - 2);
                let weight = place - index as f32;
                std::array::from_fn(|channel| {
                    let from = f32::from(INFERNO[index][channel]);
                    let to = f32::from(INFERNO[index + 1][channel]);
                    (from + weight * (to - from)).round() as u8
                })
            }
        }
    }
}

/// An 8-bit RGB picture `[y, x, 3]` of a `[y, x]` image: `limits.low` has the first colour, `limits.high` the
/// last.
pub fn to_colour(values: ArrayView2<'_, f32>, limits: Limits, map: ColourMap) -> Array3<u8> {
    let (ny, nx) = values.dim();
    let mut picture = Array3::zeros((ny, nx, 3));
    for ((y, x), &value) in values.indexed_iter() {
        for (channel, level) in map.colour(limits.fraction(value)).into_iter().enumerate() {
            picture[[y, x, channel]] = level;
        }
    }
    picture
}
