//! Ladders: run, listed, explained and compared, and the table of applications.

pub(crate) mod applications;
pub(crate) mod climbing;
pub(crate) mod compare;
mod csv;
mod emulate;
pub(crate) mod explain;
pub(crate) mod limits;
pub(crate) mod list;
mod maps;
mod occupancy;
pub(crate) mod own;
mod page;
pub(crate) mod report;
mod show;

use anyhow::Result;
use rayspin::tune::Ladder;
use rayspin_shell::BadInput;

/// The ladders that this program knows, by name.
pub(crate) struct Ladders(Vec<Box<dyn Ladder>>);

impl Ladders {
    /// Those of `ladders`; where two have one name, the later.
    pub(crate) fn new(ladders: Vec<Box<dyn Ladder>>) -> Self {
        let mut all: Vec<Box<dyn Ladder>> = Vec::with_capacity(ladders.len());
        for ladder in ladders {
            match all.iter_mut().find(|known| known.about().name == ladder.about().name) {
                Some(known) => *known = ladder,
                None => all.push(ladder),
            }
        }
        all.sort_by_key(|ladder| ladder.about().name);
        Self(all)
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
    use super::nearest;

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
