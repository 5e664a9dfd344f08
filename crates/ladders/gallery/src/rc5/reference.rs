//! The oracle: RC5-32/12/b (Rivest, "The RC5 encryption algorithm", 1994), for keys of any number of bytes.

use super::{Search, WORDS};

/// The odd numbers nearest to (e − 2) 2³² and to (φ − 1) 2³², φ the golden ratio.
pub(super) const P: u32 = 0xb7e1_5163;
pub(super) const Q: u32 = 0x9e37_79b9;

/// The words of a key's schedule.
pub fn schedule(key: &[u8]) -> [u32; WORDS] {
    let mut l: Vec<u32> = key
        .chunks(4)
        .map(|bytes| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
        .collect();
    l.resize(l.len().max(1), 0);
    let mut s = std::array::from_fn(|i| P.wrapping_add(Q.wrapping_mul(i as u32)));
    let (mut a, mut b) = (0u32, 0u32);
    for step in 0..3 * WORDS.max(l.len()) {
        let (i, j) = (step % WORDS, step % l.len());
        a = s[i].wrapping_add(a).wrapping_add(b).rotate_left(3);
        s[i] = a;
        let by = a.wrapping_add(b);
        b = l[j].wrapping_add(by).rotate_left(by);
        l[j] = b;
    }
    s
}

/// The ciphertext of one block.
pub fn encrypt(s: &[u32; WORDS], [a, b]: [u32; 2]) -> [u32; 2] {
    let (mut a, mut b) = (a.wrapping_add(s[0]), b.wrapping_add(s[1]));
    for pair in s[2..].chunks_exact(2) {
        a = (a ^ b).rotate_left(b).wrapping_add(pair[0]);
        b = (b ^ a).rotate_left(a).wrapping_add(pair[1]);
    }
    [a, b]
}

/// Whether key `index` of a search gives the first word of the ciphertext in all its marked bits.
pub fn is_candidate(search: &Search, index: u32) -> bool {
    let block = encrypt(&schedule(&search.key(index)), search.plain);
    (block[0] ^ search.cipher[0]) & search.mask() == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| b.is_ascii_hexdigit()).collect();
        digits.chunks(2).map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    fn word(bytes: &[u8]) -> u32 {
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn the_examples_of_the_cipher_s_paper() {
        // RC5-32/12/16; each plaintext is the ciphertext before.
        let mut text = [0, 0];
        for (key, want) in [
            ("00000000000000000000000000000000", [0xEEDB_A521, 0x6D8F_4B15]),
            ("915F4619BE41B2516355A50110A9CE91", [0xAC13_C0F7, 0x5289_2B5B]),
            ("783348E75AEB0F2FD7B169BB8DC16787", [0xB7B3_422F, 0x92FC_6903]),
            ("DC49DB1375A5584F6485B413B5F12BAF", [0xB278_C165, 0xCC97_D184]),
            ("5269F149D41BA0152497574D7F153125", [0x15E4_44EB, 0x2498_31DA]),
        ] {
            text = encrypt(&schedule(&hex(key)), text);
            assert_eq!(text, want, "{key}");
        }
    }

    #[test]
    fn the_messages_of_the_contests() {
        // Cipher block chaining: RSA Data Security's secret-key challenges. The first is the test contest of
        // RC5-32/12/9, which is also the first self-test of distributed.net's client
        // (`rc5-72/gentests72.cpp`); the others were solved in 1997 and 2002.
        for (key, iv, message, cipher) in [
            (
                "c90c0353c0d4e1fe85",
                "07ce591f86149a41",
                "The unknown message is: The RC5-32/12/9-test contest's plaintext\x08\x08\x08\x08\x08\x08\x08\x08",
                "5a282d562a85b72f efae30ba9354da15 acba791aa1cb0e85 9ac331a5361985e3 77dfdd07343bfaed 848441909d7b6f17
                 2d51eab21c5e451c e96a34dea5f5b956 2216e26015e17eb2",
            ),
            (
                "532b744cc20999",
                "7b32f08ae617de8c",
                "The unknown message is: ",
                "82d34ea7b324860b c6d8615ce9f9e479 885c98f1d2924c59",
            ),
            (
                "63de7dc154f4d039",
                "79ced5d55075eafc",
                "The unknown message is: Some things are better left unread.\x05\x05\x05\x05\x05",
                "bf550155dc26f24b 26e4854df90ad679 6693ab923c72f137 c8b70d1f60110c92 ae2ecdfd70d3fd17 dfb04212b97dcf22
                 186ba715ce2c84bf ce0dd04d006be146",
            ),
        ] {
            let (s, mut before) = (schedule(&hex(key)), hex(iv));
            for (block, want) in message.as_bytes().chunks(8).zip(hex(cipher).chunks(8)) {
                let mixed: Vec<u8> = block.iter().zip(&before).map(|(a, b)| a ^ b).collect();
                let made = encrypt(&s, [word(&mixed[..4]), word(&mixed[4..])]);
                before = made.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert_eq!(before, want, "{message}");
            }
        }
    }
}
