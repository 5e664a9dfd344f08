//! Workspaces that a plan reuses between calls.

use std::sync::{Mutex, TryLockError};

use rayspin_core::Result;

/// Caches the workspace of a plan between calls. Concurrent calls each get their own.
#[derive(Debug)]
pub(crate) struct WorkspaceCache<W>(Mutex<Option<W>>);

impl<W> Default for WorkspaceCache<W> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<W> WorkspaceCache<W> {
    /// Runs `work` on the cached workspace if it `fits`, and otherwise on a new one from `make`, which
    /// replaces it in the cache. If another thread uses the cached workspace, runs `work` on a new one that
    /// is not cached.
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
            // The old workspace is freed first, because memory may not hold both.
            *held = None;
        }
        work(match held.as_mut() {
            Some(held) => held,
            None => held.insert(make()?),
        })
    }

    /// The cached workspace.
    pub(crate) fn held_mut(&mut self) -> Option<&mut W> {
        match self.0.get_mut() {
            Ok(held) => held.as_mut(),
            Err(poisoned) => poisoned.into_inner().as_mut(),
        }
    }

    /// Calls `look` with the cached workspace. `None` if there is no workspace or another thread uses it.
    pub(crate) fn peek<O>(&self, look: impl FnOnce(&W) -> O) -> Option<O> {
        self.0.try_lock().ok()?.as_ref().map(look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_and_nested_calls_get_their_own() {
        let cache = WorkspaceCache::<Vec<u8>>::default();
        let of = |len: usize| move || Ok(vec![0; len]);
        assert_eq!(cache.peek(Vec::len), None);
        cache
            .with(
                |_| false,
                of(3),
                |v| {
                    v[0] = 1;
                    cache.with(
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
        let first = cache.with(|v| v.len() >= 3, of(3), |v| Ok(v[0])).unwrap();
        assert_eq!((first, cache.peek(Vec::len)), (1, Some(3)));
        let refused = || Err(rayspin_core::Error::value("test", "never", "made"));
        assert!(cache.with(|v| v.len() >= 4, refused, |_| Ok(())).is_err());
        assert_eq!(cache.peek(Vec::len), None);
    }
}
