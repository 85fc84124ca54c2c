use std::collections::BTreeMap;
use std::path::PathBuf;

use stele_core::{Mode, Wire};

use super::inputs::{FileText, Places};
use super::*;

/// Inputs with a user's file.
fn user(text: &str) -> Inputs {
    Inputs {
        env: BTreeMap::new(),
        places: Places { config: "/home/u/.config/stele".into(), data: "/home/u/.local/share/stele".into() },
        managed: None,
        user: Some(FileText { path: "/c.toml".into(), text: text.into() }),
        project: None,
        flags: Flags::default(),
    }
}

fn managed(text: &str) -> Inputs {
    Inputs { managed: Some(FileText { path: "/etc/p.toml".into(), text: text.into() }), ..user("") }
}

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
fn refused(inputs: &Inputs, message: &str) {
    let error = Config::load(inputs).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(message.starts_with(&format!("{}: ", error.code())), "{message}");
}

#[test]
fn nothing_set_is_the_defaults() {
    let config = Config::load(&user("")).unwrap();
    assert_eq!((config.mode, config.highest_mode), (Mode::Ask, Mode::Full));
    assert_eq!(config.tool_limits, stele_tools::Limits::default());
    assert!(config.turn_limits.is_default() && config.routes.is_empty() && config.choice().is_none());
    assert_eq!((config.connect.as_millis(), config.idle.as_millis()), (10_000, 120_000));
    assert!(config.effective().iter().all(|setting| setting.source() == Source::Default));
}

#[test]
fn every_key_is_read() {
    let config = Config::load(&user(
        r#"
mode = "edit"
model = "m"
route = "work"

[cache]
warn_above = "never"
ttl = "5m"

[prices."m-1.5"]
input = 1
output = 2

[permissions]
allow = ["bash(cargo test *)"]
ask = ["bash(git push *)"]
deny = ["bash(rm *)", "read(.env)"]

[limits]
steps = 50
executions = 60
result_bytes = 1_000
read_lines = 10
read_bytes = 2_000
shell_ms = 0x1000
idle_ms = 600_000
connect_ms = 5_000

[shell]
env = ["CARGO_HOME", "JAVA_HOME"]

[agent]
persona = "Be brief."

[tools]
offer = ["patch"]

[edit]
fuzzy = true
on_ambiguous = "last"

[web]
trusted_hosts = ["docs.local:8080"]
search = "searxng"
search_url = "http://127.0.0.1:2"
search_key_env = "SEARCH_KEY"

[routes.work]
wire = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
model = "n"
key_env = "WORK_KEY"
headers = { x-team = "tools" }
parameters = { max_output_tokens = 16000, effort = "high", stop = ["END"], tool_choice = { tool = "read" }, verbosity = "low" }
cache = { marks = "off" }
images = true

[routes.work.price]
input = 1_000_000
output = 2_000_000
long = { above = 1, input_percent = 200, output_percent = 150 }
"#,
    ))
    .unwrap();
    assert_eq!(config.mode, Mode::Edit);
    assert_eq!(config.choice().as_deref(), Some("work/m"));
    assert_eq!((config.turn_limits.steps, config.turn_limits.executions), (Some(50), Some(60)));
    let limits = config.tool_limits;
    assert_eq!((limits.result_bytes, limits.read_lines, limits.read_bytes, limits.shell_ms), (1_000, 10, 2_000, 4_096));
    assert_eq!((config.connect.as_millis(), config.idle.as_millis()), (5_000, 600_000));
    assert_eq!(config.shell_env, ["CARGO_HOME", "JAVA_HOME"]);
    assert_eq!(config.persona.as_deref(), Some("Be brief."));
    assert_eq!((config.warn_above, config.cache_ttl), (WarnAbove::Never, Some(CacheTtl::FiveMinutes)));
    assert_eq!(config.prices["m-1.5"].input, Some(1));
    assert_eq!(config.offer, [stele_tools::Offer::Patch]);
    assert_eq!((config.edit.fuzzy, config.edit.on_ambiguous), (true, stele_edit::OnAmbiguous::Last));
    assert_eq!(config.web.trusted_hosts, ["docs.local:8080"]);
    assert_eq!(config.web.search.as_ref().unwrap().url, "http://127.0.0.1:2");
    let route = &config.routes["work"];
    assert_eq!((route.wire, route.key_env.as_deref()), (Some(Wire::OpenaiChat), Some("WORK_KEY")));
    assert_eq!(route.price.unwrap().input, Some(1_000_000));
    let rules: Vec<_> = config.policy.rules().map(|(list, rule)| (list, rule.identity())).collect();
    assert_eq!(
        rules,
        [
            (List::Deny, "rule:user:0".to_owned()),
            (List::Deny, "rule:user:1".to_owned()),
            (List::Ask, "rule:user:2".to_owned()),
            (List::Allow, "rule:user:3".to_owned()),
        ]
    );
    // Every key that a file can set is in the file above.
    let set: Vec<_> = config.effective().iter().filter(|setting| !setting.set.is_empty()).collect();
    let unset: Vec<_> = config.effective().iter().filter(|setting| setting.set.is_empty()).collect();
    assert_eq!(unset.iter().map(|setting| setting.key.as_str()).collect::<Vec<_>>(), ["highest_mode"]);
    assert!(set.iter().all(|setting| matches!(setting.source(), Source::File { .. })));
}

