//! What can be used, and lists.

use super::*;

#[tokio::test]
async fn what_can_be_used_is_listed_and_numbered() {
    let env = TestEnv::new().await;
    let inner = env.site.page(
        "<body style='margin:0'><button style='margin:0;width:100px;height:40px'>Inside</button>",
    );
    let before = env
        .show(&format!(
            "<title>List</title><body style='margin:0;height:3000px'><style>body > * {{ position:absolute; margin:0; \
                 width:100px; height:40px; box-sizing:border-box }}</style>\
             <a href=/x style='left:100px;top:100px'>A link</a>\
             <input type=checkbox checked style='left:100px;top:200px' aria-label=Box>\
             <input type=password value=secret style='left:100px;top:300px' placeholder=Password>\
             <div style='left:100px;top:400px;cursor:pointer'>Pointed <b>at</b></div>\
             <div id=host style='left:100px;top:500px'></div>\
             <iframe src='{inner}' style='left:100px;top:600px;border:0'></iframe>\
             <button disabled style='left:300px;top:100px'>Off</button>\
             <button style='left:300px;top:200px;visibility:hidden'>Hidden</button>\
             <button style='left:300px;top:300px;display:none'>Away</button>\
             <button style='left:300px;top:400px'>Covered</button><div style='left:300px;top:400px;background:white'></div>\
             <button style='left:300px;top:2000px'>Below</button><p style='left:500px;top:100px'>Only text</p>\
             <script>const s = host.attachShadow({{mode:'open'}}); s.innerHTML = '<button \
             style=\"width:100px;height:40px\">Shadow</button>'</script>"
        ))
        .await;
    let seen = env
        .call("browser_view_interactive_elements", json!({}))
        .await;
    for line in [
        "[0] a \"A link\" at (150, 120)",
        "input (checkbox) \"Box\" has \"on\" checked at (150, 220)",
        "input (password) \"Password\" at (150, 320)",
        "div \"Pointed at\" at (150, 420)",
        "button \"Shadow\" at (150, 520)",
        "button \"Inside\" at (150, 620)",
        "button \"Off\" disabled at (350, 120)",
    ] {
        seen.has(line);
    }
    for word in ["Hidden", "Away", "Covered", "Below", "Only text", "secret"] {
        seen.has_not(word);
    }
    seen.has("7 interactive elements");
    // The frame of the first one, which is red, and nothing of it afterwards.
    assert_eq!(before.colour(199, 139), WHITE);
    assert_eq!(seen.colour(199, 139), [0xd3, 0x2f, 0x2f]);
    let after = env.call("browser_wait", json!({})).await;
    assert_eq!(after.colour(199, 139), WHITE);
}

#[tokio::test]
async fn options_are_listed_and_chosen() {
    let env = TestEnv::new().await;
    env.show(
        "<button>First</button><select onchange='document.title = this.value + \" \" + event.isTrusted'>\
         <option value=r>Red</option><option value=g>Green one</option><option disabled>Off</option></select>",
    )
    .await;
    env.call("browser_get_select_options", json!({ "index": 1 }))
        .await
        .refused("browser_view_interactive_elements");
    env.call("browser_view_interactive_elements", json!({}))
        .await
        .has("[1] select")
        .has("has \"Red\"");
    let options = env
        .call("browser_get_select_options", json!({ "index": 1 }))
        .await;
    options
        .has("3 options")
        .has("- \"Red\" (value \"r\") chosen")
        .has("- \"Off\" (value \"Off\") disabled");
    let choose = async |index: usize, option: &str| {
        let args = json!({ "index": index, "option": option });
        env.call("browser_select_dropdown_option", args).await
    };
    choose(1, "Green one")
        .await
        .titled("g false")
        .has("Chose \"Green one\"");
    choose(1, "r").await.titled("r false").has("Chose \"Red\"");
    choose(1, " green ONE").await.titled("g false");
    choose(1, "Blue").await.refused("Green one");
    choose(1, "Off").await.refused("disabled");
    choose(0, "Red")
        .await
        .refused("not a drop-down list but \"button\"");
    choose(7, "Red").await.refused("element 7 is no longer");
    env.show("<select><option>x</select>").await;
    choose(1, "x").await.refused("element 1 is no longer");
}
