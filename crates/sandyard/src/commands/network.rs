//! `sandyard network`.

use std::io::Read;
use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{ArgGroup, Args, Subcommand};
use sandyard_client::{Network, NetworkPolicy, NetworkRule};
use sandyard_core::network::{Target, TargetHost};
use serde_json::Value;

use super::args;
use super::info::SandboxArgs;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A target is a name (example.com), all names below a name ('*.example.com'), an address or a network (10.0.0.0/8), optionally \
with :port. Allowed targets take precedence over denied ones. Only the operator of the server can allow private addresses.

Examples:
  sandyard network show build
  sandyard network set build --no-internet --allow pypi.org
  sandyard network allow build registry.npmjs.org:443
  sandyard network deny build '*:25'"
)]
pub(crate) enum NetworkCommand {
    /// Show the egress policy of a sandbox
    Show(SandboxArgs),
    /// Replace the egress policy of a sandbox
    Set(SetArgs),
    /// Allow targets in addition to those already allowed
    Allow(TargetArgs),
    /// Deny targets in addition to those already denied
    Deny(TargetArgs),
}

#[derive(Debug, Args)]
// At least one option is required: an empty policy would allow the whole internet.
#[command(group = ArgGroup::new("what").required(true).multiple(true)
    .args(["internet", "no_internet", "allow", "deny", "from"]))]
#[command(
    override_usage = "sandyard network set [OPTIONS] <ID>",
    after_help = "At least one option is required. --from takes what `sandyard network show --json` prints.

Examples:
  sandyard network set build --internet       # allow the public internet
  sandyard network set build --no-internet    # deny everything
  sandyard network set build --no-internet --allow pypi.org
  sandyard network set build --from policy.json"
)]
pub(crate) struct SetArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Allow the public internet except the targets of --deny
    #[arg(long, conflicts_with = "no_internet")]
    internet: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Read the policy as JSON from a file; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["internet", "no_internet", "allow", "deny"])]
    from: Option<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Target, for example pypi.org, '*.example.com:443' or 203.0.113.0/24
    #[arg(value_name = "TARGET", required = true, value_parser = target)]
    targets: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// An egress policy given by options.
#[derive(Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Deny all connections except to the targets of --allow
    #[arg(long)]
    no_internet: bool,
    /// Target to allow, for example pypi.org, '*.example.com:443' or 203.0.113.0/24; repeatable
    #[arg(long, value_name = "TARGET", value_parser = target)]
    allow: Vec<String>,
    /// Target to deny; repeatable
    #[arg(long, value_name = "TARGET", value_parser = target)]
    deny: Vec<String>,
}

impl PolicyArgs {
    /// The policy, or none if no option was given.
    pub(super) fn into_policy(self) -> Option<NetworkPolicy> {
        let is_given = self.no_internet || !self.allow.is_empty() || !self.deny.is_empty();
        is_given.then(|| NetworkPolicy {
            // The server's default applies unless --no-internet is given.
            allow_internet_access: self.no_internet.then_some(false),
            allow_out: self.allow,
            deny_out: self.deny,
            ..NetworkPolicy::default()
        })
    }
}

/// Checks a target, so that a mistake is reported before the request is sent.
fn target(text: &str) -> Result<String, String> {
    args::target(text).map(|_| text.to_owned())
}

