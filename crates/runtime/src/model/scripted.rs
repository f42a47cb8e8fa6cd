//! The scripted model: replies from a cassette, one JSON object a line (schema in `docs/evals.md`).

use crate::model::{Model, ModelError, ModelReply, ModelRequest, Replying, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};
use tracegate_core::fact::{model::Usage, run::ModelInfo};

/// A cassette that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct CassetteError {
    file: String,
    line: usize,
    column: usize,
    message: String,
}

impl CassetteError {
    /// Returns what to do about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        "a cassette has one reply a line: {\"turn\":1,\"reply\":{\"text\":\"…\",\"tool_calls\":[{\"name\":\"read_file\",\"input\":{\"path\":\"…\"}}]}}"
    }
}

/// A line of a cassette.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The request that this answers, from 1; without it, the one after the line before.
    #[serde(default)]
    turn: Option<u32>,
    /// When this line is taken; among the lines of a turn the first that fits.
    #[serde(default)]
    when: Option<When>,
    reply: Reply,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    /// The file's text is in the context, by the context report alone.
    context_includes: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    input: Value,
}

/// A model that says what its cassette holds.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    file: String,
    turns: BTreeMap<u32, Vec<Entry>>,
    asked: AtomicU32,
}

impl ScriptedModel {
    /// Reads the cassette `text`; `file` is named in errors and as the model.
    ///
    /// # Errors
    /// When a line is no reply, or there is none at all.
    pub fn parse(file: &str, text: &str) -> Result<Self, CassetteError> {
        let error = |line, column, message| CassetteError {
            file: file.to_owned(),
            line,
            column,
            message,
        };
        let mut turns: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        let mut last = 0;
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let entry: Entry = serde_json::from_str(line).map_err(|cause| {
                let text = cause.to_string();
                let message = text
                    .rsplit_once(" at line ")
                    .map_or(text.as_str(), |(message, _)| message)
                    .to_owned();
                error(index + 1, cause.column(), message)
            })?;
            last = entry.turn.unwrap_or(last + 1);
            if last == 0 {
                return Err(error(index + 1, 1, "`turn` counts from 1".to_owned()));
            }
            turns.entry(last).or_default().push(entry);
        }
        if turns.is_empty() {
            return Err(error(1, 1, "the cassette holds no reply".to_owned()));
        }
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        Ok(Self {
            name,
            file: file.to_owned(),
            turns,
            asked: AtomicU32::new(0),
        })
    }

    fn reply(&self, turn: u32, context_files: &[String]) -> Result<ModelReply, ModelError> {
        let fits = |entry: &&Entry| {
            entry
                .when
                .as_ref()
                .is_none_or(|when| context_files.contains(&when.context_includes))
        };
        let Some(lines) = self.turns.get(&turn) else {
            let message = format!("the cassette `{}` has no reply for request {turn}", self.name);
            return Err(ModelError {
                kind: "cassette_exhausted",
                message,
            });
        };
        let entry = lines.iter().find(fits).ok_or_else(|| ModelError {
            kind: "cassette_miss",
            message: format!(
                "no reply for request {turn} of the cassette `{}` fits this context",
                self.name
            ),
        })?;
        serde_json::to_string(&entry.reply)
            .map_err(|error| ModelError {
                kind: "cassette_miss",
                message: error.to_string(),
            })
            .map(|raw| spoken(turn, &entry.reply, raw))
    }

    /// Says where the cassette lies for whoever goes on with the run.
    #[must_use]
    pub fn kept_at(self, path: &str) -> Self {
        Self {
            file: path.to_owned(),
            ..self
        }
    }

    /// Goes on after `requests` that an earlier process made.
    #[must_use]
    pub fn after(self, requests: u64) -> Self {
        self.asked
            .store(u32::try_from(requests).unwrap_or(u32::MAX), Ordering::Relaxed);
        self
    }
}

fn spoken(turn: u32, reply: &Reply, raw: String) -> ModelReply {
    let calls = reply.tool_calls.iter().enumerate();
    let tool_calls: Vec<ToolCall> = calls
        .map(|(index, call)| ToolCall {
            id: call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{turn}_{}", index + 1)),
            name: call.name.clone(),
            input: call.input.clone(),
        })
        .collect();
    let default = if tool_calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    ModelReply {
        raw,
        text: reply.text.clone(),
        reasoning: reply.reasoning.clone(),
        tool_calls,
        finish_reason: reply.finish_reason.clone().unwrap_or_else(|| default.to_owned()),
        usage: reply.usage,
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: "scripted".to_owned(),
            name: self.name.clone(),
            script: Some(self.file.clone()),
        }
    }

    fn recall(&self, raw: &str) -> Result<ModelReply, ModelError> {
        let reply: Reply = serde_json::from_str(raw).map_err(|error| ModelError {
            kind: "unreadable_reply",
            message: error.to_string(),
        })?;
        Ok(spoken(self.asked.load(Ordering::Relaxed), &reply, raw.to_owned()))
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest<'a>) -> Replying<'a> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(std::future::ready(self.reply(turn, request.context_files)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_chosen_by_turn_and_context() {
        let cassette = r#"
{"turn":1,"reply":{"tool_calls":[{"name":"read_file","input":{"path":"a"}}]}}
{"turn":2,"when":{"context_includes":"a.test"},"reply":{"text":"seen"}}
{"turn":2,"reply":{"text":"not seen"}}
"#;
        let model = ScriptedModel::parse("c.jsonl", cassette).unwrap();
        assert_eq!(model.reply(1, &[]).unwrap().tool_calls[0].id, "call_1_1");
        assert_eq!(model.reply(2, &["a.test".to_owned()]).unwrap().text, "seen");
        assert_eq!(model.reply(2, &["a".to_owned()]).unwrap().text, "not seen");
        assert_eq!(model.reply(3, &[]).unwrap_err().kind, "cassette_exhausted");
    }

    #[test]
    fn a_bad_line_is_named() {
        let check = |text: &str, wanted: &str| {
            assert_eq!(
                ScriptedModel::parse("c.jsonl", text).unwrap_err().to_string(),
                wanted
            );
        };
        check("", "c.jsonl:1:1: the cassette holds no reply");
        check("{\"reply\":{}}\n{", "c.jsonl:2:1: EOF while parsing an object");
        check("{\"turn\":0,\"reply\":{}}", "c.jsonl:1:1: `turn` counts from 1");
        check(
            "{\"repl\":{}}",
            "c.jsonl:1:7: unknown field `repl`, expected one of `turn`, `when`, `reply`",
        );
    }
}
