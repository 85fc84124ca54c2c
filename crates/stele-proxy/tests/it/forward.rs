//! What goes through unchanged.

use std::io::Write as _;

use serde_json::json;
use stele_core::Hash;
use stele_proxy::{Ending, Notice};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::support::{dechunk, exchange, noise, post, proxy, read_request, server, split};

/// A server that keeps each request and answers with these bytes.
async fn keeping(answer: Vec<u8>) -> (std::net::SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let (sender, received) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let (sender, answer) = (sender.clone(), answer.clone());
        async move {
            let request = read_request(&mut stream).await;
            sender.send(request).unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    })
    .await;
    (address, received)
}

#[tokio::test]
async fn method_path_query_headers_and_bodies_arrive_as_they_were_sent() {
    let answer =
        b"HTTP/1.1 418 Odd\r\nX-Own: 1\r\nContent-Type: text/x\r\nX-Own: 2\r\nContent-Length: 4\r\n\r\n\x00\xffab";
    let (address, mut received) = keeping(answer.to_vec()).await;
    let running = proxy(&format!("http://{address}/base")).await;
    let body = noise(300);
    let head = "PATCH /base//a/../b%2Fc?key=k&x=%20 HTTP/1.1\r\nHost: localhost:8787\r\nX-Api-Key: secret\r\n\
                Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nAccept: a\r\nAccept: b\r\nContent-Length: 300\r\n\r\n";
    let (head, rest) = {
        let bytes = exchange(running.address, &[head.as_bytes(), &body].concat()).await;
        let (head, rest) = split(&bytes);
        (head, rest.to_vec())
    };
    assert!(head.starts_with("HTTP/1.1 418"), "{head}");
    let names: Vec<&str> = head.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "X-Own").count(), 2, "{head}");
    assert!(names.contains(&"Content-Type") && !head.contains("date"), "{head}");
    assert_eq!(rest, b"\x00\xffab");
    let request = received.recv().await.unwrap();
    let (head, rest) = split(&request);
    assert!(head.starts_with("PATCH /base//a/../b%2Fc?key=k&x=%20 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nHost: {address}")) && !head.contains("localhost"), "{head}");
    for kept in ["X-Api-Key: secret", "Accept: a\r\n", "Accept: b", "Content-Length: 300"] {
        assert!(head.contains(kept), "{kept}: {head}");
    }
    for dropped in ["hop", "keep-alive", "connection", "te:"] {
        assert!(!head.to_lowercase().contains(dropped), "{dropped}: {head}");
    }
    assert_eq!(rest, body);
    assert_eq!(running.finish().await, []);
}

#[tokio::test]
async fn chunked_requests_and_answers_stay_whole() {
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
    let (address, mut received) = keeping(answer.to_vec()).await;
    let running = proxy(&format!("http://{address}")).await;
    let request =
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                    10\r\n{\"model\":\"m\",\"me\r\n10\r\nssages\":[]}     \r\n0\r\n\r\n";
    let bytes = exchange(running.address, request).await;
    let (_, body) = split(&bytes);
    assert_eq!(dechunk(body), (b"abcd".to_vec(), true));
    let request = received.recv().await.unwrap();
    let (_, body) = split(&request);
    assert_eq!(dechunk(body), (b"{\"model\":\"m\",\"messages\":[]}     ".to_vec(), true));
    let recorded = running.finish().await;
    assert_eq!((recorded.len(), recorded[0].body.len, recorded[0].ending), (1, 32, Ending::Whole));
    assert_eq!(recorded[0].body.hash, Hash::of(b"{\"model\":\"m\",\"messages\":[]}     "));
}

#[tokio::test]
async fn packed_bodies_are_left_as_they_are_and_read_beside() {
    let usage = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let packed = gzip(usage.as_bytes());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    let (address, mut received) = keeping([head.as_bytes(), &packed].concat()).await;
    let running = proxy(&format!("http://{address}/v1")).await;
    let body = gzip(json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}).to_string().as_bytes());
    let bytes = exchange(running.address, &post("/v1/chat/completions", "content-encoding: gzip\r\n", &body)).await;
    assert_eq!(split(&bytes).1, packed);
    assert_eq!(split(&received.recv().await.unwrap()).1, body);
    let recorded = running.finish().await;
    assert_eq!(recorded[0].segments[0].label, "message 1 (user)");
    let usage = recorded[0].usage.unwrap();
    assert_eq!((usage.fresh, usage.cache_read, usage.output), (Some(5), Some(4), Some(2)));
}

