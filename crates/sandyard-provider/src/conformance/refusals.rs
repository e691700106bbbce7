//! Invalid requests are refused with the right kind of error and leave nothing behind.

use sandyard_core::Limits;

use super::subject::{CheckResult, Subject, fails, holds};
use crate::ProviderErrorKind::{self, Invalid, NotFound, Unsupported};
use crate::{InstanceSpec, VolumeSpec};

pub(super) async fn an_unknown_template_is_not_found(subject: &Subject) -> CheckResult {
    let spec = InstanceSpec {
        template: "no-such-template".to_owned(),
        ..subject.spec()
    };
    refused(subject, NotFound, spec).await
}

pub(super) async fn limits_out_of_range_are_invalid(subject: &Subject) -> CheckResult {
    let valid = subject.options.limits.clone();
    let max_limits = subject.provider.info().max_limits.clone();
    for limits in [
        Limits {
            memory_bytes: 1,
            ..valid.clone()
        },
        Limits {
            pids: 0,
            ..valid.clone()
        },
        Limits {
            disk_bytes: max_limits.disk_bytes.saturating_add(1),
            ..valid.clone()
        },
        Limits {
            cpu_millis: max_limits.cpu_millis.saturating_add(1),
            ..valid
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

pub(super) async fn bad_variable_names_are_invalid(subject: &Subject) -> CheckResult {
    for name in ["", "A=B", "A\0B"] {
        let mut spec = subject.spec();
        spec.env.insert(name.to_owned(), "value".to_owned());
        refused(subject, Invalid, spec).await?;
    }
    Ok(())
}

/// Makes the calls of each missing capability.
pub(super) async fn calls_without_the_capability_are_unsupported(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let can = provider.info().capabilities;
    let id = &subject.create().await?.id;
    if !can.can_pause {
        fails("pause", Unsupported, provider.pause(id).await)?;
        fails("resume", Unsupported, provider.resume(id).await)?;
    }
    if !can.can_stop {
        fails("stop", Unsupported, provider.stop(id).await)?;
        fails("start", Unsupported, provider.start(id).await)?;
    }
    if !can.can_snapshot {
        let name = subject.template_name();
        fails("snapshot", Unsupported, provider.snapshot(id, &name).await)?;
    }
    if !can.can_fork {
        let spec = subject.spec();
        fails("fork", Unsupported, provider.fork(id, &spec).await)?;
        subject.lists(&spec.sandbox_id, &[]).await?;
    }
    if !can.can_diff {
        fails("diff", Unsupported, provider.diff(id).await)?;
    }
    if !can.can_recall_usage {
        let history = provider.usage_history(id, 0, i64::MAX).await;
        fails("usage_history", Unsupported, history)?;
    }
    if !can.can_import_templates {
        let name = subject.template_name();
        let archive = Box::pin(std::io::Cursor::new(vec![0; 1024]));
        let imported = provider.import_template(&name, archive).await;
        fails("import_template", Unsupported, imported)?;
    }
    if !can.can_manage_templates {
        let name = subject.template_name();
        fails("templates", Unsupported, provider.templates().await)?;
        let removed = provider.remove_template(&name).await;
        fails("remove_template", Unsupported, removed)?;
    }
    if !can.can_mount {
        let volume = VolumeSpec {
            id: "nosuchvolume".to_owned(),
            size_bytes: 1 << 25,
        };
        fails(
            "create_volume",
            Unsupported,
            provider.create_volume(&volume).await,
        )?;
        fails(
            "delete_volume",
            Unsupported,
            provider.delete_volume(&volume.id).await,
        )?;
        fails(
            "open_volume",
            Unsupported,
            provider.open_volume(&volume.id).await,
        )?;
    }
    holds("goes on", subject.inspect(id).await?.state.is_live())
}

async fn refused(subject: &Subject, kind: ProviderErrorKind, spec: InstanceSpec) -> CheckResult {
    fails("create", kind, subject.provider.create(&spec).await)?;
    subject.lists(&spec.sandbox_id, &[]).await
}
