#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::Monitor;
use rayspin_scan::mri::{Flags, RampShape, Scan, TrajectoryKind};

use super::samples::{self, Part, Readout, file, measurement, parts, sample, vb_first};
use crate::ismrmrd::{Identity, echo_times, summarise};
use crate::{Detail, ScanFile, ScanOptions, describe, names, open_scan, read_scan, write_scan};

fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn read(path: &Path) -> crate::Result<Scan> {
    match read_scan(path, &ScanOptions::default(), &Monitor::silent())? {
        ScanFile::Scan(scan) => Ok(*scan),
        _ => panic!("expected a scan with a header"),
    }
}

fn refused(path: &Path) -> String {
    let error = read(path).unwrap_err();
    assert!(matches!(error.kind(), rayspin_core::ErrorKind::Input), "{error}");
    error.to_string()
}

/// A measurement of these parts, in a file of its own of VB or of VD.
fn made(parts: &[Part], more: &str, later: bool) -> Vec<u8> {
    let texts = samples::texts(more);
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bytes = measurement(&texts, parts, later);
    if later { file(&[("small", bytes)], |length| length as u64) } else { vb_first(&bytes) }
}

#[test]
fn both_generations_give_the_same_scan() {
    let folder = tempfile::tempdir().unwrap();
    let scans =
        [false, true].map(|later| read(&put(folder.path(), "a.dat", &made(&parts(), "", later))).unwrap());
    for (scan, vb) in scans.iter().zip([true, false]) {
        assert_eq!(scan.acquisitions.len(), 10);
        for (number, readout) in scan.acquisitions.iter().enumerate() {
            assert_eq!(readout.data.dim(), (2, 8));
            for ((coil, place), value) in readout.data.indexed_iter() {
                assert_eq!([value.re, value.im], sample(number, coil, place));
            }
        }
        let [noise, reference, line] = [0, 2, 5].map(|number| &scan.acquisitions[number]);
        assert_eq!(noise.flags, Flags::NOISE);
        assert_eq!(noise.sample_time_us, if vb { (1e6 / 8.0 / 130.0) as f32 } else { 960.0 });
        assert!(
            reference.flags.contains(Flags::PHASE_CORRECTION) && reference.flags.contains(Flags::REVERSE)
        );
        assert!(!reference.flags.is_image() && !reference.flags.contains(Flags::NAVIGATION));
        assert!(line.flags.is_image() && line.flags.contains(Flags::REVERSE));
        assert_eq!((line.counters.step_1, line.centre_sample, line.time_stamp), (1, 4, 1001));
        assert_eq!((line.sample_time_us, line.position), (3.1, [1.0, -2.0, 3.5]));
        let near = |a: [f32; 3], b: [f32; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near(line.read_dir, [1.0, 0.0, 0.0]) && near(line.phase_dir, [0.0, -1.0, 0.0]));
        assert!(near(line.slice_dir, [0.0, 0.0, -1.0]));
        // A head without a quaternion: as the protocol has it.
        assert_eq!(noise.position, [0.0, 12.5, 0.0]);
        assert!(near(noise.read_dir, [1.0, 0.0, 0.0]));
        assert_eq!(scan.notes, ["physiology (1 block) is passed over"]);
    }
    let [vb, ve] = scans;
    let header = &ve.header;
    assert_eq!(vb.header.encodings, header.encodings);
    let encoding = &header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.recon.matrix), ([8, 6, 1], [4, 3, 1]));
    assert_eq!((encoding.encoded.fov_mm, encoding.recon.fov_mm), ([400.0, 150.0, 5.0], [200.0, 150.0, 5.0]));
    assert_eq!(encoding.trajectory, TrajectoryKind::Epi);
    assert_eq!(
        encoding.step_1.map(|limits| (limits.minimum, limits.maximum, limits.centre)),
        Some((0, 5, 3))
    );
    let ramps = encoding.ramps.unwrap();
    assert_eq!((ramps.shape, ramps.samples, ramps.sampling_us), (RampShape::Trapezoid, 8, 24.0));
    assert_eq!((ramps.up_us, ramps.flat_us, ramps.down_us, ramps.delay_us), (4.0, 20.0, 4.0, 2.0));
    assert_eq!(header.field_strength_t, Some(2.89362));
    assert_eq!(
        (header.protocol.as_deref(), header.patient_position.as_deref()),
        (Some("small"), Some("HFS"))
    );
    assert_eq!((header.vendor.as_deref(), header.coils), (Some("SIEMENS"), Some(2)));
    assert_eq!(echo_times(header), [0.027]);
    assert_eq!(summarise(&ve).identity, ["patientName"]);
}

