//! The list of what is to be done: kept in memory, one for all.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reply::{Problem, Reply};
use crate::tool::{Effect, Nothing, Tool, tool};

/// Most entries.
const MAX_TODOS: usize = 200;
/// Longest entry.
const MAX_CONTENT: usize = 4000;
/// Longest name of one.
const MAX_ID: usize = 100;

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Todos(Mutex<Vec<Todo>>);

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Todo {
    /// Its name, another one for every entry.
    id: String,
    /// What is to be done.
    content: String,
    /// How far it is.
    status: Status,
    /// How much it matters.
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
    /// The whole list: what is not in it is forgotten. At most one entry is in progress.
    todos: Vec<Todo>,
}

#[derive(Serialize, JsonSchema)]
struct List {
    /// The whole list.
    todos: Vec<Todo>,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    let read = tool::<Nothing, _, _>(
        "TodoRead",
        "Read the to-do list",
        Effect::Looks,
        "Shows the to-do list of this sandbox. Look at it at the beginning of work and after every step.",
        |workshop, _nothing, _call| async move { Ok(shown(workshop.todos.get())) },
    );
    let write = tool::<Write, _, _>(
        "TodoWrite",
        "Write the to-do list",
        Effect::Adds,
        "Replaces the to-do list of this sandbox. Write down the steps of work that has three or more of them, mark the one \
         you are at as in_progress (only one), and mark it as completed as soon as it is.",
        |workshop, args, _call| async move {
            check(&args.todos)?;
            workshop.todos.set(args.todos.clone());
            Ok(shown(args.todos))
        },
    );
    vec![read.answers::<List>(), write.answers::<List>()]
}

impl Todos {
    fn get(&self) -> Vec<Todo> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, todos: Vec<Todo>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = todos;
    }
}

fn check(todos: &[Todo]) -> Result<(), Problem> {
    if todos.len() > MAX_TODOS {
        return Err(Problem::new(format!(
            "the list has {} entries: {MAX_TODOS} are the most",
            todos.len()
        )));
    }
    let mut ids = BTreeSet::new();
    for todo in todos {
        let id = &todo.id;
        if id.is_empty() || id.len() > MAX_ID {
            return Err(Problem::new(format!(
                "every id has 1 to {MAX_ID} characters"
            )));
        }
        if !ids.insert(id) {
            return Err(Problem::new(format!(
                "two entries have the id {id:?}: every entry needs its own"
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

fn shown(todos: Vec<Todo>) -> Reply {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Completed => 'x',
        };
        format!("[{mark}] {}: {}", todo.id, todo.content)
    };
    let text = if todos.is_empty() {
        "the list is empty".to_owned()
    } else {
        todos.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    Reply::text(text).with_structured(List { todos })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::Bench;
    use serde_json::{Value, json};

    fn todo(id: &str, status: &str) -> Value {
        json!({"id": id, "content": "do it", "status": status, "priority": "high"})
    }

    #[tokio::test]
    async fn the_list_is_kept_as_it_was_written() {
        let bench = Bench::new();
        assert!(bench.text("TodoRead", json!({})).await.contains("empty"));
        let todos = json!([
            todo("a", "completed"),
            todo("b", "in_progress"),
            todo("c", "pending")
        ]);
        bench.text("TodoWrite", json!({"todos": todos})).await;
        let reply = bench.call("TodoRead", json!({})).await.unwrap();
        assert_eq!(reply.structured().unwrap()["todos"], todos);
        assert_eq!(reply.all_text(), "[x] a: do it\n[>] b: do it\n[ ] c: do it");
        // A list that is wrong changes nothing.
        let many: Vec<_> = (0..=MAX_TODOS)
            .map(|number| todo(&number.to_string(), "pending"))
            .collect();
        for (wrong, words) in [
            (
                json!([todo("a", "in_progress"), todo("b", "in_progress")]),
                "finish one first",
            ),
            (
                json!([todo("a", "pending"), todo("a", "pending")]),
                "needs its own",
            ),
            (json!([todo("", "pending")]), "1 to 100"),
            (json!([todo("a", "later")]), "later"),
            (
                json!([{"id": "a", "content": " ", "status": "pending"}]),
                "empty",
            ),
            (json!(many), "200 are the most"),
        ] {
            let problem = bench.problem("TodoWrite", json!({"todos": wrong})).await;
            assert!(problem.contains(words), "{problem}");
        }
        assert!(bench.text("TodoRead", json!({})).await.starts_with("[x] a"));
        bench.text("TodoWrite", json!({"todos": []})).await;
        assert!(bench.text("TodoRead", json!({})).await.contains("empty"));
    }
}
