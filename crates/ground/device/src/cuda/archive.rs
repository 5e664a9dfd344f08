//! The format of precompiled kernels: machine code for some processors, and PTX, which drivers compile for
//! the others.
//!
//! Programs of one source compile to nearly the same bytes. So a block holds many of them and is compressed
//! (zstd) as one. A search unpacks one block, and the archive keeps it.
//!
//! The format of an archive:
//!
//! - the bytes `RSPKRN01`, the compiler's version (2 × u32), the number of blocks and the number of programs
//!   (u32).
//! - a record for each block: its packed and its unpacked length (2 × u64), the hash of the packed bytes (32
//!   bytes).
//! - a record for each program, in order. It starts with the hash of the program's text and macros (16
//!   bytes), its form (0 PTX, 1 machine code) and the compute capability (2 × u32). The program's block, its
//!   first byte there and its length follow (3 × u32).
//! - the hash of everything before (32 bytes).
//! - the packed blocks.
//!
//! Integers are little-endian.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use rayon::prelude::*;
use rayspin_core::{Error, Result};

use super::Program;

const MAGIC: &[u8; 8] = b"RSPKRN01";
const HASH: usize = 32;
const KEY: usize = 16;
const HEAD: usize = MAGIC.len() + 16;
const BLOCK: usize = 16 + HASH;
const ENTRY: usize = KEY + 24;
/// Maximum unpacked bytes of a block, so that a damaged length cannot request more.
const MOST: u64 = 64 << 20;

/// The form of a program's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// PTX text, which the driver compiles. It serves its capability and all later ones.
    Ptx,
    /// Machine code (cubin). It serves its capability and later ones of the same major version.
    Machine,
}

/// The code of one program, to be put into an archive.
#[derive(Debug)]
pub struct Code {
    key: [u8; KEY],
    name: &'static str,
    form: Form,
    capability: (u32, u32),
    bytes: Vec<u8>,
}

impl Code {
    /// `bytes` compiled from `program` for `capability`.
    pub fn new(program: &Program, form: Form, capability: (u32, u32), bytes: Vec<u8>) -> Self {
        Self { key: key(program), name: program.name, form, capability, bytes }
    }

    /// Bytes of the code.
    #[expect(clippy::len_without_is_empty, reason = "no program's code is empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// An archive of compiled programs, found by their hash.
pub struct Precompiled {
    origin: String,
    compiler: (u32, u32),
    bytes: Cow<'static, [u8]>,
    /// First byte, packed and unpacked length of each block, and what was unpacked so far.
    blocks: Vec<Block>,
    programs: usize,
}

struct Block {
    offset: usize,
    packed: usize,
    len: usize,
    hash: [u8; HASH],
    unpacked: OnceLock<Vec<u8>>,
}

/// Where the code of a program lies in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeLocation {
    pub(super) capability: (u32, u32),
    block: usize,
    offset: usize,
    len: usize,
}

/// The hash of a program's text and macros.
fn key(program: &Program) -> [u8; KEY] {
    let options = program.options().join(" ");
    let mut hasher = blake3::Hasher::new();
    for part in [program.text.as_str(), &options] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut key = [0; KEY];
    hasher.finalize_xof().fill(&mut key);
    key
}

