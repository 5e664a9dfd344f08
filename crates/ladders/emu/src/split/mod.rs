//! MCUDA's loop fission: a kernel with barriers as loops over the threads of a block, one between each two
//! barriers.
//!
//! A statement that has a barrier inside is taken apart and runs once a block, its condition being the same
//! for all threads; what stands between barriers becomes a loop over threads. A variable that is the same for
//! all threads stays one; one that follows from a thread's number is made again in each loop; one that lives
//! across a barrier otherwise becomes an array over threads.

mod effects;
mod emit;
mod functions;
mod nodes;
mod plan;
mod statements;
mod tokens;

use std::collections::BTreeMap;

use functions::{Function, Outline};
pub(crate) use tokens::wishes;

/// Why a kernel cannot be split.
pub(crate) type Refusal = String;

/// Exchanges between lanes, and what cannot be left before a loop ends.
const EXCHANGES: [&str; 8] =
    ["__syncwarp", "__shfl", "__ballot", "__any_sync", "__all_sync", "__match", "__reduce", "__activemask"];
const OTHERS: [&str; 8] = [
    "assert",
    "__trap",
    "__nanosleep",
    "__syncthreads_count",
    "__syncthreads_and",
    "__syncthreads_or",
    "__emu_bar_sync",
    "__emu_bar_arrive",
];

/// A kernel as loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Split {
    /// The function of a whole block.
    pub(crate) text: String,
    pub(crate) loops: usize,
}

/// The kernels of a text behind the preprocessor: split, or why not.
pub(crate) fn split(text: &str) -> BTreeMap<String, Result<Split, Refusal>> {
    let outline = functions::outline(&tokens::tokens(text));
    outline.kernels.iter().map(|(name, kernel)| (name.clone(), one(&outline, name, kernel))).collect()
}

fn one(outline: &Outline, name: &str, kernel: &Function) -> Result<Split, Refusal> {
    let mut reached: Vec<_> = outline.reached(&kernel.body).into_iter().collect();
    reached.sort_unstable();
    if let Some(word) = reached.iter().find(|word| EXCHANGES.iter().any(|begin| word.starts_with(begin))) {
        return Err(format!("{word} is an exchange of a warp"));
    }
    if let Some(word) = reached.iter().find(|word| OTHERS.contains(&word.as_str())) {
        return Err(format!("{word} in a kernel with barriers"));
    }
    let body = nodes::Body::of(outline.flattened(kernel)?, kernel)?;
    let effects = effects::Effects::of(outline, &body);
    let plan = plan::Plan::of(&effects)?;
    let parameters: Vec<String> = kernel.parameters.iter().map(functions::Parameter::text).collect();
    Ok(Split { text: emit::function(&effects, &plan, name, &parameters)?, loops: plan.regions.len() })
}
