//! The name, arguments and environment of this process in `/proc`.

use super::{OperationExt, SysResult};

/// Addresses of the arguments and the environment of this program. They are the same in forks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Title {
    arguments: (usize, usize),
    environment: (usize, usize),
}

impl Title {
    /// Reads the addresses from `/proc`.
    pub(crate) fn find() -> SysResult<Self> {
        let stat =
            std::fs::read_to_string("/proc/self/stat").operation("read", "/proc/self/stat")?;
        let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
        // Fields 48 to 51 of proc_pid_stat(5); the first after the name is field 3.
        let mut places = after_name
            .split_ascii_whitespace()
            .skip(45)
            .map(|field| field.parse().unwrap_or(0));
        let mut next = || places.next().unwrap_or(0);
        Ok(Self {
            arguments: (next(), next()),
            environment: (next(), next()),
        })
    }

    /// Replaces name and arguments by `title`, and the environment by nothing.
    ///
    /// Root inside a sandbox can read `/proc/1/cmdline` and `/proc/1/environ`, which would show those of the launcher, with paths and
    /// perhaps secrets of the host.
    pub(crate) fn overwrite(self, title: &std::ffi::CStr) -> SysResult<()> {
        fill(self.arguments, title.to_bytes());
        fill(self.environment, b"");
        rustix::thread::set_name(title).operation("set name", title.to_string_lossy())
    }
}

fn fill((start, end): (usize, usize), text: &[u8]) {
    if start == 0 || end <= start {
        return;
    }
    let length = end - start;
    let copied = text.len().min(length - 1);
    let place = std::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the kernel laid out the argument and environment strings of this process at [start, end), writable, and put
    // them on the stack outside of anything Rust allocated; this thread is the only one, so nobody reads them meanwhile.
    unsafe { std::ptr::write_bytes(place, 0, length) };
    // SAFETY: as above, and `copied` is less than `length`.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), place, copied) };
}
