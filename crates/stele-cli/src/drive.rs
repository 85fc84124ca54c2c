//! One session being driven: the driver, what it reports, the person, the signals.

use std::io::{self, Write};

use stele_agent::{Command, Driver, Notice, Until};
use stele_core::{ApprovalOutcome, By, CallId, Event, Mode, Seq};
use stele_store::Store;
use tokio::sync::mpsc;
use tokio::time::{Duration, MissedTickBehavior, interval};

use crate::approve;
use crate::command;
use crate::error::Result;
use crate::feed::{Feed, Seen};
use crate::output::View;
use crate::person::{Line, Pending, Person, PersonEvent, Takes, Typing};
use crate::render::inert::{one_line, shorten};
use crate::render::spent;
use crate::render::text::TextView;
use crate::signals::Signals;
use crate::tally::Tally;

/// How often the progress line is written.
const TICK: Duration = Duration::from_millis(250);

/// Who stops a turn whose output nobody reads any more.
pub const OUTPUT_CLOSED: &str = "output:closed";

/// What is said of a paste at a question.
const NO_ANSWER: &str = "  (what is pasted, or was typed before, answers no question: type the answer)";

/// How driving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is owed any more.
    Idle,
    /// A second signal: at once.
    AtOnce,
}

/// Who watches and who may speak.
pub struct Front {
    pub view: View,
    pub person: Person,
    pub signals: Signals,
}

/// A person's answer to a question of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    Yes,
    No,
    /// A signal came instead of an answer.
    Stopped,
    /// There is nobody to ask.
    Nobody,
}

/// What comes between two turns.
pub enum Heard {
    Line(Line),
    /// No more lines come.
    Gone,
    /// Somebody wants a stop.
    Signal,
}

impl Front {
    /// Says something to whoever watches, on standard error.
    pub fn tell(&mut self, text: &str) {
        match self.view.text() {
            Some(view) => view.warn(text),
            None => {
                // Standard error that cannot be written has nobody to be told.
                let _ = writeln!(io::stderr(), "{text}");
            }
        }
    }

    /// The next line that the person sends between two turns; what happens meanwhile is shown.
    pub async fn line(&mut self) -> Heard {
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next() => return Heard::Signal,
                event = self.person.event() => match event {
                    PersonEvent::Line(line) => return Heard::Line(line),
                    PersonEvent::Gone => return Heard::Gone,
                    meanwhile => self.view.meanwhile(meanwhile),
                },
            }
        }
    }

    /// Asks a question between two turns. Nothing but an explicit yes is one.
    pub async fn confirm(&mut self, question: &str) -> Confirmed {
        let Some(view) = self.view.text().filter(|_| self.person.is_present()) else { return Confirmed::Nobody };
        let ask = |view: &mut TextView, person: &mut Person| {
            dropped(view, person.asks());
            view.screen.prompt(question);
        };
        ask(view, &mut self.person);
        loop {
            let line = match self.line().await {
                Heard::Line(line) => line,
                Heard::Gone => return Confirmed::No,
                Heard::Signal => {
                    unask(&mut self.view, &mut self.person);
                    return Confirmed::Stopped;
                }
            };
            let Some(view) = self.view.text() else { return Confirmed::Nobody };
            view.screen.leave_line();
            match line.text.trim().to_lowercase().as_str() {
                _ if !self.person.answers(&line, Takes::Decision) => {
                    view.say(NO_ANSWER);
                    ask(view, &mut self.person);
                }
                "y" | "yes" => return Confirmed::Yes,
                "n" | "no" => return Confirmed::No,
                _ => ask(view, &mut self.person),
            }
        }
    }
}

/// A session and its subscriber.
pub struct Conversation {
    pub driver: Driver,
    feed: Feed,
    /// The first record that is news.
    pub from: Seq,
    sender: mpsc::UnboundedSender<Command>,
    commands: mpsc::UnboundedReceiver<Command>,
}

impl Conversation {
    /// A conversation whose records from `from` on are news.
    pub fn new(driver: Driver, store: Store, from: Seq) -> Self {
        let feed = Feed::new(driver.subscribe(), store, driver.session().clone(), from);
        let (sender, commands) = mpsc::unbounded_channel();
        Self { driver, feed, from, sender, commands }
    }

    /// Goes on until nothing is owed, or until somebody wants out at once. Everything that was
    /// committed by then is shown and counted.
    pub async fn go_on(&mut self, front: &mut Front, tally: &mut Tally) -> Result<Ending> {
        if self.driver.is_stored() {
            let seen = self.feed.catch_up()?;
            take(&seen, &mut front.view, tally, &mut front.person);
        }
        loop {
            let outcome = self.until_idle(front, tally).await;
            // A message that came as the turn ended is not lost: it opens the next one.
            let mut more = false;
            while let Ok(command) = self.commands.try_recv() {
                let says = matches!(command, Command::Prompt { .. } | Command::Steer { .. });
                more |= says && matches!(outcome, Ok(Ending::Idle));
                self.driver.command(command)?;
            }
            let seen = self.feed.rest()?;
            take(&seen, &mut front.view, tally, &mut front.person);
            if let Some(view) = front.view.text() {
                view.screen.clear_progress();
            }
            if !more {
                let ending = outcome?;
                front.view.check()?;
                return Ok(ending);
            }
        }
    }

