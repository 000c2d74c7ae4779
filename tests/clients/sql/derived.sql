-- Generated columns and functional indexes: what a dump of them must carry. What MariaDB knows as well comes first.
SET NAMES utf8mb4;
SET sql_mode = 'STRICT_TRANS_TABLES';
CREATE DATABASE dump_derived DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE dump_derived;
CREATE TABLE both_know (
  id INT PRIMARY KEY, a INT, v INT GENERATED ALWAYS AS (a + 1) VIRTUAL, name VARCHAR(20), s VARCHAR(50) GENERATED ALWAYS AS (CONCAT(name, ' \\ it''s "', a)) STORED COMMENT 'made',
  `j ``n` VARCHAR(20) AS (JSON_UNQUOTE(JSON_EXTRACT(doc, '$.n'))) VIRTUAL, doc LONGTEXT, last DATE AS (DATE_ADD(first, INTERVAL 1 DAY)) STORED, first DATE,
  KEY (v), UNIQUE KEY by_s (s), KEY by_last (last, v), CONSTRAINT small CHECK (v < 1000)
);
INSERT INTO both_know (id, a, name, doc, first) VALUES (1,5,'Ünë','{"n": "x"}','2024-02-28'), (2,-7,'b\\c',NULL,NULL), (3,9,'','{"n": null}','1999-12-31');
-- MySQL alone
CREATE TABLE own (
  id INT PRIMARY KEY, a INT NOT NULL, name VARCHAR(20), doc JSON, n VARCHAR(20) AS (doc ->> '$.n') STORED NOT NULL INVISIBLE,
  KEY by_expr ((a * 10 + id) DESC, (LOWER(name))), UNIQUE KEY ((CAST(doc ->> '$."it''s"' AS CHAR(20)))), KEY by_n (n)
);
INSERT INTO own (id, a, name, doc) VALUES (1,5,'Ünë','{"n": "x"}'), (2,-7,'b\\c','{"n": "", "it\'s": 5}'), (3,9,'','{"n": 1.5}');
