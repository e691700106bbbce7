//! What holds for every target, address and policy.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::address::closed_class;
use super::{BoundHost, Denial, HostPattern, NetworkPolicy, OperatorRules, Target, TargetHost};

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u16; 8]>().prop_map(IpAddr::from)
    ]
}

/// Addresses of closed classes and beside them, which chance alone would hardly find.
fn near_closed_address() -> impl Strategy<Value = IpAddr> {
    let first = prop::sample::select(vec![
        [10, 0],
        [127, 0],
        [169, 254],
        [172, 16],
        [192, 168],
        [192, 0],
        [100, 64],
        [198, 18],
        [224, 0],
        [240, 0],
        [0, 0],
        [8, 8],
    ]);
    let v4 = (first, any::<[u8; 2]>()).prop_map(|([a, b], [c, d])| [a, b, c, d]);
    (v4, 0..5).prop_map(|([a, b, c, d], form)| {
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        match form {
            0 => IpAddr::from([a, b, c, d]),
            1 => IpAddr::from([0, 0, 0, 0, 0, 0xffff, high, low]),
            2 => IpAddr::from([0x64, 0xff9b, 0, 0, 0, 0, high, low]),
            3 => IpAddr::from([0x2002, high, low, 0, 0, 0, 0, 1]),
            _ => IpAddr::from([0x2001, 0, 1, 2, 3, 4, !high, !low]),
        }
    })
}

fn name() -> impl Strategy<Value = String> {
    "([a-z0-9_]([a-z0-9-]{0,8}[a-z0-9])?\\.){0,3}[a-z]{2,8}"
}

fn pattern() -> impl Strategy<Value = HostPattern> {
    let text = prop_oneof![
        4 => name(),
        4 => name().prop_map(|name| format!("*.{name}")),
        1 => Just("*".to_owned()),
    ];
    text.prop_map(|text| text.parse().expect("a pattern"))
}

fn port() -> impl Strategy<Value = Option<u16>> {
    proptest::option::of(1..=u16::MAX)
}

fn target() -> impl Strategy<Value = Target> {
    let network = (address(), 0..=128u8).prop_map(|(address, bits)| {
        let bits = if address.is_ipv4() { bits % 33 } else { bits };
        let text = format!("{address}/{bits}");
        text.parse::<Target>().expect("a network").host
    });
    let host = prop_oneof![pattern().prop_map(TargetHost::Name), network];
    (host, port()).prop_map(|(host, port)| Target { host, port })
}

fn policy() -> impl Strategy<Value = NetworkPolicy> {
    (any::<bool>(), vec(target(), 0..4), vec(target(), 0..4)).prop_map(
        |(open, allow_out, deny_out)| NetworkPolicy {
            allow_internet_access: open,
            allow_out,
            deny_out,
            ..NetworkPolicy::default()
        },
    )
}

