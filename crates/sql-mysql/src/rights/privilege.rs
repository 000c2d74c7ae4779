//! The table of privileges.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Privileges(pub u64);

/// The levels at which a privilege can be granted.
const GLOBAL: u8 = 1;
pub(crate) const DATABASE: u8 = 2;
pub(crate) const TABLE: u8 = 4;
const COLUMN: u8 = 8;

pub struct Row {
    pub name: &'static str,
    pub set: Privileges,
    pub(crate) levels: u8,
    /// MySQL 8.0 keeps it apart from those it always had.
    pub is_dynamic: bool,
    /// Its column in `mysql.user`.
    pub column: &'static str,
}

macro_rules! privileges {
    ($($name:ident $bit:literal $text:literal $levels:expr, $column:literal;)*) => {
        impl Privileges {
            $(pub const $name: Privileges = Privileges(1 << $bit);)*
        }
        /// In the order in which SHOW GRANTS names them.
        pub const ALL: &[Row] = &[$(Row { name: $text, set: Privileges::$name, levels: $levels, is_dynamic: $column.is_empty(), column: $column }),*];
    };
}

privileges! {
    SELECT 0 "SELECT" GLOBAL | DATABASE | TABLE | COLUMN, "Select_priv";
    INSERT 1 "INSERT" GLOBAL | DATABASE | TABLE | COLUMN, "Insert_priv";
    UPDATE 2 "UPDATE" GLOBAL | DATABASE | TABLE | COLUMN, "Update_priv";
    DELETE 3 "DELETE" GLOBAL | DATABASE | TABLE, "Delete_priv";
    CREATE 4 "CREATE" GLOBAL | DATABASE | TABLE, "Create_priv";
    DROP 5 "DROP" GLOBAL | DATABASE | TABLE, "Drop_priv";
    RELOAD 6 "RELOAD" GLOBAL, "Reload_priv";
    SHUTDOWN 7 "SHUTDOWN" GLOBAL, "Shutdown_priv";
    PROCESS 8 "PROCESS" GLOBAL, "Process_priv";
    FILE 9 "FILE" GLOBAL, "File_priv";
    REFERENCES 10 "REFERENCES" GLOBAL | DATABASE | TABLE | COLUMN, "References_priv";
    INDEX 11 "INDEX" GLOBAL | DATABASE | TABLE, "Index_priv";
    ALTER 12 "ALTER" GLOBAL | DATABASE | TABLE, "Alter_priv";
    SHOW_DATABASES 13 "SHOW DATABASES" GLOBAL, "Show_db_priv";
    SUPER 14 "SUPER" GLOBAL, "Super_priv";
    CREATE_TEMPORARY_TABLES 15 "CREATE TEMPORARY TABLES" GLOBAL | DATABASE, "Create_tmp_table_priv";
    LOCK_TABLES 16 "LOCK TABLES" GLOBAL | DATABASE, "Lock_tables_priv";
    EXECUTE 17 "EXECUTE" GLOBAL | DATABASE, "Execute_priv";
    REPLICATION_SLAVE 18 "REPLICATION SLAVE" GLOBAL, "Repl_slave_priv";
    REPLICATION_CLIENT 19 "REPLICATION CLIENT" GLOBAL, "Repl_client_priv";
    CREATE_VIEW 20 "CREATE VIEW" GLOBAL | DATABASE | TABLE, "Create_view_priv";
    SHOW_VIEW 21 "SHOW VIEW" GLOBAL | DATABASE | TABLE, "Show_view_priv";
    CREATE_ROUTINE 22 "CREATE ROUTINE" GLOBAL | DATABASE, "Create_routine_priv";
    ALTER_ROUTINE 23 "ALTER ROUTINE" GLOBAL | DATABASE, "Alter_routine_priv";
    CREATE_USER 24 "CREATE USER" GLOBAL, "Create_user_priv";
    EVENT 25 "EVENT" GLOBAL | DATABASE, "Event_priv";
    TRIGGER 26 "TRIGGER" GLOBAL | DATABASE | TABLE, "Trigger_priv";
    CREATE_TABLESPACE 27 "CREATE TABLESPACE" GLOBAL, "Create_tablespace_priv";
    CREATE_ROLE 28 "CREATE ROLE" GLOBAL, "Create_role_priv";
    DROP_ROLE 29 "DROP ROLE" GLOBAL, "Drop_role_priv";
    CONNECTION_ADMIN 40 "CONNECTION_ADMIN" GLOBAL, "";
    ROLE_ADMIN 41 "ROLE_ADMIN" GLOBAL, "";
    SET_USER_ID 42 "SET_USER_ID" GLOBAL, "";
    SYSTEM_USER 44 "SYSTEM_USER" GLOBAL, "";
    SYSTEM_VARIABLES_ADMIN 43 "SYSTEM_VARIABLES_ADMIN" GLOBAL, "";
}

const fn of_level(level: u8, dynamic: bool) -> Privileges {
    let (mut at, mut set) = (0, 0);
    while at < ALL.len() {
        if ALL[at].levels & level != 0 && (dynamic || !ALL[at].is_dynamic) {
            set |= ALL[at].set.0;
        }
        at += 1;
    }
    Privileges(set)
}

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    /// May pass on what it has at this level.
    pub const GRANT: Privileges = Privileges(1 << 63);
    /// The privileges of ALL at each level; GRANT OPTION is never among them.
    pub const OF_SERVER: Privileges = of_level(GLOBAL, true);
    pub const STATIC: Privileges = of_level(GLOBAL, false);
    pub const OF_DATABASE: Privileges = of_level(DATABASE, false);
    pub const OF_TABLE: Privileges = of_level(TABLE, false);
    pub const OF_COLUMN: Privileges = of_level(COLUMN, false);

    pub fn has(self, all: Privileges) -> bool {
        self.0 & all.0 == all.0
    }

    pub fn has_any(self, some: Privileges) -> bool {
        self.0 & some.0 != 0
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    pub fn names(self) -> Vec<&'static str> {
        ALL.iter().filter(|row| self.has(row.set)).map(|row| row.name).collect()
    }

    /// The first of them, as errors name it.
    pub fn first(self) -> &'static str {
        self.names().first().copied().unwrap_or("GRANT")
    }
}

/// The privilege of that name, in any case.
pub fn named(name: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.name.eq_ignore_ascii_case(name))
}

impl BitOr for Privileges {
    type Output = Privileges;
    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Privileges) {
        self.0 |= other.0;
    }
}

impl BitAnd for Privileges {
    type Output = Privileges;
    fn bitand(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }
}

impl Not for Privileges {
    type Output = Privileges;
    fn not(self) -> Privileges {
        Privileges(!self.0)
    }
}
