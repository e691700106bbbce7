//! Stops commands and sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep, timeout};

use super::session::Session;
use super::state::Activity;

/// How long to wait for a command to start. A signal before that would only discard the typed line.
pub(super) const MAX_BEGIN: Duration = Duration::from_secs(20);
/// How long to wait for the command to end after each signal.
const SIGNAL_WAIT: Duration = Duration::from_millis(1_500);
/// Number of SIGKILL rounds. A loop may have started its next program before the signal reaches the last one, and a busy shell
/// reports the end late.
const KILL_ROUNDS: usize = 7;
/// How long a session may take to end after SIGHUP.
const HANGUP_WAIT: Duration = Duration::from_millis(800);
/// How long to wait until all processes of a session are gone.
const MAX_END: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(25);
/// Maximum number of rounds of stopping newly found processes.
const MAX_ROUNDS: usize = 8;

/// Interrupts a command with Ctrl-C, then with stronger signals. Returns whether it has ended.
pub(super) async fn interrupt(session: &Session, number: u64) -> bool {
    // Ctrl-C before the command starts would discard what is still being typed.
    let mut counters = session.counters();
    let started = counters.wait_for(|counters| {
        counters.started >= number || counters.finished >= number || counters.is_ended
    });
    let _ = timeout(MAX_BEGIN, started).await;
    let first_signals = [None, Some(Signal::INT), Some(Signal::TERM)];
    let signals = first_signals
        .into_iter()
        .chain([Some(Signal::KILL); KILL_ROUNDS]);
    for signal in signals {
        // Do not signal the next command.
        let now = *counters.borrow();
        if now.finished >= number || now.is_ended {
            return true;
        }
        match signal {
            // A program that reads keys itself, such as an interpreter, understands this.
            None => drop(session.write(b"\x03").await),
            Some(signal) => signal_foreground(session, number, signal),
        }
        let ended = counters.wait_for(|counters| counters.finished >= number || counters.is_ended);
        if timeout(SIGNAL_WAIT, ended).await.is_ok() {
            return true;
        }
    }
    false
}

/// Signals the foreground process group while the command with this number runs.
///
/// The shell itself only gets SIGINT: when it is in the foreground, and when its program is killed, so that a loop does not continue
/// with the next one. An interrupt between a program's fork and its start is lost for the program and the shell, so a loop of short
/// programs can survive any number of interrupts.
fn signal_foreground(session: &Session, number: u64, signal: Signal) {
    let is_last = signal == Signal::KILL;
    let children = match is_last {
        true => children_of_command(session),
        false => Vec::new(),
    };
    let state = session.state();
    if !matches!(&state.activity, Activity::Command(running) if running.number == number) {
        return;
    }
    let Ok(group) = rustix::termios::tcgetpgrp(&session.terminal) else {
        return;
    };
    let is_shell_foreground = group == session.pid;
    let mut is_reached = false;
    if !is_shell_foreground || signal == Signal::INT {
        is_reached = kill_process_group(group, signal).is_ok();
        // A stopped process would not handle the signal.
        let _ = kill_process_group(group, Signal::CONT);
    }
    if !is_last {
        return;
    }
    if !is_reached {
        for process in children {
            let _ = kill_process(process, Signal::KILL);
        }
    }
    let _ = kill_process(session.pid, Signal::INT);
}

/// Processes that the shell started since its command began, in the foreground or not. A shell that is interrupted while it starts a
/// pipeline may wait for a part of it that it never put into the foreground.
fn children_of_command(session: &Session) -> Vec<Pid> {
    let age = match &session.state().activity {
        Activity::Command(running) => running.since.elapsed(),
        _ => return Vec::new(),
    };
    let start_ticks = uptime().saturating_sub(age).as_millis();
    let start_ticks = start_ticks * u128::from(clock_ticks_per_second()) / 1_000;
    let all = processes();
    let is_since = |line: &&ProcessInfo| u128::from(line.process.started) >= start_ticks;
    let own = |line: &&ProcessInfo| line.parent == session.leader.pid && !line.is_dead;
    let own: Vec<_> = all.iter().filter(own).filter(is_since).collect();
    let mut found = Vec::new();
    for child in own {
        found.extend(members(child.process, &mut BTreeSet::new()));
    }
    found
}

