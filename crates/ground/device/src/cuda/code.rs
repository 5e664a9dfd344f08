//! Where the machine code of a program comes from.

use std::path::Path;

use rayspin_core::{Error, Result};

use super::archive::{CodeLocation, Form, Precompiled};
use super::driver::Properties;
use super::{Program, cache, compile, precompiled};

/// Where a program's code comes from: the best of the sources that this machine has.
#[derive(Debug)]
pub(super) enum Origin<'a> {
    /// Machine code that was compiled beforehand.
    Machine(&'a Precompiled, CodeLocation),
    /// NVRTC compiles it; this is its version.
    Compiler((u32, u32)),
    /// PTX that was compiled beforehand. The driver compiles it to machine code.
    Ptx(&'a Precompiled, CodeLocation),
}

/// The origin of a program on this machine. Errors: neither precompiled code nor a compiler that this machine
/// can use.
pub(super) fn origin(program: &Program, properties: &Properties) -> Result<Origin<'static>> {
    Origin::of(program, properties, precompiled::archive()?, || compile::usable(properties.driver))
}

impl<'a> Origin<'a> {
    /// `compiler` gives the version of NVRTC, or the reason why NVRTC cannot be used.
    fn of(
        program: &Program,
        properties: &Properties,
        archive: Option<&'a Precompiled>,
        compiler: impl FnOnce() -> std::result::Result<(u32, u32), String>,
    ) -> Result<Self> {
        let find = |form| {
            let archive = archive?;
            archive.find(program, form, properties.capability).map(|location| (archive, location))
        };
        let newer = |archive: &Precompiled, ptx| {
            compile::newer_than_driver(archive.compiler(), properties.driver, ptx)
                .map(|words| format!("{words} ({})", archive.origin()))
        };
        if let Some((archive, location)) = find(Form::Machine)
            && newer(archive, false).is_none()
        {
            return Ok(Self::Machine(archive, location));
        }
        let why = match compiler() {
            Ok(version) => return Ok(Self::Compiler(version)),
            Err(why) => why,
        };
        let detail = match (find(Form::Ptx), archive) {
            (Some((archive, location)), _) => match newer(archive, true) {
                None => return Ok(Self::Ptx(archive, location)),
                Some(words) => words,
            },
            (None, Some(archive)) => format!(
                "it is not among the {} precompiled programs of {}, and {why}",
                archive.len(),
                archive.origin()
            ),
            (None, None) => {
                let none = match precompiled::ignored() {
                    Some(why) => format!("precompiled kernels are ignored: {why}"),
                    None => "no precompiled kernels are there either".to_owned(),
                };
                format!("{why}; {none}; RAYSPIN_KERNELS may name a file of `cargo xtask kernels`")
            }
        };
        let what = format!("loading {} ({})", program.name, program.describe());
        Err(Error::Device { what, detail })
    }

    /// The cache's file name for the machine code.
    pub(super) fn key(&self, program: &Program, properties: &Properties) -> String {
        let options = program.options().join(" ");
        let (capability, version) = match self {
            Self::Machine(archive, location) => {
                (location.capability, format!("{:?}", Some(archive.compiler())))
            }
            Self::Compiler(version) => (properties.capability, format!("{:?}", Some(version))),
            Self::Ptx(archive, _) => {
                let driver = properties.driver;
                (properties.capability, format!("PTX of {:?}, driver {driver:?}", archive.compiler()))
            }
        };
        cache::key(&[&program.text, &options, &compile::architecture(capability), &version])
    }

    /// The machine code. `link` makes it from PTX that ends in a zero byte. Errors: of the compiler, of
    /// `link`; a damaged archive.
    pub(super) fn code(
        &self,
        program: &Program,
        properties: &Properties,
        link: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        match self {
            Self::Machine(archive, location) => archive.code(*location),
            Self::Compiler(_) => {
                let architecture = compile::architecture(properties.capability);
                Ok(compile::compile(program, &architecture, false)?.image)
            }
            Self::Ptx(archive, location) => link(&archive.code(*location)?),
        }
    }
}

