//! The proxy inside: what programs say to it, and the connection that the gateway is given.

use std::io::Write as _;
use std::net::Shutdown;

use sandyard_wire::egress::Via;

use super::{ask_for, connect, datagram, exactly, query, requester, rest, start};
use crate::common::gateway::Gateway;
use crate::common::wait_until;

#[test]
fn bytes_flow_between_program_and_gateway_and_the_agent_keeps_nothing() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let files = agent.open_files();
    let mut program = ask_for(&agent, "Example.com:443");
    let mut opened = gateway.next_connection();
    assert_eq!((opened.host.as_str(), opened.port), ("example.com", 443));
    assert_eq!((opened.via, opened.early.len()), (Via::Connect, 0));
    // Not a byte was sent to the program by the agent.
    opened
        .connection
        .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
        .unwrap();
    assert_eq!(exactly(&mut program, 19), b"HTTP/1.1 200 OK\r\n\r\n");
    let long = vec![7; 3_000_000];
    let reader = std::thread::spawn(move || {
        let received = rest(&mut opened.connection);
        opened.connection.write_all(&received).unwrap();
    });
    program.write_all(&long).unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    // Its end is seen, so nobody else holds the connection.
    assert_eq!(rest(&mut program), long);
    reader.join().unwrap();
    wait_until("the agent has closed its copy", || {
        agent.open_files() <= files
    });
}

#[test]
fn what_follows_a_connect_goes_along() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let mut program = connect(&agent);
    program
        .write_all(b"CONNECT [2001:DB8::1]:22 HTTP/1.1\r\n")
        .unwrap();
    program.write_all(b"\r\nearly \xff\0").unwrap();
    let mut opened = gateway.next_connection();
    assert_eq!((opened.host.as_str(), opened.port), ("2001:db8::1", 22));
    let mut received = opened.early.to_vec();
    program.write_all(b" late").unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    received.extend(rest(&mut opened.connection));
    assert_eq!(received, b"early \xff\0 late");
}

#[test]
fn a_whole_url_becomes_a_request_to_its_host() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let mut program = connect(&agent);
    let request = b"POST http://Example.com:8080/x?y HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\n\
        Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive\r\nContent-Length: 9\r\nX: y\r\n\r\n";
    // In pieces, as a slow program would.
    for piece in request.chunks(7) {
        program.write_all(piece).unwrap();
    }
    program.write_all(b"some ").unwrap();
    let mut opened = gateway.next_connection();
    assert_eq!((opened.host.as_str(), opened.port), ("example.com", 8080));
    assert_eq!(opened.via, Via::Http);
    let mut received = opened.early.to_vec();
    program.write_all(b"body").unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    received.extend(rest(&mut opened.connection));
    assert_eq!(
        String::from_utf8(received).unwrap(),
        "POST /x?y HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 9\r\nX: y\r\nConnection: close\r\n\r\nsome body"
    );
    opened
        .connection
        .write_all(b"HTTP/1.1 403 No\r\n\r\n")
        .unwrap();
    drop(opened);
    assert_eq!(rest(&mut program), b"HTTP/1.1 403 No\r\n\r\n");
}

#[test]
fn socks_takes_names_and_addresses() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let v6 = [&[4][..], &[0x20, 1, 0x0d, 0xb8], &[0; 11], &[1]].concat();
    for (address, host) in [
        (&b"\x03\x0bExample.COM"[..], "example.com"),
        (b"\x03\x0b203.0.113.7", "203.0.113.7"),
        (b"\x01\xcb\0\x71\x07", "203.0.113.7"),
        (&v6, "2001:db8::1"),
    ] {
        let mut program = connect(&agent);
        program.write_all(b"\x05\x02\x02\0").unwrap();
        assert_eq!(exactly(&mut program, 2), b"\x05\0");
        let request = [b"\x05\x01\0", address, b"\x01\xbb"].concat();
        program.write_all(&request).unwrap();
        // Programs that do not wait for the reply lose nothing.
        program.write_all(b"hello").unwrap();
        let mut opened = gateway.next_connection();
        assert_eq!((opened.host.as_str(), opened.port), (host, 443));
        assert_eq!((opened.via, opened.early.len()), (Via::Socks, 0));
        assert_eq!(exactly(&mut opened.connection, 5), b"hello");
        opened.connection.write_all(b"\x05\0").unwrap();
        assert_eq!(exactly(&mut program, 2), b"\x05\0");
    }
}

