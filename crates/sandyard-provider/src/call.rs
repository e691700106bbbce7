//! A provider call as a value: for wrappers that pass every call on, for logs, and for the protocol between nodes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::NetworkGrant;
use serde::{Deserialize, Serialize};

use crate::instances::{AgentAddress, Change, Instance, InstanceSpec};
use crate::provider::{Provider, Result};
use crate::templates::{ArchiveReader, Ready, TemplateInfo};
use crate::usage::{Usage, UsagePoint};
use crate::volumes::VolumeSpec;
use crate::{ProviderError, ProviderErrorKind};

macro_rules! verbs {
    ($($verb:ident $name:literal,)*) => {
        /// The name of a [`Provider`] call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Verb {
            $(#[doc = concat!("`", $name, "`")] $verb,)*
        }

        impl Verb {
            /// All verbs.
            pub const ALL: &[Self] = &[$(Self::$verb,)*];

            /// The name of the method.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$verb => $name,)*
                }
            }
        }

        impl Call<'_> {
            /// The name of this call.
            pub fn verb(&self) -> Verb {
                match self {
                    $(Self::$verb { .. } => Verb::$verb,)*
                }
            }
        }
    };
}

verbs! {
    CheckHealth "check_health",
    Create "create",
    Fork "fork",
    Inspect "inspect",
    List "list",
    Pause "pause",
    Resume "resume",
    Stop "stop",
    Start "start",
    Delete "delete",
    Diff "diff",
    Agent "agent",
    SetNetwork "set_network",
    Templates "templates",
    Snapshot "snapshot",
    ImportTemplate "import_template",
    RemoveTemplate "remove_template",
    KeepReady "keep_ready",
    Usage "usage",
    UsageHistory "usage_history",
    CreateVolume "create_volume",
    DeleteVolume "delete_volume",
    OpenVolume "open_volume",
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a text that names no provider call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a call of a provider")]
pub struct VerbError(pub String);

impl FromStr for Verb {
    type Err = VerbError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut verbs = Self::ALL.iter().copied();
        let found = verbs.find(|verb| verb.as_str() == text);
        found.ok_or_else(|| VerbError(text.to_owned()))
    }
}

/// One call of a provider with its arguments.
///
/// As JSON it is an object of its arguments and its `verb`. Three calls have no JSON form: an archive is a stream, an agent is
/// reached by a tunnel, and a grant holds secrets that do not travel between servers.
#[derive(Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "named after the methods and their arguments")]
pub enum Call<'a> {
    CheckHealth,
    Create(Cow<'a, InstanceSpec>),
    Fork {
        id: Cow<'a, str>,
        spec: Cow<'a, InstanceSpec>,
    },
    Inspect {
        id: Cow<'a, str>,
    },
    List,
    Pause {
        id: Cow<'a, str>,
    },
    Resume {
        id: Cow<'a, str>,
    },
    Stop {
        id: Cow<'a, str>,
    },
    Start {
        id: Cow<'a, str>,
    },
    Delete {
        id: Cow<'a, str>,
    },
    Diff {
        id: Cow<'a, str>,
    },
    #[serde(skip)]
    Agent(&'a AgentAddress),
    #[serde(skip)]
    SetNetwork {
        id: Cow<'a, str>,
        grant: &'a NetworkGrant,
    },
    Templates,
    Snapshot {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
    },
    #[serde(skip)]
    ImportTemplate {
        name: Cow<'a, str>,
        archive: ArchiveOnce,
    },
    RemoveTemplate {
        name: Cow<'a, str>,
    },
    KeepReady {
        #[serde(rename = "wanted")]
        pool: Cow<'a, [Ready]>,
    },
    Usage {
        id: Cow<'a, str>,
    },
    UsageHistory {
        id: Cow<'a, str>,
        from_ms: i64,
        to_ms: i64,
    },
    CreateVolume(Cow<'a, VolumeSpec>),
    DeleteVolume {
        id: Cow<'a, str>,
    },
    OpenVolume {
        id: Cow<'a, str>,
    },
}

impl fmt::Debug for Call<'_> {
    /// Arguments may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.verb(), self.subject())
    }
}

