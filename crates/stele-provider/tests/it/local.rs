//! Servers on this machine.

use std::time::Duration;

use stele_provider::{LocalServer, probe};

use crate::server::{Step, serve};

fn at(name: &str, port: u16) -> LocalServer {
    LocalServer { name: name.to_owned(), base_url: format!("http://127.0.0.1:{port}/v1") }
}

fn json(body: &str) -> Vec<Step> {
    vec![Step::send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))]
}

#[tokio::test]
async fn only_servers_that_name_their_models_are_found() {
    let (model_server, seen) =
        serve(json(r#"{"object":"list","data":[{"id":"qwen","object":"model"},{"id":"phi"}]}"#)).await;
    let (web_server, _seen) = serve(json("<html>hello</html>")).await;
    let (silent, _seen) = serve(vec![Step::UntilClosed]).await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let servers = [at("silent", silent), at("models", model_server), at("web", web_server), at("nobody", nobody)];
    let found = probe(&servers, Duration::from_secs(1)).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].name, "models");
    assert_eq!(found[0].models, ["qwen", "phi"]);
    assert!(seen.await.unwrap()[0].head.starts_with("GET /v1/models HTTP/1.1\r\n"));
    let route = found[0].route().unwrap();
    assert_eq!((route.name.as_str(), route.model.as_str()), ("local", "qwen"));
    let session = stele_core::SessionId::new("0197f0aa-0000-7000-8000-000000000001").unwrap();
    assert!(route.credential(&route.config(&session, &stele_provider::Ledger::default())).unwrap().is_none());
}
