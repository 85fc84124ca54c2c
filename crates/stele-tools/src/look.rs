//! The tools that only look about: what is the same for each of them.

use std::sync::atomic::AtomicBool;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use stele_core::{Future, Invocation, ToolOutput};

use crate::Options;
use crate::declare::{Declared, finish, stoppable};
use crate::error::Result;
use crate::path::{Place, Roots};

/// Bytes kept free for the last line.
const STATUS: usize = 256;

/// A tool that looks about: its declaration, where it looks, how long a result may be.
pub(crate) struct Look<A> {
    pub(crate) declared: Declared<A>,
    pub(crate) roots: Roots,
    limit: usize,
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Look<A> {
    pub(crate) fn new(options: &Options, name: &str, description: &str) -> Self {
        Self {
            declared: Declared::new(name, description, ""),
            roots: options.roots(),
            limit: options.limits.result_bytes,
        }
    }

    /// Runs a body, which is given how many bytes it may show beside its last line.
    pub(crate) fn run<'a>(
        &'a self,
        invocation: Invocation<'a>,
        body: fn(&Place, &A, usize, &AtomicBool) -> Result<ToolOutput>,
    ) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                let place = self.roots.place(invocation.cwd, &invocation.session.id);
                let limit = self.limit.saturating_sub(STATUS);
                stoppable(invocation.cancelled, move |stop| body(&place, &arguments, limit, stop)).await
            };
            finish(result.await, Some(self.limit))
        })
    }
}
