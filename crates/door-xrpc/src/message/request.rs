//! Requests other than plans: statements, logins, and session control.

use crate::message::datatypes::{Any, Scalar};
use crate::message::plan::Plan;
use crate::proto::{Fields, Malformed, Result};

/// EXEC_SQL. An absent field is `None`; `namespace`, `session_variables` and `encoding` are ignored, as in the server that this protocol comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StmtExecute<'a> {
    pub statement: Option<&'a [u8]>,
    pub args: Vec<Any<'a>>,
    pub compact_metadata: bool,
    pub schema_name: Option<&'a [u8]>,
    pub token: Option<i32>,
    pub reset_error: Option<bool>,
    pub snapshot_seq: Option<u64>,
    pub commit_seq: Option<u64>,
    pub digest: Option<&'a [u8]>,
    pub hint: Option<&'a [u8]>,
    pub chunk_result: bool,
    pub use_cts_transaction: bool,
    pub feed_back: bool,
    pub capabilities: Option<u64>,
    pub mark_distributed: bool,
    pub query_via_flashback_area: bool,
}

impl<'a> StmtExecute<'a> {
    pub fn read(message: &'a [u8]) -> Result<StmtExecute<'a>> {
        let mut all = StmtExecute::default();
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                1 => all.statement = Some(value.bytes()?),
                2 => all.args.push(Any::read(value.bytes()?)?),
                4 => all.compact_metadata = value.bool()?,
                5 => all.schema_name = Some(value.bytes()?),
                8 => all.token = Some(value.i32()?),
                9 => all.reset_error = Some(value.bool()?),
                10 => all.snapshot_seq = Some(value.varint()?),
                11 => all.commit_seq = Some(value.varint()?),
                12 => all.digest = Some(value.bytes()?),
                13 => all.hint = Some(value.bytes()?),
                14 => all.chunk_result = value.bool()?,
                15 => all.use_cts_transaction = value.bool()?,
                16 => all.feed_back = value.bool()?,
                17 => all.capabilities = Some(value.varint()?),
                18 => all.mark_distributed = value.bool()?,
                19 => all.query_via_flashback_area = value.bool()?,
                _ => {}
            }
        }
        Ok(all)
    }
}

/// EXEC_PLAN_READ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecPlan<'a> {
    pub plan: Option<Plan<'a>>,
    /// The plan as sent, for the digest cache.
    pub plan_bytes: Option<&'a [u8]>,
    pub digest: Option<&'a [u8]>,
    pub parameters: Vec<Scalar<'a>>,
    pub token: Option<i32>,
    pub reset_error: Option<bool>,
    pub compact_metadata: bool,
    pub snapshot_seq: Option<u64>,
    pub commit_seq: Option<u64>,
    pub chunk_result: bool,
    pub use_cts_transaction: bool,
    pub feed_back: bool,
    pub trace_id: Option<&'a [u8]>,
    pub audit_str: Option<&'a [u8]>,
    pub capabilities: Option<u64>,
    pub mark_distributed: bool,
    pub query_via_flashback_area: bool,
}

impl<'a> ExecPlan<'a> {
    pub fn read(message: &'a [u8]) -> Result<ExecPlan<'a>> {
        let mut all = ExecPlan::default();
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                2 => {
                    all.plan_bytes = Some(value.bytes()?);
                    all.plan = Some(Plan::read(value.bytes()?)?);
                }
                3 => all.digest = Some(value.bytes()?),
                4 => all.parameters.push(Scalar::read(value.bytes()?)?),
                6 => all.token = Some(value.i32()?),
                7 => all.reset_error = Some(value.bool()?),
                8 => all.compact_metadata = value.bool()?,
                9 => all.snapshot_seq = Some(value.varint()?),
                10 => all.commit_seq = Some(value.varint()?),
                11 => all.chunk_result = value.bool()?,
                12 => all.use_cts_transaction = value.bool()?,
                13 => all.feed_back = value.bool()?,
                14 => all.trace_id = Some(value.bytes()?),
                15 => all.audit_str = Some(value.bytes()?),
                16 => all.capabilities = Some(value.varint()?),
                17 => all.mark_distributed = value.bool()?,
                18 => all.query_via_flashback_area = value.bool()?,
                _ => {}
            }
        }
        Ok(all)
    }
}

