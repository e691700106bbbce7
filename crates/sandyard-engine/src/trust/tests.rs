//! Layers for templates of all kinds, on folders of this test's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandyard_template::{Kind, Owners, Part, Template};

use super::*;

const CERTIFICATE: &str = include_str!("test_certificate.pem");
const COMPANY: &str = include_str!("../../tests/it/other.pem");
const HASHED: &str = "etc/ssl/certs/f7ebe0a2.0";

struct TestEnv {
    folder: tempfile::TempDir,
    data: DataDir,
}

impl TestEnv {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::new(folder.path().join("data"));
        data.create().expect("a data directory");
        let gateway = folder.path().join("data/gateway");
        fs::create_dir(&gateway).expect("a folder");
        fs::write(gateway.join("ca.pem"), CERTIFICATE).expect("write");
        Self { folder, data }
    }

    /// A template of one layer for `/`, and one for `/usr` if there is a folder of that name beside it.
    fn template(&self, files: &[(&str, &str)]) -> Template {
        let root = self.folder.path().join("root");
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            match text.strip_prefix("-> ") {
                Some(target) => symlink(target, path).expect("link"),
                None => fs::write(path, text).expect("write"),
            }
        }
        let part = |target: &str, key: &str, layer: PathBuf| Part {
            target: target.into(),
            key: key.into(),
            layers: vec![layer],
        };
        let usr = self.folder.path().join("usr");
        let mut parts = vec![part("/", "root", root)];
        parts.extend(usr.is_dir().then(|| part("/usr", "usr", usr)));
        Template {
            name: "t".into(),
            kind: Kind::Imported,
            created_unix_ms: 0,
            defaults: sandyard_template::Defaults::default(),
            size_bytes: None,
            parts,
        }
    }

    fn prepare(&self, template: &Template) -> Option<Trust> {
        Trust::prepare(&self.data, template, Owners::of_this_process()).expect("prepare")
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(fs::read_link(self.data.run()).unwrap_or(self.data.run()));
    }
}

/// The files of a tree, sorted.
fn files(tree: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("list").flatten() {
            if entry.file_type().expect("kind").is_dir() {
                folders.push(entry.path());
                continue;
            }
            let name = entry
                .path()
                .strip_prefix(tree)
                .expect("inside")
                .display()
                .to_string();
            found.push((name, fs::read_to_string(entry.path()).expect("read")));
        }
    }
    found.sort();
    found
}

fn expected(lists: &[(&str, &str)], other_pem: &[&str]) -> Vec<(String, String)> {
    let lists = lists
        .iter()
        .map(|(name, own)| ((*name).to_owned(), format!("{own}{CERTIFICATE}")));
    let singles = ["etc/ssl/certs/sandyard-gateway.pem", HASHED]
        .into_iter()
        .chain(other_pem.iter().copied());
    let policies = plan::POLICIES.map(|folder| {
        let path = format!("{folder}/{}", plan::POLICY_NAME);
        (path.trim_start_matches('/').to_owned(), policy())
    });
    let mut all: Vec<_> = lists
        .chain(singles.map(|name| (name.to_owned(), CERTIFICATE.to_owned())))
        .chain(policies)
        .collect();
    all.sort();
    all
}

/// The policy with the certificate, which has nothing of its text but the lines in the middle.
fn policy() -> String {
    let lines: String = CERTIFICATE
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    format!("{{\"CACertificates\": [\"{lines}\"]}}\n")
}

const LOCAL: &str = "usr/local/share/ca-certificates/sandyard-gateway.crt";
const DEFAULT_PATH: &str = "etc/ssl/certs/ca-certificates.crt";

