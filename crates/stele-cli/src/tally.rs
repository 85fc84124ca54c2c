//! What a run came to: a fold of the records that it wrote.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use stele_core::{
    Account, ApprovalOutcome, Block, CallId, EndReason, Event, FileAction, FileChange, FileChanged, FileMeta,
    FileVersion, Hash, Millis, Mode, Record, Reuse, State, Text, ToolGated, ToolResult,
};

use crate::given;
use crate::render::word::shell_word;

/// Largest content, in bytes before or after, in which lines are counted.
const COUNTED: u64 = 4 * 1024 * 1024;

/// What became of a file over a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    pub path: String,
    pub action: FileAction,
    /// Lines between what it was and what it is, where both are known: of what a command changed they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// How often it was changed.
    #[serde(skip)]
    times: u32,
}

/// A call that was refused because nobody could be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedCall {
    pub call: CallId,
    pub tool: String,
    /// Who wanted to ask.
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the command line would have to say; absent where no flag helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_with: Option<String>,
}

/// What a turn came to so far.
#[derive(Clone, Debug, Default)]
pub struct TurnTally {
    pub steps: u64,
    pub account: Account,
    pub local_reuse: Reuse,
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests that were answered.
    pub steps: u64,
    pub attempts: u64,
    pub executions: u64,
    /// Tokens and money.
    pub account: Account,
    /// Results that were pointed at instead of sent again.
    pub local_reuse: Reuse,
    /// The last turn of it.
    pub turn: TurnTally,
    /// Tokens and money of the last step.
    pub last_step: Account,
    pub files: BTreeMap<String, ChangedFile>,
    pub refused: Vec<RefusedCall>,
    /// What could have changed unseen, in words.
    pub not_covered: Vec<String>,
    /// Text of the last answer.
    pub text: String,
    pub end: Option<EndReason>,
    /// Where the run began, by the driver's clock.
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
    calls: BTreeMap<CallId, (String, Option<ToolGated>)>,
    /// What calls that run changed: their results follow and count the lines.
    changing: BTreeMap<CallId, BTreeMap<String, FileChange>>,
    /// Each file from before its first change to after its last one, as far as the log knows it.
    net: BTreeMap<String, FileChange>,
}

impl Tally {
    /// A fold that begins where a session stands.
    pub fn beginning_at(state: &State) -> Self {
        let account = state.account_from_here();
        let turn = TurnTally { account: account.clone(), ..TurnTally::default() };
        let mut tally = Self { last_step: account.clone(), turn, account, ..Self::default() };
        // A resumed turn has calls that were gated before.
        for call in state.step().iter().flat_map(|step| &step.calls) {
            if let Some(record) = state.call(call.call) {
                tally.calls.insert(call.call, (record.name.clone(), None));
            }
        }
        tally
    }

    /// Share of the input that was read from the provider's cache.
    pub fn hit_rate(&self) -> Option<f64> {
        self.account.hit_rate()
    }

    /// Takes one record.
    pub fn fold(&mut self, record: &Record) {
        // What only sets the stage is no work yet.
        let sets_the_stage = match &record.event {
            Event::SessionMoved(_) | Event::ModeSet(_) | Event::ModelSet(_) => true,
            Event::InboxQueued(queued) => !queued.wake,
            _ => false,
        };
        if !sets_the_stage {
            self.started.get_or_insert(record.ts);
        }
        self.ended = Some(record.ts);
        match &record.event {
            Event::TurnStarted(_) => {
                self.turn = TurnTally { account: self.account.from_here(), ..TurnTally::default() };
            }
            Event::StepStarted(_) => self.last_step = self.account.from_here(),
            _ => {}
        }
        for account in [&mut self.account, &mut self.turn.account, &mut self.last_step] {
            account.fold(record);
        }
        self.local_reuse.fold(&record.event);
        self.turn.local_reuse.fold(&record.event);
        match &record.event {
            Event::RequestSent(_) => self.attempts += 1,
            Event::AssistantMessage(message) => {
                let answered = u64::from(!message.interrupted);
                self.steps += answered;
                self.turn.steps += answered;
                let texts = message.content.iter().filter_map(|block| match block {
                    Block::Text { text, .. } => Some(Text::as_str(text)),
                    _ => None,
                });
                self.text = texts.collect::<Vec<_>>().join("\n\n");
            }
            Event::ToolCalled(called) => {
                self.calls.insert(called.call, (called.name.clone(), None));
            }
            Event::ToolGated(gated) => {
                if let Some((_, gate)) = self.calls.get_mut(&gated.call) {
                    *gate = Some(gated.clone());
                }
            }
            Event::ApprovalDecided(decided) if decided.outcome == ApprovalOutcome::Unanswered => {
                self.refuse(decided.call);
            }
            Event::ToolStarted(_) => self.executions += 1,
            Event::FileChanged(changed) => self.changing(changed),
            Event::ToolResult(result) => self.result(result),
            Event::UndoApplied(applied) => applied.files.iter().for_each(|change| self.became(change, None)),
            Event::RedoApplied(applied) => applied.files.iter().for_each(|change| self.became(change, None)),
            Event::TurnEnded(ended) => self.end = Some(ended.reason.clone()),
            _ => {}
        }
    }

