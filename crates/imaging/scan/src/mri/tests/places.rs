//! Where images lie and how large their voxels are.

use rayspin_core::C32;

use super::{encoding, grid, only_frame, readout, scan};
use crate::mri::{Encoding, Limits, Samples};

/// Encoded along z with a field of view of another proportion than the matrix.
fn slab(encoded: (usize, f64), recon: (usize, f64)) -> Encoding {
    let mut encoding = encoding([8, 4, encoded.0], [8, 4, recon.0]);
    (encoding.encoded.fov_mm[2], encoding.recon.fov_mm[2]) = (encoded.1, recon.1);
    encoding
}

#[test]
fn voxels_have_the_size_of_the_grid() {
    // 9 of 10 partitions would be 11.7 voxels of the header's 4 mm.
    for (encoded, recon, size, said) in [
        ((10, 46.8), (9, 36.0), 46.8 / 12.0, true),
        ((10, 50.0), (8, 40.0), 5.0, false),
        ((12, 60.01), (8, 40.0), 5.0, false),
        ((7, 35.0), (11, 40.0), 35.0 / 10.0, true),
    ] {
        let encoding = slab(encoded, recon);
        let lines: Vec<_> = (0..encoded.0 as u16)
            .map(|z| {
                let mut line = readout(8, 1, 1);
                line.counters.step_2 = z;
                line
            })
            .collect();
        let (frame, notes) = only_frame(&scan(encoding, lines)).unwrap();
        assert_eq!((frame.matrix[0], frame.geometry.spacing_mm[2]), (recon.0, size));
        assert_eq!(notes.len(), usize::from(said), "{notes:?}");
        let depth = grid(&frame).0.shape()[1];
        assert!((encoded.1 / depth as f64 - size).abs() < 2e-3);
    }
}

#[test]
fn a_single_partition_is_a_slice() {
    for limits in [None, Some(Limits { minimum: 1, maximum: 1, centre: 1 })] {
        let mut encoding = slab((2, 12.0), (1, 6.0));
        encoding.step_2 = limits;
        let lines: Vec<_> = (0..4)
            .map(|y| {
                let mut line = readout(8, y, 2);
                line.counters.step_2 = 1;
                line
            })
            .collect();
        let (frame, notes) = only_frame(&scan(encoding.clone(), lines.clone())).unwrap();
        let (kspace, sampled) = grid(&frame);
        assert_eq!((kspace.shape(), &frame.matrix[..]), (&[2, 4, 8][..], &[4, 8][..]));
        assert!(sampled.iter().all(|&known| known) && notes.len() == 1, "{notes:?}");
        assert_eq!((kspace[[1, 3, 7]], frame.geometry.spacing_mm[2]), (C32::new(3007.0, 1.0), 6.0));
        let spokes = lines.into_iter().map(|mut line| {
            let point = |(s, d): (usize, usize)| if d == 0 { s as f32 - 4.0 } else { 0.0 };
            line.trajectory = Some(ndarray::Array2::from_shape_fn((8, 2), point).into_shared());
            line
        });
        let (frame, _) = only_frame(&scan(encoding, spokes.collect())).unwrap();
        assert!(matches!(frame.samples, Samples::NonCartesian { trajectory, .. } if trajectory.dims() == 2));
    }
    // Where two were encoded and one is there, the grid keeps two.
    let (frame, _) = only_frame(&scan(slab((2, 12.0), (1, 6.0)), vec![readout(8, 1, 1)])).unwrap();
    assert_eq!(grid(&frame).0.shape(), [1, 2, 4, 8]);
}
