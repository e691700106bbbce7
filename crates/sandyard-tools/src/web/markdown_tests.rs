//! What becomes of HTML.

use super::*;

fn of(html: &str) -> String {
    readable(html, &Url::parse("http://host/dir/page").unwrap()).text
}

#[test]
fn a_page_becomes_markdown() {
    let html = r#"<!doctype html><html><head><title> A
        page </title><style>p { color: red }</style><script>let x = "<p>no</p>";</script></head>
        <body><h1>Head   line</h1><p>One <b>two</b>
        three&nbsp;four &amp; five<p>Next <a href="../x?y=1">a link</a>, <a href="">here</a>.
        <ul><li>first<li>second<ol><li>inner</li><li>other</li></ol></li></ul>
        <blockquote><p>said</p></blockquote>
        <pre>  kept
    as is</pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
        <img src="p.png" alt="A picture"><img src="q.png"><br><code>let</code>
        <svg><text>no</text></svg><noscript>no</noscript><hr></body>"#;
    let page = readable(html, &Url::parse("http://host/dir/page").unwrap());
    assert_eq!(page.title, "A page");
    assert_eq!(
        page.text,
        "# Head line\n\nOne two three\u{a0}four & five\n\nNext [a link](http://host/x?y=1), [here](http://host/dir/page).\n\n\
         - first\n- second\n  1. inner\n  2. other\n\n> said\n\n```\n  kept\n    as is\n```\n\n| a | b |\n| 1 | 2 |\n\n\
         ![A picture](http://host/dir/p.png)\n`let`\n\n---"
    );
}

#[test]
fn broken_pages_do_no_harm() {
    assert_eq!(of(""), "");
    assert_eq!(of("</ul></li></blockquote></pre></a></title>x"), "x");
    assert_eq!(
        of("<a href=/x>one<a href=/y>two"),
        "[one](http://host/x)[two](http://host/y)"
    );
    assert_eq!(of("<a href=/x><div></div></a>rest"), "rest");
    assert_eq!(
        of("<a href=/x><p>far</p></a><p>rest"),
        "[far](http://host/x)\n\nrest"
    );
    assert_eq!(of("<script>never closed <p>x"), "");
    assert_eq!(of("<pre>open"), "```\nopen");
    assert_eq!(
        of("a<base href='//other/z/'><a href=b>c</a>"),
        "a[c](http://other/z/b)"
    );
    assert_eq!(of("&#0;&#x110000;&bogus;"), "\u{fffd}\u{fffd}&bogus;");
}

#[test]
fn depth_and_length_cost_no_more_than_their_bytes() {
    for tag in [
        "<div>",
        "<ul>",
        "<li>",
        "<blockquote>",
        "<a href=x>",
        "<svg>",
        "<p><b>",
        "<table><tr><td>",
    ] {
        let html = tag.repeat(1024 * 1024 / tag.len());
        let text = of(&html);
        assert!(text.len() < 64 * 1024 * 1024, "{tag}: {}", text.len());
    }
}