#[test]
fn the_bits_of_a_head_become_flags() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (1 << 1, Flags::RT_FEEDBACK.with(Flags::NAVIGATION), false),
        (1 << 2, Flags::HP_FEEDBACK, false),
        (1 << 10, Flags::default(), true),
        (1 << 11, Flags::LAST_IN_MEASUREMENT, true),
        (1 << 14, Flags::PHASE_STABILISATION_REFERENCE, false),
        (1 << 15, Flags::PHASE_STABILISATION, false),
        (1 << 22, Flags::CALIBRATION, false),
        (1 << 22 | 1 << 23, Flags::CALIBRATION_AND_IMAGING, true),
        (1 << 24, Flags::REVERSE, true),
        (1 << 28 | 1 << 29, Flags::FIRST_IN_SLICE.with(Flags::LAST_IN_SLICE), true),
        (1 << 35, Flags::SURFACE_COIL_CORRECTION, false),
        (1 << 38, Flags::CALIBRATION, false),
        (1 << 38 | 1 << 22 | 1 << 23, Flags::CALIBRATION, false),
        (1 << 39, Flags::PHASE_CORRECTION, false),
        (1 << 51, Flags::DUMMY, false),
        (1 << 55, Flags::EVENLY_SAMPLED, true),
    ];
    let mut made_of: Vec<Part> = cases
        .iter()
        .map(|(mask, ..)| Part::Readout(Readout { mask: *mask, samples: 8, coils: 2, ..Readout::default() }))
        .collect();
    made_of.push(Part::End);
    let scan =
        read(&put(folder.path(), "a.dat", &made(&made_of, "sSliceAcceleration.lMultiBandFactor = 3", true)))
            .unwrap();
    for ((mask, flags, image), readout) in cases.iter().zip(&scan.acquisitions) {
        assert_eq!((readout.flags, readout.flags.is_image()), (*flags, *image), "{mask:x}");
    }
    for said in ["raw-data correction", "3 slices were excited together"] {
        assert!(scan.notes.iter().any(|note| note.contains(said)), "{:?}", scan.notes);
    }
}

#[test]
fn the_last_of_several_measurements_is_read_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let texts = samples::texts("");
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let noise = Readout { mask: 1 << 25, samples: 16, coils: 2, ..Readout::default() };
    let first = measurement(&texts, &[Part::Readout(noise), Part::End], true);
    let second = measurement(&texts, &parts(), true);
    let both = [("AdjCoilSens", first), ("small", second)];
    // Lengths of 0 reach to the next measurement.
    for stated in [|length: usize| length as u64, |_| 0] {
        let path = put(folder.path(), "a.dat", &file(&both, stated));
        let held: Vec<String> = names(&path).unwrap().into_iter().map(|held| held.name).collect();
        assert_eq!(held, ["1", "2"]);
        let named = |name: &str| PathBuf::from(format!("{}:{name}", path.display()));
        let last = read(&path).unwrap();
        assert!(last.notes.iter().any(|note| note.contains("2 measurements")), "{:?}", last.notes);
        assert_eq!((last.acquisitions.len(), read(&named("2")).unwrap().acquisitions.len()), (10, 10));
        assert_eq!(read(&named("1")).unwrap().acquisitions.len(), 1);
        for wrong in ["0", "3", "last"] {
            assert!(refused(&named(wrong)).contains("expected a number from 1 to 2"));
        }
        let rows = describe(&path).unwrap();
        assert!(
            rows.contains(&("software".into(), Detail::Text("syngo MR E11, layout of VD and later".into())))
        );
        assert!(
            rows.iter()
                .any(|(label, text)| label == "measurement 1" && text.to_string().starts_with("AdjCoil"))
        );
    }
}

