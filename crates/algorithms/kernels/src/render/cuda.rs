#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::fmt;
use std::sync::OnceLock;

use rayspin_core::{Error, Result, VolumeGrid, expect_len};
use rayspin_device::cuda::{AddressMode, Argument, Define, Filter, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::{Build, Config, Space};

use super::blocks::blocks_of;
use super::ray::Setup;
use super::{Mode, Scene};

static RENDER: Source = Source { name: "render", files: &[("render.cu", include_str!("cuda/render.cu"))] };
static PREPARE: Source =
    Source { name: "render-prepare", files: &[("prepare.cu", include_str!("cuda/prepare.cu"))] };

/// Values between voxels; beyond the volume the value of the nearest voxel.
const SAMPLING: Sampling =
    Sampling { filter: Filter::Linear, address_mode: AddressMode::Clamp, normalized: false };

/// Pixels of a block, and cells of a ray whose samples are under way together.
pub(super) fn space() -> Space {
    Space::none().axis("width", &[8, 16, 32], 8).axis("height", &[4, 8, 16, 32], 16).axis(
        "unroll",
        &[1, 2, 4, 8],
        4,
    )
}

fn defines(mode: usize, config: &Config) -> Vec<Define> {
    let value = |name: &str, default: i64| config.find(name).unwrap_or(default).to_string();
    vec![
        ("MODE", mode.to_string()),
        ("WIDTH", value("width", 8)),
        ("HEIGHT", value("height", 16)),
        ("UNROLL", value("unroll", 4)),
    ]
}

pub(crate) fn builds() -> Vec<Build> {
    let plain = Config::default();
    // Up to 8 registers are spilled while a ray is set up: the compiler gives kernels with calls, here
    // divisions in f64, fewer than they may have.
    let of_mode = |mode| Build { source: &RENDER, defines: defines(mode, &plain), spill_bytes: 32 };
    (0..4).map(of_mode).chain([Build::plain(&PREPARE)]).collect()
}

/// What pictures of one volume share.
pub(super) struct Volume {
    size: [i32; 3],
    low: Array<f32>,
    high: Array<f32>,
    texture: OnceLock<Option<Texture>>,
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Volume({:?})", self.size)
    }
}

fn narrow(what: &str, size: usize) -> Result<i32> {
    let fits = i32::try_from(size).ok().filter(|n| *n < 1 << 30);
    fits.ok_or_else(|| Error::value(what, "less than 2^30 on a GPU", size))
}

fn of_sizes(size: [i32; 3]) -> [Argument<'static>; 3] {
    size.map(Argument::from)
}

impl Volume {
    /// Errors: memory; sizes of 2³⁰ and more.
    pub(super) fn new(cuda: &Cuda, volume: &Array<f32>) -> Result<Self> {
        let &[nz, ny, nx] = volume.shape() else {
            return Err(Error::value("volume", "axes z, y and x", volume.shape().len()));
        };
        let size =
            [narrow("voxels along x", nx)?, narrow("voxels along y", ny)?, narrow("voxels along z", nz)?];
        let blocks = blocks_of([nx, ny, nz]);
        let [x, y, z] = blocks;
        let device = volume.device();
        let (mut low, mut high) = (Array::zeros(device, &[z, y, x])?, Array::zeros(device, &[z, y, x])?);
        let count = narrow("blocks of voxels", blocks.iter().product())? as u32;
        let mut arguments: Vec<Argument<'_>> =
            vec![volume.cuda().into(), low.cuda_mut().into(), high.cuda_mut().into()];
        arguments.extend(of_sizes(size));
        let launch = Launch { blocks: [count.div_ceil(4), 1, 1], threads: [32, 4, 1], shared: 0 };
        // SAFETY: the arrays have the sizes of the volume and of its blocks, and the kernel reads voxels
        // inside the volume only.
        unsafe { cuda.kernel(&PREPARE, &[], "ends_of_blocks")?.launch(launch, &mut arguments)? };
        Ok(Self { size, low, high, texture: OnceLock::new() })
    }

