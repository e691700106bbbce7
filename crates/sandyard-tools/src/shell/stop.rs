//! Ends what runs in a session.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep, timeout};

use super::session::Session;
use super::state::Doing;

/// How long a command may take to begin: a busy machine is slow, and a sign that comes sooner is lost with the rest of the
/// line.
pub(super) const MAX_BEGIN: Duration = Duration::from_secs(20);
/// How long a command may take to end after each of the signs to do so.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How often the last sign is given: a loop has started the next program by the time the first has reached the last one, and
/// on a busy machine the shell is slow to say that it has noticed.
const LAST_ROUNDS: usize = 7;
/// How long a whole session may take to end by itself.
const GRACE: Duration = Duration::from_millis(800);
/// How long everything may take to be gone.
const MAX_END: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(25);
/// How often what a program starts is looked for while it is held.
const MAX_ROUNDS: usize = 8;

/// Interrupts the command with this number as a person would, and harder where that does not help; whether it has ended.
pub(super) async fn interrupt(session: &Session, number: u64) -> bool {
    // Ctrl-C before the command has begun would throw away what is still being typed.
    let mut steps = session.steps();
    let begun =
        steps.wait_for(|steps| steps.begun >= number || steps.finished >= number || steps.is_ended);
    let _ = timeout(MAX_BEGIN, begun).await;
    let by_hand = [None, Some(Signal::INT), Some(Signal::TERM)];
    let signs = by_hand.into_iter().chain([Some(Signal::KILL); LAST_ROUNDS]);
    for sign in signs {
        // The next command is not to be hit by what was meant for this one.
        let now = *steps.borrow();
        if now.finished >= number || now.is_ended {
            return true;
        }
        match sign {
            // A program that reads keys itself, like an interpreter, knows what this means.
            None => drop(session.write(b"\x03").await),
            Some(signal) => signal_foreground(session, number, signal),
        }
        let ended = steps.wait_for(|steps| steps.finished >= number || steps.is_ended);
        if timeout(PATIENCE, ended).await.is_ok() {
            return true;
        }
    }
    false
}

/// To what is in front, while that is the command with this number. The shell itself is only ever interrupted: when it is in
/// front, and when a program is killed, for a loop would go on with the next one. A program that is interrupted in the moment
/// between its fork and its start does not notice, and its shell does not either, so a loop of short programs can outlive any
/// number of interrupts.
fn signal_foreground(session: &Session, number: u64, signal: Signal) {
    let is_last = signal == Signal::KILL;
    let started = match is_last {
        true => started_with(session),
        false => Vec::new(),
    };
    let state = session.state();
    if !matches!(&state.doing, Doing::Command(running) if running.number == number) {
        return;
    }
    let Ok(group) = rustix::termios::tcgetpgrp(&session.terminal) else {
        return;
    };
    let is_shell_in_front = group == session.pid;
    let mut is_reached = false;
    if !is_shell_in_front || signal == Signal::INT {
        is_reached = kill_process_group(group, signal).is_ok();
        // One that was stopped would not notice.
        let _ = kill_process_group(group, Signal::CONT);
    }
    if !is_last {
        return;
    }
    if !is_reached {
        for process in started {
            let _ = kill_process(process, Signal::KILL);
        }
    }
    let _ = kill_process(session.pid, Signal::INT);
}

/// What the shell has started since its command began, in front or not: one that is interrupted while it starts a pipeline can
/// end up waiting for a part of it that it never put in front.
fn started_with(session: &Session) -> Vec<Pid> {
    let age = match &session.state().doing {
        Doing::Command(running) => running.since.elapsed(),
        _ => return Vec::new(),
    };
    let begun = uptime().saturating_sub(age).as_millis();
    let begun = begun * u128::from(clock_ticks_per_second()) / 1_000;
    let all = processes();
    let is_since = |line: &&Line| u128::from(line.process.started) >= begun;
    let own = |line: &&Line| line.parent == session.leader.pid && !line.is_dead;
    let own: Vec<_> = all.iter().filter(own).filter(is_since).collect();
    let mut found = Vec::new();
    for child in own {
        found.extend(members(child.process, &mut BTreeSet::new()));
    }
    found
}

/// How long the host has been up: what the kernel counts the starts of processes from.
fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// Ends the shell and everything that was started in it.
pub(super) async fn end(session: &Session) -> bool {
    let begin = Instant::now();
    let mut seen = BTreeSet::new();
    let mut has_asked = false;
    while begin.elapsed() < MAX_END {
        let alive = members(session.leader, &mut seen);
        if alive.is_empty() && session.is_ended() {
            return true;
        }
        let signal = match (has_asked, begin.elapsed() < GRACE) {
            (false, _) => Some(Signal::HUP),
            (true, true) => None,
            (true, false) => Some(Signal::KILL),
        };
        has_asked = true;
        if let Some(signal) = signal {
            for process in alive {
                let _ = kill_process(process, signal);
                let _ = kill_process(process, Signal::CONT);
            }
        }
        sleep(LOOK).await;
    }
    session.is_ended()
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    /// The one that has this number now.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        Some(look_at(pid.as_raw_nonzero().get())?.process)
    }
}

/// Ends a process and all that was started from it, whatever sessions they made for themselves.
pub(crate) fn kill_tree(top: Process) {
    let mut seen = BTreeSet::new();
    let mut alive = members(top, &mut seen);
    // Those that are held start nothing more; something may have been started just before.
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

/// What lives of a shell's session, and of what was started from there: `seen` grows by it, so that a process stays known when
/// its parent is gone and it has a session of its own.
pub(super) fn members(leader: Process, seen: &mut BTreeSet<Process>) -> Vec<Pid> {
    let all = processes();
    let by_pid: BTreeMap<_, _> = all
        .iter()
        .map(|line| (line.process.pid, line.process))
        .collect();
    // When the leader and all of its session are gone, the number is free for others.
    let is_taken = by_pid
        .get(&leader.pid)
        .is_some_and(|process| *process != leader);
    loop {
        let before = seen.len();
        for line in &all {
            let parent = by_pid.get(&line.parent);
            let parent_is_known = parent.is_some_and(|parent| seen.contains(parent));
            let is_in_session =
                line.session == leader.pid && !is_taken && line.process.started >= leader.started;
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

struct Line {
    process: Process,
    parent: i32,
    session: i32,
    is_dead: bool,
}

/// Every process there is to see.
fn processes() -> Vec<Line> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(look_at).collect()
}

fn look_at(pid: i32) -> Option<Line> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    line(pid, &String::from_utf8_lossy(&stat))
}

fn line(pid: i32, stat: &str) -> Option<Line> {
    // The name before it may hold anything, brackets and spaces too.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    Some(Line {
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
    fn another_with_the_same_number_is_no_member() {
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
