//! Rows of the group geo.

use crate::command::flag::{DENYOOM, MOVABLEKEYS, READONLY, WRITE};
use crate::command::keys::{at, keyword};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("geoadd", -5, WRITE | DENYOOM, category::GEO).keys(&[at(1, "RW update")]),
    row("geodist", -4, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("geohash", -2, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("geopos", -2, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("georadius", -6, WRITE | DENYOOM | MOVABLEKEYS, category::GEO).keys(&[
        at(1, "RO access"),
        keyword("STORE", 6, "OW update"),
        keyword("STOREDIST", 6, "OW update"),
    ]),
    row("georadius_ro", -6, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("georadiusbymember", -5, WRITE | DENYOOM | MOVABLEKEYS, category::GEO).keys(&[
        at(1, "RO access"),
        keyword("STORE", 5, "OW update"),
        keyword("STOREDIST", 5, "OW update"),
    ]),
    row("georadiusbymember_ro", -5, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("geosearch", -7, READONLY, category::GEO).keys(&[at(1, "RO access")]),
    row("geosearchstore", -8, WRITE | DENYOOM, category::GEO).keys(&[at(1, "OW update"), at(2, "RO access")]),
];
