use super::*;

const HTML: (&str, &str) = ("accept", "text/html,*/*;q=0.8");

fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = http::Request::builder().uri(uri);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn decide(form: PreviewForm, scheme: Scheme, parts: &Parts) -> Access {
    let address = PreviewAddress {
        sandbox: "abc".to_owned(),
        port: 3000,
        form,
    };
    let context = RequestContext {
        address: &address,
        host: "3000-abc.localhost:8100",
        scheme,
        domains: &Domains::new(["localhost"]),
    };
    open(parts, context, |token| token == "good")
}

fn host(uri: &str, headers: &[(&str, &str)]) -> Access {
    decide(PreviewForm::Host, Scheme::Http, &parts(uri, headers))
}

fn path(uri: &str, headers: &[(&str, &str)]) -> Access {
    decide(PreviewForm::Path, Scheme::Http, &parts(uri, headers))
}

fn redirected(access: Access) -> (String, String) {
    let Access::Redirect(redirect) = access else {
        panic!("{access:?}")
    };
    assert!(!format!("{redirect:?}").contains("good"));
    let response = redirect.into_response();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let text = |name| response.headers()[name].to_str().unwrap().to_owned();
    (text("location"), text("set-cookie"))
}

#[track_caller]
fn assert_granted(access: Access, expected: Via) {
    assert!(
        matches!(access, Access::Granted(via) if via == expected),
        "{access:?}"
    );
}

#[track_caller]
fn assert_denied(access: Access, expected: Denial) {
    assert!(
        matches!(access, Access::Denied(denial) if denial == expected),
        "{access:?}"
    );
}

#[test]
fn a_link_is_exchanged_for_a_cookie() {
    let (location, cookie) = redirected(host("/a?x=1&sandyard_token=good", &[HTML]));
    assert_eq!(location, "/a?x=1");
    assert_eq!(
        cookie,
        "sandyard_preview=good; Path=/; HttpOnly; SameSite=Lax"
    );
    let (location, cookie) = redirected(path("/p/abc/3000/?sandyard_token=good", &[HTML]));
    assert_eq!(location, "/p/abc/3000/");
    assert_eq!(
        cookie,
        "sandyard_preview=good; Path=/p/abc/3000; HttpOnly; SameSite=Lax"
    );
    let request = parts("/?sandyard_token=good", &[HTML]);
    let (_, cookie) = redirected(decide(PreviewForm::Host, Scheme::Https, &request));
    assert!(cookie.ends_with("; Secure"));
}

#[test]
fn the_redirect_after_a_token_stays_on_the_host() {
    for (uri, expected) in [
        ("//evil.example/?sandyard_token=good", "/.//evil.example/"),
        ("///evil.example?sandyard_token=good", "/.///evil.example"),
        ("http://evil.example//x?sandyard_token=good", "/.//x"),
        ("http://evil.example?sandyard_token=good", "/"),
    ] {
        assert_eq!(redirected(host(uri, &[HTML])).0, expected, "{uri}");
    }
}

#[test]
fn programs_are_let_in_without_a_detour() {
    assert_granted(host("/?sandyard_token=good", &[]), Via::Query);
    assert_granted(
        host("/?sandyard_token=good", &[("accept", "application/json")]),
        Via::Query,
    );
    assert_granted(
        host("/?sandyard_token=good", &[HTML, ("sec-fetch-mode", "cors")]),
        Via::Query,
    );
    let socket = [HTML, ("connection", "upgrade"), ("upgrade", "websocket")];
    assert_granted(host("/?sandyard_token=good", &socket), Via::Query);
    let mut post = parts("/?sandyard_token=good", &[HTML]);
    post.method = Method::POST;
    assert_granted(decide(PreviewForm::Host, Scheme::Http, &post), Via::Query);
    assert_granted(host("/", &[("x-sandyard-token", "good")]), Via::Header);
    assert_granted(
        host("/", &[("e2b-traffic-access-token", "good")]),
        Via::Header,
    );
}

#[test]
fn a_cookie_opens_what_follows_even_among_bad_ones() {
    assert_granted(
        host("/", &[("cookie", "a=b; sandyard_preview=good")]),
        Via::Cookie,
    );
    let two = [("cookie", "sandyard_preview=tossed; sandyard_preview=good")];
    assert_granted(host("/", &two), Via::Cookie);
    assert_granted(host("/?sandyard_token=stale", &[HTML, two[0]]), Via::Cookie);
}

#[test]
fn no_good_token_means_no() {
    assert_denied(host("/", &[HTML]), Denial::Missing);
    assert_denied(host("/?sandyard_token=", &[HTML]), Denial::Missing);
    assert_denied(host("/?sandyard_token=bad", &[HTML]), Denial::Refused);
    assert_denied(
        host("/", &[("cookie", "sandyard_preview=bad")]),
        Denial::Refused,
    );
    let long = "x".repeat(MAX_TOKEN_LEN + 1);
    assert_denied(host("/", &[("x-sandyard-token", &long)]), Denial::Missing);
    let many = format!(
        "{}sandyard_preview=good",
        "sandyard_preview=x;".repeat(MAX_COOKIES)
    );
    assert_denied(host("/", &[("cookie", &many)]), Denial::Refused);
}

#[test]
fn a_cookie_is_not_for_pages_of_others() {
    let cookie = ("cookie", "sandyard_preview=good");
    for foreign in [
        ("origin", "http://3000-other.localhost:8100"),
        ("origin", "http://localhost:8100"),
        ("origin", "null"),
        ("origin", "nonsense"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_denied(host("/", &[cookie, foreign]), Denial::Foreign);
    }
    for own in [
        ("origin", "http://3000-abc.localhost:8100"),
        ("origin", "http://8080-abc.localhost:8100"),
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-site", "none"),
    ] {
        assert_granted(host("/", &[cookie, own]), Via::Cookie);
    }
    let followed = [
        cookie,
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
    ];
    assert_granted(host("/", &followed), Via::Cookie);
    assert_granted(
        path("/p/abc/3000/", &[cookie, ("origin", "null")]),
        Via::Cookie,
    );
    assert_denied(
        path("/p/abc/3000/", &[cookie, ("origin", "http://evil")]),
        Denial::Foreign,
    );
    let socket = [
        cookie,
        ("origin", "null"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
    ];
    assert_denied(path("/p/abc/3000/", &socket), Denial::Foreign);
    let with_token = path("/p/abc/3000/?sandyard_token=good", &socket[1..]);
    assert_granted(with_token, Via::Query);
}

#[test]
fn a_token_that_cannot_be_a_cookie_is_let_in_as_it_is() {
    let address = PreviewAddress {
        sandbox: "abc".to_owned(),
        port: 1,
        form: PreviewForm::Host,
    };
    let domains = Domains::default();
    let context = RequestContext {
        address: &address,
        host: "h",
        scheme: Scheme::Http,
        domains: &domains,
    };
    let request = parts("/?sandyard_token=a%3B%20Domain%3Dx", &[HTML]);
    assert_granted(open(&request, context, |_| true), Via::Query);
}
