//! What runs a sandbox's processes, below the verbs.
//!
//! The verbs and `boot` own what every runtime shares: the folder, lock and record of a sandbox, its user ids, cgroup, disk,
//! volumes and the agent's socket, each with its undo. A [`Runtime`] owns the processes: how they start, freeze, continue and end.
//! Today there is one, [`Namespaces`]. Another one implements the two traits and is chosen in `Context`.

mod freeze;
mod namespaces;

use std::fmt::Debug;
use std::os::fd::OwnedFd;

use sandyard_confine::cgroup::Cgroup;
use sandyard_template::Template;

use crate::context::Context;
use crate::disk::OpenDisk;
use crate::error::Result;
use crate::layout::SandboxDir;
use crate::record::Record;
use crate::steps::{Fault, Steps};
use crate::sys::process::ProcessKey;

pub(crate) use namespaces::{KILL_TIMEOUT, Namespaces};

/// A sandbox to start. Everything in it exists and is undone by the caller.
pub(crate) struct Launch<'a> {
    pub(crate) dir: &'a SandboxDir,
    pub(crate) record: &'a Record,
    /// The record's template, with the layer on top that makes programs trust the gateway.
    pub(crate) template: &'a Template,
    /// Key of the template part that has this layer, if there is one.
    pub(crate) trusting: Option<&'a str>,
    pub(crate) cgroup: &'a Cgroup,
    /// Where the agent answers on the host.
    pub(crate) listener: OwnedFd,
    /// A failure that a test asked for.
    pub(crate) fault: Option<Fault>,
}

/// The file systems of a sandbox, open.
pub(crate) struct Mounts<'a> {
    /// Its layers are read-only and shared with other sandboxes.
    pub(crate) template: &'a Template,
    pub(crate) disk: OpenDisk,
    /// Those of the spec that are images, in its order.
    pub(crate) volumes: Vec<OwnedFd>,
}

/// Starts, freezes and ends the processes of sandboxes.
pub(crate) trait Runtime: Debug {
    /// Starts the first process, in the sandbox's cgroup and with its user ids. It must wait for
    /// [`StartingSandbox::release`] before it runs anything of the user's, and end if the caller dies before that: a
    /// sandbox that is not on record must not run.
    ///
    /// Adds the undo of what it does to `steps`.
    fn start<'a>(
        &self,
        ctx: &'a Context,
        launch: Launch<'_>,
        steps: &mut Steps<'a>,
    ) -> Result<Box<dyn StartingSandbox + 'a>>;

    /// Ends the first process and everything it started. Ending what has ended succeeds.
    fn end(&self, ctx: &Context, first: ProcessKey) -> Result<()>;

    /// Stops all processes where they are, with their memory kept.
    fn freeze(&self, ctx: &Context, record: &Record) -> Result<()>;

    /// Lets all processes continue.
    fn thaw(&self, ctx: &Context, record: &Record) -> Result<()>;

    /// Lets all processes continue if [`Runtime::freeze`] stopped them, and does not touch those that a user inside stopped.
    fn thaw_if_frozen(&self, ctx: &Context, record: &Record) -> Result<()>;
}

/// A first process that sets itself up. The calls come in the order of the methods, each once.
pub(crate) trait StartingSandbox {
    /// The first process.
    fn first_process(&self) -> Option<ProcessKey>;

    /// Gives it its file systems.
    fn hand_over(&mut self, mounts: Mounts<'_>) -> Result<()>;

    /// Waits until it is set up. Returns what this host could not give it, as sentences for the user.
    fn wait_ready(&mut self) -> Result<Vec<String>>;

    /// Lets it run.
    fn release(&mut self) -> Result<()>;
}