#[test]
fn a_list_is_kept_and_added_to() {
    let env = TestEnv::new();
    let template = env.template(&[(DEFAULT_PATH, "theirs\n"), ("usr/bin/x", "")]);
    let trust = env.prepare(&template).expect("a layer");
    assert!(trust.record.has_bundle);
    assert_eq!(
        files(&trust.tree),
        expected(&[(DEFAULT_PATH, "theirs\n")], &[LOCAL])
    );
    let content = trust.over(&template);
    assert_eq!(content.parts[0].layers.len(), 2);
    assert_eq!(content.parts[0].layers[0], trust.tree);
    // Made once; and anew for another list or another certificate.
    assert_eq!(env.prepare(&template).expect("a layer").tree, trust.tree);
    let list = template.parts[0].layers[0].join(DEFAULT_PATH);
    fs::write(&list, "others").expect("write");
    let other = env.prepare(&template).expect("a layer");
    assert_ne!(other.tree, trust.tree);
    assert_eq!(
        files(&other.tree),
        expected(&[(DEFAULT_PATH, "others\n")], &[LOCAL])
    );
    let before = fingerprint(&env.data);
    fs::remove_file(env.data.gateway_certificate()).expect("remove");
    assert!(env.prepare(&template).is_none());
    assert_ne!(fingerprint(&env.data), before);
}

#[test]
fn certificates_of_the_operator_are_trusted_too() {
    let env = TestEnv::new();
    let template = env.template(&[(DEFAULT_PATH, "theirs\n")]);
    let before = fingerprint(&env.data);
    let company = format!("# Company\n{COMPANY}{CERTIFICATE}");
    fs::write(env.data.sandbox_certificates(), company).expect("write");
    assert_ne!(fingerprint(&env.data), before);
    let trust = env.prepare(&template).expect("a layer");
    let files: std::collections::BTreeMap<_, _> = files(&trust.tree).into_iter().collect();
    assert_eq!(
        files[DEFAULT_PATH],
        format!("theirs\n{CERTIFICATE}{COMPANY}")
    );
    assert_eq!(
        files["etc/ssl/certs/sandyard-gateway.pem"],
        format!("{CERTIFICATE}{COMPANY}")
    );
    assert_eq!(files[HASHED], CERTIFICATE);
    let hashed = files.iter().filter(|(path, _)| path.ends_with(".0"));
    assert_eq!(hashed.filter(|(_, text)| *text == COMPANY).count(), 1);
    let policy = &files["etc/chromium/policies/managed/00-sandyard-gateway.json"];
    let policy: serde_json::Value = serde_json::from_str(policy).expect("JSON");
    assert_eq!(policy["CACertificates"].as_array().map(Vec::len), Some(2));
}

#[test]
fn without_a_list_there_is_our_certificate_alone() {
    let env = TestEnv::new();
    let trust = env
        .prepare(&env.template(&[("etc/passwd", "")]))
        .expect("a layer");
    assert!(!trust.record.has_bundle);
    assert_eq!(files(&trust.tree), expected(&[], &[]));
}

