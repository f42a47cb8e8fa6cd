//! Assertions about how much a run took: steps, tokens, requests.

use super::{Finding, Results, record::Record};
use crate::case::Expected;
use tracegate_core::{fact::model::ReplyKind, ids::Seq};

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    let steps = steps(record);
    let count = steps.len() as u64;
    if let Some(min) = expected.min_steps {
        let finding = if count < min {
            Finding::fail(
                format!("{count} steps"),
                format!("{count} steps, at least {min} wanted"),
            )
        } else {
            Finding::pass(format!("{count} steps"))
        };
        results.gate("minSteps", "", format!("at least {min} steps"), finding);
    }
    if let Some(max) = expected.max_steps {
        let finding = at_most(&steps, max, "steps");
        results.gate("maxSteps", "", format!("at most {max} steps"), finding);
    }
    if let Some(max) = expected.max_tokens {
        let finding = few_tokens(record, max);
        results.gate("maxTokens", "", format!("at most {max} tokens"), finding);
    }
    if let Some(max) = expected.max_model_calls {
        let finding = at_most(&record.requests, max, "model calls");
        results.gate("maxModelCalls", "", format!("at most {max} model calls"), finding);
    }
}

/// A step is a reply that asks for actions or is final; a request without a usable reply is none.
pub(super) fn steps(record: &Record<'_>) -> Vec<Seq> {
    record
        .replies
        .iter()
        .filter(|(_, reply)| match reply.reply_kind {
            ReplyKind::ToolCalls | ReplyKind::Final => true,
            ReplyKind::None => false,
        })
        .map(|(seq, _)| *seq)
        .collect()
}

fn at_most(seqs: &[Seq], max: u64, what: &str) -> Finding {
    let count = seqs.len() as u64;
    let first_over = usize::try_from(max).ok().and_then(|max| seqs.get(max));
    match first_over {
        Some(seq) => Finding::broken(
            format!("{count} {what}"),
            format!("{count} {what}, at most {max} wanted (event {seq})"),
        )
        .with([*seq]),
        None => Finding::pass(format!("{count} {what}")),
    }
}

fn few_tokens(record: &Record<'_>, max: u64) -> Finding {
    let mut total = record.subcall_tokens;
    let mut unknown = None;
    for (seq, reply) in &record.replies {
        let tokens = reply.usage.total();
        total = total.saturating_add(tokens);
        if total > max {
            return Finding::broken(
                format!("more than {max} tokens"),
                format!("{total} tokens, at most {max} wanted (event {seq})"),
            )
            .with([*seq]);
        }
        // A reply takes at least one token, so that none means that nobody counted.
        if tokens == 0 && reply.reply_kind != ReplyKind::None {
            unknown.get_or_insert(*seq);
        }
    }
    match unknown {
        Some(seq) => {
            Finding::error(format!("the tokens of a reply are not recorded (event {seq})")).with([seq])
        }
        None if total > max => Finding::broken(
            format!("{total} tokens"),
            format!("{total} tokens, at most {max} wanted"),
        ),
        None => Finding::pass(format!("{total} tokens")),
    }
}
