use super::*;

fn session() -> SessionId {
    SessionId::new("0197f0aa-0000-7000-8000-000000000001").unwrap()
}

fn list(variables: &[(&str, &str)], config: &str) -> Result<Vec<Route>, RouteError> {
    let configured: BTreeMap<String, RouteConfig> = toml::from_str(config).unwrap();
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    routes(&find, &configured)
}

fn names(routes: &[Route]) -> Vec<&str> {
    routes.iter().map(|route| route.name.as_str()).collect()
}

#[test]
fn the_vendors_variables_make_routes_in_a_fixed_order() {
    let routes = list(&[("DEEPSEEK_API_KEY", "d"), ("ANTHROPIC_API_KEY", "a"), ("GROQ_API_KEY", "g")], "").unwrap();
    assert_eq!(names(&routes), ["anthropic", "deepseek"]);
    assert_eq!(routes[0].base_url, "https://api.anthropic.com");
    assert_eq!(routes[0].key, KeySource::Env("ANTHROPIC_API_KEY".into()));
    assert_eq!(list(&[("ANTHROPIC_API_KEY", " ")], "").unwrap(), []);
    let routes = list(&[("GOOGLE_API_KEY", "g")], "").unwrap();
    assert_eq!(routes[0].key, KeySource::Env("GOOGLE_API_KEY".into()));
    let routes = list(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "").unwrap();
    assert_eq!(routes[0].base_url, "http://127.0.0.1:9/v1");
}

#[test]
fn one_route_alone_wins() {
    let routes = list(
        &[
            ("ANTHROPIC_API_KEY", "a"),
            ("STELE_WIRE", "openai-chat"),
            ("STELE_BASE_URL", "http://127.0.0.1:1234/v1"),
            ("STELE_MODEL", "m"),
        ],
        "",
    )
    .unwrap();
    assert_eq!(names(&routes), ["env", "anthropic"]);
    assert_eq!(routes[0].key, KeySource::None);
}

#[test]
fn a_vendors_key_goes_to_its_own_server_only() {
    let base = [("ANTHROPIC_API_KEY", "a"), ("STELE_WIRE", "anthropic-messages"), ("STELE_MODEL", "m")];
    assert_eq!(list(&base, "").unwrap()[0].key, KeySource::Env("ANTHROPIC_API_KEY".into()));
    let elsewhere = [&base[..], &[("STELE_BASE_URL", "https://elsewhere.example")]].concat();
    assert_eq!(list(&elsewhere, "").unwrap()[0].key, KeySource::None);
    let own = [&elsewhere[..], &[("STELE_API_KEY", "s")]].concat();
    assert_eq!(list(&own, "").unwrap()[0].key, KeySource::Env("STELE_API_KEY".into()));
    let routes = list(&[("OPENAI_API_KEY", "o")], "[openai]\nbase_url = \"https://elsewhere.example/v1\"").unwrap();
    assert_eq!(routes[0].key, KeySource::None);
}

