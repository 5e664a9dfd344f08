//! What planning found, for plans of the same frame with other batch sizes.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;

use rayspin_core::Result;

/// What planning found of a frame's trajectory on a device, for plans of the same frame with other batch
/// sizes: sorting millions of points takes a good part of a second.
#[derive(Default)]
pub struct Known(RefCell<BTreeMap<Part, Box<dyn Any>>>);

/// The part of the plans, and the number of points at once.
type Part = (&'static str, usize);

impl Known {
    /// The known value of a part for `points` points at once. Calls `find` if it is not known yet.
    pub(super) fn find<T: Clone + 'static>(
        known: Option<&Self>,
        part: &'static str,
        points: usize,
        find: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(Self(parts)) = known else { return find() };
        if let Some(value) = parts.borrow().get(&(part, points)).and_then(|value| value.downcast_ref::<T>()) {
            return Ok(value.clone());
        }
        let value = find()?;
        parts.borrow_mut().insert((part, points), Box::new(value.clone()));
        Ok(value)
    }
}
