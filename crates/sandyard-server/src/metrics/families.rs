//! Every family of metrics, with its help text. docs/metrics.md is generated from this table.

/// What a family is for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// All families, by name. A name ends with its unit, and that of a counter with `_total`.
pub(super) const FAMILIES: [(&str, Kind, &str); 32] = [
    (
        "sandyard_audit_entries_lost_total",
        Counter,
        "Audit entries that the database did not take in time.",
    ),
    (
        "sandyard_build_info",
        Gauge,
        "Always 1; the label `version` is that of the server.",
    ),
    (
        "sandyard_create_seconds",
        Histogram,
        "Time to create a sandbox.",
    ),
    (
        "sandyard_creates_moved_total",
        Counter,
        "Sandboxes created at provider `to` because provider `from` failed.",
    ),
    (
        "sandyard_database_connections",
        Gauge,
        "Open connections to the database, by `state`: `idle` or `used`.",
    ),
    (
        "sandyard_dead_timers",
        Gauge,
        "Timers that failed too often and wait for `sandyard timer retry`.",
    ),
    (
        "sandyard_disk_free_bytes",
        Gauge,
        "Free space of the disk with the data directory.",
    ),
    (
        "sandyard_disk_size_bytes",
        Gauge,
        "Size of the disk with the data directory.",
    ),
    (
        "sandyard_flows_total",
        Counter,
        "Attempts of sandboxes to reach the network, by `verdict`.",
    ),
    (
        "sandyard_http_request_duration_seconds",
        Histogram,
        "Time until the response to a request began.",
    ),
    (
        "sandyard_http_requests_total",
        Counter,
        "Requests, by method, route and status.",
    ),
    (
        "sandyard_memory_available_bytes",
        Gauge,
        "Memory that programs of the host can still get.",
    ),
    (
        "sandyard_orphans_removed_total",
        Counter,
        "Instances without a row that were removed.",
    ),
    (
        "sandyard_password_checks_total",
        Counter,
        "Passwords that were checked.",
    ),
    (
        "sandyard_process_cpu_seconds_total",
        Counter,
        "Processor time that the server has used.",
    ),
    (
        "sandyard_process_open_fds",
        Gauge,
        "Open file descriptors of the server.",
    ),
    (
        "sandyard_process_resident_memory_bytes",
        Gauge,
        "Resident memory of the server.",
    ),
    (
        "sandyard_process_start_time_seconds",
        Gauge,
        "When the server started, in seconds since the Unix epoch.",
    ),
    (
        "sandyard_provider_call_seconds",
        Histogram,
        "Duration of calls to a provider.",
    ),
    (
        "sandyard_provider_calls_in_progress",
        Gauge,
        "Calls to a provider in progress.",
    ),
    (
        "sandyard_provider_calls_total",
        Counter,
        "Calls to a provider, by verb and outcome.",
    ),
    (
        "sandyard_provider_retries_total",
        Counter,
        "Calls to a provider that were repeated.",
    ),
    (
        "sandyard_provider_sandboxes",
        Gauge,
        "Sandboxes at a provider, by status.",
    ),
    (
        "sandyard_provider_up",
        Gauge,
        "1 while a provider can be reached, else 0.",
    ),
    (
        "sandyard_ready_sandboxes",
        Gauge,
        "Sandboxes that wait in the pool of a provider; updated every 20 s.",
    ),
    (
        "sandyard_ready_sandboxes_wanted",
        Gauge,
        "Sandboxes that the settings keep in the pool of a provider.",
    ),
    ("sandyard_sandboxes", Gauge, "Sandboxes, by status."),
    (
        "sandyard_timers_dead_total",
        Counter,
        "Timers that failed too often.",
    ),
    ("sandyard_timers_fired_total", Counter, "Timers that fired."),
    (
        "sandyard_transitions_total",
        Counter,
        "Changes of a sandbox's status, by new status.",
    ),
    (
        "sandyard_unknown_instances",
        Gauge,
        "Instances at a provider without a row.",
    ),
    (
        "sandyard_wake_seconds",
        Histogram,
        "Time to wake a sandbox.",
    ),
];

/// Gives the recorder the help texts.
pub(super) fn describe() {
    for (name, kind, help) in FAMILIES {
        match kind {
            Counter => metrics::describe_counter!(name, help),
            Gauge => metrics::describe_gauge!(name, help),
            Histogram => metrics::describe_histogram!(name, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The source of all crates.
    fn sources() -> String {
        let mut folders = vec![root().join("crates")];
        let mut text = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    text += &std::fs::read_to_string(&path).unwrap();
                }
            }
        }
        text
    }

    #[test]
    fn the_table_has_every_family_that_is_recorded_and_no_other() {
        let text = sources();
        let mut recorded = BTreeSet::new();
        for (kind, word) in [
            (Counter, "counter!("),
            (Gauge, "gauge!("),
            (Histogram, "histogram!("),
        ] {
            for call in text.split(&format!("metrics::{word}")).skip(1) {
                if let Some((name, _)) = call
                    .trim_start()
                    .strip_prefix('"')
                    .and_then(|rest| rest.split_once('"'))
                {
                    recorded.insert((name, format!("{kind:?}")));
                }
            }
        }
        recorded.insert((super::super::host::CPU, format!("{Counter:?}")));
        let table: BTreeSet<_> = FAMILIES
            .iter()
            .map(|(name, kind, _)| (*name, format!("{kind:?}")))
            .collect();
        assert_eq!(recorded, table);
        assert!(FAMILIES.is_sorted_by_key(|(name, ..)| *name));
    }

    #[test]
    fn the_documentation_lists_the_families() {
        let path = root().join("docs/metrics.md");
        let mut page = "# Metrics\n\n<!-- Generated from crates/sandyard-server/src/metrics/families.rs. After a change there: UPDATE_DOCS=1 cargo test -p sandyard-server -->\n\n\
            What `/metrics` reports; see [operations.md](operations.md) for how Prometheus gets it. Buckets of histograms are in seconds.\n\n\
            | name | type | meaning |\n|---|---|---|\n"
            .to_owned();
        for (name, kind, help) in FAMILIES {
            page += &format!(
                "| `{name}` | {} | {help} |\n",
                format!("{kind:?}").to_lowercase()
            );
        }
        if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
            std::fs::write(&path, page).unwrap();
            return;
        }
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            current == page,
            "docs/metrics.md is out of date; run: UPDATE_DOCS=1 cargo test -p sandyard-server"
        );
    }
}
