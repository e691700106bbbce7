//! The host's own files.

use std::fs;
use std::net::IpAddr;

use super::super::LookupError;
use super::super::sources::Settings;
use super::super::testing::{NameServer, files_in, names_with};
use super::v4;

#[tokio::test]
async fn the_hosts_file_comes_before_name_servers_and_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = NameServer::with_records(vec![v4("example.com.", "192.0.2.1")]).await;
    let names = names_with(Settings {
        name_servers: vec![server.at],
        ..files_in(folder.path().into())
    });
    let found = names.addresses("example.com").await.unwrap();
    assert_eq!(found, [IpAddr::from([192, 0, 2, 1])]);

    let hosts = folder.path().join("hosts");
    fs::write(
        &hosts,
        "192.0.2.9 Example.com www # ours\n2001:db8::9 example.com\n",
    )
    .unwrap();
    let found = names.addresses("example.com").await.unwrap();
    let expected: [IpAddr; 2] = [[192, 0, 2, 9].into(), "2001:db8::9".parse().unwrap()];
    assert_eq!(found, expected);
    assert_eq!(names.addresses("www").await.unwrap(), expected[..1]);

    fs::remove_file(&hosts).unwrap();
    let found = names.addresses("example.com").await.unwrap();
    assert_eq!(found, [IpAddr::from([192, 0, 2, 1])]);
}

#[tokio::test]
async fn name_servers_may_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let names = names_with(files_in(folder.path().into()));
    let unreachable = Err(LookupError::Unreachable);
    assert_eq!(names.addresses("example.com").await, unreachable);

    // Port 53 cannot be had in a test; that somebody is asked there is seen by the hosts file still coming first.
    let resolv_conf = folder.path().join("resolv.conf");
    fs::write(&resolv_conf, "nameserver 127.0.0.1\n").unwrap();
    assert!(names.sources.current().resolver.is_some());
    fs::write(&resolv_conf, "search example.net\n").unwrap();
    assert!(names.sources.current().resolver.is_none());
    assert_eq!(names.addresses("example.com").await, unreachable);
}
