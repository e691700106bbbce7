//! Changes of a request: headers that rules set, and secrets in place of placeholders.
//!
//! Placeholders are searched in the values of headers, and in the credentials of a `Basic` authorization. Not in bodies, and not in
//! URLs, which servers and proxies write into their logs.
//!
//! Values of rules are plain text of the policy's author: they are not redacted in responses. A value that must stay secret is a
//! secret, whose placeholder may be in a rule.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use sandyard_core::network::NetworkGrant;
use zeroize::Zeroizing;

use super::answer::Refusal;
use super::encodings;
use super::host::Host;
use super::replace::Replacements;

/// Headers that define how a request is transferred. Policies that set them are refused; this is a second check.
const PROTECTED_HEADERS: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Accepts base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The changes of a grant to requests for one host.
#[derive(Debug)]
pub(super) struct RequestChanges {
    /// Headers to set; a later one replaces an earlier one.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Secrets for the host that are not valid in a header: their names and placeholders.
    invalid: Vec<(String, Vec<u8>)>,
    /// Placeholders and their secrets, for requests.
    placeholders: Replacements,
    /// Secrets and their placeholders, for responses.
    redactions: Arc<Replacements>,
}

/// Whether requests to this host are changed, so that the gateway must terminate its TLS.
pub(crate) fn changes(grant: &NetworkGrant, host: &Host, is_tls: bool) -> bool {
    let mut rules = grant.policy.rules_for(&host.name, host.port, is_tls);
    let mut secrets = grant.secrets_for(&host.name, host.port, is_tls);
    rules.any(|rule| !rule.headers.is_empty()) || secrets.next().is_some()
}

impl RequestChanges {
    /// Reads the changes from a grant.
    pub(super) fn of(grant: &NetworkGrant, host: &Host, is_tls: bool) -> Result<Self, Refusal> {
        let mut headers = Vec::new();
        for rule in grant.policy.rules_for(&host.name, host.port, is_tls) {
            for (name, value) in &rule.headers {
                headers.push(header(name, value)?);
            }
        }
        let (mut invalid, mut placeholders, mut redactions) = (Vec::new(), Vec::new(), Vec::new());
        for secret in grant.secrets_for(&host.name, host.port, is_tls) {
            let (value, placeholder) = (secret.value.expose(), secret.placeholder.as_bytes());
            if HeaderValue::from_str(value).is_err() {
                invalid.push((secret.name.clone(), placeholder.to_vec()));
            }
            placeholders.push((placeholder.to_vec(), value.as_bytes().to_vec()));
            redactions.extend(encodings::of(value, &secret.placeholder));
        }
        Ok(Self {
            headers,
            invalid,
            placeholders: Replacements::new(placeholders),
            redactions: Arc::new(Replacements::new(redactions)),
        })
    }

    /// RequestChanges a request's headers. Gives what is to be hidden in the response.
    pub(super) fn apply(&self, headers: &mut HeaderMap) -> Result<Arc<Replacements>, Refusal> {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        let mut redactions = self.redactions.clone();
        if self.placeholders.is_empty() {
            return Ok(redactions);
        }
        for (name, value) in headers.iter_mut() {
            if let Some(replaced) = self.placeholders.replace_all(value.as_bytes()) {
                let replaced = Zeroizing::new(replaced);
                let replaced =
                    HeaderValue::from_bytes(&replaced).map_err(|_| self.invalid_secret(value));
                *value = replaced?;
                value.set_sensitive(true);
            }
            if *name == AUTHORIZATION
                && let Some(basic) = self.basic(value)
            {
                redactions = Arc::new(redactions.with(basic.with_secret, basic.with_placeholder));
                *value = basic.value;
                value.set_sensitive(true);
            }
        }
        // A compressed response could not be searched for the secret.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut codings = headers.get_all(TE).iter();
        if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        Ok(redactions)
    }

    /// Puts secrets into the credentials of a `Basic` authorization.
    fn basic(&self, value: &HeaderValue) -> Option<Basic> {
        let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let encoded = encoded.trim();
        let decoded = BASE64.decode(encoded).ok()?;
        let credentials = Zeroizing::new(self.placeholders.replace_all(&decoded)?);
        let sent = BASE64.encode(&*credentials);
        let value = Zeroizing::new(format!("{scheme} {sent}"));
        Some(Basic {
            value: HeaderValue::from_str(&value).ok()?,
            with_secret: sent.into_bytes(),
            with_placeholder: encoded.as_bytes().to_vec(),
        })
    }

    fn invalid_secret(&self, value: &HeaderValue) -> Refusal {
        let mut invalid = self.invalid.iter();
        let found = invalid.find(|(_, placeholder)| {
            let mut windows = value.as_bytes().windows(placeholder.len().max(1));
            windows.any(|window| window == placeholder)
        });
        let name = found.map_or("?", |(name, _)| name);
        Refusal::bad_gateway(format!(
            "the secret `{name}` contains a byte that is not allowed in a header, such as a line end: set the secret again without it"
        ))
    }
}

struct Basic {
    value: HeaderValue,
    /// The encoded credentials with the secret.
    with_secret: Vec<u8>,
    /// The encoded credentials of the program.
    with_placeholder: Vec<u8>,
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Refusal> {
    let invalid = || {
        Refusal::bad_gateway(format!(
            "the policy sets the header `{name}`, which cannot be set: remove it from the policy"
        ))
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
    if PROTECTED_HEADERS.contains(&name) {
        return Err(invalid());
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok((name, value))
}
