use datum::fault::{
    CellPosition, ColumnName, DuplicateKey, FileError, ForeignKeyParts, IndexExpression, ReferencedColumn,
    ReferencedKey, ReferencedType, SequenceLimit, SequencePosition,
};

use super::*;

fn boxed(names: &[&str]) -> Box<[Box<str>]> {
    names.iter().map(|name| Box::from(*name)).collect()
}

fn foreign_key(parent_schema: &str, on_delete: Option<&'static str>) -> Box<ForeignKeyParts> {
    Box::new(ForeignKeyParts {
        constraint: "c_ibfk_1".into(),
        schema: "d".into(),
        table: "c".into(),
        columns: boxed(&["a", "b"]),
        parent_schema: parent_schema.into(),
        parent_table: "p".into(),
        parent_columns: boxed(&["x", "y"]),
        on_delete,
        on_update: None,
        values: boxed(&["1", "2"]),
    })
}

fn cell() -> Box<CellPosition> {
    Box::new(CellPosition { column: "a".into(), row: 3 })
}

fn file() -> Box<FileError> {
    Box::new(FileError { path: "spill".into(), os_error: 5, cause: "Input/output error (os error 5)".into() })
}

fn of_index(cause: Fault) -> Fault {
    Fault::IndexExpression(Box::new(IndexExpression { index: "f".into(), row: 2, cause }))
}