impl Call<'_> {
    /// The instance, template, volume or sandbox the call is about; empty when it is about none.
    pub fn subject(&self) -> &str {
        match self {
            Self::CheckHealth | Self::List | Self::Templates | Self::KeepReady { .. } => "",
            Self::Create(spec) => spec.sandbox_id.as_str(),
            Self::Agent(address) => &address.id,
            Self::CreateVolume(volume) => &volume.id,
            Self::ImportTemplate { name, .. } | Self::RemoveTemplate { name } => name,
            Self::Fork { id, .. }
            | Self::SetNetwork { id, .. }
            | Self::Inspect { id }
            | Self::Pause { id }
            | Self::Resume { id }
            | Self::Stop { id }
            | Self::Start { id }
            | Self::Delete { id }
            | Self::Diff { id }
            | Self::Snapshot { id, .. }
            | Self::Usage { id }
            | Self::UsageHistory { id, .. }
            | Self::DeleteVolume { id }
            | Self::OpenVolume { id } => id,
        }
    }

    /// Makes the call. It may be made again, except an import, whose archive can be read once.
    ///
    /// # Errors
    /// Those of the call.
    pub async fn send_to(&self, provider: &dyn Provider) -> Result<Answer> {
        Ok(match self {
            Self::CheckHealth => provider.check_health().await?.into(),
            Self::Create(spec) => provider.create(spec).await?.into(),
            Self::Fork { id, spec } => provider.fork(id, spec).await?.into(),
            Self::Inspect { id } => provider.inspect(id).await?.into(),
            Self::List => provider.list().await?.into(),
            Self::Pause { id } => provider.pause(id).await?.into(),
            Self::Resume { id } => provider.resume(id).await?.into(),
            Self::Stop { id } => provider.stop(id).await?.into(),
            Self::Start { id } => provider.start(id).await?.into(),
            Self::Delete { id } => provider.delete(id).await?.into(),
            Self::Diff { id } => provider.diff(id).await?.into(),
            Self::Agent(address) => provider.agent(address).await?.into(),
            Self::SetNetwork { id, grant } => provider.set_network(id, grant).await?.into(),
            Self::Templates => provider.templates().await?.into(),
            Self::Snapshot { id, name } => provider.snapshot(id, name).await?.into(),
            Self::ImportTemplate { name, archive } => {
                let template = provider.import_template(name, archive.take()?).await?;
                template.into()
            }
            Self::RemoveTemplate { name } => provider.remove_template(name).await?.into(),
            Self::KeepReady { pool } => provider.keep_ready(pool).await?.into(),
            Self::Usage { id } => provider.usage(id).await?.into(),
            Self::UsageHistory { id, from_ms, to_ms } => {
                let points = provider.usage_history(id, *from_ms, *to_ms).await?;
                points.into()
            }
            Self::CreateVolume(volume) => provider.create_volume(volume).await?.into(),
            Self::DeleteVolume { id } => provider.delete_volume(id).await?.into(),
            Self::OpenVolume { id } => provider.open_volume(id).await?.into(),
        })
    }
}

/// An archive, until it is read.
#[derive(Default)]
pub struct ArchiveOnce(Mutex<Option<ArchiveReader>>);

impl fmt::Debug for ArchiveOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArchiveOnce")
    }
}

impl ArchiveOnce {
    pub(crate) fn new(archive: ArchiveReader) -> Self {
        Self(Mutex::new(Some(archive)))
    }

    /// Takes the archive to read it.
    ///
    /// # Errors
    /// When it was taken before.
    pub fn take(&self) -> Result<ArchiveReader> {
        let mut archive = self.0.lock();
        archive.take().ok_or_else(|| {
            let message = "the archive was already read; send it again";
            ProviderError::new(ProviderErrorKind::Failed, message)
        })
    }
}

