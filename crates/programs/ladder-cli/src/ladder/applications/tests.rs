use rayspin::core::Silent;
use rayspin::tune::limits::Rates;
use rayspin_emu::Emulator;
use rayspin_lab::limits::{Effort, measure};

use super::*;

const RATES: Rates = Rates {
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

#[test]
fn rows_are_made_of_the_best_variants_of_both_processors() {
    let Ok(emulator) = Emulator::device() else { return };
    let effort = Effort { bytes: 1 << 16, repeats: 1, seconds: 1e-4, rounds: 16 };
    let known = measure(&emulator, &effort).unwrap();
    let processors = Processors {
        progress: &Silent,
        cpu: emulator.host(),
        gpu: emulator.clone(),
        limits: &known,
        launch: launch(&emulator).unwrap(),
        protocol: Protocol { rounds: 2, round: 1e-4, budget: 1e-3, rotate: false, ..Protocol::default() },
        seed: 1,
    };
    let mut table = processors.table(2);
    let names = ["matrix-add", "transpose", "pi", "access"].map(str::to_owned);
    let ladders = Ladders::new(crate::ladders());
    for ladder in ladders.named(&names).unwrap() {
        let outcome = processors.ladder(ladder, Which::Trial(ladder.trials() - 1)).unwrap();
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        match outcome.row {
            Ok(row) => table.rows.push(row),
            Err(why) => table.left_out.push((ladder.about().name.to_owned(), why)),
        }
    }
    let rows: Vec<_> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rows, ["matrix-add", "transpose", "pi"]);
    for row in &table.rows {
        let resident = row.resident.as_ref().unwrap();
        assert!(resident.threads > 0 && resident.threads <= resident.most.min(resident.launched), "{row:?}");
        assert!(row.kernel_speed_up() > 0.0 && row.application_speed_up().unwrap() > 0.0, "{row:?}");
        assert!(row.gpu.kernel.starts_with("gpu-") && !row.cpu.kernel.starts_with("gpu-"), "{row:?}");
        assert!(!row.gpu.kernel.starts_with("gpu-copy"), "{row:?}");
        let total: f64 = row.gpu.parts.iter().map(|part| part.seconds).sum();
        assert!((total - row.gpu.application_seconds.unwrap()).abs() < 1e-9, "{row:?}");
        assert!(row.bottleneck.shares.len() >= 3, "{row:?}");
    }
    // Three matrices of f32. Two of them go to the GPU.
    let (to, from) = table.rows[0].gpu.bytes.unwrap();
    assert_eq!(to, 2 * from);

    // No row of the lecture, no second table.
    let width = crate::args::Width { wide: false };
    assert!(table.rows.iter().all(|row| row.case.is_none() && row.one_core.is_none()));
    assert!(!show::text(&table, width).contains("1 core"));
    let lecture = PublishedApplication::of_lecture("H.264", "registers", 3936, [20.2, 1.5], &[]);
    let core = OneCore {
        variant: "plainest".into(),
        problem: "a smaller matrix".into(),
        kernel_seconds: 37.0 * table.rows[0].gpu.kernel_seconds,
        application_seconds: table.rows[0].gpu.application_seconds,
        amount: 1.0,
    };
    table.rows[0].case = Some("case".into());
    table.rows[0].one_core = Some((core, 2.0));
    table.rows[0].published = Some(lecture.into());

    assert_eq!(Applications::from_json(&table.to_json().unwrap()).unwrap(), table);
    let text = show::text(&table, width);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains(", × against ") && text.contains("no row: access: its variants"), "{text}");
    // Twice the core's work: 74 times as fast as one core, the application twice.
    println!("{text}");
    let last_line = |name: &str| text.lines().rfind(|line| line.starts_with(name)).unwrap().to_owned();
    let (ours, theirs) = (last_line("matrix-add case"), last_line("there: H.264"));
    assert!(ours.contains(" 74.0 ") && ours.contains(" 2.00 "), "{text}");
    assert!(["3936", "20.2", "1.50"].iter().all(|number| theirs.contains(number)), "{text}");
    assert!(text.contains("registers"), "{text}");
    let lines = show::lines(&table);
    // Commas outside of quotes.
    let fields = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert_eq!(lines.lines().map(fields).collect::<Vec<_>>(), [fields(lines.lines().next().unwrap()); 4]);
    assert!(lines.contains(",H.264,registers,3936,20.2,1.5"), "{lines}");
    let page = page::page(&table).render();
    for words in ["H.264", "a smaller matrix", "One core of the CPU", "there"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("transpose: application") && page.contains("access has no row"));
    table.rows.clear();
    assert!(!page::page(&table).render().contains("What was compared"));
    assert!(!show::text(&table, width).contains("Kernel"));
}

