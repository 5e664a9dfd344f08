//! Options that every program has.

use clap::Args;
use rayspin_run::Gpus;

/// Options of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Threads to compute with, at most 4 a core [default: every core]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
    /// Processor to compute on
    #[arg(long, global = true, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceArg,
    /// GPU memory that arrays may take [default: all that is free]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub gpu_memory: Option<u64>,
}

/// `--device`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceArg {
    /// The first GPU that works, else the CPU.
    Auto,
    /// The cores of this machine.
    Cpu,
    /// The GPU with this number.
    Cuda(usize),
    /// Several GPUs, of which the first leads.
    Several(Gpus),
    /// The cores of this machine, then its first GPU: for ladders.
    Both,
}

impl DeviceArg {
    /// Whether a GPU was not asked for by name, so that the CPU may take its place, from the start or where
    /// it fails.
    pub fn leaves_the_choice(self) -> bool {
        self == Self::Auto
    }

    /// Whether the user named a GPU.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Cuda(_) | Self::Several(_) | Self::Both)
    }
}

impl std::str::FromStr for DeviceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "both" => Ok(Self::Both),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|name| {
                    name.parse().map(Self::Cuda).ok().or_else(|| Gpus::parse(name).map(Self::Several))
                })
                .ok_or_else(|| {
                    "expected auto, cpu, cuda, cuda:N, cuda:N,M or cuda:all, or both for ladders".to_owned()
                }),
        }
    }
}

/// Parses `A,B` or `A,B,C`.
///
/// Errors: another number of numbers than one of `counts`, unless that is empty; the error names the option.
pub fn numbers<T: std::str::FromStr>(option: &str, text: &str, counts: &[usize]) -> anyhow::Result<Vec<T>> {
    let parsed: Result<Vec<T>, _> = text.split([',', 'x']).map(|part| part.trim().parse()).collect();
    match parsed {
        Ok(values) if counts.is_empty() || counts.contains(&values.len()) => Ok(values),
        _ => {
            let wanted: Vec<_> = counts.iter().map(ToString::to_string).collect();
            let wanted = if wanted.is_empty() { vec!["some".to_owned()] } else { wanted };
            Err(crate::BadInput::new(format!(
                "`{option}`: expected {} numbers separated by commas, found '{text}'",
                wanted.join(" or ")
            ))
            .hint(format!("`{option} {}`", vec!["96"; counts.first().copied().unwrap_or(2)].join(",")))
            .into())
        }
    }
}

/// Parses `3`, `1-2` or `0,3`.
///
/// Errors: text that is no list of numbers and ascending ranges.
pub fn ranges(text: &str) -> Result<rayspin_core::Ranges, String> {
    let refused = |_| "expected numbers and ranges such as 3, 1-2 or 0,3".to_owned();
    text.parse().map_err(refused)
}

/// Parses `2G`, `512M`, `100K` or bytes.
///
/// Errors: no positive number, another unit.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 =
        match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            "t" => 1 << 40,
            _ => return Err("expected a number with K, M, G or T".into()),
        };
    match digits.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number * (unit as f64) < 9e18 => Ok((number * unit as f64) as u64),
        _ => Err("expected a positive number with K, M, G or T".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceArg, size};

    #[test]
    fn sizes_are_binary() {
        for (text, bytes) in [("2G", 2 << 30), ("1.5k", 1536), ("7", 7), ("3MiB", 3 << 20), ("1 gb", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "2X", "nan", "1e30G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_auto_lets_the_cpu_take_over() {
        for (text, leaves) in [
            ("auto", true),
            ("cpu", false),
            ("cuda", false),
            ("cuda:1", false),
            ("cuda:0,2", false),
            ("cuda:all", false),
        ] {
            assert_eq!(text.parse::<DeviceArg>().map(DeviceArg::leaves_the_choice), Ok(leaves), "{text}");
        }
        for text in ["cuda:x", "cuda:", "cuda:0,0", "cuda:0,", "cuda:0,99", "gpu"] {
            assert!(text.parse::<DeviceArg>().is_err(), "{text}");
        }
    }
}
