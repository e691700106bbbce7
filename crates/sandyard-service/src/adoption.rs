//! Commands whose server is gone: who follows which command, and how another one goes on.
//!
//! Every command has an id, `<node>/<number>`, by which its agent keeps its output and end until they are recorded. A server that
//! starts, or wakes a sandbox, asks the agent which commands it keeps, and follows those that nobody alive follows: from where the
//! log ends, to the end of the command, which goes to the history exactly once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use sandyard_agent_client::wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_agent_client::{AgentClient, ClientError, ProcessStream};
use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{EventFilter, NewEvent, Sandbox, SandboxFilter};
use serde_json::json;

use crate::command_log::{OpenCommand, WhenFull};
use crate::error::{ServiceError, ServiceResult};
use crate::places::location_of;
use crate::request::LogSource;
use crate::service::Service;

/// Sandboxes asked at the same time.
const AT_ONCE: usize = 8;
/// How long one sandbox has to tell which commands it keeps.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait before a sandbox that did not tell is asked again: at first, and at most.
const ASK_AGAIN: Duration = Duration::from_secs(2);
const ASK_AGAIN_MOST: Duration = Duration::from_secs(60);
/// How long a release may take; one that fails is repeated by the next adoption.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);
/// Most commands of one sandbox that are followed on behalf of others: an agent may claim any number.
const MAX_ADOPTED: usize = 512;
/// Bytes of a command's id.
const MAX_COMMAND_ID: usize = 128;
/// How long to wait before a broken stream is opened again.
const RETRY: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// Commands to be released, by sandbox.
pub(crate) type Releases = HashMap<SandboxId, Vec<Release>>;

/// A command that its agent may forget.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) command: String,
    /// Whether the log has it as open.
    is_in_log: bool,
}

/// Who follows what in this server.
#[derive(Debug, Default)]
pub(crate) struct Recorders {
    /// Commands whose stream somebody here reads. With their sandbox: an agent may claim any id.
    followed: Mutex<HashSet<(SandboxId, String)>>,
    /// Commands whose end is on its way to the store; the agent may forget them once it is there.
    releases: Mutex<Releases>,
    /// Counts the reasons to look for commands without a server.
    wanted: AtomicU64,
    /// By location: the count that was served.
    served: Mutex<HashMap<String, u64>>,
    /// Sandboxes that did not tell which commands they keep.
    unanswered: Mutex<HashMap<SandboxId, Unanswered>>,
}

