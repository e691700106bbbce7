//! What a value may be, and its parsing: the one place where text becomes something else.
//!
//! Messages of this module never repeat the text they are about: it may be a secret, and the caller knows what to show.

pub mod network;
pub mod sealing_key;

mod duration;
mod filter;
mod list;
mod number;
pub(crate) mod url;
mod value;

pub use duration::{DAY, HOUR, MINUTE};
pub(crate) use value::Value;

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A path; a relative one counts from the working directory.
    Path,
    /// A path of a file that must be there.
    File,
    /// A path inside sandboxes, from their root.
    AbsolutePath,
    /// A text with this minimum length in bytes.
    Key(usize),
    /// `on` or `off`.
    Switch,
    /// A whole number within bounds.
    Integer(u64, u64),
    /// A time span within bounds, in seconds.
    Duration(u64, u64),
    /// A number of bytes within bounds.
    Size(u64, u64),
    /// A number of processor cores within bounds, in thousandths.
    Cores(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Port numbers, separated by commas.
    Ports,
    /// IP addresses or `localhost`, separated by commas.
    Addresses,
    /// IP networks like `10.0.0.0/8`, separated by commas.
    Networks,
    /// What a sandbox reaches, separated by commas: names, addresses, networks, with or without a port.
    Targets,
    /// Names with a number up to this one each, like `a=1,b=2`.
    Counts(u64),
    /// Any words, separated by commas.
    Tokens,
    /// The name of a provider.
    Provider,
    /// Names of providers, separated by commas.
    Providers,
    /// Names with a provider each, like `a=docker,b=embedded`.
    ProviderOfEach,
    /// Addresses of name servers with or without a port, separated by commas.
    NameServers,
    /// 32 bytes, in hexadecimal digits or base64.
    SealingKey,
    /// A DNS name.
    Domain,
    /// A DNS name with or without a port.
    Host,
    /// `http://host:port` or the same with `https`, with nothing behind it.
    HttpUrl,
    /// A URL of one of these schemes.
    Url(&'static [&'static str]),
    /// A log level, or directives like `info,sandyard_service=debug`.
    LogFilter,
}

