//! Tabs, windows pages open, dialogs, files they give.

use super::*;

#[tokio::test]
async fn tabs_are_opened_listed_and_switched() {
    let env = TestEnv::new().await;
    env.show("<title>One</title><body style='background:red'>")
        .await;
    env.call("browser_open_new_tab", json!({}))
        .await
        .has("[1] (current)")
        .has("URL: about:blank");
    let seen = env
        .show("<title>Two</title><body style='background:blue'>")
        .await;
    assert_eq!(seen.colour(600, 600), BLUE);
    seen.has("[0] One").has("[1] (current) Two");
    let seen = env.call("browser_switch_tab", json!({ "index": 0 })).await;
    seen.titled("One").has("[0] (current) One");
    assert_eq!(seen.colour(600, 600), RED);
    env.call("browser_switch_tab", json!({ "index": 2 }))
        .await
        .refused("there are 2");
}

#[tokio::test]
async fn windows_that_pages_open_are_tabs() {
    let env = TestEnv::new().await;
    let target = env.site.page(
        "<title>Target</title><body style='background:green'><button \
         onclick='window.close()'>Close</button>",
    );
    env.show(&format!(
        "<title>Opener</title><a href='{target}' target=_blank rel=opener>open</a>"
    ))
    .await;
    let seen = env.call("browser_click", json!({ "selector": "a" })).await;
    seen.titled("Target").has("opened tab 1").has("[0] Opener");
    assert_eq!(seen.colour(600, 600), GREEN);
    assert_eq!(seen.picture.as_ref().unwrap().width, 1280);
    // The tab closes a moment after the command, on a busy machine after the answer.
    let mut seen = env
        .call("browser_click", json!({ "selector": "button" }))
        .await;
    if !seen.text.contains("Title: Opener\n") {
        seen = env.until_title("Opener").await;
    }
    seen.titled("Opener").has_not("[1]");

    let html = "<title>Many</title><body style='height:700px' onclick='for (let i = 0; i < 30; i++) \
         window.open(\"about:blank\")'>";
    env.show(html).await;
    let mut seen = env
        .call(
            "browser_click",
            json!({ "coordinate_x": 50, "coordinate_y": 50 }),
        )
        .await;
    let until = Instant::now() + Duration::from_secs(180);
    while !seen.text.contains("[19]") && Instant::now() < until {
        env.call("browser_switch_tab", json!({ "index": 0 })).await;
        seen = env
            .call(
                "browser_click",
                json!({ "coordinate_x": 50, "coordinate_y": 50 }),
            )
            .await;
    }
    seen.has("[19]").has_not("[20]");
    env.call("browser_open_new_tab", json!({}))
        .await
        .refused("the maximum of 20 tabs");
}

#[tokio::test]
async fn dialogs_are_answered_automatically_and_reported() {
    let env = TestEnv::new().await;
    let seen = env
        .show("<script>alert('hello\\nthere'); document.title = confirm('sure?') + ' ' + prompt('name?', 'x')</script>")
        .await;
    seen.titled("true null")
        .has("an alert with \"hello there\"")
        .has("a confirmation with \"sure?\" was answered with OK")
        .has("a prompt with \"name?\" was cancelled");
    env.call("browser_wait", json!({}))
        .await
        .has_not("hello there");

    env.show(
        "<title>Stay</title><body style='height:700px' onclick='0'><script>onbeforeunload = e => { \
         e.preventDefault(); return 'x' }</script>",
    )
    .await;
    env.call(
        "browser_click",
        json!({ "coordinate_x": 50, "coordinate_y": 50 }),
    )
    .await
    .titled("Stay");
    env.show("<title>Next</title>")
        .await
        .titled("Next")
        .has("to leave the page was answered with OK");

    env.show("<input type=file onclick='document.title = \"asked\"'>")
        .await;
    env.call("browser_click", json!({ "selector": "input" }))
        .await
        .titled("asked");
    env.show("<title>Flood</title><body style='height:700px' onclick='for (let i = 0; i < 200; i++) alert(i)'>").await;
    let seen = env
        .call(
            "browser_click",
            json!({ "coordinate_x": 50, "coordinate_y": 50 }),
        )
        .await;
    seen.has("more notes were dropped");
    assert!(seen.text.len() < 5000, "{}", seen.text);
}

#[tokio::test]
async fn files_go_into_the_workspace() {
    let env = TestEnv::new().await;
    env.show("<title>Files</title><a id=a href=/file>file</a><a id=b href=/endless>large</a>")
        .await;
    let mut seen = env.call("browser_click", json!({ "selector": "#a" })).await;
    let path = env.folder.path().canonicalize().unwrap().join("downloads");
    let until = Instant::now() + Duration::from_secs(180);
    while !seen.text.contains("downloaded ") && Instant::now() < until {
        seen = env.call("browser_wait", json!({})).await;
    }
    seen.titled("Files")
        .has(&format!("downloaded {}", path.display()));
    let names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(std::fs::read(&names[0]).unwrap(), b"the file's bytes");

    let url = format!("{}/file", env.site.root);
    env.call("browser_navigation", json!({ "url": url }))
        .await
        .titled("Files")
        .has("is not a page");
    let mut seen = env.call("browser_click", json!({ "selector": "#b" })).await;
    while !seen.text.contains("was cancelled") && Instant::now() < until {
        seen = env.call("browser_wait", json!({})).await;
    }
    seen.has("large.bin was cancelled");
}
