//! Copies a SQLite database while servers use it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sandyard_core::percent::encode_path;
use sqlx::{AnyConnection, Connection};

use crate::address::Address;
use crate::connect::options;
use crate::error::{Result, StoreError};

const COPYING: &str = "copying the database";

/// The file of the database at `url`; none if it is in PostgreSQL or in memory.
///
/// # Errors
/// When that is not the URL of a database.
pub fn sqlite_file(url: &str) -> Result<Option<PathBuf>> {
    Ok(match Address::parse(url)? {
        Address::File(path) => Some(path),
        Address::Memory | Address::Postgres(_) => None,
    })
}

/// Copies a SQLite database as it is at one moment into the new file `to`, which only its owner can read.
///
/// # Errors
/// When one of the files cannot be opened, or the disk is full.
pub async fn copy_sqlite(from: &Path, to: &Path) -> Result<()> {
    sqlx::any::install_default_drivers();
    let failed = |error: &sqlx::Error| StoreError::of_file(COPYING, error, Some(from));
    let (Some(source), Some(target)) = (from.to_str(), to.to_str()) else {
        return Err(failed(&sqlx::Error::Protocol(
            "a path is not UTF-8".to_owned(),
        )));
    };
    // SQLite writes into an empty file, and would make one that others can read.
    let mut new = OpenOptions::new();
    let made = new.create_new(true).write(true).mode(0o600).open(to);
    made.map_err(|error| failed(&sqlx::Error::Io(error)))?;
    let options = options(&format!("sqlite://{}", encode_path(source)));
    let copy = async {
        let mut connection = AnyConnection::connect_with(&options?).await?;
        sqlx::raw_sql("PRAGMA busy_timeout = 10000")
            .execute(&mut connection)
            .await?;
        sqlx::query("VACUUM INTO $1")
            .bind(target.to_owned())
            .execute(&mut connection)
            .await?;
        connection.close().await
    };
    copy.await.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_copy_of_an_open_database_is_whole_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let url = |name: &str| format!("sqlite://{}", at(name).display());
        let store = Store::open(&url("one.db")).await.unwrap();
        store.check_write().await.unwrap();
        let file = sqlite_file(&url("one.db")).unwrap().unwrap();
        copy_sqlite(&file, &at("two.db")).await.unwrap();
        assert!(copy_sqlite(&file, &at("two.db")).await.is_err());
        let mode = std::fs::metadata(at("two.db"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let copy = Store::open(&url("two.db")).await.unwrap();
        copy.check_write().await.unwrap();
        assert_eq!(sqlite_file("postgres://host/db").unwrap(), None);
    }
}
