//! Access patterns: what bandwidth is left of memories when they are not read in order.

mod cpu;
mod cuda;
pub mod reference;
mod textures;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::{Argument, Texture};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Call, Case, Row, Signature, Unit, input};

use reference::{FIELDS, Pattern};

/// Which memory and question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A copy in main memory, in different orders.
    Order,
    /// Records by rows, by columns, with padded rows.
    Records,
    /// Shared memory's banks.
    Banks,
    /// A table in constant memory and in global memory.
    Constant,
    /// An image through a texture and without.
    Texture,
    /// A table of one axis, between its numbers.
    TextureLine,
    /// A volume, along each of its axes.
    TextureVolume,
    /// An image, also outside of its borders.
    TextureModes,
}

/// A topic and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// What is measured.
    pub topic: Topic,
    /// Words, records, threads, places, or texels along a side of an image or volume.
    pub n: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.n;
        match self.topic {
            Topic::Order => write!(f, "copy of {n} u32"),
            Topic::Records => write!(f, "{n} records of {FIELDS} u32"),
            Topic::Banks => write!(f, "{n} threads, shared memory"),
            Topic::Constant => write!(f, "{n} threads, table of 4096 u32"),
            Topic::Texture => write!(f, "{n} x {n} f32"),
            Topic::TextureLine => write!(f, "{n} places, table of 4096 f32"),
            Topic::TextureVolume => write!(f, "{n} x {n} x {n} f32"),
            Topic::TextureModes => write!(f, "{n} x {n} f32, twice as far"),
        }
    }
}

/// Inputs and outputs of one problem.
pub struct Data {
    problem: Problem,
    inputs: Vec<Array<u32>>,
    image: Option<Array<f32>>,
    /// The image as textures: a sampling each.
    textures: Vec<Texture>,
    out: Array<u32>,
    /// What was run last, which says what must have come out.
    ran: Option<Pattern>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Access;

/// More outputs than this are checked at random.
const WHOLE: usize = 1 << 18;

/// Declarations of a user's own kernels.
const OWN_COPY: &str = "\
// out[i] = in[i] for i < n, in whatever order threads take the words.
extern \"C\" __global__ void access_copy(const unsigned* in, unsigned* out, unsigned long long n)";
const OWN_RECORDS: &str = "\
// out[i] = the sum, modulo 2^32, of the 30 words of record i < n. Word f of record i is rows[i * 30 + f],
// columns[f * n + i] and padded[i * 32 + f]: read whichever you like.
extern \"C\" __global__ void access_records(const unsigned* rows, const unsigned* columns, const unsigned* padded, unsigned* out, unsigned long long n)";
const OWN_LINE: &str = "\
// out[i] = (1 - a) * table[j] + a * table[j + 1] for i < n, exactly. With m = 2654435761 * i modulo 2^32 and
// p = (m ^ (m >> 15)) % 1048320, j = p / 256, rounded down, and a = (p % 256) / 256. The table has 4096 whole
// numbers below 2^15. tex1D<float>(texture, x) reads it, linear between x = j + 0.5 and j + 1.5.
extern \"C\" __global__ void access_line(const float* table, cudaTextureObject_t texture, float* out, unsigned n)";

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Data { problem, inputs, image, textures, out, ran, .. } = data;
    let device = out.device().clone();
    let n = problem.n as u64;
    let out: Argument<'_> = out.cuda_mut().into();
    match (problem.topic, image, &textures[..]) {
        (Topic::Order, ..) => {
            *ran = Some(Pattern::Offset(0));
            call(&device, &mut [inputs[0].cuda().into(), out, n.into()])
        }
        (Topic::Records, ..) => {
            *ran = Some(Pattern::Records(FIELDS));
            let [rows, columns, padded] = [0, 1, 2].map(|layout| inputs[layout].cuda().into());
            call(&device, &mut [rows, columns, padded, out, n.into()])
        }
        (Topic::TextureLine, Some(table), [texture, ..]) => {
            *ran = Some(Pattern::Line);
            let n = Argument::count(problem.n)?;
            call(&device, &mut [table.cuda().into(), texture.into(), out.of_elements("float"), n])
        }
        _ => Err(Error::value("access by a kernel of your own", "a copy, records or a table", problem)),
    }
}

