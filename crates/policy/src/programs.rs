//! The table of known programs: which options are harmless, which take values, which words are paths.
//!
//! Facts come from the manual pages of GNU coreutils, findutils, grep, sed, diffutils, ripgrep, fd and git.
//! An option that is not listed makes the command class shell, because GNU programs and git accept
//! abbreviations (`--outp=x`): the table says what is known to be harmless, never what is dangerous.
//!
//! Options are written as the program spells them, with marks after the name:
//! `=` takes a value · `?` may carry a value after `=` only · `<` its value is a path that is read ·
//! `>` its value is a path that is written · `^` it stands for the first operand (pattern, script) ·
//! `*` operands are whole trees · `!` operands are changed in place · `-#` any number, as in `head -40`.

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Words that are no paths.
    Plain,
    /// No operand at all; one makes the command class shell.
    Nothing,
    /// Paths whose names are listed.
    List,
    /// Paths that are read.
    Read,
    /// A pattern, then paths that are read.
    PatternThenRead,
    /// A pattern, then trees that are read; the workspace if there is none.
    PatternThenReadTree,
    /// A pattern, then folders whose names are listed with everything beneath.
    PatternThenList,
    /// A sed script, then paths that are read.
    SedScriptThenRead,
    /// One path that is read and a second that is written.
    ReadThenWrite,
    /// Paths that are made or changed.
    Write,
    /// A mode, then paths that are changed.
    ModeThenWrite,
    /// Paths that are removed.
    Delete,
    /// Paths that are read; the last is written.
    Copy,
    /// Paths that are removed; the last is written.
    Move,
    /// find: folders, then an expression whose words the options list.
    Find,
    /// `+FORMAT` only.
    Format,
    /// git: revisions, `revision:path` and paths.
    Revisions,
}

/// A program, or a sub-command of git, that is understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) names: &'static str,
    pub(crate) options: &'static str,
    pub(crate) operands: Operands,
}

const fn program(names: &'static str, options: &'static str, operands: Operands) -> Program {
    Program {
        names,
        options,
        operands,
    }
}