/// The bytes of an archive of these programs. A block has programs of one source for one processor, and about
/// `block` bytes; `compress` packs it (zstd).
///
/// Errors: of `compress`; more than 2³² bytes.
pub fn pack(
    compiler: (u32, u32),
    mut codes: Vec<Code>,
    block: usize,
    compress: impl Fn(&[u8]) -> std::io::Result<Vec<u8>> + Sync,
) -> std::io::Result<Vec<u8>> {
    let order = |code: &Code| (code.form, code.capability, code.name);
    codes.sort_by_key(|code| (order(code), code.bytes.len(), code.key));
    codes.dedup_by_key(|code| (code.form, code.capability, code.key));
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut entries = BTreeMap::new();
    let mut last = None;
    for code in &codes {
        if last != Some(order(code)) || blocks.last().is_none_or(|held| held.len() + code.bytes.len() > block)
        {
            blocks.push(Vec::new());
            last = Some(order(code));
        }
        let number = blocks.len() - 1;
        let Some(held) = blocks.last_mut() else { continue };
        let numbers = [code.form as usize, code.capability.0 as usize, code.capability.1 as usize];
        let location = [number, held.len(), code.bytes.len()];
        entries.insert((code.key, numbers), location);
        held.extend_from_slice(&code.bytes);
    }
    let packed = blocks.par_iter().map(|block| compress(block)).collect::<std::io::Result<Vec<_>>>()?;
    let narrow = |n: usize| u32::try_from(n).map(u32::to_le_bytes).map_err(std::io::Error::other);
    let mut out = MAGIC.to_vec();
    for n in [compiler.0 as usize, compiler.1 as usize, blocks.len(), entries.len()] {
        out.extend(narrow(n)?);
    }
    for (block, packed) in blocks.iter().zip(&packed) {
        out.extend((packed.len() as u64).to_le_bytes());
        out.extend((block.len() as u64).to_le_bytes());
        out.extend(blake3::hash(packed).as_bytes());
    }
    for ((key, numbers), location) in &entries {
        out.extend(key);
        for &n in numbers.iter().chain(location) {
            out.extend(narrow(n)?);
        }
    }
    let hash = blake3::hash(&out);
    out.extend(hash.as_bytes());
    packed.iter().for_each(|block| out.extend(block));
    Ok(out)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

impl Precompiled {
    /// Reads the index of an archive. Errors name `origin`. Errors: another kind of file, a damaged index.
    pub fn parse(origin: impl Into<String>, bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self> {
        let (origin, bytes) = (origin.into(), bytes.into());
        let wrong = |given: &str| {
            Error::value(
                format!("precompiled kernels {origin}"),
                "an archive of `cargo xtask kernels`",
                given,
            )
        };
        if !bytes.starts_with(MAGIC) {
            return Err(wrong("another file"));
        }
        let number = |n: usize| u32_at(&bytes, MAGIC.len() + 4 * n).ok_or_else(|| wrong("a cut file"));
        let (compiler, blocks, programs) =
            ((number(0)?, number(1)?), number(2)? as usize, number(3)? as usize);
        let index = blocks.checked_mul(BLOCK).zip(programs.checked_mul(ENTRY));
        let end = index.and_then(|(blocks, programs)| blocks.checked_add(programs)?.checked_add(HEAD));
        let (end, rest) = end
            .and_then(|end| Some((end, bytes.get(end..)?.split_first_chunk::<HASH>()?)))
            .ok_or_else(|| wrong("a cut file"))?;
        if blake3::hash(&bytes[..end]).as_bytes() != rest.0 {
            return Err(wrong("a damaged file"));
        }
        let mut offset = end + HASH;
        let mut table = Vec::with_capacity(blocks);
        for record in bytes[HEAD..HEAD + blocks * BLOCK].chunks_exact(BLOCK) {
            let len = |offset| u64_at(record, offset).and_then(|n| usize::try_from(n).ok());
            let header = len(0).zip(len(8)).zip(record.last_chunk::<HASH>());
            let Some(((packed, len), &hash)) = header.filter(|((_, len), _)| *len as u64 <= MOST) else {
                return Err(wrong("a damaged file"));
            };
            table.push(Block { offset, packed, len, hash, unpacked: OnceLock::new() });
            offset = offset.checked_add(packed).ok_or_else(|| wrong("a damaged file"))?;
        }
        if offset != bytes.len() {
            return Err(wrong("a cut file"));
        }
        Ok(Self { origin, compiler, blocks: table, programs, bytes })
    }

    /// The source of the archive, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of programs, each counted once for each processor.
    pub fn len(&self) -> usize {
        self.programs
    }

    /// Whether the archive has no programs.
    pub fn is_empty(&self) -> bool {
        self.programs == 0
    }

    /// The version of the compiler that made the archive.
    pub fn compiler(&self) -> (u32, u32) {
        self.compiler
    }

    /// The compute capabilities with machine code, and the number of their programs.
    pub fn machine_code(&self) -> BTreeMap<(u32, u32), usize> {
        let mut counts = BTreeMap::new();
        for entry in self.entries().filter(|entry| u32_at(entry, KEY) == Some(Form::Machine as u32)) {
            if let Some(capability) = u32_at(entry, KEY + 4).zip(u32_at(entry, KEY + 8)) {
                *counts.entry(capability).or_default() += 1;
            }
        }
        counts
    }

    fn index(&self) -> &[u8] {
        let first = HEAD + self.blocks.len() * BLOCK;
        &self.bytes[first..first + self.programs * ENTRY]
    }

    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.index().chunks_exact(ENTRY)
    }

    /// What names the archive's content, for keys of what depends on it.
    pub(super) fn fingerprint(&self) -> String {
        blake3::hash(self.index()).to_hex().to_string()
    }

    /// Where the code of `program` for a `processor` of this capability lies: the newest code that serves it.
    pub(super) fn find(&self, program: &Program, form: Form, processor: (u32, u32)) -> Option<CodeLocation> {
        let (key, index) = (key(program), self.index());
        let (mut first, mut end) = (0, self.programs);
        while first < end {
            let middle = first + (end - first) / 2;
            match index[middle * ENTRY..][..KEY] < key[..] {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        let same = index[first * ENTRY..].chunks_exact(ENTRY).take_while(|entry| entry.starts_with(&key));
        let locations = same.filter_map(|entry| {
            let number = |n: usize| u32_at(entry, KEY + 4 * n);
            let capability = (number(1)?, number(2)?);
            let serves = match form {
                Form::Ptx => capability <= processor,
                Form::Machine => capability.0 == processor.0 && capability.1 <= processor.1,
            };
            let [block, offset, len] = [number(3)?, number(4)?, number(5)?].map(|n| n as usize);
            (number(0)? == form as u32 && serves).then_some(CodeLocation { capability, block, offset, len })
        });
        locations.max_by_key(|location| location.capability)
    }

    /// The code at a location, with a zero byte at the end. Errors: its block is damaged.
    pub(super) fn code(&self, location: CodeLocation) -> Result<Vec<u8>> {
        let damaged = || Error::Device {
            what: format!("precompiled kernels {}", self.origin),
            detail: "a part of them is damaged".to_owned(),
        };
        let block = self.blocks.get(location.block).ok_or_else(damaged)?;
        let unpacked = match block.unpacked.get() {
            Some(unpacked) => unpacked,
            None => {
                let unpacked = self.unpack(block).ok_or_else(damaged)?;
                block.unpacked.get_or_init(|| unpacked)
            }
        };
        let end = location.offset.checked_add(location.len).ok_or_else(damaged)?;
        let mut code = unpacked.get(location.offset..end).ok_or_else(damaged)?.to_vec();
        code.push(0);
        Ok(code)
    }

    fn unpack(&self, block: &Block) -> Option<Vec<u8>> {
        let packed = self.bytes.get(block.offset..block.offset.checked_add(block.packed)?)?;
        if *blake3::hash(packed).as_bytes() != block.hash {
            return None;
        }
        let mut unpacked = Vec::with_capacity(block.len);
        let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
        decoder.take(block.len as u64 + 1).read_to_end(&mut unpacked).ok()?;
        (unpacked.len() == block.len).then_some(unpacked)
    }
}

impl std::fmt::Debug for Precompiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Precompiled({} programs, {})", self.programs, self.origin)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cuda::Source;

    static SOURCE: Source = Source { name: "test", files: &[("test.cu", "// a program")] };
    static OTHER: Source = Source { name: "other", files: &[("other.cu", "// another program")] };

    /// The n-th form of a program.
    pub(in crate::cuda) fn program(n: usize) -> Program {
        Program::new(&SOURCE, &[("N", n.to_string())])
    }

    /// An archive of programs, each with its form, capability and code.
    pub(in crate::cuda) fn archive(codes: &[(&Program, Form, (u32, u32), &str)], block: usize) -> Vec<u8> {
        let codes = codes.iter().map(|&(program, form, capability, text)| {
            Code::new(program, form, capability, text.as_bytes().to_vec())
        });
        let compress = |bytes: &[u8]| {
            Ok(ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest))
        };
        pack((12, 8), codes.collect(), block, compress).unwrap()
    }

    fn some() -> Vec<u8> {
        let (one, two, other) = (program(1), program(2), Program::new(&OTHER, &[]));
        let codes = [
            (&one, Form::Ptx, (8, 0), "text of one"),
            (&two, Form::Ptx, (8, 0), "text of two"),
            (&two, Form::Machine, (8, 0), "two for 8.0"),
            (&two, Form::Machine, (8, 6), "two for 8.6"),
            (&two, Form::Machine, (9, 0), "two for 9.0"),
            (&other, Form::Machine, (9, 0), "other for 9.0"),
            (&one, Form::Ptx, (8, 0), "text of one"),
        ];
        archive(&codes, 15)
    }

    #[test]
    fn the_code_of_a_program_for_a_processor_is_found() {
        let archive = Precompiled::parse("test", some()).unwrap();
        assert_eq!((archive.len(), archive.compiler()), (6, (12, 8)));
        assert_eq!(archive.blocks.len(), 6, "one source, one processor and 15 bytes each");
        let code = |n, form, capability| {
            let location = archive.find(&program(n), form, capability)?;
            Some(String::from_utf8(archive.code(location).unwrap()).unwrap())
        };
        for (n, form, capability, wanted) in [
            (1, Form::Ptx, (12, 0), Some("text of one\0")),
            (1, Form::Ptx, (7, 5), None),
            (1, Form::Machine, (9, 0), None),
            (2, Form::Machine, (8, 0), Some("two for 8.0\0")),
            (2, Form::Machine, (8, 9), Some("two for 8.6\0")),
            (2, Form::Machine, (9, 0), Some("two for 9.0\0")),
            (2, Form::Machine, (10, 0), None),
            (2, Form::Ptx, (10, 0), Some("text of two\0")),
            (3, Form::Ptx, (9, 0), None),
        ] {
            assert_eq!(code(n, form, capability).as_deref(), wanted, "{n} {form:?} {capability:?}");
        }
        let counts: Vec<_> = archive.machine_code().into_iter().collect();
        assert_eq!(counts, [((8, 0), 1), ((8, 6), 1), ((9, 0), 2)]);
    }

    #[test]
    fn damage_is_seen() {
        let whole = some();
        let (one, two, other) = (program(1), program(2), Program::new(&OTHER, &[]));
        let read_all = |bytes: Vec<u8>| -> Result<()> {
            let archive = Precompiled::parse("test", bytes)?;
            for (program, form, capability) in [
                (&one, Form::Ptx, (8, 0)),
                (&two, Form::Ptx, (8, 0)),
                (&two, Form::Machine, (8, 0)),
                (&two, Form::Machine, (8, 6)),
                (&two, Form::Machine, (9, 0)),
                (&other, Form::Machine, (9, 0)),
            ] {
                archive.code(archive.find(program, form, capability).unwrap())?;
            }
            Ok(())
        };
        read_all(whole.clone()).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(read_all(bytes).is_err(), "byte {at}");
        }
        for len in 0..whole.len() {
            assert!(Precompiled::parse("test", whole[..len].to_vec()).is_err(), "{len} bytes");
        }
        let refused = Precompiled::parse("here", b"something else".to_vec()).unwrap_err().to_string();
        assert!(refused.contains("here") && refused.contains("cargo xtask kernels"), "{refused}");
    }
}
