import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.function.Supplier;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** pgjdbc: the simple protocol, the extended one and its binary transfer; values of every type, batches, generated keys, fetch sizes, savepoints, COPY, errors, changed tables, logins. */
public class Postgres {
    static final String DATABASE = "java_suite";
    static final int ROUNDS = 1000;
    static final long SEED = System.nanoTime();
    static final Random DRAW = new Random(SEED);
    static String port;

    interface Part {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        port = args[args.length - 1];
        System.out.println("seed " + SEED);
        try (Connection admin = connect("postgres", ""); Statement statement = admin.createStatement()) {
            statement.execute("drop database if exists " + DATABASE);
            statement.execute("create database " + DATABASE);
        }
        // Unnamed statements, statements that get a name at once, with every value in binary, and the simple protocol.
        String[] ways = {"", "&prepareThreshold=1&binaryTransfer=true", "&prepareThreshold=-1", "&preferQueryMode=simple", "&reWriteBatchedInserts=true&prepareThreshold=1"};
        for (int at = 0; at < ways.length; at++) {
            String way = ways[at], schema = "way" + at;
            part(schema, () -> {
                try (Connection connection = connect(DATABASE, way)) {
                    execute(connection, "create schema " + schema);
                    connection.setSchema(schema);
                    Tally.equal("schema", connection.getSchema(), schema);
                    part(schema + " values", () -> values(connection, schema));
                    part(schema + " batches", () -> batches(connection));
                    part(schema + " errors", () -> errors(connection, schema));
                    part(schema + " transactions", () -> transactions(connection));
                    part(schema + " rows", () -> rows(connection, schema));
                }
            });
        }
        try (Connection connection = connect(DATABASE, "&prepareThreshold=1")) {
            part("changed", () -> changed(connection));
            part("copies", () -> copies(connection));
            part("cancelled", () -> cancelled(connection));
            part("described", () -> described(connection));
        }
        part("logins", Postgres::logins);
        Tally.tell();
    }

    static void part(String name, Part part) {
        try {
            part.run();
        } catch (Exception error) {
            Tally.equal(name + ": no error", error + " at " + Arrays.stream(error.getStackTrace()).filter(line -> line.getClassName().equals("Postgres")).findFirst(), null);
        }
    }

    static Connection connect(String database, String options) throws SQLException {
        String ssl = options.contains("sslmode") ? "" : "&sslmode=disable";
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/" + database + "?user=postgres" + ssl + options);
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static Object one(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int at = 0; at < values.length; at++) {
                statement.setObject(at + 1, values[at]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getObject(1) : null;
            }
        }
    }

    static ServerErrorMessage fault(Part part) throws Exception {
        try {
            part.run();
            return new ServerErrorMessage("C-----\0Mno error\0");
        } catch (PSQLException error) {
            return error.getServerErrorMessage() != null ? error.getServerErrorMessage() : new ServerErrorMessage("C" + error.getSQLState() + "\0M" + error.getMessage() + "\0");
        }
    }

    static String letters() {
        String[] pieces = {"a", "Z", "'", "\"", "\\", "\n", "\t", "ä", "\ud83d\udc0b", " ", "%", "?", "$1"};
        StringBuilder text = new StringBuilder();
        for (int count = DRAW.nextInt(40); count > 0; count--) {
            text.append(pieces[DRAW.nextInt(pieces.length)]);
        }
        return text.toString();
    }

    static BigDecimal decimal() {
        return new BigDecimal(new BigInteger(DRAW.nextInt(200) + 1, DRAW).multiply(BigInteger.valueOf(DRAW.nextBoolean() ? 1 : -1)), DRAW.nextInt(40));
    }

    static byte[] bytes(int size) {
        byte[] bytes = new byte[size];
        DRAW.nextBytes(bytes);
        return bytes;
    }

    static LocalDateTime moment() {
        return LocalDateTime.ofEpochSecond(DRAW.nextLong(-60_000_000_000L, 200_000_000_000L), DRAW.nextInt(1_000_000) * 1000, ZoneOffset.UTC);
    }

    static Map<String, Supplier<Object>> kinds() {
        Map<String, Supplier<Object>> kinds = new LinkedHashMap<>();
        kinds.put("bool", DRAW::nextBoolean);
        kinds.put("int2", () -> (int) (short) DRAW.nextInt());
        kinds.put("int4", DRAW::nextInt);
        kinds.put("int8", DRAW::nextLong);
        kinds.put("float4", () -> DRAW.nextInt(4) == 0 ? Float.POSITIVE_INFINITY : (float) (DRAW.nextGaussian() * Math.pow(10, DRAW.nextInt(60) - 30)));
        kinds.put("float8", () -> DRAW.nextInt(4) == 0 ? Double.NaN : DRAW.nextGaussian() * Math.pow(10, DRAW.nextInt(600) - 300));
        kinds.put("numeric", Postgres::decimal);
        kinds.put("text", Postgres::letters);
        kinds.put("varchar", Postgres::letters);
        kinds.put("bytea", () -> bytes(DRAW.nextInt(60)));
        kinds.put("date", () -> moment().toLocalDate());
        kinds.put("time", () -> LocalTime.ofNanoOfDay(DRAW.nextLong(86_400_000_000L) * 1000));
        kinds.put("timestamp", Postgres::moment);
        kinds.put("timestamptz", () -> moment().atOffset(ZoneOffset.UTC));
        kinds.put("uuid", () -> new UUID(DRAW.nextLong(), DRAW.nextLong()));
        return kinds;
    }

