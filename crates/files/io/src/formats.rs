//! The table of file formats: one row each.

use crate::element::Element;
use crate::format::{Format, ImageWriter, Inside, Property, Scans};
use crate::{
    Values, array_hdf5,
    arrays::{Arrays, Reading},
    bart, bruker, cfl, data_exchange, dicom, fastmri, ge, hdf5_file, ismrmrd, matlab, meta_image, nifti, npy,
    nrrd, nxtomo, png, raw_image, tiff, twix, txrm,
};

/// HDF5 files that no other row tells.
const HDF5: &str = "HDF5 (ISMRMRD)";

/// What a buffered stream holds.
const BUFFER: u64 = 1 << 20;

/// Integers of every width, the narrowest first. A signed byte is stored where it was read alone: few
/// programs expect one.
const INTEGERS: &[Element] = &[
    Element::U8,
    Element::I16,
    Element::U16,
    Element::I32,
    Element::U32,
    Element::I64,
    Element::U64,
    Element::I8,
];

/// A format that is neither read nor written.
const BLANK: Format = Format {
    name: "",
    about: "",
    endings: &[],
    other_endings: &[],
    keeps: &[],
    magic: &[],
    preamble: false,
    gzip: false,
    seek: None,
    inside: None,
    guess: None,
    place: None,
    parts: None,
    linked: None,
    folder: None,
    names: None,
    takes_last: false,
    described: false,
    describe: None,
    read_image: None,
    images: None,
    arrays: None,
    scans: None,
    holds_projections: None,
    projections: None,
    samples: Vec::new,
};

