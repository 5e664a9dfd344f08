//! The table of file formats: one row each.

use crate::format::{Format, ImageWriter, Kept, Names, Scans};
use crate::{Values, arrays::Arrays, cfl, ismrmrd, nifti, npy, png, twix};

/// What a buffered stream holds.
const BUFFER: u64 = 1 << 20;

/// Every file format that Rayspin knows.
///
/// A format is added with a module and a row here. Detection, `read_image`, `read_scan`, `write_image`, `SeriesWriter`, and the
/// programs' help texts, checks and messages follow the row.
pub static FORMATS: [Format; 7] = [
    Format {
        name: "NIfTI",
        about: "NIfTI-1, 2 to 4 axes; reads integers of 8 to 64 bits, floats and complex numbers in either byte order, scaled; writes float32 \
                and complex64, `sform` and `qform`",
        endings: &[".nii", ".nii.gz"],
        other_endings: &[],
        keeps: &[Kept::Phase, Kept::Geometry, Kept::Repetitions, Kept::RepetitionTime],
        // NIfTI-1 by its magic, NIfTI-2 by the size of its header too.
        magic: &[
            (344, b"n+1\0"),
            (344, b"ni1\0"),
            (0, b"\x1c\x02\0\0n+2\0"),
            (0, b"\0\0\x02\x1cn+2\0"),
            (0, b"\x1c\x02\0\0ni2\0"),
            (0, b"\0\0\x02\x1cni2\0"),
        ],
        gzip: true,
        guess: None,
        parts: None,
        names: None,
        describe: None,
        read_image: Some(nifti::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Complex],
            create: nifti::create,
            memory: |_, _| BUFFER,
        }),
        arrays: None,
        scans: None,
    },
    Format {
        name: "BART array",
        about: "complex64 in 16 dimensions, and a `.hdr` file that states their sizes",
        endings: &[".cfl"],
        other_endings: &[".hdr"],
        keeps: &[Kept::Phase, Kept::Repetitions],
        magic: &[(0, b"# Dimensions")],
        gzip: false,
        // The numbers come without a signature.
        guess: Some(|ending, _| ending == ".cfl"),
        parts: Some(cfl::row::parts),
        names: None,
        describe: Some(cfl::row::header),
        read_image: Some(cfl::row::image),
        images: Some(ImageWriter {
            values: &[Values::Complex, Values::Magnitude, Values::Real],
            create: cfl::row::create,
            memory: |_, _| BUFFER,
        }),
        arrays: Some(Arrays {
            read: cfl::row::read,
            grid: cfl::row::grid,
            samples: cfl::row::samples,
            points: cfl::row::points,
            cycles_per_fov: Some("BART"),
            write: Some(cfl::row::write_coils),
            // As they are read, as they are sorted, and as they are taken over.
            copies: [3, 3],
        }),
        scans: None,
    },
    Format {
        name: "NumPy array",
        about: "reads booleans, integers, floats of 16 to 64 bits and complex numbers, in C or Fortran order and either byte order; writes \
                C order",
        endings: &[".npy"],
        other_endings: &[],
        keeps: &[Kept::Phase, Kept::Repetitions],
        magic: &[(0, npy::MAGIC)],
        gzip: false,
        guess: None,
        parts: None,
        names: None,
        describe: Some(npy::row::header),
        read_image: Some(npy::row::image),
        images: Some(ImageWriter {
            values: &[Values::Complex, Values::Magnitude, Values::Real],
            create: npy::row::create,
            memory: |_, _| BUFFER,
        }),
        arrays: Some(Arrays {
            read: npy::row::read,
            grid: npy::row::grid,
            samples: npy::row::samples,
            points: npy::row::points,
            cycles_per_fov: None,
            write: Some(npy::row::write_coils),
            // A grid is taken over as it is read; samples are copied.
            copies: [1, 2],
        }),
        scans: None,
    },
    Format {
        name: "NumPy archive",
        about: "named arrays as in `.npy`, stored or deflated",
        endings: &[".npz"],
        other_endings: &[],
        keeps: &[Kept::Phase, Kept::Repetitions],
        magic: &[(0, b"PK\x03\x04"), (0, b"PK\x05\x06")],
        gzip: false,
        guess: None,
        parts: None,
        names: Some(Names { what: "array", list: npy::row::names }),
        describe: None,
        read_image: Some(npy::row::image_of_archive),
        images: None,
        arrays: Some(Arrays {
            read: npy::row::read_archive,
            grid: npy::row::grid,
            samples: npy::row::samples,
            points: npy::row::points_of_archive,
            cycles_per_fov: None,
            write: None,
            copies: [2, 2],
        }),
        scans: None,
    },
    Format {
        name: "PNG picture",
        about: "8-bit grey or RGB, to look at",
        endings: &[".png"],
        other_endings: &[],
        keeps: &[],
        magic: &[(0, b"\x89PNG\r\n\x1a\n")],
        gzip: false,
        guess: None,
        parts: None,
        names: None,
        describe: None,
        read_image: None,
        images: Some(ImageWriter { values: &[], create: png::create, memory: png::memory }),
        arrays: None,
        scans: None,
    },
    Format {
        name: "HDF5 (ISMRMRD)",
        about: "MRD 1.x; images of one channel",
        endings: &[".h5"],
        other_endings: &[".mrd"],
        keeps: &[Kept::Phase, Kept::Geometry, Kept::Repetitions],
        // A user block moves the signature to a later power of two.
        magic: &[(0, b"\x89HDF\r\n\x1a\n"), (512, b"\x89HDF\r\n\x1a\n")],
        gzip: false,
        guess: None,
        parts: None,
        names: Some(Names { what: "image series", list: ismrmrd::row::names }),
        describe: None,
        read_image: Some(ismrmrd::row::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Complex],
            create: ismrmrd::row::create,
            // HDF5's cache.
            memory: |_, volume| volume,
        }),
        arrays: None,
        scans: Some(Scans {
            holds: ismrmrd::row::holds,
            read: ismrmrd::row::read,
            write: Some(ismrmrd::row::write),
        }),
    },
    Format {
        name: "Siemens raw data",
        about: "twix of VB, VD and VE: recognised, not read",
        endings: &[".dat"],
        other_endings: &[],
        keeps: &[],
        magic: &[],
        gzip: false,
        guess: Some(|_, start| twix::begins(start)),
        parts: None,
        names: None,
        describe: None,
        read_image: None,
        images: None,
        arrays: None,
        scans: None,
    },
];
