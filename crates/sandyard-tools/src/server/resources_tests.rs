//! Resources of a real folder.

use std::os::unix::fs::symlink;

use rmcp::model::{PaginatedRequestParams, ReadResourceResponse, ResourceContents};

use super::*;
use crate::files::test_env::TestEnv;

async fn read_one(env: &TestEnv, path: &str) -> Result<ResourceContents, ErrorData> {
    let address = uri(path);
    match read(&env.tool_state, &address).await? {
        ReadResourceResponse::Complete(result) => Ok(result.contents.into_iter().next().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_file_is_listed_once_over_the_pages() {
    let env = TestEnv::new();
    for number in 0..120 {
        env.file(&format!("a/{number}.txt"), "x");
        env.file(&format!("a.{number}"), "x");
    }
    env.file(".hidden", "x");
    env.file("target/made", "x");
    env.file(".gitignore", "target/\n");
    symlink("/etc", env.path("etc")).unwrap();
    env.file(&format!("{}x", "deep/".repeat(MAX_DEPTH + 1)), "x");
    let (mut names, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let mut request = PaginatedRequestParams::default();
        request.cursor = cursor;
        let page = list(&env.tool_state, Some(request)).await.unwrap();
        sizes.push(page.resources.len());
        names.extend(page.resources.into_iter().map(|resource| resource.name));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [100, 100, 40]);
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name.starts_with('a')), "{names:?}");
    let mut wrong = PaginatedRequestParams::default();
    wrong.cursor = Some("not ours!".to_owned());
    assert!(list(&env.tool_state, Some(wrong)).await.is_err());
}

#[test]
fn a_listing_that_timed_out_is_not_taken_for_the_end() {
    let env = TestEnv::new();
    for number in 0..3 {
        env.file(&format!("{number}.txt"), "x");
    }
    let cancelled = CancellationToken::new();
    let bounds = Bounds::new(&cancelled, TIME_LIMIT);
    let (three, end) = page(&env.tool_state.workspace, None, &bounds).unwrap();
    assert_eq!((three.len(), end), (3, End::Complete));
    assert_eq!(list_result(three.clone(), end).unwrap().next_cursor, None);
    let late = list_result(three, End::TimedOut).unwrap();
    assert_eq!(late.resources.len(), 3);
    assert_eq!(
        after(&late.next_cursor.unwrap()).unwrap(),
        PathBuf::from("2.txt")
    );
    cancelled.cancel();
    let (none, end) = page(&env.tool_state.workspace, None, &bounds).unwrap();
    let problem = list_result(none, end).unwrap_err();
    assert!(problem.to_string().contains("Glob"), "{problem}");
}

#[tokio::test]
async fn text_and_bytes_are_read_up_to_a_limit() {
    let env = TestEnv::new();
    env.file("with space & grün%.md", "# hello\n");
    env.file("image.bin", b"\x89PNG\r\n\x1a\n\xff");
    env.file("big.txt", "x".repeat(1024 * 1024 + 1));
    let root = env.path("").canonicalize().unwrap();
    let path = |name: &str| root.join(name).display().to_string();
    let text = read_one(&env, &path("with space & grün%.md"))
        .await
        .unwrap();
    assert!(
        matches!(&text, ResourceContents::TextResourceContents { text, mime_type, .. }
            if text == "# hello\n" && mime_type.as_deref() == Some("text/markdown")),
        "{text:?}"
    );
    let blob = read_one(&env, &path("image.bin")).await.unwrap();
    assert!(
        matches!(&blob, ResourceContents::BlobResourceContents { blob, mime_type, .. }
            if STANDARD.decode(blob).unwrap() == b"\x89PNG\r\n\x1a\n\xff" && mime_type.as_deref() == Some("image/png")),
        "{blob:?}"
    );
    let error = read_one(&env, &path("big.txt")).await.unwrap_err();
    assert!(error.message.contains("Read"), "{error:?}");
    assert_eq!(
        templates(&env.tool_state).resource_templates[0].uri_template,
        "file://{+path}"
    );
}

#[tokio::test]
async fn what_is_outside_does_not_exist() {
    let env = TestEnv::new();
    std::fs::write(env.folder.path().join("secret"), "x").unwrap();
    symlink("../secret", env.path("link")).unwrap();
    let inside = env.path("link").display().to_string();
    let outside = env.folder.path().join("secret").display().to_string();
    let around = env.path("../secret").display().to_string();
    for path in [
        inside.as_str(),
        &outside,
        &around,
        "/etc/passwd",
        &env.path("missing").display().to_string(),
    ] {
        let error = read_one(&env, path).await.unwrap_err();
        assert_eq!(
            error,
            ErrorData::resource_not_found(format!("{} does not exist", uri(path)), None)
        );
    }
    for wrong in [
        "",
        "file://",
        "http://x/y",
        "file://host/etc/passwd",
        "file:///%zz",
        "file:///%ff",
        "file:///a%00b",
        "file:///%",
    ] {
        assert!(read(&env.tool_state, wrong).await.is_err(), "{wrong}");
    }
}
