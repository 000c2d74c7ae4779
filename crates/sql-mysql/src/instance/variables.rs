//! The table of system variables. A variable takes effect; or it is fixed: it shows how the server works, and other
//! values are rejected; or it is a hint: it is accepted and stored, and no value changes a result, for the reason in
//! its row. docs/protocols/mysql.md lists the hints with the same reasons. Other names are error 1193.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use Is::{Flag, Near, Number, OneOf, Seconds, Within, Word};
use May::{Global, GlobalHint, Hint, Keep, Only, Read, Set};
use stdx::sync::Mutex;

use crate::error::{self, Result};
use crate::types::{Collation, CollationName as _, MysqlType as _, Type};
use crate::value::{Decimal, Value};

/// The protocol version for clients, followed by Beluga's name.
pub const VERSION: &str = "8.0.40-beluga";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Is {
    Number(u64),
    Flag(bool),
    Word(&'static str),
    /// One of these words, by name or number; the first of the two is the default.
    OneOf(&'static str, &'static [&'static str]),
    /// A number with its minimum and maximum; others are rejected.
    Within(u64, u64, u64),
    /// A number that is clamped to its bounds, with a warning, as in MySQL.
    Near(u64, u64, u64),
    /// Seconds with six fractional digits and a maximum; others are clamped.
    Seconds(&'static str, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Takes effect, per session or globally.
    Set,
    /// Takes effect, globally only.
    Global,
    /// A hint: without effect on any result, for this reason.
    Hint(&'static str),
    /// A hint that is set globally only.
    GlobalHint(&'static str),
    /// Fixed: other values are not supported yet (error 1235).
    Keep,
    /// Fixed: no other value is possible (error 1231).
    Only,
    /// Read-only (error 1238).
    Read,
}

impl May {
    /// Returns whether the variable has one value for the server, which all sessions read.
    pub fn is_of_server(self) -> bool {
        matches!(self, Global | GlobalHint(_) | Read)
    }
}

pub struct Variable {
    pub name: &'static str,
    pub is: Is,
    pub may: May,
}

const fn of(name: &'static str, is: Is, may: May) -> Variable {
    Variable { name, is, may }
}

// Reasons of hints.
const MEMORY: &str = "statements share the memory of the setting `memory`";
const CACHES: &str = "there are no separate limits for caches and threads";
const PLANS: &str = "the planner compares costs of its own, and every plan gives the same result";
const NO_BINARY_LOG: &str = "there is no binary log";
const NO_MYISAM: &str = "there are no MyISAM tables";
const NO_GENERAL_LOG: &str = "there is no general log";
const ALWAYS_FRESH: &str = "statistics are never cached";
const WHOLE_VALUES: &str = "sorting compares whole values";
const UNIQUE: &str = "unique keys are always checked";
const REBUILD: &str = "the method of a rebuild does not change the table's content";
const ROW_FORMATS: &str = "options of row and page formats are only stored and shown";
const SEND_TIMEOUT: &str = "the setting `send_timeout` applies to all doors";

/// The maximum of timeouts, in seconds.
const YEAR_S: u64 = 365 * 24 * 3600;

pub const VARIABLES: &[Variable] = &[
    of("activate_all_roles_on_login", Flag(false), Keep),
    of("auto_increment_increment", Near(1, 1, 65_535), Set),
    of("auto_increment_offset", Near(1, 1, 65_535), Set),
    of("autocommit", Flag(true), Set),
    of("back_log", Number(511), Read),
    of("big_tables", Flag(false), Hint(MEMORY)),
    of("binlog_format", OneOf("ROW", &["MIXED", "STATEMENT", "ROW"]), Hint(NO_BINARY_LOG)),
    of("binlog_row_image", OneOf("FULL", &["MINIMAL", "NOBLOB", "FULL"]), Hint(NO_BINARY_LOG)),
    of("block_encryption_mode", Word("aes-128-ecb"), Set),
    of("bulk_insert_buffer_size", Near(8_388_608, 0, u64::MAX), Hint(MEMORY)),
    of("character_set_client", Word("utf8mb4"), Set),
    of("character_set_connection", Word("utf8mb4"), Set),
    of("character_set_database", Word("utf8mb4"), Set),
    of("character_set_filesystem", Word("binary"), Keep),
    of("character_set_results", Word("utf8mb4"), Set),
    of("character_set_server", Word("utf8mb4"), Set),
    of("character_set_system", Word("utf8mb3"), Read),
    of("collation_connection", Word("utf8mb4_0900_ai_ci"), Set),
    of("collation_database", Word("utf8mb4_0900_ai_ci"), Set),
    of("collation_server", Word("utf8mb4_0900_ai_ci"), Set),
    of("completion_type", Word("NO_CHAIN"), Set),
    of("connect_timeout", Near(10, 2, YEAR_S), Global),
    of("cte_max_recursion_depth", Near(1000, 0, u32::MAX as u64), Set),
    of("datadir", Word(""), Read),
    of("default_authentication_plugin", Word("caching_sha2_password"), Read),
    of("default_collation_for_utf8mb4", Word("utf8mb4_0900_ai_ci"), Keep),
    of("default_password_lifetime", Number(0), Keep),
    of("default_storage_engine", Word("InnoDB"), Keep),
    of("default_tmp_storage_engine", Word("InnoDB"), Keep),
    of("default_week_format", Number(0), Keep),
    of("delay_key_write", OneOf("ON", &["OFF", "ON", "ALL"]), GlobalHint(NO_MYISAM)),
    of("div_precision_increment", Near(4, 0, 30), Set),
    of("eq_range_index_dive_limit", Near(200, 0, u32::MAX as u64), Hint(PLANS)),
    of("event_scheduler", Word("OFF"), Read),
    of("explicit_defaults_for_timestamp", Flag(true), Keep),
    of("foreign_key_checks", Flag(true), Set),
    of("general_log", Flag(false), Keep),
    of("group_concat_max_len", Near(1024, 4, u64::MAX), Set),
    of("gtid_mode", Word("OFF"), Read),
    of("have_openssl", Word("YES"), Read),
    of("have_ssl", Word("YES"), Read),
    of("hostname", Word("localhost"), Read),
    of("information_schema_stats_expiry", Near(0, 0, YEAR_S), Hint(ALWAYS_FRESH)),
    of("init_connect", Word(""), Keep),
    // Numbers are allocated without a lock, so those of one statement need not be consecutive.
    of("innodb_autoinc_lock_mode", Number(2), Read),
    of("innodb_buffer_pool_size", Number(0), Read),
    // Commit numbers are taken and read without a lock, and indexes are B-link trees. There is no alternative to
    // choose.
    of("innodb_csn_lockfree", Flag(true), Read),
    of("innodb_deadlock_detect", Flag(true), Keep),
    // Torn pages are repaired from the doublewrite file.
    of("innodb_doublewrite", Word("ON"), Read),
    of("innodb_file_per_table", Flag(false), Keep),
    of("innodb_flush_log_at_trx_commit", Number(1), Keep),
    of("innodb_lock_sys_rec_partition", Number(64), Read),
    of("innodb_lock_wait_timeout", Near(50, 1, 1 << 30), Set),
    of("innodb_page_size", Number(4096), Read),
    of("innodb_polar_blink_tree", Flag(true), Read),
    of("innodb_print_all_deadlocks", Flag(false), Only),
    of("innodb_read_only", Flag(false), Read),
    of("innodb_rollback_on_timeout", Flag(false), Read),
    of("innodb_stats_on_metadata", Flag(false), GlobalHint(ALWAYS_FRESH)),
    // Statistics are rows of the catalog.
    of("innodb_stats_persistent", Flag(true), Keep),
    of("innodb_strict_mode", Flag(true), Hint(ROW_FORMATS)),
    of("innodb_version", Word("8.0.40"), Read),
    of("interactive_timeout", Near(28_800, 1, YEAR_S), Set),
    of("internal_tmp_mem_storage_engine", OneOf("TempTable", &["MEMORY", "TempTable"]), Hint(MEMORY)),
    of("join_buffer_size", Near(262_144, 128, u64::MAX), Hint(MEMORY)),
    of("lc_messages", Word("en_US"), Keep),
    of("lc_time_names", Word("en_US"), Set),
    of("license", Word("Apache-2.0"), Read),
    of("local_infile", Flag(false), Global),
    of("lock_wait_timeout", Near(YEAR_S, 1, YEAR_S), Set),
    of("log_bin", Flag(false), Read),
    of("log_bin_trust_function_creators", Flag(false), GlobalHint(NO_BINARY_LOG)),
    of("long_query_time", Seconds("10.000000", YEAR_S), Set),
    of("low_priority_updates", Flag(false), Hint(NO_MYISAM)),
    of("lower_case_file_system", Flag(false), Read),
    of("lower_case_table_names", Number(0), Read),
    of("mandatory_roles", Word(""), Keep),
    of("max_allowed_packet", Near(64 << 20, 1 << 10, 1 << 30), Set),
    of("max_connections", Number(10_000), Read),
    of("max_error_count", Near(1024, 0, 65_535), Set),
    of("max_execution_time", Near(0, 0, u32::MAX as u64), Set),
    of("max_heap_table_size", Near(16_777_216, 16_384, u64::MAX), Hint(MEMORY)),
    of("max_join_size", Near(u64::MAX, 1, u64::MAX), Set),
    of("max_length_for_sort_data", Near(4096, 4, 8_388_608), Hint(PLANS)),
    of("max_prepared_stmt_count", Number(16_382), Read),
    of("max_sort_length", Near(1024, 4, 8_388_608), Hint(WHOLE_VALUES)),
    of("max_user_connections", Number(0), Keep),
    of("net_buffer_length", Near(16_384, 1024, 1_048_576), Hint(MEMORY)),
    of("net_read_timeout", Near(30, 1, YEAR_S), Set),
    of("net_write_timeout", Near(60, 1, YEAR_S), Hint(SEND_TIMEOUT)),
    of("new", Flag(false), Only),
    // XRPC: the door speaks the second version of the protocol.
    of("new_rpc", Flag(true), Read),
    of("offline_mode", Flag(false), Keep),
    of("old_alter_table", Flag(false), Hint(REBUILD)),
    of("optimizer_prune_level", Near(1, 0, 1), Hint(PLANS)),
    of("optimizer_search_depth", Near(62, 0, 62), Hint(PLANS)),
    of("optimizer_switch", Word(SWITCHES), Hint(PLANS)),
    of("partial_revokes", Flag(false), Keep),
    of("password_history", Number(0), Keep),
    of("performance_schema", Flag(false), Read),
    // XRPC and the common worker pool. Read-only variables show how the server works; its own settings are given at
    // start.
    of("polardbx_engine_version", Word(env!("CARGO_PKG_VERSION")), Read),
    of("polardbx_release_date", Word("unreleased"), Read),
    of("polarx_rpc_auto_cpu_affinity", Flag(false), Read),
    of("polarx_rpc_enable_epoll_in_tasker", Flag(false), Read),
    of("polarx_rpc_enable_kill_log", Flag(true), Global),
    of("polarx_rpc_enable_perf_hist", Flag(true), Global),
    of("polarx_rpc_enable_tasker", Flag(true), Read),
    of("polarx_rpc_enable_thread_pool_log", Flag(false), Read),
    of("polarx_rpc_epoll_events_per_thread", Within(64, 1, 256), Global),
    of("polarx_rpc_epoll_extra_groups", Number(0), Read),
    of("polarx_rpc_epoll_group_ctx_refresh_time", Within(10_000, 1000, 60_000), Global),
    of("polarx_rpc_epoll_group_dynamic_threads", Number(0), Read),
    of("polarx_rpc_epoll_group_dynamic_threads_shrink_time", Within(10_000, 1000, 600_000), Global),
    of("polarx_rpc_epoll_group_tasker_extend_step", Number(1), Read),
    of("polarx_rpc_epoll_group_tasker_multiply", Number(1), Read),
    of("polarx_rpc_epoll_group_thread_deadlock_check_interval", Within(100, 1, 10_000), Global),
    of("polarx_rpc_epoll_group_thread_scale_thresh", Number(0), Read),
    of("polarx_rpc_epoll_group_threads_max", Number(256), Read),
    of("polarx_rpc_epoll_groups", Number(0), Read),
    of("polarx_rpc_epoll_threads_per_group", Number(0), Read),
    // Unlimited: threads wait until an event arrives.
    of("polarx_rpc_epoll_timeout", Number(0), Read),
    // Unlimited: the queue of each session is bounded.
    of("polarx_rpc_epoll_work_queue_capacity", Number(0), Read),
    of("polarx_rpc_force_all_cores", Flag(false), Read),
    of("polarx_rpc_galaxy_protocol", Flag(false), Global),
    of("polarx_rpc_galaxy_version", Within(0, 0, 127), Global),
    of("polarx_rpc_max_allowed_packet", Within(67_108_864, 4096, 1 << 30), Global),
    of("polarx_rpc_max_cached_output_buffer_pages", Within(10, 1, 256), Global),
    of("polarx_rpc_max_epoll_wait_total_threads", Number(0), Read),
    of("polarx_rpc_max_queued_messages", Within(128, 16, 4096), Global),
    of("polarx_rpc_mcs_spin_cnt", Number(0), Read),
    of("polarx_rpc_min_auto_epoll_groups", Number(1), Read),
    of("polarx_rpc_multi_affinity_in_group", Flag(false), Read),
    of("polarx_rpc_net_write_timeout", Within(60_000, 1, 7_200_000), Global),
    of("polarx_rpc_request_cache_instances", Number(16), Read),
    of("polarx_rpc_request_cache_max_length", Number(1 << 20), Read),
    of("polarx_rpc_request_cache_number", Number(1024), Read),
    of("polarx_rpc_session_poll_rwlock_spin_cnt", Number(0), Read),
    of("polarx_rpc_shared_session_lifetime", Within(60_000, 1000, 3_600_000), Global),
    of("polarx_rpc_tcp_fixed_dealing_buf", Within(64 << 10, 4096, 1 << 20), Global),
    of("polarx_rpc_tcp_keep_alive", Within(300, 0, 7200), Global),
    of("polarx_rpc_tcp_listen_queue", Number(511), Read),
    of("polarx_rpc_tcp_recv_buf", Within(0, 0, 2 << 20), Global),
    of("polarx_rpc_tcp_send_buf", Within(0, 0, 2 << 20), Global),
    // Names of PolarDB-X data nodes: Beluga's own version.
    of("port", Number(3306), Read),
    of("print_identified_with_as_hex", Flag(false), Keep),
    of("profiling", Flag(false), Keep),
    // For future connections.
    of("protocol_compression_algorithms", Word("zlib,zstd,uncompressed"), Global),
    of("protocol_version", Number(10), Read),
    of("query_alloc_block_size", Near(8192, 1024, u32::MAX as u64), Hint(MEMORY)),
    of("query_prealloc_size", Near(8192, 8192, u64::MAX), Hint(MEMORY)),
    of("range_optimizer_max_mem_size", Near(8_388_608, 0, u64::MAX), Hint(MEMORY)),
    of("read_buffer_size", Near(131_072, 8192, 2_147_479_552), Hint(MEMORY)),
    of("read_only", Flag(false), Global),
    of("read_rnd_buffer_size", Near(262_144, 1, 2_147_483_647), Hint(MEMORY)),
    of("rpc_port", Number(0), Read),
    of("rpc_use_legacy_port", Flag(false), Read),
    of("secure_file_priv", Word("NULL"), Read),
    of("server_id", Number(1), Only),
    of("session_track_gtids", Word("OFF"), Set),
    of("session_track_schema", Flag(true), Set),
    of("session_track_state_change", Flag(false), Set),
    of(
        "session_track_system_variables",
        Word("time_zone,autocommit,character_set_client,character_set_results,character_set_connection"),
        Set,
    ),
    of("session_track_transaction_info", Word("OFF"), Set),
    of("skip_name_resolve", Flag(true), Read),
    of("skip_networking", Flag(false), Read),
    of("slow_query_log", Flag(false), Keep),
    of("sort_buffer_size", Near(262_144, 32_768, u64::MAX), Hint(MEMORY)),
    of("sql_auto_is_null", Flag(false), Keep),
    of("sql_big_selects", Flag(true), Set),
    of("sql_buffer_result", Flag(false), Hint(MEMORY)),
    of("sql_log_bin", Flag(true), Hint(NO_BINARY_LOG)),
    of("sql_log_off", Flag(false), Hint(NO_GENERAL_LOG)),
    of(
        "sql_mode",
        Word(
            "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        ),
        Set,
    ),
    of("sql_notes", Flag(true), Set),
    of("sql_quote_show_create", Flag(true), Keep),
    of("sql_require_primary_key", Flag(false), Keep),
    of("sql_safe_updates", Flag(false), Set),
    of("sql_select_limit", Number(u64::MAX), Set),
    of("sql_warnings", Flag(false), Only),
    of("super_read_only", Flag(false), Global),
    of("sync_binlog", Near(1, 0, u32::MAX as u64), GlobalHint(NO_BINARY_LOG)),
    of("system_time_zone", Word("UTC"), Read),
    of("table_definition_cache", Near(2000, 400, 524_288), GlobalHint(CACHES)),
    of("table_open_cache", Near(4000, 1, 524_288), GlobalHint(CACHES)),
    of("thread_cache_size", Near(9, 0, 16_384), GlobalHint(CACHES)),
    of("thread_handling", Word("pool-of-threads"), Read),
    of("thread_pool_size", Number(0), Read),
    of("time_zone", Word("SYSTEM"), Set),
    of("timestamp", Number(0), Set),
    of("tmp_table_size", Near(16_777_216, 1024, u64::MAX), Hint(MEMORY)),
    of("transaction_alloc_block_size", Near(8192, 1024, 131_072), Hint(MEMORY)),
    of("transaction_isolation", Word("REPEATABLE-READ"), Set),
    of("transaction_prealloc_size", Near(4096, 1024, 131_072), Hint(MEMORY)),
    of("transaction_read_only", Flag(false), Set),
    of("unique_checks", Flag(true), Hint(UNIQUE)),
    of("version", Word(VERSION), Read),
    of("version_comment", Word("Beluga"), Read),
    of("version_compile_machine", Word("x86_64"), Read),
    of("version_compile_os", Word("Linux"), Read),
    of("wait_timeout", Near(28_800, 1, YEAR_S), Set),
    of("windowing_use_high_precision", Flag(true), Only),
];

/// The flags of `optimizer_switch` with MySQL's defaults.
const SWITCHES: &str = "index_merge=on,index_merge_union=on,index_merge_sort_union=on,index_merge_intersection=on,\
    engine_condition_pushdown=on,index_condition_pushdown=on,mrr=on,mrr_cost_based=on,block_nested_loop=on,\
    batched_key_access=off,materialization=on,semijoin=on,loosescan=on,firstmatch=on,duplicateweedout=on,\
    subquery_materialization_cost_based=on,use_index_extensions=on,condition_fanout_filter=on,derived_merge=on,\
    use_invisible_indexes=off,skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on,\
    hypergraph_optimizer=off,derived_condition_pushdown=on";

/// The flags of `now` after `change`, a list of `flag=on`, `flag=off`, `flag=default` and `default`. `None` for an unknown flag or state.
pub fn switched(now: &str, change: &str) -> Option<String> {
    let pairs = |list: &'static str| list.split(',').filter_map(|item| item.split_once('='));
    let mut flags: Vec<(&str, &str)> = now.split(',').filter_map(|item| item.split_once('=')).collect();
    for item in change.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if item.eq_ignore_ascii_case("default") {
            flags = pairs(SWITCHES).collect();
            continue;
        }
        let (name, state) = item.split_once('=')?;
        let (_, default) = pairs(SWITCHES).find(|(flag, _)| flag.eq_ignore_ascii_case(name))?;
        let state = match state.to_ascii_lowercase().as_str() {
            "on" => "on",
            "off" => "off",
            "default" => default,
            _ => return None,
        };
        flags.iter_mut().find(|(flag, _)| flag.eq_ignore_ascii_case(name))?.1 = state;
    }
    Some(flags.iter().map(|(flag, state)| format!("{flag}={state}")).collect::<Vec<_>>().join(","))
}

/// Read-only variables of MySQL that do not exist here: error 1238, not 1193.
const FIXED_ELSEWHERE: &[&str] = &[
    "admin_address",
    "admin_port",
    "basedir",
    "bind_address",
    "character_sets_dir",
    "core_file",
    "error_count",
    "external_user",
    "ft_max_word_len",
    "ft_min_word_len",
    "ft_query_expansion_limit",
    "ft_stopword_file",
    "gtid_executed",
    "gtid_owned",
    "init_file",
    "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_instances",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_flush_method",
    "innodb_force_recovery",
    "innodb_log_group_home_dir",
    "innodb_open_files",
    "innodb_purge_threads",
    "innodb_read_io_threads",
    "innodb_temp_data_file_path",
    "innodb_undo_directory",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "large_files_support",
    "large_page_size",
    "large_pages",
    "lc_messages_dir",
    "locked_in_memory",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "log_replica_updates",
    "named_pipe",
    "open_files_limit",
    "pid_file",
    "plugin_dir",
    "proxy_user",
    "relay_log",
    "relay_log_basename",
    "relay_log_index",
    "report_host",
    "report_password",
    "report_port",
    "report_user",
    "server_uuid",
    "skip_external_locking",
    "skip_show_database",
    "socket",
    "statement_id",
    "table_open_cache_instances",
    "thread_stack",
    "tmpdir",
    "version_compile_zlib",
    "warning_count",
];

/// Returns the variable of that name for SET.
pub fn find_settable(name: &str) -> Result<&'static Variable> {
    find(name).map_err(|error| match FIXED_ELSEWHERE.contains(&name) {
        true => error::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&name, &"read only"]),
        false => error,
    })
}

/// Returns whether the variable exists per session only.
pub fn is_of_session(name: &str) -> bool {
    matches!(name, "error_count" | "identity" | "last_insert_id" | "pseudo_thread_id" | "timestamp" | "warning_count")
}

pub fn find(name: &str) -> Result<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name).ok_or_else(|| error::UNKNOWN_SYSTEM_VARIABLE.with(&[&name]))
}

impl Variable {
    pub fn default(&self) -> Value {
        match self.is {
            Number(number) | Within(number, ..) | Near(number, ..) => Value::UInt(number),
            Flag(flag) => Value::from(flag),
            Word(word) | OneOf(word, _) => Value::text(word),
            Seconds(seconds, _) => Value::Decimal(Decimal::parse(seconds).unwrap_or_else(|| Decimal::from(0u64))),
        }
    }

    pub fn ty(&self) -> Type {
        match self.is {
            Number(_) | Within(..) | Near(..) => Type::unsigned(),
            Flag(_) => Type::truth(),
            Word(_) | OneOf(..) => Type::text(256, Collation::DEFAULT),
            Seconds(..) => Type::decimal(14, 6),
        }
    }

    fn wrong_value(&self, value: &Value) -> error::SqlError {
        error::WRONG_VALUE_FOR_VAR.with(&[&self.name, &spelled(value)])
    }

    /// Converts a value to the variable's type.
    pub fn form(&self, value: Value) -> Result<Value> {
        match (self.is, &value) {
            (Number(_), Value::UInt(_)) => Ok(value),
            (Number(_), Value::Int(number)) => Ok(Value::UInt((*number).max(0) as u64)),
            (Number(_), Value::Decimal(_) | Value::Double(_)) if self.name == "timestamp" => text_of(&value)
                .split('.')
                .next()
                .and_then(|whole| whole.parse().ok())
                .map(Value::UInt)
                .ok_or_else(|| self.wrong_value(&value)),
            (Number(_), _) => Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name])),
            (Within(_, least, most), Value::Int(_) | Value::UInt(_)) => {
                let number = match value {
                    Value::Int(number) => u64::try_from(number).ok(),
                    Value::UInt(number) => Some(number),
                    _ => None,
                };
                let number = number.filter(|number| (least..=most).contains(number));
                number.map(Value::UInt).ok_or_else(|| self.wrong_value(&value))
            }
            (Near(_, least, most), Value::Int(number)) => {
                Ok(Value::UInt(u64::try_from(*number).unwrap_or(0).clamp(least, most)))
            }
            (Near(_, least, most), Value::UInt(number)) => Ok(Value::UInt((*number).clamp(least, most))),
            (Within(..) | Near(..), _) => Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name])),
            (Seconds(_, most), Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_)) => {
                let seconds = Decimal::parse(&text_of(&value)).ok_or_else(|| self.wrong_value(&value))?;
                let most = Decimal::from(most);
                let seconds = if seconds.is_negative() { Decimal::from(0u64) } else { seconds };
                Ok(Value::Decimal(if seconds > most { most } else { seconds }.rounded(6)))
            }
            (Seconds(..), _) => Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name])),
            (Flag(_), Value::Int(0) | Value::UInt(0)) => Ok(Value::FALSE),
            (Flag(_), Value::Int(1) | Value::UInt(1)) => Ok(Value::TRUE),
            (Flag(_), Value::Text(text)) => match text.to_ascii_lowercase().as_str() {
                "on" | "true" => Ok(Value::TRUE),
                "off" | "false" => Ok(Value::FALSE),
                _ => Err(self.wrong_value(&value)),
            },
            (Flag(_), _) => Err(self.wrong_value(&value)),
            (OneOf(_, words), Value::Text(text)) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text.as_str()));
                word.map(|word| Value::text(*word)).ok_or_else(|| self.wrong_value(&value))
            }
            (OneOf(_, words), Value::Int(_) | Value::UInt(_)) => {
                let word = text_of(&value).parse::<usize>().ok().and_then(|place| words.get(place));
                word.map(|word| Value::text(*word)).ok_or_else(|| self.wrong_value(&value))
            }
            (OneOf(..), Value::Null) => Err(self.wrong_value(&value)),
            (OneOf(..), _) => Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name])),
            (Word(_), Value::Text(_)) => Ok(value),
            // Nullable lists, and numbered words, are checked where the words are known.
            (Word(_), Value::Null) if self.name == "session_track_system_variables" => Ok(value),
            (Word(_), Value::Int(_) | Value::UInt(_)) if NUMBERED.contains(&self.name) => Ok(value),
            (Word(_), _) if NUMBERED.contains(&self.name) && value != Value::Null => {
                Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name]))
            }
            (Word(_), Value::Null) if NUMBERED.contains(&self.name) => Err(self.wrong_value(&value)),
            (Word(_), Value::Null) => Ok(Value::text("")),
            (Word(_), _) if self.name == "session_track_system_variables" => {
                Err(error::WRONG_TYPE_FOR_VAR.with(&[&self.name]))
            }
            (Word(_), _) => Ok(Value::text(text_of(&value))),
        }
    }

    /// Rejects values with an unsupported meaning.
    pub fn check(&self, value: &Value) -> Result<()> {
        match self.may {
            Read => Err(error::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&self.name, &"read only"])),
            // The session knows the character set of the database.
            Keep | Only if text_of(value).eq_ignore_ascii_case(&text_of(&self.default())) => Ok(()),
            Only => Err(self.wrong_value(value)),
            Keep => Err(error::SqlError::unsupported(format!("{} = {}", self.name, text_of(value)))),
            Hint(_) | GlobalHint(_) | Global | Set => Ok(()),
        }
    }
}

