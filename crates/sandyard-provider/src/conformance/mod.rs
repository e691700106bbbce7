//! The conformance suite: checks that every provider must pass.
//!
//! The checks run one after another on a live provider, each with instances of its own, and leave nothing behind. Checks of
//! missing capabilities are skipped and reported as such.
//!
//! | file | subject |
//! |---|---|
//! | `lifecycle` | create, pause, resume, stop, start, delete: each once, twice, and in the wrong state |
//! | `refusals` | invalid requests: the kind of error, and nothing left behind |
//! | `reads` | reads during a change, and of missing instances |
//! | `races` | concurrent calls, and calls whose answer was lost |
//! | `history` | past usage: recorded soon, in order, none while paused, deleted with the instance |
//! | `network` | egress: granted, changed, granted to a missing instance |
//! | `copies` | snapshots, forks, differences |
//! | `templates` | importing, listing, removing |
//! | `agent` | commands in an instance, across pauses and stops |
//! | `volumes` | folders that outlive instances: shared, persistent, removed, opened without an instance |

mod agent;
mod copies;
mod history;
mod lifecycle;
mod network;
mod races;
mod reads;
mod refusals;
mod subject;
mod templates;
mod volumes;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sandyard_core::Limits;

use crate::provider::{Capabilities, Provider};
use subject::{CheckError, CheckResult, Subject};

/// Bound on the duration of a check; none takes as long.
const CHECK_TIMEOUT: Duration = Duration::from_secs(300);

/// What the suite needs to know beyond the provider itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits of the instances that the suite creates.
    pub limits: Limits,
    /// Existing instances of other installations: they must not be listed.
    pub foreign_instances: Vec<String>,
    /// Whether a pause disconnects the readers of a command's output, as a long pause does at E2B. The command continues.
    pub does_pause_cut_off: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits {
                memory_bytes: 256 << 20,
                disk_bytes: 64 << 20,
                pids: 128,
                ..Limits::default()
            },
            foreign_instances: Vec::new(),
            does_pause_cut_off: false,
        }
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The provider passed.
    Passed,
    /// The provider lacks the capability.
    Skipped,
    /// The provider failed, with the reason.
    Failed(String),
}

/// The outcome of each check, by name.
#[derive(Clone, Debug)]
pub struct Report(pub Vec<(&'static str, Outcome)>);

impl Report {
    /// Panics when a check failed, for tests.
    ///
    /// # Panics
    /// When a check failed.
    pub fn assert(&self) {
        let has_failed = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Failed(_));
        assert!(!self.0.iter().any(has_failed), "\n{self}");
    }

    /// Number of passed checks.
    pub fn passed(&self) -> usize {
        let passed = |(_, outcome): &&(_, Outcome)| *outcome == Outcome::Passed;
        self.0.iter().filter(passed).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.0 {
            match outcome {
                Outcome::Passed => writeln!(f, "ok      {name}")?,
                Outcome::Skipped => writeln!(f, "skipped {name}")?,
                Outcome::Failed(message) => writeln!(f, "FAILED  {name}: {message}")?,
            }
        }
        Ok(())
    }
}

struct Check {
    name: &'static str,
    needs: fn(&Capabilities) -> bool,
    run: for<'a> fn(&'a Subject) -> Pin<Box<dyn Future<Output = CheckResult> + Send + 'a>>,
}

/// Makes the table: `needs => module::check`.
macro_rules! checks {
    ($($needs:expr => $module:ident :: $check:ident),* $(,)?) => {
        [$(Check {
            name: stringify!($check),
            needs: $needs,
            run: |subject| Box::pin($module::$check(subject)),
        }),*]
    };
}