/// A sandbox that is to be asked again.
#[derive(Debug)]
struct Unanswered {
    location: String,
    failures: u32,
    due: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorders {
    /// Notes that a server has died, whose commands need another.
    pub(crate) fn adopt_again(&self) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn take_releases(&self) -> Releases {
        std::mem::take(&mut lock(&self.releases))
    }

    pub(crate) fn return_releases(&self, releases: Releases) {
        let mut waiting = lock(&self.releases);
        for (id, commands) in releases {
            waiting.entry(id).or_default().extend(commands);
        }
    }

    /// Notes that a sandbox did not answer: it is asked again, after a pause that grows.
    fn note_unanswered(&self, id: &SandboxId, location: &str, now: Instant) {
        let mut unanswered = lock(&self.unanswered);
        let failures = unanswered.get(id).map_or(0, |known| known.failures);
        let pause = ASK_AGAIN.saturating_mul(1 << failures.min(16));
        let entry = Unanswered {
            location: location.to_owned(),
            failures: failures.saturating_add(1),
            due: now + pause.min(ASK_AGAIN_MOST),
        };
        unanswered.insert(id.clone(), entry);
    }

    fn note_answered(&self, id: &SandboxId) {
        lock(&self.unanswered).remove(id);
    }

    /// The sandboxes of a location that are to be asked again now: those that have waited longest, a few of them.
    fn due(&self, location: &str, now: Instant) -> Vec<SandboxId> {
        let unanswered = lock(&self.unanswered);
        let due = unanswered
            .iter()
            .filter(|(_, known)| known.location == location && known.due <= now);
        let mut due: Vec<_> = due.collect();
        due.sort_unstable_by_key(|(_, known)| known.due);
        let first = due.into_iter().take(AT_ONCE);
        first.map(|(id, _)| id.clone()).collect()
    }

    fn follow(&self, id: &SandboxId, command: &str) -> bool {
        lock(&self.followed).insert((id.clone(), command.to_owned()))
    }

    fn unfollow(&self, id: &SandboxId, command: &str) {
        lock(&self.followed).remove(&(id.clone(), command.to_owned()));
    }

    fn is_followed(&self, id: &SandboxId, command: &str) -> bool {
        lock(&self.followed).contains(&(id.clone(), command.to_owned()))
    }
}

/// A command whose agent is being asked to start it. It is no longer followed if that comes to nothing.
pub(crate) struct StartingCommand {
    service: Service,
    sandbox: SandboxId,
    pub(crate) id: String,
    has_started: bool,
}

impl Drop for StartingCommand {
    fn drop(&mut self) {
        if !self.has_started {
            self.service.recorders().unfollow(&self.sandbox, &self.id);
        }
    }
}

/// Whether an agent may have got this id from a server: `<node>/<number>`.
fn is_command_id(id: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    id.len() <= MAX_COMMAND_ID
        && id.split_once('/').is_some_and(|(node, number)| {
            !node.is_empty() && node.bytes().all(is_name) && number.parse::<u64>().is_ok()
        })
}

/// A command that is followed to its end.
struct Followed {
    sandbox: Sandbox,
    command: OpenCommand,
    /// How long it ran, if its agent knows.
    ran_ms: Option<u64>,
    /// Whether another server, or an earlier stream, may have recorded its end.
    is_adopted: bool,
}

/// How following a command ended.
enum Outcome {
    Ended(EndEvent),
    /// The agent does not know it: the sandbox was started anew.
    Gone,
    /// The sandbox does not run; the request that wakes it goes on.
    Asleep,
}

impl Service {
    /// Makes the id of a command that is about to start.
    fn new_command_id(&self) -> String {
        format!("{}/{}", self.node_id(), self.next_number())
    }

    /// Makes the id of a command that is about to start, which nobody else follows from now on.
    pub(crate) fn begin_start(&self, id: &SandboxId) -> StartingCommand {
        let command = self.new_command_id();
        self.recorders().follow(id, &command);
        StartingCommand {
            service: self.clone(),
            sandbox: id.clone(),
            id: command,
            has_started: false,
        }
    }

    /// Notes that a command of this server runs, and that its caller reads its output.
    pub(crate) fn begin_recording(&self, mut starting: StartingCommand, command: OpenCommand) {
        starting.has_started = true;
        self.command_logs().open_command(&starting.sandbox, command);
    }

    /// Completes the log of a command that has ended. Its release is to be given to [`Self::release_soon`].
    pub(crate) fn end_recording(&self, id: &SandboxId, pid: u32) -> Option<Release> {
        let now_ms = self.clock().now_ms();
        let (command, is_in_log) = self.command_logs().finish_command(id, pid, None, now_ms)?;
        Some(Release { command, is_in_log })
    }

    /// Lets the agent forget a command once all of the history that was added before this call is in the store.
    pub(crate) fn release_soon(&self, id: &SandboxId, release: Option<Release>) {
        let Some(release) = release else {
            return;
        };
        let mut releases = lock(&self.recorders().releases);
        releases.entry(id.clone()).or_default().push(release);
    }

    /// Goes on with a command whose caller stopped reading before its end.
    pub fn record_rest(&self, sandbox: &Sandbox, pid: u32) {
        let Some(command) = self.command_logs().running_command(&sandbox.id, pid) else {
            return;
        };
        let followed = Followed {
            sandbox: sandbox.clone(),
            command,
            ran_ms: None,
            is_adopted: true,
        };
        self.spawn_recording(followed, None);
    }

    /// Follows a command that nobody waits for.
    pub fn record_in_background(&self, sandbox: &Sandbox, stream: ProcessStream) {
        let pid = stream.pid();
        let Some(command) = self.command_logs().running_command(&sandbox.id, pid) else {
            return;
        };
        let followed = Followed {
            sandbox: sandbox.clone(),
            command,
            ran_ms: None,
            is_adopted: false,
        };
        self.spawn_recording(followed, Some(stream));
    }

