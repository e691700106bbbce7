//! The name, arguments and environment a process shows in `/proc`.

use super::{Doing, SysResult};

/// Replaces name and arguments by `title`, and the environment by nothing.
///
/// Root inside a sandbox can read `/proc/1/cmdline` and `/proc/1/environ`: without this they would show the launcher's, with
/// paths and perhaps secrets of the host.
pub(crate) fn overwrite(title: &str) -> SysResult<()> {
    let stat = std::fs::read_to_string("/proc/self/stat").doing("read", "/proc/self/stat")?;
    let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    // Fields 48 to 51 of proc_pid_stat(5); the first after the name is field 3.
    let places: Vec<usize> = after_name
        .split_ascii_whitespace()
        .skip(45)
        .take(4)
        .filter_map(|field| field.parse().ok())
        .collect();
    if let [arguments, arguments_end, environment, environment_end] = places[..] {
        fill(arguments, arguments_end, title.as_bytes());
        fill(environment, environment_end, b"");
    }
    rustix::thread::set_name(&std::ffi::CString::new(title).unwrap_or_default())
        .doing("set name", title)
}

fn fill(start: usize, end: usize, text: &[u8]) {
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