    fn refuse(&mut self, call: CallId) {
        let Some((tool, gate)) = self.calls.get(&call) else { return };
        let gate = gate.as_ref();
        self.refused.push(RefusedCall {
            call,
            tool: tool.clone(),
            by: gate.map(|gate| gate.by.0.clone()).unwrap_or_default(),
            reason: gate.and_then(|gate| gate.reason.clone()),
            allow_with: gate.and_then(allow_with),
        });
    }

    /// A call is about to change a file, or did; the last word on it counts.
    fn changing(&mut self, FileChanged { call, change, .. }: &FileChanged) {
        let changes = self.changing.entry(*call).or_default();
        changes.entry(change.path.clone()).or_insert_with(|| change.clone()).after = change.after;
    }

    fn result(&mut self, result: &ToolResult) {
        let unseen = result.meta.not_covered.iter();
        self.not_covered.extend(unseen.filter(|words| !self.not_covered.contains(words)).cloned().collect::<Vec<_>>());
        let changes = self.changing.remove(&result.call).unwrap_or_default();
        let mut told: Vec<&FileMeta> =
            result.meta.files.iter().filter(|file| file.action != FileAction::Read).collect();
        for change in changes.values() {
            let at = told.iter().position(|file| file.path == change.path);
            self.became(change, at.map(|at| told.swap_remove(at)));
        }
        for file in told {
            self.told(&file.path, file.action, Some(file));
        }
    }

    /// A file became another one. What a run made and removed again, or put back, it did not change.
    fn became(&mut self, change: &FileChange, counted: Option<&FileMeta>) {
        let net = self.net.entry(change.path.clone()).or_insert_with(|| change.clone());
        net.after = change.after;
        let action = match (net.before, net.after) {
            (before, after) if before == after => return drop(self.files.remove(&change.path)),
            (None, _) => FileAction::Created,
            (_, None) => FileAction::Deleted,
            (Some(_), Some(_)) => FileAction::Changed,
        };
        self.told(&change.path, action, counted);
    }

    /// Counts the lines of what was changed several times, from first to last; the store has what files were.
    pub fn count_net(&mut self, stored: impl Fn(&Hash) -> Option<Vec<u8>>) {
        for file in self.files.values_mut().filter(|file| file.times > 1) {
            let lines = self.net.get(&file.path).and_then(|net| net_lines(net, &stored));
            (file.added, file.removed) = lines.unzip();
        }
    }

    fn told(&mut self, path: &str, action: FileAction, counted: Option<&FileMeta>) {
        let entry = self.files.entry(path.to_owned());
        let file = entry.or_insert_with(|| ChangedFile {
            path: path.to_owned(),
            action,
            added: Some(0),
            removed: Some(0),
            times: 0,
        });
        file.times += 1;
        // A file that this run created stays new, whatever is done to it afterwards.
        if file.action != FileAction::Created || action == FileAction::Deleted {
            file.action = action;
        }
        let plus = |sum: Option<u64>, lines: fn(&FileMeta) -> u32| Some(sum? + u64::from(lines(counted?)));
        file.added = plus(file.added, |file| file.added);
        file.removed = plus(file.removed, |file| file.removed);
    }
}

/// Lines that were added and removed over all changes of a file that is still as the last one left it.
fn net_lines(net: &FileChange, stored: &impl Fn(&Hash) -> Option<Vec<u8>>) -> Option<(u64, u64)> {
    if [net.before, net.after].into_iter().flatten().any(|version| version.len > COUNTED) {
        return None;
    }
    let now = |version| unchanged(Path::new(&net.path), &version);
    let before = net.before.map_or_else(|| Some(Vec::new()), |version| stored(&version.hash))?;
    let after = net.after.map_or_else(|| Some(Vec::new()), now)?;
    let diff = stele_edit::unified_diff("", &before, &after);
    Some((diff.added.into(), diff.removed.into()))
}

/// The content of a file that is still this version. Whatever stands there now, no more than that is read of it.
fn unchanged(path: &Path, version: &FileVersion) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    given::open(path).ok()?.take(version.len.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (Hash::of(&bytes) == version.hash).then_some(bytes)
}

