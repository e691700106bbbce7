//! The id of a boot, as programs inside see it: new with every start, the same across a pause.

use std::fs;

use crate::error::Result;
use crate::layout::SandboxDir;
use crate::random;
use crate::sys::Doing;

/// Writes a new one, to be shown inside as `/proc/sys/kernel/random/boot_id`.
pub(crate) fn write(dir: &SandboxDir) -> Result<()> {
    let mut bytes = random::bytes::<16>()?;
    // Version 4, variant 1 of RFC 9562: random.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = random::hex(&bytes);
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    );
    let path = dir.boot_id();
    Ok(fs::write(&path, format!("{a}-{b}-{c}-{d}-{e}\n")).doing("write", path.display())?)
}
