//! The environment: an outer container, a virtual machine, security modules, name resolution. Useful when another check fails.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::host::{Host, read};
use crate::report::{Check, Need};

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![machine(), security_modules(host), localhost_names()]
}

fn machine() -> Check {
    let detail = match (container(), virtual_machine()) {
        (Some(container), Some(machine)) => {
            format!("in a container ({container}) on a virtual machine ({machine})")
        }
        (Some(container), None) => format!("in a container ({container})"),
        (None, Some(machine)) => format!("on a virtual machine ({machine})"),
        (None, None) => "no container or virtual machine detected".to_owned(),
    };
    Check::ok("machine", Need::Optional)
        .purpose("the container or virtual machine that Sandyard runs in")
        .detail(detail)
}

fn container() -> Option<String> {
    let named = read("/run/systemd/container");
    if !named.trim().is_empty() {
        return Some(named.trim().to_owned());
    }
    [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")]
        .into_iter()
        .find(|(file, _)| Path::new(file).exists())
        .map(|(_, name)| name.to_owned())
}

fn virtual_machine() -> Option<String> {
    let product = read("/sys/class/dmi/id/product_name");
    let hypervisor = read("/proc/cpuinfo")
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    match (hypervisor, product.trim()) {
        (false, _) => None,
        (true, "") => Some("unknown kind".to_owned()),
        (true, product) => Some(product.to_owned()),
    }
}

fn security_modules(host: &Host) -> Check {
    let mut found = Vec::new();
    let list = read("/sys/kernel/security/lsm");
    if !list.trim().is_empty() {
        found.push(list.trim().to_owned());
    }
    if read("/sys/module/apparmor/parameters/enabled").trim() == "Y" {
        found.push("AppArmor on".to_owned());
        if host.sysctl("kernel.apparmor_restrict_unprivileged_userns") == Some(1) {
            found.push("user namespaces restricted for ordinary users".to_owned());
        }
    }
    match read("/sys/fs/selinux/enforce").trim() {
        "1" => found.push("SELinux enforcing".to_owned()),
        "0" => found.push("SELinux permissive".to_owned()),
        _ => {}
    }
    let detail = match found.is_empty() {
        true => "none found".to_owned(),
        false => found.join(", "),
    };
    Check::ok("security-modules", Need::Optional)
        .purpose("security modules that may forbid what Sandyard needs")
        .detail(detail)
}

/// Asks the C library of the host, as its programs do: our own is linked into this program.
fn localhost_names() -> Check {
    let check = Check::ok("localhost-names", Need::Optional)
        .purpose("opening ports of sandboxes by name without a domain, as `get_host()` of E2B's SDKs returns them")
        .detail("names below `localhost` resolve to this host");
    let lookup = Command::new("getent")
        .args(["ahosts", "3000-check.localhost"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match lookup {
        Ok(status) if status.success() => check,
        Ok(_) => check.missing(
            "the C library does not resolve names below `localhost`; browsers and curl do",
            "sudo apt-get install libnss-myhostname, or use a domain: \
             sandyard serve --domain 127-0-0-1.sslip.io --tls-self-signed (see docs/e2b-domain.md)",
        ),
        Err(error) => check.partial(
            format!("cannot be checked: `getent`: {error}"),
            "sudo apt-get install libc-bin",
        ),
    }
}
