//! What the user sees while a run goes on: a bar on a terminal, plain lines elsewhere, nothing with
//! `--quiet`.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rayspin_core::{Progress, as_options, printable};

/// Lines are printed at most this often, so that a log does not fill with iterations.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Progress on stderr.
pub struct Console {
    mode: Mode,
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Quiet,
    Lines,
    Bar,
}

struct State {
    bar: Option<ProgressBar>,
    stage: String,
    steps: usize,
    done: usize,
    detail: String,
    began: Instant,
    last_line: Instant,
    /// How often each stage has ended, and the seconds in it.
    ended: Vec<(String, usize, f64)>,
    last_repeat: Instant,
}

impl Console {
    /// A bar when stderr is a terminal, lines otherwise, nothing when `quiet`.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Bar,
            (false, false) => Mode::Lines,
        };
        let now = Instant::now();
        let state = State {
            bar: None,
            stage: String::new(),
            steps: 0,
            done: 0,
            detail: String::new(),
            began: now,
            last_line: now,
            ended: Vec::new(),
            last_repeat: now,
        };
        Self { mode, state: Mutex::new(state) }
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// Tells the user something that makes the result doubtful.
    pub fn warn(&self, text: &str) {
        self.line("warning", text);
    }

    fn line(&self, kind: &str, text: &str) {
        self.with(|s| {
            let line = format!("  {kind}: {}", printable(&as_options(text)));
            match (&s.bar, self.mode) {
                (_, Mode::Quiet) => {}
                (Some(bar), _) => bar.println(line),
                (None, _) => say!("{line}"),
            }
        });
    }
}

impl Progress for Console {
    fn begin(&self, stage: &str, steps: usize) {
        self.with(|s| {
            s.stage = stage.to_owned();
            (s.steps, s.done, s.detail) = (steps, 0, String::new());
            s.began = Instant::now();
            s.last_line = s.began;
            if self.mode == Mode::Bar {
                let bar = if steps > 0 { ProgressBar::new(steps as u64) } else { ProgressBar::new_spinner() };
                let template = if steps > 0 {
                    "{prefix:22} {bar:30} {pos:>4}/{len} {elapsed:>4} left {eta:>4}  {msg}"
                } else {
                    "{prefix:22} {spinner} {elapsed}"
                };
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style.progress_chars("━╸ "));
                }
                bar.set_prefix(printable(stage).into_owned());
                bar.enable_steady_tick(Duration::from_millis(100));
                s.bar = Some(bar);
            }
        });
    }

    fn step(&self, detail: &str) {
        self.with(|s| {
            s.done += 1;
            s.detail = detail.to_owned();
            if let Some(bar) = &s.bar {
                bar.set_message(printable(detail).into_owned());
                bar.inc(1);
            } else if self.mode == Mode::Lines && s.last_line.elapsed() >= LINE_INTERVAL {
                s.last_line = Instant::now();
                let total = if s.steps > 0 { format!("/{}", s.steps) } else { String::new() };
                let left = match s.steps.checked_sub(s.done) {
                    Some(rest) if s.steps > 0 && s.done > 0 => {
                        let seconds = s.began.elapsed().as_secs_f64() * rest as f64 / s.done as f64;
                        format!(", {seconds:.0} s left")
                    }
                    _ => String::new(),
                };
                say!("  {} {}{total}{left}  {}", s.stage, s.done, s.detail);
            }
        });
    }

    fn end(&self, stage: &str, seconds: f64) {
        self.with(|s| {
            if let Some(bar) = s.bar.take() {
                bar.finish_and_clear();
            }
            let place = s.ended.iter().position(|(name, ..)| name == stage).unwrap_or_else(|| {
                s.ended.push((stage.to_owned(), 0, 0.0));
                s.ended.len() - 1
            });
            s.ended[place].1 += 1;
            s.ended[place].2 += seconds;
            let (_, times, total) = &s.ended[place];
            if *times > 1 {
                // A long series says where it is now and then, and not every stage of every image.
                if self.mode != Mode::Quiet && s.last_repeat.elapsed() >= LINE_INTERVAL {
                    say!("  {stage:22} {total:8.3} s in {times} images so far");
                    s.last_repeat = Instant::now();
                }
            } else if self.mode != Mode::Quiet {
                s.last_repeat = Instant::now();
                let steps = if s.done > 1 { format!(", {} steps", s.done) } else { String::new() };
                let detail = if s.detail.is_empty() { String::new() } else { format!(", {}", s.detail) };
                say!("  {stage:22} {seconds:8.3} s{steps}{detail}");
            }
            (s.done, s.detail) = (0, String::new());
        });
    }

    fn note(&self, text: &str) {
        self.line("note", text);
    }
}
