//! What to do about an error of a library, in the options of this program.

use rayspin::core::Error;

use crate::commands::lab::NotInstalled;

/// The hint for an error, where this program has one.
pub(crate) fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use Error as E;
    if error.is::<NotInstalled>() {
        return Some(NotInstalled::HINT.to_owned());
    }
    let text = match error.downcast_ref::<Error>()? {
        E::Value { what, .. } if what == "trajectory units" => {
            "say which they are with --traj-units, or the matrix with --matrix; components are kx, ky, kz, not SigPy's kz, ky, kx"
        }
        E::Value { what, .. } if what == "field of view" => "--fov says it of a file without a header",
        E::Value { what, .. } if what == "BART array" => "bart slice takes one frame of several",
        E::Value { what, .. } if what == "calibration centre" => {
            "give sensitivity maps with --maps, or a narrower centre with --calibration"
        }
        E::Value { what, .. } if what == "sampling for grappa" || what == "calibration lines for grappa" => {
            "--method cg-sense takes any pattern, and maps from --maps"
        }
        E::Value { what, .. } if what == "partial Fourier" => "leave --partial-fourier out",
        E::Value { what, .. } if what == "geometric compression" => "--compression svd suits every scan",
        E::Shape { what, .. } if what == "noise covariance" => "it is [coil, coil], of the scan's own coils",
        E::Value { what, .. } if what.starts_with("acquisition") => {
            "rayspin info FILE lists what the scan holds"
        }
        E::Memory { .. } => {
            "a smaller problem needs less: --matrix, fewer slices or a single --repetition; --memory takes coils, images or \
             points some at a time"
        }
        E::Shape { what, .. } if what.contains("maps") => "maps are [coil, z, y, x] on the scan's own matrix",
        _ => return None,
    };
    Some(text.to_owned())
}