    static Object read(ResultSet rows, String kind) throws SQLException {
        Object plain = rows.getObject("v");
        if (plain == null) {
            return null;
        }
        return switch (kind) {
            case "date" -> rows.getObject("v", LocalDate.class);
            case "time" -> rows.getObject("v", LocalTime.class);
            case "timestamp" -> rows.getObject("v", LocalDateTime.class);
            case "timestamptz" -> rows.getObject("v", OffsetDateTime.class);
            default -> plain;
        };
    }

    static void values(Connection connection, String way) throws SQLException {
        for (Map.Entry<String, Supplier<Object>> kind : kinds().entrySet()) {
            String table = "kind_" + kind.getKey();
            execute(connection, "create table " + table + " (id int4 primary key, v " + kind.getKey() + ")");
            Object[] sent = new Object[ROUNDS];
            connection.setAutoCommit(false);
            try (PreparedStatement insert = connection.prepareStatement("insert into " + table + " values (?, ?)")) {
                for (int id = 0; id < ROUNDS; id++) {
                    sent[id] = id % 10 == 9 ? null : kind.getValue().get();
                    insert.setInt(1, id);
                    if (sent[id] == null) {
                        insert.setNull(2, Types.OTHER);
                    } else {
                        insert.setObject(2, sent[id]);
                    }
                    insert.addBatch();
                }
                insert.executeBatch();
            } catch (SQLException error) {
                Tally.equal(way + " " + table, error.getMessage(), null);
                connection.rollback();
                connection.setAutoCommit(true);
                continue;
            }
            connection.commit();
            connection.setAutoCommit(true);
            String wrong = null;
            int at = 0;
            try (PreparedStatement select = connection.prepareStatement("select id, v from " + table + " where id >= ? order by id")) {
                select.setInt(1, 0);
                try (ResultSet rows = select.executeQuery()) {
                    for (; rows.next(); at++) {
                        Object found = read(rows, kind.getKey());
                        if (!java.util.Objects.deepEquals(found, sent[at]) && wrong == null) {
                            wrong = "found " + found + ", sent " + sent[at];
                        }
                    }
                }
            }
            Tally.equal(way + " " + kind.getKey() + " there and back", wrong, null);
            Tally.equal(way + " " + kind.getKey() + " rows", at, ROUNDS);
        }
    }

