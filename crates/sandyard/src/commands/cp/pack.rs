//! Packs directories into archives and unpacks them, as streams.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use tokio::io::{AsyncRead, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::io::SyncIoBridge;

/// Size of the buffer between packing and sending.
const PIPE_BYTES: usize = 1 << 20;

/// Starts packing the content of a directory. The stream yields the archive; the task returns whether every file could be read.
pub(super) fn pack(folder: PathBuf) -> (DuplexStream, JoinHandle<anyhow::Result<()>>) {
    let (reader, writer) = tokio::io::duplex(PIPE_BYTES);
    let writer = SyncIoBridge::new(writer);
    let task = tokio::task::spawn_blocking(move || {
        let mut archive = tar::Builder::new(writer);
        archive.follow_symlinks(false);
        archive
            .append_dir_all(".", &folder)
            .with_context(|| format!("reading `{}`", folder.display()))?;
        let mut writer = archive.into_inner().context("packing")?;
        writer.shutdown().context("packing")
    });
    (reader, task)
}

/// Unpacks an archive from a sandbox into a directory of this host. The archive is untrusted and cannot write outside of it.
///
/// With a name, every entry must be below that name, so that a copy of `out` cannot add a `.profile`. Owners, set-user-ID bits and
/// devices are ignored; links that lead out of the directory are not followed.
pub(super) async fn unpack(
    archive: impl AsyncRead + Send + Unpin + 'static,
    folder: PathBuf,
    name: Option<String>,
) -> anyhow::Result<()> {
    let reader = SyncIoBridge::new(archive);
    tokio::task::spawn_blocking(move || unpack_blocking(reader, &folder, name.as_deref()))
        .await
        .context("unpacking")?
}

fn unpack_blocking(reader: impl Read, folder: &Path, name: Option<&str>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating `{}`", folder.display()))?;
    let mut archive = tar::Archive::new(reader);
    archive.set_preserve_ownerships(false);
    archive.set_preserve_permissions(false);
    archive.set_unpack_xattrs(false);
    archive.set_overwrite(true);
    for entry in archive.entries().context("reading the archive")? {
        let mut entry = entry.context("reading the archive")?;
        let kind = entry.header().entry_type();
        let is_ordinary =
            kind.is_file() || kind.is_dir() || kind.is_symlink() || kind.is_hard_link();
        if !is_ordinary {
            continue;
        }
        let path = entry.path().context("reading the archive")?.into_owned();
        if !is_below(&path, name) {
            bail!(
                "the sandbox sent `{}`, which is not part of the requested directory",
                path.display()
            );
        }
        let is_inside = entry
            .unpack_in(folder)
            .with_context(|| format!("unpacking `{}`", path.display()))?;
        if !is_inside {
            bail!(
                "the sandbox sent `{}`, which is outside of the target directory",
                path.display()
            );
        }
    }
    Ok(())
}

fn is_below(path: &Path, name: Option<&str>) -> bool {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    match (parts.next(), name) {
        (_, None) => true,
        (Some(Component::Normal(first)), Some(name)) => first == name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn archive(entries: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        entries(&mut builder);
        builder.into_inner().unwrap()
    }

    fn file(mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(size);
        header
    }

    #[tokio::test]
    async fn a_packed_directory_unpacks_unchanged() {
        let here = tempfile::tempdir().unwrap();
        let source = here.path().join("source");
        fs::create_dir_all(source.join("deep/er")).unwrap();
        fs::write(source.join("deep/er/file"), vec![7; 3 << 20]).unwrap();
        fs::write(source.join("empty"), "").unwrap();
        symlink("deep/er/file", source.join("link")).unwrap();
        let (reader, packed) = pack(source.clone());
        let target = here.path().join("target");
        unpack(reader, target.clone(), None).await.unwrap();
        packed.await.unwrap().unwrap();
        assert_eq!(
            fs::read(target.join("deep/er/file")).unwrap(),
            vec![7; 3 << 20]
        );
        assert_eq!(fs::read(target.join("empty")).unwrap(), b"");
        let link = fs::read_link(target.join("link")).unwrap();
        assert_eq!(link, Path::new("deep/er/file"));
    }

    #[test]
    fn a_hostile_archive_cannot_write_outside_of_the_target() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("target");
        let outside = here.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let through_link = archive(|builder| {
            let mut link = file(0o777, 0);
            link.set_entry_type(tar::EntryType::Symlink);
            builder.append_link(&mut link, "link", &outside).unwrap();
            let mut header = file(0o644, 1);
            builder
                .append_data(&mut header, "link/gift", &b"x"[..])
                .unwrap();
        });
        assert!(unpack_blocking(&through_link[..], &target, None).is_err());
        let upwards = archive(|builder| {
            let mut header = file(0o644, 1);
            let name = header.as_gnu_mut().unwrap();
            name.name[..11].copy_from_slice(b"../up/thing");
            header.set_cksum();
            builder.append(&header, &b"x"[..]).unwrap();
        });
        assert!(unpack_blocking(&upwards[..], &target, None).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert!(!here.path().join("up").exists());
    }

    #[test]
    fn set_user_id_bits_and_devices_are_ignored() {
        let here = tempfile::tempdir().unwrap();
        let bad = archive(|builder| {
            let mut header = file(0o4755, 1);
            builder.append_data(&mut header, "suid", &b"x"[..]).unwrap();
            let mut node = file(0o666, 0);
            node.set_entry_type(tar::EntryType::Char);
            node.set_device_major(1).unwrap();
            node.set_device_minor(8).unwrap();
            builder.append_data(&mut node, "node", &b""[..]).unwrap();
        });
        unpack_blocking(&bad[..], here.path(), None).unwrap();
        let mode = fs::metadata(here.path().join("suid")).unwrap().mode();
        assert_eq!(mode & 0o7000, 0);
        assert!(!here.path().join("node").exists());
    }

    #[test]
    fn entries_outside_of_the_requested_directory_are_refused() {
        let here = tempfile::tempdir().unwrap();
        let more = archive(|builder| {
            for name in ["out/a", ".profile"] {
                builder
                    .append_data(&mut file(0o644, 1), name, &b"x"[..])
                    .unwrap();
            }
        });
        assert!(unpack_blocking(&more[..], here.path(), Some("out")).is_err());
        assert!(here.path().join("out/a").exists());
        assert!(!here.path().join(".profile").exists());
    }
}
