//! Pictures as ladders.

use std::f64::consts::FRAC_PI_4;
use std::fmt;

use rayspin_core::{Error, Result, VolumeGrid, voxels};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::input::{bits, filled, signed_unit};
use rayspin_tune::{About, Algorithm, Call, Case, Counts, HostTransfer, Row, Runnable, Signature, Unit};

use super::blocks::Blocks;
use super::cuda::{Frame, PreparedVolume, Volume};
use super::voxels::{Spread, Voxels};
use super::{
    Camera, Implementation, Knot, Lens, Mode, Problem, Scene, Surface, Transfer, cpu, reference, variants,
};

/// Samples of the whole oracle; of larger problems at random pixels.
const WHOLE: f64 = 1e6;
/// Pixels of a large problem that are compared.
const COMPARED: u64 = 512;

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    XRay,
    Maximum,
    Volume,
    Surface,
}

/// Pictures of one mode.
#[derive(Debug, Clone, Copy)]
pub struct Render {
    kind: Kind,
}

/// Attenuation of water and of bone, 1/mm.
const WATER: f32 = 0.02;
const BONE: f32 = 0.05;

impl Render {
    /// Every ladder.
    pub fn all() -> [Self; 4] {
        [Kind::XRay, Kind::Maximum, Kind::Volume, Kind::Surface].map(|kind| Self { kind })
    }

    fn mode(&self) -> Result<Mode> {
        let knot = |value, colour, opacity| Knot { value, colour, opacity };
        Ok(match self.kind {
            Kind::XRay => Mode::XRay,
            Kind::Maximum => Mode::Maximum { missed: 0.0 },
            Kind::Volume => Mode::Volume(Transfer::new(vec![
                knot(0.25 * WATER, [0.8, 0.4, 0.3], 0.0),
                knot(WATER, [0.8, 0.4, 0.3], 0.01),
                knot(1.25 * WATER, [0.9, 0.8, 0.7], 0.01),
                knot(BONE, [1.0, 1.0, 0.9], 0.3),
            ])?),
            Kind::Surface => Mode::Surface(Surface::of(0.7 * BONE)),
        })
    }

    /// `pixels` x `pixels` pixels of a cube of n voxels of 1 mm, seen from half a right angle beside the
    /// front and a little from above.
    fn problem(&self, n: usize, pixels: usize) -> Result<Problem> {
        voxels(&[n, n, n])?;
        voxels(&[pixels, pixels, 4])?;
        let grid = VolumeGrid::new([n; 3], [1.0; 3], [0.0; 3])?;
        let (size, azimuth, elevation) = (n as f64, 0.8 * FRAC_PI_4, 0.3f64);
        let eye = [azimuth.sin() * elevation.cos(), -azimuth.cos() * elevation.cos(), elevation.sin()]
            .map(|x| 3.0 * size * x);
        // The ball of the volume's content fills the picture.
        let lens = Lens::Perspective { field_of_view: 2.0 * (1.0f64 / 6.0).asin() };
        let camera = Camera::new(lens, eye, [0.0; 3], [0.0, 0.0, 1.0], [pixels; 2])?;
        Ok(Problem { scene: Scene::new(camera, self.mode()?), grid })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([rows, columns], [nz, ny, nx]) = (self.scene.camera.shape(), self.grid.shape_zyx());
        write!(f, "{rows} x {columns} pixels, {nz} x {ny} x {nx} voxels")
    }
}

/// A head: a shell of bone around water in air, with bones inside, smooth over two voxels. A little noise
/// makes every voxel differ where there is something.
fn head(grid: &VolumeGrid, seed: u64, voxel: usize) -> f32 {
    let [nz, ny, nx] = grid.shape_zyx();
    let index = [voxel % nx, voxel / nx % ny, voxel / nx / ny];
    let sizes = [nx, ny, nz].map(|n| n as f64);
    let place = |axis: usize| 2.0 * (index[axis] as f64 + 0.5) / sizes[axis] - 1.0;
    let p = [place(0), place(1), place(2)];
    let within = |centre: [f64; 3], radii: [f64; 3]| {
        let away = (0..3).map(|a| ((p[a] - centre[a]) / radii[a]).powi(2)).sum::<f64>().sqrt();
        let least = radii.into_iter().fold(f64::INFINITY, f64::min);
        (0.5 + (1.0 - away) * least * sizes[0] / 4.0).clamp(0.0, 1.0)
    };
    let (outer, inner) = (within([0.0; 3], [0.75, 0.9, 0.8]), within([0.0; 3], [0.68, 0.82, 0.73]));
    let bones = within([0.3, -0.2, 0.1], [0.1, 0.2, 0.15]) + within([-0.3, 0.2, -0.2], [0.15, 0.1, 0.1]);
    let (water, bone) = (f64::from(WATER), f64::from(BONE));
    let value = bone * (outer - inner) + water * inner + (bone - water) * bones;
    (value * (1.0 + 0.05 * f64::from(signed_unit(seed, voxel)))) as f32
}

