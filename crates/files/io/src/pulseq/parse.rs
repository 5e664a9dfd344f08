//! The text of a `.seq` file.

use std::collections::BTreeMap;
use std::path::Path;

use super::shape::Shape;
use crate::{Error, Result};

/// Most samples of all shapes and readouts together: numbers of a file that are not true end here.
pub(super) const MOST: usize = 1 << 26;
/// Most samples of a shape: of 42 s, where a sample takes 10 µs.
pub(super) const LONGEST: usize = 1 << 22;

/// The format's version: 1.2.0 to 1.5.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32, pub(super) u32);

impl Version {
    const OLDEST: Self = Self(1, 2, 0);
    /// Blocks state their duration, and shapes their times.
    pub(super) const TIMED: Self = Self(1, 4, 0);
    /// Pulses state their use and their centre, gradients their ends.
    pub(super) const STATED: Self = Self(1, 5, 0);
}

/// What happens together: durations in s, and the numbers of events, 0 for none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block {
    /// The duration, or, before version 1.4, the number of a delay.
    pub(super) duration: f64,
    pub(super) rf: usize,
    pub(super) gradients: [usize; 3],
    pub(super) adc: usize,
}

/// A pulse.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pulse {
    /// Hz
    pub(super) amplitude: f64,
    pub(super) magnitude: usize,
    pub(super) phase: usize,
    pub(super) times: usize,
    /// From the pulse's begin, s, where it is stated.
    pub(super) centre: Option<f64>,
    /// s
    pub(super) delay: f64,
    /// How far its frequency lies from the scanner's, Hz.
    pub(super) offset_hz: f64,
    /// `e` (excitation), `r` (refocusing) and others, where it is stated.
    pub(super) purpose: Option<char>,
}

/// A gradient along one axis, Hz/m and s.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Gradient {
    Trapezoid { amplitude: f64, rise: f64, flat: f64, fall: f64, delay: f64 },
    Shaped { amplitude: f64, ends: Option<[f64; 2]>, shape: usize, times: i64, delay: f64 },
}

/// Samples that are taken, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Adc {
    pub(super) samples: usize,
    pub(super) dwell: f64,
    pub(super) delay: f64,
}

/// A sequence as its file states it.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) version: Version,
    pub(super) definitions: BTreeMap<String, String>,
    pub(super) blocks: Vec<Block>,
    pub(super) pulses: BTreeMap<usize, Pulse>,
    pub(super) gradients: BTreeMap<usize, Gradient>,
    pub(super) adcs: BTreeMap<usize, Adc>,
    /// s, before version 1.4
    pub(super) delays: BTreeMap<usize, f64>,
    pub(super) shapes: BTreeMap<usize, Shape>,
}

/// Extensions that change neither gradients nor times of a sequence that is played as it is.
const HARMLESS: [&str; 5] = ["TRIGGERS", "LABELSET", "LABELINC", "DELAYS", "RF_SHIMS"];

/// The words of a line of numbers, which errors name.
struct Line<'a> {
    path: &'a Path,
    section: &'a str,
    number: usize,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn error(&self, expected: &str) -> Error {
        let field = format!("line {} of {}", self.number, self.section);
        Error::field(self.path, field, expected, format!("'{}'", self.words.join(" ")))
    }

    fn expect(&self, count: usize) -> Result<()> {
        if self.words.len() < count {
            return Err(self.error(&format!("{count} numbers")));
        }
        Ok(())
    }

    fn number(&self, index: usize) -> Result<f64> {
        let value = self.words.get(index).and_then(|word| word.parse::<f64>().ok());
        value
            .filter(|value| value.is_finite())
            .ok_or_else(|| self.error(&format!("a number in place {}", index + 1)))
    }

    fn whole(&self, index: usize) -> Result<usize> {
        let value = self.words.get(index).and_then(|word| word.parse::<usize>().ok());
        value.ok_or_else(|| self.error(&format!("a whole number in place {}", index + 1)))
    }

    /// A time in units of `unit` s, not negative.
    fn time(&self, index: usize, unit: f64) -> Result<f64> {
        let value = self.number(index)?;
        if value < 0.0 {
            return Err(self.error(&format!("a time from 0 in place {}", index + 1)));
        }
        Ok(value * unit)
    }
}

