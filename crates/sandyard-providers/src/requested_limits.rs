//! Requested limits of sandboxes whose limits a template decides: they are recorded on the sandbox, and differences are reported.

use sandyard_core::Limits;
use sandyard_core::size::Size;

/// Limits as the text of a label: bytes of memory, thousandths of a processor, bytes of disk.
pub(crate) fn encode(limits: &Limits) -> String {
    let Limits {
        memory_bytes,
        cpu_millis,
        disk_bytes,
        ..
    } = limits;
    format!("{memory_bytes}/{cpu_millis}/{disk_bytes}")
}

/// The same without limits that equal `default`, which were not requested.
pub(crate) fn encode_unusual(limits: &Limits, default: &Limits) -> String {
    let unusual = |requested: u64, default: u64| match requested == default {
        true => String::new(),
        false => requested.to_string(),
    };
    let memory = unusual(limits.memory_bytes, default.memory_bytes);
    let cpu = unusual(limits.cpu_millis.into(), default.cpu_millis.into());
    let disk = unusual(limits.disk_bytes, default.disk_bytes);
    format!("{memory}/{cpu}/{disk}")
}

/// A sentence for each requested limit that the sandbox does not have. `source` names what decides; zero means unknown.
pub(crate) fn limitations(requested: &str, actual: &Limits, source: &str) -> Vec<String> {
    let mut numbers = requested.split('/').map(|text| text.parse::<u64>().ok());
    let mut limitations = Vec::new();
    let mut compare = |what: &str, actual: u64, text: &dyn Fn(u64) -> String| {
        if let Some(requested) = numbers.next().flatten()
            && actual != 0
            && requested != actual
        {
            let (requested, actual) = (text(requested), text(actual));
            limitations.push(format!(
                "{what} is {actual}, set by its {source}, instead of {requested}"
            ));
        }
    };
    let size = |bytes: u64| Size(bytes).to_string();
    compare("memory", actual.memory_bytes, &size);
    compare(
        "processor time in thousandths",
        actual.cpu_millis.into(),
        &|n| n.to_string(),
    );
    compare("disk", actual.disk_bytes, &size);
    limitations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_differ_from_the_request_are_reported() {
        let default = Limits::default();
        let requested = Limits {
            memory_bytes: 1 << 30,
            cpu_millis: 500,
            ..default.clone()
        };
        let actual = Limits {
            memory_bytes: 512 << 20,
            cpu_millis: 0,
            disk_bytes: 1 << 20,
            ..default.clone()
        };
        let found = limitations(&encode_unusual(&requested, &default), &actual, "template");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("memory is 512"), "{found:?}");
        assert!(found[0].contains("set by its template"), "{found:?}");
        assert_eq!(
            limitations(&encode(&requested), &actual, "template").len(),
            2
        );
        assert_eq!(
            limitations(&encode(&requested), &requested, "template"),
            [""; 0]
        );
        for text in ["", "x/y/z", "//", "1"] {
            assert!(limitations(text, &actual, "template").len() < 2, "{text}");
        }
    }
}
