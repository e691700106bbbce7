//! Setuid programs work inside, and what they give stays inside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::capabilities::{FORBIDDEN, names_of};
use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{Group::Privileges, Severity::Critical};
use crate::identity::Identity;
use crate::scratch::Scratch;

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, Critical, "setuid.program", program)
.title("A setuid program gets no forbidden capability")
.attempts("root: make a setuid copy of cat and let uid 1000 print its status; user: try to make one")
.expects("root inside, within the bounding set"),
    Check::new(Privileges, Critical, "setuid.sudo", sudo)
.title("`sudo` stays inside")
.attempts("print the status of a process that sudo started, where sudo is there")
.expects("root inside, within the bounding set"),
];

fn program(context: &Context) -> Outcome {
    let Ok(scratch) = Scratch::make() else {
        return Outcome::inconclusive("no directory for a program");
    };
    let copy = scratch.path().join("cat");
    let Some(cat) = find("cat") else {
        return Outcome::inconclusive("there is no `cat` to copy");
    };
    let made = fs::copy(cat, &copy)
        .and_then(|_| fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)))
        .and_then(|()| std::os::unix::fs::chown(&copy, Some(0), Some(0)))
        .and_then(|()| fs::set_permissions(&copy, fs::Permissions::from_mode(0o6755)));
    if let Err(error) = made {
        return if context.is_root() {
            Outcome::inconclusive(format_args!("could not make the program: {error}"))
        } else {
            Outcome::held(format_args!("the user cannot make one: {error}"))
        };
    }
    let mut command = Command::new(&copy);
    if context.is_root() && !context.plan.single_uid {
        use std::os::unix::process::CommandExt;
        command.uid(1000).gid(1000);
    }
    judge(context, command.arg("/proc/self/status").output())
}

fn sudo(context: &Context) -> Outcome {
    let Some(sudo) = find("sudo") else {
        return Outcome::held("there is no `sudo`");
    };
    judge(
        context,
        Command::new(sudo)
            .args(["-n", "cat", "/proc/self/status"])
            .output(),
    )
}

fn judge(context: &Context, output: std::io::Result<Output>) -> Outcome {
    let output = match output {
        Ok(output) if output.status.success() => output,
        Ok(output) => return Outcome::held(format_args!("it was refused ({})", output.status)),
        Err(error) => return Outcome::held(format_args!("it was refused: {error}")),
    };
    let identity = Identity::from_status(&String::from_utf8_lossy(&output.stdout));
    let allowed = context.plan.allowed_caps.unwrap_or(!FORBIDDEN);
    let beyond = identity.effective_caps & !allowed;
    if beyond != 0 {
        return Outcome::breached(format_args!("it ran with {}", names_of(beyond)));
    }
    Outcome::held(format_args!(
        "uid {} with capabilities {:#x}",
        identity.uid, identity.effective_caps
    ))
}

/// A program on the usual paths. A template need not set PATH for us.
fn find(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .map(|place| PathBuf::from(place).join(name))
        .find(|path| path.exists())
}
