//! Which files are read.

use std::os::unix::fs::PermissionsExt;

use crate::Host;

#[test]
fn the_first_configuration_file_is_read_alone() {
    let host = Host::new().file(
        "etc/sandyard.toml",
        "server.port = 1\nlog.level = \"warn\"\n",
    );
    assert_eq!(
        host.loaded().config_file,
        Some(host.path("etc/sandyard.toml"))
    );
    let host = host.toml("server.port = 2\n");
    let loaded = host.loaded();
    assert_eq!(loaded.settings.server.ports, [2]);
    assert_eq!(loaded.settings.log.level, "info");
    let host = host.file("work/other.toml", "server.port = 3\n");
    let mut host = host.var("SANDYARD_CONFIG", "other.toml");
    assert_eq!(host.loaded().settings.server.ports, [3]);
    host.sources.config_file = Some(host.path("etc/sandyard.toml"));
    assert_eq!(host.loaded().settings.server.ports, [1]);
}

#[test]
fn env_files_can_name_the_configuration_file() {
    let host = Host::new()
        .file("work/other.toml", "server.port = 3\n")
        .file("work/.env", "SANDYARD_CONFIG=other.toml\n");
    assert_eq!(host.loaded().settings.server.ports, [3]);
    assert_eq!(host.warnings(), [""; 0]);
}

#[test]
fn a_named_configuration_file_must_be_there() {
    let host = Host::new().var("SANDYARD_CONFIG", "none.toml");
    assert_eq!(
        host.errors(),
        ["there is no configuration file `work/none.toml`"]
    );
}

#[test]
fn no_file_at_all_is_fine() {
    let loaded = Host::new().loaded();
    assert_eq!(loaded.config_file, None);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn the_data_directory_named_by_a_flag_is_where_the_file_is_looked_for() {
    let host = Host::new().flag("data_dir", "mine");
    std::fs::create_dir(host.path("work/mine")).unwrap();
    let host = host.file("work/mine/sandyard.toml", "server.port = 5\n");
    let loaded = host.loaded();
    assert_eq!(loaded.settings.server.ports, [5]);
    assert_eq!(loaded.settings.data_dir, host.path("work/mine"));
}

#[test]
fn what_cannot_be_a_configuration_file_is_an_error_and_never_fills_the_memory() {
    let host = Host::new();
    std::fs::create_dir(host.path("data/sandyard.toml")).unwrap();
    assert_eq!(
        host.errors(),
        ["failed to read `data/sandyard.toml`: not a regular file"]
    );
    let host = Host::new().var("SANDYARD_CONFIG", "/dev/zero");
    assert_eq!(
        host.errors(),
        ["failed to read `/dev/zero`: not a regular file"]
    );
    let host = Host::new().toml(&"#".repeat(2 << 20));
    assert_eq!(
        host.errors(),
        ["failed to read `data/sandyard.toml`: larger than 1 MiB"]
    );
    let host = Host::new();
    std::fs::write(host.path("data/sandyard.toml"), b"a = \"\xff\"").unwrap();
    assert!(host.errors()[0].starts_with("failed to read `data/sandyard.toml`: "));
}

#[test]
fn a_directory_called_env_is_none_of_our_business() {
    let host = Host::new();
    std::fs::create_dir(host.path("work/.env")).unwrap();
    assert_eq!(host.warnings(), [""; 0]);
}

#[test]
fn a_world_readable_file_with_a_secret_is_a_warning() {
    let secret = "auth.jwt_secret = \"0123456789abcdef0123456789abcdef\"\n";
    let url = "database.url = \"postgres://app:s3cret@db/x\"\n";
    for (text, mode, warned) in [
        (secret, 0o644, true),
        (url, 0o644, true),
        (secret, 0o640, false),
        ("server.port = 1\n", 0o644, false),
    ] {
        let host = Host::new().toml(text);
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(host.path("data/sandyard.toml"), permissions).unwrap();
        let warnings = host.warnings();
        assert_eq!(
            warnings.len(),
            usize::from(warned),
            "{text} {mode:o}: {warnings:?}"
        );
    }
}

#[test]
fn sources_of_this_process_have_its_environment_and_directory() {
    let flags = vec![("server.port".to_owned(), "1".to_owned())];
    let sources =
        sandyard_config::Sources::of_process(crate::table(), flags, None, "/data".into()).unwrap();
    assert_eq!(
        sources.environment.get("PATH"),
        std::env::var("PATH").ok().as_ref()
    );
    assert_eq!(sources.working_dir, std::env::current_dir().unwrap());
    assert_eq!(
        sources.system_config_file.to_str(),
        Some("/etc/sandyard/sandyard.toml")
    );
}

#[test]
fn a_world_writable_env_file_is_ignored_with_a_warning() {
    use std::os::unix::fs::PermissionsExt;

    let host = Host::new().file("work/.env", "GATEWAY_REACHABLE=127.0.0.1\nPORT=8123\n");
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(host.path("work/.env"), open).expect("mode");
    let loaded = host.loaded();
    assert_eq!(loaded.settings.server.ports, [8100]);
    assert_eq!(
        host.warnings(),
        ["`work/.env` is ignored: every user can write it"]
    );
}