/// Programs, found by their bare name.
pub(crate) const PROGRAMS: &[Program] = &[
    program("true false", "", Operands::Plain),
    program("pwd whoami", "-L -P", Operands::Nothing),
    program("id", "-u -g -G -n", Operands::Plain),
    program(
        "uname arch nproc",
        "-a -s -r -m -n -o -p --all",
        Operands::Nothing,
    ),
    program("hostname", "-s -f -i -I", Operands::Nothing),
    program(
        "date",
        "-u -I? -R --utc --iso-8601? --rfc-3339=",
        Operands::Format,
    ),
    program("echo", "-n -e -E", Operands::Plain),
    program("basename", "-a -z -s= --suffix=", Operands::Plain),
    program("dirname", "-z", Operands::Plain),
    program("seq", "-w -s= -f=", Operands::Plain),
    program("sleep", "", Operands::Plain),
    program("which", "-a", Operands::Plain),
    program(
        "realpath readlink",
        "-e -f -m -n -z -q -s --relative-to=<",
        Operands::List,
    ),
    program(
        "ls",
        "-a -A -l -h -1 -R -t -r -S -d -F -p -i -s -G -g -o -n -c -u -U -X -C -m -Q -k -L -H --all --almost-all \
         --human-readable --recursive --reverse --size --directory --classify? --color? --sort= --time= --time-style= \
         --full-time --group-directories-first --inode",
        Operands::List,
    ),
    program(
        "tree",
        "-a -d -f -i -s -h -L= -I= -P= -C -n -F -D -p -u -g --dirsfirst --noreport --prune --gitignore --du",
        Operands::List,
    ),
    program("stat", "-c= -f -t -L --format= --printf= --terse", Operands::List),
    program(
        "file",
        "-b -i -L -h --brief --mime --mime-type --mime-encoding",
        Operands::Read,
    ),
    program(
        "du",
        "-a -b -c -h -k -m -s -d= -x -L --all --total --human-readable --summarize --max-depth= --apparent-size --exclude=",
        Operands::List,
    ),
    program("df", "-h -k -T -i --human-readable", Operands::List),
    program(
        "test",
        "-f -d -e -r -w -x -s -L -h -n -z -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef",
        Operands::List,
    ),
    program(
        "cat",
        "-n -b -s -A -e -E -t -T -v -u --number --number-nonblank --show-all --squeeze-blank",
        Operands::Read,
    ),
    program("tac", "-b -r -s=", Operands::Read),
    program("nl", "-b= -n= -w= -s= -v= -i=", Operands::Read),
    program(
        "head tail",
        "-n= -c= -q -v -z -# --lines= --bytes= --quiet --verbose",
        Operands::Read,
    ),
    program(
        "wc",
        "-l -w -c -m -L --lines --words --bytes --chars --max-line-length",
        Operands::Read,
    ),
    program(
        "cut",
        "-d= -f= -c= -b= -s -z --delimiter= --fields= --characters= --bytes= --only-delimited --complement --output-delimiter=",
        Operands::Read,
    ),
    program(
        "sort",
        "-n -r -u -f -b -d -g -h -i -M -V -R -s -c -C -m -z -k= -t= --numeric-sort --reverse --unique --ignore-case --key= --field-separator= --version-sort --human-numeric-sort --stable --check? -o> --output=>",
        Operands::Read,
    ),
    program(
        "uniq",
        "-c -d -D -i -u -z -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars=",
        Operands::ReadThenWrite,
    ),
    program(
        "diff",
        "-u -c -q -s -y -i -w -b -B -N -a -p -r* -U= -C= -W= --unified? --context? --brief --side-by-side --ignore-case --ignore-all-space --ignore-space-change --recursive* --new-file --color? --text --width= --suppress-common-lines --report-identical-files",
        Operands::Read,
    ),
    program("cmp", "-s -l -b -n= --silent --quiet --bytes=", Operands::Read),
    program(
        "comm",
        "-1 -2 -3 --check-order --nocheck-order --total",
        Operands::Read,
    ),
    program("paste", "-d= -s --delimiters= --serial", Operands::Read),
    program("fold", "-w= -s -b --width= --spaces", Operands::Read),
    program("rev", "", Operands::Read),
    program("strings", "-a -n= -t= -e=", Operands::Read),
    program(
        "od hexdump",
        "-A= -t= -N= -j= -c -x -v -C -n= -s=",
        Operands::Read,
    ),
    program(
        "base64",
        "-d -w= -i --decode --wrap= --ignore-garbage",
        Operands::Read,
    ),
    program(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        "-b -t -z --binary --text --tag -a= --algorithm=",
        Operands::Read,
    ),
    program(
        "grep egrep fgrep zgrep",
        "-E -F -G -P -i -v -w -x -c -l -L -n -H -h -o -q -s -a -I -b -U -z -y -# -e=^ -f<^ -m= -A= -B= -C= -r* -R* \
         --extended-regexp --fixed-strings --perl-regexp --ignore-case --invert-match --word-regexp --line-regexp --count \
         --files-with-matches --files-without-match --line-number --with-filename --no-filename --only-matching --quiet \
         --silent --no-messages --text --null --max-count= --after-context= --before-context= --context= --regexp=^ \
         --file=<^ --recursive* --dereference-recursive* --include= --exclude= --exclude-dir= --color? --colour?",
        Operands::PatternThenRead,
    ),
    program(
        "rg",
        "-e=^ -f<^ -g= -t= -T= -i -S -s -v -w -x -c -l -n -N -H -I -o -q -a -F -P -U -u -L -. -0 -p -A= -B= -C= -m= -M= -d= -j= -r= \
         --files^ --type-list^ --regexp=^ --file=<^ --glob= --iglob= --type= --type-not= --ignore-case --smart-case \
         --case-sensitive --invert-match --word-regexp --line-regexp --count --count-matches --files-with-matches \
         --files-without-match --line-number --no-line-number --with-filename --no-filename --only-matching --quiet --text \
         --fixed-strings --pcre2 --multiline --hidden --no-ignore --no-ignore-vcs --follow --heading --no-heading --json \
         --color= --sort= --sortr= --max-count= --max-depth= --max-columns= --max-filesize= --after-context= \
         --before-context= --context= --threads= --replace= --stats --trim --vimgrep --column --no-messages --no-config --pretty",
        Operands::PatternThenReadTree,
    ),
    program(
        "fd fdfind",
        "-e= -t= -d= -E= -g -H -I -i -s -p -a -L -0 -u -F -1 -c= -S= --extension= --type= --max-depth= --min-depth= --exclude= \
         --glob --hidden --no-ignore --ignore-case --case-sensitive --full-path --absolute-path --follow --print0 --fixed-strings \
         --color= --max-results= --size= --changed-within= --changed-before=",
        Operands::PatternThenList,
    ),
    program(
        "find",
        "-name= -iname= -path= -ipath= -wholename= -regex= -iregex= -regextype= -type= -xtype= -maxdepth= -mindepth= -size= \
         -mtime= -mmin= -atime= -ctime= -newer=< -user= -group= -perm= -links= -empty -print -print0 -printf= -ls -prune -not \
         -a -and -o -or -true -false -depth -mount -xdev -follow -readable -writable -executable -quit -L -H -P -samefile=<",
        Operands::Find,
    ),
    program(
        "sed",
        "-n -E -r -s -u -z -e=^ --quiet --silent --regexp-extended --separate --null-data --expression=^ -i! --in-place!",
        Operands::SedScriptThenRead,
    ),
    program(
        "touch",
        "-a -m -c -t= -d= -r=< --no-create --date= --reference=<",
        Operands::Write,
    ),
    program("mkdir", "-p -v -m= --parents --verbose --mode=", Operands::Write),
    program(
        "truncate",
        "-s= -c -o -r=< --size= --no-create --reference=<",
        Operands::Write,
    ),
    program("tee", "-a -i --append --ignore-interrupts", Operands::Write),
    program(
        "chmod",
        "-v -c -f -R* --recursive* --verbose --changes --quiet",
        Operands::ModeThenWrite,
    ),
    program(
        "rm",
        "-f -i -I -v -d -r* -R* --force --verbose --dir --recursive* --one-file-system",
        Operands::Delete,
    ),
    program(
        "rmdir",
        "-p -v --parents --verbose --ignore-fail-on-non-empty",
        Operands::Delete,
    ),
    program("unlink", "", Operands::Delete),
    program(
        "cp",
        "-a* -r* -R* -d -f -i -n -p -u -v -T -L -P -H -x -t> --recursive* --archive* --force --no-clobber --update? --verbose --target-directory=> --no-target-directory --preserve? --parents",
        Operands::Copy,
    ),
    program(
        "mv",
        "-f -i -n -u -v -T -t> --force --no-clobber --update? --verbose --target-directory=> --no-target-directory",
        Operands::Move,
    ),
];

