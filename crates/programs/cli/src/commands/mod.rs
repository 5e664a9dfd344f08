//! One module a command.

pub(crate) mod batch;
pub(crate) mod certify;
pub(crate) mod convert;
pub(crate) mod ct;
pub(crate) mod demo;
pub(crate) mod files;
pub(crate) mod filter;
pub(crate) mod info;
pub(crate) mod lab;
pub(crate) mod metrics;
pub(crate) mod plan;
pub(crate) mod recon;
pub(crate) mod render;
pub(crate) mod rerun;
pub(crate) mod simulate;
