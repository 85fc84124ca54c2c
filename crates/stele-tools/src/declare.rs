//! What is the same for every tool: declaration, arguments, and the one way out for results.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use stele_core::{CallCard, CardKind, ToolOutput, ToolSpec, parse_lenient};
use stele_edit::Once;

use crate::error::{Error, Result};
use crate::sanitise;
use crate::schema::Shape;
use crate::slips::{self, Own};
#[cfg(feature = "web")]
use crate::spill::{self, Spill};

/// Built-in tools come first in a request.
const GROUP: u16 = 0;

/// A tool's declaration, computed once, with the type of its arguments.
pub(crate) struct Declared<A> {
    pub(crate) spec: ToolSpec,
    shape: Shape,
    own_slips: Own,
    arguments: PhantomData<fn() -> A>,
}

impl<A: DeserializeOwned + JsonSchema> Declared<A> {
    /// Declares a tool. Description and guidance are kept without the final line end of their file.
    pub(crate) fn new(name: &str, description: &str, guidance: &str) -> Self {
        let shape = Shape::of::<A>();
        let spec = ToolSpec {
            group: GROUP,
            name: name.to_owned(),
            description: description.trim_end().to_owned(),
            parameters: serde_json::value::to_raw_value(&shape).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            guidance: guidance.to_owned(),
        };
        Self { spec, shape, own_slips: |_| Ok(()), arguments: PhantomData }
    }

    /// The same, with what puts right the slips that are made with this tool.
    pub(crate) fn forgiving(self, own_slips: Own) -> Self {
        Self { own_slips, ..self }
    }

    /// An error that names what is wrong with the arguments and shows the right shape.
    pub(crate) fn wrong(&self, problem: String) -> Error {
        Error::Arguments { tool: self.spec.name.clone(), problem, shape: self.shape.sketch() }
    }

    /// Parses the arguments of a call.
    pub(crate) fn parse(&self, arguments: &str) -> Result<A> {
        // Some models send nothing at all where every field is optional.
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let Once(mut value) = parse_lenient(arguments.as_bytes()).map_err(|error| {
            self.wrong(match error.is_data() {
                true => format!("{error}; give it once"),
                false => format!("the arguments are not valid JSON ({error})"),
            })
        })?;
        slips::put_right(&mut value, &self.shape, self.own_slips).map_err(|problem| self.wrong(problem))?;
        self.shape.check(&value, "").map_err(|problem| self.wrong(problem))?;
        serde_json::from_value(value).map_err(|error| self.wrong(error.to_string()))
    }

    /// The card of a call whose arguments do not parse.
    pub(crate) fn plain_card(&self, kind: CardKind) -> CallCard {
        CallCard::Generic { title: self.spec.name.clone(), kind, locations: Vec::new() }
    }
}

/// The one way out: makes a result inert and no longer than `limit` bytes. `read` gives no limit,
/// since it has its own bound.
pub(crate) fn finish(result: Result<ToolOutput>, limit: Option<usize>) -> ToolOutput {
    let mut output = result.unwrap_or_else(ToolOutput::from);
    output.content = sanitise::inert(&output.content);
    output.content.truncate(output.content.trim_end_matches('\n').len());
    if let Some(limit) = limit {
        output.content = sanitise::cut(&output.content, limit);
    }
    output
}

/// The same for a result that is worth keeping whole: what is too long goes to the spill.
#[cfg(feature = "web")]
pub(crate) fn finish_kept(result: Result<ToolOutput>, limit: usize, spill: Option<Spill>) -> ToolOutput {
    let mut output = finish(result, None);
    if output.content.len() <= limit {
        return output;
    }
    output.meta.spill = spill.and_then(|mut spill| {
        spill.write(&output.content);
        spill.meta()
    });
    let gap = output.meta.spill.as_ref().map(spill::pointer);
    output.content = sanitise::cut_with(&output.content, limit, gap.as_deref());
    output
}

/// Runs file work on a thread that may block. It runs to its end: what it did is always known.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Defect(error.to_string())),
    }
}

/// Runs work that only looks on a thread that may block, and tells it to stop when the call is cancelled.
pub(crate) async fn stoppable<T: Send + 'static>(
    cancelled: impl Future<Output = ()>,
    work: impl FnOnce(&Arc<AtomicBool>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    tokio::select! {
        biased;
        () = cancelled => {
            stop.store(true, Ordering::Relaxed);
            Err(Error::Cancelled)
        }
        output = blocking(move || work(&told)) => output,
    }
}
