use ndarray::Axis;
use rayspin_core::Image;
use rayspin_io::{
    Format, Property, SeriesShape, SeriesWriter, Values, WriteOptions, endings, npy, read_image, write_image,
};

use crate::support::{folder, oblique, random};

/// The endings of the formats that hold series, and of pictures, which show some of one.
fn of_series() -> Vec<&'static str> {
    endings(|format| format.writes_images() && (format.keeps(Property::Repetitions) || format.is_picture()))
}

fn series(frames: usize) -> (Image, SeriesShape) {
    let volume = [3, 5, 7];
    let geometry = oblique([1.5, 2.0, 3.0], [4.0, -5.0, 6.0], [0.3, 0.2, -0.4], false);
    let shape = if frames == 1 { volume.to_vec() } else { [&[frames], &volume[..]].concat() };
    let image = Image::new(random(frames as u64, &shape), geometry).unwrap();
    (image, SeriesShape { frames, volume, geometry })
}

fn volumes(image: &Image) -> Vec<ndarray::ArrayViewD<'_, rayspin_core::C32>> {
    match image.data().ndim() {
        4 => image.data().axis_iter(Axis(0)).collect(),
        _ => vec![image.data().view()],
    }
}

#[test]
fn a_series_has_the_bytes_of_the_whole() {
    for (frames, values) in [
        (1, None),
        (4, None),
        (21, Some(Values::Complex)),
        (3, Some(Values::Magnitude)),
        (3, Some(Values::Real)),
    ] {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        let (image, shape) = series(frames);
        let options = WriteOptions { values, repetition_time_s: Some(0.25), ..WriteOptions::default() };
        for ending in of_series() {
            let (whole, parts) = (at(&format!("whole{ending}")), at(&format!("parts{ending}")));
            let notes = write_image(&whole, &image, &options).unwrap();
            let alone = at(&format!("alone{ending}"));
            if ending == ".npy" {
                // NumPy's writer for whole arrays is another one.
                match values.unwrap_or(Values::Complex) {
                    Values::Complex => npy::write(&alone, image.data().view()).unwrap(),
                    Values::Magnitude => npy::write(&alone, image.magnitude().view()).unwrap(),
                    Values::Real => npy::write(&alone, image.data().mapv(|v| v.re).view()).unwrap(),
                    Values::Phase => npy::write(&alone, image.data().mapv(|v| v.arg()).view()).unwrap(),
                }
                assert!(std::fs::read(&alone).unwrap() == std::fs::read(&whole).unwrap());
            }
            let mut writer = SeriesWriter::create(&parts, &shape, &options).unwrap();
            for volume in volumes(&image) {
                assert!(!parts.exists());
                writer.push(volume).unwrap();
            }
            assert!(writer.push(image.data().view()).is_err());
            assert_eq!(writer.finish().unwrap(), notes, "{ending}");
            let same = |a, b| std::fs::read(a).unwrap() == std::fs::read(b).unwrap();
            assert!(same(&whole, &parts), "{frames} frames of {values:?} as {ending}");
            if ending == ".cfl" {
                assert!(same(&at("whole.hdr"), &at("parts.hdr")));
            }
        }
    }
}

#[test]
fn what_was_written_of_a_series_is_kept_under_another_name() {
    for ending in of_series() {
        for done in [0, 1, 3, 11] {
            let folder = folder();
            let (image, shape) = series(12);
            let path = folder.path().join(format!("image{ending}"));
            std::fs::write(&path, "old").unwrap();
            let mut writer = SeriesWriter::create(&path, &shape, &WriteOptions::default()).unwrap();
            for volume in volumes(&image).into_iter().take(done) {
                writer.push(volume).unwrap();
            }
            let kept = writer.keep_partial().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            let expected = folder.path().join(format!("image.partial{ending}"));
            assert_eq!(kept, (done > 0).then(|| expected.clone()), "{ending}");
            let files = std::fs::read_dir(folder.path()).unwrap().count();
            let pair = usize::from(ending == ".cfl");
            assert_eq!(files, if done == 0 { 1 } else { 2 + pair }, "{ending}");
            if done == 0 || ending == ".png" {
                continue;
            }
            let read = read_image(&expected).unwrap().image;
            assert_eq!(read.repetitions(), done, "{ending}");
            let complex = Format::of_name(&path).unwrap().writes_complex_first();
            let found = volumes(&read);
            for (volume, found) in volumes(&image).into_iter().zip(&found) {
                let wanted = if complex { volume.to_owned() } else { volume.mapv(|v| v.norm().into()) };
                assert!(wanted.iter().eq(found.iter()), "{ending} of {done}");
            }
        }
    }
}

#[test]
fn an_unfinished_series_leaves_nothing() {
    for ending in of_series() {
        let folder = folder();
        let (image, shape) = series(4);
        let path = folder.path().join(format!("image{ending}"));
        let mut writer = SeriesWriter::create(&path, &shape, &WriteOptions::default()).unwrap();
        writer.push(volumes(&image)[0].view()).unwrap();
        assert!(writer.push(image.data().view()).is_err(), "another shape");
        assert!(writer.finish().is_err(), "volumes are missing");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{ending}");
    }
}
