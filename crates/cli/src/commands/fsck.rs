//! `tracegate fsck`: whether a run is whole, what is wrong with it and what to do; with `--salvage` a damaged log is written anew.

use crate::{
    Outcome,
    args::{Fsck, Global},
    commands::{
        run::{quote, same_place},
        show::store_of,
    },
    environment::Environment,
    failure::Failure,
    ingredients, print, runs,
};
use serde_json::json;
use tracegate_core::stop::{Exit, Status};
use tracegate_store::{Finding, Report, Salvage, SalvageError, Verdict, fsck as check, salvage};

/// How many findings fit between the verdict and the next command.
const SHOWN: usize = 8;

pub(crate) fn fsck(environment: &Environment, global: &Global, args: &Fsck) -> Outcome {
    let (store, dir) = runs::locate(environment, &store_of(environment, global), &args.run)?;
    let redactor = ingredients::redactor(environment, &store, None);
    let salvaged = if args.salvage {
        Some(salvage(&dir, &redactor, std::process::id())?)
    } else {
        None
    };
    let report = check(&store, &dir)?;
    let run = format!("{}{}", quote(&args.run), same_place(global));
    let text = if args.json {
        json!({ "report": report, "salvage": salvaged.as_ref().map(describe) }).to_string()
    } else {
        render(&report, salvaged.as_ref(), &run)
    };
    print::answer(&redactor.scrub_text(text));
    Ok(match report.verdict {
        Verdict::Whole | Verdict::Mendable => Exit::Ok,
        Verdict::Damaged => Exit::Integrity,
    })
}

impl From<SalvageError> for Failure {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Log(error) => error.into(),
            SalvageError::Mark(_) => Self::new(Exit::RecorderFailed, error)
                .help("the damaged log is still there: tracegate fsck RUN"),
        }
    }
}

/// Says what a salvage did in one sentence.
fn describe(salvage: &Salvage) -> String {
    match salvage {
        Salvage::Whole => "nothing to salvage: the log is whole".to_owned(),
        Salvage::OnlyTorn => "nothing to salvage: going on with the run mends the end of its log".to_owned(),
        Salvage::Done {
            kept,
            gaps,
            left_out,
            damaged,
        } => {
            let lost: u64 = gaps.iter().map(|(from, to)| to.0 - from.0 + 1).sum();
            format!(
                "salvaged: {kept} records kept, {lost} lost, {left_out} bytes left out; the damaged log is {damaged}"
            )
        }
    }
}

fn render(report: &Report, salvage: Option<&Salvage>, run: &str) -> String {
    let verdict = match report.verdict {
        Verdict::Whole
            if report
                .findings
                .iter()
                .any(|found| matches!(found, Finding::Gap { .. })) =>
        {
            "whole, but for what an earlier salvage marked as lost"
        }
        Verdict::Whole => "whole",
        Verdict::Mendable => "whole but for its end",
        Verdict::Damaged => "damaged",
    };
    let behind = if report.behind > 0 {
        format!(", {} good ones behind damage", report.behind)
    } else {
        String::new()
    };
    let mut lines = vec![format!(
        "{verdict}: {} ({} events verify up to byte {}{behind}; {} artifacts looked at)",
        report.run, report.verified, report.bytes, report.artifacts
    )];
    lines.extend(salvage.map(describe));
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict()));
    lines.extend(findings.iter().take(SHOWN).map(|finding| format!("  {finding}")));
    let more = findings.len().saturating_sub(SHOWN) as u64 + report.unlisted;
    if more > 0 {
        lines.push(format!("  and {more} more: --json lists them"));
    }
    let stuck = |found: &Finding| matches!(found, Finding::Stuck { .. } | Finding::Newer { .. });
    lines.push(if report.salvageable {
        format!("next: tracegate fsck {run} --salvage")
    } else if report.verdict == Verdict::Damaged
        || report.finished
        || report.status == Some(Status::WaitingForUser)
        || report.findings.iter().any(stuck)
    {
        format!("next: tracegate show {run}")
    } else {
        format!("next: tracegate resume {run}")
    });
    lines.join("\n")
}
