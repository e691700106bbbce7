//! Without a proxy.

use super::{deserted, direct_dialer, expect_echo, start_echo, to_address, to_name, v4};

#[tokio::test]
async fn the_first_address_that_answers_is_taken() {
    let at = start_echo().await;
    // Nobody is at the second one on this port, and nothing listens on IPv6.
    let to = to_name(
        "example.com",
        &["127.0.0.77", "::1", "127.0.0.1"],
        at.port(),
    );
    let mut dialled = direct_dialer().dial(&to, false).await.unwrap();
    assert_eq!(dialled.address, Some(v4(at)));
    assert!(dialled.whole_urls.is_none() && dialled.stream.nodelay().unwrap());
    expect_echo(&mut dialled.stream).await;
}

#[tokio::test]
async fn a_refusal_names_the_address() {
    let (_held, at) = deserted();
    let err = direct_dialer()
        .dial(&to_address(at), false)
        .await
        .unwrap_err();
    assert_eq!(err.to_string(), format!("{at}: connection refused"));
}

#[tokio::test]
async fn a_name_without_addresses_cannot_be_dialled() {
    let err = direct_dialer()
        .dial(&to_name("example.com", &[], 443), false)
        .await
        .unwrap_err();
    assert_eq!(
        err.to_string(),
        "`example.com` has no address that this sandbox may reach"
    );
}
