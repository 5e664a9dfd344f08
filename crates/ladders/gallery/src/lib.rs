//! The applications that GPU computing was first shown with, one folder each, with every variant from naive
//! to best.
//!
//! [`applications!`] is the table that registers them, a line each. [`ladders`] makes ladders of its lines.

mod cone;

use rayspin_tune::{Build, Ladder, distinct};

/// The table of applications: a line each, the folder and the ladder in it. It passes all lines to the macro
/// `$with`.
///
/// To add an application, add its folder and its line. The module, [`ladders`], and the conformance test
/// follow.
#[macro_export]
macro_rules! applications {
    ($with:ident) => {
        $with! {
            // A line each, by name: folder: Ladder,
            fdtd: Fdtd,
            fem: Fem,
            h264: H264,
            lbm: Lbm,
            linpack: Linpack,
            pns: Pns,
            rc5: Rc5,
            rpes: Rpes,
            tpacf: Tpacf,
        }
    };
}

macro_rules! register {
    ($($folder:ident: $ladder:ident,)*) => {
        $(pub mod $folder;)*

        /// Every application, by name.
        pub fn ladders() -> Vec<Box<dyn Ladder>> {
            let mut ladders: Vec<Box<dyn Ladder>> = vec![$(Box::new($folder::$ladder)),*];
            ladders.sort_by_key(|ladder| ladder.about().name);
            ladders
        }
    };
}
applications!(register);

/// Every program in every form that matters to its resources: what continuous integration compiles without a
/// GPU.
pub fn programs() -> Vec<Build> {
    distinct(ladders().iter().flat_map(|ladder| ladder.programs()))
}
