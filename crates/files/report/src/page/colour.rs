use super::picture::Picture;
use ndarray::ArrayView2;
use rayspin_core::{Error, Result};

/// A map from 0 … 1 to colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// Black to white.
    #[default]
    Gray,
    /// Dark violet through green to yellow, even in lightness (van der Walt and Smith, 2015).
    Viridis,
    /// Black through purple to pale yellow, even in lightness (van der Walt and Smith, 2015): errors against
    /// nothing.
    Magma,
    /// Blue through pale grey to red (Moreland, 2009): signed errors, zero in the middle.
    Diverging,
}

/// A pixel that is not finite, in a colour that no map holds.
pub(crate) const NOT_FINITE: [u8; 3] = [255, 0, 255];

const VIRIDIS: [[u8; 3]; 17] = [
    [68, 1, 84],
    [72, 24, 106],
    [71, 45, 123],
    [66, 64, 134],
    [59, 82, 139],
    [51, 99, 141],
    [44, 114, 142],
    [38, 130, 142],
    [33, 145, 140],
    [31, 160, 136],
    [40, 174, 128],
    [63, 188, 115],
    [94, 201, 98],
    [132, 212, 75],
    [173, 220, 48],
    [216, 226, 25],
    [253, 231, 37],
];
const MAGMA: [[u8; 3]; 17] = [
    [0, 0, 4],
    [10, 8, 34],
    [29, 17, 71],
    [54, 16, 107],
    [81, 18, 124],
    [106, 28, 129],
    [131, 38, 129],
    [156, 46, 127],
    [183, 55, 121],
    [208, 65, 111],
    [231, 82, 99],
    [245, 107, 92],
    [252, 137, 97],
    [254, 167, 114],
    [254, 196, 136],
    [253, 226, 163],
    [252, 253, 191],
];
const DIVERGING: [[u8; 3]; 17] = [
    [59, 76, 192],
    [78, 104, 216],
    [98, 130, 234],
    [119, 154, 247],
    [141, 176, 254],
    [163, 194, 254],
    [185, 208, 249],
    [204, 217, 237],
    [221, 220, 220],
    [236, 211, 197],
    [245, 196, 172],
    [247, 176, 147],
    [244, 152, 122],
    [235, 125, 98],
    [221, 95, 75],
    [202, 59, 55],
    [180, 4, 38],
];

impl Colours {
    fn stops(self) -> &'static [[u8; 3]] {
        match self {
            Self::Gray => &[[0, 0, 0], [255, 255, 255]],
            Self::Viridis => &VIRIDIS,
            Self::Magma => &MAGMA,
            Self::Diverging => &DIVERGING,
        }
    }

    /// The colour at `t`, linear between the map's stops; below 0 and above 1 the ends go on.
    pub fn rgb(self, t: f64) -> [u8; 3] {
        if t.is_nan() {
            return NOT_FINITE;
        }
        let stops = self.stops();
        let place = t.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let below = (place as usize).min(stops.len() - 2);
        let part = place - below as f64;
        let (a, b) = (stops[below], stops[below + 1]);
        std::array::from_fn(|i| (f64::from(a[i]) + part * (f64::from(b[i]) - f64::from(a[i]))).round() as u8)
    }

    /// The map as the colours of a CSS gradient.
    pub(crate) fn css(self) -> String {
        let stops: Vec<_> = self.stops().iter().map(|[r, g, b]| format!("#{r:02x}{g:02x}{b:02x}")).collect();
        stops.join(",")
    }
}

/// How values become colours, shared by the pictures of a row and the colour bar under them.
///
/// ```
/// use ndarray::array;
/// use rayspin_report::page::{ColourScale, Colours};
///
/// let error = array![[0.0f32, 0.05], [0.1, 0.2]];
/// let scale = ColourScale::new("Absolute error", "", 0.0, 0.2, Colours::Magma)?;
/// let picture = scale.picture(error.view())?;
/// assert_eq!((picture.width(), picture.height()), (2, 2));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ColourScale {
    pub(crate) label: String,
    pub(crate) unit: String,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) colours: Colours,
}

impl ColourScale {
    /// A scale from `low` to `high`, both finite and `low < high`.
    pub fn new(
        label: impl Into<String>,
        unit: impl Into<String>,
        low: f64,
        high: f64,
        colours: Colours,
    ) -> Result<Self> {
        if !(low.is_finite() && high.is_finite() && low < high && (high - low).is_finite()) {
            return Err(Error::value(
                "colour scale",
                "finite ends, low below high",
                format!("{low} to {high}"),
            ));
        }
        Ok(Self { label: label.into(), unit: unit.into(), low, high, colours })
    }

    /// The colour of a value.
    pub fn rgb(&self, value: f64) -> [u8; 3] {
        // The ends are clamped by the map; an infinity has left the range of numbers, and is shown as that.
        if value.is_finite() {
            self.colours.rgb((value - self.low) / (self.high - self.low))
        } else {
            NOT_FINITE
        }
    }

    /// The picture of an image `[y, x]`, row 0 at the top. Values that are not finite are drawn in magenta,
    /// which no map holds. Errors: an image without pixels.
    pub fn picture(&self, image: ArrayView2<'_, f32>) -> Result<Picture> {
        Picture::scaled(image, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_hit_their_stops_and_hold_their_ends() {
        for colours in [Colours::Gray, Colours::Viridis, Colours::Magma, Colours::Diverging] {
            let stops = colours.stops();
            for (i, stop) in stops.iter().enumerate() {
                assert_eq!(colours.rgb(i as f64 / (stops.len() - 1) as f64), *stop);
            }
            assert_eq!(colours.rgb(-3.0), stops[0]);
            assert_eq!(colours.rgb(f64::INFINITY), stops[stops.len() - 1]);
            assert_eq!(colours.rgb(f64::NAN), NOT_FINITE);
        }
        assert_eq!(Colours::Gray.rgb(0.5), [128; 3]);
    }

    #[test]
    fn scales_refuse_what_is_no_range() {
        for (low, high) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-f64::MAX, f64::MAX)]
        {
            assert!(ColourScale::new("", "", low, high, Colours::Gray).is_err(), "{low} to {high}");
        }
        let scale = ColourScale::new("", "", -2.0, 2.0, Colours::Diverging).unwrap();
        assert_eq!(scale.rgb(0.0), [221, 220, 220]);
        assert_eq!(scale.rgb(f64::NEG_INFINITY), NOT_FINITE);
    }
}
