//! What a sandbox at Daytona has not got, in words.

use jiff::Timestamp;
use sandyard_core::Limits;
use sandyard_core::size::Size;

use super::model::Sandbox;

/// All of it: `asked` is what its maker wanted of memory, processors and disk.
pub(super) fn of(sandbox: &Sandbox, asked: Option<&str>, has: &Limits) -> Vec<String> {
    let mut lacks = asked.map_or_else(Vec::new, |asked| other_limits(asked, has));
    lacks.extend(sandbox.auto_destroy_at.as_deref().and_then(bounded_life));
    lacks
}

/// What was asked for and is not so: a snapshot decides about the limits of its sandboxes.
fn other_limits(asked: &str, has: &Limits) -> Vec<String> {
    let mut numbers = asked.split('/').map(|text| text.parse::<u64>().ok());
    let mut lacks = Vec::new();
    let mut compare = |what: &str, has: u64, text: &dyn Fn(u64) -> String| {
        if let Some(asked) = numbers.next().flatten()
            && asked != has
        {
            let (asked, has) = (text(asked), text(has));
            lacks.push(format!("{what} is {has} as its snapshot says, not {asked}"));
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

/// What is said of one that Daytona destroys by itself, whatever it does.
fn bounded_life(until: &str) -> Option<String> {
    let until = until.parse::<Timestamp>().ok()?;
    Some(format!(
        "Daytona destroys it with all of its files at {until:.0}: its account bounds how long sandboxes live"
    ))
}
