//! Tool calls: asked about, run, stopped, answered.

use std::sync::Arc;

use stele_core::{
    Action, By, Call, CallId, CallSession, Event, Invocation, Mode, Subject, Text, TodoSet, Tool, ToolError,
    ToolErrorClass, ToolGated, ToolOutput, ToolResult, ToolStarted, Verdict, Watch,
};
use tokio::sync::oneshot;

use super::Driver;
use super::flight::{InFlight, Update};
use super::whereabouts::is_relative;
use crate::instructions::one_line;
use crate::{Approvals, Result};

/// A call as rules and mode see it.
fn described(id: CallId, tool: &dyn Tool, arguments: &str, subjects: Vec<Subject>) -> Call {
    Call { id, tool: tool.spec().name.clone(), subjects, effects: tool.effects(), parallel: tool.parallel(arguments) }
}

impl Driver {
    /// Validates a call and asks rules and mode about it.
    pub(super) fn consult(&mut self, id: CallId, at_least: Verdict) -> Result<()> {
        let Some(record) = self.state.call(id) else { return Ok(()) };
        let Some(tool) = self.agent.tool(&record.name) else {
            let message = format!("the tool {:?} is not part of this version of the program", record.name);
            return self.append(failed(id, &ToolError::new("tool.unavailable", ToolErrorClass::Refused, message)));
        };
        let arguments = record.arguments.as_str();
        let subjects = match tool.subjects(arguments) {
            Ok(subjects) => subjects,
            Err(error) => return self.append(failed(id, &error)),
        };
        if let Some(refused) = self.without_its_folder(id, || subjects.clone()) {
            return self.append(refused);
        }
        let call = described(id, &**tool, arguments, subjects);
        let mut decision = self.agent.permit(&call, self.state.mode(), self.grants(), &self.workspace);
        let mut settled_by = None;
        if decision.verdict < at_least {
            // Where nobody can be asked, a call that goes in circles is not run.
            let nobody = self.agent.options.approvals == Approvals::Nobody;
            decision.verdict = if nobody { Verdict::Deny } else { at_least };
            decision.by = "limit:repeats".to_owned();
            decision.reason = Some("the same call was made several times with the same result".to_owned());
            decision.always.clear();
            decision.settled_with.clear();
        } else if decision.verdict == Verdict::Ask {
            settled_by = self.settled_by(&call);
        }
        self.append(ToolGated {
            call: id,
            decision: decision.verdict,
            by: By(decision.by),
            reason: decision.reason,
            always: decision.always,
            settled_with: decision.settled_with,
            settled_by,
            effects: call.effects,
            parallel: call.parallel,
        })
    }

    /// What a person granted in this session.
    fn grants(&self) -> &[String] {
        if self.is_foreign() { &[] } else { self.state.grants() }
    }

    /// The lowest mode above the session's own in which a call would run without a question.
    fn settled_by(&self, call: &Call) -> Option<Mode> {
        let above = |mode: &Mode| *mode > self.state.mode() && *mode <= self.agent.options.highest_mode;
        let mut modes = [Mode::Edit, Mode::Full].into_iter().filter(above);
        modes.find(|mode| self.agent.verdict(call, *mode, self.grants(), &self.workspace) == Verdict::Allow)
    }

    /// Judges a call again, where one before it in the step went to another folder than the one they were judged for:
    /// what it names is another thing there. Gives the refusal, if it may not run there without a question.
    fn judge_again(&self, id: CallId, tool: &dyn Tool, arguments: &str) -> Option<Event> {
        if !self.state.step()?.moved {
            return None;
        }
        let subjects = tool.subjects(arguments).ok()?;
        if !subjects.iter().any(is_relative) {
            return None;
        }
        let call = described(id, tool, arguments, subjects);
        let decision = self.agent.permit(&call, self.state.mode(), self.grants(), &self.workspace);
        if decision.verdict == Verdict::Allow {
            return None;
        }
        let message = format!(
            "not run: an earlier call of this step went to {}, where this one would not run without a question ({}). \
             Make it again if it is meant for that folder; else give an absolute path",
            one_line(&self.cwd.display().to_string()),
            decision.by
        );
        Some(failed(id, &ToolError::new("tool.moved", ToolErrorClass::Refused, message)))
    }

