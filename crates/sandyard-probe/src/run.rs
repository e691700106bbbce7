//! Works through the checks, each in a child of its own.

use std::time::Duration;

use crate::check::{Check, Outcome};
use crate::checks;
use crate::child::{Ended, isolated};
use crate::context::Context;
use crate::plan::Plan;
use crate::report::Report;

/// How long one check may take. Refusals come at once; only waiting for packets takes time, and a host that is very busy.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs every check and reports. The process must be single-threaded.
#[must_use]
pub fn run(plan: Plan) -> Report {
    run_selected(plan, |_| true)
}

/// Runs the checks that `select` wants.
#[must_use]
pub fn run_selected(plan: Plan, select: impl Fn(&Check) -> bool) -> Report {
    let context = Context::take(plan);
    let label = format!("as uid {} inside", context.identity.uid);
    let chosen = checks::all().into_iter().filter(|check| select(check));
    let findings = chosen
        .map(|check| check.finding(attempt(&check, &context)))
        .collect();
    Report {
        label,
        identity: Some(context.identity),
        findings,
    }
}

fn attempt(check: &Check, context: &Context) -> Outcome {
    match isolated(LIMIT, || (check.attempt)(context)) {
        Ok(Ended::Returned(outcome)) => outcome,
        Ok(Ended::Signalled(libc::SIGSYS)) => {
            Outcome::held("the filter killed the attempt (SIGSYS)")
        }
        Ok(Ended::Signalled(signal)) => {
            Outcome::inconclusive(format_args!("the attempt died of signal {signal}"))
        }
        Ok(Ended::Exited(code)) => {
            Outcome::inconclusive(format_args!("the attempt left with code {code}"))
        }
        Ok(Ended::TimedOut) => {
            Outcome::inconclusive(format_args!("no answer in {} s", LIMIT.as_secs()))
        }
        Err(error) => {
            Outcome::inconclusive(format_args!("the attempt could not be started: {error}"))
        }
    }
}
