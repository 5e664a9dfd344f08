//! Options that a method or a file leaves without effect.

use anyhow::Result;
use rayspin::io;
use rayspin::mri::recon::{Method, Selection};

use super::options::method_name;
use crate::args::{ReconMri, RegulariserArg};
use crate::failure::BadInput;

/// Refuses an option by name.
pub(super) fn refuse_option(option: &str, expected: &str, found: &str) -> Result<()> {
    Err(BadInput::new(format!("{option}: expected {expected}, found {found}"))
        .hint(format!("leave {option} out"))
        .into())
}

/// Refuses penalties that the method leaves without effect.
pub(super) fn check_penalty(args: &ReconMri, method: Option<Method>) -> Result<()> {
    let Some(method) = method else {
        return Ok(());
    };
    let refuse = |option: &str, expected: &str| {
        Err(BadInput::new(format!("{option}: expected {expected}, found {}", method_name(method)))
            .hint(format!("leave {option} out, or choose another --method"))
            .into())
    };
    let quadratic = method.iterates() && !method.is_sparse();
    if args.regulariser.is_some() && !quadratic {
        return refuse("-W", "--method cg-sense or ls");
    }
    if args.anatomy.is_some() && method != Method::TotalVariation {
        if !quadratic {
            return refuse("--anatomy", "--method tv, or cg-sense or ls with -W differences");
        }
        if args.regulariser != Some(RegulariserArg::Differences) {
            return Err(BadInput::new("--anatomy: expected -W differences or --method tv, found neither")
                .hint("the reference weights differences: add -W differences")
                .into());
        }
    }
    let wavelets = [
        ("--wavelet", args.wavelet.is_some()),
        ("--wavelet-levels", args.wavelet_levels.is_some()),
        ("--wavelet-seed", args.wavelet_seed.is_some()),
    ];
    if method != Method::Wavelet
        && let Some((option, _)) = wavelets.into_iter().find(|(_, given)| *given)
    {
        return refuse(option, "--method wavelet");
    }
    let given = [("--lambda", args.lambda.is_some()), ("--iterations", args.iterations.is_some())];
    let given = given.into_iter().chain([("--tolerance", args.tolerance.is_some())]);
    if !method.iterates()
        && let Some((option, _)) = given.into_iter().find(|(_, given)| *given)
    {
        return refuse(option, "a method that iterates (ls, cg-sense, wavelet, tv)");
    }
    Ok(())
}

/// Refuses options that the file leaves without effect.
pub(super) fn check_effect(args: &ReconMri, format: io::Format, selection: &Selection) -> Result<()> {
    if format == io::Format::Hdf5 {
        let expected = "k-space without a header (.cfl, .npy)";
        for (option, given) in [("--traj", args.traj.is_some()), ("--fov", args.fov.is_some())] {
            if given {
                return refuse_option(option, expected, "an ISMRMRD scan, which states it");
            }
        }
    } else if args.window.is_some() {
        return refuse_option(
            "--window",
            "a scan with readouts in the order of acquisition (ISMRMRD)",
            "another",
        );
    } else if *selection != Selection::default() {
        let options = "--encoding, --slice, --repetition, --contrast, --phase or --set";
        return refuse_option(options, "a scan with counters (ISMRMRD)", "the samples of one image");
    }
    Ok(())
}
