//! `TodoRead` and `TodoWrite`: one to-do list for all callers, in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::{Effect, NoArguments, Tool, tool};
use crate::tool_state::ToolState;

/// Maximum number of entries.
const MAX_TODOS: usize = 200;
/// Maximum length of an entry.
const MAX_CONTENT: usize = 4000;
/// Maximum length of an ID.
const MAX_ID: usize = 100;

/// The to-do list.
#[derive(Debug, Default)]
pub(crate) struct Todos(Mutex<Vec<Todo>>);

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Todo {
    /// Unique ID of the entry.
    id: String,
    /// The task.
    content: String,
    /// Status of the task.
    status: Status,
    /// Priority of the task (default medium).
    #[serde(default)]
    priority: Priority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// The complete new list. At most one entry may be in_progress.
    todos: Vec<Todo>,
}

#[derive(Serialize, JsonSchema)]
struct List {
    /// The complete list.
    todos: Vec<Todo>,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool("TodoRead", Effect::Reads, read)
            .title("Read the to-do list")
            .description("Show the to-do list of this sandbox. Read it when you start working and after each step.")
            .with_output::<List>(),
        tool("TodoWrite", Effect::Adds, write)
            .title("Write the to-do list")
            .description("Replace the to-do list of this sandbox. Use it for work with three or more steps. Mark the current step (only one) as \
             in_progress, and mark it as completed as soon as it is done.")
            .with_output::<List>(),
    ]
}

async fn read(tool_state: Arc<ToolState>, _: NoArguments, _: Call) -> Answer {
    Ok(list_reply(tool_state.todos.get()))
}

async fn write(tool_state: Arc<ToolState>, Write { todos }: Write, _: Call) -> Answer {
    check(&todos)?;
    tool_state.todos.set(todos.clone());
    Ok(list_reply(todos))
}

impl Todos {
    fn get(&self) -> Vec<Todo> {
        self.0.lock().clone()
    }

    fn set(&self, todos: Vec<Todo>) {
        *self.0.lock() = todos;
    }
}

fn check(todos: &[Todo]) -> Result<()> {
    if todos.len() > MAX_TODOS {
        return Err(Problem::new(format!(
            "the list has {} entries, the maximum is {MAX_TODOS}",
            todos.len()
        )));
    }
    let mut ids = BTreeSet::new();
    for todo in todos {
        let id = &todo.id;
        if id.is_empty() || id.len() > MAX_ID {
            return Err(Problem::new(format!(
                "every id must have 1 to {MAX_ID} characters"
            )));
        }
        if !ids.insert(id) {
            return Err(Problem::new(format!(
                "two entries have the id {id:?}: every id must be unique"
            )));
        }
        if todo.content.trim().is_empty() || todo.content.len() > MAX_CONTENT {
            return Err(Problem::new(format!(
                "the content of {id:?} is empty or longer than {MAX_CONTENT} bytes"
            )));
        }
    }
    let in_progress = todos
        .iter()
        .filter(|todo| todo.status == Status::InProgress)
        .count();
    if in_progress > 1 {
        return Err(Problem::new(format!(
            "{in_progress} entries are in_progress: finish one first, or mark the others as pending"
        )));
    }
    Ok(())
}

fn list_reply(todos: Vec<Todo>) -> Reply {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Completed => 'x',
        };
        format!("[{mark}] {}: {}", todo.id, todo.content)
    };
    let text = if todos.is_empty() {
        "the to-do list is empty".to_owned()
    } else {
        todos.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    Reply::text(text).with_structured(List { todos })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_env::TestEnv;
    use serde_json::{Value, json};

    fn todo(id: &str, status: &str) -> Value {
        json!({"id": id, "content": "do it", "status": status, "priority": "high"})
    }

    #[tokio::test]
    async fn the_list_is_replaced_and_checked() {
        let env = TestEnv::new();
        assert!(env.text("TodoRead", json!({})).await.contains("empty"));
        let todos = json!([
            todo("a", "completed"),
            todo("b", "in_progress"),
            todo("c", "pending")
        ]);
        env.text("TodoWrite", json!({"todos": todos})).await;
        let reply = env.call("TodoRead", json!({})).await.unwrap();
        assert_eq!(reply.structured().unwrap()["todos"], todos);
        assert_eq!(reply.all_text(), "[x] a: do it\n[>] b: do it\n[ ] c: do it");
        // An invalid list changes nothing.
        let many: Vec<_> = (0..=MAX_TODOS)
            .map(|number| todo(&number.to_string(), "pending"))
            .collect();
        for (invalid, expected) in [
            (
                json!([todo("a", "in_progress"), todo("b", "in_progress")]),
                "finish one first",
            ),
            (
                json!([todo("a", "pending"), todo("a", "pending")]),
                "must be unique",
            ),
            (json!([todo("", "pending")]), "1 to 100"),
            (json!([todo("a", "later")]), "later"),
            (
                json!([{"id": "a", "content": " ", "status": "pending"}]),
                "empty",
            ),
            (json!(many), "the maximum is 200"),
        ] {
            let problem = env.problem("TodoWrite", json!({"todos": invalid})).await;
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(env.text("TodoRead", json!({})).await.starts_with("[x] a"));
        env.text("TodoWrite", json!({"todos": []})).await;
        assert!(env.text("TodoRead", json!({})).await.contains("empty"));
    }
}
