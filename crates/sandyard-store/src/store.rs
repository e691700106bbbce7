//! The store and all it can do.

use sandyard_core::SandboxId;

use crate::error::StoreResult;
use crate::model::*;

/// What is remembered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {}

#[expect(clippy::unused_async, unused_variables, reason = "filled in next")]
impl Store {
    /// Opens the store at `url` and brings its tables up to date: `sqlite:///path/file.db`, `sqlite::memory:`,
    /// `postgres://…`, `postgresql+asyncpg://…`. A missing SQLite file is made, mode 0600.
    pub async fn open(url: &str) -> StoreResult<Self> {
        unimplemented!()
    }
    /// `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        unimplemented!()
    }
    /// Says whether it answers.
    pub async fn ping(&self) -> StoreResult<()> {
        unimplemented!()
    }
    /// Closes its connections.
    pub async fn close(&self) {
        unimplemented!()
    }

    // --- sandboxes

    /// Remembers a sandbox with its first event and timer, unless its key was used, its alias is taken or its owner's
    /// quota is full. All checks and the insert are one transaction: two at once cannot both take the last place.
    pub async fn insert_sandbox(
        &self,
        new: &NewSandbox,
        idempotency: Option<&Idempotency>,
        quota: Option<i64>,
        event: &NewEvent,
        timer: TimerPlan,
    ) -> StoreResult<InsertOutcome> {
        unimplemented!()
    }
    /// Finds a sandbox by its id.
    pub async fn sandbox(&self, id: &SandboxId) -> StoreResult<Option<Sandbox>> {
        unimplemented!()
    }
    /// Finds a sandbox by id, then by provider's id, then by alias. Of `owner` only, if given; deleted ones only by id.
    pub async fn find_sandbox(
        &self,
        name: &str,
        owner: Option<&str>,
    ) -> StoreResult<Option<Sandbox>> {
        unimplemented!()
    }
    /// Lists sandboxes, newest first.
    pub async fn list_sandboxes(&self, filter: &SandboxFilter) -> StoreResult<Page<Sandbox>> {
        unimplemented!()
    }
    /// Counts sandboxes by status, and how many of them have a location in `location` if given.
    pub async fn count_sandboxes(
        &self,
        location: Option<&str>,
    ) -> StoreResult<Vec<(sandyard_core::SandboxStatus, i64)>> {
        unimplemented!()
    }
    /// Claims a sandbox for one operation; another's claim that ended (`until_ms <= now_ms`) is taken over.
    pub async fn claim_sandbox(
        &self,
        id: &SandboxId,
        operation: Operation,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> StoreResult<ClaimOutcome> {
        unimplemented!()
    }
    /// Lengthens one's own claim; false: it is not ours any more.
    pub async fn extend_claim(
        &self,
        id: &SandboxId,
        holder: &str,
        until_ms: i64,
    ) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Applies `patch`, adds `events`, does `timer` and, if `is_last`, ends the claim, all at once; none: the claim was
    /// not ours any more and nothing was done.
    pub async fn commit_sandbox(
        &self,
        id: &SandboxId,
        holder: &str,
        patch: &SandboxPatch,
        events: &[NewEvent],
        timer: TimerPlan,
        is_last: bool,
    ) -> StoreResult<Option<Sandbox>> {
        unimplemented!()
    }
    /// Ends one's own claim without a change.
    pub async fn release_claim(&self, id: &SandboxId, holder: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Ends all claims whose holder is a node that is not among `live_nodes` (a holder is `node_id` or `node_id/…`);
    /// returns which sandboxes those were.
    pub async fn break_claims(&self, live_nodes: &[String]) -> StoreResult<Vec<SandboxId>> {
        unimplemented!()
    }
    /// Notes when sandboxes were last used. Never moves a time back; one statement for all.
    pub async fn touch_sandboxes(&self, used: &[(SandboxId, i64)]) -> StoreResult<()> {
        unimplemented!()
    }
    /// Forgets rows deleted before a time (their events stay), and idempotency keys older than that.
    pub async fn purge_deleted(&self, before_ms: i64) -> StoreResult<u64> {
        unimplemented!()
    }

    // --- history

    /// Remembers events; returns the `seq` of the last.
    pub async fn add_events(&self, events: &[NewEvent]) -> StoreResult<i64> {
        unimplemented!()
    }
    /// Lists events, oldest first.
    pub async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<Event>> {
        unimplemented!()
    }
    /// Remembers who did what.
    pub async fn add_audit(&self, entries: &[NewAuditEntry]) -> StoreResult<()> {
        unimplemented!()
    }
    /// Lists the audit, newest first, before `before_seq` if given, by `actor` if given.
    pub async fn audit(
        &self,
        actor: Option<&str>,
        before_seq: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        unimplemented!()
    }
    /// Forgets events and audit older than a time.
    pub async fn purge_history(&self, before_ms: i64) -> StoreResult<u64> {
        unimplemented!()
    }

    // --- users, keys, sessions

    /// Remembers a user; false: the name is taken.
    pub async fn insert_user(&self, user: &NewUser) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Finds a user.
    pub async fn user(&self, name: &str) -> StoreResult<Option<User>> {
        unimplemented!()
    }
    /// Lists users by name.
    pub async fn users(&self) -> StoreResult<Vec<User>> {
        unimplemented!()
    }
    /// Changes a user; false: there is none.
    pub async fn update_user(&self, name: &str, patch: &UserPatch) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Forgets a user with its keys and sessions; false: there was none.
    pub async fn delete_user(&self, name: &str) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Counts one more failed login; at `max_failures` locks until `locked_until_ms` and starts counting anew. Atomic,
    /// so that many guesses at once do not count as one. Returns the row after.
    pub async fn note_login_failure(
        &self,
        name: &str,
        max_failures: i64,
        locked_until_ms: i64,
    ) -> StoreResult<Option<User>> {
        unimplemented!()
    }
    /// Forgets failures after a good login.
    pub async fn clear_login_failures(&self, name: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Remembers a key; false: there is one with that hash or id.
    pub async fn insert_key(&self, key: &NewApiKey) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Finds a key by its hash, with its owner.
    pub async fn key_by_hash(&self, hash: &str) -> StoreResult<Option<(ApiKey, User)>> {
        unimplemented!()
    }
    /// Lists keys, of `owner` only if given, newest first.
    pub async fn keys(&self, owner: Option<&str>) -> StoreResult<Vec<ApiKey>> {
        unimplemented!()
    }
    /// Revokes a key, of `owner` only if given; false: there is none.
    pub async fn revoke_key(
        &self,
        id: &str,
        owner: Option<&str>,
        now_ms: i64,
    ) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Notes when a key was last used.
    pub async fn touch_key(&self, id: &str, now_ms: i64) -> StoreResult<()> {
        unimplemented!()
    }
    /// Remembers a login.
    pub async fn insert_session(&self, session: &Session) -> StoreResult<()> {
        unimplemented!()
    }
    /// Finds a login, with its user.
    pub async fn session(&self, id: &str) -> StoreResult<Option<(Session, User)>> {
        unimplemented!()
    }
    /// Exchanges a refresh token once: true only for the one caller that brought the current hash.
    pub async fn rotate_session(
        &self,
        id: &str,
        old_hash: &str,
        new_hash: &str,
        expires_ms: i64,
    ) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Ends a login.
    pub async fn revoke_session(&self, id: &str, now_ms: i64) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Ends all logins of a user.
    pub async fn revoke_sessions_of(&self, owner: &str, now_ms: i64) -> StoreResult<u64> {
        unimplemented!()
    }

    // --- the installation

    /// A word all servers share (secrets of tokens, links and nodes): returns what is there, or stores `value` first.
    pub async fn meta_or_insert(&self, name: &str, value: &str) -> StoreResult<String> {
        unimplemented!()
    }
    /// Reads a shared word.
    pub async fn meta(&self, name: &str) -> StoreResult<Option<String>> {
        unimplemented!()
    }
    /// Says that a node is there.
    pub async fn upsert_node(&self, node: &Node) -> StoreResult<()> {
        unimplemented!()
    }
    /// Forgets a node.
    pub async fn remove_node(&self, id: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Lists nodes seen since a time.
    pub async fn nodes(&self, seen_since_ms: i64) -> StoreResult<Vec<Node>> {
        unimplemented!()
    }
    /// Takes or keeps a named lease; true: it is ours until `until_ms`.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> StoreResult<bool> {
        unimplemented!()
    }
}
