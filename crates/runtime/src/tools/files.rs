//! The tools that list, read, write and edit files.

use crate::{
    session::Session,
    tools::Done,
    workspace::{PathError, Root, readable_upwards, walkable},
};
use std::{borrow::Cow, fmt::Write as _, io};
use tracegate_core::redact::Redactor;

/// Most entries that a listing shows.
const MAX_ENTRIES: usize = 2000;
/// Most bytes of a file that are read; a part of a longer one can be asked for by lines only up to here.
const MAX_READ: u64 = 8 * 1024 * 1024;

fn refused(error: &PathError) -> Done {
    let kind = match error {
        PathError::Outside(_) => "outside_workspace",
        PathError::Invalid { .. } => "invalid_path",
        PathError::Io { error, .. } => kind_of(error),
    };
    Done::failed(kind, error.to_string())
}

fn kind_of(error: &io::Error) -> &'static str {
    let kinds = [
        (io::ErrorKind::NotFound, "not_found"),
        (io::ErrorKind::PermissionDenied, "not_permitted"),
        (io::ErrorKind::ReadOnlyFilesystem, "not_permitted"),
        (io::ErrorKind::StorageFull, "disk_full"),
    ];
    kinds
        .into_iter()
        .find(|(kind, _)| *kind == error.kind())
        .map_or("io", |(_, name)| name)
}

/// Writes a file's name so that it stays one line and hides nothing: a name is somebody else's text.
pub(super) fn one_line(name: &str) -> Cow<'_, str> {
    if name.contains(tracegate_policy::words::is_invisible) {
        Cow::Owned(name.escape_debug().to_string())
    } else {
        Cow::Borrowed(name)
    }
}

pub(super) fn list(root: &Root, path: &str, depth: u32) -> Done {
    let dir = match root.resolve(path) {
        Ok(dir) => dir,
        Err(error) => return refused(&error),
    };
    let base = root.path().join(&dir);
    if !base.is_dir() {
        return Done::failed("not_found", format!("`{path}` is not a directory"));
    }
    if let Err(error) = readable_upwards(&base) {
        return Done::failed("unreadable_rules", error.to_string());
    }
    let mut walk = ignore::WalkBuilder::new(&base);
    walk.hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .max_depth(Some(depth as usize));
    walk.filter_entry(walkable);
    let mut names: Vec<String> = walk
        .build()
        .flatten()
        .filter_map(|entry| {
            let name = entry
                .path()
                .strip_prefix(&base)
                .ok()?
                .to_string_lossy()
                .into_owned();
            let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                "/"
            } else {
                ""
            };
            (!name.is_empty()).then(|| format!("{}{slash}", one_line(&name)))
        })
        .collect();
    names.sort_unstable();
    let total = names.len();
    names.truncate(MAX_ENTRIES);
    let mut output = names.join("\n");
    if total > MAX_ENTRIES {
        // Writing to a string cannot fail.
        let _ = write!(
            output,
            "\n[{} more entries omitted by tracegate]",
            total - MAX_ENTRIES
        );
    }
    Done::ok(if output.is_empty() {
        "(empty)".to_owned()
    } else {
        output
    })
}

pub(super) fn read(root: &Root, path: &str, from: u32, to: Option<u32>) -> Done {
    let (bytes, length) = match root.read(path, MAX_READ) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        return Done::failed("binary", format!("`{path}` is a binary file of {length} bytes"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let whole = from == 1 && to.is_none();
    let mut output = if whole {
        text.into_owned()
    } else {
        let count = to.map_or(usize::MAX, |to| (to.max(from) - from + 1) as usize);
        text.split_inclusive('\n')
            .skip(from as usize - 1)
            .take(count)
            .collect()
    };
    if length > MAX_READ {
        let _ = write!(
            output,
            "\n[{} of {length} bytes omitted by tracegate]",
            length - MAX_READ
        );
    }
    Done {
        truncated: length > MAX_READ,
        ..Done::ok(output)
    }
}

/// Writing a placeholder back would destroy the secret that it stands for.
fn masked(path: &str, text: &str) -> Option<Done> {
    Redactor::holds_placeholder(text).then(|| {
        let message = format!(
            "the text for `{path}` holds a redaction placeholder; writing it would destroy the secret that it stands for. \
             Leave that line as it is and change the others with edit_text."
        );
        Done::failed("placeholder_in_write", message)
    })
}

pub(super) fn write(session: &Session, path: &str, content: &str) -> Done {
    if let Some(refusal) = masked(path, content) {
        return refusal;
    }
    match session.root.write(path, content.as_bytes()) {
        Ok(()) => Done::ok(format!("wrote {path} ({} characters)", content.chars().count())),
        Err(error) => refused(&error),
    }
}

pub(super) fn edit(session: &Session, path: &str, old: &str, new: &str) -> Done {
    if let Some(refusal) = masked(path, new) {
        return refusal;
    }
    let (bytes, length) = match session.root.read(path, MAX_READ) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    if length > MAX_READ {
        return Done::failed(
            "too_large",
            format!("`{path}` has {length} bytes, too many to edit"),
        );
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Done::failed("binary", format!("`{path}` is not UTF-8 text"));
    };
    if old.is_empty() {
        return Done::failed("invalid_argument", "`old` is empty".to_owned());
    }
    let places = text.matches(old).count();
    if places != 1 {
        let found = if places == 0 {
            "nowhere".to_owned()
        } else {
            format!("{places} times")
        };
        return Done::failed(
            "no_anchor",
            format!("`old` stands in `{path}` {found}, it must stand there exactly once"),
        );
    }
    match session.root.write(path, text.replacen(old, new, 1).as_bytes()) {
        Ok(()) => Done::ok(format!("edited {path}")),
        Err(error) => refused(&error),
    }
}
