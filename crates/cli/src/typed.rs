//! Files that somebody names on the command line. A pipe is fine, as of a shell's `<(…)`; what never ends is not.
#![expect(clippy::disallowed_methods, reason = "named files are read here")]

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// The longest policy or list of replies, in bytes.
const MOST: u64 = 256 << 20;

/// Reads a named file.
///
/// # Errors
/// When it cannot be read, or is longer than [`MOST`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)? as u64 > MOST {
        let message = format!("it is longer than {} MiB", MOST >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}

/// Reads a named file that is text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
