use super::*;

/// The commands of a script, one a line, unknown parts as `?`; redirections as `<x` and `>x`.
fn shown(script: &Script) -> String {
    let units = |units: &[Unit]| -> String {
        units.iter().map(|unit| if let Unit::Char(character) = unit { *character } else { '?' }).collect()
    };
    let lines: Vec<String> = script
        .steps
        .iter()
        .map(|step| match step {
            Step::Command(words) => units(&joined(words)),
            Step::Input(word) => format!("<{}", units(&word.0)),
            Step::Output(word) => format!(">{}", units(&word.0)),
        })
        .collect();
    lines.join("\n")
}

#[track_caller]
fn clear(source: &str, steps: &[&str]) {
    let script = parse(source);
    assert_eq!(script.unclear, None, "{source}");
    assert_eq!(shown(&script), steps.join("\n"), "{source}");
}

#[track_caller]
fn unclear(source: &str) {
    let script = parse(source);
    assert!(script.unclear.is_some(), "{source}: {script:?}");
}

#[test]
fn every_command_of_a_compound_is_found() {
    for separator in [" && ", " || ", "; ", " | ", " |& ", " & ", "\n"] {
        clear(&format!("git status{separator}rm -rf x"), &["git status", "rm -rf x"]);
    }
    clear("(cd d; rm x)", &["cd d", "rm x"]);
    clear("{ ls; } > f", &["ls", ">f"]);
    clear("if true; then rm x; elif false; then ls; else pwd; fi", &["true", "rm x", "false", "ls", "pwd"]);
    clear("for f in a $(ls); do rm $f; done", &["ls", "rm ?"]);
    clear("while read l; do echo $l; done < f", &["read l", "echo ?", "<f"]);
    clear("case $x in a|b) rm y;; *) ls;; esac", &["rm y", "ls"]);
    clear("f() { rm x; }; f", &["rm x", "f"]);
    clear("function g { ls; }", &["ls"]);
    clear("! ls", &["ls"]);
    clear("[ -f x ] && [[ $y == z* ]] && echo hi", &["echo hi"]);
    clear("ls &", &["ls"]);
}

#[test]
fn substitutions_run_commands() {
    clear("echo $(rm x)", &["rm x", "echo ?"]);
    clear("echo `rm x`", &["rm x", "echo ?"]);
    clear("echo \"a`rm x`b $(rm y)\"", &["rm x", "rm y", "echo a?b ?"]);
    clear("diff <(ls a) <(ls b)", &["ls a", "ls b", "diff ? ?"]);
    clear("x=$(rm y) z=(a $(rm b))", &["rm y", "rm b"]);
    clear("echo ${x:-$(rm y)}", &["rm y", "echo ?"]);
    clear("git commit -m \"$(cat <<'EOF'\nit's `x`\nEOF\n)\"", &["cat", "git commit -m ?"]);
}

