//! What shall happen later.

/// A timer that was claimed, or lies dead. One per topic and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// What kind of thing shall happen: `sandbox`.
    pub topic: String,
    /// To what: a sandbox's id.
    pub subject: String,
    /// Which servers can do it: those that reach this place.
    pub location: String,
    /// When.
    pub due_ms: i64,
    /// Counts up whenever it is set anew, so that a newer schedule is never lost when an older one finishes.
    pub generation: i64,
    /// How often it was tried, the present try included. With the generation it names one claim: whoever claimed it
    /// before, and is late, ends nothing.
    pub attempts: i64,
    /// When the claim ends by itself and another may take it; for a dead one, nothing.
    pub claimed_until_ms: i64,
    /// Why the last try failed.
    pub last_error: Option<String>,
}

/// What a commit does to a sandbox's timer, in the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimerPlan {
    /// Leaves it.
    #[default]
    Keep,
    /// Sets it, in place of what was set.
    Set {
        /// When.
        due_ms: i64,
    },
    /// Takes it away.
    Clear,
}
