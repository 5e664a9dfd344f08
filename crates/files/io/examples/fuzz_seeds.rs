//! Writes small files for the fuzzers of `fuzz/` to start from: to `FOLDER/TARGET`, and files of each format
//! to `FOLDER/format/NAME`: `cargo run -p rayspin-io --example fuzz_seeds -- fuzz/corpus`.

#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    reason = "shared with the fuzzers"
)]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = std::env::args().nth(1).ok_or("expected the folder to write to")?;
    targets::seeds::write(std::path::Path::new(&corpus))
}
