//! Compressed pixels: run lengths, JPEG, deflated files, and codes that are damaged.

use super::*;

/// PackBits: runs of three and more, the rest as it is.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take(128).take_while(|&&byte| byte == bytes[at]).count();
        if run > 2 {
            out.extend([(257 - run) as u8, bytes[at]]);
            at += run;
        } else {
            out.extend([0, bytes[at]]);
            at += 1;
        }
    }
    out
}

#[test]
fn run_lengths_are_decoded() {
    let numbers: Vec<i16> = vec![-1000, -1000, -1000, -1000, 7, 8, 9, 3000, 3000, 3000, -1, -1];
    let segment = |shift: u32| packed(&numbers.iter().map(|n| (n >> shift) as u8).collect::<Vec<_>>());
    let (high, low) = (segment(8), segment(0));
    let mut frame: Vec<u8> = [2, 64, 64 + high.len() as u32].iter().flat_map(|n| n.to_le_bytes()).collect();
    frame.resize(64, 0);
    frame.extend([high, low].concat());
    let whole = Slice {
        syntax: "1.2.840.10008.1.2.5",
        pixels: Pixels::Fragments(vec![frame.clone()]),
        ..slice(0.0, &[])
    };
    let found = read(std::slice::from_ref(&whole)).0;
    assert!(found.data().iter().zip(&numbers).all(|(found, number)| *found == f32::from(*number)));
    for length in 0..frame.len() {
        let cut = Slice { pixels: Pixels::Fragments(vec![frame[..length].to_vec()]), ..whole.clone() };
        expect_refused(&[cut], &["PixelData: expected 3 x 4 compressed pixels"]);
    }
}

#[test]
fn lossless_jpeg_is_decoded_also_in_fragments() {
    let numbers: Vec<i16> = vec![-1000, -999, 30000, -30000, 7, 8, 9, 3000, 3000, 3001, -1, 0];
    let words: Vec<u16> = numbers.iter().map(|&number| number as u16).collect();
    let code = lossless(3, 4, &words);
    let (start, end) = code.split_at(20);
    for fragments in [vec![code.clone()], vec![start.to_vec(), end.to_vec()]] {
        let of = |fragments| Slice {
            syntax: "1.2.840.10008.1.2.4.70",
            pixels: Pixels::Fragments(fragments),
            ..slice(0.0, &[])
        };
        let found = read(&[of(fragments)]).0;
        let found: Vec<f32> = found.data().iter().copied().collect();
        assert_eq!(found, numbers.iter().map(|&number| f32::from(number)).collect::<Vec<_>>());
        expect_refused(&[Slice { size: [3, 5], ..of(vec![code.clone()]) }], &["3 x 5", "found 3 x 4"]);
    }
}

#[test]
fn altered_codes_are_refused_or_read() {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let words: Vec<u16> = (0..12).map(|i| 40_000 - 3000 * i).collect();
    let jpeg = Slice {
        syntax: "1.2.840.10008.1.2.4.70",
        pixels: Pixels::Fragments(vec![lossless(3, 4, &words)]),
        ..slice(0.0, &[])
    };
    let bytes = jpeg.bytes();
    let folder = folder(&[jpeg]);
    let path = folder.path().join("0");
    let mut refused = 0;
    for _ in 0..2000 {
        let mut altered = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(132..altered.len());
            altered[at] = rng.random();
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &altered).unwrap();
        match read_volume(&path) {
            Ok(read) => assert_eq!(read.image.data().len(), 12),
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

/// A file of the deflated transfer syntax, with elements before its pixels that hold this many zeros.
fn deflated(slice: &Slice, before: usize) -> Vec<u8> {
    let bytes = Slice { syntax: "1.2.840.10008.1.2.1.99", ..slice.clone() }.bytes();
    // The group that names the syntax ends where the first element of another begins.
    let start = bytes.windows(4).position(|four| four == [8, 0, 8, 0]).unwrap();
    let mut encoder =
        flate2::write::DeflateEncoder::new(bytes[..start].to_vec(), flate2::Compression::fast());
    let mut private = b"\x09\0\x10\x10OB\0\0".to_vec();
    private.extend((before as u32).to_le_bytes());
    for part in [&private[..], &vec![0; before], &bytes[start..]] {
        std::io::Write::write_all(&mut encoder, part).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_deflated_file_takes_the_memory_that_its_pixels_need() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        read_volume(&path)
    };
    let small = constant(0.0, 7);
    assert!(read(&deflated(&small, 100)).unwrap().image.data().iter().all(|&value| value == 7.0));
    // Pixels that end behind the bytes that are read at first.
    let large = Slice { size: [1000, 500], pixels: Pixels::Native(vec![1; 1_000_000]), ..small.clone() };
    let bytes = deflated(&large, (16 << 20) - 500_000);
    let image = read(&bytes).unwrap().image;
    assert_eq!((image.shape_zyx(), image.data()[[0, 999, 499]]), ([1, 1000, 500], 257.0));
    for (slice, before, word) in [
        // Pixels that are not among the first elements; more of them than rows and columns say.
        (&small, 17 << 20, "in the first 16 MiB"),
        (
            &Slice { size: [10, 10], pixels: Pixels::Native(vec![0; 20 << 20]), ..small.clone() },
            0,
            "200 bytes for its rows",
        ),
    ] {
        let bytes = deflated(slice, before);
        assert!(bytes.len() < 1 << 20);
        let error = read(&bytes).unwrap_err();
        assert!(error.to_string().contains(word) && error.path() == path, "{error}");
    }
}
