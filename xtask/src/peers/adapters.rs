//! How each agent is found, configured for a local server, asked, and asked to go on: from its own documentation and
//! help texts, 2026-11. Those in [`UNTRIED`] were never run: what stands here of them is a guess until they are, and
//! `bench/peers.md` says why.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use stele_core::Wire;

/// Where an agent runs and whom it asks.
pub struct Place {
    /// Its home: nothing of the person's own is read or written.
    pub home: PathBuf,
    /// The proxy, as `http://127.0.0.1:PORT`.
    pub origin: String,
    /// The wire.
    pub wire: Wire,
}

impl Place {
    fn versioned(&self) -> String {
        format!("{}/v1", self.origin)
    }

    fn write(&self, path: &str, content: &str) -> Result<()> {
        let path = self.home.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(path, content)?)
    }

    fn write_json(&self, path: &str, content: &Value) -> Result<()> {
        self.write(path, &serde_json::to_string_pretty(content)?)
    }
}

type Variables = Vec<(&'static str, String)>;

/// One agent.
pub struct Adapter {
    /// Its name.
    pub name: &'static str,
    /// Names of its program.
    pub programs: &'static [&'static str],
    /// The wires it is run over.
    pub wires: &'static [Wire],
    /// Writes what it reads from its home.
    pub configure: fn(&Place) -> Result<()>,
    /// Its variables, beside `HOME`, the `XDG_` ones and `PATH`.
    pub variables: fn(&Place) -> Variables,
    /// Arguments that begin a session with a prompt and end with the answer.
    pub begin: fn(&Place, &str) -> Vec<String>,
    /// Arguments that go on with the last session of the folder; nothing where that needs a person.
    pub go_on: Option<fn(&Place, &str) -> Vec<String>>,
}

/// Agents that nobody has run yet, and what stood in the way.
pub const UNTRIED: [(&str, &str); 1] =
    [("Crush", "its npm package holds no program: `install.js` fetches one from GitHub, which was out of reach")];

