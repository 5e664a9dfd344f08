//! Small files of HDF5 arrays, made by `tests/interop/arrays.py`: an image in chunks that are compressed, and
//! k-space in a group.

use crate::format::Sample;

pub(crate) fn samples() -> Vec<Sample> {
    vec![
        vec![("a.hdf5", include_bytes!("samples/image.hdf5").to_vec())],
        vec![("b.hdf5", include_bytes!("samples/kspace.hdf5").to_vec())],
    ]
}
