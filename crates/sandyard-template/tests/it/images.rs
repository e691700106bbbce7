//! Imports of images, as `docker save` and OCI tools write them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use sandyard_template::{ImportOptions, Imported, TemplateError};
use sha2::{Digest, Sha256};

use crate::archives::Tar;
use crate::support::{Overlay, TestStore, as_root, mode, names, owners, read};

fn import(test: &TestStore, name: &str, archive: &Tar) -> Result<Imported, TemplateError> {
    let bytes = archive.finish();
    test.store
        .import_tar(name, &*bytes, ImportOptions::new(owners()))
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn configuration(architecture: &str, layers: &[Vec<u8>]) -> String {
    let ids: Vec<_> = layers.iter().map(|layer| digest(layer)).collect();
    let config = serde_json::json!({"Env": ["PATH=/opt/it's:/bin", "EMPTY=", "=bad"], "WorkingDir": "/app", "Cmd": null});
    let rootfs = serde_json::json!({"type": "layers", "diff_ids": ids});
    serde_json::json!({"architecture": architecture, "os": "linux", "config": config, "rootfs": rootfs}).to_string()
}

/// As `docker save` did before it wrote OCI's layout: folders with `layer.tar`, and `manifest.json` at the end.
fn saved(layers: &[Vec<u8>]) -> Tar {
    saved_for(architecture(), layers)
}

fn saved_for(architecture: &str, layers: &[Vec<u8>]) -> Tar {
    let mut tar = Tar::default();
    let configuration = configuration(architecture, layers);
    let name = format!("{}.json", &digest(configuration.as_bytes())[7..]);
    let mut paths = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let path = format!("{}/layer.tar", &digest(&[number as u8])[7..]);
        tar.bytes(&path, layer);
        paths.push(path);
    }
    tar.file(&name, &configuration);
    let manifest = serde_json::json!([{"Config": name, "RepoTags": ["app:1"], "Layers": paths}]);
    tar.file("manifest.json", &manifest.to_string());
    tar
}

/// Adds a blob and returns its descriptor.
fn blob(tar: &mut Tar, media_type: &str, content: &[u8]) -> serde_json::Value {
    let digest = digest(content);
    tar.bytes(&format!("blobs/sha256/{}", &digest[7..]), content);
    serde_json::json!({"mediaType": media_type, "digest": digest, "size": content.len()})
}

/// OCI's layout as buildx exports it: an index in the index, with an attestation beside the image.
fn layout(layers: &[Vec<u8>]) -> Tar {
    let mut tar = Tar::default();
    tar.dir("blobs/", 0o755).dir("blobs/sha256/", 0o755);
    let compressed: Vec<_> = layers
        .iter()
        .map(|layer| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(layer).expect("gzip");
            let bytes = gzip.finish().expect("gzip");
            blob(
                &mut tar,
                "application/vnd.oci.image.layer.v1.tar+gzip",
                &bytes,
            )
        })
        .collect();
    let configuration = configuration(architecture(), layers);
    let config = blob(
        &mut tar,
        "application/vnd.oci.image.config.v1+json",
        configuration.as_bytes(),
    );
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": compressed}).to_string();
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let mut image = blob(&mut tar, manifest_type, manifest.as_bytes());
    image["platform"] =
        serde_json::json!({"architecture": architecture(), "os": "linux", "variant": "v8"});
    let mut attestation = blob(&mut tar, manifest_type, b"{}");
    attestation["platform"] = serde_json::json!({"architecture": "unknown", "os": "unknown"});
    let inner =
        serde_json::json!({"schemaVersion": 2, "manifests": [image, attestation]}).to_string();
    let inner = blob(
        &mut tar,
        "application/vnd.oci.image.index.v1+json",
        inner.as_bytes(),
    );
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [inner]}).to_string();
    tar.file("index.json", &index);
    tar.file("oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#);
    tar
}

