//! Exercises as texts: one file each, with sections below headings of two `#`.
//!
//! ````text
//! # Title
//! ## Task
//! ## Ladder
//! ## Case            (may be left out)
//! ## Size
//! ## Start           (```cuda)
//! ## Goals           (lines such as: turns / least <= 1.05)
//! ## Hint            (several)
//! ## Solution        (```cuda)
//! ````

use std::fmt;

use anyhow::{Context as _, Result};

use super::super::benchmark::size;
use super::super::counters::Summary;

macro_rules! exercises {
    ($($name:literal),*) => {
        /// Names and texts, in the order of the lectures.
        pub(super) const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../exercises/", $name, ".md")))),*];
    };
}
exercises!(
    "transpose",
    "reduction",
    "pi",
    "histogram",
    "convolution",
    "sobel",
    "matrix-product",
    "q",
    "fhd",
    "xray",
    "backproject"
);

/// A task for a kernel.
#[derive(Debug)]
pub(super) struct Exercise {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) task: &'static str,
    /// The ladder whose kernel it is.
    pub(super) ladder: &'static str,
    pub(super) case: Option<&'static str>,
    /// The size in which goals are counted.
    pub(super) size: Vec<usize>,
    /// CUDA C++ that is right and misses a goal.
    pub(super) start: &'static str,
    pub(super) goals: Vec<Goal>,
    pub(super) hints: Vec<String>,
    /// CUDA C++ that meets all goals.
    pub(super) solution: &'static str,
}

/// The first line, without its mark.
pub(super) fn title(text: &'static str) -> &'static str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

impl Exercise {
    /// Reads a text; it has no name yet. Errors: a section that is missing or cannot be read.
    pub(super) fn parse(text: &'static str) -> Result<Self> {
        let sections: Vec<(&str, &str)> = text
            .split("\n## ")
            .skip(1)
            .map(|section| section.split_once('\n').unwrap_or((section, "")))
            .map(|(heading, body)| (heading.trim(), body.trim()))
            .collect();
        let of_heading = |heading: &str| {
            sections
                .iter()
                .filter(move |(other, _)| *other == heading)
                .map(|(_, body)| *body)
                .collect::<Vec<_>>()
        };
        let section = |heading: &str| {
            of_heading(heading)
                .first()
                .copied()
                .with_context(|| format!("expected a section {heading}, found none"))
        };
        let code = |heading: &str| -> Result<&'static str> {
            let body = section(heading)?.strip_prefix("```cuda\n").and_then(|body| body.strip_suffix("```"));
            body.map(str::trim_end).with_context(|| format!("section {heading}: expected ```cuda and ```"))
        };
        Ok(Self {
            name: "",
            title: title(text),
            task: section("Task")?,
            ladder: section("Ladder")?,
            case: of_heading("Case").first().copied(),
            size: size(section("Size")?)?,
            start: code("Start")?,
            goals: section("Goals")?.lines().map(Goal::parse).collect::<Result<_>>()?,
            hints: of_heading("Hint").iter().map(|hint| hint.replace('\n', " ")).collect(),
            solution: code("Solution")?,
        })
    }
}

/// A number that is counted: its name in goals, what it is, and where it stands.
#[derive(Clone, Copy)]
struct Quantity {
    name: &'static str,
    meaning: &'static str,
    value: fn(&Summary) -> Option<f64>,
}

