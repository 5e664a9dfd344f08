use std::path::Path;

use hdf5::types::VarLenArray;
use hdf5::{Dataset, Group};
use rayspin_core::C32;
use rayspin_device::cpu::expect_addresses;
use rayspin_scan::mri::{Acquisition, Scan};

use super::header_out::{ascii, xml_of};
use super::identity::Identity;
use super::layout::{AcquisitionOut, HeadOut, IndexOut};
use crate::atomic::write_atomically;
use crate::error::{Error, Result};
use crate::hdf5_file::{create, group, string, writing};

/// Acquisitions are copied out in blocks of at most this many samples.
const BLOCK_SAMPLES: usize = 1 << 20;
const BLOCK_COUNT: usize = 256;
/// Acquisitions a chunk of the file.
const CHUNK: usize = 64;

/// Writes `scan` to the group `dataset` of a new file, in the layout of the reference implementation (ISMRMRD
/// 1.x).
///
/// The XML header is written as it was found while the fields of the header still say the same. It is made
/// from the fields otherwise. `identity` decides about the patient's name, the time of day and the like.
/// Trajectories keep their units.
/// Returns what is left out: the paths of the header's elements, and the time stamps.
///
/// Errors: a scan without encodings or acquisitions, numbers beyond the format's 16 bits, a trajectory with
/// another number of samples than its data, [`Error::Write`]. The file appears whole or not at all.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, header, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scan.h5");
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// let left_out = write(&path, &scan, Identity::LeaveOut)?;
/// assert!(left_out.is_empty());
/// assert_eq!(header(&path, None)?.encodings[0].recon.matrix, [16, 16, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: impl AsRef<Path>, scan: &Scan, identity: Identity) -> Result<Vec<String>> {
    let path = path.as_ref();
    let (xml, mut left_out) = xml_of(path, scan, identity)?;
    if scan.acquisitions.is_empty() {
        return Err(Error::field(path, "acquisitions", "at least one", "none"));
    }
    let start = match identity {
        Identity::Keep => 0,
        Identity::LeaveOut => first_stamp(scan),
    };
    if start > 0 {
        left_out.push("acquisition_time_stamp, which counts from the first readout now".into());
    }
    let heads = scan
        .acquisitions
        .iter()
        .enumerate()
        .map(|(index, acquisition)| head(path, scan, index, acquisition, start))
        .collect::<Result<Vec<_>>>()?;
    write_atomically(path, |temporary| {
        let fail = |e: hdf5::Error| writing(path, &e);
        let file = create(temporary).map_err(fail)?;
        let group = group(&file, "dataset").map_err(fail)?;
        write_xml(path, &group, &xml)?;
        let count = heads.len();
        let data = group
            .new_dataset_builder()
            .packed(true)
            .chunk(CHUNK.min(count))
            .empty::<AcquisitionOut>()
            .shape((count..,))
            .create("data")
            .map_err(fail)?;
        expect_addresses("writing readouts", || block_bytes(&scan.acquisitions))
            .map_err(|error| Error::core(path, error))?;
        write_data(&data, &heads, &scan.acquisitions).map_err(fail)?;
        drop((data, group));
        file.flush().map_err(fail)?;
        file.close().map_err(fail)
    })?;
    Ok(left_out)
}

/// Writes the header as the one-element variable-length string that every reader expects.
pub(super) fn write_xml(path: &Path, group: &Group, xml: &str) -> Result<()> {
    let text = string(path, "xml", &ascii(xml))?;
    group.new_dataset_builder().with_data(&[text]).create("xml").map_err(|e| writing(path, &e))?;
    Ok(())
}

/// Bytes that HDF5 takes at most to write a block of readouts. Where a request of its own is refused while it
/// converts arrays of variable length, HDF5 frees what it never had, and the process ends with a signal. The
/// margin holds its heaps and the file's cache.
fn block_bytes(acquisitions: &[Acquisition]) -> u64 {
    const MARGIN: usize = 8 << 20;
    let samples = acquisitions.iter().map(|acquisition| acquisition.data.len());
    let (total, largest) = (samples.clone().sum::<usize>(), samples.max().unwrap_or(0));
    let block = total.min(BLOCK_SAMPLES.max(largest)) * size_of::<C32>();
    (3 * block + MARGIN) as u64
}

