//! How the structures of the ISMRMRD standard look in memory. HDF5 matches members by name and converts
//! widths, so these read any order, packing and width that a file has.

use hdf5::H5Type;
use hdf5::types::VarLenArray;

/// What Rayspin takes from an acquisition's `head`; members that a file lacks keep their zeros.
#[derive(H5Type, Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Head {
    pub(super) flags: u64,
    pub(super) acquisition_time_stamp: u32,
    pub(super) number_of_samples: u32,
    pub(super) active_channels: u32,
    pub(super) discard_pre: u32,
    pub(super) discard_post: u32,
    pub(super) center_sample: u32,
    pub(super) encoding_space_ref: u32,
    pub(super) trajectory_dimensions: u32,
    pub(super) sample_time_us: f32,
    pub(super) position: [f32; 3],
    pub(super) read_dir: [f32; 3],
    pub(super) phase_dir: [f32; 3],
    pub(super) slice_dir: [f32; 3],
    pub(super) idx: Index,
}

/// Members of [`Head`] that a file may lack, with what their absence means.
pub(super) const OPTIONAL_HEAD: [&str; 13] = [
    "flags",
    "acquisition_time_stamp",
    "discard_pre",
    "discard_post",
    "center_sample",
    "encoding_space_ref",
    "trajectory_dimensions",
    "sample_time_us",
    "position",
    "read_dir",
    "phase_dir",
    "slice_dir",
    "idx",
];

/// The counters in `head.idx`, wider than the standard so that none is clipped unseen.
#[derive(H5Type, Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Index {
    pub(super) kspace_encode_step_1: u32,
    pub(super) kspace_encode_step_2: u32,
    pub(super) average: u32,
    pub(super) slice: u32,
    pub(super) contrast: u32,
    pub(super) phase: u32,
    pub(super) repetition: u32,
    pub(super) set: u32,
    pub(super) segment: u32,
}

/// The `head` member alone: reading it touches none of the samples.
#[derive(H5Type, Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct HeadOnly {
    pub(super) head: Head,
}

/// A trajectory alone.
#[derive(H5Type)]
#[repr(C)]
pub(super) struct Traj {
    pub(super) traj: VarLenArray<f32>,
}

/// Samples alone: `T` is `f32` (interleaved real and imaginary parts) or one of the complex pairs.
pub(super) trait Samples: H5Type {
    /// Numbers of one readout, real and imaginary parts interleaved.
    fn interleaved(&self) -> std::borrow::Cow<'_, [f32]>;
}

/// Interleaved samples, as the standard has them.
#[derive(H5Type)]
#[repr(C)]
pub(super) struct DataReal {
    pub(super) data: VarLenArray<f32>,
}

impl Samples for DataReal {
    fn interleaved(&self) -> std::borrow::Cow<'_, [f32]> {
        self.data.as_slice().into()
    }
}

/// Defines a complex number whose members have the given names, and the samples made of it.
macro_rules! complex_samples {
    ($pair:ident, $data:ident, $re:ident, $im:ident) => {
        #[derive(H5Type, Debug, Clone, Copy)]
        #[repr(C)]
        pub(super) struct $pair {
            pub(super) $re: f32,
            pub(super) $im: f32,
        }

        #[derive(H5Type)]
        #[repr(C)]
        pub(super) struct $data {
            data: VarLenArray<$pair>,
        }

        impl Samples for $data {
            fn interleaved(&self) -> std::borrow::Cow<'_, [f32]> {
                self.data.iter().flat_map(|z| [z.$re, z.$im]).collect()
            }
        }
    };
}

complex_samples!(RealImag, DataRealImag, real, imag);
complex_samples!(ReIm, DataReIm, re, im);
complex_samples!(Ri, DataRi, r, i);

/// A whole acquisition as the reference implementation writes it (version 1; 340-byte packed head).
#[derive(H5Type)]
#[repr(C)]
pub(super) struct AcquisitionOut {
    pub(super) head: HeadOut,
    pub(super) traj: VarLenArray<f32>,
    pub(super) data: VarLenArray<f32>,
}

/// The complete acquisition header, in the standard's order.
#[derive(H5Type, Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct HeadOut {
    pub(super) version: u16,
    pub(super) flags: u64,
    pub(super) measurement_uid: u32,
    pub(super) scan_counter: u32,
    pub(super) acquisition_time_stamp: u32,
    pub(super) physiology_time_stamp: [u32; 3],
    pub(super) number_of_samples: u16,
    pub(super) available_channels: u16,
    pub(super) active_channels: u16,
    pub(super) channel_mask: [u64; 16],
    pub(super) discard_pre: u16,
    pub(super) discard_post: u16,
    pub(super) center_sample: u16,
    pub(super) encoding_space_ref: u16,
    pub(super) trajectory_dimensions: u16,
    pub(super) sample_time_us: f32,
    pub(super) position: [f32; 3],
    pub(super) read_dir: [f32; 3],
    pub(super) phase_dir: [f32; 3],
    pub(super) slice_dir: [f32; 3],
    pub(super) patient_table_position: [f32; 3],
    pub(super) idx: IndexOut,
    pub(super) user_int: [i32; 8],
    pub(super) user_float: [f32; 8],
}

/// The complete counters.
#[derive(H5Type, Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct IndexOut {
    pub(super) kspace_encode_step_1: u16,
    pub(super) kspace_encode_step_2: u16,
    pub(super) average: u16,
    pub(super) slice: u16,
    pub(super) contrast: u16,
    pub(super) phase: u16,
    pub(super) repetition: u16,
    pub(super) set: u16,
    pub(super) segment: u16,
    pub(super) user: [u16; 8],
}

/// The complete image header, in the standard's order (198 bytes packed).
#[derive(H5Type, Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ImageHeaderOut {
    pub(super) version: u16,
    pub(super) data_type: u16,
    pub(super) flags: u64,
    pub(super) measurement_uid: u32,
    pub(super) matrix_size: [u16; 3],
    pub(super) field_of_view: [f32; 3],
    pub(super) channels: u16,
    pub(super) position: [f32; 3],
    pub(super) read_dir: [f32; 3],
    pub(super) phase_dir: [f32; 3],
    pub(super) slice_dir: [f32; 3],
    pub(super) patient_table_position: [f32; 3],
    pub(super) average: u16,
    pub(super) slice: u16,
    pub(super) contrast: u16,
    pub(super) phase: u16,
    pub(super) repetition: u16,
    pub(super) set: u16,
    pub(super) acquisition_time_stamp: u32,
    pub(super) physiology_time_stamp: [u32; 3],
    pub(super) image_type: u16,
    pub(super) image_index: u16,
    pub(super) image_series_index: u16,
    pub(super) user_int: [i32; 8],
    pub(super) user_float: [f32; 8],
    pub(super) attribute_string_len: u32,
}