#[tokio::test]
async fn every_content_encoding_of_an_answer_is_read_beside_the_stream() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    deflate.write_all(stream.as_bytes()).unwrap();
    // "data: …" as one stored brotli block would need an encoder; the smallest stream is a meta-block without compression.
    let length = u32::try_from(stream.len() - 1).unwrap();
    let brotli = {
        // Window 16 bits (0), not last (0), four nibbles (00), length, uncompressed (1): RFC 7932, section 9.
        let bits: u32 = (length << 4) | (1 << 20);
        let mut bytes = vec![bits as u8, (bits >> 8) as u8, (bits >> 16) as u8];
        bytes.extend_from_slice(stream.as_bytes());
        bytes.push(3);
        bytes
    };
    for (name, packed) in [
        ("deflate", deflate.finish().unwrap()),
        ("zstd", zstd::bulk::compress(stream.as_bytes(), 1).unwrap()),
        ("br", brotli),
        ("identity", stream.as_bytes().to_vec()),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {}\r\n\r\n", packed.len());
        let (address, _received) = keeping([head.as_bytes(), &packed].concat()).await;
        let running = proxy(&format!("http://{address}/v1")).await;
        let bytes = exchange(running.address, &post("/v1/chat/completions", "", br#"{"messages":[]}"#)).await;
        assert_eq!(split(&bytes).1, packed, "{name}");
        let usage = running.finish().await[0].usage;
        assert_eq!(usage.and_then(|usage| usage.fresh), Some(9), "{name}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_is_answered_until_the_connection_closes() {
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
    let (address, mut received) = keeping(answer.to_vec()).await;
    let running = proxy(&format!("http://{address}")).await;
    let bytes =
        exchange(running.address, b"POST /v1/messages HTTP/1.0\r\nContent-Length: 15\r\n\r\n{\"messages\":[]}").await;
    let (head, body) = split(&bytes);
    assert!(head.starts_with("HTTP/1.0 200") && !head.to_lowercase().contains("chunked"), "{head}");
    assert_eq!(body, b"abcd");
    let request = received.recv().await.unwrap();
    let (head, body) = split(&request);
    assert!(head.starts_with("POST /v1/messages HTTP/1.1") && head.to_lowercase().contains("host: "), "{head}");
    assert_eq!(body, b"{\"messages\":[]}");
    assert_eq!(running.finish().await.len(), 1);
}

#[tokio::test]
async fn a_body_of_50_mb_goes_through_and_is_recorded() {
    let (address, mut received) = keeping(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec()).await;
    let mut running = proxy(&format!("http://{address}")).await;
    let text = "x".repeat(50 * 1024 * 1024);
    let body = format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}").into_bytes();
    let bytes = exchange(running.address, &post("/v1/messages", "", &body)).await;
    assert_eq!(split(&bytes).1, b"{}");
    let request = received.recv().await.unwrap();
    assert!(split(&request).1 == body, "the body arrives byte for byte");
    let Notice::Recorded { prompt_bytes, .. } = running.notice().await else { panic!("it is recorded") };
    assert!(prompt_bytes > text.len() as u64);
    assert_eq!(running.finish().await[0].body.hash, Hash::of(&body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_64_mb_is_byte_identical_and_piece_by_piece() {
    const PIECE: usize = 256 * 1024;
    const PIECES: usize = 256;
    let (go, gone) = mpsc::channel::<()>(1);
    let gone = std::sync::Arc::new(tokio::sync::Mutex::new(gone));
    let address = server(move |mut stream| {
        let gone = std::sync::Arc::clone(&gone);
        async move {
            read_request(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
            let piece = noise(PIECE);
            for number in 0..PIECES {
                // The next piece is sent only once the client has the one before: nothing may be held back.
                gone.lock().await.recv().await.unwrap();
                let mut piece = piece.clone();
                piece[..8].copy_from_slice(&(number as u64).to_le_bytes());
                stream.write_all(format!("{PIECE:x}\r\n").as_bytes()).await.unwrap();
                stream.write_all(&piece).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
    })
    .await;
    let running = proxy(&format!("http://{address}")).await;
    let mut client = TcpStream::connect(running.address).await.unwrap();
    client.write_all(b"POST /v1/messages HTTP/1.0\r\nContent-Length: 15\r\n\r\n{\"messages\":[]}").await.unwrap();
    // The head comes before the first piece of the body does.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let expect = noise(PIECE);
    let mut piece = vec![0; PIECE];
    for number in 0..PIECES {
        go.send(()).await.unwrap();
        client.read_exact(&mut piece).await.unwrap();
        assert_eq!(piece[..8], (number as u64).to_le_bytes());
        assert!(piece[8..] == expect[8..], "piece {number}");
    }
    assert_eq!(client.read(&mut piece).await.unwrap(), 0);
    assert_eq!(running.finish().await[0].ending, Ending::Whole);
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request_and_replaced_when_the_server_closed_it() {
    let (sender, mut served) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            // Two requests on each connection, then the server closes it.
            for number in 0..2 {
                if read_request(&mut stream).await.is_empty() {
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
                sender.send(number).unwrap();
            }
            stream.shutdown().await.unwrap();
        }
    })
    .await;
    let running = proxy(&format!("http://{address}")).await;
    let mut client = TcpStream::connect(running.address).await.unwrap();
    for expect in [0, 1, 0, 1] {
        client.write_all(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nx") {
            answer.push(client.read_u8().await.unwrap());
        }
        assert_eq!(served.recv().await.unwrap(), expect);
    }
    running.finish().await;
}
