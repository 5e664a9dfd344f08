use std::time::{Duration, Instant};

use rayspin_core::{Error, Result};
use rayspin_device::{BackendKind, Device};
use rayspin_tune::limits::{Limits, Rates};
use rayspin_tune::variant::Work;
use rayspin_tune::{Config, EndToEnd, Flow, Peak, PublishedApplication, Session, Space, VariantInfo};

use super::*;
use crate::Protocol;

pub(super) fn limits() -> Limits {
    let rates = Rates {
        copy: 1e9,
        read: 1e9,
        write: 1e9,
        f32: 1e9,
        f64: 1e9,
        i32: 1e9,
        tensor_f64: None,
        tensor_f16: None,
        special: None,
        shared: None,
        texture: None,
        upload: None,
        download: None,
    };
    Limits { of: "a machine".into(), measured: None, busy: false, rates }
}

const LECTURE: PublishedApplication =
    PublishedApplication::of_lecture("A", "registers", 3072, [17.1, 11.0], &[("small", "small")]);

/// Variants with the ms that each takes and its error; without an error, its run fails.
struct Fake {
    variants: Vec<VariantInfo>,
    behave: Vec<(u64, Option<f64>)>,
    last: usize,
    runs: Vec<usize>,
    /// What is wrong with runs from the host.
    broken: f64,
}

