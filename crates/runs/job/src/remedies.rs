//! What to do about an error of the library, with parameters as each program spells them.

use std::borrow::Cow;

use rayspin_core::Error;
use rayspin_run::{Param, Remedy, remedy_of};

use crate::ct::Ct;
use crate::mri::Mri;
use crate::rows::{OptionRow, Table};
use crate::{ct, mri};

/// The remedies of no option alone.
const OTHERS: &[Remedy] = &[
    (&["BART array"], "bart slice takes one frame of several"),
    (
        &["sampling for grappa", "calibration lines for grappa"],
        "`--method cg-sense` takes any pattern, and maps from `--maps`",
    ),
    (&["device"], "`rayspin info` lists the processors of this machine; `--device cpu` needs no GPU"),
    (&["threads"], "`--threads` sets this"),
    (&["method"], "`rayspin info FILE` says how the scan was sampled; without `--method` the scan decides"),
    (&["image compared with the reference"], "`rayspin info FILE` states the shape of each"),
    (&["outputs to certify"], "`--certify` sets their number"),
    (&["rays for fbp", "rays for fdk", "rays for fourier"], "without `--method` the rays decide"),
    (
        &["detector of filtered back-projection", "rays of view of filtered back-projection"],
        "`--method cgls`, `sirt`, `os-sart`, `mlem` and `tv` take any rays",
    ),
    (&["line integrals to remove rings from"], "`--correct rings-wavelet` takes numbers of any scale"),
];

/// What to do about a lack of memory.
const MEMORY: &str = "a smaller problem needs less: `--matrix`, fewer slices or a single `--repetition`; `--memory` takes coils, \
                      images or points some at a time";

/// What to do about an error, with parameters marked as [`rayspin_core::Mention`] has them: by the quantity
/// that it names, the options and parameters say how they have to do with it. `others` are further remedies,
/// which come first.
///
/// ```
/// use rayspin_core::{Error, as_options};
///
/// let error = Error::value("acquisition 12: sample_time_us, which a field map needs", "a positive dwell time", 0);
/// let remedy = rayspin_job::remedy(&error, &[]).unwrap();
/// assert_eq!(as_options(&remedy), "--dwell states the time between samples in µs");
/// ```
pub fn remedy(error: &Error, others: &[Remedy]) -> Option<Cow<'static, str>> {
    match error {
        Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } => {
            let remedy_for = |quantity: &str| {
                let own = remedy_of(others, quantity).or_else(|| remedy_of(OTHERS, quantity));
                own.map(Cow::from).or_else(|| of_options(quantity).map(Cow::from))
            };
            // `acquisition: sample_time_us`, else what all of an acquisition has.
            let quantity = uncounted(what);
            remedy_for(&quantity).or_else(|| remedy_for(quantity.split_once(": ")?.0))
        }
        Error::Memory { .. } => Some(MEMORY.into()),
        _ => None,
    }
}

/// A quantity without the numbers that count it: `acquisition: samples` of `acquisition 12: samples`.
fn uncounted(what: &str) -> String {
    let mut kept = String::with_capacity(what.len());
    for word in what.split(' ') {
        let number = word.strip_suffix(':').unwrap_or(word);
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            kept.push_str(&word[number.len()..]);
            continue;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    kept
}

/// The remedies of all options and parameters, but for those that say no more than which option sets the
/// quantity.
pub fn remedies() -> Vec<Remedy> {
    let params = |listed: Vec<Param>| listed.into_iter().flat_map(|param| param.remedies);
    let rows =
        Mri::rows().iter().flat_map(|row| row.remedies).chain(Ct::rows().iter().flat_map(|row| row.remedies));
    let of_mri = mri::methods().params().into_iter().map(|(param, _)| param).collect();
    let of_ct = ct::methods().params().into_iter().map(|(param, _)| param);
    let of_ct = of_ct.chain(ct::corrections().params().into_iter().map(|(param, _)| param)).collect();
    OTHERS.iter().chain(rows).chain(params(of_mri)).chain(params(of_ct)).copied().collect()
}

fn of_options(quantity: &str) -> Option<String> {
    of_rows::<Mri>(quantity)
        .or_else(|| of_params(mri::methods().params(), quantity))
        .or_else(|| of_rows::<Ct>(quantity))
        .or_else(|| of_params(ct::methods().params(), quantity))
        .or_else(|| of_params(ct::corrections().params(), quantity))
}

fn of_rows<T: Table>(quantity: &str) -> Option<String> {
    T::rows().iter().find_map(|row: &OptionRow<_, _>| row.remedy(quantity))
}

fn of_params<V>(params: Vec<(Param, V)>, quantity: &str) -> Option<String> {
    params.iter().find_map(|(param, _)| param.remedy(quantity))
}
