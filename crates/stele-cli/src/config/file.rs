//! A TOML file as a list of keys and values with their lines.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use stele_core::Price;
use stele_provider::RouteConfig;

use super::inputs::FileText;
use super::keys::{self, Kind};
use super::layers::{Entry, Raw};
use super::{ConfigError, Source};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The machine's administrator.
    Managed,
    /// The person.
    User,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Keys and values, in the file's order.
    pub(super) entries: Vec<Entry>,
    /// `[routes.NAME]`.
    pub(super) routes: Vec<(String, RouteConfig)>,
    /// `[prices."MODEL"]`.
    pub(super) prices: Vec<(String, Price)>,
}

/// Reads a file.
pub(super) fn parse(file: &FileText, owner: Owner) -> Result<Parsed, ConfigError> {
    let reader = Reader { file, owner };
    let table = DeTable::parse(&file.text).map_err(|error| ConfigError::Syntax {
        at: reader.at(error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })?;
    let mut parsed = Parsed::default();
    reader.table(table.get_ref(), &[], &mut parsed)?;
    Ok(parsed)
}

struct Reader<'a> {
    file: &'a FileText,
    owner: Owner,
}

impl Reader<'_> {
    fn at(&self, offset: usize) -> Source {
        let line = 1 + self.file.text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let path = self.file.path.clone();
        match self.owner {
            Owner::Managed => Source::Managed { path, line },
            Owner::User => Source::File { path, line },
        }
    }

    fn table(&self, table: &DeTable<'_>, above: &[&str], parsed: &mut Parsed) -> Result<(), ConfigError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let path: Vec<&str> = above.iter().copied().chain([name.get_ref().as_ref()]).collect();
            let at = self.at(name.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if keys::is_table(&path) => {
                    if let ["routes", name] = path.as_slice() {
                        self.placed(&path, &at)?;
                        parsed.routes.push(((*name).to_owned(), self.route(name, value)?));
                    }
                    if let ["prices", model] = path.as_slice() {
                        self.placed(&path, &at)?;
                        parsed.prices.push(((*model).to_owned(), self.price(model, value)?));
                    }
                    self.table(inner, &path, parsed)?;
                }
                other => self.entry(&path, other, value.span(), at, parsed)?,
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        path: &[&str],
        value: &DeValue<'_>,
        span: Range<usize>,
        at: Source,
        parsed: &mut Parsed,
    ) -> Result<(), ConfigError> {
        let name = path.join(".");
        let Some(key) = keys::find(path) else {
            if let Some(bound) = keys::fixed_limit(&name) {
                let problem = format!("cannot be set; it is always {}", bound.default);
                return Err(ConfigError::Misplaced { at, key: name, problem });
            }
            if keys::is_table(path) {
                return Err(wrong(at, name, "a table", value));
            }
            let nearest = keys::nearest(&name);
            return Err(ConfigError::UnknownKey { at: Some(at), key: name, nearest });
        };
        self.placed(path, &at)?;
        let raw = match (key.kind, value) {
            (Kind::Text, DeValue::String(text)) => Raw::Text(text.to_string()),
            (Kind::Text, other) => return Err(wrong(at, name, "a text", other)),
            (Kind::Switch, DeValue::Boolean(set)) => Raw::Switch(*set),
            (Kind::Switch, other) => return Err(wrong(at, name, "true or false", other)),
            (Kind::Limit(_), DeValue::Integer(number)) => match u64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Raw::Number(number),
                Err(_) => return Err(wrong(at, name, "a whole number, not below zero", value)),
            },
            (Kind::Limit(_), other) => return Err(wrong(at, name, "a whole number", other)),
            (Kind::Texts, DeValue::Array(items)) => {
                let texts = items.iter().map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok((text.to_string(), line(&self.at(item.span().start)))),
                    other => Err(wrong(self.at(item.span().start), name.clone(), "a list of texts", other)),
                });
                Raw::Texts(texts.collect::<Result<_, _>>()?)
            }
            (Kind::Texts, other) => return Err(wrong(at, name, "a list of texts", other)),
            // The route as a whole has been read already.
            (Kind::Part, _) => Raw::Shown(self.file.text.get(span).unwrap_or_default().to_owned()),
        };
        parsed.entries.push(Entry { key: name, value: raw, source: at });
        Ok(())
    }

    /// The machine's policy only narrows, and nothing else bounds the mode.
    fn placed(&self, path: &[&str], at: &Source) -> Result<(), ConfigError> {
        let key = path.join(".");
        let narrows = matches!(key.as_str(), keys::DENY | keys::HIGHEST_MODE);
        let problem = match self.owner {
            Owner::Managed if !narrows => {
                "cannot be set by the machine's policy: it takes `highest_mode` and `permissions.deny`"
            }
            Owner::User if key == keys::HIGHEST_MODE => "is set by the machine's policy alone; set `mode`",
            Owner::Managed | Owner::User => return Ok(()),
        };
        Err(ConfigError::Misplaced { at: at.clone(), key, problem: problem.to_owned() })
    }

    fn route(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<RouteConfig, ConfigError> {
        // `ROUTE/MODEL` names a model, and a dot separates keys.
        if name.is_empty()
            || !name.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
        {
            return Err(ConfigError::Value {
                at: self.at(value.span().start),
                key: format!("routes.{name}"),
                problem: "is no name for a route: it takes letters, digits, - and _".to_owned(),
            });
        }
        self.known(value.get_ref(), &["routes", name])?;
        let route =
            RouteConfig::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| ConfigError::Value {
                at: self.at(error.span().map_or(value.span().start, |span| span.start)),
                key: format!("routes.{name}"),
                problem: problem(error.message()),
            })?;
        if let Some(price) = &route.price {
            let price_at = match value.get_ref() {
                DeValue::Table(table) => table.iter().find(|(key, _)| key.get_ref() == "price"),
                _ => None,
            };
            let start = price_at.map_or(value.span().start, |(key, _)| key.span().start);
            self.whole(price, format!("routes.{name}.price"), start)?;
        }
        Ok(route)
    }

    /// A price without one of its two main figures would price nothing.
    fn whole(&self, price: &Price, key: String, start: usize) -> Result<(), ConfigError> {
        if price.input.is_some() && price.output.is_some() {
            return Ok(());
        }
        Err(ConfigError::Value {
            at: self.at(start),
            key,
            problem: "needs `input` and `output`, in millionths of a dollar for a million tokens".to_owned(),
        })
    }

    fn price(&self, model: &str, value: &Spanned<DeValue<'_>>) -> Result<Price, ConfigError> {
        self.known(value.get_ref(), &["prices", model])?;
        let (key, start) = (format!("prices.{model:?}"), value.span().start);
        let price = Price::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| ConfigError::Value {
            at: self.at(error.span().map_or(start, |span| span.start)),
            key: key.clone(),
            problem: problem(error.message()) + ", in millionths of a dollar for a million tokens",
        })?;
        self.whole(&price, key, start)?;
        Ok(price)
    }

    /// Every key below is known: checked first, since it names the nearest one.
    fn known(&self, value: &DeValue<'_>, above: &[&str]) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value else { return Ok(()) };
        for (name, value) in table {
            let path: Vec<&str> = above.iter().copied().chain([name.get_ref().as_ref()]).collect();
            if keys::is_table(&path) {
                self.known(value.get_ref(), &path)?;
            } else if keys::find(&path).is_none() {
                let key = path.join(".");
                let nearest = keys::nearest(&key);
                return Err(ConfigError::UnknownKey { at: Some(self.at(name.span().start)), key, nearest });
            }
        }
        Ok(())
    }
}

/// What is wrong with a value, in the words of the file: the reader's own name the types of the program.
fn problem(message: &str) -> String {
    const TYPES: [(&str, &str); 5] = [
        ("u64", "a whole number, not below zero"),
        ("f64", "a number"),
        ("a string", "a text"),
        ("a boolean", "true or false"),
        ("a map", "a table"),
    ];
    let taken = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, expected)) = taken.and_then(|taken| taken.split_once(", expected ")) else {
        return format!("is not right: {message}");
    };
    let expected = TYPES.iter().find(|(name, _)| *name == expected).map_or(expected, |(_, words)| words);
    format!("takes {expected}, found {found}")
}

fn line(at: &Source) -> usize {
    match at {
        Source::Managed { line, .. } | Source::File { line, .. } => *line,
        Source::Default | Source::Environment(_) | Source::Flag(_) => 0,
    }
}

fn wrong(at: Source, key: String, expected: &str, found: &DeValue<'_>) -> ConfigError {
    ConfigError::Value { at, key, problem: format!("takes {expected}, found {}", found.type_str()) }
}
