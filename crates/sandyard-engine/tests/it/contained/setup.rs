//! What an image lacks, and what is given up.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandyard_wire::host::InitRequest;

use super::container::{Image, sh};

/// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE.
const RETAINED: u64 = 0x4fb;

#[tokio::test]
async fn a_user_is_there_with_a_home_and_a_workspace_and_without_sudo() {
    let image = Image::new();
    let mut container = image.start(&["--workdir", "/workspace"]);
    let agent = container.agent().await;
    assert_eq!(
        sh(&agent, None, "id -un; id -u; echo ~; pwd").await,
        "user\n1001\n/home/user\n/workspace"
    );
    assert_eq!(sh(&agent, None, "cat ~/.profile").await, "# from skel");
    assert_eq!(
        sh(&agent, None, "touch /workspace/a /tmp/a && echo made").await,
        "made"
    );
    assert_eq!(sh(&agent, None, "stat -c %a /tmp").await, "1777");
    let workspace = std::fs::metadata(image.path("workspace")).expect("there");
    assert_eq!(
        (workspace.uid(), workspace.permissions().mode() & 0o777),
        (1001, 0o775)
    );
    assert!(!image.path("etc/sudoers").exists() && !image.path("etc/sudoers.d").exists());
    let passwd = image.read("etc/passwd");
    assert!(
        passwd.ends_with("other:x:1000:1000::/:/bin/sh\nuser:x:1001:1001::/home/user:/bin/bash\n")
    );
    assert!(
        image
            .read("etc/shadow")
            .ends_with("\nuser:*:19000:0:99999:7:::\n")
    );
    // Names are looked up where they were.
    assert_eq!(image.read("etc/resolv.conf"), "nameserver 192.0.2.1\n");
}

#[tokio::test]
async fn an_image_from_scratch_and_a_number_as_user_will_do() {
    let image = Image::scratch();
    let mut container = image.start(&["--user", "1234:1234"]);
    let agent = container.agent().await;
    assert_eq!(
        sh(&agent, None, "id -un; id -u; id -g").await,
        "user\n1234\n1234"
    );
    assert_eq!(sh(&agent, Some("root"), "id -u").await, "0");
}

#[tokio::test]
async fn privileges_are_dropped_for_good() {
    let image = Image::new();
    let mut container = image.start(&[]);
    let agent = container.agent().await;
    for user in ["root", "user"] {
        let output = sh(
            &agent,
            Some(user),
            "grep -E '^Cap(Bnd|Inh|Amb)' /proc/self/status",
        )
        .await;
        let sets: Vec<u64> = output
            .lines()
            .filter_map(|line| u64::from_str_radix(line.split_once('\t')?.1, 16).ok())
            .collect();
        assert_eq!(sets, [0, RETAINED, 0], "{output}");
    }
    let output = sh(&agent, Some("root"), "ip link set lo down && echo done").await;
    assert!(!output.contains("done"), "{output}");
}

#[tokio::test]
async fn the_listeners_are_closed_to_programs_inside() {
    let image = Image::new();
    let mut container = image.start(&[]);
    let agent = container.agent().await;
    let ask =
        "curl -s -o /dev/null -w '%{http_code}' -H 'X-Access-Token: ' http://127.0.0.1:49983/envs";
    assert_eq!(sh(&agent, None, ask).await, "401");
    let knock = "curl -s -o /dev/null -w '%{http_code}' --unix-socket /run/sandyard/agent.sock http://a/envs";
    assert_eq!(sh(&agent, None, knock).await, "000");
    let request = InitRequest {
        access_token: Some("token".to_owned()),
        ..InitRequest::default()
    };
    agent.init(&request).await.expect("init");
    assert_eq!(sh(&agent, None, ask).await, "401");
    let output = ask.replace("Token: ", "Token: token");
    assert_eq!(sh(&agent, None, &output).await, "200");
}

#[tokio::test]
async fn a_signal_ends_it_and_it_can_start_again() {
    let image = Image::new();
    for _ in 0..2 {
        let mut container = image.start(&[]);
        let agent = container.agent().await;
        // An orphan is reaped.
        sh(&agent, None, "(sleep 0.1 &) ; true").await;
        let give_up = Instant::now() + Duration::from_secs(90);
        while sh(&agent, None, "grep -l 'State:.Z' /proc/[0-9]*/status")
            .await
            .contains("/proc")
        {
            assert!(Instant::now() < give_up, "a zombie stays");
        }
        let line = "trap '' TERM; while :; do sleep 1; done";
        let endless = tokio::spawn({
            let agent = agent.clone();
            async move { sh(&agent, None, line).await }
        });
        let give_up = Instant::now() + Duration::from_secs(90);
        while agent.activity().await.expect("activity").processes == 0 {
            assert!(Instant::now() < give_up, "nothing runs");
        }
        container.signal(Signal::TERM);
        assert_eq!(container.ended().await, Some(0));
        let _ = endless.await;
    }
    let passwd = image.read("etc/passwd");
    assert_eq!(passwd.matches("\nuser:").count(), 1, "{passwd}");
}

#[tokio::test]
async fn a_certificate_that_lies_there_is_trusted() {
    let image = Image::new();
    image.write(".sandyard/gateway.pem", include_str!("../other.pem"));
    image.write("etc/ssl/certs/ca-certificates.crt", "");
    let mut container = image.start(&["--env", "A=b"]);
    let agent = container.agent().await;
    let list = "/etc/ssl/certs/ca-certificates.crt";
    for _ in 0..2 {
        let output = sh(
            &agent,
            None,
            "echo $SSL_CERT_FILE $A; grep -c BEGIN $SSL_CERT_FILE",
        )
        .await;
        assert_eq!(output, format!("{list} b\n1"));
        // Other variables do not replace it.
        let request = InitRequest {
            env_vars: Some([("C".to_owned(), "d".to_owned())].into()),
            ..InitRequest::default()
        };
        agent.init(&request).await.expect("init");
    }
}