/// Sub-commands of git that only look. The rest of git is class shell or [`NETWORK`].
pub(crate) const GIT: &[Program] = &[
    program(
        "status",
        "-s -b -v -u? --short --branch --porcelain? --long --verbose --show-stash --ahead-behind --no-ahead-behind --untracked-files? --ignored?",
        Operands::Revisions,
    ),
    program(
        "diff log show",
        "-p -u -s -# -n= -U= -w -b -M? -C? -S= -G= -L= -R -z -1 -i -E -F -P -q --stat? --shortstat --numstat --name-only --name-status --summary \
         --oneline --graph --decorate? --all --branches? --tags? --remotes? --patch --no-patch --cached --staged --merge-base \
         --word-diff? --color? --no-color --minimal --patience --histogram --ignore-all-space --ignore-space-change --ignore-blank-lines \
         --unified= --find-renames? --find-copies? --diff-filter= --max-count= --skip= --since= --after= --until= --before= --author= \
         --committer= --grep= --format= --pretty? --date= --abbrev? --abbrev-commit --no-abbrev-commit --reverse --first-parent --merges --no-merges --follow \
         --full-index --binary --check --exit-code --quiet --no-ext-diff --no-textconv --no-renames --topo-order --date-order --left-right --cherry-pick \
         --relative? --no-prefix --text --function-context --compact-summary --no-index --ignore-submodules? --submodule?",
        Operands::Revisions,
    ),
    program(
        "blame annotate",
        "-L= -w -M? -C? -s -e -l -t -f -n -p --porcelain --line-porcelain --show-email --show-name --show-number --date= --since= --root",
        Operands::Revisions,
    ),
    program(
        "rev-parse",
        "-q --show-toplevel --show-prefix --show-cdup --git-dir --is-inside-work-tree --is-bare-repository --abbrev-ref? --short? --verify --quiet --symbolic --symbolic-full-name --all --branches --tags",
        Operands::Revisions,
    ),
    program(
        "rev-list",
        "-n= -# --all --count --max-count= --since= --until= --no-merges --merges --reverse --first-parent --left-right --oneline --abbrev-commit",
        Operands::Revisions,
    ),
    program(
        "ls-files",
        "-c -d -m -o -i -s -u -z -v -t -x= --cached --deleted --modified --others --ignored --stage --exclude-standard --exclude= --full-name --error-unmatch",
        Operands::Revisions,
    ),
    program(
        "ls-tree",
        "-r -t -d -l -z --name-only --name-status --long --full-name --full-tree --abbrev?",
        Operands::Revisions,
    ),
    program("cat-file", "-t -s -e -p", Operands::Revisions),
    program(
        "merge-base",
        "-a --all --is-ancestor --fork-point --octopus",
        Operands::Revisions,
    ),
    program(
        "describe",
        "--tags --all --long --always --dirty? --abbrev? --match= --exclude= --contains --exact-match",
        Operands::Revisions,
    ),
    program(
        "shortlog",
        "-s -n -e -c --summary --numbered --email --all --no-merges --since= --until=",
        Operands::Revisions,
    ),
    program(
        "branch",
        "-a -r -v --all --remotes --verbose --list --show-current --color? --no-color --sort= --format=",
        Operands::Nothing,
    ),
    program("tag", "-l -n? --list --sort= --format=", Operands::Nothing),
    program("remote", "-v --verbose", Operands::Nothing),
    program("version", "", Operands::Nothing),
];