    async fn until_idle(&mut self, front: &mut Front, tally: &mut Tally) -> Result<Ending> {
        let Front { view, person, signals } = front;
        let Self { driver, feed, sender, commands, .. } = self;
        let mut running = std::pin::pin!(driver.run(commands, Until::Idle));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = false;
        let mut fault = None;
        loop {
            // The progress line would stand where the person types.
            let nobody_types = person.pending.is_empty() && !person.is_typing();
            tokio::select! {
                biased;
                by = signals.next() => {
                    if stopping {
                        return Ok(Ending::AtOnce);
                    }
                    stopping = true;
                    unask(view, person);
                    let _ = sender.send(Command::Cancel { by });
                }
                event = person.event() => {
                    // What led to a question is shown before it.
                    take(&feed.rest()?, view, tally, person);
                    if matches!(event, PersonEvent::Escape) {
                        if !std::mem::replace(&mut stopping, true) {
                            unask(view, person);
                            let _ = sender.send(Command::Cancel { by: By::person("cli") });
                        }
                        continue;
                    }
                    answer(event, view, tally, person, sender);
                }
                Some(seen) = feed.wait() => {
                    take(&seen?, view, tally, person);
                    if person.is_gone() {
                        leave(person, sender);
                    }
                    if let Err(error) = view.check() {
                        // Nobody reads: what was begun is ended, and nothing new is.
                        fault.get_or_insert(error);
                        if !std::mem::replace(&mut stopping, true) {
                            let _ = sender.send(Command::Cancel { by: By(OUTPUT_CLOSED.to_owned()) });
                        }
                    }
                }
                result = &mut running => {
                    result?;
                    return fault.map_or(Ok(Ending::Idle), Err);
                }
                _ = ticks.tick(), if view.ticks() && nobody_types => view.tick(),
            }
        }
    }
}

/// Shows and counts what happened, and keeps the questions that wait for a person.
fn take(seen: &[Seen], view: &mut View, tally: &mut Tally, person: &mut Person) {
    for seen in seen {
        view.show(seen);
        let Seen::Notice(Notice::Event(logged)) = seen else { continue };
        tally.fold(&logged.record);
        match &logged.record.event {
            Event::ApprovalAsked(asked) if person.is_present() => {
                person.pending.push_back(Pending::Approval(asked.call));
                if person.pending.len() == 1 {
                    ask(view, person);
                }
            }
            Event::ToolResult(result) => settle(result.call, view, person),
            Event::TurnEnded(_) => unask(view, person),
            _ => {}
        }
    }
}

/// A call that has a result waits for nobody.
fn settle(call: CallId, view: &mut View, person: &mut Person) {
    let waits = |pending: &Pending| matches!(pending, Pending::Approval(waiting) if *waiting == call);
    let stands_there = person.pending.front().is_some_and(waits);
    person.pending.retain(|pending| !waits(pending));
    if stands_there && person.pending.is_empty() {
        unask(view, person);
    } else if stands_there {
        ask(view, person);
    }
}

/// Nothing is asked any more: the question that stands there is taken away.
fn unask(view: &mut View, person: &mut Person) {
    if person.unask()
        && let Some(view) = view.text()
    {
        view.screen.drop_line();
    }
}

/// What a person's line does: it answers the oldest question, else it steers, else it is dropped.
fn answer(
    event: PersonEvent,
    view: &mut View,
    tally: &Tally,
    person: &mut Person,
    sender: &mpsc::UnboundedSender<Command>,
) {
    let by = By::person("cli");
    match event {
        PersonEvent::Asked(question) => {
            person.pending.push_back(Pending::Question(question));
            if person.pending.len() == 1 {
                ask(view, person);
            }
        }
        meanwhile @ (PersonEvent::Draft(_) | PersonEvent::Continued | PersonEvent::Ended(_)) => {
            view.meanwhile(meanwhile)
        }
        // Heard by whoever can stop the turn.
        PersonEvent::Escape => {}
        PersonEvent::Gone => leave(person, sender),
        PersonEvent::Line(line) => {
            if let Some(view) = view.text() {
                view.screen.leave_line();
            }
            let answers = person.pending.front().is_some_and(|pending| person.answers(&line, pending.takes()));
            match person.pending.pop_front() {
                Some(Pending::Question(question)) if answers => {
                    let _ = question.answer.send(Some(line.text));
                    ask(view, person);
                }
                Some(Pending::Approval(call)) if answers => {
                    let Some(text) = view.text() else { return };
                    if let Some(mode) = mode_meant(&line) {
                        person.pending.push_front(Pending::Approval(call));
                        set_mode(mode, view, person, sender);
                        return ask_again(view, person);
                    }
                    let grantable = text.call(call).map(approve::grantable);
                    match approve::read(&line.text, grantable.unwrap_or_default()) {
                        Ok(outcome) => {
                            if let ApprovalOutcome::Always { rules } = &outcome {
                                for rule in rules {
                                    text.say(&format!("  ({} is allowed in this session)", one_line(rule)));
                                }
                            }
                            let _ = sender.send(Command::Decide { call, by, outcome });
                            ask(view, person);
                        }
                        Err(why) => {
                            text.say(why);
                            person.pending.push_front(Pending::Approval(call));
                            ask_again(view, person);
                        }
                    }
                }
                Some(pending) => {
                    person.pending.push_front(pending);
                    if line.is_early(person) {
                        early(&line, view, tally, person, sender);
                    } else if let Some(view) = view.text() {
                        view.say(NO_ANSWER);
                    }
                    ask_again(view, person);
                }
                None => early(&line, view, tally, person, sender),
            }
        }
    }
}