#[test]
fn links_are_left_and_what_they_lead_to_is_added_to() {
    let env = TestEnv::new();
    let real = "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";
    let template = env.template(&[
        (real, "theirs\n"),
        (
            "etc/pki/tls/certs/ca-bundle.crt",
            "-> /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        ),
        ("etc/ssl/certs", "-> ../pki/tls/certs"),
    ]);
    let trust = env.prepare(&template).expect("a layer");
    let moved: Vec<_> = expected(&[(DEFAULT_PATH, "theirs\n")], &[])
        .into_iter()
        .map(|(name, text)| (name.replace("etc/ssl/certs", "etc/pki/tls/certs"), text))
        .chain(
            expected(&[(real, "theirs\n")], &[])
                .into_iter()
                .filter(|(name, _)| name == real),
        )
        .collect();
    let mut moved = moved;
    moved.sort();
    assert_eq!(files(&trust.tree), moved);
}

#[test]
fn a_list_in_another_part_is_read_and_left_there() {
    let env = TestEnv::new();
    let usr = env.folder.path().join("usr/share");
    fs::create_dir_all(&usr).expect("mkdir");
    fs::write(usr.join("list"), "theirs\n").expect("write");
    let template = env.template(&[(DEFAULT_PATH, "-> /usr/share/list")]);
    let trust = env.prepare(&template).expect("a layer");
    assert_eq!(
        files(&trust.tree),
        expected(&[(DEFAULT_PATH, "theirs\n")], &[])
    );
}

#[test]
fn a_file_where_browsers_have_a_folder_costs_their_policy_only() {
    let env = TestEnv::new();
    let template = env.template(&[("etc/chromium", "a file"), (DEFAULT_PATH, "theirs\n")]);
    let trust = env.prepare(&template).expect("a layer");
    let mut other_pem = expected(&[(DEFAULT_PATH, "theirs\n")], &[]);
    other_pem.retain(|(name, _)| !name.starts_with("etc/chromium/"));
    assert_eq!(files(&trust.tree), other_pem);
}

#[test]
fn two_browsers_that_share_a_folder_get_one_policy() {
    let env = TestEnv::new();
    let link = ("etc/opt/chrome/policies", "-> /etc/chromium/policies");
    let template = env.template(&[link, (DEFAULT_PATH, "theirs\n")]);
    let trust = env.prepare(&template).expect("a layer");
    let mut other_pem = expected(&[(DEFAULT_PATH, "theirs\n")], &[]);
    other_pem.retain(|(name, _)| !name.starts_with("etc/opt/chrome/"));
    assert_eq!(files(&trust.tree), other_pem);
}

#[test]
fn folders_are_as_the_template_has_them() {
    let env = TestEnv::new();
    let template = env.template(&[(DEFAULT_PATH, "theirs\n")]);
    let root = &template.parts[0].layers[0];
    let mode = |path: &Path| fs::metadata(path).expect("stat").permissions().mode() & 0o7777;
    for (path, mode) in [
        ("etc", 0o711),
        ("etc/ssl", 0o1775),
        ("etc/ssl/certs", 0o555),
    ] {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let trust = env.prepare(&template).expect("a layer");
    let modes =
        ["etc", "etc/ssl", "etc/ssl/certs", DEFAULT_PATH].map(|path| mode(&trust.tree.join(path)));
    assert_eq!(modes, [0o711, 0o1775, 0o555, 0o644]);
}

#[test]
fn a_template_that_holds_our_certificate_does_not_get_it_twice() {
    let env = TestEnv::new();
    let template = env.template(&[(DEFAULT_PATH, CERTIFICATE)]);
    let trust = env.prepare(&template).expect("a layer");
    assert_eq!(files(&trust.tree), expected(&[(DEFAULT_PATH, "")], &[]));
}

#[test]
fn a_blocking_file_is_reported_and_a_root_without_etc_needs_nothing() {
    let env = TestEnv::new();
    let template = env.template(&[("bin/x", "")]);
    assert!(env.prepare(&template).is_none());
    let template = env.template(&[("etc/ssl", "a file")]);
    let refused = Trust::prepare(&env.data, &template, Owners::of_this_process());
    assert!(
        refused
            .expect_err("a file")
            .message
            .contains("not a folder")
    );
}

#[test]
fn only_the_certificate_of_a_file_gets_inside() {
    let env = TestEnv::new();
    let key = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n";
    fs::write(
        env.data.gateway_certificate(),
        format!("{key}{CERTIFICATE}{key}"),
    )
    .expect("write");
    let trust = env
        .prepare(&env.template(&[("etc/x", "")]))
        .expect("a layer");
    assert_eq!(files(&trust.tree), expected(&[], &[]));
    fs::write(env.data.gateway_certificate(), key).expect("write");
    let refused = Trust::prepare(&env.data, &env.template(&[]), Owners::of_this_process());
    assert!(
        !refused
            .expect_err("no certificate")
            .message
            .contains("secret")
    );
}

#[test]
fn variables_name_the_list_only_where_there_is_one() {
    let names = |record: Option<&TrustRecord>| -> Vec<_> {
        variables(record).map(|(name, _)| name).collect()
    };
    let record = |has_bundle| TrustRecord {
        layer: "x".into(),
        has_bundle,
    };
    assert_eq!(names(None), [""; 0]);
    assert_eq!(
        names(Some(&record(false))),
        ["NODE_EXTRA_CA_CERTS", "DENO_CERT"]
    );
    assert_eq!(names(Some(&record(true))).len(), 4);
}
