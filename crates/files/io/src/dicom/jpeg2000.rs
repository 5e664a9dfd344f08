//! What a JPEG 2000 frame asks its decoder to allocate, told by its headers (ISO/IEC 15444-1, annexes A and
//! I).
//!
//! The decoder takes this memory without asking. A stream of some hundred bytes may promise thousands of
//! components, millions of tiles, or a block for each pixel.

/// Bytes of a tile-part without data: a stream has at least one for each tile.
const TILE_PART: u64 = 14;
/// Bytes that the decoder keeps for a precinct of a sub-band, a code block, and a layer of it, with room to
/// grow.
const PRECINCT: u64 = 512;
const BLOCK: u64 = 288;
const LAYER: u64 = 48;
/// Bytes of each pixel in the decoder's buffers and in the result.
const PIXEL: u64 = 24;
/// Bytes for blocks and precincts that are accepted in any frame, and for each of its pixels: blocks of 4 x 4
/// pixels in 32 layers.
const TABLES: u64 = 16 << 20;
const TABLES_A_PIXEL: u64 = 128;

const START: &[u8] = &[0xff, 0x4f, 0xff, 0x51];
const COD: u16 = 0xff52;
const COC: u16 = 0xff53;
const TILE_PART_START: u16 = 0xff90;
const DATA: u16 = 0xff93;

/// A frame whose headers promise what a frame of its size may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Whether its numbers are signed.
    pub(super) signed: bool,
    /// Bytes that the decoder and its result take.
    pub(super) memory: u64,
}

impl Frame {
    /// Looks at a frame that should have `[rows, columns]`.
    ///
    /// Errors: what the frame is or promises instead.
    pub(super) fn of(encoded: &[u8], size: [usize; 2]) -> Result<Self, String> {
        let streams = codestreams(encoded);
        let frames: Vec<Self> =
            streams.into_iter().map(|stream| Self::of_stream(stream, size)).collect::<Result<_, _>>()?;
        // The decoder takes the last.
        frames.last().copied().ok_or_else(|| "no codestream".into())
    }

    fn of_stream(stream: &[u8], [rows, columns]: [usize; 2]) -> Result<Self, String> {
        let cut = || "a header that is cut short".to_owned();
        let mut bytes = Bytes { bytes: stream, offset: START.len() };
        let segment = usize::from(bytes.u16().ok_or_else(cut)?);
        let end = START.len() + segment;
        bytes.u16().ok_or_else(cut)?;
        let mut sizes = [0u64; 8];
        for size in &mut sizes {
            *size = bytes.u32().ok_or_else(cut)?.into();
        }
        let [x, y, left, top, tile_x, tile_y, tiles_left, tiles_top] = sizes;
        let components = bytes.u16().ok_or_else(cut)?;
        if components != 1 {
            return Err(format!("{components} components"));
        }
        let depth = bytes.u8().ok_or_else(cut)?;
        let steps =
            [bytes.u8().ok_or_else(cut)?, bytes.u8().ok_or_else(cut)?].map(|step| u64::from(step.max(1)));
        let length =
            |end: u64, start: u64, step: u64| end.div_ceil(step).saturating_sub(start.div_ceil(step));
        let (width, height) = (length(x, left, steps[0]), length(y, top, steps[1]));
        if [height, width] != [rows as u64, columns as u64] {
            return Err(format!("{height} x {width}"));
        }
        let across = |end: u64, start: u64, size: u64| end.saturating_sub(start).div_ceil(size.max(1)).max(1);
        let tiles = across(x, tiles_left, tile_x).saturating_mul(across(y, tiles_top, tile_y));
        let held = stream.len() as u64;
        if tiles.saturating_mul(TILE_PART) > held {
            return Err(format!("{tiles} tiles in {held} bytes"));
        }
        let tile = [width.min(tile_x.div_ceil(steps[0])), height.min(tile_y.div_ceil(steps[1]))];
        let styles = styles(stream, end);
        let tables = styles.iter().map(|style| style.tables(tile)).max().unwrap_or(0);
        let pixels = width * height;
        let most = TABLES + TABLES_A_PIXEL * pixels;
        if tables > most {
            return Err(format!("blocks and precincts that take {tables} bytes, where {most} are allowed"));
        }
        let memory = tables.saturating_add(PIXEL * pixels);
        Ok(Self { signed: depth & 0x80 != 0, memory })
    }
}

