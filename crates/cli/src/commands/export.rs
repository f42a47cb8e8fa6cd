//! `tracegate export`: the spans of recorded runs, to a collector or as OTLP/JSON lines; or one run as another agent's files.
#![expect(
    clippy::disallowed_methods,
    reason = "the file that --output names is written here"
)]

mod fara;

use crate::{
    Outcome,
    args::{Export, Global, Target},
    commands::{
        run::{quote, same_place},
        show::{store_of, warn},
    },
    environment::Environment,
    failure::Failure,
    ingredients, print, runs, spans,
};
use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};
use tracegate_core::{
    redact::{Redactor, Scrubbed},
    stop::Exit,
};
use tracegate_otel::endpoint::{Endpoint, Silence, Typed};
use tracegate_store::{LogReader, RunDir, Store, Tail};

pub(crate) fn export(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    match args.to {
        Target::Otlp => send(environment, global, args),
        Target::OtlpJson => write(environment, global, args),
        Target::Fara => fara::export(environment, global, args),
    }
}

/// Where spans go if nothing else is said.
const LOCAL: &str = "http://localhost:4318";

/// Decides where to send: as typed, as the variables say, or to a Collector on this machine.
pub(crate) fn endpoint(
    environment: &Environment,
    typed: &Typed<'_>,
) -> Result<Result<Endpoint, Silence>, Failure> {
    let found = spans::endpoint(environment, typed)?;
    if found != Err(Silence::NoEndpoint) {
        return Ok(found);
    }
    let local = Typed {
        url: Some(LOCAL),
        ..typed.clone()
    };
    spans::endpoint(environment, &local)
}

fn send(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    let endpoint = endpoint(environment, &args.receiver.typed())?.map_err(|silence| {
        Failure::usage(format!("{silence}: nothing is sent")).help("unset it, or use --to otlp-json")
    })?;
    let mut whole = Exit::Ok;
    for name in &args.run {
        let (store, dir, redactor) = found(environment, global, name)?;
        let healing = spans::healed(&store, &dir, &redactor)?;
        let report = spans::send(&store, &dir, healing, &endpoint, &redactor, args.again)?;
        let run = format!("{}{}", quote(name), same_place(global));
        let url = endpoint.url();
        let total = report.sent + report.dead + report.pending;
        let text = if total == 0 && report.before > 0 {
            format!(
                "{}  {url} has all {} spans; once more: tracegate export {run} --again",
                dir.id(),
                report.before
            )
        } else {
            let before = match report.before {
                0 => String::new(),
                before => format!(", which has {before} already"),
            };
            format!(
                "{}  sent {} of {total} spans to {url}{before}",
                dir.id(),
                report.sent
            )
        };
        print::answer(&redactor.scrub_text(text));
        if let Some(text) = spans::complaint(&report, &endpoint, &dir, &run) {
            print::talk(&redactor.scrub_text(text));
        }
        if report.pending + report.dead > 0 {
            whole = worse(whole, Exit::Internal);
        }
        whole = worse(whole, warn(&redactor, &tail(&dir)?));
    }
    Ok(whole)
}

/// Reads a log to its end to say how it ends.
fn tail(dir: &RunDir) -> Result<Tail, Failure> {
    let mut reader = LogReader::open(dir)?;
    while reader.next_event()?.is_some() {}
    Ok(reader.tail())
}

fn write(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    let mut file = args
        .output
        .as_deref()
        .map(|output| Output::create(environment, output))
        .transpose()?;
    let mut whole = Exit::Ok;
    for name in &args.run {
        let (store, dir, redactor) = found(environment, global, name)?;
        // A store that cannot be written can still be read.
        spans::healed(&store, &dir, &redactor).ok();
        let mut lines = spans::Lines::of(&dir, &redactor)?;
        while let Some(line) = lines.next()? {
            match &mut file {
                Some(file) => file.write(&line)?,
                None => print::answer(&line),
            }
        }
        whole = worse(whole, warn(&redactor, &lines.tail()));
    }
    if let Some(file) = file {
        file.finish()?;
    }
    Ok(whole)
}

/// The file that `--output` names.
struct Output<'a> {
    name: &'a Path,
    file: BufWriter<File>,
}

impl<'a> Output<'a> {
    fn create(environment: &Environment, name: &'a Path) -> Result<Self, Failure> {
        let file = File::create(environment.dir.join(name)).map_err(|error| Self::failure(name, &error))?;
        let file = BufWriter::new(file);
        Ok(Self { name, file })
    }

    fn write(&mut self, line: &Scrubbed<String>) -> Result<(), Failure> {
        let written = self.file.write_all(line.get().as_bytes());
        written.map_err(|error| Self::failure(self.name, &error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.file
            .flush()
            .map_err(|error| Self::failure(self.name, &error))
    }

    fn failure(name: &Path, error: &std::io::Error) -> Failure {
        Failure::new(
            Exit::Internal,
            format!("cannot write `{}`: {error}", name.display()),
        )
        .help("name a file in a directory that exists, or leave --output away")
    }
}

/// One damaged log makes the whole export one of damaged logs.
fn worse(before: Exit, now: Exit) -> Exit {
    if now == Exit::Ok { before } else { now }
}

fn found(
    environment: &Environment,
    global: &Global,
    name: &str,
) -> Result<(Store, RunDir, Redactor), Failure> {
    let (store, dir) = runs::locate(environment, &store_of(environment, global), name)?;
    let redactor = ingredients::redactor(environment, &store, None);
    Ok((store, dir, redactor))
}
