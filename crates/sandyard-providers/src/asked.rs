//! Limits that were asked for where a template decides about them: written on a sandbox, and told where it has others.

use sandyard_core::Limits;
use sandyard_core::size::Size;

/// The limits that were asked for, to be written on a sandbox: bytes of memory, thousandths of a processor, bytes of disk.
pub(crate) fn write(limits: &Limits) -> String {
    let Limits {
        memory_bytes,
        cpu_millis,
        disk_bytes,
        ..
    } = limits;
    format!("{memory_bytes}/{cpu_millis}/{disk_bytes}")
}

/// The same without those that are `usual`: nobody has asked for them.
pub(crate) fn write_unusual(limits: &Limits, usual: &Limits) -> String {
    let unlike = |wanted: u64, usual: u64| match wanted == usual {
        true => String::new(),
        false => wanted.to_string(),
    };
    let memory = unlike(limits.memory_bytes, usual.memory_bytes);
    let cpu = unlike(limits.cpu_millis.into(), usual.cpu_millis.into());
    let disk = unlike(limits.disk_bytes, usual.disk_bytes);
    format!("{memory}/{cpu}/{disk}")
}

/// What was asked for and is not so, in words: `source` is who decides. What it does not tell cannot be compared.
pub(crate) fn lacks(asked: &str, has: &Limits, source: &str) -> Vec<String> {
    let mut numbers = asked.split('/').map(|text| text.parse::<u64>().ok());
    let mut lacks = Vec::new();
    let mut compare = |what: &str, has: u64, text: &dyn Fn(u64) -> String| {
        if let Some(asked) = numbers.next().flatten()
            && has != 0
            && asked != has
        {
            let (asked, has) = (text(asked), text(has));
            lacks.push(format!("{what} is {has} as its {source} says, not {asked}"));
        }
    };
    let sized = |bytes: u64| Size(bytes).to_string();
    compare("memory", has.memory_bytes, &sized);
    compare(
        "processor time in thousandths",
        has.cpu_millis.into(),
        &|n| n.to_string(),
    );
    compare("disk", has.disk_bytes, &sized);
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_is_not_so_is_told() {
        let usual = Limits::default();
        let wanted = Limits {
            memory_bytes: 1 << 30,
            cpu_millis: 500,
            ..usual.clone()
        };
        let has = Limits {
            memory_bytes: 512 << 20,
            cpu_millis: 0,
            disk_bytes: 1 << 20,
            ..usual.clone()
        };
        let told = lacks(&write_unusual(&wanted, &usual), &has, "template");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("memory is 512"), "{told:?}");
        assert!(told[0].contains("as its template says"), "{told:?}");
        assert_eq!(lacks(&write(&wanted), &has, "template").len(), 2);
        assert_eq!(lacks(&write(&wanted), &wanted, "template"), [""; 0]);
        for odd in ["", "x/y/z", "//", "1"] {
            assert!(lacks(odd, &has, "template").len() < 2, "{odd}");
        }
    }
}
