use super::*;

fn host(text: &str) -> Option<(String, u16)> {
    Domains::new(["localhost", "*.Preview.Example.com"])
        .parse(text)
        .map(|address| (address.sandbox, address.port))
}

fn path(text: &str) -> Option<(String, u16)> {
    PreviewAddress::from_path(text).map(|address| (address.sandbox, address.port))
}

fn some(name: &str, port: u16) -> Option<(String, u16)> {
    Some((name.to_owned(), port))
}

fn parts(uri: &str, hosts: &[&str]) -> Parts {
    let mut builder = http::Request::builder().uri(uri);
    for host in hosts {
        builder = builder.header(HOST, *host);
    }
    builder.body(()).unwrap().into_parts().0
}

#[test]
fn both_host_forms_are_read_on_every_domain() {
    assert_eq!(host("3000-abc.localhost"), some("abc", 3000));
    assert_eq!(host("abc-3000.localhost:8100"), some("abc", 3000));
    assert_eq!(host("3000-ABC.preview.EXAMPLE.com"), some("abc", 3000));
    assert_eq!(host("3000-abc.localhost."), some("abc", 3000));
    assert_eq!(host("3000-abc.localhost.:8100"), some("abc", 3000));
}

#[test]
fn every_port_reads_back_and_no_other_spelling_does() {
    for port in 1..=u16::MAX {
        assert_eq!(host(&format!("{port}-abc.localhost")), some("abc", port));
        assert_eq!(host(&format!("abc-{port}.localhost")), some("abc", port));
        assert_eq!(path(&format!("/p/abc/{port}/x")), some("abc", port));
    }
    for port in [
        "0",
        "00",
        "080",
        "65536",
        "99999999999",
        "+80",
        "-80",
        "",
        "8 0",
        "0x50",
        "８０",
    ] {
        assert_eq!(host(&format!("abc-{port}.localhost")), None, "{port}");
        assert_eq!(path(&format!("/p/abc/{port}/")), None, "{port}");
        assert_eq!(host(&format!("{port}-abc.localhost")), None, "{port}");
    }
}

#[test]
fn an_ambiguous_label_is_read_with_the_port_first() {
    assert_eq!(host("8080-3000.localhost"), some("3000", 8080));
    assert_eq!(host("3000-my-8080.localhost"), some("my-8080", 3000));
    assert_eq!(host("my-app-8080.localhost"), some("my-app", 8080));
    assert_eq!(host("99999-3000.localhost"), some("99999", 3000));
    assert_eq!(host("080-3000.localhost"), some("080", 3000));
    let digits = "12345678901234567890";
    assert_eq!(host(&format!("{digits}-80.localhost")), some(digits, 80));
    assert_eq!(host(&format!("80-{digits}.localhost")), some(digits, 80));
}

#[test]
fn other_hosts_are_nobodys_preview() {
    for other in [
        "",
        "localhost",
        ".localhost",
        "abc.localhost",
        "3000.localhost",
        "3000-.localhost",
        "-3000.localhost",
        "3000--abc.localhost",
        "a.3000-abc.localhost",
        "3000-abc.example.com",
        "3000-abc.localhost.evil.com",
        "3000-abclocalhost",
        "3000-abc.localhost:80:80",
        "3000-abc.localhost:http",
        "3000-a%62c.localhost",
        "3000-a/b.localhost",
        "[::1]",
        "[3000-abc.localhost]",
        "::1",
        "127.0.0.1:8100",
    ] {
        assert_eq!(host(other), None, "{other}");
    }
    let long = "a".repeat(64);
    assert_eq!(host(&format!("3000-{long}.localhost")), None);
    assert_eq!(Domains::new([""]).parse("3000-abc."), None);
}

#[test]
fn paths_are_read_up_to_the_port() {
    assert_eq!(path("/p/abc/3000"), some("abc", 3000));
    assert_eq!(path("/p/abc/3000//x/../y"), some("abc", 3000));
    for other in [
        "/p/abc",
        "/p//3000/",
        "/p/abc//",
        "/P/abc/3000/",
        "/p/ABC/3000/",
        "p/abc/3000/",
        "/p/../3000/",
        "/p/a%62c/3000/",
        "/x/p/abc/3000/",
        "/p/abc/3000;x/",
        "//p/abc/3000/",
    ] {
        assert_eq!(path(other), None, "{other}");
    }
}

#[test]
fn a_missing_slash_is_put_after_the_port() {
    let redirect = |uri: &str| slash_redirect(&uri.parse().unwrap());
    assert_eq!(redirect("/p/abc/3000").as_deref(), Some("/p/abc/3000/"));
    assert_eq!(
        redirect("/p/abc/3000?a=b").as_deref(),
        Some("/p/abc/3000/?a=b")
    );
    assert_eq!(redirect("/p/abc/3000/"), None);
    assert_eq!(redirect("/p/abc/3000/x"), None);
    assert_eq!(redirect("/other"), None);
}

#[test]
fn the_host_in_the_uri_wins_and_two_hosts_are_none() {
    assert_eq!(host_of(&parts("http://a:1/x", &["b"])), Some("a:1"));
    assert_eq!(host_of(&parts("/x", &["b"])), Some("b"));
    assert_eq!(host_of(&parts("/x", &["b", "c"])), None);
    assert_eq!(host_of(&parts("/x", &[])), None);
    assert_eq!(host_of(&parts("/x", &["a\"b"])), None);
    assert_eq!(host_of(&parts("http://user@a/x", &[])), None);
    for host in ["a..", "a..b", ".a", ".", "..", "a..:80"] {
        assert_eq!(host_of(&parts("/x", &[host])), None, "{host}");
    }
    assert_eq!(host_of(&parts("/x", &["a.:80"])), Some("a.:80"));
}

#[test]
fn a_host_is_named_by_its_first_label() {
    let domains = Domains::new(["*.Example.com", "localhost"]);
    for host in ["api.example.com", "API.EXAMPLE.COM.:80", "api.localhost:1"] {
        assert!(domains.is_named(host, "api"), "{host}");
    }
    for host in [
        "api",
        "api.other.com",
        "x.api.example.com",
        "[::1]",
        "api.example.com..",
        "api.localhost:x",
    ] {
        assert!(!domains.is_named(host, "api"), "{host}");
    }
}

#[test]
fn a_host_form_address_takes_precedence_over_the_path() {
    let domains = Domains::new(["localhost"]);
    let by_host = domains
        .address_of(&parts("/p/def/80/", &["3000-abc.localhost"]))
        .unwrap();
    assert_eq!(
        (by_host.sandbox.as_str(), by_host.form),
        ("abc", PreviewForm::Host)
    );
    assert_eq!(by_host.prefix(), "");
    let by_path = domains
        .address_of(&parts("/p/def/80/", &["localhost"]))
        .unwrap();
    assert_eq!(
        (by_path.sandbox.as_str(), by_path.form),
        ("def", PreviewForm::Path)
    );
    assert_eq!(by_path.prefix(), "/p/def/80");
}
