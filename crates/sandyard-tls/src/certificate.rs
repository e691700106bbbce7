//! What certificates say: names, dates and uses.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyUsagePurpose, NameConstraints, SerialNumber,
    date_time_ymd,
};
use sandyard_core::random;

use crate::authority::AuthorityError;

/// One day, in milliseconds.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Maximum length of a common name, in bytes (X.520).
const MAX_COMMON_NAME_BYTES: usize = 64;
/// The last moment that certificates are given, in the year 9000: later ones cannot be written.
const MAX_MS: i64 = 221_000_000_000_000;

/// What a server's certificate says.
#[derive(Clone, Copy, Debug)]
pub struct ServerCertificateSpec<'a> {
    /// Its subject; left out when it is longer than a subject can be.
    pub common_name: &'a str,
    /// The host names and IP addresses it is valid for.
    pub names: &'a [String],
    /// When it is made, in milliseconds since 1970.
    pub now_ms: i64,
    /// How long it is valid, in days.
    pub valid_days: i64,
}

impl ServerCertificateSpec<'_> {
    pub(crate) fn params(&self) -> Result<CertificateParams, AuthorityError> {
        let mut params = params(self.common_name, self.now_ms, self.valid_days)?;
        params.subject_alt_names = CertificateParams::new(self.names)?.subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

/// What an authority's certificate says. Without `permitted_names` it may sign for any name.
pub(crate) fn authority_params(
    common_name: &str,
    permitted_names: &[String],
    now_ms: i64,
    valid_days: i64,
) -> Result<CertificateParams, AuthorityError> {
    let mut params = params(common_name, now_ms, valid_days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = (!permitted_names.is_empty()).then(|| NameConstraints {
        permitted_subtrees: permitted_names
            .iter()
            .filter_map(|name| subtree(name))
            .collect(),
        excluded_subtrees: Vec::new(),
    });
    Ok(params)
}

/// Subject, dates and serial number. The certificate is valid since the day before, because clocks differ.
fn params(
    common_name: &str,
    now_ms: i64,
    valid_days: i64,
) -> Result<CertificateParams, AuthorityError> {
    // Some programs refuse two certificates of one authority with the same number. It must not be negative.
    let mut number: [u8; 16] = random::bytes().map_err(AuthorityError::Random)?;
    number[0] &= 0x7f;
    let date = |at_ms: i64| {
        let since_1970 = Duration::from_millis(at_ms.clamp(0, MAX_MS).unsigned_abs());
        date_time_ymd(1970, 1, 1) + since_1970
    };
    let mut params = CertificateParams::default();
    params.not_before = date(now_ms.saturating_sub(DAY_MS));
    params.not_after = date(now_ms.saturating_add(valid_days * DAY_MS));
    params.serial_number = Some(SerialNumber::from_slice(&number));
    params.distinguished_name = DistinguishedName::new();
    if common_name.len() <= MAX_COMMON_NAME_BYTES {
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
    }
    Ok(params)
}

/// What an authority for a name may sign. `None` for a wildcard, which the name it is below covers.
fn subtree(name: &str) -> Option<GeneralSubtree> {
    if name.starts_with("*.") {
        return None;
    }
    Some(match name.parse::<IpAddr>() {
        Ok(address) => {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, bits))
        }
        Err(_) => GeneralSubtree::DnsName(name.to_owned()),
    })
}
