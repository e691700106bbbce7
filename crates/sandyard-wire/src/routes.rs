//! Every path, query key and header name of the protocol.

/// Port the agent answers on inside a sandbox.
pub const AGENT_PORT: u16 = 49983;

/// The version of E2B's daemon that the agent is compatible with.
pub const ENVD_VERSION: &str = "0.6.13";

/// Connect calls on processes.
pub mod process {
    /// Unary: the running processes.
    pub const LIST: &str = "/process.Process/List";
    /// Server stream: start a command.
    pub const START: &str = "/process.Process/Start";
    /// Server stream: follow a command.
    pub const CONNECT: &str = "/process.Process/Connect";
    /// Unary: resize a terminal.
    pub const UPDATE: &str = "/process.Process/Update";
    /// Unary: write to a command.
    pub const SEND_INPUT: &str = "/process.Process/SendInput";
    /// Client stream: write to a command.
    pub const STREAM_INPUT: &str = "/process.Process/StreamInput";
    /// Unary: signal a command.
    pub const SEND_SIGNAL: &str = "/process.Process/SendSignal";
    /// Unary: end a command's input.
    pub const CLOSE_STDIN: &str = "/process.Process/CloseStdin";
}

/// Connect calls on files.
pub mod filesystem {
    /// Unary: the attributes of a file.
    pub const STAT: &str = "/filesystem.Filesystem/Stat";
    /// Unary: make a directory and its parents.
    pub const MAKE_DIR: &str = "/filesystem.Filesystem/MakeDir";
    /// Unary: rename.
    pub const MOVE: &str = "/filesystem.Filesystem/Move";
    /// Unary: list a directory.
    pub const LIST_DIR: &str = "/filesystem.Filesystem/ListDir";
    /// Unary: delete a file, or a directory with its content.
    pub const REMOVE: &str = "/filesystem.Filesystem/Remove";
    /// Server stream: changes in a directory.
    pub const WATCH_DIR: &str = "/filesystem.Filesystem/WatchDir";
    /// Unary: start to collect changes.
    pub const CREATE_WATCHER: &str = "/filesystem.Filesystem/CreateWatcher";
    /// Unary: fetch collected changes.
    pub const GET_WATCHER_EVENTS: &str = "/filesystem.Filesystem/GetWatcherEvents";
    /// Unary: stop collecting.
    pub const REMOVE_WATCHER: &str = "/filesystem.Filesystem/RemoveWatcher";
}

/// `GET`, no token: 204 when alive.
pub const HEALTH: &str = "/health";
/// `GET`: [`Metrics`](crate::http::Metrics).
pub const METRICS: &str = "/metrics";
/// `GET`: the sandbox's variables as one JSON object.
pub const ENVS: &str = "/envs";
/// `GET` and `POST`: contents of files.
pub const FILES: &str = "/files";

/// Host only, `POST`: [`InitRequest`](crate::host::InitRequest), 204.
pub const INIT: &str = "/init";
/// Host only, `GET`: [`Activity`](crate::host::Activity).
pub const ACTIVITY: &str = "/activity";
/// Host only, `GET /dial?port=N` with `Connection: Upgrade` and `Upgrade: sandyard-dial`.
///
/// 101, then the bytes of a TCP connection to that port of the sandbox's loopback, both ways; 502 with an
/// [`HttpError`](crate::http::HttpError) when nothing listens there.
pub const DIAL: &str = "/dial";

/// The value of `Upgrade` for [`DIAL`].
pub const DIAL_UPGRADE: &str = "sandyard-dial";

/// Host only, `GET` with `Connection: Upgrade` and `Upgrade: sandyard-egress`, over a Unix socket.
///
/// 101, then [`egress`](crate::egress) frames both ways. Several may be open; the agent uses the one that last said
/// [`Lead`](crate::egress::ToAgent::Lead), else the oldest.
pub const EGRESS: &str = "/egress";

/// The value of `Upgrade` for [`EGRESS`].
pub const EGRESS_UPGRADE: &str = "sandyard-egress";

/// Host only, `POST /left?reader=R`: a relayed reader, named by the answer's [`READER`](header::READER), has delivered all output
/// that it was given; 204, also for a reader that is not known.
pub const RELAY_FINISHED: &str = "/left";

/// `GET`: [`RetainedCommands`](crate::host::RetainedCommands), the commands started with [`RETAIN`](header::RETAIN) that are not released yet.
pub const COMMANDS: &str = "/commands";

