//! The blocks of a measurement: readouts, physiology, and the end.
//!
//! A block begins with a head, a measurement data header (MDH). VB writes 128 bytes before the samples of
//! each coil. VD and later write 192 bytes before all coils, and 32 before each. Fields have the same meaning
//! and other places. The length of a block follows from its numbers of coils and samples; only blocks of
//! physiology state it, in the low 25 bits of their first number.

use rayspin_scan::mri::{Counters, Flags};

use super::file::{Generation, word};

/// Coils of a readout at most.
const MOST_COILS: u16 = 1024;

/// Bits of the evaluation mask.
pub(super) mod bit {
    pub(in crate::twix) const END: u32 = 0;
    pub(in crate::twix) const FEEDBACK: u32 = 1;
    pub(in crate::twix) const FAST_FEEDBACK: u32 = 2;
    pub(in crate::twix) const PHYSIOLOGY: u32 = 5;
    pub(in crate::twix) const RAW_DATA_CORRECTION: u32 = 10;
    pub(in crate::twix) const LAST_IN_MEASUREMENT: u32 = 11;
    pub(in crate::twix) const PHASE_STABILISATION_REFERENCE: u32 = 14;
    pub(in crate::twix) const PHASE_STABILISATION: u32 = 15;
    pub(in crate::twix) const PHASE_CORRECTION: u32 = 21;
    pub(in crate::twix) const CALIBRATION: u32 = 22;
    pub(in crate::twix) const CALIBRATION_AND_IMAGE: u32 = 23;
    pub(in crate::twix) const REFLECTED: u32 = 24;
    pub(in crate::twix) const NOISE: u32 = 25;
    pub(in crate::twix) const FIRST_IN_SLICE: u32 = 28;
    pub(in crate::twix) const LAST_IN_SLICE: u32 = 29;
    pub(in crate::twix) const NORMALISATION: u32 = 35;
    pub(in crate::twix) const SINGLE_BAND_REFERENCE: u32 = 38;
    pub(in crate::twix) const MULTI_BAND_PHASE_CORRECTION: u32 = 39;
    pub(in crate::twix) const NAVIGATOR: u32 = 44;
    pub(in crate::twix) const RETRO_DUMMY: u32 = 51;
    pub(in crate::twix) const SKIP_REGRIDDING: u32 = 55;
    pub(in crate::twix) const NO_IMAGE: u32 = 60;
}

/// The flag of each bit of a head's mask. The mask states the purpose of the readout.
const FLAGS: [(u32, Flags); 19] = [
    (bit::FEEDBACK, Flags::RT_FEEDBACK),
    (bit::FAST_FEEDBACK, Flags::HP_FEEDBACK),
    (bit::LAST_IN_MEASUREMENT, Flags::LAST_IN_MEASUREMENT),
    (bit::PHASE_STABILISATION_REFERENCE, Flags::PHASE_STABILISATION_REFERENCE),
    (bit::PHASE_STABILISATION, Flags::PHASE_STABILISATION),
    (bit::PHASE_CORRECTION, Flags::PHASE_CORRECTION),
    (bit::CALIBRATION, Flags::CALIBRATION),
    (bit::CALIBRATION_AND_IMAGE, Flags::CALIBRATION_AND_IMAGING),
    (bit::REFLECTED, Flags::REVERSE),
    (bit::NOISE, Flags::NOISE),
    (bit::FIRST_IN_SLICE, Flags::FIRST_IN_SLICE),
    (bit::LAST_IN_SLICE, Flags::LAST_IN_SLICE),
    (bit::NORMALISATION, Flags::SURFACE_COIL_CORRECTION),
    (bit::SINGLE_BAND_REFERENCE, Flags::CALIBRATION),
    (bit::MULTI_BAND_PHASE_CORRECTION, Flags::PHASE_CORRECTION),
    (bit::NAVIGATOR, Flags::NAVIGATION),
    (bit::RETRO_DUMMY, Flags::DUMMY),
    (bit::SKIP_REGRIDDING, Flags::EVENLY_SAMPLED),
    (bit::NO_IMAGE, Flags::DUMMY),
];

/// The head of a readout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block {
    /// The place of the first coil's head or, in VB, of the block.
    pub(super) place: u64,
    pub(super) mask: u64,
    /// What the readout is for, by its mask.
    pub(super) flags: Flags,
    pub(super) samples: u16,
    pub(super) coils: u16,
    pub(super) counters: Counters,
    pub(super) discard: [u16; 2],
    pub(super) centre_sample: u16,
    pub(super) centre_line: u16,
    pub(super) centre_partition: u16,
    pub(super) time_stamp: u32,
    pub(super) position: [f32; 3],
    /// Scalar first.
    pub(super) quaternion: [f32; 4],
}

impl Block {
    pub(super) fn has(&self, bit: u32) -> bool {
        self.mask >> bit & 1 == 1
    }

    /// Whether the head states a position. Zeros everywhere state no place.
    pub(super) fn states_position(&self) -> bool {
        let stated = self.position.iter().chain(&self.quaternion).any(|part| *part != 0.0);
        stated && self.position.iter().all(|part| part.is_finite())
    }

