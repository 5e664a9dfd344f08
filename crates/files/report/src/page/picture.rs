use base64::Engine as _;
use ndarray::ArrayView2;
use rayspin_core::{Error, Result};

use super::colour::{ColourScale, Colours};

/// A picture as a page embeds it: a PNG and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    png: Vec<u8>,
    width: u32,
    height: u32,
    not_finite: usize,
}

impl Picture {
    /// An image `[y, x]` in grey, `low` black and `high` white.
    pub fn gray(image: ArrayView2<'_, f32>, low: f64, high: f64) -> Result<Self> {
        ColourScale::new("", "", low, high, Colours::Gray)?.picture(image)
    }

    pub(crate) fn scaled(image: ArrayView2<'_, f32>, scale: &ColourScale) -> Result<Self> {
        let (rows, columns) = image.dim();
        let not_finite = image.iter().filter(|value| !value.is_finite()).count();
        let colours = image.iter().map(|&value| scale.rgb(f64::from(value)));
        let (colour, pixels) = if scale.colours == Colours::Gray && not_finite == 0 {
            (png::ColorType::Grayscale, colours.map(|rgb| rgb[0]).collect())
        } else {
            (png::ColorType::Rgb, colours.flatten().collect::<Vec<u8>>())
        };
        let mut picture = Self::encode(columns, rows, colour, &pixels)?;
        picture.not_finite = not_finite;
        Ok(picture)
    }

    /// A picture from bytes of grey, `width` by `height`, row by row.
    pub fn gray8(width: usize, height: usize, pixels: &[u8]) -> Result<Self> {
        Self::encode(width, height, png::ColorType::Grayscale, pixels)
    }

    /// A picture from bytes of red, green and blue, `width` by `height`, row by row.
    pub fn rgb8(width: usize, height: usize, pixels: &[u8]) -> Result<Self> {
        Self::encode(width, height, png::ColorType::Rgb, pixels)
    }

    /// A PNG that exists already. Errors: the bytes do not begin as a PNG does.
    pub fn from_png(png: Vec<u8>) -> Result<Self> {
        let reader = png::Decoder::new(std::io::Cursor::new(&png))
            .read_info()
            .map_err(|error| Error::value("picture", "a PNG", error))?;
        let (width, height) = (reader.info().width, reader.info().height);
        Ok(Self { width, height, not_finite: 0, png })
    }

    fn encode(width: usize, height: usize, colour: png::ColorType, pixels: &[u8]) -> Result<Self> {
        let side = |n: usize| {
            let size = u32::try_from(n).ok().filter(|&n| n > 0 && n <= i32::MAX as u32);
            size.ok_or_else(|| Error::value("picture size", "1 to 2147483647 pixels a side", n))
        };
        let (w, h) = (side(width)?, side(height)?);
        let needed = width.checked_mul(height).and_then(|n| n.checked_mul(colour.samples()));
        if needed != Some(pixels.len()) {
            let expected = format!("{width} by {height} pixels of {} bytes", colour.samples());
            return Err(Error::value("picture", expected, format!("{} bytes", pixels.len())));
        }
        let mut png = Vec::new();
        let write = |png: &mut Vec<u8>| -> std::result::Result<(), png::EncodingError> {
            let mut encoder = png::Encoder::new(png, w, h);
            encoder.set_color(colour);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::High);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(pixels)?;
            writer.finish()
        };
        write(&mut png).map_err(|error| Error::Numerical {
            what: "PNG encoder".to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Self { png, width: w, height: h, not_finite: 0 })
    }

    /// Pixels across.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The PNG's bytes.
    pub fn png(&self) -> &[u8] {
        &self.png
    }

    /// Pixels that were not finite, drawn in magenta.
    pub fn not_finite(&self) -> usize {
        self.not_finite
    }

    pub(crate) fn data_uri(&self) -> String {
        let mut uri = "data:image/png;base64,".to_owned();
        base64::engine::general_purpose::STANDARD.encode_string(&self.png, &mut uri);
        uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    fn decode(picture: &Picture) -> (png::ColorType, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(picture.png())).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        (reader.info().color_type, pixels)
    }

    #[test]
    fn pixels_come_back_row_by_row() {
        let image = array![[0.0f32, 0.5, 1.0], [-1.0, 2.0, 0.25]];
        let picture = Picture::gray(image.view(), 0.0, 1.0).unwrap();
        assert_eq!((picture.width(), picture.height()), (3, 2));
        assert_eq!(decode(&picture), (png::ColorType::Grayscale, vec![0, 128, 255, 0, 255, 64]));
        // A transposed view is read by index, not by memory.
        let picture = Picture::gray(image.t(), 0.0, 1.0).unwrap();
        assert_eq!(decode(&picture).1, [0, 0, 128, 255, 255, 64]);
        assert_eq!(Picture::from_png(picture.png().to_vec()).unwrap(), picture);
    }

    #[test]
    fn numbers_that_are_not_finite_show() {
        let image = array![[0.0f32, f32::NAN], [f32::INFINITY, 1.0]];
        let picture = Picture::gray(image.view(), 0.0, 1.0).unwrap();
        assert_eq!(picture.not_finite(), 2);
        let (colour, pixels) = decode(&picture);
        assert_eq!(colour, png::ColorType::Rgb);
        assert_eq!(pixels, [0, 0, 0, 255, 0, 255, 255, 0, 255, 255, 255, 255]);
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        assert!(Picture::gray(Array2::zeros((0, 4)).view(), 0.0, 1.0).is_err());
        assert!(Picture::gray(Array2::zeros((1, 1)).view(), 1.0, 1.0).is_err());
        assert!(Picture::gray8(2, 2, &[0; 5]).is_err());
        assert!(Picture::rgb8(usize::MAX, 3, &[0; 5]).is_err());
        assert!(Picture::from_png(b"<svg onload=x>".to_vec()).is_err());
        assert!(Picture::gray8(1, 1, &[7]).is_ok());
    }
}
