#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// Whole blocks: beyond the edge of others a displaced frame goes on otherwise than its reference.
const SHAPE: [usize; 2] = [52, 72];

fn array(device: &Device, values: &[u8]) -> Array<u8> {
    Array::from_slice(device, &SHAPE, values).unwrap()
}

fn encoded(device: &Device, current: &Array<u8>, reference: &Array<u8>, qp: u32) -> Coded {
    let mut coded = Coded::new(device, SHAPE).unwrap();
    encode(current, reference, 5, qp, &mut coded).unwrap();
    coded
}

#[test]
fn a_displaced_frame_is_predicted_without_a_residual() {
    for device in rayspin_emu::devices().unwrap() {
        let before = scene(device.cpu_side(), SHAPE, 0, 3).unwrap();
        let p = Problem { height: SHAPE[0], width: SHAPE[1], radius: 5, qp: 30 };
        let moved = |v: isize, u: isize| -> Vec<u8> {
            let place = |at: usize| ((at / p.width) as isize, (at % p.width) as isize);
            (0..before.len()).map(|at| pixel(&before, &p, place(at).0 + v, place(at).1 + u)).collect()
        };
        for [v, u] in [[0, 0], [-5, 3], [2, -4], [5, 5]] {
            let now = moved(v, u);
            let coded = encoded(&device, &array(&device, &now), &array(&device, &before), 30);
            assert!(coded.levels.to_vec().unwrap().iter().all(|level| *level == 0));
            assert_eq!(coded.reconstruction.to_vec().unwrap(), now);
            // Macroblocks in the middle see no edge.
            assert_eq!(coded.vectors.to_vec().unwrap()[6], [v as i16, u as i16]);
        }
        // Where sums are equal the shortest displacement counts.
        let flat = array(&device, &vec![90; SHAPE[0] * SHAPE[1]]);
        assert!(encoded(&device, &flat, &flat, 51).vectors.to_vec().unwrap().iter().all(|v| *v == [0, 0]));
    }
}

#[test]
fn of_finer_steps_the_picture_is_better_and_longer() {
    for device in rayspin_emu::devices().unwrap() {
        let frame = |t| scene(device.cpu_side(), SHAPE, t, 9).unwrap();
        let [before, now] = [0, 1].map(|t| array(&device, &frame(t)));
        let of = |qp| {
            let coded = encoded(&device, &now, &before, qp);
            let made = coded.reconstruction.to_vec().unwrap();
            let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
            let mean = made.iter().zip(&frame(1)).map(square).sum::<f64>() / made.len() as f64;
            (10.0 * (255.0 * 255.0 / mean).log10(), coded.bits.to_vec().unwrap().iter().sum::<u32>())
        };
        let all = [45, 36, 28, 20, 12, 4].map(of);
        assert!(all.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{all:?}");
        // The step of QP 4 is 1: an error of at most about half a step, 54 dB or more where it is uniform.
        assert!(all[5].0 > 50.0 && all[0].0 > 20.0, "{all:?}");
    }
}

/// A reconstruction is the reference of the next frame, on every device the same one.
#[test]
fn frames_follow_each_other_the_same_way_everywhere() {
    let chain = |device: &Device| {
        let mut reference = array(device, &scene(device.cpu_side(), SHAPE, 0, 4).unwrap());
        for t in 1..5 {
            let now = array(device, &scene(device.cpu_side(), SHAPE, t, 4).unwrap());
            reference = encoded(device, &now, &reference, 32).reconstruction;
        }
        reference.to_vec().unwrap()
    };
    let devices = rayspin_emu::devices().unwrap();
    let last = chain(&devices[0]);
    assert!(devices.iter().all(|device| chain(device) == last));
    // Errors do not add up: the last frame is as near to its original as a frame of QP 32 is.
    let now = scene(devices[0].cpu_side(), SHAPE, 4, 4).unwrap();
    let square: f64 = last.iter().zip(&now).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
    assert!(square / (now.len() as f64) < 60.0, "{}", square / now.len() as f64);
}

#[test]
fn bad_arguments_are_refused() {
    for device in rayspin_emu::devices().unwrap() {
        let frame = array(&device, &vec![0; SHAPE[0] * SHAPE[1]]);
        let mut coded = Coded::new(&device, SHAPE).unwrap();
        let mut of = |other: &Array<u8>, radius, qp| encode(&frame, other, radius, qp, &mut coded);
        of(&frame, 64, 51).unwrap();
        assert!(of(&frame, 65, 51).is_err() && of(&frame, usize::MAX, 0).is_err());
        assert!(of(&frame, 1, 52).is_err());
        assert!(of(&Array::zeros(&device, &[SHAPE[1], SHAPE[0]]).unwrap(), 1, 1).is_err());
        let mut other = Coded::new(&device, [SHAPE[1], SHAPE[0]]).unwrap();
        assert!(encode(&frame, &frame, 1, 1, &mut other).is_err());
        assert!(Coded::new(&device, [0, 4]).is_err() && Coded::new(&device, [4, MOST_SIDE + 1]).is_err());
    }
}
