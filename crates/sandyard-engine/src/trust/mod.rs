//! Making the programs of a sandbox trust the gateway, which ends TLS for hosts whose requests it changes.
//!
//! The gateway keeps its certificate in the data directory, and beside it those that the operator wants sandboxes to trust. Every
//! template gets one more read-only layer on top of the part that holds `/etc/ssl/certs`, with these certificates in it and
//! behind the template's own list:
//!
//! ```text
//! /etc/ssl/certs/ca-certificates.crt       the template's list, if it has one, and ours; likewise lists at other usual places
//! /etc/ssl/certs/sandyard-gateway.pem      ours
//! /etc/ssl/certs/<hash of its name>.0      ours, where OpenSSL looks for it
//! /usr/local/share/ca-certificates/…       ours, so that `update-ca-certificates` keeps it, if that is in the same part
//! /etc/chromium/policies/managed/…         a policy with ours, for browsers, which look at none of these; likewise Chrome's
//! ```
//! The layer is put on when a sandbox starts and is part of no template: no snapshot holds it, no diff shows it. It is made
//! once for what it is made of, and kept in `<data>/trust/<name>/tree`.

mod certificates;
mod der;
mod in_place;
mod layer;
mod plan;
mod subject;
mod sweep;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandyard_template::{Owners, Template};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::layout::DataDir;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;

pub(crate) use in_place::trust_in_place;
pub(crate) use sweep::sweep;

use certificates::Certificates;
use plan::Plan;

/// The list of everybody who is trusted, as most programs know it.
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Our certificates alone.
const GATEWAY_CERTIFICATE: &str = "/etc/ssl/certs/sandyard-gateway.pem";

/// What a sandbox was given, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    /// Name of the layer.
    pub(crate) layer: String,
    /// Whether the template has a list to which ours was added.
    pub(crate) has_bundle: bool,
}

/// A layer to be put on a template.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) record: TrustRecord,
    part: usize,
    tree: PathBuf,
}

impl Trust {
    /// Finds or makes the layer for `template`. `None`: there is no gateway, or the template has no `/etc`.
    pub(crate) fn prepare(
        data: &DataDir,
        template: &Template,
        owners: Owners,
    ) -> Result<Option<Self>> {
        let Some(certificates) = Certificates::of(data)? else {
            return Ok(None);
        };
        let Some(plan) = Plan::draw(template, &certificates)? else {
            return Ok(None);
        };
        let name = plan.name(&certificates);
        let folder = data.trust().join(&name);
        if !is_there(data, &folder)? {
            layer::make(data, &folder, &plan, &certificates, owners)?;
        }
        Ok(Some(Self {
            record: TrustRecord {
                layer: name,
                has_bundle: !plan.lists.is_empty(),
            },
            part: plan.part,
            tree: layer::tree(&folder),
        }))
    }

    /// The template with the layer on top.
    pub(crate) fn over(&self, template: &Template) -> Template {
        let mut template = template.clone();
        template.parts[self.part]
            .layers
            .insert(0, self.tree.clone());
        template
    }

    /// Key of the part that it is put on.
    pub(crate) fn part_key<'a>(&self, template: &'a Template) -> &'a str {
        &template.parts[self.part].key
    }
}

/// Tells these certificates from others; empty when there are none.
pub(crate) fn fingerprint(data: &DataDir) -> String {
    let certificates = Certificates::of(data).ok().flatten();
    certificates.map_or_else(String::new, |certificates| certificates.fingerprint())
}

/// Variables for programs that do not look at the system's list, unless told to.
///
/// Not needed by what uses the system's OpenSSL or GnuTLS: curl, git, apt, wget. Java reads none; it has a store of its own.
pub(crate) fn variables(
    record: Option<&TrustRecord>,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    const WITH_BUNDLE: [(&str, &str); 2] = [
        // httpx, uv, Go, Ruby and whatever brings an OpenSSL of its own, as conda does.
        ("SSL_CERT_FILE", BUNDLE),
        // Python's requests, pip and botocore, which bring a list of their own.
        ("REQUESTS_CA_BUNDLE", BUNDLE),
    ];
    const ALWAYS: [(&str, &str); 2] = [
        // Node and Bun have a list built in, to which this adds.
        ("NODE_EXTRA_CA_CERTS", GATEWAY_CERTIFICATE),
        // So has Deno.
        ("DENO_CERT", GATEWAY_CERTIFICATE),
    ];
    let has_bundle = record.is_some_and(|record| record.has_bundle);
    let bundle = WITH_BUNDLE.into_iter().filter(move |_| has_bundle);
    let always = ALWAYS.into_iter().filter(move |_| record.is_some());
    bundle.chain(always)
}

/// Says whether the layer is there, and if so, keeps it from being swept for a while.
fn is_there(data: &DataDir, folder: &Path) -> Result<bool> {
    // A sweep that found it unused a moment ago has taken it away, or sees the time that is set here.
    let _lock = Lock::share(&data.trust_lock()).operation("share", "trust.lock")?;
    let used = fs::File::open(folder).and_then(|open| open.set_modified(SystemTime::now()));
    match used {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => Ok(other.map(|()| true).operation("use", folder.display())?),
    }
}
