use rayspin_core::{C32, C64};

/// G\[a, b\] = Σ_r conj(v\[r + c_a\]) v\[r + c_b\] over the rows r, as the formula says.
pub fn gram(values: &[C32], rows: &[u32], columns: &[u32]) -> Vec<C64> {
    let entry = |row: u32, column: u32| {
        let v = values[row as usize + column as usize];
        C64::new(v.re.into(), v.im.into())
    };
    let mut out = Vec::with_capacity(columns.len().pow(2));
    for &a in columns {
        for &b in columns {
            out.push(rows.iter().map(|&row| entry(row, a).conj() * entry(row, b)).sum());
        }
    }
    out
}
