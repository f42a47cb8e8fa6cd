//! `tracegate export`: the spans of recorded runs, to a collector or as OTLP/JSON lines; or one run as another agent's files.
#![expect(
    clippy::disallowed_methods,
    reason = "the file that --output names is written here"
)]

mod fara;

use crate::{
    Outcome,
    args::{Export, Global, Target},
    commands::show::{store_of, warn},
    environment::Environment,
    failure::Failure,
    ingredients, print, runs, spans,
};
use tracegate_core::{redact::Redactor, stop::Exit};

pub(crate) fn export(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    match args.to {
        Target::Otlp => send(environment, global, args),
        Target::OtlpJson => write(environment, global, args),
        Target::Fara => fara::export(environment, global, args),
    }
}

fn send(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    let endpoint = spans::endpoint(environment, args.endpoint.as_deref())?
        .map_or_else(
            || spans::endpoint(environment, Some("http://localhost:4318")),
            |endpoint| Ok(Some(endpoint)),
        )?
        .ok_or_else(|| {
            Failure::usage("OTEL_SDK_DISABLED is set: nothing is sent")
                .help("unset it, or use --to otlp-json")
        })?;
    let (mut pending, mut whole) = (0, Exit::Ok);
    for name in &args.run {
        let (found, redactor) = found(environment, global, name)?;
        let projected = spans::of(&found.dir)?;
        let count = projected.spans.len();
        let sending = spans::Sending::new(endpoint.clone());
        if let Some(resource) = &projected.resource {
            sending.send(resource, projected.spans);
        }
        let (sent, left) = sending.finish(&redactor, found.dir.id());
        pending += left;
        let text = format!(
            "{}  sent {sent} of {count} spans to {}",
            found.dir.id(),
            endpoint.url()
        );
        print::answer(&redactor.scrub_text(text));
        whole = worse(whole, warn(&redactor, &found.tail));
    }
    Ok(if pending == 0 { whole } else { Exit::Internal })
}

fn write(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    let mut text = String::new();
    let mut redactor = print::stand_in(environment);
    let mut whole = Exit::Ok;
    for name in &args.run {
        let (found, of_store) = found(environment, global, name)?;
        text.push_str(&spans::lines(&spans::of(&found.dir)?)?);
        whole = worse(whole, warn(&of_store, &found.tail));
        redactor = of_store;
    }
    let text = redactor.scrub_text(text);
    let Some(output) = &args.output else {
        print::answer(&text);
        return Ok(whole);
    };
    std::fs::write(environment.dir.join(output), text.get()).map_err(|error| {
        Failure::new(
            Exit::Internal,
            format!("cannot write `{}`: {error}", output.display()),
        )
        .help("name a file in a directory that exists, or leave --output away")
    })?;
    Ok(whole)
}

/// One damaged log makes the whole export one of damaged logs.
fn worse(before: Exit, now: Exit) -> Exit {
    if now == Exit::Ok { before } else { now }
}

fn found(environment: &Environment, global: &Global, name: &str) -> Result<(runs::Found, Redactor), Failure> {
    let found = runs::find(environment, &store_of(environment, global), name)?;
    let redactor = ingredients::redactor(environment, &found.store, None);
    Ok((found, redactor))
}
