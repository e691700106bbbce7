//! The resource attempts against limits that this test sets itself.

use std::os::unix::process::CommandExt;
use std::process::Command;

use sandyard_probe::Task;
use sandyard_probe::resources::{Exhaust, Exhausted, StoppedBy};

use crate::probe::{answer, installed, ordinary, probe};

fn exhaust(command: &mut Command, what: Exhaust) -> Exhausted {
    answer(command.arg(Task::Exhaust(what).to_json()))
}

#[test]
fn a_fork_bomb_counts_up_to_the_limit_and_ends_with_all_its_children() {
    let (_place, program) = installed();
    // In a user namespace of its own the limit counts the bomb alone.
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command.args(["prlimit", "--nproc=40"]).arg(program);
    ordinary(&mut command, 64_322);
    // A number of our own, by which its processes are known.
    let give_up_at = 200 + u64::from(std::process::id() % 800);
    let bomb = exhaust(
        &mut command,
        Exhaust::Processes {
            give_up_at,
            storm_seconds: 1,
        },
    );
    assert_eq!(bomb.stopped_by, StoppedBy::Refused, "{bomb:?}");
    assert!((10..=40).contains(&bomb.reached), "{bomb:?}");
    let remaining = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let command_line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command_line)
                .contains(&format!("\"give_up_at\":{give_up_at},"))
        });
    assert_eq!(remaining.count(), 0);
}

#[test]
fn a_memory_hog_that_nothing_stops_says_so() {
    let hog = exhaust(
        &mut probe(),
        Exhaust::Memory {
            give_up_at: 16 << 20,
        },
    );
    assert_eq!((hog.reached, hog.stopped_by), (16 << 20, StoppedBy::GaveUp));
}

#[test]
fn a_memory_hog_is_stopped_by_its_limit() {
    let mut command = probe();
    let limit = libc::rlimit {
        rlim_cur: 64 << 20,
        rlim_max: 64 << 20,
    };
    // SAFETY: setrlimit is async-signal-safe, and the limit is a live value.
    unsafe {
        command.pre_exec(move || {
            if libc::setrlimit(libc::RLIMIT_AS, &raw const limit) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    let hog = exhaust(
        &mut command,
        Exhaust::Memory {
            give_up_at: 1 << 30,
        },
    );
    assert_eq!(hog.stopped_by, StoppedBy::Refused, "{hog:?}");
    assert!(hog.reached < 64 << 20, "{hog:?}");
}

#[test]
fn busy_loops_tell_the_time_they_got() {
    let spin = exhaust(
        &mut probe(),
        Exhaust::Processor {
            threads: 2,
            seconds: 1,
        },
    );
    assert_eq!(spin.stopped_by, StoppedBy::Time);
    assert!(spin.reached > 0, "{spin:?}");
}
