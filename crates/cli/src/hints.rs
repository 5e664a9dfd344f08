//! What to do about an error of a library, in the options of this program.

use rayspin::core::Error;

use crate::commands::lab::NotInstalled;

/// The hint for an error, where this program has one.
pub(crate) fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use Error as E;
    if error.is::<NotInstalled>() {
        return Some(NotInstalled::HINT.to_owned());
    }
    let error = error.downcast_ref::<Error>()?;
    let told = match error {
        E::Value { what, .. } | E::Shape { what, .. } | E::NotFinite { what, .. } => remedy(what),
        E::Memory { .. } => Some(
            "a smaller problem needs less: --matrix, fewer slices or a single --repetition; --memory takes coils, images or \
             points some at a time",
        ),
        _ => None,
    };
    told.map(str::to_owned)
}

/// What to do about a quantity that an error names: the option that sets it, or the command that tells it.
fn remedy(what: &str) -> Option<&'static str> {
    let exact = REMEDIES.iter().find(|(names, _)| names.contains(&what)).map(|(_, hint)| *hint);
    exact.or_else(|| PARTS.iter().find(|(part, _)| what.contains(part)).map(|(_, hint)| *hint))
}

const HOLDS: &str = "rayspin info FILE lists what the file holds";
const SHAPES: &str = "rayspin info FILE states the shape of each";

