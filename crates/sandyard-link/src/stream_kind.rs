//! What the first byte of a connection says.

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// To the agent's own socket.
    Agent,
    /// An egress channel. Its number follows, in four bytes; then, from the container, [`EGRESS_READY`] and frames.
    Egress,
    /// A program's outgoing connection. The number of its egress channel follows, in four bytes, and the frame that names the target.
    Outgoing,
    /// Pings: each byte is echoed.
    Ping,
}

/// The container sends it when the agent has accepted an egress channel.
pub const EGRESS_READY: u8 = b'K';

impl StreamKind {
    /// The byte that begins such a connection.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Agent => b'A',
            Self::Egress => b'E',
            Self::Outgoing => b'T',
            Self::Ping => b'P',
        }
    }

    /// Finds the kind by its byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        let all = [Self::Agent, Self::Egress, Self::Outgoing, Self::Ping];
        all.into_iter().find(|kind| kind.byte() == byte)
    }
}
