//! What the table of formats says, against what readers and writers do.

use std::collections::BTreeSet;
use std::path::Path;

use ndarray::{Axis, IxDyn};
use rayspin_core::{C32, Geometry, Image};
use rayspin_io::cfl::Layout;
use rayspin_io::{
    FORMATS, Format, Property, SeriesWriter, Values, WriteOptions, detect, endings, expect_ending, parts,
    read_array, read_image, read_maps, write_coil_array, write_image,
};

use crate::support::{assert_same_place, folder, oblique, random};

/// A series, or one volume for a format that holds no series.
fn image_of(format: &Format) -> Image {
    match format.keeps(Property::Repetitions) || format.is_picture() {
        true => series(),
        false => series().only_repetitions(&0.into()).unwrap(),
    }
}

/// Three volumes of complex numbers in an oblique place.
fn series() -> Image {
    let geometry = oblique([1.5, 2.0, 3.0], [4.0, -5.0, 6.0], [0.3, 0.2, -0.4], false);
    Image::new(random(7, &[3, 2, 4, 5]), geometry).unwrap()
}

fn all_endings(format: &Format) -> impl Iterator<Item = &'static str> {
    format.endings.iter().chain(format.other_endings).copied()
}

#[test]
fn every_row_has_names_and_endings_of_its_own() {
    let mut taken = BTreeSet::new();
    for format in &FORMATS {
        assert!(taken.insert(format.name.to_owned()), "{format}");
        // Files of a format within another have the other's endings.
        assert!(!format.endings.is_empty() || format.inside().is_some(), "{format}");
        assert!(!format.about.is_empty(), "{format}");
        for ending in all_endings(format) {
            assert!(ending.starts_with('.') && ending.to_ascii_lowercase() == ending, "{format}: {ending}");
            assert!(taken.insert(ending.to_owned()), "{format}: {ending}");
            for name in [format!("a/b.c{ending}"), format!("B{}", ending.to_ascii_uppercase())] {
                assert_eq!(Format::of_name(&name), Some(format), "{name}");
            }
            assert_eq!(Format::of_name(ending), None, "an ending is no name");
        }
    }
    let refused = expect_ending("out/a.txt", Format::writes_images).unwrap_err();
    for ending in endings(Format::writes_images) {
        assert!(refused.to_string().contains(ending), "{refused}");
    }
    assert!(refused.to_string().ends_with("found a.txt"), "{refused}");
}

#[test]
fn images_keep_what_the_row_says() {
    let folder = folder();
    for format in FORMATS.iter().filter(|format| format.writes_images() && !format.is_picture()) {
        let image = image_of(format);
        let stored = format.images.as_ref().unwrap().values;
        assert_eq!(format.keeps(Property::Phase), stored.contains(&Values::Complex), "{format}");
        assert_eq!(format.writes_signed(), stored.contains(&Values::Real), "{format}");
        for values in
            [None, Some(Values::Magnitude), Some(Values::Real), Some(Values::Phase), Some(Values::Complex)]
        {
            for ending in all_endings(format) {
                let path = folder.path().join(format!("a{ending}"));
                let options = WriteOptions { values, ..WriteOptions::default() };
                let written = write_image(&path, &image, &options);
                let values = values.unwrap_or(stored[0]);
                if !stored.contains(&values) {
                    assert!(written.unwrap_err().to_string().contains(values.name()), "{ending}");
                    continue;
                }
                let notes = written.unwrap();
                assert_eq!(detect(&path).unwrap(), format, "{ending}");
                let back = read_image(&path).unwrap();
                assert_eq!(back.format, format);
                let expected = image.data().mapv(|v| match values {
                    Values::Complex => v,
                    Values::Magnitude => v.norm().into(),
                    Values::Real => v.re.into(),
                    Values::Phase => v.arg().into(),
                });
                // Numbers that are no floats have steps.
                let range = 2.0 * expected.iter().fold(0f32, |most, v| most.max(v.re.abs()));
                let off = if format.name == "DICOM" { range / 100_000.0 } else { 0.0 };
                let near = |(a, b): (&C32, &C32)| (a - b).norm() <= off;
                assert!(back.image.data().iter().zip(&expected).all(near), "{ending} {values:?}");
                let placed = format.keeps(Property::Geometry);
                match placed {
                    true => assert_same_place(back.image.geometry(), image.geometry(), [2, 4, 5], 1e-3),
                    false => assert_eq!(*back.image.geometry(), Geometry::default()),
                }
                // Notes say what writing loses, and what reading assumes.
                assert_eq!(notes.iter().any(|n| n.contains("geometry")), !placed, "{ending} {notes:?}");
                assert_eq!(back.notes.iter().any(|n| n.contains("geometry")), !placed, "{:?}", back.notes);
                let lost = matches!(values, Values::Magnitude | Values::Real);
                assert_eq!(notes.iter().any(|n| n.contains("complex")), lost, "{ending} {notes:?}");
            }
        }
    }
}

