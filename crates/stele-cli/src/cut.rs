//! What leaving the provider's cache costs, said before it happens.

use stele_agent::{Command, Drift, Taken};
use stele_core::{By, EpochCost, EpochReason};

use crate::config::WarnAbove;
use crate::drive::{Confirmed, Conversation, Front};
use crate::error::Result;
use crate::render::inert::one_line;
use crate::render::money::{count, money};

/// Why an epoch opens, for a person.
pub fn reason(reason: &EpochReason) -> String {
    let listed = |what: &str, names: &[String]| {
        (!names.is_empty())
            .then(|| format!("{what} {}", names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")))
    };
    match reason {
        EpochReason::Initial => "the session begins".to_owned(),
        EpochReason::ModelChanged => "another model or route".to_owned(),
        EpochReason::ResumeDrift { what } => match what.as_str() {
            "headers" => "the route has other headers".to_owned(),
            "cache" => "the route's cache is set in another way".to_owned(),
            "images" => "images are sent, or not, unlike before".to_owned(),
            what => format!("another {} of the route", one_line(what)),
        },
        EpochReason::Undo => "a turn was taken back or done again".to_owned(),
        EpochReason::Repair => "the provider refused the history as it was".to_owned(),
        EpochReason::ToolsChanged { added, removed, changed } => {
            let parts = [listed("added", added), listed("removed", removed), listed("changed", changed)];
            format!("other tools ({})", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        EpochReason::SystemChanged { sections } => {
            format!(
                "another system text ({})",
                sections.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
            )
        }
        EpochReason::ParametersChanged => "other model parameters".to_owned(),
        EpochReason::Encoder => "this version writes requests in another way".to_owned(),
        EpochReason::Forked => "the fork's tools, system text or parameters are not its parent's".to_owned(),
        EpochReason::Restored => "the header in the log was damaged".to_owned(),
    }
}

/// What is sent fresh, and what that costs more.
pub fn price(cost: &EpochCost) -> String {
    let more =
        cost.money.map_or_else(|| "the route has no price for that".to_owned(), |more| format!("{} more", money(more)));
    match (cost.tokens, cost.money) {
        (0, Some(more)) if more.0 > 0 => {
            format!("nothing that the cache still has is lost; keeping it longer costs {} more", money(more))
        }
        (0, _) => "nothing that the cache still has is lost".to_owned(),
        (tokens, _) => format!("about {} tokens are sent fresh, {more}", count(tokens)),
    }
}

/// The line that tells of a cut.
pub fn line(cut: &Drift) -> String {
    let why = reason(&cut.reason);
    match cut.taken {
        Taken::Now | Taken::NowOfNecessity => format!("! a new cache prefix: {why}; {}", price(&cut.cost)),
        Taken::AtTheNextCut => {
            format!("! kept as the session began: {why} since; taken at the next cut ({} now)", price(&cut.cost))
        }
    }
}

/// Whether the conversation goes on.
#[derive(Clone, Debug)]
pub enum Settled {
    /// It does.
    GoesOn,
    /// Somebody said no to a new prefix that cannot be put off.
    Declined,
    /// A signal came instead of an answer about this cut: nothing was decided, and nothing may be sent.
    Stopped(Drift),
}

/// Says what the next request would lose of the provider's cache, and asks somebody where that is much. Nothing has
/// been sent yet; where nobody can be asked, the log and standard error tell of it.
pub async fn settle(conversation: &mut Conversation, front: &mut Front, most: WarnAbove) -> Result<Settled> {
    let driver = &mut conversation.driver;
    if let Some(kept) = driver.drift().filter(|drift| drift.taken == Taken::AtTheNextCut).cloned() {
        front.tell(&line(&kept));
    }
    // A route that is gone is an error once it is needed.
    let Ok(Some(cut)) = driver.next_cut() else { return Ok(Settled::GoesOn) };
    front.tell(&line(&cut));
    if !most.is_passed(&cut.cost) {
        return Ok(Settled::GoesOn);
    }
    let question =
        if can_wait(&cut) { "  take it now? [y]es, or [n]o: keep it as it was: " } else { "  go on? [y]es, [n]o: " };
    match front.confirm(question).await {
        Confirmed::Yes | Confirmed::Nobody => Ok(Settled::GoesOn),
        Confirmed::No if can_wait(&cut) => keep(conversation, front).map(|()| Settled::GoesOn),
        Confirmed::No => Ok(Settled::Declined),
        Confirmed::Stopped => Ok(Settled::Stopped(cut)),
    }
}

/// True for a cut that can be put off.
pub fn can_wait(cut: &Drift) -> bool {
    cut.taken == Taken::Now && cut.reason != EpochReason::ModelChanged
}

/// Puts a cut off that can wait.
pub fn keep(conversation: &mut Conversation, front: &mut Front) -> Result<()> {
    conversation.driver.command(Command::KeepEpoch { by: By::person("cli") })?;
    front.tell("  kept; it is taken at the next cut");
    Ok(())
}