#[test]
fn later_layers_win_and_lists_add_up() {
    let mut inputs = user("mode = \"edit\"\n[limits]\nsteps = 5\n[permissions]\nallow = [\"bash(a)\"]\n");
    inputs.env = env(&[("STELE_MODE", "full"), ("STELE_LIMITS_STEPS", "6"), ("STELE_ROUTE", ""), ("OTHER", "x")]);
    let config = Config::load(&inputs).unwrap();
    assert_eq!((config.mode, config.turn_limits.steps), (Mode::Full, Some(6)));
    inputs.flags = Flags {
        mode: Some(Mode::Ask),
        model: Some("m".into()),
        steps: Some(7),
        allow: vec!["bash(b)".into()],
        deny: vec!["bash(c)".into()],
    };
    let config = Config::load(&inputs).unwrap();
    assert_eq!((config.mode, config.turn_limits.steps, config.model.as_deref()), (Mode::Ask, Some(7), Some("m")));
    let rules: Vec<_> = config.policy.rules().map(|(_, rule)| (rule.identity(), rule.text().to_owned())).collect();
    let expected = [("rule:flag:0", "bash(c)"), ("rule:user:0", "bash(a)"), ("rule:flag:1", "bash(b)")];
    assert_eq!(rules, expected.map(|(identity, text)| (identity.to_owned(), text.to_owned())));

    let explained = config.explain("mode", &[]).unwrap();
    let sources: Vec<_> = explained[0].set.iter().map(|set| format!("{} {}", set.source, set.value)).collect();
    assert_eq!(sources, ["/c.toml:1 \"edit\"", "STELE_MODE \"full\"", "--mode \"ask\""]);
    assert_eq!(explained[0].value.as_deref(), Some("\"ask\""));
    let allow = config.explain("permissions.allow", &[]).unwrap();
    assert_eq!(allow[0].value.as_deref(), Some(r#"["bash(a)", "bash(b)"]"#));
}

#[test]
fn of_route_and_model_the_later_layer_counts() {
    let mut inputs = user("route = \"work\"\nmodel = \"m\"\n");
    inputs.env = env(&[("STELE_ROUTE", "home")]);
    assert_eq!(Config::load(&inputs).unwrap().choice().as_deref(), Some("home"));
    inputs.flags.model = Some("n".into());
    assert_eq!(Config::load(&inputs).unwrap().choice().as_deref(), Some("n"));
    assert_eq!(Config::load(&user("route = \"work\"")).unwrap().choice().as_deref(), Some("work"));
}

#[test]
fn an_unknown_key_names_the_nearest_one_and_its_line() {
    refused(&user("\nmodle = \"x\""), "config.unknown_key: /c.toml:2: `modle` is no setting; did you mean `model`?");
    refused(
        &user("[limits]\nsteps = 1\nstep = 2\n"),
        "config.unknown_key: /c.toml:3: `limits.step` is no setting; did you mean `limits.steps`?",
    );
    refused(
        &user("[permission]\nallow = []\n"),
        "config.unknown_key: /c.toml:1: `permission` is no setting; did you mean `permissions`?",
    );
    refused(
        &user("[routes.work]\nbase-url = \"x\"\n"),
        "config.unknown_key: /c.toml:2: `routes.work.base-url` is no setting; did you mean `routes.work.base_url`?",
    );
    refused(
        &user("[routes.work]\nparameters = { tool_choice = { tol = \"x\" } }\n"),
        "config.unknown_key: /c.toml:2: `routes.work.parameters.tool_choice.tol` is no setting; did you mean \
         `routes.work.parameters.tool_choice.tool`?",
    );
    refused(
        &user("[routes.work]\nparameters = { efort = \"x\" }\n"),
        "config.unknown_key: /c.toml:2: `routes.work.parameters.efort` is no setting; did you mean \
         `routes.work.parameters.effort`?",
    );
    let config = Config::load(&user("")).unwrap();
    assert_eq!(
        config.explain("limit.steps", &[]).unwrap_err().to_string(),
        "config.unknown_key: `limit.steps` is no setting; did you mean `limits.steps`?"
    );
    assert_eq!(config.explain("routes", &[]).unwrap()[0].value, None);
    assert_eq!(config.explain("limits", &[]).unwrap().len(), 8);
}

#[test]
fn a_wrong_value_says_what_its_key_takes() {
    refused(&user("mode = 3"), "config.value: /c.toml:1: `mode` takes a text, found integer");
    refused(
        &user("mode = \"fast\""),
        "config.value: /c.toml:1: `mode` is an unknown mode \"fast\"; the modes are ask, edit and full",
    );
    refused(&user("model = \" \""), "config.value: /c.toml:1: `model` is empty; leave it out");
    refused(
        &user("[prices.\"m\"]\ninput = 1.5\noutput = 2\n"),
        "config.value: /c.toml:2: `prices.\"m\"` takes a whole number, not below zero, found floating point `1.5`, in \
         millionths of a dollar for a million tokens",
    );
    refused(
        &user("[routes.work]\nmodel = 3\n"),
        "config.value: /c.toml:2: `routes.work` takes a text, found integer `3`",
    );
    refused(&user("limits = 3"), "config.value: /c.toml:1: `limits` takes a table, found integer");
    refused(
        &user("[limits]\nsteps = -1"),
        "config.value: /c.toml:2: `limits.steps` takes a whole number, not below zero, found integer",
    );
    refused(
        &user("[limits]\nsteps = 0"),
        "config.limit: /c.toml:2: limits.steps = 0 is out of bounds: at least 1, at most 10000",
    );
    refused(
        &user("[limits]\nsteps = 10_001"),
        "config.limit: /c.toml:2: limits.steps = 10001 is out of bounds: at least 1, at most 10000",
    );
    refused(
        &user("[limits]\nparallel = 2"),
        "config.misplaced: /c.toml:2: `limits.parallel` cannot be set; it is always 8",
    );
    refused(
        &user("[permissions]\nallow = [\"bash(a)\",\n3]"),
        "config.value: /c.toml:3: `permissions.allow` takes a list of texts, found integer",
    );
    refused(
        &user("[routes.work]\nwire = \"smtp\""),
        "config.value: /c.toml:2: `routes.work` is not right: unknown variant `smtp`, expected one of \
         `anthropic-messages`, `openai-responses`, `openai-chat`, `gemini`",
    );
    refused(
        &user("[routes.\"a/b\"]\nmodel = \"x\""),
        "config.value: /c.toml:1: `routes.a/b` is no name for a route: it takes letters, digits, - and _",
    );
    refused(
        &user("[shell]\nenv = [\"A B\"]"),
        "config.value: /c.toml:2: `shell.env` takes names of variables, found \"A B\"",
    );
    let error = Config::load(&user("mode = ")).unwrap_err();
    assert!(error.to_string().starts_with("config.syntax: /c.toml:1: "), "{error}");
}

#[test]
fn a_rule_that_cannot_be_used_says_where_it_stands() {
    refused(
        &user("[permissions]\ndeny = [\n  \"bash(rm *)\",\n  \"bahs(x)\",\n]"),
        "rule.tool: /c.toml:4: \"bahs(x)\" names no tool; did you mean `bash`?",
    );
    let mut inputs = user("");
    inputs.flags.allow = vec!["bash(".into()];
    let error = Config::load(&inputs).unwrap_err();
    assert!(error.to_string().starts_with("rule.syntax: --allow: "), "{error}");
}

#[test]
fn a_providers_key_is_not_passed_to_commands() {
    for (text, name) in [
        ("[shell]\nenv = [\"ANTHROPIC_API_KEY\"]", "ANTHROPIC_API_KEY"),
        ("[shell]\nenv = [\"STELE_API_KEY\"]", "STELE_API_KEY"),
        ("[shell]\nenv = [\"W\"]\n[routes.work]\nkey_env = \"W\"", "W"),
    ] {
        refused(
            &user(text),
            &format!("config.value: /c.toml:2: `shell.env` may not pass {name}: it holds a provider's key"),
        );
    }
}

#[test]
fn variables_with_our_prefix_are_known_or_refused() {
    let mut inputs = user("[shell]\nenv = [\"STELE_MINE\"]\n[routes.work]\nkey_env = \"STELE_WORK\"");
    inputs.env = env(&[
        ("STELE_WIRE", "gemini"),
        ("STELE_MODEL", "m"),
        ("STELE_HOME", "/x"),
        ("STELE_MINE", "1"),
        ("STELE_WORK", "k"),
        ("STELE_AGENT_PERSONA", "p"),
    ]);
    let config = Config::load(&inputs).unwrap();
    assert_eq!((config.persona.as_deref(), config.model), (Some("p"), None));
    inputs.env = env(&[("STELE_MOD", "full")]);
    refused(
        &inputs,
        "config.unknown_variable: STELE_MOD is set and nothing reads it; did you mean STELE_MODE? Otherwise unset it",
    );
    inputs.env = env(&[("STELE_SHELL_ENV", "A")]);
    refused(
        &inputs,
        "config.unknown_variable: STELE_SHELL_ENV is set and nothing reads it; set the list `shell.env` in config.toml, and unset it: no variable sets a list",
    );
    inputs.env = env(&[("STELE_LIMITS_STEPS", "many")]);
    refused(&inputs, "config.value: STELE_LIMITS_STEPS: `limits.steps` takes a whole number, found \"many\"");
}

#[test]
fn the_machines_policy_only_narrows() {
    let mut inputs = managed("highest_mode = \"edit\"\n[permissions]\ndeny = [\"bash(sudo *)\"]\n");
    let config = Config::load(&inputs).unwrap();
    assert_eq!((config.mode, config.highest_mode), (Mode::Ask, Mode::Edit));
    assert_eq!(config.policy.rules().next().unwrap().1.identity(), "rule:managed:0");
    inputs.flags.mode = Some(Mode::Full);
    refused(
        &inputs,
        "config.mode: the mode full (--mode) is above edit, the highest that /etc/p.toml:1 allows; choose a lower one",
    );
    for text in
        ["mode = \"full\"", "[permissions]\nallow = [\"bash\"]", "[routes.x]\nmodel = \"m\"", "[limits]\nsteps = 1"]
    {
        let error = Config::load(&managed(text)).unwrap_err();
        assert_eq!(error.code(), "config.misplaced", "{error}");
    }
    refused(
        &user("highest_mode = \"full\""),
        "config.misplaced: /c.toml:1: `highest_mode` is set by the machine's policy alone; set `mode`",
    );
}

#[test]
fn the_folders_move_together() {
    let places = |variables: &[(&str, &str)]| Places::find(&env(variables)).map(|places| (places.config, places.data));
    let expect = |config: &str, data: &str| (PathBuf::from(config), PathBuf::from(data));
    assert_eq!(places(&[("HOME", "/h")]).unwrap(), expect("/h/.config/stele", "/h/.local/share/stele"));
    assert_eq!(
        places(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "relative")]).unwrap(),
        expect("/c/stele", "/h/.local/share/stele")
    );
    assert_eq!(places(&[("HOME", "/h"), ("STELE_HOME", "/s")]).unwrap(), expect("/s", "/s/data"));
    assert_eq!(places(&[("HOME", "/h"), ("STELE_HOME", "s")]).unwrap_err().code(), "config.home");
    assert_eq!(places(&[]).unwrap_err().code(), "config.home");
}

