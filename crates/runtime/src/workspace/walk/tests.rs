//! A fingerprint that remembers is the one that is taken afresh, whatever happened in between.

use super::*;
use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    time::Duration,
};
use tracegate_core::{fact::tool::WorkspaceState, redact::RedactionKey};

fn redactor() -> Redactor {
    Redactor::new(RedactionKey::from_bytes([7; 32]), &[])
}

/// A moment when all that was done so far is settled.
fn later() -> Moment {
    Moment::of(SystemTime::now() + Duration::from_secs(60))
}

/// A second that lies between the times of these tests and those of the clock.
const NOW: i64 = 1_000_000_000;

/// A workspace whose time stamps are the test's: without them two changes can fall into one tick of the file system's clock.
struct Place {
    dir: tempfile::TempDir,
    tick: i64,
    remembering: Fingerprints,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut place = Self {
            dir: tempfile::tempdir().unwrap(),
            tick: 1_000_000,
            remembering: Fingerprints::new(redactor()),
        };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Gives a path and the folders above it that the clock stamped, because they changed, a time of modification that none ever had.
    fn touch(&mut self, path: &str) {
        for at in Path::new(path).ancestors() {
            let at = self.dir.path().join(at);
            if look(CWD, &at).is_some_and(|stamp| stamp.modified.0 >= NOW) {
                self.tick += 1;
                set_modified(&at, self.tick);
            }
        }
    }

    fn write(&mut self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
        self.touch(path);
    }

    /// Removes whatever is there.
    fn remove(&mut self, path: &str) {
        drop(fs::remove_file(self.path(path)).or_else(|_| fs::remove_dir_all(self.path(path))));
        self.touch(Path::new(path).parent().unwrap().to_str().unwrap());
    }

    /// What remembers and what does not must agree; what they see is returned, or why they do not.
    fn agreed(&mut self, now: Moment) -> Result<Fingerprint, String> {
        let mut fresh = Fingerprints::new(redactor());
        fresh.most_files = self.remembering.most_files;
        let remembered = self.remembering.take_at(self.dir.path(), now);
        let remembered = remembered.map_err(|error| error.to_string());
        let fresh = fresh
            .take_at(self.dir.path(), now)
            .map_err(|error| error.to_string());
        assert_eq!(paths(&remembered), paths(&fresh));
        assert_eq!(remembered, fresh);
        remembered
    }

    fn settled(&mut self) -> Fingerprint {
        self.agreed(later()).unwrap()
    }
}

