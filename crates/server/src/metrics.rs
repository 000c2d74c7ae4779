//! What is counted: one list, from which come the page at /metrics, `beluga counters` and the table in docs/operating.md.

mod http;

pub fn markdown() -> String {
    String::new()
}
