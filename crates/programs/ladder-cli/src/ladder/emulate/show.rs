//! What came of emulation: tables, JSON, CSV and a page.

use std::collections::BTreeMap;

use rayspin::report::number;
use rayspin::report::page::{Bar, BarChart, Page, Section};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::documents;
use rayspin_emu::How;
use serde_json::{Value, json as value};

use super::super::counters::Summary;
use super::super::csv::quoted;
use super::{LadderOutcome, VariantTimes};

const AS_WRITTEN: &str = "as written only";

/// Where it ran.
pub(super) struct About {
    pub(super) cpu: String,
    pub(super) threads: usize,
}

pub(super) fn looped(kernels: &BTreeMap<String, How>) -> usize {
    kernels.values().filter(|how| matches!(how, How::Loops(_))).count()
}

/// Into how many loops the kernel with most of them is split.
fn parts(kernels: &BTreeMap<String, How>) -> String {
    let loops = kernels.values().map(|how| if let How::Loops(loops) = how { *loops } else { 0 }).max();
    match loops.unwrap_or_default() {
        1 => "whole".to_owned(),
        loops => format!("in {loops}"),
    }
}

/// The CUDA variants of a ladder, both ways.
pub(super) fn variants(outcome: &LadderOutcome) -> Table {
    let native = match &outcome.native {
        Some((name, seconds)) => {
            format!("native Rust {name}: {}", number::seconds(*seconds))
        }
        None => "no variant in Rust".to_owned(),
    };
    let caption = format!("{}: {}, CUDA sources on the CPU ({native})", outcome.ladder, outcome.problem);
    let mut columns = vec![
        Column::text("CUDA variant"),
        Column::number("As written").seconds().legend("each CUDA thread is a fibre"),
        Column::number("MCUDA").seconds().legend("each kernel is loops over its threads, split at barriers"),
        Column::number("Written / MCUDA").unit("×").decimals(2).legend("how much faster the loops are"),
        Column::number("MCUDA / Rust")
            .unit("×")
            .decimals(2)
            .legend("time of the loops over the time of the best variant in Rust"),
        Column::text("Kernels as loops")
            .legend("how many kernels are loops, and the most loops of one; the others run as written"),
    ];
    if outcome.gpu {
        columns.push(Column::number("GPU").seconds());
    }
    columns.push(Column::number("Error").significant(2));
    columns.extend(outcome.predicted.into_iter().flat_map(Summary::columns));
    let native = outcome.native.as_ref().map(|(_, seconds)| *seconds);
    let mut table = Table::new(caption, columns);
    for variant in &outcome.variants {
        let mut row: Vec<Cell> = vec![
            variant.name.as_str().into(),
            variant.written.into(),
            variant.loops.into(),
            ratio(variant.written, variant.loops).into(),
            ratio(variant.loops, native).into(),
            match [looped(&variant.kernels), variant.kernels.len()] {
                [_, 0] => "not run".into(),
                [0, _] => AS_WRITTEN.into(),
                [whole, total] if whole == total => format!("all, {}", parts(&variant.kernels)).into(),
                [whole, total] => format!("{whole} of {total}, {}", parts(&variant.kernels)).into(),
            },
        ];
        if outcome.gpu {
            row.push(variant.gpu.into());
        }
        row.push(variant.error.into());
        if outcome.predicted.is_some() {
            row.extend(Summary::cells(variant.counts.as_ref()));
        }
        table.push(row);
    }
    table
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    Some(above? / below?)
}

/// The best of each processor, beside the published table.
pub(super) fn summary(about: &About, outcomes: &[LadderOutcome]) -> Table {
    let published = outcomes.iter().any(|outcome| outcome.published.iter().any(Option::is_some));
    let gpu = outcomes.iter().any(|outcome| outcome.gpu);
    let caption = format!(
        "One source, two processors: the best variant of each on {}; small problems, as fibres are slow: times predict no \
         GPU; MCUDA counts variants whose kernels are all loops",
        about.cpu
    );
    let mut columns = vec![
        Column::text("Ladder"),
        Column::number("Native Rust").seconds().legend("the best variant in Rust"),
        Column::number("CUDA on CPU, as written").seconds(),
        Column::number("MCUDA").seconds(),
        Column::number("MCUDA / Rust").unit("×").decimals(2),
    ];
    if gpu {
        columns.push(Column::number("GPU").seconds());
    }
    if published {
        columns.extend([
            Column::number("Published: C on CPU").seconds().legend(format!(
                "{}: larger problems on processors of its time; nudft-adjoint: the whole of MRI-FHD; matrix-product: C \
                 is Intel MKL on several cores",
                documents::APPLICATION_DEVELOPMENT
            )),
            Column::number("published: CUDA on CPU").seconds(),
            Column::number("published: CUDA on GPU").seconds(),
        ]);
    }
    let mut table = Table::new(caption, columns);
    let mut seen = Vec::new();
    for outcome in outcomes {
        // Further problems of a ladder are for variants that do not take its first.
        if seen.contains(&outcome.ladder) {
            continue;
        }
        seen.push(outcome.ladder);
        let best = |seconds: &dyn Fn(&VariantTimes) -> Option<f64>| {
            outcome.variants.iter().filter_map(seconds).min_by(f64::total_cmp)
        };
        let loops =
            best(&|variant| variant.loops.filter(|_| looped(&variant.kernels) == variant.kernels.len()));
        let native = outcome.native.as_ref().map(|(_, seconds)| *seconds);
        let mut row: Vec<Cell> = vec![
            outcome.ladder.into(),
            native.into(),
            best(&|variant| variant.written).into(),
            loops.into(),
            ratio(loops, native).into(),
        ];
        if gpu {
            row.push(best(&|variant| variant.gpu).into());
        }
        if published {
            row.extend(outcome.published.map(Cell::from));
        }
        table.push(row);
    }
    table
}