/// Whether a target is an address or a network that is closed by default.
fn is_private(target: &str) -> bool {
    let Ok(Target {
        host: TargetHost::Network(network, _),
        ..
    }) = args::target(target)
    else {
        return false;
    };
    match network {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

/// Warns when a policy has an allow list but allows everything else too, which is rarely intended.
pub(super) fn warn_if_allow_list_is_redundant(policy: &NetworkPolicy) {
    if is_allow_list_redundant(policy) {
        output::note(
            "note: the rest of the internet stays open; add --no-internet to allow only the targets of --allow",
        );
    }
}

/// Returns whether a policy has an allow list but allows everything else too.
pub(super) fn is_allow_list_redundant(policy: &NetworkPolicy) -> bool {
    let is_everything = |entry: &String| {
        entry
            .parse()
            .is_ok_and(|target: Target| target.is_everything())
    };
    !policy.allow_out.is_empty()
        && policy.allow_internet_access != Some(false)
        && !policy.deny_out.iter().any(is_everything)
}

/// Shows or changes the egress policy, then prints the policy in effect.
pub(crate) async fn network(global: &Global, command: NetworkCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let (network, format) = match command {
        NetworkCommand::Show(args) => (client.network(&args.id).await?, args.format),
        NetworkCommand::Set(args) => {
            let network = match &args.from {
                Some(from) => client.set_network(&args.id, &read(from)?).await?,
                None => {
                    let mut policy = args.policy.into_policy().unwrap_or_default();
                    if args.internet {
                        policy.allow_internet_access = Some(true);
                    }
                    let network = client.set_network(&args.id, &policy).await?;
                    if !args.internet {
                        warn_if_allow_list_is_redundant(&network.network);
                    }
                    network
                }
            };
            (network, args.format)
        }
        NetworkCommand::Allow(args) => {
            let network = client.allow_network(&args.id, &args.targets).await?;
            for target in args.targets.iter().filter(|target| is_private(target)) {
                output::note(format!(
                    "note: `{target}` is a private address: it stays closed unless the operator opens it with `gateway.reachable`"
                ));
            }
            (network, args.format)
        }
        NetworkCommand::Deny(args) => {
            let network = client.deny_network(&args.id, &args.targets).await?;
            (network, args.format)
        }
    };
    match format.json {
        true => output::json(&network)?,
        false => show(&network),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a policy, alone or as `network show --json` prints it. The server checks its content.
fn read(from: &str) -> anyhow::Result<Value> {
    let mut text = String::new();
    match from {
        "-" => std::io::stdin().lock().read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    }
    .with_context(|| format!("reading the policy from `{from}`"))?;
    parse_policy(&text).with_context(|| format!("the policy in `{from}` is not valid JSON"))
}

fn parse_policy(text: &str) -> serde_json::Result<Value> {
    let mut policy: Value = serde_json::from_str(text)?;
    let inner = policy.get_mut("network").map(Value::take);
    Ok(inner.unwrap_or(policy))
}

fn show(network: &Network) {
    let policy = &network.network;
    let list = |targets: &[String]| Cell::from(targets.join(", "));
    let mut fields = vec![
        ("internet", Cell::from(internet(policy))),
        ("allowed", list(&policy.allow_out)),
        ("denied", list(&policy.deny_out)),
    ];
    if !policy.rules.is_empty() {
        fields.push(("set headers", Cell::from(rules(policy))));
    }
    if let Some(host) = &policy.mask_request_host {
        fields.push(("preview host", Cell::from(host)));
    }
    if let Some(is_public) = policy.allow_public_traffic {
        let access = if is_public { "public" } else { "owner" };
        fields.push(("previews", Cell::from(access)));
    }
    if !network.limitations().is_empty() {
        fields.push(("limitations", list(network.limitations())));
    }
    output::fields(&fields);
}

fn internet(policy: &NetworkPolicy) -> &'static str {
    match policy.allow_internet_access {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

fn rules(policy: &NetworkPolicy) -> String {
    let names = |rules: &[NetworkRule]| {
        let names = rules.iter().flat_map(|rule| rule.transform.headers.keys());
        names.cloned().collect::<Vec<_>>().join(" ")
    };
    let hosts = policy
        .rules
        .iter()
        .map(|(host, rules)| format!("{host}: {}", names(rules)));
    hosts.collect::<Vec<_>>().join(", ")
}

/// A policy as one line.
pub(super) fn summary(policy: &NetworkPolicy) -> String {
    let mut parts = vec![match policy.allow_internet_access {
        Some(false) => "no internet".to_owned(),
        _ => "internet".to_owned(),
    }];
    let mut add = |name: &str, targets: &[String]| {
        if !targets.is_empty() {
            parts.push(format!("{name} {}", targets.join(" ")));
        }
    };
    add("allowed", &policy.allow_out);
    add("denied", &policy.deny_out);
    if !policy.rules.is_empty() {
        parts.push(format!("sets headers for {}", rules(policy)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_are_not_given_are_left_to_the_server() {
        assert_eq!(PolicyArgs::default().into_policy(), None);
        let args = PolicyArgs {
            deny: vec!["*:25".to_owned()],
            ..PolicyArgs::default()
        };
        let policy = args.into_policy().unwrap();
        assert_eq!(policy.allow_internet_access, None);
        let args = PolicyArgs {
            no_internet: true,
            ..PolicyArgs::default()
        };
        let policy = args.into_policy().unwrap();
        assert_eq!(policy.allow_internet_access, Some(false));
    }

    #[test]
    fn an_allow_list_beside_an_open_internet_is_redundant() {
        for (policy, expected) in [
            (json!({}), false),
            (json!({"deny_out": ["*:25"]}), false),
            (json!({"allow_out": ["pypi.org"]}), true),
            (
                json!({"allow_out": ["pypi.org"], "allow_internet_access": true}),
                true,
            ),
            (
                json!({"allow_out": ["pypi.org"], "deny_out": ["*:25"]}),
                true,
            ),
            (
                json!({"allow_out": ["pypi.org"], "allow_internet_access": false}),
                false,
            ),
            (
                json!({"allow_out": ["pypi.org"], "deny_out": ["0.0.0.0/0"]}),
                false,
            ),
        ] {
            let read: NetworkPolicy = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(is_allow_list_redundant(&read), expected, "{policy}");
        }
    }

    #[test]
    fn a_policy_is_read_alone_and_as_network_show_prints_it() {
        let alone = json!({"allowOut": ["pypi.org"]});
        let response = json!({"sandbox_id": "abc", "network": alone, "limitations": []});
        for text in [alone.to_string(), response.to_string()] {
            assert_eq!(parse_policy(&text).unwrap(), alone);
        }
        assert!(parse_policy("allow everything").is_err());
    }

    #[test]
    fn a_policy_is_summarised_in_a_line() {
        let policy: NetworkPolicy = serde_json::from_value(json!({
            "allow_internet_access": false,
            "allow_out": ["pypi.org", "*.example.com"],
            "rules": {"a.example": [{"transform": {"headers": {"X-Key": "***"}}}]},
        }))
        .unwrap();
        assert_eq!(
            summary(&policy),
            "no internet, allowed pypi.org *.example.com, sets headers for a.example: X-Key"
        );
    }
}
