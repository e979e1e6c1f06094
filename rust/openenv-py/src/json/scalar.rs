//! Strings and numbers in JSON's spelling.

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
    loop {
        let (plain, tail) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((byte, tail)) = tail.split_first() else { return };
        write_escape(*byte, out);
        rest = tail;
    }
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
    out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
}

pub(super) fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// How many bytes need no escape. Whole blocks are looked at without branches, which compiles to
/// vector instructions.
fn plain_prefix(text: &[u8]) -> usize {
    let is_plain =
        |block: &&[u8]| !block.iter().fold(false, |found, byte| found | needs_escape(*byte));
    let plain_blocks = text.chunks_exact(16).take_while(is_plain).count();
    let (plain, rest) = text.split_at(plain_blocks * 16);
    plain.len() + rest.iter().position(|byte| needs_escape(*byte)).unwrap_or(rest.len())
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        b'"' | b'\\' => byte,
        _ => return write_code_unit(u16::from(byte), out),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn hex_digit(value: u16) -> u8 {
    HEX.get(usize::from(value & 0xf)).copied().unwrap_or(b'0')
}
