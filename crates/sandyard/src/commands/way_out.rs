//! The way out of a sandbox that no server looks after.

use clap::Args;
use sandyard_agent_client::Endpoint;
use sandyard_core::SandboxId;
use sandyard_core::network::{Flow, FlowVerdict, NetworkGrant, NetworkPolicy, Target};
use sandyard_gateway::{Gateway, GatewaySettings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::global::Global;
use crate::output;

/// Refusals that are told; a program that tries on and on has been told often enough.
const MOST_TOLD: usize = 20;

/// What a sandbox may reach.
#[derive(Debug, Args)]
pub(crate) struct WayOutArgs {
    /// Let it reach nothing but what --allow names
    #[arg(long)]
    no_internet: bool,
    /// Let it reach this, whatever else is denied: a name, *.name, address or network, with or without :port; may be repeated
    #[arg(long, value_name = "TARGET")]
    allow: Vec<Target>,
    /// Do not let it reach this; may be repeated
    #[arg(long, value_name = "TARGET")]
    deny: Vec<Target>,
}

impl WayOutArgs {
    fn policy(&self) -> NetworkPolicy {
        NetworkPolicy {
            allow_internet_access: !self.no_internet,
            allow_out: self.allow.clone(),
            deny_out: self.deny.clone(),
            ..NetworkPolicy::default()
        }
    }
}

/// A gateway of this process, for as long as it lives.
pub(crate) struct WayOut {
    gateway: Gateway,
    policy: NetworkPolicy,
    telling: JoinHandle<()>,
}

impl WayOut {
    /// Opens the gateway. To be done before the sandbox is made, which trusts the gateway's authority.
    pub(crate) fn open(global: &Global, args: &WayOutArgs) -> anyhow::Result<Self> {
        let folder = global.data_dir().join("gateway");
        let (gateway, flows) = Gateway::start(GatewaySettings::new(folder))?;
        Ok(Self {
            gateway,
            policy: args.policy(),
            telling: tokio::spawn(tell(flows)),
        })
    }

    /// Lets a sandbox out.
    pub(crate) fn attach(&self, id: &SandboxId, agent: &Endpoint) {
        let grant = NetworkGrant {
            sandbox_id: id.clone(),
            owner: String::new(),
            policy: self.policy.clone(),
            secrets: Vec::new(),
            is_leading: true,
        };
        self.gateway.attach(id.as_str(), agent.clone(), grant);
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

/// Tells what was denied, so that nobody has to guess why a program failed.
async fn tell(mut flows: mpsc::Receiver<Flow>) {
    let mut told = 0;
    while let Some(flow) = flows.recv().await {
        if flow.verdict == FlowVerdict::Denied
            && told < MOST_TOLD
            && let Some(denial) = flow.denial
        {
            told += 1;
            output::note(format!("network: {denial}"));
        }
    }
}
