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
        &["detector of filtered back-projection", "view of filtered back-projection"],
        "`--method cgls`, `sirt`, `os-sart`, `mlem` and `tv` take any rays",
    ),
    (&["line integrals to remove rings from"], "`--correct rings-wavelet` takes numbers of any scale"),
];

/// What to do about a lack of memory.
const MEMORY: &str = "a smaller problem needs less: `--matrix`, fewer slices or a single `--repetition`; `--memory` takes coils, \
                      images or points some at a time";

/// What to do about an error, with parameters marked as [`rayspin_core::Mention`] has them: by the quantity that it names, the options and
/// parameters say how they have to do with it. `others` are further remedies, which come first.
///
/// ```
/// use rayspin_core::{Error, as_options};
///
/// let error = Error::value("acquisition 12: sample_time_us", "a positive time", 0);
/// let remedy = rayspin_job::remedy(&error, &[]).unwrap();
/// assert_eq!(as_options(&remedy), "--dwell states the time between samples in µs");
/// ```
pub fn remedy(error: &Error, others: &[Remedy]) -> Option<Cow<'static, str>> {
    match error {
        Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } => {
            // The last part is the closest: `acquisition 12: sample_time_us`.
            what.rsplit(": ").find_map(|part| {
                let quantity = uncounted(part);
                let own = remedy_of(others, &quantity).or_else(|| remedy_of(OTHERS, &quantity));
                own.map(Cow::from).or_else(|| of_options(&quantity).map(Cow::from))
            })
        }
        Error::Memory { .. } => Some(MEMORY.into()),
        _ => None,
    }
}

/// A quantity without the number that counts it: `view of filtered back-projection`.
fn uncounted(part: &str) -> String {
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    part.split(' ').filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
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
