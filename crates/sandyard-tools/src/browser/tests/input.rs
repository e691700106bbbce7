//! Clicks, keys and drags.

use super::*;

#[tokio::test]
async fn clicks_land_where_they_are_meant_to() {
    let env = TestEnv::new().await;
    env.show(
        "<body style='margin:0;height:3000px'><script>\
         const say = (what, e) => document.title = what + ' ' + e.clientX + ' ' + e.clientY;\
         onclick = e => say('click', e); ondblclick = e => say('double', e)</script>\
         <button id=far style='position:absolute;top:2000px;left:100px;width:100px;height:40px' \
         onclick='event.stopPropagation(); document.title = \"far\"'>Far</button>\
         <div style='display:none' id=hidden>x</div>",
    )
    .await;
    let click = async |args: Value| env.call("browser_click", args).await;
    click(json!({ "coordinate_x": 0, "coordinate_y": 0 }))
        .await
        .titled("click 0 0");
    click(json!({ "coordinate_x": 700, "coordinate_y": 500 }))
        .await
        .titled("click 700 500");
    click(json!({ "coordinate_x": 7, "coordinate_y": 5, "double_click": true }))
        .await
        .titled("double 7 5");
    click(json!({ "selector": "#far" })).await.titled("far");
    click(json!({ "selector": "#none" }))
        .await
        .refused("no element matches");
    click(json!({ "selector": "#hidden" }))
        .await
        .refused("not visible");
    click(json!({ "selector": "##" }))
        .await
        .refused("not a valid CSS selector");
    click(json!({ "coordinate_x": 1280, "coordinate_y": 0 }))
        .await
        .refused("1280 by 800");
    click(json!({ "coordinate_x": 3 }))
        .await
        .refused("both coordinate_x and coordinate_y");
    click(json!({})).await.refused("give the position to click");
}

#[tokio::test]
async fn texts_go_into_their_fields() {
    let env = TestEnv::new().await;
    env.show(
        "<body style='margin:0'><style>input, textarea { position:absolute; left:0; width:200px; height:40px; \
             margin:0 }</style>\
         <form onsubmit='say(\"sent\"); return false'><input id=a style='top:0' value=old><input id=b \
         style='top:100px'><button hidden></button></form>\
         <textarea id=c style='top:200px'>old </textarea><div contenteditable id=d \
         style='position:absolute;top:300px;height:40px;width:200px'></div>\
         <script>let keys = 0; onkeydown = () => keys++; const say = s => document.title = s + [a.value, b.value, \
         c.value, d.innerText].join('|');\
         oninput = () => say(keys + ' ')</script>",
    )
    .await;
    let enter = async |args: Value| env.call("browser_enter_text", args).await;
    // One key for going to the end, with its modifier, and one for each letter.
    enter(json!({ "text": "new", "coordinate_x": 10, "coordinate_y": 20 }))
        .await
        .titled("5 oldnew||old |");
    enter(json!({ "text": "Grüße", "coordinate_x": 10, "coordinate_y": 20, "override": true }))
        .await
        .has("Grüße||old |");
    enter(json!({ "text": "more" }))
        .await
        .has("Grüßemore||old |");
    enter(json!({ "text": "", "coordinate_x": 10, "coordinate_y": 20, "override": true }))
        .await
        .has(" ||old |");
    let long = "ä b\n".repeat(500);
    enter(json!({ "text": long, "coordinate_x": 10, "coordinate_y": 220, "override": true })).await;
    env.show_value("c.value.length", "2000").await;
    enter(json!({ "text": "x", "coordinate_x": 10, "coordinate_y": 220, "override": true }))
        .await
        .has("||x|");
    enter(json!({ "text": "sent?", "coordinate_x": 10, "coordinate_y": 120, "press_enter": true }))
        .await
        .titled("sent|sent?|x|");
    enter(json!({ "text": "lost", "coordinate_x": 900, "coordinate_y": 700 }))
        .await
        .has("No field had the focus");
    enter(json!({ "text": "x", "coordinate_x": 900 }))
        .await
        .refused("both");

    let texts = json!({ "enter_texts": [
        { "text": "one", "coordinate_x": 10, "coordinate_y": 20 },
        { "text": "two", "coordinate_x": 10, "coordinate_y": 120, "override": true },
        { "text": "three", "coordinate_x": 10, "coordinate_y": 220, "override": true },
        { "text": "four", "coordinate_x": 10, "coordinate_y": 310 },
    ] });
    let seen = env.call("browser_enter_multi_texts", texts).await;
    seen.has("Entered 4 texts").has("one|two|three|four");
    env.call("browser_enter_multi_texts", json!({ "enter_texts": [] }))
        .await
        .refused("give 1 to 50 texts");
}