/// All of them, Stele first.
pub const ADAPTERS: &[Adapter] = &[
    Adapter {
        name: "Stele",
        programs: &["stele"],
        wires: &Wire::ALL,
        configure: |_| Ok(()),
        variables: |place| {
            let base_url = match place.wire {
                Wire::AnthropicMessages | Wire::Gemini => place.origin.clone(),
                Wire::OpenaiResponses | Wire::OpenaiChat => place.versioned(),
            };
            vec![
                ("STELE_HOME", place.home.join("stele").display().to_string()),
                ("STELE_WIRE", place.wire.name().to_owned()),
                ("STELE_BASE_URL", base_url),
                ("STELE_MODEL", "scripted".to_owned()),
                ("STELE_API_KEY", "none".to_owned()),
            ]
        },
        begin: |_, prompt| words(&["run", "--mode", "full", prompt]),
        go_on: Some(|_, prompt| words(&["run", "--mode", "full", "--continue", prompt])),
    },
    Adapter {
        name: "Codex CLI",
        programs: &["codex"],
        wires: &[Wire::OpenaiResponses],
        configure: |place| {
            let base_url = place.versioned();
            let provider = format!(
                "[model_providers.local]\nname = \"local\"\nbase_url = \"{base_url}\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n"
            );
            place.write(
                ".codex/config.toml",
                &format!(
                    "model = \"gpt-5\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n\n{provider}"
                ),
            )
        },
        variables: |_| vec![("OPENAI_API_KEY", "none".to_owned())],
        begin: |_, prompt| words(&["exec", "--dangerously-bypass-approvals-and-sandbox", prompt]),
        go_on: Some(|_, prompt| {
            words(&["exec", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last", prompt])
        }),
    },
    Adapter {
        name: "Claude Code",
        programs: &["claude"],
        wires: &[Wire::AnthropicMessages],
        configure: |_| Ok(()),
        variables: |place| {
            vec![
                ("ANTHROPIC_API_KEY", "none".to_owned()),
                ("ANTHROPIC_BASE_URL", place.origin.clone()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                // It refuses to work without questions for the root user, but in a sandbox.
                ("IS_SANDBOX", "1".to_owned()),
            ]
        },
        begin: |_, prompt| words(&["--model", "claude-sonnet-4-5", "--dangerously-skip-permissions", "-p", prompt]),
        go_on: Some(|_, prompt| {
            words(&["--model", "claude-sonnet-4-5", "--dangerously-skip-permissions", "--continue", "-p", prompt])
        }),
    },
    Adapter {
        name: "OpenCode",
        programs: &["opencode"],
        wires: &[Wire::AnthropicMessages, Wire::OpenaiChat],
        configure: |place| {
            let options = json!({"baseURL": place.versioned(), "apiKey": "none"});
            let provider = match place.wire {
                Wire::AnthropicMessages => json!({"anthropic": {"options": options}}),
                _ => {
                    json!({"local": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted": {}}}})
                }
            };
            let all = json!({"autoupdate": false, "share": "disabled", "provider": provider});
            place.write_json(".config/opencode/opencode.json", &all)
        },
        variables: |_| {
            vec![("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()), ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned())]
        },
        begin: |place, prompt| words(&["run", "--model", opencode_model(place), prompt]),
        go_on: Some(|place, prompt| words(&["run", "--model", opencode_model(place), "--continue", prompt])),
    },
    Adapter {
        name: "pi",
        programs: &["pi"],
        wires: &[Wire::AnthropicMessages, Wire::OpenaiChat],
        configure: |place| {
            let (api, base_url) = match place.wire {
                Wire::AnthropicMessages => ("anthropic-messages", place.origin.clone()),
                _ => ("openai-completions", place.versioned()),
            };
            let provider = json!({"baseUrl": base_url, "api": api, "apiKey": "none", "models": [{"id": "scripted"}]});
            place.write_json(".pi/agent/models.json", &json!({"providers": {"local": provider}}))
        },
        variables: |_| vec![("PI_OFFLINE", "1".to_owned()), ("PI_TELEMETRY", "0".to_owned())],
        begin: |_, prompt| words(&["--provider", "local", "--model", "scripted", "-p", prompt]),
        go_on: Some(|_, prompt| words(&["--provider", "local", "--model", "scripted", "--continue", "-p", prompt])),
    },
    Adapter {
        name: "Gemini CLI",
        programs: &["gemini"],
        wires: &[Wire::Gemini],
        configure: |place| {
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
                "privacy": {"usageStatisticsEnabled": false},
            });
            place.write_json(".gemini/settings.json", &settings)
        },
        variables: |place| {
            vec![
                ("GEMINI_API_KEY", "none".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", place.origin.clone()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ]
        },
        begin: |_, prompt| words(&["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", prompt]),
        go_on: Some(|_, prompt| {
            words(&["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--resume", "latest", "-p", prompt])
        }),
    },
    Adapter {
        name: "Qwen Code",
        programs: &["qwen"],
        wires: &[Wire::OpenaiChat],
        configure: |place| {
            place.write_json(
                ".qwen/settings.json",
                &json!({"general": {"disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}}),
            )
        },
        variables: |place| {
            vec![
                ("OPENAI_API_KEY", "none".to_owned()),
                ("OPENAI_BASE_URL", place.versioned()),
                ("OPENAI_MODEL", "scripted".to_owned()),
            ]
        },
        begin: |_, prompt| words(&["--auth-type", "openai", "--approval-mode", "yolo", "-p", prompt]),
        go_on: Some(|_, prompt| {
            words(&["--auth-type", "openai", "--approval-mode", "yolo", "--continue", "-p", prompt])
        }),
    },
    Adapter {
        name: "Kimi Code",
        programs: &["kimi"],
        wires: &[Wire::OpenaiChat],
        configure: |place| {
            let base_url = place.versioned();
            let model = "[models.scripted]\nprovider = \"local\"\nmodel = \"scripted\"\nmax_context_size = 200000\n";
            let provider =
                format!("[providers.local]\ntype = \"openai\"\nbase_url = \"{base_url}\"\napi_key = \"none\"\n");
            place.write(
                ".kimi-code/config.toml",
                &format!("default_model = \"scripted\"\ntelemetry = false\n\n{model}\n{provider}"),
            )
        },
        variables: |_| vec![("KIMI_DISABLE_TELEMETRY", "1".to_owned())],
        begin: |_, prompt| words(&["-p", prompt]),
        go_on: Some(|_, prompt| words(&["--continue", "-p", prompt])),
    },
    Adapter {
        name: "Crush",
        programs: &["crush"],
        wires: &[Wire::OpenaiChat],
        configure: |place| {
            let model =
                json!({"id": "scripted", "name": "scripted", "context_window": 200_000, "default_max_tokens": 8_000});
            let provider =
                json!({"type": "openai-compat", "base_url": place.versioned(), "api_key": "none", "models": [model]});
            let chosen = json!({"model": "scripted", "provider": "local"});
            let all = json!({
                "providers": {"local": provider},
                "models": {"large": chosen, "small": chosen},
                "options": {"disable_provider_auto_update": true, "disable_metrics": true},
            });
            place.write_json(".config/crush/crush.json", &all)
        },
        variables: |_| {
            vec![("CRUSH_DISABLE_METRICS", "1".to_owned()), ("CRUSH_DISABLE_PROVIDER_AUTO_UPDATE", "1".to_owned())]
        },
        begin: |_, prompt| words(&["run", "--quiet", prompt]),
        go_on: Some(|_, prompt| words(&["run", "--quiet", "--continue", prompt])),
    },
    Adapter {
        name: "DeepSeek Harness",
        programs: &["dsh"],
        wires: &[Wire::OpenaiChat],
        configure: |_| Ok(()),
        variables: |place| {
            vec![
                ("DEEPSEEK_API_KEY", "none".to_owned()),
                ("DEEPSEEK_BASE_URL", place.versioned()),
                ("DSH_PERMISSION_MODE", "danger-full-access".to_owned()),
            ]
        },
        begin: |_, prompt| words(&["--profile", "headless", prompt]),
        // Its headless profile begins a session each time.
        go_on: None,
    },
];

fn opencode_model(place: &Place) -> &'static str {
    if place.wire == Wire::AnthropicMessages { "anthropic/claude-sonnet-4-5" } else { "local/scripted" }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The program of an adapter: in the folders that were named, else in those of `PATH`.
pub fn find(adapter: &Adapter, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().cloned().chain(std::env::split_paths(&path));
    folders.flat_map(|folder| adapter.programs.iter().map(move |name| folder.join(name))).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_led_to_the_proxy_and_keeps_to_its_home() {
        for adapter in ADAPTERS {
            for wire in adapter.wires {
                let home = tempfile::tempdir().unwrap();
                let place =
                    Place { home: home.path().to_owned(), origin: "http://127.0.0.1:4711".to_owned(), wire: *wire };
                (adapter.configure)(&place).unwrap();
                let files = std::process::Command::new("grep")
                    .args(["-rl", "127.0.0.1:4711"])
                    .arg(home.path())
                    .output()
                    .unwrap();
                let led = !files.stdout.is_empty()
                    || (adapter.variables)(&place).iter().any(|(_, value)| value.contains("127.0.0.1:4711"));
                assert!(led, "{}", adapter.name);
                let begin = (adapter.begin)(&place, "do it");
                assert!(begin.contains(&"do it".to_owned()), "{}", adapter.name);
                if let Some(go_on) = adapter.go_on {
                    let go_on = go_on(&place, "do it");
                    assert!(go_on.contains(&"do it".to_owned()), "{}", adapter.name);
                    assert_ne!(begin, go_on, "{}", adapter.name);
                }
            }
        }
    }

    #[test]
    fn a_program_that_cannot_be_run_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stele"), "").unwrap();
        let stele = &ADAPTERS[0];
        assert_ne!(find(stele, &[folder.path().to_owned()]), Some(folder.path().join("stele")));
    }
}
