//! The table of errors, with MySQL's codes.
//!
//! A code has MySQL's symbolic name, number, SQLSTATE and message format, in which `{}` stands for each argument. Doors
//! write code, SQLSTATE and message as they are. The numbers are those of MySQL 8.0's `mysqld_error.h`, since clients
//! match on them.

pub mod fault;

use std::fmt::{self, Display};

use datum::Fault;

/// An error as the client receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    pub sqlstate: &'static str,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, SqlError>;

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub name: &'static str,
    pub code: u16,
    pub sqlstate: &'static str,
    pub format: &'static str,
}

/// The error of a client from another machine while the account `default` needs no password; its arguments are the host and the door's setting.
pub const HOST_NOT_PRIVILEGED: Code = Code::new(
    "HOST_NOT_PRIVILEGED",
    1130,
    "HY000",
    "Host '{}' is not allowed to connect to this Beluga server while the account `default` needs no password; give it one with the setting redis_password, or turn {} off if nobody else can reach this port",
);

/// The error of a client without TLS where it is required; its argument is the door's setting.
pub const SECURE_TRANSPORT_REQUIRED: Code = Code::new(
    "SECURE_TRANSPORT_REQUIRED",
    3159,
    "HY000",
    "Connections using insecure transport are prohibited while {}.",
);

impl Code {
    /// Returns a row of the table, for errors of a protocol that stand beside it.
    pub const fn new(name: &'static str, code: u16, sqlstate: &'static str, format: &'static str) -> Code {
        Code { name, code, sqlstate, format }
    }

    /// Returns the error with its arguments in place of each `{}`.
    pub fn with(&self, arguments: &[&dyn Display]) -> SqlError {
        let mut message = String::with_capacity(self.format.len() + 16 * arguments.len());
        let mut pieces = self.format.split("{}");
        message.push_str(pieces.next().unwrap_or(""));
        let mut arguments = arguments.iter();
        for piece in pieces {
            if let Some(argument) = arguments.next() {
                message.push_str(&argument.to_string());
            }
            message.push_str(piece);
        }
        SqlError { code: self.code, sqlstate: self.sqlstate, message }
    }

    pub fn bare(&self) -> SqlError {
        self.with(&[])
    }

    /// Returns the error as a fault, for code that the core calls.
    #[cold]
    pub fn raise(&self, arguments: &[&dyn Display]) -> Fault {
        self.with(arguments).into()
    }

    /// Returns whether the error has this code.
    pub fn is(&self, error: &SqlError) -> bool {
        self.code == error.code
    }
}

impl SqlError {
    /// Returns error 1235, for SQL that is understood but not supported.
    pub fn unsupported(what: impl Display) -> SqlError {
        NOT_SUPPORTED_YET.with(&[&what])
    }

    /// Returns the error of damaged bytes: 1105. `what` names the damaged structure.
    pub fn corrupt(what: &str) -> SqlError {
        Fault::corrupt(what).into()
    }

    /// Returns error 1064, for SQL that MySQL's own parser would reject.
    pub fn parse(near: impl Display) -> SqlError {
        PARSE_ERROR.with(&[&near])
    }
}

/// Returns MySQL's number of a fault.
pub fn code_of(fault: &Fault) -> u16 {
    match fault {
        Fault::Dialect(raised) => raised.code,
        fault => SqlError::from(fault.clone()).code,
    }
}

/// Returns MySQL's number and text of a fault, for tests.
#[cfg(test)]
pub fn rendered(fault: &Fault) -> SqlError {
    SqlError::from(fault.clone())
}

/// Returns `SqlError::unsupported` as a fault, for code that the core calls.
#[cold]
pub fn not_supported(what: impl Display) -> Fault {
    SqlError::unsupported(what).into()
}

/// Returns `SqlError::parse` as a fault, for code that the core calls.
#[cold]
pub fn wrong_syntax(near: impl Display) -> Fault {
    SqlError::parse(near).into()
}

impl Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<stdx::memory::Full> for SqlError {
    fn from(full: stdx::memory::Full) -> SqlError {
        OUT_OF_RESOURCES.with(&[&full])
    }
}

/// The statement is suspended rather than blocked in a wait (`session::suspension`). No client ever sees it.
pub const SUSPENDED: Code =
    Code { name: "SUSPENDED", code: 0, sqlstate: "00000", format: "the statement is suspended" };

