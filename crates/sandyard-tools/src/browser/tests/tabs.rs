//! Tabs, windows pages open, dialogs, files they give.

use super::*;

#[tokio::test]
async fn tabs_are_opened_listed_and_switched() {
    let yard = Yard::new().await;
    yard.show("<title>One</title><body style='background:red'>")
        .await;
    yard.call("browser_open_new_tab", json!({}))
        .await
        .has("[1] (this one)")
        .has("URL: about:blank");
    let seen = yard
        .show("<title>Two</title><body style='background:blue'>")
        .await;
    assert_eq!(seen.colour(600, 600), BLUE);
    seen.has("[0] One").has("[1] (this one) Two");
    let seen = yard.call("browser_switch_tab", json!({ "index": 0 })).await;
    seen.titled("One").has("[0] (this one) One");
    assert_eq!(seen.colour(600, 600), RED);
    yard.call("browser_switch_tab", json!({ "index": 2 }))
        .await
        .refused("there are 2");
}

#[tokio::test]
async fn windows_that_pages_open_are_tabs() {
    let yard = Yard::new().await;
    let target = yard.site.page(
        "<title>Target</title><body style='background:green'><button \
         onclick='window.close()'>Close</button>",
    );
    yard.show(&format!(
        "<title>Opener</title><a href='{target}' target=_blank rel=opener>open</a>"
    ))
    .await;
    let seen = yard.call("browser_click", json!({ "selector": "a" })).await;
    seen.titled("Target").has("opened tab 1").has("[0] Opener");
    assert_eq!(seen.colour(600, 600), GREEN);
    assert_eq!(seen.picture.as_ref().unwrap().width, 1280);
    // It goes a moment after it was told to, on a busy machine after the answer.
    let mut seen = yard
        .call("browser_click", json!({ "selector": "button" }))
        .await;
    if !seen.text.contains("Title: Opener\n") {
        seen = yard.until_title("Opener").await;
    }
    seen.titled("Opener").lacks("[1]");

    let html = "<title>Many</title><body style='height:700px' onclick='for (let i = 0; i < 30; i++) \
         window.open(\"about:blank\")'>";
    yard.show(html).await;
    let mut seen = yard
        .call(
            "browser_click",
            json!({ "coordinate_x": 50, "coordinate_y": 50 }),
        )
        .await;
    let until = Instant::now() + Duration::from_secs(180);
    while !seen.text.contains("[19]") && Instant::now() < until {
        yard.call("browser_switch_tab", json!({ "index": 0 })).await;
        seen = yard
            .call(
                "browser_click",
                json!({ "coordinate_x": 50, "coordinate_y": 50 }),
            )
            .await;
    }
    seen.has("[19]").lacks("[20]");
    yard.call("browser_open_new_tab", json!({}))
        .await
        .refused("20 tabs are the most");
}

#[tokio::test]
async fn dialogs_answer_themselves_and_are_told() {
    let yard = Yard::new().await;
    let seen = yard
        .show("<script>alert('hello\\nthere'); document.title = confirm('sure?') + ' ' + prompt('name?', 'x')</script>")
        .await;
    seen.titled("true null")
        .has("an alert said \"hello there\"")
        .has("asked \"sure?\" and was told OK")
        .has("\"name?\", and was told Cancel");
    yard.call("browser_wait", json!({}))
        .await
        .lacks("hello there");

    yard.show(
        "<title>Stay</title><body style='height:700px' onclick='0'><script>onbeforeunload = e => { \
         e.preventDefault(); return 'x' }</script>",
    )
    .await;
    yard.call(
        "browser_click",
        json!({ "coordinate_x": 50, "coordinate_y": 50 }),
    )
    .await
    .titled("Stay");
    yard.show("<title>Next</title>")
        .await
        .titled("Next")
        .has("whether to leave it and was told yes");

    yard.show("<input type=file onclick='document.title = \"asked\"'>")
        .await;
    yard.call("browser_click", json!({ "selector": "input" }))
        .await
        .titled("asked");
    yard.show("<title>Flood</title><body style='height:700px' onclick='for (let i = 0; i < 200; i++) alert(i)'>").await;
    let seen = yard
        .call(
            "browser_click",
            json!({ "coordinate_x": 50, "coordinate_y": 50 }),
        )
        .await;
    seen.has("more of these came up");
    assert!(seen.text.len() < 5000, "{}", seen.text);
}

#[tokio::test]
async fn files_go_into_the_workspace() {
    let yard = Yard::new().await;
    yard.show("<title>Files</title><a id=a href=/file>file</a><a id=b href=/endless>large</a>")
        .await;
    let mut seen = yard
        .call("browser_click", json!({ "selector": "#a" }))
        .await;
    let path = yard.folder.path().canonicalize().unwrap().join("downloads");
    let until = Instant::now() + Duration::from_secs(180);
    while !seen.text.contains("downloaded ") && Instant::now() < until {
        seen = yard.call("browser_wait", json!({})).await;
    }
    seen.titled("Files")
        .has(&format!("downloaded {}", path.display()));
    let names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(std::fs::read(&names[0]).unwrap(), b"the file's bytes");

    let url = format!("{}/file", yard.site.root);
    yard.call("browser_navigation", json!({ "url": url }))
        .await
        .titled("Files")
        .has("is not a page");
    let mut seen = yard
        .call("browser_click", json!({ "selector": "#b" }))
        .await;
    while !seen.text.contains("was stopped") && Instant::now() < until {
        seen = yard.call("browser_wait", json!({})).await;
    }
    seen.has("large.bin was stopped");
}
