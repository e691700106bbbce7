//! What makes no sense is refused by kind, and nothing is left of it.

use sandyard_core::Limits;

use super::subject::{Done, Subject, fails, same};
use crate::ProviderErrorKind::{self, Invalid, NotFound, Unsupported};
use crate::{InstanceSpec, VolumeSpec};

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

/// Each capability that is missing, by the calls that need it.
pub(super) async fn what_it_cannot_do_is_unsupported(subject: &Subject) -> Done {
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
        same("left", subject.made_for(&spec.sandbox_id).await?, vec![])?;
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
            id: "nobodymadethis".to_owned(),
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
    same("goes on", subject.inspect(id).await?.state.is_live(), true)
}

async fn refused(subject: &Subject, kind: ProviderErrorKind, spec: InstanceSpec) -> Done {
    fails("create", kind, subject.provider.create(&spec).await)?;
    same("left", subject.made_for(&spec.sandbox_id).await?, vec![])
}
