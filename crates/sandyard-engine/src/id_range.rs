//! Ranges of host user ids, one for each live sandbox.
//!
//! A claim is a file named after the range that contains the sandbox's id. Only one worker can make it. The ranges are within
//! 0x70000000 to 0x7fffffff, which no distribution uses.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sandyard_core::SandboxId;

use crate::error::{EngineError, ErrorKind, Result};
use crate::sys::OperationExt;

/// Ids in one range.
pub(crate) const IDS_PER_RANGE: u32 = 65_536;
const FIRST_ID: u32 = 0x7000_0000;
const RANGES: u32 = 4096;

/// First host id of a range.
pub(crate) fn first_id(range: u32) -> u32 {
    FIRST_ID + range * IDS_PER_RANGE
}

/// Claims a free range for `id`.
pub(crate) fn claim(folder: &Path, id: &SandboxId) -> Result<u32> {
    // Written first and then linked, so that a claim is never without its sandbox's id.
    let note = folder.join(format!(".{id}"));
    let result = write_note(&note, id)
        .operation("write", note.display())
        .map_err(EngineError::from)
        .and_then(|()| link_free(folder, &note));
    let _ = fs::remove_file(&note);
    result
}

fn write_note(note: &Path, id: &SandboxId) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(note)?;
    file.write_all(id.as_str().as_bytes())
}

fn link_free(folder: &Path, note: &Path) -> Result<u32> {
    // From a random range on, so that the next claim does not have to try a thousand claimed ones.
    let start = u32::from_le_bytes(crate::random::bytes::<4>()?) % RANGES;
    for offset in 0..RANGES {
        let range = (start + offset) % RANGES;
        let path = folder.join(range.to_string());
        match fs::hard_link(note, &path) {
            Ok(()) => return Ok(range),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).operation("claim", path.display())?,
        }
    }
    Err(EngineError::new(
        ErrorKind::NoCapacity,
        format!("all {RANGES} ranges of user ids are in use"),
    )
    .hint("delete or stop sandboxes"))
}

/// Releases a range if it belongs to `id`: an old record may name one that another sandbox has by now.
pub(crate) fn release(folder: &Path, range: u32, id: &SandboxId) -> Result<()> {
    let path = folder.join(range.to_string());
    match fs::read_to_string(&path) {
        Ok(owner) if owner == id.as_str() => remove(&path),
        _ => Ok(()),
    }
}

/// Removes a claim whose sandbox does not exist.
pub(crate) fn revoke(folder: &Path, range: u32) -> Result<()> {
    remove(&folder.join(range.to_string()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other.operation("release", path.display())?),
    }
}

/// All claims: range and sandbox id.
pub(crate) fn claims(folder: &Path) -> Result<Vec<(u32, String)>> {
    let mut claims = Vec::new();
    for entry in fs::read_dir(folder)
        .operation("list", folder.display())?
        .flatten()
    {
        let Some(range) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        claims.push((range, fs::read_to_string(entry.path()).unwrap_or_default()));
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_claims_never_get_the_same_range() {
        let folder = tempfile::tempdir().expect("folder");
        let id: SandboxId = "a".parse().expect("id");
        let mut ranges: Vec<u32> = (0..200)
            .map(|_| claim(folder.path(), &id).expect("claim"))
            .collect();
        ranges.sort_unstable();
        ranges.dedup();
        assert_eq!(ranges.len(), 200);
    }

    #[test]
    fn a_range_is_released_by_its_owner_only_and_twice_is_fine() {
        let folder = tempfile::tempdir().expect("folder");
        let (owner, other) = ("a".parse().expect("id"), "b".parse().expect("id"));
        let range = claim(folder.path(), &owner).expect("claim");
        release(folder.path(), range, &other).expect("not theirs");
        assert_eq!(
            claims(folder.path()).expect("claims"),
            [(range, "a".to_owned())]
        );
        release(folder.path(), range, &owner).expect("release");
        release(folder.path(), range, &owner).expect("releasing twice is fine");
        assert_eq!(claims(folder.path()).expect("claims"), []);
    }

    #[test]
    fn the_last_range_ends_before_the_sign_bit() {
        assert!(
            first_id(RANGES - 1)
                .checked_add(IDS_PER_RANGE - 1)
                .is_some_and(|last| last <= 0x7fff_ffff)
        );
    }
}
