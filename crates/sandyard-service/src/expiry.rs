//! When the time and the retention of a sandbox are over.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_store::model::{Expiry, Sandbox, TimerPlan};

use sandyard_core::clock::millis;

/// When a running sandbox's time is over, in milliseconds since 1970; none if it does not run.
pub(crate) fn expires_ms(sandbox: &Sandbox, last_activity_ms: i64) -> Option<i64> {
    if sandbox.status != SandboxStatus::Running {
        return None;
    }
    let idle_end = last_activity_ms.saturating_add(sandbox.timeout_s.saturating_mul(1000));
    Some(match sandbox.expiry {
        Expiry::Idle => idle_end,
        Expiry::Fixed => sandbox.fixed_end_ms.unwrap_or(idle_end),
    })
}

/// When the retention of a sandbox that does not run is over, in milliseconds since 1970; none if it runs, or is kept without limit.
pub(crate) fn retention_ends_ms(sandbox: &Sandbox, retention: Duration) -> Option<i64> {
    let is_retained = matches!(
        sandbox.status,
        SandboxStatus::Paused | SandboxStatus::Stopped | SandboxStatus::Error
    );
    let retention_ms = millis(retention);
    (is_retained && retention_ms > 0).then(|| {
        sandbox
            .stopped_ms
            .unwrap_or(sandbox.last_activity_ms)
            .saturating_add(retention_ms)
    })
}

/// The timer that a sandbox needs.
pub(crate) fn plan(sandbox: &Sandbox, last_activity_ms: i64, retention: Duration) -> TimerPlan {
    expires_ms(sandbox, last_activity_ms)
        .or_else(|| retention_ends_ms(sandbox, retention))
        .map_or(TimerPlan::Clear, |due_ms| TimerPlan::Set { due_ms })
}
