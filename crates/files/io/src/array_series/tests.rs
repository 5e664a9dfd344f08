use ndarray::IxDyn;
use rayspin_core::Monitor;
use rayspin_scan::mri::Samples;

use super::*;
use crate::{ScanFile, cfl, read_scan};

/// Two slices of four repetitions, five of seven lines each, a number for each place and image.
fn lines() -> ArrayD<C32> {
    ArrayD::from_shape_fn(IxDyn(&[6, 7, 1, 2, 1, 1, 1, 1, 1, 1, 4, 1, 1, 2]), |i| {
        let measured = (i[1] + i[10]) % 7 < 5;
        let value = (i[0] + 10 * i[1] + 100 * i[3]) as f32 + 0.25 * i[10] as f32;
        if measured { C32::new(1.0 + value, i[13] as f32) } else { C32::ZERO }
    })
}

fn opened(array: &ArrayD<C32>, options: &ScanOptions, folder: &Path) -> ArraySeries {
    let path = folder.join("a.cfl");
    cfl::write(&path, array.view()).unwrap();
    match read_scan(&path, options, &Monitor::silent()).unwrap() {
        ScanFile::Series(series) => *series,
        other => panic!("expected a series, found {other:?}"),
    }
}

#[test]
fn an_image_is_read_from_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let array = lines();
    let series = opened(&array, &ScanOptions::default(), folder.path());
    assert_eq!(series.labels().count(), 8);
    for label in series.labels() {
        let frame = series.frame(label, &mut Vec::new()).unwrap();
        let (time, slice) = (usize::from(label.repetition), usize::from(label.slice));
        let Samples::Cartesian { kspace, sampled } = frame.samples else { panic!("expected a grid") };
        assert_eq!((kspace.shape(), frame.matrix), (&[2, 7, 6][..], vec![7, 6]));
        for ((coil, y, x), value) in kspace.into_dimensionality::<ndarray::Ix3>().unwrap().indexed_iter() {
            assert_eq!(*value, array[[x, y, 0, coil, 0, 0, 0, 0, 0, 0, time, 0, 0, slice]]);
            assert_eq!(sampled[[y, x]], *value != C32::ZERO);
        }
    }
    let unknown = Label { repetition: 4, ..Label::default() };
    assert!(series.frame(unknown, &mut Vec::new()).is_err());
}

#[test]
fn every_counter_of_labels_has_its_dimension() {
    let folder = tempfile::tempdir().unwrap();
    let shape = [4, 3, 1, 1, 1, 2, 1, 1, 1, 1, 2, 2, 1, 2, 1, 3];
    let array = ArrayD::from_shape_fn(IxDyn(&shape), |i| {
        let [te, time, time2, slice, batch] = [5, 10, 11, 13, 15].map(|dimension| i[dimension]);
        C32::new(1.0 + i[0] as f32, (te + 10 * time + 100 * time2 + 1000 * slice + 10_000 * batch) as f32)
    });
    let series = opened(&array, &ScanOptions::default(), folder.path());
    let labels: Vec<Label> = series.labels().collect();
    assert_eq!(labels.len(), 48);
    assert!(labels.is_sorted());
    for label in labels {
        let Samples::Cartesian { kspace, .. } = series.frame(label, &mut Vec::new()).unwrap().samples else {
            panic!("expected a grid")
        };
        let Label { contrast, repetition, phase, slice, set, .. } = label;
        let numbers = [contrast, repetition, phase, slice, set].map(f32::from);
        let wanted = numbers.iter().rev().fold(0.0, |sum, number| 10.0 * sum + number);
        assert!(kspace.iter().all(|value| value.im == wanted), "{label:?}");
    }
    assert!(series.frame(Label { set: 3, ..Label::default() }, &mut Vec::new()).is_err());
}

