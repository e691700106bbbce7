use http_body_util::BodyExt;

use super::*;

const ALL: [Problem; 13] = [
    Problem::PortClosed,
    Problem::NoEditor,
    Problem::NoTools,
    Problem::NeedsDomain,
    Problem::NeedsKey,
    Problem::NotFound,
    Problem::CannotWake,
    Problem::NeedsLink,
    Problem::Refused,
    Problem::Timeout,
    Problem::BadResponse,
    Problem::Unreachable,
    Problem::BadRequest,
];

async fn render(page: Page<'_>, accept: &'static str) -> (http::response::Parts, String) {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static(accept));
    let (parts, body) = page.into_response(&headers).into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn people_get_a_page_and_programs_get_json() {
    for problem in ALL {
        let page = Page::new(problem, "abc", 3000);
        let (parts, html) = render(page.clone(), "text/html,application/xhtml+xml").await;
        assert_eq!(parts.status, problem.status());
        assert_eq!(parts.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(parts.headers["content-security-policy"], POLICY);
        assert!(html.contains(problem.kind().code()));
        assert!(
            !html.contains("http://") && !html.contains("src="),
            "no assets"
        );
        let (parts, json) = render(page, "*/*").await;
        assert_eq!(parts.headers["content-type"], "application/json");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["code"], problem.kind().code());
        assert_eq!(value["port"], 3000);
        assert!(value["detail"].is_string() && value["hint"].is_string());
    }
}

#[tokio::test]
async fn a_closed_port_says_which_and_what_to_do() {
    let (parts, html) = render(Page::new(Problem::PortClosed, "abc", 8123), "text/html").await;
    assert_eq!(parts.status, 502);
    assert_eq!(parts.headers[PROBLEM_HEADER], "port_closed");
    assert!(
        html.contains("<code>python3 -m http.server 8123</code>"),
        "{html}"
    );
    assert!(!html.contains("http-equiv"));
    let page = Page {
        reload: Some(Duration::from_secs(3)),
        ..Page::new(Problem::PortClosed, "abc", 8123)
    };
    let (_, html) = render(page, "text/html").await;
    assert!(html.contains("<meta http-equiv=\"refresh\" content=\"3\">"));
}

#[tokio::test]
async fn names_are_escaped() {
    let evil = "<script>alert('\"&`x`</script>";
    let (_, html) = render(Page::new(Problem::NotFound, evil, 1), "text/html").await;
    assert!(!html.contains("<script"));
    assert!(html.contains("&lt;script&gt;alert(&#39;&quot;&amp;`x`&lt;/script&gt;"));
    let (_, json) = render(Page::new(Problem::NotFound, evil, 1), "").await;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["sandbox_id"], evil);
}

#[test]
fn statuses_are_as_promised() {
    let statuses = ALL.map(|problem| problem.status().as_u16());
    assert_eq!(
        statuses,
        [
            502, 404, 502, 409, 401, 404, 503, 401, 403, 504, 502, 503, 400
        ]
    );
}
