//! The ladders of this crate on every device: every rung of every trial against the oracle.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_kernels::ladders;
use rayspin_tune::Which;

#[test]
fn every_rung_of_every_trial_meets_its_tolerance() {
    let mut wrong = Vec::new();
    for device in rayspin_emu::devices().unwrap() {
        for ladder in ladders() {
            let about = ladder.about();
            let mut ran = 0;
            for trial in 0..ladder.trials() {
                let mut session = ladder.open(Which::Trial(trial), &device, 3 + trial as u64).unwrap();
                for (at, rung) in session.rungs().to_vec().iter().enumerate() {
                    if rung.backend != device.kind() || rung.refuses.is_some() {
                        continue;
                    }
                    ran += 1;
                    match session.verify(at, &rung.space.default_config()) {
                        Ok(error) if error <= rung.tolerance => {}
                        other => wrong.push(format!(
                            "{} {} on {}: {other:?}",
                            about.name,
                            rung.name,
                            session.problem()
                        )),
                    }
                    if trial + 1 == ladder.trials() {
                        let whole = session.whole(at, &rung.space.default_config()).unwrap();
                        let error = session.found().unwrap();
                        assert!(whole.is_some() && error <= rung.tolerance, "{} {}", about.name, rung.name);
                    }
                }
            }
            assert!(ran > 0, "{}: nothing ran on {}", about.name, device.describe());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_are_named_once_and_reproduce_known_rows() {
    for ladder in ladders() {
        let about = ladder.about();
        let rungs = ladder.outline(Which::Trial(0)).unwrap().rungs;
        let mut names: Vec<_> = rungs.iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rungs.len(), "{}", about.name);
        for rung in rungs {
            assert!(
                about.readme.contains(rung.name),
                "{}: its README does not name {}",
                about.name,
                rung.name
            );
            let known = rung.reproduces.is_none_or(|row| ladder.published().iter().any(|p| p.row == row));
            assert!(known, "{}: {} reproduces an unknown row", about.name, rung.name);
        }
        for size in [&[][..], &[0, 4], &[1; 9], &[usize::MAX, 4, 4]] {
            assert!(ladder.outline(Which::Case(None, Some(size))).is_err(), "{} {size:?}", about.name);
        }
    }
}
