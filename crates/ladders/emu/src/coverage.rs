//! Records the rows of a table of variants that a test suite has run, and their errors.

use std::collections::BTreeMap;
use std::fmt;

use rayspin_device::Device;

/// The outcome of each row of a table on each device of a test suite, by name. The suite fails if a row never
/// ran although its device could run it. As text, this lists the error of each row beside its tolerance.
///
/// ```
/// let cpu = rayspin_device::Device::cpu_with_threads(1)?;
/// let mut coverage = rayspin_emu::Coverage::default();
/// coverage.refused(&cpu, "wide", "rows that are no multiple of 4");
/// coverage.compared(&cpu, "wide", 1.2e-8, 1e-7);
/// assert!(coverage.left_out(&cpu, ["wide"]).is_empty());
/// assert_eq!(coverage.left_out(&cpu, ["wide", "tall"]).len(), 1);
/// assert!(coverage.to_string().contains("1.2e-8 of 1e-7"));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Coverage(BTreeMap<(String, String), Fate>);

#[derive(Debug, Clone)]
enum Fate {
    /// The row ran. Keeps the error that came nearest to its tolerance.
    Ran { error: f64, tolerance: f64 },
    /// The row's constraint has refused every problem so far: the last reason.
    Refused(String),
    /// The device lacks a feature.
    RuledOut(String),
}

impl Coverage {
    fn note(&mut self, device: &Device, row: &str, fate: Fate) {
        let key = (device.describe(), row.to_owned());
        let worse = match (self.0.get(&key), &fate) {
            (Some(Fate::Ran { error, tolerance }), Fate::Ran { error: new, tolerance: may }) => {
                // An exact row has tolerance 0. NaN is worse than any error.
                new * tolerance > error * may || new.is_nan() || (error == &0.0 && new > &0.0)
            }
            (Some(Fate::Ran { .. }), _) => false,
            _ => true,
        };
        if worse {
            self.0.insert(key, fate);
        }
    }

    /// A row ran with this error against its oracle.
    pub fn compared(&mut self, device: &Device, row: &str, error: f64, tolerance: f64) {
        self.note(device, row, Fate::Ran { error, tolerance });
    }

    /// A row's own constraint refuses a problem.
    pub fn refused(&mut self, device: &Device, row: &str, why: &str) {
        self.note(device, row, Fate::Refused(why.to_owned()));
    }

    /// A row needs an instruction or another feature, and the device lacks it.
    pub fn ruled_out(&mut self, device: &Device, row: &str, why: &str) {
        self.note(device, row, Fate::RuledOut(why.to_owned()));
    }

    /// The rows of `expected` that never ran on a device that could run them, each with the reason.
    pub fn left_out<'a>(&self, device: &Device, expected: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let on = device.describe();
        let missing = |row: &str| match self.0.get(&(on.clone(), row.to_owned())) {
            Some(Fate::Ran { .. } | Fate::RuledOut(_)) => None,
            Some(Fate::Refused(why)) => Some(format!("{row} refuses every problem on {on}: {why}")),
            None => Some(format!("{row} was never tried on {on}")),
        };
        expected.into_iter().filter_map(missing).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((device, row), fate) in &self.0 {
            let device = device.split(',').next().unwrap_or_default();
            match fate {
                Fate::Ran { error, tolerance } => {
                    writeln!(f, "{row:<18} {error:.1e} of {tolerance:.0e}  {device}")
                }
                Fate::Refused(why) | Fate::RuledOut(why) => writeln!(f, "{row:<18} not run: {why}  {device}"),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn rows_without_a_run_are_named_unless_the_device_lacks_something() {
        let [one, two] = [1, 2].map(|threads| Device::cpu_with_threads(threads).unwrap());
        let mut coverage = Coverage::default();
        coverage.compared(&one, "a", 0.0, 0.0);
        coverage.refused(&one, "a", "too long");
        coverage.refused(&one, "b", "too wide");
        coverage.ruled_out(&one, "c", "no such instruction");
        assert_eq!(coverage.left_out(&one, ["a", "c"]), [""; 0]);
        let left = coverage.left_out(&one, ["a", "b", "c", "d"]);
        assert_eq!(left.len(), 2);
        assert!(left[0].starts_with("b refuses every problem") && left[0].ends_with("too wide"), "{left:?}");
        assert!(left[1].starts_with("d was never tried"), "{left:?}");
        assert_eq!(coverage.left_out(&two, ["a"]).len(), 1, "of another device");
    }

    #[test]
    fn the_error_nearest_to_its_tolerance_is_shown() {
        let cpu = Device::cpu_with_threads(1).unwrap();
        let mut coverage = Coverage::default();
        for (error, tolerance) in [(0.0, 0.0), (1e-7, 1e-6), (3e-15, 1e-14), (2e-7, 1e-6)] {
            coverage.compared(&cpu, "a", error, tolerance);
        }
        assert!(coverage.to_string().contains("3.0e-15 of 1e-14"), "{coverage}");
        coverage.compared(&cpu, "a", f64::NAN, 1e-6);
        assert!(coverage.to_string().contains("NaN of 1e-6"), "{coverage}");
    }
}
