//! From the start of the process to its first request, and from the last answer to its end.

use std::path::Path;

use anyhow::{Context, Result};
use stele_core::Wire;
use stele_testkit::Say;

use super::ms;
use crate::figure::{Bar, Figure};
use crate::stage::Stage;

const RUNS: usize = 31;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let stage = Stage::new(stele, Wire::AnthropicMessages, Say::text("Hello."))?;
    let (mut starts, mut exits, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=RUNS {
        let measured = stage.measure(&mut stage.run(&["Say hello."]))?;
        let request = stage.server.requests().pop().context("no request arrived")?;
        // The first one makes the database and warms the disk's cache.
        if round > 0 {
            starts.push(ms(request.at - measured.started));
            exits.push(ms(measured.ended - request.at));
            cpu.push(ms(measured.cpu));
        }
    }
    Ok(vec![
        Figure::of(
            "start",
            "start → first request",
            "ms",
            &starts,
            "process start to the request being read whole by the server; the database is there",
        )
        .bar(Bar::Most(25.0)),
        Figure::of(
            "start",
            "last reply → process gone",
            "ms",
            &exits,
            "the last request being there to the process being dead: the server's answer is in it",
        )
        .bar(Bar::Most(10.0)),
        Figure::of("start", "CPU of a run of one step", "ms", &cpu, "user and system time of the process"),
    ])
}
