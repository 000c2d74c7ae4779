import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Connector/J's DatabaseMetaData: every method, by SHOW commands as is its default, and what the main ones tell; setMaxRows, which is SQL_SELECT_LIMIT. */
public class Metadata {
    public static void main(String[] args) throws Exception {
        String port = args[args.length - 1];
        String url = "jdbc:mysql://127.0.0.1:" + port + "/";
        String options = "?sslMode=DISABLED&allowPublicKeyRetrieval=true";
        try (Connection connection = DriverManager.getConnection(url + options, "root", ""); Statement statement = connection.createStatement()) {
            for (String sql : new String[] {
                "CREATE DATABASE store", "USE store",
                "CREATE TABLE author (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL DEFAULT 'x' COMMENT 'who', born DATE, UNIQUE KEY by_name (name))",
                "CREATE TABLE book (id BIGINT PRIMARY KEY, author INT UNSIGNED, title TEXT, price DECIMAL(8,2) DEFAULT 1.50, at TIMESTAMP(3) NULL, kind ENUM('a','b'), flag TINYINT(1), KEY of_author (author, price), CONSTRAINT wrote FOREIGN KEY (author) REFERENCES author (id) ON DELETE CASCADE)",
                "CREATE VIEW cheap AS SELECT id, title FROM book WHERE price < 2",
            }) {
                statement.execute(sql);
            }
        }
        for (String schema : new String[] {"false"}) {
            for (String term : new String[] {"CATALOG", "SCHEMA"}) {
                String more = "&useInformationSchema=" + schema + "&databaseTerm=" + term;
                try (Connection connection = DriverManager.getConnection(url + "store" + options + more, "root", "")) {
                    every(connection, more);
                    told(connection, more, term.equals("CATALOG"));
                    limits(connection, more);
                }
            }
        }
        Tally.tell();
    }

    /** Each method once, with arguments that fit. What the driver itself does not have is no matter. */
    static void every(Connection connection, String more) throws Exception {
        DatabaseMetaData data = connection.getMetaData();
        for (Method method : DatabaseMetaData.class.getMethods()) {
            if (Modifier.isStatic(method.getModifiers()) || method.getDeclaringClass() != DatabaseMetaData.class) {
                continue;
            }
            boolean byTerm = more.contains("CATALOG");
            Class<?>[] types = method.getParameterTypes();
            Object[] arguments = new Object[types.length];
            int strings = 0;
            for (int at = 0; at < types.length; at++) {
                if (types[at] == String.class) {
                    // catalog, schema, then names and patterns
                    boolean isPlace = strings % 3 < 2;
                    arguments[at] = strings % 3 == (byTerm ? 0 : 1) ? "store" : isPlace ? null : strings > 3 ? "author" : "book";
                    strings++;
                } else if (types[at] == int.class) {
                    arguments[at] = method.getName().equals("supportsResultSetConcurrency") ? (at == 0 ? ResultSet.TYPE_FORWARD_ONLY : ResultSet.CONCUR_READ_ONLY) : 1;
                } else if (types[at] == boolean.class) {
                    arguments[at] = false;
                }
            }
            try {
                Object found = method.invoke(data, arguments);
                if (found instanceof ResultSet) {
                    ResultSetMetaData columns = ((ResultSet) found).getMetaData();
                    while (((ResultSet) found).next()) {
                        for (int at = 1; at <= columns.getColumnCount(); at++) {
                            ((ResultSet) found).getObject(at);
                        }
                    }
                }
                Tally.pass();
            } catch (InvocationTargetException error) {
                boolean isNone = error.getCause() instanceof SQLFeatureNotSupportedException;
                Tally.equal(method.getName() + Arrays.toString(types) + more + ": " + error.getCause(), isNone, true);
            }
        }
    }

    static List<String> rows(ResultSet result, String... columns) throws SQLException {
        List<String> rows = new ArrayList<>();
        try (result) {
            while (result.next()) {
                List<String> row = new ArrayList<>();
                for (String column : columns) {
                    row.add(result.getString(column));
                }
                rows.add(String.join("|", row.stream().map(String::valueOf).toList()));
            }
        }
        return rows;
    }

    static void told(Connection connection, String more, boolean byCatalog) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        String catalog = byCatalog ? "store" : null;
        String schema = byCatalog ? null : "store";
        Tally.equal("product" + more, data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion() + "." + data.getDatabaseMinorVersion(), "MySQL 8.0");
        Tally.equal("user" + more, data.getUserName(), "root@localhost");
        Tally.equal("tables" + more, rows(data.getTables(catalog, schema, "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE"), List.of("author|TABLE", "book|TABLE", "cheap|VIEW"));
        Tally.equal("columns" + more, rows(data.getColumns(catalog, schema, "author", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "NULLABLE", "COLUMN_DEF", "REMARKS", "IS_AUTOINCREMENT"),
            List.of("id|4|INT UNSIGNED|10|0|null||YES", "name|12|VARCHAR|40|0|x|who|NO", "born|91|DATE|10|1|null||NO"));
        Tally.equal("columns of book" + more, rows(data.getColumns(catalog, schema, "book", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "ORDINAL_POSITION"),
            List.of("id|BIGINT|19|null|1", "author|INT UNSIGNED|10|null|2", "title|TEXT|65535|null|3", "price|DECIMAL|8|2|4", "at|TIMESTAMP|23|null|5", "kind|ENUM|1|null|6", "flag|BIT|1|null|7"));
        Tally.equal("primary key" + more, rows(data.getPrimaryKeys(catalog, schema, "book"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), List.of("id|1|PRIMARY"));
        Tally.equal("imported" + more, rows(data.getImportedKeys(catalog, schema, "book"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "DELETE_RULE", "FK_NAME"), List.of("author|id|book|author|1|0|wrote"));
        Tally.equal("exported" + more, rows(data.getExportedKeys(catalog, schema, "author"), "FKTABLE_NAME", "FK_NAME"), List.of("book|wrote"));
        Tally.equal("cross" + more, rows(data.getCrossReference(catalog, schema, "author", catalog, schema, "book"), "FKCOLUMN_NAME"), List.of("author"));
        Tally.equal("indexes" + more, rows(data.getIndexInfo(catalog, schema, "book", false, false), "INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION", "COLUMN_NAME"), List.of("PRIMARY|false|1|id", "of_author|true|1|author", "of_author|true|2|price"));
        Tally.equal("row id" + more, rows(data.getBestRowIdentifier(catalog, schema, "author", 2, true), "COLUMN_NAME"), List.of("id"));
        Tally.equal("types" + more, rows(data.getTableTypes(), "TABLE_TYPE"), List.of("LOCAL TEMPORARY", "SYSTEM TABLE", "SYSTEM VIEW", "TABLE", "VIEW"));
        Tally.equal("procedures" + more, rows(data.getProcedures(catalog, schema, "%"), "PROCEDURE_NAME"), List.of());
        Tally.equal("keywords" + more, data.getSQLKeywords().isEmpty(), false);
    }

    static void limits(Connection connection, String more) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setMaxRows(2);
            Tally.equal("max rows" + more, rows(statement.executeQuery("SELECT table_name AS n FROM information_schema.tables ORDER BY 1"), "n").size(), 2);
            statement.setMaxRows(0);
            Tally.equal("all rows" + more, rows(statement.executeQuery("SELECT table_name AS n FROM information_schema.tables ORDER BY 1"), "n").size() > 2, true);
        }
    }
}
