//! What the grammar makes of operators and of statements that only MySQL has.

use super::*;

fn tree(text: &str) -> String {
    let grammar = Grammar::new(SqlMode::DEFAULT);
    let mut parser = Parser::new(&grammar).try_with_sql(text).expect("it tokenizes");
    draw(&parser.parse_expr().expect("it parses"))
}

/// With brackets around every operator.
fn draw(expr: &sqlparser::ast::Expr) -> String {
    use sqlparser::ast::Expr;
    match expr {
        Expr::BinaryOp { left, op, right } => format!("({} {op} {})", draw(left), draw(right)),
        Expr::UnaryOp { op, expr } => format!("({op} {})", draw(expr)),
        Expr::Between { expr, low, high, .. } => format!("({} BETWEEN {} AND {})", draw(expr), draw(low), draw(high)),
        Expr::Like { expr, pattern, .. } => format!("({} LIKE {})", draw(expr), draw(pattern)),
        Expr::InList { expr, list, .. } => {
            format!("({} IN {})", draw(expr), list.iter().map(draw).collect::<Vec<_>>().join(","))
        }
        Expr::IsNull(expr) => format!("({} IS NULL)", draw(expr)),
        Expr::Cast { expr, .. } => format!("(BINARY {})", draw(expr)),
        Expr::Collate { expr, collation } => format!("({} COLLATE {collation})", draw(expr)),
        expr => expr.to_string(),
    }
}

#[test]
fn operators_bind_as_in_mysql() {
    for (text, expected) in [
        ("a || b and c", "(a OR (b AND c))"),
        ("a xor b or c", "((a XOR b) OR c)"),
        ("a and b xor c", "((a AND b) XOR c)"),
        ("not a = b", "(NOT (a = b))"),
        ("!a = b", "((NOT a) = b)"),
        ("a = b like c", "(a = (b LIKE c))"),
        ("a = b in (c)", "(a = (b IN c))"),
        ("a between b and c = d", "((a BETWEEN b AND c) = d)"),
        ("a is null = b", "((a IS NULL) = b)"),
        ("a | b & c << d + e * f ^ g", "(a | (b & (c << (d + (e * (f ^ g))))))"),
        ("-a ^ b", "((- a) ^ b)"),
        ("-a * b", "((- a) * b)"),
        ("a - b - c", "((a - b) - c)"),
        ("a div b mod c", "((a DIV b) % c)"),
        ("binary a = b", "((BINARY a) = b)"),
        ("a = b collate utf8mb4_bin", "(a = (b COLLATE utf8mb4_bin))"),
        ("a = b = c", "((a = b) = c)"),
        ("1--2", "(1 - (- 2))"),
    ] {
        assert_eq!(tree(text), expected, "{text}");
    }
}

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

/// The deepest texts that the limits let through are parsed, and their trees dropped, within half of a worker's stack; where one does not fit, this process ends.
#[test]
fn the_deepest_texts_fit_into_half_of_a_stack() {
    let nested = |count: usize, open: &str, inner: &str, close: &str| {
        format!("select {}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let most = super::limits::NESTING_MAX - 2;
    let blocks = super::limits::BLOCKS_MAX - 1;
    let mut texts = vec![
        nested(most, "(", "1", ")"),
        nested(most, "abs(", "1", ")"),
        nested(most, "cast(", "1", " as signed)"),
        nested(most, "case when 1 then ", "1", " end"),
        nested(most, "- ", "1", ""),
        nested(most, "1 in (", "1", ")"),
        nested(most, "interval ", "1", " day"),
        nested(most / 2, "- (", "1", ")"),
        nested(blocks, "(select ", "1", ")"),
        nested(blocks, "1 in (select ", "1", ")"),
        nested(blocks / 2, "(select (", "1", "))"),
        format!("select * from {}(select 1 a) d{}", "(select * from ".repeat(blocks - 1), ") d".repeat(blocks - 1)),
        format!("select 1 from {}t join t{}", "(".repeat(most), ")".repeat(most)),
        format!("{}select 1{}", "(".repeat(most), ")".repeat(most)),
        format!("select 1 {}{}", " union (select 1".repeat(blocks), ")".repeat(blocks)),
        format!("select 1{}", " = not 1".repeat(90)),
        format!("select {}1", "@a := ".repeat(400)),
    ];
    for link in
        ["+1", " is null", "->'$.a'", " or 1", " and 1", " between 0 and 1", " in (1)", " div 1", " union select 1"]
    {
        let max = match link {
            " or 1" | " and 1" => super::limits::TERMS_MAX,
            " union select 1" => super::limits::SETS_MAX,
            " between 0 and 1" => super::limits::BETWEENS_MAX,
            _ => super::limits::CHAIN_TOKENS_MAX / link.split_whitespace().count().max(2) / 2,
        };
        texts.push(format!("select 1{}", link.repeat(max - 1)));
    }
    for text in texts {
        let parsed = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
            let parsed = parse(&text, SqlMode::DEFAULT);
            (parsed.map(drop).err(), text[..text.len().min(100)].to_owned())
        });
        let (error, text) = parsed.expect("a thread").join().expect("no panic");
        // Some are no SQL at their depth: they only must end.
        assert!(error.as_ref().is_none_or(|error| matches!(error.code, 1064 | 1235 | 1436)), "{text}: {error:?}");
    }
}
