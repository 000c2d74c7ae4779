"""Queries of MySQL Workbench, DBeaver, HeidiSQL, DataGrip, phpMyAdmin, Adminer and Navicat at login and while browsing: each statement must be answered, with the columns that the tool reads;
and what some of the answers must say."""

import shutil
import subprocess

import pymysql

from beluga import Server, Tally

tally = Tally()

# Tool, statement, columns that the tool reads (None: it is not a question), how many rows at least.
ASKED = [
    # MySQL Workbench
    ("workbench", "SET NAMES utf8mb4", None, 0),
    ("workbench", "SET CHARACTER SET utf8", None, 0),
    ("workbench", "SET SQL_SAFE_UPDATES=1", None, 0),
    ("workbench", "SHOW SESSION VARIABLES LIKE 'lower_case_table_names'", "Variable_name Value", 1),
    ("workbench", "SHOW SESSION STATUS LIKE 'Ssl_cipher'", "Variable_name Value", 0),
    ("workbench", "SELECT CONNECTION_ID()", "CONNECTION_ID()", 1),
    ("workbench", "SELECT current_user()", "current_user()", 1),
    ("workbench", "SHOW SESSION VARIABLES LIKE 'sql_mode'", "Variable_name Value", 1),
    ("workbench", "SHOW SESSION VARIABLES LIKE 'version_compile_os'", "Variable_name Value", 1),
    ("workbench", "SHOW SESSION VARIABLES LIKE 'version_comment'", "Variable_name Value", 1),
    ("workbench", "SHOW VARIABLES LIKE 'offline_mode'", "Variable_name Value", 1),
    ("workbench", "SHOW VARIABLES LIKE 'wait_timeout'", "Variable_name Value", 1),
    ("workbench", "SHOW DATABASES", "Database", 2),
    ("workbench", "SHOW DATABASES LIKE 'information_schema'", "Database (information_schema)", 1),
    ("workbench", "SHOW FULL TABLES FROM `shop`", "Tables_in_shop Table_type", 3),
    ("workbench", "SHOW FULL COLUMNS FROM `shop`.`item`", "Field Type Collation Null Key Default Extra Privileges Comment", 6),
    ("workbench", "SHOW INDEXES FROM `shop`.`item`", "Table Non_unique Key_name Seq_in_index Column_name Collation Cardinality Sub_part Packed Null Index_type Comment Index_comment Visible Expression", 3),
    ("workbench", "SHOW TRIGGERS FROM `shop`", "Trigger Event Table Statement Timing Created sql_mode Definer character_set_client", 0),
    ("workbench", "SHOW PROCEDURE STATUS WHERE Db='shop'", "Db Name Type Definer Modified Created Security_type Comment", 0),
    ("workbench", "SHOW FUNCTION STATUS WHERE Db='shop'", "Db Name Type Definer Modified Created Security_type Comment", 0),
    ("workbench", "SHOW TABLE STATUS FROM `shop` LIKE 'item'", "Name Engine Version Row_format Rows Avg_row_length Data_length Max_data_length Index_length Data_free Auto_increment Create_time Update_time Check_time Collation Checksum Create_options Comment", 1),
    ("workbench", "SHOW ENGINE INNODB STATUS", "Type Name Status", 1),
    ("workbench", "SHOW ENGINES", "Engine Support Comment Transactions XA Savepoints", 1),
    ("workbench", "SHOW PLUGINS", "Name Status Type Library License", 1),
    ("workbench", "SHOW PRIVILEGES", "Privilege Context Comment", 30),
    ("workbench", "SHOW GLOBAL STATUS", "Variable_name Value", 50),
    ("workbench", "SHOW GLOBAL VARIABLES", "Variable_name Value", 100),
    ("workbench", "SELECT * FROM mysql.user", "Host User Select_priv plugin account_locked", 1),
    ("workbench", "SELECT * FROM performance_schema.threads WHERE TYPE <> 'BACKGROUND'", "THREAD_ID NAME TYPE PROCESSLIST_ID PROCESSLIST_USER PROCESSLIST_HOST PROCESSLIST_DB PROCESSLIST_COMMAND PROCESSLIST_TIME PROCESSLIST_STATE PROCESSLIST_INFO", 1),
    ("workbench", "SELECT ATTR_NAME, ATTR_VALUE FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = CONNECTION_ID()", "ATTR_NAME ATTR_VALUE", 3),
    ("workbench", "SELECT * FROM performance_schema.session_account_connect_attrs", "PROCESSLIST_ID ATTR_NAME ATTR_VALUE ORDINAL_POSITION", 3),
    ("workbench", "SELECT * FROM sys.version", "sys_version mysql_version", 1),
    # DBeaver
    ("dbeaver", "/* mysql-connector-j-8 */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, "
     "@@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, "
     "@@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, "
     "@@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout", "wait_timeout license", 1),
    ("dbeaver", "SELECT @@GLOBAL.character_set_server,@@GLOBAL.collation_server", "@@GLOBAL.character_set_server", 1),
    ("dbeaver", "SHOW CHARSET", "Charset Description Maxlen", 3),
    ("dbeaver", "SHOW COLLATION", "Collation Charset Id Default Compiled Sortlen", 5),
    ("dbeaver", "SELECT DATABASE()", "DATABASE()", 1),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.SCHEMATA ORDER BY SCHEMA_NAME", "CATALOG_NAME SCHEMA_NAME DEFAULT_CHARACTER_SET_NAME DEFAULT_COLLATION_NAME SQL_PATH DEFAULT_ENCRYPTION", 2),
    ("dbeaver", "SELECT * FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = 'information_schema' AND t.TABLE_NAME = 'CHECK_CONSTRAINTS'", "TABLE_NAME", 1),
    ("dbeaver", "SHOW FULL TABLES FROM `shop` LIKE 'item'", "Table_type", 1),
    ("dbeaver", "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='item' ORDER BY ORDINAL_POSITION", "COLUMN_NAME DATA_TYPE COLUMN_TYPE CHARACTER_SET_NAME GENERATION_EXPRESSION SRS_ID", 6),
    ("dbeaver", "SELECT kc.CONSTRAINT_NAME,kc.TABLE_NAME,kc.COLUMN_NAME,kc.ORDINAL_POSITION\nFROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kc\nWHERE kc.TABLE_SCHEMA='shop' AND kc.REFERENCED_TABLE_NAME IS NULL AND kc.TABLE_NAME='item'\nORDER BY kc.CONSTRAINT_NAME,kc.ORDINAL_POSITION", "CONSTRAINT_NAME", 2),
    ("dbeaver", "SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE, tc.TABLE_NAME\nFROM (SELECT CONSTRAINT_NAME, CHECK_CLAUSE\nFROM INFORMATION_SCHEMA.CHECK_CONSTRAINTS\nWHERE CONSTRAINT_SCHEMA = 'shop'\nORDER BY CONSTRAINT_NAME) cc,\n"
     "(SELECT TABLE_NAME, CONSTRAINT_NAME\nFROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS\nWHERE CONSTRAINT_TYPE = 'CHECK' AND TABLE_SCHEMA='shop'\nAND TABLE_NAME='item') tc\nWHERE cc.CONSTRAINT_NAME = tc.CONSTRAINT_NAME", "CHECK_CLAUSE", 1),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA='shop' ORDER BY TABLE_NAME,INDEX_NAME,SEQ_IN_INDEX", "INDEX_NAME NON_UNIQUE SUB_PART CARDINALITY", 3),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.TRIGGERS WHERE TRIGGER_SCHEMA='shop' AND EVENT_OBJECT_TABLE='item' ORDER BY TRIGGER_NAME", "TRIGGER_NAME", 0),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_SCHEMA='shop' AND ROUTINE_TYPE IN ('PROCEDURE','FUNCTION') ORDER BY ROUTINE_NAME", "ROUTINE_NAME", 0),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.EVENTS WHERE EVENT_SCHEMA='shop' ORDER BY EVENT_NAME", "EVENT_NAME", 0),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='item' AND PARTITION_NAME IS NOT NULL ORDER BY PARTITION_ORDINAL_POSITION", "PARTITION_NAME", 0),
    ("dbeaver", "SELECT * FROM mysql.user ORDER BY User", "User Host", 1),
    ("dbeaver", "SHOW GRANTS FOR 'root'@'%'", None, 0),
    ("dbeaver", "SHOW FULL PROCESSLIST", "Id User Host db Command Time State Info", 1),
    ("dbeaver", "SHOW CREATE TABLE `shop`.`item`", "Table `Create Table`".replace("`", "").replace("Create Table", "Create_Table"), 1),
    ("dbeaver", "SELECT * FROM INFORMATION_SCHEMA.VIEWS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='cheap'", "VIEW_DEFINITION CHECK_OPTION IS_UPDATABLE DEFINER", 1),
    ("dbeaver", "SET SQL_SELECT_LIMIT=200", None, 0),
    ("dbeaver", "SET SQL_SELECT_LIMIT=DEFAULT", None, 0),
    # HeidiSQL
    ("heidisql", "SELECT NOW()", "NOW()", 1),
    ("heidisql", "SHOW VARIABLES", "Variable_name Value", 100),
    ("heidisql", "SHOW /*!50002 GLOBAL */ STATUS", "Variable_name Value", 50),
    ("heidisql", "SHOW VARIABLES LIKE 'skip_name_resolve'", "Variable_name Value", 1),
    ("heidisql", "SELECT `DEFAULT_COLLATION_NAME` FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME`='shop'", "DEFAULT_COLLATION_NAME", 1),
    ("heidisql", "SHOW TABLE STATUS FROM `shop`", "Name Comment", 3),
    ("heidisql", "SHOW FUNCTION STATUS WHERE `Db`='shop'", "Name", 0),
    ("heidisql", "SHOW TRIGGERS FROM `shop`", "Trigger", 0),
    ("heidisql", "SELECT *, EVENT_SCHEMA AS `Db`, EVENT_NAME AS `Name` FROM information_schema.`EVENTS` WHERE `EVENT_SCHEMA`='shop'", "Db Name", 0),
    ("heidisql", "SHOW EVENTS FROM `shop`", "Db Name", 0),
    ("heidisql", "SHOW INDEXES FROM `item` FROM `shop`", "Key_name", 3),
    ("heidisql", "SELECT * FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE   CONSTRAINT_SCHEMA='shop'   AND TABLE_NAME='item'   AND REFERENCED_TABLE_NAME IS NOT NULL", "UPDATE_RULE DELETE_RULE", 1),
    ("heidisql", "SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE   TABLE_SCHEMA='shop'   AND TABLE_NAME='item'   AND REFERENCED_TABLE_NAME IS NOT NULL", "REFERENCED_COLUMN_NAME", 1),
    ("heidisql", "SELECT tc.CONSTRAINT_NAME, cc.CHECK_CLAUSE FROM `information_schema`.`CHECK_CONSTRAINTS` AS cc, `information_schema`.`TABLE_CONSTRAINTS` AS tc WHERE tc.CONSTRAINT_SCHEMA='shop' AND tc.TABLE_NAME='item' "
     "AND tc.CONSTRAINT_TYPE='CHECK' AND tc.CONSTRAINT_SCHEMA=cc.CONSTRAINT_SCHEMA AND tc.CONSTRAINT_NAME=cc.CONSTRAINT_NAME", "CHECK_CLAUSE", 1),
    ("heidisql", "SHOW OPEN TABLES FROM `shop` WHERE `in_use`!=0", "Database Table In_use Name_locked", 0),
    ("heidisql", "SELECT `User`, `Host`, `authentication_string` AS `Password` FROM `mysql`.`user`", "Password", 1),
    ("heidisql", "EXPLAIN SELECT * FROM shop.item", "id select_type table partitions type possible_keys key key_len ref rows filtered Extra", 1),
    ("heidisql", "KILL QUERY 999999", "!1094", 0),
    # DataGrip
    ("datagrip", "select database(), schema(), left(user(),instr(concat(user(),'@'),'@')-1), @@version_comment", "@@version_comment", 1),
    ("datagrip", "SET net_write_timeout=600000", None, 0),
    ("datagrip", "select schema_name, default_collation_name from information_schema.schemata", "SCHEMA_NAME", 2),
    ("datagrip", "select collation_name, character_set_name, is_default = 'Yes' as is_default from information_schema.collations", "is_default", 5),
    ("datagrip", "select table_name, table_type, engine, table_collation, table_comment, create_options from information_schema.tables where table_schema = 'shop'", "TABLE_NAME", 3),
    ("datagrip", "select ordinal_position, column_name, column_type, column_default, generation_expression, table_name, column_comment, is_nullable, extra, collation_name from information_schema.columns where table_schema = 'shop' order by table_name, ordinal_position", "EXTRA", 9),
    ("datagrip", "select table_name, auto_increment from information_schema.tables where table_schema = 'shop' and auto_increment is not null", "AUTO_INCREMENT", 1),
    ("datagrip", "select table_name, index_name, index_comment, index_type, non_unique, column_name, sub_part, collation, expression from information_schema.statistics where table_schema = 'shop' and index_schema = 'shop' order by index_schema, table_name, index_name, index_type, seq_in_index", "INDEX_TYPE", 3),
    ("datagrip", "select c.constraint_name, c.constraint_schema, c.table_name, c.constraint_type, c.enforced = 'NO' not_enforced, cc.check_clause from information_schema.table_constraints c left join information_schema.check_constraints cc on c.constraint_schema = cc.constraint_schema and c.constraint_name = cc.constraint_name where c.table_schema = 'shop'", "not_enforced", 4),
    ("datagrip", "select constraint_name, table_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name from information_schema.key_column_usage where table_schema = 'shop' and referenced_column_name is not null order by table_name, constraint_name, ordinal_position", "COLUMN_NAME", 1),
    ("datagrip", "select Host, User, Routine_name, Proc_priv, Routine_type = 'PROCEDURE' as is_proc from mysql.procs_priv where Db = 'shop'", "Host is_proc", 0),
    ("datagrip", "select grantee, table_name, column_name, privilege_type, is_grantable from information_schema.column_privileges where table_schema = 'shop' union all select grantee, table_name, '' column_name, privilege_type, is_grantable from information_schema.table_privileges where table_schema = 'shop' order by table_name, grantee, privilege_type", "GRANTEE", 0),
    ("datagrip", "select table_name, partition_name, subpartition_name, partition_ordinal_position, subpartition_ordinal_position, partition_method, subpartition_method, partition_expression, subpartition_expression, partition_description, partition_comment from information_schema.partitions where partition_name is not null and table_schema = 'shop'", "PARTITION_NAME", 0),
    ("datagrip", "select specific_name, routine_type, routine_body, routine_definition, dtd_identifier from information_schema.routines where routine_schema = 'shop'", "ROUTINE_TYPE", 0),
    ("datagrip", "select user, host, plugin from mysql.user", "plugin", 1),
    ("datagrip", "select name, ret, dl from mysql.func", "name ret dl", 0),
    ("datagrip", "SET SQL_SELECT_LIMIT=501", None, 0),
    ("datagrip", "select * from mysql.help_topic limit 1", "help_topic_id name description", 0),
    # phpMyAdmin
    ("phpmyadmin", "SET SQL_SELECT_LIMIT=DEFAULT", None, 0),
    ("phpmyadmin", "SELECT @@version, @@version_comment", "@@version", 1),
    ("phpmyadmin", "SET collation_connection = 'utf8mb4_unicode_ci'", None, 0),
    ("phpmyadmin", "SET lc_messages = 'en_US'", None, 0),
    ("phpmyadmin", "SELECT @@lower_case_table_names", "@@lower_case_table_names", 1),
    ("phpmyadmin", "SHOW SESSION VARIABLES LIKE 'FOREIGN_KEY_CHECKS'", "Value", 1),
    ("phpmyadmin", "SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA`, (SELECT DB_first_level FROM ( SELECT DISTINCT SUBSTRING_INDEX(SCHEMA_NAME, '_', 1) DB_first_level FROM INFORMATION_SCHEMA.SCHEMATA WHERE TRUE ) t ORDER BY DB_first_level ASC LIMIT 0, 100) t2 WHERE TRUE AND 1 = LOCATE(CONCAT(DB_first_level, '_'), CONCAT(SCHEMA_NAME, '_')) ORDER BY SCHEMA_NAME ASC", "SCHEMA_NAME", 2),
    ("phpmyadmin", "SELECT *, `TABLE_SCHEMA` AS `Db`, `TABLE_NAME` AS `Name`, `TABLE_TYPE` AS `TABLE_TYPE`, `ENGINE` AS `Engine`, `ENGINE` AS `Type`, `VERSION` AS `Version`, `ROW_FORMAT` AS `Row_format`, `TABLE_ROWS` AS `Rows`, `AVG_ROW_LENGTH` AS `Avg_row_length`, `DATA_LENGTH` AS `Data_length`, "
     "`MAX_DATA_LENGTH` AS `Max_data_length`, `INDEX_LENGTH` AS `Index_length`, `DATA_FREE` AS `Data_free`, `AUTO_INCREMENT` AS `Auto_increment`, `CREATE_TIME` AS `Create_time`, `UPDATE_TIME` AS `Update_time`, `CHECK_TIME` AS `Check_time`, `TABLE_COLLATION` AS `Collation`, `CHECKSUM` AS `Checksum`, "
     "`CREATE_OPTIONS` AS `Create_options`, `TABLE_COMMENT` AS `Comment` FROM `information_schema`.`TABLES` t WHERE `TABLE_SCHEMA` IN ('shop') ORDER BY Name ASC LIMIT 250 OFFSET 0", "Name", 3),
    ("phpmyadmin", "SELECT 1 FROM mysql.user LIMIT 1", "1", 1),
    ("phpmyadmin", "SELECT 1 FROM (SELECT `GRANTEE`, `IS_GRANTABLE` FROM `INFORMATION_SCHEMA`.`COLUMN_PRIVILEGES` UNION SELECT `GRANTEE`, `IS_GRANTABLE` FROM `INFORMATION_SCHEMA`.`TABLE_PRIVILEGES` UNION SELECT `GRANTEE`, `IS_GRANTABLE` FROM `INFORMATION_SCHEMA`.`SCHEMA_PRIVILEGES` UNION SELECT `GRANTEE`, `IS_GRANTABLE` FROM `INFORMATION_SCHEMA`.`USER_PRIVILEGES`) t WHERE `IS_GRANTABLE` = 'YES' AND '''root''@''%''' LIKE `GRANTEE` UNION SELECT 1 FROM mysql.user WHERE `create_user_priv` = 'Y' COLLATE utf8mb4_general_ci AND 'root' LIKE `User` AND '' LIKE `Host` LIMIT 1", "1", 1),
    ("phpmyadmin", "SELECT `PLUGIN_NAME`, `PLUGIN_DESCRIPTION` FROM `information_schema`.`PLUGINS` WHERE `PLUGIN_TYPE` = 'AUTHENTICATION'", "PLUGIN_NAME", 2),
    ("phpmyadmin", "SELECT `CHARACTER_SET_NAME` AS `Charset`, `DEFAULT_COLLATE_NAME` AS `Default collation`, `DESCRIPTION` AS `Description`, `MAXLEN` AS `Maxlen` FROM `information_schema`.`CHARACTER_SETS`", "Charset", 3),
    ("phpmyadmin", "SHOW BINARY LOGS", "!1381", 0),
    ("phpmyadmin", "SHOW MASTER STATUS", "File", 0),
    ("phpmyadmin", "SHOW SLAVE STATUS", None, 0),
    ("phpmyadmin", "SHOW REPLICA STATUS", None, 0),
    ("phpmyadmin", "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'cheap' AND IS_UPDATABLE = 'YES'", "TABLE_NAME", 1),
    ("phpmyadmin", "SHOW INDEXES FROM `shop`.`item` WHERE (Non_unique = 0)", "Key_name", 2),
    ("phpmyadmin", "SET PROFILING=1", "!1235", 0),
    ("phpmyadmin", "SHOW PROFILES", "!1235", 0),
    ("phpmyadmin", "SET PROFILING=0", None, 0),
    ("phpmyadmin", "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('datadir', 'general_log', 'slow_query_log', 'tmpdir', 'socket')", "Value", 2),
    ("phpmyadmin", "SELECT `event_scheduler` FROM (SELECT @@event_scheduler AS `event_scheduler`) x", "event_scheduler", 1),
    ("phpmyadmin", "CHECK TABLE `shop`.`item`", "Table Op Msg_type Msg_text", 1),
    ("phpmyadmin", "OPTIMIZE TABLE `shop`.`item`", "Table Op Msg_type Msg_text", 1),
    ("phpmyadmin", "ANALYZE TABLE `shop`.`item`", "Table Op Msg_type Msg_text", 1),
    ("phpmyadmin", "REPAIR TABLE `shop`.`item`", "Table Op Msg_type Msg_text", 1),
    ("phpmyadmin", "CHECKSUM TABLE `shop`.`item`", "Table Checksum", 1),
    ("phpmyadmin", "FLUSH PRIVILEGES", None, 0),
    # Adminer, Navicat, the mysql client
    ("adminer", "SET sql_quote_show_create = 1, autocommit = 1", None, 0),
    ("adminer", "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME", "SCHEMA_NAME", 2),
    ("adminer", "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME", "TABLE_NAME", 3),
    ("adminer", "SHOW CREATE VIEW `cheap`", "View", 1),
    ("navicat", "SHOW VARIABLES LIKE 'lower_case_%'; ", "Value", 2),
    ("navicat", "SHOW VARIABLES LIKE 'sql_mode'", "Value", 1),
    ("navicat", "SELECT COUNT(*) AS support_ndb FROM information_schema.ENGINES WHERE Engine = 'ndbcluster'", "support_ndb", 1),
    ("navicat", "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA", "SCHEMA_NAME", 2),
    ("navicat", "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' ORDER BY TABLE_SCHEMA, TABLE_TYPE", "TABLE_TYPE", 3),
    ("navicat", "SHOW STATUS", "Value", 50),
    ("mysql", "select @@version_comment limit 1", "@@version_comment", 1),
    ("mysql", "select USER()", "USER()", 1),
    ("mysql", "show status like 'Bytes_%'", "Value", 2),
    ("mysql", "show session status like 'Slow_queries'", "Value", 1),
    ("mysql", "show global status like 'Handler_read%'", "Value", 6),
    ("mysql", "show count(*) warnings", "@@session.warning_count", 1),
    ("mysql", "flush tables with read lock", None, 0),
    ("mysql", "unlock tables", None, 0),
    ("mysql", "flush local tables", None, 0),
    ("mysql", "flush engine logs", None, 0),
    ("mysql", "flush binary logs, status, hosts", None, 0),
    ("mysql", "flush user_resources", None, 0),
]