#[test]
fn maps_are_learned_from_the_mean_of_the_first_lines() {
    let folder = tempfile::tempdir().unwrap();
    let series = opened(&lines(), &ScanOptions::default(), folder.path());
    let labels: Vec<Label> = series.labels().collect();
    let mut source = ArraySource::new(series, labels);
    assert_eq!((source.volumes(), source.slices()), (4, 2));
    let frame = source.learn_maps(&mut Vec::new()).unwrap().unwrap().clone();
    let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
    // 1.5 times 42 places are 11 lines: five of each of the first two repetitions, and one of the third.
    for y in 0..7usize {
        let whole = [0, 1].into_iter().filter(|time| (y + time) % 7 < 5);
        let times: Vec<usize> = whole.chain((y == 0).then_some(2)).collect();
        let mean = times.iter().sum::<usize>() as f32 * 0.25 / times.len() as f32;
        for x in 0..6 {
            let wanted = C32::new(1.0 + (x + 10 * y) as f32 + mean, 0.0);
            let wanted = if times.is_empty() { C32::ZERO } else { wanted };
            assert!((kspace[[0, y, x]] - wanted).norm() < 1e-5, "{y} {x}: {}", kspace[[0, y, x]]);
        }
    }
    // Maps of both slices, then the images in order.
    let mut order = Vec::new();
    while let Some(item) = source.next(&mut Vec::new()).unwrap() {
        order.push(match item {
            StreamItem::Maps(label, frame) => {
                assert_eq!(frame.label, label);
                ("maps", label.repetition, label.slice)
            }
            StreamItem::Image(label, _) => ("image", label.repetition, label.slice),
        });
    }
    assert_eq!(order[..3], [("maps", 0, 0), ("maps", 0, 1), ("image", 0, 0)]);
    assert_eq!((order.len(), order[9]), (10, ("image", 3, 1)));
}

#[test]
fn maps_are_learned_from_the_first_spokes() {
    let folder = tempfile::tempdir().unwrap();
    // Four repetitions of two spokes with nine samples; the value tells the repetition and the spoke.
    let samples = ArrayD::from_shape_fn(IxDyn(&[1, 9, 2, 3, 1, 1, 1, 1, 1, 1, 4]), |i| {
        C32::new(1.0 + i[10] as f32 + 10.0 * i[2] as f32, i[3] as f32)
    });
    let points = ArrayD::from_shape_fn(IxDyn(&[3, 9, 2, 1, 1, 1, 1, 1, 1, 1, 4]), |i| {
        let angle = (i[2] + 2 * i[10]) as f32 * 1.9;
        let k = i[1] as f32 - 4.0;
        C32::new([k * angle.cos(), k * angle.sin(), 0.0][i[0]], 0.0)
    });
    let trajectory = folder.path().join("t.cfl");
    cfl::write(&trajectory, points.view()).unwrap();
    let units = Some(rayspin_core::TrajectoryUnits::CyclesPerFov);
    let matrix = Some(vec![8, 8]);
    let options = ScanOptions { trajectory: Some(trajectory), units, matrix, ..ScanOptions::default() };
    let series = opened(&samples, &options, folder.path());
    let labels: Vec<Label> = series.labels().collect();
    let last = series.frame(labels[3], &mut Vec::new()).unwrap();
    let Samples::NonCartesian { trajectory, data } = last.samples else { panic!("expected points") };
    assert_eq!(
        (data[[2, 10]], trajectory.points()[[10, 0]] as f32),
        (samples[[0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 3]], points[[0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3]].re)
    );
    // 96 samples are wanted; there are 72.
    let mut source = ArraySource::new(series.clone(), labels.clone());
    let frame = source.learn_maps(&mut Vec::new()).unwrap().unwrap().clone();
    assert_eq!(frame.coils(), 3);
    let joined = series.joined(&labels, 40, &mut Vec::new()).unwrap();
    let Samples::NonCartesian { data, .. } = joined.samples else { panic!("expected points") };
    let firsts: Vec<f32> = data.row(0).iter().step_by(9).map(|v| v.re).collect();
    assert_eq!(firsts, [1.0, 11.0, 2.0, 12.0, 3.0]);
}

#[test]
fn headers_that_promise_images_without_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cfl");
    cfl::write(&path, lines().view()).unwrap();
    for (dims, word) in [
        ("1 1 1 1 1 65536 1 1 1 1 65536 65536 1 65536 1 1", "address space"),
        ("6 7 1 2 1 1 1 1 1 1 5 1 1 2", "cut short"),
        ("6 7 1 2 1 1 1 1 1 1 3 1 1 2", "file size"),
        ("1 1 1 1 1 65537", "TE (dimension 5)"),
        ("1 1 1 1 1 1 1 1 1 1 1 1 1344", "LEVEL (dimension 12)"),
    ] {
        std::fs::write(path.with_extension("hdr"), format!("# Dimensions\n{dims}\n")).unwrap();
        let error = read_scan(&path, &ScanOptions::default(), &Monitor::silent()).unwrap_err().to_string();
        assert!(error.contains(word), "{dims}: {error}");
    }
    // More images than labels are kept for; the numbers are a hole in the file.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(8 << 25).unwrap();
    std::fs::write(path.with_extension("hdr"), "# Dimensions\n1 1 1 1 1 32768 1 1 1 1 1024\n").unwrap();
    let error = read_scan(&path, &ScanOptions::default(), &Monitor::silent()).unwrap_err().to_string();
    assert!(error.contains("number of images"), "{error}");
}
