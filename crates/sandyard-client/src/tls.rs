//! TLS settings: the client trusts the host's certificates and those that the caller names.

use rustls::{ClientConfig, RootCertStore};
use sandyard_tls::roots;

use crate::Result;
use crate::error::ClientError;

/// TLS settings of one client. The host's certificates are only read when they are needed.
pub(crate) fn config(is_needed: bool, ca_pem: Option<&[u8]>) -> Result<ClientConfig> {
    if !is_needed {
        return Ok(roots::client_config(RootCertStore::empty()));
    }
    let roots = roots::host_roots_and(ca_pem)
        .map_err(|error| setup(format!("cannot use the CA certificate: {error}")))?;
    if roots.is_empty() {
        return Err(setup(
            "this host trusts no certificates: install `ca-certificates`, or name the server's certificate with `ca_pem`",
        ));
    }
    Ok(roots::client_config(roots))
}

fn setup(problem: impl Into<String>) -> ClientError {
    ClientError::Setup {
        problem: problem.into(),
    }
}
