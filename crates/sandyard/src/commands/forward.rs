//! `sandyard open` and `sandyard port-forward`.

use std::net::Ipv4Addr;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use sandyard_client::{Client, Command as Program, Exec, ExecEvent, ExecRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::global::Global;
use crate::output::{self, Format};

/// Connects standard input and output to a port, with what the sandbox has.
const RELAY: &str = r#"if command -v socat >/dev/null; then exec socat - "TCP:127.0.0.1:$1"
elif command -v bash >/dev/null; then
    exec bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; cat <&3 & cat >&3; wait' bash "$1"
elif command -v nc >/dev/null; then exec nc 127.0.0.1 "$1"
else echo "port-forward needs socat, bash or nc in the sandbox" >&2; exit 1; fi"#;

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Port in the sandbox
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Runs until Ctrl-C. Each connection to the port of this host becomes a connection to the port in the sandbox and wakes it; \
the sandbox needs socat, bash or nc for that. For web pages, `sandyard open` is simpler.

Examples:
  sandyard port-forward ID 5432          # then: psql -h 127.0.0.1
  sandyard port-forward ID 15432:5432 6379"
)]
pub(crate) struct ForwardArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Port in the sandbox, or port of this host and port in the sandbox; 0 on this host means any free port
    #[arg(value_name = "[LOCAL:]PORT", required = true, value_parser = port_pair)]
    ports: Vec<(u16, u16)>,
}

fn port_pair(text: &str) -> Result<(u16, u16), String> {
    let (local, remote) = text.split_once(':').unwrap_or((text, text));
    match (local.parse(), remote.parse()) {
        (Ok(local), Ok(remote)) if remote > 0 => Ok((local, remote)),
        _ => Err("expected PORT or LOCAL:PORT, for example 8080 or 15432:5432".to_owned()),
    }
}

/// Opens a port of a sandbox in the browser and prints its link.
pub(crate) async fn open(global: &Global, args: &OpenArgs) -> anyhow::Result<ExitCode> {
    let port = global.client()?.expose_port(&args.id, args.port).await?;
    let signed = port.signed_url.as_ref().filter(|_| !port.public);
    let url = signed.unwrap_or(&port.url);
    let chosen = std::env::var("BROWSER").ok();
    let browsers = chosen.as_deref().into_iter().chain(["xdg-open", "open"]);
    for browser in browsers {
        let started = Command::new(browser)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if started.is_ok() {
            break;
        }
    }
    args.format.print(&port, url)
}

/// Forwards ports of this host to ports of a sandbox until Ctrl-C.
pub(crate) async fn forward(global: &Global, args: &ForwardArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let id = client.inspect(&args.id).await?.sandbox_id;
    let mut tasks = tokio::task::JoinSet::new();
    for (local, remote) in args.ports.clone() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, local))
            .await
            .with_context(|| format!("listening on 127.0.0.1:{local}"))?;
        output::line(format!(
            "{} -> {}:{remote}",
            listener.local_addr()?,
            args.id
        ));
        let (client, id) = (client.clone(), id.clone());
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.context("accepting a connection")?;
                let (client, id) = (client.clone(), id.clone());
                tokio::spawn(async move {
                    if let Err(error) = relay(&client, &id, remote, stream).await {
                        output::error(&error);
                    }
                });
            }
        });
    }
    let ended: Option<Result<anyhow::Result<()>, _>> = tasks.join_next().await;
    ended.context("no port is forwarded")???;
    Ok(ExitCode::SUCCESS)
}

/// Copies between a connection and a port of the sandbox until one of them ends.
async fn relay(client: &Client, id: &str, port: u16, stream: TcpStream) -> anyhow::Result<()> {
    let port = port.to_string();
    let argv = ["sh", "-c", RELAY, "sh", &port].map(str::to_owned);
    let request = ExecRequest::new(Program::Argv(argv.into()));
    let Exec {
        mut input,
        mut output,
    } = client.exec(id, &request).await?;
    let (mut reader, mut writer) = stream.into_split();
    let mut problem = Vec::new();
    let receiving = async {
        while let Some(event) = output.next().await? {
            match event {
                ExecEvent::Stdout(bytes) => writer.write_all(&bytes).await?,
                ExecEvent::Stderr(bytes) => problem.extend_from_slice(&bytes),
                ExecEvent::Exit { .. } => break,
                _ => {}
            }
        }
        anyhow::Ok(())
    };
    let sending = async {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return anyhow::Ok(()),
                Ok(count) => {
                    input
                        .write(Bytes::copy_from_slice(&buffer[..count]))
                        .await?
                }
            }
        }
    };
    tokio::select! {
        received = receiving => received?,
        sent = sending => sent?,
    }
    // The relay may have ended already.
    let _ = input.signal("KILL").await;
    match String::from_utf8_lossy(&problem).trim() {
        "" => Ok(()),
        text => bail!("port {port}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_parsed() {
        assert_eq!(port_pair("80"), Ok((80, 80)));
        assert_eq!(port_pair("0:80"), Ok((0, 80)));
        for text in ["0", "a", "80:", "1:2:3", "70000"] {
            assert!(port_pair(text).is_err(), "{text}");
        }
    }
}