#[test]
fn heads_alone_tell_what_a_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = put(folder.path(), "a.dat", &made(&parts(), "", true));
    let mut reader = open_scan(&path, &Monitor::silent()).unwrap();
    let (scan, heads) = (read(&path).unwrap(), reader.without_samples().unwrap());
    for (own, head) in scan.acquisitions.iter().zip(&heads.acquisitions) {
        let blank = rayspin_scan::mri::Acquisition { data: head.data.clone(), ..own.clone() };
        assert_eq!((blank, own.data.dim()), (head.clone(), head.data.dim()));
    }
    let mut some = Vec::new();
    let monitor = Monitor::silent();
    reader
        .read(&mut [1, 4, 9].into_iter(), &monitor, &mut |number, readout| some.push((number, readout)))
        .unwrap();
    assert_eq!(some.len(), 3);
    assert!(some.iter().all(|(number, readout)| scan.acquisitions[*number] == *readout));
    let label = scan.frames().unwrap().labels().next().unwrap();
    assert!(reader.contents().images.contains_key(&label));
    assert_eq!(reader.into_scan(&monitor).unwrap().acquisitions, scan.acquisitions);
}

#[test]
fn heads_that_cannot_be_right_are_said_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let with = |change: &dyn Fn(&mut Readout)| {
        let mut parts = parts();
        for part in parts
            .iter_mut()
            .filter(|part| matches!(part, Part::Readout(readout) if readout.mask >> 3 & 1 == 1))
        {
            let Part::Readout(readout) = part else { continue };
            change(readout);
        }
        put(folder.path(), "a.dat", &made(&parts, "", true))
    };
    // More samples are discarded than there are.
    let scan = read(&with(&|readout| readout.cut = [8, 0])).unwrap();
    let frames = scan.frames().unwrap();
    let label = frames.labels().next().unwrap();
    let error = frames.assemble(label, &Default::default(), &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("discard_pre and discard_post"), "{error}");
    // A broken quaternion leaves the position, and a broken position the directions.
    let scan = read(&with(&|readout| readout.quaternion = [2.0; 4])).unwrap();
    assert_eq!(scan.acquisitions[5].position, [1.0, -2.0, 3.5]);
    assert!(
        scan.notes.iter().any(|note| note.contains("6 readouts state no directions")),
        "{:?}",
        scan.notes
    );
    let scan = read(&with(&|readout| readout.position[1] = f32::NAN)).unwrap();
    assert_eq!(scan.acquisitions[5].position, [0.0, 12.5, 0.0]);
    assert!(scan.notes.iter().any(|note| note.contains("6 readouts state no position")), "{:?}", scan.notes);
    // Physiology alone is no scan.
    let alone = made(&[Part::Physiology(64), Part::End], "", true);
    assert!(refused(&put(folder.path(), "a.dat", &alone)).contains("at least one"));
}

/// Marks without an end are looked at in a stretch alone: a header of megabytes is read at once.
#[test]
fn marks_without_an_end_cost_no_more_than_others() {
    let folder = tempfile::tempdir().unwrap();
    let marks = "<ParamLong.\"iNoOfFourierColumns\">{<a>{".repeat(1 << 16);
    let texts = samples::texts("");
    let texts: Vec<(&str, String)> = texts
        .into_iter()
        .map(|(name, text)| (name, if name == "Meas" { marks.clone() } else { text }))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bytes = file(&[("small", measurement(&texts, &parts(), true))], |length| length as u64);
    assert_eq!(read(&put(folder.path(), "a.dat", &bytes)).unwrap().acquisitions.len(), 10);
}

#[test]
fn a_converted_file_holds_the_same_without_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = put(folder.path(), "a.dat", &made(&parts(), "", false));
    let (scan, copy) = (read(&path).unwrap(), folder.path().join("a.h5"));
    for (identity, left_out) in [(Identity::Keep, 0), (Identity::LeaveOut, 1)] {
        assert_eq!(write_scan(&copy, &scan, identity).unwrap().len(), left_out);
        let again = read(&copy).unwrap();
        assert_eq!(again.acquisitions, scan.acquisitions);
        assert_eq!(again.header.encodings, scan.header.encodings);
        assert_eq!(again.header.xml.unwrap().contains("DOE"), identity == Identity::Keep);
        std::fs::remove_file(&copy).unwrap();
    }
    // What is made of fields alone has the ramps, too.
    let mut plain = scan.clone();
    plain.header.xml = None;
    write_scan(&copy, &plain, Identity::LeaveOut).unwrap();
    assert_eq!(read(&copy).unwrap().header.encodings[0].ramps, scan.header.encodings[0].ramps);
}