    static void batches(Connection connection) throws Exception {
        execute(connection, "create table item (id int8 generated always as identity primary key, name text not null unique, price numeric(10, 2) check (price > 0))");
        try (PreparedStatement insert = connection.prepareStatement("insert into item (name, price) values (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int at = 0; at < 500; at++) {
                insert.setString(1, "name " + at);
                insert.setBigDecimal(2, BigDecimal.valueOf(at + 1, 2));
                insert.addBatch();
            }
            Tally.equal("a batch", insert.executeBatch().length, 500);
            List<Long> keys = new ArrayList<>();
            try (ResultSet rows = insert.getGeneratedKeys()) {
                while (rows.next()) {
                    keys.add(rows.getLong("id"));
                }
            }
            Tally.equal("generated keys", keys, java.util.stream.LongStream.rangeClosed(1, 500).boxed().toList());
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into item (name, price) values (?, 1)", new String[] {"id", "price"})) {
            insert.setString(1, "one more");
            Tally.equal("one row", insert.executeUpdate(), 1);
            try (ResultSet rows = insert.getGeneratedKeys()) {
                rows.next();
                Tally.equal("named keys", rows.getLong(1) + " " + rows.getBigDecimal(2), "501 1.00");
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("update item set price = price + 1 where id <= 10");
            statement.addBatch("delete from item where id > 490");
            Tally.equal("statements of a batch", statement.executeBatch(), new int[] {10, 11});
            statement.execute("create table made (a int4)");
            statement.addBatch("insert into made values (1)");
            statement.addBatch("insert into made values ('x')");
            statement.addBatch("insert into made values (2)");
            statement.executeBatch();
            Tally.equal("an error in a batch", "let in", "");
        } catch (BatchUpdateException error) {
            Tally.equal("an error in a batch", error.getSQLState(), "22P02");
        }
    }

    static void errors(Connection connection, String schema) throws Exception {
        String[][] cases = {
            {"insert into item (name, price) values ('name 1', 1)", "23505", "item", null, "item_name_key"},
            {"insert into item (name, price) values ('c', -1)", "23514", "item", null, "item_price_check"},
            {"insert into item (price) values (1)", "23502", "item", "name", null},
        };
        for (String[] given : cases) {
            ServerErrorMessage found = fault(() -> execute(connection, given[0]));
            Tally.equal("error " + given[1], Arrays.asList(found.getSQLState(), found.getSchema(), found.getTable(), found.getColumn(), found.getConstraint()), Arrays.asList(given[1], schema, given[2], given[3], given[4]));
        }
        ServerErrorMessage found = fault(() -> one(connection, "select id, ? from item where nme = ?", 1, "x"));
        Tally.equal("a position", found.getSQLState() + " " + (found.getPosition() > 0) + " " + found.getHint(), "42703 true Perhaps you meant to reference the column \"item.name\".");
        Tally.equal("syntax", fault(() -> execute(connection, "selec 1")).getSQLState(), "42601");
        try (Statement statement = connection.createStatement()) {
            statement.execute("drop table if exists nothing_at_all");
            Tally.equal("a warning", statement.getWarnings().getMessage(), "table \"nothing_at_all\" does not exist, skipping");
        }
    }

    static void transactions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        execute(connection, "update item set price = 7 where id = 1");
        Savepoint point = connection.setSavepoint("point");
        Tally.equal("in a block", fault(() -> execute(connection, "insert into item (name) values ('name 2')")).getSQLState(), "23505");
        Tally.equal("aborted", fault(() -> execute(connection, "select 1")).getSQLState(), "25P02");
        connection.rollback(point);
        connection.releaseSavepoint(point);
        connection.commit();
        Tally.equal("committed", one(connection, "select price from item where id = 1"), new BigDecimal("7.00"));
        connection.rollback();
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        Tally.equal("isolation", one(connection, "show transaction_isolation"), "repeatable read");
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setReadOnly(true);
        Tally.equal("read only", fault(() -> execute(connection, "delete from item")).getSQLState(), "25006");
        connection.rollback();
        connection.setReadOnly(false);
        connection.setAutoCommit(true);
    }

