import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;

/** Connector/J: statements of the client's and of the server's preparing, batches, cursors, transactions, errors. */
public class Mysql {
    public static void main(String[] args) throws SQLException {
        String port = args[args.length - 1];
        for (String prepared : new String[] {"false", "true"}) {
            // One way is compressed.
            String options = "?useCompression=" + prepared + "&sslMode=DISABLED&allowPublicKeyRetrieval=true&useCursorFetch=true&useServerPrepStmts=" + prepared;
            try (Connection connection = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + options, "root", "")) {
                run(connection, prepared);
            }
        }
        Tally.tell();
    }

    static void run(Connection connection, String way) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE DATABASE shop" + way);
        }
        connection.setCatalog("shop" + way);
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(50), price DECIMAL(10,2), at DATETIME(6))");
        }
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO t VALUES (?, ?, ?, ?)")) {
            for (long id = 0; id < 1000; id++) {
                insert.setLong(1, id);
                insert.setString(2, "name " + id);
                insert.setBigDecimal(3, BigDecimal.valueOf(id, 2));
                insert.setTimestamp(4, Timestamp.valueOf("2026-11-21 08:05:04.123456"));
                insert.addBatch();
            }
            Tally.equal("batch", insert.executeBatch().length, 1000);
        }
        connection.commit();
        try (PreparedStatement select = connection.prepareStatement("SELECT id, name, price, at FROM t WHERE id >= ? ORDER BY id")) {
            select.setLong(1, 500);
            select.setFetchSize(100);
            int count = 0;
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    long id = 500 + count++;
                    if (rows.getLong(1) != id || !rows.getString(2).equals("name " + id) || rows.getBigDecimal(3).compareTo(BigDecimal.valueOf(id, 2)) != 0
                            || !rows.getTimestamp(4).equals(Timestamp.valueOf("2026-11-21 08:05:04.123456"))) {
                        Tally.equal("row " + id, rows.getString(1) + rows.getString(2) + rows.getString(3) + rows.getString(4), "");
                    }
                }
            }
            Tally.equal("rows by cursor", count, 500);
        }
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("INSERT INTO t (id) VALUES (1)");
            Tally.equal("duplicate", "let in", "1062");
        } catch (SQLException error) {
            Tally.equal("duplicate", error.getErrorCode() + error.getSQLState(), "106223000");
        }
        connection.rollback();
    }
}
