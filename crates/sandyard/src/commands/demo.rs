//! `sandyard demo`: what this host can do, in a few lines and without a server.

use std::process::ExitCode;
use std::time::Instant;

use sandyard_agent_client::RunOptions;
use sandyard_engine::SandboxSpec;
use sandyard_wire::process::ProcessConfig;

use crate::global::Global;
use crate::output;

const SCRIPT: &str = r#"
echo "user:      $(id -un), and with sudo $(sudo id -un 2>/dev/null || echo nobody else)"
echo "host name: $(hostname)"
echo "processes: $(ls -d /proc/[0-9]* | wc -l)"
echo "python:    6 * 7 = $(python3 -c 'print(6*7)' 2>/dev/null || echo not installed)"
echo "disk:      $(df -h / | awk 'NR==2 {print $4}') free"
"#;

/// Shows the doctor's report, then a sandbox at work.
pub(crate) async fn demo(global: &Global) -> anyhow::Result<ExitCode> {
    let exe = std::env::current_exe()?;
    // In a process of its own: its checks fork, and this one has threads.
    let status = std::process::Command::new(exe)
        .arg("doctor")
        .arg("--data-dir")
        .arg(global.data_dir())
        .status()?;
    if !status.success() {
        return Ok(ExitCode::FAILURE);
    }
    let engine = global.engine().await?;
    // The first one on a host also puts the template together.
    engine.create_ephemeral(&SandboxSpec::default()).await?;
    let begin = Instant::now();
    let (sandbox, _lease) = engine.create_ephemeral(&SandboxSpec::default()).await?;
    let made = begin.elapsed();
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
        "sandbox `{}` made in {:.1} ms; inside:",
        sandbox.id,
        made.as_secs_f64() * 1000.0
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
