//! Parses the URL of a database.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use sandyard_core::percent::decode_lenient;

use crate::error::{Result, StoreError};

/// Where the database is.
pub(crate) enum Address {
    /// In the memory of this process.
    Memory,
    /// In a SQLite file.
    File(PathBuf),
    /// In PostgreSQL, by a URL for `sqlx`. It may contain a password.
    Postgres(String),
}

impl Address {
    /// Parses a URL. Driver suffixes of other languages (`postgresql+asyncpg:`, `sqlite+aiosqlite:`) are dropped, so that a URL of another
    /// program works unchanged.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let bad = |detail: &str| StoreError::BadUrl {
            url: without_secrets(url),
            detail: detail.to_owned(),
        };
        let (scheme, rest) = url.split_once(':').ok_or_else(|| bad("it has no scheme"))?;
        let engine = scheme.split_once('+').map_or(scheme, |(engine, _)| engine);
        match engine {
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                ":memory:" | "/:memory:" => Ok(Self::Memory),
                "" | "/" => Err(bad("it names no file")),
                path if path.contains(['?', '#', '\0']) => {
                    Err(bad("a SQLite URL has no parameters"))
                }
                path => std::path::absolute(OsString::from_vec(decode_lenient(path)))
                    .map(Self::File)
                    .map_err(|error| bad(&error.to_string())),
            },
            "postgres" | "postgresql" if rest.starts_with("//") => {
                // SQLAlchemy's asyncpg uses `ssl`, other drivers `sslmode`.
                let rest = rest
                    .replace("?ssl=", "?sslmode=")
                    .replace("&ssl=", "&sslmode=");
                Ok(Self::Postgres(format!("postgres:{rest}")))
            }
            _ => Err(bad("its scheme must be `sqlite:` or `postgres:`")),
        }
    }
}

/// The URL without user, password and parameters, for messages.
pub(crate) fn without_secrets(url: &str) -> String {
    let address = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else {
        // A text that is not a URL may be a misplaced password.
        let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
        return format!("{scheme}…");
    };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres(url: &str) -> String {
        match Address::parse(url) {
            Ok(Address::Postgres(url)) => url,
            _ => panic!("not read as PostgreSQL"),
        }
    }

    #[test]
    fn files_may_have_odd_names() {
        for (url, path) in [
            ("sqlite:///a%20b/it%27s%25.db", "/a b/it's%.db"),
            ("sqlite:///plain.db", "/plain.db"),
            ("sqlite:///100%.db", "/100%.db"),
            ("sqlite:///gr%C3%BC%C3%9Fe", "/grüße"),
        ] {
            match Address::parse(url) {
                Ok(Address::File(file)) => assert_eq!(file, PathBuf::from(path)),
                _ => panic!("{url} is no file"),
            }
        }
    }

    #[test]
    fn driver_suffixes_are_dropped() {
        assert_eq!(
            postgres("postgresql+asyncpg://u:p@db:5432/x?ssl=require"),
            "postgres://u:p@db:5432/x?sslmode=require"
        );
        assert_eq!(
            postgres("postgres:///x?host=/run"),
            "postgres:///x?host=/run"
        );
    }

    #[test]
    fn files_and_memory_are_distinguished() {
        assert!(matches!(
            Address::parse("sqlite::memory:"),
            Ok(Address::Memory)
        ));
        assert!(matches!(
            Address::parse("sqlite://:memory:"),
            Ok(Address::Memory)
        ));
        for url in [
            "sqlite:///var/x.db",
            "sqlite:////var/x.db",
            "sqlite+aiosqlite:///var/x.db",
        ] {
            let Ok(Address::File(path)) = Address::parse(url) else {
                panic!("`{url}` is a file");
            };
            assert_eq!(
                path.components().collect::<PathBuf>(),
                PathBuf::from("/var/x.db")
            );
        }
    }

    #[test]
    fn no_error_shows_a_password() {
        for url in [
            "mysql://user:hunter2@host/db",
            "mysql://user:p@hunter2@host/db?password=hunter2",
            "hunter2",
            "sqlite:///x?key=hunter2",
            "postgres:user:hunter2",
        ] {
            let Err(error) = Address::parse(url) else {
                panic!("`{url}` was taken");
            };
            let output = format!("{error} {error:?}");
            assert!(!output.contains("hunter2"), "{output}");
        }
    }
}
