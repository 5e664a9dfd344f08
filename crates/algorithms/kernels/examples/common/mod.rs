//! What several examples measure and read alike.

#![allow(dead_code, reason = "each example compiles this file for itself and takes what it needs")]

use std::collections::HashMap;
use std::time::Instant;

/// `--name value` pairs and `--name` alone of the command line.
pub(crate) struct Arguments(HashMap<String, String>);

impl Arguments {
    pub(crate) fn read() -> Self {
        let mut arguments = HashMap::new();
        let mut words = std::env::args().skip(1).peekable();
        while let Some(word) = words.next() {
            let value = match words.peek() {
                Some(next) if !next.starts_with("--") => words.next().unwrap_or_default(),
                _ => String::new(),
            };
            arguments.insert(word.trim_start_matches('-').to_owned(), value);
        }
        Self(arguments)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.to_owned())
    }

    pub(crate) fn given(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(|text| text.parse().ok())
    }

    pub(crate) fn number(&self, name: &str, default: f64) -> f64 {
        self.given(name).unwrap_or(default)
    }
}

/// The least of nine calls, in seconds.
pub(crate) fn best(mut work: impl FnMut()) -> f64 {
    (0..9)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// A row of a table of bandwidths.
pub(crate) fn line(variant: &str, operation: &str, bytes: f64, seconds: f64) {
    println!("{variant:<10} {operation:<22} {:6.1} GB/s {:8.3} ms", bytes * 1e-9 / seconds, seconds * 1e3);
}