/// Why variants did not run, and why kernels are no loops.
pub(super) fn reasons(outcome: &LadderOutcome) -> Vec<String> {
    let label = |variant: &VariantTimes| format!("{} of {}", variant.name, outcome.ladder);
    let mut lines = Vec::new();
    for variant in &outcome.variants {
        lines.extend(variant.why.iter().map(|why| format!("{}: {why}", label(variant))));
        for (kernel, how) in &variant.kernels {
            if let How::Written(why) = how {
                lines.push(format!("{}: {kernel} runs as written: {why}", label(variant)));
            }
        }
    }
    lines
}

/// Everything, as JSON.
/// What the JSON file of an emulated run says that it is.
pub(in crate::ladder) const FORMAT: &str = "rayspin-emulation";

pub(super) fn json(about: &About, outcomes: &[LadderOutcome]) -> anyhow::Result<String> {
    let kernel = |(name, how): (&String, &How)| match how {
        How::Loops(loops) => value!({ "kernel": name, "loops": loops, "as_written_because": null }),
        How::Written(why) => value!({ "kernel": name, "loops": null, "as_written_because": why }),
    };
    let variant = |variant: &VariantTimes| {
        value!({
            "variant": variant.name,
            "as_written_seconds": variant.written,
            "as_loops_seconds": variant.loops,
            "gpu_seconds": variant.gpu,
            "error": variant.error,
            "counts": variant.counts,
            "kernels": variant.kernels.iter().map(kernel).collect::<Vec<_>>(),
            "why": variant.why,
        })
    };
    let ladder = |outcome: &LadderOutcome| {
        let native =
            outcome.native.as_ref().map(|(name, seconds)| value!({ "variant": name, "seconds": seconds }));
        let [c, cuda_on_cpu, cuda_on_gpu] = outcome.published;
        let published = outcome.published.iter().any(Option::is_some).then(|| {
            value!({
                "document": documents::APPLICATION_DEVELOPMENT,
                "c_on_cpu_seconds": c,
                "cuda_on_cpu_seconds": cuda_on_cpu,
                "cuda_on_gpu_seconds": cuda_on_gpu,
            })
        });
        value!({
            "ladder": outcome.ladder,
            "problem": outcome.problem,
            "predicted_on": outcome.predicted.map(|gpu| gpu.card),
            "rust": native,
            "variants": outcome.variants.iter().map(variant).collect::<Vec<Value>>(),
            "published": published,
        })
    };
    let document = value!({
        "format": FORMAT,
        "version": 1,
        "rayspin": env!("CARGO_PKG_VERSION"),
        "cpu": about.cpu,
        "cpu_threads": about.threads,
        "ladders": outcomes.iter().map(ladder).collect::<Vec<Value>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

const HEAD: &str = "ladder,problem,variant,as_written_seconds,as_loops_seconds,rust_variant,rust_seconds,gpu_seconds,error,kernels,\
                    kernels_as_loops,why";

/// A line for each variant.
pub(super) fn csv(outcomes: &[LadderOutcome]) -> String {
    let mut text = format!("{HEAD}\n");
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for outcome in outcomes {
        for variant in &outcome.variants {
            let fields = [
                outcome.ladder.to_owned(),
                outcome.problem.clone(),
                variant.name.clone(),
                number(variant.written),
                number(variant.loops),
                outcome.native.as_ref().map(|(name, _)| name.clone()).unwrap_or_default(),
                number(outcome.native.as_ref().map(|(_, seconds)| *seconds)),
                number(variant.gpu),
                number(variant.error),
                variant.kernels.len().to_string(),
                looped(&variant.kernels).to_string(),
                variant.why.clone().unwrap_or_default(),
            ];
            text.push_str(&fields.map(|field| quoted(&field)).join(","));
            text.push('\n');
        }
    }
    text
}

/// The tables and the times as a page.
pub(super) fn page(about: &About, outcomes: &[LadderOutcome]) -> Page {
    let lead = format!(
        "CUDA sources on a CPU: {}. Every result was checked against a plain oracle. Rayspin {}.",
        about.cpu,
        env!("CARGO_PKG_VERSION")
    );
    let page = Page::new("CUDA sources on a CPU", lead)
        .section(Section::new("Best of each ladder").table(summary(about, outcomes)));
    outcomes.iter().fold(page, |page, outcome| {
        let mut section =
            Section::new(format!("{}: {}", outcome.ladder, outcome.problem)).table(variants(outcome));
        let reasons = reasons(outcome);
        if !reasons.is_empty() {
            section = section.list(reasons);
        }
        page.section(section.bars(times(outcome)))
    })
}

/// Times of each variant on one axis, the best in Rust first.
fn times(outcome: &LadderOutcome) -> BarChart {
    let mut chart = BarChart::new("Time of a run", "Logarithmic: shorter is faster.");
    let mut bar = |name: String, seconds: Option<f64>| {
        let Some(value) = seconds else { return };
        chart.bars.push(Bar { name, value, text: number::seconds(value), mark: None });
    };
    if let Some((name, seconds)) = &outcome.native {
        bar(format!("{name} in Rust"), Some(*seconds));
    }
    for variant in &outcome.variants {
        bar(format!("{} as written", variant.name), variant.written);
        bar(format!("{} as loops", variant.name), variant.loops);
        bar(format!("{} on the GPU", variant.name), variant.gpu);
    }
    chart
}
