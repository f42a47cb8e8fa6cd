//! Lines of a log, whatever bytes they are: no line is kept longer than two records could be.

use std::io::{self, BufRead};
use tracegate_core::{ids::Chain, payload::INLINE_RECORD};

/// Two records whose line feed is gone still fit; longer lines are no event and are read past.
const LONGEST: usize = 2 * INLINE_RECORD;

/// Reads the next line, with its line feed, into `line` and returns how many bytes were read; what is beyond [`LONGEST`] is left out.
pub(crate) fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut read = 0;
    loop {
        let bytes = match file.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let feed = bytes.iter().position(|byte| *byte == b'\n');
        let length = feed.map_or(bytes.len(), |at| at + 1);
        let room = LONGEST.saturating_sub(line.len());
        line.extend(bytes.iter().take(length.min(room)));
        file.consume(length);
        read += length as u64;
        if feed.is_some() || length == 0 {
            return Ok(read);
        }
    }
}

/// The bytes of a line as they stand before its chain value, and that value: by position, so that damage before it does not hide it.
pub(crate) fn split(line: &[u8]) -> (&[u8], Option<Chain>) {
    // `,"chain":"`, 32 digits, `"}`
    const END: usize = 10 + 32 + 2;
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let (body, end) = text.split_at(text.len().saturating_sub(END));
    let digits = end.strip_suffix(b"\"}").and_then(|end| end.get(10..));
    let chain = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    (body, chain)
}
