//! Shared memory and message queues of the host.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Ipc,
    Severity::{Critical, Medium},
};
use crate::search::{contains, read_start};
use crate::sys::{self, Arg, Errno, sys};

const NOT_THERE: &str = "not there";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Ipc, Critical, "ipc.shared-memory", shared_memory)
        .title("Shared memory of the host cannot be attached")
        .attempts("shmat of the planted segment by its id, and by its key")
        .expects(NOT_THERE)
        .on_host(OnHost::Breaches),
    Check::new(Ipc, Critical, "ipc.message-queue", message_queue)
        .title("Message queues of the host cannot be read")
        .attempts("look at the planted message by the queue's id, and by its key")
        .expects(NOT_THERE)
        .on_host(OnHost::Breaches),
    Check::new(Ipc, Critical, "ipc.posix-queue", posix_queue)
        .title("POSIX queues of the host cannot be opened")
        .attempts("mq_open of the planted queue")
        .expects(NOT_THERE)
        .on_host(OnHost::Breaches),
    Check::new(Ipc, Medium, "ipc.tables", tables)
        .title("System V objects of the host are not listed")
        .attempts("look for the planted keys in /proc/sysvipc")
        .expects(NOT_THERE)
        .on_host(OnHost::Breaches),
];

fn shared_memory(context: &Context) -> Outcome {
    let Some(segment) = &context.plan.shared_memory else {
        return Outcome::inconclusive("no segment was planted");
    };
    let by_key = sys!(libc::SYS_shmget, segment.key, 0, 0).unwrap_or(-1);
    let mut last = Errno(libc::EINVAL);
    for id in [i64::from(segment.id), by_key] {
        match attach(id as i32) {
            Ok(bytes) if contains(&bytes, &segment.marker) => {
                return Outcome::breached("it was read");
            }
            Ok(_) => {}
            Err(errno) => last = errno,
        }
    }
    Outcome::held(last)
}

/// The start of a segment.
fn attach(id: i32) -> sys::Result<Vec<u8>> {
    // SAFETY: the kernel picks the address, so nothing of ours is covered.
    let address = unsafe { libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY) };
    if address.addr() == usize::MAX {
        return Err(Errno::last());
    }
    // SAFETY: a segment is at least one page, and this one stays attached until after the copy.
    let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), 4096) }.to_vec();
    // SAFETY: attached above and used no more.
    unsafe { libc::shmdt(address) };
    Ok(bytes)
}

fn message_queue(context: &Context) -> Outcome {
    let Some(queue) = &context.plan.message_queue else {
        return Outcome::inconclusive("no queue was planted");
    };
    let by_key = sys!(libc::SYS_msgget, queue.key, 0).unwrap_or(-1);
    let mut last = Errno(libc::EINVAL);
    for id in [i64::from(queue.id), by_key] {
        let mut message = [0_u8; 264];
        // MSG_COPY looks without taking, so that a breach leaves the plant for the next check.
        const MSG_COPY: i32 = 0o40000;
        let mut result = sys!(
            libc::SYS_msgrcv,
            id,
            &mut message[..],
            256,
            0,
            MSG_COPY | libc::IPC_NOWAIT | libc::MSG_NOERROR
        );
        // Kernels without checkpoint support know no MSG_COPY; any information about the queue is a breach.
        if result == Err(Errno(libc::ENOSYS)) {
            let mut status = [0_u8; 256];
            result = sys!(libc::SYS_msgctl, id, libc::IPC_STAT, &mut status[..]);
            if result.is_ok() {
                return Outcome::breached("its state was read");
            }
        }
        match result {
            Ok(_) if contains(&message, &queue.marker) => {
                return Outcome::breached("its message was read");
            }
            Ok(_) => {}
            Err(errno) => last = errno,
        }
    }
    Outcome::held(last)
}

fn posix_queue(context: &Context) -> Outcome {
    let Some(queue) = &context.plan.posix_queue else {
        return Outcome::inconclusive("no queue was planted");
    };
    let name = sys::c_str(&queue.name);
    match sys!(
        libc::SYS_mq_open,
        name.as_c_str(),
        libc::O_RDONLY | libc::O_NONBLOCK,
        0,
        Arg::Null
    ) {
        Ok(_) => Outcome::breached("it was opened"),
        Err(errno) => Outcome::held(errno),
    }
}

fn tables(context: &Context) -> Outcome {
    let segments = [
        ("shm", &context.plan.shared_memory),
        ("msg", &context.plan.message_queue),
    ];
    let mut listed = Vec::new();
    for (table, segment) in segments {
        let Some(segment) = segment else {
            return Outcome::inconclusive("nothing was planted");
        };
        let text = read_start(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        if contains(&text, &segment.key.to_string()) {
            listed.push(format!("`{table}` lists key {}", segment.key));
        }
    }
    Outcome::breached_by(&listed, "none listed")
}
