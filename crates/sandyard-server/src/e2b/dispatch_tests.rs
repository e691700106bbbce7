use axum::body::Body;

use super::*;

fn classified(
    is_e2b: bool,
    host: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> Option<(Plane, String)> {
    let mut builder = Request::builder().uri(uri);
    if !host.is_empty() {
        builder = builder.header("host", host);
    }
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let mut request = builder.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Listener {
        address: "127.0.0.1:8101".parse().unwrap(),
        is_tls: false,
        is_e2b,
        peer: "127.0.0.1:5555".parse().unwrap(),
    });
    let (parts, _) = request.into_parts();
    classify(&parts, "sbx.test").map(|(plane, path)| (plane, path.to_owned()))
}

fn control(path: &str) -> Option<(Plane, String)> {
    Some((Plane::Control, path.to_owned()))
}

fn data(path: &str) -> Option<(Plane, String)> {
    let target = DataTarget::Port {
        sandbox: "abc".to_owned(),
        port: "49983".to_owned(),
    };
    Some((Plane::Data(target), path.to_owned()))
}

const PORT: [(&str, &str); 2] = [("E2b-Sandbox-Id", "abc"), ("E2b-Sandbox-Port", "49983")];

#[test]
fn a_listener_a_host_or_a_prefix_selects_the_dialect() {
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/sandboxes", &[]),
        control("/sandboxes")
    );
    assert_eq!(
        classified(false, "api.sbx.test:443", "/sandboxes", &[]),
        control("/sandboxes")
    );
    assert_eq!(
        classified(false, "127.0.0.1:8100", "/e2b/sandboxes", &[]),
        control("/sandboxes")
    );
    assert_eq!(
        classified(false, "127.0.0.1:8100", "/e2b", &[]),
        control("/")
    );
    assert_eq!(classified(false, "127.0.0.1:8100", "/sandboxes", &[]), None);
    assert_eq!(classified(false, "127.0.0.1:8100", "/e2bx", &[]), None);
    assert_eq!(classified(false, "api.other.test", "/sandboxes", &[]), None);
}

#[test]
fn headers_select_the_plane() {
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/health", &PORT),
        data("/health")
    );
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/health", &[]),
        control("/health")
    );
    assert_eq!(
        classified(false, "sandbox.sbx.test", "/files?path=a", &PORT),
        data("/files")
    );
    assert_eq!(
        classified(false, "localhost:8100", "/e2b/files", &PORT),
        data("/files")
    );
    assert_eq!(classified(false, "localhost:8100", "/files", &PORT), None);
    let unnamed = Some((Plane::Data(DataTarget::Unnamed), "/".to_owned()));
    assert_eq!(classified(false, "sandbox.sbx.test", "/", &[]), unnamed);
}

#[test]
fn a_key_and_a_sandboxes_path_are_for_the_control_plane() {
    let both = [PORT[0], PORT[1], ("X-API-Key", "k")];
    let path = "/sandboxes/abc/connect";
    assert_eq!(
        classified(true, "127.0.0.1:8101", path, &both),
        control(path)
    );
    assert_eq!(
        classified(false, "api.sbx.test", path, &PORT),
        control(path)
    );
    assert_eq!(classified(true, "127.0.0.1:8101", path, &PORT), data(path));
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/files", &both),
        data("/files")
    );
}

#[test]
fn signed_links_need_no_headers() {
    let signed = Some((Plane::Data(DataTarget::Signed), "/files".to_owned()));
    let uri = "/files?path=a&signature=v1_x";
    assert_eq!(classified(true, "127.0.0.1:8101", uri, &[]), signed);
    assert_eq!(classified(false, "sandbox.sbx.test", uri, &[]), signed);
    assert_eq!(classified(false, "127.0.0.1:8100", uri, &[]), None);
}

#[test]
fn a_token_alone_names_its_sandbox() {
    let token = [("X-Access-Token", "secret")];
    let placed_at = |path| classified(true, "127.0.0.1:8101", path, &token);
    let found = |path: &str| Some((Plane::Data(DataTarget::Token), path.to_owned()));
    assert_eq!(placed_at("/files"), found("/files"));
    let start = "/process.Process/Start";
    assert_eq!(placed_at(start), found(start));
    assert_eq!(placed_at("/sandboxes"), control("/sandboxes"));
    let both = [("X-Access-Token", "secret"), ("X-API-Key", "e2b_0")];
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/health", &both),
        control("/health")
    );
}

#[test]
fn hosts_of_previews_belong_to_no_plane() {
    assert_eq!(
        classified(true, "3000-abc.localhost:8101", "/sandboxes", &[]),
        None
    );
    assert_eq!(
        classified(true, "49983-abc.sbx.test", "/files", &PORT),
        None
    );
}

#[test]
fn a_malformed_host_never_reaches_another_dialect() {
    let unreadable = |path: &str| Some((Plane::Data(DataTarget::Malformed), path.to_owned()));
    for host in [
        "3000-abc.localhost..",
        "api..sbx.test",
        "user@3000-abc.localhost",
        "user@127.0.0.1",
        "a b",
    ] {
        assert_eq!(
            classified(true, host, "/sandboxes", &PORT),
            unreadable("/sandboxes")
        );
        assert_eq!(
            classified(false, host, "/e2b/files", &[]),
            unreadable("/files")
        );
        assert_eq!(classified(false, host, "/sandboxes", &[]), None);
    }
    let two = [("host", "3000-abc.localhost")];
    assert_eq!(
        classified(true, "127.0.0.1:8101", "/health", &two),
        unreadable("/health")
    );
    assert_eq!(
        classified(true, "", "http://user@127.0.0.1/health", &[]),
        unreadable("/health")
    );
    // None at all is no riddle.
    assert_eq!(classified(true, "", "/health", &[]), control("/health"));
}
