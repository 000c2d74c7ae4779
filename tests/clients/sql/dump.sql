-- What a dump must carry: every type, its edges, NULL, names that need quotes, keys of every form, rows that are dear to escape.
SET NAMES utf8mb4;
SET sql_mode = 'STRICT_TRANS_TABLES';
CREATE DATABASE dump_one DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
CREATE DATABASE `dump two-3` DEFAULT CHARACTER SET latin1;
USE dump_one;
CREATE TABLE numbers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  tiny TINYINT DEFAULT '-5', tiny_u TINYINT UNSIGNED, small SMALLINT, medium MEDIUMINT, medium_u MEDIUMINT UNSIGNED, big BIGINT, big_u BIGINT UNSIGNED,
  price DECIMAL(65,30), rate DECIMAL(10,2) NOT NULL DEFAULT '0.50', single_ FLOAT, double_ DOUBLE, flags BIT(10) DEFAULT b'1010', flag BIT(1), truth TINYINT(1),
  PRIMARY KEY (id), KEY by_big (big DESC, small), UNIQUE KEY by_medium (medium)
) AUTO_INCREMENT=100 COMMENT='numbers'' edges';
INSERT INTO numbers VALUES
  (1,-128,0,-32768,-8388608,0,-9223372036854775808,0,-12345678901234567890123456789012345.012345678901234567890123456789,-99999999.99,-1.5e30,-1.7976931348623157e308,b'0',b'0',0),
  (2,127,255,32767,8388607,16777215,9223372036854775807,18446744073709551615,0.000000000000000000000000000001,99999999.99,0.1,0.1,b'1111111111',b'1',1),
  (7,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL),
  (4294967294,0,0,0,0,0,0,0,0,0,16777200,2.2250738585072014e-308,b'101',b'0',0);
CREATE TABLE times (
  id INT PRIMARY KEY, d DATE, t TIME, t6 TIME(6), dt DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, dt6 DATETIME(6), ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL DEFAULT NULL, y YEAR
);
INSERT INTO times VALUES
  (1,'0000-00-00','-838:59:59','-838:59:58.999999','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00',NULL,0),
  (2,'1000-01-01','838:59:59','00:00:00.000001','9999-12-31 23:59:59','9999-12-31 23:59:59.999999','1970-01-01 00:00:01','2038-01-19 03:14:07.999',1901),
  (3,'2024-02-29','12:34:56','12:34:56.5','2024-02-29 12:34:56','2024-02-29 12:34:56.000001','2024-07-01 12:00:00','2024-07-01 12:00:00.123',2155),
  (4,NULL,NULL,NULL,'2000-01-01 00:00:00',NULL,NULL,NULL,NULL),
  (5,'2024-00-00','00:00:00','00:00:00','2024-01-00 00:00:00','2024-00-00 01:02:03',NULL,NULL,2024);
CREATE TABLE texts (
  id BIGINT NOT NULL, c CHAR(10), v VARCHAR(200) COLLATE utf8mb4_bin NOT NULL DEFAULT 'it''s "here" \\ there', l VARCHAR(50) CHARACTER SET latin1, a VARCHAR(20) CHARACTER SET ascii,
  t TINYTEXT, body TEXT, m MEDIUMTEXT, long_ LONGTEXT, b BINARY(4), vb VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
  e ENUM('one','two','it''s','','ü') DEFAULT 'two', s SET('a','b','c d') , j JSON,
  PRIMARY KEY (id), KEY by_v (v(20)), KEY by_body (body(10), c), UNIQUE KEY by_vb (vb)
) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
INSERT INTO texts (id, v) VALUES (-9223372036854775808, '');
INSERT INTO texts VALUES
  (1,'  padded','tab\tline\nreturn\rquote\'double"back\\slash percent% under_ zero\0 end\Z','café ÿ€','~ascii','tiny','𝄞 clef ﷺ','medium','long',
   X'00010200',X'27225C0A0D1A00',X'',X'DEADBEEF',X'FF',X'80C0E0F8','it''s','a,b','{"a": [1, 2.5, null, true, "q\\"uote"], "ü": {"": -1}}'),
  (2,NULL,'NULL',NULL,NULL,NULL,'NULL','\\N','\\\\',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),
  (3,'','-- no comment /* none */ ;','','','','','','','','','','','','','','','[]'),
  (4,'ü','/*!50000 not code */','ü','x','x','x','x','x','abcd','abcd','abcd','abcd','abcd','abcd','ü','c d','"text"');
CREATE TABLE `we"ird ``name``; -- x` (
  `select` INT, `a b` VARCHAR(10) DEFAULT '', `c``d` INT NOT NULL, `ü'"` INT, `9` INT,
  PRIMARY KEY (`c``d`), KEY `in dex` (`select`, `a b`), KEY `key``` (`ü'"`)
) COMMENT='a "strange" one: \\ ;';
INSERT INTO `we"ird ``name``; -- x` VALUES (1,'x',-1,NULL,9), (NULL,'',2,3,NULL);
CREATE TABLE checked (
  a INT NOT NULL, b INT DEFAULT 5, name VARCHAR(30) NOT NULL COMMENT 'who; it''s', note VARCHAR(10) DEFAULT NULL,
  PRIMARY KEY (b, a), KEY by_name (name DESC) COMMENT 'an index', CONSTRAINT positive CHECK (a > 0)
);
INSERT INTO checked VALUES (1,1,'one',NULL), (2,1,'zwei','');
CREATE TABLE without_key (a INT, b TEXT);
INSERT INTO without_key VALUES (1,'x'), (1,'x'), (NULL,NULL);
CREATE TABLE empty_ (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
USE `dump two-3`;
CREATE TABLE old (id INT PRIMARY KEY, word VARCHAR(20), big MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin);
INSERT INTO old VALUES (1,'naïve ÿ', 'ελληνικά'), (2, '', NULL);
-- Tables with parents, of which one comes behind its child, and one is the table itself.
CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(20));
CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, above INT, KEY by_above (above), CONSTRAINT to_parent FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL,
  CONSTRAINT to_above FOREIGN KEY (above) REFERENCES child (id));
CREATE TABLE grandchild (child INT NOT NULL, nth INT NOT NULL, PRIMARY KEY (child, nth), CONSTRAINT to_child FOREIGN KEY (child) REFERENCES child (id) ON UPDATE CASCADE);
INSERT INTO parent VALUES (1, 'one'), (2, 'two');
INSERT INTO child VALUES (1, 1, NULL), (2, 2, 1), (3, NULL, 3);
INSERT INTO grandchild VALUES (1, 1), (1, 2), (3, 1);
