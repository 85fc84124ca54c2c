//! Where routes come from, in this order: the `STELE_*` variables for one route alone, the `[routes.NAME]` tables of the
//! configuration, and the vendors' usual variables (`vendors.toml`).

use std::collections::BTreeMap;

use stele_core::Wire;

use super::error::ENVIRONMENT;
use super::{KeySource, Route, RouteConfig, RouteError, Vendor, vendors};
use crate::http;

/// Headers that are not a route's to set: they carry secrets or belong to the transport.
const RESERVED_HEADERS: [&str; 10] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "cookie",
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
];

/// Every route there is, the one that counts when none is named first. The list may be empty
/// ([`RouteError::None`] says what to do then).
///
/// # Errors
/// A route is incomplete or names something that cannot be used; the message says where it is written.
pub fn routes(
    lookup: &dyn Fn(&str) -> Option<String>,
    configured: &BTreeMap<String, RouteConfig>,
) -> Result<Vec<Route>, RouteError> {
    let set = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let mut routes = Vec::new();
    routes.extend(environment(&set)?);
    for (name, config) in configured {
        routes.push(from_config(name, config, &set)?);
    }
    for vendor in vendors().iter().filter(|vendor| !configured.contains_key(&vendor.name)) {
        routes.extend(from_vendor(vendor, &set)?);
    }
    Ok(routes)
}

type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// `STELE_WIRE`, `STELE_BASE_URL`, `STELE_MODEL`, `STELE_API_KEY`: one route alone.
fn environment(set: &Lookup<'_>) -> Result<Option<Route>, RouteError> {
    let (wire, base_url, model) = (set("STELE_WIRE"), set("STELE_BASE_URL"), set("STELE_MODEL"));
    let key = set("STELE_API_KEY").map(|_| KeySource::Env("STELE_API_KEY".to_owned()));
    let invalid = |problem: String| RouteError::Invalid { route: ENVIRONMENT.to_owned(), problem };
    if wire.is_none() && base_url.is_none() {
        if model.is_none() && key.is_none() {
            return Ok(None);
        }
        let problem = "STELE_MODEL and STELE_API_KEY need STELE_WIRE or STELE_BASE_URL beside them; \
                       to choose another model of a vendor whose key is set, use --model NAME or `model = \"NAME\"` in config.toml";
        return Err(invalid(problem.to_owned()));
    }
    let Some(model) = model else {
        return Err(invalid("STELE_MODEL is missing; set it to the model to ask".to_owned()));
    };
    let wire = match wire {
        Some(wire) => wire.parse::<Wire>().map_err(|problem| invalid(format!("STELE_WIRE: {problem}")))?,
        None => Wire::OpenaiChat,
    };
    // A wire that many speak says nothing of who is to read the prompt.
    let own = vendors().iter().find(|vendor| vendor.owns_wire && vendor.wire == wire && base_url.is_none());
    let Some(base_url) = base_url.or_else(|| own.map(|vendor| vendor.base_url.clone())) else {
        let problem = format!(
            "STELE_BASE_URL is missing, and many servers speak {wire}; set it to the one you mean, such as https://api.openai.com/v1"
        );
        return Err(invalid(problem));
    };
    // A vendor's usual key goes to that vendor's own server only.
    let usual = || Some(KeySource::Env(first_set(&own?.key_env, set)?));
    let key = key.or_else(usual).unwrap_or(KeySource::None);
    let route = Route { key, ..Route::new("env", wire, &base_url, &model) };
    check(route, "STELE_BASE_URL").map(Some)
}

fn from_config(name: &str, config: &RouteConfig, set: &Lookup<'_>) -> Result<Route, RouteError> {
    let place = format!("routes.{name}");
    let vendor = vendors().iter().find(|vendor| vendor.name == name);
    let missing = |field: &str| RouteError::Invalid { route: place.clone(), problem: format!("{field} is missing") };
    let wire = config.wire.or(vendor.map(|vendor| vendor.wire)).ok_or_else(|| missing("wire"))?;
    let theirs = || vendor.map(|vendor| vendor_base_url(vendor, set));
    let base_url = config.base_url.clone().or_else(theirs).ok_or_else(|| missing("base_url"))?;
    let model = config.model.clone().or_else(|| vendor?.model.clone()).filter(|model| !model.trim().is_empty());
    let model = model.ok_or_else(|| missing("model"))?;
    let key = match &config.key_env {
        Some(variable) if variable.trim().is_empty() => KeySource::None,
        Some(variable) => KeySource::Env(variable.trim().to_owned()),
        // A vendor's usual key goes to that vendor's own server only.
        None if config.base_url.is_none() => {
            let usual =
                vendor.and_then(|vendor| first_set(&vendor.key_env, set).or_else(|| vendor.key_env.first().cloned()));
            usual.map_or(KeySource::None, KeySource::Env)
        }
        None => KeySource::None,
    };
    let route = Route {
        key,
        headers: config.headers.clone(),
        parameters: config.parameters.clone(),
        marks: config.cache.marks,
        own_images: config.images,
        ttl: config.cache.ttl,
        own_price: config.price,
        ..Route::new(name, wire, &base_url, &model)
    };
    check(route, &place)
}

fn from_vendor(vendor: &Vendor, set: &Lookup<'_>) -> Result<Option<Route>, RouteError> {
    let (Some(variable), Some(model)) = (first_set(&vendor.key_env, set), &vendor.model) else {
        return Ok(None);
    };
    let route = Route::new(&vendor.name, vendor.wire, &vendor_base_url(vendor, set), model);
    let route = Route { key: KeySource::Env(variable), ..route };
    check(route, vendor.base_url_env.as_deref().unwrap_or(&vendor.name)).map(Some)
}

fn vendor_base_url(vendor: &Vendor, set: &Lookup<'_>) -> String {
    vendor.base_url_env.as_deref().and_then(set).unwrap_or_else(|| vendor.base_url.clone())
}

fn first_set(variables: &[String], set: &Lookup<'_>) -> Option<String> {
    variables.iter().find(|variable| set(variable).is_some()).cloned()
}

/// Refuses what would fail, or leak, only when it is sent.
fn check(route: Route, place: &str) -> Result<Route, RouteError> {
    if let Err(problem) = http::check_base_url(&route.base_url) {
        return Err(RouteError::BaseUrl { route: place.to_owned(), problem });
    }
    for name in route.headers.keys() {
        if RESERVED_HEADERS.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            let problem = format!("the header {name} cannot be set; a key belongs in the variable that key_env names");
            return Err(RouteError::Invalid { route: place.to_owned(), problem });
        }
    }
    Ok(route)
}
