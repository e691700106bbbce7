//! `sandyard network`: what a sandbox may reach.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{ArgGroup, Args, Subcommand};
use sandyard_client::{Network, NetworkPolicy, NetworkRule};
use sandyard_core::network::Target;
use serde_json::Value;

use super::args;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A target is a name (example.com), all names below one ('*.example.com'), an address or a network
(10.0.0.0/8), with or without :port. What is allowed is allowed, whatever else is denied; private addresses
only the operator can open.

Examples:
  sandyard network show build
  sandyard network set build --no-internet --allow pypi.org --allow '*.pythonhosted.org'
  sandyard network allow build registry.npmjs.org:443
  sandyard network deny build '*:25'"
)]
pub(crate) enum NetworkCommand {
    /// Show what a sandbox may reach
    Show {
        /// Id or name of a sandbox
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// Replace what a sandbox may reach, all of it
    Set(SetArgs),
    /// Let a sandbox reach these targets too
    Allow(TargetArgs),
    /// Let a sandbox reach these targets no more
    Deny(TargetArgs),
}

#[derive(Debug, Args)]
// Without a word about what, nothing is replaced: it would be by an open door.
#[command(group = ArgGroup::new("what").required(true).multiple(true)
    .args(["internet", "no_internet", "allow", "deny", "from"]))]
#[command(after_help = "Examples:
  sandyard network set build --internet                        # the public internet, with no entries
  sandyard network set build --no-internet                     # nothing
  sandyard network set build --no-internet --allow pypi.org    # nothing but that
  sandyard network set build --from policy.json                # JSON, as `network show --json` prints it, rules included")]
pub(crate) struct SetArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// It reaches the public internet, but for what --deny names
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
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// What, like pypi.org, '*.example.com:443' or 203.0.113.0/24
    #[arg(value_name = "TARGET", required = true, value_parser = target)]
    targets: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// What a sandbox may reach, said by flags.
#[derive(Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// It reaches nothing but what --allow names
    #[arg(long)]
    no_internet: bool,
    /// What it may reach in any case, like pypi.org, '*.example.com:443' or 203.0.113.0/24; may be repeated
    #[arg(long, value_name = "TARGET", value_parser = target)]
    allow: Vec<String>,
    /// What it may not reach; may be repeated
    #[arg(long, value_name = "TARGET", value_parser = target)]
    deny: Vec<String>,
}

impl PolicyArgs {
    /// The policy; none: nothing was said.
    pub(super) fn into_policy(self) -> Option<NetworkPolicy> {
        let is_said = self.no_internet || !self.allow.is_empty() || !self.deny.is_empty();
        is_said.then(|| NetworkPolicy {
            // Whether the rest may be reached is up to the server, unless somebody says so.
            allow_internet_access: self.no_internet.then_some(false),
            allow_out: self.allow,
            deny_out: self.deny,
            ..NetworkPolicy::default()
        })
    }
}

/// Checks a target here, where its writer is.
fn target(text: &str) -> Result<String, String> {
    args::target(text).map(|_| text.to_owned())
}

/// Says so where somebody allows something and everything else stays allowed too, which is seldom what was meant.
pub(super) fn note_if_open(policy: &NetworkPolicy) {
    if is_open_beside_entries(policy) {
        output::note("note: the internet stays open; add --no-internet to allow nothing else");
    }
}

/// Says whether it allows something, and everything else as well.
pub(super) fn is_open_beside_entries(policy: &NetworkPolicy) -> bool {
    let is_everything = |entry: &String| entry.parse().is_ok_and(|it: Target| it.is_everything());
    !policy.allow_out.is_empty()
        && policy.allow_internet_access != Some(false)
        && !policy.deny_out.iter().any(is_everything)
}

/// Does what was asked for, and shows what is in force then.
pub(crate) async fn network(global: &Global, command: NetworkCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let (network, format) = match command {
        NetworkCommand::Show { id, format } => (client.network(&id).await?, format),
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
                        note_if_open(&network.network);
                    }
                    network
                }
            };
            (network, args.format)
        }
        NetworkCommand::Allow(args) => {
            let network = client.allow_network(&args.id, &args.targets).await?;
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

/// Reads a policy, alone or as `network show --json` prints it. What is in it the server judges.
fn read(from: &str) -> anyhow::Result<Value> {
    let mut text = String::new();
    match from {
        "-" => std::io::stdin().lock().read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    }
    .with_context(|| format!("reading the policy from `{from}`"))?;
    policy_of(&text).with_context(|| format!("reading the policy from `{from}`: it must be JSON"))
}

fn policy_of(text: &str) -> serde_json::Result<Value> {
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
        fields.push(("headers set", Cell::from(rules(policy))));
    }
    if let Some(host) = &policy.mask_request_host {
        fields.push(("host of previews", Cell::from(host)));
    }
    if let Some(is_public) = policy.allow_public_traffic {
        let whom = if is_public { "anybody" } else { "owner" };
        fields.push(("previews for", Cell::from(whom)));
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

/// A policy in a line, for lists of other things.
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
        parts.push(format!("headers set for {}", rules(policy)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_that_are_not_given_say_nothing() {
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
    fn entries_beside_an_open_door_are_noticed() {
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
            assert_eq!(is_open_beside_entries(&read), expected, "{policy}");
        }
    }

    #[test]
    fn a_policy_is_read_alone_and_as_it_is_shown() {
        let alone = json!({"allowOut": ["pypi.org"]});
        let shown = json!({"sandbox_id": "abc", "network": alone, "limitations": []});
        for text in [alone.to_string(), shown.to_string()] {
            assert_eq!(policy_of(&text).unwrap(), alone);
        }
        assert!(policy_of("allow everything").is_err());
    }

    #[test]
    fn a_policy_fits_into_a_line() {
        let policy: NetworkPolicy = serde_json::from_value(json!({
            "allow_internet_access": false,
            "allow_out": ["pypi.org", "*.example.com"],
            "rules": {"a.example": [{"transform": {"headers": {"X-Key": "***"}}}]},
        }))
        .unwrap();
        assert_eq!(
            summary(&policy),
            "no internet, allowed pypi.org *.example.com, headers set for a.example: X-Key"
        );
    }
}