#[test]
fn every_fault_has_its_error() {
    let key = DuplicateKey { table: "t".into(), index: Some("u".into()), values: boxed(&["1", "b"]) };
    let primary = DuplicateKey { index: None, ..key.clone() };
    let missing = ReferencedColumn { constraint: "c".into(), parent: "p".into(), column: "x".into() };
    let types = ReferencedType { constraint: "c".into(), column: "a".into(), referenced: "x".into() };
    let truncated = error::TRUNCATED_WRONG_VALUE_FOR_FIELD.with(&[&"integer", &"x", &"a", &2]);
    let rendered = [
        (Fault::corrupt("a row's head"), "ERROR 1105 (HY000): Corrupt data: a row's head"),
        (
            stdx::memory::Full { bytes: 7 }.into(),
            "ERROR 1041 (HY000): Out of memory; 7 bytes more are beyond what the setting 'memory' leaves to sessions and requests",
        ),
        (Fault::InvalidZone("Nowhere".into()), "ERROR 1298 (HY000): Unknown or incorrect time zone: 'Nowhere'"),
        (
            Fault::JsonSyntax { message: "Invalid value.", position: 3 },
            "ERROR 3140 (22032): Invalid JSON text: \"Invalid value.\" at position 3 in value for column ''.",
        ),
        (Fault::JsonDepth, "ERROR 3157 (22032): The JSON document exceeds the maximum depth."),
        (Fault::UnknownDatabase("d".into()), "ERROR 1049 (42000): Unknown database 'd'"),
        (Fault::unknown_table("d", "t"), "ERROR 1146 (42S02): Table 'd.t' doesn't exist"),
        (
            Fault::unknown_table("INFORMATION_SCHEMA", "t"),
            "ERROR 1109 (42S02): Unknown table 't' in information_schema",
        ),
        (Fault::DuplicateKey(key.into()), "ERROR 1062 (23000): Duplicate entry '1-b' for key 't.u'"),
        (Fault::DuplicateKey(primary.into()), "ERROR 1062 (23000): Duplicate entry '1-b' for key 't.PRIMARY'"),
        (Fault::NotNull { column: "a".into() }, "ERROR 1048 (23000): Column 'a' cannot be null"),
        (Fault::NoDefault { column: "a".into() }, "ERROR 1364 (HY000): Field 'a' doesn't have a default value"),
        (
            Fault::GeneratedColumnGiven(ColumnName { table: "t".into(), column: "g".into() }.into()),
            "ERROR 3105 (HY000): The value specified for generated column 'g' in table 't' is not allowed.",
        ),
        (Fault::OutOfRange(cell()), "ERROR 1264 (22003): Out of range value for column 'a' at row 3"),
        (Fault::TooLong(cell()), "ERROR 1406 (22001): Data too long for column 'a' at row 3"),
        (
            of_index(Fault::OutOfRange(cell())),
            "ERROR 3752 (22003): Value is out of range for functional index 'f' at row 2",
        ),
        (of_index(Fault::TooLong(cell())), "ERROR 3751 (01000): Data truncated for functional index 'f' at row 2"),
        (of_index(truncated.into()), "ERROR 3751 (01000): Data truncated for functional index 'f' at row 2"),
        (
            of_index(Fault::Deadlock),
            "ERROR 1213 (40001): Deadlock found when trying to get lock; try restarting transaction",
        ),
        (
            Fault::CheckViolated { constraint: "t_chk_1".into() },
            "ERROR 3819 (HY000): Check constraint 't_chk_1' is violated.",
        ),
        (Fault::ViewCheckFailed { view: "d.v".into() }, "ERROR 1369 (HY000): CHECK OPTION failed 'd.v'"),
        (
            Fault::ParentMissing(foreign_key("d", None)),
            "ERROR 1452 (23000): Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `c_ibfk_1` FOREIGN KEY (`a`, `b`) REFERENCES `p` (`x`, `y`))",
        ),
        (
            Fault::ParentReferenced(foreign_key("e", Some("RESTRICT"))),
            "ERROR 1451 (23000): Cannot delete or update a parent row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `c_ibfk_1` FOREIGN KEY (`a`, `b`) REFERENCES `e`.`p` (`x`, `y`) ON DELETE RESTRICT)",
        ),
        (
            Fault::CascadeDepth { max: 15 },
            "ERROR 3008 (HY000): Foreign key cascade delete/update exceeds max depth of 15.",
        ),
        (
            Fault::SequenceLimit(Box::new(SequenceLimit { sequence: "s".into(), is_max: true, limit: 9 })),
            "ERROR 1105 (HY000): sequence 's' has reached its bound 9",
        ),
        (
            Fault::SequencePosition(Box::new(SequencePosition { sequence: "s".into(), value: 0, min: 1, max: 9 })),
            "ERROR 1105 (HY000): 0 is outside the bounds 1 and 9 of sequence 's'",
        ),
        (Fault::SequenceExhausted, "ERROR 1105 (HY000): Failed to read auto-increment value from storage engine"),
        (
            Fault::RowTooLarge { max: 9 },
            "ERROR 1118 (42000): Row size too large. The maximum row size for the used table type, not counting BLOBs, is 9. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs",
        ),
        (
            Fault::KeyTooLong { table: "t".into(), max: 768 },
            "ERROR 1071 (42000): Specified key was too long; max key length is 768 bytes; ALTER TABLE `t` FORCE makes keys for longer values",
        ),
        (
            Fault::ReferencedColumnMissing(missing.into()),
            "ERROR 3734 (HY000): Failed to add the foreign key constraint. Missing column 'x' for constraint 'c' in the referenced table 'p'",
        ),
        (
            Fault::ReferencedColumnType(types.into()),
            "ERROR 3780 (HY000): Referencing column 'a' and referenced column 'x' in foreign key constraint 'c' are incompatible.",
        ),
        (
            Fault::ReferencedKeyMissing(ReferencedKey { constraint: "c".into(), parent: "p".into() }.into()),
            "ERROR 1822 (HY000): Failed to add the foreign key constraint. Missing index for constraint 'c' in the referenced table 'p'",
        ),
        (Fault::CardinalityViolation, "ERROR 1242 (21000): Subquery returns more than 1 row"),
        (
            Fault::RecursionLimit { rounds: 1001 },
            "ERROR 3636 (HY000): Recursive query aborted after 1001 iterations. Try increasing @@cte_max_recursion_depth to a larger value.",
        ),
        (Fault::InvalidLimit, "ERROR 1210 (HY000): Incorrect arguments to LIMIT"),
        (Fault::InvalidArgument { function: "ntile" }, "ERROR 1210 (HY000): Incorrect arguments to ntile"),
        (
            Fault::InvalidFrame { window: "w".into() },
            "ERROR 3586 (HY000): Window 'w': frame start or end is negative, NULL or of non-integral type",
        ),
        (
            Fault::JsonTableInput,
            "ERROR 3146 (22032): Invalid data type for JSON data in argument 1 to function json_table; a JSON string or JSON type is required.",
        ),
        (Fault::JsonTableMissing { column: "a".into() }, "ERROR 3665 (22035): Missing value for JSON_TABLE column 'a'"),
        (Fault::Suspended, "ERROR 0 (00000): the statement is suspended"),
        (Fault::Interrupted, "ERROR 1317 (70100): Query execution was interrupted"),
        (
            Fault::StatementTimeout,
            "ERROR 3024 (HY000): Query execution was interrupted, maximum statement execution time exceeded",
        ),
        (Fault::LockTimeout, "ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction"),
        (
            Fault::LockNotAvailable { table: None },
            "ERROR 3572 (HY000): Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.",
        ),
        (Fault::Deadlock, "ERROR 1213 (40001): Deadlock found when trying to get lock; try restarting transaction"),
        (Fault::TooManyLocks { max: 9 }, "ERROR 1206 (HY000): The total number of locks exceeds the lock table size"),
        (
            Fault::TooManyWaits,
            "ERROR 1135 (HY000): Too many statements block a thread each while they wait; try again later",
        ),
        (
            Fault::TooManyComputations,
            "ERROR 1135 (HY000): Too many statements compute for long at once, so that no thread is left for others; try again later",
        ),
        (
            Fault::ReadWriteDependency,
            "ERROR 1105 (HY000): another transaction has changed what this one has read; try it again",
        ),
        (
            Fault::SnapshotTooOld,
            "ERROR 1105 (HY000): snapshot too old: the disk has no room for the row versions that it needs; begin again",
        ),
        (
            Fault::KeysFollow,
            "ERROR 1290 (HY000): The MySQL server is running with the REPLICAOF option so it cannot execute this statement",
        ),
        (Fault::ShuttingDown, "ERROR 1053 (08S01): Server shutdown in progress"),
        (
            Fault::MemoryLimit { bytes: 9 },
            "ERROR 1037 (HY001): Out of memory; the statement needs 9 bytes at once, more than the setting 'statement_memory' allows",
        ),
        (
            Fault::DiskFull { folder: Some("/s".into()) },
            "ERROR 1021 (HY000): Disk full (/s); waiting for someone to free some space...",
        ),
        (
            Fault::DiskFull { folder: None },
            "ERROR 1021 (HY000): Disk full (beluga); waiting for someone to free some space...",
        ),
        (
            Fault::FileRead(file()),
            "ERROR 1024 (HY000): Error reading file 'spill' (errno: 5 - Input/output error (os error 5))",
        ),
        (
            Fault::FileWrite(file()),
            "ERROR 1026 (HY000): Error writing file 'spill' (errno: 5 - Input/output error (os error 5))",
        ),
        (Fault::Storage("internal error: x".into()), "ERROR 1105 (HY000): internal error: x"),
    ];
    for (fault, text) in rendered {
        assert_eq!(SqlError::from(fault).to_string(), text);
    }
}

