//! `sandyard cp`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::{Server, stderr_of};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Bytes that no buffer holds at once and no text reader takes.
fn content() -> Vec<u8> {
    (0..(5_u32 << 20))
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

#[test]
fn a_file_is_copied_in_and_out() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let here = server.env().path();
    let source = here.join("source.bin");
    fs::write(&source, content()).expect("write");
    server.out(&["cp", text(&source), &format!("{id}:dir/copy.bin")]);
    let printed = server.json(&["cp", "--json", &format!("{id}:dir/copy.bin"), text(here)]);
    assert_eq!(printed["bytes"], 5 << 20);
    assert_eq!(fs::read(here.join("copy.bin")).expect("read"), content());
    server.out(&["cp", text(&source), &format!("{id}:dir")]);
    server.out(&["files", "stat", &id, "dir/source.bin"]);
    fs::write(here.join("empty"), "").expect("write");
    server.out(&["cp", text(&here.join("empty")), &format!("{id}:")]);
    assert_eq!(
        server.json(&["files", "stat", &id, "empty", "--json"])["size"],
        0
    );
}

#[test]
fn a_directory_is_copied_in_and_out() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let here = server.env().path();
    let source = here.join("tree");
    fs::create_dir_all(source.join("a/b")).expect("make");
    fs::write(source.join("a/b/c"), content()).expect("write");
    std::os::unix::fs::symlink("a/b/c", source.join("link")).expect("link");
    server.out(&["cp", text(&source), &format!("{id}:there")]);
    // It is there now, so the next one goes into it.
    server.out(&["cp", text(&source), &format!("{id}:there")]);
    let found = server.out(&["exec", &id, "--", "sh", "-c", "find there | sort"]);
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        [
            "there",
            "there/a",
            "there/a/b",
            "there/a/b/c",
            "there/link",
            "there/tree",
            "there/tree/a",
            "there/tree/a/b",
            "there/tree/a/b/c",
            "there/tree/link",
        ]
    );
    let back = here.join("back");
    server.out(&["cp", &format!("{id}:there/tree"), text(&back)]);
    assert_eq!(fs::read(back.join("a/b/c")).expect("read"), content());
    assert_eq!(
        fs::read_link(back.join("link")).expect("a link"),
        Path::new("a/b/c")
    );
    server.out(&["cp", &format!("{id}:there/tree"), text(&back)]);
    assert!(back.join("tree/a/b/c").exists());
    let left: Vec<_> = fs::read_dir(here)
        .expect("list")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn standard_input_and_output_can_be_copied() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let source = server.env().path().join("source");
    fs::write(&source, content()).expect("write");
    let mut command = server.command(&["cp", "-", &format!("{id}:piped")]);
    let input = fs::File::open(&source).expect("open");
    assert!(command.stdin(input).status().expect("run").success());
    let output = server
        .command(&["cp", &format!("{id}:piped"), "-"])
        .stdout(Stdio::piped())
        .output()
        .expect("run");
    assert_eq!(output.stdout, content());
}

#[test]
fn a_failed_copy_leaves_nothing() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let here = server.env().path();
    let missing = server.sandyard(&["cp", &format!("{id}:nothing"), text(here)]);
    assert_eq!(missing.status.code(), Some(125));
    assert!(
        stderr_of(&missing).contains("nothing"),
        "{}",
        stderr_of(&missing)
    );
    let missing = server.sandyard(&["cp", "/no/such/file", &format!("{id}:x")]);
    assert_eq!(missing.status.code(), Some(125));
    let folder = server.sandyard(&["cp", &format!("{id}:/etc"), "-"]);
    assert!(
        stderr_of(&folder).contains("is a directory"),
        "{}",
        stderr_of(&folder)
    );
}

#[test]
fn a_copy_belongs_to_the_user_option() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let owner = |path: &str| {
        let entry = server.json(&["files", "stat", &id, path, "--json"]);
        entry["owner"].as_str().expect("a name").to_owned()
    };
    server.out(&["cp", "/etc/hostname", &format!("{id}:mine")]);
    assert_eq!(owner("/home/user/mine"), "user");
    server.out(&[
        "cp",
        "--user",
        "root",
        "/etc/hostname",
        &format!("{id}:its"),
    ]);
    assert_eq!(owner("/root/its"), "root");
}

#[test]
fn several_sources_are_copied_into_a_directory() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let here = server.env().path();
    fs::create_dir(here.join("tree")).expect("make");
    for name in ["one", "two", "tree/three"] {
        fs::write(here.join(name), name).expect("write");
    }
    let [one, two, tree] = ["one", "two", "tree"].map(|name| here.join(name));
    let target = format!("{id}:all");
    server.out(&["cp", "-r", text(&one), text(&two), text(&tree), &target]);
    assert_eq!(
        server.out(&[
            "exec",
            &id,
            "--",
            "cat",
            "all/one",
            "all/two",
            "all/tree/three"
        ]),
        "onetwotree/three"
    );
    let back = here.join("back");
    let sources = [format!("{id}:all/one"), format!("{id}:all/tree")];
    let refused = server.sandyard(&["cp", &sources[0], &sources[1], text(&back)]);
    assert!(
        stderr_of(&refused).contains("existing directory"),
        "{}",
        stderr_of(&refused)
    );
    fs::create_dir(&back).expect("make");
    server.out(&["cp", &sources[0], &sources[1], text(&back)]);
    assert_eq!(
        fs::read(back.join("tree/three")).expect("read"),
        b"tree/three"
    );
}

#[test]
fn files_and_directories_are_copied_between_sandboxes() {
    let server = Server::start();
    let (from, to) = (server.out(&["create"]), server.out(&["create"]));
    let script = "mkdir -p data/deep && echo inside > data/deep/file && ln -s deep/file data/link";
    server.out(&["exec", &from, "--", "sh", "-c", script]);
    server.out(&[
        "cp",
        &format!("{from}:data/deep/file"),
        &format!("{to}:copied"),
    ]);
    assert_eq!(server.out(&["files", "cat", &to, "copied"]), "inside");
    // A new name, and then into the directory that exists.
    for _ in 0..2 {
        server.out(&["cp", &format!("{from}:data"), &format!("{to}:other")]);
    }
    assert_eq!(
        server.out(&["exec", &to, "--", "cat", "other/link", "other/data/link"]),
        "inside\ninside"
    );
}