    static void rows(Connection connection, String way) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement select = connection.prepareStatement("select i, 'row ' || i from generate_series(1, ?) as of(i)")) {
            select.setInt(1, 5000);
            select.setFetchSize(300);
            int count = 0;
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    count += rows.getInt(1) == count + 1 && rows.getString(2).equals("row " + (count + 1)) ? 1 : 0;
                }
            }
            Tally.equal("rows by pieces", count, 5000);
            select.setMaxRows(7);
            count = 0;
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    count++;
                }
            }
            // The simple protocol has no row limit.
            Tally.equal(way + " at most", count, way.equals("way3") ? 5000 : 7);
        }
        connection.commit();
        connection.setAutoCommit(true);
        String text = "ü".repeat(2_000_000);
        Tally.equal("a long text", one(connection, "select ?::text", text).equals(text), true);
        byte[] bytes = bytes(5_000_000);
        Tally.equal("long bytes", Arrays.equals((byte[]) one(connection, "select ?::bytea", (Object) bytes), bytes), true);
        try (Statement statement = connection.createStatement()) {
            boolean rows = statement.execute("select 1; update item set price = price where id < 5; select 2, 3");
            List<Object> found = new ArrayList<>();
            for (int count = 0; rows || (count = statement.getUpdateCount()) >= 0; rows = statement.getMoreResults()) {
                found.add(rows ? "rows of " + statement.getResultSet().getMetaData().getColumnCount() : (Object) count);
            }
            // The driver asks for the results of all of them in the formats of one.
            Tally.equal(way + " several results", found, List.of("rows of 1", way.equals("way2") ? "rows of 2" : 4, "rows of 2"));
        }
        try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE); ResultSet rows = statement.executeQuery("select i from generate_series(1, 9) as of(i)")) {
            rows.absolute(7);
            int seventh = rows.getInt(1);
            rows.previous();
            Tally.equal("scrolling", seventh * 10 + rows.getInt(1), 76);
        }
    }

    static void changed(Connection connection) throws Exception {
        execute(connection, "create table changing (a int4)");
        execute(connection, "insert into changing values (1)");
        try (Connection other = connect(DATABASE, "&prepareThreshold=1&autosave=never"); PreparedStatement star = other.prepareStatement("select * from changing")) {
            List<Integer> columns = new ArrayList<>();
            for (int at = 0; at < 4; at++) {
                if (at == 2) {
                    execute(connection, "alter table changing add b text default 'x'");
                }
                // The driver prepares a statement again that fails so outside of a transaction.
                try (ResultSet rows = star.executeQuery()) {
                    columns.add(rows.getMetaData().getColumnCount());
                }
            }
            Tally.equal("a changed table", columns, List.of(1, 1, 2, 2));
            other.setAutoCommit(false);
            star.executeQuery().close();
            other.commit();
            execute(connection, "alter table changing drop b");
            ServerErrorMessage found = fault(() -> star.executeQuery().close());
            Tally.equal("in a transaction", found.getSQLState() + " " + found.getMessage(), "0A000 cached plan must not change result type");
            other.rollback();
        }
    }

    static void copies(Connection connection) throws Exception {
        CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
        execute(connection, "create table line (id int4 primary key, v text, n numeric)");
        StringBuilder lines = new StringBuilder();
        for (int id = 0; id < 10_000; id++) {
            lines.append(id).append("\tvalue\\t").append(id).append('\t').append(id % 7 == 0 ? "\\N" : id + ".5").append('\n');
        }
        Tally.equal("COPY in", copies.copyIn("copy line from stdin", new StringReader(lines.toString())), 10_000L);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Tally.equal("COPY out", copies.copyOut("copy (select * from line order by id) to stdout", out), 10_000L);
        Tally.equal("its lines", out.toString(StandardCharsets.UTF_8).contentEquals(lines), true);
        Tally.equal("a broken line", fault(() -> copies.copyIn("copy line from stdin (format csv)", new StringReader("20000,a,b\n"))).getSQLState(), "22P02");
    }

    static void cancelled(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            Tally.equal("a timeout", fault(() -> statement.execute("select pg_sleep(300)")).getSQLState(), "57014");
        }
        execute(connection, "set statement_timeout = 50");
        Tally.equal("statement_timeout", fault(() -> execute(connection, "select pg_sleep(300)")).getSQLState(), "57014");
        execute(connection, "reset statement_timeout");
    }

    static void described(Connection connection) throws SQLException {
        execute(connection, "create table described (id serial primary key, name varchar(50) not null, price numeric(12, 3), at timestamptz(3), data bytea, flag bool)");
        try (PreparedStatement select = connection.prepareStatement("select id, name, price, at, data, flag, 1 + id as sum from described where id = ? and name like ?")) {
            ParameterMetaData parameters = select.getParameterMetaData();
            Tally.equal("parameters", parameters.getParameterTypeName(1) + " " + parameters.getParameterTypeName(2), "int4 text");
            ResultSetMetaData columns = select.getMetaData();
            StringBuilder found = new StringBuilder();
            for (int at = 1; at <= columns.getColumnCount(); at++) {
                found.append(columns.getColumnName(at)).append(' ').append(columns.getColumnTypeName(at)).append(' ').append(columns.getPrecision(at)).append(',').append(columns.getScale(at)).append(' ').append(columns.isNullable(at)).append(columns.isAutoIncrement(at)).append(' ').append(columns.getTableName(at)).append("; ");
            }
            Tally.equal("columns", found.toString(), "id serial 10,0 0true described; name varchar 50,0 0false described; price numeric 12,3 1false described; at timestamptz 32,3 1false described; data bytea 2147483647,0 1false described; flag bool 1,0 1false described; sum int4 10,0 2false ; ");
        }
        DatabaseMetaData data = connection.getMetaData();
        Tally.equal("product", data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion(), "PostgreSQL 16");
    }

    static void logins() throws Exception {
        String chain = System.getenv("CERTIFICATE");
        if (chain == null) {
            return;
        }
        String tls = "&sslmode=verify-full&sslrootcert=" + chain, driver = "&user=driver&password=driver's";
        Map<String, String> ways = new LinkedHashMap<>();
        ways.put("SCRAM", driver);
        ways.put("TLS", tls);
        ways.put("SCRAM and TLS", driver + tls + "&channelBinding=disable");
        ways.put("channel binding", driver + tls + "&channelBinding=require");
        for (Map.Entry<String, String> way : ways.entrySet()) {
            part(way.getKey(), () -> {
                String options = way.getValue().contains("user=") ? "?" + way.getValue().substring(1) : "?user=postgres" + way.getValue();
                try (Connection connection = DriverManager.getConnection("jdbc:postgresql://localhost:" + port + "/" + DATABASE + options + (options.contains("sslmode") ? "" : "&sslmode=disable"))) {
                    Tally.equal(way.getKey(), one(connection, "select current_user"), options.contains("driver") ? "driver" : "postgres");
                }
            });
        }
        Tally.equal("a wrong password", fault(() -> DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/" + DATABASE + "?sslmode=disable&user=driver&password=x").close()).getSQLState(), "28P01");
        Tally.equal("no such database", fault(() -> connect("nowhere", "").close()).getSQLState(), "3D000");
    }
}
