//! The options of a run of a CT scan, one row each.

use rayspin_ct::recon::AxisOn;
use rayspin_run::Certify;

use super::effect::{NO_RAYS, Requirement, WHOLE};
use super::request::{Field, Request};
use crate::Result;
use crate::rows::{Kind, Named, OptionRow, Setting, certify, certify_seed, memory, typed};

type Row = OptionRow<Request, Requirement>;

const VOLUME: &str = "Volume";
const SCAN: &str = "Scan";
const QUALITY: &str = "Quality and record";

const OPTIONS: &[Row] = &[
    Row::program("scan", &[]),
    Row::program("outputs", &[]),
    Row::program("dry_run", &[]),
    Row::program("dicom_template", &[Requirement::Origin]),
    Row::new(
        VOLUME,
        "matrix",
        Kind::Counts(&[2, 3]),
        "Number of voxels [default: as many as fill the field of view]",
    )
    .remedies(&[(&["volume", "slab"], "`--matrix X,Y[,Z]` sets the number of voxels")])
    .details(
        "By default the volume has as many voxels across as the detector has columns, and as many slices as it has rows. A shifted \
         detector counts twice the columns of its longer side. With `--matrix` alone the voxels become as large as the field of view \
         needs.",
    )
    .value("X,Y[,Z]")
    .puts(|request, given| {
        let sizes = given.counts()?;
        request.wanted.matrix = Some(std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(1)));
        Ok(())
    }),
    Row::new(
        VOLUME,
        "voxel",
        Kind::Numbers(&[1, 3]),
        "Voxel size in mm [default: by `--matrix`, else pixel size / magnification]",
    )
    .remedies(&[
        (
            &["voxel size", "voxel spacing", "centre of the volume"],
            "`--voxel` sets the size, `--centre` the middle of the volume",
        ),
    ])
    .details(
        "`--matrix` alone keeps the field of view, so fewer voxels are larger. Without `--matrix` and `--voxel`, the size of a voxel is the \
         size of a pixel over the magnification at the axis.",
    )
    .value("MM[,Y,Z]")
    .keyword("voxel_mm")
    .puts(|request, given| {
        request.wanted.voxel_mm = Some(repeated(&given)?);
        Ok(())
    }),
    Row::new(
        VOLUME,
        "centre",
        Kind::Numbers(&[3]),
        "Middle of the volume in mm, from the axis and the middle of the orbit",
    )
    .value("X,Y,Z")
    .rare()
    .keyword("centre_mm")
    .puts(|request, given| {
        request.wanted.centre_mm = repeated(&given)?;
        Ok(())
    }),
    Row::new(
        SCAN,
        "stream",
        Kind::Flag,
        "Add views to the volume as they arrive, from a file or a named pipe; - (standard input) always does",
    )
    .remedies(&[
        (&["method of views that arrive"], "without `--stream` every method takes an array in a file"),
        (
            &["corrections of views that arrive"],
            "without `--stream` every correction takes an array in a file",
        ),
    ])
    .details(
        "Takes scans with a header and .npy arrays in C order, and `--method fbp` or `fdk`. Memory does not grow with the number of \
         views. A volume beyond the memory is reconstructed slab by slab, where the views are in a file.",
    )
    .rare()
    .needs(&[Requirement::File])
    .puts(|request, _| {
        request.stream = true;
        Ok(())
    }),
    Row::new(SCAN, "preview", Kind::Picture, "Picture of the middle slice, written again while views arrive")
        .value("PNG")
        .rare()
        .needs(&[Requirement::Stream])
        .puts(|request, given| {
            request.preview = Some(given.file()?.to_owned());
            Ok(())
        }),
    Row::new(SCAN, "view", Kind::Ranges, "Only these views, counted from 0: 0-89, or 0,4,8")
        .remedies(&[
            (
                &["view", "views", "row", "column", "angles"],
                "`--view`, `--row` and `--column` choose from what `rayspin info FILE` counts",
            ),
        ])
        .value("NUMBERS")
        .keyword("views")
        .needs(WHOLE)
        .recorded("view", |request| typed(&request.view))
        .puts(|request, given| {
            request.view = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "row", Kind::Ranges, "Only these rows of the detector, counted from 0")
        .value("NUMBERS")
        .rare()
        .keyword("rows")
        .needs(WHOLE)
        .recorded("row", |request| typed(&request.row))
        .puts(|request, given| {
            request.row = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(
        SCAN,
        "flat",
        Kind::NumberOrReal,
        "What the detector counts without the object (flat field): an image, or one number",
    )
    .remedies(&[
        (&["flat fields"], "`--flat` gives an image of the beam, or what each pixel counts of it"),
    ])
    .details(
        "With this option the projections are counts, and the run makes line integrals of them. One image, or several as \
         [frame, row, column], replace the flat fields of the scan. The scan's dark fields stay.",
    )
    .value("IMAGE|NUMBER")
    .rare()
    .keyword("flats")
    .needs(&[Requirement::File])
    .puts(|request, given| {
        request.flat = Some(field(&given)?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "dark",
        Kind::NumberOrReal,
        "What the detector counts without the beam (dark field): an image, or one number [default: the dark fields of the scan, else 0]",
    )
    .value("IMAGE|NUMBER")
    .rare()
    .keyword("darks")
    .beside("flat")
    .puts(|request, given| {
        request.dark = Some(field(&given)?);
        Ok(())
    }),
    Row::new(SCAN, "column", Kind::Ranges, "Only these columns of the detector, counted from 0")
        .value("NUMBERS")
        .rare()
        .keyword("columns")
        .needs(WHOLE)
        .recorded("column", |request| typed(&request.column))
        .puts(|request, given| {
            request.column = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(
        SCAN,
        "axis",
        Kind::NumberOr("find"),
        "Column of the axis, or find [default: the file's, find, or middle]",
    )
    .details(
        "By default the axis is where the file states it. If the file states no rays and holds counts of parallel rays, the run \
         searches the axis as with find. If the search fails, and for all other scans, the axis is on the middle column. The search \
         takes the middle row of parallel views over half a turn or more. The axis may be near the detector's edge. A column corrects \
         the axis of a file that states its rays. Columns are counted from 0 in the file, before `--column` and bins.",
    )
    .value("COLUMN")
    .puts(|request, given| {
        request.rays.axis = Some(match given.setting {
            Setting::Name(_) => AxisOn::Found,
            _ => AxisOn::Column(given.number()?),
        });
        Ok(())
    }),
    Row::new(
        SCAN,
        "arc",
        Kind::Angle,
        "Angle that the views cover evenly; negative: clockwise seen from +z",
    )
    .details("For an array, or a scan that states no angles.")
    .value("DEGREES")
    .needs(&[Requirement::NoAngles])
    .puts(|request, given| {
        request.arc = Some(given.number()?.to_radians());
        Ok(())
    }),
    Row::new(
        SCAN,
        "pixel",
        Kind::Numbers(&[1, 2]),
        "Pixel size in mm [default: as the scan or image states it, else 1]",
    )
    .remedies(&[(&["distance between pixels"], "`--pixel U[,V]` sets it")])
    .value("U[,V]")
    .keyword("pixel_mm")
    .needs(NO_RAYS)
    .puts(|request, given| {
        request.rays.pixel_mm = Some(repeated(&given)?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "source_to_axis",
        Kind::Number,
        "Distance from the source to the axis, of fan and cone beams",
    )
    .remedies(&[
        (&["distance from the source to the axis", "distance from the axis to the detector", "source of view"], "`--source-to-axis` and `--axis-to-detector` are positive lengths in mm"),
    ])
    .value("MM")
    .keyword("source_to_axis_mm")
    .needs(NO_RAYS)
    .puts(|request, given| {
        request.rays.source_to_axis_mm = Some(given.number()?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "axis_to_detector",
        Kind::Number,
        "Distance from the axis to the detector [default: 0]",
    )
    .value("MM")
    .rare()
    .keyword("axis_to_detector_mm")
    .beside("source_to_axis")
    .puts(|request, given| {
        request.rays.axis_to_detector_mm = given.number()?;
        Ok(())
    }),
    Row::new(
        SCAN,
        "rtk",
        Kind::File,
        "Rays from a geometry file of RTK (XML); the detector's middle is the origin of its images, unless the images state another \
         origin",
    )
    .value("FILE")
    .rare()
    .without(&["arc", "source_to_axis"])
    .puts(|request, given| {
        request.rtk = Some(given.file()?.to_owned());
        Ok(())
    }),
    Row::program("reference", &[]),
    Row::program("fit", &[]),
    certify(
        QUALITY,
        |request: &mut Request, given| {
            request.certify = Some(Certify { outputs: given.count()?, seed: 1 });
            Ok(())
        },
        |request: &Request| serde_json::json!(request.certify),
    )
    .needs(WHOLE),
    certify_seed(QUALITY, |request: &mut Request, given| {
        let seed = given.count()?;
        request.certify.iter_mut().for_each(|certify| certify.seed = seed);
        Ok(())
    })
    .needs(WHOLE),
    Row::program("record", &[]),
    Row::program("no_record", &[]),
    memory(|request, given| {
        request.memory = Some(given.count()?);
        Ok(())
    }),
];

/// The options of a run besides the parameters of methods and corrections, whose tables say who has them.
pub fn options() -> &'static [Row] {
    OPTIONS
}

/// As many numbers as there are axes, one number for all of them.
fn repeated<const N: usize>(given: &Named<'_>) -> Result<[f64; N]> {
    let sizes = given.numbers()?;
    let first = sizes.first().copied().unwrap_or_default();
    Ok(std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(first)))
}

/// What a detector counts.
fn field(given: &Named<'_>) -> Result<Field> {
    Ok(match given.setting {
        Setting::Real(image) => Field::Image(image.clone()),
        Setting::File(path) => Field::File(path.clone()),
        _ => Field::Number(given.number()? as f32),
    })
}