/// The codestream itself, or those in the boxes of a JP2 file.
fn codestreams(encoded: &[u8]) -> Vec<&[u8]> {
    if encoded.starts_with(START) {
        return vec![encoded];
    }
    let mut streams = Vec::new();
    let mut bytes = Bytes { bytes: encoded, offset: 0 };
    while let (Some(length), Some(kind)) = (bytes.u32(), bytes.u32()) {
        let head = bytes.offset;
        let inside = match length {
            0 => Some(u64::MAX),
            1 => bytes
                .u32()
                .zip(bytes.u32())
                .map(|(high, low)| (u64::from(high) << 32 | u64::from(low)).saturating_sub(16)),
            length => Some(u64::from(length).saturating_sub(8)),
        };
        let Some(inside) = inside else { break };
        let start = bytes.offset.max(head);
        let end = start.saturating_add(usize::try_from(inside).unwrap_or(usize::MAX)).min(encoded.len());
        let content = encoded.get(start..end).unwrap_or_default();
        if kind == u32::from_be_bytes(*b"jp2c") && content.starts_with(START) {
            streams.push(content);
        }
        bytes.offset = end;
    }
    streams
}

/// How blocks are cut: as the main header says, or as a tile's own header does.
struct Style {
    layers: u64,
    levels: u32,
    /// Exponents of the code blocks' sides.
    block: [u32; 2],
    /// Exponents of the precincts' sides, the lowest resolution first; the last holds for all above.
    precincts: Vec<[u32; 2]>,
}

/// Every style of a stream whose segments begin at `start`.
fn styles(stream: &[u8], start: usize) -> Vec<Style> {
    let mut bytes = Bytes { bytes: stream, offset: start };
    let (mut styles, mut layers, mut part_end) = (Vec::new(), 1, stream.len());
    while let Some(marker) = bytes.u16() {
        let start = bytes.offset;
        if marker == DATA {
            // The next tile-part.
            bytes.offset = part_end.max(start);
            continue;
        }
        let Some(length) = bytes.u16() else { break };
        match marker {
            TILE_PART_START => {
                let own = bytes.skip(2).and_then(Bytes::u32).unwrap_or(0) as usize;
                part_end = if own == 0 { stream.len() } else { start.saturating_sub(2).saturating_add(own) };
            }
            COD => {
                let style = bytes.u8().unwrap_or(0);
                layers = bytes.skip(1).and_then(Bytes::u16).map_or(1, u64::from);
                styles.extend(bytes.skip(1).and_then(|bytes| Style::of(bytes, style, layers)));
            }
            COC => {
                // One component has a number of one byte.
                let style = bytes.skip(1).and_then(Bytes::u8).unwrap_or(0);
                styles.extend(Style::of(&mut bytes, style, layers));
            }
            _ => {}
        }
        bytes.offset = start.saturating_add(usize::from(length.max(2)));
    }
    styles
}

impl Style {
    fn of(bytes: &mut Bytes<'_>, style: u8, layers: u64) -> Option<Self> {
        let levels = u32::from(bytes.u8()?).min(32);
        let block = [bytes.u8()?, bytes.u8()?].map(|side| u32::from(side & 0xf) + 2);
        bytes.skip(2)?;
        let precincts = match style & 1 {
            0 => vec![[15, 15]],
            _ => (0..=levels)
                .map_while(|_| bytes.u8())
                .map(|sides| [u32::from(sides & 0xf), u32::from(sides >> 4)])
                .collect(),
        };
        Some(Self { layers, levels, block, precincts })
    }

    /// Bytes for the precincts and code blocks of a tile of these sides.
    fn tables(&self, tile: [u64; 2]) -> u64 {
        let mut bytes = 0u64;
        for resolution in 0..=self.levels {
            let known = self.precincts.get(resolution as usize).or(self.precincts.last());
            let precinct = known.copied().unwrap_or([15, 15]);
            // Sub-bands have half the sides, but for the lowest resolution's.
            let half = u32::from(resolution > 0);
            let (mut precincts, mut blocks) = (1u64, 1u64);
            for axis in 0..2 {
                let side = tile[axis].checked_shr(self.levels - resolution).unwrap_or(0) + 1;
                let block = self.block[axis].min(precinct[axis].saturating_sub(half));
                precincts = precincts.saturating_mul((side >> precinct[axis]) + 2);
                blocks = blocks.saturating_mul((side >> half >> block) + 2);
            }
            let each = BLOCK + LAYER.saturating_mul(self.layers);
            let of_band = precincts.saturating_mul(PRECINCT).saturating_add(blocks.saturating_mul(each));
            bytes = bytes.saturating_add(of_band.saturating_mul(if half == 0 { 1 } else { 3 }));
        }
        bytes
    }
}