impl Kind {
    /// Checks a text that is not empty; `providers` are the names of the program's providers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, text: &str, providers: &[&str]) -> Result<(), String> {
        self.parse(text, providers).map(drop)
    }

    /// Reads a text that is not empty.
    pub(crate) fn parse(self, text: &str, providers: &[&str]) -> Result<Value, String> {
        match self {
            Self::Text | Self::Path | Self::File => printable(text),
            Self::AbsolutePath if !text.starts_with('/') => Err("must begin with `/`".to_owned()),
            Self::AbsolutePath => printable(text),
            Self::Key(min) => key(text, min),
            Self::Switch => number::switch(text),
            Self::Integer(min, max) => number::integer(text, min, max),
            Self::Duration(min, max) => duration::parse(text, min, max),
            Self::Size(min, max) => number::size(text, min, max),
            Self::Cores(min, max) => number::cores(text, min, max),
            Self::Choice(options) => choice(text, options),
            Self::Ports => list::ports(text),
            Self::Addresses => list::addresses(text),
            Self::Networks => list::networks(text),
            Self::Targets => list::targets(text),
            Self::NameServers => list::name_servers(text),
            Self::Counts(max) => list::counts(text, max),
            Self::Tokens => list::tokens(text),
            Self::Provider => choice(text, providers),
            Self::Providers => list::choices(text, providers),
            Self::ProviderOfEach => list::pairs(text, providers),
            Self::SealingKey => sealing_key::parse(text),
            Self::Domain => url::domain(text),
            Self::Host => url::host(text),
            Self::HttpUrl => url::http(text),
            Self::Url(schemes) => url::any(text, schemes),
            Self::LogFilter => filter::parse(text),
        }
    }

    /// Whether it takes several values, which the configuration file may write as an array.
    pub(crate) fn is_list(self) -> bool {
        matches!(
            self,
            Self::Ports
                | Self::Addresses
                | Self::Networks
                | Self::Targets
                | Self::NameServers
                | Self::Counts(_)
                | Self::Tokens
                | Self::Providers
                | Self::ProviderOfEach
        )
    }

    /// Whether it is about port numbers, which container platforms put other things in the variables of.
    pub(crate) fn is_port(self) -> bool {
        matches!(self, Self::Ports | Self::Integer(_, 65_535))
    }

    /// Whether a configuration file writes `text` without quotes.
    pub(crate) fn is_bare(self, text: &str) -> bool {
        match self {
            Self::Switch => matches!(text, "true" | "false"),
            Self::Integer(..) | Self::Ports | Self::Cores(..) | Self::Duration(..) => {
                text.parse::<u64>().is_ok()
            }
            _ => false,
        }
    }

    /// Hides the password of a URL.
    pub(crate) fn mask(self, text: &str) -> String {
        match self {
            Self::Url(_) => url::mask(text),
            _ => text.to_owned(),
        }
    }

    /// Says in a few words what may be written, for the reference.
    pub fn describe(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Path => "path".to_owned(),
            Self::File => "path of a file".to_owned(),
            Self::AbsolutePath => "absolute path".to_owned(),
            Self::Key(min) => format!("text of at least {min} bytes"),
            Self::Switch => "`true` or `false`".to_owned(),
            Self::Integer(min, max) if max == u64::MAX => format!("number, {min} or more"),
            Self::Integer(min, max) => format!("number, {min} to {max}"),
            Self::Duration(..) => "time span".to_owned(),
            Self::Size(..) => "size".to_owned(),
            Self::Cores(..) => "number of cores, like `0.5`".to_owned(),
            Self::Choice(options) => quoted(options),
            Self::Ports => "port numbers, separated by commas".to_owned(),
            Self::Addresses => "IP addresses, separated by commas".to_owned(),
            Self::Networks => "IP networks, separated by commas".to_owned(),
            Self::Targets => "targets, separated by commas".to_owned(),
            Self::NameServers => {
                "IP addresses with or without a port, separated by commas".to_owned()
            }
            Self::Counts(_) => "names with numbers, like `a=1,b=2`".to_owned(),
            Self::Tokens => "words, separated by commas".to_owned(),
            Self::Provider => "name of a provider".to_owned(),
            Self::Providers => "names of providers, separated by commas".to_owned(),
            Self::ProviderOfEach => "names with a provider each, like `a=docker`".to_owned(),
            Self::SealingKey => "key of 32 bytes".to_owned(),
            Self::Domain => "DNS name".to_owned(),
            Self::Host => "DNS name with or without a port".to_owned(),
            Self::HttpUrl => "URL".to_owned(),
            Self::Url(schemes) => {
                let schemes: Vec<String> =
                    schemes.iter().map(|name| format!("`{name}:`")).collect();
                format!("URL of {}", schemes.join(", "))
            }
            Self::LogFilter => "level, or levels by module".to_owned(),
        }
    }
}

fn quoted(options: &[&str]) -> String {
    let quoted: Vec<String> = options.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

fn printable(text: &str) -> Result<Value, String> {
    match text.chars().any(char::is_control) {
        true => Err("must not contain control characters".to_owned()),
        false => Ok(Value::Text(text.to_owned())),
    }
}

fn key(text: &str, min: usize) -> Result<Value, String> {
    match text.len() < min {
        true => Err(format!(
            "must have at least {min} bytes (got {})",
            text.len()
        )),
        false => Ok(Value::Text(text.to_owned())),
    }
}

fn choice(text: &str, options: &[&str]) -> Result<Value, String> {
    let lower = text.to_ascii_lowercase();
    match options.contains(&lower.as_str()) {
        true => Ok(Value::Text(lower)),
        false => Err(format!("must be one of {}", options.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_their_case() {
        let kind = Kind::Choice(&["auto", "open"]);
        assert_eq!(kind.parse("Open", &[]), Ok(Value::Text("open".to_owned())));
        assert_eq!(
            kind.parse("shut", &[]),
            Err("must be one of auto, open".to_owned())
        );
    }

    #[test]
    fn short_keys_are_refused_without_being_repeated() {
        let problem = Kind::Key(32).parse("hunter2", &[]).unwrap_err();
        assert_eq!(problem, "must have at least 32 bytes (got 7)");
    }

    #[test]
    fn control_characters_have_no_place_in_texts() {
        assert!(Kind::Path.parse("/srv/\nx", &[]).is_err());
        assert!(Kind::AbsolutePath.parse("/work", &[]).is_ok());
        assert!(Kind::AbsolutePath.parse("work", &[]).is_err());
    }
}
