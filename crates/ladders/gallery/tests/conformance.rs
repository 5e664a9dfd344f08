//! Every variant of every application on every trial and device, against the reference, and some
//! configurations of each on the last trial.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::Device;
use rayspin_gallery::ladders;
use rayspin_lab::Conformance;
use rayspin_tune::{Ladder, Which};

/// With `--nocapture` the largest error of every variant.
fn check(ladder: impl Ladder + 'static) {
    let name = ladder.about().name;
    let others = &rayspin_primitives::programs();
    let how = Conformance { seed: 7, others, ..Conformance::default() };
    let (all, mut ran): ([Box<dyn Ladder>; 1], _) = ([Box::new(ladder)], 0);
    // A test's own: what it launches stands beside what others launch at the same time.
    for device in &rayspin_emu::devices().unwrap() {
        let found = how.check(&all, device);
        found.coverage.iter().for_each(|(name, coverage)| println!("{name}:\n{coverage}"));
        assert!(found.wrong.is_empty(), "{}:\n{}", device.describe(), found.wrong.join("\n"));
        ran += found.ran;
    }
    assert!(ran > 0, "{name}: nothing ran");
}

/// A test for each application.
macro_rules! conformance {
    ($($folder:ident: $ladder:ident,)*) => {
        $(#[test]
        fn $folder() {
            check(rayspin_gallery::$folder::$ladder);
        })*
    };
}
rayspin_gallery::applications!(conformance);

#[test]
fn ladders_explain_themselves() {
    let wrong = rayspin_lab::unexplained(&ladders()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn refused(ladder: &dyn Ladder, which: Which<'_>) {
    let cpu = &Device::cpu_with_threads(1).unwrap();
    let kind = ladder.open(which, cpu, 1).err().map(|error| error.kind());
    assert_eq!(kind, Some(rayspin_core::ErrorKind::Input), "{} {which:?}", ladder.about().name);
}

#[test]
fn unknown_cases_and_sizes_are_refused() {
    for ladder in &ladders() {
        let ladder = ladder.as_ref();
        refused(ladder, Which::Case(Some("no such case"), None));
        refused(ladder, Which::Trial(usize::MAX));
        for case in ladder.cases() {
            for sides in 0..8 {
                for side in [0, usize::MAX, 1 << 31] {
                    refused(ladder, Which::Case(Some(case.0), Some(&vec![side; sides])));
                }
            }
        }
    }
}