/// Big-endian numbers, one after another.
struct Bytes<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.bytes.get(self.offset..)?.first_chunk()?;
        self.offset += N;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn skip(&mut self, count: usize) -> Option<&mut Self> {
        self.offset = self.offset.checked_add(count)?;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of one tile, without data: sizes, components, tile sides, and what follows the components of
    /// SIZ.
    fn stream([rows, columns]: [u32; 2], components: u16, tile: [u32; 2], cod: &[u8]) -> Vec<u8> {
        let mut bytes = START.to_vec();
        bytes.extend((38 + 3 * components).to_be_bytes());
        bytes.extend([0, 0]);
        for size in [columns, rows, 0, 0, tile[1], tile[0], 0, 0] {
            bytes.extend(size.to_be_bytes());
        }
        bytes.extend(components.to_be_bytes());
        (0..components).for_each(|_| bytes.extend([11, 1, 1]));
        bytes.extend(COD.to_be_bytes());
        bytes.extend((2 + cod.len() as u16).to_be_bytes());
        bytes.extend(cod);
        bytes.extend(TILE_PART_START.to_be_bytes());
        bytes.extend([0, 10, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend(DATA.to_be_bytes());
        bytes
    }

    /// No precincts of its own, one layer, 5 levels, blocks of 64 x 64.
    const USUAL: [u8; 10] = [0, 0, 0, 1, 0, 5, 4, 4, 0, 1];

    #[test]
    fn promises_beyond_a_frame_of_its_size_are_refused() {
        let of = |stream: &[u8]| Frame::of(stream, [300, 400]);
        let usual = of(&stream([300, 400], 1, [300, 400], &USUAL)).unwrap();
        assert!(!usual.signed && (PIXEL * 120_000..1 << 24).contains(&usual.memory), "{usual:?}");
        // Blocks of 4 x 4 in 32 layers are the finest that is usual.
        assert!(of(&stream([300, 400], 1, [300, 400], &[0, 0, 0, 32, 0, 5, 0, 0, 0, 1])).is_ok());
        let one = of(&stream([300, 401], 1, [300, 401], &USUAL)).unwrap_err();
        assert_eq!(one, "300 x 401");
        let many = of(&stream([300, 400], 9000, [300, 400], &USUAL)).unwrap_err();
        assert_eq!(many, "9000 components");
        let tiles = of(&stream([300, 400], 1, [1, 1], &USUAL)).unwrap_err();
        assert!(tiles.starts_with("120000 tiles in"), "{tiles}");
        assert!(of(&stream([300, 400], 1, [0, 0], &USUAL)).is_err());
        let sides = [[0u8; 10].to_vec(), vec![0; 6]].concat();
        let mut pixels = sides.clone();
        pixels[..10].copy_from_slice(&[1, 0, 0, 1, 0, 5, 4, 4, 0, 1]);
        let large = stream([3000, 4000], 1, [3000, 4000], &pixels);
        let precincts = Frame::of(&large, [3000, 4000]).unwrap_err();
        assert!(precincts.starts_with("blocks and precincts"), "{precincts}");
        for end in 0..60 {
            assert!(of(&stream([300, 400], 1, [300, 400], &USUAL)[..end]).is_err() || end >= 45, "{end}");
        }
    }

    #[test]
    fn a_stream_in_a_box_is_found_and_so_is_a_style_of_a_tile() {
        let mut inner = stream([30, 40], 1, [30, 40], &USUAL);
        inner[42] = 0x8b;
        let boxed = |inner: &[u8]| {
            let mut file = b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x0cuuid\xff\x4f\xff\x51".to_vec();
            file.extend((8 + inner.len() as u32).to_be_bytes());
            file.extend(b"jp2c");
            file.extend(inner);
            file
        };
        assert!(Frame::of(&boxed(&inner), [30, 40]).unwrap().signed);
        assert_eq!(Frame::of(b"\0\0\0\x0cjP  \r\n\x87\n", [30, 40]).unwrap_err(), "no codestream");
        // A coding style in the tile-part's header.
        let plain = stream([2000, 2000], 1, [2000, 2000], &USUAL);
        let at = plain.len() - 2;
        let mut own = plain[..at].to_vec();
        own.extend(COD.to_be_bytes());
        own.extend([0, 18, 1, 0, 0, 1, 0, 5, 4, 4, 0, 1, 0, 0, 0, 0, 0, 0]);
        own.extend(DATA.to_be_bytes());
        assert!(Frame::of(&plain, [2000, 2000]).is_ok() && Frame::of(&own, [2000, 2000]).is_err());
    }
}
