//! Certificates made here: an authority that clients are told to trust, and what it signs.
//!
//! Two of them, because some clients refuse a server's certificate that is an authority, and others an authority that is
//! none. It also lets the server's be renewed without telling the clients.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};

/// How long a server's certificate is valid. Some clients refuse what is valid for longer than 398 days.
const VALID_DAYS: i64 = 397;
/// How long an authority is valid.
const AUTHORITY_VALID_DAYS: i64 = 3653;

pub(super) const DAY_MS: i64 = 24 * 3600 * 1000;

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Makes an authority for these names and nothing else: whoever gets its key cannot pose as anybody else.
pub(super) fn make_authority(names: &[String], now_ms: i64) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = authority_params(names, now_ms)?.self_signed(&key)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes a server's certificate; `authority` was made for the same names at `made_ms`. Its certificate comes along, so
/// that the file can be trusted too.
pub(super) fn sign(
    authority: &Pair,
    made_ms: i64,
    names: &[String],
    now_ms: i64,
) -> Result<Pair, rcgen::Error> {
    let signing_key = KeyPair::from_pem(&authority.key)?;
    let issuer = Issuer::new(authority_params(names, made_ms)?, signing_key);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = common_name("sandyard");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_dates(&mut params, now_ms, VALID_DAYS);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair {
        certificate: certificate.pem() + &authority.certificate,
        key: key.serialize_pem(),
    })
}

/// The same for the same names and time, so that what is signed later fits the certificate that clients have.
fn authority_params(names: &[String], made_ms: i64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name = common_name(&format!("sandyard authority {made_ms}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.iter().filter_map(|name| subtree(name)).collect(),
        excluded_subtrees: Vec::new(),
    });
    set_dates(&mut params, made_ms, AUTHORITY_VALID_DAYS);
    Ok(params)
}

/// What an authority for a name may sign; none for a wildcard, which goes with the name it is below.
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

fn common_name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// From a day back, since clocks of clients differ. A clock that no calendar has leaves the library's far dates.
fn set_dates(params: &mut CertificateParams, from_ms: i64, days: i64) {
    if let (Some((y, m, d)), Some((end_y, end_m, end_d))) =
        (date(from_ms - DAY_MS), date(from_ms + days * DAY_MS))
    {
        params.not_before = rcgen::date_time_ymd(y, m, d);
        params.not_after = rcgen::date_time_ymd(end_y, end_m, end_d);
    }
}

fn date(at_ms: i64) -> Option<(i32, u8, u8)> {
    let date = jiff::Timestamp::from_millisecond(at_ms)
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let part = |part: i8| u8::try_from(part).ok();
    Some((
        i32::from(date.year()),
        part(date.month())?,
        part(date.day())?,
    ))
}
