//! Going to pages.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_page_is_shown_as_it_is_painted() {
    let env = TestEnv::new().await;
    let seen = env
        .show(
            "<title>Paint</title><body style='margin:0;background:red;height:3000px'>\
             <div style='position:absolute;left:640px;top:0;width:640px;height:800px;background:blue'>",
        )
        .await;
    seen.titled("Paint")
        .has("0 pixels above and 2200 below")
        .has("[0] (current) Paint");
    let picture = seen.picture.as_ref().unwrap();
    assert_eq!((picture.width, picture.height), (1280, 800));
    assert_eq!((seen.colour(0, 0), seen.colour(639, 799)), (RED, RED));
    assert_eq!((seen.colour(640, 0), seen.colour(1279, 799)), (BLUE, BLUE));

    let seen = env.call("browser_scroll_down", json!({})).await;
    seen.has("640 pixels above and 1560 below");
    assert_eq!((seen.colour(700, 100), seen.colour(700, 200)), (BLUE, RED));
    env.call("browser_scroll_up", json!({}))
        .await
        .has("0 pixels above");
    env.call("browser_scroll_up", json!({}))
        .await
        .has("0 pixels above");
}

#[tokio::test]
async fn what_scrolls_inside_of_a_page_scrolls() {
    let env = TestEnv::new().await;
    env.show(
        "<body style='margin:0;overflow:hidden'><div id=a style='height:800px;overflow:auto'>\
         <div style='height:640px;background:red'></div><div style='height:2000px;background:blue'></div>",
    )
    .await;
    let seen = env.call("browser_scroll_down", json!({})).await;
    assert_eq!(seen.colour(10, 10), BLUE);
    let seen = env.call("browser_scroll_up", json!({})).await;
    assert_eq!(seen.colour(10, 10), RED);
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let env = TestEnv::with_limits(|limits| limits.navigation = Duration::from_secs(20)).await;
    let open = async |url: String| env.call("browser_navigation", json!({ "url": url })).await;
    let root = &env.site.root;

    open("http://127.0.0.1:1/".into())
        .await
        .refused("ERR_UNSAFE_PORT");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unused_address = closed.local_addr().unwrap();
    drop(closed);
    open(unused_address.to_string())
        .await
        .refused("no program listens there");
    open("file:///etc/passwd".into())
        .await
        .refused("outside of the workspace");
    open("chrome://version".into())
        .await
        .refused("chrome: URLs cannot be opened");
    open(format!("{root}/circle"))
        .await
        .refused("too many redirects");
    open(format!("{root}/page/999"))
        .await
        .titled("none")
        .has("HTTP status: 404");
    // What was there stays when there is nothing else.
    open(format!("{root}/nothing"))
        .await
        .titled("none")
        .has("is not a page");
    open(format!("{root}/never"))
        .await
        .titled("none")
        .has("did not answer within 20 seconds");
    let parts = env
        .site
        .page("<title>Parts</title><body style='background:green'><img src=/never>");
    let seen = open(parts).await;
    seen.titled("Parts").has("still loading");
    assert_eq!(seen.colour(600, 600), GREEN);

    let path = env.folder.path().join("here.html");
    std::fs::write(&path, "<title>Here</title>").unwrap();
    open(format!("file://{}", path.display()))
        .await
        .titled("Here");
    open("data:text/html,<title>Data</title>".into())
        .await
        .titled("Data");
    open(root.replace("http://127.0.0.1", "localhost") + "/page/0")
        .await
        .titled("Parts");
}

#[tokio::test]
async fn a_link_whose_page_does_not_load_is_reported() {
    let env = TestEnv::with_limits(|limits| {
        limits.navigation = Duration::from_secs(20);
        limits.load = Duration::from_secs(5);
    })
    .await;
    env.show("<title>Before</title><body style='background:green'><a href=/never>x</a>")
        .await;
    let seen = env.call("browser_click", json!({ "selector": "a" })).await;
    seen.has("still loading");
    assert_eq!(seen.colour(600, 600), GREEN);
    env.call("browser_wait", json!({}))
        .await
        .has("still loading");
    env.show("<title>After</title>")
        .await
        .titled("After")
        .has_not("still loading");
}

#[tokio::test]
async fn links_do_not_lead_out_of_the_workspace() {
    let env = TestEnv::new().await;
    let path = env.folder.path().join("here.html");
    std::fs::write(
        &path,
        "<title>Here</title><a href=file:///etc/passwd>out</a>",
    )
    .unwrap();
    let url = format!("file://{}", path.display());
    env.call("browser_navigation", json!({ "url": url }))
        .await
        .titled("Here");
    let seen = env.call("browser_click", json!({ "selector": "a" })).await;
    seen.has("was left")
        .has_not("root:")
        .has("URL: about:blank");
}

#[tokio::test]
async fn large_pictures_are_made_smaller() {
    let env = TestEnv::new().await;
    let seen = env
        .show(
            "<title>Noise</title><body style='margin:0'><canvas width=1280 height=800></canvas><script>\
             const c = document.querySelector('canvas').getContext('2d'), d = c.createImageData(1280, 800);\
             for (let i = 0; i < d.data.length; i++) d.data[i] = i % 4 === 3 ? 255 : Math.random() * 256;\
             c.putImageData(d, 0, 0)</script>",
        )
        .await;
    let picture = seen.picture.as_ref().unwrap();
    assert!(
        picture.bytes <= 1024 * 1024 && picture.width < 1280,
        "{picture:?}"
    );
    seen.titled("Noise").has(": divide its coordinates");
}

#[tokio::test]
async fn pages_that_misbehave_are_bounded() {
    let env = TestEnv::with_limits(|limits| limits.navigation = Duration::from_secs(90)).await;
    env.show(
        "<title>Talks</title><script>setInterval(() => { for (let i = 0; i < 1000; i++) \
         console.log('x'.repeat(1000)) }, 1)</script>",
    )
    .await
    .titled("Talks");
    let seen = env
        .show("<title>Large</title><script>for (let i = 0; i < 60000; i++) document.write('<a href=#>x</a> ')</script>")
        .await;
    seen.titled("Large");
    let seen = env
        .call("browser_view_interactive_elements", json!({}))
        .await;
    seen.has("300 interactive elements")
        .has("There are more than these 300");
    assert!(seen.text.len() < 40_000);

    let url = env
        .site
        .page("<title>Busy</title><body style='height:700px' onclick='for (;;) {}'>");
    env.call("browser_navigation", json!({ "url": url }))
        .await
        .titled("Busy");
    let seen = env
        .call(
            "browser_click",
            json!({ "coordinate_x": 50, "coordinate_y": 50 }),
        )
        .await;
    assert!(seen.text.contains("does not respond"), "{}", seen.text);
    let url = env.site.page("<title>Again</title>");
    env.call("browser_restart", json!({ "url": url }))
        .await
        .titled("Again");
}
