//! The capabilities that root inside a container keeps.
//!
//! Fewer than in a sandbox of our own engine: there root is root of a user namespace, here it may be the host's.

use std::io;

use sandyard_confine::caps;

/// Capabilities that commands of root keep, by number and name.
pub const RETAINED: [(u32, &str); 8] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (10, "NET_BIND_SERVICE"),
];

/// Drops all others for good.
pub(super) fn drop_others() -> io::Result<()> {
    let mask = RETAINED
        .iter()
        .fold(0, |mask, (number, _)| mask | 1 << number);
    caps::confine_to(mask).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_keeps_nothing_that_a_sandbox_of_ours_does_not() {
        for (number, name) in RETAINED {
            let retained = caps::RETAINED.iter().find(|kept| kept.number == number);
            assert_eq!(retained.map(|kept| kept.name), Some(name));
        }
    }
}