/// Arrays of one problem.
pub struct Data {
    problem: Problem,
    volume: Array<f32>,
    picture: Array<f32>,
    prepared: Prepared,
    /// Knots of a transfer function on a GPU, once a kernel of a user's own was called.
    knots: Option<Array<f32>>,
}

enum Prepared {
    Cpu(Spread, Blocks),
    Cuda(Box<(Volume, Frame)>),
}

fn prepare(problem: &Problem, volume: &Array<f32>) -> Result<Prepared> {
    Ok(match volume.device().backend() {
        Backend::Cpu(cpu) => {
            let size = problem.grid.shape_xyz();
            Prepared::Cpu(Spread::new(cpu, volume.cpu(), size)?, Blocks::new(cpu, volume.cpu(), size)?)
        }
        Backend::Cuda(cuda) => Prepared::Cuda(Box::new((
            Volume::new(cuda, volume)?,
            Frame::new(volume.device(), &problem.scene, &problem.grid)?,
        ))),
    })
}

/// A kernel of the user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, volume, picture, prepared, knots } = data;
    let device = volume.device().clone();
    let (Backend::Cuda(cuda), Prepared::Cuda(prepared)) = (device.backend(), prepared) else {
        return Err(Error::value("picture by a kernel", "a GPU", device.describe()));
    };
    let (shared, frame) = &**prepared;
    let Some(texture) = shared.texture(cuda, volume) else {
        return Err(Error::value(
            "volume for a kernel of your own",
            "one that fits a texture",
            "a larger one",
        ));
    };
    let mut arguments: Vec<Argument<'_>> = vec![volume.cuda().into(), texture.into()];
    let [nx, ny, nz, rays @ .., rows, columns] = frame.of_rays();
    arguments.extend([nx, ny, nz]);
    arguments.extend(rays);
    match &problem.scene.mode {
        Mode::XRay | Mode::Maximum { .. } => {}
        Mode::Volume(transfer) => {
            let count = transfer.knots().len() as i32;
            let of_knot = |k: &Knot| [k.value, k.colour[0], k.colour[1], k.colour[2], k.opacity];
            let knots = match knots {
                Some(knots) => knots,
                None => {
                    let values: Vec<f32> = transfer.knots().iter().flat_map(of_knot).collect();
                    knots.insert(Array::from_vec(&device, &[values.len()], values)?)
                }
            };
            arguments.extend([Argument::from(knots.cuda()), count.into()]);
        }
        Mode::Surface(surface) => {
            let vector = |[x, y, z]: [f32; 3]| Argument::from([x, y, z, 0.0]);
            let light = surface.light_from(problem.scene.camera.axes).map(|x| x as f32);
            let Surface { value, colour, ambient, diffuse, specular, shininess, .. } = *surface;
            arguments.extend([value.into(), vector(colour), vector(light)]);
            arguments.extend([ambient, diffuse, specular, shininess].map(Argument::from));
        }
    }
    let picture: Argument<'_> = picture.cuda_mut().into();
    let four = problem.scene.mode.channels() == 4;
    arguments.extend([if four { picture.of_elements("float4") } else { picture }, rows, columns]);
    call(&device, &mut arguments)
}

