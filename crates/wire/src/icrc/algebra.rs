//! CRC-32 as algebra: what can be moved, masked or solved for without looking at the payload.
//!
//! A CRC is linear: two packets that differ only in a field δ with n bytes after it have CRCs that
//! differ by δ(x) · x^(8n + 32) mod P. Three things follow.
//!
//! - **The hidden field.** δ = D · x^−(8n + 32) mod P, D being the difference of the CRCs. If the
//!   16 bits of the field were all that differed, δ has a degree below 16; of all 2^32 differences
//!   only 2^16 are such, so one bad packet in 2^16 looks as if it had just another identification.
//! - **The masked byte.** To count BTH byte 4 as ones, no byte of the packet need be changed: the
//!   CRC of what comes before is changed by what has the same effect.
//! - **The next packet of a batch.** Another identification changes the prefix by a table entry.
//!
//! Elements of GF(2)\[x\]/P are written as the CRC-32 of Ethernet writes them: bit 31 is x^0,
//! bit 0 is x^31. A byte's lowest bit is its first on the wire, its highest power.

/// x^32 mod P.
const POLY: u32 = 0xedb8_8320;
/// 1.
const ONE: u32 = 1 << 31;

/// Bytes of an IPv4 header without options, and UDP, after the identification.
pub(super) const ID_TO_BTH: usize = 20 - 6 + 8;

/// The bits, exclusive-or, by which the big-endian 16-bit field of a packet was not what the
/// computed CRC assumed, if that field alone explains the difference of the CRCs (given as they
/// stand on the wire). `after` is the number of bytes that the CRC covers after the field; `None`
/// too where they are more than 65535, which no IPv4 packet has.
#[must_use]
pub const fn id_difference(got: [u8; 4], computed: [u8; 4], after: usize) -> Option<u16> {
    let difference = u32::from_le_bytes(got) ^ u32::from_le_bytes(computed);
    if after > 0xffff {
        return None;
    }
    let mut delta = multiply(difference, NEAR[after & 0xff]);
    if after > 0xff {
        delta = multiply(delta, FAR[after >> 8]);
    }
    let [0, 0, high, low] = delta.to_le_bytes() else {
        return None;
    };
    Some(u16::from_be_bytes([high, low]))
}

/// What to add to the CRC before a BTH so that its byte 4, being `byte`, counts as ones.
#[inline]
pub(super) const fn mask_bth_byte_4(byte: u8) -> u32 {
    MASK[!byte as usize]
}

/// What to add to a CRC `to_bth` bytes after an identification that changes by these bits.
#[inline]
pub(super) const fn shift_id(difference: u16, to_bth: usize) -> u32 {
    let [high, low] = difference.to_be_bytes();
    let mut crc = ID[0][high as usize] ^ ID[1][low as usize];
    let mut at = ID_TO_BTH;
    while at < to_bth {
        crc = step(crc);
        at += 1;
    }
    crc
}

/// The CRC after `bth`, which is too short for SIMD: four bytes at a time.
#[inline]
pub(super) const fn update_bth(crc: u32, bth: &[u8; 12]) -> u32 {
    let (words, _) = bth.as_chunks::<4>();
    let mut register = !crc;
    let mut i = 0;
    while i < words.len() {
        let [a, b, c, d] = (register ^ u32::from_le_bytes(words[i])).to_le_bytes();
        register = SLICE[3][a as usize]
            ^ SLICE[2][b as usize]
            ^ SLICE[1][c as usize]
            ^ SLICE[0][d as usize];
        i += 1;
    }
    !register
}

/// `NEAR[a]` is x^−(8a + 32).
static NEAR: [u32; 256] = {
    let mut table = [0; 256];
    let mut power = divide_by_x(ONE, 32);
    let mut a = 0;
    while a < 256 {
        table[a] = power;
        power = divide_by_x(power, 8);
        a += 1;
    }
    table
};

/// `FAR[b]` is x^−(8 · 256 · b).
static FAR: [u32; 256] = {
    let mut table = [0; 256];
    let mut power = ONE;
    let mut b = 0;
    while b < 256 {
        table[b] = power;
        power = divide_by_x(power, 8 * 256);
        b += 1;
    }
    table
};

/// `MASK[d]`: a register four bytes long stands where BTH bytes 0 to 3 do, one byte before byte 4,
/// so δ of that byte is δ · x^−8 of the register.
static MASK: [u32; 256] = {
    let mut table = [0; 256];
    let mut d = 0;
    while d < 256 {
        table[d as usize] = divide_by_x(d << 24, 8);
        d += 1;
    }
    table
};

/// `SLICE[n][b]` is the register after byte `b` and n zero bytes.
static SLICE: [[u32; 256]; 4] = {
    let mut table = [[0; 256]; 4];
    let mut b = 0_u32;
    while b < 256 {
        let mut register = b;
        let mut n = 0;
        while n < 4 {
            register = step(register);
            table[n][b as usize] = register;
            n += 1;
        }
        b += 1;
    }
    table
};

/// `ID[0]` is what the identification's first byte adds to the register at the BTH, `ID[1]` the
/// second.
static ID: [[u32; 256]; 2] = {
    let mut table = [[0; 256]; 2];
    let mut i = 0;
    while i < 2 {
        let mut b = 0_u32;
        while b < 256 {
            let mut register = b;
            let mut n = 0;
            while n < ID_TO_BTH + 2 - i {
                register = step(register);
                n += 1;
            }
            table[i][b as usize] = register;
            b += 1;
        }
        i += 1;
    }
    table
};

/// a · b mod P.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut i = 32;
    while i > 0 {
        i -= 1;
        product ^= b & (a >> i & 1).wrapping_neg();
        // b · x, without a branch.
        b = b >> 1 ^ POLY & (b & 1).wrapping_neg();
    }
    product
}

/// a · x^8 mod P: a register after a zero byte.
const fn step(mut a: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        a = a >> 1 ^ POLY & (a & 1).wrapping_neg();
        bit += 1;
    }
    a
}

/// a · x^−n mod P.
const fn divide_by_x(mut a: u32, n: u32) -> u32 {
    let mut i = 0;
    while i < n {
        // P has the term 1: where a has it too, adding P makes x divide a; x^32 becomes x^31.
        a = if a & ONE == 0 { a << 1 } else { (a ^ POLY) << 1 | 1 };
        i += 1;
    }
    a
}
