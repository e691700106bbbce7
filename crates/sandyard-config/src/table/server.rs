//! `[server]`: where it listens and what it bears.

use crate::kind::{HOUR, Kind};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "server",
    doc: "Where the server listens, how it is reached, and how much it bears at once.",
    settings: &[
        Setting::new(
            "server.host",
            Kind::Addresses,
            "127.0.0.1",
            "Addresses to listen on; `0.0.0.0` and `::` mean all. Names other than `localhost` are not looked up.",
        )
        .env(&["SANDBOX_SERVER_HOST", "SERVER_HOST", "HOST"])
        .flag("--host"),
        Setting::new(
            "server.port",
            Kind::Ports,
            "8100",
            "Ports to listen on, each at every address. Every listener serves every dialect. 0 takes a free one.",
        )
        .env(&["SANDBOX_SERVER_PORT", "SERVER_PORT", "PORT"])
        .flag("--port"),
        Setting::new(
            "server.public_url",
            Kind::HttpUrl,
            "",
            "How clients reach the server, if not by its own address: behind a proxy, a tunnel or a published port. \
             Links in answers begin with it. Any host but loopback here means that others can reach the server.",
        )
        .flag("--public-url")
        .otherwise("the address a request came to")
        .example("https://sandboxes.example.com"),
        Setting::new(
            "server.domain",
            Kind::Domain,
            "localhost",
            "Previews of ports are at `{port}-{id}.` and this domain. Point `*.` of it at the server. Browsers take every \
             name below `localhost` for this machine, so the default works without DNS.",
        )
        .env(&["SANDYARD_DOMAIN"])
        .flag("--domain"),
        Setting::new(
            "server.tls_cert",
            Kind::File,
            "",
            "Certificate chain in PEM. With it every listener speaks TLS. Needs `server.tls_key`.",
        )
        .flag("--tls-cert")
        .otherwise("no TLS")
        .example("/etc/sandyard/tls/fullchain.pem"),
        Setting::new(
            "server.tls_key",
            Kind::File,
            "",
            "Private key of that certificate, in PEM.",
        )
        .flag("--tls-key")
        .example("/etc/sandyard/tls/privkey.pem"),
        Setting::new(
            "server.tls_self_signed",
            Kind::Switch,
            "false",
            "Speak TLS with a certificate for `server.domain` and the names below it, made at the start and kept in the data \
             directory. Clients must be told to trust `tls/ca.pem` there.",
        )
        .flag("--tls-self-signed"),
        Setting::new(
            "server.body_limit",
            Kind::Size(1 << 10, 1 << 30),
            "16m",
            "The largest file that comes inside JSON (`write-file`); other JSON bodies are bounded by 1m, logins by 16k. Uploads are streamed and have their own bound.",
        ),
        Setting::new(
            "server.upload_limit",
            Kind::Size(0, 1 << 60),
            "16g",
            "The largest file upload; 0 for no bound but the sandbox's disk. Uploads are streamed.",
        ),
        Setting::new(
            "server.max_requests",
            Kind::Whole(1, 1_000_000),
            "4096",
            "Requests answered at once; a stream or terminal counts until it has begun. What comes on top is answered 503 at once.",
        ),
        Setting::new(
            "server.buffer_memory",
            Kind::Size(0, 1 << 40),
            "0",
            "Memory for request bodies and answers that are not sent yet, of all callers together; each caller may use a quarter of it. \
             Beyond that a request waits for 10 s and is answered 429 or 503. 0 means a sixteenth of the host's memory, at least 128m \
             and at most 512m.",
        ),
        Setting::new(
            "server.command_output",
            Kind::Size(1 << 10, 8 << 20),
            "1m",
            "Bytes that `run-command` keeps of each output stream, unless a request asks for another number with `max_output_bytes`.",
        ),
        Setting::new(
            "server.rate_limit",
            Kind::Whole(0, 1_000_000),
            "0",
            "Requests one caller may make in a second, on average; 0 for no bound. Beyond it the answer is 429.",
        ),
        Setting::new(
            "server.trusted_proxies",
            Kind::Networks,
            "",
            "Proxies whose `X-Forwarded-*` headers are believed. From anybody else they are ignored. Naming one means that \
             others can reach the server.",
        )
        .example("10.0.0.0/8,fd00::/8"),
        Setting::new(
            "server.url_hosts",
            Kind::Text,
            "",
            "Hosts, or `host:port`, separated by commas, that callers may name in `upload-file-from-url` and \
             `download-to-presigned-url` although their addresses are not public.",
        )
        .example("minio.internal:9000"),
        Setting::new(
            "server.shutdown_grace",
            Kind::Duration(0, HOUR),
            "10s",
            "How long running requests may take to finish when the server is told to stop. Sandboxes run on in any case.",
        ),
    ],
};
