//! The gateway as a whole, between an agent that a test plays and servers on loopback.

mod agent;
mod endings;
mod flows;
mod greetings;
mod hostile;
mod lingering;

use sandyard_core::network::{Flow, NetworkGrant, NetworkPolicy, Target};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::{Gateway, GatewaySettings};
use agent::{Agent, Listener};

/// A gateway with one sandbox attached.
struct TestEnv {
    gateway: Gateway,
    flows: mpsc::Receiver<Flow>,
    listener_address: Listener,
    agent: Agent,
    _folder: TempDir,
}

impl TestEnv {
    /// Sandboxes may reach what of loopback is named here, as far as the policy allows.
    async fn new(reachable: &[&str], policy: NetworkPolicy) -> Self {
        Self::with(policy, |settings| settings.reachable = targets(reachable)).await
    }

    async fn with(policy: NetworkPolicy, change: impl FnOnce(&mut GatewaySettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = GatewaySettings::new(folder.path());
        change(&mut settings);
        let (gateway, flows) = Gateway::start(settings).unwrap();
        let listener_address = Listener::open();
        gateway.attach("one", listener_address.endpoint(), grant(policy));
        let agent = listener_address.accept().await;
        Self {
            gateway,
            flows,
            listener_address,
            agent,
            _folder: folder,
        }
    }

    fn change(&self, policy: NetworkPolicy) {
        let endpoint = self.listener_address.endpoint();
        self.gateway.attach("one", endpoint, grant(policy));
    }

    async fn flow(&mut self) -> Flow {
        self.flows.recv().await.unwrap()
    }
}

fn grant(policy: NetworkPolicy) -> NetworkGrant {
    NetworkGrant {
        sandbox_id: "one".parse().unwrap(),
        owner: "me".to_owned(),
        policy,
        secrets: Vec::new(),
        is_leading: true,
    }
}

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Nothing but this.
fn only(texts: &[&str]) -> NetworkPolicy {
    NetworkPolicy {
        allow_internet_access: false,
        allow_out: targets(texts),
        ..NetworkPolicy::default()
    }
}
