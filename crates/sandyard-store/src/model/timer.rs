//! The row of a timer.

/// A timer that is claimed or dead. There is one per topic and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The kind of its subject: `sandbox`.
    pub topic: String,
    /// The id of the sandbox.
    pub subject: String,
    /// The location of the subject. Servers that reach it can handle the timer.
    pub location: String,
    /// When it is due.
    pub due_ms: i64,
    /// Counts how often it was set, so that completing an older schedule never removes a newer one.
    pub generation: i64,
    /// Number of attempts, including the current one. Generation and attempts together identify a claim, so that a late holder of an
    /// earlier claim changes nothing.
    pub attempts: i64,
    /// When the claim ends and another server may take it. Meaningless for a dead timer.
    pub claimed_until_ms: i64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// What a commit does to a sandbox's timer, in the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimerPlan {
    /// Leaves it unchanged.
    #[default]
    Keep,
    /// Sets it, and replaces an earlier schedule.
    Set {
        /// When it is due.
        due_ms: i64,
    },
    /// Removes it.
    Clear,
}
