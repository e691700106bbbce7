//! Files of /proc through which the kernel shows its memory, its log or its addresses.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Knobs,
    Severity::{Critical, High, Low, Medium},
};
use crate::search::read_start;
use crate::sys;

pub(super) const CHECKS: &[Check] = &[
    Check::new(Knobs, Critical, "knobs.kernel-memory", kernel_memory)
.title("Kernel memory cannot be read")
.attempts("read /proc/kcore, /dev/mem, /dev/kmem, /dev/port")
.expects("nothing there, or refused")
        .on_host(OnHost::Depends),
    Check::new(Knobs, High, "knobs.kernel-log", kernel_log)
.title("The kernel's log cannot be read or written")
.attempts("open /proc/kmsg and /dev/kmsg")
.expects("nothing there, or refused")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Knobs, Medium, "knobs.kernel-addresses", kernel_addresses)
.title("Kernel addresses are hidden")
.attempts("read /proc/kallsyms and /proc/modules for an address that is not zero")
.expects("zeroes, or nothing")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Knobs, Medium, "knobs.host-tables", host_tables)
.title("Tables about the whole host are masked")
.attempts("read /proc/keys, key-users, timer_list, sched_debug, slabinfo, vmallocinfo, pagetypeinfo, kpageflags, acpi, scsi, iomem")
.expects("empty, masked or refused")
        .on_host(OnHost::Breaches),
    Check::new(Knobs, Low, "knobs.pressure", pressure)
.title("The host's load cannot be read or monitored")
.attempts("read /proc/pressure/*, and register a trigger there")
.expects("nothing there, or refused")
        // Kernels can be built or started without it.
        .on_host(OnHost::Depends),
    Check::new(Knobs, Low, "knobs.mount-table", mount_table)
.title("Mounts do not reveal where the host keeps its data")
.attempts("search for the host's folders in /proc/self/mountinfo")
.expects("not found")
        .on_host(OnHost::Depends),
    Check::new(Knobs, Low, "knobs.hostname", hostname)
.title("The host's name is not visible")
.attempts("compare our host name with the host's")
.expects("another name")
        .on_host(OnHost::Breaches),
    Check::new(Knobs, Low, "knobs.boot-id", boot_id)
.title("The host's boot id is not visible")
.attempts("compare /proc/sys/kernel/random/boot_id with the host's")
.expects("another id")
        .on_host(OnHost::Breaches),
];

fn kernel_memory(_: &Context) -> Outcome {
    let files = ["/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"];
    let read: Vec<String> = files
        .iter()
        .filter(|file| read_start(file).is_ok_and(|bytes| !bytes.is_empty()))
        .map(|file| format!("`{file}` was read"))
        .collect();
    Outcome::breached_by(&read, "none readable")
}

fn kernel_log(_: &Context) -> Outcome {
    let attempts = [
        ("/proc/kmsg", libc::O_RDONLY),
        ("/dev/kmsg", libc::O_RDONLY),
        ("/dev/kmsg", libc::O_WRONLY),
    ];
    let opened: Vec<String> = attempts
        .iter()
        .filter(|(file, flags)| sys::open(file, *flags).is_ok_and(is_kernel_log))
        .map(|(file, flags)| {
            format!(
                "`{file}` opened for {}",
                if *flags == libc::O_RDONLY {
                    "reading"
                } else {
                    "writing"
                }
            )
        })
        .collect();
    Outcome::breached_by(&opened, "none could be opened")
}

/// A mask (an empty file or /dev/null bound over it) opens too, and is no kernel log.
fn is_kernel_log(fd: i32) -> bool {
    let link = std::fs::metadata(format!("/proc/self/fd/{fd}"));
    link.is_ok_and(|file| {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let null = file.file_type().is_char_device() && file.rdev() == rustix::fs::makedev(1, 3);
        let kmsg = file.file_type().is_char_device() && file.rdev() == rustix::fs::makedev(1, 11);
        // What is left is /proc/kmsg itself, a plain file of mode 0400 on procfs.
        !null && (kmsg || file.mode() & 0o777 == 0o400)
    })
}