#[test]
fn a_reconstruction_is_a_row_of_its_stages() {
    // Both sides are the CPU: the emulated GPU reconstructs in tests of its own.
    let cpu = Device::cpu_with_threads(2).unwrap();
    let known = Limits { of: String::new(), measured: None, busy: false, rates: RATES };
    let processors = Processors {
        progress: &Silent,
        cpu: cpu.clone(),
        gpu: cpu,
        limits: &known,
        launch: 0.0,
        protocol: Protocol { rounds: 1, round: 1e-4, budget: 1e-3, rotate: false, ..Protocol::default() },
        seed: 1,
    };
    let mut table = processors.table(2);
    for one in &recon::ALL {
        let outcome = processors.reconstruction(one, Some(&[16])).unwrap();
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let row = outcome.row.unwrap();
        table.rows.push(row.clone());
        assert_eq!((row.kind, row.resident.is_some()), (RowKind::Reconstruction, false));
        assert!(row.cpu.application_seconds > Some(row.cpu.kernel_seconds), "{row:?}");
        assert!(row.gpu.parts.iter().any(|part| part.name == row.gpu.kernel), "{row:?}");
        let total: f64 = row.gpu.parts.iter().map(|part| part.seconds).sum();
        assert!((total / row.gpu.application_seconds.unwrap() - 1.0).abs() < 1e-6, "{row:?}");
        assert!(row.bottleneck.words().ends_with(" %") && row.bottleneck.share > 0.0, "{row:?}");
        assert!(one.size(Some(&[8])).is_err() && one.size(Some(&[32, 32])).is_err());
    }
    assert_eq!(Applications::from_json(&table.to_json().unwrap()).unwrap(), table);
    let page = page::page(&table).render();
    assert!(page.contains("Toeplitz kernel") && page.contains("recon-volume: 16 x 16 x 16 voxels"));
}

#[test]
fn one_core_can_be_timed_for_every_row_of_the_lecture() {
    let ladders = crate::ladders();
    let mut rows = Vec::new();
    for ladder in &ladders {
        let Some(row) = ladder.published_application() else { continue };
        for &(case, of_core) in row.cases {
            let gpu = which(ladder.as_ref(), Some(case), None, BackendKind::Cuda);
            assert_eq!(beside(ladder.as_ref(), gpu), Some((row, case, of_core)));
            let variants = |case| ladder.outline(Which::Case(Some(case), None)).unwrap().variants;
            // The first variant takes the core's problem, and both problems count its work alike.
            let (plainest, same) = (&variants(of_core)[0], &variants(case)[0]);
            assert_eq!((plainest.backend, plainest.competes), (BackendKind::Cpu, true), "{}", row.row);
            assert_eq!((plainest.name, plainest.refuses.clone()), (same.name, None), "{}", row.row);
            assert!(plainest.amount > 0.0 && plainest.amount <= same.amount, "{} {case}", row.row);
        }
        rows.push(row.row);
    }
    for row in ["H.264", "LBM", "RC5-72", "FEM", "RPES", "LINPACK", "TPACF", "FDTD", "MRI-FHD"] {
        assert_eq!(rows.iter().filter(|known| **known == row).count(), 1, "{row}");
    }
    // Another size has no row to stand beside.
    let lbm = ladders.iter().find(|ladder| ladder.about().name == "lbm").unwrap();
    assert!(beside(lbm.as_ref(), Which::Case(Some("cavity"), Some(&[8, 8, 8]))).is_none());
    assert!(beside(lbm.as_ref(), Which::Case(Some("channel"), None)).is_none());
}

#[test]
fn names_are_those_of_ladders_and_reconstructions() {
    let ladders = Ladders::new(crate::ladders());
    let named =
        |names: &[&str]| chosen(&ladders, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let applications = chosen(&ladders, &[]).unwrap();
    assert_eq!(applications.len(), crate::ladders().len() + recon::ALL.len());
    let two: Vec<_> = named(&["recon-volume", "sad", "sad"]).unwrap().iter().map(Application::name).collect();
    assert_eq!(two, ["recon-volume", "sad"]);
    assert!(named(&["recon-volum"]).err().unwrap().to_string().contains("recon-volum"));
}
