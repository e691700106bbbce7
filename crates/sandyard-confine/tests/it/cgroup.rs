//! Groups on this host as it is.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use sandyard_confine::cgroup::{CgroupError, Hierarchy, ParentLocation, Settings};
use sandyard_core::Limits;

use crate::child::{self, message, sleep_for_ever, wait_for};

const WAIT: Duration = Duration::from_secs(120);

/// A hierarchy with a parent of its own, which must be empty at the end.
pub(crate) struct Scratch(pub Hierarchy);

pub(crate) fn settings(location: ParentLocation) -> Settings {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("sytest{}-{number}", std::process::id());
    Settings { prefix, location }
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(Hierarchy::detect_with(&settings(ParentLocation::Highest)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for name in self.0.list().expect("list") {
            let group = self.0.open(&name).expect("open");
            group.kill().expect("kill");
            group.remove().expect("remove");
        }
        let removed = self.0.remove_parent_if_empty().expect("remove");
        assert!(removed || std::thread::panicking());
    }
}

pub(crate) fn small() -> Limits {
    Limits {
        memory_bytes: 64 << 20,
        cpu_millis: 500,
        pids: 16,
        ..Limits::default()
    }
}

/// A counter shared with forked children.
pub(crate) struct Shared(*mut AtomicU64);

impl Shared {
    pub(crate) fn new() -> Self {
        let (read_write, shared) = (
            rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
            rustix::mm::MapFlags::SHARED,
        );
        // SAFETY: a fresh mapping that is never unmapped; zero bytes are a valid counter.
        let at =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 4096, read_write, shared) };
        Self(at.expect("a page").cast())
    }

    pub(crate) fn get(&self) -> &AtomicU64 {
        // SAFETY: points to a live mapping for the life of the process.
        unsafe { &*self.0 }
    }
}

#[test]
fn this_host_supports_all_and_says_how() {
    let scratch = Scratch::new();
    let support = scratch.0.support();
    assert!(support.memory && support.cpu && support.pids, "{support:?}");
    assert!(support.freeze && support.kill, "{support:?}");
    assert!(support.how.contains("memory: v"), "{support:?}");
}

#[test]
fn group_appears_in_the_list_and_goes() {
    let scratch = Scratch::new();
    let group = scratch.0.create("one", &small()).unwrap();
    scratch.0.create("two", &small()).unwrap();
    assert_eq!(scratch.0.list().unwrap(), ["one", "two"]);
    assert!(!scratch.0.remove_parent_if_empty().unwrap());
    group.remove().unwrap();
    group.remove().unwrap();
    assert_eq!(scratch.0.list().unwrap(), ["two"]);
    assert!(scratch.0.open("one").unwrap_err().is_not_found());
    assert_eq!(scratch.0.open("two").unwrap().name(), "two");
}

#[test]
fn create_works_again_after_the_parent_was_removed_behind_our_back() {
    let settings = settings(ParentLocation::Highest);
    let scratch = Scratch(Hierarchy::detect_with(&settings));
    scratch.0.prepare().unwrap();
    let other = Hierarchy::detect_with(&settings);
    assert!(other.remove_parent_if_empty().unwrap());
    scratch.0.create("first", &small()).unwrap();
}

#[test]
fn names_that_are_no_plain_component_are_refused() {
    let scratch = Scratch::new();
    for name in ["", ".", "..", "a/b", "A", "a-b", "a\0b", &"a".repeat(65)] {
        let error = scratch.0.create(name, &small()).unwrap_err();
        assert!(
            matches!(error, CgroupError::Name { .. }),
            "{name:?}: {error:?}"
        );
    }
    assert!(scratch.0.list().unwrap().is_empty());
}

#[test]
fn second_group_of_the_same_name_is_refused_and_the_first_stays() {
    let scratch = Scratch::new();
    let group = scratch.0.create("same", &small()).unwrap();
    let error = scratch.0.create("same", &small()).unwrap_err();
    assert!(matches!(error, CgroupError::Make { .. }), "{error:?}");
    assert!(group.exists());
}

#[test]
fn failed_create_leaves_nothing() {
    let scratch = Scratch::new();
    let impossible = Limits {
        memory_bytes: u64::MAX,
        cpu_millis: u32::MAX,
        pids: u32::MAX,
        ..small()
    };
    let error = scratch.0.create("never", &impossible).unwrap_err();
    assert!(matches!(error, CgroupError::Write { .. }), "{error:?}");
    assert!(scratch.0.list().unwrap().is_empty());
}

#[test]
fn added_process_is_counted_killed_and_gone() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    assert!(group.is_empty().unwrap());
    let child = child::start(sleep_for_ever);
    group.add(child.pid).unwrap();
    assert_eq!(group.pids().unwrap(), [child.pid]);
    assert_eq!(group.stats().unwrap().pids, Some(1));
    assert!(matches!(
        group.wait_empty(Duration::ZERO),
        Err(CgroupError::NotDead { .. })
    ));
    group.kill().unwrap();
    group.wait_empty(WAIT).unwrap();
    drop(child);
    group.remove().unwrap();
    assert!(!group.exists());
}

