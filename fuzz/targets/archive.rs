//! Hostile archives: unpacking touches nothing outside its layer, stays within its limits and never panics.
//!
//! Half of the inputs are taken as archives as they are. The others are recipes for one whose headers are right, since a
//! fuzzer does not guess check sums: entries of all kinds whose names climb, go absolute and lead through links, aimed at
//! a directory beside the store that must stay as it was.
#![no_main]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sandyard_template::{ImportOptions, Limits, Owners, Store};

/// What must stay as it was.
const CANARY: &[u8] = b"untouched";

/// The kinds of entry, those with a meaning of their own to readers among them.
const KINDS: &[u8] = b"01234567xgLKSDVMN\0";

struct Workspace {
    root: PathBuf,
    store: Store,
}

fn workspace() -> &'static Workspace {
    static WORKSPACE: OnceLock<Workspace> = OnceLock::new();
    WORKSPACE.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("sandyard-fuzz-{}", std::process::id()));
        fs::create_dir_all(root.join("outside")).expect("a directory");
        fs::write(root.join("outside/canary"), CANARY).expect("a canary");
        let store = Store::open(&root.join("store"))
            .expect("a store")
            .without_sync();
        Workspace { root, store }
    })
}

/// Takes bytes off a recipe; zeros once it is used up.
struct Recipe<'a>(&'a [u8]);

impl Recipe<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A name of a few components, most of them chosen to meet again.
    fn name(&mut self, outside_dir: &str) -> Vec<u8> {
        let mut name = Vec::new();
        for _ in 0..self.byte() % 5 {
            match self.byte() % 12 {
                0 | 1 => name.extend_from_slice(b"a"),
                2 | 3 => name.extend_from_slice(b"b"),
                4 => name.extend_from_slice(b"c"),
                5 | 6 => name.extend_from_slice(b".."),
                7 => name.extend_from_slice(b"."),
                8 => name.extend_from_slice(outside_dir.as_bytes()),
                9 => name.extend_from_slice(b"../../../../outside"),
                10 => name.extend_from_slice(b"canary"),
                _ => name.push(self.byte()),
            }
            name.push(b'/');
        }
        if self.byte() % 4 != 0 {
            name.pop();
        }
        name
    }

    fn archive(mut self, outside_dir: &str) -> Vec<u8> {
        let mut archive = Vec::new();
        while !self.0.is_empty() && archive.len() < 1 << 16 {
            let kind = KINDS[usize::from(self.byte()) % KINDS.len()];
            let (name, link) = (self.name(outside_dir), self.name(outside_dir));
            let data = match kind {
                b'x' | b'g' => self.pax(outside_dir),
                b'L' | b'K' => self.name(outside_dir),
                _ => vec![b'd'; usize::from(self.byte() % 40)],
            };
            // Now and then the size is a lie.
            let size = match self.byte() {
                255 => b"77777777777\0".to_vec(),
                254 => vec![
                    0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                ],
                _ => format!("{:011o}\0", data.len()).into_bytes(),
            };
            let mode = format!("{:07o}\0", u16::from(self.byte()) << 4 | 0o707);
            archive.extend_from_slice(&header(kind, &name, &link, &size, mode.as_bytes()));
            archive.extend_from_slice(&data);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.resize(archive.len() + 1024, 0);
        archive
    }

    /// Records of an extended header.
    fn pax(&mut self, outside_dir: &str) -> Vec<u8> {
        const KEYS: &[&str] = &[
            "path",
            "linkpath",
            "size",
            "mtime",
            "uid",
            "SCHILY.xattr.user.x",
            "SCHILY.xattr.trusted.overlay.opaque",
            "GNU.sparse.map",
            "GNU.sparse.realsize",
            "GNU.sparse.major",
            "GNU.sparse.name",
            "GNU.sparse.numbytes",
        ];
        let mut records = Vec::new();
        for _ in 0..self.byte() % 4 {
            let key = KEYS[usize::from(self.byte()) % KEYS.len()];
            let value = match self.byte() % 3 {
                0 => self.name(outside_dir),
                1 => self.byte().to_string().into_bytes(),
                _ => b"18446744073709551615".to_vec(),
            };
            let body = [b" ", key.as_bytes(), b"=", &value, b"\n"].concat();
            let mut length = body.len() + 1;
            while length != body.len() + length.to_string().len() {
                length = body.len() + length.to_string().len();
            }
            records.extend_from_slice(length.to_string().as_bytes());
            records.extend_from_slice(&body);
        }
        records
    }
}

fn header(kind: u8, name: &[u8], link: &[u8], size: &[u8], mode: &[u8]) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, field: &[u8]| block[at..at + field.len()].copy_from_slice(field);
    put(0, &name[..name.len().min(100)]);
    put(100, mode);
    put(108, b"0001750\0");
    put(116, b"0001750\0");
    put(124, size);
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &link[..link.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn check_outside(root: &Path) {
    let names = |directory: &Path| {
        let entries = fs::read_dir(directory).expect("still there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("readable").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(root), ["outside", "store"]);
    assert_eq!(names(&root.join("store")), ["layers", "templates"]);
    assert_eq!(names(&root.join("outside")), ["canary"]);
    let canary = root.join("outside/canary");
    assert_eq!(fs::read(&canary).expect("readable"), CANARY);
    let metadata = fs::symlink_metadata(&canary).expect("still there");
    assert_eq!((metadata.nlink(), metadata.mode() & 0o7777), (1, 0o644));
    let metadata = fs::symlink_metadata(root.join("outside")).expect("still there");
    assert!(metadata.is_dir() && metadata.mode() & 0o7777 == 0o755);
}

fuzz_target!(
    init: {
        // So that the modes compared above are known. Nothing else of the process depends on it.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    },
    |input: &[u8]| {
        let Some((&selector, rest)) = input.split_first() else {
            return;
        };
        let Workspace { root, store } = workspace();
        let outside_dir = root.join("outside").to_str().expect("is text").to_owned();
        let archive = match selector % 4 {
            0 => rest.to_vec(),
            _ => Recipe(rest).archive(&outside_dir),
        };
        let mut options = ImportOptions::new(Owners::of_this_process());
        options.replace = true;
        options.add_user = selector % 8 == 3;
        options.limits = Limits { entries: 100, bytes: 1 << 20 };
        let result = store.import_tar("t", &archive[..], options);
        if let Ok(imported) = &result {
            assert!(imported.counts.done.entries <= 100);
            assert!(imported.counts.done.bytes <= 1 << 20);
        }
        check_outside(root);
        for directory in ["store/layers", "store/templates"] {
            let directory = root.join(directory);
            fs::remove_dir_all(&directory).expect("what was unpacked can be removed");
            fs::create_dir(&directory).expect("a directory");
        }
    }
);
