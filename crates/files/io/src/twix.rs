//! Siemens raw data, which is recognised.

/// VD and VE files start with a count below 10000 and a number of measurements of at most 64; VB files with
/// the length of their header, which is beyond 1024, and the number of its parts.
pub(crate) fn begins(start: &[u8]) -> bool {
    let word = |offset: usize| {
        let bytes = start.get(offset..offset + 4)?;
        bytes.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
    };
    match (word(0), word(4)) {
        (Some(first), Some(second)) => {
            (first < 10_000 && (1..=64).contains(&second)) || (first > 10_000 && (1..=32).contains(&second))
        }
        _ => false,
    }
}