/// The mode that a line at a question sets, which answers no question by itself.
fn mode_meant(line: &Line) -> Option<Mode> {
    match command::named(line.text.trim()) {
        Some(("mode", Some(name))) => name.parse().ok(),
        _ => None,
    }
}

/// Sets the mode while questions wait; what needs none in that mode is answered with it.
fn set_mode(mode: Mode, view: &mut View, person: &mut Person, sender: &mpsc::UnboundedSender<Command>) {
    let Some(text) = view.text() else { return };
    let mode = mode.min(text.highest_mode);
    text.say(&format!("  mode {mode}"));
    let by = By::person("cli");
    let _ = sender.send(Command::SetMode { mode, by: by.clone() });
    let settled = |call: CallId| text.call(call).is_some_and(|call| approve::is_settled_by(call, mode));
    person.pending.retain(|pending| match pending {
        Pending::Approval(call) if settled(*call) => {
            let (call, outcome) = (*call, ApprovalOutcome::Once);
            let _ = sender.send(Command::Decide { call, by: by.clone(), outcome });
            false
        }
        _ => true,
    });
}

/// A line that was sent before the question that stands there, or while there is none.
fn early(line: &Line, view: &mut View, tally: &Tally, person: &mut Person, sender: &mpsc::UnboundedSender<Command>) {
    if person.typing == Typing::Steers {
        steer(line, view, tally, person, sender);
    }
}

/// Whoever closed the input answers nothing any more.
fn leave(person: &mut Person, sender: &mpsc::UnboundedSender<Command>) {
    for pending in person.pending.drain(..) {
        match pending {
            Pending::Approval(call) => {
                let outcome = approve::reject("the user left without an answer");
                let _ = sender.send(Command::Decide { call, by: By::person("cli"), outcome });
            }
            Pending::Question(question) => drop(question.answer.send(None)),
        }
    }
}

/// Asks the oldest question that waits, if one does.
pub fn ask(view: &mut View, person: &mut Person) {
    if let (Some(view), Some(pending)) = (view.text(), person.pending.front()) {
        view.question(pending);
    }
    ask_again(view, person);
}

/// Shows the answers of the oldest question that waits. Only what is typed from here on is one.
fn ask_again(view: &mut View, person: &mut Person) {
    if person.pending.is_empty() {
        return;
    }
    let half = person.asks();
    if let (Some(view), Some(pending)) = (view.text(), person.pending.front()) {
        dropped(view, half);
        view.choices(pending);
    }
}

/// Says what stood in the line when a question came.
fn dropped(view: &mut TextView, half: Option<String>) {
    if let Some(half) = half {
        view.say(&format!("  (typed before the question, and not taken: {})", shorten(&one_line(&half), 200)));
    }
}

/// A line typed while a turn runs.
fn steer(line: &Line, view: &mut View, tally: &Tally, person: &mut Person, sender: &mpsc::UnboundedSender<Command>) {
    let Some(view) = view.text() else { return };
    match line.text.trim() {
        "" => {}
        "/cost" if !line.pasted => {
            spent::so_far(tally).iter().for_each(|line| view.warn(line));
        }
        command if !line.pasted && command::named(command).is_some() => {
            if let Some(("jobs", argument)) = command::named(command) {
                person.jobs(argument).iter().for_each(|said| view.warn(said));
                return;
            }
            person.later.push_back(command.to_owned());
            let command = one_line(command);
            view.say(&format!("  ({command} waits: it is done when this turn is over; Ctrl-C stops the turn)"));
        }
        _ => {
            let _ = sender.send(Command::Steer { text: line.text_meant().to_owned() });
            view.warn("  (the agent reads this at its next step)");
        }
    }
}
