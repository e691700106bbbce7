//! Resources of a real folder.

use std::os::unix::fs::symlink;

use rmcp::model::{PaginatedRequestParams, ReadResourceResponse, ResourceContents};

use super::*;
use crate::files::testing::Bench;

async fn read_one(bench: &Bench, path: &str) -> Result<ResourceContents, ErrorData> {
    let address = uri(path);
    match read(&bench.workshop, &address).await? {
        ReadResourceResponse::Complete(result) => Ok(result.contents.into_iter().next().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_file_is_listed_once_over_the_pages() {
    let bench = Bench::new();
    for number in 0..120 {
        bench.file(&format!("a/{number}.txt"), "x");
        bench.file(&format!("a.{number}"), "x");
    }
    bench.file(".hidden", "x");
    bench.file("target/made", "x");
    bench.file(".gitignore", "target/\n");
    symlink("/etc", bench.path("etc")).unwrap();
    bench.file(&format!("{}x", "deep/".repeat(MAX_DEPTH + 1)), "x");
    let (mut names, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let mut request = PaginatedRequestParams::default();
        request.cursor = cursor;
        let page = list(&bench.workshop, Some(request)).await.unwrap();
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
    assert!(list(&bench.workshop, Some(wrong)).await.is_err());
}

#[test]
fn what_was_not_looked_at_in_time_is_not_taken_for_the_end() {
    let bench = Bench::new();
    for number in 0..3 {
        bench.file(&format!("{number}.txt"), "x");
    }
    let cancelled = CancellationToken::new();
    let bounds = Bounds::new(&cancelled, TIME);
    let (three, end) = page(&bench.workshop.workspace, None, &bounds).unwrap();
    assert_eq!((three.len(), end), (3, End::Whole));
    assert_eq!(told(three.clone(), end).unwrap().next_cursor, None);
    let late = told(three, End::Late).unwrap();
    assert_eq!(late.resources.len(), 3);
    assert_eq!(
        after(&late.next_cursor.unwrap()).unwrap(),
        PathBuf::from("2.txt")
    );
    cancelled.cancel();
    let (none, end) = page(&bench.workshop.workspace, None, &bounds).unwrap();
    let problem = told(none, end).unwrap_err();
    assert!(problem.to_string().contains("Glob"), "{problem}");
}

#[tokio::test]
async fn text_and_bytes_are_read_up_to_a_limit() {
    let bench = Bench::new();
    bench.file("with space & grün%.md", "# hello\n");
    bench.file("image.bin", b"\x89PNG\r\n\x1a\n\xff");
    bench.file("big.txt", "x".repeat(1024 * 1024 + 1));
    let root = bench.path("").canonicalize().unwrap();
    let path = |name: &str| root.join(name).display().to_string();
    let text = read_one(&bench, &path("with space & grün%.md"))
        .await
        .unwrap();
    assert!(
        matches!(&text, ResourceContents::TextResourceContents { text, mime_type, .. }
            if text == "# hello\n" && mime_type.as_deref() == Some("text/markdown")),
        "{text:?}"
    );
    let blob = read_one(&bench, &path("image.bin")).await.unwrap();
    assert!(
        matches!(&blob, ResourceContents::BlobResourceContents { blob, mime_type, .. }
            if STANDARD.decode(blob).unwrap() == b"\x89PNG\r\n\x1a\n\xff" && mime_type.as_deref() == Some("image/png")),
        "{blob:?}"
    );
    let error = read_one(&bench, &path("big.txt")).await.unwrap_err();
    assert!(error.message.contains("Read"), "{error:?}");
    assert_eq!(
        templates(&bench.workshop).resource_templates[0].uri_template,
        "file://{+path}"
    );
}

#[tokio::test]
async fn what_is_outside_does_not_exist() {
    let bench = Bench::new();
    std::fs::write(bench.folder.path().join("secret"), "x").unwrap();
    symlink("../secret", bench.path("link")).unwrap();
    let inside = bench.path("link").display().to_string();
    let outside = bench.folder.path().join("secret").display().to_string();
    let around = bench.path("../secret").display().to_string();
    for path in [
        inside.as_str(),
        &outside,
        &around,
        "/etc/passwd",
        &bench.path("missing").display().to_string(),
    ] {
        let error = read_one(&bench, path).await.unwrap_err();
        assert_eq!(
            error,
            ErrorData::resource_not_found(format!("there is no {}", uri(path)), None)
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
        assert!(read(&bench.workshop, wrong).await.is_err(), "{wrong}");
    }
}
