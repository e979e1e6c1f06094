//! Strings and numbers in JSON's spelling.

/// What each byte needs inside a JSON string: 0 nothing, `u` a `\u00XX`, else the letter after
/// the backslash.
const ESCAPE: [u8; 256] = {
    let mut table = [0_u8; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a JSON string. Non-ASCII stays as it is (`ensure_ascii=False`).
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(text.as_bytes(), out);
    out.push(b'"');
}

/// Appends the inside of a JSON string: runs that need no escape are copied whole.
pub(super) fn write_escaped(mut rest: &[u8], out: &mut Vec<u8>) {
    while let Some(length) = rest.iter().position(|byte| escape_of(*byte) != 0) {
        let (plain, tail) = rest.split_at(length);
        out.extend_from_slice(plain);
        let Some((byte, tail)) = tail.split_first() else { return };
        write_escape(*byte, out);
        rest = tail;
    }
    out.extend_from_slice(rest);
}

/// Appends one UTF-16 code unit as `\uXXXX`.
pub(super) fn write_code_unit(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(hex_digit(unit >> shift));
    }
}

/// Appends a finite float in the shortest form that reads back as the same `f64`.
pub(super) fn write_float(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
}

pub(super) fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn escape_of(byte: u8) -> u8 {
    ESCAPE.get(usize::from(byte)).copied().unwrap_or(0)
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match escape_of(byte) {
        b'u' => write_code_unit(u16::from(byte), out),
        letter => out.extend_from_slice(&[b'\\', letter]),
    }
}

fn hex_digit(value: u16) -> u8 {
    HEX.get(usize::from(value & 0xf)).copied().unwrap_or(b'0')
}
