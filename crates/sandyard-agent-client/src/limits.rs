//! Limits on an agent's replies.

use std::time::Duration;

/// Limits on what an agent may send and on how long it may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Time limit of a whole unary call, and of the first message of a stream.
    pub call_timeout: Duration,
    /// Maximum silence on a stream or a transfer; after it the agent counts as gone.
    ///
    /// The client requests keep-alives at a third of it. Set it to `None` where a sandbox may be paused while streams are open:
    /// a frozen agent is silent.
    pub silence_timeout: Option<Duration>,
    /// Maximum size of a reply's header, in bytes.
    pub max_header_len: usize,
    /// Maximum size of a unary reply's body, in bytes.
    pub max_body_len: usize,
    /// Maximum size of one message of a stream, in bytes.
    pub max_frame_len: usize,
    /// Maximum number of idle connections for unary calls.
    pub max_idle_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(30),
            silence_timeout: Some(Duration::from_secs(120)),
            max_header_len: 32 << 10,
            // A listing of 10,000 files is some 4 MiB.
            max_body_len: 32 << 20,
            max_frame_len: sandyard_wire::frame::MAX_FRAME_LEN,
            max_idle_connections: 4,
        }
    }
}

impl Limits {
    /// Seconds of silence after which to ask the agent for a keep-alive.
    pub(crate) fn keepalive_seconds(&self) -> u64 {
        self.silence_timeout
            .map_or(50, |silence| (silence.as_secs() / 3).max(1))
    }
}