proptest! {
    #[test]
    fn a_target_is_read_as_it_was_written(target in target()) {
        let text = target.to_string();
        prop_assert_eq!(text.parse::<Target>(), Ok(target), "{}", text);
    }

    #[test]
    fn a_bound_host_is_read_as_it_was_written(pattern in pattern(), port in port(), is_plain in any::<bool>()) {
        prop_assume!(!pattern.is_every_name());
        let host = BoundHost { pattern, port, is_plain };
        let text = host.to_string();
        prop_assert_eq!(text.parse::<BoundHost>(), Ok(host), "{}", text);
    }

    #[test]
    fn a_policy_is_read_as_it_was_written(policy in policy()) {
        let value = serde_json::to_value(&policy).expect("written");
        prop_assert_eq!(NetworkPolicy::from_value(value), Ok(policy));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}|[*\\[\\]:./0-9a-f]{0,30}") {
        if let Ok(target) = text.parse::<Target>() {
            prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
        }
        let _ = text.parse::<BoundHost>();
    }

    #[test]
    fn an_address_as_target_matches_only_the_same_address(one in address(), other in address(), port in 1..=u16::MAX) {
        let target = Target { host: TargetHost::from(one), port: Some(port) };
        prop_assert!(target.matches_address(one, port));
        prop_assert_eq!(target.matches_address(other, port), one.to_canonical() == other.to_canonical());
    }

    #[test]
    fn no_pattern_matches_an_address(pattern in pattern(), address in address()) {
        prop_assert!(!pattern.matches(&address.to_string()));
        prop_assert!(address.to_string().parse::<HostPattern>().is_err());
    }

    #[test]
    fn allow_wins_over_deny(mut policy in policy(), name in name(), address in address(), port in 1..=u16::MAX) {
        let operator = OperatorRules { reachable: vec![Target::everything()], ..OperatorRules::default() };
        let by_name: Target = name.parse().expect("a name");
        let by_address = Target { host: TargetHost::from(address), port: Some(port) };
        policy.deny_out.extend([by_name.clone(), by_address.clone(), Target::everything()]);

        policy.allow_out = vec![by_name];
        prop_assert_eq!(policy.judge_name(&operator, &name, None), Ok(()));
        prop_assert_eq!(policy.judge_name(&operator, &name, Some(port)), Ok(()));
        prop_assert_eq!(policy.judge_address(&operator, Some(&name), address, port), Ok(()));

        policy.allow_out = vec![by_address];
        prop_assert_eq!(policy.judge_address(&operator, None, address, port), Ok(()));
    }

    #[test]
    fn a_closed_policy_lets_out_what_it_allows_alone(
        mut policy in policy(), name in name(), address in address(), port in 1..=u16::MAX,
    ) {
        policy.allow_internet_access = false;
        let operator = OperatorRules { reachable: vec![Target::everything()], ..OperatorRules::default() };
        let is_named = |port| policy.allow_out.iter().any(|entry| entry.matches_name(&name, port));
        prop_assert_eq!(policy.judge_name(&operator, &name, None).is_ok(), is_named(None));
        prop_assert_eq!(policy.judge_name(&operator, &name, Some(port)).is_ok(), is_named(Some(port)));
        let is_there = policy.allow_out.iter().any(|entry| entry.matches_address(address, port));
        prop_assert_eq!(policy.judge_address(&operator, None, address, port).is_ok(), is_there);
    }

    #[test]
    fn closed_addresses_never_pass_unless_reachable(
        policy in policy(), name in proptest::option::of(name()), address in near_closed_address(), port in 1..=u16::MAX,
    ) {
        let judged = policy.judge_address(&OperatorRules::default(), name.as_deref(), address, port);
        let is_closed = matches!(judged, Err(Denial::ClosedAddress { .. }));
        prop_assert_eq!(is_closed, closed_class(address).is_some());
        let operator = OperatorRules { reachable: vec![Target { host: address.into(), port: None }], ..OperatorRules::default() };
        let judged = policy.judge_address(&operator, name.as_deref(), address, port);
        let is_closed = matches!(judged, Err(Denial::ClosedAddress { .. }));
        prop_assert!(!is_closed);
    }

    #[test]
    fn own_and_denied_addresses_never_pass(
        policy in policy(), name in proptest::option::of(name()), address in address(), port in 1..=u16::MAX,
    ) {
        let operator = OperatorRules { host_addresses: vec![address], ..OperatorRules::default() };
        let is_own = matches!(
            policy.judge_address(&operator, name.as_deref(), address, port),
            Err(Denial::ClosedAddress { class, .. }) if class == "own"
        );
        prop_assert!(is_own);
        let denied = OperatorRules {
            denied: vec![Target { host: address.into(), port: None }],
            reachable: vec![Target::everything()],
            ..OperatorRules::default()
        };
        let is_denied = matches!(
            policy.judge_address(&denied, name.as_deref(), address, port),
            Err(Denial::DeniedByOperator { .. })
        );
        prop_assert!(is_denied);
    }

    #[test]
    fn allowing_and_denying_a_target_are_each_others_mirror(mut policy in policy(), target in target()) {
        policy.allow([target.clone()]);
        prop_assert!(!policy.deny_out.contains(&target));
        policy.deny([target.clone()]);
        prop_assert!(!policy.allow_out.contains(&target));
    }
}
