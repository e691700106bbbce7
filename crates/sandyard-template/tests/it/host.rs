//! The host template: from a host made up for the test, and from this very host.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use sandyard_template::{HostOptions, Kind, Owners, Template};

use crate::support::{TestStore, as_root, mode, owners, read, write, xattr};

/// A small host with secrets in every corner.
fn host(test: &TestStore) -> HostOptions {
    let root = test.path("host");
    for (path, text) in [
        (
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/zsh\nalice:x:1000:1000::/home/alice:/bin/bash\n_apt:x:42:65534::/:/x\n",
        ),
        ("etc/group", "root:x:0:\nshadow:x:42:\nalice:x:1000:\n"),
        ("etc/shadow", "root:$6$SECRET:1::::::\n"),
        ("etc/sudoers", "alice SECRET\n"),
        ("etc/ssh/ssh_host_rsa_key", "SECRET"),
        ("etc/npmrc", "SECRET"),
        ("etc/pip.conf", "SECRET"),
        ("etc/gitconfig", "SECRET"),
        ("etc/apt/auth.conf", "SECRET"),
        ("etc/unknown.conf", "SECRET"),
        ("etc/hosts", "10.0.0.1 SECRET\n"),
        ("etc/maven/settings.xml", "SECRET"),
        ("etc/maven/m2.conf", "public"),
        ("etc/ssl/private/key.pem", "SECRET"),
        ("etc/ssl/certs/ca.pem", "public"),
        (
            "etc/ssl/certs/both.pem",
            "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n",
        ),
        ("etc/ssl/certs/server.key", "SECRET"),
        ("etc/ssl/certs/unreadable.pem", "SECRET"),
        ("etc/python3.99/sitecustomize.py", "public"),
        ("etc/ld.so.cache", "public"),
        ("etc/services", "public"),
        ("usr/bin/python3", "elf"),
        ("usr/lib/x86_64-linux-gnu/security/pam_permit.so", "elf"),
        ("usr/local/etc/npmrc", "SECRET"),
        ("usr/local/etc/tool.conf", "public"),
        ("usr/local/etc/hidden.conf", "SECRET"),
        ("lib/real/lib.so", "elf"),
        ("home/alice/diary", "SECRET"),
        ("shim", "static program"),
    ] {
        write(root.join(path), text);
    }
    for path in ["etc/ssl/certs/unreadable.pem", "usr/local/etc/hidden.conf"] {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    symlink("usr/bin", root.join("bin")).expect("symlink");
    fs::create_dir_all(root.join("etc/alternatives")).expect("mkdir");
    fs::create_dir_all(root.join("opt")).expect("mkdir");
    symlink("/usr/bin/vim", root.join("etc/alternatives/editor")).expect("symlink");
    symlink("/home/alice/SECRET", root.join("etc/alternatives/mine")).expect("symlink");
    symlink("/usr/share/zoneinfo/UTC", root.join("etc/localtime")).expect("symlink");
    let mut options = HostOptions::new(owners());
    options.shim_program = Some(root.join("shim"));
    options.host_root = root;
    options
}

fn part<'a>(template: &'a Template, key: &str) -> &'a [PathBuf] {
    let part = template.parts.iter().find(|part| part.key == key);
    &part.unwrap_or_else(|| panic!("no part {key}")).layers
}