fn set_modified(path: &Path, seconds: i64) {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    // What is gone has no time.
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

fn paths(print: &Result<Fingerprint, String>) -> BTreeMap<String, Digest> {
    let Ok(print) = print else {
        return BTreeMap::new();
    };
    let changes = print.changes_since(&Fingerprint::default());
    changes
        .into_iter()
        .map(|change| (change.relative_path, change.after.unwrap()))
        .collect()
}

/// What differs, in a line: `+` is there now, `-` is gone, `~` is another one.
fn difference(before: &Fingerprint, after: &Fingerprint) -> String {
    let line = |change: tracegate_core::fact::tool::SideEffect| {
        let sign = match (change.before, change.after) {
            (None, _) => '+',
            (_, None) => '-',
            (Some(_), Some(_)) => '~',
        };
        format!("{sign}{}", change.relative_path)
    };
    let changes = after.changes_since(before).into_iter().map(line);
    changes.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_change_is_seen_by_what_remembers() {
    type Change = fn(&mut Place);
    let rows: &[(&str, Change, &str)] = &[
        ("nothing", |_| {}, ""),
        ("a write", |p| p.write("src/a", "2"), "~src/a"),
        ("a new file", |p| p.write("src/new", "1"), "+src/new"),
        ("a file in a new folder", |p| p.write("x/y/z", "1"), "+x/y/z"),
        ("a deleted file", |p| p.remove("src/a"), "-src/a"),
        ("a deleted folder", |p| p.remove("src"), "-src/a -src/b"),
        (
            "a folder and back",
            |p| {
                p.remove("src");
                p.write("src/a", "1");
            },
            "-src/b",
        ),
        (
            "another file renamed over it, with the same length and time",
            |p| {
                p.write("aside.log", "2");
                fs::rename(p.path("aside.log"), p.path("src/a")).unwrap();
                let was = fs::metadata(p.path("src/b")).unwrap().modified().unwrap();
                let was = was.duration_since(std::time::UNIX_EPOCH).unwrap();
                set_modified(&p.path("src/a"), i64::try_from(was.as_secs()).unwrap() - 1);
            },
            "~src/a",
        ),
        (
            "a file becomes a folder",
            |p| {
                p.remove("src/a");
                p.write("src/a/deep", "1");
            },
            "-src/a +src/a/deep",
        ),
        (
            "a folder becomes a file",
            |p| {
                p.remove("src");
                p.write("src", "1");
            },
            "+src -src/a -src/b",
        ),
        (
            "a link leads elsewhere",
            |p| {
                p.remove("link");
                symlink("src/b", p.path("link")).unwrap();
                p.touch("");
            },
            "~link",
        ),
        (
            "a link becomes a file that reads like it",
            |p| {
                p.remove("link");
                p.write("link", "link src/a");
            },
            "~link",
        ),
        (
            "a rule more",
            |p| p.write(".gitignore", "*.log\nsrc\n"),
            "~.gitignore -src/a -src/b",
        ),
        (
            "a rule less",
            |p| p.write(".gitignore", ""),
            "~.gitignore +noise.log",
        ),
        (
            "an exception further down",
            |p| p.write("deep/.ignore", "!x.tmp\n"),
            "+deep/.ignore +deep/x.tmp",
        ),
        (
            "a rule further down",
            |p| p.write("src/.gitignore", "a\n"),
            "+src/.gitignore -src/a",
        ),
        (
            "rules that are gone",
            |p| p.remove("deep/.gitignore"),
            "-deep/.gitignore +deep/x.tmp",
        ),
        (
            "rules that are nobody else's",
            |p| p.write(".git/info/exclude", "b\n"),
            "-src/b",
        ),
        (
            "a pipe",
            |p| {
                let kind = FileType::Fifo;
                rustix::fs::mknodat(CWD, p.path("src/pipe"), kind, Mode::RWXU, 0).unwrap();
                p.touch("src/pipe");
            },
            "",
        ),
        ("our own record", |p| p.write(".tracegate/runs/x", "1"), ""),
    ];
    for (name, change, wanted) in rows {
        let mut place = Place::new(&[
            (".gitignore", "*.log\n"),
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/info/exclude", ""),
            ("noise.log", "1"),
            ("src/a", "1"),
            ("src/b", "1"),
            ("deep/.gitignore", "*.tmp\n"),
            ("deep/x.tmp", "1"),
        ]);
        symlink("src/a", place.path("link")).unwrap();
        place.touch("link");
        let before = place.settled();
        change(&mut place);
        let after = place.settled();
        assert_eq!(difference(&before, &after), *wanted, "{name}");
        // And once more, now that the change is remembered.
        assert_eq!(place.settled(), after, "{name}");
    }
}

#[test]
fn what_is_young_is_looked_at_again_though_its_stamp_is_the_same() {
    let mut place = Place::new(&[("dir/a", "1"), (".gitignore", "x\n"), ("x", "1")]);
    let now = Moment::of(SystemTime::now());
    let before = place.agreed(now).unwrap();
    // As if all of it happened within one tick of the clock: what is remembered gets the stamps that the disk has afterwards.
    fs::write(place.path("dir/a"), "2").unwrap();
    fs::write(place.path("dir/b"), "1").unwrap();
    fs::write(place.path(".gitignore"), "y\n").unwrap();
    for name in ["dir/a", "dir/b", "dir", ".gitignore"] {
        // The time of modification can be set; young is what was changed lately.
        set_modified(&place.path(name), place.tick);
    }
    let (_, top) = place.remembering.known.as_mut().unwrap();
    let mut open = vec![(place.dir.path().to_owned(), top)];
    while let Some((path, known)) = open.pop() {
        let stamp = |name: &Path| look(CWD, path.join(name)).unwrap();
        known.seen = Some(Seen::at(now, stamp(Path::new(""))));
        for entry in &mut known.entries {
            match entry {
                KnownEntry::File(file) => file.seen = Some(Seen::at(now, stamp(file.name.path()))),
                KnownEntry::Folder { name, known } => {
                    open.push((path.join(name.path()), known.as_mut().unwrap()));
                }
            }
        }
    }
    let after = place.agreed(now).unwrap();
    assert_eq!(difference(&before, &after), "~.gitignore ~dir/a +dir/b +x");
}

#[test]
fn a_time_that_was_set_back_hides_nothing() {
    let mut place = Place::new(&[("a", "1")]);
    let before = place.settled();
    let changed = || {
        let found = fs::symlink_metadata(place.path("a")).unwrap();
        (found.ctime(), found.ctime_nsec())
    };
    let modified = look(CWD, place.path("a")).unwrap().modified.0;
    let was = changed();
    fs::write(place.path("a"), "2").unwrap();
    set_modified(&place.path("a"), modified);
    // The clock that changes are stamped with moves on by itself.
    while changed() == was {
        set_modified(&place.path("a"), modified);
    }
    assert_eq!(difference(&before, &place.settled()), "~a");
}

#[test]
fn rules_that_cannot_be_read_to_their_end_are_refused_whenever_they_appear() {
    type Make = fn(&Path);
    let pipe: Make = |at| rustix::fs::mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let link: Make = |at| symlink("/dev/zero", at).unwrap();
    let large: Make = |at| fs::File::create(at).unwrap().set_len(1024 * 1024 + 1).unwrap();
    let folder: Make = |at| fs::create_dir(at).unwrap();
    for (name, make) in [
        ("src/.gitignore", pipe),
        ("src/.gitignore", link),
        (".gitignore", large),
        ("src/.ignore", folder),
        ("src/.ignore", pipe),
        (".git/info/exclude", pipe),
        (".git/info/exclude", link),
    ] {
        let mut place = Place::new(&[("src/a", "1"), (".git/info/x", "")]);
        let before = place.settled();
        make(&place.path(name));
        place.touch(name);
        let refused = place.agreed(later()).unwrap_err();
        assert_eq!(
            refused,
            format!("`{name}` is not a regular file of at most 1 MiB")
        );
        place.remove(name);
        assert_eq!(place.settled(), before, "{name}");
    }
    // What git ignores is not looked into.
    let mut place = Place::new(&[("out/.gitignore", "*\n"), (".gitignore", "out\n")]);
    place.remove("out/.gitignore");
    pipe(&place.path("out/.gitignore"));
    assert_eq!(
        paths(&Ok(place.settled())).into_keys().collect::<Vec<_>>(),
        [".gitignore"]
    );
}

#[test]
fn a_workspace_with_too_many_files_is_described_by_its_first_ones() {
    let names = ["a.txt", "a/1", "a/2", "b/c/1", "b/c/2", "b/d", "c"];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "1")).collect();
    for most in 1..=names.len() {
        let mut place = Place::new(&files);
        place.remembering.most_files = most;
        let first = |place: &mut Place| paths(&Ok(place.settled())).into_keys().collect::<Vec<_>>();
        assert_eq!(first(&mut place), names[..most]);
        place.remove("a");
        let left: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("a/")).collect();
        assert_eq!(first(&mut place), left[..most.min(left.len())]);
        place.write("a/1", "2");
        place.write("a/2", "2");
        assert_eq!(first(&mut place), names[..most]);
    }
}

