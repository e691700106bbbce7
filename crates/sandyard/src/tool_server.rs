//! The tool server as its own process, for sandboxes of cloud providers, where there is no agent of ours to start it.
//!
//! Its settings are in a file, because a process list would show command-line arguments. The server deletes the file when it accepts
//! connections; the provider waits for that.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use sandyard_tools::{Endpoints, Options, TokenHash};
use serde::Deserialize;

use crate::output;

/// Name of this role on the command line.
pub(crate) const ROLE: &str = "tool-server";

/// Maximum size of the settings file.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// The settings file.
#[derive(Deserialize)]
struct Settings {
    /// SHA-256 of each accepted token, in hexadecimal digits. The server proves to clients that it knows the first.
    tokens: Vec<String>,
    /// Directory of the user's projects.
    workspace: PathBuf,
    /// The user's home directory.
    home: PathBuf,
    /// Port for the cloud's proxy, on all addresses.
    #[serde(alias = "door")]
    public_port: u16,
    /// Port for programs in the sandbox, on loopback. Not used if another program listens there.
    port: u16,
}

/// Serves until the process is killed.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(option), Some(path), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return usage();
    };
    if option != "--settings" {
        return usage();
    }
    match serve(Path::new(&path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    output::note(format!(
        "usage: sandyard {ROLE} --settings FILE (internal; use `sandyard tools` instead)"
    ));
    ExitCode::from(2)
}

fn serve(path: &Path) -> anyhow::Result<()> {
    // Other programs of the same user can then neither trace this process nor read its memory.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Survive the end of the shell that started us. This fails for the leader of a process group, which survives anyway.
    let _ = setsid();
    let settings = read(path)?;
    let port = settings.public_port;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).with_context(|| {
        format!("port {port} of the sandbox is in use: stop the program that listens on it")
    })?;
    let mut listeners = vec![listener];
    listeners.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port)));
    std::env::set_current_dir(&settings.workspace).with_context(|| {
        format!(
            "cannot open the directory `{}`",
            settings.workspace.display()
        )
    })?;
    let options = Options {
        more_roots: vec![settings.home.clone(), "/tmp".into()],
        token: Some(token(&settings.tokens)?),
        workspace: settings.workspace,
        home: settings.home,
        port: settings.port,
    };
    fs::remove_file(path).with_context(|| format!("cannot delete `{}`", path.display()))?;
    let endpoints = Endpoints {
        listeners,
        connections: None,
    };
    sandyard_tools::run(options, endpoints).context("the tool server ended")
}

/// Reads the settings. Errors do not contain the file's text, which has secrets.
fn read(path: &Path) -> anyhow::Result<Settings> {
    let cannot = || format!("cannot read `{}`", path.display());
    let file = fs::File::open(path).with_context(cannot)?;
    let mut text = String::new();
    file.take(MAX_SETTINGS_BYTES)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    let parsed = serde_json::from_str(&text);
    parsed.map_err(|error| {
        anyhow::anyhow!("`{}` is not valid in line {}", path.display(), error.line())
    })
}

fn token(tokens: &[String]) -> anyhow::Result<TokenHash> {
    let mut hashes = Vec::new();
    for text in tokens {
        hashes.push(parse_hash(text).context("a token hash must have 64 hexadecimal digits")?);
    }
    let mut hashes = hashes.into_iter();
    let Some(first) = hashes.next() else {
        bail!("the list of tokens is empty");
    };
    Ok(hashes.fold(TokenHash::from_bytes(first), TokenHash::or))
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_accepted_by_their_hashes() {
        // Hashes of `token` and of the empty string.
        let first = "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0";
        let second = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let accepted = token(&[first.to_owned(), second.to_owned()]).expect("two tokens");
        assert!(accepted.matches("token") && accepted.matches("") && !accepted.matches("other"));
        for invalid in [
            &[][..],
            &["3c".to_owned()],
            &["é".repeat(32)],
            &["x".repeat(64)],
        ] {
            assert!(token(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn invalid_settings_are_refused_without_quoting_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings");
        fs::write(&path, r#"{"tokens": "secret"}"#).expect("written");
        let error = format!("{:?}", read(&path).err().expect("refused"));
        assert!(!error.contains("secret"), "{error}");
        assert!(read(&folder.path().join("none")).is_err());
    }
}