/// A base with files, and a layer that changes, deletes and replaces some of them.
fn layers() -> Vec<Vec<u8>> {
    let mut base = Tar::default();
    base.dir("etc", 0o755)
        .file("etc/passwd", "root:x:0:0::/root:/bin/sh\n")
        .file("etc/kept", "base")
        .file("etc/changed", "base")
        .file("etc/deleted", "base")
        .dir("emptied", 0o700)
        .file("emptied/old", "base")
        .dir("replaced", 0o755)
        .file("replaced/old", "base")
        .file("became-a-directory", "base")
        .dir("bin", 0o755)
        .file("bin/sh", "#!");
    let mut top = Tar::default();
    top.dir("etc", 0o755)
        .file("etc/changed", "top")
        .file("etc/.wh.deleted", "")
        .dir("emptied", 0o700)
        .file("emptied/.wh..wh..opq", "")
        .file("emptied/new", "top")
        .file(".wh.replaced", "")
        .dir("replaced", 0o750)
        .file("replaced/new", "top")
        .dir("became-a-directory", 0o755)
        .file("became-a-directory/inside", "top")
        .file(".wh..wh.plnk", "notes of AUFS");
    vec![base.finish(), top.finish()]
}

fn check_merged(imported: &Imported, disk: &Path) {
    let defaults = &imported.template.defaults;
    let variables = [("EMPTY", ""), ("PATH", "/opt/it's:/bin")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(defaults.env, variables.into());
    assert_eq!(defaults.workdir.as_deref(), Some("/app"));
    let part = &imported.template.parts[0];
    assert_eq!(part.layers.len(), 3, "the template's own on top");
    let root = Overlay::of(part, disk);
    assert_eq!(read(root.path("etc/kept")), "base");
    assert_eq!(read(root.path("etc/changed")), "top");
    assert_eq!(names(&root.path("emptied")), ["new"]);
    assert_eq!(names(&root.path("replaced")), ["new"]);
    assert_eq!(read(root.path("became-a-directory/inside")), "top");
    assert!(!names(&root.path("etc")).contains(&"deleted".to_owned()));
    assert!(
        !names(&root.path(""))
            .iter()
            .any(|name| name.starts_with(".wh"))
    );
    assert_eq!(
        (mode(root.path("emptied")), mode(root.path("replaced"))),
        (0o700, 0o750)
    );
    let accounts = read(root.path("etc/passwd"));
    assert!(
        accounts.starts_with("root:x:0:0::/root:/bin/sh\nuser:x:"),
        "{accounts}"
    );
    let profile = read(root.path("etc/profile.d/sandyard-image.sh")) + "echo $PATH";
    let mut shell = Command::new("sh");
    let shell = shell
        .args(["-c", &profile])
        .env("HOME", "/h")
        .output()
        .expect("sh");
    assert_eq!(
        String::from_utf8_lossy(&shell.stdout),
        "/h/.local/bin:/opt/it's:/bin\n"
    );
    assert!(root.path("home/user").is_dir() && root.path("workspace").is_dir());
}

#[test]
fn layers_show_what_the_image_shows() {
    as_root("images::layers_show_what_the_image_shows", || {
        let test = TestStore::new();
        let saved = import(&test, "saved", &saved(&layers())).expect("import");
        check_merged(&saved, &test.path("disk1"));
        let layout = import(&test, "layout", &layout(&layers())).expect("import");
        check_merged(&layout, &test.path("disk2"));
    });
}

#[test]
fn a_folder_in_ocis_layout_is_an_image() {
    let test = TestStore::new();
    tar::Archive::new(&*layout(&layers()).finish())
        .unpack(test.path("folder"))
        .expect("unpack");
    let imported = test
        .store
        .import_tree("folder", &test.path("folder"), ImportOptions::new(owners()))
        .expect("import");
    assert_eq!(imported.template.parts[0].layers.len(), 3);
}

#[test]
fn images_share_the_layers_they_have_in_common() {
    let test = TestStore::new();
    let mut layers = layers();
    let first = import(&test, "first", &saved(&layers)).expect("import");
    let mut third = Tar::default();
    third.file("third", "3");
    layers.push(third.finish());
    // The same layer twice shows nothing twice.
    layers.push(layers[0].clone());
    let second = import(&test, "second", &layout(&layers)).expect("import");
    let [first, second] = [first, second].map(|imported| imported.template.parts[0].layers.clone());
    assert_eq!(first.len(), 3);
    assert_eq!(second.len(), 4);
    assert_eq!(second[1], first[2], "the base, on top of the others now");
    assert_eq!(second[3], first[1]);
    assert_eq!(
        test.layer_names().len(),
        5,
        "two of the templates, three of images"
    );
    test.store.remove("first").expect("remove");
    assert_eq!(test.sweep_all().len(), 1, "the others are in use");
    test.store.remove("second").expect("remove");
    assert_eq!(test.sweep_all().len(), 4);
    assert!(test.layer_names().is_empty());
}

#[test]
fn what_is_wrong_with_an_image_is_said_and_nothing_is_left_of_it() {
    let test = TestStore::new();
    let layers = layers();
    let damaged = {
        let mut tar = Tar::default();
        let mut other = layers.clone();
        other[1] = layers[0].clone();
        let configuration = configuration(architecture(), &layers);
        tar.bytes("a.tar", &other[0]).bytes("b.tar", &other[1]);
        tar.file("config.json", &configuration);
        let manifest = serde_json::json!([{"Config": "config.json", "Layers": ["a.tar", "b.tar"]}]);
        let mut first = Tar::default();
        first.file("manifest.json", &manifest.to_string());
        first.append(&tar)
    };
    let two = {
        let mut tar = Tar::default();
        let one = serde_json::json!({"Config": "c", "Layers": []});
        tar.file("manifest.json", &serde_json::json!([one, one]).to_string());
        tar
    };
    let cut_off = {
        let mut tar = Tar::default();
        tar.dir("blobs/", 0o755).dir("blobs/sha256/", 0o755);
        tar
    };
    let outside = {
        let mut tar = Tar::default();
        let manifests =
            serde_json::json!({"manifests": [{"digest": "sha256:../../../../etc/passwd"}]});
        tar.file("index.json", &manifests.to_string());
        tar
    };
    let no_blob = {
        let mut tar = Tar::default();
        let manifests = serde_json::json!({"manifests": [{"digest": digest(b"")}]});
        tar.file("index.json", &manifests.to_string());
        tar
    };
    for (archive, expected) in [
        (damaged, "a layer is damaged: its digest is sha256:"),
        (two, "it has 2 images for linux/"),
        (cut_off, "neither `index.json` nor `manifest.json`"),
        (outside, "is not a SHA-256 digest"),
        (no_blob, "the image has no `blobs/sha256/e3b0c442"),
        (
            saved_for("mips", &layers),
            "the image is for linux/mips, this host runs linux/",
        ),
    ] {
        let error = import(&test, "bad", &archive).expect_err(expected);
        assert!(
            matches!(error, TemplateError::BadArchive { .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(expected),
            "{error} instead of {expected}"
        );
        assert!(test.store.list().expect("list").is_empty());
        test.sweep_all();
        assert!(test.layer_names().is_empty(), "{expected}");
    }
}

#[test]
fn names_of_deletions_mean_nothing_in_a_root_file_system() {
    let test = TestStore::new();
    let mut tar = Tar::default();
    tar.dir("etc", 0o755)
        .file("etc/.wh.name", "a file like any other");
    let imported = import(&test, "root", &tar).expect("import");
    let root = &imported.template.parts[0].layers[0];
    assert_eq!(read(root.join("etc/.wh.name")), "a file like any other");
}

#[test]
fn deletions_without_a_name_are_refused() {
    for name in [".wh.", ".wh..", ".wh..."] {
        let test = TestStore::new();
        let mut layer = Tar::default();
        layer.file(name, "");
        let error = import(&test, "bad", &saved(&[layer.finish()])).expect_err(name);
        assert!(
            error.to_string().contains("a deletion names no file"),
            "{error}"
        );
    }
}