    /// No mark of use: what runs in the background does not keep a sandbox from its pause.
    fn spawn_recording(&self, mut followed: Followed, stream: Option<ProcessStream>) {
        let service = self.clone();
        tokio::spawn(async move { service.record(&mut followed, stream).await });
    }

    async fn record(&self, followed: &mut Followed, mut stream: Option<ProcessStream>) {
        loop {
            match self.read_to_end(followed, stream.take()).await {
                Outcome::Ended(end) => return self.record_end(followed, Some(&end)).await,
                Outcome::Gone => return self.record_end(followed, None).await,
                Outcome::Asleep => {}
            }
            let id = &followed.sandbox.id;
            if let Some(command) = self
                .command_logs()
                .running_command(id, followed.command.pid)
                && command.id == followed.command.id
            {
                followed.command = command;
            }
            followed.is_adopted = true;
            self.recorders().unfollow(id, &followed.command.id);
            // It may have been woken just before that, by somebody who saw it followed.
            let row = self.store().sandbox(id).await.ok().flatten();
            let is_running = row.is_some_and(|row| row.status == SandboxStatus::Running);
            if !is_running || !self.recorders().follow(id, &followed.command.id) {
                return;
            }
        }
    }

    /// Reads a command's output into the log, over as many streams as it takes.
    async fn read_to_end(
        &self,
        followed: &mut Followed,
        mut stream: Option<ProcessStream>,
    ) -> Outcome {
        let id = followed.sandbox.id.clone();
        let pid = followed.command.pid;
        let mut failures = 0;
        loop {
            if let Some(mut stream) = stream.take() {
                let mut is_full = false;
                while let Some(Ok(event)) = stream.next().await {
                    match event {
                        ProcessEvent::Data(output) => {
                            failures = 0;
                            let command = Some(&*followed.command.id);
                            let is_taken = self
                                .record_output(&id, pid, command, &output, WhenFull::Refuse)
                                .await;
                            if !is_taken {
                                is_full = true;
                                break;
                            }
                        }
                        ProcessEvent::End(end) => return Outcome::Ended(end),
                        _ => {}
                    }
                }
                followed.is_adopted = true;
                if is_full {
                    // Without a reader the agent keeps the output, and the command goes on.
                    drop(stream);
                    self.command_logs().wait_for_room(&id).await;
                }
            }
            match self.open_again(followed).await {
                Ok(Ok(opened)) => stream = Some(opened),
                Ok(Err(outcome)) => return outcome,
                Err(error) => {
                    tracing::debug!(%error, sandbox.id = %id, pid, "A command cannot be followed yet");
                }
            }
            if stream.is_none() || failures > 0 {
                tokio::time::sleep(RETRY[failures.min(RETRY.len() - 1)]).await;
            }
            failures += 1;
        }
    }

