//! A record as comma-separated values, a line for each variant.

use rayspin_lab::record::Record;
use rayspin_lab::{LaunchMode, Outcome, Timed};

const HEAD: &str = "ladder,case,problem,device,clock_mhz,variant,parameters,outcome,seconds,seconds_low,seconds_high,rate,unit,\
                    step,cumulative,floor_seconds,of_limit,error,tolerance,published_document,published_row,\
                    published_seconds,published_rate,published_problem,published_note,launch,why";

/// All variants of a record.
pub(super) fn lines(record: &Record) -> String {
    let mut text = format!("{HEAD}\n");
    for entry in &record.runs {
        for step in &entry.run.steps {
            let timed = step.timed();
            let (outcome, why) = match &step.outcome {
                Outcome::Timed(_) => ("timed", ""),
                Outcome::Refused(why) => ("refused", why.as_str()),
                Outcome::Failed(why) => ("failed", why.as_str()),
            };
            let theirs = entry.published_row(step.reproduces.as_deref());
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let fields = [
                entry.ladder.clone(),
                entry.case.clone().unwrap_or_default(),
                entry.run.problem.clone(),
                entry.run.device.clone(),
                number(timed.and_then(|t| t.clock_mhz).or(entry.clock_mhz)),
                step.name.clone(),
                step.config.to_string(),
                outcome.to_owned(),
                number(timed.map(|t| t.timing.median)),
                number(timed.map(|t| t.timing.low)),
                number(timed.map(|t| t.timing.high)),
                number(timed.map(|t| t.rate)),
                format!("{}/s", entry.unit),
                number(timed.map(|t| t.step)),
                number(timed.map(|t| t.cumulative)),
                number(step.floor),
                number(step.share()),
                number(timed.map(|t| t.error)),
                step.tolerance.to_string(),
                theirs.map(|p| p.document.clone()).unwrap_or_default(),
                theirs.map(|p| p.row.clone()).unwrap_or_default(),
                number(theirs.and_then(|p| p.seconds)),
                number(theirs.and_then(|p| p.rate)),
                theirs.map(|p| p.problem.clone()).unwrap_or_default(),
                theirs.map(|p| p.note.clone()).unwrap_or_default(),
                launch(timed, entry.launch),
                why.to_owned(),
            ];
            text.push_str(&fields.map(|field| quoted(&field)).join(","));
            text.push('\n');
        }
    }
    text
}

/// How the host launched the runs of a variant, in the words of `--launch`.
fn launch(timed: Option<&Timed>, asked: LaunchMode) -> String {
    let launch = match (timed, asked) {
        (None, _) => "",
        (_, LaunchMode::Single) => "single",
        (Some(timed), _) if timed.timing.graph => "graph",
        (Some(_), _) => "stream",
    };
    launch.to_owned()
}

/// A field as RFC 4180 has it.
pub(super) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(super::quoted("a b"), "a b");
        assert_eq!(super::quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
