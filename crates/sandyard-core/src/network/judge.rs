//! The verdict of a policy and the operator's rules.

use std::net::{IpAddr, SocketAddr};

use super::address::{closed_class, embedded_v4};
use super::flow::Denial;
use super::operator_rules::OperatorRules;
use super::policy::NetworkPolicy;
use super::target::{Target, TargetHost};

impl NetworkPolicy {
    /// Judges a name before anybody is asked what its address is: a look-up alone carries data out.
    ///
    /// `port` is known when a program connects, not when it looks up. A name must then be one that some port of is allowed.
    /// Networks in `allow_out` allow no name: what it resolves to is known too late.
    ///
    /// # Errors
    ///
    /// Why the flow is denied.
    pub fn judge_name(
        &self,
        operator: &OperatorRules,
        name: &str,
        port: Option<u16>,
    ) -> Result<(), Denial> {
        // An entry for one port leaves the others, so it is nothing against a look-up.
        let is_denied_by = |entry: &Target| {
            entry.matches_name(name, port) && (port.is_some() || entry.port.is_none())
        };
        let target = || match port {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        if operator.denied.iter().any(is_denied_by) {
            return Err(Denial::DeniedByOperator { target: target() });
        }
        if self
            .allow_out
            .iter()
            .any(|entry| entry.matches_name(name, port))
        {
            return Ok(());
        }
        self.judge_unnamed(is_denied_by, target)
    }

    /// Judges the address that is about to be dialled, with the name it was found by, if it was.
    ///
    /// # Errors
    ///
    /// Why the flow is denied.
    pub fn judge_address(
        &self,
        operator: &OperatorRules,
        name: Option<&str>,
        address: IpAddr,
        port: u16,
    ) -> Result<(), Denial> {
        let address = address.to_canonical();
        let forms = forms(address);
        let is_named_by =
            |entry: &Target| name.is_some_and(|name| entry.matches_name(name, Some(port)));
        let is_allowed_by =
            |entry: &Target| is_named_by(entry) || entry.matches_address(address, port);
        // Compares the embedded IPv4 address too: an address written as IPv6 does not avoid a denial.
        let is_denied_by = |entry: &Target| {
            is_named_by(entry)
                || forms
                    .iter()
                    .flatten()
                    .any(|form| entry.matches_address(*form, port))
        };
        let target = || match name {
            Some(name) => format!("{name}:{port}"),
            None => SocketAddr::new(address, port).to_string(),
        };
        if operator.denied.iter().any(is_denied_by) {
            return Err(Denial::DeniedByOperator { target: target() });
        }
        if let Some(class) = closed_class_on(operator, address)
            && !operator.reachable.iter().any(is_allowed_by)
        {
            return Err(Denial::ClosedAddress {
                target: target(),
                address,
                class: class.to_owned(),
            });
        }
        if self.allow_out.iter().any(is_allowed_by) {
            return Ok(());
        }
        self.judge_unnamed(is_denied_by, target)
    }

    /// Says whether what no entry names is denied, so that names matter: `allow_internet_access` is off, or `deny_out` holds
    /// everything.
    pub fn is_closed(&self) -> bool {
        !self.allow_internet_access || self.deny_out.iter().any(Target::is_everything)
    }

    /// Says whether anything depends on the name that a connection is for: the policy is closed, or it or the operator denies
    /// some names. Where only addresses and ports are denied, a name gets nobody further.
    pub fn names_matter(&self, operator: &OperatorRules) -> bool {
        let mut denied = self.deny_out.iter().chain(&operator.denied);
        self.is_closed()
            || denied.any(|entry| match &entry.host {
                TargetHost::Name(pattern) => !pattern.is_every_name(),
                TargetHost::Network(..) => false,
            })
    }

    /// Judges what `allow_out` does not name.
    fn judge_unnamed(
        &self,
        is_denied_by: impl Fn(&Target) -> bool,
        target: impl Fn() -> String,
    ) -> Result<(), Denial> {
        // An entry that denies everything means a closed policy; naming it would tell nothing.
        let entry = self
            .deny_out
            .iter()
            .find(|entry| !entry.is_everything() && is_denied_by(entry));
        match entry {
            Some(entry) => Err(Denial::DeniedByPolicy {
                target: target(),
                entry: entry.to_string(),
            }),
            None if self.is_closed() => Err(Denial::NotAllowed { target: target() }),
            None => Ok(()),
        }
    }
}

/// The class of an address that sandboxes may not reach unless the operator says so; `host_address` for this host's.
fn closed_class_on(operator: &OperatorRules, address: IpAddr) -> Option<&'static str> {
    let is_own = forms(address).into_iter().flatten().any(|form| {
        operator
            .host_addresses
            .iter()
            .any(|host_address| host_address.to_canonical() == form)
    });
    if is_own {
        Some("own")
    } else {
        closed_class(address)
    }
}