impl Algorithm for Access {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "access",
            title: "Access patterns of memories",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, topic, n| Case { name, summary, problem: Problem { topic, n } };
        vec![
            case("order", "a copy: in order, misaligned, permuted, strided, random", Topic::Order, 1 << 26),
            case("records", "30 words a record, by rows, by columns, padded", Topic::Records, 1 << 21),
            case("banks", "bank conflicts by stride and width", Topic::Banks, 1 << 20),
            case("constant", "constant against global memory", Topic::Constant, 1 << 20),
            case("texture", "texture against global memory", Topic::Texture, 8192),
            case("texture-1d", "a table between its numbers, as a texture too", Topic::TextureLine, 1 << 24),
            case("texture-3d", "a volume along each axis, as a texture too", Topic::TextureVolume, 512),
            case("texture-modes", "clamp, border, wrap, mirror; point, linear", Topic::TextureModes, 4096),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let trial = |(topic, n)| Problem { topic, n };
        [
            (Topic::Order, 1),
            (Topic::Order, 1000),
            (Topic::Records, 1),
            (Topic::Records, 301),
            (Topic::Banks, 300),
            (Topic::Constant, 257),
            (Topic::Texture, 1),
            (Topic::Texture, 67),
            (Topic::TextureLine, 1),
            (Topic::TextureLine, 3001),
            (Topic::TextureVolume, 1),
            (Topic::TextureVolume, 19),
            (Topic::TextureModes, 1),
            (Topic::TextureModes, 2),
            (Topic::TextureModes, 61),
            (Topic::Order, 8191),
        ]
        .map(trial)
        .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [n] if (1..1 << 32).contains(&n) => {
                voxels(&textures::shape(&Problem { topic: problem.topic, n }))?;
                Ok(Problem { topic: problem.topic, n })
            }
            _ => Err(Error::value("size of access", "one number from 1 to 2³² − 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        variants::rows(problem)
    }

    fn signature(&self, problem: &Problem) -> Option<Signature<Problem, Data>> {
        let (kernel, declaration) = match problem.topic {
            Topic::Order => ("access_copy", OWN_COPY),
            Topic::Records => ("access_records", OWN_RECORDS),
            Topic::TextureLine => ("access_line", OWN_LINE),
            _ => return None,
        };
        Some(Signature {
            kernel,
            declaration,
            extent: |p| [p.n, 1, 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let n = problem.n;
        let cpu = device.cpu_side();
        let words = |len: usize, make: &(dyn Fn(usize) -> u32 + Sync)| {
            Array::from_vec(device, &[len], input::filled(cpu, "words", len, make)?)
        };
        let out = voxels(&textures::shape(problem))?;
        let (mut inputs, mut image, mut textures) = (Vec::new(), None, Vec::new());
        match problem.topic {
            Topic::Order => {
                inputs.push(words(n, &|i| input::bits(seed, i as u64) as u32)?);
                let mut index = input::filled(cpu, "places", n, |i| i as u32)?;
                reference::permute(seed, &mut index);
                inputs.push(Array::from_vec(device, &[n], index)?);
            }
            Topic::Records => {
                let value = |i: usize, f: usize| if f < FIELDS { reference::field(i, f) } else { u32::MAX };
                inputs.push(words(n * FIELDS, &|index| value(index / FIELDS, index % FIELDS))?);
                inputs.push(words(n * FIELDS, &|index| value(index % n, index / n))?);
                let padded = FIELDS + 2;
                inputs.push(words(n * padded, &|index| value(index / padded, index % padded))?);
            }
            Topic::Banks => {}
            Topic::Constant => {
                inputs.push(words(reference::WORDS + reference::READS, &reference::word)?);
                if let Backend::Cuda(cuda) = device.backend() {
                    cuda::set_table(cuda)?;
                }
            }
            Topic::Texture | Topic::TextureLine | Topic::TextureVolume | Topic::TextureModes => {
                if let Backend::Cuda(cuda) = device.backend() {
                    let shape = textures::image(problem);
                    let texels = input::filled(cpu, "texels", voxels(&shape)?, reference::texel)?;
                    let values = Array::from_vec(device, &shape, texels)?;
                    textures = textures::all(cuda, problem.topic, &values)?;
                    image = Some(values);
                }
            }
        }
        let out = Array::zeros(device, &[out])?;
        Ok(Data { problem: *problem, inputs, image, textures, out, ran: None, seed })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.ran = None;
        data.out.fill(u32::MAX)
    }

    /// The share of wrong words.
    fn error(&self, _: &Problem, data: &Data) -> Result<f64> {
        let out = data.out.read()?;
        let Some(ran) = data.ran else { return Ok(1.0) };
        let empty = || Ok(std::borrow::Cow::Borrowed(&[][..]));
        let order = data.problem.topic == Topic::Order;
        let input = if order { data.inputs[0].read() } else { empty() }?;
        let index = if order { data.inputs[1].read() } else { empty() }?;
        let want = |i: usize| match ran {
            Pattern::Records(fields) => {
                (0..fields).fold(0, |sum: u32, f| sum.wrapping_add(reference::field(i, f)))
            }
            Pattern::Table { width, stride } => reference::reads(i % 256, width, stride),
            Pattern::Image => reference::texel(i).to_bits(),
            Pattern::Line => reference::between(i).to_bits(),
            Pattern::Modes(sampling) => reference::sampled(data.problem.n, sampling, i).to_bits(),
            copy => input[reference::source(copy, &index, out.len(), i)],
        };
        let count = out.len().min(WHOLE);
        let wrong = (0..count).filter(|&turn| {
            let i = match turn {
                turn if count == out.len() => turn,
                0 => out.len() - 1,
                turn => (input::bits(data.seed ^ 0xacc, turn as u64) % out.len() as u64) as usize,
            };
            out[i] != want(i)
        });
        Ok(wrong.count() as f64 / count as f64)
    }
}
