//! Results of tuning that come with the program, for machines without a GPU.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rayspin::tune::wisdom::Wisdom;

/// Names that `--replay` takes.
pub(super) const NAMES: &str = "h200";

/// Lines of results as `rayspin-ladder tune` keeps them, compressed; benches/results/2026-11-28-h200/tune.txt
/// has the commands.
static H200: &[u8] = include_bytes!("h200.jsonl.gz");

/// The results of a name; none where it is not one of [`NAMES`], or where a file of this name lies there.
pub(super) fn of(name: &Path) -> Result<Option<Wisdom>> {
    if name.as_os_str() != "h200" || name.exists() {
        return Ok(None);
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(H200)
        .read_to_string(&mut text)
        .context("results that come with the program")?;
    Ok(Some(Wisdom::of_text(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_results_are_whole() {
        let wisdom = of(Path::new("h200")).unwrap().unwrap();
        assert_eq!(wisdom.passed_over(), 0);
        for (ladder, variant) in [("nudft-q", "gpu-sfu"), ("nudft-adjoint", "gpu-sfu")] {
            let of_variant =
                wisdom.records().iter().filter(|r| r.key.ladder == ladder && r.key.variant == variant);
            assert!(of_variant.count() >= 175, "{ladder} {variant}");
        }
        assert!(of(Path::new("h100")).unwrap().is_none());
    }
}
