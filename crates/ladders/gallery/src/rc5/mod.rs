//! Search of an RC5 key: the key schedule and one block of RC5-32/12/9 for consecutive keys.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, Peak, PublishedApplication, Row, Signature, Unit, input, tuned,
};

/// Words of a key's schedule: two before the first round, and two in each of 12 rounds.
pub const WORDS: usize = 26;
/// Keys of a search, at most.
pub const MOST_KEYS: usize = (1 << 31) - 1;

/// Which keys to try on which block.
///
/// A key's nine bytes are a number, the first byte the highest; keys follow each other as these numbers do.
/// So they differ in the last byte, which is a word of its own to the cipher, 256 times before another word
/// changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// The first key: its bytes 0 to 3 as a number.
    pub upper: u32,
    /// Its bytes 4 to 8, 40 bits.
    pub lower: u64,
    /// How many keys.
    pub keys: usize,
    /// The block before, and after encryption.
    pub plain: [u32; 2],
    /// The block after encryption.
    pub cipher: [u32; 2],
    /// How many bits of the first word must agree for a key to be a candidate: 32 when only the key is of
    /// interest, fewer to see that all keys were tried.
    pub bits: u32,
}

impl Search {
    fn mask(&self) -> u32 {
        ((1u64 << self.bits) - 1) as u32
    }

    /// Bytes 0 to 3, and bytes 4 to 8, of key `index`.
    #[inline(always)]
    fn number(&self, index: u32) -> (u32, u64) {
        let lower = self.lower + u64::from(index);
        (self.upper.wrapping_add((lower >> 40) as u32), lower & ((1 << 40) - 1))
    }

    /// Key `index`.
    pub fn key(&self, index: u32) -> [u8; 9] {
        let (upper, lower) = self.number(index);
        let mut key = [0; 9];
        key[..4].copy_from_slice(&upper.to_be_bytes());
        key[4..].copy_from_slice(&lower.to_be_bytes()[3..]);
        key
    }

    /// Key `index` as three words of 32 bits, as the cipher reads it.
    #[inline(always)]
    fn words(&self, index: u32) -> [u32; 3] {
        let (upper, lower) = self.number(index);
        [upper.swap_bytes(), ((lower >> 8) as u32).swap_bytes(), lower as u32 & 255]
    }

    /// Places for candidates: twice as many as random keys give, and some more. The first holds their number.
    pub fn room(&self) -> usize {
        2 * (self.keys >> self.bits) + 256
    }

    fn check(&self) -> Result<()> {
        if !(1..=MOST_KEYS).contains(&self.keys) {
            return Err(Error::value("keys of a search", format!("1 to {MOST_KEYS}"), self.keys));
        }
        if self.bits > 32 {
            return Err(Error::value("bits of a candidate", "at most 32", self.bits));
        }
        if self.lower >> 40 != 0 {
            return Err(Error::value("lower part of a key", "40 bits", self.lower));
        }
        Ok(())
    }
}

/// The key of a search, where it is among the keys: which one.
///
/// Errors: a search of no keys or of more than [`MOST_KEYS`], memory, errors of the device.
pub fn find(search: &Search, device: &Device) -> Result<Option<u32>> {
    let search = Search { bits: 32, ..*search };
    search.check()?;
    let mut list = Array::zeros(device, &[search.room()])?;
    match device.backend() {
        Backend::Cpu(cpu) => cpu::threads(cpu, &search, list.cpu_mut()),
        Backend::Cuda(_) => {
            let problem = Problem { keys: search.keys };
            let config = tuned(&Rc5, &problem, &variants::gpu_several(), device);
            cuda::several(&config, &search, &mut list)?;
        }
    }
    let list = list.read()?;
    let candidates = &list[1..][..(list[0] as usize).min(list.len() - 1)];
    let is = |&&index: &&u32| {
        reference::encrypt(&reference::schedule(&search.key(index)), search.plain) == search.cipher
    };
    Ok(candidates.iter().find(is).copied())
}

/// How many keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Keys to try.
    pub keys: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.keys)
    }
}

