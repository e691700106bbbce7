//! The escape suite as a small program that runs in any sandbox, also those of other products.
//!
//! `sandyard-probe TASK` does a task given as JSON and prints its answer; `sandyard-probe --on-host PLAN` runs only
//! the checks that are harmless where there is no sandbox.

use std::io::Write;
use std::process::ExitCode;

use sandyard_probe::{OnHost, Plan, perform, run_selected};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let answer = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--on-host", plan] => on_host(plan),
        [task] => perform(task, say).map_err(|error| describe(&error)),
        _ => Err("usage: sandyard-probe TASK | --on-host PLAN, both as JSON".to_owned()),
    };
    match answer {
        Ok(answer) => {
            say(&answer);
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn on_host(plan: &str) -> Result<String, String> {
    let plan = Plan::from_json(plan).map_err(|error| describe(&error))?;
    let report = run_selected(plan, |check| check.on_host != OnHost::Unsafe);
    serde_json::to_string(&report).map_err(|error| error.to_string())
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    // The reader may have closed the pipe.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
