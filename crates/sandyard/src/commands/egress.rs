//! Network access of a `sandyard run` sandbox: a gateway in this process.

use std::net::IpAddr;

use clap::Args;
use sandyard_agent_client::Endpoint;
use sandyard_core::SandboxId;
use sandyard_core::network::{Flow, FlowVerdict, NetworkGrant, NetworkPolicy, Protocol, Target};
use sandyard_gateway::{Gateway, GatewaySettings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::args;
use crate::global::Global;
use crate::output;

/// Maximum number of denials to print.
const MAX_DENIALS: usize = 20;

/// Maximum number of distinct failures to print. The program usually prints them too, but not always with the reason.
const MAX_FAILURES: usize = 5;

/// The egress policy.
#[derive(Debug, Args)]
pub(crate) struct EgressArgs {
    /// Deny all connections except to the targets of --allow
    #[arg(long)]
    no_internet: bool,
    /// Target to allow, even if another rule denies it: a name, *.name, address or network, optionally with :port; repeatable
    #[arg(long, value_name = "TARGET", value_parser = args::target)]
    allow: Vec<Target>,
    /// Target to deny; repeatable
    #[arg(long, value_name = "TARGET", value_parser = args::target)]
    deny: Vec<Target>,
}

impl EgressArgs {
    fn policy(&self) -> NetworkPolicy {
        NetworkPolicy {
            allow_internet_access: !self.no_internet,
            allow_out: self.allow.clone(),
            deny_out: self.deny.clone(),
            ..NetworkPolicy::default()
        }
    }
}

/// The gateway of this process.
pub(crate) struct Egress {
    gateway: Gateway,
    policy: NetworkPolicy,
    reporter: JoinHandle<()>,
}

impl Egress {
    /// Starts the gateway. Call it before the sandbox is created, because the sandbox trusts the gateway's certificate authority.
    pub(crate) fn open(global: &Global, args: &EgressArgs) -> anyhow::Result<Self> {
        let folder = global.data_dir().join("gateway");
        let (gateway, flows) = Gateway::start(GatewaySettings::new(folder))?;
        Ok(Self {
            gateway,
            policy: args.policy(),
            reporter: tokio::spawn(report(flows)),
        })
    }

    /// Gives a sandbox access to the network.
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

impl Drop for Egress {
    fn drop(&mut self) {
        self.reporter.abort();
    }
}

/// Prints denied and failed connections.
async fn report(mut flows: mpsc::Receiver<Flow>) {
    let mut report = Report::default();
    while let Some(flow) = flows.recv().await {
        if let Some(line) = report.line(&flow) {
            output::note(output::escape_control(&line));
        }
    }
}

/// What was printed so far.
#[derive(Default)]
struct Report {
    denials: usize,
    failures: Vec<String>,
}

impl Report {
    /// The line to print for a flow, if any.
    fn line(&mut self, flow: &Flow) -> Option<String> {
        match flow.verdict {
            FlowVerdict::Allowed => None,
            FlowVerdict::Denied => {
                let denial = flow.denial.as_ref()?;
                let is_printed = self.denials < MAX_DENIALS;
                self.denials += usize::from(is_printed);
                is_printed.then(|| format!("network: {denial}"))
            }
            FlowVerdict::Failed => {
                let line = failure(flow)?;
                let is_printed =
                    self.failures.len() < MAX_FAILURES && !self.failures.contains(&line);
                is_printed.then(|| {
                    self.failures.push(line.clone());
                    line
                })
            }
        }
    }
}

/// The line for a DNS query or a connection that failed.
fn failure(flow: &Flow) -> Option<String> {
    let reason = flow.failure.as_ref()?;
    let host = match (&flow.name, flow.address) {
        (Some(name), _) => name.clone(),
        (None, Some(IpAddr::V6(address))) => format!("[{address}]"),
        (None, address) => address?.to_string(),
    };
    match flow.protocol {
        // Programs try reverse and service names and do without an answer.
        Protocol::Dns if host.ends_with(".arpa") || host.starts_with('_') => None,
        // The sandbox's hosts file has only an IPv4 address for its own name, so programs query the IPv6 address.
        Protocol::Dns if host == flow.sandbox_id.as_str() => None,
        Protocol::Dns => Some(format!("network: `{host}`: {reason}")),
        Protocol::Tcp => Some(match flow.port {
            Some(port) => format!("network: `{host}:{port}`: {reason}"),
            None => format!("network: `{host}`: {reason}"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::network::Denial;

    use super::*;

    fn flow(protocol: Protocol, name: &str) -> Flow {
        Flow {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: String::new(),
            at_ms: 1,
            duration_ms: 0,
            protocol,
            name: Some(name.to_owned()),
            address: None,
            port: (protocol == Protocol::Tcp).then_some(443),
            verdict: FlowVerdict::Failed,
            denial: None,
            failure: Some("no such name".to_owned()),
            sent_bytes: 0,
            received_bytes: 0,
            count: 1,
        }
    }

    #[test]
    fn a_failure_is_printed_once_and_only_if_it_matters() {
        let mut report = Report::default();
        let mut line_for = |protocol, name| report.line(&flow(protocol, name));
        let line = line_for(Protocol::Dns, "a.example").unwrap();
        assert_eq!(line, "network: `a.example`: no such name");
        assert_eq!(line_for(Protocol::Dns, "a.example"), None);
        assert_eq!(line_for(Protocol::Dns, "_http._tcp.a.example"), None);
        assert_eq!(line_for(Protocol::Dns, "1.2.0.192.in-addr.arpa"), None);
        let own = SandboxId::from_random([1; 20]);
        assert_eq!(line_for(Protocol::Dns, own.as_str()), None);
        let line = line_for(Protocol::Tcp, "a.example").unwrap();
        assert_eq!(line, "network: `a.example:443`: no such name");
        let allowed = Flow {
            verdict: FlowVerdict::Allowed,
            ..flow(Protocol::Tcp, "b.example")
        };
        assert_eq!(report.line(&allowed), None);
    }

    #[test]
    fn denials_are_printed_up_to_a_maximum_whatever_failed() {
        let mut report = Report::default();
        let names = (0..30).map(|n| format!("{n}.example"));
        let failures = names.filter_map(|name| report.line(&flow(Protocol::Dns, &name)));
        assert_eq!(failures.count(), MAX_FAILURES);
        let denied = Flow {
            verdict: FlowVerdict::Denied,
            denial: Some(Denial::NotAllowed {
                target: "a.example:443".to_owned(),
            }),
            ..flow(Protocol::Tcp, "a.example")
        };
        let lines: Vec<String> = (0..30).filter_map(|_| report.line(&denied)).collect();
        assert_eq!(lines.len(), MAX_DENIALS);
        assert_eq!(
            lines[0],
            "network: `a.example:443` is not in what this sandbox may reach"
        );
    }
}
