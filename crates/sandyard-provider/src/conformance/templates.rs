//! Importing, listing and removing templates.

use std::io::Cursor;

use super::subject::{Done, Subject, fails, same, works};
use crate::ProviderErrorKind::{Conflict, Invalid, NotFound};

pub(super) async fn the_default_template_is_listed_and_stays(subject: &Subject) -> Done {
    let name = &subject.provider.info().default_template;
    let listed = works("templates", subject.provider.templates().await)?;
    let times = listed.iter().filter(|one| one.name == *name).count();
    same("listed", times, 1)?;
    let removed = subject.provider.remove_template(name).await;
    fails("remove it", Invalid, removed)
}

pub(super) async fn an_archive_becomes_a_template(subject: &Subject) -> Done {
    let provider = &subject.provider;
    let name = subject.template_name();
    let archive = || Box::pin(Cursor::new(archive()));
    let made = works("import", provider.import_template(&name, archive()).await)?;
    same("name", &made.name, &name)?;
    let second = provider.import_template(&name, archive()).await;
    fails("the same name", Conflict, second)?;
    let listed = works("templates", provider.templates().await)?;
    same("listed", listed.iter().any(|one| one.name == name), true)?;
    works("remove", provider.remove_template(&name).await)?;
    let second = provider.remove_template(&name).await;
    fails("remove again", NotFound, second)
}

pub(super) async fn what_is_no_archive_is_invalid(subject: &Subject) -> Done {
    let name = subject.template_name();
    let nothing = Box::pin(Cursor::new(Vec::new()));
    let imported = subject.provider.import_template(&name, nothing).await;
    fails("import of nothing", Invalid, imported)?;
    let bad = Box::pin(Cursor::new(archive()));
    let imported = subject.provider.import_template("../x", bad).await;
    fails("import as `../x`", Invalid, imported)?;
    let listed = works("templates", subject.provider.templates().await)?;
    same("listed", listed.iter().any(|one| one.name == name), false)
}

/// A tar archive of one folder and one file, in the oldest form there is.
fn archive() -> Vec<u8> {
    let mut bytes = header(b"etc/", b'5', 0o755, 0);
    let text = b"conformance\n";
    bytes.extend(header(b"etc/mark", b'0', 0o644, text.len()));
    bytes.extend_from_slice(text);
    // Files are filled up to whole blocks, and two empty ones are the end.
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}

fn header(name: &[u8], kind: u8, mode: u32, size: usize) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name);
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
