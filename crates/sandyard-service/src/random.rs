//! Random ids and secrets.

use sandyard_core::{SandboxId, random};

use crate::error::{Result, ServiceError};

/// A new sandbox id.
pub(crate) fn id() -> Result<SandboxId> {
    Ok(SandboxId::from_random(bytes()?))
}

/// A new id for an installation.
pub fn new_installation_name() -> Result<String> {
    Ok(id()?.as_str().to_owned())
}

/// A new secret of 160 bits, in hex.
pub(crate) fn secret() -> Result<String> {
    Ok(random::hex(&bytes::<20>()?))
}

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    random::bytes()
        .map_err(|_| ServiceError::internal("failed to get random bytes from the kernel"))
}