/// Time since boot, which process start times are relative to.
fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// Ends the shell and every process started in it. Returns whether that succeeded.
pub(super) async fn end(session: &Session) -> bool {
    let begin = Instant::now();
    let mut seen = BTreeSet::new();
    let mut has_sent_hangup = false;
    while begin.elapsed() < MAX_END {
        let alive = members(session.leader, &mut seen);
        if alive.is_empty() && session.is_ended() {
            return true;
        }
        let signal = match (has_sent_hangup, begin.elapsed() < HANGUP_WAIT) {
            (false, _) => Some(Signal::HUP),
            (true, true) => None,
            (true, false) => Some(Signal::KILL),
        };
        has_sent_hangup = true;
        if let Some(signal) = signal {
            for process in alive {
                let _ = kill_process(process, signal);
                let _ = kill_process(process, Signal::CONT);
            }
        }
        sleep(POLL).await;
    }
    session.is_ended()
}

/// A process with its start time, so that a reused process ID is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    /// The process that has this ID now.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        Some(read_process(pid.as_raw_nonzero().get())?.process)
    }
}

/// Kills a process and every process started from it, in any session.
pub(crate) fn kill_tree(top: Process) {
    let mut seen = BTreeSet::new();
    let mut alive = members(top, &mut seen);
    // Stopped processes start no others. Repeat for those that were started just before.
    for _ in 0..MAX_ROUNDS {
        let before = seen.len();
        for process in &alive {
            let _ = kill_process(*process, Signal::STOP);
        }
        alive = members(top, &mut seen);
        if seen.len() == before {
            break;
        }
    }
    for process in alive {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// The living processes of a shell's session and their descendants. `seen` collects them, so that a process stays known when its
/// parent is gone and it has its own session.
pub(super) fn members(leader: Process, seen: &mut BTreeSet<Process>) -> Vec<Pid> {
    let all = processes();
    let by_pid: BTreeMap<_, _> = all
        .iter()
        .map(|line| (line.process.pid, line.process))
        .collect();
    // When the leader and its whole session are gone, the ID can be reused.
    let is_reused = by_pid
        .get(&leader.pid)
        .is_some_and(|process| *process != leader);
    loop {
        let before = seen.len();
        for line in &all {
            let parent = by_pid.get(&line.parent);
            let parent_is_known = parent.is_some_and(|parent| seen.contains(parent));
            let is_in_session =
                line.session == leader.pid && !is_reused && line.process.started >= leader.started;
            if is_in_session || line.process == leader || parent_is_known {
                seen.insert(line.process);
            }
        }
        if seen.len() == before {
            break;
        }
    }
    let alive = all
        .iter()
        .filter(|line| !line.is_dead && seen.contains(&line.process));
    alive
        .filter_map(|line| Pid::from_raw(line.process.pid))
        .collect()
}

struct ProcessInfo {
    process: Process,
    parent: i32,
    session: i32,
    is_dead: bool,
}

/// Every visible process.
fn processes() -> Vec<ProcessInfo> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(read_process).collect()
}

fn read_process(pid: i32) -> Option<ProcessInfo> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

fn parse_stat(pid: i32, stat: &str) -> Option<ProcessInfo> {
    // The name in parentheses may contain anything, including parentheses and spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    Some(ProcessInfo {
        process: Process {
            pid,
            started: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_a_reused_id_is_not_a_member() {
        let mut command = std::process::Command::new("setsid");
        let mut child = command.args(["sleep", "1000"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let is = Process::of(pid).unwrap();
        let before = Process {
            started: is.started - 1,
            ..is
        };
        assert_eq!(members(before, &mut BTreeSet::new()), []);
        assert_eq!(members(is, &mut BTreeSet::new()), [pid]);
        kill_tree(is);
        child.wait().unwrap();
    }
}
