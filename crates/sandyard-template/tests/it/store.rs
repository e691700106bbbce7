//! The store: names, lists, removal, sweeping, crashes, several processes at once.

use std::fs;
use std::time::Duration;

use sandyard_template::{ImportOptions, Kind, Store, SweepOptions, TemplateError};

use crate::support::{TestStore, names, owners, write};

#[test]
fn a_template_is_found_listed_and_removed() {
    let mut test = TestStore::new();
    // The one test that waits for the disk, as everybody else does.
    test.store = Store::open(&test.path("data")).expect("open");
    write(test.path("tree/hello"), "hi");
    let template = test.import("mine", &test.path("tree"));
    assert_eq!(template.kind, Kind::Imported);
    assert_eq!(test.store.get("mine").expect("get"), Some(template.clone()));
    assert_eq!(
        test.store.list().expect("list"),
        std::slice::from_ref(&template)
    );
    assert_eq!(
        fs::read(template.parts[0].layers[0].join("hello")).expect("read"),
        b"hi"
    );

    assert!(test.store.remove("mine").expect("remove"));
    assert!(!test.store.remove("mine").expect("remove again"));
    assert_eq!(test.store.get("mine").expect("get"), None);
    assert!(test.store.list().expect("list").is_empty());
}

#[test]
fn names_that_are_paths_are_refused_everywhere() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    write(test.path("data/secret.json"), "{}");
    for name in ["../secret", "..", "a/b", "/etc/passwd", "", ".lock", "x\0y"] {
        let bad = |result: Result<(), TemplateError>| {
            assert!(
                matches!(result, Err(TemplateError::BadName { .. })),
                "{name:?}: {result:?}"
            );
        };
        bad(test.store.get(name).map(drop));
        bad(test.store.remove(name).map(drop));
        bad(test
            .store
            .import_tree(name, &test.path("tree"), ImportOptions::new(owners()))
            .map(drop));
        bad(test
            .store
            .import_tar(name, &b""[..], ImportOptions::new(owners()))
            .map(drop));
    }
    assert!(test.path("data/secret.json").exists());
    assert!(test.layer_names().is_empty());
}

#[test]
fn the_hosts_name_is_reserved() {
    let test = TestStore::new();
    let result = test
        .store
        .import_tree("host", test.temp.path(), ImportOptions::new(owners()));
    assert!(matches!(result, Err(TemplateError::ReservedName { .. })));
}

#[test]
fn an_existing_template_is_replaced_only_on_request() {
    let test = TestStore::new();
    write(test.path("one/file"), "1");
    write(test.path("two/file"), "2");
    let first = test.import("mine", &test.path("one"));
    let refused = test
        .store
        .import_tree("mine", &test.path("two"), ImportOptions::new(owners()));
    assert!(matches!(refused, Err(TemplateError::Exists { .. })));
    assert_eq!(test.layer_names().len(), 1);

    let mut options = ImportOptions::new(owners());
    options.replace = true;
    let second = test
        .store
        .import_tree("mine", &test.path("two"), options)
        .expect("replace")
        .template;
    // The old layer stays for those who stand on it, until swept.
    assert!(first.parts[0].layers[0].join("file").exists());
    assert_eq!(test.sweep_all().len(), 1);
    assert!(!first.parts[0].layers[0].exists());
    assert!(second.parts[0].layers[0].join("file").exists());
}

#[test]
fn a_sweep_spares_what_is_named_used_or_young() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    let published = test.import("kept", &test.path("tree"));
    let used = test.import("used", &test.path("tree"));
    test.import("unused", &test.path("tree"));
    test.store.remove("used").expect("remove");
    test.store.remove("unused").expect("remove");

    let young = SweepOptions::default();
    assert!(test.store.sweep(&young).expect("sweep").layers.is_empty());
    let options = SweepOptions {
        older_than: Duration::ZERO,
        in_use: used.layers().map(Into::into).collect(),
    };
    let swept = test.store.sweep(&options).expect("sweep");
    assert_eq!(swept.layers.len(), 1);
    assert!(swept.layers[0].starts_with("unused-"));
    for template in [&published, &used] {
        assert!(template.parts[0].layers[0].join("x").exists());
    }
}

#[test]
fn removal_makes_layers_young_again() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    let template = test.import("old", &test.path("tree"));
    let layer = template.parts[0].layers[0]
        .parent()
        .expect("wrapper")
        .to_owned();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(86_400);
    fs::File::open(&layer)
        .expect("open")
        .set_modified(long_ago)
        .expect("age");
    test.store.remove("old").expect("remove");
    let hour = SweepOptions {
        older_than: Duration::from_secs(3600),
        in_use: Vec::new(),
    };
    assert!(test.store.sweep(&hour).expect("sweep").layers.is_empty());
    fs::File::open(&layer)
        .expect("open")
        .set_modified(long_ago)
        .expect("age");
    assert_eq!(test.store.sweep(&hour).expect("sweep").layers.len(), 1);
}