impl Text {
    /// Reads the text of `path`. Errors: another format or version, a line that is not as its section has it,
    /// an extension that changes gradients.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut parsed = Self {
            version: Version(0, 0, 0),
            definitions: BTreeMap::new(),
            blocks: Vec::new(),
            pulses: BTreeMap::new(),
            gradients: BTreeMap::new(),
            adcs: BTreeMap::new(),
            delays: BTreeMap::new(),
            shapes: BTreeMap::new(),
        };
        let (mut section, mut version, mut shape) = ("", [None; 3], None);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                section = name.strip_suffix(']').unwrap_or(name);
                if section == "BLOCKS" && version != [None; 3] {
                    parsed.version = parsed.checked_version(path, version)?;
                }
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first() == Some(&"extension") {
                let name = words.get(1).copied().unwrap_or_default();
                if !HARMLESS.contains(&name) {
                    return Err(Error::unsupported(path, format!("the extension {name}")));
                }
                section = "extension";
                continue;
            }
            let line = Line { path, section, number: number + 1, words };
            match section {
                "VERSION" => {
                    let names = ["major", "minor", "revision"];
                    let Some(index) = names.iter().position(|name| line.words.first() == Some(name)) else {
                        return Err(line.error("major, minor or revision"));
                    };
                    // pypulseq writes revisions such as 0post1.
                    let digits = line.words.get(1).copied().unwrap_or_default();
                    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                    version[index] = Some(digits.parse().map_err(|_| line.error("a number"))?);
                }
                "DEFINITIONS" => {
                    let (name, value) = line.words.split_first().unwrap_or((&"", &[]));
                    parsed.definitions.insert((*name).to_owned(), value.join(" "));
                }
                "BLOCKS" => parsed.block(&line)?,
                "RF" => parsed.pulse(&line)?,
                "GRADIENTS" => parsed.shaped(&line)?,
                "TRAP" => {
                    let time = |index| line.time(index, 1e-6);
                    let gradient = Gradient::Trapezoid {
                        amplitude: line.number(1)?,
                        rise: time(2)?,
                        flat: time(3)?,
                        fall: time(4)?,
                        delay: if line.words.len() > 5 { time(5)? } else { 0.0 },
                    };
                    parsed.gradients.insert(line.whole(0)?, gradient);
                }
                "ADC" => {
                    let adc = Adc {
                        samples: line.whole(1)?,
                        dwell: line.time(2, 1e-9)?,
                        delay: line.time(3, 1e-6)?,
                    };
                    parsed.adcs.insert(line.whole(0)?, adc);
                }
                "DELAYS" => {
                    parsed.delays.insert(line.whole(0)?, line.time(1, 1e-6)?);
                }
                "SHAPES" => match line.words[..] {
                    ["shape_id", _] => shape = Some(line.whole(1)?),
                    ["num_samples", _] => {
                        let id = shape.ok_or_else(|| line.error("a shape_id before it"))?;
                        parsed.shapes.insert(id, Shape { samples: line.whole(1)?, packed: Vec::new() });
                    }
                    _ => {
                        let value = line.number(0)?;
                        let own = shape.and_then(|id| parsed.shapes.get_mut(&id));
                        own.ok_or_else(|| line.error("num_samples before it"))?.packed.push(value);
                    }
                },
                // Hashes, and extensions that act elsewhere.
                _ => {}
            }
        }
        if let Some((id, shape)) = parsed.shapes.iter().find(|(_, shape)| shape.samples > LONGEST) {
            let expected = format!("at most {LONGEST}");
            return Err(Error::field(path, format!("num_samples of shape {id}"), expected, shape.samples));
        }
        let samples: usize = parsed.shapes.values().map(|shape| shape.samples).fold(0, usize::saturating_add);
        if samples > MOST {
            return Err(Error::field(path, "samples of shapes", format!("at most {MOST}"), samples));
        }
        if parsed.version == Version(0, 0, 0) {
            return Err(Error::not_this_format(path, "a Pulseq sequence (.seq)", "text without its blocks"));
        }
        Ok(parsed)
    }

    fn checked_version(&self, path: &Path, stated: [Option<u32>; 3]) -> Result<Version> {
        let [major, minor, revision] = stated.map(|number| number.unwrap_or(0));
        let version = Version(major, minor, revision);
        if version < Version::OLDEST || (major, minor) > (1, 5) {
            let found = format!("{major}.{minor}.{revision}");
            return Err(Error::field(path, "Pulseq version", "1.2.0 to 1.5", found));
        }
        Ok(version)
    }

    /// A definition of whole or broken numbers.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let numbers = self.definitions.get(name)?.split_whitespace().map(str::parse::<f64>);
        numbers.collect::<std::result::Result<Vec<f64>, _>>().ok()
    }

    /// A raster time in s, the format's usual one where it is not defined.
    pub(super) fn raster(&self, name: &str, usual: f64) -> f64 {
        let stated = self.numbers(name).and_then(|numbers| numbers.first().copied());
        stated.filter(|raster| *raster > 0.0).unwrap_or(usual)
    }

    fn block(&mut self, line: &Line<'_>) -> Result<()> {
        if self.version == Version(0, 0, 0) {
            return Err(line.error("the section VERSION before it"));
        }
        line.expect(7)?;
        let timed = self.version >= Version::TIMED;
        let unit = if timed { self.raster("BlockDurationRaster", 1e-5) } else { 1.0 };
        self.blocks.push(Block {
            duration: line.time(1, unit)?,
            rf: line.whole(2)?,
            gradients: [line.whole(3)?, line.whole(4)?, line.whole(5)?],
            adc: line.whole(6)?,
        });
        Ok(())
    }

    fn pulse(&mut self, line: &Line<'_>) -> Result<()> {
        let stated = self.version >= Version::STATED;
        let timed = self.version >= Version::TIMED;
        let (times, centre, delay, frequency) = match (stated, timed) {
            (true, _) => (line.whole(4)?, Some(line.time(5, 1e-6)?), line.time(6, 1e-6)?, 9),
            (_, true) => (line.whole(4)?, None, line.time(5, 1e-6)?, 6),
            _ => (0, None, line.time(4, 1e-6)?, 5),
        };
        let purpose = if stated { line.words.get(11).and_then(|word| word.chars().next()) } else { None };
        if stated && purpose.is_none() {
            return Err(line.error("the use of the pulse in place 12"));
        }
        let (amplitude, magnitude, phase) = (line.number(1)?, line.whole(2)?, line.whole(3)?);
        let offset_hz = line.number(frequency)?;
        let pulse = Pulse { amplitude, magnitude, phase, times, centre, delay, offset_hz, purpose };
        self.pulses.insert(line.whole(0)?, pulse);
        Ok(())
    }

    fn shaped(&mut self, line: &Line<'_>) -> Result<()> {
        let whole = |index| {
            let value = line.number(index)?;
            if value.fract() != 0.0 { Err(line.error("whole numbers of shapes")) } else { Ok(value as i64) }
        };
        let amplitude = line.number(1)?;
        let (ends, shape, times, delay) = if self.version >= Version::STATED {
            (Some([line.number(2)?, line.number(3)?]), line.whole(4)?, whole(5)?, line.time(6, 1e-6)?)
        } else if self.version >= Version::TIMED {
            (None, line.whole(2)?, whole(3)?, line.time(4, 1e-6)?)
        } else {
            (None, line.whole(2)?, 0, line.time(3, 1e-6)?)
        };
        self.gradients.insert(line.whole(0)?, Gradient::Shaped { amplitude, ends, shape, times, delay });
        Ok(())
    }
}
