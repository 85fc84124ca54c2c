//! The command line itself.

use crate::support::{Done, Place};

#[test]
fn help_fits_one_screen() {
    let place = Place::new();
    let help = Done::of(place.stele(["--help"]));
    assert_eq!(help.code, 0);
    assert!(help.out.trim_end().lines().count() <= 24, "{}", help.out);
    assert!(help.out.lines().all(|line| line.chars().count() <= 80), "{}", help.out);
    let version = Done::of(place.stele(["--version"]));
    assert!(version.out.starts_with("stele "), "{version:?}");
}

#[test]
fn nothing_is_in_the_documentation_that_the_program_does_not_take() {
    let place = Place::new();
    let help = Done::of(place.stele(["run", "--help"])).out;
    let documented = include_str!("../../../../docs/run.md");
    let options = documented.split(|character: char| !(character.is_ascii_lowercase() || character == '-'));
    for option in options.filter(|word| word.len() > 3 && word.starts_with("--") && !word.ends_with('-')) {
        assert!(help.contains(option) || ["--all", "--expect"].contains(&option), "{option} is not an option of run");
    }
}
