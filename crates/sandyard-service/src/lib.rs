//! The life of a sandbox: the only writer of sandbox state.
//!
//! Dialects translate to and from the verbs of [`Service`]; one verb a file in `verbs/`. Beneath them:
//!
//! | file | holds |
//! |---|---|
//! | `claim` | one owner per sandbox: who changes it, until when |
//! | `activity` | when a sandbox was last used, and whether it is in use |
//! | `expiry` | when a sandbox's time is over |
//! | `places` | which provider reaches which sandbox, on this node or another |
//! | `health` | whether each provider answers |
//! | `scheduler`, `put_back` | timers that are due, and those whose work failed |
//! | `reconcile`, `strangers` | what should be against what is; instances that no row of their place knows, removed or told of |
//! | `policy`, `seal` | what a sandbox may reach as its row has it; values nobody reads in the store |
//! | `grants` | the same on its way to whoever sees to it, secrets included |
//! | `flows` | what sandboxes tried to reach, on its way into their history |
//! | `node` | this server among the others |
//! | `command_log`, `history` | the output of commands, in files; that they ran |
//! | `adoption` | commands that another server started and did not see the end of |
//! | `memory` | bytes of requests and answers held in memory, bounded for all and for each caller |
//! | `status_changes` | which sandboxes changed their status on this node |
//! | `run` | what goes on in the background |
//!
//! A transition is: claim the row, ask the provider, commit row, events and timer at once. It runs on a task of its own,
//! so that a client that hangs up cannot leave it half done. A crash at any point leaves a claim that ends, and the
//! reconciler brings row and reality together.
//!
//! This crate knows nothing of HTTP.
#![forbid(unsafe_code)]

mod activity;
mod adoption;
mod claim;
mod clock_watch;
mod command_log;
mod error;
mod expiry;
mod flow_rows;
mod flows;
mod grants;
mod health;
mod history;
mod locks;
mod memory;
mod node;
mod places;
mod policy;
mod put_back;
mod random;
mod reconcile;
mod request;
mod run;
mod scheduler;
mod seal;
mod service;
mod settings;
mod status_changes;
mod strangers;
mod verbs;

pub use error::{ServiceError, ServiceResult};
pub use health::ProviderView;
pub use memory::{MemoryBudget, MemoryHold, PATIENCE, Shortage, UNCOUNTED};
pub use node::NodeSetup;
pub use places::{Reach, ReachFn, Reaching};
pub use random::new_installation_name;
pub use request::{
    Command, CommandOutput, ConnectRequest, Connected, CreateRequest, FlowFilter, ForkRequest,
    LimitsRequest, LogEntry, LogLines, LogSource, MountRequest, PartialOutput, RunRequest,
    SecretInfo, SecretRequest, Template, TemplateList, TimeoutRequest,
};
pub use sandyard_store::model::{
    Event, EventFilter, Expiry, Page, Sandbox, SandboxFilter, Snapshot, TimeoutAction, Volume,
};
pub use service::Service;
pub use settings::ServiceSettings;
pub use status_changes::StatusChange;
pub use verbs::{
    Live, LogFollower, NotRunning, UnknownInstance, UnknownInstances, VOLUME_TOKEN_PREFIX,
    WakePolicy,
};
