//! The installation's authority and its files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;

use rcgen::{KeyPair, date_time_ymd};

use super::world::{World, provider};
use crate::http::Tls;
use crate::http::authority::{Authority, params};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_files_are_made_once_and_only_the_owner_reads_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a/b");
    let first = Tls::open(&folder, None).unwrap();
    assert_eq!(names(&folder), ["ca.key", "ca.pem"]);
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("ca.key")), 0o600);
    assert_eq!(mode(&folder.join("ca.pem")), 0o644);
    assert_eq!(
        fs::read_to_string(folder.join("ca.pem")).unwrap(),
        first.authority_pem()
    );
    let second = Tls::open(&folder, None).unwrap();
    assert_eq!(first.authority_pem(), second.authority_pem());
}

#[test]
fn a_key_that_others_could_read_is_closed_to_them() {
    let folder = tempfile::tempdir().unwrap();
    Tls::open(folder.path(), None).unwrap();
    let key = folder.path().join("ca.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    Tls::open(folder.path(), None).unwrap();
    assert_eq!(mode(&key), 0o600);
}

#[test]
fn servers_that_start_at_once_have_one_authority() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let start = Barrier::new(8);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let authority = Authority::open(&provider(), folder.path()).unwrap();
                        (authority.pem, authority.issuer.key().serialize_pem())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(opened.iter().all(|one| *one == opened[0]));
        assert_eq!(names(folder.path()), ["ca.key", "ca.pem"]);
    }
}

#[test]
fn a_key_without_a_certificate_gets_one_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = Authority::open(&provider(), folder.path()).unwrap();
    fs::remove_file(folder.path().join("ca.pem")).unwrap();
    let second = Authority::open(&provider(), folder.path()).unwrap();
    assert_eq!(
        first.issuer.key().serialize_pem(),
        second.issuer.key().serialize_pem()
    );
}

#[test]
fn a_certificate_of_another_key_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&one, &two] {
        Authority::open(&provider(), folder.path()).unwrap();
    }
    fs::copy(one.path().join("ca.key"), two.path().join("ca.key")).unwrap();
    let refused = Tls::open(two.path(), None).unwrap_err().to_string();
    assert!(
        refused.contains("is not the certificate of `ca.key`") && refused.contains("remove"),
        "{refused}"
    );
    fs::write(two.path().join("ca.key"), "nothing").unwrap();
    assert!(Tls::open(two.path(), None).is_err());
}

#[test]
fn a_certificate_about_to_expire_is_made_anew_with_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let first = Authority::open(&provider(), folder.path()).unwrap();
    let key = first.issuer.key().serialize_pem();
    let key = KeyPair::from_pem(&key).unwrap();
    let mut params = params(&provider(), &key).unwrap();
    params.not_before = date_time_ymd(2010, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
    let old = params.self_signed(&key).unwrap().pem();
    fs::write(folder.path().join("ca.pem"), &old).unwrap();
    let second = Authority::open(&provider(), folder.path()).unwrap();
    assert_ne!(second.pem, old);
    assert_eq!(
        fs::read_to_string(folder.path().join("ca.pem")).unwrap(),
        second.pem
    );
    assert_eq!(second.issuer.key().serialize_pem(), key.serialize_pem());
    assert_eq!(names(folder.path()), ["ca.key", "ca.pem"]);
}

#[test]
fn nothing_shows_the_keys() {
    let world = World::new();
    assert_eq!(format!("{:?}", world.tls), "Tls { .. }");
    assert!(world.authority_path().exists());
}
