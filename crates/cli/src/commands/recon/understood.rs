//! What the input was understood as, in a line, and what speaks against it.

use rayspin::core::Progress as _;
use rayspin::io::cfl::Layout;
use rayspin::report::RunRecorder;
use rayspin_shell::Context;

use crate::commands::plan::{Shape, Source};

/// Where the axes of images and maps go in a BART array: to the dimensions that they came from.
pub(super) fn layout(source: &Source) -> Layout {
    match source {
        Source::Frame(array) => array.layout,
        Source::Arrays { series, labels, .. } => series.layout(labels),
        Source::Stream(stream) => stream.layout(),
        _ => Layout::default(),
    }
}

/// Says in a line what was read, and warns where the samples of an array without a header contradict it.
pub(super) fn say(source: &Source, shape: &Shape, context: &Context, recorder: &mut RunRecorder) {
    let summary = match source {
        Source::Frame(array) => Some(array.summary()),
        Source::Arrays { series, .. } => shape.frame(source).map(|frame| series.summary(frame)),
        _ => shape.frame(source).map(|frame| frame.summary()),
    };
    if let Some(summary) = summary {
        let text = match (shape.images(source), &shape.uneven) {
            (1, _) => summary.to_string(),
            (images, None) => format!("{summary}, {images} images"),
            (images, Some(others)) => format!("{summary}, the fullest of {images} images: {others}"),
        };
        context.console.note(&format!("understood as {text}"));
        recorder.parameter("understood as", text);
    }
    let unsure = match source {
        Source::Frame(_) | Source::Arrays { .. } => shape.frame(source),
        Source::Stream(stream) if stream.of_array() => shape.frame(source),
        _ => None,
    };
    if let Some(frame) = unsure {
        for doubt in frame.doubts() {
            context.console.warn(&doubt);
            recorder.note(format!("warning: {doubt}"));
        }
    }
}