#[test]
fn files_are_read_and_a_projects_is_named_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("repo/.git")).unwrap();
    std::fs::create_dir_all(path("repo/.stele")).unwrap();
    std::fs::create_dir_all(path("repo/sub")).unwrap();
    std::fs::create_dir_all(path("home")).unwrap();
    std::fs::write(path("repo/.stele/config.toml"), "mode = \"full\"\n").unwrap();
    let variables = env(&[("STELE_HOME", path("home").to_str().unwrap())]);
    let read = || Inputs::read(&variables, &path("repo/sub"), Flags::default());
    assert_eq!(read().unwrap().user, None);

    std::fs::write(path("home/config.toml"), "mode = \"edit\"\n").unwrap();
    let inputs = read().unwrap();
    assert_eq!(inputs.project, Some(path("repo/.stele/config.toml")));
    let config = Config::load(&inputs).unwrap();
    assert_eq!(config.mode, Mode::Edit);
    assert_eq!(config.skipped.len(), 1);
    assert!(config.skipped[0].contains("config.toml: not loaded"), "{:?}", config.skipped);

    std::fs::write(path("home/config.toml"), b"mode = \"\xff\"").unwrap();
    assert!(read().unwrap_err().to_string().ends_with("config.toml: byte 8 is not UTF-8"));
    std::fs::remove_file(path("home/config.toml")).unwrap();
    std::fs::create_dir(path("home/config.toml")).unwrap();
    assert!(read().unwrap_err().to_string().ends_with("it is a folder, not a file"));
}