#[test]
fn the_time_between_repetitions_is_stored_where_the_row_says() {
    let folder = folder();
    for format in FORMATS.iter().filter(|format| format.writes_images()) {
        let path = folder.path().join(format!("a{}", format.endings[0]));
        let bytes = |repetition_time_s| {
            let options = WriteOptions { repetition_time_s, ..WriteOptions::default() };
            write_image(&path, &image_of(format), &options).unwrap();
            parts(&path).iter().map(|part| std::fs::read(part).unwrap()).collect::<Vec<_>>()
        };
        let kept = bytes(Some(0.5)) != bytes(Some(0.25));
        assert_eq!(kept, format.keeps(Property::RepetitionTime), "{format}");
    }
}

#[test]
fn written_files_are_told_by_their_content_whatever_their_names_say() {
    let folder = folder();
    let told = |written: &Path, format: &Format| {
        let mut found = Vec::new();
        for (part, ending) in parts(written).iter().flat_map(|part| {
            let others = FORMATS.iter().filter(|other| *other != format).flat_map(all_endings);
            others.chain([".bin", ""]).map(move |ending| (part, ending))
        }) {
            let other = folder.path().join(format!("other{ending}"));
            std::fs::copy(part, &other).unwrap();
            found.push(detect(&other).ok() == Some(format));
            std::fs::remove_file(&other).unwrap();
        }
        found
    };
    for format in FORMATS.iter().filter(|format| format.writes_images()) {
        for ending in all_endings(format) {
            let path = folder.path().join(format!("a{ending}"));
            write_image(&path, &image_of(format), &WriteOptions::default()).unwrap();
            let found = told(&path, format);
            // Numbers of a BART array have no signature, but their header has.
            let each = found.len() / parts(&path).len();
            assert!(
                found.chunks(each).any(|part| part.iter().all(|&told| told)),
                "{format} {ending}: {found:?}"
            );
        }
    }
}

#[test]
fn maps_are_read_as_they_were_written() {
    let folder = folder();
    let maps = random(3, &[4, 2, 5, 6]);
    let path = |ending: &str| folder.path().join(format!("maps{ending}"));
    for format in FORMATS.iter().filter(|format| format.writes_arrays()) {
        for ending in all_endings(format) {
            write_coil_array(path(ending), maps.view(), Layout::default()).unwrap();
            assert_eq!(read_maps(path(ending)).unwrap(), maps, "{ending}");
            assert_eq!(read_array(path(ending), "maps").unwrap().len(), maps.len());
        }
    }
    let named = |format: &&Format| !format.endings.is_empty();
    for format in FORMATS.iter().filter(|format| !format.writes_arrays()).filter(named) {
        let refused = write_coil_array(path(format.endings[0]), maps.view(), Layout::default());
        assert!(refused.unwrap_err().to_string().contains("expected the ending"), "{format}");
    }
    for format in FORMATS.iter().filter(|format| format.writes_images() && !format.reads_arrays()) {
        let image = path(format.endings[0]);
        write_image(&image, &image_of(format), &WriteOptions::default()).unwrap();
        let refused = read_maps(&image).unwrap_err().to_string();
        assert!(refused.contains("expected maps as") && refused.ends_with(format.name), "{refused}");
    }
}

#[test]
fn a_writer_holds_less_than_the_series() {
    for format in FORMATS.iter().filter(|format| format.writes_images()) {
        let memory = SeriesWriter::memory(format!("a{}", format.endings[0]), 1000, 1 << 24);
        assert!((1..=16 << 24).contains(&memory), "{format}: {memory}");
    }
    assert_eq!(SeriesWriter::memory("a.txt", 1000, 1 << 24), 0);
}

