//! Leads from a generic entry point to code that is compiled once, in this crate.
//!
//! Every crate that calls a generic function compiles it again, with all functions that it calls. The
//! transforms of single lines and a few hundred SIMD kernels were more than half of the code of `rayspin-mri`
//! (2.4 MB, 1.1 MB without them). Entry points of such algorithms therefore test which of the two number
//! types they have, and call a function that is not generic.

use std::any::Any;

use rayspin_core::{Error, Real};

/// `value` as a `B`, when that is its type.
pub(crate) fn same<A: 'static, B: 'static>(value: A) -> Option<B> {
    let mut value = Some(value);
    (&mut value as &mut dyn Any).downcast_mut::<Option<B>>().and_then(Option::take)
}

/// `value` as a `&B`, when that is its type.
pub(crate) fn same_ref<A: 'static, B: 'static>(value: &A) -> Option<&B> {
    (value as &dyn Any).downcast_ref()
}

/// `value` as a `&mut B`, when that is its type.
pub(crate) fn same_mut<A: 'static, B: 'static>(value: &mut A) -> Option<&mut B> {
    (value as &mut dyn Any).downcast_mut()
}

/// The error for a number type that kernels are not compiled for.
pub(crate) fn other_type<R: Real>() -> Error {
    Error::value("number type", "f32 or f64", R::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_its_own_type_only() {
        assert_eq!(same::<_, u8>(3u8), Some(3));
        assert_eq!(same::<_, u16>(3u8), None);
        assert_eq!(same_ref::<_, Vec<f32>>(&vec![1.0f32]), Some(&vec![1.0f32]));
        assert_eq!(same_mut::<_, Vec<f64>>(&mut vec![1.0f32]), None);
    }
}