    /// Connects to a command again, from where the log ends.
    async fn open_again(
        &self,
        followed: &mut Followed,
    ) -> ServiceResult<Result<ProcessStream, Outcome>> {
        let id = followed.sandbox.id.clone();
        let row = self.store().sandbox(&id).await?;
        let row = match row {
            Some(row) if row.status == SandboxStatus::Running => row,
            _ => return Ok(Err(Outcome::Asleep)),
        };
        let agent = self.agent(&row).await?;
        if let Some(command) = self
            .command_logs()
            .running_command(&id, followed.command.pid)
            && command.id == followed.command.id
        {
            followed.command = command;
        }
        let command = &followed.command;
        let opened = agent
            .connect_retained(&command.id, command.pid, command.resume)
            .await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) if error.is_not_found() => return Ok(Err(Outcome::Gone)),
            // It knows of less output than it has sent: it is another one.
            Err(ClientError::Remote {
                code: sandyard_agent_client::wire::Code::OutOfRange,
                ..
            }) => return Ok(Err(Outcome::Gone)),
            Err(error) => return Err(error.into()),
        };
        followed.sandbox = row;
        let begins = match stream.begins_at() {
            Some(begins) => {
                if begins > command.resume {
                    let lost = begins - command.resume;
                    self.note_missing(&id, &format!("{lost} bytes"), command);
                }
                begins
            }
            // An agent that is not ours goes on from now.
            None => {
                self.note_missing(&id, "some", command);
                command.recorded[0]
                    .max(command.recorded[1])
                    .max(command.resume)
            }
        };
        let is_own = self
            .command_logs()
            .resume_command(&id, command.clone(), begins);
        if !is_own && stream.begins_at().is_none() {
            // It was found by its process id alone, which is another command's.
            return Ok(Err(Outcome::Gone));
        }
        Ok(Ok(stream))
    }

    fn note_missing(&self, id: &SandboxId, what: &str, command: &OpenCommand) {
        if command.is_logged {
            let now_ms = self.clock().now_ms();
            let text = format!("{what} of the output of process {} were lost", command.pid);
            self.command_logs()
                .add_line(id, now_ms, LogSource::Notice, &text);
        }
    }

    /// Records the end of a command: once, even if another server began to.
    async fn record_end(&self, followed: &Followed, end: Option<&EndEvent>) {
        let Followed {
            sandbox, command, ..
        } = followed;
        let now_ms = self.clock().now_ms();
        let mut data = json!({
            "pid": command.pid,
            "exit_code": end.map(EndEvent::shell_code),
            "duration_ms": followed.ran_ms.map_or_else(
                || now_ms.saturating_sub(command.began_ms).max(0),
                |ran_ms| i64::try_from(ran_ms).unwrap_or(i64::MAX),
            ),
            "command_id": command.id,
        });
        if end.is_none() {
            data["reason"] = "the sandbox was stopped while it ran".into();
        }
        let event = NewEvent {
            sandbox_id: sandbox.id.clone(),
            owner: sandbox.owner.clone(),
            at_ms: now_ms,
            kind: "command_ended".to_owned(),
            actor: command.actor.clone(),
            data,
        };
        // Output first: a client that learns of the end may read all of it.
        let logs = self.command_logs();
        logs.finish_command(&sandbox.id, command.pid, Some(&command.id), now_ms);
        logs.flush(&sandbox.id).await;
        let mut failures = 0;
        while let Err(error) = self.add_end(followed.is_adopted, &event, &command.id).await {
            tracing::warn!(%error, sandbox.id = %sandbox.id, "The end of a command could not be written down yet");
            tokio::time::sleep(RETRY[failures]).await;
            failures = (failures + 1).min(RETRY.len() - 1);
        }
        self.news().notify_waiters();
        let release = Release {
            command: command.id.clone(),
            is_in_log: true,
        };
        self.release_commands(HashMap::from([(sandbox.id.clone(), vec![release])]));
    }

    async fn add_end(
        &self,
        is_adopted: bool,
        event: &NewEvent,
        command_id: &str,
    ) -> ServiceResult<()> {
        if is_adopted {
            self.history().flush().await;
            // The server before may have died between writing it down and telling the agent.
            let filter = EventFilter {
                sandbox_id: Some(event.sandbox_id.clone()),
                kinds: vec!["command".to_owned(), "command_ended".to_owned()],
                data: [("command_id".to_owned(), command_id.to_owned())].into(),
                ..EventFilter::default()
            };
            let known = self.store().events(&filter).await?;
            let is_end = |event: &sandyard_store::model::Event| {
                event.kind == "command_ended" || event.data["exit_code"].is_number()
            };
            if known.iter().any(is_end) {
                return Ok(());
            }
        }
        self.store().add_events(std::slice::from_ref(event)).await?;
        Ok(())
    }

    /// Tells agents which commands they may forget. Nobody waits for it, and no sandbox is woken.
    pub(crate) fn release_commands(&self, releases: Releases) {
        for (id, commands) in releases {
            let agent = self.agents().get(&id).map(|known| known.client.clone());
            let service = self.clone();
            tokio::spawn(async move {
                let ids = commands.iter().map(|release| release.command.clone());
                let released = async {
                    let agent = match agent {
                        Some(agent) => agent,
                        None => service.running_agent(&id).await?,
                    };
                    Some(agent.release_commands(ids.collect()).await)
                };
                let is_released = match tokio::time::timeout(RELEASE_WITHIN, released).await {
                    Ok(Some(Ok(()))) => true,
                    // An agent that is not ours keeps nothing.
                    Ok(Some(Err(error))) => error.is_not_found(),
                    Ok(None) | Err(_) => false,
                };
                for Release { command, is_in_log } in commands {
                    service.recorders().unfollow(&id, &command);
                    // What is not released stays open: the next adoption finds its end in the history.
                    if is_released && is_in_log {
                        service.command_logs().close_command(&id, command);
                    }
                }
            });
        }
    }

    /// The agent of a sandbox that runs, also one that is reached through another node.
    async fn running_agent(&self, id: &SandboxId) -> Option<AgentClient> {
        let row = self.store().sandbox(id).await.ok()??;
        if row.status != SandboxStatus::Running {
            return None;
        }
        self.agent(&row).await.ok()
    }

    /// Follows the commands of all sandboxes that run with a provider whose server is gone. Only when there may be some: after a start, and after
    /// another server's death. Those that do not answer are asked again, and no others for their sake.
    pub(crate) async fn adopt_running(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        let wanted = self.recorders().wanted.load(Ordering::Relaxed) + 1;
        if lock(&self.recorders().served).get(location) == Some(&wanted) {
            return self.ask_again(location).await;
        }
        let rows = self
            .all_rows(SandboxFilter {
                location: Some(location.to_string()),
                statuses: vec![SandboxStatus::Running],
                ..SandboxFilter::default()
            })
            .await;
        let Ok(rows) = rows else {
            return;
        };
        stream::iter(rows)
            .for_each_concurrent(AT_ONCE, async |row| self.try_adopt(&row).await)
            .await;
        lock(&self.recorders().served).insert(location.to_string(), wanted);
    }

    async fn ask_again(&self, location: &str) {
        let due = self.recorders().due(location, Instant::now());
        stream::iter(due)
            .for_each_concurrent(AT_ONCE, async |id| match self.store().sandbox(&id).await {
                Ok(Some(row)) if row.status == SandboxStatus::Running => self.try_adopt(&row).await,
                // The server that wakes it asks it.
                Ok(_) => self.recorders().note_answered(&id),
                Err(error) => {
                    tracing::debug!(%error, sandbox.id = %id, "Commands could not be adopted yet");
                }
            })
            .await;
    }

    async fn try_adopt(&self, row: &Sandbox) {
        let adopted = tokio::time::timeout(ASK_WITHIN, self.adopt_commands(row)).await;
        if matches!(adopted, Ok(Ok(()))) {
            self.recorders().note_answered(&row.id);
        } else {
            tracing::debug!(sandbox.id = %row.id, ?adopted, "Commands could not be adopted yet");
            let now = Instant::now();
            self.recorders()
                .note_unanswered(&row.id, &row.location, now);
        }
    }

    /// The same for one sandbox that was woken, on a task of its own.
    pub(crate) fn adopt_commands_soon(&self, sandbox: &Sandbox) {
        let (service, sandbox) = (self.clone(), sandbox.clone());
        tokio::spawn(async move { service.try_adopt(&sandbox).await });
    }

    async fn adopt_commands(&self, sandbox: &Sandbox) -> ServiceResult<()> {
        if self.places().local_for(&sandbox.location).is_none() {
            return Ok(());
        }
        let failed = |error: std::io::Error| {
            ServiceError::new(sandyard_core::ErrorKind::Internal, "a log cannot be read")
                .source(error)
        };
        let agent = self.agent(sandbox).await?;
        let (kept, is_known) = match agent.retained_commands().await {
            Ok(kept) => (kept, true),
            // An agent that is not ours. What the log knows is looked for by process id.
            Err(error) if error.is_not_found() => (Vec::new(), false),
            Err(error) => return Err(error.into()),
        };
        let mut open: HashMap<String, OpenCommand> = self
            .command_logs()
            .open_commands(&sandbox.id)
            .await
            .map_err(failed)?
            .into_iter()
            .map(|command| (command.id.clone(), command))
            .collect();
        if kept.is_empty() && open.is_empty() {
            return Ok(());
        }
        let nodes = self.store().nodes(0).await?;
        let is_orphan = |command: &str| {
            let node = command.rsplit_once('/').map_or("", |(node, _)| node);
            let is_alive = nodes.iter().any(|other| other.id == node);
            (node == self.node_id() || !is_alive)
                && !self.recorders().is_followed(&sandbox.id, command)
        };
        let now_ms = self.clock().now_ms();
        let kept = kept.into_iter().filter(|known| is_command_id(&known.id));
        for known in kept.take(MAX_ADOPTED) {
            let command = open.remove(&known.id).unwrap_or_else(|| OpenCommand {
                id: known.id.clone(),
                pid: known.pid,
                actor: sandbox.owner.clone(),
                began_ms: now_ms.saturating_sub_unsigned(known.age_ms),
                is_logged: true,
                ..OpenCommand::default()
            });
            if is_orphan(&known.id) {
                self.adopt_command(sandbox, command, known.ran_ms);
            }
        }
        for command in open.into_values().take(MAX_ADOPTED) {
            if is_orphan(&command.id) {
                tracing::debug!(
                    is_known,
                    command = command.id,
                    "A command is not kept by its agent"
                );
                self.adopt_command(sandbox, command, None);
            }
        }
        Ok(())
    }

    fn adopt_command(&self, sandbox: &Sandbox, command: OpenCommand, ran_ms: Option<u64>) {
        if !self.recorders().follow(&sandbox.id, &command.id) {
            return;
        }
        let followed = Followed {
            sandbox: sandbox.clone(),
            command,
            ran_ms,
            is_adopted: true,
        };
        self.spawn_recording(followed, None);
    }

    /// Adds output to the log, unless it is a terminal's. False: it was refused.
    pub(crate) async fn record_output(
        &self,
        id: &SandboxId,
        pid: u32,
        command: Option<&str>,
        output: &Output,
        when_full: WhenFull,
    ) -> bool {
        if matches!(output, Output::Pty(_)) {
            return true;
        }
        let now_ms = self.clock().now_ms();
        self.command_logs()
            .add_output(id, pid, command, output, now_ms, when_full)
            .await
    }

    /// Who started a command, for the log.
    pub(crate) fn open_command(
        &self,
        id: String,
        pid: u32,
        caller: &Caller,
        is_logged: bool,
    ) -> OpenCommand {
        OpenCommand {
            id,
            pid,
            actor: caller.name.clone(),
            began_ms: self.clock().now_ms(),
            is_logged,
            ..OpenCommand::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_sandbox_claims_does_not_disturb_another() {
        let [one, two] = ["one", "two"].map(|id| id.parse::<SandboxId>().unwrap());
        let recorders = Recorders::default();
        assert!(recorders.follow(&one, "node/1"));
        assert!(!recorders.is_followed(&two, "node/1"));
        assert!(recorders.follow(&two, "node/1"));
        recorders.unfollow(&one, "node/1");
        assert!(recorders.is_followed(&two, "node/1"));
    }

    #[test]
    fn a_sandbox_that_does_not_answer_is_asked_again_after_a_growing_pause() {
        let id: SandboxId = "one".parse().unwrap();
        let recorders = Recorders::default();
        let now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            recorders.note_unanswered(&id, "here", now);
            let is_due = |seconds: &u64| {
                let then = now + Duration::from_secs(*seconds);
                !recorders.due("here", then).is_empty()
            };
            pauses.extend((0..100).find(is_due));
        }
        assert_eq!(pauses[..6], [2, 4, 8, 16, 32, 60]);
        assert_eq!((pauses.len(), pauses[39]), (40, 60));
        let later = now + Duration::from_secs(100);
        assert!(recorders.due("there", later).is_empty());
        recorders.note_answered(&id);
        assert!(recorders.due("here", later).is_empty());
    }

    #[test]
    fn only_ids_that_a_server_makes_are_taken_from_an_agent() {
        assert!(is_command_id("node-1.b/17"));
        let long = format!("{}/1", "n".repeat(MAX_COMMAND_ID));
        for id in [
            "", "/1", "node", "node/", "node/x", "node/1/2", "a b/1", &long,
        ] {
            assert!(!is_command_id(id), "{id}");
        }
    }
}
