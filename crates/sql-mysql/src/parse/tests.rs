//! Statements that clients send, errors, and the stack that the deepest texts take.

use syntax::tree::{BLOCKS_MAX, HEIGHT_MAX, TOKENS_MAX};

use super::*;

#[test]
fn statements_that_clients_send_parse() {
    for text in [
        "SET NAMES utf8mb4",
        "SET NAMES 'utf8' COLLATE 'utf8_general_ci'",
        "SET autocommit=0, sql_mode='ANSI', @x := 5",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET @@session.autocommit = ON",
        "SET GLOBAL max_connections = 5",
        "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */",
        "/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */",
        "LOCK TABLES `t` WRITE, u AS x READ LOCAL",
        "UNLOCK TABLES",
        "/*!40000 ALTER TABLE `t` DISABLE KEYS */",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        "ROLLBACK TO SAVEPOINT a",
        "COMMIT AND NO CHAIN NO RELEASE",
        "SHOW FULL TABLES FROM `x` LIKE 'a%'",
        "SHOW VARIABLES WHERE Variable_name = 'x' OR Variable_name = 'y'",
        "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
        "SHOW CREATE TABLE `a`.`b`",
        "SHOW WARNINGS LIMIT 5",
        "SHOW COUNT(*) WARNINGS",
        "SHOW INDEX FROM t FROM d",
        "DESCRIBE t",
        "EXPLAIN FORMAT=TREE SELECT 1",
        "SELECT * FROM t LIMIT 1,2",
        "SELECT * FROM t WHERE a = 1 LOCK IN SHARE MODE",
        "SELECT * FROM t FOR UPDATE SKIP LOCKED",
        "SELECT @@version_comment LIMIT 1",
        "SELECT @a := 1",
        "SELECT DISTINCT SQL_NO_CACHE a FROM t USE INDEX (x) WHERE b <=> NULL",
        "INSERT INTO t VALUES (1), (2) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
        "INSERT IGNORE t SET a = 1, b = DEFAULT",
        "INSERT INTO t () VALUES ()",
        "REPLACE INTO t (a) VALUES (1)",
        "UPDATE t SET a = a + 1 WHERE b = 2 ORDER BY c LIMIT 3",
        "DELETE FROM t WHERE a = 1 ORDER BY b DESC LIMIT 2",
        "CREATE DATABASE IF NOT EXISTS d DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE = innodb */",
        "CREATE INDEX k_1 ON sbtest1(k)",
        "CREATE TABLE t (a int unsigned, b varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL COMMENT 'x', UNIQUE KEY u (a,b(3) DESC), KEY (b), CONSTRAINT c PRIMARY KEY (a)) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='y'",
        "CREATE TABLE t (ts timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, d datetime(6) DEFAULT CURRENT_TIMESTAMP(6))",
        "ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 1 AFTER b, DROP COLUMN d, ADD UNIQUE INDEX x (c), RENAME INDEX a TO b, ALGORITHM=INPLACE",
        "ALTER TABLE t ENGINE=InnoDB",
        "ALTER TABLE t MODIFY c bigint, CHANGE d e int, RENAME TO u",
        "DROP INDEX k ON t",
        "DROP TABLE IF EXISTS a, b.c",
        "TRUNCATE TABLE t",
        "RENAME TABLE a TO b, c TO d.e",
        "KILL QUERY 5",
        "USE d",
        "ANALYZE TABLE t",
        "SELECT a->'$.x', b->>'$.y' FROM t",
        "SELECT * FROM a STRAIGHT_JOIN b ON a.x = b.x NATURAL JOIN c LEFT JOIN (d CROSS JOIN e) ON d.i = e.i",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT * FROM c",
        "SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR ';') FROM t",
        "(SELECT 1) UNION (SELECT 2) ORDER BY 1",
        "UPDATE a JOIN b ON a.x = b.x SET a.y = b.y",
        "DELETE a FROM a JOIN b ON a.x = b.x",
        "DELETE FROM a USING a JOIN b ON a.x = b.x",
    ] {
        if let Err(error) = parse(text, SqlMode::DEFAULT) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn a_syntax_error_names_where_it_is() {
    let error = parse("select 1 fro t where", SqlMode::DEFAULT).expect_err("no such grammar");
    assert_eq!(error.code, 1064);
    assert!(error.message.ends_with("near 't where' at line 1"), "{}", error.message);
}

/// Texts at and beyond every limit are parsed or refused, and their trees dropped, within half of a worker's stack; where one does not fit, this process ends.
#[test]
fn the_deepest_texts_fit_into_half_of_a_stack() {
    let nested = |count: usize, open: &str, inner: &str, close: &str| {
        format!("select {}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let mut texts = Vec::new();
    for most in [HEIGHT_MAX / 2, HEIGHT_MAX, 100_000] {
        texts.extend([
            nested(most, "(", "1", ")"),
            nested(most, "abs(", "1", ")"),
            nested(most, "cast(", "1", " as signed)"),
            nested(most, "case when 1 then ", "1", " end"),
            nested(most, "- ", "1", ""),
            nested(most, "not ", "1", ""),
            nested(most, "1 in (", "1", ")"),
            nested(most, "interval ", "1", " day"),
            nested(most / 2, "- (", "1", ")"),
            nested(most, "(select ", "1", ")"),
            nested(most, "1 in (select ", "1", ")"),
            format!("select * from {}(select 1 a) d{}", "(select * from ".repeat(most), ") d".repeat(most)),
            format!("select 1 from {}t join t{}", "(".repeat(most), ")".repeat(most)),
            format!("{}select 1{}", "(".repeat(most), ")".repeat(most)),
            format!("select 1 {}{}", " union (select 1".repeat(most), ")".repeat(most)),
            format!("select {}1", "@a := ".repeat(most)),
        ]);
        for link in
            ["+1", " is null", " or 1", " between 0 and 1", " in (1)", " div 1", " union select 1", " collate x"]
        {
            texts.push(format!("select 1{}", link.repeat(most)));
        }
    }
    for text in texts {
        let parsed = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
            let parsed = parse(&text, SqlMode::DEFAULT);
            (parsed.map(drop).err(), text[..text.len().min(100)].to_owned())
        });
        let (error, text) = parsed.expect("a thread").join().expect("no panic");
        // Some are no SQL at their depth: they only must end.
        assert!(
            error.as_ref().is_none_or(|error| matches!(error.code, 1064 | 1235 | 1436 | 1473)),
            "{text}: {error:?}"
        );
    }
}

#[test]
fn limits_have_their_errors() {
    let code = |text: &str| parse(text, SqlMode::DEFAULT).map_or_else(|error| error.code, |_| 0);
    let nested = |count: usize| format!("select {}1{}", "(select ".repeat(count), ")".repeat(count));
    assert_eq!(code(&nested(BLOCKS_MAX - 1)), 0);
    assert_eq!(code(&nested(BLOCKS_MAX)), 1473);
    assert_eq!(code(&format!("select {}1", "-".repeat(HEIGHT_MAX + 1))), 1436);
    assert_eq!(code(&format!("select /*! {}1 */", "- ".repeat(HEIGHT_MAX + 1))), 1436);
    assert_eq!(code(&format!("select 1{}", ",1".repeat(TOKENS_MAX as usize / 2 + 4096))), 3170);
    assert_eq!(code(&format!("select 1{}", "+1".repeat(100_000))), 0);
    assert_eq!(
        parse_unless(&format!("select 1{}", "+1".repeat(100_000)), SqlMode::DEFAULT, &|| true)
            .map_err(|error| error.code)
            .err(),
        Some(1317)
    );
}

#[test]
fn the_documents_tell_the_limits() {
    let page = include_str!("../../../../docs/protocols/mysql.md");
    let page = page.split("### Limits of a statement").nth(1).expect("the chapter");
    for limit in [HEIGHT_MAX, BLOCKS_MAX, crate::bind::from::TABLES_MAX, TOKENS_MAX as usize] {
        let digits = limit.to_string();
        let mut shown = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                shown.push(',');
            }
            shown.push(digit);
        }
        let row = format!("| {shown} |");
        assert!(page.contains(&row), "{row}");
    }
}