    /// The volume as a texture; none where it is too large for one, or memory is short.
    pub(super) fn texture(&self, cuda: &Cuda, volume: &Array<f32>) -> Option<&Texture> {
        self.texture.get_or_init(|| cuda.texture(volume, SAMPLING).ok()).as_ref()
    }
}

/// What kernels read of a scene.
#[derive(Debug)]
pub(super) struct Frame {
    mode: usize,
    ramps: i32,
    setup: Setup,
    sizes: [u32; 2],
    /// Rows, columns, voxels, where rays start, samples of a voxel, ramps: see `render.cu`.
    numbers: Array<i32>,
    /// Rays and spacing.
    rays: Array<f64>,
    /// What the mode needs: see `render.cu`.
    look: Array<f32>,
    keys: Array<f32>,
}

impl Frame {
    /// Errors: sizes of 2³⁰ and more; memory.
    pub(super) fn new(device: &Device, scene: &Scene, grid: &VolumeGrid) -> Result<Self> {
        let setup = Setup::new(scene, grid);
        let (mode, look, ramps) = look(scene);
        let [rows, columns] = scene.camera.shape();
        let (rays, size) = (setup.numbers(), setup.size);
        let (rows, columns) = (narrow("rows", rows)?, narrow("columns", columns)?);
        let numbers: Vec<i32> = [rows, columns]
            .into_iter()
            .chain(size.map(|n| n as i32))
            .chain([i32::from(setup.starts_at_point())])
            .chain(setup.samples().map(|n| n as i32))
            .chain([ramps as i32])
            .collect();
        Ok(Self {
            mode,
            ramps: ramps as i32,
            setup,
            sizes: [rows as u32, columns as u32],
            numbers: Array::from_vec(device, &[numbers.len()], numbers)?,
            rays: Array::from_vec(device, &[rays.len()], rays)?,
            look: Array::from_vec(device, &[look.len()], look)?,
            keys: Array::zeros(device, &[blocks_of(size).iter().product()])?,
        })
    }

    /// For a kernel of a user's own: voxels along x, y and z; the eye, the direction to the first pixel's
    /// middle, and what a column and a row add to it, in voxels; rows and columns.
    pub(super) fn of_rays(&self) -> [Argument<'static>; 9] {
        let numbers = self.setup.numbers();
        let vector = |row: usize| -> [f64; 3] { std::array::from_fn(|axis| numbers[3 * row + axis]) };
        let narrow = |v: [f64; 3]| Argument::from([v[0] as f32, v[1] as f32, v[2] as f32, 0.0]);
        let [rows, columns] = self.sizes;
        let (forward, right, down) = (vector(3), vector(4), vector(5));
        let middle = |count: u32| 0.5 * f64::from(count - 1);
        let corner = std::array::from_fn(|axis| {
            forward[axis] - middle(columns) * right[axis] - middle(rows) * down[axis]
        });
        let [nx, ny, nz] = self.setup.size.map(|n| Argument::from(n as i32));
        let sides = [rows, columns].map(|n| Argument::from(n as i32));
        let rays = [vector(0), corner, right, down].map(narrow);
        [nx, ny, nz, rays[0], rays[1], rays[2], rays[3], sides[0], sides[1]]
    }

