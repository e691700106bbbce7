//! Names and secrets nobody can guess.

use rustix::rand::{GetRandomFlags, getrandom};
use sandyard_core::{ErrorKind, SandboxId};

use crate::error::{ServiceError, ServiceResult};

/// A new sandbox id.
pub(crate) fn id() -> ServiceResult<SandboxId> {
    Ok(SandboxId::from_random(bytes()?))
}

/// A new name for an installation.
pub fn new_installation_name() -> ServiceResult<String> {
    Ok(id()?.as_str().to_owned())
}

/// A new secret of 160 bits, in hex.
pub(crate) fn secret() -> ServiceResult<String> {
    let bytes: [u8; 20] = bytes()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> ServiceResult<[u8; N]> {
    let mut bytes = [0; N];
    // Up to 256 bytes come whole once the kernel's generator is seeded (getrandom(2)).
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        _ => Err(ServiceError::new(
            ErrorKind::Internal,
            "the kernel gave no random bytes",
        )),
    }
}