def ask(connection, sql):
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        try:
            cursor.execute(sql)
        except pymysql.Error as error:
            return error.args, None
        return [column[0] for column in cursor.description or []], cursor.fetchall()


def look_around(connection):
    for tool, sql, columns, least in ASKED:
        named, rows = ask(connection, sql)
        if rows is None:
            tally.equal(f"{tool}: {sql}: {named}", f"!{named[0]}", columns)
            continue
        missing = [column for column in (columns or "").replace("Database (", "Database_(").split() if column.replace("_(", " (").replace("Create_Table", "Create Table") not in named and column.replace("Database_(", "Database (") not in named]
        tally.equal(f"{tool}: columns of {sql}, of {named}", missing, [])
        tally.check(f"{tool}: rows of {sql}", len(rows) >= least, f"{len(rows)} rows")


def said(connection, server):
    """The content of some replies."""
    whole = lambda sql: [list(row.values()) for row in ask(connection, sql)[1]]
    attributes = dict(whole("SELECT ATTR_NAME, ATTR_VALUE FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = CONNECTION_ID()"))
    tally.equal("the client's own words", attributes.get("_client_name"), "pymysql")
    number = lambda name: int(whole(f"SHOW SESSION STATUS LIKE '{name}'")[0][1])
    sent, received = number("Bytes_sent"), number("Bytes_received")
    ask(connection, f"SELECT REPEAT('x', 100000) /* {'y' * 50000} */")
    tally.check("Bytes_sent", 100000 <= number("Bytes_sent") - sent < 103000)
    tally.check("Bytes_received", 50000 <= number("Bytes_received") - received < 52000)
    ask(connection, "FLUSH STATUS")
    ask(connection, "SELECT * FROM item WHERE id = 1")
    tally.equal("Handler_read_key", number("Handler_read_key"), 1)
    ask(connection, "SELECT id, name, price + 1 FROM item")
    tally.equal("Handler_read_rnd_next", number("Handler_read_rnd_next"), 2)
    tally.equal("no slow ones", number("Slow_queries"), 0)
    status = whole("SHOW ENGINE INNODB STATUS")[0][2]
    tally.check("the engine's status", "Log sequence number" in status and "Modified db pages" in status, status)
    tally.equal("another engine", ask(connection, "SHOW ENGINE x STATUS")[0][0], 1286)
    tally.equal("SHOW PRIVILEGES", whole("SHOW PRIVILEGES")[0], ["Select", "Tables", "To retrieve rows from table"])
    ask(connection, "SET sql_select_limit = 1")
    tally.equal("sql_select_limit", len(whole("SELECT * FROM item")), 1)
    tally.equal("LIMIT says more", len(whole("SELECT * FROM item LIMIT 5")), 2)
    tally.equal("a union has one limit", len(whole("SELECT 1 UNION SELECT 2")), 1)
    tally.equal("not within", whole("SELECT COUNT(*) FROM (SELECT id FROM item) x"), [[2]])
    ask(connection, "CREATE TABLE copy_ (id INT)")
    ask(connection, "INSERT INTO copy_ SELECT id FROM item")
    ask(connection, "SET sql_select_limit = DEFAULT")
    tally.equal("not of INSERT", whole("SELECT COUNT(*) FROM copy_"), [[2]])
    tally.equal("and off again", len(whole("SELECT * FROM item")), 2)
    ask(connection, "SET sql_safe_updates = 1")
    for sql, expected in (("UPDATE item SET price = 2", 1175), ("DELETE FROM item WHERE price = 7", 1175), ("UPDATE item SET price = 2 WHERE id = 1", []), ("DELETE FROM item WHERE id = 77", []),
                          ("UPDATE item SET price = 2 LIMIT 1", []), ("DELETE FROM copy_ LIMIT 1", []), ("UPDATE item i JOIN kind k ON k.id + 0 = i.kind + 0 SET i.price = 3", 1175), ("DELETE FROM copy_", 1175)):
        found = ask(connection, sql)
        tally.equal(f"safe updates: {sql}", found[0][0] if found[1] is None else [], expected)
    ask(connection, "SET sql_safe_updates = 0")
    tally.equal("unsafe again", ask(connection, "DELETE FROM copy_")[1] is None, False)
    refresh(server)


