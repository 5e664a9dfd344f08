//! A small P-file, written by hand for tests of damaged files and fuzzers.

use super::header::DATA;
use crate::format::Sample;

/// What the header of a small file states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Small {
    pub(super) coils: u16,
    pub(super) slices: u16,
    pub(super) echoes: u16,
    pub(super) frames: u16,
    pub(super) samples: u16,
    /// Bytes of a number.
    pub(super) bytes: u16,
}

impl Small {
    pub(super) const PLAIN: Self = Self { coils: 2, slices: 2, echoes: 1, frames: 4, samples: 6, bytes: 2 };

    /// The sample of a view, which counts the baseline as 0.
    pub(super) fn sample(coil: u16, slice: u16, echo: u16, view: u16, sample: u16) -> [i16; 2] {
        let number = (((coil * 7 + slice) * 5 + echo) * 11 + view) * 13 + sample;
        [(number % 1999) as i16 - 900, (number % 101) as i16]
    }

    pub(super) fn file(&self) -> Vec<u8> {
        let mut file = vec![0; DATA as usize];
        let mut put = |place: usize, bytes: &[u8]| file[place..place + bytes.len()].copy_from_slice(bytes);
        put(0, &9f32.to_le_bytes());
        put(34, b"GE_MED_NMR");
        for (place, word) in [
            (64, 1),
            (68, self.slices),
            (70, self.echoes),
            (74, self.frames),
            (80, self.samples),
            (82, self.bytes),
            (102, self.samples),
            (104, self.frames + 1),
            (200, 0),
            (202, self.coils - 1),
        ] {
            put(place, &word.to_le_bytes());
        }
        let image = DATA as usize - 1536;
        for (place, number) in [
            (28, 5.0f32),
            (36, 240.0),
            (44, self.samples.into()),
            (48, self.frames.into()),
            (160, 120.0),
            (164, 110.0),
            (168, 30.0),
            (172, -120.0),
            (176, 110.0),
            (180, 30.0),
            (184, -120.0),
            (188, -130.0),
            (192, 30.0),
        ] {
            put(image + place, &number.to_le_bytes());
        }
        for coil in 0..self.coils {
            for slice in 0..self.slices {
                for echo in 0..self.echoes {
                    for view in 0..=self.frames {
                        for sample in 0..self.samples {
                            for part in Self::sample(coil, slice, echo, view, sample) {
                                match self.bytes {
                                    2 => file.extend(part.to_le_bytes()),
                                    _ => file.extend(i32::from(part).to_le_bytes()),
                                }
                            }
                        }
                    }
                }
            }
        }
        file
    }
}

pub(crate) fn samples() -> Vec<Sample> {
    vec![vec![("P00001.7", Small::PLAIN.file())]]
}