    /// Bytes of the samples of all coils, with the heads of the coils.
    pub(super) fn length(&self, generation: Generation) -> u64 {
        u64::from(self.coils) * generation.coil_length(self.samples)
    }

    /// Numbers of all coils.
    pub(super) fn count(&self) -> usize {
        usize::from(self.coils) * usize::from(self.samples)
    }
}

/// What a readout with this mask is for.
fn flags(mask: u64) -> Flags {
    let has = |bit: u32| mask >> bit & 1 == 1;
    let mut flags = FLAGS
        .iter()
        .filter(|(bit, _)| has(*bit))
        .fold(Flags::default(), |flags, (_, flag)| flags.with(*flag));
    // Echo-planar references are feedback to the scanner, too; other feedback is a navigator.
    if has(bit::FEEDBACK) && !flags.contains(Flags::PHASE_CORRECTION) {
        flags = flags.with(Flags::NAVIGATION);
    }
    // Lines of the image that calibrate it have both bits. A reference of one band is no line of the
    // image.
    if flags.contains(Flags::CALIBRATION_AND_IMAGING) {
        let other = match has(bit::SINGLE_BAND_REFERENCE) {
            true => Flags::CALIBRATION_AND_IMAGING,
            false => Flags::CALIBRATION,
        };
        flags = Flags(flags.0 & !other.0);
    }
    flags
}

impl Generation {
    /// Bytes of the head of a block.
    pub(super) fn head(self) -> u64 {
        match self {
            Self::Vb => 128,
            Self::Vd => 192,
        }
    }

    /// Bytes of the head of a coil.
    pub(super) fn coil_head(self) -> u64 {
        match self {
            Self::Vb => 128,
            Self::Vd => 32,
        }
    }

    /// Bytes of a coil: its head and its samples.
    pub(super) fn coil_length(self, samples: u16) -> u64 {
        self.coil_head() + 8 * u64::from(samples)
    }

    /// Bytes between the start of a block and the head of its first coil.
    pub(super) fn before_coils(self) -> u64 {
        match self {
            Self::Vb => 0,
            Self::Vd => 192,
        }
    }
}

/// What the head of a block says.
pub(super) enum Head {
    /// The measurement ends.
    End,
    /// Physiology of this length.
    Physiology(u64),
    Readout(Block),
    /// No block begins there.
    Impossible(&'static str),
}

/// Two bytes as a number. Places are constants within a head.
fn short(head: &[u8], place: usize) -> u16 {
    head.get(place..).and_then(|rest| rest.first_chunk::<2>()).map_or(0, |two| u16::from_le_bytes(*two))
}

/// Reads the head of the block that begins at `place`.
pub(super) fn read_head(head: &[u8], place: u64, generation: Generation) -> Head {
    // Where the fields of the two generations stand: mask, numbers, slice, and the last times.
    let (mask, numbers, slice) = match generation {
        Generation::Vb => (20, 28, 96),
        Generation::Vd => (40, 48, 100),
    };
    let whole = |place: usize| word(head, place).unwrap_or(0);
    let float = |place: usize| f32::from_bits(whole(place));
    let mask = u64::from(whole(mask)) | u64::from(whole(mask + 4)) << 32;
    let stated = u64::from(whole(0) & 0x1ff_ffff);
    let has = |bit: u32| mask >> bit & 1 == 1;
    if has(bit::END) {
        return Head::End;
    }
    if has(bit::PHYSIOLOGY) {
        return match stated {
            length if length >= generation.head() => Head::Physiology(length),
            _ => Head::Impossible("physiology shorter than its head"),
        };
    }
    let (samples, coils) = (short(head, numbers), short(head, numbers + 2));
    if samples == 0 || coils == 0 {
        return Head::Impossible(if stated == 0 { "only zeros" } else { "a readout without samples" });
    }
    if coils > MOST_COILS {
        return Head::Impossible("more coils than a scanner has");
    }
    // Line, average, slice, partition, echo, phase, repetition, set, segment, and five for sequences.
    let counter = |index: usize| short(head, numbers + 4 + 2 * index);
    let behind = numbers + 4 + 28;
    // The readout's place and the time since its pulse lie between.
    let centres = behind + 16;
    Head::Readout(Block {
        place: place + generation.before_coils(),
        mask,
        flags: flags(mask),
        samples,
        coils,
        counters: Counters {
            step_1: counter(0),
            average: counter(1),
            slice: counter(2),
            step_2: counter(3),
            contrast: counter(4),
            phase: counter(5),
            repetition: counter(6),
            set: counter(7),
            segment: counter(8),
        },
        discard: [short(head, behind), short(head, behind + 2)],
        centre_sample: short(head, behind + 4),
        centre_line: short(head, centres),
        centre_partition: short(head, centres + 2),
        time_stamp: whole(12),
        position: [0, 4, 8].map(|step| float(slice + step)),
        quaternion: [12, 16, 20, 24].map(|step| float(slice + step)),
    })
}
