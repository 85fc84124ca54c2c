//! Opening a large session: to its first request, and how much memory that takes.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use stele_core::{SessionId, Wire};
use stele_store::Store;
use stele_testkit::{Behaviour, Reply, Say};

use super::ms;
use crate::figure::{Bar, Figure};
use crate::process::peak_of;
use crate::random::Random;
use crate::session::{Mix, Size, grow};
use crate::stage::Stage;

const RUNS: usize = 9;
/// Records of the large session.
const RECORDS: u64 = 100_000;
/// Bytes of an ordinary result, so that it all comes to about 60 MB.
pub const RESULT: u64 = 3_000;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let (stage, id, size) = large(stele, RECORDS)?;
    let (mut opens, mut times) = (Vec::new(), Vec::new());
    for round in 0..=RUNS {
        let measured = stage.measure(&mut stage.run(&["--resume", id.as_str()]))?;
        if round > 0 {
            opens.push(ms(measured.ended - measured.started));
        }
        let measured = stage.measure(&mut stage.run(&["--resume", id.as_str(), "Go on."]))?;
        let request = stage.server.requests().pop().context("no request arrived")?;
        if round > 0 {
            times.push(ms(request.at - measured.started));
        }
    }
    let open_peak = peak_of(&stage.run(&["--resume", id.as_str()]), Stdio::null(), stage.root())? as f64 * 1024.0 / 1e6;
    let peak =
        peak_of(&stage.run(&["--resume", id.as_str(), "Go on."]), Stdio::null(), stage.root())? as f64 * 1024.0 / 1e6;
    let what = format!(
        "{} records, {:.0} MB, request of {:.0} MB",
        size.records,
        size.megabytes(),
        size.request_bytes as f64 / 1e6
    );
    Ok(vec![
        Figure::of(
            "resume",
            "open with nothing to do",
            "ms",
            &opens,
            "process start to process gone of a resume without a prompt, of the same session",
        )
        .bar(Bar::Most(250.0)),
        Figure::of("resume", "peak of the same", "MB", &[open_peak], "ru_maxrss of the process").bar(Bar::Most(80.0)),
        Figure::of(
            "resume",
            format!("resume → first request ({what})"),
            "ms",
            &times,
            "process start to the request being read whole by the server",
        )
        .bar(Bar::Most(250.0)),
        Figure::of("resume", "peak of the resume", "MB", &[peak], "ru_maxrss of the process").bar(Bar::Most(80.0)),
    ])
}

/// A stage whose one session has this many records, and a server that always says the same.
pub fn large(stele: &Path, records: u64) -> Result<(Stage, SessionId, Size)> {
    let behaviour = Behaviour::answering(|_| Reply::from(Say::text("Done."))).lenient();
    let stage = Stage::new(stele, Wire::AnthropicMessages, behaviour)?;
    stage.measure(&mut stage.run(&["Begin."]))?;
    let id = stage.session()?.context("the run left no session")?;
    let id = SessionId::new(id).map_err(|error| anyhow::anyhow!("{error}"))?;
    let store = Store::open(&stage.data())?;
    let size = grow(&store, &id, records, Mix { result: RESULT }, &mut Random::new(7))?;
    Ok((stage, id, size))
}
