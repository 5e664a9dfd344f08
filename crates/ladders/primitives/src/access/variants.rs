//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_device::cuda::AddressMode;
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, Row, Space};

use super::reference::{FIELDS, Pattern, READS};
use super::textures::{self, From};
use super::{Access, Data, Problem, Topic, cpu, cuda};

/// Variants are access patterns to compare; none replaces another.
fn row(
    backend: BackendKind,
    name: &'static str,
    summary: &'static str,
    work: fn(&Problem) -> Work,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Access> {
    let forms = if backend == Cuda { cuda::forms } else { Vec::new };
    Variant::new(name, backend, summary, Runnable::new(implementation), work).to_compare().forms(forms)
}

/// A row of the texture unit's kernels.
fn read(
    name: &'static str,
    summary: &'static str,
    work: fn(&Problem) -> Work,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Access> {
    row(Cuda, name, summary, work, implementation).forms(textures::forms)
}

pub(super) fn rows(problem: &Problem) -> Vec<Row<Access>> {
    match problem.topic {
        Topic::Order => order(),
        Topic::Records => records(),
        Topic::Banks => vec![
            row(Cuda, "gpu-banks-1", "bytes", |p| reads(p, 1.0), |c, d| cuda::banks(1, c, d)).space(banks),
            row(Cuda, "gpu-banks-4", "4 bytes", words, |c, d| cuda::banks(4, c, d)).space(banks),
            row(Cuda, "gpu-banks-8", "8 bytes", |p| reads(p, 8.0), |c, d| cuda::banks(8, c, d)).space(banks),
            row(Cuda, "gpu-banks-16", "16 bytes", |p| reads(p, 16.0), |c, d| cuda::banks(16, c, d))
                .space(banks),
        ],
        Topic::Constant => vec![
            row(Cuda, "gpu-constant", "constant memory", words, |c, d| cuda::table(true, c, d)).space(table),
            row(Cuda, "gpu-global", "global memory, by its caches", words, |c, d| cuda::table(false, c, d))
                .space(table),
        ],
        Topic::Texture => vec![
            read("gpu-image", "from global memory", texels, |c, d| textures::plane(From::Global, c, d))
                .space(blocks),
            read("gpu-texture", "through a texture", texels, |c, d| textures::plane(From::Texture, c, d))
                .space(blocks),
        ],
        Topic::TextureLine => vec![
            read("gpu-line", "two loads and their weights", places, |_, d| textures::line(From::Global, d)),
            read("gpu-line-texture", "one fetch of one axis", places, |_, d| {
                textures::line(From::Texture, d)
            }),
        ],
        Topic::TextureVolume => vec![
            read("gpu-volume", "from global memory", voxels, |c, d| textures::volume(From::Global, c, d))
                .space(axes),
            read("gpu-volume-texture", "through a texture of three axes", voxels, |c, d| {
                textures::volume(From::Texture, c, d)
            })
            .space(axes),
        ],
        Topic::TextureModes => vec![
            read("gpu-mirror-loads", "the image mirrored, by four loads", texels, |c, d| {
                textures::modes(From::Global, AddressMode::Mirror, c, d)
            })
            .space(filters),
            read("gpu-mirror", "the image mirrored; places from 0 to 1", texels, |c, d| {
                textures::modes(From::Texture, AddressMode::Mirror, c, d)
            })
            .space(filters),
            read("gpu-wrap", "the image repeated; places from 0 to 1", texels, |c, d| {
                textures::modes(From::Texture, AddressMode::Wrap, c, d)
            })
            .space(filters),
            read("gpu-border", "0 outside; places in texels", texels, |c, d| {
                textures::modes(From::Texture, AddressMode::Border, c, d)
            })
            .space(filters),
            read("gpu-clamp", "the nearest texel; places in texels", texels, |c, d| {
                textures::modes(From::Texture, AddressMode::Clamp, c, d)
            })
            .space(filters),
        ],
    }
}

fn order() -> Vec<Row<Access>> {
    vec![
        row(Cpu, "random", "all cores, in the order of a random permutation", indexed, |_, d| {
            copy_on_cpu(Pattern::Random, d)
        }),
        row(Cpu, "stride", "all cores, `stride` words between neighbours", copied, |c, d| {
            copy_on_cpu(Pattern::Stride(c.get("stride")? as usize), d)
        })
        .space(strides),
        row(Cpu, "copy", "all cores, in order", copied, |_, d| copy_on_cpu(Pattern::Offset(0), d)),
        row(Cuda, "gpu-random", "in the order of a random permutation", indexed, |_, d| cuda::random(d)),
        row(Cuda, "gpu-stride", "`stride` words between neighbours", copied, |c, d| {
            cuda::strided(c.get("stride")?, d)
        })
        .space(strides),
        row(Cuda, "gpu-permuted", "another order within segments", copied, |c, d| {
            let by = c.get("segment")?;
            cuda::copy("permuted", by, Pattern::Permuted(by as usize), d)
        })
        .space(|_| Space::none().axis("segment", &[8, 16, 32, 64, 128, 256, 1024], 32)),
        row(Cuda, "gpu-offset", "in order, from `offset` words behind a boundary", copied, |c, d| {
            let by = c.get("offset")?.min(d.problem.n as u32 - 1);
            cuda::copy("offset", by, Pattern::Offset(by as usize), d)
        })
        .space(offsets),
        row(Cuda, "gpu-copy", "in order", copied, |_, d| cuda::copy("offset", 0, Pattern::Offset(0), d)),
    ]
}

fn records() -> Vec<Row<Access>> {
    vec![
        row(Cpu, "by-columns", "all cores, a field of all records after the other", all_fields, |_, d| {
            let n = d.problem.n;
            fields_on_cpu(1, [1, n], d)
        }),
        row(Cpu, "by-rows", "all cores, a record after the other", all_fields, |_, d| {
            fields_on_cpu(0, [FIELDS, 1], d)
        }),
        row(Cuda, "gpu-one-by-rows", "one field of each record", copied, |_, d| {
            cuda::records(0, [FIELDS, 0], 1, d)
        }),
        row(Cuda, "gpu-one-by-columns", "one field, which is an array", copied, |_, d| {
            cuda::records(1, [1, 0], 1, d)
        }),
        row(Cuda, "gpu-by-rows", "array of structures", all_fields, |_, d| {
            cuda::records(0, [FIELDS, 1], FIELDS, d)
        }),
        row(Cuda, "gpu-pitched", "array of structures padded to 128 bytes", all_fields, |_, d| {
            cuda::records(2, [FIELDS + 2, 1], FIELDS, d)
        }),
        row(Cuda, "gpu-by-columns", "structure of arrays", all_fields, |_, d| {
            let n = d.problem.n;
            cuda::records(1, [1, n], FIELDS, d)
        }),
    ]
}

fn strides(_: &Problem) -> Space {
    Space::none().axis("stride", &[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128], 32)
}

fn offsets(_: &Problem) -> Space {
    Space::none().axis("offset", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33], 1)
}

fn banks(_: &Problem) -> Space {
    let strides: Vec<i64> = (0..=33).chain([48, 64]).collect();
    Space::none().axis("stride", &strides, 1)
}

fn table(_: &Problem) -> Space {
    Space::none().axis("stride", &[0, 1, 2, 3, 4, 8, 16, 32], 0)
}

fn blocks(_: &Problem) -> Space {
    Space::none().axis("x", &[1, 2, 4, 8, 16, 32, 64, 128, 256], 32)
}

fn axes(_: &Problem) -> Space {
    Space::none().axis("along", &[0, 1, 2], 2)
}

fn filters(_: &Problem) -> Space {
    Space::none().axis("linear", &[0, 1], 1)
}

/// Bytes that the program itself reads and writes. Bytes that the hardware moves beside them do not count.
fn bytes(bytes: f64) -> Work {
    Work { bytes, flops: 0.0 }
}
fn copied(p: &Problem) -> Work {
    bytes(8.0 * p.n as f64)
}
fn indexed(p: &Problem) -> Work {
    bytes(12.0 * p.n as f64)
}
fn all_fields(p: &Problem) -> Work {
    bytes(4.0 * (FIELDS + 1) as f64 * p.n as f64)
}
fn texels(p: &Problem) -> Work {
    bytes(8.0 * (p.n as f64).powi(2))
}
fn voxels(p: &Problem) -> Work {
    bytes(8.0 * (p.n as f64).powi(3))
}
/// The table itself stays in caches.
fn places(p: &Problem) -> Work {
    bytes(4.0 * p.n as f64)
}
fn reads(p: &Problem, width: f64) -> Work {
    bytes((READS * READS) as f64 * width * p.n as f64)
}
fn words(p: &Problem) -> Work {
    reads(p, 4.0)
}

fn copy_on_cpu(pattern: Pattern, data: &mut Data) -> Result<()> {
    data.ran = Some(pattern);
    let device = data.out.device().clone();
    let (input, index) = (data.inputs[0].cpu(), data.inputs[1].cpu());
    cpu::copy(device.cpu_side(), pattern, input, index, data.out.cpu_mut());
    Ok(())
}

/// Input 0 is by rows, 1 by columns.
fn fields_on_cpu(which: usize, steps: [usize; 2], data: &mut Data) -> Result<()> {
    data.ran = Some(Pattern::Records(FIELDS));
    let device = data.out.device().clone();
    cpu::records(device.cpu_side(), steps, data.inputs[which].cpu(), data.out.cpu_mut());
    Ok(())
}
