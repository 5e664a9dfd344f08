//! Precompiled PTX, for machines with the driver and without the compiler. The archive is one file, or the same bytes inside
//! the executable.
//!
//! The format of an archive:
//!
//! - the bytes `RSPPTX01`, the compiler's version (2 × u32) and the number of entries (u32).
//! - one index record for each entry (see below).
//! - the packed PTX of each entry.
//! - the hash of everything before.
//!
//! An index record holds the hash of the program (32 bytes), the compute capability (2 × u32), the position after the index, the
//! packed length and the unpacked length (3 × u64). If the PTX runs on one capability alone, 100 is added to its minor version.
//! Integers are little-endian.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayspin_core::{Error, Result};

use super::{Program, cache};
#[cfg(any(test, not(feature = "precompiled")))]
use crate::private;

const MAGIC: &[u8; 8] = b"RSPPTX01";
const HASH: usize = 32;
const HEAD: usize = MAGIC.len() + 12;
const ENTRY: usize = HASH + 8 + 24;
/// Added to the minor version if the PTX uses instructions of that capability alone (`compute_90a`).
const ONLY: u32 = 100;
/// Maximum bytes of one program's PTX, so that a damaged length cannot request more.
const MOST: u64 = 64 << 20;

/// The archive inside the executable.
#[cfg(feature = "precompiled")]
static EMBEDDED: &[u8] = include_bytes!(env!(
    "RAYSPIN_PTX_EMBED",
    "the feature `precompiled` embeds the file that RAYSPIN_PTX_EMBED names: make one with `cargo xtask ptx`"
));

/// An archive of compiled programs, found by their hash.
pub struct Precompiled {
    origin: String,
    compiler: (u32, u32),
    bytes: std::borrow::Cow<'static, [u8]>,
    count: usize,
}

