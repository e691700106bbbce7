//! The reference, `docs/configuration.md`, made from the table.

use std::fmt::Write as _;

use crate::setting::{Section, Setting};
use crate::table::{self, OTHER_VARIABLES};

const HEAD: &str = "\
# Configuration

<!-- Made from crates/sandyard-config/src/table. After a change there: UPDATE_DOCS=1 cargo test -p sandyard-config -->

Nothing needs to be configured. Whatever you want otherwise can be said in four places; the strongest first:

1. flags of `sandyard serve`
2. the environment
3. a file `.env` in the working directory: `KEY=VALUE` lines, with quotes, `export` and comments
4. the configuration file, in TOML. The first of these is read, alone: `--config FILE`, `$SANDYARD_CONFIG`, `sandyard.toml` in
   the data directory, `/etc/sandyard/sandyard.toml`. There is [an example](../deploy/sandyard.toml) with every setting.

`sandyard config check` reads all of them and tells every mistake at once, each with the file and line or the variable it
comes from. `sandyard config show` prints what is in force and why, with secrets hidden.

- Every setting has a variable of its own: `server.port` is `SANDYARD_SERVER_PORT`. Of several variables the first listed
  wins. An empty value counts as not said.
- A time span is in seconds, or has units: `90`, `45s`, `30m`, `1h30m`, `7d`.
- A size is in bytes, or has a unit: `512m`, `2g`, `1.5g`.
- Lists are separated by commas; the configuration file may use an array instead.
- Relative paths count from the working directory.
- A key in the configuration file that nobody knows is an error; a `SANDYARD_` variable that nobody knows is a warning.
";

const TAIL: &str = "
## Who may reach the server

Listening on anything but loopback is all it takes to serve others: credentials are then required on every listener. The
first start makes an admin key and keeps it in the data directory (`admin.key`, mode 0600), so there is always one.

The server counts as reachable by others if it listens on an address other than loopback, if `server.public_url` names
another host, or if `server.trusted_proxies` names a proxy. Then:

| `auth.mode` | native and Docker-style dialect | other dialects |
|---|---|---|
| `auto` | key or token required | key or token required |
| `required` | key or token required | key or token required |
| `open` | the server refuses to start, and says what to set | |

If only this machine can reach it:

| `auth.mode` | native and Docker-style dialect | other dialects |
|---|---|---|
| `auto`, `open` | open | key or token required |
| `required` | key or token required | key or token required |

A proxy that is in front of a loopback listener and in no setting cannot be noticed. Name it in `server.trusted_proxies`, or
set `auth.mode` to `required`.
";

/// Writes the reference in Markdown.
pub fn reference_markdown() -> String {
    let mut text = HEAD.to_owned();
    for section in table::sections() {
        write_section(&mut text, section);
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

fn row(setting: &Setting) -> String {
    let default = match setting.default {
        "" => setting.otherwise.to_owned(),
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
