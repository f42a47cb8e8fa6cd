//! What a fingerprint of a workspace with 50,000 files costs, beside `git status` on the same tree in the same run.
//!
//! `cargo bench -p tracegate --bench fingerprint`
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench measures the machine it runs on, prints, and stops at the first surprise"
)]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tracegate::workspace::{Fingerprint, Fingerprints};
use tracegate_core::redact::{RedactionKey, Redactor};

const FOLDERS: usize = 500;
const FILES_IN_EACH: usize = 100;
const ROUNDS: u32 = 20;
/// How often in a round something is done that is too short to be measured once.
const REPEATED: u32 = 1000;
/// The unit of `/proc/self/stat`.
const TICK_MS: f64 = 10.0;

/// What something cost, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    cpu: f64,
    wall: f64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
    }

    fn each(self, rounds: u32) -> Self {
        let rounds = f64::from(rounds);
        Self {
            cpu: self.cpu / rounds,
            wall: self.wall / rounds,
        }
    }
}

/// The processor time of this process, which has one thread, in milliseconds.
fn own_cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e6
}

/// The processor time, user and system, of all threads of children that have ended, in milliseconds; they are counted in ticks.
fn children_cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(13) + ticks(14)) * TICK_MS
}

fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (began, cpu) = (Instant::now(), own_cpu());
    let result = work();
    let cost = Cost {
        cpu: own_cpu() - cpu,
        wall: began.elapsed().as_secs_f64() * 1e3,
    };
    (result, cost)
}

fn git(dir: &Path, args: &[&str]) -> bool {
    let plain = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"];
    let mut command = Command::new("git");
    command.args(plain).args(args).current_dir(dir);
    // The user's settings must not decide what is compared.
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn file(root: &Path, folder: usize, file: usize) -> std::path::PathBuf {
    root.join(format!(
        "package{:02}/module{folder:03}/file{file:03}.rs",
        folder % 20
    ))
}

/// 50,000 files of about 1 KiB; every tenth folder has a `.gitignore` and something that it ignores.
fn plant(root: &Path) {
    fs::write(root.join(".gitignore"), "target/\n*.log\n/local.toml\n").unwrap();
    for folder in 0..FOLDERS {
        let dir = file(root, folder, 0).parent().unwrap().to_owned();
        fs::create_dir_all(&dir).unwrap();
        for number in 0..FILES_IN_EACH {
            let line = format!("pub fn function_{folder}_{number}() -> usize {{ {number} }}\n");
            fs::write(file(root, folder, number), line.repeat(20)).unwrap();
        }
        if folder % 10 == 0 {
            fs::write(dir.join(".gitignore"), "*.tmp\n!keep.tmp\n").unwrap();
            fs::write(dir.join("ignored.tmp"), "x").unwrap();
            fs::write(dir.join("ignored.log"), "x").unwrap();
        }
    }
}

fn change_ten(root: &Path, round: u32) {
    for number in 0..10 {
        let text = format!("pub const ROUND: u32 = {round};\n");
        fs::write(file(root, number * 37, 7), text).unwrap();
    }
}

fn main() {
    if !git(Path::new("/"), &["--version"]) {
        println!("skipped: git is not installed, and there is nothing to compare with");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    plant(root);
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "all"],
    ] {
        assert!(git(root, args), "git {args:?}");
    }
    // What is younger than two seconds is looked at again by both.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(git(root, &["status", "--porcelain"]));

    let redactor = Redactor::new(RedactionKey::from_bytes([7; 32]), &[]);
    let fresh = || Fingerprints::new(redactor.clone());
    let mut prints = fresh();
    let (first, cold) = measure(|| prints.take(root).unwrap());
    let files = first.state_since(None).files;

    let (mut warm, mut status, mut state) = (Cost::default(), Cost::default(), Cost::default());
    let children = children_cpu();
    for _ in 0..ROUNDS {
        let (now, cost) = measure(|| prints.take(root).unwrap());
        assert!(now == first);
        warm.add(cost);
        let said = measure(|| (0..REPEATED).for_each(|_| drop(now.state_since(Some(&first)))));
        state.add(said.1.each(REPEATED));
        status.wall += measure(|| assert!(git(root, &["status", "--porcelain"]))).1.wall;
    }
    status.cpu = children_cpu() - children;

    let mut changed = Cost::default();
    let mut before: Fingerprint = first;
    for round in 0..ROUNDS {
        change_ten(root, round);
        let (now, cost) = measure(|| prints.take(root).unwrap());
        assert_eq!(now.state_since(Some(&before)).changed_total, 10);
        changed.add(cost);
        before = now;
    }
    assert!(before == fresh().take(root).unwrap());

    let status = status.each(ROUNDS);
    println!("{files} files in {FOLDERS} folders, mean of {ROUNDS} (cold: 1), milliseconds");
    println!("{:<28} {:>9} {:>9} {:>14}", "", "CPU", "wall", "CPU / git's");
    for (name, cost) in [
        ("fingerprint, cold", cold),
        ("fingerprint, warm", warm.each(ROUNDS)),
        ("warm, 10 files changed", changed.each(ROUNDS)),
        ("state_since", state.each(ROUNDS)),
        ("git status --porcelain", status),
    ] {
        let ratio = cost.cpu / status.cpu;
        println!("{name:<28} {:>9.3} {:>9.3} {ratio:>14.3}", cost.cpu, cost.wall);
    }
}
