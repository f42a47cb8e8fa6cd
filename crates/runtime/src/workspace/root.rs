//! One descriptor of the workspace's directory; every path is opened beneath it by the kernel, links included.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use rustix::{
    fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, renameat, statat, unlinkat},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

/// A path in a workspace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out of the workspace, directly or through a link.
    #[error("`{0}` leads out of the workspace")]
    Outside(String),
    /// It is no path.
    #[error("`{path}` is not a path: {why}")]
    Invalid {
        /// The text.
        path: String,
        /// Why not.
        why: &'static str,
    },
    /// The file system refuses.
    #[error("cannot use `{path}`: {error}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// The directory that an agent works in.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    fd: OwnedFd,
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

impl Root {
    /// Opens the directory `path`.
    ///
    /// # Errors
    /// When it does not exist or is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let file = File::open(&path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory"));
        }
        Ok(Self {
            path,
            fd: file.into(),
        })
    }

    /// Returns the directory's resolved path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_beneath(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, PathError> {
        let path = checked(path)?;
        // EAGAIN: the kernel saw a rename meanwhile and could not prove that the path stays beneath; it says to try again.
        for _ in 0..16 {
            match openat2(&self.fd, path, flags | OFlags::CLOEXEC, mode, BENEATH) {
                Ok(fd) => return Ok(fd),
                Err(Errno::AGAIN) => {}
                Err(Errno::XDEV) => return Err(PathError::Outside(path.to_owned())),
                Err(error) => {
                    return Err(PathError::Io {
                        path: path.to_owned(),
                        error: error.into(),
                    });
                }
            }
        }
        Err(PathError::Io {
            path: path.to_owned(),
            error: Errno::AGAIN.into(),
        })
    }

    /// Returns where `path` really lies, relative to the workspace: rules judge this name, not the one given.
    ///
    /// A file that does not exist yet is named by its resolved parent.
    ///
    /// # Errors
    /// When it leads out of the workspace.
    pub fn resolve(&self, path: &str) -> Result<String, PathError> {
        match self.open_beneath(path, OFlags::PATH, Mode::empty()) {
            Ok(fd) => self.name_of(path, &fd),
            Err(PathError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                let trimmed = checked(path)?.trim_end_matches('/');
                let (parent, name) = trimmed.rsplit_once('/').unwrap_or((".", trimmed));
                if matches!(name, "" | "." | "..") {
                    return Err(PathError::Invalid {
                        path: path.to_owned(),
                        why: "it names no file",
                    });
                }
                // A dangling link would be followed by whoever creates the file: it is refused instead.
                let parent = if parent.is_empty() { "." } else { parent };
                match self.resolve(parent)?.as_str() {
                    "." => Ok(name.to_owned()),
                    parent => Ok(format!("{parent}/{name}")),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn name_of(&self, path: &str, fd: &OwnedFd) -> Result<String, PathError> {
        let io = |error| PathError::Io {
            path: path.to_owned(),
            error,
        };
        let real = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(io)?;
        let inside = real
            .strip_prefix(&self.path)
            .map_err(|_| PathError::Outside(path.to_owned()))?;
        match inside.to_str() {
            Some("") => Ok(".".to_owned()),
            Some(name) => Ok(name.to_owned()),
            None => Err(PathError::Invalid {
                path: path.to_owned(),
                why: "it is not UTF-8",
            }),
        }
    }

    /// Opens a regular file for reading; a pipe or device is refused rather than waited for.
    ///
    /// # Errors
    /// When it leads out of the workspace, does not exist or is no regular file.
    pub fn open_file(&self, path: &str) -> Result<File, PathError> {
        let fd = self.open_beneath(
            path,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Mode::empty(),
        )?;
        let file = File::from(fd);
        let io = |error| PathError::Io {
            path: path.to_owned(),
            error,
        };
        if !file.metadata().map_err(io)?.is_file() {
            return Err(io(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            )));
        }
        Ok(file)
    }

    /// Reads at most `limit` bytes of a regular file and its whole length.
    ///
    /// # Errors
    /// As [`Root::open_file`].
    pub fn read(&self, path: &str, limit: u64) -> Result<(Vec<u8>, u64), PathError> {
        let file = self.open_file(path)?;
        let io = |error| PathError::Io {
            path: path.to_owned(),
            error,
        };
        let length = file.metadata().map_err(io)?.len();
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(io)?;
        Ok((bytes, length))
    }

    /// Replaces or creates a file with one rename, so that nobody sees half of it; missing directories are created.
    ///
    /// # Errors
    /// When it leads out of the workspace, is a directory or link, or cannot be written.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), PathError> {
        let path = self.resolve(path)?;
        let io = |error: io::Error| PathError::Io {
            path: path.clone(),
            error,
        };
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", &path));
        self.create_dirs(parent)?;
        let dir = self.open_beneath(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        let mode = match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() => {
                Mode::from_raw_mode(found.st_mode & 0o7777)
            }
            Ok(_) => {
                return Err(io(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not a regular file",
                )));
            }
            Err(_) => Mode::from_raw_mode(0o644),
        };
        let beside = format!(".{name}.tracegate-new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let _ = unlinkat(&dir, beside.as_str(), AtFlags::empty());
        let write = || -> io::Result<()> {
            let mut file = File::from(rustix::fs::openat(&dir, beside.as_str(), flags, mode)?);
            rustix::fs::fchmod(&file, mode)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            Ok(renameat(&dir, beside.as_str(), &dir, name)?)
        };
        write().map_err(|error| {
            // What is left of a failed write is not the agent's file.
            let _ = unlinkat(&dir, beside.as_str(), AtFlags::empty());
            io(error)
        })
    }

    fn create_dirs(&self, path: &str) -> Result<(), PathError> {
        let mut done = String::new();
        for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
            let parent = if done.is_empty() { "." } else { done.as_str() };
            let dir = self.open_beneath(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            match rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => {
                    return Err(PathError::Io {
                        path: path.to_owned(),
                        error: error.into(),
                    });
                }
            }
            done = if done.is_empty() {
                part.to_owned()
            } else {
                format!("{done}/{part}")
            };
        }
        Ok(())
    }
}