#[test]
fn group_with_a_process_is_not_removed() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let child = child::start(sleep_for_ever);
    group.add(child.pid).unwrap();
    let error = group.remove().unwrap_err();
    assert!(matches!(error, CgroupError::Remove { .. }), "{error:?}");
}

#[test]
fn process_cloned_into_the_group_needs_only_the_other_trees() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let dir = group
        .clone_into()
        .unwrap()
        .expect("this host has a unified tree");
    let child = clone_into(&dir);
    group.add_cloned(child).unwrap();
    assert_eq!(group.pids().unwrap(), [child]);
    assert_eq!(group.stats().unwrap().pids, Some(1));
    group.kill().unwrap();
    // SAFETY: reaps our own child; no status wanted.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Forks straight into a group.
fn clone_into(dir: &std::os::fd::OwnedFd) -> libc::pid_t {
    use std::os::fd::AsRawFd;
    let mut arguments: [u64; 11] = [0; 11];
    arguments[0] = 0x2_0000_0000; // CLONE_INTO_CGROUP
    arguments[4] = libc::SIGCHLD as u64;
    arguments[10] = dir.as_raw_fd() as u64;
    // SAFETY: the arguments are of the size told; like fork, and the child only waits.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            arguments.as_ptr(),
            size_of_val(&arguments),
        )
    };
    if pid == 0 {
        loop {
            // SAFETY: takes no arguments.
            unsafe { libc::pause() };
        }
    }
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    pid as libc::pid_t
}

#[test]
fn frozen_processes_stand_still_until_thawed() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let counter = Shared::new();
    let child = child::start(|| {
        loop {
            counter.get().fetch_add(1, Ordering::Relaxed);
        }
    });
    group.add(child.pid).unwrap();
    wait_for("the first count", || {
        counter.get().load(Ordering::Relaxed) > 0
    });
    for _ in 0..20 {
        group.freeze().unwrap();
        assert!(group.is_frozen().unwrap());
        let before = counter.get().load(Ordering::Relaxed);
        std::thread::yield_now();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(counter.get().load(Ordering::Relaxed), before);
        group.thaw().unwrap();
        assert!(!group.is_frozen().unwrap());
        wait_for("a count after thaw", || {
            counter.get().load(Ordering::Relaxed) > before
        });
    }
}

#[test]
fn frozen_processes_can_be_killed() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let mut child = child::start(sleep_for_ever);
    group.add(child.pid).unwrap();
    group.freeze().unwrap();
    group.kill().unwrap();
    group.wait_empty(WAIT).unwrap();
    let (status, _) = child.result();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGKILL)
    );
}

#[test]
fn empty_group_freezes_at_once() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    group.freeze().unwrap();
    group.thaw().unwrap();
    group.kill().unwrap();
}

#[test]
fn memory_hog_is_killed_and_counted() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let go = Shared::new();
    let mut child = child::start(|| {
        wait_for_go(&go);
        let hog = vec![1_u8; 200 << 20];
        std::hint::black_box(&hog);
        Err("200 MiB were given".to_owned())
    });
    group.add(child.pid).unwrap();
    go.get().store(1, Ordering::Relaxed);
    let (status, report) = child.result();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGKILL),
        "{report}"
    );
    let stats = group.stats().unwrap();
    assert!(stats.oom_kills >= Some(1), "{stats:?}");
    assert!(
        stats.memory_peak_bytes.unwrap() <= small().memory_bytes,
        "{stats:?}"
    );
}

#[test]
fn memory_limit_can_be_raised_and_lowered() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    for memory_bytes in [256 << 20, 32 << 20, 1 << 30, 64 << 20] {
        group
            .apply(&Limits {
                memory_bytes,
                ..small()
            })
            .unwrap();
    }
}

#[test]
fn fork_bomb_stops_at_the_limit() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let (go, count) = (Shared::new(), Shared::new());
    let mut child = child::start(|| {
        wait_for_go(&go);
        loop {
            // SAFETY: the child only waits; it dies with the group.
            match unsafe { libc::fork() } {
                -1 => return Ok(()),
                0 => sleep_for_ever()?,
                _ => {
                    count.get().fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    group.add(child.pid).unwrap();
    go.get().store(1, Ordering::Relaxed);
    child.result();
    assert_eq!(count.get().load(Ordering::Relaxed), 15);
    group.kill().unwrap();
    group.wait_empty(WAIT).unwrap();
}

#[test]
fn processor_time_is_counted() {
    let scratch = Scratch::new();
    let group = scratch.0.create("a", &small()).unwrap();
    let child = child::start(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    group.add(child.pid).unwrap();
    wait_for("10 ms of processor time", || {
        group.stats().unwrap().cpu_usage_us > Some(10_000)
    });
}

#[test]
fn only_harmless_devices_open_inside() {
    let scratch = Scratch::new();
    if !scratch.0.support().devices {
        eprintln!("this host has no devices controller");
        return;
    }
    let group = scratch.0.create("a", &small()).unwrap();
    child::run(|| {
        group.add(0).map_err(message)?;
        for good in ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/ptmx"] {
            std::fs::File::open(good).map_err(|error| format!("{good}: {error}"))?;
        }
        match std::fs::File::open("/dev/kmsg") {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

fn wait_for_go(go: &Shared) {
    while go.get().load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_micros(100));
    }
}