#[test]
fn an_error_passes_unchanged_through_a_fault() {
    let own = error::DUP_ENTRY.with(&[&1, &"t.PRIMARY"]);
    assert_eq!(SqlError::from(Fault::from(own.clone())), own);
    assert_eq!(Fault::from(error::SUSPENDED.bare()), Fault::Suspended);
}

#[test]
fn an_error_of_the_engine_keeps_its_kind() {
    use engine::Error;
    let full = stdx::memory::Full { bytes: 7 };
    let faults = [
        (Error::WouldBlock, Fault::Suspended),
        (Error::LockTimeout, Fault::LockTimeout),
        (Error::Cancelled, Fault::Interrupted),
        (Error::LockNotAvailable, Fault::LockNotAvailable { table: None }),
        (Error::Deadlock, Fault::Deadlock),
        (Error::DiskFull, Fault::DiskFull { folder: None }),
        (Error::Following, Fault::KeysFollow),
        (Error::ShuttingDown, Fault::ShuttingDown),
        (Error::TooLarge { what: "row", limit: 9 }, Fault::RowTooLarge { max: 9 }),
        (Error::ReadWriteDependency, Fault::ReadWriteDependency),
        (Error::SnapshotTooOld, Fault::SnapshotTooOld),
        (Error::OutOfMemory(full), Fault::Storage(format!("out of memory: {full}").into())),
        (Error::Misuse("x"), Fault::Storage("internal error: x".into())),
    ];
    for (error, fault) in faults {
        assert_eq!(engine_fault(error), fault);
    }
}
