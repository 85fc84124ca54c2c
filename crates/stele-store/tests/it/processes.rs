//! Several processes, and processes that are killed. A test starts this test binary again, for one
//! test that plays the other process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stele_store::{Durability, Store};

use crate::bed::{Bed, fill, id, nth, records, start};

const ROLE: &str = "STELE_STORE_TEST_ROLE";
const ROOT: &str = "STELE_STORE_TEST_ROOT";

fn process(role: &str, root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::the_other_process", "--nocapture"])
        .env(ROLE, role)
        .env(ROOT, root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a line that the other process prints.
fn wait_for(child: &mut Child, line: &str) {
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|found| found.ends_with(line)), "it ended before {line:?}");
}

/// Does nothing unless it was started as the other process.
#[test]
fn the_other_process() {
    let (Ok(role), Ok(root)) = (std::env::var(ROLE), std::env::var(ROOT)) else { return };
    let store = Store::open(Path::new(&root)).unwrap();
    let (role, n) = role.rsplit_once(' ').unwrap();
    let n: u64 = n.parse().unwrap();
    match role {
        "append" => {
            let mut writer = store.create(id(n), start("/work")).unwrap();
            fill(&mut writer, 100);
        }
        "hold" => {
            let mut writer = store.create(id(n), start("/work")).unwrap();
            fill(&mut writer, 3);
            println!("holding");
            std::thread::park();
        }
        "uncommitted" => {
            let _writer = store.create(id(n), start("/work")).unwrap();
            println!("holding");
            std::thread::park();
        }
        "endless" => {
            let mut writer = store.create(id(n), start("/work")).unwrap();
            fill(&mut writer, 5);
            println!("appending");
            loop {
                fill(&mut writer, 1);
            }
        }
        "until refused" => {
            let mut writer = store.create(id(n), start("/work")).unwrap();
            fill(&mut writer, 1);
            let refused = loop {
                let head = writer.head();
                match writer.append(&[nth(writer.next_seq().0)], Durability::Barrier, None) {
                    Ok(_) => {}
                    Err(error) => {
                        assert_eq!(writer.head(), head);
                        break error;
                    }
                }
            };
            assert_eq!(refused.code(), "log.write_failed", "{refused}");
            // It may be tried again, and is refused again; what was stored can be read meanwhile.
            let again = writer.append(&[nth(writer.next_seq().0)], Durability::Normal, None).unwrap_err();
            assert_eq!(again.code(), "log.write_failed", "{again}");
            assert_eq!(records(&store, &id(n)).len() as u64, writer.next_seq().0);
            println!("stored {}", writer.next_seq());
        }
        _ => panic!("no such role: {role}"),
    }
}

#[test]
fn four_processes_append_to_one_database_at_once() {
    let bed = Bed::new();
    let children: Vec<Child> = (1..=4).map(|n| process(&format!("append {n}"), bed.root())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = bed.open();
    for n in 1..=4 {
        assert_eq!(records(&store, &id(n)).len(), 100);
    }
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn a_killed_process_leaves_no_lock() {
    let bed = Bed::new();
    let mut child = process("hold 1", bed.root());
    wait_for(&mut child, "holding");
    let store = bed.open();
    let refused = store.writer(&id(1)).unwrap_err();
    assert_eq!(refused.code(), "log.locked");
    assert!(refused.to_string().contains(&format!("process {} ", child.id())), "{refused}");
    assert_eq!(records(&store, &id(1)).len(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut writer = store.writer(&id(1)).unwrap();
    fill(&mut writer, 2);
    assert_eq!(records(&store, &id(1)).len(), 5);
}

#[test]
fn a_process_killed_before_its_first_append_leaves_no_session() {
    let bed = Bed::new();
    let mut child = process("uncommitted 1", bed.root());
    wait_for(&mut child, "holding");
    child.kill().unwrap();
    child.wait().unwrap();
    let store = bed.open();
    assert_eq!(store.session(&id(1)).unwrap_err().code(), "log.not_found");
    let mut writer = store.create(id(1), start("/work")).unwrap();
    writer.append(&[nth(0)], Durability::Barrier, None).unwrap();
}

#[test]
fn a_process_killed_while_it_appends_leaves_a_whole_log() {
    let bed = Bed::new();
    for n in 1..=5 {
        let mut child = process(&format!("endless {n}"), bed.root());
        wait_for(&mut child, "appending");
        child.kill().unwrap();
        child.wait().unwrap();
        let store = bed.open();
        assert!(records(&store, &id(n)).len() >= 5);
        assert_eq!(store.check(&id(n)).unwrap(), []);
        fill(&mut store.writer(&id(n)).unwrap(), 1);
    }
    assert_eq!(bed.open().check_all().unwrap(), []);
}

#[cfg(unix)]
#[test]
fn an_append_that_the_disk_refuses_changes_nothing() {
    let bed = Bed::new();
    // A limit on the size of files, with its signal ignored, makes writing fail like a full disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" --exact processes::the_other_process --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, "until refused 1")
        .env(ROOT, bed.root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let stored = text.lines().find_map(|line| line.split_once("stored ")).map(|(_, count)| count.parse::<usize>());
    let store = bed.open();
    assert_eq!(Some(Ok(records(&store, &id(1)).len())), stored);
    assert_eq!(store.check_all().unwrap(), []);
    fill(&mut store.writer(&id(1)).unwrap(), 3);
    assert_eq!(store.check_all().unwrap(), []);
}
