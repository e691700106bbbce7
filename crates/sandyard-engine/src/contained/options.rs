//! The command line of a container's first process.

use std::collections::BTreeMap;
use std::io;

/// The options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) user: Option<String>,
    pub(super) workdir: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) has_egress: bool,
    pub(super) tools_port: Option<u16>,
}

impl Options {
    pub(super) fn parse(mut arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value = || {
                let value = inline.clone().or_else(|| arguments.next());
                value.ok_or_else(|| invalid(&format!("{name} needs a value")))
            };
            match name.as_str() {
                "--egress" => options.has_egress = true,
                "--user" => options.user = Some(value()?).filter(|user| !user.is_empty()),
                "--workdir" => options.workdir = Some(value()?).filter(|path| !path.is_empty()),
                "--tools-port" => {
                    let port = value()?.parse().ok().filter(|&port| port != 0);
                    options.tools_port =
                        Some(port.ok_or_else(|| {
                            invalid("--tools-port needs a port number (1 to 65535)")
                        })?);
                }
                "--env" => {
                    let pair = value()?;
                    let (key, value) = pair
                        .split_once('=')
                        .ok_or_else(|| invalid(&format!("'{pair}' is not KEY=VALUE")))?;
                    options.env.insert(key.to_owned(), value.to_owned());
                }
                _ => return Err(invalid(&format!("unknown argument '{name}'"))),
            }
        }
        Ok(options)
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> io::Result<Options> {
        Options::parse(line.split_ascii_whitespace().map(str::to_owned))
    }

    #[test]
    fn values_follow_a_space_or_an_equals_sign() {
        let options =
            parse("--user=node:node --workdir /app --env A=b=c --egress --tools-port 7").unwrap();
        assert_eq!(options.user.as_deref(), Some("node:node"));
        assert_eq!(options.workdir.as_deref(), Some("/app"));
        assert_eq!(options.env["A"], "b=c");
        assert!(options.has_egress);
        assert_eq!(options.tools_port, Some(7));
        assert_eq!(parse("--user=").unwrap(), Options::default());
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        for line in ["--user", "--env A", "--wayout", "more", "--tools-port=0"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
