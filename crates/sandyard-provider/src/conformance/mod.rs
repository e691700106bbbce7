//! The conformance suite: what must be true of every provider.
//!
//! The checks run one after another on a live provider, each with instances of its own, and leave nothing behind. What the
//! provider says it cannot do is skipped, and said to be.
//!
//! | file | what it is about |
//! |---|---|
//! | `lifecycle` | create, pause, resume, stop, start, delete: each once, twice and out of turn |
//! | `refusals` | what makes no sense is refused by kind, and nothing is left of it |
//! | `reads` | looking while something changes, and at what is not there |
//! | `races` | calls at the same time, and calls whose answer nobody got |
//! | `history` | past usage: there soon, in order, none while paused, gone with the instance |
//! | `network` | egress: granted, changed, granted to a missing instance |
//! | `copies` | snapshots, forks, differences |
//! | `templates` | importing, listing, removing |
//! | `agent` | commands inside, across pauses and stops |
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
use subject::{Done, Subject, Trouble};

/// Longer than any check takes.
const CHECK_TIMEOUT: Duration = Duration::from_secs(300);

/// What the suite needs to know beyond the provider itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Limits of the instances it makes.
    pub limits: Limits,
    /// Instances that are there and are not this installation's: they must not be seen.
    pub foreign_instances: Vec<String>,
    /// Whether a pause cuts off those who listen to a command, as it does at E2B when it lasts. The command goes on.
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

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// The provider does not claim to be able to.
    Skipped,
    /// It does not hold, and why.
    Failed(String),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Report(pub Vec<(&'static str, Outcome)>);

impl Report {
    /// Panics with all that does not hold, for tests.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn assert(&self) {
        let has_failed = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Failed(_));
        assert!(!self.0.iter().any(has_failed), "\n{self}");
    }

    /// How many checks hold.
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
                Outcome::Failed(why) => writeln!(f, "FAILED  {name}: {why}")?,
            }
        }
        Ok(())
    }
}

struct Check {
    name: &'static str,
    needs: fn(&Capabilities) -> bool,
    run: for<'a> fn(&'a Subject) -> Pin<Box<dyn Future<Output = Done> + Send + 'a>>,
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
        always => lifecycle::what_it_says_of_itself_is_sound,
        always => lifecycle::a_new_instance_runs_and_is_found_by_id_and_by_sandbox,
        always => lifecycle::several_are_made_at_once_and_each_is_its_own,
        always => lifecycle::deleting_twice_succeeds_and_nothing_is_left,
        |can| can.can_pause => lifecycle::pausing_and_resuming_can_be_repeated,
        |can| can.can_stop => lifecycle::stopping_and_starting_can_be_repeated,
        |can| can.can_pause && can.can_stop => lifecycle::what_the_state_does_not_allow_is_a_conflict,
        |can| can.can_pause && can.can_stop => lifecycle::every_state_can_be_deleted,
        always => lifecycle::ready_instances_are_not_listed,
        always => refusals::an_unknown_template_is_not_found,
        |can| can.can_limit => refusals::limits_out_of_range_are_invalid,
        always => refusals::odd_variables_are_invalid,
        always => refusals::what_it_cannot_do_is_unsupported,
        always => races::deleting_from_several_sides_leaves_nothing,
        always => races::looking_while_some_are_made_finds_each_once_it_is,
        always => races::what_is_made_again_for_a_sandbox_is_found_too,
        always => reads::an_unknown_id_is_not_found,
        always => reads::instances_of_others_are_not_listed,
        |can| can.can_pause => reads::reading_while_it_pauses_always_finds_it,
        always => reads::usage_is_reported_in_every_state,
        |can| can.can_recall_usage => history::there_is_a_point_soon_after_a_create,
        |can| can.can_recall_usage && can.can_pause => history::nothing_is_counted_while_it_is_paused,
        |can| can.can_recall_usage => history::what_is_not_there_has_no_history,
        always => network::egress_can_be_granted_twice_and_changed,
        always => network::a_missing_instance_has_no_egress,
        |can| can.can_pause => network::egress_can_be_changed_across_a_pause,
        |can| can.can_stop => network::egress_can_be_changed_across_a_stop,
        |can| can.can_snapshot && can.can_manage_templates => copies::a_snapshot_is_a_template_until_it_is_removed,
        |can| can.can_snapshot && can.can_manage_templates => copies::a_snapshot_of_a_bad_or_taken_name_is_refused,
        |can| can.can_fork => copies::a_fork_is_an_instance_of_its_own,
        |can| can.can_diff => copies::the_difference_of_a_new_instance_can_be_asked,
        |can| can.can_manage_templates => templates::the_default_template_is_listed_and_stays,
        |can| can.can_manage_templates && can.can_import_templates => templates::an_archive_becomes_a_template,
        |can| can.can_manage_templates && can.can_import_templates => templates::what_is_no_archive_is_invalid,
        always => agent::commands_run_with_the_instances_variables,
        |can| can.can_pause => agent::a_command_goes_on_after_a_pause,
        |can| can.can_stop => agent::files_outlive_a_stop,
        |can| can.can_fork && can.can_diff => agent::a_fork_has_the_files_and_the_difference_tells_them,
        |can| can.can_mount => volumes::a_missing_volume_is_not_found,
        |can| can.can_mount => volumes::odd_mounts_and_volumes_are_invalid,
        |can| can.can_mount => volumes::a_volume_is_deleted_when_no_instance_has_it,
        |can| can.can_mount => volumes::a_volume_is_shared_and_outlives_its_instances,
        |can| can.can_mount && can.can_stop && can.can_fork => volumes::stops_and_forks_keep_a_volume,
        |can| can.can_mount => volumes::files_are_reached_without_instances,
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
        Ok(Err(Trouble::CannotBeTried)) => Outcome::Skipped,
        Ok(Err(Trouble::Wrong(why))) => Outcome::Failed(why),
        Ok(Ok(())) => cleanup.map_or_else(
            |why| Outcome::Failed(format!("cleaning up: {why}")),
            |()| Outcome::Passed,
        ),
    }
}
