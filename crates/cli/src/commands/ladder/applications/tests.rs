use rayspin::core::Silent;
use rayspin::tune::limits::{Effort, measure};
use rayspin_emu::Emulator;

use super::*;

#[test]
fn rows_are_made_of_the_best_rungs_of_both_processors() {
    let Ok(emulator) = Emulator::device() else { return };
    let effort = Effort { bytes: 1 << 16, repeats: 1, seconds: 1e-4, rounds: 16 };
    let known = measure(&emulator, &effort).unwrap();
    let processors = Processors {
        progress: &Silent,
        cpu: emulator.host(),
        gpu: emulator.clone(),
        limits: &known,
        launch: limits::launch(&emulator).unwrap(),
        protocol: Protocol { rounds: 2, round: 1e-4, budget: 1e-3, rotate: false },
        seed: 1,
    };
    let mut table = processors.table(2);
    let names = ["matrix-add", "transpose", "pi", "access"].map(str::to_owned);
    for ladder in named(&names).unwrap() {
        let found = processors.ladder(ladder.as_ref(), Which::Trial(ladder.trials() - 1)).unwrap();
        assert!(found.failed.is_empty(), "{:?}", found.failed);
        match found.row {
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
        let all: f64 = row.gpu.parts.iter().map(|part| part.seconds).sum();
        assert!((all - row.gpu.application_seconds.unwrap()).abs() < 1e-9, "{row:?}");
        assert!(row.bottleneck.shares.len() >= 3, "{row:?}");
    }
    // Three matrices of f32, two of which go to the GPU.
    let (to, from) = table.rows[0].gpu.bytes.unwrap();
    assert_eq!(to, 2 * from);

    assert_eq!(Applications::from_json(&table.to_json().unwrap()).unwrap(), table);
    let text = show::text(&table);
    assert!(text.contains(" against ") && text.contains("no row: access: its rungs"), "{text}");
    assert_eq!(show::lines(&table).lines().count(), 4);
    let page = page::page(&table).render();
    assert!(page.contains("transpose: application") && page.contains("access has no row"));
    table.rows.clear();
    assert!(!page::page(&table).render().contains("What was compared"));
    assert!(!show::text(&table).contains("Kernel"));
}