    /// Arguments of kernels behind the voxels.
    fn arguments<'a>(&'a self, out: &'a mut Array<f32>) -> [Argument<'a>; 5] {
        [
            out.cuda_mut().into(),
            self.numbers.cuda().into(),
            self.rays.cuda().into(),
            self.look.cuda().into(),
            self.keys.cuda().into(),
        ]
    }

    fn check(&self, volume: &Array<f32>, prepared: &Volume, out: &Array<f32>) -> Result<()> {
        let channels = if self.mode < 2 { 1 } else { 4 };
        let pixels: usize = self.sizes.iter().map(|&n| n as usize).product();
        let voxels: usize = self.setup.size.iter().product();
        expect_len("picture", &[pixels * channels], out.len())?;
        expect_len("volume", &[voxels], volume.len())?;
        expect_len("blocks", &[self.keys.len()], prepared.low.len())
    }

    /// Finds the blocks' numbers.
    fn find_keys(&mut self, cuda: &Cuda, prepared: &Volume) -> Result<()> {
        let count = self.keys.len() as u32;
        let arguments = &mut [
            prepared.low.cuda().into(),
            prepared.high.cuda().into(),
            self.keys.cuda_mut().into(),
            self.look.cuda().into(),
            self.ramps.into(),
            (self.mode as i32).into(),
            count.into(),
        ];
        // SAFETY: the three arrays have a number for each block.
        unsafe {
            cuda.kernel(&PREPARE, &[], "keys_of_blocks")?
                .launch(Launch::linear(count.div_ceil(256), 256), arguments)
        }
    }
}

/// The mode's number, its numbers for kernels, and how many ramps they have.
fn look(scene: &Scene) -> (usize, Vec<f32>, usize) {
    match &scene.mode {
        Mode::XRay => (0, vec![0.0], 0),
        Mode::Maximum { missed } => (1, vec![*missed], 0),
        Mode::Volume(transfer) => {
            let (base, ramps) = transfer.ramps();
            (2, base.into_iter().chain(ramps.iter().flatten().copied()).collect(), ramps.len())
        }
        Mode::Surface(surface) => {
            let mut look = vec![surface.value];
            look.extend(surface.colour);
            look.extend([surface.ambient, surface.diffuse, surface.specular, surface.shininess]);
            look.extend(surface.light_from(scene.camera.axes).map(|x| x as f32));
            (3, look, 0)
        }
    }
}

/// A volume, and what was prepared of it.
#[derive(Clone, Copy)]
pub(super) struct PreparedVolume<'a> {
    pub(super) voxels: &'a Array<f32>,
    pub(super) prepared: &'a Volume,
}

/// How a kernel reads voxels.
#[derive(Debug, Clone, Copy)]
pub struct CudaImplementation {
    /// By the texture unit.
    pub(super) texture: bool,
    /// Without blocks in which a ray meets nothing.
    pub(super) skip: bool,
}

impl CudaImplementation {
    fn kernel(self) -> &'static str {
        match (self.texture, self.skip) {
            (false, false) => "rays",
            (false, true) => "rays_skipping",
            (true, false) => "in_texture",
            (true, true) => "in_texture_skipping",
        }
    }

    /// Draws a picture of a volume; reads the volume itself where it is too large for a texture.
    pub(super) fn draw(
        mut self,
        cuda: &Cuda,
        config: &Config,
        PreparedVolume { voxels: volume, prepared }: PreparedVolume<'_>,
        frame: &mut Frame,
        out: &mut Array<f32>,
    ) -> Result<()> {
        frame.check(volume, prepared, out)?;
        if self.skip {
            frame.find_keys(cuda, prepared)?;
        }
        let texture = if self.texture { prepared.texture(cuda, volume) } else { None };
        self.texture = texture.is_some();
        let mut arguments = vec![texture.map_or_else(|| volume.cuda().into(), Argument::from)];
        arguments.extend(frame.arguments(out));
        let side = |name: &str, default: i64| config.find(name).unwrap_or(default).clamp(1, 1024) as u32;
        let ([rows, columns], width, height) = (frame.sizes, side("width", 8), side("height", 16));
        let launch = Launch {
            blocks: [columns.div_ceil(width), rows.div_ceil(height), 1],
            threads: [width, height, 1],
            shared: 0,
        };
        let kernel = cuda.kernel(&RENDER, &defines(frame.mode, config), self.kernel())?;
        // SAFETY: the arrays have the sizes of the volume, its blocks and the picture (`Frame::check`), and
        // places are clamped to the volume.
        unsafe { kernel.launch(launch, &mut arguments) }
    }
}
