//! XRPC's messages as structures, field for field those of `clients/xrpc.proto`. They are proto2: an optional field is an `Option`.
//!
//! Rows and chunks have no structure: they are read from the received bytes. The two requests that carry statements have one, for programs that decode them; `Request` writes the same bytes without it.

use prost::Message;

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Severity {
    Error = 0,
    Fatal = 1,
}

#[derive(Clone, PartialEq, Message)]
pub struct Error {
    #[prost(enumeration = "Severity", optional, tag = "1")]
    pub severity: Option<i32>,
    #[prost(uint32, required, tag = "2")]
    pub code: u32,
    #[prost(string, required, tag = "3")]
    pub msg: String,
    #[prost(string, required, tag = "4")]
    pub sql_state: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Capability {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(message, required, tag = "2")]
    pub value: Any,
}

#[derive(Clone, PartialEq, Message)]
pub struct Capabilities {
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<Capability>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AuthenticateStart {
    #[prost(string, required, tag = "1")]
    pub mech_name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub auth_data: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub initial_response: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AuthenticateContinue {
    #[prost(bytes = "vec", required, tag = "1")]
    pub auth_data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum KillKind {
    Query = 1,
    Connection = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct KillSession {
    #[prost(enumeration = "KillKind", required, tag = "1")]
    pub kind: i32,
    #[prost(uint64, required, tag = "2")]
    pub x_session_id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ScalarKind {
    Sint = 1,
    Uint = 2,
    Null = 3,
    Octets = 4,
    Double = 5,
    Float = 6,
    Bool = 7,
    String = 8,
    Placeholder = 9,
    Identifier = 10,
    RawString = 11,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScalarString {
    #[prost(bytes = "vec", required, tag = "1")]
    pub value: Vec<u8>,
    #[prost(uint64, optional, tag = "2")]
    pub collation: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScalarOctets {
    #[prost(bytes = "vec", required, tag = "1")]
    pub value: Vec<u8>,
    #[prost(uint32, optional, tag = "2")]
    pub content_type: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Scalar {
    #[prost(enumeration = "ScalarKind", required, tag = "1")]
    pub kind: i32,
    #[prost(sint64, optional, tag = "2")]
    pub v_signed_int: Option<i64>,
    #[prost(uint64, optional, tag = "3")]
    pub v_unsigned_int: Option<u64>,
    #[prost(message, optional, tag = "5")]
    pub v_octets: Option<ScalarOctets>,
    #[prost(double, optional, tag = "6")]
    pub v_double: Option<f64>,
    #[prost(float, optional, tag = "7")]
    pub v_float: Option<f32>,
    #[prost(bool, optional, tag = "8")]
    pub v_bool: Option<bool>,
    #[prost(message, optional, tag = "9")]
    pub v_string: Option<ScalarString>,
    #[prost(uint32, optional, tag = "10")]
    pub v_position: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub v_identifier: Option<ScalarString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum AnyKind {
    Scalar = 1,
    Object = 2,
    Array = 3,
}

/// Of the three kinds only scalars are sent and understood.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(enumeration = "AnyKind", required, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub scalar: Option<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StmtExecute {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub stmt: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    pub args: Vec<Any>,
    #[prost(bool, optional, tag = "4")]
    pub compact_metadata: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub schema_name: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "8")]
    pub token: Option<i32>,
    #[prost(bool, optional, tag = "9")]
    pub reset_error: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "12")]
    pub stmt_digest: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "13")]
    pub hint: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "14")]
    pub chunk_result: Option<bool>,
    #[prost(uint64, optional, tag = "17")]
    pub capabilities: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ExecPlan {
    #[prost(message, optional, tag = "2")]
    pub plan: Option<AnyPlan>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub plan_digest: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "4")]
    pub parameters: Vec<Scalar>,
    #[prost(int32, optional, tag = "6")]
    pub token: Option<i32>,
    #[prost(bool, optional, tag = "7")]
    pub reset_error: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    pub compact_metadata: Option<bool>,
    #[prost(bool, optional, tag = "11")]
    pub chunk_result: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "14")]
    pub trace_id: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "16")]
    pub capabilities: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TokenOffer {
    #[prost(int32, optional, tag = "1")]
    pub token: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum PlanKind {
    Get = 1,
    TableScan = 2,
    TableProject = 3,
    Project = 4,
    Filter = 5,
    RangeScan = 8,
    Aggr = 9,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyPlan {
    #[prost(enumeration = "PlanKind", required, tag = "1")]
    pub plan_type: i32,
    #[prost(message, optional, tag = "2")]
    pub get_plan: Option<GetPlan>,
    #[prost(message, optional, tag = "3")]
    pub table_scan_plan: Option<TableScanPlan>,
    #[prost(message, optional, boxed, tag = "4")]
    pub table_project: Option<Box<TableProject>>,
    #[prost(message, optional, boxed, tag = "5")]
    pub project: Option<Box<Project>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub filter: Option<Box<Filter>>,
    #[prost(message, optional, tag = "8")]
    pub range_scan: Option<RangeScan>,
    #[prost(message, optional, boxed, tag = "9")]
    pub aggr: Option<Box<Aggr>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TableInfo {
    #[prost(int64, optional, tag = "1")]
    pub version: Option<i64>,
    #[prost(message, required, tag = "2")]
    pub name: Scalar,
    #[prost(message, optional, tag = "3")]
    pub schema_name: Option<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IndexInfo {
    #[prost(message, required, tag = "1")]
    pub name: Scalar,
    #[prost(int32, optional, tag = "2")]
    pub use_parts: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyExpr {
    #[prost(message, optional, tag = "1")]
    pub field: Option<Scalar>,
    #[prost(message, required, tag = "2")]
    pub value: Scalar,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetExpr {
    #[prost(message, repeated, tag = "1")]
    pub keys: Vec<KeyExpr>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetPlan {
    #[prost(message, required, tag = "1")]
    pub table_info: TableInfo,
    #[prost(message, optional, tag = "2")]
    pub index_info: Option<IndexInfo>,
    #[prost(message, repeated, tag = "3")]
    pub keys: Vec<GetExpr>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TableScanPlan {
    #[prost(message, required, tag = "1")]
    pub table_info: TableInfo,
    #[prost(message, optional, tag = "2")]
    pub index_info: Option<IndexInfo>,
    #[prost(bool, optional, tag = "3")]
    pub reverse: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RangeScan {
    #[prost(message, required, tag = "3")]
    pub table_info: TableInfo,
    #[prost(message, optional, tag = "4")]
    pub index_info: Option<IndexInfo>,
    #[prost(message, optional, tag = "5")]
    pub key: Option<GetExpr>,
    #[prost(message, optional, tag = "6")]
    pub end_key: Option<GetExpr>,
    #[prost(bool, optional, tag = "8")]
    pub reverse: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TableProject {
    #[prost(message, required, tag = "1")]
    pub sub_read_plan: AnyPlan,
    #[prost(message, repeated, tag = "2")]
    pub fields: Vec<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Project {
    #[prost(message, required, tag = "1")]
    pub sub_read_plan: AnyPlan,
    #[prost(message, repeated, tag = "2")]
    pub fields: Vec<Scalar>,
    #[prost(message, repeated, tag = "3")]
    pub exprs: Vec<Expr>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Filter {
    #[prost(message, required, tag = "1")]
    pub sub_read_plan: AnyPlan,
    #[prost(message, required, tag = "2")]
    pub expr: Expr,
}

/// The function of an AGGR node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Aggregate {
    Count = 1,
    CountDistinct = 2,
    Sum = 3,
    SumDistinct = 4,
    Avg = 5,
    AvgDistinct = 6,
    Min = 7,
    Max = 8,
}

#[derive(Clone, PartialEq, Message)]
pub struct Aggr {
    #[prost(message, required, tag = "1")]
    pub sub_read_plan: AnyPlan,
    #[prost(enumeration = "Aggregate", required, tag = "2")]
    pub kind: i32,
    #[prost(message, optional, tag = "3")]
    pub field: Option<Scalar>,
    #[prost(message, optional, tag = "4")]
    pub expr: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ExprKind {
    Ident = 1,
    Literal = 2,
    Variable = 3,
    FuncCall = 4,
    Operator = 5,
    Placeholder = 6,
    Object = 7,
    Array = 8,
    Ref = 9,
}

#[derive(Clone, PartialEq, Message)]
pub struct Expr {
    #[prost(enumeration = "ExprKind", required, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "4")]
    pub literal: Option<Scalar>,
    #[prost(message, optional, tag = "5")]
    pub function_call: Option<FunctionCall>,
    #[prost(message, optional, tag = "6")]
    pub operator: Option<Operator>,
    #[prost(uint32, optional, tag = "7")]
    pub position: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub ref_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Identifier {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(string, optional, tag = "2")]
    pub schema_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FunctionCall {
    #[prost(message, required, tag = "1")]
    pub name: Identifier,
    #[prost(message, repeated, tag = "2")]
    pub param: Vec<Expr>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Operator {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub param: Vec<Expr>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetTso {
    #[prost(bytes = "vec", required, tag = "1")]
    pub leader_name: Vec<u8>,
    #[prost(int32, required, tag = "2")]
    pub batch_count: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResultTso {
    #[prost(int32, required, tag = "1")]
    pub error_no: i32,
    #[prost(uint64, required, tag = "2")]
    pub ts: u64,
}

/// An operation on a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Savepoint {
    Set = 0,
    Release = 1,
    Rollback = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct AutoSp {
    #[prost(enumeration = "Savepoint", required, tag = "1")]
    pub op: i32,
    #[prost(bytes = "vec", required, tag = "2")]
    pub sp_name: Vec<u8>,
    #[prost(bool, optional, tag = "3")]
    pub reset_error: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NoticeFrame {
    #[prost(uint32, required, tag = "1")]
    pub kind: u32,
    #[prost(int32, optional, tag = "2")]
    pub scope: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub payload: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Warning {
    #[prost(int32, optional, tag = "1", default = "2")]
    pub level: Option<i32>,
    #[prost(uint32, required, tag = "2")]
    pub code: u32,
    #[prost(string, required, tag = "3")]
    pub msg: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SessionStateChanged {
    #[prost(int32, required, tag = "1")]
    pub param: i32,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ColumnMetaData {
    #[prost(int32, required, tag = "1")]
    pub kind: i32,
    #[prost(uint32, required, tag = "2")]
    pub original_type: u32,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub name: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub original_name: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub table: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub original_table: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub schema: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub catalog: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "9")]
    pub collation: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub fractional_digits: Option<u32>,
    #[prost(uint32, optional, tag = "11")]
    pub length: Option<u32>,
    #[prost(uint32, optional, tag = "12")]
    pub flags: Option<u32>,
    #[prost(uint32, optional, tag = "13")]
    pub content_type: Option<u32>,
    #[prost(uint32, optional, tag = "14")]
    pub original_flags: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FetchDone {
    #[prost(uint64, optional, tag = "1")]
    pub examined_row_count: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub chosen_index: Option<Vec<u8>>,
}
