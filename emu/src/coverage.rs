//! Which rows of a table of variants a suite has run.

use std::collections::BTreeMap;

use rayspin_device::Device;

/// What became of the rows of a table on each device of a suite, by name: one that never ran, and that its device does not rule
/// out, fails the suite.
///
/// ```
/// let cpu = rayspin_device::Device::cpu_with_threads(1)?;
/// let mut coverage = rayspin_emu::Coverage::default();
/// coverage.refused(&cpu, "wide", "rows that are no multiple of 4");
/// coverage.ran(&cpu, "wide");
/// assert!(coverage.left_out(&cpu, ["wide"]).is_empty());
/// assert_eq!(coverage.left_out(&cpu, ["wide", "tall"]).len(), 1);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Coverage(BTreeMap<(String, String), Fate>);

#[derive(Debug)]
enum Fate {
    Ran,
    /// Its own constraint refuses every problem so far: why the last.
    Refused(String),
    /// The device lacks what it needs.
    RuledOut,
}

impl Coverage {
    fn note(&mut self, device: &Device, row: &str, fate: Fate) {
        let key = (device.describe(), row.to_owned());
        if !matches!(self.0.get(&key), Some(Fate::Ran)) {
            self.0.insert(key, fate);
        }
    }

    /// A row ran, and was compared with its oracle.
    pub fn ran(&mut self, device: &Device, row: &str) {
        self.note(device, row, Fate::Ran);
    }

    /// A row's own constraint refuses a problem.
    pub fn refused(&mut self, device: &Device, row: &str, why: &str) {
        self.note(device, row, Fate::Refused(why.to_owned()));
    }

    /// A device lacks something that a row needs for every problem.
    pub fn ruled_out(&mut self, device: &Device, row: &str, why: &str) {
        println!("{row} is not for {}: {why}", device.describe());
        self.note(device, row, Fate::RuledOut);
    }

    /// The rows of `expected` that never ran on a device that could run them, each with the reason.
    pub fn left_out<'a>(&self, device: &Device, expected: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let on = device.describe();
        let missing = |row: &str| match self.0.get(&(on.clone(), row.to_owned())) {
            Some(Fate::Ran | Fate::RuledOut) => None,
            Some(Fate::Refused(why)) => Some(format!("{row} refuses every problem on {on}: {why}")),
            None => Some(format!("{row} was never tried on {on}")),
        };
        expected.into_iter().filter_map(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_neither_ran_nor_could_not_run_is_named() {
        let [one, two] = [1, 2].map(|threads| Device::cpu_with_threads(threads).unwrap());
        let mut coverage = Coverage::default();
        coverage.ran(&one, "a");
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
}
