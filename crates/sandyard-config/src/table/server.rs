//! `[server]`: listeners and bounds of requests.

use crate::kind::{HOUR, Kind};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "server",
    doc: "Where the server listens, how clients reach it, and how many requests it accepts.",
    settings: &[
        Setting::new("server.host", Kind::Addresses)
            .default("127.0.0.1")
            .doc("IP addresses to listen on. `0.0.0.0` and `::` mean all addresses. Host names other than `localhost` are not resolved.")
            .env(&["SANDBOX_SERVER_HOST", "SERVER_HOST", "HOST"])
            .flag("--host"),
        Setting::new("server.port", Kind::Ports)
            .default("8100")
            .doc("Ports to listen on, at every address. Every listener serves every dialect. 0 selects a free port.")
            .env(&["SANDBOX_SERVER_PORT", "SERVER_PORT", "PORT"])
            .flag("--port"),
        Setting::new("server.public_url", Kind::HttpUrl)
            .doc("URL at which clients reach the server, if it is behind a proxy, a tunnel or a published port. Links in responses \
             begin with it. A host other than loopback means that other machines can reach the server.")
            .flag("--public-url")
            .when_unset("the address that the request was sent to")
            .example("https://sandboxes.example.com"),
        Setting::new("server.domain", Kind::Domain)
            .default("localhost")
            .doc("Domain of previews: `{port}-{id}.<domain>`. Point the DNS record `*.<domain>` at the server. Browsers resolve every \
             name below `localhost` to this machine, so the default needs no DNS.")
            .env(&["SANDYARD_DOMAIN"])
            .flag("--domain"),
        Setting::new("server.tls_cert", Kind::File)
            .doc("Path of the certificate chain, in PEM. If set, every listener uses TLS. Requires `server.tls_key`.")
            .flag("--tls-cert")
            .when_unset("no TLS")
            .example("/etc/sandyard/tls/fullchain.pem"),
        Setting::new("server.tls_key", Kind::File)
            .doc("Path of the private key of `server.tls_cert`, in PEM.")
            .flag("--tls-key")
            .example("/etc/sandyard/tls/privkey.pem"),
        Setting::new("server.tls_self_signed", Kind::Switch)
            .default("false")
            .doc("Whether to use TLS with a self-signed certificate for `server.domain` and the names below it. The server creates it at \
             the first start and stores it in the data directory. Clients must trust `tls/ca.pem` there.")
            .flag("--tls-self-signed"),
        Setting::new("server.body_limit", Kind::Size(1 << 10, 1 << 30))
            .default("16m")
            .doc("Maximum size of a file in a JSON body (`write-file`), 1k to 1g. Other JSON bodies have at most 1m, logins 16k. For uploads see `server.upload_limit`."),
        Setting::new("server.upload_limit", Kind::Size(0, 1 << 60))
            .default("16g")
            .doc("Maximum size of a file upload. 0 means no limit except the sandbox's disk. Uploads are streamed."),
        Setting::new("server.max_requests", Kind::Integer(1, 1_000_000))
            .default("4096")
            .doc("Maximum number of concurrent requests, 1 to 1000000. A stream or terminal counts until it has started. Further requests get 503."),
        Setting::new("server.buffer_memory", Kind::Size(0, 1 << 40))
            .default("0")
            .doc("Memory for request bodies and unsent responses of all callers. Each caller may use a quarter of it. A request that \
             exceeds it waits for 10 seconds and then gets 429 or 503. 0 means a sixteenth of the host's memory, between 128m \
             and 512m."),
        Setting::new("server.command_output", Kind::Size(1 << 10, 8 << 20))
            .default("1m")
            .doc("Maximum number of bytes that `run-command` returns of each output stream, 1k to 8m. A request can set another number with `max_output_bytes`."),
        Setting::new("server.rate_limit", Kind::Integer(0, 1_000_000))
            .default("0")
            .doc("Maximum number of requests per second of one caller, on average. Further requests get 429. 0 means no limit."),
        Setting::new("server.trusted_proxies", Kind::Networks)
            .doc("Networks of proxies whose `X-Forwarded-*` headers are trusted. Headers of other clients are ignored. If set, the \
             server assumes that other machines can reach it.")
            .example("10.0.0.0/8,fd00::/8"),
        Setting::new("server.url_hosts", Kind::Text)
            .doc("Hosts with private addresses that requests may name in `upload-file-from-url` and `download-to-presigned-url`: \
             `host` or `host:port`, separated by commas.")
            .example("minio.internal:9000"),
        Setting::new("server.shutdown_grace", Kind::Duration(0, HOUR))
            .default("10s")
            .doc("How long running requests may take to finish at shutdown, up to 1 hour. Sandboxes keep running."),
    ],
};