/// A row of the documents for each format.
fn documented() -> Vec<String> {
    let ticks = |words: Vec<&str>| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    let of = |what: &str, read: bool, written: bool| match (read, written) {
        (true, true) => Some(format!("{what}: read, written")),
        (true, false) => Some(format!("{what}: read")),
        (false, true) => Some(format!("{what}: written")),
        (false, false) => None,
    };
    let row = |format: &Format| {
        let images = if format.is_picture() { "pictures" } else { "images" };
        let holds = [
            of(images, format.reads_images(), format.writes_images()),
            of("arrays", format.reads_arrays(), format.writes_arrays()),
            of("raw scans", format.reads_scans(), format.writes_scans()),
        ];
        let holds: Vec<String> = holds.into_iter().flatten().collect();
        let keeps: Vec<&str> = format.keeps.iter().map(|kept| kept.name()).collect();
        let endings = match format.inside().and_then(|of| FORMATS.iter().find(|other| other.name == of)) {
            Some(other) if format.endings.is_empty() => ticks(all_endings(other).collect()),
            _ => ticks(all_endings(format).collect()),
        };
        let integers: Vec<&str> = format.images.iter().flat_map(|images| images.integers()).collect();
        let integers = if integers.len() == 8 { "8 to 64 bits".to_owned() } else { integers.join(", ") };
        let (holds, keeps) = (holds.join("; "), keeps.join(", "));
        format!("| {format} | {endings} | {holds} | {keeps} | {integers} | {} |", format.about)
    };
    let head =
        ["| format | names | holds | keeps of an image | integers written | |", "|---|---|---|---|---|---|"];
    head.map(str::to_owned).into_iter().chain(FORMATS.iter().map(row)).collect()
}

/// The formats that `of` chooses, with their endings.
fn named(of: fn(&Format) -> bool) -> String {
    let one = |format: &Format| {
        let endings: Vec<String> = format.endings.iter().map(|ending| format!("`{ending}`")).collect();
        if endings.is_empty() { format.to_string() } else { format!("{format} ({})", endings.join(", ")) }
    };
    FORMATS.iter().filter(|format| of(format)).map(one).collect::<Vec<_>>().join(", ")
}

