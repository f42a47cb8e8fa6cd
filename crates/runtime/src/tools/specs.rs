//! How the model is told of the tools: one definition for every provider.

use crate::{model::ToolSpec, tools::Tool};
use serde_json::{Value, json};
use std::sync::LazyLock;

static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| Tool::ALL.into_iter().map(spec).collect());

/// Returns the tools on offer, always the same and in the same order.
#[must_use]
pub fn specs() -> &'static [ToolSpec] {
    &SPECS
}

fn spec(tool: Tool) -> ToolSpec {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let number = |what: &str| json!({ "type": "integer", "minimum": 1, "description": what });
    let path = || text("path relative to the workspace");
    let (description, properties, required): (_, Value, &[&str]) = match tool {
        Tool::ListFiles => (
            "List files below a directory of the workspace. Files that git ignores are left out.",
            json!({ "path": path(), "depth": number("levels to descend, 1 if absent") }),
            &[],
        ),
        Tool::ReadFile => (
            "Read a text file, whole or from one line to another.",
            json!({ "path": path(), "from": number("first line"), "to": number("last line") }),
            &["path"],
        ),
        Tool::SearchText => (
            "Find the lines that match a regular expression.",
            json!({ "pattern": text("regular expression"), "path": path() }),
            &["pattern"],
        ),
        Tool::WriteText => (
            "Write a whole text file; an existing one is replaced.",
            json!({ "path": path(), "content": text("the file's new text") }),
            &["path", "content"],
        ),
        Tool::EditText => (
            "Replace one passage of a text file. The old passage must stand there exactly once.",
            json!({ "path": path(), "old": text("the passage as it stands there"), "new": text("the new passage") }),
            &["path", "old", "new"],
        ),
        Tool::ShellReadonly => (
            "Run a command that changes no file, such as the tests.",
            json!({ "command": text("program and arguments, without shell operators") }),
            &["command"],
        ),
        Tool::Shell => (
            "Run a command.",
            json!({ "command": text("program and arguments, without shell operators") }),
            &["command"],
        ),
        Tool::AskUser => (
            "Ask the user something that you cannot find out. The run pauses until there is an answer.",
            json!({ "question": text("the question") }),
            &["question"],
        ),
    };
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec {
        name: tool.as_str(),
        description,
        parameters,
    }
}
