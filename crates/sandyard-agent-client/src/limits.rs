//! How much of an agent's reply is borne.

use std::time::Duration;

/// Limits on what an agent may send and on how long it may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Time for a unary call as a whole, and for the first message of a stream.
    pub call_timeout: Duration,
    /// Silence on a stream or a transfer after which the agent counts as gone.
    ///
    /// Keep-alives are asked for at a third of it. Set it to none where a sandbox may be paused while streams are open:
    /// a frozen agent is silent.
    pub silence_timeout: Option<Duration>,
    /// Bytes of a reply's header.
    pub max_header_len: usize,
    /// Bytes of a unary reply's body.
    pub max_body_len: usize,
    /// Bytes of one message of a stream.
    pub max_frame_len: usize,
    /// Idle connections kept for the next unary call.
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
