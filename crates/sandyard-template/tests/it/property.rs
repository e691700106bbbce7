//! Whatever an archive holds, importing it touches nothing outside and leaves nothing after a failure.

use proptest::prelude::*;
use sandyard_template::ImportOptions;

use crate::archives::{Entry, Tar};
use crate::support::{TestStore, names, owners, read, write};

/// Few names, so that entries meet: the same path as file, directory and link.
fn component() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "etc", "passwd", "outside", "victim"]).prop_map(str::to_owned),
        2 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just(String::new()),
        1 => "[a-z\u{e9}\n*]{1,5}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(component(), 1..6).prop_map(|parts| parts.join("/"))
}

fn target(host_folder: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![3 => path(), 1 => path().prop_map(|path| format!("/{path}")), 1 => Just(host_folder.to_owned())]
}

fn entry() -> impl Strategy<Value = (u8, String, String, u32)> {
    let kind = prop::sample::select(vec![
        b'0', b'0', b'1', b'2', b'2', b'3', b'5', b'5', b'6', b'Z',
    ]);
    (kind, path(), target("@outside"), 0_u32..0o10000)
}

fn check_untouched(test: &TestStore, imported: bool) -> Result<(), TestCaseError> {
    prop_assert_eq!(names(&test.path("outside")), vec!["victim"]);
    prop_assert_eq!(read(test.path("outside/victim")), "untouched");
    prop_assert_eq!(names(test.temp.path()), vec!["data", "outside"]);
    prop_assert_eq!(test.layer_names().len(), usize::from(imported));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entries_in_any_order_stay_inside(entries in prop::collection::vec(entry(), 1..25)) {
        let test = TestStore::new();
        write(test.path("outside/victim"), "untouched");
        let host_folder = test.path("outside").display().to_string();
        let mut tar = Tar::default();
        for (kind, path, target, mode) in &entries {
            let target = target.replace("@outside", &host_folder);
            tar.pax(&[("path", path.as_bytes()), ("linkpath", target.as_bytes())]);
            tar.add(Entry { path: b"x", kind: *kind, link: b"x", mode: *mode, data: b"evil", ..Entry::default() });
        }
        let result = test.store.import_tar("t", &tar.finish()[..], ImportOptions::new(owners()));
        check_untouched(&test, result.is_ok())?;
    }

    #[test]
    fn damaged_archives_do_no_harm(
        entries in prop::collection::vec(entry(), 1..8),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        keep in any::<prop::sample::Index>(),
        fix_sums in any::<bool>(),
    ) {
        let test = TestStore::new();
        write(test.path("outside/victim"), "untouched");
        let mut tar = Tar::default();
        for (kind, path, target, mode) in &entries {
            tar.pax(&[("path", path.as_bytes()), ("GNU.sparse.map", b"0,4"), ("GNU.sparse.size", b"4")]);
            let link: String = target.chars().take(20).collect();
            tar.add(Entry { path: b"x", kind: *kind, link: link.as_bytes(), mode: *mode, data: b"evil", ..Entry::default() });
        }
        let mut bytes = tar.finish();
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
            if fix_sums {
                // Past the checksum, so that what it guards is read.
                let block = at / 512 * 512;
                let mut header = tar::Header::from_byte_slice(&bytes[block..block + 512]).clone();
                header.set_cksum();
                bytes[block..block + 512].copy_from_slice(header.as_bytes());
            }
        }
        bytes.truncate(keep.index(bytes.len() * 2).min(bytes.len()));
        let mut options = ImportOptions::new(owners());
        options.limits.bytes = 1 << 30;
        let result = test.store.import_tar("t", &bytes[..], options);
        check_untouched(&test, result.is_ok())?;
    }

    #[test]
    fn bytes_with_any_magic_do_no_harm(
        magic in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0\0\x01", b"\x50\x2a\x4d\x18"]),
        rest in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let test = TestStore::new();
        write(test.path("outside/victim"), "untouched");
        let bytes = [magic, &rest].concat();
        let mut options = ImportOptions::new(owners());
        options.limits.bytes = 1 << 24;
        let result = test.store.import_tar("t", &bytes[..], options);
        check_untouched(&test, result.is_ok())?;
    }
}