/// What `load` makes of the code cached under `key`. If the cache holds no code that loads, makes it with
/// `make` and caches it.
pub(super) fn cached<T>(
    folder: Option<&Path>,
    key: &str,
    make: impl FnOnce() -> Result<Vec<u8>>,
    load: impl Fn(&[u8]) -> Result<T>,
) -> Result<T> {
    if let Some(image) = folder.and_then(|folder| cache::read(folder, key))
        && let Ok(loaded) = load(&image)
    {
        return Ok(loaded);
    }
    let image = make()?;
    let loaded = load(&image)?;
    if let Some(folder) = folder {
        // Without the cache the next start makes it again. Nothing else depends on it.
        let _ = cache::write(folder, key, &image);
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::{archive, program};
    use super::*;

    fn properties(capability: (u32, u32), driver: (u32, u32)) -> Properties {
        Properties {
            name: "GPU".to_owned(),
            capability,
            multiprocessors: 1,
            memory: 1 << 30,
            cache: 1 << 20,
            threads_per_block: 1024,
            threads_per_multiprocessor: 2048,
            shared_per_block: 48 << 10,
            shared_per_multiprocessor: 64 << 10,
            registers_per_multiprocessor: 65_536,
            driver,
        }
    }

    #[test]
    fn machine_code_comes_before_the_compiler_and_text_after_it() {
        let (both, text) = (program(1), program(2));
        let all = [
            (&both, Form::Machine, (9, 0), "machine code"),
            (&both, Form::Ptx, (8, 0), "text of both"),
            (&text, Form::Ptx, (8, 0), "text"),
        ];
        let held = Precompiled::parse("test", archive(&all, 100)).unwrap();
        let h100 = properties((9, 0), (13, 0));
        let code = |program: &Program, properties: &Properties, compiler: Option<(u32, u32)>| {
            let origin =
                Origin::of(program, properties, Some(&held), || compiler.ok_or("no NVRTC".to_owned()))?;
            Ok::<_, Error>(match origin {
                Origin::Compiler(version) => format!("{version:?}"),
                other => {
                    let link = |ptx: &[u8]| Ok([b"linked ", ptx].concat());
                    String::from_utf8(other.code(program, properties, link)?).unwrap()
                }
            })
        };
        let nvrtc = Some((13, 0));
        assert_eq!(code(&both, &h100, nvrtc).unwrap(), "machine code\0");
        assert_eq!(code(&both, &h100, None).unwrap(), "machine code\0");
        assert_eq!(code(&text, &h100, nvrtc).unwrap(), "(13, 0)");
        assert_eq!(code(&text, &h100, None).unwrap(), "linked text\0");
        let b200 = properties((10, 0), (13, 0));
        assert_eq!(code(&both, &b200, nvrtc).unwrap(), "(13, 0)");
        assert_eq!(code(&both, &b200, None).unwrap(), "linked text of both\0");
        // The archive was made with CUDA 12.8. Its machine code works with every driver of CUDA 12, its PTX
        // with newer ones only.
        let old = properties((9, 0), (12, 4));
        assert_eq!(code(&both, &old, None).unwrap(), "machine code\0");
        let words = code(&text, &old, None).unwrap_err().to_string();
        assert!(words.contains("PTX of CUDA 12.8 is newer"), "{words}");
        let words = code(&program(3), &h100, None).unwrap_err().to_string();
        assert!(words.contains("N = 3") && words.contains("3 precompiled programs of test"), "{words}");
        assert!(words.contains("no NVRTC"), "{words}");
        let words = Origin::of(&text, &h100, None, || Err("no NVRTC".to_owned())).unwrap_err().to_string();
        assert!(words.contains("no NVRTC; no precompiled kernels are there either"), "{words}");
    }

    #[test]
    fn the_cache_comes_first_and_what_does_not_load_is_made_again() {
        let folder = std::env::temp_dir().join(format!("rayspin-code-{}", std::process::id()));
        let all = [(&program(1), Form::Machine, (8, 0), "machine code")];
        let held = Precompiled::parse("test", archive(&all, 100)).unwrap();
        let properties = properties((8, 9), (13, 0));
        let origin = Origin::of(&program(1), &properties, Some(&held), || Err(String::new())).unwrap();
        let key = origin.key(&program(1), &properties);
        let compiled = Origin::Compiler((12, 8)).key(&program(1), &self::properties((8, 0), (13, 0)));
        assert_eq!(key, compiled, "code for 8.0 of the same compiler");
        assert_ne!(key, Origin::Compiler((12, 8)).key(&program(1), &properties));
        let load = |image: &[u8]| match image {
            b"broken" => Err(Error::value("code", "some", "broken")),
            _ => Ok(String::from_utf8(image.to_vec()).unwrap()),
        };
        let make = || origin.code(&program(1), &properties, |_| unreachable!("machine code is not linked"));
        let from = |folder, make: &dyn Fn() -> Result<Vec<u8>>| cached(folder, &key, make, load).unwrap();
        assert_eq!(from(None, &make), "machine code\0");
        assert_eq!(from(Some(folder.as_path()), &make), "machine code\0");
        let never = || unreachable!("the cache has it");
        assert_eq!(from(Some(folder.as_path()), &never), "machine code\0");
        cache::write(&folder, &key, b"broken").unwrap();
        assert_eq!(from(Some(folder.as_path()), &make), "machine code\0");
        assert_eq!(cache::read(&folder, &key).unwrap(), b"machine code\0");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