impl TestEnv {
    /// Checks what an expression is in the page, by putting it into the title.
    async fn show_value(&self, expression: &str, expected: &str) {
        {
            let browser = self
                .tool_state
                .browser
                .acquire(&self.tool_state)
                .await
                .unwrap();
            let page = browser.running().unwrap().page().await.unwrap();
            let say = json!({ "expression": format!("document.title = {expression}") });
            page.send("Runtime.evaluate", say).await.unwrap();
        }
        self.until_title(expected).await;
    }
}

#[tokio::test]
async fn keys_do_what_they_do_at_a_desk() {
    let env = TestEnv::new().await;
    env.show(
        "<input id=a value=abc autofocus><input id=b><script>\
         a.focus(); onkeydown = e => { log = e.key + ' ' + e.code + ' ' + e.ctrlKey + e.shiftKey + ' ' + e.keyCode };\
         onkeyup = () => document.title = log + ' ' + document.activeElement.id + ' ' + getSelection().toString() + ' \
         ' + a.value</script>",
    )
    .await;
    let press = async |key: &str| env.call("browser_press_key", json!({ "key": key })).await;
    press("ArrowLeft")
        .await
        .titled("ArrowLeft ArrowLeft falsefalse 37 a abc");
    press("Control+A")
        .await
        .titled("a KeyA truefalse 65 a abc abc");
    press("x").await.titled("x KeyX falsefalse 88 a x");
    press("Shift+y").await.titled("Y KeyY falsetrue 89 a xY");
    press("Backspace")
        .await
        .titled("Backspace Backspace falsefalse 8 a x");
    press("Tab").await.titled("Tab Tab falsefalse 9 b x");
    press("Shift+Tab").await.has("Tab Tab falsetrue 9 a");
    press("Hyper+Q").await.refused("unknown key");
}

#[tokio::test]
async fn elements_are_dragged() {
    let env = TestEnv::new().await;
    let drag = async |from: (i32, i32), to: (i32, i32)| {
        let args = json!({
            "coordinate_x_start": from.0, "coordinate_y_start": from.1, "coordinate_x_end": to.0, "coordinate_y_end": to.1,
        });
        env.call("browser_drag", args).await
    };
    env.show(
        "<body style='margin:0'><div id=a style='position:absolute;width:100px;height:100px;background:red'></div><script>\
         let held = false; a.onmousedown = e => { held = true; e.preventDefault() }; onmouseup = e => { held = false; \
         document.title = 'up' };\
         onmousemove = e => { if (held) { a.style.left = e.clientX - 50 + 'px'; a.style.top = e.clientY - 50 + 'px' } \
         }</script>",
    )
    .await;
    let seen = drag((50, 50), (650, 450)).await;
    seen.titled("up");
    assert_eq!((seen.colour(650, 450), seen.colour(50, 50)), (RED, WHITE));

    env.show(
        "<body style='margin:0'><div id=a draggable=true \
             style='position:absolute;width:100px;height:100px;background:red'></div>\
         <div id=b style='position:absolute;left:600px;top:400px;width:100px;height:100px;background:blue'></div><script>\
         a.ondragstart = e => e.dataTransfer.setData('text/plain', 'cargo'); b.ondragover = e => e.preventDefault();\
         b.ondrop = e => { e.preventDefault(); b.style.background = 'green'; document.title = 'got ' + \
         e.dataTransfer.getData('text/plain') }</script>",
    )
    .await;
    let seen = drag((50, 50), (650, 450)).await;
    seen.titled("got cargo");
    assert_eq!(seen.colour(650, 450), GREEN);
    // The button is not held any more.
    env.call("browser_click", json!({ "selector": "#b" }))
        .await
        .titled("got cargo");
    drag((50, 50), (650, 900)).await.refused("1280 by 800");
}
