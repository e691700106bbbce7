//! Writing into system directories. Inside it may well work, on the sandbox's own layer; the host checks afterwards
//! whether anything of it arrived there.

use std::path::Path;

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{Group::Files, Severity::Critical};

pub(super) const CHECKS: &[Check] = &[Check::new(Files, Critical, "files.footprint", footprint)
.title("What is written inside stays inside")
.attempts("write a file into each system directory, into other templates' layers and below /proc/1/root")
.expects("the host sees none of it")];

/// Directories that the probe writes to; the host checks the same ones.
pub(crate) const DIRECTORIES: [&str; 14] = [
    "/", "/usr", "/usr/bin", "/usr/lib", "/bin", "/lib", "/lib64", "/opt", "/etc", "/root", "/var",
    "/home", "/srv", "/boot",
];

fn footprint(context: &Context) -> Outcome {
    let Some(name) = &context.plan.footprint else {
        return Outcome::inconclusive("the plan has no file name for this check");
    };
    let written = DIRECTORIES
        .iter()
        .filter(|directory| std::fs::write(Path::new(directory).join(name), "probe").is_ok())
        .count();
    let links = DIRECTORIES.iter().filter(|directory| {
        let link = Path::new(directory).join(format!("{name}-link"));
        std::os::unix::fs::symlink("/etc/passwd", link).is_ok()
    });
    Outcome::held(format_args!(
        "{written} files and {} links written here; see `host.footprint`",
        links.count()
    ))
}
