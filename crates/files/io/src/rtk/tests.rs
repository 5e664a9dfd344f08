use super::*;

/// Files that RTK 2.7 wrote.
const WRITTEN: [(&str, &str); 3] = [
    ("poses", include_str!("written_by_rtk/poses.xml")),
    ("curved", include_str!("written_by_rtk/curved.xml")),
    ("parallel", include_str!("written_by_rtk/parallel.xml")),
];

fn parsed(text: &str) -> Result<RtkGeometry> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("geometry.xml");
    std::fs::write(&file, text).unwrap();
    read(&file)
}

#[test]
fn files_of_rtk_are_read_and_round_trip() {
    // The reader compares RTK's matrix with ours.
    let found: Vec<RtkGeometry> = WRITTEN.iter().map(|(_, text)| parsed(text).unwrap()).collect();
    let [poses, curved, parallel] = &found[..] else { panic!("three files") };
    assert_eq!((poses.projections.len(), poses.radius_mm), (4, None));
    let last = poses.projections[3];
    assert!(
        (last.gantry.to_degrees() - 200.5).abs() < 1e-12
            && (last.out_of_plane.to_degrees() - 357.0).abs() < 1e-12
    );
    assert_eq!((last.source_offset_mm, last.projection_offset_mm), ([3.0, 1.0], [3.0, -6.0]));
    assert_eq!((curved.projections.len(), curved.radius_mm), (3, Some(1200.0)));
    // Stated once, before the projections.
    assert!(
        curved
            .projections
            .iter()
            .all(|p| p.source_to_detector_mm == 1200.0 && p.projection_offset_mm == [10.0, 0.0])
    );
    assert!(
        parallel
            .projections
            .iter()
            .all(|p| p.source_to_detector_mm == 0.0 && p.source_to_isocenter_mm == 650.0)
    );
    for geometry in &found {
        let back = parsed(&xml(geometry)).unwrap();
        assert_eq!(back.radius_mm, geometry.radius_mm);
        for (a, b) in back.projections.iter().zip(&geometry.projections) {
            assert!((a.gantry - b.gantry).abs() < 1e-12 && (a.in_plane - b.in_plane).abs() < 1e-12);
            assert_eq!(a.source_offset_mm, b.source_offset_mm);
        }
    }
}

#[test]
fn parameters_stay_until_they_change() {
    let view = |inner: &str| format!("<Projection><GantryAngle>1</GantryAngle>{inner}</Projection>");
    let text = format!("<{ROOT}>{}{}</{ROOT}>", view("<ProjectionOffsetX>4</ProjectionOffsetX>"), view(""));
    assert_eq!(parsed(&text).unwrap().projections[1].projection_offset_mm, [4.0, 0.0]);
}

#[test]
fn what_is_no_geometry_is_named() {
    let good = WRITTEN[0].1;
    for (text, message) in [
        ("", "cut short"),
        ("no XML", "cut short"),
        ("<other/><other></other>", "XML with other"),
        (&good.replace("<GantryAngle>30</GantryAngle>", ""), "GantryAngle of projection 1"),
        (&good.replace(">1220<", ">far<"), "SourceToDetectorDistance of projection 1"),
        (&good.replace(">1220<", ">NaN<"), "SourceToDetectorDistance of projection 1"),
        (&good.replace(">1220<", ">1221<"), "Matrix of projection 1"),
        (&good.replace("3820", ""), "Matrix of projection 1"),
        (&format!("<{ROOT}></{ROOT}>"), "at least one projection"),
    ] {
        let text = parsed(text).unwrap_err().to_string();
        assert!(text.contains("geometry.xml") && text.contains(message), "{text} has no {message}");
    }
    for len in (0..good.len() - 2).step_by(7).filter(|len| good.is_char_boundary(*len)) {
        assert!(parsed(&good[..len]).is_err(), "{len}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.xml"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(read(folder.path().join("x.xml")).is_err() && read(folder.path().join("absent.xml")).is_err());
}