proptest::proptest! {
    #[test]
    fn any_file_is_read_or_refused(text in "[a-z\\[\\]{}=.\"'\n ,0-9#_-]{0,60}") {
        let _ = Config::load(&user(&text));
        let _ = Config::load(&managed(&text));
    }

    #[test]
    fn any_value_of_any_key_is_read_or_refused(
        key in proptest::sample::select(keys::all()), value in "\"[a-z]{0,4}\"|[0-9]{1,20}|\\[\\]|\\{\\}|true|-1|1e3|\\[\"a\", 1\\]",
    ) {
        let _ = Config::load(&user(&format!("{} = {value}", key.name.replace('*', "x"))));
    }
}

#[test]
fn the_edit_engine_is_strict_unless_it_is_told_otherwise() {
    let config = Config::load(&user("")).unwrap();
    assert_eq!(config.edit, stele_edit::Options::default());
    refused(
        &user("[edit]\non_ambiguous = \"first\""),
        "config.value: /c.toml:2: `edit.on_ambiguous` takes refuse or last, found \"first\"",
    );
    refused(&user("[edit]\nfuzzy = 1"), "config.value: /c.toml:2: `edit.fuzzy` takes true or false, found integer");
}

#[test]
fn tools_are_offered_by_name_and_a_search_needs_a_service() {
    let mut inputs = user(
        "[tools]\noffer = [\"ls\", \"web_search\"]\n[web]\nsearch = \"brave\"\nsearch_key_env = \"K\"\ntrusted_hosts = [\"docs.local\"]\n",
    );
    inputs.env = env(&[("K", "secret")]);
    let config = Config::load(&inputs).unwrap();
    assert_eq!(config.offer, [stele_tools::Offer::Ls, stele_tools::Offer::WebSearch]);
    assert_eq!(config.web.trusted_hosts, ["docs.local"]);
    inputs.user = user("[web]\nsearch = \"brave\"\nsearch_key_env = \"STELE_K\"").user;
    inputs.env = env(&[("STELE_K", "x")]);
    assert_eq!(Config::load(&inputs).unwrap().web.search.unwrap().key.as_deref(), Some("x"));
    let search = config.web.search.as_ref().unwrap();
    assert_eq!((search.url.as_str(), search.key.as_deref()), ("https://api.search.brave.com", Some("secret")));
    assert!(!format!("{config:?}").contains("secret"));
    refused(
        &user("[tools]\noffer = [\"lss\"]"),
        "config.value: /c.toml:2: `tools.offer` names a tool that is not there: there is no tool \"lss\" to offer; there are patch, ls, symbols, web_fetch, web_search",
    );
    refused(
        &user("[tools]\noffer = [\"web_search\"]"),
        "config.value: /c.toml:2: `tools.offer` offers web_search, which needs a service: set `web.search`",
    );
    refused(&user("[web]\nsearch = \"x\""), "config.value: /c.toml:2: `web.search` takes searxng or brave");
    refused(
        &user("[web]\nsearch = \"searxng\""),
        "config.value: /c.toml:2: `web.search` needs the address of the service: set `web.search_url`",
    );
}