/// Every file format that Rayspin knows.
///
/// A format is added with a module and a row here. Detection, `read_image`, `read_scan`, `write_image`,
/// `SeriesWriter`, the programs' help texts, checks and messages, the lists of the documents, the tests of
/// all formats and the fuzzer follow the row.
pub static FORMATS: [Format; 18] = [
    Format {
        name: "NIfTI",
        about: "NIfTI-1, 2 to 4 axes; reads integers of 8 to 64 bits, floats and complex numbers in either byte \
                order, scaled; writes float32, complex64 and integers that were read as such; `sform` and `qform`",
        endings: &[".nii", ".nii.gz"],
        keeps: &[Property::Phase, Property::Geometry, Property::Repetitions, Property::RepetitionTime],
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
        read_image: Some(nifti::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase, Values::Complex],
            integers: INTEGERS,
            scaled: true,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: nifti::create,
            memory: |_, _| BUFFER,
        }),
        ..BLANK
    },
    Format {
        name: "BART array",
        about: "complex64 in 16 dimensions, and a `.hdr` file that states their sizes",
        endings: &[".cfl"],
        other_endings: &[".hdr"],
        keeps: &[Property::Phase, Property::Repetitions],
        magic: &[(0, b"# Dimensions")],
        // The numbers come without a signature.
        guess: Some(|ending, _| ending == ".cfl"),
        parts: Some(bart::parts),
        describe: Some(bart::header),
        read_image: Some(bart::image),
        images: Some(ImageWriter {
            values: &[Values::Complex, Values::Magnitude, Values::Real, Values::Phase],
            integers: &[],
            scaled: false,
            by_slices: false,
            states_origin: false,
            replaces: None,
            create: bart::create,
            // Real numbers are made complex volume by volume.
            memory: |_, volume| BUFFER + volume,
        }),
        arrays: Some(Arrays {
            read: bart::read,
            axes: Reading {
                grid: bart::grid,
                samples: bart::samples,
                // As they are read, as they are sorted, and as they are taken over.
                copies: [3, 3],
            },
            drops_ones: false,
            points: bart::points,
            maps: bart::maps,
            images: Some(cfl::images::Images::of),
            cycles_per_fov: Some("BART"),
            write: Some(bart::write_coils),
            bytes: None,
        }),
        ..BLANK
    },
    Format {
        name: "NumPy array",
        about: "reads booleans, integers, floats of 16 to 64 bits and complex numbers, in C or Fortran order and \
                either byte order; writes C order",
        endings: &[".npy"],
        keeps: &[Property::Phase, Property::Repetitions],
        magic: &[(0, npy::MAGIC)],
        describe: Some(npy::row::header),
        read_image: Some(npy::row::image),
        images: Some(ImageWriter {
            values: &[Values::Complex, Values::Magnitude, Values::Real, Values::Phase],
            integers: INTEGERS,
            scaled: false,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: npy::row::create,
            memory: |_, _| BUFFER,
        }),
        arrays: Some(Arrays {
            read: npy::row::read,
            axes: Reading {
                grid: npy::row::grid,
                samples: npy::row::samples,
                // A grid is taken over as it is read; samples are copied.
                copies: [1, 2],
            },
            drops_ones: false,
            points: npy::row::points,
            maps: npy::row::maps,
            images: None,
            cycles_per_fov: None,
            write: Some(npy::row::write_coils),
            bytes: None,
        }),
        ..BLANK
    },
    Format {
        name: "NumPy archive",
        about: "named arrays as in `.npy`, stored or deflated",
        endings: &[".npz"],
        keeps: &[Property::Phase, Property::Repetitions],
        magic: &[(0, b"PK\x03\x04"), (0, b"PK\x05\x06")],
        names: Some(npy::row::names),
        read_image: Some(npy::row::image_of_archive),
        samples: npy::row::samples_of_archive,
        arrays: Some(Arrays {
            read: npy::row::read_archive,
            axes: Reading { grid: npy::row::grid, samples: npy::row::samples, copies: [2, 2] },
            drops_ones: false,
            points: npy::row::points_of_archive,
            maps: npy::row::maps,
            images: None,
            cycles_per_fov: None,
            write: None,
            bytes: None,
        }),
        ..BLANK
    },
    Format {
        name: "MATLAB file",
        about: "versions 5 to 7 in either byte order, compressed or not, and 7.3 (HDF5): named arrays of numbers, also in structs",
        endings: &[".mat"],
        keeps: &[Property::Phase, Property::Repetitions],
        magic: matlab::MAGIC,
        // Version 4, which is refused by its name.
        inside: Some(Inside { of: HDF5, holds: matlab::row::holds }),
        guess: Some(|ending, start| ending == ".mat" && matlab::is_version_4(start)),
        names: Some(matlab::row::names),
        describe: Some(matlab::row::describe),
        read_image: Some(matlab::row::image),
        samples: matlab::samples,
        arrays: Some(Arrays {
            read: matlab::row::read,
            axes: Reading {
                grid: matlab::row::grid,
                samples: matlab::row::samples,
                // Parts of complex numbers are apart in the file, and axes are reversed.
                copies: [3, 3],
            },
            drops_ones: true,
            points: matlab::row::points,
            maps: matlab::row::maps,
            images: None,
            cycles_per_fov: None,
            write: None,
            bytes: Some(matlab::row::bytes),
        }),
        ..BLANK
    },
    Format {
        name: "TIFF stack",
        about: "a page a slice, or a folder of numbered files, grey: reads integers and floats of 8 to 64 bits in \
                either byte order, compressed without loss, BigTIFF, and ImageJ's stacks; writes float32, and integers that were read as such",
        endings: &[".tif", ".tiff"],
        magic: &[(0, b"II*\0"), (0, b"MM\0*"), (0, b"II+\0"), (0, b"MM\0+")],
        folder: Some(tiff::FOLDERS),
        read_image: Some(tiff::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase],
            integers: INTEGERS,
            scaled: false,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: tiff::create,
            memory: |_, _| BUFFER,
        }),
        ..BLANK
    },
    Format {
        name: "MetaImage",
        about: "ITK's and RTK's; reads numbers of 8 to 64 bits in either byte order or as text, compressed or not, \
                behind the header or in files of their own; writes float32, and integers that were read as such",
        endings: &[".mha"],
        other_endings: &[".mhd"],
        keeps: &[Property::Geometry],
        magic: &[(0, b"ObjectType = Image"), (0, b"NDims = ")],
        guess: Some(|_, start| meta_image::begins(start)),
        parts: Some(meta_image::parts),
        read_image: Some(meta_image::image),
        samples: meta_image::samples,
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase],
            integers: INTEGERS,
            scaled: false,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: meta_image::create,
            memory: |_, _| BUFFER,
        }),
        ..BLANK
    },
    Format {
        name: "NRRD",
        about: "Teem's, ITK's and 3D Slicer's; reads numbers of 8 to 64 bits in either byte order, raw, by gzip, as text or as \
                hexadecimal digits, behind the header or in files of their own, real or complex, repetitions along any axis; \
                writes float32, complex64 and integers that were read as such, by gzip",
        endings: &[".nrrd"],
        other_endings: &[".nhdr"],
        keeps: &[Property::Phase, Property::Geometry, Property::Repetitions, Property::RepetitionTime],
        magic: &[(0, b"NRRD000")],
        parts: Some(nrrd::parts),
        read_image: Some(nrrd::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase, Values::Complex],
            integers: INTEGERS,
            scaled: false,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: nrrd::create,
            memory: |_, _| BUFFER,
        }),
        samples: nrrd::samples,
        ..BLANK
    },
    Format {
        name: "raw numbers",
        about: "numbers without a header, described behind a colon: volume.raw:512x512x300,uint16",
        endings: &[".raw"],
        other_endings: &[".bin"],
        guess: Some(|_, _| true),
        described: true,
        describe: Some(raw_image::describe),
        read_image: Some(raw_image::image),
        ..BLANK
    },
    Format {
        name: "PNG picture",
        about: "8-bit grey or RGB, to look at",
        endings: &[".png"],
        magic: &[(0, b"\x89PNG\r\n\x1a\n")],
        images: Some(ImageWriter {
            values: &[],
            integers: &[],
            scaled: false,
            by_slices: false,
            states_origin: false,
            replaces: None,
            create: png::create,
            memory: png::memory,
        }),
        ..BLANK
    },
    Format {
        name: HDF5,
        about: "MRD 1.x; images of one channel",
        endings: &[".h5"],
        other_endings: &[".mrd"],
        keeps: &[Property::Phase, Property::Geometry, Property::Repetitions],
        magic: &[(0, hdf5_file::SIGNATURE)],
        // A user block moves the signature to a power of two.
        seek: Some(|file| Ok(hdf5_file::start(file)?.is_some())),
        linked: Some(hdf5_file::linked),
        names: Some(ismrmrd::row::names),
        read_image: Some(ismrmrd::row::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase, Values::Complex],
            integers: &[Element::I16, Element::U16, Element::I32, Element::U32],
            scaled: false,
            by_slices: true,
            states_origin: false,
            replaces: None,
            create: ismrmrd::row::create,
            // What HDF5 may hold back.
            memory: |_, volume| volume,
        }),
        scans: Some(Scans {
            holds: ismrmrd::row::holds,
            open: ismrmrd::row::open_reader,
            write: Some(ismrmrd::row::write),
        }),
        holds_projections: Some(|path| Ok(data_exchange::is_data_exchange(path)? || nxtomo::holds(path)?)),
        projections: Some(|path, name| match nxtomo::holds(path)? {
            true => nxtomo::projections(path, name),
            false => data_exchange::projections(path, name),
        }),
        ..BLANK
    },
    Format {
        name: "HDF5 (fastMRI)",
        about: "k-space of several coils or one, with its mask, header and padding (the first dimension of an image is the readout); \
                the images of its authors, `file.h5:reconstruction_rss`",
        inside: Some(Inside { of: HDF5, holds: fastmri::holds_kspace }),
        linked: Some(hdf5_file::linked),
        names: Some(fastmri::names),
        takes_last: true,
        describe: Some(fastmri::describe),
        read_image: Some(fastmri::image),
        scans: Some(Scans { holds: fastmri::holds, open: fastmri::open, write: None }),
        samples: fastmri::samples,
        ..BLANK
    },
    Format {
        name: "HDF5 (arrays)",
        about: "data sets by their paths, of real or complex numbers (`r`, `i`, `real`, `imag`), as h5py and others write them",
        endings: &[".hdf5"],
        keeps: &[Property::Phase, Property::Repetitions],
        inside: Some(Inside { of: HDF5, holds: array_hdf5::holds }),
        linked: Some(hdf5_file::linked),
        names: Some(array_hdf5::names),
        describe: Some(array_hdf5::describe),
        read_image: Some(array_hdf5::image),
        samples: array_hdf5::samples,
        arrays: Some(Arrays {
            read: array_hdf5::read,
            // HDF5 converts a copy.
            axes: Reading { grid: npy::row::grid, samples: npy::row::samples, copies: [3, 4] },
            drops_ones: false,
            points: array_hdf5::points,
            maps: npy::row::maps,
            images: None,
            cycles_per_fov: None,
            write: None,
            bytes: Some(array_hdf5::bytes),
        }),
        ..BLANK
    },
    Format {
        name: "Zeiss txrm",
        about: "projections of Zeiss X-ray microscopes (OLE)",
        endings: &[".txrm"],
        other_endings: &[".xrm"],
        magic: &[(0, txrm::MAGIC)],
        holds_projections: Some(txrm::holds),
        projections: Some(txrm::projections),
        samples: txrm::samples,
        ..BLANK
    },
    Format {
        name: "DICOM",
        about: "reads a file or a folder: one series of slices or frames, sorted by place, rescaled (HU), also compressed \
                (RLE, JPEG, JPEG 2000); writes a folder of slices of 16 bits (MR, CT)",
        endings: &[".dicom"],
        keeps: &[Property::Geometry, Property::Unit],
        magic: &[(128, dicom::MAGIC)],
        // PS3.10 7.1: it may be the header of a TIFF file.
        preamble: true,
        folder: Some(dicom::FOLDERS),
        names: Some(dicom::names),
        describe: Some(dicom::describe),
        read_image: Some(dicom::image),
        images: Some(ImageWriter {
            values: &[Values::Magnitude, Values::Real, Values::Phase],
            integers: &[Element::I16],
            scaled: true,
            by_slices: true,
            states_origin: true,
            replaces: Some(dicom::expect_own_folder),
            create: dicom::create,
            memory: |_, _| BUFFER,
        }),
        ..BLANK
    },
    Format {
        name: "Siemens raw data",
        about: "twix of VB17 to VB19, VD, VE and XA; several measurements in a file, the last one by default",
        endings: &[".dat"],
        guess: Some(|_, start| twix::begins(start)),
        names: Some(twix::names),
        takes_last: true,
        describe: Some(twix::describe),
        scans: Some(Scans { holds: |_, _| Ok(true), open: twix::open, write: None }),
        samples: twix::samples,
        ..BLANK
    },
    Format {
        name: "Bruker ParaVision",
        about: "the folder of a scan, or its `fid` or `rawdata.job0`: versions 5.1 to 360; grids, echo-planar imaging, and UTE with `traj`",
        endings: &[".job0"],
        place: Some(bruker::is_scan),
        parts: Some(bruker::parts),
        describe: Some(bruker::describe),
        scans: Some(Scans { holds: |_, _| Ok(true), open: bruker::open, write: None }),
        samples: bruker::samples,
        ..BLANK
    },
    Format {
        name: "GE P-file",
        about: "header revision 9, of one pass; other revisions are refused by their numbers",
        endings: &[".7"],
        magic: ge::MAGIC,
        guess: Some(|_, start| ge::begins(start)),
        describe: Some(ge::describe),
        scans: Some(Scans { holds: |_, _| Ok(true), open: ge::open, write: None }),
        samples: ge::samples,
        ..BLANK
    },
];
