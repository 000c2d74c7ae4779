//! Tables of information_schema for features that do not exist: triggers, routines, events, files. Their columns are
//! those of MySQL 8.0, since clients name them, and they have no rows. PARTITIONS has one row for each table, as in
//! MySQL, and PLUGINS lists built-in features.

use datum::Result;

use crate::batch::Row;
use crate::scalar::temporal::Timestamp;
use crate::system::schema::{NAME, all_tables, nothing};
use crate::system::text;
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::system_table::Holds::{DateTime, LongText, Number, Text};
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
            ("EVENT_MANIPULATION", Text(6)),
            ("EVENT_OBJECT_CATALOG", NAME),
            ("EVENT_OBJECT_SCHEMA", NAME),
            ("EVENT_OBJECT_TABLE", NAME),
            ("ACTION_ORDER", Number),
            ("ACTION_CONDITION", LongText),
            ("ACTION_STATEMENT", LongText),
            ("ACTION_ORIENTATION", Text(3)),
            ("ACTION_TIMING", Text(6)),
            ("ACTION_REFERENCE_OLD_TABLE", NAME),
            ("ACTION_REFERENCE_NEW_TABLE", NAME),
            ("ACTION_REFERENCE_OLD_ROW", Text(3)),
            ("ACTION_REFERENCE_NEW_ROW", Text(3)),
            ("CREATED", DateTime),
            ("SQL_MODE", Text(512)),
            ("DEFINER", Text(288)),
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
            ("ROUTINE_TYPE", Text(9)),
            ("DATA_TYPE", LongText),
            ("CHARACTER_MAXIMUM_LENGTH", Number),
            ("CHARACTER_OCTET_LENGTH", Number),
            ("NUMERIC_PRECISION", Number),
            ("NUMERIC_SCALE", Number),
            ("DATETIME_PRECISION", Number),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("DTD_IDENTIFIER", LongText),
            ("ROUTINE_BODY", Text(8)),
            ("ROUTINE_DEFINITION", LongText),
            ("EXTERNAL_NAME", NAME),
            ("EXTERNAL_LANGUAGE", NAME),
            ("PARAMETER_STYLE", Text(3)),
            ("IS_DETERMINISTIC", Text(3)),
            ("SQL_DATA_ACCESS", Text(17)),
            ("SQL_PATH", NAME),
            ("SECURITY_TYPE", Text(7)),
            ("CREATED", DateTime),
            ("LAST_ALTERED", DateTime),
            ("SQL_MODE", Text(512)),
            ("ROUTINE_COMMENT", LongText),
            ("DEFINER", Text(288)),
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
            ("ORDINAL_POSITION", Number),
            ("PARAMETER_MODE", Text(5)),
            ("PARAMETER_NAME", NAME),
            ("DATA_TYPE", LongText),
            ("CHARACTER_MAXIMUM_LENGTH", Number),
            ("CHARACTER_OCTET_LENGTH", Number),
            ("NUMERIC_PRECISION", Number),
            ("NUMERIC_SCALE", Number),
            ("DATETIME_PRECISION", Number),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("DTD_IDENTIFIER", LongText),
            ("ROUTINE_TYPE", Text(9)),
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
            ("DEFINER", Text(288)),
            ("TIME_ZONE", NAME),
            ("EVENT_BODY", Text(3)),
            ("EVENT_DEFINITION", LongText),
            ("EVENT_TYPE", Text(9)),
            ("EXECUTE_AT", DateTime),
            ("INTERVAL_VALUE", Text(256)),
            ("INTERVAL_FIELD", Text(18)),
            ("SQL_MODE", Text(512)),
            ("STARTS", DateTime),
            ("ENDS", DateTime),
            ("STATUS", Text(18)),
            ("ON_COMPLETION", Text(12)),
            ("CREATED", DateTime),
            ("LAST_ALTERED", DateTime),
            ("LAST_EXECUTED", DateTime),
            ("EVENT_COMMENT", Text(2048)),
            ("ORIGINATOR", Number),
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
            ("FILE_ID", Number),
            ("FILE_NAME", LongText),
            ("FILE_TYPE", Text(256)),
            ("TABLESPACE_NAME", Text(268)),
            ("TABLE_CATALOG", Text(1)),
            ("TABLE_SCHEMA", Text(1)),
            ("TABLE_NAME", Text(1)),
            ("LOGFILE_GROUP_NAME", Text(256)),
            ("LOGFILE_GROUP_NUMBER", Number),
            ("ENGINE", NAME),
            ("FULLTEXT_KEYS", Text(1)),
            ("DELETED_ROWS", Number),
            ("UPDATE_COUNT", Number),
            ("FREE_EXTENTS", Number),
            ("TOTAL_EXTENTS", Number),
            ("EXTENT_SIZE", Number),
            ("INITIAL_SIZE", Number),
            ("MAXIMUM_SIZE", Number),
            ("AUTOEXTEND_SIZE", Number),
            ("CREATION_TIME", DateTime),
            ("LAST_UPDATE_TIME", DateTime),
            ("LAST_ACCESS_TIME", DateTime),
            ("RECOVER_TIME", Number),
            ("TRANSACTION_COUNTER", Number),
            ("VERSION", Number),
            ("ROW_FORMAT", Text(256)),
            ("TABLE_ROWS", Number),
            ("AVG_ROW_LENGTH", Number),
            ("DATA_LENGTH", Number),
            ("MAX_DATA_LENGTH", Number),
            ("INDEX_LENGTH", Number),
            ("DATA_FREE", Number),
            ("CREATE_TIME", DateTime),
            ("UPDATE_TIME", DateTime),
            ("CHECK_TIME", DateTime),
            ("CHECKSUM", Number),
            ("STATUS", Text(256)),
            ("EXTRA", Text(256)),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PLUGINS",
        columns: &[
            ("PLUGIN_NAME", NAME),
            ("PLUGIN_VERSION", Text(20)),
            ("PLUGIN_STATUS", Text(10)),
            ("PLUGIN_TYPE", Text(80)),
            ("PLUGIN_TYPE_VERSION", Text(20)),
            ("PLUGIN_LIBRARY", NAME),
            ("PLUGIN_LIBRARY_VERSION", Text(20)),
            ("PLUGIN_AUTHOR", NAME),
            ("PLUGIN_DESCRIPTION", LongText),
            ("PLUGIN_LICENSE", Text(80)),
            ("LOAD_OPTION", NAME),
        ],
        rows: Computed(plugins),
    },
    SystemTable {
        schema: "information_schema",
        name: "RESOURCE_GROUPS",
        columns: &[
            ("RESOURCE_GROUP_NAME", NAME),
            ("RESOURCE_GROUP_TYPE", Text(6)),
            ("RESOURCE_GROUP_ENABLED", Number),
            ("VCPU_IDS", LongText),
            ("THREAD_PRIORITY", Number),
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
            ("SRS_NAME", Text(80)),
            ("SRS_ID", Number),
            ("GEOMETRY_TYPE_NAME", LongText),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "information_schema",
        name: "PROFILING",
        columns: &[
            ("QUERY_ID", Number),
            ("SEQ", Number),
            ("STATE", Text(30)),
            ("DURATION", Number),
            ("CPU_USER", Number),
            ("CPU_SYSTEM", Number),
            ("CONTEXT_VOLUNTARY", Number),
            ("CONTEXT_INVOLUNTARY", Number),
            ("BLOCK_OPS_IN", Number),
            ("BLOCK_OPS_OUT", Number),
            ("MESSAGES_SENT", Number),
            ("MESSAGES_RECEIVED", Number),
            ("PAGE_FAULTS_MAJOR", Number),
            ("PAGE_FAULTS_MINOR", Number),
            ("SWAPS", Number),
            ("SOURCE_FUNCTION", Text(30)),
            ("SOURCE_FILE", Text(20)),
            ("SOURCE_LINE", Number),
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
            ("PARTITION_ORDINAL_POSITION", Number),
            ("SUBPARTITION_ORDINAL_POSITION", Number),
            ("PARTITION_METHOD", Text(13)),
            ("SUBPARTITION_METHOD", Text(13)),
            ("PARTITION_EXPRESSION", Text(2048)),
            ("SUBPARTITION_EXPRESSION", Text(2048)),
            ("PARTITION_DESCRIPTION", LongText),
            ("TABLE_ROWS", Number),
            ("AVG_ROW_LENGTH", Number),
            ("DATA_LENGTH", Number),
            ("MAX_DATA_LENGTH", Number),
            ("INDEX_LENGTH", Number),
            ("DATA_FREE", Number),
            ("CREATE_TIME", DateTime),
            ("UPDATE_TIME", DateTime),
            ("CHECK_TIME", DateTime),
            ("CHECKSUM", Number),
            ("PARTITION_COMMENT", LongText),
            ("NODEGROUP", Text(256)),
            ("TABLESPACE_NAME", Text(268)),
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