#[test]
fn readouts_hold_where_the_protocol_contradicts_them() {
    let folder = tempfile::tempdir().unwrap();
    let line = |line: u16| {
        Part::Readout(Readout {
            samples: 12,
            coils: 1,
            counters: [line, 0, 0, 0, 0, 0, 0, 0, 0],
            centre: [6, 0, 0],
            ..Readout::default()
        })
    };
    let mut made_of: Vec<Part> = (0..10).map(line).collect();
    made_of.push(Part::End);
    let scan = read(&put(folder.path(), "a.dat", &made(&made_of, "", true))).unwrap();
    let encoding = &scan.header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.recon.matrix), ([12, 10, 1], [12, 10, 1]));
    assert_eq!(encoding.encoded.fov_mm, [200.0, 150.0, 5.0]);
    assert_eq!(encoding.step_1.map(|limits| limits.centre), Some(5));
    assert!(scan.notes.iter().any(|note| note.contains("the readouts hold")), "{:?}", scan.notes);
    let says = |name: &str| {
        let text = format!("tSequenceFileName = \"%CustomerSeq%\\{name}\"");
        let scan = read(&put(folder.path(), "b.dat", &made(&made_of, &text, true))).unwrap();
        scan.notes.iter().any(|note| note.contains("--sequence scan.seq"))
    };
    assert_eq!([says("pulseq"), says("gre")], [true, false]);
}

#[test]
fn symmetric_readouts_of_half_the_length_have_no_oversampling() {
    let folder = tempfile::tempdir().unwrap();
    let with = |samples: u16, centre: u16| {
        let line = |line: u16| {
            Part::Readout(Readout {
                samples,
                coils: 1,
                counters: [line, 0, 0, 0, 0, 0, 0, 0, 0],
                centre: [centre, 3, 0],
                ..Readout::default()
            })
        };
        let mut made_of: Vec<Part> = (0..6).map(line).collect();
        made_of.push(Part::End);
        // No samples on ramps.
        let bytes = made(&made_of, "", true);
        let plain = |bytes: &[u8]| {
            let name = b"alRegridMode";
            let mut bytes = bytes.to_vec();
            for place in 0..bytes.len() - name.len() {
                if bytes[place..].starts_with(name) {
                    bytes[place] = b'x';
                }
            }
            bytes
        };
        let scan = read(&put(folder.path(), "a.dat", &plain(&bytes))).unwrap();
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.recon.matrix, encoding.recon.fov_mm), ([4, 3, 1], [200.0, 150.0, 5.0]));
        let said = scan.notes.iter().filter(|note| note.contains("without oversampling")).count();
        (encoding.encoded.matrix[0], encoding.encoded.fov_mm[0], said)
    };
    assert_eq!(with(8, 4), (8, 400.0, 0));
    assert_eq!(with(4, 2), (4, 200.0, 1));
    // Partial echoes.
    assert_eq!(with(4, 1), (8, 400.0, 0));
    assert_eq!(with(6, 2), (8, 400.0, 0));
}

#[test]
fn a_measurement_without_images_names_those_with() {
    let folder = tempfile::tempdir().unwrap();
    let texts = samples::texts("");
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let noise = || {
        let noise = Readout { mask: 1 << 25, samples: 16, coils: 2, ..Readout::default() };
        measurement(&texts, &[Part::Readout(noise), Part::End], true)
    };
    let images = || measurement(&texts, &parts(), true);
    let told = |name: &str, held: &[(&str, Vec<u8>)], chosen: Option<&str>| {
        let path = put(folder.path(), name, &file(held, |length| length as u64));
        let path =
            chosen.map_or(path.clone(), |chosen| PathBuf::from(format!("{}:{chosen}", path.display())));
        crate::open_scan(&path, &Monitor::silent()).unwrap().images_elsewhere()
    };
    let three = [("small", images()), ("noise", noise()), ("noise", noise())];
    let last = told("three.dat", &three, None).unwrap();
    assert!(last.contains("measurement 3 of 3") && last.ends_with("three.dat:1"), "{last}");
    assert!(told("three.dat", &three, Some("2")).unwrap().contains("measurement 2 of 3"));
    assert_eq!(told("three.dat", &three, Some("1")), None);
    assert_eq!(told("noise.dat", &[("noise", noise()), ("noise", noise())], None), None);
}

