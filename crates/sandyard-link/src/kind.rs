//! What the first byte of a connection says.

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the agent's own socket.
    Agent,
    /// A channel of the way out. Its number follows, in four bytes; then, from the container, [`EGRESS_READY`] and frames.
    Egress,
    /// A program's connection that is to go out. The number of its channel follows, in four bytes, and the frame that says where to.
    Taken,
    /// A byte now and then, which comes back.
    Ping,
}

/// What the container says once the agent has taken a channel of the way out.
pub const EGRESS_READY: u8 = b'K';

impl Kind {
    /// As a byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Agent => b'A',
            Self::Egress => b'E',
            Self::Taken => b'T',
            Self::Ping => b'P',
        }
    }

    /// From a byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        let all = [Self::Agent, Self::Egress, Self::Taken, Self::Ping];
        all.into_iter().find(|kind| kind.byte() == byte)
    }
}