/// Quantities by their names.
const REMEDIES: &[(&[&str], &str)] = &[
    (
        &["trajectory units"],
        "say which they are with --traj-units, or the matrix with --matrix; components are kx, ky, kz, not SigPy's kz, ky, kx",
    ),
    (
        &["centre of the trajectory"],
        "subtract the middle from the trajectory; --centre-partition names the partition at the centre of a scan that counts them",
    ),
    (&["angle of the lens"], "--perspective 30 is usual"),
    (&["width of the picture"], "leave --width out: the volume then fills the picture"),
    (&["step along rays"], "leave --step out: it is then the smallest side of a voxel"),
    (&["field of view"], "--fov says it of a file without a header"),
    (&["BART array"], "bart slice takes one frame of several"),
    (&["calibration centre"], "give sensitivity maps with --maps, or a narrower centre with --calibration"),
    (
        &["sampling for grappa", "calibration lines for grappa"],
        "--method cg-sense takes any pattern, and maps from --maps",
    ),
    (&["partial Fourier"], "leave --partial-fourier out"),
    (&["geometric compression"], "--compression svd suits every scan"),
    (&["noise covariance"], "it is [coil, coil], of the scan's own coils"),
    (&["encoding", "slice", "repetition", "contrast", "cardiac phase", "set", "selection"], HOLDS),
    (
        &["readouts", "window", "stride", "frames", "repetitions"],
        "rayspin info FILE counts readouts and repetitions",
    ),
    (&["device"], "rayspin info lists the processors of this machine; --device cpu needs no GPU"),
    (&["image to filter"], "filters take finite numbers: give such voxels a number"),
    (
        &["radius of a median", "sigma of a Gaussian in pixels", "bins"],
        "rayspin filter --help says what each filter takes",
    ),
    (
        &["voxels of resize along x", "voxels of resize along y", "voxels of resize along z"],
        "a smaller factor of resize, or a larger voxel",
    ),
    (&["range of the histogram"], "--range LOW,HIGH"),
    (&["method"], "rayspin info FILE says how the scan was sampled; without --method the scan decides"),
    (&["dwell time"], "leave --dwell out: it stands for a header that states 0"),
    (&["virtual coils"], "--coils takes fewer coils than the scan has, or a part of the energy below 1"),
    (&["anatomical reference", "field map"], "it needs the matrix of the image that is reconstructed"),
    (&["image compared with the reference"], SHAPES),
    (&["search for lambda"], "give --lambda a number, or take --method cg-sense, wavelet or tv"),
    (
        &["temporal basis", "frames of the temporal basis", "coefficients of a temporal basis"],
        "--basis has a row for each image of the series; svd:K takes the header's echo times, or --echo-times",
    ),
    (&["combine"], "leave --combine out, or choose rss or maps; --method cartesian and ls make coil images"),
    (&["combine none"], "--repetition chooses one repetition; each slice of it has its coil images"),
    (
        &["matrix", "matrix size", "matrix along x", "matrix along y", "matrix along z"],
        "--matrix X,Y[,Z] sets it",
    ),
    (&["levels of wavelets"], "--wavelet-levels sets them"),
    (&["edge of the anatomical reference"], "--anatomy-edge sets it"),
    (&["sets of maps"], "--map-sets sets them"),
    (&["tolerance of the field map's segments"], "--field-tolerance sets it"),
    (&["outputs to certify"], "--certify sets their number"),
    (&["epsilon"], "--epsilon sets it"),
    (&["lambda"], "--lambda sets it; auto searches for one"),
    (&["iterations"], "--iterations sets them"),
    (&["tolerance"], "--tolerance sets it"),
    (&["threads"], "--threads sets them"),
    (&["coils"], "--coils sets them"),
    (&["dimensions", "dimensions of this sampling"], "--dims sets them"),
    (&["echo trains", "interleaves", "spokes", "shots"], "--shots sets them"),
    (&["acceleration", "acceleration of the spiral"], "--acceleration sets it"),
    (&["noise readouts"], "--noise-readouts sets them"),
    (&["peak of the field map in Hz"], "--field-map-hz sets it"),
    (&["shape of the field map of a volume"], "--field-shape linear suits a volume"),
    (&["sampling in an inhomogeneous field"], "--trajectory radial or spiral excites before each readout"),
    (&["readout oversampling"], "--oversampling sets it"),
    (&["samples of a random readout"], "--samples sets them"),
    (&["signal-to-noise ratio"], "--snr sets it"),
    (&["window of the truth", "stride of the truth"], "--window and --stride set them"),
    (
        &["view", "views", "row", "column", "angles"],
        "--view, --row and --column choose from what rayspin info FILE counts; --views sets how many are simulated",
    ),
    (&["rays for fbp", "rays for fdk", "rays for fourier"], "without --method the rays decide"),
    (&["cutoff of the filter"], "--cutoff sets it"),
    (&["accuracy of the transform"], "--accuracy sets it"),
    (&["method of views that arrive"], "without --stream every method takes an array in a file"),
    (&["relaxation", "subsets"], "--relaxation and --subsets set them"),
    (
        &["voxel size", "voxel spacing", "centre of the volume"],
        "--voxel sets the size, --centre the middle of the volume",
    ),
    (&["volume", "slab"], "--matrix X,Y[,Z] sets the number of voxels"),
    (&["distance between pixels"], "--pixel U[,V] sets it"),
    (&["detector", "radius of the detector"], "--detector COLUMNS,ROWS sets its pixels"),
    (&["photons"], "--photons sets them; --lines leaves the detector's noise out"),
    (&["electronic noise", "dark signal"], "--electronic and --dark set them"),
    (&["differences of gain", "drift of gains"], "--gain and --drift set them"),
    (
        &["flat fields"],
        "--flat gives an image of the beam, or what each pixel counts of it; --frames sets how many are simulated",
    ),
    (&["tube voltage"], "--kilovolts sets it in a simulation, --tube in a reconstruction"),
    (&["corrections of views that arrive"], "without --stream every correction takes an array in a file"),
    (&["bin"], "--bin-views, --bin-rows and --bin-columns set how many become one"),
    (&["hardening"], "--hardening-2 and --hardening-3 are coefficients; --tube is the voltage for water"),
    (&["hounsfield"], "--water states what water attenuates; --water-mask marks it"),
    (&["attenuation of water", "attenuation of air"], "--water and --air set them"),
    (&["line integrals to remove rings from"], "--correct rings-wavelet takes numbers of any scale"),
    (&["rays along a pixel"], "--rays sets them"),
    (&["motion"], "--motion X,Y,Z and --cycles set it"),
    (&["width of the phantom"], "--fov sets it"),
];

/// Parts of longer names.
const PARTS: &[(&str, &str)] = &[
    ("sample_time_us", "--dwell states the time between samples in µs"),
    ("transfer function", "one point a line, values growing: 300 1.0 0.9 0.8 0.2"),
    ("acquisition", HOLDS),
    ("of filtered back-projection", "--method cgls, sirt, os-sart, mlem and tv take any rays"),
    ("source", "--source-to-axis and --axis-to-detector are positive lengths in mm"),
    ("orbit", "--source-to-axis and --axis-to-detector are positive lengths in mm"),
    ("times of the samples", "only ISMRMRD scans state when samples were taken; leave --field-map out"),
    ("maps", "maps are [coil, z, y, x] on the scan's own matrix"),
];

#[cfg(test)]
mod tests {
    use super::{PARTS, REMEDIES};
    use crate::in_memory::option_names;

    #[test]
    fn remedies_name_options_that_there_are() {
        let options = option_names();
        let hints = REMEDIES.iter().map(|(_, hint)| *hint).chain(PARTS.iter().map(|(_, hint)| *hint));
        for word in
            hints.flat_map(|hint| hint.split([' ', ',', ';', '.'])).filter(|word| word.starts_with("--"))
        {
            assert!(options.contains(word), "{word}");
        }
    }
}
