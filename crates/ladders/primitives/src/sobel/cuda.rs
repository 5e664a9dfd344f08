#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result, expect_len};
use rayspin_device::cuda::{AddressMode, Define, Filter, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Problem};
use rayspin_planes::plane;
use rayspin_tune::blocks::expect;

static PUBLISHED: Source = Source {
    name: "sobel_published",
    files: &[
        ("common.cu", include_str!("cuda/common.cu")),
        ("01_published.cu", include_str!("cuda/01_published.cu")),
    ],
};
static SLIDING: Source = Source {
    name: "sobel",
    files: &[
        ("common.cu", include_str!("cuda/common.cu")),
        ("02_sliding.cu", include_str!("cuda/02_sliding.cu")),
    ],
};

/// Loads and stores that a strip may be made of, widest first.
const ALIGNS: [i64; 4] = [16, 8, 4, 1];

pub(super) fn published_forms() -> Vec<Build> {
    vec![Build::plain(&PUBLISHED)]
}

pub(super) fn sliding_forms(halves: bool) -> Vec<Build> {
    let form = |(align, one)| {
        let form = Form { threads: 64, align, rows: 6, one, halves };
        Build { source: &SLIDING, defines: form.defines(), spill_bytes: 0 }
    };
    [(16, true), (16, false), (8, true), (4, true), (1, false)].map(form).into()
}

pub(super) const CLAMPED: Sampling =
    Sampling { filter: Filter::Point, address_mode: AddressMode::Clamp, normalized: false };

/// Rows that a grid has along y in blocks of `height`.
fn grid_refuses(problem: &Problem, height: usize) -> Option<String> {
    (problem.rows.div_ceil(height) > 65535)
        .then(|| format!("{problem}: a grid has at most 65535 blocks along y"))
}

pub(super) fn per_pixel_refuses(problem: &Problem) -> Option<String> {
    grid_refuses(problem, 1)
}

pub(super) fn texture_refuses(problem: &Problem) -> Option<String> {
    (problem.columns > 131_072 || problem.rows > 65_536)
        .then(|| format!("{problem}: a texture has at most 65536 x 131072 texels"))
}

/// Rows and columns, which image and output have.
fn sizes(rows: usize, columns: usize, image: &Array<u8>, out: &Array<u8>) -> Result<[i32; 2]> {
    plane::asked("Sobel", &[rows, columns])?;
    expect_len("image", &[rows, columns], image.len())?;
    expect_len("edges", &[rows, columns], out.len())?;
    Ok([rows as i32, columns as i32])
}

/// [`sizes`] of a ladder's data.
fn sizes_of(data: &Data) -> Result<[i32; 2]> {
    sizes(data.problem.rows, data.problem.columns, &data.image, &data.out)
}

pub(super) fn per_pixel(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let (x, y) = (config.get("x")?, config.get("y")?);
    let device = data.image.device().clone();
    let kernel = gpu(&device)?.kernel(&PUBLISHED, &[], name)?;
    let [rows, columns] = sizes_of(data)?;
    let blocks = [(columns as u32).div_ceil(x), (rows as u32).div_ceil(y), 1];
    let scale = data.problem.scale;
    let shape = Launch { blocks, threads: [x, y, 1], shared: 0 };
    let arguments = &mut [
        data.image.cuda().into(),
        data.out.cuda_mut().into(),
        rows.into(),
        columns.into(),
        scale.into(),
    ];
    // SAFETY: image and output have rows x columns pixels, to which the kernel holds places.
    unsafe { kernel.launch(shape, arguments) }
}

pub(super) fn texture(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.image.device().clone();
    let kernel = gpu(&device)?.kernel(&PUBLISHED, &[], "texture_rows")?;
    let missing = || Error::value("Sobel through textures", "an image that a texture holds", data.problem);
    let image: &Texture = data.texture.as_ref().ok_or_else(missing)?;
    let [rows, columns] = sizes_of(data)?;
    let scale = data.problem.scale;
    let shape = Launch::linear(rows as u32, config.get("threads")?);
    let arguments =
        &mut [image.into(), data.out.cuda_mut().into(), rows.into(), columns.into(), scale.into()];
    // SAFETY: the output has rows x columns pixels; a texture holds places to itself.
    unsafe { kernel.launch(shape, arguments) }
}