#[test]
fn no_two_names_are_spelled_alike() {
    let names: [&[u8]; 4] = [b"a\xff", b"a\xfe", "a\u{fffd}".as_bytes(), b"a"];
    let mut place = Place::new(&[]);
    for name in names {
        fs::write(place.path("").join(OsStr::from_bytes(name)), "1").unwrap();
    }
    let spelled = paths(&Ok(place.settled())).into_keys();
    let wanted = [
        "a",
        "a\u{fffd}\u{fffd}61efbfbd",
        "a\u{fffd}\u{fffd}61fe",
        "a\u{fffd}\u{fffd}61ff",
    ];
    assert_eq!(spelled.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_fingerprint_is_read_back_as_it_was_and_its_digest_is_that_of_its_paths_and_contents() {
    let mut place = Place::new(&[("a.b", "1"), ("a/b", "1"), ("a/c/d", "1"), ("b", "1")]);
    let print = place.settled();
    let text = serde_json::to_string(&print).unwrap();
    let read: Fingerprint = serde_json::from_str(&text).unwrap();
    assert_eq!((read.digest(), read), (print.digest(), print.clone()));
    // An empty folder holds no file, and equal trees are equal wherever they lie.
    let mut other = Place::new(&[("b", "1"), ("a/c/d", "1"), ("a/b", "1"), ("a.b", "1")]);
    fs::create_dir_all(other.path("empty/er")).unwrap();
    assert_eq!(other.settled(), print);
    assert_eq!(print.file("a/c/d"), print.file("b"));
    for path in ["a/c", "a", "a/c/d/e", "", "a/", "c"] {
        assert_eq!(print.file(path), None, "{path}");
    }
    let deep = format!(
        r#"{{"files": {{"{}x": "{}"}}}}"#,
        "a/".repeat(5000),
        print.digest()
    );
    assert!(serde_json::from_str::<Fingerprint>(&deep).is_err());
}

#[test]
fn the_commit_that_is_checked_out_is_named_without_running_git() {
    let (one, two) = ("1".repeat(40), "2".repeat(64));
    let packed =
        format!("# pack-refs with: peeled \n{one} refs/heads/main\n^{two}\n{two} refs/heads/other\n");
    type Files<'a> = &'a [(&'a str, &'a str)];
    let rows: &[(Files<'_>, Option<&str>)] = &[
        (&[], None),
        (&[(".git/HEAD", &one)], Some(&one)),
        (&[(".git/HEAD", "ref: refs/heads/main\n")], None),
        (
            &[
                (".git/HEAD", "ref: refs/heads/main\n"),
                (".git/refs/heads/main", &two),
            ],
            Some(&two),
        ),
        (
            &[
                (".git/HEAD", "ref: refs/heads/main\n"),
                (".git/packed-refs", &packed),
            ],
            Some(&one),
        ),
        (
            &[
                (".git/HEAD", "ref: refs/heads/other"),
                (".git/packed-refs", &packed),
            ],
            Some(&two),
        ),
        (
            &[(".git/HEAD", "ref: refs/heads/ma"), (".git/packed-refs", &packed)],
            None,
        ),
        (
            &[
                (".git/HEAD", "ref: refs/heads/a"),
                (".git/refs/heads/a", "ref: refs/heads/b"),
                (".git/refs/heads/b", &one),
            ],
            None,
        ),
        (
            &[
                (".git/HEAD", "ref: refs/../HEAD2"),
                (".git/refs/x", ""),
                (".git/HEAD2", &one),
            ],
            None,
        ),
        (&[(".git/HEAD", "ref: /HEAD2"), (".git/HEAD2", &one)], None),
        (&[(".git/HEAD", "a secret that is no commit")], None),
        (
            &[
                (".git", "gitdir: real/worktrees/w\n"),
                ("real/worktrees/w/HEAD", "ref: refs/heads/main\n"),
                ("real/worktrees/w/commondir", "../..\n"),
                ("real/refs/heads/main", &one),
            ],
            Some(&one),
        ),
        (&[(".git", "gitdir: nowhere\n")], None),
    ];
    for (files, wanted) in rows {
        let mut place = Place::new(files);
        let state = place.settled().state_since(None);
        assert_eq!(state.head.as_deref(), *wanted, "{files:?}");
        let text = serde_json::to_value(&state).unwrap();
        assert_eq!(text.get("head").is_some(), wanted.is_some());
        assert_eq!(serde_json::from_value::<WorkspaceState>(text).unwrap(), state);
    }
    // No link shows what lies elsewhere, and no pipe is waited for.
    let mut place = Place::new(&[(".git/HEAD", "ref: refs/heads/main"), ("secret", &one)]);
    fs::create_dir_all(place.path(".git/refs/heads")).unwrap();
    symlink("../../../secret", place.path(".git/refs/heads/main")).unwrap();
    assert_eq!(place.settled().state_since(None).head, None);
    place.write("elsewhere/main", &one);
    place.remove(".git/refs/heads");
    symlink("../../elsewhere", place.path(".git/refs/heads")).unwrap();
    assert_eq!(place.settled().state_since(None).head, None);
    place.remove(".git/HEAD");
    rustix::fs::mknodat(CWD, place.path(".git/HEAD"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(place.settled().state_since(None).head, None);
}

#[test]
fn a_branch_that_moves_is_seen_in_packed_refs_too() {
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    let packed = |id: &str| format!("{id} refs/heads/main\n");
    let mut place = Place::new(&[
        (".git/HEAD", "ref: refs/heads/main"),
        (".git/packed-refs", &packed(&one)),
    ]);
    let head = |place: &mut Place| place.settled().state_since(None).head;
    assert_eq!(head(&mut place), Some(one.clone()));
    place.write(".git/packed-refs", &packed(&two));
    assert_eq!(head(&mut place), Some(two));
    place.write(".git/refs/heads/main", &one);
    assert_eq!(head(&mut place), Some(one));
}

/// The paths that the `ignore` crate's own walk finds.
fn walked(root: &Path) -> Vec<String> {
    let mut walk = ignore::WalkBuilder::new(root);
    walk.hidden(false)
        .require_git(false)
        .git_global(false)
        .parents(false);
    walk.filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | ".tracegate")));
    let files = walk.build().flatten().filter(|entry| {
        let kind = entry.file_type().unwrap();
        kind.is_file() || kind.is_symlink()
    });
    let name = |entry: ignore::DirEntry| {
        entry
            .path()
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let mut names: Vec<String> = files.map(name).collect();
    names.sort_unstable();
    names
}

#[derive(Debug, Clone)]
enum Step {
    Write(String, String),
    Remove(String),
    Link(String, String),
    Rename(String, String),
    Folder(String),
    Rules(String, String),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(vec!["a", "b", "a.b", "c"]);
    let path = move || prop::collection::vec(name(), 1..4).prop_map(|parts| parts.join("/"));
    let text = || prop::sample::select(vec!["1", "2", "link a", ""]).prop_map(str::to_owned);
    // What is written through a link would get a time stamp of its own: nothing lies where these lead.
    let target = || prop::sample::select(vec!["nowhere/1", "nowhere/2"]).prop_map(str::to_owned);
    let rules = || {
        let line = prop::sample::select(vec!["a", "/b", "!a", "c/", "*.b", "!/a/b", "a/**", "#", "!c"]);
        prop::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"))
    };
    let file = || {
        let at = prop::sample::select(vec!["", "a/", "b/", "a/b/"]);
        let name = prop::sample::select(vec![".gitignore", ".ignore", ".git/info/exclude"]);
        (at, name).prop_map(|(at, name)| format!("{at}{name}"))
    };
    prop_oneof![
        4 => (path(), text()).prop_map(|(path, text)| Step::Write(path, text)),
        2 => path().prop_map(Step::Remove),
        1 => (path(), target()).prop_map(|(path, to)| Step::Link(path, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => path().prop_map(Step::Folder),
        3 => (file(), rules()).prop_map(|(file, rules)| Step::Rules(file, rules)),
        1 => file().prop_map(Step::Remove),
    ]
}

impl Place {
    /// Does a step as far as it can be done: what is in the way of a path stays there.
    fn go(&mut self, step: &Step) {
        let (Step::Write(path, _)
        | Step::Remove(path)
        | Step::Link(path, _)
        | Step::Folder(path)
        | Step::Rename(_, path)
        | Step::Rules(path, _)) = step;
        let at = self.path(path);
        let done = match step {
            Step::Remove(_) => fs::remove_file(&at).or_else(|_| fs::remove_dir_all(&at)),
            Step::Write(..) | Step::Rules(..) | Step::Link(..) | Step::Folder(_) | Step::Rename(..) => {
                fs::create_dir_all(at.parent().unwrap())
            }
        };
        let done = done.and_then(|()| match step {
            Step::Write(_, text) | Step::Rules(_, text) => fs::write(&at, text),
            Step::Link(_, to) => symlink(to, &at),
            Step::Folder(_) => fs::create_dir(&at),
            Step::Rename(from, _) => fs::rename(self.path(from), &at),
            Step::Remove(_) => Ok(()),
        });
        if let (Ok(()), Step::Rename(from, _)) = (done, step) {
            self.touch(from);
        }
        self.touch(path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_equals_what_is_seen_afresh(
        steps in prop::collection::vec((step(), prop::bool::ANY), 1..24),
        most in prop_oneof![3 => Just(MAX_FILES), 1 => 1_usize..6],
    ) {
        let mut place = Place::new(&[]);
        place.remembering.most_files = most;
        for (step, settled) in &steps {
            place.go(step);
            let now = if *settled { later() } else { Moment::of(SystemTime::now()) };
            let print = place.agreed(now).unwrap();
            let mut wanted = walked(place.dir.path());
            wanted.truncate(most);
            prop_assert_eq!(paths(&Ok(print)).into_keys().collect::<Vec<_>>(), wanted);
        }
    }
}