fn write_data(data: &Dataset, heads: &[HeadOut], acquisitions: &[Acquisition]) -> hdf5::Result<()> {
    let mut start = 0;
    while start < heads.len() {
        let mut block = Vec::new();
        let mut samples = 0;
        for (head, acquisition) in heads[start..].iter().zip(&acquisitions[start..]).take(BLOCK_COUNT) {
            samples += acquisition.data.len();
            if !block.is_empty() && samples > BLOCK_SAMPLES {
                break;
            }
            let values = acquisition.data.as_standard_layout();
            let points = acquisition.trajectory.as_ref().map(|t| t.as_standard_layout());
            block.push(AcquisitionOut {
                head: *head,
                traj: VarLenArray::from_slice(points.as_ref().and_then(|p| p.as_slice()).unwrap_or(&[])),
                data: VarLenArray::from_slice(bytemuck::cast_slice(values.as_slice().unwrap_or(&[]))),
            });
        }
        let end = start + block.len();
        data.write_slice(&block, start..end)?;
        start = end;
    }
    Ok(())
}

/// Time stamps up to here, a minute in ticks of 2.5 ms, count from the start of a scan, and no time of day.
pub(super) const MINUTE: u32 = 24_000;

/// The earliest time stamp where stamps are times of day, else 0. A stamp of 0 stands for none.
fn first_stamp(scan: &Scan) -> u32 {
    let stamps = scan.acquisitions.iter().map(|acquisition| acquisition.time_stamp);
    stamps.filter(|&stamp| stamp > 0).min().filter(|&first| first > MINUTE).unwrap_or(0)
}

/// The head of an acquisition, with its time stamp counted from `start`.
fn head(path: &Path, scan: &Scan, index: usize, acquisition: &Acquisition, start: u32) -> Result<HeadOut> {
    let field = |what: &str, expected: &str, found: String| {
        Error::field(path, format!("acquisition {index}: {what}"), expected, found)
    };
    let short = |what: &str, value: usize| {
        u16::try_from(value).map_err(|_| field(what, "at most 65535", value.to_string()))
    };
    let (coils, samples) = acquisition.data.dim();
    let dims = match &acquisition.trajectory {
        None => 0,
        Some(points) => {
            let (rows, dims) = points.dim();
            if rows != samples || !(1..=3).contains(&dims) {
                let expected = format!("[{samples}, 1 to 3]");
                return Err(field("trajectory", &expected, format!("[{rows}, {dims}]")));
            }
            dims
        }
    };
    if acquisition.encoding >= scan.header.encodings.len() {
        let expected = format!("below {}", scan.header.encodings.len());
        return Err(field("encoding", &expected, acquisition.encoding.to_string()));
    }
    let counters = &acquisition.counters;
    let channels = short("coils", coils)?;
    let mut channel_mask = [0u64; 16];
    for coil in 0..coils.min(1024) {
        channel_mask[coil / 64] |= 1 << (coil % 64);
    }
    Ok(HeadOut {
        version: 1,
        flags: acquisition.flags.0,
        scan_counter: u32::try_from(index).unwrap_or(u32::MAX),
        acquisition_time_stamp: acquisition.time_stamp.saturating_sub(start),
        number_of_samples: short("samples", samples)?,
        available_channels: channels,
        active_channels: channels,
        channel_mask,
        discard_pre: short("discard_pre", acquisition.discard_pre)?,
        discard_post: short("discard_post", acquisition.discard_post)?,
        center_sample: short("centre sample", acquisition.centre_sample)?,
        encoding_space_ref: short("encoding", acquisition.encoding)?,
        trajectory_dimensions: short("trajectory dimensions", dims)?,
        sample_time_us: acquisition.sample_time_us,
        position: acquisition.position,
        read_dir: acquisition.read_dir,
        phase_dir: acquisition.phase_dir,
        slice_dir: acquisition.slice_dir,
        idx: IndexOut {
            kspace_encode_step_1: counters.step_1,
            kspace_encode_step_2: counters.step_2,
            average: counters.average,
            slice: counters.slice,
            contrast: counters.contrast,
            phase: counters.phase,
            repetition: counters.repetition,
            set: counters.set,
            segment: counters.segment,
            user: [0; 8],
        },
        ..HeadOut::default()
    })
}
