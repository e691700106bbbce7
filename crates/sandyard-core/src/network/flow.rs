//! The record of one attempt to reach something.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::id::SandboxId;

/// What the attempt spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A connection.
    Tcp,
    /// A datagram, other than a look-up.
    Udp,
    /// A look-up of a name.
    Dns,
    /// A ping or another control message.
    Icmp,
    /// Anything else.
    Other,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowVerdict {
    /// It went out.
    Allowed,
    /// It did not, for the reason given.
    Denied,
    /// It was allowed and the other side could not be reached, or the look-up found nothing.
    Failed,
}

/// Why an attempt was denied; [`fmt::Display`] is one line for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "code")]
#[non_exhaustive]
pub enum Denial {
    /// The policy allows nothing that it does not name, and it does not name this.
    NotAllowed {
        /// What.
        target: String,
    },
    /// An entry of the policy denies it.
    DeniedByPolicy {
        /// What.
        target: String,
        /// Which entry.
        entry: String,
    },
    /// The operator denies it to every sandbox.
    DeniedByOperator {
        /// What.
        target: String,
    },
    /// Its address is closed to sandboxes: loopback, private, link-local, metadata, this host's own.
    ClosedAddress {
        /// What.
        target: String,
        /// The address.
        address: IpAddr,
        /// Its class, as of [`closed_class`](super::address::closed_class), or `own`.
        class: String,
    },
    /// The connection was for one name, and what was said on it for another.
    NameMismatch {
        /// The name that was looked up.
        name: String,
        /// The name in the TLS hello or the `Host` header.
        said: String,
    },
    /// Only TCP and look-ups of names leave a sandbox.
    ProtocolNotCarried {
        /// What.
        target: String,
    },
    /// Too many connections at once, or too many a second.
    TooMany {
        /// Which limit.
        limit: String,
    },
}

impl Denial {
    /// The reason in one word, as in events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } => "not_allowed",
            Self::DeniedByPolicy { .. } => "denied_by_policy",
            Self::DeniedByOperator { .. } => "denied_by_operator",
            Self::ClosedAddress { .. } => "closed_address",
            Self::NameMismatch { .. } => "name_mismatch",
            Self::ProtocolNotCarried { .. } => "protocol_not_carried",
            Self::TooMany { .. } => "too_many",
        }
    }

    /// What to allow so that it passes, written as a [`Target`](super::Target); `None` where the sandbox's policy is not why.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NotAllowed { target } | Self::DeniedByPolicy { target, .. } => {
                Some(target.clone())
            }
            _ => None,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { target } => {
                write!(f, "`{target}` is not in what this sandbox may reach")
            }
            Self::DeniedByPolicy { target, entry } => {
                write!(
                    f,
                    "`{target}` is denied by the entry `{entry}` of this sandbox's policy"
                )
            }
            Self::DeniedByOperator { target } => write!(f, "`{target}` is denied to every sandbox"),
            Self::ClosedAddress {
                target,
                address,
                class,
            } => write!(
                f,
                "`{target}` is at {address} ({class}), which only the operator can open"
            ),
            Self::NameMismatch { name, said } => {
                write!(f, "connected to `{name}` and then asked for `{said}`")
            }
            Self::ProtocolNotCarried { target } => {
                write!(
                    f,
                    "only TCP and look-ups of names leave a sandbox, this went to `{target}`"
                )
            }
            Self::TooMany { limit } => write!(f, "over the limit of {limit}"),
        }
    }
}

/// The record of one attempt, or of several alike in a short time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Whose attempt.
    pub sandbox_id: SandboxId,
    /// Who owns that sandbox.
    pub owner: String,
    /// When it began, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it spoke.
    pub protocol: Protocol,
    /// The name it was for, where one is known.
    pub name: Option<String>,
    /// The address that was dialled, or meant.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
    /// What became of it.
    pub verdict: FlowVerdict,
    /// Why it was denied.
    pub denial: Option<Denial>,
    /// Why it failed, in words.
    pub failure: Option<String>,
    /// Bytes from the sandbox.
    pub sent_bytes: u64,
    /// Bytes to it.
    pub received_bytes: u64,
    /// How many attempts alike this stands for.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{NetworkPolicy, OperatorRules, Target};

    fn flow() -> Flow {
        Flow {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: "someone".to_owned(),
            at_ms: 1,
            duration_ms: 2,
            protocol: Protocol::Tcp,
            name: Some("a.org".to_owned()),
            address: Some(IpAddr::from([203, 0, 113, 7])),
            port: Some(443),
            verdict: FlowVerdict::Denied,
            denial: Some(Denial::NotAllowed {
                target: "a.org:443".to_owned(),
            }),
            failure: None,
            sent_bytes: 3,
            received_bytes: 4,
            count: 1,
        }
    }

    #[test]
    fn following_the_advice_lets_it_pass() {
        let operator = OperatorRules::default();
        let at = "2001:db8::1".parse().expect("an address");
        let mut policy = NetworkPolicy::from_value(serde_json::json!({
            "allow_internet_access": false,
            "deny_out": ["b.org", "2001:db8::1"],
        }))
        .expect("a policy");
        let follow = |policy: &mut NetworkPolicy, judged: Result<(), Denial>| {
            let advice = judged.expect_err("a denial").advice().expect("advice");
            policy.allow([advice.parse::<Target>().expect("a target")]);
            advice
        };
        let judged = policy.judge_name(&operator, "a.org", None);
        assert_eq!(follow(&mut policy, judged), "a.org");
        let judged = policy.judge_name(&operator, "b.org", Some(22));
        assert_eq!(follow(&mut policy, judged), "b.org:22");
        let judged = policy.judge_address(&operator, None, at, 80);
        assert_eq!(follow(&mut policy, judged), "[2001:db8::1]:80");
        assert_eq!(policy.judge_name(&operator, "a.org", None), Ok(()));
        assert_eq!(policy.judge_name(&operator, "b.org", Some(22)), Ok(()));
        assert_eq!(policy.judge_address(&operator, None, at, 80), Ok(()));
    }

    #[test]
    fn there_is_no_advice_where_a_policy_changes_nothing() {
        let target = "a.org:80".to_owned();
        let closed = Denial::ClosedAddress {
            target: target.clone(),
            address: IpAddr::from([10, 0, 0, 1]),
            class: "private".to_owned(),
        };
        assert_eq!(
            closed.to_string(),
            "`a.org:80` is at 10.0.0.1 (private), which only the operator can open"
        );
        assert_eq!(closed.advice(), None);
        assert_eq!(Denial::DeniedByOperator { target }.advice(), None);
    }

    #[test]
    fn a_record_is_written_as_it_is_read() {
        let json = serde_json::to_value(flow()).expect("written");
        assert_eq!(json["denial"]["code"], "not_allowed");
        assert_eq!(serde_json::from_value::<Flow>(json).expect("read"), flow());
    }
}
