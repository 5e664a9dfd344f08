//! Options of `rayspin batch`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};

/// The part of a list of scans that one of several jobs takes: `3/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Counted from 0.
    pub(crate) number: usize,
    /// The number of jobs.
    pub(crate) count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(number, count)| (number.trim().parse(), count.trim().parse()));
        match parts {
            Some((Ok(number), Ok(count))) if (1..=count).contains(&number) => {
                Ok(Self { number: number - 1, count })
            }
            _ => Err("expected a job and the number of jobs, as 3/16, the first job being 1".into()),
        }
    }
}

/// `rayspin batch`
#[derive(Debug, Args)]
#[command(after_help = "\
Each scan is reconstructed as by rayspin recon mri, with --ct as by recon ct, with the options after
--. The GPU starts once for all scans. While one MRI scan is computed, the next one is read and the
previous image is written; with --memory after --, scans go one at a time. With --device cuda:all or
cuda:0,2 each GPU works on its own scans. If its GPU fails or lacks memory, a scan goes to another
GPU; it fails after two lost GPUs. A record beside each image (image.json) holds the command, the
version, hashes and the messages of the run.

To resume a batch, run the same command again: a scan is skipped if its input, options, version and
images match its record. A scan that fails does not stop the others, and is tried again. Two runs
never write one image at the same time: the second one leaves it to the first.
Exit code 1: a scan failed, or is left to another run.

Examples:
  rayspin batch 'scans/*.h5' -o 'out/{stem}.nii.gz'
  rayspin batch 'scans/*.h5' -o 'out/{stem}.nii.gz' -- -m cg-sense --iterations 15
  rayspin batch 'study/*/raw.h5' -o 'out/{folder}.nii.gz' --page out/index.html
  rayspin batch --ct 'ct/*.nxs' -o 'out/{stem}.nii.gz' -- --correct rings
  rayspin batch scans/ -o 'out/{stem}.nii.gz' --shard 3/16 --summary out/part-3.json
  rayspin batch --merge out/part-*.json --summary out/all.json")]
pub(crate) struct Batch {
    /// Scans, folders of scans, or patterns in quotes: * is any text, ? a character, ** any folders
    #[arg(required_unless_present = "merge", value_name = "SCAN", value_hint = ValueHint::FilePath)]
    pub(crate) scans: Vec<PathBuf>,
    /// Image of each scan: {stem} is the scan's name without its ending, {folder} its folder's name
    ///
    /// Folders are made where they are missing. Two scans cannot have one image. Repeat -o to write several
    /// images of each scan.
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present = "merge")]
    pub(crate) outputs: Vec<String>,
    /// The scans are CT scans
    #[arg(long)]
    pub(crate) ct: bool,
    /// Part I of N of the list of scans, for arrays of jobs: 3/16 takes scans 3, 19, 35 …
    ///
    /// The list is sorted by name, so that all jobs divide it alike. Each scan is in one part, and the
    /// numbers of scans of two parts differ by one at most.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Write a page with the result of each scan (.html)
    #[arg(long, value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) page: Option<PathBuf>,
    /// Write the result of each scan and the hashes of its images (.json)
    #[arg(long, value_name = "JSON", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<PathBuf>,
    /// Make one summary or page of the summaries of all parts; reconstruct nothing
    #[arg(long, value_name = "SUMMARY", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) merge: Vec<PathBuf>,
    /// Options of rayspin recon mri or ct, after --
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 2, count: 16 }));
        for text in ["0/4", "5/4", "3", "a/b", "1/0", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