/// What the command line would have to say so that a call is not refused: no more than is needed. `None` where no flag
/// helps: the call was only repeated, or `full` asks as well, since a deny might cover what cannot be read for certain.
pub fn allow_with(gate: &ToolGated) -> Option<String> {
    let rules = gate.settled_with.iter().map(|rule| format!("--allow {}", shell_word(rule)));
    match (gate.settled_by, rules.collect::<Vec<_>>()) {
        (Some(mode @ Mode::Edit), _) => Some(format!("--mode {mode}")),
        (mode, rules) if rules.is_empty() => mode.map(|mode| format!("--mode {mode}")),
        (_, rules) => Some(rules.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use stele_core::{
        ApprovalDecided, AssistantMessage, By, Effects, Producer, ResultMeta, Seq, Stop, ToolCalled, UndoApplied,
        Usage, Verdict, Wire,
    };

    use super::*;

    fn fold(events: Vec<Event>) -> Tally {
        let mut tally = Tally::default();
        for (at, event) in events.into_iter().enumerate() {
            let record = Record { seq: Seq(at as u64), ts: Millis(at as i64), turn: Some(1), step: Some(1), event };
            tally.fold(&record);
        }
        tally
    }

    fn answer(usage: Option<Usage>) -> Event {
        AssistantMessage {
            attempt: 1,
            producer: Producer { wire: Wire::OpenaiChat, model: "m".to_owned() },
            content: vec![Block::Text { text: Text::from("hello"), native: None }],
            stop: Stop::End,
            usage,
            usage_raw: None,
            interrupted: false,
        }
        .into()
    }

    #[test]
    fn the_last_text_and_the_coverage_are_kept() {
        let usage = Usage { fresh: Some(10), output: Some(1), ..Usage::default() };
        let tally = fold(vec![answer(Some(usage)), answer(Some(usage))]);
        assert_eq!(tally.account.usage().fresh, Some(20));
        let coverage = fold(vec![answer(None)]).account.coverage();
        assert_eq!((coverage.known, coverage.attempts), (0, 1));
        assert_eq!(tally.text, "hello");
    }

    #[test]
    fn a_refused_call_says_what_would_allow_it() {
        let call = CallId(1);
        let gated = ToolGated {
            call,
            decision: Verdict::Ask,
            by: By("mode:ask".to_owned()),
            reason: Some("commands ask".to_owned()),
            always: Vec::new(),
            settled_with: vec!["bash(cargo test*)".to_owned()],
            settled_by: Some(Mode::Full),
            effects: Effects::Local,
            parallel: false,
        };
        let tally = fold(vec![
            ToolCalled { call, vendor_id: None, name: "bash".to_owned(), arguments: "{}".into() }.into(),
            gated.clone().into(),
            ApprovalDecided { call, by: By("headless".to_owned()), outcome: ApprovalOutcome::Unanswered }.into(),
        ]);
        assert_eq!(tally.refused[0].allow_with.as_deref(), Some("--allow 'bash(cargo test*)'"));
        assert_eq!(tally.refused[0].reason.as_deref(), Some("commands ask"));
        let advice = |rules: &[&str], settled_by| {
            let settled_with = rules.iter().map(|rule| (*rule).to_owned()).collect();
            allow_with(&ToolGated { settled_with, settled_by, ..gated.clone() }).unwrap_or_default()
        };
        let quoted = advice(&["bash(echo 'a')", "edit(a)"], Some(Mode::Full));
        assert_eq!(quoted, r"--allow 'bash(echo '\''a'\'')' --allow 'edit(a)'");
        assert_eq!(advice(&["edit(a)"], Some(Mode::Edit)), "--mode edit");
        assert_eq!(advice(&["edit(a)"], None), "--allow 'edit(a)'");
        assert_eq!(advice(&[], Some(Mode::Edit)), "--mode edit");
        assert_eq!(advice(&[], Some(Mode::Full)), "--mode full");
        assert_eq!(advice(&[], None), "");
    }

    #[test]
    fn pointers_are_counted_apart_from_the_providers_cache() {
        let pointer = |saved| -> Event {
            let read = stele_core::ReadMeta { unchanged: true, saved, ..Default::default() };
            let meta = ResultMeta { read: Some(read), ..ResultMeta::default() };
            ToolResult { call: CallId(1), content: "".into(), images: Vec::new(), error: None, meta }.into()
        };
        let tally = fold(vec![pointer(1_000), pointer(2_500)]);
        assert_eq!((tally.local_reuse.times, tally.local_reuse.bytes), (2, 3_500));
        assert_eq!(tally.hit_rate(), None);
        let line = crate::render::timeline::local_reuse(&tally.local_reuse);
        assert_eq!(line.as_deref(), Some("local tool-result reuse: 2 times, 3,500 B not sent again"));
    }

    #[test]
    fn changes_of_a_file_add_up() {
        let file = |action, added| FileMeta {
            path: "/a".to_owned(),
            action,
            hash: None,
            added,
            removed: 1,
            diff: None,
            part: None,
        };
        let result = |action, added| -> Event {
            let meta = ResultMeta { files: vec![file(action, added)], ..ResultMeta::default() };
            ToolResult { call: CallId(1), content: "".into(), images: Vec::new(), error: None, meta }.into()
        };
        let tally =
            fold(vec![result(FileAction::Read, 9), result(FileAction::Created, 3), result(FileAction::Changed, 2)]);
        assert!(tally.local_reuse.is_none());
        let file = &tally.files["/a"];
        assert_eq!((file.action, file.added, file.removed), (FileAction::Created, Some(5), Some(2)));
    }

    #[test]
    fn what_a_command_changed_counts_without_lines() {
        let version = |letter: &str| FileVersion { hash: Hash::of(letter.as_bytes()), len: 1, mode: 0o100_644 };
        let changed = |path: &str, before: Option<&str>, after: Option<&str>| -> Event {
            let (path, before, after) = (path.to_owned(), before.map(version), after.map(version));
            let change = FileChange { path, before, after, kept: None, made: None, linked: None };
            FileChanged { call: CallId(1), ahead: false, change }.into()
        };
        let result = |files: &[(&str, FileAction)]| -> Event {
            let file = |(path, action): &(&str, FileAction)| FileMeta {
                path: (*path).to_owned(),
                action: *action,
                hash: None,
                added: 3,
                removed: 1,
                diff: None,
                part: None,
            };
            let meta = ResultMeta { files: files.iter().map(file).collect(), ..ResultMeta::default() };
            ToolResult { call: CallId(1), content: "".into(), images: Vec::new(), error: None, meta }.into()
        };
        let mut events = vec![
            changed("/made", None, Some("a")),
            changed("/gone", Some("a"), None),
            changed("/passing", None, Some("a")),
            changed("/both", Some("a"), Some("b")),
            result(&[]),
            changed("/both", Some("b"), Some("c")),
            changed("/edited", Some("a"), Some("b")),
            result(&[("/both", FileAction::Changed), ("/edited", FileAction::Changed)]),
            changed("/passing", Some("a"), None),
            result(&[]),
        ];
        let seen = |tally: &Tally| -> Vec<(String, FileAction, Option<u64>)> {
            tally.files.values().map(|file| (file.path.clone(), file.action, file.added)).collect()
        };
        let expected = [
            ("/both".to_owned(), FileAction::Changed, None),
            ("/edited".to_owned(), FileAction::Changed, Some(3)),
            ("/gone".to_owned(), FileAction::Deleted, None),
            ("/made".to_owned(), FileAction::Created, None),
        ];
        assert_eq!(seen(&fold(events.clone())), expected);
        // What is taken back is no change of the session any more.
        let Event::FileChanged(FileChanged { change, .. }) = changed("/made", Some("a"), None) else { unreachable!() };
        let applied =
            UndoApplied { turn: 1, by: By::person("cli"), files: vec![change], left: vec![], not_covered: vec![] };
        events.push(applied.into());
        assert_eq!(seen(&fold(events)), expected[..3]);
    }

    #[test]
    fn a_call_that_is_refused_while_another_changes_a_file_takes_nothing_of_it() {
        let change = |ahead| -> Event {
            let version = |letter: &str| FileVersion { hash: Hash::of(letter.as_bytes()), len: 1, mode: 0o100_644 };
            let (before, after) = (Some(version("a")), Some(version("b")));
            let change = FileChange { path: "/a".to_owned(), before, after, kept: None, made: None, linked: None };
            FileChanged { call: CallId(1), ahead, change }.into()
        };
        let result = |call, files| -> Event {
            let meta = ResultMeta { files, ..ResultMeta::default() };
            ToolResult { call: CallId(call), content: "".into(), images: Vec::new(), error: None, meta }.into()
        };
        let file = FileMeta {
            path: "/a".to_owned(),
            action: FileAction::Changed,
            hash: None,
            added: 3,
            removed: 1,
            diff: None,
            part: None,
        };
        let tally = fold(vec![change(true), result(2, Vec::new()), change(false), result(1, vec![file])]);
        let file = &tally.files["/a"];
        assert_eq!((file.added, file.removed, file.times), (Some(3), Some(1), 1));
    }

    #[test]
    fn of_what_stands_where_a_file_was_no_more_than_that_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let version = FileVersion { hash: Hash::of(b"text"), len: 4, mode: 0o100_644 };
        let path = scratch.path().join("file");
        let read = || unchanged(&path, &version);
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read().as_deref(), Some(&b"text"[..]));
        // A file without an end, as far as memory goes.
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(), None);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(read(), None);
    }
}
