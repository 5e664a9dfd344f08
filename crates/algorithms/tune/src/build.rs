//! A program in one of its forms: what continuous integration compiles and what is packed beforehand.

use rayspin_device::cuda::{Define, Source};

/// A program as it is compiled for use.
#[derive(Debug, Clone)]
pub struct Build {
    /// Its source.
    pub source: &'static Source,
    /// The macros that fix one of its forms.
    pub defines: Vec<Define>,
    /// Bytes of registers that its kernels may spill, with the reason beside the row.
    pub spill_bytes: u32,
}

impl Build {
    /// The source in its only form. No kernel of it spills.
    pub const fn plain(source: &'static Source) -> Self {
        Self { source, defines: Vec::new(), spill_bytes: 0 }
    }
}

/// The sources of programs, each once.
pub fn sources(builds: &[Build]) -> Vec<&'static Source> {
    let mut sources: Vec<&'static Source> = Vec::new();
    for build in builds {
        if !sources.iter().any(|known| std::ptr::eq(*known, build.source)) {
            sources.push(build.source);
        }
    }
    sources
}

/// The same programs, each form once, with the largest spill that any of its rows allows.
pub fn distinct(builds: impl IntoIterator<Item = Build>) -> Vec<Build> {
    let mut merged: Vec<Build> = Vec::new();
    for build in builds {
        let known =
            merged.iter_mut().find(|b| std::ptr::eq(b.source, build.source) && b.defines == build.defines);
        match known {
            Some(known) => known.spill_bytes = known.spill_bytes.max(build.spill_bytes),
            None => merged.push(build),
        }
    }
    merged
}