macro_rules! codes {
    ($($name:ident $code:literal $state:literal $format:literal;)*) => {
        $(pub const $name: Code = Code { name: stringify!($name), code: $code, sqlstate: $state, format: $format };)*
        /// All codes.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

codes! {
    CANT_CREATE_TABLE 1005 "HY000" "Can't create table '{}' (errno: {} - {})";
    DB_CREATE_EXISTS 1007 "HY000" "Can't create database '{}'; database exists";
    DB_DROP_EXISTS 1008 "HY000" "Can't drop database '{}'; database doesn't exist";
    DISK_FULL 1021 "HY000" "Disk full ({}); waiting for someone to free some space...";
    ERROR_ON_READ 1024 "HY000" "Error reading file '{}' (errno: {} - {})";
    ERROR_ON_WRITE 1026 "HY000" "Error writing file '{}' (errno: {} - {})";
    DUP_KEY 1022 "23000" "Can't write; duplicate key in table '{}'";
    OUT_OF_MEMORY 1037 "HY001" "Out of memory; the statement needs {} bytes at once, more than the setting 'statement_memory' allows";
    CON_COUNT 1040 "08004" "Too many connections";
    OUT_OF_RESOURCES 1041 "HY000" "Out of memory; {}";
    DBACCESS_DENIED 1044 "42000" "Access denied for user '{}'@'{}' to database '{}'";
    ACCESS_DENIED 1045 "28000" "Access denied for user '{}'@'{}' (using password: {})";
    NO_DB 1046 "3D000" "No database selected";
    UNKNOWN_COM 1047 "08S01" "Unknown command";
    BAD_NULL 1048 "23000" "Column '{}' cannot be null";
    BAD_DB 1049 "42000" "Unknown database '{}'";
    TABLE_EXISTS 1050 "42S01" "Table '{}' already exists";
    BAD_TABLE 1051 "42S02" "Unknown table '{}'";
    NON_UNIQ 1052 "23000" "Column '{}' in {} is ambiguous";
    SERVER_SHUTDOWN 1053 "08S01" "Server shutdown in progress";
    BAD_FIELD 1054 "42S22" "Unknown column '{}' in '{}'";
    WRONG_FIELD_WITH_GROUP 1055 "42000" "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    WRONG_GROUP_FIELD 1056 "42000" "Can't group on '{}'";
    WRONG_VALUE_COUNT 1058 "21S01" "Column count doesn't match value count";
    TOO_LONG_IDENT 1059 "42000" "Identifier name '{}' is too long";
    DUP_FIELDNAME 1060 "42S21" "Duplicate column name '{}'";
    DUP_KEYNAME 1061 "42000" "Duplicate key name '{}'";
    DUP_ENTRY 1062 "23000" "Duplicate entry '{}' for key '{}'";
    WRONG_FIELD_SPEC 1063 "42000" "Incorrect column specifier for column '{}'";
    PARSE_ERROR 1064 "42000" "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near {}";
    EMPTY_QUERY 1065 "42000" "Query was empty";
    NONUNIQ_TABLE 1066 "42000" "Not unique table/alias: '{}'";
    INVALID_DEFAULT 1067 "42000" "Invalid default value for '{}'";
    MULTIPLE_PRI_KEY 1068 "42000" "Multiple primary key defined";
    TOO_MANY_KEYS 1069 "42000" "Too many keys specified; max {} keys allowed";
    TOO_MANY_KEY_PARTS 1070 "42000" "Too many key parts specified; max {} parts allowed";
    TOO_LONG_KEY 1071 "42000" "Specified key was too long; max key length is {} bytes";
    KEY_COLUMN_DOES_NOT_EXIST 1072 "42000" "Key column '{}' doesn't exist in table";
    BLOB_USED_AS_KEY 1073 "42000" "BLOB column '{}' can't be used in key specification with the used table type";
    TOO_BIG_FIELDLENGTH 1074 "42000" "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    WRONG_AUTO_KEY 1075 "42000" "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    WRONG_SUB_KEY 1089 "HY000" "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    CANT_REMOVE_ALL_FIELDS 1090 "42000" "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CANT_DROP_FIELD_OR_KEY 1091 "42000" "Can't DROP '{}'; check that column/key exists";
    WRONG_FIELD_TERMINATORS 1083 "42000" "Field separator argument is not what is expected; check the manual";
    BLOBS_AND_NO_TERMINATED 1084 "42000" "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
    TEXTFILE_NOT_READABLE 1085 "HY000" "The file '{}' must be in the database directory or be readable by all";
    FILE_EXISTS 1086 "HY000" "File '{}' already exists";
    UPDATE_TABLE_USED 1093 "HY000" "You can't specify target table '{}' for update in FROM clause";
    NO_SUCH_THREAD 1094 "HY000" "Unknown thread id: {}";
    TABLE_NOT_LOCKED_FOR_WRITE 1099 "HY000" "Table '{}' was locked with a READ lock and can't be updated";
    LOCK_OR_ACTIVE_TRANSACTION 1192 "HY000" "Can't execute the given command because you have active locked tables or an active transaction";
    TABLE_NOT_LOCKED 1100 "HY000" "Table '{}' was not locked with LOCK TABLES";
    BLOB_CANT_HAVE_DEFAULT 1101 "42000" "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value";
    WRONG_DB_NAME 1102 "42000" "Incorrect database name '{}'";
    WRONG_TABLE_NAME 1103 "42000" "Incorrect table name '{}'";
    UNKNOWN_ERROR 1105 "HY000" "{}";
    UNKNOWN_TABLE 1109 "42S02" "Unknown table '{}' in {}";
    FIELD_SPECIFIED_TWICE 1110 "42000" "Column '{}' specified twice";
    INVALID_GROUP_FUNC_USE 1111 "HY000" "Invalid use of group function";
    TABLE_MUST_HAVE_COLUMNS 1113 "42000" "A table must have at least 1 column";
    UNKNOWN_CHARACTER_SET 1115 "42000" "Unknown character set: '{}'";
    TOO_MANY_TABLES 1116 "HY000" "Too many tables; MySQL can only use {} tables in a join";
    TOO_MANY_FIELDS 1117 "HY000" "Too many columns";
    TOO_BIG_ROWSIZE 1118 "42000" "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    WRONG_OUTER_JOIN 1120 "42000" "Cross dependency found in OUTER JOIN; examine your ON conditions";
    WRONG_VALUE_COUNT_ON_ROW 1136 "21S01" "Column count doesn't match value count at row {}";
    INVALID_USE_OF_NULL 1138 "22004" "Invalid use of NULL value";
    REGEXP_ERROR 1139 "42000" "Got error '{}' from regexp";
    TABLEACCESS_DENIED 1142 "42000" "{} command denied to user '{}'@'{}' for table '{}'";
    COLUMNACCESS_DENIED 1143 "42000" "{} command denied to user '{}'@'{}' for column '{}' in table '{}'";
    NO_SUCH_TABLE 1146 "42S02" "Table '{}.{}' doesn't exist";
    TOO_LONG_STRING 1162 "42000" "Result string is longer than 'max_allowed_packet' bytes";
    WRONG_COLUMN_NAME 1166 "42000" "Incorrect column name '{}'";
    WRONG_KEY_COLUMN 1167 "42000" "The used storage engine can't index column '{}'";
    BLOB_KEY_WITHOUT_LENGTH 1170 "42000" "BLOB/TEXT column '{}' used in key specification without a key length";
    PRIMARY_CANT_HAVE_NULL 1171 "42000" "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    NET_PACKET_TOO_LARGE 1153 "08S01" "Got a packet bigger than 'max_allowed_packet' bytes";
    UPDATE_WITHOUT_KEY_IN_SAFE_MODE 1175 "HY000" "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. ";
    TOO_MANY_ROWS 1172 "42000" "Result consisted of more than one row";
    REQUIRES_PRIMARY_KEY 1173 "42000" "This table type requires a primary key";
    KEY_DOES_NOT_EXIST 1176 "42000" "Key '{}' doesn't exist in table '{}'";
    CANT_DO_THIS_DURING_TRANSACTION 1179 "25000" "You are not allowed to execute this command in a transaction";
    UNKNOWN_SYSTEM_VARIABLE 1193 "HY000" "Unknown system variable '{}'";
    CANT_CREATE_THREAD 1135 "HY000" "Too many statements block a thread each while they wait; try again later";
    TOO_MANY_COMPUTATIONS 1135 "HY000" "Too many statements compute for long at once, so that no thread is left for others; try again later";
    LOCK_WAIT_TIMEOUT 1205 "HY000" "Lock wait timeout exceeded; try restarting transaction";
    LOCK_TABLE_FULL 1206 "HY000" "The total number of locks exceeds the lock table size";
    WRONG_ARGUMENTS 1210 "HY000" "Incorrect arguments to {}";
    LOCK_DEADLOCK 1213 "40001" "Deadlock found when trying to get lock; try restarting transaction";
    CANNOT_ADD_FOREIGN 1215 "HY000" "Cannot add foreign key constraint";
    NO_REFERENCED_ROW 1216 "23000" "Cannot add or update a child row: a foreign key constraint fails";
    ROW_IS_REFERENCED 1217 "23000" "Cannot delete or update a parent row: a foreign key constraint fails";
    WRONG_USAGE 1221 "HY000" "Incorrect usage of {} and {}";
    WRONG_NUMBER_OF_COLUMNS_IN_SELECT 1222 "21000" "The used SELECT statements have a different number of columns";
    CANT_UPDATE_WITH_READLOCK 1223 "HY000" "Can't execute the query because you have a conflicting read lock";
    DUP_ARGUMENT 1225 "HY000" "Option '{}' used twice in statement";
    KILL_DENIED 1095 "HY000" "You are not owner of thread {}";
    PASSWORD_NO_MATCH 1133 "42000" "Can't find any matching row in the user table";
    NONEXISTING_GRANT 1141 "42000" "There is no such grant defined for user '{}' on host '{}'";
    ILLEGAL_GRANT_FOR_TABLE 1144 "42000" "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    NONEXISTING_TABLE_GRANT 1147 "42000" "There is no such grant defined for user '{}' on host '{}' on table '{}'";
    WRONG_OBJECT 1347 "HY000" "'{}.{}' is not {}";
    NONUPDATEABLE_COLUMN 1348 "HY000" "Column '{}' is not updatable";
    VIEW_SELECT_VARIABLE 1351 "HY000" "View's SELECT contains a variable or parameter";
    VIEW_SELECT_TMPTABLE 1352 "HY000" "View's SELECT refers to a temporary table '{}'";
    TOO_BIG_ENUM 3504 "HY000" "Too many enumeration values for column {}.";
    FOREIGN_KEY_WITH_ATOMIC_CREATE_SELECT 3978 "HY000" "Foreign key creation is not allowed with CREATE TABLE as SELECT and CREATE TABLE with START TRANSACTION statement.";
    VIEW_WRONG_LIST 1353 "HY000" "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    VIEW_INVALID 1356 "HY000" "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    VIEW_NONUPD_CHECK 1368 "HY000" "CHECK OPTION on non-updatable view '{}.{}'";
    VIEW_CHECK_FAILED 1369 "HY000" "CHECK OPTION failed '{}'";
    VIEW_DELETE_MERGE_VIEW 1395 "HY000" "Can not delete from join view '{}.{}'";
    CANNOT_USER 1396 "HY000" "Operation {} failed for {}";
    LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR 1409 "HY000" "Can't load value from file with fixed size rows to variable";
    CANT_CREATE_USER_WITH_GRANT 1410 "42000" "You are not allowed to create a user with GRANT";
    TABLE_DEF_CHANGED 1412 "HY000" "Table definition has changed, please retry transaction";
    NON_INSERTABLE_TABLE 1471 "HY000" "The target table {} of the {} is not insertable-into";
    PLUGIN_IS_NOT_LOADED 1524 "HY000" "Plugin '{}' is not loaded";
    VARIABLE_NOT_SETTABLE_IN_TRANSACTION 1766 "HY000" "The system variable {} cannot be set when there is an ongoing transaction.";
    MUST_CHANGE_PASSWORD 1820 "HY000" "You must reset your password using ALTER USER statement before executing this statement.";
    NOT_VALID_PASSWORD 1819 "HY000" "Your password does not satisfy the current policy requirements";
    PASSWORD_FORMAT 1827 "HY000" "The password hash doesn't have the expected format.";
    MUST_CHANGE_PASSWORD_LOGIN 1862 "HY000" "Your password has expired. To log in you must change it using a client that supports expired passwords.";
    ACCOUNT_HAS_BEEN_LOCKED 3118 "HY000" "Access denied for user '{}'@'{}'. Account is locked.";
    USER_DOES_NOT_EXIST 3162 "HY000" "Authorization ID {} does not exist.";
    USER_ALREADY_EXISTS 3163 "HY000" "Authorization ID {} already exists.";
    UNKNOWN_AUTHID 3523 "HY000" "Unknown authorization ID {}";
    ROLE_NOT_GRANTED 3530 "HY000" "{} is not granted to {}";
    ROLE_GRANTED_TO_ITSELF 4027 "HY000" "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop";
    SPECIFIC_ACCESS_DENIED 1227 "42000" "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    LOCAL_VARIABLE 1228 "HY000" "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    GLOBAL_VARIABLE 1229 "HY000" "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    NO_DEFAULT 1230 "42000" "Variable '{}' doesn't have a default value";
    WRONG_VALUE_FOR_VAR 1231 "42000" "Variable '{}' can't be set to the value of '{}'";
    WRONG_TYPE_FOR_VAR 1232 "42000" "Incorrect argument type to variable '{}'";
    CANT_USE_OPTION_HERE 1234 "42000" "Incorrect usage/placement of '{}'";
    NOT_SUPPORTED_YET 1235 "42000" "This version of Beluga doesn't yet support '{}'";
    INCORRECT_GLOBAL_LOCAL_VAR 1238 "HY000" "Variable '{}' is a {} variable";
    WRONG_FK_DEF 1239 "42000" "Incorrect foreign key definition for '{}': {}";
    OPERAND_COLUMNS 1241 "21000" "Operand should contain {} column(s)";
    SUBQUERY_NO_1_ROW 1242 "21000" "Subquery returns more than 1 row";
    UNKNOWN_STMT_HANDLER 1243 "HY000" "Unknown prepared statement handler ({}) given to {}";
    ILLEGAL_REFERENCE 1247 "42S22" "Reference '{}' not supported ({})";
    DERIVED_MUST_HAVE_ALIAS 1248 "42000" "Every derived table must have its own alias";
    TABLENAME_NOT_ALLOWED_HERE 1250 "42000" "Table '{}' from one of the {}s cannot be used in {}";
    SPATIAL_CANT_HAVE_NULL 1252 "42000" "All parts of a SPATIAL index must be NOT NULL";
    COLLATION_CHARSET_MISMATCH 1253 "42000" "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    TOO_BIG_FOR_UNCOMPRESS 1256 "HY000" "Uncompressed data size too large; the maximum size is {} (probably, length of uncompressed data was corrupted)";
    ZLIB_Z_BUF_ERROR 1258 "HY000" "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was corrupted)";
    ZLIB_Z_DATA_ERROR 1259 "HY000" "ZLIB: Input data corrupted";
    WARN_TOO_FEW_RECORDS 1261 "01000" "Row {} doesn't contain data for all columns";
    WARN_TOO_MANY_RECORDS 1262 "01000" "Row {} was truncated; it contained more data than there were input columns";
    WARN_NULL_TO_NOTNULL 1263 "22004" "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    WARN_DATA_OUT_OF_RANGE 1264 "22003" "Out of range value for column '{}' at row {}";
    WARN_DATA_TRUNCATED 1265 "01000" "Data truncated for column '{}' at row {}";
    WARN_USING_OTHER_HANDLER 1266 "HY000" "Using storage engine {} for table '{}'";
    CANT_AGGREGATE_2COLLATIONS 1267 "HY000" "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    CANT_AGGREGATE_3COLLATIONS 1270 "HY000" "Illegal mix of collations ({},{}), ({},{}), ({},{}) for operation '{}'";
    CANT_AGGREGATE_NCOLLATIONS 1271 "HY000" "Illegal mix of collations for operation '{}'";
    UNKNOWN_COLLATION 1273 "HY000" "Unknown collation: '{}'";
    WARN_DEPRECATED_SYNTAX 1287 "HY000" "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    FEATURE_DISABLED 1289 "HY000" "The '{}' feature is disabled; you need MySQL built with '{}' to have it working";
    UNKNOWN_STORAGE_ENGINE 1286 "42000" "Unknown storage engine '{}'";
    OPTION_PREVENTS_STATEMENT 1290 "HY000" "The MySQL server is running with the {} option so it cannot execute this statement";
    DUPLICATED_VALUE_IN_TYPE 1291 "HY000" "Column '{}' has duplicated value '{}' in {}";
    TRUNCATED_WRONG_VALUE 1292 "22007" "Truncated incorrect {} value: '{}'";
    WRONG_VALUE_TEMPORAL 1292 "22007" "Incorrect {} value: '{}'";
    WRONG_VALUE_FOR_COLUMN_TEMPORAL 1292 "22007" "Incorrect {} value: '{}' for column '{}' at row {}";
    UNSUPPORTED_PS 1295 "HY000" "This command is not supported in the prepared statement protocol yet";
    UNKNOWN_TIME_ZONE 1298 "HY000" "Unknown or incorrect time zone: '{}'";
    WARN_INVALID_TIMESTAMP 1299 "HY000" "Invalid TIMESTAMP value in column '{}' at row {}";
    INVALID_CHARACTER_STRING 1300 "HY000" "Invalid {} character string: '{}'";
    WARN_ALLOWED_PACKET_OVERFLOWED 1301 "HY000" "Result of {}() was larger than max_allowed_packet ({}) - truncated";
    SP_ALREADY_EXISTS 1304 "42000" "{} {} already exists";
    SP_DOES_NOT_EXIST 1305 "42000" "{} {} does not exist";
    QUERY_INTERRUPTED 1317 "70100" "Query execution was interrupted";
    SP_UNDECLARED_VAR 1327 "42000" "Undeclared variable: {}";
    SP_WRONG_NO_OF_ARGS 1318 "42000" "Incorrect number of arguments for {} {}; expected {}, got {}";
    SP_FETCH_NO_DATA 1329 "02000" "No data - zero rows fetched, selected, or processed";
    DIVISION_BY_ZERO 1365 "22012" "Division by 0";
    NO_DEFAULT_FOR_FIELD 1364 "HY000" "Field '{}' doesn't have a default value";
    TRUNCATED_WRONG_VALUE_FOR_FIELD 1366 "HY000" "Incorrect {} value: '{}' for column '{}' at row {}";
    ILLEGAL_VALUE_FOR_TYPE 1367 "22007" "Illegal {} '{}' value found during parsing";
    PS_MANY_PARAM 1390 "HY000" "Prepared statement contains too many placeholders";
    PROCACCESS_DENIED 1370 "42000" "{} command denied to user '{}'@'{}' for routine '{}'";
    WRONG_PARAMCOUNT_TO_NATIVE_FCT 1582 "42000" "Incorrect parameter count in the call to native function '{}'";
    WARN_OPTION_IGNORED 1618 "HY000" "<{}> option ignored";
    AES_INVALID_IV 1882 "HY000" "The initialization vector supplied to {} is too short. Must be at least {} bytes long";
    VAR_DOES_NOT_EXIST 3615 "HY000" "Variable {} does not exist in persisted config file";
    WRONG_PARAMETERS_TO_NATIVE_FCT 1583 "42000" "Incorrect parameters in the call to native function '{}'";
    CANT_CHANGE_TX_CHARACTERISTICS 1568 "25001" "Transaction characteristics can't be changed while a transaction is in progress";
    DUP_ENTRY_WITH_KEY_NAME 1586 "23000" "Duplicate entry '{}' for key '{}'";
    XAER_RMFAIL 1399 "XAE07" "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {} state";
    DATA_TOO_LONG 1406 "22001" "Data too long for column '{}' at row {}";
    DATETIME_FUNCTION_OVERFLOW 1441 "22008" "Datetime function: {} field overflow";
    TOO_BIG_SCALE 1425 "42000" "Too big scale {} specified for '{}'. Maximum is {}.";
    TOO_BIG_PRECISION 1426 "42000" "Too-big precision {} specified for '{}'. Maximum is {}.";
    M_BIGGER_THAN_D 1427 "42000" "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').";
    TOO_BIG_DISPLAYWIDTH 1439 "42000" "Display width out of range for column '{}' (max = {})";
    STACK_OVERRUN 1436 "HY000" "Thread stack overrun:  {}";
    TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT 1473 "HY000" "Too high level of nesting for select: more than {} query blocks within each other";
    TOO_MANY_TOKENS 3170 "HY000" "Memory capacity for the parser exceeded: a statement may have {} words, literals and signs. Parser bailed out for this query.";
    ROW_IS_REFERENCED_2 1451 "23000" "Cannot delete or update a parent row: a foreign key constraint fails ({})";
    NO_REFERENCED_ROW_2 1452 "23000" "Cannot add or update a child row: a foreign key constraint fails ({})";
    NON_GROUPING_FIELD_USED 1463 "42000" "Non-grouping field '{}' is used in {} clause";
    WRONG_VALUE 1525 "HY000" "Incorrect {} value: '{}'";
    CUT_VALUE_GROUP_CONCAT 1260 "HY000" "Row {} was cut by GROUP_CONCAT()";
    NO_DEFAULT_FOR_VIEW_FIELD 1423 "HY000" "Field of view '{}.{}' underlying table doesn't have a default value";
    NO_SUCH_USER 1449 "HY000" "The user specified as a definer ('{}'@'{}') does not exist";
    VIEW_RECURSIVE 1462 "HY000" "`{}`.`{}` contains view recursion";
    WRONG_STRING_LENGTH 1470 "HY000" "String '{}' is too long for {} (should be no longer than {})";
    NON_UPDATABLE_TABLE 1288 "HY000" "The target table {} of the {} is not updatable";
    TOO_MANY_VALUES_FOR_TYPE 1097 "HY000" "Too many strings for column {} and SET";
    KEY_REF_DO_NOT_MATCH_TABLE_REF 1240 "HY000" "Key reference and table reference don't match";
    FK_INCOMPATIBLE_COLUMNS 3780 "HY000" "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.";
    FK_NO_COLUMN_PARENT 3734 "HY000" "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in the referenced table '{}'";
    FK_CANNOT_DROP_PARENT 3730 "HY000" "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.";
    FK_DEPTH_EXCEEDED 3008 "HY000" "Foreign key cascade delete/update exceeds max depth of {}.";
    FK_COLUMN_CANNOT_DROP_CHILD 1829 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'";
    FK_COLUMN_CANNOT_CHANGE 1832 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}'";
    FK_COLUMN_CANNOT_CHANGE_CHILD 1833 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}' of table '{}'";
    CHECK_USES_FK_COLUMN 3823 "HY000" "Column '{}' cannot be used in a check constraint '{}': needed in a foreign key constraint '{}' referential action.";
    DROP_INDEX_FK 1553 "HY000" "Cannot drop index '{}': needed in a foreign key constraint";
    FK_NO_INDEX_PARENT 1822 "HY000" "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'";
    FK_CANNOT_OPEN_PARENT 1824 "HY000" "Failed to open the referenced table '{}'";
    FK_COLUMN_CANNOT_DROP 1828 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}'";
    FK_COLUMN_NOT_NULL 1830 "HY000" "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL";
    DUP_INDEX 1831 "HY000" "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release.";
    FK_DUP_NAME 1826 "HY000" "Duplicate foreign key constraint name '{}'";
    DATA_OUT_OF_RANGE 1690 "22003" "{} value is out of range in '{}'";
    BAD_BASE64_DATA 1575 "HY000" "Decoding of base64 string failed";
    TRUNCATE_ILLEGAL_FK 1701 "42000" "Cannot truncate a table referenced in a foreign key constraint ({})";
    UNKNOWN_EXPLAIN_FORMAT 1791 "HY000" "Unknown EXPLAIN format name: '{}'";
    TOO_BIG_SELECT 1104 "42000" "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    UNKNOWN_LOCALE 1649 "HY000" "Unknown locale: '{}'";
    CANT_EXECUTE_IN_READ_ONLY_TRANSACTION 1792 "25006" "Cannot execute statement in a READ ONLY transaction.";
    ALTER_OPERATION_NOT_SUPPORTED 1845 "0A000" "{} is not supported for this operation. Try {}.";
    INVALID_ARGUMENT_FOR_LOGARITHM 3020 "2201E" "Invalid argument for logarithm";
    QUERY_TIMEOUT 3024 "HY000" "Query execution was interrupted, maximum statement execution time exceeded";
    DUP_LIST_ENTRY 3026 "HY000" "Duplicate entry '{}'.";
    USER_LOCK_WRONG_NAME 3057 "42000" "Incorrect user-level lock name '{}'.";
    USER_LOCK_DEADLOCK 3058 "HY000" "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition.";
    GENERATED_COLUMN_NOT_ALLOWED 3105 "HY000" "The value specified for generated column '{}' in table '{}' is not allowed.";
    GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED 3102 "HY000" "Expression of generated column '{}' contains a disallowed function.";
    WRONG_FK_OPTION_FOR_GENERATED_COLUMN 3104 "HY000" "Cannot define foreign key with {} clause on a generated column.";
    UNSUPPORTED_ACTION_ON_GENERATED_COLUMN 3106 "HY000" "'{}' is not supported for generated columns.";
    GENERATED_COLUMN_NON_PRIOR 3107 "HY000" "Generated column can refer only to generated columns defined prior to it.";
    DEPENDENT_BY_GENERATED_COLUMN 3108 "HY000" "Column '{}' has a generated column dependency.";
    GENERATED_COLUMN_REF_AUTO_INC 3109 "HY000" "Generated column '{}' cannot refer to auto-increment column.";
    FK_CANNOT_USE_VIRTUAL_COLUMN 3733 "HY000" "Foreign key '{}' uses virtual column '{}' which is not supported.";
    DATA_TRUNCATED_FUNCTIONAL_INDEX 3751 "01000" "Data truncated for functional index '{}' at row {}";
    DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX 3752 "22003" "Value is out of range for functional index '{}' at row {}";
    FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION 3753 "42000" "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
    FUNCTIONAL_INDEX_REF_AUTO_INCREMENT 3754 "HY000" "Functional index '{}' cannot refer to an auto-increment column.";
    CANNOT_DROP_COLUMN_FUNCTIONAL_INDEX 3755 "HY000" "Cannot drop column '{}' because it is used by a functional index. In order to drop the column, you must remove the functional index.";
    FUNCTIONAL_INDEX_PRIMARY_KEY 3756 "HY000" "The primary key cannot be a functional index";
    FUNCTIONAL_INDEX_ON_LOB 3757 "HY000" "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.";
    FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED 3758 "HY000" "Expression of functional index '{}' contains a disallowed function.";
    FUNCTIONAL_INDEX_ON_FIELD 3762 "HY000" "Functional index on a column is not supported. Consider using a regular index instead.";
    GENERATED_COLUMN_VARIABLES 3765 "HY000" "Expression of generated column '{}' cannot refer user or system variables.";
    FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED 3800 "HY000" "Expression of functional index '{}' cannot refer to a row value.";
    DEPENDENT_BY_FUNCTIONAL_INDEX 3837 "HY000" "Column '{}' has a functional index dependency and cannot be dropped or renamed.";
    GENERATED_COLUMN_FUNCTION 3763 "HY000" "Expression of generated column '{}' contains a disallowed function: {}.";
    INVALID_JSON_TEXT 3140 "22032" "Invalid JSON text: \"{}\" at position {} in value for column '{}'.";
    INVALID_JSON_TEXT_IN_PARAM 3141 "22032" "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.";
    INVALID_JSON_BINARY_DATA 3142 "HY000" "The JSON binary value contains invalid data.";
    INVALID_JSON_PATH 3143 "42000" "Invalid JSON path expression. The error is around character position {}.";
    INVALID_JSON_CHARSET 3144 "22032" "Cannot create a JSON value from a string with CHARACTER SET '{}'.";
    INVALID_TYPE_FOR_JSON 3146 "22032" "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type is required.";
    INVALID_CAST_TO_JSON 3147 "22032" "Cannot CAST value to JSON.";
    INVALID_JSON_PATH_CHARSET 3148 "42000" "A path expression must be encoded in the utf8 character set. The path expression '{}' is encoded in character set '{}'.";
    INVALID_JSON_PATH_WILDCARD 3149 "42000" "In this situation, path expressions may not contain the * and ** tokens or an array range.";
    JSON_USED_AS_KEY 3152 "42000" "JSON column '{}' supports indexing only via generated columns on a specified JSON path.";
    JSON_VACUOUS_PATH 3153 "42000" "The path expression '$' is not allowed in this context.";
    JSON_BAD_ONE_OR_ALL_ARG 3154 "42000" "The oneOrAll argument to {} may take these values: 'one' or 'all'.";
    INVALID_JSON_VALUE_FOR_CAST 3156 "22018" "Invalid JSON value for CAST to {} from column {} at row {}";
    JSON_DOCUMENT_TOO_DEEP 3157 "22032" "The JSON document exceeds the maximum depth.";
    JSON_DOCUMENT_NULL_KEY 3158 "22032" "JSON documents may not contain NULL member names.";
    NULL_IN_JSON_PATH_ARRAY 3165 "42000" "A path expression is not a path to a cell in an array.";
    MISSING_JSON_TABLE_VALUE 3665 "22035" "Missing value for JSON_TABLE column '{}'";
    WRONG_JSON_TABLE_VALUE 3666 "2203F" "Can't store an array or an object in the scalar JSON_TABLE column '{}'";
    TF_MUST_HAVE_ALIAS 3667 "42000" "Every table function must have an alias.";
    TF_FORBIDDEN_JOIN_TYPE 3668 "42000" "INNER or LEFT JOIN must be used for LATERAL references made by '{}'";
    JT_VALUE_OUT_OF_RANGE 3669 "22003" "Value is out of range for JSON_TABLE's column '{}'";
    JT_MAX_NESTED_PATH 3670 "42000" "More than supported {} NESTED PATHs were found in JSON_TABLE '{}'";
    NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT 3812 "HY000" "An expression of non-boolean type specified to a check constraint '{}'.";
    COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN 3813 "HY000" "Column check constraint '{}' references other column.";
    CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED 3814 "HY000" "An expression of a check constraint '{}' contains disallowed function: {}.";
    CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED 3815 "HY000" "An expression of a check constraint '{}' contains disallowed function.";
    CHECK_CONSTRAINT_VARIABLES 3816 "HY000" "An expression of a check constraint '{}' cannot refer to a user or system variable.";
    DEFAULT_AS_VAL_GENERATED 3773 "HY000" "DEFAULT function cannot be used with default value expressions";
    CHECK_CONSTRAINT_VIOLATED 3819 "HY000" "Check constraint '{}' is violated.";
    CHECK_CONSTRAINT_NOT_FOUND 3821 "HY000" "Check constraint '{}' is not found in the table.";
    PK_INDEX_CANT_BE_INVISIBLE 3522 "HY000" "A primary key index cannot be invisible";
    CHECK_CONSTRAINT_DUP_NAME 3822 "HY000" "Duplicate check constraint name '{}'.";
    DEFAULT_VAL_GENERATED_NON_PRIOR 3767 "HY000" "Default value expression of column '{}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value.";
    DEFAULT_VAL_GENERATED_REF_AUTO_INC 3768 "HY000" "Default value expression of column '{}' cannot refer to an auto-increment column.";
    CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN 3818 "HY000" "Check constraint '{}' cannot refer to an auto-increment column.";
    CLIENT_LOCAL_FILES_DISABLED 3948 "42000" "Loading local data is disabled; this must be enabled on both the client and server sides";
    DEPENDENT_BY_CHECK_CONSTRAINT 3959 "HY000" "Check constraint '{}' uses column '{}', hence column cannot be dropped or renamed.";
    CANNOT_CONVERT_STRING 3854 "HY000" "Cannot convert string '{}' from {} to {}";
    CHECK_CONSTRAINT_UNKNOWN_COLUMN 3820 "HY000" "Check constraint '{}' refers to non-existing column '{}'.";
    INVALID_BITWISE_AGGREGATE_OPERANDS_SIZE 3514 "HY000" "Aggregate bitwise functions cannot accept arguments longer than {} bytes; consider using the SUBSTRING() function";
    INVALID_BITWISE_OPERANDS_SIZE 3513 "HY000" "Binary operands of bitwise operators must be of equal length";
    AGGREGATE_ORDER_FOR_UNION 3028 "HY000" "Expression #{} of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT";
    AGGREGATE_ORDER_NON_AGG_QUERY 3029 "HY000" "Expression #{} of ORDER BY contains aggregate function and applies to the result of a non-aggregated query";
    FIELD_IN_ORDER_NOT_SELECT 3065 "HY000" "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with DISTINCT";
    CTE_RECURSIVE_REQUIRES_UNION 3573 "HY000" "Recursive Common Table Expression '{}' should contain a UNION";
    CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST 3574 "HY000" "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or more recursive ones";
    CTE_RECURSIVE_FORBIDS_AGGREGATION 3575 "HY000" "Recursive Common Table Expression '{}' can contain neither aggregation nor window functions in recursive query block";
    CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER 3576 "HY000" "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
    LOCK_NOWAIT 3572 "HY000" "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    CTE_MAX_RECURSION_DEPTH 3636 "HY000" "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    WINDOW_NO_SUCH_WINDOW 3579 "HY000" "Window name '{}' is not defined.";
    WINDOW_CIRCULARITY_IN_WINDOW_GRAPH 3580 "HY000" "There is a circularity in the window dependency graph.";
    WINDOW_NO_CHILD_PARTITIONING 3581 "HY000" "A window which depends on another cannot define partitioning.";
    WINDOW_NO_INHERIT_FRAME 3582 "HY000" "Window '{}' has a frame definition, so cannot be referenced by another window.";
    WINDOW_NO_REDEFINE_ORDER_BY 3583 "HY000" "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause.";
    WINDOW_FRAME_START_ILLEGAL 3584 "HY000" "Window '{}': frame start cannot be UNBOUNDED FOLLOWING.";
    WINDOW_FRAME_END_ILLEGAL 3585 "HY000" "Window '{}': frame end cannot be UNBOUNDED PRECEDING.";
    WINDOW_FRAME_ILLEGAL 3586 "HY000" "Window '{}': frame start or end is negative, NULL or of non-integral type";
    WINDOW_RANGE_FRAME_ORDER_TYPE 3587 "HY000" "Window '{}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type";
    WINDOW_RANGE_FRAME_TEMPORAL_TYPE 3588 "HY000" "Window '{}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
    WINDOW_RANGE_FRAME_NUMERIC_TYPE 3589 "HY000" "Window '{}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
    WINDOW_RANGE_BOUND_NOT_CONSTANT 3590 "HY000" "Window '{}' has a non-constant frame bound.";
    WINDOW_DUPLICATE_NAME 3591 "HY000" "Window '{}' is defined twice.";
    WINDOW_ILLEGAL_ORDER_BY 3592 "HY000" "Window '{}': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.";
    WINDOW_INVALID_WINDOW_FUNC_USE 3593 "HY000" "You cannot use the window function '{}' in this context.'";
    WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE 3594 "HY000" "You cannot use the alias '{}' of an expression containing a window function in this context.'";
    WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC 3595 "HY000" "You cannot nest a window function in the specification of window '{}'.";
    WINDOW_ROWS_INTERVAL_USE 3596 "HY000" "Window '{}': INTERVAL can only be used with RANGE frames.";
    FIELD_IN_GROUPING_NOT_GROUP_BY 3602 "HY000" "Argument #{} of GROUPING function is not in GROUP BY";
    WRONG_VALUE_FOR_TYPE 1411 "HY000" "Incorrect {} value: '{}' for function {}";
    REGEXP_ILLEGAL_ARGUMENT 3685 "HY000" "Illegal argument to a regular expression.";
    REGEXP_INDEX_OUTOFBOUNDS 3686 "HY000" "Index out of bounds in regular expression search.";
    REGEXP_INTERNAL 3684 "HY000" "Internal error in the regular expression library.";
    REGEXP_RULE_SYNTAX 3691 "HY000" "Syntax error in regular expression on line {}, character {}.";
    REGEXP_BAD_ESCAPE 3692 "HY000" "Unrecognized escape sequence in regular expression.";
    REGEXP_TIME_OUT 3699 "HY000" "Timeout exceeded in regular expression match.";
    CHARACTER_SET_MISMATCH 3995 "HY000" "Character set '{}' cannot be used in conjunction with '{}' in call to {}.";
    UNKNOWN_ALTER_ALGORITHM 1800 "HY000" "Unknown ALGORITHM '{}'";
    UNKNOWN_ALTER_LOCK 1801 "HY000" "Unknown LOCK type '{}'";
    MULTIPLE_CONSTRAINTS_WITH_SAME_NAME 3939 "HY000" "Table has multiple constraints with the name '{}'. Please use constraint specific 'DROP' clause.";
    CONSTRAINT_NOT_FOUND 3940 "HY000" "Constraint '{}' does not exist.";
    TABLE_MUST_HAVE_A_VISIBLE_COLUMN 4028 "HY000" "A table must have at least one visible column.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fill_the_format_in_order() {
        let error = DUP_ENTRY.with(&[&1, &"t.PRIMARY"]);
        assert_eq!(error.to_string(), "ERROR 1062 (23000): Duplicate entry '1' for key 't.PRIMARY'");
    }

    #[test]
    fn every_name_and_sqlstate_is_well_formed_and_names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(|code| code.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for code in ALL {
            assert_eq!(code.sqlstate.len(), 5, "{}", code.name);
            assert!(code.code >= 1000, "{}", code.name);
        }
    }
}
