//! `stele models`: routes that can be asked, and what is known of models.

use serde::Serialize;
use stele_core::Price;
use stele_provider::{KeySource, Model, Route, list_price, models};

use crate::args::ListArgs;
use crate::error::Result;
use crate::output;
use crate::render::inert::{one_line, shorten};
use crate::render::json;
use crate::render::money::{money, short};
use crate::setup::Setup;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Row<'a> {
    Route {
        name: &'a str,
        wire: stele_core::Wire,
        base_url: &'a str,
        model: &'a str,
        key_env: Option<&'a str>,
        price: Option<Price>,
    },
    Model {
        id: &'a str,
        vendor: &'a str,
        context_window: Option<u64>,
        max_output: Option<u64>,
        images: Option<bool>,
        min_cache_tokens: Option<u64>,
        price: Option<Price>,
        page: &'a str,
        read: &'a str,
    },
}

/// Lists routes, then models.
pub fn main(setup: &Setup, args: &ListArgs) -> Result<u8> {
    let routes = setup.routes()?;
    let text = if args.json {
        let routes = routes.iter().map(|route| json::line(&route_row(route)));
        routes.chain(models().iter().map(|model| json::line(&model_row(model)))).collect::<Vec<_>>().join("\n")
    } else {
        table(&routes, setup)
    };
    output::print(&text)?;
    Ok(0)
}

fn route_row(route: &Route) -> Row<'_> {
    let key_env = match &route.key {
        KeySource::Env(name) => Some(name.as_str()),
        KeySource::None => None,
    };
    Row::Route {
        name: &route.name,
        wire: route.wire,
        base_url: &route.base_url,
        model: &route.model,
        key_env,
        price: route.price(),
    }
}

fn model_row(model: &Model) -> Row<'_> {
    Row::Model {
        id: &model.id,
        vendor: &model.vendor,
        context_window: model.context_window,
        max_output: model.max_output,
        images: model.images,
        min_cache_tokens: model.min_cache_tokens,
        price: list_price(&model.id).map(|row| row.price),
        page: &model.page,
        read: &model.read,
    }
}

fn table(routes: &[Route], setup: &Setup) -> String {
    let style = setup.look.stdout();
    let mut lines = vec![style.bold("Routes (the first is the default; --model ROUTE or ROUTE/MODEL takes another)")];
    if routes.is_empty() {
        lines.push("  none: set a vendor's key, or STELE_WIRE, STELE_BASE_URL and STELE_MODEL".to_owned());
    }
    for route in routes {
        let name = shorten(&one_line(&route.name), 14);
        let model = shorten(&one_line(&route.model), 26);
        lines.push(format!("  {name:<15}{model:<27}{:<20}{}", route.wire.to_string(), one_line(&route.base_url)));
    }
    lines.push(String::new());
    lines.push(style.bold("Models (US dollars for a million tokens; what no page says is ?)"));
    lines.push(
        style.dim(&format!("  {:<28}{:>8}{:>8}{:>9}{:>9}{:>9}", "model", "window", "output", "in", "cached", "out")),
    );
    for model in models() {
        let price = list_price(&model.id).map(|row| row.price).unwrap_or_default();
        let tokens = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), short);
        let dollars =
            |price: Option<u64>| price.map_or_else(|| "?".to_owned(), |micros| money(stele_core::Micros(micros)));
        lines.push(format!(
            "  {:<28}{:>8}{:>8}{:>9}{:>9}{:>9}",
            shorten(&model.id, 27),
            tokens(model.context_window),
            tokens(model.max_output),
            dollars(price.input),
            dollars(price.cache_read),
            dollars(price.output)
        ));
    }
    lines.join("\n")
}