fn kernel_addresses(_: &Context) -> Outcome {
    let has_address = |line: &str, column: usize| {
        let address = line.split_whitespace().nth(column)?;
        let digits = address.strip_prefix("0x").unwrap_or(address);
        (u64::from_str_radix(digits, 16).ok()? != 0).then(|| line.to_owned())
    };
    let mut found = Vec::new();
    for (file, column) in [("/proc/kallsyms", 0), ("/proc/modules", 5)] {
        let text = String::from_utf8_lossy(&read_start(file).unwrap_or_default()).into_owned();
        found.extend(
            text.lines()
                .take(100)
                .filter_map(|line| has_address(line, column))
                .take(1)
                .map(|line| format!("`{file}`: {line}")),
        );
    }
    Outcome::breached_by(&found, "no address but zero")
}

fn host_tables(_: &Context) -> Outcome {
    const TABLES: [&str; 14] = [
        "/proc/keys",
        "/proc/key-users",
        "/proc/timer_list",
        "/proc/sched_debug",
        "/proc/slabinfo",
        "/proc/vmallocinfo",
        "/proc/pagetypeinfo",
        "/proc/kpageflags",
        "/proc/kpagecount",
        "/proc/latency_stats",
        "/sys/kernel/debug/sched/debug",
        "/sys/firmware/dmi/tables/DMI",
        "/sys/firmware/acpi/tables/DSDT",
        "/proc/scsi/scsi",
    ];
    let read: Vec<String> = TABLES
        .iter()
        .filter_map(|file| {
            let bytes = read_start(file).ok().filter(|bytes| !bytes.is_empty())?;
            Some(format!("`{file}` has {} bytes or more", bytes.len()))
        })
        .collect();
    Outcome::breached_by(&read, "none with anything in it")
}

fn pressure(_: &Context) -> Outcome {
    const TRIGGER: &[u8] = b"some 1000000 2000000";
    let mut found = Vec::new();
    for name in ["cpu", "memory", "io"] {
        let path = format!("/proc/pressure/{name}");
        if read_start(&path).is_ok_and(|bytes| !bytes.is_empty()) {
            found.push(format!("`{path}` was read"));
        }
        let file = std::fs::File::options().read(true).write(true).open(&path);
        if file.is_ok_and(|mut file| std::io::Write::write_all(&mut file, TRIGGER).is_ok()) {
            found.push(format!("`{path}` accepted a trigger"));
        }
    }
    Outcome::breached_by(&found, "nothing there")
}

fn mount_table(context: &Context) -> Outcome {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folders = &context.plan.host_folders;
    if folders.is_empty() || table.is_empty() {
        return Outcome::inconclusive("the plan names no folder, or there is no mount table");
    }
    let named: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let (path, name) = (folder.to_str()?, folder.file_name()?.to_str()?);
            // What a mount shows begins at the root of its file system, so a name that is not an everyday word counts alone.
            let is_named = |line: &&str| {
                line.contains(path) || name.len() >= 8 && line.contains(&format!("/{name}/"))
            };
            let line = table.lines().find(is_named)?;
            Some(format!("`{}` in: {line}", folder.display()))
        })
        .collect();
    Outcome::breached_by(&named, "no folder of the host is named")
}

fn hostname(context: &Context) -> Outcome {
    match &context.plan.hostname {
        None => Outcome::inconclusive("the plan does not name the host"),
        Some(name) if *name == context.identity.hostname => {
            Outcome::breached(format_args!("`{name}`, the name of the host"))
        }
        Some(_) => Outcome::held(format_args!("`{}`", context.identity.hostname)),
    }
}

fn boot_id(context: &Context) -> Outcome {
    let own_id = read_start("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let own_id = String::from_utf8_lossy(&own_id).trim().to_owned();
    match &context.plan.boot_id {
        None => Outcome::inconclusive("the plan has no boot id"),
        Some(id) if *id == own_id => Outcome::breached("it is the host's boot id"),
        Some(_) => Outcome::held(format_args!("`{own_id}`")),
    }
}
