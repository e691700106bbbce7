//! What makes no sense is refused by kind, and nothing is left of it.

use sandyard_core::Limits;

use super::subject::{Done, Subject, fails, same};
use crate::ProviderErrorKind::{self, Invalid, NotFound};
use crate::instance::InstanceSpec;

pub(super) async fn an_unknown_template_is_not_found(subject: &Subject) -> Done {
    let spec = InstanceSpec {
        template: "there-is-none-of-this-name".to_owned(),
        ..subject.spec()
    };
    refused(subject, NotFound, spec).await
}

pub(super) async fn limits_out_of_range_are_invalid(subject: &Subject) -> Done {
    let usual = subject.options.limits.clone();
    let most = subject.provider.info().max_limits.clone();
    for limits in [
        Limits {
            memory_bytes: 1,
            ..usual.clone()
        },
        Limits {
            pids: 0,
            ..usual.clone()
        },
        Limits {
            disk_bytes: most.disk_bytes.saturating_add(1),
            ..usual.clone()
        },
        Limits {
            cpu_millis: most.cpu_millis.saturating_add(1),
            ..usual
        },
    ] {
        let spec = InstanceSpec {
            limits,
            ..subject.spec()
        };
        refused(subject, Invalid, spec).await?;
    }
    Ok(())
}

pub(super) async fn odd_variables_are_invalid(subject: &Subject) -> Done {
    for name in ["", "A=B", "A\0B"] {
        let mut spec = subject.spec();
        spec.env.insert(name.to_owned(), "value".to_owned());
        refused(subject, Invalid, spec).await?;
    }
    Ok(())
}

async fn refused(subject: &Subject, kind: ProviderErrorKind, spec: InstanceSpec) -> Done {
    fails("create", kind, subject.provider.create(&spec).await)?;
    same("left", subject.made_for(&spec.sandbox_id).await?, vec![])
}
