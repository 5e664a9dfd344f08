//! One HTML page that carries everything it shows.
//!
//! A [`Page`] is a plain value: a title, a lead and sections of blocks. The method [`Page::render`] turns it
//! into HTML. The HTML loads nothing from anywhere, and reads well on a phone and in the dark. Every text in
//! it is escaped.
//!
//! ```
//! use rayspin_report::page::{Axis, LineChart, Page, Section, Series};
//!
//! let chart = LineChart::new("Residual", Axis::linear("Iteration", ""), Axis::log("Relative residual", ""))
//!     .series(Series::by_index("CG", [1.0, 0.2, 0.03]));
//! let page = Page::new("Spiral brain", "Least squares from 12 interleaves.")
//!     .section(Section::new("Convergence").text("CG on the normal equations.").chart(chart));
//! assert!(page.render().starts_with("<!DOCTYPE html>"));
//! ```

mod bars;
mod chart;
mod colour;
mod heat;
mod picture;
mod render;
mod run;
mod scale;
mod volume;

pub use bars::{Bar, BarChart};
pub use chart::{Axis, LineChart, Series};
pub use colour::{ColourScale, Colours};
pub use heat::{HeatCell, HeatMap};
pub use picture::Picture;
pub use scale::Spread;
pub use volume::VolumeView;

use crate::record::RunRecord;
use crate::table::Table;

/// A page: a title, a lead and sections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The title, also the window's.
    pub title: String,
    /// What the page says, in a sentence or two.
    pub lead: String,
    /// The sections, top to bottom. Three and more are listed under the lead.
    pub sections: Vec<Section>,
}

/// A heading and what stands under it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The blocks, top to bottom.
    pub blocks: Vec<Block>,
}

/// A thing on a page.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Paragraphs, parted by blank lines.
    Text(String),
    /// Short statements, one under the other.
    List(Vec<String>),
    /// Pictures side by side.
    Figures(FigureRow),
    /// A table.
    Table(Table),
    /// A line chart.
    Chart(LineChart),
    /// A bar chart.
    Bars(BarChart),
    /// A map of numbers over two parameters.
    Heat(HeatMap),
    /// A run record.
    Record(Box<RunRecord>),
    /// A volume that the reader turns.
    Volume(VolumeView),
}

/// Pictures side by side at one size; the reader may enlarge each and step from one to the next in place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FigureRow {
    /// The pictures, left to right.
    pub figures: Vec<Figure>,
    /// The colour bar under them.
    pub scale: Option<ColourScale>,
    /// A sentence or two about the row.
    pub caption: String,
}

/// A picture, its title and a line of detail.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The picture.
    pub picture: Picture,
    /// What it is, in a few words.
    pub title: String,
    /// A line under the title, as a measure.
    pub detail: String,
    /// What is to be seen, for those who do not see it.
    pub alt: String,
}

impl Page {
    /// A page without sections.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), sections: Vec::new() }
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The page as HTML.
    pub fn render(&self) -> String {
        render::page(self).into_string()
    }
}

impl Section {
    /// A section without blocks.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), blocks: Vec::new() }
    }

    /// Adds any block.
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Adds paragraphs.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Block::Text(text.into()))
    }

    /// Adds a list.
    pub fn list<T: Into<String>>(self, items: impl IntoIterator<Item = T>) -> Self {
        self.block(Block::List(items.into_iter().map(Into::into).collect()))
    }

    /// Adds a row of pictures.
    pub fn figures(self, row: FigureRow) -> Self {
        self.block(Block::Figures(row))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// Adds a chart.
    pub fn chart(self, chart: LineChart) -> Self {
        self.block(Block::Chart(chart))
    }

    /// Adds a bar chart.
    pub fn bars(self, chart: BarChart) -> Self {
        self.block(Block::Bars(chart))
    }

    /// Adds a map of numbers over two parameters.
    pub fn heat(self, map: HeatMap) -> Self {
        self.block(Block::Heat(map))
    }

    /// Adds a volume.
    pub fn volume(self, view: VolumeView) -> Self {
        self.block(Block::Volume(view))
    }

    /// Adds a run record.
    pub fn record(self, record: RunRecord) -> Self {
        self.block(Block::Record(Box::new(record)))
    }
}

impl FigureRow {
    /// A row of pictures.
    pub fn new(figures: impl IntoIterator<Item = Figure>) -> Self {
        Self { figures: figures.into_iter().collect(), ..Self::default() }
    }

    /// Puts a sentence under the row.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Puts the colour bar of `scale` under the row.
    pub fn scale(mut self, scale: ColourScale) -> Self {
        self.scale = Some(scale);
        self
    }
}

impl Figure {
    /// A picture with its title and what is to be seen in it.
    pub fn new(title: impl Into<String>, alt: impl Into<String>, picture: Picture) -> Self {
        Self { picture, title: title.into(), detail: String::new(), alt: alt.into() }
    }

    /// Puts a line under the title.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}
