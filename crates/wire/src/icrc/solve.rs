//! Solves for the one hidden 16-bit field of a packet whose CRC-32 is known.
//!
//! A CRC is linear: two packets that differ only in a field δ with n bytes after it have CRCs that
//! differ by δ(x) · x^(8n + 32) mod P. So δ = D · x^−(8n + 32) mod P, D being the difference of the
//! CRCs. If the field's 16 bits were all that differed, δ has a degree below 16; of all 2^32
//! differences only 2^16 are such, so one bad packet in 2^16 looks as if it had just another ID.
//!
//! Elements of GF(2)\[x\]/P are written as the CRC-32 of Ethernet writes them: bit 31 is x^0,
//! bit 0 is x^31.

/// x^32 mod P.
const POLY: u32 = 0xedb8_8320;
/// 1.
const ONE: u32 = 1 << 31;

/// `NEAR[a]` is x^−(8a + 32).
const NEAR: [u32; 256] = {
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
const FAR: [u32; 256] = {
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

/// The bits, exclusive-or, by which the big-endian 16-bit field of a packet was not what the
/// computed CRC assumed, if that field alone explains the difference of the CRCs (given as they
/// stand on the wire). `after` is the number of bytes that the CRC covers after the field, up to
/// 65535.
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
