//! The geometry of a scan in the conventions of other programs: the items of [`rayspin_scan::ct::geometry`].

pub use rayspin_scan::ct::geometry::{
    RtkProjection, TigreView, from_astra, from_rtk, from_tigre, from_vectors, to_astra, to_rtk, to_tigre,
    to_vectors,
};
