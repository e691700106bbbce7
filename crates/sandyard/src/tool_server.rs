//! The tool server as a process of its own, in sandboxes that somebody else makes: see `tools_inside` in `sandyard-providers`,
//! which brings it in and starts it.
//!
//! What it is told is in a file, where no list of processes shows it. That file is gone as soon as callers are taken: that is
//! how whoever started it knows.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use sandyard_tools::{Doors, Options, TokenHash};
use serde::Deserialize;

use crate::output;

/// What this role is called.
pub(crate) const ROLE: &str = "tool-server";

/// Most bytes of a file of settings.
const MAX_SETTINGS: u64 = 64 << 10;

/// What it is told.
#[derive(Deserialize)]
struct Settings {
    /// SHA-256 of the tokens that are taken, in hexadecimal digits; what is proved is the first.
    tokens: Vec<String>,
    /// Where projects are.
    workspace: PathBuf,
    /// The user's home.
    home: PathBuf,
    /// Where the cloud's proxy finds it.
    door: u16,
    /// Where programs inside find it, unless somebody else is there.
    port: u16,
}

/// Serves until it is ended.
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
        "usage: sandyard {ROLE} --settings FILE; people want `sandyard tools`"
    ));
    ExitCode::from(2)
}

fn serve(path: &Path) -> anyhow::Result<()> {
    // Programs of the same user can then neither trace it nor read its memory.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // It outlives the shell that started it; one that leads a group already does.
    let _ = setsid();
    let settings = read(path)?;
    let door = settings.door;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, door)).with_context(|| {
        format!("port {door} of the sandbox is taken: end the program that listens there")
    })?;
    let mut listeners = vec![listener];
    // Programs inside do without when somebody else has it.
    listeners.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port)));
    std::env::set_current_dir(&settings.workspace)
        .with_context(|| format!("cannot use the folder {}", settings.workspace.display()))?;
    let options = Options {
        more_roots: vec![settings.home.clone(), "/tmp".into()],
        token: Some(token(&settings.tokens)?),
        workspace: settings.workspace,
        home: settings.home,
        port: settings.port,
    };
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    let doors = Doors {
        listeners,
        connections: None,
    };
    sandyard_tools::run(options, doors).context("the tool server ended")
}

/// What is wrong in it is not told.
fn read(path: &Path) -> anyhow::Result<Settings> {
    let cannot = || format!("cannot read {}", path.display());
    let file = fs::File::open(path).with_context(cannot)?;
    let mut text = String::new();
    file.take(MAX_SETTINGS)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    let read = serde_json::from_str(&text);
    read.map_err(|error| anyhow::anyhow!("{} is wrong in line {}", path.display(), error.line()))
}

fn token(tokens: &[String]) -> anyhow::Result<TokenHash> {
    let mut hashes = Vec::new();
    for text in tokens {
        hashes.push(digits(text).context("a token's hash has 64 hexadecimal digits")?);
    }
    let mut hashes = hashes.into_iter();
    let Some(first) = hashes.next() else {
        bail!("there is no token");
    };
    Ok(hashes.fold(TokenHash::from_bytes(first), TokenHash::or))
}

fn digits(text: &str) -> Option<[u8; 32]> {
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
    fn tokens_are_taken_by_their_hashes() {
        // Of `token` and of nothing.
        let first = "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0";
        let second = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let taken = token(&[first.to_owned(), second.to_owned()]).expect("two tokens");
        assert!(taken.matches("token") && taken.matches("") && !taken.matches("other"));
        for odd in [
            &[][..],
            &["3c".to_owned()],
            &["é".repeat(32)],
            &["x".repeat(64)],
        ] {
            assert!(token(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn settings_that_are_none_are_refused_without_their_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings");
        fs::write(&path, r#"{"tokens": "secret"}"#).expect("written");
        let error = format!("{:?}", read(&path).err().expect("refused"));
        assert!(!error.contains("secret"), "{error}");
        assert!(read(&folder.path().join("none")).is_err());
    }
}