fn all_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("read dir") {
            let path = entry.expect("entry").path();
            if fs::symlink_metadata(&path).expect("stat").is_dir() {
                pending.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

#[test]
fn parts_follow_the_hosts_own_layout() {
    let test = TestStore::new();
    let options = host(&test);
    let template = test.store.host_template(&options).expect("template");
    assert_eq!(template.name, "host");
    assert_eq!(template.kind, Kind::Host);
    let parts: Vec<_> = template
        .parts
        .iter()
        .map(|part| (part.target.to_str(), part.key.as_str()))
        .collect();
    // `opt` is empty, `bin` a link, `lib` a directory.
    assert_eq!(
        parts,
        [
            (Some("/"), "root"),
            (Some("/usr"), "usr"),
            (Some("/lib"), "lib")
        ]
    );
    assert_eq!(part(&template, "lib"), [test.path("host/lib")]);
    assert_eq!(part(&template, "usr")[1], test.path("host/usr"));
    let root = &part(&template, "root")[0];
    assert_eq!(
        fs::read_link(root.join("bin")).expect("link"),
        Path::new("usr/bin")
    );
    for dir in [
        "usr", "lib", "dev", "proc", "sys", "run", "var/lib", "mnt", "srv", "media",
    ] {
        assert!(root.join(dir).is_dir(), "{dir}");
    }
    assert_eq!(test.store.get("host").expect("get"), Some(template));
}

#[test]
fn nothing_secret_gets_in() {
    let test = TestStore::new();
    let template = test.store.host_template(&host(&test)).expect("template");
    for layer in [&part(&template, "root")[0], &part(&template, "usr")[0]] {
        for path in all_files(layer) {
            let metadata = fs::symlink_metadata(&path).expect("stat");
            let text = if metadata.is_symlink() {
                fs::read_link(&path).expect("link").display().to_string()
            } else if metadata.is_file() {
                read(&path)
            } else {
                String::new()
            };
            assert!(
                !text.contains("SECRET") && !text.contains("alice"),
                "{}: {text}",
                path.display()
            );
        }
    }
    let root = &part(&template, "root")[0];
    for absent in [
        "etc/ssh",
        "etc/apt",
        "etc/npmrc",
        "etc/gitconfig",
        "etc/ssl/private",
        "home/alice",
    ] {
        assert!(!root.join(absent).exists(), "{absent}");
    }
    // Not the host's, which may name a registry with its password.
    let pip_conf = read(root.join("etc/pip.conf"));
    assert!(
        pip_conf.contains("break-system-packages = true"),
        "{pip_conf}"
    );
}

#[test]
fn what_programs_need_gets_in() {
    let test = TestStore::new();
    let template = test.store.host_template(&host(&test)).expect("template");
    let root = &part(&template, "root")[0];
    for present in [
        "ssl/certs/ca.pem",
        "python3.99/sitecustomize.py",
        "ld.so.cache",
        "services",
        "maven/m2.conf",
    ] {
        assert_eq!(read(root.join("etc").join(present)), "public", "{present}");
    }
    assert_eq!(
        fs::read_link(root.join("etc/alternatives/editor")).expect("link"),
        Path::new("/usr/bin/vim")
    );
    assert_eq!(
        fs::read_link(root.join("etc/localtime")).expect("link"),
        Path::new("/usr/share/zoneinfo/UTC")
    );
    for (path, expected) in [
        ("tmp", 0o1777),
        ("var/tmp", 0o1777),
        ("root", 0o700),
        ("home/user", 0o755),
        ("etc/passwd", 0o644),
        ("etc/shadow", 0o640),
        ("etc/sudoers", 0o440),
    ] {
        assert_eq!(mode(root.join(path)), expected, "{path}");
    }
    assert!(read(root.join("etc/sudoers")).contains("user ALL=(ALL:ALL) NOPASSWD: ALL"));
    assert!(read(root.join("etc/passwd")).contains("_apt:x:42:"));
    assert!(root.join("etc/pam.d/sudo").exists());
    assert_eq!(read(root.join("etc/resolv.conf")), "nameserver 127.0.0.1\n");
    assert_eq!(read(root.join("etc/machine-id")), "");
    assert!(root.join("home/user/.bashrc").exists());
    if owners() == Owners::Keep {
        assert_eq!(
            fs::metadata(root.join("workspace")).expect("stat").uid(),
            1000
        );
        assert_eq!(
            fs::metadata(root.join("etc/shadow")).expect("stat").gid(),
            42
        );
    }
}

#[test]
fn a_package_manager_of_the_host_says_what_to_do() {
    let test = TestStore::new();
    let options = host(&test);
    write(test.path("host/usr/bin/apt-get"), "elf");
    write(test.path("host/usr/bin/apt"), "elf");
    write(test.path("host/usr/local/bin/apt"), "the administrator's");
    let template = test.store.host_template(&options).expect("template");
    let usr = &part(&template, "usr")[0];
    assert_eq!(crate::support::names(&usr.join("local/bin")), ["apt-get"]);
    let program = usr.join("local/bin/apt-get");
    let output = Command::new(&program)
        .args(["install", "sl"])
        .output()
        .expect("run");
    assert_eq!(output.status.code(), Some(100));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.starts_with("apt-get: this sandbox uses"),
        "{message}"
    );
    assert!(message.contains("--template debian"), "{message}");

    fs::remove_dir_all(test.path("host/usr/local")).expect("remove");
    symlink("/var/usrlocal", test.path("host/usr/local")).expect("link");
    let template = test.store.host_template(&options).expect("template");
    assert!(!part(&template, "usr")[0].join("local").exists());
}

#[test]
fn sudo_and_python_are_added_where_missing() {
    let test = TestStore::new();
    let mut options = host(&test);
    let template = test.store.host_template(&options).expect("template");
    let usr = &part(&template, "usr")[0];
    assert_eq!(mode(usr.join("bin/sudo")), 0o4755);
    assert_eq!(read(usr.join("bin/sudo")), "static program");
    assert_eq!(
        fs::read_link(usr.join("bin/python")).expect("link"),
        Path::new("python3")
    );
    assert_eq!(
        xattr(&usr.join("local/etc"), "user.overlay.opaque").as_deref(),
        Some(&b"y"[..])
    );
    assert_eq!(crate::support::names(&usr.join("local/etc")), ["tool.conf"]);

    write(test.path("host/usr/bin/sudo"), "the host's");
    write(test.path("host/usr/bin/python"), "the host's");
    let template = test.store.host_template(&options).expect("template");
    let usr = &part(&template, "usr")[0];
    assert!(!usr.join("bin").exists());
    options.prefer_shim = true;
    let template = test.store.host_template(&options).expect("template");
    assert_eq!(
        read(part(&template, "usr")[0].join("bin/sudo")),
        "static program"
    );
}

#[test]
fn it_is_made_again_only_when_the_host_changes() {
    let test = TestStore::new();
    let options = host(&test);
    let first = test.store.host_template(&options).expect("template");
    assert_eq!(test.store.host_template(&options).expect("template"), first);

    write(test.path("host/etc/services"), "public, and changed");
    let second = test.store.host_template(&options).expect("template");
    assert_ne!(part(&second, "root"), part(&first, "root"));
    // Sandboxes may stand on the first until it is swept.
    assert!(part(&first, "root")[0].exists());

    write(test.path("host/etc/ssl/certs/new.pem"), "public");
    let third = test.store.host_template(&options).expect("template");
    assert!(
        part(&third, "root")[0]
            .join("etc/ssl/certs/new.pem")
            .exists()
    );

    write(
        test.path("host/etc/hosts"),
        "not copied, so of no interest\n",
    );
    assert_eq!(test.store.host_template(&options).expect("template"), third);
    assert_eq!(test.sweep_all().len(), 4);
    assert_eq!(test.store.host_template(&options).expect("template"), third);
}

#[test]
fn a_file_changed_in_place_is_noticed_at_the_next_full_check() {
    let test = TestStore::new();
    let options = host(&test);
    let first = test.store.host_template(&options).expect("template");
    fs::write(
        test.path("host/etc/ssl/certs/ca.pem"),
        "public, changed in place",
    )
    .expect("write");
    let stamp = fs::File::options()
        .write(true)
        .open(test.path("data/templates/.host-checked"))
        .expect("stamp");
    stamp
        .set_modified(SystemTime::now() - Duration::from_secs(60))
        .expect("age");
    let second = test.store.host_template(&options).expect("template");
    assert_ne!(second, first);
    assert_eq!(
        read(part(&second, "root")[0].join("etc/ssl/certs/ca.pem")),
        "public, changed in place"
    );
}

#[test]
fn a_lost_layer_is_made_again() {
    let test = TestStore::new();
    let options = host(&test);
    let first = test.store.host_template(&options).expect("template");
    let layer = part(&first, "root")[0].parent().expect("wrapper");
    fs::remove_dir_all(layer).expect("rm");
    let second = test.store.host_template(&options).expect("template");
    assert!(part(&second, "root")[0].join("etc/passwd").exists());
}

#[test]
fn many_asking_at_once_get_the_same() {
    let test = TestStore::new();
    let options = host(&test);
    let templates: Vec<_> = std::thread::scope(|scope| {
        let ask = || test.store.host_template(&options).expect("template");
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("join"))
            .collect()
    });
    assert!(templates.iter().all(|template| *template == templates[0]));
    assert_eq!(test.layer_names().len(), 2);
}