#[test]
fn a_layer_being_filled_is_not_swept() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    let store = test.store.clone();
    let mut swept = Vec::new();
    let mut on_progress = |_| {
        let options = SweepOptions {
            older_than: Duration::ZERO,
            in_use: Vec::new(),
        };
        swept.extend(store.sweep(&options).expect("sweep").layers);
        std::ops::ControlFlow::Continue(())
    };
    let mut options = ImportOptions::new(owners());
    options.on_progress = Some(&mut on_progress);
    test.store
        .import_tree("mine", &test.path("tree"), options)
        .expect("import");
    assert!(swept.is_empty());
    assert!(test.sweep_all().is_empty());
}

#[test]
fn what_a_killed_import_leaves_is_swept() {
    let test = TestStore::new();
    // What a process killed in the middle leaves: an unlocked layer no manifest names, a manifest half written, a layer
    // condemned but not yet gone.
    write(
        test.path("data/layers/dead-0123456789ab/tree/etc/passwd"),
        "x",
    );
    write(
        test.path("data/layers/.trash-0123456789ab/tree/etc/passwd"),
        "x",
    );
    write(test.path("data/templates/.tmp-0123456789ab"), "{");
    assert_eq!(test.store.list().expect("list"), []);
    assert_eq!(test.sweep_all(), ["dead-0123456789ab"]);
    assert!(test.layer_names().is_empty());
    assert_eq!(names(&test.path("data/templates")), [".lock"]);
}

#[test]
fn a_killed_process_leaves_nothing_after_a_sweep() {
    // The same with a real kill: the child imports from a pipe that never ends.
    let test = TestStore::new();
    let root = test.path("data");
    if let Ok(root) = std::env::var("SANDYARD_TEST_IMPORT_FROM_STDIN") {
        let store = Store::open(root.as_ref()).expect("open");
        let _ = store.import_tar("victim", std::io::stdin(), ImportOptions::new(owners()));
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("exe"))
        .args([
            "--exact",
            "store::a_killed_process_leaves_nothing_after_a_sweep",
        ])
        .env("SANDYARD_TEST_IMPORT_FROM_STDIN", &root)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("spawn");
    let mut archive = tar::Builder::new(child.stdin.take().expect("stdin"));
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    for index in 0..200 {
        let data = &b"abc"[..];
        archive
            .append_data(&mut header, format!("file{index}"), data)
            .expect("append");
    }
    std::io::Write::flush(archive.get_mut()).expect("flush");
    // It is in the middle once a file is there.
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    let tree = loop {
        let layer = test
            .layer_names()
            .pop()
            .map(|name| test.path("data/layers").join(name).join("tree"));
        if let Some(tree) = layer.filter(|tree| tree.join("file0").exists()) {
            break tree;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "the import did not begin"
        );
        std::thread::yield_now();
    };
    assert!(test.sweep_all().is_empty(), "it is being filled");
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(tree.exists());
    assert_eq!(test.sweep_all().len(), 1);
    assert!(test.layer_names().is_empty());
    assert_eq!(test.store.list().expect("list"), []);
    drop(archive);
}

#[test]
fn a_broken_manifest_stops_sweeping() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    let template = test.import("mine", &test.path("tree"));
    write(test.path("data/templates/mine.json"), "{\"format\":1,");
    let result = test.store.sweep(&SweepOptions {
        older_than: Duration::ZERO,
        in_use: Vec::new(),
    });
    assert!(matches!(result, Err(TemplateError::Manifest { .. })));
    assert!(template.parts[0].layers[0].exists());
}

#[test]
fn the_data_directory_may_move() {
    let test = TestStore::new();
    write(test.path("tree/x"), "x");
    test.import("mine", &test.path("tree"));
    fs::rename(test.path("data"), test.path("moved")).expect("rename");
    let store = Store::open(&test.path("moved")).expect("open");
    let template = store.get("mine").expect("get").expect("there");
    assert!(template.parts[0].layers[0].starts_with(test.path("moved")));
    assert!(template.parts[0].layers[0].join("x").exists());
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let test = TestStore::new();
    for index in 0..20 {
        write(test.path(&format!("tree/file{index}")), "x");
    }
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (test, store) = (&test, test.store.clone());
            scope.spawn(move || {
                for round in 0..5 {
                    let name = format!("w{worker}");
                    let mut options = ImportOptions::new(owners());
                    options.replace = true;
                    let made = store
                        .import_tree(&name, &test.path("tree"), options)
                        .expect("import");
                    assert!(
                        made.template.parts[0].layers[0].join("file7").exists(),
                        "round {round}"
                    );
                    test.sweep_all();
                    store.list().expect("list");
                }
            });
        }
    });
    test.sweep_all();
    assert_eq!(test.store.list().expect("list").len(), 8);
    assert_eq!(test.layer_names().len(), 8);
}