/// Session.AuthenticateStart. Its method is ignored: there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticateStart<'a> {
    pub mech_name: &'a [u8],
}

impl<'a> AuthenticateStart<'a> {
    pub fn read(message: &'a [u8]) -> Result<AuthenticateStart<'a>> {
        Ok(AuthenticateStart { mech_name: only_bytes(message)? })
    }
}

/// Session.AuthenticateContinue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticateContinue<'a> {
    pub auth_data: &'a [u8],
}

impl<'a> AuthenticateContinue<'a> {
    pub fn read(message: &'a [u8]) -> Result<AuthenticateContinue<'a>> {
        Ok(AuthenticateContinue { auth_data: only_bytes(message)? })
    }
}

/// Reads the required bytes of field 1.
fn only_bytes(message: &[u8]) -> Result<&[u8]> {
    let mut bytes = None;
    for field in Fields::of(message) {
        if let (1, value) = field? {
            bytes = Some(value.bytes()?);
        }
    }
    bytes.ok_or(Malformed)
}

/// Checks a message without fields: NewSession, Close, CapabilitiesGet.
pub fn read_empty(message: &[u8]) -> Result<()> {
    Fields::of(message).try_for_each(|field| field.map(|_| ()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillKind {
    Query,
    Connection,
}

/// Session.KillSession. The sid of the frame counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillSession {
    pub kind: KillKind,
    pub session: u64,
}

impl KillSession {
    pub fn read(message: &[u8]) -> Result<KillSession> {
        let (mut kind, mut session) = (None, None);
        for field in Fields::of(message) {
            match field? {
                (1, value) => {
                    kind = match value.varint()? {
                        1 => Some(KillKind::Query),
                        2 => Some(KillKind::Connection),
                        _ => None,
                    }
                }
                (2, value) => session = Some(value.varint()?),
                _ => {}
            }
        }
        Ok(KillSession { kind: kind.ok_or(Malformed)?, session: session.ok_or(Malformed)? })
    }
}

/// Sql.TokenOffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenOffer {
    pub token: i32,
}

impl TokenOffer {
    pub fn read(message: &[u8]) -> Result<TokenOffer> {
        let mut token = -1;
        for field in Fields::of(message) {
            if let (1, value) = field? {
                token = value.i32()?;
            }
        }
        Ok(TokenOffer { token })
    }
}

/// ExecPlan.GetTSO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetTso<'a> {
    pub leader_name: &'a [u8],
    pub batch_count: i32,
}

impl<'a> GetTso<'a> {
    pub fn read(message: &'a [u8]) -> Result<GetTso<'a>> {
        let (mut leader, mut count) = (None, None);
        for field in Fields::of(message) {
            match field? {
                (1, value) => leader = Some(value.bytes()?),
                (2, value) => count = Some(value.i32()?),
                _ => {}
            }
        }
        Ok(GetTso { leader_name: leader.ok_or(Malformed)?, batch_count: count.ok_or(Malformed)? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavepointOp {
    Set,
    Release,
    Rollback,
}

/// ExecPlan.AutoSp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoSavepoint<'a> {
    pub op: SavepointOp,
    pub name: &'a [u8],
    pub reset_error: Option<bool>,
}

impl<'a> AutoSavepoint<'a> {
    pub fn read(message: &'a [u8]) -> Result<AutoSavepoint<'a>> {
        let (mut op, mut name, mut reset_error) = (None, None, None);
        for field in Fields::of(message) {
            match field? {
                (1, value) => {
                    op = match value.varint()? {
                        0 => Some(SavepointOp::Set),
                        1 => Some(SavepointOp::Release),
                        2 => Some(SavepointOp::Rollback),
                        _ => None,
                    }
                }
                (2, value) => name = Some(value.bytes()?),
                (3, value) => reset_error = Some(value.bool()?),
                _ => {}
            }
        }
        Ok(AutoSavepoint { op: op.ok_or(Malformed)?, name: name.ok_or(Malformed)?, reset_error })
    }
}

#[cfg(test)]
mod tests;
