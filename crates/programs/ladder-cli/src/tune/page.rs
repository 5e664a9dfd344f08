//! Searches as a page: tables, maps, curves, and what the cost model keeps.

use rayspin::report::page::{Axis, Block, LineChart, Page, Section, Series};
use rayspin::tune::Config;
use rayspin::tune::wisdom::Trial;
use rayspin_lab::Pruned;

use super::{Tuned, lost, table};
use crate::ladder::maps;

/// A section for each search.
pub(super) fn page(results: &[Tuned]) -> Page {
    let lead = format!(
        "Configurations of variants, each checked against a plain oracle and timed. Rayspin {}.",
        env!("CARGO_PKG_VERSION")
    );
    let page = Page::new("Tuning", lead).section(Section::new("Searches").table(table(results)));
    results.iter().fold(page, |page, one| {
        let heading = format!("{} {}: {}", one.ladder, one.variant, one.problem);
        let mut section = Section::new(heading);
        if let Some(kept) = one.kept {
            section = section.text(lost(one, kept));
        }
        let tried: Vec<(&Config, &Trial)> =
            one.result.tried.iter().filter_map(|t| Some((&t.config, t.trial.as_ref()?))).collect();
        let blocks = maps::of_search(&one.key, &tried).into_iter().chain(pareto(one).map(Block::Chart));
        page.section(blocks.fold(section, Section::block))
    })
}

/// Efficiency and utilisation of the configurations: what the cost model keeps, what it leaves out, and where
/// the fastest lies.
fn pareto(one: &Tuned) -> Option<LineChart> {
    let points = |wanted: &dyn Fn(Option<Pruned>) -> bool| -> Vec<(String, (f64, f64))> {
        let known = one.result.tried.iter().filter(|t| wanted(t.pruned) && t.config != one.result.best);
        known
            .filter_map(|t| Some((String::new(), (t.estimate?.efficiency, t.estimate?.utilisation))))
            .collect()
    };
    let best = one.result.tried.iter().find(|t| t.config == one.result.best)?.estimate?;
    let (kept, out) = (points(&|pruned| pruned.is_none()), points(&|pruned| pruned.is_some()));
    let chart = LineChart::new(
        format!("What pruning keeps of {}", one.variant),
        Axis::log("Efficiency", "1 / (instructions · threads)"),
        Axis::log("Utilisation", ""),
    )
    .caption(
        "A configuration is left out where another is better in both. The model is that of Ryoo et al. 2008.",
    );
    let chart = chart.series(Series::named("left out", out)).series(Series::named("kept", kept));
    let name = format!("fastest: {}", one.result.best);
    Some(chart.series(Series::named("fastest", [(name, (best.efficiency, best.utilisation))])))
}