/// Declarations of a user's own kernels.
const OWN_XRAY: &str = "\
// picture[row * columns + column] = the integral of the volume along a ray. The ray begins at `eye` and
// has the direction d = corner + column * right + row * down (x, y, z; w is 0).
// Places are in voxels of 1 mm. Voxel (i, j, k) is volume[(k * ny + j) * nx + i]. It reaches from i to
// i + 1, and its centre lies at i + 0.5. tex3D<float>(texture, x, y, z) reads the texture in these places,
// linear between voxels, to 1/256.
// The main axis is the axis along which |d| is largest. Each ray is sampled once in each voxel of
// the main axis, in the middle (at i + 0.5 of that axis). The sample is linear between the centres of
// voxels; elsewhere it is that of the nearest place between centres. It counts for the length of the ray
// in that voxel of the main axis and in the box of all voxels. A ray that misses the box is 0.
extern \"C\" __global__ void render_xray(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, float* picture, int rows, int columns)";
const OWN_MAXIMUM: &str = "\
// picture[row * columns + column] = the largest sample of the volume along a ray. The ray begins at `eye`
// and has the direction d = corner + column * right + row * down (x, y, z; w is 0).
// Places are in voxels of 1 mm. Voxel (i, j, k) is volume[(k * ny + j) * nx + i]. It reaches from i to
// i + 1, and its centre lies at i + 0.5. tex3D<float>(texture, x, y, z) reads the texture in these places,
// linear between voxels, to 1/256.
// The main axis is the axis along which |d| is largest. Each ray is sampled once in each voxel of
// the main axis that it passes inside the box of all voxels, in the middle (at i + 0.5 of that axis). The
// sample is linear between the centres of voxels; elsewhere it is that of the nearest place between
// centres. A ray that misses the box is 0.
extern \"C\" __global__ void render_maximum(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, float* picture, int rows, int columns)";
const OWN_VOLUME: &str = "\
// picture[row * columns + column] = (red, green, blue, opacity) of the light along a ray. The ray begins at
// `eye` and has the direction d = corner + column * right + row * down (x, y, z; w is 0).
// Places are in voxels of 1 mm. Voxel (i, j, k) is volume[(k * ny + j) * nx + i]. It reaches from i to
// i + 1, and its centre lies at i + 0.5. tex3D<float>(texture, x, y, z) reads the texture in these places,
// linear between voxels, to 1/256.
// The main axis is the axis along which |d| is largest. Each ray is sampled once in each voxel of the main
// axis, in the middle (at i + 0.5 of that axis), beginning near `eye`. The sample is linear between the
// centres of voxels; elsewhere it is that of the nearest place between centres. It counts for the length l
// of the ray in that voxel of the main axis and in the box of all voxels.
// Knot i < count is knots[5 * i] = value, then red, green, blue and opacity (1/mm). Values grow with i. The
// colour c and the opacity s of a sample are linear in its value between knots. They are those of the first
// knot before it, and those of the last behind it. `clear` is 1 before the first sample. Each sample adds
// clear * (1 - e^(-s l)) * c to the light, then clear *= e^(-s l). The picture's opacity is 1 - clear. Light
// need not be followed where `clear` is below 1/1024. A ray that misses the box is 0.
extern \"C\" __global__ void render_volume(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, const float* knots, int count, float4* picture, int rows, int columns)";
const OWN_SURFACE: &str = "\
// picture[row * columns + column] = (red, green, blue, 1) of a lit surface, or 0 where a ray does not meet
// it. The ray begins at `eye` and has the direction d = corner + column * right + row * down (x, y, z; w is
// 0).
// Places are in voxels of 1 mm. Voxel (i, j, k) is volume[(k * ny + j) * nx + i]. It reaches from i to
// i + 1, and its centre lies at i + 0.5. tex3D<float>(texture, x, y, z) reads the texture in these places,
// linear between voxels, to 1/256.
// The main axis is the axis along which |d| is largest. Each ray is sampled once in each voxel of the main
// axis that it passes inside the box of all voxels, in the middle (at i + 0.5 of that axis), beginning near
// `eye`. The sample is linear between the centres of voxels; elsewhere it is that of the nearest place
// between centres.
// The ray meets the surface before the first sample of at least `value`: where the line from the sample
// before it to this one reaches `value`, or at this sample where there is none before. The gradient g there
// has along each axis half the difference of the volume one voxel ahead and one behind. The normal n is
// g / |g|, or -d / |d| where |g| <= 5e-6 * |value|; its sign is such that n.d <= 0. With v = -d / |d| and
// r = 2 (n.light) n - light, rough = ambient + diffuse * max(0, n.light). shine is
// specular * max(0, r.v)^shininess, or 0 where n.light <= 0. Red, green and blue are
// min(1, colour * rough + shine). `light` has length 1.
extern \"C\" __global__ void render_surface(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, float value, float4 colour, float4 light, float ambient, float diffuse, float specular, float shininess, float4* picture, int rows, int columns)";

impl Algorithm for Render {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        let (name, title) = match self.kind {
            Kind::XRay => ("render-xray", "X-ray image of a volume"),
            Kind::Maximum => ("render-maximum", "Largest value along each ray"),
            Kind::Volume => ("render-volume", "Emission and absorption along each ray"),
            Kind::Surface => ("render-surface", "Lit surface of one value"),
        };
        About { name, title, readme: include_str!("README.md"), unit: Unit::Items("samples") }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, n, pixels| {
            self.problem(n, pixels).ok().map(|problem| Case { name, summary, problem })
        };
        [
            case("256", "512 x 512 pixels of 256 cubed voxels", 256, 512),
            case("512", "1024 x 1024 pixels of 512 cubed voxels", 512, 1024),
            case("64", "a small picture", 64, 128),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn default_case(&self, kind: rayspin_device::BackendKind) -> Option<&'static str> {
        (kind == rayspin_device::BackendKind::Cuda).then_some("512")
    }