    /// Starts a body. True when its result was appended instead.
    pub(super) fn start(&mut self, key: String, call: CallId) -> Result<bool> {
        let Some((tool, arguments)) = self
            .state
            .call(call)
            .and_then(|record| Some((Arc::clone(self.agent.tool(&record.name)?), record.arguments.shared())))
        else {
            return Ok(false);
        };
        // Since the call was judged its folder may have gone, or its step gone to another one.
        let refused = self.without_its_folder(call, || tool.subjects(&arguments).unwrap_or_default());
        self.follow_cwd()?;
        if let Some(refused) = refused.or_else(|| self.judge_again(call, &*tool, &arguments)) {
            self.append(refused)?;
            return Ok(true);
        }
        self.append(ToolStarted { call })?;
        self.commit()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let updates = self.updates.0.clone();
        let (cwd, workspace) = (self.cwd.clone(), self.workspace.root().to_owned());
        let read_files = Arc::clone(self.state.read_files());
        let shown_files = Arc::clone(self.state.shown_files());
        let images = self.state.epoch().map(|epoch| epoch.config.images).unwrap_or_default();
        let watch = self.watch(call);
        let session = self.call_session();
        let ahead = self.ahead(call);
        let progress = {
            let updates = updates.clone();
            move |text: &str| {
                let _ = updates.send(Update::Output { call, text: text.to_owned() });
            }
        };
        let body = tokio::spawn(async move {
            let cancelled = Box::pin(async move {
                // A sender that is gone never stops anything.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            });
            let invocation = Invocation {
                call,
                arguments: &arguments,
                cwd: &cwd,
                workspace: &workspace,
                session,
                read_files,
                shown_files,
                images,
                watch,
                ahead,
                cancelled,
                progress: &progress,
            };
            tool.run(invocation).await
        });
        tokio::spawn(async move {
            let output = body.await.unwrap_or_else(|_| {
                let message = "the tool failed inside; this is a defect of stele, and nothing is known of its effects";
                ToolError::new("tool.panicked", ToolErrorClass::OutcomeUnknown, message).into()
            });
            let _ = updates.send(Update::Ran { call, output: Box::new(output) });
        });
        self.in_flight.insert(key, InFlight::Body(Some(stop)));
        Ok(false)
    }

    /// A command that was found to only read needs nobody to look for what it changed.
    fn watch(&self, call: CallId) -> Watch {
        let calls = self.state.step().map_or(&[][..], |step| &step.calls);
        let by = calls.iter().find(|open| open.call == call).and_then(|open| open.gated_by.as_ref());
        if by.is_some_and(|by| by.0 == stele_guard::READ_ONLY) { Watch::Nothing } else { Watch::Workspace }
    }

    fn call_session(&self) -> CallSession {
        let updates = self.updates.0.clone();
        let mut open = self.open.subscribe();
        CallSession {
            id: self.session.clone(),
            next_job: self.state.next_job(),
            notify: Arc::new(move |notice| {
                let _ = updates.send(Update::Job(notice));
            }),
            closed: Box::pin(async move { while open.changed().await.is_ok() {} }),
        }
    }

    /// Stops a body that runs. True when there is none here, and its result was appended instead.
    pub(super) fn stop(&mut self, call: CallId) -> Result<bool> {
        match self.in_flight.get_mut(&Action::Run { call }.key()) {
            Some(InFlight::Body(stop)) => {
                if let Some(stop) = stop.take() {
                    let _ = stop.send(());
                }
                Ok(false)
            }
            _ => {
                let message = "outcome_unknown: the call was interrupted; check what it did before you repeat it";
                self.append(failed(
                    call,
                    &ToolError::new("tool.outcome_unknown", ToolErrorClass::OutcomeUnknown, message),
                ))?;
                Ok(true)
            }
        }
    }

    pub(super) fn ran(&mut self, call: CallId, mut output: ToolOutput) -> Result<()> {
        let changed = std::mem::take(&mut output.changed);
        self.changed(call, changed, output.error.is_some())?;
        let content = output.logged_content();
        self.append(ToolResult { call, content, images: output.images, error: output.error, meta: output.meta })?;
        self.follow_cwd()?;
        match output.todo {
            Some(items) => self.append(TodoSet { items }),
            None => Ok(()),
        }
    }
}

fn failed(call: CallId, error: &ToolError) -> Event {
    ToolResult {
        call,
        content: Text::from(error.message.as_str()),
        images: Vec::new(),
        error: Some(error.clone()),
        meta: Default::default(),
    }
    .into()
}
