//! Whether a limit held.

use super::{Exhaust, Exhausted, StoppedBy};
use crate::finding::{Finding, Group, Severity, Verdict};

/// Judges one attempt against the limit it ran into. `neighbour_answered` is what the host saw meanwhile.
#[must_use]
pub fn judge(
    exhaust: &Exhaust,
    limit: u64,
    exhausted: &Exhausted,
    neighbour_answered: bool,
) -> Finding {
    let (id, title, tried) = labels(exhaust);
    let within = exhausted.stopped_by != StoppedBy::GaveUp
        && (exhausted.reached <= limit || is_processor(exhaust));
    let neighbour = if neighbour_answered {
        "the neighbour answered"
    } else {
        "the neighbour did not answer"
    };
    Finding {
        id: id.to_owned(),
        title: title.to_owned(),
        group: Group::Resources,
        what_was_tried: tried.to_owned(),
        expected: format!("stops at its limit of {limit}, and the neighbour answers meanwhile"),
        observed: format!(
            "reached {}: {}; {neighbour}",
            exhausted.reached, exhausted.detail
        ),
        verdict: if within && neighbour_answered {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::High,
    }
}

/// Time on the processor is shared out, not refused: there the neighbour alone decides.
fn is_processor(exhaust: &Exhaust) -> bool {
    matches!(exhaust, Exhaust::Processor { .. })
}

fn labels(exhaust: &Exhaust) -> (&'static str, &'static str, &'static str) {
    match exhaust {
        Exhaust::Processes { .. } => (
            "resources.processes",
            "A fork bomb stays within its limit",
            "fork until refused, then all fork on",
        ),
        Exhaust::Memory { .. } => (
            "resources.memory",
            "A memory hog stays within its limit",
            "touch memory until refused or killed",
        ),
        Exhaust::MemoryFiles { .. } => (
            "resources.memory-files",
            "Files in memory count as memory",
            "fill every memory file system",
        ),
        Exhaust::Disk { .. } => (
            "resources.disk",
            "A disk filler stays within its limit",
            "write a file until refused",
        ),
        Exhaust::DiskFiles { .. } => (
            "resources.disk-files",
            "Endless small files run into a limit",
            "make empty files until refused",
        ),
        Exhaust::Processor { .. } => (
            "resources.processor",
            "Busy loops leave the neighbour its share",
            "spin on several threads",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(reached: u64, stopped_by: StoppedBy, neighbour_answered: bool) -> Verdict {
        let exhaust = Exhaust::Memory { give_up_at: 200 };
        judge(
            &exhaust,
            100,
            &Exhausted {
                reached,
                stopped_by,
                detail: String::new(),
            },
            neighbour_answered,
        )
        .verdict
    }

    #[test]
    fn a_limit_holds_when_the_hog_stops_below_it_and_the_neighbour_lives() {
        assert_eq!(verdict(90, StoppedBy::Killed, true), Verdict::Held);
        assert_eq!(verdict(90, StoppedBy::Killed, false), Verdict::Breached);
        assert_eq!(verdict(110, StoppedBy::Refused, true), Verdict::Breached);
        assert_eq!(verdict(90, StoppedBy::GaveUp, true), Verdict::Breached);
    }
}
