//! A bit is flipped in each record and each blob of a session in turn, and the last record is removed: `stele verify`
//! has to fail and to name the place.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use stele_core::Wire;

use crate::random::Random;
use crate::scripts;
use crate::stage::Stage;

/// The seq of a record stands in the lower 40 bits of its row's id.
const SEQ: i64 = (1 << 40) - 1;

/// What was damaged.
struct Damage {
    what: String,
    /// What `verify` has to say.
    names: String,
}

/// Damages copies of a session and has each of them verified.
pub fn main(stele: &Path, seed: u64) -> Result<ExitCode> {
    let mut random = Random::new(seed);
    let stage = Stage::new(stele, Wire::AnthropicMessages, scripts::twelve_and_three())?;
    stage.measure(&mut stage.run(&[scripts::PROMPT]))?;
    let id = stage.session()?.context("the run left no session")?;
    let (clean, said) = verify(&stage, &stage.root().join("home"), &id)?;
    if clean != Some(0) {
        bail!("the session is not clean to begin with: {said}");
    }
    let mut found = (0, 0);
    let mut missed = Vec::new();
    let mut judge = |damage: Damage, exit: Option<i32>, said: &str| {
        found.1 += 1;
        if exit == Some(1) && said.contains(&damage.names) {
            found.0 += 1;
        } else {
            missed.push(format!("{}: exit {exit:?}, said {said:?}, expected {:?}", damage.what, damage.names));
        }
    };
    let (records, blobs) = (rows(&stage, "records")?, rows(&stage, "blobs")?);
    for (table, rows) in [("records", &records), ("blobs", &blobs)] {
        for (row, name, length) in rows {
            let copy = copy(&stage)?;
            let bit = random.below(length * 8);
            flip(&copy.path().join("data"), table, *row, bit)?;
            let names = if table == "records" { format!("record {} ", row & SEQ) } else { name.clone() };
            let what = format!("bit {bit} of {table} row {row}");
            let (exit, said) = verify(&stage, copy.path(), &id)?;
            judge(Damage { what, names }, exit, &said);
        }
    }
    let last = records.last().map_or(0, |(row, ..)| *row);
    let copy = copy(&stage)?;
    open(&copy.path().join("data"))?.execute("DELETE FROM records WHERE id = ?1", [last])?;
    let (exit, said) = verify(&stage, copy.path(), &id)?;
    judge(Damage { what: "the last record removed".to_owned(), names: format!("record {} ", last & SEQ) }, exit, &said);
    crate::say(&format!(
        "{} records, {} blobs, 1 removal: {} of {} damages named",
        records.len(),
        blobs.len(),
        found.0,
        found.1
    ));
    for line in &missed {
        crate::say(&format!("✗ {line}"));
    }
    Ok(crate::exit_code(missed.is_empty()))
}

fn open(data: &Path) -> Result<Connection> {
    Ok(Connection::open(data.join("stele.db"))?)
}

/// Id, name in hexadecimal (of a blob) and length of each row of a table.
fn rows(stage: &Stage, table: &str) -> Result<Vec<(i64, String, u64)>> {
    let copy = copy(stage)?;
    let connection = open(&copy.path().join("data"))?;
    let mut statement =
        connection.prepare(&format!("SELECT id, lower(hex(hash)), length(bytes) FROM {table} ORDER BY id"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The agent's home, copied.
fn copy(stage: &Stage) -> Result<tempfile::TempDir> {
    let copy = tempfile::Builder::new().prefix("stele-flips-").tempdir()?;
    fs::create_dir_all(copy.path().join("data").join("locks"))?;
    for entry in fs::read_dir(stage.data())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), copy.path().join("data").join(entry.file_name()))?;
        }
    }
    Ok(copy)
}

fn flip(data: &Path, table: &str, row: i64, bit: u64) -> Result<()> {
    let connection = open(data)?;
    let mut bytes: Vec<u8> =
        connection.query_row(&format!("SELECT bytes FROM {table} WHERE id = ?1"), [row], |row| row.get(0))?;
    let at = usize::try_from(bit / 8)?;
    *bytes.get_mut(at).context("the row is shorter than it was")? ^= 1 << (bit % 8);
    connection.execute(&format!("UPDATE {table} SET bytes = ?2 WHERE id = ?1"), (row, bytes))?;
    Ok(())
}

/// Exit code and output of `stele verify`.
fn verify(stage: &Stage, home: &Path, id: &str) -> Result<(Option<i32>, String)> {
    let mut command: Command = stage.command(["verify", id]);
    let output = command.env("STELE_HOME", home).stderr(Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.code(), said))
}