/// `POST`: [`ReleaseRequest`](crate::host::ReleaseRequest), 204. The agent may forget these commands once they have ended.
pub const RELEASE_COMMANDS: &str = "/commands/release";

/// Query keys.
pub mod query {
    /// The file of [`FILES`](super::FILES).
    pub const PATH: &str = "path";
    /// The user on whose behalf the request acts; absent means the default user.
    pub const USERNAME: &str = "username";
    /// A signature that replaces the access token.
    pub const SIGNATURE: &str = "signature";
    /// When the signature expires, in seconds since 1970.
    pub const SIGNATURE_EXPIRATION: &str = "signature_expiration";
    /// The port of [`DIAL`](super::DIAL).
    pub const PORT: &str = "port";
    /// The reader of [`RELAY_FINISHED`](super::RELAY_FINISHED).
    pub const READER: &str = "reader";
}

/// Header names, lower-case.
pub mod header {
    /// The sandbox's access token.
    pub const ACCESS_TOKEN: &str = "x-access-token";
    /// `1` on every Connect call.
    pub const CONNECT_PROTOCOL_VERSION: &str = "connect-protocol-version";
    /// How long a call may take; on `Start`, how long the command may run.
    pub const CONNECT_TIMEOUT_MS: &str = "connect-timeout-ms";
    /// Seconds of silence on a stream after which a keep-alive is due.
    pub const KEEPALIVE_PING_INTERVAL: &str = "keepalive-ping-interval";
    /// Prefix of metadata to store with an uploaded file.
    pub const METADATA_PREFIX: &str = "x-metadata-";
    /// The position where a followed command's output begins, in bytes of everything it ever wrote (all of its streams
    /// together, in the order sent).
    ///
    /// On a `Connect` request: from where to continue; absent means from now on. On the answers of `Start` and
    /// `Connect`: where it does begin, which is later than requested when the agent no longer has the older output.
    pub const OUTPUT_OFFSET: &str = "sandyard-output-offset";
    /// On `Start` and `Connect` by the host: the caller relays the output to another client.
    ///
    /// At the end it confirms the delivery ([`RELAY_FINISHED`](super::RELAY_FINISHED)). A relay that ends without that may have died
    /// with undelivered output, which the next reader gets again.
    pub const RELAYED: &str = "sandyard-relayed";
    /// On the answers of `Start` and `Connect`: an id of the process that no other process ever has.
    ///
    /// Process ids are reused, above all by a sandbox that was restarted. On a `Connect` request it makes the call fail with
    /// `not_found` when the pid now belongs to another process.
    pub const PROCESS: &str = "sandyard-process";
    /// On the answers of `Start` and `Connect`: `1` when the process has a terminal, `0` when it has pipes.
    pub const TERMINAL: &str = "sandyard-terminal";
    /// On the answers of `Start` and `Connect`: the directory in which the process started.
    pub const CWD: &str = "sandyard-cwd";
    /// On a `Connect` request: `1` makes the caller the only source of input. Input streams opened before end with `aborted`
    /// and write nothing more.
    pub const TAKE_INPUT: &str = "sandyard-take-input";
    /// On the answers of `Start` and `Connect`: how many bytes of input the process has been given since its start.
    ///
    /// After [`TAKE_INPUT`] this is where the next byte of the caller's input goes.
    pub const INPUT_OFFSET: &str = "sandyard-input-offset";
    /// On `Start`: an id of the caller's choice, under which the agent retains the command.
    ///
    /// The agent retains the command's end, and all output from the last offset that a reader with this id asked for, until the
    /// id is released ([`RELEASE_COMMANDS`](super::RELEASE_COMMANDS)).
    ///
    /// On `Connect`: selects the command by this id, whatever the message names. An agent that does not know the header
    /// falls back to the message.
    pub const RETAIN: &str = "sandyard-keep";
    /// On the answer to a relayed call: the reader's name.
    pub const READER: &str = "sandyard-reader";
}

/// Content types.
pub mod content_type {
    /// A unary call and its answer.
    pub const JSON: &str = "application/json";
    /// A stream of frames.
    pub const CONNECT_JSON: &str = "application/connect+json";
    /// A file's bytes.
    pub const OCTET_STREAM: &str = "application/octet-stream";
}

/// Prefix of the extended attributes that hold a file's metadata.
pub const METADATA_XATTR_PREFIX: &str = "user.e2b.";

/// Seconds of silence before a keep-alive when the caller names none.
pub const DEFAULT_KEEPALIVE_SECONDS: u64 = 90;