def refresh(server):
    """COM_REFRESH, as mariadb-dump and mysqladmin send it."""
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True)
    for bits, first in ((1, 0), (2, 0), (4, 0), (1 | 2 | 4 | 8 | 16 | 32 | 64 | 128, 0)):
        connection._execute_command(7, bytes([bits]))
        tally.equal(f"refresh {bits}", connection._read_packet()._data[0], first)
    connection.query("CREATE USER weak")
    weak = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="weak", ssl_disabled=True)
    weak._execute_command(7, bytes([2]))
    try:
        weak._read_packet()
        tally.check("refresh needs RELOAD", False)
    except pymysql.Error as error:
        tally.equal("refresh needs RELOAD", error.args[0], 1227)
    if shutil.which("mariadb-dump"):
        command = ["mariadb-dump", "--no-defaults", "-h", "127.0.0.1", "-P", str(server.mysql_port), "-u", "root", "--flush-logs", "--lock-all-tables", "shop"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        tally.check("mariadb-dump --flush-logs", done.returncode == 0 and "CREATE TABLE `item`" in done.stdout, done.stderr)


def main():
    with Server(mysql=True) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True, autocommit=True, read_timeout=60)
        for sql in ("CREATE DATABASE shop", "USE shop", "CREATE TABLE kind (id INT PRIMARY KEY, name VARCHAR(20))",
                    "CREATE TABLE item (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL COMMENT 'what', price DECIMAL(8,2), kind INT, at DATETIME(3), note TEXT, UNIQUE KEY by_name (name), "
                    "CONSTRAINT is_kind FOREIGN KEY (kind) REFERENCES kind (id), CONSTRAINT costs CHECK (price >= 0))",
                    "CREATE VIEW cheap AS SELECT id, name FROM item WHERE price < 2", "INSERT INTO kind VALUES (1, 'a')", "INSERT INTO item (name, price, kind) VALUES ('x', 1, 1), ('y', 3, 1)"):
            ask(connection, sql)
        look_around(connection)
        said(connection, server)


main()
tally.close()
raise SystemExit(tally.failed > 0)