#[test]
fn quotes_are_resolved() {
    clear("r''m x", &["rm x"]);
    clear("\\rm x", &["rm x"]);
    clear("echo \"a && rm x\"", &["echo a && rm x"]);
    clear("echo 'x; rm y'", &["echo x; rm y"]);
    clear("echo \\; rm", &["echo ; rm"]);
    clear(r#"echo 'it'\''s' "\"q\" \\ \$z \n""#, &[r#"echo it's "q" \ $z \n"#]);
    clear("echo \"multi\nline\" && ls", &["echo multi\nline", "ls"]);
    clear("echo a#b; ls # it's `rm x`", &["echo a#b", "ls"]);
    clear("cmd \\\n  --flag", &["cmd --flag"]);
    clear("ls *.rs {a,b} {1..3} ~/x $HOME a=~ x{ {} a,b", &["ls ?.rs ? ? ?/x ? a=? x{ {} a,b"]);
    clear("echo $'\\x72m'", &["echo ?"]);
    clear("CI=true git commit", &["git commit"]);
}

#[test]
fn redirections_are_steps() {
    clear("echo hi > out 2>&1 >> x < in", &["echo hi", ">out", ">x", "<in"]);
    clear("ls &> all", &["ls", ">all"]);
    clear("ls >| f", &["ls", ">f"]);
    clear("ls >&2", &["ls"]);
    clear("> out rm x", &[">out", "rm x"]);
    clear("ls >&file", &["ls", ">file"]);
    clear("cat <<< \"x $(rm y)\"\nls", &["rm y", "cat", "ls"]);
}

#[test]
fn a_quoted_here_document_is_data_and_another_one_expands() {
    clear("cat <<'EOF' > out\nhi $(rm x) `rm y`\nif a > b:\nEOF\necho done", &["cat", ">out", "echo done"]);
    clear("cat <<EOF\n$(rm x) $HOME \\`no\\` \\$(no)\nEOF", &["cat", "rm x"]);
    clear("cat <<-\"EOF\" | head\n\ta > b\n\tEOF\nls", &["cat", "head", "ls"]);
    clear("cat <<EOF && rm x\nbody\nEOF", &["cat", "rm x"]);
    clear("python3 - <<'EOF'\nprint('a' > 'b')\nEOF", &["python3"]);
    unclear("cat <<EOF\n`rm x`\nEOF");
    unclear("cat <<EOF\nnever ended");
    unclear("cat <<A <<B\na\nA\nb\nB");
    unclear("cat <<'M' 2>&1 | rm x\na\nM");
    unclear("cat <<EOF\na\\\nEOF\nrm x\nEOF");
    unclear("git <<EOF push\nEOF");
}

#[test]
fn what_is_not_understood_is_unclear() {
    for source in [
        "echo \"unterminated && rm x",
        "echo 'x",
        "rm (",
        "if ls",
        "echo $((1+x))",
        "((x=1))",
        "a[1]=2",
        "{rm,x}",
        "for ((i=0;i<3;i++)); do ls; done",
        "`echo \\`rm x\\``",
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${x:=y}",
        "[ a > b ]",
        "[[ $x -eq 1 ]]",
        "[[ -v x ]]",
        "[[ a =~ $x ]]",
        "echo hi <> f",
        "git >out push",
        "r\\\nm x",
        "ls\r",
        "ls\u{a0}x",
        "ls \u{2028} x",
        "echo $\"x\"",
        "do rm x",
        "export $X=1",
        "unset 'a[$(rm)]'",
        "ls 3>&- {fd}>x",
        "echo $[1+1]",
        "ls\u{b}x",
    ] {
        unclear(source);
    }
    // What the parser gets wrong, found by running random texts through the shell itself.
    for source in ["<<<$ \nrm x", "a b\n\\\nrm x", "a \\\n\nrm x", "{rm,x} y; }", "{ls; }", "{ ls }"] {
        unclear(source);
    }
    unclear(&"a && ".repeat(2000));
    unclear(&"(".repeat(70_000));
    unclear(&"$(".repeat(5_000));
}

#[test]
fn risky_variables_are_noticed() {
    for source in [
        "LD_PRELOAD=x ls",
        "PATH=.:$PATH ls",
        "PATH=.; ls",
        "export GIT_PAGER=x; git log",
        "for PATH in .; do ls; done",
        "unset PATH",
        "declare -x BASH_ENV=x",
        "IFS=, read a",
        "readonly ENV=x",
    ] {
        assert!(parse(source).risky.is_some(), "{source}");
    }
    assert_eq!(parse("CI=true RUST_LOG=debug cargo test").risky, None);
}

#[test]
fn parsing_is_quick() {
    let started = std::time::Instant::now();
    for _ in 0..100 {
        let _ = parse("cd crates && CI=true cargo test -p stele-guard -- --nocapture 2>&1 | tail -n 40");
    }
    // 0.1 to 0.3 ms each without optimisation on a busy machine with two cores; this allows 5 ms.
    assert!(started.elapsed() < std::time::Duration::from_millis(500), "{:?}", started.elapsed());
}

proptest::proptest! {
    #[test]
    fn any_text_is_taken_apart_without_panic(source in "[ -~\n\t\u{a0}é]{0,80}") {
        let _ = parse(&source);
    }

    #[test]
    fn any_mixture_of_shell_syntax_is_taken_apart_without_panic(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "ls", " ", "\n", ";", "&&", "|", "$(", ")", "`", "\"", "'", "<<EOF\n", "\nEOF\n", "<<<", ">", "{", "}",
                "if ", " then ", " fi", "case ", " in ", "esac", "\\", "$x", "${", "#", "((", "))", "[[", "]]", "=", "é",
            ]),
            0..24,
        ),
    ) {
        let _ = parse(&parts.concat());
    }
}
