//! Options of `rayspin batch`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};

/// The part of a list of scans that one of several jobs takes: `3/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Counted from 0.
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(number, of)| (number.trim().parse(), of.trim().parse()));
        match parts {
            Some((Ok(number), Ok(of))) if (1..=of).contains(&number) => Ok(Self { number: number - 1, of }),
            _ => Err("expected a job and the number of jobs, as 3/16, the first job being 1".into()),
        }
    }
}

/// `rayspin batch`
#[derive(Debug, Args)]
#[command(after_help = "\
recon mri reconstructs each scan with the options behind --. The processor starts once. The next
scan is read while one is computed and the last is written; with --memory among the options one
scan follows the other. Each image has its record, which holds the notes of its run.

A scan is not computed again where its record shows the same file, command and version, and its
images have not changed. So an interrupted batch goes on where it ended. A scan that fails stops
no other. Exit code 1: a scan failed.

Examples:
  rayspin batch 'scans/*.h5' -o 'out/{stem}.nii.gz'
  rayspin batch 'scans/*.h5' -o 'out/{stem}.nii.gz' -- -m cg-sense --iterations 15
  rayspin batch 'study/*/raw.h5' -o 'out/{folder}.nii.gz' --page out/index.html
  rayspin batch scans/ -o 'out/{stem}.nii.gz' --shard 3/16        the third of 16 jobs")]
pub(crate) struct Batch {
    /// Scans, folders of scans, or patterns in quotes: * and ? stand for characters, ** for folders
    #[arg(required = true, value_name = "SCAN", value_hint = ValueHint::FilePath)]
    pub(crate) scans: Vec<PathBuf>,
    /// Image of each scan: {stem} is the scan's name without its ending, {folder} its folder's name; repeat for several
    #[arg(long = "output", short, value_name = "IMAGE", required = true)]
    pub(crate) outputs: Vec<String>,
    /// Only every N-th scan from the I-th on, for arrays of jobs
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Page of what became of each scan (.html)
    #[arg(long, value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) page: Option<PathBuf>,
    /// Options of recon mri, behind --
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 2, of: 16 }));
        for text in ["0/4", "5/4", "3", "a/b", "1/0", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