    fn trials(&self) -> Vec<Problem> {
        let sizes = [(1, 1), (2, 9), (9, 17), (21, 40)];
        sizes.into_iter().filter_map(|(n, pixels)| self.problem(n, pixels).ok()).collect()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [n, pixels] if n > 0 && pixels > 0 => self.problem(n, pixels),
            _ => Err(Error::value(
                format!("size of {}", self.about().name),
                "voxels along an axis and pixels along a side, as in 256x512, each at least 1",
                format!("{size:?}"),
            )),
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        let to_run = |implementation: Implementation| {
            Runnable::new(move |config, data: &mut Data| {
                let Data { problem, volume, picture, prepared, .. } = data;
                let device = volume.device().clone();
                match (&implementation, device.backend(), prepared) {
                    (Implementation::Cpu(implementation), _, Prepared::Cpu(spread, blocks)) => {
                        let Problem { scene, grid } = problem;
                        let voxels = match implementation.spread {
                            true => spread.voxels(),
                            false => Voxels::dense(volume.cpu(), grid.shape_xyz()),
                        };
                        let input = cpu::Input { scene, grid, voxels, blocks };
                        (implementation.draw)(device.cpu_side(), input, picture.cpu_mut())
                    }
                    (Implementation::Cuda(implementation), Backend::Cuda(cuda), Prepared::Cuda(prepared)) => {
                        let (prepared, frame) = &mut **prepared;
                        let volume = PreparedVolume { voxels: volume, prepared };
                        implementation.draw(cuda, config, volume, frame, picture)
                    }
                    _ => Err(Error::value("variant of a picture", "one for this device", "another")),
                }
            })
            .host_transfer(|data| {
                Some(HostTransfer { inputs: vec![&mut data.volume], outputs: vec![&mut data.picture] })
            })
            .set_up(|problem, data| {
                data.prepared = prepare(problem, &data.volume)?;
                Ok(())
            })
        };
        variants(&problem.scene.mode).into_iter().map(|row| row.run_by(to_run)).collect()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { items: problem.items(), ..Counts::default() }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        let (kernel, declaration) = match self.kind {
            Kind::XRay => ("render_xray", OWN_XRAY),
            Kind::Maximum => ("render_maximum", OWN_MAXIMUM),
            Kind::Volume => ("render_volume", OWN_VOLUME),
            Kind::Surface => ("render_surface", OWN_SURFACE),
        };
        let extent = |p: &Problem| {
            let [rows, columns] = p.scene.camera.shape();
            [columns, rows, 1]
        };
        Some(Signature { kernel, declaration, extent, defines: |_: &Problem| Vec::new(), call: called_by })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let (cpu, shape) = (device.cpu_side(), problem.grid.shape_zyx());
        let values = filled(cpu, "volume", voxels(&shape)?, |index| head(&problem.grid, seed, index))?;
        let volume = Array::from_vec(device, &shape, values)?;
        let picture = Array::zeros(device, &problem.scene.shape())?;
        let prepared = prepare(problem, &volume)?;
        if let (Backend::Cuda(cuda), Prepared::Cuda(made)) = (device.backend(), &prepared) {
            // While launches are captured none can be made.
            made.0.texture(cuda, &volume);
        }
        Ok(Data { problem: problem.clone(), prepared, volume, picture, knots: None })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.picture.fill(f32::NAN)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (volume, picture) = (data.volume.read()?, data.picture.read()?);
        let Problem { scene, grid } = problem;
        let ([_, columns], channels) = (scene.camera.shape(), scene.mode.channels());
        let pixels = picture.len() / channels;
        let whole = problem.items() <= WHOLE;
        let count = if whole { pixels as u64 } else { COMPARED };
        let place = |i: u64| if whole { i } else { bits(5, i) % pixels as u64 } as usize;
        let places: Vec<usize> = (0..count).map(place).collect();
        let (mut wrong, mut size, mut apart) = (0.0, 0.0, 0);
        for pixel in places {
            let wanted = reference::pixel(scene, grid, &volume, pixel / columns, pixel % columns);
            let drawn = &picture[pixel * channels..][..channels];
            let squared = |drawn: &f32, wanted: &f64| (f64::from(*drawn) - wanted).powi(2);
            let here: f64 = drawn.iter().zip(&wanted).map(|(d, w)| squared(d, w)).sum();
            wrong += here;
            size += wanted[..channels].iter().map(|w| w * w).sum::<f64>();
            apart += usize::from(here.is_nan() || here > DIFFERENT * DIFFERENT);
        }
        let error = match self.kind {
            Kind::Surface => apart as f64 / count as f64,
            _ if size > 0.0 => (wrong / size).sqrt(),
            _ => wrong.sqrt(),
        };
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}

/// Difference of the colours of a lit pixel from which on it counts as another one.
const DIFFERENT: f64 = 0.02;
