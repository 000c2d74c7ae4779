//! Tables of information_schema for features that do not exist: triggers, routines, events, files. Their columns are
//! those of MySQL 8.0, since clients name them, and they have no rows. PARTITIONS has one row for each table, as in
//! MySQL, and PLUGINS lists built-in features.

use crate::system::column::{DATE_TIME, LONG_TEXT, NUMBER, chars};
use datum::Result;

use crate::batch::Row;
use crate::scalar::temporal::Timestamp;
use crate::system::schema::{NAME, all_tables, nothing};
use crate::system::text;
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "TRIGGERS",
        columns: &[
            ("TRIGGER_CATALOG", NAME),
            ("TRIGGER_SCHEMA", NAME),
            ("TRIGGER_NAME", NAME),
            ("EVENT_MANIPULATION", chars(6)),
            ("EVENT_OBJECT_CATALOG", NAME),
            ("EVENT_OBJECT_SCHEMA", NAME),
            ("EVENT_OBJECT_TABLE", NAME),
            ("ACTION_ORDER", NUMBER),
            ("ACTION_CONDITION", LONG_TEXT),
            ("ACTION_STATEMENT", LONG_TEXT),
            ("ACTION_ORIENTATION", chars(3)),
            ("ACTION_TIMING", chars(6)),
            ("ACTION_REFERENCE_OLD_TABLE", NAME),
            ("ACTION_REFERENCE_NEW_TABLE", NAME),
            ("ACTION_REFERENCE_OLD_ROW", chars(3)),
            ("ACTION_REFERENCE_NEW_ROW", chars(3)),
            ("CREATED", DATE_TIME),
            ("SQL_MODE", chars(512)),
            ("DEFINER", chars(288)),
            ("CHARACTER_SET_CLIENT", NAME),
            ("COLLATION_CONNECTION", NAME),
            ("DATABASE_COLLATION", NAME),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "ROUTINES",
        columns: &[
            ("SPECIFIC_NAME", NAME),
            ("ROUTINE_CATALOG", NAME),
            ("ROUTINE_SCHEMA", NAME),
            ("ROUTINE_NAME", NAME),
            ("ROUTINE_TYPE", chars(9)),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", NUMBER),
            ("CHARACTER_OCTET_LENGTH", NUMBER),
            ("NUMERIC_PRECISION", NUMBER),
            ("NUMERIC_SCALE", NUMBER),
            ("DATETIME_PRECISION", NUMBER),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("DTD_IDENTIFIER", LONG_TEXT),
            ("ROUTINE_BODY", chars(8)),
            ("ROUTINE_DEFINITION", LONG_TEXT),
            ("EXTERNAL_NAME", NAME),
            ("EXTERNAL_LANGUAGE", NAME),
            ("PARAMETER_STYLE", chars(3)),
            ("IS_DETERMINISTIC", chars(3)),
            ("SQL_DATA_ACCESS", chars(17)),
            ("SQL_PATH", NAME),
            ("SECURITY_TYPE", chars(7)),
            ("CREATED", DATE_TIME),
            ("LAST_ALTERED", DATE_TIME),
            ("SQL_MODE", chars(512)),
            ("ROUTINE_COMMENT", LONG_TEXT),
            ("DEFINER", chars(288)),
            ("CHARACTER_SET_CLIENT", NAME),
            ("COLLATION_CONNECTION", NAME),
            ("DATABASE_COLLATION", NAME),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PARAMETERS",
        columns: &[
            ("SPECIFIC_CATALOG", NAME),
            ("SPECIFIC_SCHEMA", NAME),
            ("SPECIFIC_NAME", NAME),
            ("ORDINAL_POSITION", NUMBER),
            ("PARAMETER_MODE", chars(5)),
            ("PARAMETER_NAME", NAME),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", NUMBER),
            ("CHARACTER_OCTET_LENGTH", NUMBER),
            ("NUMERIC_PRECISION", NUMBER),
            ("NUMERIC_SCALE", NUMBER),
            ("DATETIME_PRECISION", NUMBER),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("DTD_IDENTIFIER", LONG_TEXT),
            ("ROUTINE_TYPE", chars(9)),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "EVENTS",
        columns: &[
            ("EVENT_CATALOG", NAME),
            ("EVENT_SCHEMA", NAME),
            ("EVENT_NAME", NAME),
            ("DEFINER", chars(288)),
            ("TIME_ZONE", NAME),
            ("EVENT_BODY", chars(3)),
            ("EVENT_DEFINITION", LONG_TEXT),
            ("EVENT_TYPE", chars(9)),
            ("EXECUTE_AT", DATE_TIME),
            ("INTERVAL_VALUE", chars(256)),
            ("INTERVAL_FIELD", chars(18)),
            ("SQL_MODE", chars(512)),
            ("STARTS", DATE_TIME),
            ("ENDS", DATE_TIME),
            ("STATUS", chars(18)),
            ("ON_COMPLETION", chars(12)),
            ("CREATED", DATE_TIME),
            ("LAST_ALTERED", DATE_TIME),
            ("LAST_EXECUTED", DATE_TIME),
            ("EVENT_COMMENT", chars(2048)),
            ("ORIGINATOR", NUMBER),
            ("CHARACTER_SET_CLIENT", NAME),
            ("COLLATION_CONNECTION", NAME),
            ("DATABASE_COLLATION", NAME),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "FILES",
        columns: &[
            ("FILE_ID", NUMBER),
            ("FILE_NAME", LONG_TEXT),
            ("FILE_TYPE", chars(256)),
            ("TABLESPACE_NAME", chars(268)),
            ("TABLE_CATALOG", chars(1)),
            ("TABLE_SCHEMA", chars(1)),
            ("TABLE_NAME", chars(1)),
            ("LOGFILE_GROUP_NAME", chars(256)),
            ("LOGFILE_GROUP_NUMBER", NUMBER),
            ("ENGINE", NAME),
            ("FULLTEXT_KEYS", chars(1)),
            ("DELETED_ROWS", NUMBER),
            ("UPDATE_COUNT", NUMBER),
            ("FREE_EXTENTS", NUMBER),
            ("TOTAL_EXTENTS", NUMBER),
            ("EXTENT_SIZE", NUMBER),
            ("INITIAL_SIZE", NUMBER),
            ("MAXIMUM_SIZE", NUMBER),
            ("AUTOEXTEND_SIZE", NUMBER),
            ("CREATION_TIME", DATE_TIME),
            ("LAST_UPDATE_TIME", DATE_TIME),
            ("LAST_ACCESS_TIME", DATE_TIME),
            ("RECOVER_TIME", NUMBER),
            ("TRANSACTION_COUNTER", NUMBER),
            ("VERSION", NUMBER),
            ("ROW_FORMAT", chars(256)),
            ("TABLE_ROWS", NUMBER),
            ("AVG_ROW_LENGTH", NUMBER),
            ("DATA_LENGTH", NUMBER),
            ("MAX_DATA_LENGTH", NUMBER),
            ("INDEX_LENGTH", NUMBER),
            ("DATA_FREE", NUMBER),
            ("CREATE_TIME", DATE_TIME),
            ("UPDATE_TIME", DATE_TIME),
            ("CHECK_TIME", DATE_TIME),
            ("CHECKSUM", NUMBER),
            ("STATUS", chars(256)),
            ("EXTRA", chars(256)),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PLUGINS",
        columns: &[
            ("PLUGIN_NAME", NAME),
            ("PLUGIN_VERSION", chars(20)),
            ("PLUGIN_STATUS", chars(10)),
            ("PLUGIN_TYPE", chars(80)),
            ("PLUGIN_TYPE_VERSION", chars(20)),
            ("PLUGIN_LIBRARY", NAME),
            ("PLUGIN_LIBRARY_VERSION", chars(20)),
            ("PLUGIN_AUTHOR", NAME),
            ("PLUGIN_DESCRIPTION", LONG_TEXT),
            ("PLUGIN_LICENSE", chars(80)),
            ("LOAD_OPTION", NAME),
        ],
        rows: Computed(plugins),
    },
    SystemTable {
        schema: "information_schema",
        name: "RESOURCE_GROUPS",
        columns: &[
            ("RESOURCE_GROUP_NAME", NAME),
            ("RESOURCE_GROUP_TYPE", chars(6)),
            ("RESOURCE_GROUP_ENABLED", NUMBER),
            ("VCPU_IDS", LONG_TEXT),
            ("THREAD_PRIORITY", NUMBER),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "ST_GEOMETRY_COLUMNS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("SRS_NAME", chars(80)),
            ("SRS_ID", NUMBER),
            ("GEOMETRY_TYPE_NAME", LONG_TEXT),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PROFILING",
        columns: &[
            ("QUERY_ID", NUMBER),
            ("SEQ", NUMBER),
            ("STATE", chars(30)),
            ("DURATION", NUMBER),
            ("CPU_USER", NUMBER),
            ("CPU_SYSTEM", NUMBER),
            ("CONTEXT_VOLUNTARY", NUMBER),
            ("CONTEXT_INVOLUNTARY", NUMBER),
            ("BLOCK_OPS_IN", NUMBER),
            ("BLOCK_OPS_OUT", NUMBER),
            ("MESSAGES_SENT", NUMBER),
            ("MESSAGES_RECEIVED", NUMBER),
            ("PAGE_FAULTS_MAJOR", NUMBER),
            ("PAGE_FAULTS_MINOR", NUMBER),
            ("SWAPS", NUMBER),
            ("SOURCE_FUNCTION", chars(30)),
            ("SOURCE_FILE", chars(20)),
            ("SOURCE_LINE", NUMBER),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PARTITIONS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("PARTITION_NAME", NAME),
            ("SUBPARTITION_NAME", NAME),
            ("PARTITION_ORDINAL_POSITION", NUMBER),
            ("SUBPARTITION_ORDINAL_POSITION", NUMBER),
            ("PARTITION_METHOD", chars(13)),
            ("SUBPARTITION_METHOD", chars(13)),
            ("PARTITION_EXPRESSION", chars(2048)),
            ("SUBPARTITION_EXPRESSION", chars(2048)),
            ("PARTITION_DESCRIPTION", LONG_TEXT),
            ("TABLE_ROWS", NUMBER),
            ("AVG_ROW_LENGTH", NUMBER),
            ("DATA_LENGTH", NUMBER),
            ("MAX_DATA_LENGTH", NUMBER),
            ("INDEX_LENGTH", NUMBER),
            ("DATA_FREE", NUMBER),
            ("CREATE_TIME", DATE_TIME),
            ("UPDATE_TIME", DATE_TIME),
            ("CHECK_TIME", DATE_TIME),
            ("CHECKSUM", NUMBER),
            ("PARTITION_COMMENT", LONG_TEXT),
            ("NODEGROUP", chars(256)),
            ("TABLESPACE_NAME", chars(268)),
        ],
        rows: Computed(partitions),
    },
];

/// Returns the built-in features that MySQL has as plugins.
fn plugins(_: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |(name, version, kind, api, words): (&str, &str, &str, &str, &str)| {
        let [name, version, kind, api, words] = [name, version, kind, api, words].map(text);
        let (active, always, licence) = (text("ACTIVE"), text("FORCE"), text("Apache-2.0"));
        vec![name, version, active, kind, api, Value::Null, Value::Null, text("Beluga"), words, licence, always]
    };
    let all = [
        ("caching_sha2_password", "1.0", "AUTHENTICATION", "2.1", "Caching sha2 authentication"),
        ("mysql_native_password", "1.1", "AUTHENTICATION", "2.1", "Native MySQL authentication"),
        ("InnoDB", "8.0", "STORAGE ENGINE", "80040.0", "Supports transactions, row-level locking, and foreign keys"),
    ];
    Ok(all.into_iter().map(row).collect())
}

fn partitions(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        let mut row = vec![Value::Null; 25];
        row[0] = text("def");
        row[1] = text(&table.schema);
        row[2] = text(&table.name);
        row[12] = Value::UInt(crate::system::statistics::rows_of(&table, ctx));
        row[18] = Value::DateTime(ctx.zone.local(Timestamp(table.created)));
        row[22] = text("");
        rows.push(row);
    }
    Ok(rows)
}
