//! Files that would wait, never end or fill the memory: pipes, devices, and few bytes that promise many.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use rayspin_core::Monitor;
use rayspin_io::{
    FORMATS, Format, ScanOptions, cfl, detect, read_image, read_scan, read_text, read_trajectory, rtk,
};

use crate::support::{folder, put};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn expect_told(error: &rayspin_io::Error, path: &Path, words: &[&str]) {
    let text = error.to_string();
    let name = path.file_name().unwrap().to_string_lossy();
    for word in words.iter().copied().chain([&*name]) {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('\n') && error.kind() == rayspin_core::ErrorKind::Input, "{text}");
}

/// No reader opens a pipe: it would wait for a program that writes to it.
#[test]
fn pipes_and_devices_are_no_files() {
    let folder = folder();
    let of = |format: &'static Format| format.endings.iter().chain(format.other_endings);
    for ending in FORMATS.iter().flat_map(of).copied().chain([".dcm", ".xml", ""]) {
        let path = folder.path().join(format!("a{ending}"));
        pipe(&path);
        let told = [
            detect(&path).map(drop).unwrap_err(),
            read_image(&path).map(drop).unwrap_err(),
            read_trajectory(&path).map(drop).unwrap_err(),
            read_scan(&path, &ScanOptions::default(), &Monitor::silent()).map(drop).unwrap_err(),
            rtk::read(&path).map(drop).unwrap_err(),
            read_text(&path).unwrap_err(),
        ];
        for error in told {
            expect_told(&error, &path, &["expected a regular file, found a pipe"]);
        }
        std::fs::remove_file(&path).unwrap();
    }
    let zero = Path::new("/dev/zero");
    expect_told(&detect(zero).unwrap_err(), zero, &["found a device"]);
    expect_told(&read_text(zero).unwrap_err(), zero, &["found a device"]);
    // One of two files.
    let (data, header) = (folder.path().join("b.cfl"), folder.path().join("b.hdr"));
    pipe(&data);
    put(&header, b"# Dimensions\n2 3\n");
    expect_told(&cfl::read(&header).unwrap_err(), &data, &["found a pipe"]);
}

#[test]
fn a_pipe_among_the_files_of_a_folder_is_none_of_them() {
    let folder = folder();
    let image =
        rayspin_core::Image::new(ndarray::ArrayD::from_elem(vec![1, 4, 5], 2.0f32), Default::default());
    let image = image.unwrap();
    for number in 0..3 {
        let page = folder.path().join(format!("page_{number}.tif"));
        rayspin_io::write_image(&page, &image, &Default::default()).unwrap();
    }
    pipe(&folder.path().join("notes"));
    let read = rayspin_io::read_volume(folder.path()).unwrap();
    assert!(read.image.shape_zyx() == [3, 4, 5] && read.notes.concat().contains("left out: notes"));
    let path = folder.path().join("page_3.tif");
    pipe(&path);
    expect_told(&read_image(folder.path()).map(drop).unwrap_err(), &path, &["found a pipe"]);
}

#[test]
fn numbers_beside_a_header_lie_in_a_regular_file_that_is_long_enough() {
    let folder = folder();
    let header = folder.path().join("a.mhd");
    pipe(&folder.path().join("numbers"));
    let with = |data: &str, more: &str| {
        put(
            &header,
            format!("NDims = 2\nDimSize = 4 3\n{more}ElementType = MET_UCHAR\nElementDataFile = {data}\n")
                .as_bytes(),
        );
        read_image(&header).unwrap_err()
    };
    expect_told(&with("numbers", ""), Path::new("numbers"), &["found a pipe"]);
    expect_told(&with("/dev/zero", ""), Path::new("zero"), &["found a device"]);
    for skip in ["13", "18446744073709551615"] {
        put(&folder.path().join("twelve"), &[7; 12]);
        expect_told(&with("twelve", &format!("HeaderSize = {skip}\n")), &header, &["HeaderSize", skip]);
    }
}

/// A stack of pages of 64 x 80 bytes, with the place and the number of bytes of each.
fn tiff(code: u16, pages: &[u32], each: u32, data: &[u8]) -> Vec<u8> {
    let mut file = b"II*\0\0\0\0\0".to_vec();
    file.extend(data);
    for (at, place) in pages.iter().enumerate() {
        let start = file.len() as u32;
        if at == 0 {
            file[4..8].copy_from_slice(&start.to_le_bytes());
        }
        let tags: [(u16, u16, u32); 9] = [
            (256, 3, 80),
            (257, 3, 64),
            (258, 3, 8),
            (259, 3, code.into()),
            (262, 3, 1),
            (273, 4, *place),
            (277, 3, 1),
            (278, 3, 64),
            (279, 4, each),
        ];
        file.extend((tags.len() as u16).to_le_bytes());
        for (tag, kind, value) in tags {
            file.extend(tag.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(1u32.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        let next = if at + 1 < pages.len() { start + 2 + 12 * 9 + 4 } else { 0 };
        file.extend(next.to_le_bytes());
    }
    file
}

#[test]
fn pages_of_a_stack_have_bytes_of_their_own() {
    let folder = folder();
    let path = folder.path().join("a.tif");
    let page = 64 * 80;
    let plain: Vec<u8> = (0..2 * page).map(|at| (at % 251) as u8).collect();
    put(&path, &tiff(1, &[8, 8 + page as u32], page as u32, &plain));
    assert_eq!(read_image(&path).unwrap().image.shape_zyx(), [2, 64, 80]);
    // Three hundred pages of the same bytes: more than the file has in all.
    put(&path, &tiff(1, &[8; 300], page as u32, &plain[..page]));
    expect_told(
        &read_image(&path).unwrap_err(),
        &path,
        &["page 7", "bytes of its own", "bytes up to this page"],
    );
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![0; page]).unwrap();
    let packed = packed.finish().unwrap();
    put(&path, &tiff(8, &[8], packed.len() as u32, &packed));
    assert_eq!(read_image(&path).unwrap().image.shape_zyx(), [1, 64, 80]);
    // Their tables take room in the file, so that the strip must be long to be shared too often.
    let long = [packed.clone(), vec![0; 4000]].concat();
    put(&path, &tiff(8, &[8; 300], long.len() as u32, &long));
    expect_told(&read_image(&path).unwrap_err(), &path, &["bytes of its own"]);
    // A byte of such a code stands for a thousand at most.
    put(&path, &tiff(8, &[8], 4, &packed));
    expect_told(&read_image(&path).unwrap_err(), &path, &["page 0", "64 x 80 in 4 bytes"]);
}