/// The key of a program: the hash of its text and its macros.
fn key(program: &Program) -> [u8; HASH] {
    let options = program.options().join(" ");
    let mut hasher = blake3::Hasher::new();
    for part in [program.text.as_str(), &options] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// One program's packed PTX, to be put into an archive.
#[derive(Debug)]
pub struct Packed {
    key: [u8; HASH],
    capability: (u32, u32),
    len: u64,
    bytes: Vec<u8>,
}

impl Packed {
    /// Packs `ptx` of `program`, compiled for `capability` and all later ones, or with `only` for this one alone.
    pub fn new(program: &Program, capability: (u32, u32), only: bool, ptx: &[u8]) -> std::io::Result<Self> {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(ptx)?;
        let capability = (capability.0, capability.1 + if only { ONLY } else { 0 });
        Ok(Self { key: key(program), capability, len: ptx.len() as u64, bytes: packer.finish()? })
    }
}

/// The bytes of an archive of these programs.
pub fn pack(compiler: (u32, u32), mut entries: Vec<Packed>) -> Vec<u8> {
    entries.sort_by_key(|entry| (entry.key, entry.capability));
    entries.dedup_by_key(|entry| (entry.key, entry.capability));
    let mut out = MAGIC.to_vec();
    for word in [compiler.0, compiler.1, entries.len() as u32] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let mut at = (HEAD + entries.len() * ENTRY) as u64;
    for entry in &entries {
        out.extend_from_slice(&entry.key);
        out.extend_from_slice(&entry.capability.0.to_le_bytes());
        out.extend_from_slice(&entry.capability.1.to_le_bytes());
        for number in [at, entry.bytes.len() as u64, entry.len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        at += entry.bytes.len() as u64;
    }
    for entry in &entries {
        out.extend_from_slice(&entry.bytes);
    }
    let hash = blake3::hash(&out);
    out.extend_from_slice(hash.as_bytes());
    out
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Precompiled {
    /// Reads an archive. Errors name `origin`. Errors: another kind of file, or a damaged one.
    pub fn parse(
        origin: impl Into<String>,
        bytes: impl Into<std::borrow::Cow<'static, [u8]>>,
    ) -> Result<Self> {
        let (origin, bytes) = (origin.into(), bytes.into());
        let wrong = |found: &str| {
            Error::value(format!("precompiled kernels {origin}"), "an archive of `cargo xtask ptx`", found)
        };
        if !bytes.starts_with(MAGIC) {
            return Err(wrong("another file"));
        }
        let (content, hash) = bytes.split_last_chunk::<HASH>().ok_or_else(|| wrong("a cut file"))?;
        if blake3::hash(content).as_bytes() != hash {
            return Err(wrong("a damaged file"));
        }
        let numbers = [0, 4, 8].map(|at| u32_at(content, MAGIC.len() + at));
        let [Some(major), Some(minor), Some(count)] = numbers else { return Err(wrong("a cut file")) };
        let count = count as usize;
        let room = content.len().saturating_sub(HEAD);
        if count.checked_mul(ENTRY).is_none_or(|index| index > room) {
            return Err(wrong("a cut index"));
        }
        Ok(Self { origin, compiler: (major, minor), count, bytes })
    }

    /// Reads the archive in a file.
    fn open(path: &Path) -> Result<Self> {
        let origin = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| unread(&origin, &error))?;
        Self::parse(origin, bytes)
    }

    /// The source of the archive, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of programs.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the archive has no programs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The version of the compiler that made the archive.
    pub fn compiler(&self) -> (u32, u32) {
        self.compiler
    }

    /// The PTX of `program` for a processor of this capability, with a zero byte at the end. Errors: the archive lacks the
    /// program; the entry is damaged.
    pub fn find(&self, program: &Program, capability: (u32, u32)) -> Result<Vec<u8>> {
        let key = key(program);
        let index = &self.bytes[HEAD..HEAD + self.count * ENTRY];
        let runs = |minor: u32, major: u32| match minor >= ONLY {
            true => (major, minor - ONLY) == capability,
            false => (major, minor) <= capability,
        };
        let best = index
            .chunks_exact(ENTRY)
            .filter(|entry| entry.starts_with(&key))
            .filter_map(|entry| {
                let capability = (u32_at(entry, HASH)?, u32_at(entry, HASH + 4)?);
                let numbers = [8, 16, 24].map(|at| u64_at(entry, HASH + at));
                let [Some(at), Some(packed), Some(len)] = numbers else { return None };
                runs(capability.1, capability.0).then_some((capability, at, packed, len))
            })
            .max();
        let Some((_, at, packed, len)) = best else {
            return Err(Error::Device {
                what: format!("kernels of {} ({})", program.name, program.describe()),
                detail: format!(
                    "not among the {} precompiled programs of {}, and {}",
                    self.count,
                    self.origin,
                    super::compile::missing()
                ),
            });
        };
        let damaged = || Error::Device {
            what: format!("precompiled kernels {}", self.origin),
            detail: format!("{} is damaged", program.name),
        };
        let range = usize::try_from(at).ok().zip(usize::try_from(packed).ok());
        let packed = range
            .and_then(|(at, len)| self.bytes.get(at..at.checked_add(len)?))
            .filter(|_| len <= MOST)
            .ok_or_else(damaged)?;
        let mut ptx = Vec::with_capacity(len as usize + 1);
        flate2::read::ZlibDecoder::new(packed).take(len).read_to_end(&mut ptx).map_err(|_| damaged())?;
        if ptx.len() as u64 != len {
            return Err(damaged());
        }
        if ptx.last() != Some(&0) {
            ptx.push(0);
        }
        Ok(ptx)
    }
}

impl std::fmt::Debug for Precompiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Precompiled({} programs, {})", self.count, self.origin)
    }
}

/// The result of the search for this process's archive.
#[derive(Default)]
struct Found {
    archive: Option<Precompiled>,
    /// Why the file beside the executable is ignored.
    ignored: Option<String>,
}

/// The archive of this process: the file that `RAYSPIN_PTX` names, or else the one inside the executable, or else
/// `rayspin.ptx` beside the executable. That last file is [`ignored`] if others may write to it.
///
/// Errors: a file that is no archive.
pub fn archive() -> Result<Option<&'static Precompiled>> {
    match found() {
        Ok(found) => Ok(found.archive.as_ref()),
        Err(words) => Err(Error::Device { what: "precompiled kernels".to_owned(), detail: words.clone() }),
    }
}

/// Why `rayspin.ptx` beside the executable is ignored, in words for people; `None` if it is not.
pub fn ignored() -> Option<&'static str> {
    found().as_ref().ok()?.ignored.as_deref()
}

fn found() -> &'static std::result::Result<Found, String> {
    static FOUND: OnceLock<std::result::Result<Found, String>> = OnceLock::new();
    FOUND.get_or_init(|| look().map_err(|error| error.to_string()))
}

fn look() -> Result<Found> {
    if let Some(path) = std::env::var_os("RAYSPIN_PTX").filter(|path| !path.is_empty()) {
        return Ok(Found { archive: Some(Precompiled::open(&PathBuf::from(path))?), ignored: None });
    }
    #[cfg(feature = "precompiled")]
    return Ok(Found { archive: Some(Precompiled::parse("this executable", EMBEDDED)?), ignored: None });
    #[cfg(not(feature = "precompiled"))]
    std::env::current_exe().map_or_else(|_| Ok(Found::default()), |executable| beside(&executable))
}

