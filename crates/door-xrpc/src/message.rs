//! The messages of both sides: payloads of frames, read in place and written into the connection's buffer.
//!
//! A request is read completely before it is acted on, so that an incomplete one is refused before it has any effect (DX-2). Its strings are slices of the
//! payload (DX-4).

pub mod datatypes;
pub mod expr;
pub mod plan;
pub mod reply;
pub mod request;

/// Types of frames from clients.
pub mod ask {
    pub const CAPABILITIES_GET: u8 = 1;
    pub const AUTHENTICATE_START: u8 = 4;
    pub const AUTHENTICATE_CONTINUE: u8 = 5;
    pub const SESSION_CLOSE: u8 = 7;
    pub const EXPECT_OPEN: u8 = 24;
    pub const EXPECT_CLOSE: u8 = 25;
    pub const EXECUTE_PLAN: u8 = 100;
    pub const EXECUTE_SQL: u8 = 101;
    pub const SESSION_NEW: u8 = 110;
    pub const SESSION_KILL: u8 = 111;
    pub const TOKEN_OFFER: u8 = 112;
    pub const GET_TSO: u8 = 113;
    pub const AUTO_SAVEPOINT: u8 = 115;
    pub const GET_FILE_INFO: u8 = 116;
    pub const TRANSFER_FILE_DATA: u8 = 117;
    pub const MANAGE_FILE: u8 = 118;
}

/// Types of frames to clients.
pub mod answer {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const CAPABILITIES: u8 = 2;
    pub const AUTHENTICATE_CONTINUE: u8 = 3;
    pub const AUTHENTICATE_OK: u8 = 4;
    pub const NOTICE: u8 = 11;
    pub const COLUMN: u8 = 12;
    pub const ROW: u8 = 13;
    pub const FETCH_DONE: u8 = 14;
    pub const EXECUTE_OK: u8 = 17;
    pub const TOKEN_DONE: u8 = 19;
    pub const TSO: u8 = 20;
    pub const CHUNK: u8 = 21;
}

/// The depth limit of nested messages: plans and expressions are walked by recursion.
pub const DEPTH_MAX: usize = 64;
