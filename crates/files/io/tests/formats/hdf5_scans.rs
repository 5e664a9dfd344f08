//! CT scans in HDF5 files of other programs.

use std::f64::consts::PI;
use std::path::Path;

use rayspin_core::ErrorKind;
use rayspin_ct::scan::{Counts, Measured, PixelSize, Scan};
use rayspin_device::{Cpu, Device};
use rayspin_io::{Projections, data_exchange};

use super::support::{folder, put, python};

fn read(path: &Path, cpu: &Cpu) -> rayspin_io::Result<Scan> {
    Projections::open(path)?.into_scan(cpu)
}

/// What the script counts up, as line integrals.
fn expect_numbers(name: &str, scan: Scan) {
    let Measured::Lines(lines) = scan.measured else { panic!("{name}: counts") };
    assert_eq!(lines.dim(), (6, 2, 5), "{name}");
    assert!(lines.iter().zip(1u16..).all(|(found, wanted)| *found == f32::from(wanted)), "{name}: {lines}");
    let angles = scan.angles.iter().enumerate();
    assert!(
        angles.clone().all(|(at, angle)| (angle - at as f64 * PI / 6.0).abs() < 1e-9),
        "{name}: {angles:?}"
    );
}

#[test]
fn scans_of_other_programs_are_read_or_refused() {
    let folder = folder();
    let f = folder.path();
    if !python("hdf5_scans.py", "write", f) {
        return;
    }
    let device = Device::cpu().unwrap();
    let cpu = device.cpu_side();
    for name in [
        // Links, virtual data sets, raw files, user blocks, filters.
        "linked",
        "linked_block",
        "soft",
        "group",
        "virtual",
        "virtual_self",
        "virtual_each",
        "virtual_latest",
        "virtual_block",
        "virtual_sides",
        "virtual_turns",
        "virtual_turns_latest",
        "virtual_nested",
        "virtual_endless",
        "virtual_pattern",
        "storage",
        "block",
        "block_1024",
        "block_65536",
        "compact",
        "filter_compression_gzip",
        "filter_compression_lzf",
        "filter_fletcher32_True",
        "filter_scaleoffset_3",
        "filter_left_out",
        // Text and units of every type.
        "mrad_variable",
        "mrad_ascii",
        "mrad_fixed",
        "mrad_fixed_utf8",
        "mrad_one",
        "mrad_one_fixed",
        "mrad_padded",
        "units_latin",
        "units_empty",
    ] {
        let scan = read(&f.join(format!("{name}.h5")), cpu);
        expect_numbers(name, scan.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    for (name, words) in [
        ("missing_link.h5", ["exchange/data", "raw/none.h5"]),
        ("missing_group.h5", ["exchange", "raw/none.h5"]),
        ("missing_entry.nxs", ["entry", "raw/none.h5"]),
        ("missing_part.h5", ["exchange/data", "the file raw/part1x.h5 of the virtual data set"]),
        ("missing_pattern.h5", ["exchange/data", "the file raw/part1x%.h5 of the virtual data set"]),
        ("missing_block.h5", ["exchange/data", "the file raw/none0.h5 of the virtual data set"]),
        ("missing_endless.h5", ["exchange/data", "the file raw/none.h5 of the virtual data set"]),
        ("missing_nested.h5", ["missing_part.h5: exchange/data", "raw/part1x.h5"]),
        ("missing_set.h5", ["all/view9 in", "a data set of that name"]),
        ("missing_view.h5", ["exchange/data", "some that were not, at 4 of 6"]),
        ("missing_end.h5", ["short in", "[2, 2, 5]"]),
        ("missing_source.nxs", ["data", "the file raw/none.h5 of the virtual data set"]),
        ("missing_storage.h5", ["exchange/data", "none.raw"]),
        ("short_storage.h5", ["short.raw", "236 bytes"]),
        ("filter_used.h5", ["exchange/data", "zstd"]),
        ("units_speed.h5", ["units of exchange/theta", "deg/s"]),
        ("units_numeric.h5", ["units of exchange/theta", "1.5"]),
        ("pixel_wrong.nxs", ["units of x_pixel_size", "'V'"]),
        ("short_keys.nxs", ["image_key_control", "one for each of 6 images, found 3"]),
        ("no_flats.h5", ["exchange/data_white", "flat fields"]),
        ("no_angles.h5", ["exchange/theta", "the angle of each view"]),
    ] {
        let error = read(&f.join(name), cpu).expect_err(name);
        let text = error.to_string();
        assert!(
            text.contains(if name == "missing_nested.h5" { "part" } else { name })
                && words.iter().all(|word| text.contains(word)),
            "{text}"
        );
        assert_eq!(error.kind(), ErrorKind::Input, "{text}");
        assert!(!text.contains("plugin") && !text.contains("target/"), "{text}");
    }
    assert!(read(&f.join("filter_used.h5"), cpu).unwrap_err().hint().unwrap().contains("h5repack"));
}

#[test]
fn files_of_virtual_data_sets_are_inputs() {
    let folder = folder();
    let f = folder.path();
    if !python("hdf5_scans.py", "write", f) {
        return;
    }
    for (name, others) in [
        ("virtual", &["raw/part0.h5", "raw/part1.h5"][..]),
        ("virtual_self", &[]),
        ("virtual_latest", &["kinds/views.h5"]),
        ("virtual_block", &["kinds/views.h5"]),
        ("virtual_nested", &["virtual_each.h5", "kinds/views.h5"]),
        ("virtual_endless", &["kinds/views.h5"]),
        ("virtual_pattern", &["raw/part0.h5", "raw/part1.h5"]),
        ("missing_part", &["raw/part0.h5"]),
    ] {
        let name = format!("{name}.h5");
        let wanted: Vec<_> = [&name[..]].iter().chain(others).map(|name| f.join(name)).collect();
        assert_eq!(rayspin_io::sources(f.join(&name)), wanted);
        let error = |other: &str| rayspin_io::expect_apart(&[f.join(&name)], &[f.join(other)]).unwrap_err();
        assert!(others.iter().all(|other| error(other).to_string().contains("an input of this run")));
    }
}

/// The HDF5 library would wait for ever for another program that writes into the pipe.
#[test]
fn pipes_to_which_a_file_leads_are_refused() {
    let folder = folder();
    let f = folder.path();
    if !python("hdf5_scans.py", "write", f) {
        return;
    }
    for (name, found) in [
        ("link", "raw/pipe.h5"),
        ("many", "raw/pipe.h5"),
        ("behind", "raw/pipe.h5"),
        ("storage", "raw/pipe.h5"),
        ("virtual", "raw/pipe.h5"),
        ("pattern", "raw/pip1.h5"),
        ("device", "/dev/zero"),
    ] {
        let path = f.join(format!("pipe_{name}.h5"));
        for error in [Projections::open(&path).unwrap_err(), rayspin_io::read_image(&path).unwrap_err()] {
            let text = error.to_string();
            let kind = if name == "device" { "a device" } else { "a pipe" };
            assert!(text.contains(found) && text.contains(kind), "{name}: {text}");
            assert!(error.hint().unwrap().contains("leads to it") && error.kind() == ErrorKind::Input);
        }
        assert_eq!(rayspin_io::sources(&path), [path]);
    }
}

/// HDF5 would give zeros for them.
#[test]
fn numbers_that_were_never_written_are_refused() {
    let folder = folder();
    if !python("hdf5_scans.py", "write", folder.path()) {
        return;
    }
    let f = folder.path().join("unwritten");
    let device = Device::cpu().unwrap();
    let cpu = device.cpu_side();
    for (name, words) in [
        ("views", ["exchange/data:", "some that were not, at 4 to 5 of 6"]),
        ("tile", ["exchange/data:", "some that were not, at 2 of 6"]),
        ("nothing", ["exchange/data:", "found none"]),
        ("no_chunk", ["exchange/data:", "found none"]),
        ("angles", ["exchange/theta:", "found none"]),
        ("angles_half", ["exchange/theta:", "some that were not, at 4 to 5 of 6"]),
        ("darks", ["exchange/data_dark:", "found none"]),
        ("flats", ["exchange/data_white:", "found none"]),
        ("filled_big", ["exchange/data_dark:", "in a file of this size"]),
        ("virtual_hole", ["exchange/data", "some that were not, at 3 to 5 of 6"]),
        ("virtual_gone", ["exchange/data", "gone in"]),
        ("virtual_short", ["exchange/data", "[3, 2, 5]"]),
        ("virtual_never", ["never", "found none"]),
        ("virtual_angles", ["exchange/theta", "some that were not, at 4 to 5 of 6"]),
        ("virtual_darks", ["exchange/data_dark", "gone in"]),
        ("virtual_gap_unsaid", ["exchange/data", "some that were not, at 0 to 5 of 6"]),
    ] {
        let error = read(&f.join(format!("{name}.h5")), cpu).expect_err(name);
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{name}: {text}");
        assert_eq!(error.kind(), ErrorKind::Input, "{text}");
    }
    // Arrays that are named.
    let array = |name: &str| format!("{}:{name}", f.join("arrays.hdf5").display());
    for (name, words) in [("half", "some that were not, at 4 to 5 of 6"), ("nothing", "found none")] {
        let error = rayspin_io::read_array(array(name), "an array").expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    assert!(rayspin_io::read_array(array("whole"), "an array").is_ok());
    // A view of one number, and a gap that the file fills on purpose.
    for name in ["virtual_row", "virtual_gap"] {
        assert!(read(&f.join(format!("{name}.h5")), cpu).is_ok(), "{name}");
    }
    // A fill value that the file states, of numbers that it leaves out throughout.
    let Measured::Counts(Counts { darks, .. }) = read(&f.join("filled.h5"), cpu).unwrap().measured else {
        panic!("lines")
    };
    assert!(darks.dim().0 == 3 && darks.iter().all(|&dark| dark == 4.0));
}

/// A damaged file does not show whether it holds a scan: the error tells of the damage.
#[test]
fn damage_is_told_before_the_kind() {
    let folder = folder();
    let f = folder.path();
    let scan = Scan::new(Measured::Lines(ndarray::Array3::ones((9, 4, 50))), vec![0.5; 9], None).unwrap();
    data_exchange::write(f.join("a.h5"), &scan).unwrap();
    let whole = std::fs::read(f.join("a.h5")).unwrap();
    for (name, bytes) in [
        ("cut.h5", &whole[..whole.len() / 2]),
        ("cut.txrm", &b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and no more"[..]),
    ] {
        put(&f.join(name), bytes);
        let error = Projections::are_in(f.join(name)).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(Projections::are_in(f.join("a.h5")).unwrap());
    put(&f.join("words.txt"), b"no scan");
    assert!(!Projections::are_in(f.join("words.txt")).unwrap());
}

#[test]
fn what_a_file_states_of_its_scan_is_taken() {
    let folder = folder();
    let f = folder.path();
    if !python("hdf5_scans.py", "write", f) {
        return;
    }
    let device = Device::cpu().unwrap();
    let cpu = device.cpu_side();
    let open = |name: &str| Projections::open(f.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let close = |found: Option<PixelSize>, wanted: [f64; 2]| {
        let found = found.unwrap().mm;
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} for {wanted:?}");
    };
    for name in ["pixel_micron.nxs", "pixel_metre.nxs"] {
        close(open(name).pixel(), [6.5e-3, 13e-3]);
    }
    close(open("pixel.h5").pixel(), [0.65e-3; 2]);
    for name in ["pixel_none.nxs", "pixel_pixel.nxs"] {
        let scan = open(name);
        assert!(scan.pixel().is_none() && scan.notes().iter().any(|note| note.contains("--pixel")), "{name}");
    }
    // The size outlives Rayspin's own file.
    let scan = read(&f.join("pixel_micron.nxs"), cpu).unwrap();
    data_exchange::write(f.join("kept.h5"), &scan).unwrap();
    close(open("kept.h5").pixel(), [6.5e-3, 13e-3]);

    // Images that check the alignment, and invalid ones, are no views.
    let scan = open("alignment.nxs");
    assert_eq!(scan.shape(), [2, 2, 5]);
    for word in ["2 images that check the alignment", "1 image that the file calls invalid is left out"] {
        assert!(scan.notes().iter().any(|note| note.starts_with(word)), "{:?}", scan.notes());
    }
    assert_eq!(open("column.nxs").shape(), [2, 2, 5]);
    // Kinds that the control states alone, and the entry that a file calls its default.
    let control = open("control.nxs");
    assert_eq!((control.shape()[0], control.frames()), (2, Some([2, 1])));
    assert!(control.notes().concat().contains("no image_key"), "{:?}", control.notes());
    let default = open("default.nxs");
    assert!(default.shape()[0] == 2 && default.notes().concat().contains("b1 is taken"));
    // The entry that has images, or the one that the user names.
    let several = open("several.nxs");
    assert_eq!(several.shape()[0], 3);
    let note = several.notes().concat();
    assert!(note.contains("entry0001 is taken") && note.contains("several.nxs:entry0002"), "{note}");
    let named = open("several.nxs:entry0002");
    assert!(named.shape()[0] == 2 && named.notes().is_empty());
    assert!(Projections::open(f.join("several.nxs:entry7")).unwrap_err().to_string().contains("entry0002"));

    // What the file lacks can be given; what it has stays.
    let flats = ndarray::Array3::from_elem((1, 2, 5), 100.0);
    let scan = open("no_flats.h5").with_fields(flats.clone(), None).into_scan(cpu).unwrap();
    let Measured::Counts(Counts { darks, flats: found, .. }) = scan.measured else { panic!("lines") };
    assert!(found == flats && darks.dim() == (1, 2, 5) && darks.iter().all(|&dark| dark == 0.5));
    assert!(open("no_angles.h5").with_angles(vec![0.0; 5]).is_err());
    let angles: Vec<f64> = (0..6).map(|at| f64::from(at) * PI / 6.0).collect();
    expect_numbers(
        "no_angles",
        open("no_angles.h5").with_angles(angles.clone()).unwrap().into_scan(cpu).unwrap(),
    );
    assert!(open("linked.h5").with_angles(angles).is_err());
}
