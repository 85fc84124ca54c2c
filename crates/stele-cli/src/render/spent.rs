//! What a turn and its last step came to, and how long the provider still has the prompt.

use stele_core::{Account, Config, Millis, OptionalField, State, Usage};
use stele_provider::{Mechanism, cache_rules};

use super::money::{cost, from_cache, plural, tokens};
use super::{time, timeline};
use crate::tally::Tally;

/// The lines at the end of a turn: the turn and its last step, then the session and its cache.
pub fn turn(tally: &Tally, state: &State) -> Vec<String> {
    let mut own = format!("{} · {}", plural(tally.turn.steps, "step"), figures(&tally.turn.account));
    if tally.turn.steps > 1 {
        own.push_str(&format!(" · last step {}", figures(&tally.last_step)));
    }
    let mut session = vec![format!("session {}", cost(state.cost()))];
    if !tally.files.is_empty() {
        session.push(format!("{} changed", plural(tally.files.len() as u64, "file")));
    }
    session.extend(cache_kept(state, tally.last_step.usage()));
    let mut lines = vec![own];
    // That the session has no price alone says what the line before says.
    if session.len() > 1 || state.cost().is_some() {
        lines.push(session.join(" · "));
    }
    lines.extend(timeline::local_reuse(&tally.turn.local_reuse));
    lines
}

/// What `/cost` says of a session.
pub fn session(tally: &Tally, state: &State) -> Vec<String> {
    let (counters, usage) = (state.counters(), state.usage());
    let mut lines = vec![
        format!(
            "{} · {} · {}",
            plural(counters.turns, "turn"),
            plural(counters.answered, "step"),
            plural(counters.executions, "execution")
        ),
        format!("{}{}", tokens(usage), from_cache(state.hit_rate())),
        cost(state.cost()),
    ];
    if tally.turn.steps > 0 {
        lines.push(format!("last turn {}", figures(&tally.turn.account)));
        lines.push(format!("last step {}", figures(&tally.last_step)));
    }
    lines.extend(cache_kept(state, tally.last_step.usage()));
    lines
}

/// What `/cost` says while the agent works, of what was done since the session was opened here.
pub fn so_far(tally: &Tally) -> Vec<String> {
    let (steps, usage) = (plural(tally.steps, "step"), tokens(tally.account.usage()));
    let mut lines = vec![format!("so far here: {steps} · {usage} · {}", figures(&tally.account))];
    lines.extend(timeline::local_reuse(&tally.local_reuse));
    lines
}

fn figures(account: &Account) -> String {
    format!("{}{}", cost(account.cost()), from_cache(account.hit_rate()))
}

/// Until when the provider has the prompt at least; `None` where that is not known, or where it has nothing of it.
fn cache_kept(state: &State, last: &Usage) -> Option<String> {
    let epoch = state.epoch()?;
    let sent = epoch.sent.as_ref()?;
    kept_until(&epoch.config, sent.at, last.input()?)
}

fn kept_until(config: &Config, sent: Millis, input: u64) -> Option<String> {
    let rules = cache_rules(config.wire, &config.base_url, &config.model);
    let unmarked = rules.mechanism == Mechanism::Marks && !config.sends(OptionalField::CacheControl);
    if unmarked || input < rules.minimum {
        return None;
    }
    let clock = |lifetime: u64| time::clock(Millis(sent.0.saturating_add(i64::try_from(lifetime).unwrap_or(i64::MAX))));
    let mut said = format!("cache kept until {}", clock(rules.lifetime(false)?));
    if let Some(longer) = rules.lifetime(true).filter(|_| config.sends(OptionalField::CacheTtl)) {
        said.push_str(&format!(", its beginning until {}", clock(longer)));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use stele_core::{CacheTtl, Wire};

    use super::*;

    #[test]
    fn what_the_provider_keeps_is_told_as_far_as_its_rules_say() {
        let config = |wire, base_url: &str| -> Config {
            let json = serde_json::json!({
                "route": "r", "wire": wire, "base_url": base_url, "model": "m", "encoder": "e", "derive_rev": 1,
                "parameters": {}, "cache": {"marks": true},
            });
            serde_json::from_value(json).unwrap()
        };
        let at = |millis| time::clock(Millis(millis));
        let mut anthropic = config(Wire::AnthropicMessages, "https://api.anthropic.com");
        let said = |config: &Config, input| kept_until(config, Millis(0), input);
        assert_eq!(said(&anthropic, 5_000), Some(format!("cache kept until {}", at(300_000))));
        assert_eq!(said(&anthropic, 500), None, "too short");
        anthropic.cache.ttl = CacheTtl::Hour;
        let both = format!("cache kept until {}, its beginning until {}", at(300_000), at(3_600_000));
        assert_eq!(said(&anthropic, 5_000), Some(both));
        anthropic.cache.marks = false;
        assert_eq!(said(&anthropic, 5_000), None, "no marks");
        assert_eq!(said(&config(Wire::OpenaiChat, "http://127.0.0.1:1/v1"), 5_000), None, "not known");
    }
}
