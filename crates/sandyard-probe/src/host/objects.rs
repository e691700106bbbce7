//! Kernel objects without a file: shared memory, queues, a key. Each open to anyone, so that only the sandbox keeps
//! a probe away.

use std::ffi::CString;

use crate::plan::{HostKey, HostQueue, HostSegment};

#[derive(Debug)]
pub(super) struct Objects {
    pub(super) shared_memory: Option<HostSegment>,
    pub(super) message_queue: Option<HostSegment>,
    pub(super) posix_queue: Option<HostQueue>,
    pub(super) key: Option<HostKey>,
}

impl Objects {
    pub(super) fn plant(word: &str) -> Self {
        // 31 bits of the random word; 0 would mean a private object.
        let key = i32::from_str_radix(word.get(..7).unwrap_or("1"), 16).unwrap_or(1) | 1;
        let marker = format!("planted-object-{word}");
        Self {
            shared_memory: shared_memory(key, &marker),
            message_queue: message_queue(key, &marker),
            posix_queue: posix_queue(word, &marker),
            key: user_key(word, &marker),
        }
    }
}

const OPEN_TO_ALL: i32 = libc::IPC_CREAT | libc::IPC_EXCL | 0o666;

fn shared_memory(key: i32, marker: &str) -> Option<HostSegment> {
    // SAFETY: plain numbers.
    let id = unsafe { libc::shmget(key, 4096, OPEN_TO_ALL) };
    if id < 0 {
        return None;
    }
    // SAFETY: a segment of ours of 4096 bytes, mapped where the kernel likes; the marker is far shorter.
    unsafe {
        let address = libc::shmat(id, std::ptr::null(), 0);
        if address.addr() != usize::MAX {
            std::ptr::copy_nonoverlapping(marker.as_ptr(), address.cast(), marker.len().min(4096));
            libc::shmdt(address);
        }
    }
    Some(HostSegment {
        key,
        id,
        marker: marker.to_owned(),
    })
}

fn message_queue(key: i32, marker: &str) -> Option<HostSegment> {
    // SAFETY: plain numbers.
    let id = unsafe { libc::msgget(key, OPEN_TO_ALL) };
    if id < 0 {
        return None;
    }
    let message = [&1_i64.to_ne_bytes()[..], marker.as_bytes()].concat();
    // SAFETY: a type word followed by as many bytes as the size says.
    unsafe { libc::msgsnd(id, message.as_ptr().cast(), marker.len(), libc::IPC_NOWAIT) };
    Some(HostSegment {
        key,
        id,
        marker: marker.to_owned(),
    })
}

fn posix_queue(word: &str, marker: &str) -> Option<HostQueue> {
    let name = format!("sandyard-plant-{word}");
    let c_name = CString::new(name.as_str()).ok()?;
    // `struct mq_attr`: flags, most messages, size of one, and what is reserved.
    let attributes: [i64; 8] = [0, 1, 256, 0, 0, 0, 0, 0];
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the name ends in NUL and the attributes are of the kernel's size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_mq_open,
            c_name.as_ptr(),
            flags,
            0o666,
            attributes.as_ptr(),
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: an open queue and a live message.
    unsafe {
        libc::syscall(
            libc::SYS_mq_timedsend,
            fd,
            marker.as_ptr(),
            marker.len(),
            0,
            std::ptr::null::<u8>(),
        );
        libc::close(fd);
    }
    Some(HostQueue {
        name,
        marker: marker.to_owned(),
    })
}

const USER_KEYRING: i32 = -4;
const KEYCTL_SETPERM: i32 = 5;
const KEYCTL_UNLINK: i32 = 9;
/// Every right for possessor, owner, group and others.
const ALL_RIGHTS: u32 = 0x3f3f_3f3f;

fn user_key(word: &str, marker: &str) -> Option<HostKey> {
    let description = format!("sandyard-plant-{word}");
    let c_description = CString::new(description.as_str()).ok()?;
    // SAFETY: strings end in NUL, the payload is as long as said.
    let serial = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c_description.as_ptr(),
            marker.as_ptr(),
            marker.len(),
            USER_KEYRING,
        )
    };
    let serial = i32::try_from(serial).ok().filter(|serial| *serial > 0)?;
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_SETPERM, serial, ALL_RIGHTS) };
    Some(HostKey {
        serial,
        description,
        marker: marker.to_owned(),
    })
}

impl Drop for Objects {
    fn drop(&mut self) {
        if let Some(segment) = &self.shared_memory {
            // SAFETY: a segment of ours.
            unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
        if let Some(queue) = &self.message_queue {
            // SAFETY: a queue of ours.
            unsafe { libc::msgctl(queue.id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
        if let Some(name) = self
            .posix_queue
            .as_ref()
            .and_then(|queue| CString::new(queue.name.as_str()).ok())
        {
            // SAFETY: the name ends in NUL.
            unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) };
        }
        if let Some(key) = &self.key {
            // SAFETY: plain numbers.
            unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_UNLINK, key.serial, USER_KEYRING) };
        }
    }
}
