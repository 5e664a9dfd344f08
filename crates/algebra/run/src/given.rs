//! Every option acts, or the run is refused: which options a user gave, and what each needs to act.
//!
//! A run has one table of its options. Each row names an option by its field and lists what it needs; an
//! option with an empty list always acts.

use std::collections::BTreeMap;

/// Input that no single file or quantity is to blame for: options that contradict each other, a limit that
/// nothing fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadInput {
    message: String,
    hint: Option<String>,
}

impl BadInput {
    /// Bad input, as one line that names the option, the expected and the found.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// An option that would do nothing.
    pub fn idle(option: &str, expected: &str, found: &str) -> Self {
        let message = format!("{option}: expected {expected}, found {found}, with which it does nothing");
        Self::new(message).hint(format!("leave {option} out: every option acts, or is refused"))
    }

    /// With a word on what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadInput {}

/// The options that a user gave: the field of each, and what people call it, such as `--maps` or `maps=`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<String, String>);

impl Given {
    /// What the option of this field is called, where it is given.
    pub fn name(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    /// Whether the option of this field is given.
    pub fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// Adds an option.
    pub fn insert(&mut self, field: impl Into<String>, name: impl Into<String>) {
        self.0.insert(field.into(), name.into());
    }
}

impl FromIterator<(String, String)> for Given {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(options: I) -> Self {
        Self(options.into_iter().collect())
    }
}

/// Something that options need to act on a run.
pub trait Need {
    /// What is known of a run.
    type Facts<'a>;
    /// Whether the run has it; none while that is not known.
    fn met(&self, run: &Self::Facts<'_>) -> Option<bool>;
    /// It, in words.
    fn expected(&self) -> String;
    /// What the run has instead.
    fn found(&self, run: &Self::Facts<'_>) -> String;
}

/// An option, by its field, and what it needs.
pub type Row<N> = (&'static str, &'static [N]);

/// Refuses the first option given that does not act on the run, as far as the run is known.
pub fn refuse_idle<N: Need>(table: &[Row<N>], given: &Given, run: &N::Facts<'_>) -> Result<(), BadInput> {
    for (field, needs) in table {
        let Some(option) = given.name(field) else { continue };
        if let Some(need) = needs.iter().find(|need| need.met(run) == Some(false)) {
            return Err(BadInput::idle(option, &need.expected(), &need.found(run)));
        }
    }
    Ok(())
}
