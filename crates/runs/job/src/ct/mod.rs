//! A run of a CT scan: [`Request`] → [`Begun`] → [`Understood`] → [`Chosen`] → [`Planned`] → [`Finished`].

mod arriving;
mod effect;
mod options;
mod plan;
mod read;
mod request;
mod run;
mod states;

use std::sync::OnceLock;

use rayspin_ct::corrections;
use rayspin_ct::methods::{Method, Methods};
use rayspin_run::Table;

use crate::asked::Kit;
use crate::rows::{OptionRow, Table as Rows};

pub use effect::Requirement;
pub use options::options;
pub use plan::Planned;
pub use request::{Field, Input, Request};
pub use run::Finished;
pub use states::{Begun, Chosen, Understood};

/// Methods for CT scans.
#[derive(Debug, Clone, Default)]
pub struct Ct;

impl Kit for Ct {
    type Method = dyn Method;

    const DEFAULT: &'static str =
        "fbp for parallel and fan beams on a circle, fdk for cone beams on a circle, else cgls";

    fn methods() -> &'static Table<dyn Method> {
        methods()
    }
}

impl Rows for Ct {
    type Request = Request;
    type Requirement = Requirement;

    fn rows() -> &'static [OptionRow<Request, Requirement>] {
        options()
    }
}

static METHODS: OnceLock<Methods> = OnceLock::new();
static CORRECTIONS: OnceLock<corrections::Table> = OnceLock::new();

/// The methods of this process.
pub fn methods() -> &'static Methods {
    METHODS.get_or_init(Methods::default)
}

/// The corrections of this process.
pub fn corrections() -> &'static corrections::Table {
    CORRECTIONS.get_or_init(corrections::Table::default)
}
