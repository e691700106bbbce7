//! What is changed in a request: headers that rules set, and placeholders for which secrets are put in.
//!
//! Placeholders are looked for in the values of headers, and in what a `Basic` authorization encodes. Not in bodies, and not in
//! URLs, which servers and proxies write into their logs.
//!
//! Values that rules set are the maker's own text: what a host sends back of them is not hidden. What must stay hidden is a
//! secret, and its placeholder may be in a rule.

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

/// Headers that say how a request is carried. Policies with such are refused when they are made; this is the second lock.
const KEPT_HEADERS: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes what programs write: with the `=` at the end, or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a grant changes in requests to one host.
#[derive(Debug)]
pub(super) struct RequestChanges {
    /// Headers to set; a later one replaces an earlier one.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Secrets that may go there and that no header can hold: their names and placeholders.
    unfit: Vec<(String, Vec<u8>)>,
    /// Placeholders, and the secrets to put there.
    put: Replacements,
    /// Secrets, and the placeholders to put there on the way back.
    hide: Arc<Replacements>,
}

/// Says whether requests to this host are changed, so that its TLS has to be ended here.
pub(crate) fn changes(grant: &NetworkGrant, host: &Host, is_tls: bool) -> bool {
    let mut rules = grant.policy.rules_for(&host.name, host.port, is_tls);
    let mut secrets = grant.secrets_for(&host.name, host.port, is_tls);
    rules.any(|rule| !rule.headers.is_empty()) || secrets.next().is_some()
}

impl RequestChanges {
    /// Reads a grant.
    pub(super) fn of(grant: &NetworkGrant, host: &Host, is_tls: bool) -> Result<Self, Refusal> {
        let mut headers = Vec::new();
        for rule in grant.policy.rules_for(&host.name, host.port, is_tls) {
            for (name, value) in &rule.headers {
                headers.push(header(name, value)?);
            }
        }
        let (mut unfit, mut put, mut hide) = (Vec::new(), Vec::new(), Vec::new());
        for secret in grant.secrets_for(&host.name, host.port, is_tls) {
            let (value, placeholder) = (secret.value.expose(), secret.placeholder.as_bytes());
            if HeaderValue::from_str(value).is_err() {
                unfit.push((secret.name.clone(), placeholder.to_vec()));
            }
            put.push((placeholder.to_vec(), value.as_bytes().to_vec()));
            hide.extend(encodings::of(value, &secret.placeholder));
        }
        Ok(Self {
            headers,
            unfit,
            put: Replacements::new(put),
            hide: Arc::new(Replacements::new(hide)),
        })
    }

    /// RequestChanges a request's headers. Gives what is to be hidden in the response.
    pub(super) fn apply(&self, headers: &mut HeaderMap) -> Result<Arc<Replacements>, Refusal> {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        let mut hide = self.hide.clone();
        if self.put.is_empty() {
            return Ok(hide);
        }
        for (name, value) in headers.iter_mut() {
            if let Some(made) = self.put.whole(value.as_bytes()) {
                let made = Zeroizing::new(made);
                let made = HeaderValue::from_bytes(&made).map_err(|_| self.unfit_in(value));
                *value = made?;
                value.set_sensitive(true);
            }
            if *name == AUTHORIZATION
                && let Some(basic) = self.basic(value)
            {
                hide = Arc::new(hide.with(basic.sent, basic.said));
                *value = basic.value;
                value.set_sensitive(true);
            }
        }
        // A compressed response could not be looked through for the secret.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut codings = headers.get_all(TE).iter();
        if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        Ok(hide)
    }

    /// Puts secrets into what a `Basic` authorization encodes.
    fn basic(&self, value: &HeaderValue) -> Option<Basic> {
        let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let encoded = encoded.trim();
        let decoded = BASE64.decode(encoded).ok()?;
        let made = Zeroizing::new(self.put.whole(&decoded)?);
        let sent = BASE64.encode(&*made);
        let value = Zeroizing::new(format!("{scheme} {sent}"));
        Some(Basic {
            value: HeaderValue::from_str(&value).ok()?,
            sent: sent.into_bytes(),
            said: encoded.as_bytes().to_vec(),
        })
    }

    fn unfit_in(&self, value: &HeaderValue) -> Refusal {
        let mut unfit = self.unfit.iter();
        let found = unfit.find(|(_, placeholder)| {
            let mut windows = value.as_bytes().windows(placeholder.len().max(1));
            windows.any(|window| window == placeholder)
        });
        let name = found.map_or("?", |(name, _)| name);
        Refusal::bad_gateway(format!(
            "the secret `{name}` holds a byte that no header may hold, such as a line end: set it anew without"
        ))
    }
}

struct Basic {
    value: HeaderValue,
    /// The credentials with the secret, encoded.
    sent: Vec<u8>,
    /// Those of the program, encoded.
    said: Vec<u8>,
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Refusal> {
    let unfit = || {
        Refusal::bad_gateway(format!(
            "the policy sets the header `{name}`, which cannot be set"
        ))
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
    if KEPT_HEADERS.contains(&name) {
        return Err(unfit());
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
    value.set_sensitive(true);
    Ok((name, value))
}
