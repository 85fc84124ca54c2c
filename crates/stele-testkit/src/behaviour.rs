//! How the server behaves: what it says, what it refuses, how it fails.

use std::fmt;
use std::sync::Arc;

use crate::fault::{Fault, FaultKind};
use crate::pace::Pace;
use crate::parsed::ParsedRequest;
use crate::script::{Say, Script};
use crate::strict::Wording;

/// What a function of the request answers.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) content: Content,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) pace: Option<Pace>,
}

/// The content of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// The wire's form of what the model says.
    Say(Say),
    /// A body as it is.
    Raw { content_type: String, body: Vec<u8> },
}

impl From<Say> for Reply {
    fn from(say: Say) -> Self {
        Self { content: Content::Say(say), fault: None, pace: None }
    }
}

impl Reply {
    /// A 200 with this body, such as a recorded stream (`text/event-stream`).
    pub fn raw(content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { content: Content::Raw { content_type: content_type.into(), body: body.into() }, fault: None, pace: None }
    }

    /// Goes wrong like this; comes before the faults of the [`Behaviour`].
    #[must_use]
    pub fn fault(mut self, kind: FaultKind) -> Self {
        self.fault = Some(kind);
        self
    }

    /// Sent like this; comes before the pace of the [`Behaviour`].
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }
}

/// Where answers come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// A script; the step is read from the request.
    Script(Script),
    /// A script; the step is the number of answers that were given.
    Arrival(Script),
    /// A function of the request.
    Function(Arc<dyn Fn(&ParsedRequest) -> Reply + Send + Sync>),
}

/// Whether requests are checked as the vendors check them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// What a vendor refuses gets the vendor's 400.
    Vendor,
    /// Whatever is JSON is answered.
    Lenient,
}

/// How a server behaves.
#[derive(Clone)]
pub struct Behaviour {
    pub(crate) source: Source,
    pub(crate) faults: Vec<Fault>,
    pub(crate) pace: Pace,
    pub(crate) strictness: Strictness,
    pub(crate) key: Option<String>,
    pub(crate) models: Vec<String>,
    pub(crate) window: Option<u64>,
    pub(crate) unknown: Option<(Vec<String>, Wording)>,
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Script(script) => format!("{script:?}"),
            Source::Arrival(script) => format!("in order {script:?}"),
            Source::Function(_) => "function".to_owned(),
        };
        f.debug_struct("Behaviour").field("source", &source).field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl From<Script> for Behaviour {
    fn from(script: Script) -> Self {
        Self::new(Source::Script(script))
    }
}

impl From<Say> for Behaviour {
    fn from(say: Say) -> Self {
        Script::from(say).into()
    }
}

impl Behaviour {
    fn new(source: Source) -> Self {
        Self {
            source,
            faults: Vec::new(),
            pace: Pace::default(),
            strictness: Strictness::Vendor,
            key: None,
            models: Vec::new(),
            window: None,
            unknown: None,
        }
    }

    /// Plays the steps in the order in which requests arrive; one that was spoilt by a fault is played again.
    pub fn in_order(script: impl Into<Script>) -> Self {
        Self::new(Source::Arrival(script.into()))
    }

    /// Answers with a function of the request. Its steps, for [`Fault::at`] and for call ids, are the number of
    /// assistant messages in the history.
    pub fn answering(answer: impl Fn(&ParsedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::new(Source::Function(Arc::new(answer)))
    }

    /// Adds a fault. The first one that fits a request strikes.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Sends answers like this.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Answers requests that a vendor would refuse, as long as they are JSON.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.strictness = Strictness::Lenient;
        self
    }

    /// Does not know these fields of a body, and refuses the first one that is there in these words.
    #[must_use]
    pub fn without_fields<F: Into<String>>(mut self, fields: impl IntoIterator<Item = F>, wording: Wording) -> Self {
        self.unknown = Some((fields.into_iter().map(Into::into).collect(), wording));
        self
    }

    /// Demands this key, in the header where the wire's vendor takes it.
    #[must_use]
    pub fn require_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Lists these models and refuses others; without them every model is taken and one named `scripted` is listed.
    #[must_use]
    pub fn models<M: Into<String>>(mut self, models: impl IntoIterator<Item = M>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Refuses prompts of more tokens than this, as the vendors refuse what is longer than the model's window.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }
}