/// Compares what stands in a document between `<!-- formats: WHAT -->` and `<!-- end -->`; writes it where
/// RAYSPIN_WRITE_DOCUMENTS is set.
fn expect_written(file: &str, what: &str, wanted: &str) {
    let text = document(file);
    let (start, end) = (format!("<!-- formats: {what} -->"), "<!-- end -->");
    let found = text.split_once(&start).and_then(|(before, rest)| Some((before, rest.split_once(end)?)));
    let Some((before, (found, after))) = found else { panic!("{file}: {start} … {end} is missing") };
    if std::env::var_os("RAYSPIN_WRITE_DOCUMENTS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        return std::fs::write(path, [before, &start, wanted, end, after].concat()).unwrap();
    }
    assert_eq!(
        found, wanted,
        "{file}: RAYSPIN_WRITE_DOCUMENTS=1 cargo test -p rayspin-io documents writes it"
    );
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn documents_list_the_formats_of_the_table() {
    expect_written("README.md", "table", &format!("\n{}\n", documented().join("\n")));
    expect_written("../../../README.md", "images read", &named(Format::reads_images));
    expect_written("../../../README.md", "images written", &named(Format::writes_images));

    let in_ticks = |line: &str| -> BTreeSet<String> {
        line.split('`').skip(1).step_by(2).filter(|w| w.starts_with('.')).map(str::to_owned).collect()
    };
    let expect = |file: &str, start: &str, of: fn(&Format) -> bool| {
        let text = document(file);
        let line =
            text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{file}: {start}"));
        let wanted = endings(of).into_iter().map(str::to_owned).collect();
        assert_eq!(in_ticks(line), wanted, "{file}: {start}");
    };
    let readme = "../../../README.md";
    expect(readme, "| **reads** |", |f| {
        f.reads_images() || f.reads_arrays() || f.reads_scans() || f.reads_projections()
    });
    expect(readme, "| **writes** |", |f| f.writes_images() || f.writes_arrays() || f.writes_scans());
    expect("../../../docs/reading.md", "| array |", Format::reads_arrays);
}

/// Axes that a BART array came in are the axes that it is written in, also where the slices do not lie one
/// behind the other.
#[test]
fn bart_images_are_written_in_the_dimensions_of_their_layout() {
    use rayspin_io::cfl::{self, Axes, dim};
    let folder = folder();
    let path = folder.path().join("a.cfl");
    let frames = |sizes: &[(usize, usize)]| {
        let mut frames = Layout::default().frames;
        sizes.iter().for_each(|(dim, size)| frames[dim - dim::MAPS] = *size);
        frames
    };
    let mut seed = 0;
    for axes in [Axes::ReadIsX, Axes::ReadIsZ, Axes::SliceIsZ, Axes::SliceIsZOfCut] {
        for sizes in [
            &[][..],
            &[(dim::TE, 2), (dim::TIME, 3)],
            &[(dim::TIME, 2), (dim::AVG, 3)],
            &[(dim::TIME, 2), (dim::SLICE, 2), (dim::BATCH, 2)],
        ] {
            let layout = Layout { axes, frames: frames(sizes) };
            let count: usize = layout.frames.iter().product();
            seed += 1;
            let data = random(seed, &[count, 3, 4, 5]);
            let image = Image::new(data.clone(), Geometry::default()).unwrap();
            let options = WriteOptions { layout, ..WriteOptions::default() };
            if axes == Axes::SliceIsZOfCut && sizes.len() == 3 {
                // SLICE stands for READ, which is 1 in a cut across it.
                assert!(write_image(&path, &image, &options).is_err());
                continue;
            }
            write_image(&path, &image, &options).unwrap();
            let expected = layout.to_bart(data.view().insert_axis(Axis(1))).unwrap();
            assert_eq!(cfl::read(&path).unwrap(), expected, "{layout:?}");
        }
    }
}

#[test]
fn what_is_kept_of_a_bart_series_of_slices_has_fewer_repetitions() {
    use rayspin_io::cfl::{self, Axes, dim};
    let along = |sizes: &[(usize, usize)]| {
        let mut frames = Layout::default().frames;
        sizes.iter().for_each(|(dim, size)| frames[dim - dim::MAPS] = *size);
        frames
    };
    for axes in [Axes::SliceIsZ, Axes::SliceIsZOfCut] {
        for done in [1, 2, 4, 7] {
            let folder = folder();
            let path = folder.path().join("a.cfl");
            let layout = Layout { axes, frames: along(&[(dim::TIME, 7)]) };
            let data = random(done as u64, &[7, 3, 4, 5]);
            let options = WriteOptions { layout, ..WriteOptions::default() };
            let shape =
                rayspin_io::SeriesShape { frames: 7, volume: [3, 4, 5], geometry: Geometry::default() };
            let mut writer = SeriesWriter::create(&path, &shape, &options).unwrap();
            data.outer_iter().take(done).for_each(|volume| writer.push(volume).unwrap());
            let kept = writer.keep_partial().unwrap().unwrap();
            let layout = Layout { axes, frames: along(&[(dim::TIME, done)]) };
            let part = data.slice_axis(Axis(0), (..done).into());
            assert_eq!(
                cfl::read(kept).unwrap(),
                layout.to_bart(part.insert_axis(Axis(1))).unwrap(),
                "{axes:?} {done}"
            );
        }
    }
    // A part of images along two dimensions is no array.
    let folder = folder();
    let layout = Layout { axes: Axes::SliceIsZ, frames: along(&[(dim::TE, 2), (dim::TIME, 2)]) };
    let options = WriteOptions { layout, ..WriteOptions::default() };
    let shape = rayspin_io::SeriesShape { frames: 4, volume: [3, 4, 5], geometry: Geometry::default() };
    let mut writer = SeriesWriter::create(folder.path().join("a.cfl"), &shape, &options).unwrap();
    writer.push(ndarray::ArrayD::<C32>::zeros(IxDyn(&[3, 4, 5])).view()).unwrap();
    assert!(writer.keep_partial().is_err());
}