/// The address itself, and the IPv4 one it holds.
fn forms(address: IpAddr) -> [Option<IpAddr>; 2] {
    let held = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded_v4(address).map(IpAddr::V4),
    };
    [Some(address), held]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(texts: &[&str]) -> Vec<Target> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn open(allow: &[&str], deny: &[&str]) -> NetworkPolicy {
        NetworkPolicy {
            allow_out: targets(allow),
            deny_out: targets(deny),
            ..NetworkPolicy::default()
        }
    }

    fn closed(allow: &[&str], deny: &[&str]) -> NetworkPolicy {
        NetworkPolicy {
            allow_internet_access: false,
            ..open(allow, deny)
        }
    }

    fn operator(reachable: &[&str], denied: &[&str], host_addresses: &[&str]) -> OperatorRules {
        OperatorRules {
            reachable: targets(reachable),
            denied: targets(denied),
            host_addresses: host_addresses
                .iter()
                .map(|text| text.parse().expect(text))
                .collect(),
        }
    }

    /// The code of the denial of an address and the target it speaks of, `ok` when there is none.
    fn address(
        policy: &NetworkPolicy,
        operator: &OperatorRules,
        name: Option<&str>,
        at: &str,
        port: u16,
    ) -> String {
        let at = at.parse().expect(at);
        code(policy.judge_address(operator, name, at, port))
    }

    fn name(
        policy: &NetworkPolicy,
        operator: &OperatorRules,
        name: &str,
        port: Option<u16>,
    ) -> String {
        code(policy.judge_name(operator, name, port))
    }

    fn code(judged: Result<(), Denial>) -> String {
        judged.map_or_else(|denial| denial.code().to_owned(), |()| "ok".to_owned())
    }

    #[test]
    fn by_default_the_internet_is_open_and_nothing_else() {
        let (policy, operator) = (NetworkPolicy::default(), OperatorRules::default());
        assert!(!policy.is_closed());
        assert_eq!(name(&policy, &operator, "example.com", None), "ok");
        assert_eq!(
            address(&policy, &operator, Some("example.com"), "203.0.113.7", 443),
            "ok"
        );
        assert_eq!(
            address(&policy, &operator, None, "2606:4700::1111", 443),
            "ok"
        );
        for at in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "::ffff:10.0.0.1",
            "198.18.0.1",
            "0.0.0.0",
        ] {
            assert_eq!(
                address(&policy, &operator, Some("example.com"), at, 443),
                "closed_address",
                "{at}"
            );
        }
    }

    #[test]
    fn a_closed_policy_names_what_it_did_not_find() {
        let (policy, operator) = (closed(&["example.com:443"], &[]), OperatorRules::default());
        assert_eq!(
            policy.judge_name(&operator, "other.org", None),
            Err(Denial::NotAllowed {
                target: "other.org".to_owned()
            })
        );
        assert_eq!(
            policy.judge_name(&operator, "example.com", Some(80)),
            Err(Denial::NotAllowed {
                target: "example.com:80".to_owned()
            })
        );
        let at = "2001:db8::1".parse().expect("an address");
        assert_eq!(
            policy.judge_address(&operator, None, at, 443),
            Err(Denial::NotAllowed {
                target: "[2001:db8::1]:443".to_owned()
            })
        );
        assert_eq!(policy.judge_name(&operator, "example.com", None), Ok(()));
        assert_eq!(
            policy.judge_name(&operator, "example.com", Some(443)),
            Ok(())
        );
        assert_eq!(
            policy.judge_address(&operator, Some("example.com"), at, 443),
            Ok(())
        );
    }

    #[test]
    fn denying_everything_is_a_closed_policy_too() {
        for everything in ["0.0.0.0/0", "::/0", "*"] {
            let (policy, operator) = (
                open(&["example.com"], &[everything]),
                OperatorRules::default(),
            );
            assert!(policy.is_closed());
            assert_eq!(name(&policy, &operator, "example.com", Some(443)), "ok");
            assert_eq!(name(&policy, &operator, "other.org", None), "not_allowed");
            assert_eq!(
                address(&policy, &operator, None, "203.0.113.7", 80),
                "not_allowed"
            );
            assert_eq!(
                address(&policy, &operator, None, "2001:db8::1", 80),
                "not_allowed"
            );
        }
        assert!(!open(&[], &["0.0.0.0/0:25"]).is_closed());
    }

    #[test]
    fn names_matter_where_some_are_denied() {
        let none = OperatorRules::default();
        for policy in [
            closed(&[], &[]),
            open(&["example.com"], &["0.0.0.0/0"]),
            open(&[], &["*"]),
            open(&[], &["10.0.0.0/8", "evil.org"]),
            open(&[], &["*.evil.org:80"]),
        ] {
            assert!(policy.names_matter(&none), "{policy:?}");
        }
        for policy in [
            NetworkPolicy::default(),
            open(
                &["example.com"],
                &["203.0.113.0/24", "*:25", "0.0.0.0/0:22"],
            ),
        ] {
            assert!(!policy.names_matter(&none), "{policy:?}");
            assert!(!policy.names_matter(&operator(
                &["git.internal"],
                &["203.0.113.7", "*:25"],
                &[]
            )));
            assert!(policy.names_matter(&operator(&[], &["evil.org:80"], &[])));
        }
    }

    #[test]
    fn allow_wins_over_deny() {
        let (policy, operator) = (
            open(
                &["api.example.com", "203.0.113.7"],
                &["*.example.com", "203.0.113.0/24"],
            ),
            OperatorRules::default(),
        );
        assert_eq!(name(&policy, &operator, "api.example.com", None), "ok");
        assert_eq!(
            name(&policy, &operator, "www.example.com", None),
            "denied_by_policy"
        );
        assert_eq!(address(&policy, &operator, None, "203.0.113.7", 80), "ok");
        assert_eq!(
            address(&policy, &operator, None, "203.0.113.8", 80),
            "denied_by_policy"
        );
        // By name is enough, whatever is said of the address; and the other way round.
        assert_eq!(
            address(
                &policy,
                &operator,
                Some("api.example.com"),
                "203.0.113.8",
                80
            ),
            "ok"
        );
        assert_eq!(
            address(
                &policy,
                &operator,
                Some("www.example.com"),
                "203.0.113.7",
                80
            ),
            "ok"
        );
    }

    #[test]
    fn a_denial_says_which_entry_it_is_and_never_everything() {
        let policy = open(&[], &["0.0.0.0/0", "evil.org", "203.0.113.0/24:25"]);
        let operator = OperatorRules::default();
        assert_eq!(
            policy.judge_name(&operator, "evil.org", None),
            Err(Denial::DeniedByPolicy {
                target: "evil.org".to_owned(),
                entry: "evil.org".to_owned()
            })
        );
        let at = "203.0.113.7".parse().expect("an address");
        assert_eq!(
            policy.judge_address(&operator, Some("a.org"), at, 25),
            Err(Denial::DeniedByPolicy {
                target: "a.org:25".to_owned(),
                entry: "203.0.113.0/24:25".to_owned()
            })
        );
        assert_eq!(
            policy.judge_address(&operator, Some("a.org"), at, 80),
            Err(Denial::NotAllowed {
                target: "a.org:80".to_owned()
            })
        );
    }

    #[test]
    fn denying_one_port_leaves_look_ups_alone() {
        let (policy, operator) = (
            open(&[], &["*:25", "example.com:22"]),
            operator(&[], &["evil.org:80"], &[]),
        );
        assert_eq!(name(&policy, &operator, "example.com", None), "ok");
        assert_eq!(name(&policy, &operator, "example.com", Some(443)), "ok");
        assert_eq!(
            name(&policy, &operator, "example.com", Some(22)),
            "denied_by_policy"
        );
        assert_eq!(
            name(&policy, &operator, "other.org", Some(25)),
            "denied_by_policy"
        );
        assert_eq!(
            address(&policy, &operator, None, "2001:db8::1", 25),
            "denied_by_policy"
        );
        assert_eq!(name(&policy, &operator, "evil.org", None), "ok");
        assert_eq!(
            name(&policy, &operator, "evil.org", Some(80)),
            "denied_by_operator"
        );
    }

    #[test]
    fn a_network_allows_no_look_up() {
        let (policy, operator) = (closed(&["203.0.113.0/24"], &[]), OperatorRules::default());
        assert_eq!(name(&policy, &operator, "example.com", None), "not_allowed");
        assert_eq!(
            name(&policy, &operator, "example.com", Some(443)),
            "not_allowed"
        );
        assert_eq!(address(&policy, &operator, None, "203.0.113.7", 443), "ok");
        let policy = closed(&["0.0.0.0/0:443"], &[]);
        assert_eq!(name(&policy, &operator, "example.com", None), "ok");
        assert_eq!(
            name(&policy, &operator, "example.com", Some(80)),
            "not_allowed"
        );
    }

    #[test]
    fn what_the_operator_denies_no_policy_allows() {
        let policy = open(&["*", "evil.org", "203.0.113.7"], &[]);
        let operator = operator(
            &["203.0.113.0/24", "evil.org"],
            &["evil.org", "203.0.113.0/24"],
            &[],
        );
        assert_eq!(
            name(&policy, &operator, "evil.org", None),
            "denied_by_operator"
        );
        assert_eq!(
            name(&policy, &operator, "EVIL.org.", Some(1)),
            "denied_by_operator"
        );
        assert_eq!(
            address(&policy, &operator, Some("evil.org"), "8.8.8.8", 80),
            "denied_by_operator"
        );
        assert_eq!(
            address(&policy, &operator, Some("good.org"), "203.0.113.7", 80),
            "denied_by_operator"
        );
        assert_eq!(
            address(&policy, &operator, None, "::ffff:203.0.113.7", 80),
            "denied_by_operator"
        );
        assert_eq!(name(&policy, &operator, "good.org", None), "ok");
    }

    #[test]
    fn a_closed_address_takes_the_operator_and_the_policy() {
        let operator = operator(&["10.0.0.0/8:5432", "registry.internal"], &[], &[]);
        let policy = NetworkPolicy::default();
        assert_eq!(address(&policy, &operator, None, "10.0.0.1", 5432), "ok");
        assert_eq!(
            address(&policy, &operator, None, "10.0.0.1", 80),
            "closed_address"
        );
        assert_eq!(
            address(
                &policy,
                &operator,
                Some("registry.internal"),
                "192.168.0.9",
                80
            ),
            "ok"
        );
        assert_eq!(
            address(
                &policy,
                &operator,
                Some("other.internal"),
                "192.168.0.9",
                80
            ),
            "closed_address"
        );
        assert_eq!(
            address(&policy, &operator, None, "192.168.0.9", 80),
            "closed_address"
        );
        // Reachable is not allowed.
        let policy = closed(&["db.internal"], &[]);
        assert_eq!(
            address(&policy, &operator, None, "10.0.0.1", 5432),
            "not_allowed"
        );
        assert_eq!(
            address(&policy, &operator, Some("db.internal"), "10.0.0.1", 5432),
            "ok"
        );
        assert_eq!(
            name(&policy, &operator, "registry.internal", None),
            "not_allowed"
        );
        // And allowed is not reachable.
        let policy = closed(&["127.0.0.1", "*", "10.0.0.0/8"], &[]);
        assert_eq!(
            address(&policy, &OperatorRules::default(), None, "127.0.0.1", 80),
            "closed_address"
        );
        assert_eq!(
            address(
                &policy,
                &OperatorRules::default(),
                Some("db.internal"),
                "10.0.0.1",
                80
            ),
            "closed_address"
        );
    }

    #[test]
    fn addresses_of_this_host_are_closed_in_every_spelling() {
        let policy = open(&["203.0.113.7"], &[]);
        let closed = operator(&[], &[], &["203.0.113.7", "10.0.0.1", "2001:db8::7"]);
        for at in [
            "203.0.113.7",
            "::ffff:203.0.113.7",
            "64:ff9b::203.0.113.7",
            "2002:cb00:7107::1",
            "2001:db8::7",
            "10.0.0.1",
        ] {
            let judged = policy.judge_address(&closed, Some("a.org"), at.parse().expect(at), 80);
            let Err(Denial::ClosedAddress { class, target, .. }) = judged else {
                panic!("{at}: {judged:?}");
            };
            assert_eq!(
                (class.as_str(), target.as_str()),
                ("own", "a.org:80"),
                "{at}"
            );
        }
        let mapped = "::ffff:10.0.0.1".parse().expect("an address");
        let judged = policy.judge_address(&closed, None, mapped, 80);
        let expected = "`10.0.0.1:80` is at 10.0.0.1 (own), which only the operator can open";
        assert_eq!(judged.expect_err("closed").to_string(), expected);
        let opened = operator(&["203.0.113.7:80"], &[], &["203.0.113.7"]);
        assert_eq!(address(&policy, &opened, None, "203.0.113.7", 80), "ok");
        assert_eq!(
            address(&policy, &opened, None, "203.0.113.7", 22),
            "closed_address"
        );
    }

    #[test]
    fn an_ipv4_address_in_ipv6_gets_around_no_denial_and_into_no_allowance() {
        let (policy, none) = (open(&[], &["203.0.113.0/24"]), OperatorRules::default());
        for at in ["64:ff9b::203.0.113.7", "2002:cb00:7107::1", "::203.0.113.7"] {
            assert_eq!(
                address(&policy, &none, None, at, 80),
                "denied_by_policy",
                "{at}"
            );
            let denied = operator(&[], &["203.0.113.0/24"], &[]);
            assert_eq!(
                address(&NetworkPolicy::default(), &denied, None, at, 80),
                "denied_by_operator",
                "{at}"
            );
            let allowed = closed(&["203.0.113.0/24"], &[]);
            assert_eq!(
                address(&allowed, &none, None, at, 80),
                "not_allowed",
                "{at}"
            );
        }
    }
}
