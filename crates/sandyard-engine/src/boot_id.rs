//! The id of a boot, as programs inside see it: new with every start, the same across a pause.

use crate::error::Result;
use crate::random;

/// Makes a new one: the text of `/proc/sys/kernel/random/boot_id`.
pub(crate) fn generate() -> Result<String> {
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
    Ok(format!("{a}-{b}-{c}-{d}-{e}\n"))
}
