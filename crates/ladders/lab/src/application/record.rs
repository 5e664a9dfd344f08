//! The application table on disk.

use rayspin_core::{Error, Result};
use rayspin_tune::PublishedApplication;
use rayspin_tune::limits::Limits;
use serde::{Deserialize, Serialize};

use super::{Best, Bottleneck, OneCore, Resident};

/// What files say that they are.
const FORMAT: &str = "rayspin-applications";
/// Grows when what a field means changes.
const VERSION: u32 = 1;

/// An application table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applications {
    format: String,
    version: u32,
    /// The version of Rayspin.
    pub rayspin: String,
    /// When it began, in UTC: `2026-05-04T12:00:00Z`.
    pub began: String,
    /// The CPU, in words.
    pub cpu: String,
    /// Its threads that were computed with.
    pub cpu_threads: usize,
    /// The GPU, in words.
    pub gpu: String,
    /// Measured limits of the GPU.
    pub limits: Limits,
    /// Seconds of a launch that does next to nothing.
    pub launch: f64,
    /// The rows.
    pub rows: Vec<Row>,
    /// What has no row: names and reasons.
    pub left_out: Vec<(String, String)>,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The best variants of a ladder.
    Ladder,
    /// A reconstruction of samples in memory to an image in memory.
    Reconstruction,
}

/// Seconds of a part of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Seconds.
    pub seconds: f64,
}

/// An application on one processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The variant with its parameters, or the stage, that the kernel's time is of.
    pub kernel: String,
    /// Seconds of the kernel: data lie in the device's memory.
    pub kernel_seconds: f64,
    /// Seconds of the whole, from memory of the host to memory of the host, where it was timed.
    pub application_seconds: Option<f64>,
    /// What the whole is made of, by part.
    pub parts: Vec<Part>,
    /// Bytes that go to a GPU and come back, where the whole was timed.
    pub bytes: Option<(u64, u64)>,
}

impl Side {
    /// The side of the best variant of a ladder.
    pub fn of(best: &Best) -> Self {
        let config = best.config.to_string();
        let part = |(name, seconds): (&str, f64)| Part { name: name.to_owned(), seconds };
        Self {
            kernel: if config.is_empty() {
                best.variant.to_owned()
            } else {
                format!("{} {config}", best.variant)
            },
            kernel_seconds: best.kernel.median,
            application_seconds: best.whole.map(|whole| whole.seconds()),
            parts: best.whole.map(|whole| whole.parts().map(part).to_vec()).unwrap_or_default(),
            bytes: best.whole.map(|whole| (whole.bytes_in, whole.bytes_out)),
        }
    }

    /// The part that takes most of the whole, and its share.
    pub fn longest(&self) -> Option<(&str, f64)> {
        let most = self.parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        Some((&most.name, most.seconds / self.application_seconds?))
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name: of a ladder as the command line has it.
    pub name: String,
    /// The case, where it is named.
    pub case: Option<String>,
    /// What it is.
    pub title: String,
    /// The problem, in words.
    pub problem: String,
    /// What it is.
    pub kind: Kind,
    /// What limits it on the GPU.
    pub bottleneck: Bottleneck,
    /// Threads that the GPU holds at once.
    pub resident: Option<Resident>,
    /// On the CPU.
    pub cpu: Side,
    /// On the GPU.
    pub gpu: Side,
    /// One core, and what its rate counts of the row's problem over what it counts of the core's.
    pub one_core: Option<(OneCore, f64)>,
    /// The lecture's row.
    pub published: Option<Published>,
    /// The day on which the row was measured, where that is not the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
}

/// A [`PublishedApplication`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The document that has it.
    pub document: String,
    /// The row's label.
    pub row: String,
    /// What limited the kernel.
    pub bottleneck: String,
    /// Threads at once.
    pub threads: u32,
    /// How much faster than one core the kernel was.
    pub kernel_speed_up: f64,
    /// How much faster the application was.
    pub application_speed_up: f64,
}

impl From<PublishedApplication> for Published {
    fn from(row: PublishedApplication) -> Self {
        Self {
            document: row.document.to_owned(),
            row: row.row.to_owned(),
            bottleneck: row.bottleneck.to_owned(),
            threads: row.threads,
            kernel_speed_up: row.kernel,
            application_speed_up: row.application,
        }
    }
}

impl Row {
    /// The name, with the case where it is named: `lbm cavity`.
    pub fn label(&self) -> String {
        let day = self.day.as_ref().map(|day| format!("({day})"));
        [Some(&self.name), self.case.as_ref(), day.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// How much faster than one core of the CPU the kernel is on the GPU.
    pub fn kernel_over_one_core(&self) -> Option<f64> {
        let (core, times) = self.one_core.as_ref()?;
        Some(core.kernel_seconds * times / self.gpu.kernel_seconds)
    }

    /// How much faster than one core of the CPU the whole is with the GPU.
    pub fn application_over_one_core(&self) -> Option<f64> {
        let (core, times) = self.one_core.as_ref()?;
        Some(core.application_seconds? * times / self.gpu.application_seconds?)
    }

    /// How much faster the kernel is on the GPU.
    pub fn kernel_speed_up(&self) -> f64 {
        self.cpu.kernel_seconds / self.gpu.kernel_seconds
    }

    /// How much faster the whole is with the GPU.
    pub fn application_speed_up(&self) -> Option<f64> {
        Some(self.cpu.application_seconds? / self.gpu.application_seconds?)
    }
}

impl Applications {
    /// A table without rows.
    pub fn new(rayspin: impl Into<String>, began: impl Into<String>, limits: Limits) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            rayspin: rayspin.into(),
            began: began.into(),
            cpu: String::new(),
            cpu_threads: 0,
            gpu: String::new(),
            limits,
            launch: 0.0,
            rows: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// As JSON, with a line feed at its end.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|e| Error::value("application table", "finite numbers", e))
    }

    /// From what [`Applications::to_json`] gave. Errors: another format or version.
    pub fn from_json(text: &str) -> Result<Self> {
        let expected =
            || format!("{FORMAT} of version {VERSION}, as rayspin-ladder applications --json writes it");
        let table: Self =
            serde_json::from_str(text).map_err(|e| Error::value("application table", expected(), e))?;
        if table.format != FORMAT || table.version != VERSION {
            let found = format!("{} of version {}", table.format, table.version);
            return Err(Error::value("application table", expected(), found));
        }
        Ok(table)
    }
}
