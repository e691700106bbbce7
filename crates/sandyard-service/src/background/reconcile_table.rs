//! What the reconciler does with a row and its instance. docs/design/lifecycle.md shows the table.

use sandyard_core::{SandboxState, SandboxStatus};

/// What the reconciler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileAction {
    /// Row and instance agree, or the provider is still changing the instance.
    None,
    /// Resumes the instance.
    Resume,
    /// Pauses the instance, or sets the row to `running` if the provider cannot pause it.
    Pause,
    /// Stops the instance.
    Stop,
    /// Sets the row to the state of the instance; to `error` if there is no instance.
    SyncRow,
    /// Finishes a create that a dead server left, or deletes the row if there is no running instance.
    FinishCreate,
    /// Finishes a delete that a dead server left.
    FinishDelete,
}

/// Decides what to do with a row that no operation holds, given the state of its instance; none if it has no instance.
pub(crate) fn decide(status: SandboxStatus, instance: Option<SandboxState>) -> ReconcileAction {
    use ReconcileAction as Action;
    use SandboxState as State;
    use SandboxStatus as Status;
    match (status, instance) {
        (Status::Creating, _) => Action::FinishCreate,
        (Status::Deleting, _) => Action::FinishDelete,
        (Status::Deleted, _) | (Status::Error, None) => Action::None,
        (_, Some(State::Creating | State::Deleting)) => Action::None,
        (Status::Running, Some(State::Running))
        | (Status::Paused, Some(State::Paused))
        | (Status::Stopped, Some(State::Stopped)) => Action::None,
        (Status::Running, Some(State::Paused)) => Action::Resume,
        (Status::Paused, Some(State::Running)) => Action::Pause,
        (Status::Stopped, Some(State::Running | State::Paused)) => Action::Stop,
        (Status::Running | Status::Paused, Some(State::Stopped))
        | (Status::Running | Status::Paused | Status::Stopped, None)
        | (Status::Error, Some(State::Running | State::Paused | State::Stopped)) => Action::SyncRow,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use sandyard_core::status::TRANSITIONS;

    use super::*;

    const STATES: [Option<SandboxState>; 6] = [
        None,
        Some(SandboxState::Creating),
        Some(SandboxState::Running),
        Some(SandboxState::Paused),
        Some(SandboxState::Stopped),
        Some(SandboxState::Deleting),
    ];

    fn describe(action: ReconcileAction) -> &'static str {
        match action {
            ReconcileAction::None => "–",
            ReconcileAction::Resume => "resume it",
            ReconcileAction::Pause => "pause it",
            ReconcileAction::Stop => "stop it",
            ReconcileAction::SyncRow => "set the row",
            ReconcileAction::FinishCreate => "finish the create",
            ReconcileAction::FinishDelete => "finish the delete",
        }
    }

    fn document() -> String {
        let mut text = "\
# The life of a sandbox

A test of `sandyard-service` generates this page from the tables that the code uses: `UPDATE_DOCS=1 cargo test -p sandyard-service --lib`.

The row in the store has a *status*: what the sandbox should be. The instance at the provider has a *state*: what it is.

## Transitions of the status

`TRANSITIONS` in `crates/sandyard-core/src/status.rs`. A commit with any other transition is refused.

| from | to | cause |
|---|---|---|
"
        .to_owned();
        for (from, to, cause) in TRANSITIONS {
            let _ = writeln!(text, "| `{from}` | `{to}` | {cause} |");
        }
        text += "
## What the reconciler does

`decide` in `crates/sandyard-service/src/background/reconcile_table.rs`. The reconciler compares all rows of a location with all instances
there, at the start and then every 30 seconds. It leaves rows with a live claim alone. Rows are statuses, columns are states of the
instance.

| | none | creating | running | paused | stopped | deleting |
|---|---|---|---|---|---|---|
";
        for status in SandboxStatus::ALL {
            let _ = write!(text, "| `{status}` |");
            for state in STATES {
                let _ = write!(text, " {} |", describe(decide(status, state)));
            }
            text.push('\n');
        }
        text += "
- *set the row*: the row gets the state of its instance, or `error` if there is none, with the reason.
- *finish the create*: a create whose server died. With a running instance the row becomes `running`, else it is deleted.
- *pause it*: if the provider cannot pause this instance, the row becomes `running` instead.

An instance that no row of its location has is an *orphan*: see `crates/sandyard-service/src/background/orphans.rs`.
";
        text
    }

    #[test]
    fn the_document_shows_the_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/lifecycle.md");
        let document = document();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &document).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == document,
            "docs/design/lifecycle.md is out of date: run with UPDATE_DOCS=1"
        );
    }

    /// Every action that changes the row makes a transition that the table allows.
    #[test]
    fn every_row_that_is_synced_makes_an_allowed_transition() {
        for status in SandboxStatus::ALL {
            for state in STATES {
                let next = match (decide(status, state), state) {
                    (ReconcileAction::SyncRow, None) => SandboxStatus::Error,
                    (ReconcileAction::SyncRow | ReconcileAction::Pause, Some(state)) => {
                        let name = serde_json::to_value(state).unwrap();
                        serde_json::from_value(name).unwrap()
                    }
                    _ => continue,
                };
                assert!(status.can_become(next), "{status} to {next}");
            }
        }
    }

    #[test]
    fn every_status_is_reached_and_left_as_a_life_goes() {
        for status in SandboxStatus::ALL {
            let is_reached = TRANSITIONS.iter().any(|(_, to, _)| *to == status);
            let is_left = TRANSITIONS.iter().any(|(from, _, _)| *from == status);
            assert_eq!(is_reached, status != SandboxStatus::Creating, "{status}");
            assert_eq!(is_left, status != SandboxStatus::Deleted, "{status}");
            let can_end = matches!(status, SandboxStatus::Deleting | SandboxStatus::Deleted);
            assert_eq!(
                status.can_become(SandboxStatus::Deleting),
                !can_end,
                "{status}"
            );
        }
    }
}
