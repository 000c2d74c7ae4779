//! PostgreSQL's keywords in their categories, and their lookup by a table that is computed at compile time.

macro_rules! keywords {
    ($($class:ident: $($word:ident)* ;)*) => {
        /// A keyword, or OTHER for other words, in the order of the categories.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Kw { OTHER, $($($word,)*)* }

        const TEXTS: &[&str] = &["", $($(stringify!($word),)*)*];
        const ALL: &[Kw] = &[Kw::OTHER, $($(Kw::$word,)*)*];
        /// How many keywords each category has.
        const COUNTS: [u16; 8] = [$([$(stringify!($word)),*].len() as u16),*];
    };
}

// The categories of pg_get_keywords(), each first with the words that may be a label without AS, then with those that may not.
keywords! {
unreserved:
    ABORT ABSENT ABSOLUTE ACCESS ACTION ADD ADMIN AFTER AGGREGATE ALSO ALTER ALWAYS ASENSITIVE ASSERTION ASSIGNMENT AT ATOMIC ATTACH ATTRIBUTE
    BACKWARD BEFORE BEGIN BREADTH BY CACHE CALL CALLED CASCADE CASCADED CATALOG CHAIN CHARACTERISTICS CHECKPOINT CLASS CLOSE CLUSTER COLUMNS COMMENT
    COMMENTS COMMIT COMMITTED COMPRESSION CONFIGURATION CONFLICT CONNECTION CONSTRAINTS CONTENT CONTINUE CONVERSION COPY COST CSV CUBE CURRENT CURSOR
    CYCLE DATA DATABASE DEALLOCATE DECLARE DEFAULTS DEFERRED DEFINER DELETE DELIMITER DELIMITERS DEPENDS DEPTH DETACH DICTIONARY DISABLE DISCARD
    DOCUMENT DOMAIN DOUBLE DROP EACH ENABLE ENCODING ENCRYPTED ENUM ESCAPE EVENT EXCLUDE EXCLUDING EXCLUSIVE EXECUTE EXPLAIN EXPRESSION EXTENSION
    EXTERNAL FAMILY FINALIZE FIRST FOLLOWING FORCE FORMAT FORWARD FUNCTION FUNCTIONS GENERATED GLOBAL GRANTED GROUPS HANDLER HEADER HOLD IDENTITY IF
    IMMEDIATE IMMUTABLE IMPLICIT IMPORT INCLUDE INCLUDING INCREMENT INDENT INDEX INDEXES INHERIT INHERITS INLINE INPUT INSENSITIVE INSERT INSTEAD
    INVOKER ISOLATION JSON KEY KEYS LABEL LANGUAGE LARGE LAST LEAKPROOF LEVEL LISTEN LOAD LOCAL LOCATION LOCK LOCKED LOGGED MAPPING MATCH MATCHED
    MATERIALIZED MAXVALUE MERGE METHOD MINVALUE MODE MOVE NAME NAMES NEW NEXT NFC NFD NFKC NFKD NO NORMALIZED NOTHING NOTIFY NOWAIT NULLS OBJECT OF
    OFF OIDS OLD OPERATOR OPTION OPTIONS ORDINALITY OTHERS OVERRIDING OWNED OWNER PARALLEL PARAMETER PARSER PARTIAL PARTITION PASSING PASSWORD PLANS
    POLICY PRECEDING PREPARE PREPARED PRESERVE PRIOR PRIVILEGES PROCEDURAL PROCEDURE PROCEDURES PROGRAM PUBLICATION QUOTE RANGE READ REASSIGN RECHECK
    RECURSIVE REF REFERENCING REFRESH REINDEX RELATIVE RELEASE RENAME REPEATABLE REPLACE REPLICA RESET RESTART RESTRICT RETURN RETURNS REVOKE ROLE
    ROLLBACK ROLLUP ROUTINE ROUTINES ROWS RULE SAVEPOINT SCALAR SCHEMA SCHEMAS SCROLL SEARCH SECURITY SEQUENCE SEQUENCES SERIALIZABLE SERVER SESSION
    SET SETS SHARE SHOW SIMPLE SKIP SNAPSHOT SQL STABLE STANDALONE START STATEMENT STATISTICS STDIN STDOUT STORAGE STORED STRICT STRIP SUBSCRIPTION
    SUPPORT SYSID SYSTEM TABLES TABLESPACE TEMP TEMPLATE TEMPORARY TEXT TIES TRANSACTION TRANSFORM TRIGGER TRUNCATE TRUSTED TYPE TYPES UESCAPE
    UNBOUNDED UNCOMMITTED UNENCRYPTED UNKNOWN UNLISTEN UNLOGGED UNTIL UPDATE VACUUM VALID VALIDATE VALIDATOR VALUE VERSION VIEW VIEWS VOLATILE
    WHITESPACE WORK WRAPPER WRITE XML YES ZONE;
unreserved_as:
    DAY FILTER HOUR MINUTE MONTH OVER SECOND VARYING WITHIN WITHOUT YEAR;
column:
    BETWEEN BIGINT BIT BOOLEAN COALESCE DEC DECIMAL EXISTS EXTRACT FLOAT GREATEST GROUPING INOUT INT INTEGER INTERVAL JSON_ARRAY JSON_ARRAYAGG
    JSON_OBJECT JSON_OBJECTAGG LEAST NATIONAL NCHAR NONE NORMALIZE NULLIF NUMERIC OUT OVERLAY POSITION REAL ROW SETOF SMALLINT SUBSTRING TIME
    TIMESTAMP TREAT TRIM VALUES VARCHAR XMLATTRIBUTES XMLCONCAT XMLELEMENT XMLEXISTS XMLFOREST XMLNAMESPACES XMLPARSE XMLPI XMLROOT XMLSERIALIZE
    XMLTABLE;
column_as:
    CHAR CHARACTER PRECISION;
function:
    AUTHORIZATION BINARY COLLATION CONCURRENTLY CROSS CURRENT_SCHEMA FREEZE FULL ILIKE INNER IS JOIN LEFT LIKE NATURAL OUTER RIGHT SIMILAR TABLESAMPLE
    VERBOSE;
function_as:
    ISNULL NOTNULL OVERLAPS;
reserved:
    ALL ANALYSE ANALYZE AND ANY ASC ASYMMETRIC BOTH CASE CAST CHECK COLLATE COLUMN CONSTRAINT CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER DEFAULT DEFERRABLE DESC DISTINCT DO ELSE END FALSE FOREIGN IN INITIALLY LATERAL LEADING LOCALTIME LOCALTIMESTAMP
    NOT NULL ONLY OR PLACING PRIMARY REFERENCES SELECT SESSION_USER SOME SYMMETRIC SYSTEM_USER TABLE THEN TRAILING TRUE UNIQUE USER USING VARIADIC
    WHEN;
reserved_as:
    ARRAY AS CREATE EXCEPT FETCH FOR FROM GRANT GROUP HAVING INTERSECT INTO LIMIT OFFSET ON ORDER RETURNING TO UNION WHERE WINDOW WITH;
}

