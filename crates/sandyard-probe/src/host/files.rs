//! World-readable files, so that only the sandbox keeps them from a probe.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::plan::SecretFile;

#[derive(Debug)]
pub(super) struct Files {
    directories: Vec<PathBuf>,
    secrets: Vec<SecretFile>,
}

impl Files {
    /// The temporary directory must take one; the home, /var/tmp, /run and `directories_to_try` where they do.
    pub(super) fn plant(word: &str, directories_to_try: &[PathBuf]) -> io::Result<Self> {
        let mut files = Self {
            directories: Vec::new(),
            secrets: Vec::new(),
        };
        files.add(&std::env::temp_dir(), word)?;
        let home = std::env::home_dir().filter(|home| home != Path::new("/"));
        let default_directories = ["/var/tmp", "/run", "/dev/shm"].map(PathBuf::from);
        for parent in home
            .into_iter()
            .chain(default_directories)
            .chain(directories_to_try.iter().cloned())
        {
            // Not everyone may write everywhere, and one file is enough.
            let _ = files.add(&parent, word);
        }
        Ok(files)
    }

    fn add(&mut self, parent: &Path, word: &str) -> io::Result<()> {
        let directory = parent.join(format!("sandyard-plant-{word}"));
        fs::create_dir(&directory)?;
        self.directories.push(directory.clone());
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        let path = directory.join("secret");
        let marker = format!("planted-file-{word}");
        fs::write(&path, &marker)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        let device = fs::metadata(&path)?.dev();
        self.secrets.push(SecretFile {
            handle: handle(&path).ok(),
            path,
            marker,
            device,
        });
        Ok(())
    }

    pub(super) fn secrets(&self) -> Vec<SecretFile> {
        self.secrets.clone()
    }

    /// The first directory, for the socket.
    pub(super) fn directory(&self) -> &Path {
        self.directories
            .first()
            .map_or(Path::new("/tmp"), PathBuf::as_path)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// The kernel's handle of a file: `struct file_handle` is a size, a type, and that many bytes.
fn handle(path: &Path) -> io::Result<(i32, Vec<u8>)> {
    const MAX_BYTES: usize = 128;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut buffer = [0_u8; 8 + MAX_BYTES];
    buffer[..4].copy_from_slice(&u32::try_from(MAX_BYTES).expect("128 fits").to_ne_bytes());
    let mut mount = 0_i32;
    // SAFETY: the path ends in NUL, the buffer has room for the size it names, `mount` is a live integer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            buffer.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let word = |at: usize| {
        i32::from_ne_bytes([buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]])
    };
    let size = usize::try_from(word(0)).unwrap_or(0).min(MAX_BYTES);
    Ok((word(4), buffer[8..8 + size].to_vec()))
}
