# Tables in the notation of applications: the constructs of their schemas, not their tables. A line with --- begins an application's.
# PowerDNS: the character set of a column and of a table in quotes, a text of 64,000 letters, an index with a prefix
CREATE TABLE zones (
  id            INT AUTO_INCREMENT,
  name          VARCHAR(255) NOT NULL,
  seen          INT DEFAULT NULL,
  account       VARCHAR(40) CHARACTER SET 'utf8' DEFAULT NULL,
  kind          VARCHAR(8) NOT NULL,
  PRIMARY KEY (id)
) Engine=InnoDB CHARACTER SET 'latin1';
CREATE UNIQUE INDEX zone_name ON zones(name);
CREATE TABLE entries (
  id            BIGINT AUTO_INCREMENT,
  zone          INT DEFAULT NULL,
  content       VARCHAR(64000) DEFAULT NULL,
  disabled      TINYINT(1) DEFAULT 0,
  place         VARCHAR(255) BINARY DEFAULT NULL,
  auth          TINYINT(1) DEFAULT 1,
  PRIMARY KEY (id)
) Engine=InnoDB CHARACTER SET 'latin1';
CREATE INDEX placed ON entries (zone, place);
ALTER TABLE entries ADD CONSTRAINT `entry_zone` FOREIGN KEY (`zone`) REFERENCES `zones` (`id`) ON DELETE CASCADE ON UPDATE CASCADE;
---
# Roundcube: BINARY behind a VARCHAR, ROW_FORMAT before ENGINE, options without =, executable comments
/*!40014 SET FOREIGN_KEY_CHECKS=0 */;
CREATE TABLE `members` (
 `list_id` int(10) UNSIGNED NOT NULL,
 `person_id` int(10) UNSIGNED NOT NULL,
 `made` datetime NOT NULL DEFAULT '1000-01-01 00:00:00',
 PRIMARY KEY (`list_id`, `person_id`),
 CONSTRAINT `list_of_members` FOREIGN KEY (`list_id`)
   REFERENCES `lists`(`list_id`) ON DELETE CASCADE ON UPDATE CASCADE,
 CONSTRAINT `a_member` FOREIGN KEY (`person_id`)
   REFERENCES `people`(`person_id`) ON DELETE CASCADE ON UPDATE CASCADE,
 INDEX `members_person` (`person_id`)
) ROW_FORMAT=DYNAMIC ENGINE=INNODB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE TABLE `lists` (
 `list_id` int(10) UNSIGNED NOT NULL AUTO_INCREMENT,
 `name` varchar(128) BINARY NOT NULL,
 `valid` tinyint(1) NOT NULL DEFAULT '0',
 PRIMARY KEY(`list_id`),
 UNIQUE `named` (`name`, `valid`)
) ROW_FORMAT=DYNAMIC ENGINE=INNODB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE TABLE `people` (
 `person_id` int(10) UNSIGNED NOT NULL AUTO_INCREMENT,
 `mail` text NOT NULL,
 `words` longtext,
 PRIMARY KEY(`person_id`)
) ROW_FORMAT=DYNAMIC ENGINE=INNODB CHARACTER SET utf8mb4;
INSERT INTO lists (name, valid) VALUES ('a', 1), ('A', 1);
/*!40014 SET FOREIGN_KEY_CHECKS=1 */;
---
# Icinga: IF NOT EXISTS, character sets of single columns, a comment of a table, SET NAMES and SET SQL_MODE of long ago
/*!40101 SET NAMES utf8 */;
/*!40101 SET SQL_MODE='' */;
CREATE TABLE IF NOT EXISTS checks_done (
  checks_done_id bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  entry_time timestamp NULL,
  entry_time_usec  int default 0,
  output TEXT character set latin1,
  command_line TEXT character set latin1  default NULL,
  state smallint default 0,
  weight double NOT NULL default '0',
  PRIMARY KEY  (checks_done_id)
) ENGINE=InnoDB  COMMENT='what was checked';
CREATE INDEX by_time ON checks_done(entry_time, state);
INSERT INTO checks_done (entry_time, output) VALUES ('0000-00-00 00:00:00', 'é'), (NULL, 'abc');
ALTER TABLE checks_done MODIFY output MEDIUMTEXT character set latin1, ADD COLUMN place varchar(255) character set latin1 NOT NULL default '';
---
# Airflow: collations of MySQL's three-byte UTF-8, microseconds, self-references, ON DELETE of several kinds
CREATE TABLE run (
	id INTEGER NOT NULL AUTO_INCREMENT,
	dag_id VARCHAR(250) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL,
	run_id VARCHAR(250) COLLATE utf8mb3_bin NOT NULL,
	queued_at TIMESTAMP(6) NULL,
	conf BLOB,
	externally BOOL,
	updated_at TIMESTAMP(6) NULL,
	PRIMARY KEY (id),
	CONSTRAINT run_dag_id_key UNIQUE (dag_id, run_id)
);
CREATE TABLE task (
	task_id VARCHAR(250) COLLATE utf8mb3_bin NOT NULL,
	dag_id VARCHAR(250) COLLATE utf8mb3_bin NOT NULL,
	run_id VARCHAR(250) COLLATE utf8mb3_bin NOT NULL,
	map_index INTEGER DEFAULT '-1' NOT NULL,
	duration FLOAT,
	executor_config BLOB,
	pool VARCHAR(256) NOT NULL,
	CONSTRAINT task_pkey PRIMARY KEY (dag_id, task_id, run_id, map_index),
	CONSTRAINT task_run_fkey FOREIGN KEY(dag_id, run_id) REFERENCES run (dag_id, run_id) ON DELETE CASCADE,
	CONSTRAINT task_mapped CHECK (map_index >= -1)
);
CREATE INDEX pooled ON task (pool, map_index);
INSERT INTO run (dag_id, run_id, queued_at) VALUES ('a', 'r', '2024-01-01 00:00:00.123456'), ('A', 'r', NULL);
---
# Drizzle and Sequelize: SERIAL, BINARY behind CHAR, keys in the columns of ALTER
CREATE TABLE IF NOT EXISTS `__migrations` (
	id SERIAL PRIMARY KEY,
	hash text NOT NULL,
	created_at bigint
);
CREATE TABLE `counted` (
	`id` serial AUTO_INCREMENT NOT NULL,
	`more` bigint unsigned,
	`state` enum('on','off') NOT NULL DEFAULT 'on',
	`made` timestamp(3) NOT NULL DEFAULT (now()),
	`data` json DEFAULT ('{}'),
	CONSTRAINT `counted_id` PRIMARY KEY(`id`),
	CONSTRAINT `counted_more_unique` UNIQUE(`more`)
);
CREATE TABLE IF NOT EXISTS `Tags` (`id` CHAR(36) BINARY , `name` VARCHAR(255) BINARY UNIQUE, `n` INTEGER(8) UNSIGNED ZEROFILL, `createdAt` DATETIME NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS `PostTags` (`PostId` INTEGER , `TagId` CHAR(36) BINARY , PRIMARY KEY (`PostId`, `TagId`), FOREIGN KEY (`TagId`) REFERENCES `Tags` (`id`) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=InnoDB;
ALTER TABLE `Tags` CHANGE `name` `name` VARCHAR(255) BINARY UNIQUE;
ALTER TABLE `Tags` ADD UNIQUE INDEX `named` (`name`, `n`), CHANGE `createdAt` `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3);
INSERT INTO `Tags` VALUES ('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'x', 7, '2020-01-01'), ('6BA7B810-9DAD-11D1-80B4-00C04FD430C8', 'X', 8, '2020-01-01');