/// A search and its candidates.
pub struct Data {
    search: Search,
    /// The number of candidates, then the candidates in any order.
    list: Array<u32>,
    /// Which key the ciphertext was made with.
    secret: u32,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Rc5;

/// Searches of more keys are checked in windows.
const WHOLE: usize = 1 << 18;
/// Keys of a window, and windows.
const WINDOW: usize = 1 << 12;
const WINDOWS: usize = 1 << 6;

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let device = data.list.device().clone();
    data.list.fill(0)?;
    call(&device, &mut cuda::arguments(&data.search, &mut data.list)?)
}

/// Declaration of a user's own kernel.
const OWN: &str = "\
// A search of keys of RC5-32/12/9. Key i < keys has nine bytes: with t = lower + i, bytes 0 to 3 are the
// number upper + (t >> 40), bytes 4 to 8 the low 40 bits of t, the highest byte first. The cipher reads them
// as words with the lowest byte first: l[0] of bytes 0 to 3, l[1] of bytes 4 to 7, l[2] is byte 8.
// The schedule begins as s[j] = 0xb7e15163 + 0x9e3779b9 * j for j < 26, and a = b = 0. For each step from 0
// to 77, with j = step % 26 and k = step % 3: a = s[j] = (s[j] + a + b) rotated left by 3, then
// b = l[k] = (l[k] + a + b) rotated left by a + b, with the new a. Numbers of 32 bits wrap round, and
// rotations count modulo 32.
// The block: a = plain0 + s[0] and b = plain1 + s[1]. For r from 1 to 12: a = ((a ^ b) rotated left by b) +
// s[2r], then b = ((b ^ a) rotated left by a) + s[2r + 1]. Key i is a candidate where ((a ^ cipher) & mask)
// is 0. list[0] becomes the number of candidates, and list[1], list[2], ... the candidates i in any order,
// as far as the `room` numbers of the list reach. The list is 0 before.
extern \"C\" __global__ void rc5(unsigned upper, unsigned long long lower, unsigned keys, unsigned plain0, unsigned plain1, unsigned cipher, unsigned mask, unsigned* list, unsigned room)";

impl Algorithm for Rc5 {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "rc5-72",
            title: "Search of an RC5 key of 72 bits",
            readme: include_str!("README.md"),
            unit: Unit::Items("keys"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, keys| Case { name, summary, problem: Problem { keys } };
        vec![
            case("2^22", "4194304 keys: seconds of one thread", 1 << 22),
            case("2^30", "1073741824 keys", 1 << 30),
        ]
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        (kind == BackendKind::Cuda).then_some("2^30")
    }

