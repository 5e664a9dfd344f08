//! A run of an MRI scan: [`Request`] → [`Begun`] → [`Understood`] → [`Chosen`] → [`Planned`] → [`Finished`].

mod arrays;
mod basis;
mod choose;
mod effect;
mod frame_source;
mod options;
mod plan;
mod read;
mod record;
mod request;
mod run;
mod source;
mod stopped;
mod stream;
mod taken;

use std::sync::OnceLock;

use rayspin_mri::methods::{Method, Methods};
use rayspin_run::Table;

use crate::asked::Kit;
use crate::rows::{OptionRow, Table as Rows};

pub use basis::BasisOf;
pub use choose::{Begun, Chosen, Understood};
pub use effect::{Requirement, in_a_field, iterates, over_a_basis};
pub use options::options;
pub use plan::Planned;
pub use record::name_of;
pub use request::{Beside, Input, Request};
pub use run::Finished;
pub use stream::StreamShape;
pub use taken::Taken;

/// Methods for MRI scans.
#[derive(Debug, Clone, Default)]
pub struct Mri;

impl Kit for Mri {
    type Method = dyn Method;

    const DEFAULT: &'static str = "cartesian for a full grid, low-rank-sparse for a series of few irregular samples an image, wavelet for few irregular samples, \
         cg-sense for several coils, else ls";

    fn methods() -> &'static Table<dyn Method> {
        methods()
    }
}

impl Rows for Mri {
    type Request = Request;
    type Requirement = Requirement;

    fn rows() -> &'static [OptionRow<Request, Requirement>] {
        options()
    }
}

static METHODS: OnceLock<Methods> = OnceLock::new();

/// The methods of this process.
pub fn methods() -> &'static Methods {
    METHODS.get_or_init(Methods::default)
}

/// Takes these methods for the process. The first call decides.
pub fn take(methods: Methods) {
    let _ = METHODS.set(methods);
}