/// Programs, or programs with a first word, that talk to other machines.
pub(crate) const NETWORK: &[&str] = &[
    "curl",
    "wget",
    "aria2c",
    "http",
    "https",
    "xh",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "lftp",
    "ping",
    "ping6",
    "dig",
    "nslookup",
    "host",
    "whois",
    "traceroute",
    "tracepath",
    "mtr",
    "nmap",
    "openssl",
    "gh",
    "glab",
    "aws",
    "gcloud",
    "az",
    "kubectl",
    "helm",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "apk",
    "pacman",
    "brew",
    "snap",
    "twine",
    "rclone",
    "git fetch",
    "git pull",
    "git push",
    "git clone",
    "git ls-remote",
    "git submodule",
    "git remote",
    "git archive",
    "git send-email",
    "git request-pull",
    "git svn",
    "git lfs",
    "npm install",
    "npm i",
    "npm ci",
    "npm add",
    "npm update",
    "npm publish",
    "npm view",
    "npm audit",
    "npm outdated",
    "npm search",
    "npm login",
    "npm install-test",
    "npm it",
    "npm exec",
    "npm init",
    "npm create",
    "pnpm install",
    "pnpm i",
    "pnpm add",
    "pnpm update",
    "pnpm publish",
    "pnpm dlx",
    "pnpm fetch",
    "yarn install",
    "yarn add",
    "yarn upgrade",
    "yarn publish",
    "yarn dlx",
    "bun install",
    "bun add",
    "pip install",
    "pip download",
    "pip search",
    "pip3 install",
    "pip3 download",
    "pipx install",
    "uv pip",
    "uv add",
    "uv sync",
    "uv tool",
    "poetry install",
    "poetry add",
    "poetry update",
    "poetry publish",
    "cargo install",
    "cargo add",
    "cargo update",
    "cargo fetch",
    "cargo publish",
    "cargo search",
    "cargo login",
    "cargo yank",
    "cargo owner",
    "gem install",
    "gem push",
    "gem update",
    "bundle install",
    "bundle update",
    "go get",
    "go install",
    "go mod",
    "docker pull",
    "docker push",
    "docker login",
    "docker run",
    "docker search",
    "podman pull",
    "podman push",
    "podman run",
    "composer install",
    "composer require",
    "composer update",
];

/// Programs that run the command in their arguments: their words are judged as commands too.
pub(crate) const WRAPPERS: &[&str] = &[
    "env",
    "nice",
    "ionice",
    "nohup",
    "timeout",
    "time",
    "stdbuf",
    "setsid",
    "xargs",
    "command",
    "exec",
    "builtin",
    "chroot",
    "unshare",
    "nsenter",
    "busybox",
    "toybox",
    "strace",
    "ltrace",
    "watch",
    "flock",
    "parallel",
    "chrt",
    "taskset",
    "prlimit",
    "script",
    "eatmydata",
    "faketime",
    "fakeroot",
    "bwrap",
    "setarch",
    "linux64",
    "catchsegv",
    "find",
    "fd",
    "fdfind",
];

/// Shells whose `-c` script is looked into.
pub(crate) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"];

/// Options of download programs whose value is a path, with the operation: `>` written, `<` read.
pub(crate) const TRANSFER_OPTIONS: &[(&str, char)] = &[
    ("-o", '>'),
    ("-O", '>'),
    ("-D", '>'),
    ("-c", '>'),
    ("-P", '>'),
    ("--output", '>'),
    ("--output-dir", '>'),
    ("--output-document", '>'),
    ("--directory-prefix", '>'),
    ("--dump-header", '>'),
    ("--cookie-jar", '>'),
    ("-T", '<'),
    ("-K", '<'),
    ("--upload-file", '<'),
    ("--config", '<'),
    ("--netrc-file", '<'),
    ("--post-file", '<'),
    ("--body-file", '<'),
];
