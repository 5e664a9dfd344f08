//! The GPUs of a run, as the user names them.

use rayspin_core::Result;
use rayspin_device::{Device, cuda};

/// The GPU of a run that opens it once the plan is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// The first GPU that works, unless the CPU is quicker.
    Auto,
    /// This GPU.
    Gpu(usize),
}

/// Several GPUs of this machine, by their numbers.
///
/// ```
/// use rayspin_run::Gpus;
///
/// let some = Gpus::parse("0,2").unwrap();
/// assert_eq!((some.first(), some.others(4)), (0, vec![2]));
/// assert_eq!(Gpus::ALL.others(4), [1, 2, 3]);
/// assert_eq!(Gpus::parse("1"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpus(u64);

impl Gpus {
    /// All of the machine's GPUs.
    pub const ALL: Self = Self(u64::MAX);

    /// Reads `all`, or two or more numbers below 63 between commas. None for other text, and for a number
    /// that comes twice.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::ALL);
        }
        let mut bits = 0u64;
        for part in text.split(',') {
            let bit = part.parse().ok().filter(|&number: &u32| number < 63).map(|number| 1 << number)?;
            if bits & bit != 0 {
                return None;
            }
            bits |= bit;
        }
        (bits.count_ones() > 1).then_some(Self(bits))
    }

    /// The first of them.
    pub fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// Those behind the first, on a machine with `count` GPUs. Named ones may lie beyond these.
    pub fn others(self, count: usize) -> Vec<usize> {
        let most = if self == Self::ALL { count.min(64) } else { 64 };
        (self.first() + 1..most).filter(|number| self.0 >> number & 1 == 1).collect()
    }

    /// Begins to open all of them.
    pub fn start(self) -> cuda::Starting {
        cuda::start(move |count| [vec![self.first()], self.others(count)].concat())
    }

    /// Opens those behind the first, and notes which of [`Gpus::ALL`] do not work.
    ///
    /// Errors: a GPU that is named does not work.
    pub fn open_others(self, host: &Device) -> Result<(Vec<Device>, Vec<String>)> {
        let (mut devices, mut notes) = (Vec::new(), Vec::new());
        for ordinal in self.others(cuda::count().unwrap_or(0)) {
            match Device::cuda(ordinal, host.clone()) {
                Ok(device) => devices.push(device),
                Err(error) if self == Self::ALL => {
                    notes.push(format!("computing without cuda:{ordinal}: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        if devices.is_empty() {
            notes.push(format!("`--device {self}`: one GPU computes, as there is no other that works"));
        }
        Ok((devices, notes))
    }
}

impl std::fmt::Display for Gpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::ALL {
            return f.write_str("cuda:all");
        }
        let numbers: Vec<_> = (0..64).filter(|bit| self.0 >> bit & 1 == 1).map(|n| n.to_string()).collect();
        write!(f, "cuda:{}", numbers.join(","))
    }
}
