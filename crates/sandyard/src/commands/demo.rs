//! `sandyard demo`: a tour without a server.

use std::process::ExitCode;
use std::time::Instant;

use sandyard_agent_client::RunOptions;
use sandyard_engine::SandboxSpec;
use sandyard_wire::process::ProcessConfig;

use crate::global::Global;
use crate::output;

const SCRIPT: &str = r#"
echo "user:      $(id -un), and with sudo $(sudo id -un 2>/dev/null || echo no other user)"
echo "host name: $(hostname)"
echo "processes: $(ls -d /proc/[0-9]* | wc -l)"
echo "python:    6 * 7 = $(python3 -c 'print(6*7)' 2>/dev/null || echo not installed)"
echo "disk:      $(df -h / | awk 'NR==2 {print $4}') free"
"#;

/// Prints the doctor's report, then runs a script in a sandbox.
pub(crate) async fn demo(global: &Global) -> anyhow::Result<ExitCode> {
    let exe = std::env::current_exe()?;
    // The doctor runs in its own process, because its checks fork and this process has threads.
    let status = std::process::Command::new(exe)
        .arg("doctor")
        .arg("--data-dir")
        .arg(global.data_dir())
        .status()?;
    if !status.success() {
        return Ok(ExitCode::FAILURE);
    }
    let engine = global.engine().await?;
    // The first sandbox on a host also builds the default template, so do not measure it.
    engine.create_ephemeral(&SandboxSpec::default()).await?;
    let begin = Instant::now();
    let (sandbox, _lease) = engine.create_ephemeral(&SandboxSpec::default()).await?;
    let duration = begin.elapsed();
    let process = ProcessConfig {
        cmd: "/bin/bash".into(),
        args: vec!["-c".into(), SCRIPT.into()],
        ..ProcessConfig::default()
    };
    let result = engine
        .agent(&sandbox.id)
        .run(process, &RunOptions::default())
        .await?;
    output::line("");
    output::line(format!(
        "created sandbox `{}` in {:.1} ms; it prints:",
        sandbox.id,
        duration.as_secs_f64() * 1000.0
    ));
    output::line(String::from_utf8_lossy(&result.stdout).trim_end());
    for limitation in &sandbox.limitations {
        output::line(format!("note: {limitation}"));
    }
    engine.delete(&sandbox.id).await?;
    output::line("");
    output::line("try: sandyard run -it -- bash   (in a checkout: ./run run -it -- bash)");
    Ok(ExitCode::SUCCESS)
}