#[test]
fn the_cache_and_prices_are_configured_with_clear_words() {
    let config = Config::load(&user(
        "cache.warn_above = \"50000 tokens\"\ncache.ttl = \"1h\"\n[prices.\"gpt-6.2\"]\ninput = 1\noutput = 2\n",
    ))
    .unwrap();
    assert_eq!((config.warn_above, config.cache_ttl), (WarnAbove::Tokens(50_000), Some(CacheTtl::Hour)));
    assert_eq!(config.prices["gpt-6.2"].output, Some(2));
    assert!(
        config
            .explain("prices.gpt-6.2.input", &[])
            .unwrap()
            .iter()
            .any(|setting| setting.value.as_deref() == Some("1"))
    );
    let wrong = |text: &str, about: &str| {
        let error = Config::load(&user(text)).unwrap_err().to_string();
        assert!(error.contains(about), "{error}");
    };
    wrong("cache.warn_above = \"much\"", "takes money");
    wrong("cache.ttl = \"2h\"", "\"5m\" or \"1h\"");
    wrong("[prices.m]\ninput = 1\n", "needs `input` and `output`");
    wrong(
        "[routes.x]\nwire = \"gemini\"\nprice = { input = 1 }\n",
        "/c.toml:3: `routes.x.price` needs `input` and `output`",
    );
    wrong("[routes.x]\nprice = {}\n", "needs `input` and `output`");
    wrong("[routes.x.price]\noutput = 1\n", "needs `input` and `output`");
    wrong("[prices.m]\ninput = -1\noutput = 1\n", "prices");
    wrong("[prices.m]\ninput = 1\noutput = 1\ncache_reed = 1\n", "cache_read");
    let env = Inputs { env: env(&[("STELE_CACHE_TTL", "1h")]), ..user("") };
    assert_eq!(Config::load(&env).unwrap().cache_ttl, Some(CacheTtl::Hour));
}

/// The table of all keys, as it stands in docs/configuration.md.
fn table_of_keys() -> String {
    let mut table = String::from("| key | variable | |\n|---|---|---|\n");
    for key in keys::all() {
        let variable = keys::variable(&key).map(|name| format!("`{name}`")).unwrap_or_default();
        let name = key.name.replace("*", "NAME");
        table.push_str(&format!("| `{name}` | {variable} | {} |\n", key.about.replace('|', "\\|")));
    }
    table
}

#[test]
fn the_page_has_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("## Every key\n\n").unwrap();
    // Only a table is replaced, whatever stands behind it.
    let rows: usize = rest.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
    let expected = format!("{before}## Every key\n\n{}{}", table_of_keys(), &rest[rows..]);
    if std::env::var_os("STELE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/configuration.md is not up to date: run STELE_UPDATE_DOCS=1 cargo test --workspace the_page_has_every_key"
    );
}
