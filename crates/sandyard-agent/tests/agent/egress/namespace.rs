//! With a network of its own: connections that the kernel redirects, and packets that nothing carries.

use std::collections::BTreeMap;
use std::io::Write as _;

use sandyard_wire::egress::{FromAgent, Via};

use super::{query, rest};
use crate::common::gateway::Gateway;
use crate::common::{Agent, Stream, raise_open_files};

const REDIRECT: &str = "nft -f - <<'END'
table inet out {
  chain redirected {
    type nat hook output priority -100
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp redirect to :49981
    udp dport 53 redirect to :49982
  }
}
END";

const LISTENERS: [&str; 8] = [
    "--redirected",
    "127.0.0.1:49981",
    "--redirected",
    "[::1]:49981",
    "--names",
    "127.0.0.1:49982",
    "--names",
    "[::1]:49982",
];

/// An agent that everything is redirected to; none where the host has no `nft`.
fn start() -> Option<Agent> {
    Agent::start_in_network_namespace(&format!("{REDIRECT}\ntrue"), &LISTENERS)
}

/// Runs a bash script: bash can connect to addresses without another program.
fn bash(agent: &Agent, script: &str) -> Stream {
    let request = serde_json::json!({"process": {"cmd": "bash", "args": ["-c", script]}});
    agent.start_process(&request, &[])
}

/// Bytes as bash's `printf` takes them.
fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[test]
fn redirected_connections_come_with_what_the_program_wanted() {
    let Some(agent) = start() else { return };
    let mut gateway = Gateway::attach(&agent);
    for (address, port) in [
        ("203.0.113.9", 8443),
        ("2001:db8::5", 80),
        ("10.1.2.3", 49981),
    ] {
        let script = format!("exec 3<>/dev/tcp/{address}/{port}; echo hello >&3; cat <&3");
        let mut program = bash(&agent, &script);
        let mut opened = gateway.next_connection();
        assert_eq!((opened.host.as_str(), opened.port), (address, port));
        assert_eq!((opened.via, opened.early.len()), (Via::Redirect, 0));
        let mut line = [0; 6];
        std::io::Read::read_exact(&mut opened.connection, &mut line).unwrap();
        assert_eq!(&line, b"hello\n");
        opened.connection.write_all(b"from the gateway").unwrap();
        drop(opened);
        assert_eq!(program.finish().stdout_text(), "from the gateway");
    }
}

#[test]
fn a_looked_up_name_is_known_when_its_address_is_connected_to() {
    let Some(agent) = start() else { return };
    let mut gateway = Gateway::attach(&agent);
    let query_sent = query(77, "Example.com", 1);
    for server in ["198.18.0.1", "2001:db8::53"] {
        let script = format!(
            "exec 3<>/dev/udp/{server}/53; printf '{}' >&3; head -c {} <&3",
            escaped(&query_sent),
            query_sent.len()
        );
        let mut program = bash(&agent, &script);
        let received = gateway.query();
        assert_eq!(received.packet, query_sent);
        gateway.answer(&received, received.packet.clone());
        assert_eq!(program.finish().stdout, query_sent);
        let address = received.address.unwrap();
        let mut program = bash(&agent, &format!("exec 3<>/dev/tcp/{address}/443; cat <&3"));
        let opened = gateway.next_connection();
        assert_eq!((opened.host.as_str(), opened.port), ("example.com", 443));
        drop(opened);
        assert_eq!(program.finish().stdout_text(), "");
    }
}

#[test]
fn look_ups_over_tcp_are_answered_whatever_server_was_meant() {
    let Some(agent) = start() else { return };
    let mut gateway = Gateway::attach(&agent);
    let query_sent = query(77, "example.com", 1);
    let framed = [
        &[0, u8::try_from(query_sent.len()).unwrap()][..],
        &query_sent,
    ]
    .concat();
    let script = format!(
        "exec 3<>/dev/tcp/8.8.8.8/53; printf '{}' >&3; head -c {} <&3",
        escaped(&framed),
        framed.len()
    );
    let mut program = bash(&agent, &script);
    let received = gateway.query();
    gateway.answer(&received, received.packet.clone());
    assert_eq!(program.finish().stdout, framed);
}

