//! The prompt's prefix: how large its fixed part is, what differs between folders, and whether it stays.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use stele_core::Wire;
use stele_testkit::Received;
use stele_testkit::prompt::{self, Part, Piece};

use crate::figure::{Bar, Figure};
use crate::scripts;
use crate::stage::Stage;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for wire in Wire::ALL {
        figures.extend(stability(stele, wire)?);
        figures.extend(fixed(stele, wire)?);
    }
    Ok(figures)
}

/// Twelve steps, and three more in another process: each request begins with the one before.
fn stability(stele: &Path, wire: Wire) -> Result<Vec<Figure>> {
    let stage = Stage::new(stele, wire, scripts::twelve_and_three())?;
    stage.measure(&mut stage.run(&[scripts::PROMPT]))?;
    stage.measure(
        stage.run(&["--continue", scripts::SECOND_PROMPT]).env("LANG", "de_DE.UTF-8").env("TZ", "Asia/Tokyo"),
    )?;
    let prompts: Vec<String> = stage
        .server
        .requests()
        .iter()
        .map(|request| Ok(prompt::joined(&pieces(wire, request)?)))
        .collect::<Result<_>>()?;
    if prompts.len() != 15 {
        bail!("{} requests where 15 were expected", prompts.len());
    }
    let shares: Vec<f64> = prompts
        .windows(2)
        .filter_map(|pair| match pair {
            [one, next] => Some(prompt::shared(one, next) as f64 / one.len() as f64 * 100.0),
            _ => None,
        })
        .collect();
    let least = shares.iter().copied().fold(100.0, f64::min);
    let what = format!("prefix kept, worst of 14 pairs, {wire}");
    Ok(vec![
        Figure::of(
            "prefix",
            what,
            "%",
            &[least],
            "12 steps, then 3 in another process, language and time zone; bytes of the prompt in the wire's order",
        )
        .bar(Bar::Least(100.0)),
    ])
}

/// The bytes before the prompt: in all, and those that differ in another folder.
fn fixed(stele: &Path, wire: Wire) -> Result<Vec<Figure>> {
    let stage = Stage::new(stele, wire, stele_testkit::Say::text("Hello."))?;
    let first = |folder: &str, prompt: &str, zone: &str, language: &str| -> Result<Vec<Piece>> {
        let folder = stage.root().join(folder);
        std::fs::create_dir_all(&folder)?;
        stage.measure(stage.run(&[prompt]).current_dir(folder).env("TZ", zone).env("LANG", language))?;
        let pieces = pieces(wire, stage.server.requests().last().context("no request arrived")?)?;
        Ok(prompt::before(&pieces, prompt).to_vec())
    };
    let here = first("empty", "Say hello to everybody here.", "UTC", "C")?;
    let there =
        first("a folder/with another/name and more", "Count to three, slowly.", "Pacific/Kiritimati", "tr_TR.UTF-8")?;
    let bytes = |pieces: &[Piece], wanted: &[Part]| -> f64 {
        pieces.iter().filter(|piece| wanted.contains(&piece.part)).map(|piece| piece.bytes.len()).sum::<usize>() as f64
    };
    let header = |pieces: &[Piece]| -> Vec<Piece> {
        pieces.iter().filter(|piece| piece.part != Part::Message).cloned().collect()
    };
    let same = f64::from(u8::from(header(&here) == header(&there)));
    let (one, other) = (prompt::joined(&here), prompt::joined(&there));
    let differs = (one.len().max(other.len()) - prompt::shared(&one, &other)) as f64;
    let all = bytes(&here, &[Part::Tool, Part::System, Part::Message]);
    let how = "as JSON, in the first request of an empty folder";
    let between = "two folders, prompts, time zones and languages";
    Ok(vec![
        Figure::of(
            "prefix",
            format!("tools and system, {wire}"),
            "B",
            &[bytes(&here, &[Part::Tool, Part::System])],
            how,
        )
        .bar(Bar::Most(8192.0)),
        Figure::of("prefix", format!("tools, system and preface, {wire}"), "B", &[all], how).bar(Bar::Most(9216.0)),
        Figure::of("prefix", format!("tools and system the same elsewhere (1: yes), {wire}"), "", &[same], between)
            .bar(Bar::Least(1.0)),
        Figure::of(
            "prefix",
            format!("bytes before the prompt that differ elsewhere, {wire}"),
            "B",
            &[differs],
            between,
        )
        .bar(Bar::Most(1500.0)),
    ])
}

fn pieces(wire: Wire, request: &Received) -> Result<Vec<Piece>> {
    let body: Value = serde_json::from_slice(&request.body)?;
    Ok(prompt::pieces(wire, &body))
}
