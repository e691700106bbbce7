use serde_json::{Value, json};

use crate::files::test_env::TestEnv;

fn slide(number: u32, title: &str) -> Value {
    let content = format!("<html><title>T{number}</title><h1>{title}</h1></html>");
    json!({"presentation_name": "talk", "slide_number": number, "content": content, "title": title, "description": "about"})
}

fn slides(env: &TestEnv) -> Vec<(u64, String)> {
    let metadata: Value =
        serde_json::from_str(&env.content("presentations/talk/metadata.json")).unwrap();
    assert_eq!(metadata["name"], "talk");
    let slides = metadata["slides"].as_array().unwrap().iter();
    slides
        .map(|slide| {
            (
                slide["number"].as_u64().unwrap(),
                slide["title"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn slides_are_written_and_changed_and_listed() {
    let env = TestEnv::new();
    env.text("SlideWrite", slide(2, "two")).await;
    env.text("SlideWrite", slide(1, "one")).await;
    assert!(
        env.content("presentations/talk/slide_001.html")
            .contains("<h1>one</h1>")
    );
    assert_eq!(slides(&env), [(1, "one".into()), (2, "two".into())]);
    let edit = json!({"presentation_name": "talk", "slide_number": 2, "old_string": "two", "new_string": "zwei", "title": "zwei"});
    let diff = env.text("SlideEdit", edit.clone()).await;
    assert!(diff.contains("+") && diff.contains("zwei"), "{diff}");
    assert_eq!(slides(&env)[1].1, "zwei");
    assert!(env.problem("SlideEdit", edit).await.contains("not in"));
    let missing = json!({"presentation_name": "talk", "slide_number": 7, "old_string": "a", "new_string": "b"});
    assert!(
        env.problem("SlideEdit", missing)
            .await
            .contains("SlideWrite")
    );
}

#[tokio::test]
async fn a_list_that_is_lost_or_behind_is_made_from_the_files() {
    let env = TestEnv::new();
    env.text("SlideWrite", slide(1, "one")).await;
    env.file("presentations/talk/metadata.json", "{broken");
    env.file("presentations/talk/slide_003.html", "<title>three</title>");
    env.file("presentations/talk/notes.html", "no slide");
    env.text("SlideWrite", slide(2, "two")).await;
    assert_eq!(
        slides(&env),
        [(1, "T1".into()), (2, "two".into()), (3, "three".into())]
    );
    std::fs::remove_file(env.path("presentations/talk/slide_001.html")).unwrap();
    env.text("SlideWrite", slide(2, "again")).await;
    assert_eq!(slides(&env), [(2, "again".into()), (3, "three".into())]);
}

#[tokio::test]
async fn names_and_numbers_do_not_lead_out() {
    let env = TestEnv::new();
    for name in ["", "..", "../x", "a/b", "/etc", ".hidden", "a\0b"] {
        let mut bad = slide(1, "x");
        bad["presentation_name"] = name.into();
        assert!(
            env.problem("SlideWrite", bad)
                .await
                .contains("presentation_name"),
            "{name:?}"
        );
    }
    for number in [0, 1000] {
        assert!(
            env.problem("SlideWrite", slide(number, "x"))
                .await
                .contains("1 to 999")
        );
    }
    std::fs::create_dir_all(env.path("presentations")).unwrap();
    std::os::unix::fs::symlink("/etc", env.path("presentations/talk")).unwrap();
    assert!(
        env.problem("SlideWrite", slide(1, "x"))
            .await
            .contains("outside")
    );
}

#[tokio::test]
async fn a_patch_changes_slides_and_their_list() {
    let env = TestEnv::new();
    env.text("SlideWrite", slide(1, "one")).await;
    let input = "*** Begin Patch\n*** Add File: talk/slide_002.html\n+<title>new</title>\n*** Delete File: talk/slide_001.html\n*** End Patch";
    env.text("slide_apply_patch", json!({"input": input})).await;
    assert_eq!(slides(&env), [(2, "new".into())]);
    let out = "*** Begin Patch\n*** Add File: ../out.html\n+x\n*** End Patch";
    assert!(
        env.problem("slide_apply_patch", json!({"input": out}))
            .await
            .contains("outside")
    );
    assert!(!env.path("out.html").exists());
}