macro_rules! answers {
    ($($variant:ident($answer:ty): $($verb:ident),+;)*) => {
        /// The result of a successful [`Call`]. As JSON it is the result alone.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "named after the results of the methods")]
        pub enum Answer {
            $($variant($answer),)*
            #[serde(skip)]
            Agent(AgentClient),
        }

        $(
            impl From<$answer> for Answer {
                fn from(answer: $answer) -> Self {
                    Self::$variant(answer)
                }
            }

            impl TryFrom<Answer> for $answer {
                type Error = ProviderError;

                fn try_from(answer: Answer) -> Result<Self> {
                    match answer {
                        Answer::$variant(answer) => Ok(answer),
                        other => Err(other.mismatch()),
                    }
                }
            }
        )*

        impl Answer {
            /// Reads the JSON answer of a call.
            ///
            /// # Errors
            /// When it is not an answer of that call.
            pub fn from_json(verb: Verb, json: &[u8]) -> serde_json::Result<Self> {
                match verb {
                    $($(Verb::$verb)|+ => serde_json::from_slice(json).map(Self::$variant),)*
                    Verb::Agent | Verb::OpenVolume => serde_json::from_slice(json).map(Self::Done),
                }
            }
        }
    };
}

answers! {
    Done(()): CheckHealth, Delete, RemoveTemplate, KeepReady, CreateVolume, DeleteVolume;
    Instance(Instance): Create, Fork, Pause, Resume, Stop, Start;
    MaybeInstance(Option<Instance>): Inspect;
    Instances(Vec<Instance>): List;
    Changes(Vec<Change>): Diff;
    Limitations(Vec<String>): SetNetwork;
    Template(TemplateInfo): Snapshot, ImportTemplate;
    Templates(Vec<TemplateInfo>): Templates;
    Usage(Usage): Usage;
    UsageHistory(Vec<UsagePoint>): UsageHistory;
}

impl Answer {
    fn mismatch(&self) -> ProviderError {
        let message = "the provider answered another call than it was asked";
        ProviderError::new(ProviderErrorKind::Failed, message)
    }
}

impl From<AgentClient> for Answer {
    fn from(agent: AgentClient) -> Self {
        Self::Agent(agent)
    }
}

impl TryFrom<Answer> for AgentClient {
    type Error = ProviderError;

    fn try_from(answer: Answer) -> Result<Self> {
        match answer {
            Answer::Agent(agent) => Ok(agent),
            other => Err(other.mismatch()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_read_back() {
        for verb in Verb::ALL {
            assert_eq!(verb.as_str().parse(), Ok(*verb));
        }
    }

    #[test]
    fn calls_are_read_back_from_json() {
        let spec = json!({
            "sandbox_id": "one", "template": "base", "limits": sandyard_core::Limits::default(),
            "env": {"A": "1"}, "access_token": "token", "hostname": null,
        });
        for arguments in [
            json!({"verb": "check_health"}),
            json!({"verb": "snapshot", "id": "i", "name": "n"}),
            json!({"verb": "fork", "id": "i", "spec": spec}),
            json!({"verb": "keep_ready", "wanted": [{"template": null, "count": 2}]}),
            json!({"verb": "usage_history", "id": "i", "from_ms": -1, "to_ms": 2}),
            json!({"verb": "create_volume", "id": "v", "size_bytes": 5}),
        ] {
            let call: Call<'_> = serde_json::from_value(arguments.clone()).expect("a call");
            assert_eq!(call.verb().as_str(), arguments["verb"]);
            let json = serde_json::to_value(&call).expect("arguments");
            let second: Call<'_> = serde_json::from_value(json.clone()).expect("the same");
            assert_eq!(serde_json::to_value(&second).expect("arguments"), json);
        }
    }

    #[test]
    fn a_grant_has_no_json_form() {
        let json = json!({"verb": "set_network", "id": "i"});
        assert!(serde_json::from_value::<Call<'_>>(json).is_err());
    }
}