/// Returns the value as SHOW VARIABLES shows it.
pub fn shown(variable: &Variable, value: &Value) -> String {
    match (variable.is, value) {
        (Flag(_), Value::Int(truth)) => if *truth != 0 { "ON" } else { "OFF" }.to_owned(),
        (_, value) => text_of(value),
    }
}

/// Variables whose words may be given by number.
const NUMBERED: [&str; 4] =
    ["block_encryption_mode", "completion_type", "session_track_gtids", "session_track_transaction_info"];

/// Returns the value as errors show it.
pub fn spelled(value: &Value) -> String {
    if *value == Value::Null { "NULL".to_owned() } else { text_of(value) }
}

pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Text(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

/// The values of a session, set by it or copied from the server at its start. Clones share the values, for
/// performance_schema.session_variables.
#[derive(Clone, Debug, Default)]
pub struct Values(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    values: Mutex<HashMap<&'static str, Value>>,
    /// Counts changes, so that copies are compared by one number.
    version: AtomicU64,
}

impl Values {
    pub fn get(&self, variable: &Variable) -> Value {
        self.0.values.lock().get(variable.name).cloned().unwrap_or_else(|| variable.default())
    }

    pub fn set(&self, name: &'static str, value: Value) {
        self.0.values.lock().insert(name, value);
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of changes.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    /// Replaces all values.
    pub fn set_all(&self, values: impl Iterator<Item = (&'static str, Value)>) {
        *self.0.values.lock() = values.collect();
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    fn named(&self, name: &str) -> Value {
        find(name).map(|variable| self.get(variable)).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> u64 {
        match self.named(name) {
            Value::UInt(number) => number,
            _ => 0,
        }
    }

    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.named(name), Value::Int(1))
    }

    pub fn word(&self, name: &str) -> String {
        text_of(&self.named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_without_repetition() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn numbers_keep_to_their_bounds() {
        let variable = find("polarx_rpc_galaxy_version").expect("known");
        assert_eq!(variable.form(Value::Int(127)).expect("the most"), Value::UInt(127));
        let code = |value| variable.form(value).expect_err("no such version").code;
        assert_eq!([code(Value::Int(128)), code(Value::Int(-1)), code(Value::text("1"))], [1231, 1231, 1232]);
        assert_eq!([code(Value::Null), code(Value::Double(1.0))], [1232, 1232]);
        assert_eq!(
            find("polarx_rpc_epoll_groups").expect("known").check(&Value::UInt(1)).expect_err("read").code,
            1238
        );
    }

    #[test]
    fn what_has_no_effect_cannot_be_asked_for() {
        let variable = find("sql_auto_is_null").expect("known");
        assert!(variable.check(&Value::FALSE).is_ok());
        assert_eq!(variable.check(&Value::TRUE).expect_err("not served").code, 1235);
        assert_eq!(find("sql_warnings").expect("known").check(&Value::TRUE).expect_err("not so").code, 1231);
        assert_eq!(find("no_such_thing").err().expect("unknown").code, 1193);
    }

    /// A variable without effect tells its reader so.
    #[test]
    fn the_documents_list_the_hints_with_their_reasons() {
        let document = include_str!("../../../../docs/protocols/mysql.md");
        for Variable { name, may, .. } in VARIABLES {
            if let Hint(reason) | GlobalHint(reason) = may {
                let row = document.lines().find(|line| line.ends_with(&format!("| {reason} |")));
                assert!(row.is_some_and(|row| row.contains(&format!("`{name}`"))), "{name}: {reason}");
            }
        }
    }

    #[test]
    fn words_are_set_by_name_or_place() {
        let variable = find("binlog_format").expect("known");
        assert_eq!(variable.form(Value::text("statement")).expect("a name"), Value::text("STATEMENT"));
        assert_eq!(variable.form(Value::Int(0)).expect("a place"), Value::text("MIXED"));
        let code = |value| variable.form(value).expect_err("no such format").code;
        assert_eq!([code(Value::Int(3)), code(Value::text("x")), code(Value::Null)], [1231, 1231, 1231]);
        assert_eq!(code(Value::Double(1.0)), 1232);
    }

    #[test]
    fn switches_are_merged() {
        let changed = switched(SWITCHES, "mrr=off, Hash_Join=OFF").expect("two flags");
        assert_eq!(changed, SWITCHES.replace("mrr=on", "mrr=off").replace("hash_join=on", "hash_join=off"));
        assert_eq!(switched(&changed, "default").as_deref(), Some(SWITCHES));
        assert_eq!(switched(&changed, "mrr=default,hash_join=default").as_deref(), Some(SWITCHES));
        assert_eq!(switched(SWITCHES, ""), Some(SWITCHES.to_owned()));
        assert_eq!(switched(SWITCHES, "mrr").or(switched(SWITCHES, "x=on")).or(switched(SWITCHES, "mrr=1")), None);
    }
}
