//! A client of XRPC, PolarDB-X's private protocol 2.0: thousands of database sessions over a few TCP connections.
//!
//! ```no_run
//! use beluga_xrpc::{Options, Pool, Request, Statement};
//!
//! let pool = Pool::open(Options::new("127.0.0.1:33660").login("app", "secret"), 4)?;
//! let by_id = Statement::new("select name, price from shop.item where id = ?");
//! let mut session = pool.session()?;
//! session.execute("insert into shop.item values (?, ?, ?)", &[7.into(), "pen".into(), 1.5.into()])?;
//! for row in session.run(&Request::statement(&by_id).with(vec![7.into()]))? {
//!     let row = row?;
//!     println!("{} costs {}", row[0], row[1]);
//! }
//! # Ok::<(), beluga_xrpc::Error>(())
//! ```
//!
//! `Session` blocks: it belongs to one thread, and any number of them share a connection. A program with an event loop of its own uses `login`, and then `frame`, `Request::write` and `Assembly`, which touch no socket.
#![forbid(unsafe_code)]

mod argument;
mod auth;
mod error;
mod proto;
mod value;

pub mod frame;
pub mod message;
pub mod plan;

mod answer;
mod connection;
mod link;
mod request;
mod session;

pub use answer::{Assembly, Row, Step, Summary, Warning};
pub use argument::Argument;
pub use connection::{Connection, Killer, Options, Pool, login};
pub use error::{Error, ServerError};
pub use message::Savepoint;
pub use plan::Plan;
pub use request::{After, Digest, Form, Request, Statement, TOKEN_KIB};
pub use session::{Answer, Pipeline, Rows, Sent, Session};
pub use value::{Column, Date, DateTime, Kind, Time, Value};

#[cfg(test)]
mod tests;