pub(super) fn shared_tile(config: &Config, data: &mut Data) -> Result<()> {
    let (x, y, each) = (config.get("x")?, config.get("y")?, config.get("rows")?);
    let device = data.image.device().clone();
    let kernel = gpu(&device)?.kernel(&PUBLISHED, &[], "shared_tile")?;
    let [rows, columns] = sizes_of(data)?;
    for (what, most, value) in
        [("columns of threads", 1024, x), ("rows of threads", 1024, y), ("rows of a thread", 4096, each)]
    {
        expect(what, 1..=most, value)?;
    }
    let blocks = [(columns as u32).div_ceil(4 * x), (rows as u32).div_ceil(y * each), 1];
    let bytes = (4 * x as usize + 4) * ((y * each) as usize + 2);
    let launch = Launch { blocks, threads: [x, y, 1], shared: 0 }.with_shared(bytes);
    let scale = data.problem.scale;
    let arguments = &mut [
        data.image.cuda().into(),
        data.out.cuda_mut().into(),
        rows.into(),
        columns.into(),
        (each as i32).into(),
        scale.into(),
    ];
    // SAFETY: image and output have rows x columns pixels, to which the kernel holds places; shared memory
    // has room for a tile and its apron.
    unsafe { kernel.launch(launch, arguments) }
}

/// Widths of the loads that rows of an image allow, narrowest first.
pub(super) fn aligns(columns: usize) -> Vec<i64> {
    ALIGNS.into_iter().rev().filter(|&align| columns.is_multiple_of(align as usize)).collect()
}

/// What a strip is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub threads: u32,
    /// Bytes of a load, and pixels of a strip (4 where it is 1).
    pub align: u32,
    pub rows: u32,
    /// Whether the scale is 1.
    pub one: bool,
    pub halves: bool,
}

impl Form {
    pub(super) fn from_config(config: &Config, scale: f32, halves: bool) -> Result<Self> {
        let [threads, align, rows] = ["threads", "align", "rows"].map(|name| config.get(name));
        Ok(Self { threads: threads?, align: align?, rows: rows?, one: scale == 1.0, halves })
    }

    fn defines(&self) -> Vec<Define> {
        vec![
            ("ALIGN", self.align.to_string()),
            ("ONE", u32::from(self.one).to_string()),
            ("HALVES", u32::from(self.halves).to_string()),
        ]
    }
}

pub(super) fn sliding(
    cuda: &Cuda,
    form: Form,
    image: &Array<u8>,
    [rows, columns]: [usize; 2],
    scale: f32,
    out: &mut Array<u8>,
) -> Result<()> {
    let [high, wide] = sizes(rows, columns, image, out)?;
    expect("threads of a block", 1..=1024, form.threads)?;
    expect("rows of a thread", 1..=u32::MAX >> 1, form.rows)?;
    if !aligns(columns).contains(&form.align.into()) {
        let expected = format!("one of {:?}", aligns(columns));
        return Err(Error::value("bytes of a load", expected, form.align));
    }
    let kernel = cuda.kernel(&SLIDING, &form.defines(), "sliding")?;
    let across = columns.div_ceil(form.align.max(4) as usize).div_ceil(form.threads as usize);
    let blocks = across.saturating_mul(rows.div_ceil(form.rows as usize));
    let blocks = u32::try_from(blocks).ok().filter(|&n| n <= i32::MAX as u32).ok_or_else(|| {
        Error::value("Sobel", "an image of at most 2^31 blocks of pixels", format!("{rows} x {columns}"))
    })?;
    let shape = Launch::linear(blocks, form.threads);
    let arguments = &mut [
        image.cuda().into(),
        out.cuda_mut().into(),
        high.into(),
        wide.into(),
        (across as i32).into(),
        (form.rows as i32).into(),
        scale.into(),
    ];
    // SAFETY: image and output have rows x columns pixels, to which the kernel holds places; rows are made of
    // whole loads.
    unsafe { kernel.launch(shape, arguments) }
}
