//! Capabilities of a confined child.

use sandyard_confine::caps;

use crate::child::{self, message};

#[test]
fn confined_process_has_only_the_kept_capabilities_and_cannot_get_more() {
    child::run(|| {
        let before = caps::current().map_err(message)?;
        caps::confine().map_err(message)?;
        let after = caps::current().map_err(message)?;
        let actual = before.permitted & caps::kept_mask();
        let expected = (actual, actual, before.bounding & caps::kept_mask(), 0, 0);
        let got = (
            after.effective,
            after.permitted,
            after.bounding,
            after.inheritable,
            after.ambient,
        );
        if got != expected {
            return Err(format!("{got:x?} is not {expected:x?}"));
        }
        // SAFETY: a plain number; fails or not.
        match unsafe { libc::unshare(libc::CLONE_NEWNS) } {
            -1 => Ok(()),
            _ => Err("a mount namespace was given".to_owned()),
        }
    });
}

#[test]
fn confining_twice_is_the_same_as_once() {
    child::run(|| {
        caps::confine().map_err(message)?;
        let once = caps::current().map_err(message)?;
        caps::confine().map_err(message)?;
        match caps::current().map_err(message)? {
            twice if twice == once => Ok(()),
            twice => Err(message(twice)),
        }
    });
}

#[test]
fn exec_by_root_gives_no_more_than_was_kept() {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("grep");
    command.args(["CapEff", "/proc/self/status"]);
    // SAFETY: system calls and, on success, no allocation; see `child` for the rest.
    unsafe { command.pre_exec(|| caps::confine().map_err(std::io::Error::other)) };
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let effective = u64::from_str_radix(output.trim_start_matches("CapEff:").trim(), 16).unwrap();
    assert_eq!(effective & !caps::kept_mask(), 0);
    assert_ne!(effective, 0);
}
