//! Generates the reference, `docs/configuration.md`.

use std::fmt::Write as _;

use crate::setting::{Section, Setting};
use crate::table::{OTHER_VARIABLES, Table};

const HEAD: &str = "\
# Configuration

<!-- Generated from crates/sandyard-config/src/table. After a change there: UPDATE_DOCS=1 cargo test -p sandyard-config -->

The server runs without any configuration. Settings come from four sources; the first one that has a setting wins:

1. flags of `sandyard serve`
2. the environment
3. a file `.env` in the working directory: lines `KEY=VALUE`, with quotes, `export` and comments
4. the configuration file, in TOML. The server reads the first one of these that exists: `--config FILE`, `$SANDYARD_CONFIG`,
   `sandyard.toml` in the data directory, `/etc/sandyard/sandyard.toml`. [An example](../deploy/sandyard.toml) has every setting.

`sandyard config check` reads all sources and reports every error at once, each with its file and line or its variable.
`sandyard config show` prints the effective settings and their sources, with secrets hidden.

- Every setting has an environment variable: `server.port` is `SANDYARD_SERVER_PORT`. If a setting has several variables, the first
  one in the table wins. An empty value counts as not set.
- A time span is in seconds, or has units: `90`, `45s`, `30m`, `1h30m`, `7d`.
- A size is in bytes, or has a unit: `512m`, `2g`, `1.5g`. Units are powers of 1024.
- Lists are separated by commas. The configuration file may use an array instead.
- Relative paths are relative to the working directory.
- An unknown key in the configuration file is an error. An unknown variable with the prefix `SANDYARD_` is a warning.
";

const TAIL: &str = "
## When credentials are required

Once the server listens on an address other than loopback, every listener requires credentials. At the first start the server
creates an admin key and stores it in the data directory (`admin.key`, mode 0600), so there is always one.

The server assumes that other machines can reach it if it listens on an address other than loopback, if `server.public_url` names
another host, or if `server.trusted_proxies` names a proxy. Then:

| `auth.mode` | native and Docker-style dialect | other dialects |
|---|---|---|
| `auto` | key or token required | key or token required |
| `required` | key or token required | key or token required |
| `open` | the server refuses to start | |

If only this machine can reach the server:

| `auth.mode` | native and Docker-style dialect | other dialects |
|---|---|---|
| `auto`, `open` | open | key or token required |
| `required` | key or token required | key or token required |

The server cannot detect a proxy in front of a loopback listener. Name such a proxy in `server.trusted_proxies`, or set `auth.mode`
to `required`.
";

/// The reference in Markdown.
pub fn reference_markdown(table: &Table) -> String {
    let mut text = HEAD.to_owned();
    for section in table.sections() {
        write_section(&mut text, section);
        if section.name == "sandbox" {
            write_providers(&mut text, table);
        }
    }
    text.push_str("\n## Other variables\n\n| Variable | Meaning |\n|---|---|\n");
    for (name, doc) in OTHER_VARIABLES {
        let _ = writeln!(text, "| `{name}` | {doc} |");
    }
    text.push_str(TAIL);
    text
}

fn write_section(text: &mut String, section: &Section) {
    let title = match section.name {
        "" => "Top level".to_owned(),
        name => format!("`[{name}]`"),
    };
    let _ = write!(text, "\n## {title}\n\n{}\n\n", section.doc);
    text.push_str("| Setting | Default | Variables | Flag | Meaning |\n|---|---|---|---|---|\n");
    for setting in section.settings {
        let _ = writeln!(text, "{}", row(setting));
    }
}

/// The names that `sandbox.provider` and its siblings take.
fn write_providers(text: &mut String, table: &Table) {
    text.push_str("\n| Provider | Sandboxes run | Settings |\n|---|---|---|\n");
    for provider in table.providers() {
        let section = provider
            .section
            .map(|section| format!("`[{}]`", section.name));
        let (name, summary) = (provider.name, provider.summary);
        let section = section.unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {summary} | {section} |");
    }
}

fn row(setting: &Setting) -> String {
    let default = match setting.default {
        "" => setting.when_unset.to_owned(),
        default => format!("`{default}`"),
    };
    let variables: Vec<String> = setting
        .variables()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let flag = setting
        .flag
        .map_or_else(String::new, |flag| format!("`{flag}`"));
    let secret = if setting.secret { " Never shown." } else { "" };
    format!(
        "| `{}`<br>{} | {default} | {} | {flag} | {}{secret} |",
        setting.key,
        setting.kind.describe(),
        variables.join("<br>"),
        setting.doc,
    )
}
