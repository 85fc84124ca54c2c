//! The jobs of a session, as the person at the line sees them.

use std::sync::Arc;

use stele_core::SessionId;
use stele_tools::Jobs;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::render::WIDTH;
use crate::render::inert::{inert, one_line, shorten};
use crate::render::money::plural;

/// Lines of a job's output that are shown.
const TAIL: usize = 20;

/// The jobs of one session.
pub struct Background {
    jobs: Arc<Jobs>,
    session: SessionId,
    ends: Receiver<String>,
}

impl Background {
    /// The jobs of a session; ends are told from now on.
    pub fn of(jobs: &Arc<Jobs>, session: SessionId) -> Self {
        Self { ends: jobs.ends(), jobs: Arc::clone(jobs), session }
    }

    /// Waits for the next end that no call waited for, and says it in one line.
    pub async fn ended(&mut self) -> String {
        match self.ends.recv().await {
            Ok(line) => format!("· {}", shorten(&one_line(&line), WIDTH - 2)),
            Err(RecvError::Lagged(missed)) => format!("· {} ended: see /jobs", plural(missed, "more job")),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// What `/jobs` says; `None` where the end of the job will say it.
    pub fn command(&self, argument: Option<&str>) -> Option<String> {
        let words: Vec<&str> = argument.unwrap_or_default().split_whitespace().collect();
        let said = match words.as_slice() {
            [] => Ok(self.list()),
            ["stop", job] => match self.jobs.stop(&self.session, job) {
                Ok(true) => return None,
                stopped => stopped.map(|_| format!("{} has ended already", one_line(job))),
            },
            [job] => self.jobs.look(&self.session, job).map(|view| {
                let tail = inert(&view.tail);
                let lines: Vec<&str> = tail.lines().collect();
                let shown = lines[lines.len().saturating_sub(TAIL)..].join("\n");
                format!("{}{}[{}]", shown, if shown.is_empty() { "" } else { "\n" }, one_line(&view.line))
            }),
            _ => return Some("/jobs alone, /jobs ID or /jobs stop ID".to_owned()),
        };
        Some(said.unwrap_or_else(|error| one_line(&error.message)))
    }

    /// Each job, with the last line that it printed.
    fn list(&self) -> String {
        let views = self.jobs.list(&self.session);
        if views.is_empty() {
            return "nothing was started in the background here".to_owned();
        }
        let lines = views.iter().map(|view| {
            let mut lines = shorten(&one_line(&view.line), WIDTH);
            if let Some(last) = view.tail.lines().rfind(|line| !line.trim().is_empty()) {
                lines.push_str(&format!("\n    {}", shorten(one_line(last).trim(), WIDTH - 4)));
            }
            lines
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ends_that_came_too_fast_are_counted() {
        let (sender, ends) = tokio::sync::broadcast::channel(1);
        let session = SessionId::new("0198f000-0000-7000-8000-000000000000").unwrap();
        let mut background = Background { jobs: Arc::default(), session, ends };
        for end in ["j1: exit 0", "j2: exit 0", "j3: exit 0"] {
            sender.send(end.to_owned()).unwrap();
        }
        assert_eq!(background.ended().await, "· 2 more jobs ended: see /jobs");
        assert_eq!(background.ended().await, "· j3: exit 0");
    }
}
