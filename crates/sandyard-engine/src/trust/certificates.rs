//! The certificates that sandboxes trust: the gateway's, then those of the operator, as they are in the data directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::subject;
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::DataDir;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// Longer than the list of a whole distribution.
const MOST_BYTES: u64 = 1 << 20;

/// Certificates without repetition, each as text without anything that may stand around it.
#[derive(Debug)]
pub(super) struct Certificates(Vec<String>);

impl Certificates {
    /// Those of a data directory; `None` when no gateway has made one.
    pub(super) fn of(data: &DataDir) -> Result<Option<Self>> {
        let Some(mut all) = Self::read(&data.gateway_certificate())? else {
            return Ok(None);
        };
        let more = Self::read(&data.sandbox_certificates())?;
        for pem in more.into_iter().flat_map(|more| more.0) {
            if !all.0.contains(&pem) {
                all.0.push(pem);
            }
        }
        Ok(Some(all))
    }

    /// Reads a file; `None` when there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let mut text = String::new();
        let read =
            fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::failed(
                format!("reading `{}`", path.display()),
                &error,
            )),
            Ok(_) => Self::parse(&text).map(Some).ok_or_else(|| {
                let message = format!("`{}` holds no certificate", path.display());
                EngineError::new(ErrorKind::Invalid, message)
                    .hint("remove it, and start the server again: it makes another one")
            }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = Vec::new();
        for part in text.split(BEGIN).skip(1) {
            // Nothing else of the file: whatever it is, it is not meant for sandboxes.
            let pem = format!("{BEGIN}{}{END}\n", part.split_once(END)?.0);
            der(&pem)?;
            if !all.contains(&pem) {
                all.push(pem);
            }
        }
        (!all.is_empty()).then_some(Self(all))
    }

    /// All as text, with a newline at the end.
    pub(super) fn pem(&self) -> String {
        self.0.concat()
    }

    /// One of those that [`Self::hashes`] numbers.
    pub(super) fn single(&self, index: usize) -> &str {
        &self.0[index]
    }

    /// Those that a list does not hold yet, to be put behind it.
    pub(super) fn missing_in(&self, list: &[u8]) -> Vec<u8> {
        let is_in = |pem: &&String| !list.windows(pem.len()).any(|part| part == pem.as_bytes());
        let missing: String = self.0.iter().filter(is_in).map(String::as_str).collect();
        let needs_gap = !missing.is_empty() && list.last().is_some_and(|last| *last != b'\n');
        let gap = if needs_gap { "\n" } else { "" };
        [gap, &missing].concat().into_bytes()
    }

    /// As a policy of Chromium's and its kin, which look at no list of the system's.
    ///
    /// Since version 128; older ones do not know it and leave it alone.
    pub(super) fn policy(&self) -> String {
        let bodies: Vec<_> = self.0.iter().filter_map(|pem| body(pem)).collect();
        format!("{{\"CACertificates\": [\"{}\"]}}\n", bodies.join("\", \""))
    }

    /// The names OpenSSL looks them up by, in eight hexadecimal digits, with their numbers here. One that has a name of another kind is
    /// left out.
    pub(super) fn hashes(&self) -> BTreeMap<String, usize> {
        let mut hashes = BTreeMap::new();
        for (index, pem) in self.0.iter().enumerate() {
            if let Some(hash) = der(pem).and_then(|der| subject::hash(&der)) {
                hashes.entry(hash).or_insert(index);
            }
        }
        hashes
    }

    /// Tells them from others.
    pub(super) fn fingerprint(&self) -> String {
        crate::random::hex(&Sha256::digest(self.pem())[..16])
    }
}

fn der(pem: &str) -> Option<Vec<u8>> {
    STANDARD.decode(body(pem)?).ok()
}

/// A certificate in letters and digits, as it stands between the first and the last line.
fn body(pem: &str) -> Option<String> {
    let body = pem.strip_prefix(BEGIN)?.split(END).next()?;
    Some(body.split_whitespace().collect())
}