    fn trials(&self) -> Vec<Problem> {
        [1, 255, 257, 70_001, 1024, 5003].map(|keys| Problem { keys }).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [keys] if (1..=MOST_KEYS).contains(&keys) => Ok(Problem { keys }),
            _ => Err(Error::value("size of rc5-72", format!("KEYS, 1 to {MOST_KEYS}"), format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: problem.keys as f64, ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("2^30", "2^22")];
        Some(PublishedApplication::of_lecture("RC5-72", "registers", 3072, [17.1, 11.0], cases))
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "rc5",
            declaration: OWN,
            extent: |p| [p.keys, 1, 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let random = |number: u64| input::bits(seed, number);
        let keys = problem.keys;
        // In the middle of the search bytes 4 to 8 overflow.
        let lower = (1u64 << 40) - keys as u64 / 2 - 1;
        let plain = [random(1) as u32, (random(1) >> 32) as u32];
        // About a hundred candidates, or every key.
        let bits = keys.ilog2().saturating_sub(7);
        let mut search = Search { upper: random(0) as u32, lower, keys, plain, cipher: [0; 2], bits };
        let secret = (random(2) % keys as u64) as u32;
        search.cipher = reference::encrypt(&reference::schedule(&search.key(secret)), plain);
        Ok(Data { search, list: Array::zeros(device, &[search.room()])?, secret, seed })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.list.fill(u32::MAX)
    }

    /// Missing and wrong candidates over all candidates. Where keys are many, every candidate found is
    /// checked; missing ones are looked for in some windows.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let Data { search, list, secret, seed } = data;
        let cpu = list.device().cpu_side();
        let list = list.read()?;
        let mut listed = match list[1..].get(..list[0] as usize) {
            Some(listed) => listed.to_vec(),
            None => return Ok(1.0),
        };
        listed.sort_unstable();
        let keys = problem.keys;
        let starts: Vec<usize> = match keys <= WHOLE {
            true => (0..keys.div_ceil(WINDOW)).map(|window| window * WINDOW).collect(),
            // The last keys, those around the secret one, and others at random.
            false => [keys - WINDOW, (*secret as usize).saturating_sub(WINDOW / 2)]
                .into_iter()
                .chain(
                    (2..WINDOWS).map(|turn| (input::bits(seed ^ 0x4c5, turn as u64) % keys as u64) as usize),
                )
                .collect(),
        };
        let missing = |&start: &usize| {
            let window = start..(start + WINDOW).min(keys);
            let of_window = window.map(|key| key as u32).filter(|&key| reference::is_candidate(search, key));
            of_window.filter(|key| listed.binary_search(key).is_err()).count()
        };
        let twice = listed.windows(2).filter(|two| two[0] == two[1]).count();
        let wrong = |&&key: &&u32| key as usize >= keys || !reference::is_candidate(search, key);
        let wrong = cpu.run(|| {
            starts.par_iter().map(missing).sum::<usize>() + listed.par_iter().filter(wrong).count() + twice
        });
        Ok(wrong as f64 / listed.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// The key of RSA Data Security's test contest, its first block, and the block's ciphertext (see
    /// `reference`).
    const CONTEST: [u8; 9] = [0xc9, 0x0c, 0x03, 0x53, 0xc0, 0xd4, 0xe1, 0xfe, 0x85];
    const BLOCK: [u32; 2] = [0x2065_6854 ^ 0x1f59_ce07, 0x6e6b_6e75 ^ 0x419a_1486];
    const CIPHER: [u32; 2] = [0x562d_285a, 0x2fb7_852a];

    /// A search of 600 keys whose key `at` is `key`.
    fn search(key: [u8; 9], at: u64, cipher: [u32; 2]) -> Search {
        let number = key.iter().fold(0u128, |number, &byte| number << 8 | u128::from(byte));
        let first = number.wrapping_sub(u128::from(at)) & ((1 << 72) - 1);
        let (upper, lower) = ((first >> 40) as u32, first as u64 & ((1 << 40) - 1));
        Search { upper, lower, keys: 600, plain: BLOCK, cipher, bits: 32 }
    }

    #[test]
    fn the_key_of_the_test_contest_is_found() {
        for device in rayspin_emu::devices().unwrap() {
            for at in [0, 1, 133, 599] {
                assert_eq!(find(&search(CONTEST, at, CIPHER), &device).unwrap(), Some(at as u32));
            }
            assert_eq!(find(&search(CONTEST, 600, CIPHER), &device).unwrap(), None);
            let mut other = search(CONTEST, 133, CIPHER);
            // Candidates must agree in the second word, too.
            other.cipher[1] ^= 1;
            assert_eq!(find(&other, &device).unwrap(), None);
        }
    }

    #[test]
    fn keys_are_found_after_bytes_overflow() {
        // As in cases 2 to 6 of distributed.net's self-test: bytes before the last are zero, so that the
        // search gets to them by a carry.
        for device in rayspin_emu::devices().unwrap() {
            for zeros in 0..=8 {
                let mut key = CONTEST;
                key[8 - zeros..8].fill(0);
                key[8] = 5;
                let cipher = reference::encrypt(&reference::schedule(&key), BLOCK);
                assert_eq!(find(&search(key, 300, cipher), &device).unwrap(), Some(300), "{zeros} zeros");
            }
        }
    }

    #[test]
    fn bad_searches_are_refused() {
        for device in rayspin_emu::devices().unwrap() {
            let good = search(CONTEST, 0, CIPHER);
            for bad in [
                Search { keys: 0, ..good },
                Search { keys: 1 << 31, ..good },
                Search { lower: 1 << 40, ..good },
            ] {
                assert!(find(&bad, &device).is_err());
            }
        }
    }
}
