//! Finds the sandbox of a signed URL, or of a token where a client shows nothing else.
//!
//! Without domains a signed URL names no sandbox, so the token of every sandbox is tried. Each costs a hash: about a millisecond
//! for some thousands. Searches run one at a time, and an address with too many misses may not search for a while. Proofs that
//! were found lately need no search.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use axum::extract::Query;
use axum::http::Method;
use axum::http::request::Parts;
use sandyard_agent_client::wire::routes::header::ACCESS_TOKEN;
use sandyard_agent_client::wire::routes::{FILES, query};
use sandyard_agent_client::wire::signature::{
    Operation, Signature, SignedUrl, Unsigned, secrets_match,
};
use sandyard_core::SandboxId;
use tokio::sync::Semaphore;

use super::miss_limiter::MissLimiter;
use super::proof_cache::ProofCache;
use super::token_index::{SandboxToken, TokenIndex};
use crate::app::App;
use crate::listen::Listener;

/// Tokens that are tried before other tasks run.
const BATCH: usize = 1000;

/// Why no sandbox is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No sandbox has made the signature or has the token.
    Unknown,
    /// The client has had too many misses.
    TooMany,
    /// The store cannot be read.
    Failed,
}

/// Finds sandboxes by signatures and tokens.
#[derive(Debug)]
pub(crate) struct Signatures {
    tokens: TokenIndex,
    proofs: ProofCache,
    misses: MissLimiter,
    /// Makes hashes that clients cannot predict.
    hasher: RandomState,
    searches: Semaphore,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            tokens: TokenIndex::default(),
            proofs: ProofCache::default(),
            misses: MissLimiter::default(),
            hasher: RandomState::new(),
            searches: Semaphore::new(1),
        }
    }
}

impl Signatures {
    /// Finds the sandbox whose token made the signature of a request.
    pub(super) async fn find(&self, app: &App, parts: &Parts) -> Result<SandboxId, Refusal> {
        let signed = SignedRequest::of(parts).ok_or(Refusal::Unknown)?;
        self.find_by(app, parts, &Proof::Signature(signed)).await
    }

    /// Finds the sandbox whose token a request shows.
    pub(super) async fn find_by_token(
        &self,
        app: &App,
        parts: &Parts,
    ) -> Result<SandboxId, Refusal> {
        let token = parts.headers.get(ACCESS_TOKEN);
        let token = token.and_then(|token| token.to_str().ok());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or(Refusal::Unknown)?.to_owned();
        self.find_by(app, parts, &Proof::Token(token)).await
    }

    async fn find_by(&self, app: &App, parts: &Parts, proof: &Proof) -> Result<SandboxId, Refusal> {
        let listener = parts.extensions.get::<Listener>();
        let address = listener.map_or(Ipv4Addr::UNSPECIFIED.into(), |it| it.peer.ip());
        let hash = self.hasher.hash_one(proof.text());
        if let Some(sandbox) = self.proofs.find(hash)
            && proof.is_of(&sandbox)
        {
            return Ok(sandbox.id);
        }
        let tokens = self.tokens.cached();
        if let Some(sandbox) = self.search(proof, &tokens, address).await? {
            self.proofs.insert(hash, sandbox.clone());
            return Ok(sandbox.id);
        }
        // Counted before the wait, so that all requests that wait count.
        self.misses.count(address, Instant::now());
        let added = self.tokens.added_since(app.store(), &tokens).await;
        let added = added.map_err(|error| {
            tracing::warn!(%error, "Cannot look up sandboxes by signature");
            Refusal::Failed
        })?;
        let sandbox = proof.find_in(&added).ok_or(Refusal::Unknown)?;
        self.misses.uncount(address, Instant::now());
        self.proofs.insert(hash, sandbox.clone());
        Ok(sandbox.id)
    }

    async fn search(
        &self,
        proof: &Proof,
        tokens: &[SandboxToken],
        address: IpAddr,
    ) -> Result<Option<SandboxToken>, Refusal> {
        let _turn = self.searches.acquire().await;
        if !self.misses.may_search(address, Instant::now()) {
            return Err(Refusal::TooMany);
        }
        // New sandboxes are requested most, so they come first.
        for batch in tokens.rchunks(BATCH) {
            if let Some(sandbox) = proof.find_in(batch) {
                return Ok(Some(sandbox));
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }
}

/// Says whether a request has a signature made with this token. The agent checks whether it has expired.
pub(super) fn is_signed(parts: &Parts, token: &str) -> bool {
    let is_file_method = matches!(parts.method, Method::GET | Method::HEAD | Method::POST);
    !token.is_empty()
        && is_file_method
        && parts.uri.path() == FILES
        && SignedRequest::of(parts).is_some_and(|signed| signed.is_by(token))
}

/// The agent's text for an expired URL.
pub(super) const EXPIRED: &str = "signature is already expired";

/// Says whether the signature of a request has expired, for agents that do not know this server's signatures.
pub(super) fn is_expired(parts: &Parts, now_ms: i64) -> bool {
    let expiration = SignedRequest::of(parts).and_then(|signed| signed.expiration);
    expiration.is_some_and(|seconds| seconds.saturating_mul(1000) < now_ms)
}

/// A request with a signature.
struct SignedRequest {
    url: Unsigned,
    text: String,
    signature: Signature,
    /// When it expires, in seconds since 1970.
    expiration: Option<i64>,
}

impl SignedRequest {
    fn of(parts: &Parts) -> Option<Self> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).ok()?;
        let get = |key: &str| {
            let found = pairs.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| value.as_str())
        };
        let url = SignedUrl {
            path: get(query::PATH).unwrap_or_default(),
            operation: if parts.method == Method::POST {
                Operation::Write
            } else {
                Operation::Read
            },
            user: get(query::USERNAME).unwrap_or_default(),
            expiration: get(query::SIGNATURE_EXPIRATION).and_then(|text| text.parse().ok()),
        };
        let text = get(query::SIGNATURE)?;
        Some(Self {
            expiration: url.expiration,
            url: url.unsigned(),
            signature: Signature::parse(text)?,
            text: text.to_owned(),
        })
    }

    fn is_by(&self, token: &str) -> bool {
        self.url.is_signed_by(token, &self.signature)
    }
}

/// What a request shows instead of naming a sandbox.
enum Proof {
    Signature(SignedRequest),
    Token(String),
}

impl Proof {
    /// The text of the signature or token.
    fn text(&self) -> &str {
        match self {
            Self::Signature(signed) => &signed.text,
            Self::Token(token) => token,
        }
    }

    fn is_of(&self, sandbox: &SandboxToken) -> bool {
        match self {
            Self::Signature(signed) => signed.is_by(&sandbox.token),
            Self::Token(token) => secrets_match(token, &sandbox.token),
        }
    }

    fn find_in(&self, tokens: &[SandboxToken]) -> Option<SandboxToken> {
        let found = tokens.iter().rev().find(|sandbox| self.is_of(sandbox));
        found.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_expires_after_its_second() {
        let parts = |query: &str| {
            let request = axum::http::Request::get(format!("/files?path=/a{query}"));
            request.body(()).expect("a request").into_parts().0
        };
        let signed = "&signature=v1_47DEQpj8HBSa%2B/TImW%2B5JCeuQeRkm5NMpJWZG3hSuFU";
        let expiring = parts(&format!("{signed}&signature_expiration=100"));
        assert!(!is_expired(&expiring, 100_000));
        assert!(is_expired(&expiring, 100_001));
        assert!(!is_expired(&parts(signed), i64::MAX));
        assert!(!is_expired(&parts("&signature_expiration=100"), i64::MAX));
    }
}