const QUANTITIES: [Quantity; 10] = [
    Quantity {
        name: "moved / asked",
        meaning: "bytes of the sectors that move over the bytes that lanes ask for",
        value: |s| s.moved_over_asked,
    },
    Quantity {
        name: "loads moved / asked",
        meaning: "bytes of the sectors that loads move over the bytes that lanes ask for",
        value: |s| s.loads_moved_over_asked,
    },
    Quantity {
        name: "stores moved / asked",
        meaning: "bytes of the sectors that stores move over the bytes that lanes ask for",
        value: |s| s.stores_moved_over_asked,
    },
    Quantity {
        name: "turns / least",
        meaning: "times that shared memory is busy over the least for that width",
        value: |s| s.turns_over_least,
    },
    Quantity { name: "lanes", meaning: "active lanes of an instruction, of 32", value: |s| s.lanes },
    Quantity { name: "splits", meaning: "branches at which lanes of a warp part", value: |s| Some(s.splits) },
    Quantity {
        name: "load requests",
        meaning: "loads of warps from memory of the device",
        value: |s| Some(s.load_requests),
    },
    Quantity {
        name: "load sectors",
        meaning: "pieces of 32 bytes that loads move",
        value: |s| Some(s.load_sectors),
    },
    Quantity {
        name: "store requests",
        meaning: "stores and atomic operations of warps to memory of the device",
        value: |s| Some(s.store_requests),
    },
    Quantity {
        name: "store sectors",
        meaning: "pieces of 32 bytes that stores and atomic operations move",
        value: |s| Some(s.store_sectors),
    },
];

/// A bound of a counted number.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    quantity: Quantity,
    /// Whether the number may be at most the bound; else it has to be at least the bound.
    at_most: bool,
    bound: f64,
}

impl Goal {
    /// Reads a line. Errors: no number of this name, no bound.
    fn parse(line: &str) -> Result<Self> {
        let bound = [("<=", true), (">=", false)].into_iter().find_map(|(sign, at_most)| {
            let (name, bound) = line.split_once(sign)?;
            Some((name.trim(), at_most, bound.trim().parse::<f64>().ok()?))
        });
        let (name, at_most, bound) =
            bound.with_context(|| format!("expected NUMBER <= BOUND or NUMBER >= BOUND, found {line}"))?;
        let quantity = QUANTITIES.into_iter().find(|quantity| quantity.name == name).with_context(|| {
            let known: Vec<_> = QUANTITIES.iter().map(|quantity| quantity.name).collect();
            format!("expected one of {}, found {name}", known.join(", "))
        })?;
        Ok(Self { quantity, at_most, bound })
    }

    /// What the number is.
    pub(super) fn meaning(&self) -> &'static str {
        self.quantity.meaning
    }

    /// The number; none where a kernel does nothing of that kind.
    pub(super) fn value(&self, summary: &Summary) -> Option<f64> {
        (self.quantity.value)(summary)
    }

    /// Whether a number is within the bound. A kernel that uses no shared memory has no conflicts there.
    pub(super) fn is_met(&self, value: Option<f64>) -> bool {
        match (value, self.at_most) {
            (Some(value), true) => value <= self.bound,
            (Some(value), false) => value >= self.bound,
            (None, at_most) => at_most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.at_most { "<=" } else { ">=" };
        write!(f, "{} {sign} {}", self.quantity.name, self.bound)
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exercise_reads_and_has_goals_and_hints() {
        for &(name, text) in ALL {
            let exercise = Exercise::parse(text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(!exercise.goals.is_empty() && exercise.hints.len() > 1, "{name}");
            assert!(exercise.start != exercise.solution, "{name}");
            assert!(crate::ladders().iter().any(|ladder| ladder.about().name == exercise.ladder), "{name}");
        }
    }

    #[test]
    fn goals_are_bounds_of_counted_numbers() {
        let goal = |line| Goal::parse(line).unwrap();
        let summary = Summary { turns_over_least: Some(1.06), lanes: Some(31.0), ..Summary::default() };
        let met = |line| goal(line).is_met(goal(line).value(&summary));
        assert!(met("turns / least <= 1.06") && !met("turns / least <= 1.05"));
        assert!(met("lanes >= 31") && !met("lanes >= 31.5"));
        // Nothing moved.
        assert!(met("moved / asked <= 1") && !met("moved / asked >= 1"));
        assert_eq!(goal("load sectors <= 40000").to_string(), "load sectors <= 40000");
        let wrong = |line| Goal::parse(line).unwrap_err().to_string();
        assert!(wrong("turn <= 1").contains("turns / least"));
        assert!(wrong("lanes = 31").contains("found lanes = 31"));
        assert!(wrong("lanes >= many").contains("found lanes >= many"));
    }
}