/// Returns the last number of a category.
const fn last(category: usize) -> u16 {
    let (mut sum, mut at) = (0, 0);
    while at <= category {
        sum += COUNTS[at];
        at += 1;
    }
    sum
}

/// Where a keyword may be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Of anything.
    Unreserved,
    /// Of a column or table, not of a function or type.
    Column,
    /// Of a function or type, not of a column or table.
    Function,
    /// Only of a label.
    Reserved,
}

const SLOTS: usize = 2048;
const LONGEST: usize = 20;

const fn hash(text: &[u8]) -> usize {
    let (mut hash, mut at) = (0x811c_9dc5u32, 0);
    while at < text.len() {
        hash = (hash ^ text[at].to_ascii_uppercase() as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ (hash >> 15)) as usize % SLOTS
}

/// Open addressing with linear probing; 0 is an empty slot.
static TABLE: [u16; SLOTS] = {
    let mut table = [0u16; SLOTS];
    let mut word = 1;
    while word < TEXTS.len() {
        let mut slot = hash(TEXTS[word].as_bytes());
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = word as u16;
        word += 1;
    }
    table
};

impl Kw {
    /// Returns the keyword that the word is, in any case.
    pub fn of(word: &[u8]) -> Kw {
        if word.len() > LONGEST {
            return Kw::OTHER;
        }
        let mut slot = hash(word);
        loop {
            let found = TABLE[slot] as usize;
            if found == 0 {
                return Kw::OTHER;
            }
            if TEXTS[found].as_bytes().eq_ignore_ascii_case(word) {
                return ALL[found];
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Returns where the word may be a name. Words that are no keywords may be one everywhere.
    pub fn category(self) -> Category {
        let number = self as u16;
        if number <= const { last(1) } {
            Category::Unreserved
        } else if number <= const { last(3) } {
            Category::Column
        } else if number <= const { last(5) } {
            Category::Function
        } else {
            Category::Reserved
        }
    }

    /// Returns whether the word may be the name of a column or table (ColId).
    pub fn is_column_name(self) -> bool {
        self as u16 <= const { last(3) }
    }

    /// Returns whether the word may be the name of a function or type (type_function_name).
    pub fn is_function_name(self) -> bool {
        matches!(self.category(), Category::Unreserved | Category::Function)
    }

    /// Returns whether the word may be the name of an item of a select list without AS (BareColLabel).
    pub fn is_bare_label(self) -> bool {
        let number = self as u16;
        let is_among = |category: usize| number > last(category - 1) && number <= last(category);
        !(is_among(1) || is_among(3) || is_among(5) || is_among(7))
    }

    /// Returns the keyword in upper case.
    pub fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_its_category() {
        for (text, word) in TEXTS.iter().zip(ALL).skip(1) {
            assert_eq!(Kw::of(text.to_lowercase().as_bytes()), *word);
            assert!(text.len() <= LONGEST);
        }
        assert_eq!(Kw::of(b"selec"), Kw::OTHER);
        assert_eq!(Kw::ABORT.category(), Category::Unreserved);
        assert_eq!(Kw::YEAR.category(), Category::Unreserved);
        assert_eq!(Kw::BETWEEN.category(), Category::Column);
        assert_eq!(Kw::PRECISION.category(), Category::Column);
        assert_eq!(Kw::AUTHORIZATION.category(), Category::Function);
        assert_eq!(Kw::OVERLAPS.category(), Category::Function);
        assert_eq!(Kw::ALL.category(), Category::Reserved);
        assert_eq!(Kw::WITH.category(), Category::Reserved);
        for word in [Kw::DAY, Kw::YEAR, Kw::CHAR, Kw::ISNULL, Kw::ARRAY, Kw::WITH] {
            assert!(!word.is_bare_label(), "{word:?}");
        }
        for word in [Kw::OTHER, Kw::ABORT, Kw::INT, Kw::LEFT, Kw::SELECT, Kw::BIT] {
            assert!(word.is_bare_label(), "{word:?}");
        }
    }
}