#[test]
fn socks_refuses_what_is_no_connection_to_a_host() {
    let agent = start();
    let _gateway = Gateway::attach(&agent);
    let reply = |code: u8| [5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0].to_vec();
    for (request, expected) in [
        (&b"\x05\x01\x02"[..], vec![5, 0xff]),
        (b"\x05\0", vec![5, 0xff]),
        // Listen, and datagrams.
        (b"\x05\x01\0\x05\x02\0\x01\x01\x02\x03\x04\0\x50", reply(7)),
        (b"\x05\x01\0\x05\x03\0\x01\x01\x02\x03\x04\0\x50", reply(7)),
        (b"\x05\x01\0\x05\x01\0\x02\x01\x02\x03\x04\0\x50", reply(8)),
        (b"\x05\x01\0\x04\x01\0\x01\x01\x02\x03\x04\0\x50", reply(1)),
        // No port, no name, a bad name, an address that stands for nothing.
        (b"\x05\x01\0\x05\x01\0\x01\x01\x02\x03\x04\0\0", reply(4)),
        (b"\x05\x01\0\x05\x01\0\x03\0\0\x50", reply(4)),
        (b"\x05\x01\0\x05\x01\0\x03\x02a/\0\x50", reply(4)),
        (b"\x05\x01\0\x05\x01\0\x01\xc6\x12\x01\x01\0\x50", reply(4)),
    ] {
        let mut program = connect(&agent);
        program.write_all(request).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut program), expected, "{request:?}");
    }
    assert!(agent.is_healthy());
}

#[test]
fn bad_requests_get_the_reason() {
    let agent = start();
    let _gateway = Gateway::attach(&agent);
    let long = format!("GET http://h/ HTTP/1.1\r\nA: {}", "x".repeat(100_000));
    let endless = "x".repeat(100_000);
    let many = format!("GET http://h/ HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("CONNECT h HTTP/1.1\r\n\r\n", 400),
        ("GET https://h/ HTTP/1.1\r\n\r\n", 400),
        ("\x04\x01\0\x50\x01\x02\x03\x04\0\n\n", 400),
        ("CONNECT 198.18.7.7:80 HTTP/1.1\r\n\r\n", 502),
        ("GET http://198.18.0.1/ HTTP/1.1\r\n\r\n", 502),
        (&long, 431),
        (&endless, 431),
        (&many, 400),
    ] {
        let mut program = connect(&agent);
        program.write_all(request.as_bytes()).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        let answer = String::from_utf8(rest(&mut program)).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:.60}: {answer}"
        );
        let (_, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    }
    assert!(agent.is_healthy());
}

#[test]
fn a_program_that_leaves_in_the_middle_leaves_nothing_behind() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let files = agent.open_files();
    for unfinished in [
        &b""[..],
        b"\x05",
        b"\x05\x01\0\x05\x01\0\x03\xff",
        b"CONNECT h:1 HT",
        b"\x05\xff\0",
    ] {
        let mut program = connect(&agent);
        program.write_all(unfinished).unwrap();
    }
    wait_until("all are closed", || agent.open_files() <= files);
    let _program = ask_for(&agent, "still.here:1");
    assert_eq!(gateway.next_connection().host, "still.here");
}

#[test]
fn an_address_that_stands_for_a_name_becomes_the_name() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let requester = requester(&agent);
    requester.send(&query(1, "api.Example.com", 1)).unwrap();
    let query_sent = gateway.query();
    gateway.answer(&query_sent, query_sent.packet.clone());
    datagram(&requester);
    let address = query_sent.address.unwrap();
    let _program = ask_for(&agent, &format!("{address}:443"));
    assert_eq!(gateway.next_connection().host, "api.example.com");
    let mut program = connect(&agent);
    let request = [
        b"\x05\x01\0\x05\x01\0\x01",
        &address.octets()[..],
        b"\0\x50",
    ]
    .concat();
    program.write_all(&request).unwrap();
    assert_eq!(gateway.next_connection().host, "api.example.com");
    let mut program = connect(&agent);
    let request = format!("GET http://{address}/ HTTP/1.1\r\n\r\n");
    program.write_all(request.as_bytes()).unwrap();
    let opened = gateway.next_connection();
    assert_eq!(opened.host, "api.example.com");
    let head = String::from_utf8(opened.early.to_vec()).unwrap();
    assert!(head.contains("\r\nHost: api.example.com\r\n"), "{head}");
}

#[test]
fn commands_get_the_proxy_variables_unless_the_user_sets_them() {
    let agent = start();
    let proxy = agent.listener_address("proxy");
    let script = "echo $HTTP_PROXY $http_proxy $HTTPS_PROXY $https_proxy $ALL_PROXY $all_proxy $NO_PROXY $no_proxy";
    let reported = agent.shell(script).finish().stdout_text();
    let expected = format!(
        "http://{proxy} http://{proxy} http://{proxy} http://{proxy} http://{proxy} http://{proxy} \
         localhost,127.0.0.1,::1 localhost,127.0.0.1,::1\n"
    );
    assert_eq!(reported, expected);
    let request = serde_json::json!({"process": {
        "cmd": "/bin/sh",
        "args": ["-c", "echo $HTTP_PROXY,$http_proxy,$https_proxy"],
        "envs": {"http_proxy": "mine", "HTTPS_PROXY": ""},
    }});
    let reported = agent.start_process(&request, &[]).finish();
    assert_eq!(reported.stdout_text(), ",mine,\n");
    let none = crate::common::Agent::start();
    assert_eq!(
        none.shell("echo $HTTP_PROXY$no_proxy")
            .finish()
            .stdout_text(),
        "\n"
    );
}
