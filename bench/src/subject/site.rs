//! Web site on loopback, and a name server for it, that sandboxes download from.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// A loopback address of its own: the operator's settings open this one and nothing else.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);

/// Host name of the site.
const NAME: &str = "site.bench.test";

/// Bytes written at once.
const PIECE: usize = 1 << 20;

/// Result of a download, as reported by the downloading program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Download {
    /// From the first packet of the connection to the first byte of the answer; looking the name up comes before that.
    pub(crate) first_byte: Duration,
    /// Megabytes (10⁶ bytes) per second, over everything.
    pub(crate) megabytes_per_second: f64,
}

/// The site. It runs as long as the program does.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    http: SocketAddr,
    names: SocketAddr,
}

impl Site {
    /// Listens on free ports.
    pub(crate) fn start() -> Result<Self> {
        let http = TcpListener::bind((ADDRESS, 0)).context("failed to listen")?;
        let names = UdpSocket::bind((ADDRESS, 0)).context("failed to listen for DNS queries")?;
        let site = Self {
            http: http.local_addr()?,
            names: names.local_addr()?,
        };
        let piece: Arc<[u8]> = vec![7; PIECE].into();
        std::thread::spawn(move || {
            for stream in http.incoming().flatten() {
                let piece = Arc::clone(&piece);
                // A client that disconnects is not an error of the site.
                std::thread::spawn(move || serve(&stream, &piece).ok());
            }
        });
        std::thread::spawn(move || answer_look_ups(&names));
        Ok(site)
    }

    /// The settings of a server whose sandboxes may reach it.
    pub(crate) fn settings(&self) -> [(&'static str, String); 2] {
        [
            ("SANDYARD_GATEWAY_REACHABLE", ADDRESS.to_string()),
            ("SANDYARD_GATEWAY_NAMESERVERS", self.names.to_string()),
        ]
    }

    /// The program that downloads `bytes` inside a sandbox.
    pub(crate) fn download_by_name(&self, bytes: usize) -> Vec<String> {
        download(&format!("http://{NAME}:{}/{bytes}", self.http.port()))
    }

    /// Downloads `bytes` with the same program on the host, without a gateway.
    pub(crate) fn download_directly(&self, bytes: usize) -> Result<Download> {
        let argv = download(&format!("http://{}/{bytes}", self.http));
        let output = Command::new(&argv[0])
            .args(&argv[1..])
            .output()
            .context("failed to run `curl`")?;
        ensure!(
            output.status.success(),
            "`curl` on the host exited with {}",
            output.status
        );
        read_download(&String::from_utf8_lossy(&output.stdout), bytes)
    }
}

/// Reads what the program of [`Site::download_by_name`] printed.
pub(crate) fn read_download(printed: &str, bytes: usize) -> Result<Download> {
    let figures: Vec<f64> = printed.split(' ').flat_map(str::parse).collect();
    let [looked_up, first_byte, rate, size] = figures[..] else {
        anyhow::bail!("`curl` printed {printed:?}");
    };
    ensure!(size as usize == bytes, "{size} of {bytes} bytes came");
    Ok(Download {
        first_byte: Duration::from_secs_f64((first_byte - looked_up).max(0.0)),
        megabytes_per_second: rate / 1e6,
    })
}

fn download(url: &str) -> Vec<String> {
    let figures = "%{time_namelookup} %{time_starttransfer} %{speed_download} %{size_download}";
    let argv = [
        "curl",
        "--silent",
        "--noproxy",
        "*",
        "--output",
        "/dev/null",
    ];
    let argv = argv.into_iter().chain(["--write-out", figures, url]);
    argv.map(str::to_owned).collect()
}

/// Answers one request for as many bytes as its path says.
fn serve(stream: &TcpStream, piece: &[u8]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let mut remaining: usize = path.trim_start_matches('/').parse().unwrap_or(0);
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {remaining}\r\nConnection: close\r\n\r\n"
    )?;
    while remaining > 0 {
        let count = remaining.min(piece.len());
        stream.write_all(&piece[..count])?;
        remaining -= count;
    }
    Ok(())
}

/// Answers every query with the site's address (RFC 1035).
fn answer_look_ups(socket: &UdpSocket) {
    let mut buffer = [0; 1024];
    while let Ok((length, client)) = socket.recv_from(&mut buffer) {
        if let Some(answer) = answer(&buffer[..length]) {
            socket.send_to(&answer, client).ok();
        }
    }
}

fn answer(query: &[u8]) -> Option<Vec<u8>> {
    const HEAD: usize = 12;
    const ADDRESS_RECORD: [u8; 2] = [0, 1];
    let mut end = HEAD;
    while *query.get(end)? != 0 {
        end += 1 + usize::from(query[end]);
    }
    let question = query.get(HEAD..end + 5)?;
    let is_address = query[end + 1..end + 3] == ADDRESS_RECORD;
    let mut answer = query[..2].to_vec();
    // An authority's answer without error, to one question, with as many records as follow.
    answer.extend([0x85, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    answer.extend(question);
    if is_address {
        // The question's name, an address, good for a minute, four bytes.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(ADDRESS.octets());
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_downloads_what_it_asked_for() {
        let site = Site::start().unwrap();
        let download = site.download_directly(3 << 20).unwrap();
        assert!(download.megabytes_per_second > 0.0);
    }

    #[test]
    fn figures_of_a_short_download_are_refused() {
        assert!(read_download("0.1 0.2 1000 99", 100).is_err());
        let download = read_download("0.1 0.3 2000000 100", 100).unwrap();
        assert_eq!(download.first_byte.as_millis(), 200);
        assert_eq!(download.megabytes_per_second, 2.0);
    }

    #[test]
    fn every_name_is_here() {
        let query =
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01";
        let found = answer(query).unwrap();
        assert!(found.starts_with(&[0x12, 0x34, 0x85, 0x80, 0, 1, 0, 1]));
        assert!(found.ends_with(&ADDRESS.octets()));
        let mut other = query.to_vec();
        other[12 + 8] = 28;
        assert_eq!(answer(&other).unwrap().len(), query.len());
        assert!(answer(&query[..14]).is_none());
    }
}