fn fake(rows: &[(&'static str, u64, Option<f64>, bool)]) -> Fake {
    let variant = |&(name, _, _, competes): &(&'static str, _, _, bool)| VariantInfo {
        name,
        backend: BackendKind::Cpu,
        summary: "",
        refuses: (name == "refuses").then(|| "too large".to_owned()),
        competes,
        work: Work { bytes: 1.0, flops: 1.0 },
        amount: 1.0,
        peak: None,
        predictable: true,
        tolerance: 1e-3,
        reproduces: None,
        space: Space::none(),
        forms: Vec::new(),
    };
    Fake {
        variants: rows.iter().map(variant).collect(),
        behave: rows.iter().map(|row| (row.1, row.2)).collect(),
        last: 0,
        runs: vec![0; rows.len()],
        broken: 0.0,
    }
}

impl Session for Fake {
    fn problem(&self) -> String {
        "a problem".into()
    }
    fn key(&self) -> (String, Vec<usize>) {
        (String::new(), vec![])
    }
    fn peak(&self) -> Peak {
        Peak::F32
    }
    fn variants(&self) -> &[VariantInfo] {
        &self.variants
    }
    fn rotate(&mut self, _: usize) -> Result<usize> {
        Ok(1)
    }
    fn verify(&mut self, variant: usize, config: &Config) -> Result<f64> {
        self.run(variant, config, 0)?;
        Ok(self.behave[variant].1.unwrap_or(f64::NAN))
    }
    fn run(&mut self, variant: usize, _: &Config, _: usize) -> Result<()> {
        self.last = variant;
        self.runs[variant] += 1;
        let (ms, error) = self.behave[variant];
        error.ok_or_else(|| Error::value("run", "one that works", "one that fails"))?;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(ms) {}
        Ok(())
    }
    fn end_to_end(&mut self, variant: usize, config: &Config) -> Result<Option<EndToEnd>> {
        self.run(variant, config, 0)?;
        let kernel = self.behave[variant].0 as f64 * 1e-3;
        let (upload, set_up, download) = (2.0 * kernel, 0.0, kernel);
        Ok(Some(EndToEnd { upload, set_up, kernel, download, bytes_in: 8, bytes_out: 4 }))
    }
    fn found(&self) -> Result<f64> {
        Ok(self.behave[self.last].1.unwrap_or(f64::NAN) + self.broken)
    }
}

fn race(fake: &mut Fake) -> std::result::Result<Best, Vec<(String, String)>> {
    let protocol = Protocol { rounds: 3, round: 1e-4, budget: 0.05, ..Protocol::default() };
    let race =
        Race { protocol: &protocol, limits: &limits(), launch: 0.0, peak: Peak::F32, flow: Flow::Copy };
    best(fake, &Device::cpu().unwrap(), &race, &mut |_| Ok(Some(Config::default()))).unwrap()
}

#[test]
fn the_fastest_right_variant_wins() {
    let mut rows = fake(&[
        ("slow", 300, Some(0.0), true),
        ("second", 40, Some(0.0), true),
        ("first", 2, Some(1e-4), true),
        ("wrong", 0, Some(1.0), true),
        ("NaN", 0, Some(f64::NAN), true),
        ("fails", 0, None, true),
        ("refuses", 0, Some(0.0), true),
        ("peer", 0, Some(0.0), false),
    ]);
    let best = race(&mut rows).unwrap();
    assert_eq!(best.variant, "first");
    assert!(best.kernel.median >= 2e-3 && best.on_gpu.is_none());
    let failed: Vec<_> = best.failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((failed[0], failed.len()), ("fails", 3));
    assert!(best.failed.iter().any(|(name, why)| name == "wrong" && why.contains("at most 1e-3")));
    // One run told that it is far behind.
    assert_eq!((rows.runs[0], rows.runs[6], rows.runs[7]), (1, 0, 0));
    let side = Side::of(&best);
    assert_eq!((side.bytes, side.longest()), (Some((8, 4)), Some(("upload", 0.5))));
}

#[test]
fn a_race_ends_at_a_variant_that_is_far_behind_for_seconds() {
    let mut rows = fake(&[
        ("never run", 0, Some(0.0), true),
        ("slow", 1100, Some(0.0), true),
        ("first", 2, Some(0.0), true),
    ]);
    assert_eq!(race(&mut rows).unwrap().variant, "first");
    assert_eq!(rows.runs[..2], [0, 1]);
}

#[test]
fn one_core_runs_the_first_variant_that_takes_the_problem() {
    let rows = [("peer", 0, Some(0.0), false), ("refuses", 0, Some(0.0), true)];
    let time = |fake: &mut Fake| {
        let protocol = Protocol { rounds: 3, round: 1e-4, budget: 0.05, ..Protocol::default() };
        one_core(fake, &Device::cpu().unwrap(), &protocol)
    };
    let mut short =
        fake(&[&rows[..], &[("plain", 2, Some(0.0), true), ("fast", 0, Some(0.0), true)]].concat());
    let core = time(&mut short).unwrap();
    assert_eq!((core.variant.as_str(), core.amount), ("plain", 1.0));
    assert!(core.kernel_seconds >= 2e-3 && core.application_seconds >= Some(8e-3), "{core:?}");
    assert!(short.runs[2] > 3 && short.runs[3] == 0, "{:?}", short.runs);
    let mut long = fake(&[&rows[..], &[("plain", 1100, Some(0.0), true)]].concat());
    assert!(time(&mut long).unwrap().kernel_seconds >= 1.1);
    assert_eq!(long.runs[2], 1);
    assert!(time(&mut fake(&rows)).is_err());
    let wrong = time(&mut fake(&[("plain", 0, Some(1.0), true)])).unwrap_err().to_string();
    assert!(wrong.contains("of one core"), "{wrong}");
}

#[test]
fn where_no_variant_is_right_none_wins() {
    let mut rows = fake(&[("wrong", 0, Some(1.0), true), ("fails", 0, None, true)]);
    assert_eq!(race(&mut rows).unwrap_err().len(), 2);
    let mut rows = fake(&[("right", 0, Some(0.0), true)]);
    rows.broken = 1.0;
    let failed = race(&mut rows).unwrap_err();
    assert!(failed[0].1.contains("from host to host"), "{failed:?}");
}

#[test]
fn a_table_comes_back_and_others_are_refused() {
    let side = |seconds: f64, whole: Option<f64>| Side {
        kernel: "gpu-wide threads=64".into(),
        kernel_seconds: seconds,
        application_seconds: whole,
        parts: vec![Part { name: "upload".into(), seconds: 1e-3 }],
        bytes: whole.map(|_| (1 << 40, 3)),
    };
    let seconds = vec![(Limit::Memory(Flow::Read), 0.8), (Limit::Issue, f64::NAN)];
    let loads = Loads { seconds, told: true };
    let mut table = Applications::new("0.1.0", "2026-05-04T12:00:00Z", limits());
    let core = OneCore {
        variant: "scalar".into(),
        problem: "small".into(),
        kernel_seconds: 0.8,
        application_seconds: Some(1.0),
        amount: 10.0,
    };
    for whole in [Some(0.5), None] {
        table.rows.push(Row {
            name: "a".into(),
            case: whole.map(|_| "small".into()),
            title: "b".into(),
            problem: "c".into(),
            kind: Kind::Ladder,
            bottleneck: Bottleneck::of(&loads, 1.0),
            resident: Some(Resident { kernel: "wide".into(), threads: 7, launched: 8, most: 9 }),
            cpu: side(1.0, whole),
            gpu: side(1e-2, whole.map(|seconds| seconds / 10.0)),
            one_core: Some((core.clone(), 5.0)).filter(|_| whole.is_some()),
            published: Some(LECTURE.into()).filter(|_| whole.is_some()),
            day: None,
        });
    }
    assert_eq!(table.rows[0].kernel_speed_up(), 100.0);
    assert_eq!(table.rows[0].application_speed_up(), Some(10.0));
    assert_eq!(table.rows[1].application_speed_up(), None);
    // Five times the work of the core's problem, and the GPU takes 10 ms and 50 ms.
    assert_eq!(table.rows[0].kernel_over_one_core(), Some(400.0));
    assert_eq!(table.rows[0].application_over_one_core(), Some(100.0));
    assert_eq!((table.rows[1].kernel_over_one_core(), table.rows[1].label()), (None, "a".to_owned()));
    assert_eq!(table.rows[0].label(), "a small");
    table.rows[1].day = Some("2026-01-02".into());
    assert_eq!(table.rows[1].label(), "a (2026-01-02)");
    table.left_out.push(("d".into(), "no variant on a GPU".into()));
    let text = table.to_json().unwrap();
    assert_eq!(Applications::from_json(&text).unwrap(), table);
    for other in [
        text.replace("rayspin-applications", "rayspin-ladder"),
        text.replace("\"version\": 1", "\"version\": 2"),
        text[..text.len() / 2].to_owned(),
        "{}".into(),
        String::new(),
    ] {
        assert_eq!(Applications::from_json(&other).unwrap_err().kind(), rayspin_core::ErrorKind::Input);
    }
}