#[test]
fn what_was_not_redirected_or_stands_for_nothing_is_reset() {
    let Some(agent) = start() else { return };
    let mut gateway = Gateway::attach(&agent);
    for target in [
        "127.0.0.1/49981",
        "::1/49981",
        "198.18.9.9/443",
        "198.18.0.1/80",
    ] {
        // It may come while the connection is still being made: then it is the shell that tells.
        let script = format!(
            "{{ {{ cat <&3 && echo end; }} 3<>/dev/tcp/{target}; }} 2>&1 | grep -oE 'end|refused|reset by peer' | head -n 1"
        );
        assert_eq!(
            bash(&agent, &script).finish().stdout_text(),
            "reset by peer\n",
            "{target}"
        );
    }
    let mut program = bash(&agent, "exec 3<>/dev/tcp/192.0.2.1/1; cat <&3");
    assert_eq!(
        gateway.next_connection().host,
        "192.0.2.1",
        "the first that came through"
    );
    program.finish();
}

#[test]
fn a_thousand_redirected_connections_at_once_come_through() {
    raise_open_files();
    let Some(agent) = start() else { return };
    let mut gateway = Gateway::attach(&agent);
    let script = "ulimit -n 2000
        for n in {1000..2199}; do exec {fd}<>/dev/tcp/192.0.2.1/$n; echo $n >&$fd; done
        read";
    let mut program = bash(&agent, script);
    let mut opened = BTreeMap::new();
    for _ in 0..1200 {
        let mut one = gateway.next_connection();
        let mut line = [0; 5];
        std::io::Read::read_exact(&mut one.connection, &mut line).unwrap();
        assert_eq!(String::from_utf8_lossy(&line), format!("{}\n", one.port));
        opened.insert(one.port, one.connection);
    }
    assert_eq!(opened.len(), 1200);
    let pid = program.pid();
    let signal = serde_json::json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &signal);
    for connection in opened.values_mut() {
        assert_eq!(rest(connection), b"");
    }
}

#[test]
fn packets_that_nothing_carries_are_counted_once() {
    let agent = Agent::start_in_network_namespace("true", &["--strays"]);
    let Some(agent) = agent else { return };
    let mut gateway = Gateway::attach(&agent);
    let script = "
        for n in 1 2 3; do echo x >/dev/udp/192.0.2.7/999; done
        echo x >/dev/udp/2001:db8::7/1000
        echo x >/dev/udp/127.0.0.1/999
        echo x >/dev/udp/::1/999";
    bash(&agent, script).finish();
    let mut seen = BTreeMap::new();
    while seen.values().sum::<u64>() < 4 {
        match gateway.next() {
            FromAgent::BlockedPackets {
                protocol,
                address,
                port,
                count,
            } => {
                *seen
                    .entry((protocol, address.to_string(), port))
                    .or_default() += count
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = BTreeMap::from([
        ((17, "192.0.2.7".to_owned(), Some(999)), 3),
        ((17, "2001:db8::7".to_owned(), Some(1000)), 1),
    ]);
    assert_eq!(seen, expected);
    // In a flood some may be lost, and nothing else.
    let flood =
        "for a in {1..200}; do for b in 1 2 3 4 5; do echo x >/dev/udp/192.0.$a.$b/$a; done; done";
    bash(&agent, flood).finish();
    let mut packets = 0;
    while packets < 200 {
        match gateway.next() {
            FromAgent::BlockedPackets { count, .. } => packets += count,
            other => panic!("{other:?}"),
        }
    }
    assert!(agent.is_healthy());
}
