//! Raw system calls: the attempts need calls and arguments that no library offers.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::check::Outcome;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// What a system call returned.
pub(crate) type Result<T = i64> = std::result::Result<T, Errno>;

impl Errno {
    pub(crate) fn last() -> Self {
        std::io::Error::last_os_error().into()
    }

    /// The answers of a kernel or filter that does not let us near: no permission, or no such call or object type.
    pub(crate) fn is_refusal(self) -> bool {
        matches!(
            self.0,
            libc::EPERM
                | libc::EACCES
                | libc::ENOSYS
                | libc::EAFNOSUPPORT
                | libc::EPROTONOSUPPORT
                | libc::EROFS
        )
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn name(errno: i32) -> Option<&'static str> {
    const NAMES: &[(i32, &str)] = &[
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOMSG, "ENOMSG"),
        (libc::EIDRM, "EIDRM"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EDQUOT, "EDQUOT"),
        (libc::ESTALE, "ESTALE"),
        (libc::ENOKEY, "ENOKEY"),
        (libc::EUSERS, "EUSERS"),
        (libc::E2BIG, "E2BIG"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == errno)
        .map(|(_, name)| *name)
}

/// One argument of a system call.
#[derive(Debug)]
pub(crate) enum Arg<'a> {
    /// A number, flag set or descriptor.
    Num(i64),
    /// A string.
    Str(&'a CStr),
    /// A structure or buffer, at least as large as the call reads.
    In(&'a [u8]),
    /// A structure or buffer, at least as large as the call writes.
    Out(&'a mut [u8]),
    /// No structure.
    Null,
}

impl From<i32> for Arg<'_> {
    fn from(number: i32) -> Self {
        Self::Num(number.into())
    }
}

impl From<u32> for Arg<'_> {
    fn from(number: u32) -> Self {
        Self::Num(number.into())
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Num(number)
    }
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Self::Num(number.cast_signed())
    }
}

impl<'a> From<&'a CStr> for Arg<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Str(text)
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::In(bytes)
    }
}

impl<'a> From<&'a mut [u8]> for Arg<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Out(bytes)
    }
}

impl Arg<'_> {
    fn word(&mut self) -> i64 {
        match self {
            Self::Num(number) => *number,
            Self::Str(text) => text.as_ptr() as i64,
            Self::In(bytes) => bytes.as_ptr() as i64,
            Self::Out(bytes) => bytes.as_mut_ptr() as i64,
            Self::Null => 0,
        }
    }
}

/// Makes a system call by number. Callers give buffers as large as that call uses, and no call that moves memory
/// the program stands on.
pub(crate) fn call(number: i64, args: &mut [Arg<'_>]) -> Result {
    let mut arguments = [0_i64; 6];
    for (word, arg) in arguments.iter_mut().zip(args.iter_mut()) {
        *word = arg.word();
    }
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: pointers are to live slices and strings that `args` borrows; sizes are the caller's promise above.
    let returned = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if returned == -1 {
        Err(Errno::last())
    } else {
        Ok(returned)
    }
}

/// `sys!(NUMBER, a, b, …)`: a system call whose arguments convert themselves.
macro_rules! sys {
    ($number:expr $(, $arg:expr)* $(,)?) => {
        $crate::sys::call($number, &mut [$($crate::sys::Arg::from($arg)),*])
    };
}
pub(crate) use sys;

/// Judges an attempt that must be refused outright: any other answer means that the kernel took it up.
pub(crate) fn refused(result: Result) -> Outcome {
    match result {
        Err(errno) if errno.is_refusal() => Outcome::held(errno),
        Err(errno) => Outcome::breached(format_args!("the kernel took it up and answered {errno}")),
        Ok(value) => Outcome::breached(format_args!("it worked and returned {value}")),
    }
}

/// Judges an attempt where only success is bad.
pub(crate) fn failed(result: Result) -> Outcome {
    match result {
        Err(errno) => Outcome::held(errno),
        Ok(value) => Outcome::breached(format_args!("it worked and returned {value}")),
    }
}

/// A path for the kernel. A NUL inside ends it, as the kernel would.
pub(crate) fn c_path(path: impl AsRef<Path>) -> CString {
    c_bytes(path.as_ref().as_os_str().as_bytes())
}

/// A string for the kernel.
pub(crate) fn c_str(text: &str) -> CString {
    c_bytes(text.as_bytes())
}

fn c_bytes(bytes: &[u8]) -> CString {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    CString::new(&bytes[..end]).expect("cut before the first NUL")
}

/// Opens a path and returns the raw descriptor, which lives as long as this short-lived process.
pub(crate) fn open(path: impl AsRef<Path>, flags: i32) -> Result<i32> {
    let path = c_path(path);
    let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    sys!(libc::SYS_openat, libc::AT_FDCWD, path.as_c_str(), flags, 0).map(|fd| fd as i32)
}

/// Closes a raw descriptor from [`open`].
pub(crate) fn close(fd: i32) {
    let _ = sys!(libc::SYS_close, fd);
}
