//! The name under which OpenSSL looks for a certificate in a folder: a hash of its subject, written in one certain way.
//!
//! Strings count without their kind, without case, and with blanks as one (`X509_NAME_hash_ex`, `x509name_canon` in
//! OpenSSL's `crypto/x509`). Of the SHA-1 over that, the first four bytes are the name, the least significant first.

use sha1::{Digest, Sha1};

use super::der::{SEQUENCE, UTF8_STRING, all, expect, next, write};

/// Kinds of strings that hold UTF-8, or a part of it: UTF-8, printable, IA5, visible.
const UTF8_KINDS: [u8; 4] = [UTF8_STRING, 19, 22, 26];
/// Kinds of strings that would have to be turned into it: T61, universal, BMP.
const OTHER_KINDS: [u8; 3] = [20, 28, 30];
/// Marks the version of a certificate, which may be missing.
const VERSION: u8 = 0xa0;

/// The hash of the subject's name, in eight hexadecimal digits; `None` for what is no certificate, or is named in an old way.
pub(super) fn hash(certificate: &[u8]) -> Option<String> {
    let mut canonical = Vec::new();
    for (tag, names) in all(subject(certificate)?)? {
        canonical.extend(rewrite(tag, names)?);
    }
    let digest = Sha1::digest(&canonical);
    let first = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    Some(format!("{first:08x}"))
}

/// What the subject's sequence holds.
fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (signed, _) = expect(SEQUENCE, certificate)?;
    let (mut fields, _) = expect(SEQUENCE, signed)?;
    if let Some((VERSION, _, behind)) = next(fields) {
        fields = behind;
    }
    // Serial number, kind of signature, issuer, times.
    for _ in 0..4 {
        (_, _, fields) = next(fields)?;
    }
    Some(expect(SEQUENCE, fields)?.0)
}

/// One set of names, with its strings in that certain way.
fn rewrite(tag: u8, names: &[u8]) -> Option<Vec<u8>> {
    let mut rewritten = Vec::new();
    for (_, pair) in all(names)? {
        let (kind, name, behind) = next(pair)?;
        let (string_kind, text, _) = next(behind)?;
        let text = match string_kind {
            kind if UTF8_KINDS.contains(&kind) => write(UTF8_STRING, &plain(text)),
            kind if OTHER_KINDS.contains(&kind) => return None,
            kind => write(kind, text),
        };
        let pair = [write(kind, name), text].concat();
        rewritten.push(write(SEQUENCE, &pair));
    }
    // The members of a set are in order.
    rewritten.sort();
    Some(write(tag, &rewritten.concat()))
}

/// Lower case, nothing blank around it, one blank for several.
fn plain(text: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let parts = text.split(is_blank).filter(|word| !word.is_empty());
    let parts: Vec<Vec<u8>> = parts.map(<[u8]>::to_ascii_lowercase).collect();
    parts.join(&b' ')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::trust::certificates::Certificates;

    /// Made with `openssl req -x509 -newkey ed25519 -subj "/O=Sandyard/CN=Sandyard gateway"`, and what `openssl x509 -hash`
    /// says.
    const TEST_CERTIFICATE: (&str, &str) = (include_str!("test_certificate.pem"), "f7ebe0a2");

    fn hash_of(pem: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, pem).expect("write");
        let certificates = Certificates::read(&path).expect("read").expect("there");
        certificates.hashes().into_keys().next()
    }

    #[test]
    fn a_known_certificate_has_the_name_openssl_gives_it() {
        assert_eq!(
            hash_of(TEST_CERTIFICATE.0).as_deref(),
            Some(TEST_CERTIFICATE.1)
        );
    }

    #[test]
    fn openssl_agrees_whatever_the_name_looks_like() {
        let folder = tempfile::tempdir().expect("a folder");
        let openssl = |arguments: &[&str]| {
            let output = Command::new("openssl")
                .args(arguments)
                .current_dir(folder.path())
                .output();
            // Where it is missing, the known certificate must do.
            output.ok().filter(|output| output.status.success())
        };
        for (name, options) in [
            ("/CN=Sandyard gateway", &[][..]),
            ("/O=Two  Blanks /CN= Around It ", &[]),
            ("/O=B\u{fc}cher/CN=\u{c4}", &["-utf8"]),
            ("/C=DE/O=A+OU=B/CN=several", &["-multivalue-rdn"]),
        ] {
            let made = [
                &[
                    "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "key",
                ][..],
                &["-out", "ca.pem", "-subj", name],
                options,
            ];
            if openssl(&made.concat()).is_none() {
                continue;
            }
            let expected = openssl(&["x509", "-in", "ca.pem", "-noout", "-hash"]).expect("a hash");
            let pem = std::fs::read_to_string(folder.path().join("ca.pem")).expect("read");
            let expected = String::from_utf8_lossy(&expected.stdout).trim().to_owned();
            assert_eq!(hash_of(&pem), Some(expected), "{name}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_name() {
        for bytes in [&[][..], &[0x30, 0], &[0x30, 2, 0x30, 0], &[0x31, 0]] {
            assert_eq!(hash(bytes), None);
        }
    }
}