#[test]
fn programs_of_this_host_run_in_it() {
    as_root("host::programs_of_this_host_run_in_it", || {
        let test = TestStore::new();
        let template = test
            .store
            .host_template(&HostOptions::new(owners()))
            .expect("template");
        let mut script = String::from("set -eu\n");
        let merged = test.path("merged");
        fs::create_dir(&merged).expect("mkdir");
        for part in &template.parts {
            let disk = test.path("disk").join(&part.key);
            fs::create_dir_all(disk.join("upper")).expect("mkdir");
            fs::create_dir_all(disk.join("work")).expect("mkdir");
            let layers: Vec<_> = part
                .layers
                .iter()
                .map(|layer| layer.display().to_string())
                .collect();
            script += &format!(
                "mount -t overlay overlay -o userxattr,lowerdir={},upperdir={}/upper,workdir={}/work {}{}\n",
                layers.join(":"),
                disk.display(),
                disk.display(),
                merged.display(),
                part.target.display()
            );
        }
        script += &format!(
            "exec chroot {} /bin/bash -lc '{}'\n",
            merged.display(),
            IN_SANDBOX
        );
        // A mount namespace of its own: whatever happens, nothing stays mounted.
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .output()
            .expect("unshare runs");
        let (out, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{out}{errors}");
        assert_eq!(
            out, "user 1000\n/home/user\nonly ours\nLANG=C.UTF-8\n",
            "{errors}"
        );
    });
}

/// What the made-up files must be good for.
const IN_SANDBOX: &str = "\
    getent passwd user | { IFS=: read -r name _ id _; echo $name $id; }; \
    getent passwd user | cut -d: -f6; \
    [ \"$(ls /home)\" = user ] && echo only ours; \
    env | grep ^LANG=";
