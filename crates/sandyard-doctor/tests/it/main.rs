//! The report on this host, as root and as an ordinary user.

use sandyard_doctor::{Need, Options, Report, Status, Style, Verdict, render, report};

fn options() -> Options {
    Options {
        data_dir: "/tmp/no-such-directory/sandyard".into(),
    }
}

fn report_as(uid: u32) -> Report {
    report_in(uid, "/tmp/no-such-directory/sandyard")
}

/// Runs the report as another user in a child, since ids belong to the whole process.
fn report_in(uid: u32, data_dir: &str) -> Report {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the child changes its user, makes the report (which takes no lock that another thread may hold) and leaves.
    let pid = unsafe { libc::fork() };
    assert_ne!(pid, -1);
    if pid == 0 {
        // SAFETY: plain numbers and a null list of no length.
        unsafe {
            libc::setgroups(0, std::ptr::null());
            libc::setgid(uid);
            libc::setuid(uid);
            // A change of user makes /proc/self root's; a program started by that user would own it.
            libc::prctl(libc::PR_SET_DUMPABLE, 1);
        }
        let options = Options {
            data_dir: data_dir.into(),
        };
        let written = serde_json::to_writer(&writer, &report(&options));
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(written.is_err())) };
    }
    drop(writer);
    let found = serde_json::from_reader(reader).expect("a report");
    // SAFETY: reaps our own child; no status wanted.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    found
}

fn status(report: &Report, name: &str) -> Status {
    let check = report.checks.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("no check {name}")).status
}

#[test]
fn this_host_is_ready_for_root() {
    let found = report(&options());
    for check in &found.checks {
        assert!(
            check.needed != Need::Required || check.status == Status::Ok,
            "{check:?}"
        );
    }
    assert_ne!(found.verdict, Verdict::NotReady);
    for name in [
        "overlay",
        "id-mapped-mounts",
        "disk-image",
        "cgroup-freeze",
        "nftables-nat",
        "nftables-refuse",
        "raw-sockets",
        "procfs",
        "uid-ranges",
    ] {
        assert_eq!(status(&found, name), Status::Ok, "{name}: {found:#?}");
    }
}

#[test]
fn ordinary_user_gets_namespaces_but_no_cgroup() {
    let found = report_as(65533);
    assert_eq!(status(&found, "user-namespaces"), Status::Ok, "{found:#?}");
    assert_eq!(status(&found, "overlay"), Status::Ok, "{found:#?}");
    assert_eq!(status(&found, "procfs"), Status::Ok, "{found:#?}");
    for name in ["nftables-nat", "nftables-refuse", "raw-sockets"] {
        assert_eq!(status(&found, name), Status::Ok, "{name}: {found:#?}");
    }
    assert_eq!(status(&found, "uid-ranges"), Status::Missing);
    assert_eq!(status(&found, "cgroups"), Status::Missing);
    assert_eq!(found.verdict, Verdict::Limited);
}

#[test]
fn data_directory_that_cannot_be_written_is_reported_once_and_overlay_is_still_tried() {
    let found = report_in(65533, "/root/sandyard");
    assert_eq!(
        status(&found, "data-directory"),
        Status::Missing,
        "{found:#?}"
    );
    assert_eq!(status(&found, "overlay"), Status::Ok, "{found:#?}");
    assert_eq!(found.verdict, Verdict::NotReady);
}

#[test]
fn names_are_unique_and_everything_missing_has_a_fix() {
    for found in [report(&options()), report_as(65533)] {
        let mut names: Vec<&str> = found
            .checks
            .iter()
            .map(|check| check.name.as_str())
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for check in &found.checks {
            assert_eq!(check.fix.is_some(), check.status != Status::Ok, "{check:?}");
        }
    }
}

#[test]
fn report_survives_json_and_renders() {
    let found = report(&options());
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), found);
    let text = render(&found, Style::Plain);
    assert!(found.checks.iter().all(|check| text.contains(&check.name)));
    assert!(!text.contains('\x1b'));
}

#[test]
fn names_of_the_checks_do_not_change() {
    let found = report(&options());
    let names: Vec<&str> = found
        .checks
        .iter()
        .map(|check| check.name.as_str())
        .collect();
    let stable_names = include_str!("checks.txt").lines();
    for name in stable_names.clone() {
        assert!(
            names.contains(&name) || name == "cgroup-quick-moves",
            "{name} is gone"
        );
    }
    for name in names {
        assert!(
            stable_names.clone().any(|other| other == name),
            "{name} is new: add it to checks.txt"
        );
    }
}

#[test]
fn nothing_is_left_behind() {
    let dir = std::env::temp_dir().join(format!("sandyard-doctor-left-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    report(&Options {
        data_dir: dir.join("data"),
    });
    // Others mount things meanwhile: those of a report are in the folder it is given or have its name.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let leftovers = mounts
        .lines()
        .find(|line| line.contains("sandyard-doctor-"));
    assert_eq!(leftovers, None);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    std::fs::remove_dir(&dir).unwrap();
    // Other tests run at the same time: what counts is that none stays.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while let Some(leftovers) = left_groups() {
        assert!(std::time::Instant::now() < deadline, "{leftovers:?} stays");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What an overlay makes for itself has no permissions at all, which only root does not mind.
#[test]
fn an_ordinary_user_leaves_nothing_behind_either() {
    let dir = std::env::temp_dir().join(format!("sandyard-left-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let for_all_users = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&dir, for_all_users).unwrap();
    let found = report_in(65533, &dir.join("data").display().to_string());
    assert_eq!(status(&found, "overlay"), Status::Ok, "{found:#?}");
    // Fails when there is something in it.
    std::fs::remove_dir(&dir).unwrap();
}

/// Finds a control group made by a report of this process.
fn left_groups() -> Option<std::path::PathBuf> {
    let own = format!("-{}-", std::process::id());
    let trees = std::fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten();
    trees
        .flat_map(|tree| {
            std::fs::read_dir(tree.path())
                .into_iter()
                .flatten()
                .flatten()
        })
        .map(|group| group.path())
        .find(|group| group.to_string_lossy().contains(&own))
}
