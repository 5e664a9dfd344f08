//! Options that say how a run goes on.

use super::super::effect::{ITERATES, Needs};
use super::Row;
use crate::rows::Kind;

const RUN: &str = "Run";

pub(super) const ROWS: &[Row] = &[
    Row::new(RUN, "memory", Kind::Bytes, "Main memory that the process may take [default: all that is free]")
        .details(
            "The run takes its work in parts to fit. If nothing fits, it is refused, and the error states the memory that it needs.",
        )
        .value("SIZE")
        .puts(|request, given| {
            request.memory = Some(given.count()?);
            Ok(())
        }),
    Row::new(
        RUN,
        "cache",
        Kind::Folder,
        "Folder that keeps the trajectory's Toeplitz kernel for the next run ({methods with a normal operator})",
    )
    .value("FOLDER")
    .rare()
    .needs(&[ITERATES, Needs::Trajectory])
    .puts(|request, given| {
        request.cache = Some(given.file()?.to_owned());
        Ok(())
    }),
];