/// Runs every check that the provider's capabilities allow.
pub async fn run(provider: Arc<dyn Provider>, options: &Options) -> Report {
    let always = |_: &Capabilities| true;
    let checks = checks![
        always => lifecycle::the_providers_info_is_valid,
        always => lifecycle::a_new_instance_runs_and_is_found_by_id_and_by_sandbox,
        always => lifecycle::concurrent_creates_make_different_instances,
        always => lifecycle::deleting_twice_succeeds_and_leaves_nothing,
        |can| can.can_pause => lifecycle::pausing_and_resuming_can_be_repeated,
        |can| can.can_stop => lifecycle::stopping_and_starting_can_be_repeated,
        |can| can.can_pause && can.can_stop => lifecycle::calls_in_the_wrong_state_are_conflicts,
        |can| can.can_pause && can.can_stop => lifecycle::every_state_can_be_deleted,
        always => lifecycle::ready_instances_are_not_listed,
        always => refusals::an_unknown_template_is_not_found,
        |can| can.can_limit => refusals::limits_out_of_range_are_invalid,
        always => refusals::bad_variable_names_are_invalid,
        always => refusals::calls_without_the_capability_are_unsupported,
        always => races::concurrent_deletes_leave_nothing,
        always => races::listing_during_creates_has_no_duplicates_and_misses_none,
        always => races::a_second_create_for_a_sandbox_is_found_too,
        always => reads::an_unknown_id_is_not_found,
        always => reads::foreign_instances_are_not_listed,
        |can| can.can_pause => reads::reads_find_an_instance_while_it_is_paused_and_resumed,
        always => reads::usage_is_reported_in_every_state,
        |can| can.can_recall_usage => history::the_history_has_a_point_soon_after_a_create,
        |can| can.can_recall_usage && can.can_pause => history::a_pause_leaves_earlier_points_unchanged,
        |can| can.can_recall_usage => history::a_missing_instance_has_no_history,
        always => network::egress_can_be_granted_twice_and_changed,
        always => network::a_missing_instance_has_no_egress,
        |can| can.can_pause => network::egress_can_be_changed_across_a_pause,
        |can| can.can_stop => network::egress_can_be_changed_across_a_stop,
        |can| can.can_snapshot && can.can_manage_templates => copies::a_snapshot_is_a_template_until_it_is_removed,
        |can| can.can_snapshot && can.can_manage_templates => copies::a_snapshot_with_a_bad_or_existing_name_is_refused,
        |can| can.can_fork => copies::a_fork_is_an_instance_of_its_own,
        |can| can.can_diff => copies::a_new_instance_has_no_differences,
        |can| can.can_manage_templates => templates::the_default_template_is_listed_and_cannot_be_removed,
        |can| can.can_manage_templates && can.can_import_templates => templates::an_archive_becomes_a_template,
        |can| can.can_manage_templates && can.can_import_templates => templates::an_invalid_archive_or_name_is_refused,
        always => agent::commands_run_with_the_instances_variables,
        |can| can.can_pause => agent::a_command_goes_on_after_a_pause,
        |can| can.can_stop => agent::files_outlive_a_stop,
        |can| can.can_fork && can.can_diff => agent::a_fork_has_the_files_and_the_difference_lists_them,
        |can| can.can_mount => volumes::a_missing_volume_is_not_found,
        |can| can.can_mount => volumes::bad_mounts_and_volumes_are_invalid,
        |can| can.can_mount => volumes::a_volume_is_deleted_when_no_instance_mounts_it,
        |can| can.can_mount => volumes::a_volume_is_shared_and_outlives_its_instances,
        |can| can.can_mount && can.can_stop && can.can_fork => volumes::stops_and_forks_keep_a_volume,
        |can| can.can_mount => volumes::files_are_accessible_without_instances,
    ];
    let capabilities = provider.info().capabilities;
    let mut outcomes = Vec::new();
    for check in checks {
        let outcome = if (check.needs)(&capabilities) {
            run_one(&check, provider.clone(), options.clone()).await
        } else {
            Outcome::Skipped
        };
        outcomes.push((check.name, outcome));
    }
    Report(outcomes)
}

async fn run_one(check: &Check, provider: Arc<dyn Provider>, options: Options) -> Outcome {
    let subject = Subject::new(provider, options);
    let done = tokio::time::timeout(CHECK_TIMEOUT, (check.run)(&subject)).await;
    let cleanup = subject.clean_up().await;
    match done {
        Err(_) => Outcome::Failed(format!("took longer than {CHECK_TIMEOUT:?}")),
        Ok(Err(CheckError::NotApplicable)) => Outcome::Skipped,
        Ok(Err(CheckError::Failed(message))) => Outcome::Failed(message),
        Ok(Ok(())) => cleanup.map_or_else(
            |message| Outcome::Failed(format!("cleaning up: {message}")),
            |()| Outcome::Passed,
        ),
    }
}
