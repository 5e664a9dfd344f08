//! Ladders: run, listed, explained and compared, and the table of applications.

pub(crate) mod applications;
pub(crate) mod benchmark;
mod checks;
pub(crate) mod compare;
pub(crate) mod counters;
#[cfg(test)]
mod course;
mod csv;
mod emulate;
pub(crate) mod exercise;
pub(crate) mod explain;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod maps;
mod occupancy;
pub(crate) mod own;
mod page;
mod program;
pub(crate) mod report;
mod show;
pub(crate) mod source;

use anyhow::Result;
use rayspin::device::BackendKind;
use rayspin::tune::{Ladder, Which};
use rayspin_shell::BadInput;

/// The ladders that this program knows, by name.
pub(crate) struct Ladders(Vec<Box<dyn Ladder>>);

impl Ladders {
    /// Those of `ladders`; where two have one name, the later.
    pub(crate) fn new(ladders: Vec<Box<dyn Ladder>>) -> Self {
        let mut unique: Vec<Box<dyn Ladder>> = Vec::with_capacity(ladders.len());
        for ladder in ladders {
            match unique.iter_mut().find(|known| known.about().name == ladder.about().name) {
                Some(known) => *known = ladder,
                None => unique.push(ladder),
            }
        }
        unique.sort_by_key(|ladder| ladder.about().name);
        Self(unique)
    }

    pub(crate) fn all(&self) -> Vec<&dyn Ladder> {
        self.0.iter().map(AsRef::as_ref).collect()
    }

    /// The ladders of these names, each once, in this order. Errors: an unknown name, with the nearest.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<&dyn Ladder>> {
        let mut chosen: Vec<&dyn Ladder> = Vec::new();
        for name in names {
            let Some(ladder) = self.all().into_iter().find(|ladder| ladder.about().name == name) else {
                let known: Vec<_> = self.all().iter().map(|ladder| ladder.about().name).collect();
                return Err(unknown("ladder", name, &known, "rayspin-ladder list lists them").into());
            };
            if !chosen.iter().any(|known| known.about().name == name) {
                chosen.push(ladder);
            }
        }
        Ok(chosen)
    }

    /// [`Self::all`], or [`Self::named`].
    pub(crate) fn chosen(&self, all: bool, names: &[String]) -> Result<Vec<&dyn Ladder>> {
        if all { Ok(self.all()) } else { self.named(names) }
    }
}

/// The problem of this case and size; without both the default for this kind of processor.
pub(crate) fn which<'a>(
    ladder: &dyn Ladder,
    case: Option<&'a str>,
    size: Option<&'a [usize]>,
    kind: BackendKind,
) -> Which<'a> {
    let default = || ladder.default_case(kind).filter(|_| size.is_none());
    Which::Case(case.or_else(default), size)
}

/// What to say of a name that there is not.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str], otherwise: &str) -> BadInput {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => otherwise.to_owned(),
    };
    BadInput::new(format!("{what}: expected one of {}, found {name}", known.join(", "))).hint(hint)
}

/// The name that a slip of the keyboard turned into this one, if there is any.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let distance = |other: &str| strsim::damerau_levenshtein(&name, other);
    let near = known.iter().min_by_key(|other| distance(other))?;
    let begins = || (name.len() > 2).then(|| known.iter().find(|other| other.contains(&name))).flatten();
    let close = distance(near) <= 1 + name.chars().count().min(near.chars().count()) / 4;
    if close { Some(near) } else { begins().copied() }
}

#[cfg(test)]
mod tests {
    use super::{BackendKind, Ladders, nearest, which};

    #[test]
    fn the_default_problem_suits_the_processor() {
        let ladders = Ladders::new(crate::ladders());
        let q = ladders.named(&["nudft-q".to_owned()]).unwrap()[0];
        let flops = |case, size, kind| {
            let variants = q.outline(which(q, case, size, kind)).unwrap().variants;
            variants.iter().find(|v| v.backend == kind).unwrap().work.flops
        };
        let (cpu, gpu) = (flops(None, None, BackendKind::Cpu), flops(None, None, BackendKind::Cuda));
        // A thread of a CPU takes seconds for 1e9 pairs; a GPU takes 100 µs to launch what it does in 10.
        assert!(cpu < 1e10 && gpu > 1e11, "{cpu:.1e} {gpu:.1e}");
        assert_eq!(flops(Some("128x128"), None, BackendKind::Cuda), cpu);
        let size = [4, 4, 4, 10];
        assert_eq!(flops(None, Some(&size), BackendKind::Cuda), flops(None, Some(&size), BackendKind::Cpu));
    }

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["matrix-add", "matrix-product", "sum", "transpose", "sad"];
        for (name, near) in [
            ("matrix-ad", Some("matrix-add")),
            ("Transpose", Some("transpose")),
            ("trasnpose", Some("transpose")),
            ("product", Some("matrix-product")),
            ("smu", Some("sum")),
            ("fourier", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), near, "{name}");
        }
        assert_eq!(nearest("x", &[]), None);
    }
}
