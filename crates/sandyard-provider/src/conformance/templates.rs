//! Importing, listing and removing templates.

use std::io::Cursor;

use super::subject::{CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::{Conflict, Invalid, NotFound};

pub(super) async fn the_default_template_is_listed_and_cannot_be_removed(
    subject: &Subject,
) -> CheckResult {
    let name = &subject.provider.info().default_template;
    let listed = works("templates", subject.provider.templates().await)?;
    let count = listed
        .iter()
        .filter(|template| template.name == *name)
        .count();
    same("listed", count, 1)?;
    let removed = subject.provider.remove_template(name).await;
    fails("remove it", Invalid, removed)
}

pub(super) async fn an_archive_becomes_a_template(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let name = subject.template_name();
    let archive = || Box::pin(Cursor::new(archive()));
    let made = works("import", provider.import_template(&name, archive()).await)?;
    same("name", &made.name, &name)?;
    let second = provider.import_template(&name, archive()).await;
    fails("the same name", Conflict, second)?;
    let listed = works("templates", provider.templates().await)?;
    holds(
        "listed",
        listed.iter().any(|template| template.name == name),
    )?;
    works("remove", provider.remove_template(&name).await)?;
    let second = provider.remove_template(&name).await;
    fails("remove again", NotFound, second)
}

pub(super) async fn an_invalid_archive_or_name_is_refused(subject: &Subject) -> CheckResult {
    let name = subject.template_name();
    let nothing = Box::pin(Cursor::new(Vec::new()));
    let imported = subject.provider.import_template(&name, nothing).await;
    fails("import of an empty archive", Invalid, imported)?;
    let bad = Box::pin(Cursor::new(archive()));
    let imported = subject.provider.import_template("../x", bad).await;
    fails("import as `../x`", Invalid, imported)?;
    let listed = works("templates", subject.provider.templates().await)?;
    holds(
        "no longer listed",
        !listed.iter().any(|template| template.name == name),
    )
}

/// A tar archive of one folder and one file, in ustar format.
fn archive() -> Vec<u8> {
    let mut bytes = header(b"etc/", b'5', 0o755, 0);
    let text = b"conformance\n";
    bytes.extend(header(b"etc/mark", b'0', 0o644, text.len()));
    bytes.extend_from_slice(text);
    // Files are padded to full blocks, and two empty blocks mark the end.
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}

fn header(name: &[u8], kind: u8, mode: u32, size: usize) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut write = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    write(0, name);
    write(100, format!("{mode:07o}\0").as_bytes());
    write(108, b"0000000\0");
    write(116, b"0000000\0");
    write(124, format!("{size:011o}\0").as_bytes());
    write(136, b"00000000000\0");
    write(148, b"        ");
    write(156, &[kind]);
    write(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
