//! The subset of HTTP that a collector of metrics needs: GET of one page, persistent connections.

/// Maximum length of a request's head. A longer one is refused.
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// The request is incomplete.
    More,
    /// The length of the request, the response, and whether to close the connection afterwards.
    Answer { length: usize, response: Vec<u8>, close: bool },
}

/// Parses the first request in `input` and returns its response. `page` generates the text of /metrics.
pub fn answer(input: &[u8], page: impl FnOnce() -> String) -> Cut {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() <= HEAD_BYTES_MAX => return Cut::More,
        Ok(httparse::Status::Partial) => return refused(input.len(), "431 Request Header Fields Too Large"),
        Err(_) => return refused(input.len(), "400 Bad Request"),
    };
    let header = |name: &str| request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    if header("content-length").is_some_and(|v| v != b"0") || header("transfer-encoding").is_some() {
        // Bodies are not read here, so bytes behind the head could not be told from the next request.
        return refused(input.len(), "413 Content Too Large");
    }
    let wishes_close = header("connection").is_some_and(|v| v.eq_ignore_ascii_case(b"close"));
    let close = wishes_close || request.version == Some(0);
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    let (status, body) = match (request.method.unwrap_or_default(), path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", page()),
        ("GET" | "HEAD", "/") => ("200 OK", "Beluga. The counters are at /metrics\n".to_string()),
        ("GET" | "HEAD", _) => ("404 Not Found", "not found; the counters are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "only GET\n".to_string()),
    };
    let with_body = request.method != Some("HEAD");
    Cut::Answer { length, response: response(status, &body, with_body, close), close }
}

fn refused(length: usize, status: &str) -> Cut {
    Cut::Answer { length, response: response(status, &format!("{status}\n"), true, true), close: true }
}

fn response(status: &str, body: &str, with_body: bool, close: bool) -> Vec<u8> {
    let connection = if close { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    if with_body {
        bytes.extend_from_slice(body.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(input: &str) -> (String, bool) {
        match answer(input.as_bytes(), || "beluga_x 1\n".into()) {
            Cut::Answer { response, close, .. } => (String::from_utf8(response).unwrap(), close),
            Cut::More => panic!("more wanted: {input}"),
        }
    }

    #[test]
    fn the_counters_are_at_metrics() {
        let (response, close) = text("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nbeluga_x 1\n"),
            "{response}"
        );
        assert!(response.contains("Content-Length: 11\r\n") && !close);
        let (response, _) = text("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(response.contains("Content-Length: 11\r\n") && response.ends_with("\r\n\r\n"));
    }

    #[test]
    fn other_requests_are_refused_politely() {
        assert!(text("GET /x HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404"));
        assert!(text("POST /metrics HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 405"));
        assert!(text("*1\r\n$4\r\nPING\r\n").0.starts_with("HTTP/1.1 400"));
        let (response, close) = text("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        assert!(response.starts_with("HTTP/1.1 413") && close);
        assert!(text("GET / HTTP/1.0\r\n\r\n").1, "HTTP/1.0 closes");
        assert!(text("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").1);
    }

    #[test]
    fn a_request_may_come_in_pieces_and_may_be_followed_by_another() {
        let whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for cut in 0..whole.len() {
            assert_eq!(answer(&whole.as_bytes()[..cut], String::new), Cut::More, "{cut}");
        }
        let two = format!("{whole}{whole}");
        assert!(matches!(answer(two.as_bytes(), String::new), Cut::Answer { length, .. } if length == whole.len()));
        let endless = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(HEAD_BYTES_MAX));
        assert!(text(&endless).0.starts_with("HTTP/1.1 431"));
    }
}
