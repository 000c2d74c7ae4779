//! PolarDB-X's private protocol 2.0 (XRPC) over `query`. Start with README.md beside this crate.
#![forbid(unsafe_code)]

pub mod frame;
pub mod proto;

pub mod message;

pub mod encode;

pub mod auth;

mod connection;
mod digests;
mod door;
mod errors;
mod execute;
mod identity;
mod liveness;
mod options;
mod pending_answer;
mod plan_translation;
mod prepared_text;
mod protocol_detection;
mod runtime_settings;
mod session;
mod session_control;
mod session_handle;
mod session_pool;
mod session_settings;
mod shared;
mod statement;
mod stats;

/// The entry points of the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzed {
    pub use crate::protocol_detection::{DetectedProtocol, detect};

    use sql_mysql::batch::Batch;
    use sql_mysql::charset::Results;
    use sql_mysql::{Outcome, Session};

    use crate::encode::row;
    use crate::message::plan::Plan;
    use crate::message::request::ExecPlan;

    /// Handles a payload of EXEC_PLAN_READ, and the rows that it returns.
    pub fn plan(sql: &mut Session, payload: &[u8]) {
        let Ok(request) = ExecPlan::read(payload) else { return };
        let Some(bytes) = request.plan_bytes else { return };
        let plan = Plan::read(bytes).expect("it was read as a part of the request");
        let meaning = crate::digests::Meaning::unnamed(bytes);
        let Ok(known) = crate::plan_translation::prepare(sql, &plan, meaning, &request.parameters, "") else { return };
        assert!(known.is_for(sql, &request.parameters));
        let outcome = sql.execute_prepared(&known.handle, known.values(&request.parameters));
        let Ok(Outcome::Rows(mut rows)) = outcome else { return };
        let (mut batch, mut out) = (Batch::new(), Vec::new());
        while let Ok(true) = rows.next(sql, &mut batch) {
            for at in 0..batch.len() {
                let _ = row::put_row(&mut out, rows.columns(), batch.row(at), Results::UTF8);
            }
            out.clear();
        }
    }
}

pub use digests::{Digests, Limits};
pub use door::XrpcDoor;
pub use options::Options;
pub use stats::Stats;
