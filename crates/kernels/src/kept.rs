//! What a plan works in, kept between calls.

use std::sync::{Mutex, TryLockError};

use rayspin_core::Result;

/// Buffers that the next call finds again; of calls at the same time one has them.
#[derive(Debug)]
pub(crate) struct Kept<W>(Mutex<Option<W>>);

impl<W> Default for Kept<W> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<W> Kept<W> {
    /// Runs `work` on what is kept where that `fits`, else on what `make` makes and which is kept instead; where another thread
    /// has it, on something fresh.
    pub(crate) fn with<O>(
        &self,
        fits: impl FnOnce(&W) -> bool,
        make: impl FnOnce() -> Result<W>,
        work: impl FnOnce(&mut W) -> Result<O>,
    ) -> Result<O> {
        let mut held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return work(&mut make()?),
        };
        if held.as_ref().is_some_and(|held| !fits(held)) {
            // Before there is another: memory may not hold both.
            *held = None;
        }
        work(match held.as_mut() {
            Some(held) => held,
            None => held.insert(make()?),
        })
    }

    /// `look` at what is kept, unless nothing is or another thread has it.
    pub(crate) fn peek<O>(&self, look: impl FnOnce(&W) -> O) -> Option<O> {
        self.0.try_lock().ok()?.as_ref().map(look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_and_nested_calls_get_their_own() {
        let kept = Kept::<Vec<u8>>::default();
        let of = |len: usize| move || Ok(vec![0; len]);
        assert_eq!(kept.peek(Vec::len), None);
        kept.with(
            |_| false,
            of(3),
            |v| {
                v[0] = 1;
                kept.with(
                    |_| true,
                    of(3),
                    |fresh| {
                        assert_eq!(fresh[..], [0; 3]);
                        Ok(())
                    },
                )
            },
        )
        .unwrap();
        let first = kept.with(|v| v.len() >= 3, of(3), |v| Ok(v[0])).unwrap();
        assert_eq!((first, kept.peek(Vec::len)), (1, Some(3)));
        let refused = || Err(rayspin_core::Error::value("test", "never", "made"));
        assert!(kept.with(|v| v.len() >= 4, refused, |_| Ok(())).is_err());
        assert_eq!(kept.peek(Vec::len), None);
    }
}