/// The archive beside this executable. Errors: a file that cannot be read or is no archive.
#[cfg(any(test, not(feature = "precompiled")))]
fn beside(executable: &Path) -> Result<Found> {
    const NAME: &str = "rayspin.ptx";
    let origin = executable.with_file_name(NAME).display().to_string();
    let unread = |error: std::io::Error| unread(&origin, &error);
    let mut file = match private::open_beside(executable, NAME) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(Found::default()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(Found { archive: None, ignored: Some(error.to_string()) });
        }
        Err(error) => return Err(unread(error)),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unread)?;
    Ok(Found { archive: Some(Precompiled::parse(origin, bytes)?), ignored: None })
}

fn unread(origin: &str, error: &std::io::Error) -> Error {
    Error::Device { what: format!("precompiled kernels {origin}"), detail: error.to_string() }
}

/// The cache's file name for machine code made from this program's PTX.
pub(super) fn cache_key(program: &Program, ptx: &[u8], architecture: &str, driver: (u32, u32)) -> String {
    let hash = blake3::hash(ptx).to_hex();
    cache::key(&[&program.text, &hash, architecture, &format!("driver {driver:?}")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Source;

    static SOURCE: Source = Source { name: "test", files: &[("test.cu", "// a program")] };

    fn program(n: usize) -> Program {
        Program::new(&SOURCE, &[("N", n.to_string())])
    }

    fn archive() -> Vec<u8> {
        let packed = |n, capability, only, text: &str| {
            Packed::new(&program(n), capability, only, text.as_bytes()).unwrap()
        };
        pack(
            (13, 0),
            vec![
                packed(1, (8, 0), false, "one for all"),
                packed(2, (8, 0), false, "two for all"),
                packed(2, (9, 0), true, "two for 9.0"),
                packed(1, (8, 0), false, "one for all"),
            ],
        )
    }

    #[test]
    fn the_most_special_text_that_runs_is_found() {
        let archive = Precompiled::parse("test", archive()).unwrap();
        assert_eq!((archive.len(), archive.compiler()), (3, (13, 0)));
        let text =
            |n, capability| archive.find(&program(n), capability).map(|t| String::from_utf8(t).unwrap());
        assert_eq!(text(1, (9, 0)).unwrap(), "one for all\0");
        assert_eq!(text(2, (8, 0)).unwrap(), "two for all\0");
        assert_eq!(text(2, (9, 0)).unwrap(), "two for 9.0\0");
        assert_eq!(text(2, (12, 0)).unwrap(), "two for all\0");
        let missing = text(3, (9, 0)).unwrap_err().to_string();
        assert!(missing.contains("N = 3") && missing.contains("3 precompiled programs of test"), "{missing}");
        assert!(text(1, (7, 5)).is_err());
    }

    #[test]
    fn damage_is_seen() {
        let whole = archive();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(Precompiled::parse("test", bytes).is_err(), "byte {at}");
        }
        for len in 0..whole.len() {
            assert!(Precompiled::parse("test", whole[..len].to_vec()).is_err(), "{len} bytes");
        }
        let refused = Precompiled::parse("here", b"something else".to_vec()).unwrap_err().to_string();
        assert!(refused.contains("here") && refused.contains("cargo xtask ptx"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_beside_the_executable_that_others_may_write_to_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("rayspin-ptx-{}", std::process::id()));
        private::make(&folder).unwrap();
        let (executable, path) = (folder.join("rayspin"), folder.join("rayspin.ptx"));
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = beside(&executable).unwrap();
        assert!(found.archive.is_none() && found.ignored.is_none());
        std::fs::write(&path, archive()).unwrap();
        set(0o644);
        let found = beside(&executable).unwrap();
        assert!(found.archive.is_some_and(|a| a.len() == 3) && found.ignored.is_none());
        set(0o666);
        let found = beside(&executable).unwrap();
        let why = found.ignored.unwrap();
        assert!(found.archive.is_none() && why.contains("rayspin.ptx may be written to by others"), "{why}");
        std::fs::write(&path, "another file").unwrap();
        assert!(beside(&executable).unwrap().ignored.is_some(), "nothing of it is read");
        set(0o644);
        assert!(beside(&executable).err().unwrap().to_string().contains("an archive of `cargo xtask ptx`"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(feature = "precompiled")]
    #[test]
    fn an_executable_carries_its_own() {
        let own = super::archive().unwrap().unwrap();
        assert!(own.origin() == "this executable" && !own.is_empty(), "{own:?}");
    }
}