#[test]
fn a_wire_alone_means_the_vendor_that_owns_it_or_nobody() {
    let alone = |wire: Wire| {
        let keys = vendors().iter().flat_map(|vendor| vendor.key_env.iter().map(|name| (name.as_str(), "k")));
        list(&keys.chain([("STELE_WIRE", wire.name()), ("STELE_MODEL", "m")]).collect::<Vec<_>>(), "")
    };
    for (wire, host, key) in [
        (Wire::AnthropicMessages, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        (Wire::OpenaiResponses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        (Wire::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ] {
        let route = &alone(wire).unwrap()[0];
        assert_eq!((route.base_url.as_str(), &route.key), (host, &KeySource::Env(key.into())), "{wire}");
    }
    let error = alone(Wire::OpenaiChat).unwrap_err();
    assert!(error.to_string().starts_with("config.route: STELE_BASE_URL is missing"), "{error}");
}

#[test]
fn a_table_named_as_a_vendor_fills_in_the_rest() {
    let routes = list(&[("GROQ_API_KEY", "g")], "[groq]\nmodel = \"llama\"\ncache = { marks = \"off\" }").unwrap();
    assert_eq!(names(&routes), ["groq"]);
    assert_eq!(routes[0].base_url, "https://api.groq.com/openai/v1");
    assert_eq!(routes[0].key, KeySource::Env("GROQ_API_KEY".into()));
    assert!(!routes[0].config(&session(), &Ledger::default()).cache.marks);
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    #[track_caller]
    fn refused(variables: &[(&str, &str)], config: &str, code: &str, part: &str) {
        let error = list(variables, config).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        let text = error.to_string();
        assert!(text.starts_with(code) && text.contains(part), "{text}");
    }
    refused(&[("STELE_BASE_URL", "http://h/v1")], "", "config.route", "STELE_MODEL is missing");
    refused(&[("STELE_MODEL", "m")], "", "config.route", "STELE_WIRE");
    refused(&[("STELE_WIRE", "smoke"), ("STELE_MODEL", "m")], "", "config.route", "anthropic-messages");
    refused(&[], "[work]\nmodel = \"m\"", "config.route", "routes.work: wire is missing");
    refused(&[], "[groq]\nbase_url = \"https://h\"", "config.route", "routes.groq: model is missing");
    let secret = "[openai]\nbase_url = \"https://u:hunter2@h\"";
    refused(&[], secret, "config.base_url", "routes.openai");
    assert!(!list(&[], secret).unwrap_err().to_string().contains("hunter2"));
    let header = "[openai]\nheaders = { Authorization = \"x\" }";
    refused(&[], header, "config.route", "Authorization");
    assert!(toml::from_str::<RouteConfig>("modle = \"m\"").is_err());
}

#[test]
fn a_config_holds_what_its_endpoint_takes_and_nothing_else() {
    let route = |name: &str, variables: &[(&str, &str)]| {
        list(variables, "")
            .unwrap()
            .into_iter()
            .find(|route| route.name == name)
            .unwrap()
            .config(&session(), &Ledger::default())
    };
    let anthropic = route("anthropic", &[("ANTHROPIC_API_KEY", "a")]);
    assert_eq!(anthropic.parameters.max_output_tokens, Some(32_000));
    assert_eq!(anthropic.cache, CacheMarks::default());
    assert_eq!((anthropic.dialect, anthropic.derive_rev), (None, stele_core::derive_rev(Wire::AnthropicMessages)));
    assert!(anthropic.encoder.starts_with("anthropic-messages/"));
    let openai = route("openai", &[("OPENAI_API_KEY", "o")]);
    assert_eq!(openai.cache.key.as_deref(), Some(session().as_str()));
    assert_eq!(openai.parameters.max_output_tokens, None);
    let gateway = route("openai", &[("OPENAI_API_KEY", "o"), ("OPENAI_BASE_URL", "https://gateway.example/v1")]);
    assert_eq!(gateway.cache.key, None);
    let deepseek = route("deepseek", &[("DEEPSEEK_API_KEY", "d")]);
    assert_eq!(deepseek.cache.key, None);
    assert_eq!(deepseek.dialect.unwrap().reasoning_field.as_deref(), Some("reasoning_content"));
    let unknown = [("ANTHROPIC_API_KEY", "a"), ("STELE_WIRE", "anthropic-messages"), ("STELE_MODEL", "new")];
    assert_eq!(route("env", &unknown).parameters.max_output_tokens, Some(8_192));
}

#[test]
fn the_users_own_price_wins_over_the_list() {
    let routes = list(&[("ANTHROPIC_API_KEY", "a")], "").unwrap();
    assert_eq!(routes[0].price().unwrap().input, Some(4_000_000));
    let own = "[anthropic]\nprice = { input = 1, output = 2 }\n[x]\nwire = \"openai-chat\"\nbase_url = \"http://h\"\nmodel = \"m\"";
    let routes = list(&[("ANTHROPIC_API_KEY", "a")], own).unwrap();
    assert_eq!(routes[0].price().unwrap().input, Some(1));
    assert_eq!(routes[1].price(), None);
    assert!(toml::from_str::<RouteConfig>("price = { inptu = 1 }").is_err());
}

#[test]
fn what_does_nothing_and_what_no_page_says_is_told() {
    let text = |route: &Route| (route.ignored(), route.missing_price());
    let hour = CacheTtl::Hour;
    let route = |wire, model: &str, ttl| Route { ttl, ..Route::new("r", wire, "http://h", model) };
    assert_eq!(text(&route(Wire::AnthropicMessages, "claude-opus-5-5", Some(hour))), (None, None));
    let (ignored, _) = text(&Route { marks: Marks::Off, ..route(Wire::AnthropicMessages, "m", Some(hour)) });
    assert!(ignored.unwrap().contains("marks are off"));
    for wire in [Wire::OpenaiResponses, Wire::OpenaiChat, Wire::Gemini] {
        assert!(text(&route(wire, "m", Some(hour))).0.unwrap().contains(wire.name()), "{wire}");
        assert_eq!(text(&route(wire, "m", Some(CacheTtl::FiveMinutes))), (None, None), "{wire}");
    }
    let unread = route(Wire::AnthropicMessages, "claude-haiku-5-5", None);
    assert!(text(&unread).1.unwrap().contains(r#"[prices."claude-haiku-5-5"]"#));
    let own = Some(Price { input: Some(1), output: Some(1), ..Price::default() });
    assert_eq!(text(&Route { own_price: own, ..unread }), (None, None));
}

#[test]
fn claude_through_openrouter_is_marked_and_nothing_else_there_is() {
    let fields = |model: &str| {
        let route = Route::new("r", Wire::OpenaiChat, "https://openrouter.ai/api/v1", model);
        route.config(&session(), &Ledger::default()).optional_fields()
    };
    assert!(fields("anthropic/claude-opus-5-5").contains(&OptionalField::CacheControl));
    assert!(!fields("openai/gpt-6.2-sol").contains(&OptionalField::CacheControl));
}

#[test]
fn a_missing_key_is_named_and_a_found_one_hidden() {
    let route = &list(&[("OPENAI_API_KEY", "sk-1")], "").unwrap()[0];
    let config = route.config(&session(), &Ledger::default());
    let secret = route.credential_from(&config, &|_| Some("sk-1\n".into())).unwrap().unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(hidden)");
    let failure = route.credential_from(&config, &|_| None).unwrap_err();
    assert_eq!(failure.code, FailureCode::NoCredential);
    assert!(failure.message.as_str().contains("OPENAI_API_KEY"), "{:?}", failure.message);
}

#[test]
fn a_key_goes_to_its_routes_own_server_whatever_a_log_says() {
    let route = &list(&[("OPENAI_API_KEY", "sk-1")], "").unwrap()[0];
    let find = |_: &str| Some("sk-1".to_owned());
    let foreign = Config { base_url: "https://evil.example/v1".into(), ..route.config(&session(), &Ledger::default()) };
    let failure = route.credential_from(&foreign, &find).unwrap_err();
    assert_eq!(failure.code, FailureCode::NoCredential);
    assert!(failure.message.as_str().contains("https://evil.example/v1"), "{:?}", failure.message);
    let slash =
        Config { base_url: "https://api.openai.com/v1/".into(), ..route.config(&session(), &Ledger::default()) };
    assert!(route.credential_from(&slash, &find).unwrap().is_some());
    // Where there is no key, there is nothing to keep.
    let keyless = Route { key: KeySource::None, ..route.clone() };
    assert!(keyless.credential_from(&foreign, &find).unwrap().is_none());
}
