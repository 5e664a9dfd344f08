//! Options that say how a run goes on.

use super::super::effect::{ITERATES, Requirement};
use super::Row;
use crate::rows::{Kind, memory};

const RUN: &str = "Run";

pub(super) const ROWS: &[Row] = &[
    memory(|request, given| {
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
    .needs(&[ITERATES, Requirement::Trajectory])
    .puts(|request, given| {
        request.cache = Some(given.file()?.to_owned());
        Ok(())
    }),
];