fn checked(path: &str) -> Result<&str, PathError> {
    let invalid = |why| {
        Err(PathError::Invalid {
            path: path.escape_debug().to_string(),
            why,
        })
    };
    if path.is_empty() {
        return invalid("it is empty");
    }
    if path.contains('\0') {
        return invalid("it contains a NUL");
    }
    if path.len() > 4096 {
        return invalid("it is too long");
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("ws/src")).unwrap();
        std::fs::write(dir.path().join("ws/src/a.txt"), "a").unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        let link =
            |to: &str, at: &str| std::os::unix::fs::symlink(to, dir.path().join("ws").join(at)).unwrap();
        link("../secret", "out");
        link("src", "inner");
        link("../new", "dangling");
        let root = Root::open(&dir.path().join("ws")).unwrap();
        (dir, root)
    }

    #[test]
    fn names_are_resolved_beneath_the_workspace() {
        let (_dir, root) = workspace();
        for (path, wanted) in [
            (".", "."),
            ("src/a.txt", "src/a.txt"),
            ("./src/../src/a.txt", "src/a.txt"),
            ("inner/a.txt", "src/a.txt"),
            ("new.txt", "new.txt"),
            ("inner/new.txt", "src/new.txt"),
            ("a/b/new.txt", "a/b/new.txt"),
        ] {
            assert_eq!(root.resolve(path).unwrap(), wanted, "{path}");
        }
    }

    #[test]
    fn nothing_outside_is_read_or_written() {
        let (dir, root) = workspace();
        for path in ["../secret", "/etc/passwd", "out", "src/../../secret", "dangling"] {
            assert!(root.read(path, 10).is_err(), "read {path}");
            assert!(
                root.write(path, b"x").is_err() || !dir.path().join("new").exists(),
                "write {path}"
            );
        }
        assert_eq!(std::fs::read(dir.path().join("secret")).unwrap(), b"s");
        assert!(!dir.path().join("new").exists());
        assert!(
            root.read("src", 10).is_err() && root.read("", 10).is_err() && root.read("a\0b", 10).is_err()
        );
    }

    #[test]
    fn a_write_replaces_and_keeps_the_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, root) = workspace();
        let path = dir.path().join("ws/src/a.txt");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        root.write("inner/a.txt", b"new").unwrap();
        root.write("deep/er/b.txt", b"b").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o750
        );
        assert_eq!(std::fs::read(dir.path().join("ws/deep/er/b.txt")).unwrap(), b"b");
    }
}