#[test]
fn broken_files_are_refused_with_their_field() {
    let folder = tempfile::tempdir().unwrap();
    let sound = made(&parts(), "", true);
    let with = |place: usize, bytes: &[u8]| {
        let mut broken = sound.clone();
        broken[place..place + bytes.len()].copy_from_slice(bytes);
        refused(&put(folder.path(), "a.dat", &broken))
    };
    let far = u64::MAX.to_le_bytes();
    assert!(with(16, &far).contains("measurement 1: offset"));
    assert!(with(16, &[0; 8]).contains("measurement 1: offset"));
    assert!(with(10_240, &[0xff; 4]).contains("length of the header"));
    assert!(with(10_240, &[0; 4]).contains("length of the header"));
    assert!(with(10_244, &[0xff; 4]).contains("texts of the header: expected at most 64"));
    assert!(with(10_244, &[9, 0, 0, 0]).contains("header: text"));
    assert!(with(10_248, &[b'a'; 80]).contains("a name of 1 to 63 characters"));
    // The length of the first text.
    assert!(with(10_248 + 9, &[0xff; 4]).contains("header: text 0: expected at most"));
    // The samples of the first readout.
    let header = u32::from_le_bytes(*sound[10_240..].first_chunk::<4>().unwrap()) as usize;
    assert!(with(10_240 + header + 48, &[0; 2]).contains("readouts of the measurement"));
    assert!(with(10_240 + header + 50, &[0xff; 2]).contains("more coils"));
    let mut parts = parts();
    parts.truncate(6);
    if let Some(Part::Readout(line)) = parts.last_mut() {
        line.coils = 3;
    }
    parts.insert(5, Part::Readout(Readout { samples: 8, coils: 2, ..Readout::default() }));
    parts.push(Part::End);
    let coils = refused(&put(folder.path(), "a.dat", &made(&parts, "", true)));
    assert!(coils.contains("expected 2 coils, as readout"), "{coils}");
}

/// Every sample file, and the scan that it holds.
fn sample_files(folder: &Path) -> Vec<(Vec<u8>, Scan)> {
    let samples = samples::samples().into_iter().flatten();
    samples.map(|(name, bytes)| (bytes.clone(), read(&put(folder, name, &bytes)).unwrap())).collect()
}

#[test]
fn what_is_whole_of_a_cut_file_is_used_and_said() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, whole) in sample_files(folder.path()) {
        let mut used = 0;
        for length in (0..bytes.len()).rev().step_by(37) {
            let path = put(folder.path(), "cut.dat", &bytes[..length]);
            let Ok(scan) = read(&path) else { continue };
            used += 1;
            let count = scan.acquisitions.len();
            assert_eq!(scan.acquisitions, whole.acquisitions[..count]);
            let said = scan.notes.iter().any(|note| note.contains("broken off"));
            assert!(said || count == whole.acquisitions.len(), "{length}: {:?}", scan.notes);
        }
        assert!(used > 20, "{used}");
    }
}

#[test]
fn altered_files_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(48);
    for (bytes, _) in sample_files(folder.path()) {
        let start = if bytes.starts_with(&[0; 4]) { 10_240 } else { 0 };
        let mut refused = 0;
        for round in 0..600 {
            let mut altered = bytes.clone();
            for _ in 0..rng.random_range(1..5) {
                let place = match round % 3 {
                    0 => rng.random_range(0..160),
                    1 => rng.random_range(start..(start + 4000).min(bytes.len())),
                    _ => rng.random_range(start..bytes.len()),
                };
                altered[place] = match rng.random_range(0..3) {
                    0 => rng.random(),
                    1 => altered[place] ^ 1 << rng.random_range(0..8),
                    _ => [0, 0xff, 0x7f, 0x80][rng.random_range(0..4)],
                };
            }
            let path = put(folder.path(), "altered.dat", &altered);
            match read(&path) {
                Ok(scan) => {
                    assert!(scan.bytes() < 64 * bytes.len() as u64);
                    // Whatever became of it is a scan, or is refused in words.
                    if let Ok(index) = scan.frames() {
                        let label = index.labels().next().unwrap();
                        drop(index.assemble(label, &Default::default(), &mut Vec::new()));
                    }
                    summarise(&scan);
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
            }
            drop((describe(&path), names(&path)));
        }
        assert!(refused > 30, "{refused}");
    }
}
