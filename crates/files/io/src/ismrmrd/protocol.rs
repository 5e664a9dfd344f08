//! What a header and the heads of readouts tell of how images were acquired.

use rayspin_scan::mri::{AcquisitionHead, Encoding, ScanHeader, TrajectoryKind};

use super::write::MINUTE;
use crate::protocol::{EncodingProtocol, Protocol, Sequence, Stated};

impl EncodingProtocol {
    fn of(index: usize, encoding: &Encoding, heads: &[AcquisitionHead]) -> Self {
        let along_trajectory = heads.iter().any(|head| head.flags.is_image() && head.trajectory);
        let echo_planar = encoding.trajectory == TrajectoryKind::Epi;
        let grid = encoding.trajectory == TrajectoryKind::Cartesian && !along_trajectory;
        let thickness = encoding.recon.fov_mm[2] / encoding.recon.matrix[2].max(1) as f64;
        let own = heads.iter().filter(|head| head.flags.is_image() && head.encoding == index);
        let sets = own.map(|head| head.counters.set.saturating_add(1)).max().unwrap_or(0);
        Self {
            echo_planar,
            sets,
            lines: echo_planar || grid,
            falls: lines_fall(heads, index),
            is_3d: encoding.encoded.matrix[2] > 1,
            thickness_mm: Some(thickness).filter(|mm| mm.is_finite() && *mm > 0.0),
        }
    }
}

impl Protocol {
    /// What a header and the heads of the readouts tell.
    pub fn of(header: &ScanHeader, heads: &[AcquisitionHead]) -> Self {
        let encodings = header.encodings.iter().enumerate();
        Self {
            name: header.protocol.clone(),
            vendor: header.vendor.clone(),
            model: header.model.clone(),
            field_strength_t: header.field_strength_t,
            patient_position: header.patient_position.clone(),
            sequence: Sequence::of(header),
            stated: Stated::of(header),
            encodings: encodings
                .map(|(index, encoding)| EncodingProtocol::of(index, encoding, heads))
                .collect(),
            fingerprint: fingerprint(header, heads),
        }
    }
}

/// Headers of two scans may be alike, and the times of day of their readouts are not. None where the readouts
/// have no times of day: without identifiers they begin at 0, alike in all scans of a protocol.
fn fingerprint(header: &ScanHeader, heads: &[AcquisitionHead]) -> Option<String> {
    let stamps = heads.iter().map(|head| head.time_stamp);
    let (first, last) = (stamps.clone().filter(|&stamp| stamp > 0).min()?, stamps.max()?);
    if first <= MINUTE || first == last {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    match &header.xml {
        Some(xml) => hash.update(xml.as_bytes()),
        None => hash.update(format!("{header:?}").as_bytes()),
    };
    for head in heads {
        hash.update(&head.time_stamp.to_le_bytes());
        hash.update(format!("{:?}", head.counters).as_bytes());
    }
    Some(hash.finalize().to_hex().to_string())
}

/// Whether the lines of an image's first slice fall from readout to readout; none where there are not two.
fn lines_fall(heads: &[AcquisitionHead], encoding: usize) -> Option<bool> {
    let mut image = heads.iter().filter(|head| head.flags.is_image() && head.encoding == encoding);
    let first = image.next()?;
    let label = first.label();
    let next = image.find(|head| head.label() == label && head.counters.step_1 != first.counters.step_1)?;
    Some(next.counters.step_1 < first.counters.step_1)
}

#[cfg(test)]
mod tests {
    use rayspin_scan::mri::{Counters, Flags};

    use super::*;

    #[test]
    fn scans_without_times_of_day_have_no_fingerprint() {
        let of = |first: u32, name: &str| {
            let readout = |number: u32| AcquisitionHead {
                flags: Flags::default(),
                counters: Counters::default(),
                encoding: 0,
                time_stamp: first + 4 * number,
                trajectory: false,
                samples: 8,
                centre_sample: 4,
                bytes: 64,
            };
            let heads: Vec<_> = (0..3).map(readout).collect();
            let header = ScanHeader { xml: Some(name.to_owned()), ..ScanHeader::default() };
            fingerprint(&header, &heads)
        };
        // Two subjects, one protocol, stamps from 0 on: nothing tells them apart.
        assert_eq!((of(0, "a"), of(1, "a"), of(MINUTE, "a")), (None, None, None));
        let own = of(20_000_000, "a");
        assert!(own.is_some());
        assert_eq!(own, of(20_000_000, "a"));
        assert_ne!(own, of(20_000_004, "a"));
        assert_ne!(own, of(20_000_000, "b"));
    }
}
