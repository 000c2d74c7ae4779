<?php
// PDO and mysqli over mysqlnd: text and prepared statements, emulated and of the server, types, errors, transactions, results drawn row by row, cursors.
$port = (int) $argv[$argc - 1];
$passed = $failed = 0;

function equal(string $name, $found, $expected): void
{
    global $passed, $failed;
    if ($found === $expected) {
        $passed++;
        return;
    }
    $failed++;
    echo "FAILED $name: ", var_export($found, true), ' instead of ', var_export($expected, true), "\n";
}

function code(callable $action)
{
    try {
        $action();
    } catch (PDOException $error) {
        return [$error->errorInfo[1], $error->errorInfo[0]];
    } catch (mysqli_sql_exception $error) {
        return [$error->getCode(), $error->getSqlState()];
    }
    return null;
}

$pdo = new PDO("mysql:host=127.0.0.1;port=$port;charset=utf8mb4", 'root', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC]);
$pdo->exec('CREATE DATABASE shop; USE shop');
$pdo->exec("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), price DECIMAL(10,2), at DATETIME(3), raw_ BLOB, n DOUBLE, flag TINYINT(1), kind ENUM('a','b'), j JSON)");
$row = ['id' => 1, 'name' => "wal \u{1f40b} 'x' \\", 'price' => '12.50', 'at' => '2026-11-21 08:05:04.123', 'raw_' => "\0\xff'\\\n", 'n' => 0.1, 'flag' => 1, 'kind' => 'b', 'j' => '{"a": [1, null]}'];
foreach ([false, true] as $emulated) {
    $how = $emulated ? 'emulated' : "the server's";
    $pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, $emulated);
    $pdo->exec('DELETE FROM t');
    $pdo->exec('ALTER TABLE t AUTO_INCREMENT = 1');
    $insert = $pdo->prepare('INSERT INTO t (name, price, at, raw_, n, flag, kind, j) VALUES (:name, :price, :at, :raw_, :n, :flag, :kind, :j)');
    $insert->execute(array_diff_key($row, ['id' => 0]));
    equal("$how insert", [$insert->rowCount(), $pdo->lastInsertId()], [1, '1']);
    $select = $pdo->prepare('SELECT * FROM t WHERE id IN (?, ?) LIMIT ?');
    foreach ([1, 2, 5] as $at => $value) {
        $select->bindValue($at + 1, $value, PDO::PARAM_INT);
    }
    $select->execute();
    equal("$how row", $select->fetchAll(), [$row]);
    $meta = $select->getColumnMeta(2);
    equal("$how meta", [$meta['table'], $meta['name'], $meta['native_type'], $meta['precision']], ['t', 'price', 'NEWDECIMAL', 2]);
    $null = $pdo->prepare('SELECT ? AS a, ? AS b');
    $null->execute([null, '']);
    equal("$how null", $null->fetch(), ['a' => null, 'b' => '']);
    equal("$how duplicate", code(fn () => $insert->execute(['flag' => 'no'] + array_diff_key($row, ['id' => 0]))), [1366, 'HY000']);
    equal("$how error", code(fn () => $pdo->prepare('SELECT none FROM t')->execute()), [1054, '42S22']);
    $pdo->beginTransaction();
    $pdo->prepare('UPDATE t SET name = ? WHERE id = ?')->execute(['changed', 1]);
    equal("$how in transaction", $pdo->inTransaction(), true);
    $pdo->rollBack();
    equal("$how rolled back", $pdo->query('SELECT name FROM t')->fetchColumn(), $row['name']);
}
equal('duplicate', code(fn () => $pdo->exec('INSERT INTO t (id) VALUES (1)')), [1062, '23000']);
equal('syntax', code(fn () => $pdo->exec('SELEC 1')), [1064, '42000']);
$sets = $pdo->query('SELECT 1 AS a; SELECT 2 AS b');
$found = [];
do {
    $found[] = $sets->fetchAll();
} while ($sets->nextRowset());
equal('several', array_slice($found, 0, 2), [[['a' => 1]], [['b' => 2]]]);
$pdo->exec('INSERT INTO t (name) WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 999) SELECT n FROM r');
$pdo->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
$count = 0;
foreach ($pdo->query('SELECT * FROM t') as $one) {
    $count++;
}
equal('row by row', $count, 1000);

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$my = new mysqli('127.0.0.1', 'root', '', 'shop', $port);
equal('charset', [$my->set_charset('utf8mb4'), $my->character_set_name()], [true, 'utf8mb4']);
equal('escape', $my->real_escape_string("a'b\\"), "a\\'b\\\\");
$statement = $my->prepare('SELECT id, name, n FROM t WHERE id >= ? AND name <> ? ORDER BY id LIMIT 2');
[$from, $not] = [1, '1'];
$statement->bind_param('is', $from, $not);
$statement->execute();
equal('bound', $statement->get_result()->fetch_all(), [[1, $row['name'], 0.1], [3, '2', null]]);
$long = $my->prepare('UPDATE t SET raw_ = ? WHERE id = 1');
$null = null;
$long->bind_param('b', $null);
foreach (['abc', str_repeat('x', 50000)] as $piece) {
    $long->send_long_data(0, $piece);
}
$long->execute();
equal('long data', $my->query('SELECT LENGTH(raw_) AS l FROM t WHERE id = 1')->fetch_row(), ['50003']);
$cursor = $my->prepare('SELECT id FROM t ORDER BY id');
$cursor->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
$cursor->execute();
$cursor->bind_result($id);
$sum = 0;
while ($cursor->fetch()) {
    $sum += $id;
}
$cursor->reset();
$cursor->close();
$counts = [];
foreach ($my->query("SHOW SESSION STATUS LIKE 'Com_stmt%'") as $row) {
    $counts[$row['Variable_name']] = (int) $row['Value'];
}
equal('long data, resets and closes are counted', [$counts['Com_stmt_send_long_data'], $counts['Com_stmt_reset'] > 0, $counts['Com_stmt_close'] > 0, $counts['Com_stmt_fetch'] > 0], [2, true, true, true]);
equal('cursor', $sum, (int) $my->query('SELECT SUM(id) FROM t')->fetch_column());
$my->multi_query('SELECT 1; DO 2; SELECT 3');
$found = [];
do {
    $result = $my->store_result();
    $found[] = $result ? $result->fetch_row()[0] : null;
} while ($my->more_results() && $my->next_result());
equal('several of mysqli', $found, ['1', null, '3']);
equal('duplicate of mysqli', code(fn () => $my->query('INSERT INTO t (id) VALUES (1)')), [1062, '23000']);
$my->query("SELECT CAST('12x' AS SIGNED)");
equal('warnings', [$my->warning_count, $my->get_warnings()->errno], [1, 1292]);
equal('ping', $my->query('DO 1'), true);
equal('stat', str_starts_with($my->stat(), 'Uptime: '), true);
equal('change user', [$my->change_user('root', '', 'shop'), $my->query('SELECT DATABASE()')->fetch_column()], [true, 'shop']);
$my->begin_transaction(MYSQLI_TRANS_START_READ_ONLY);
equal('read only', code(fn () => $my->query('DELETE FROM t')), [1792, '25006']);
$my->rollback();
$squeezed = mysqli_init();
$squeezed->real_connect('127.0.0.1', 'root', '', 'shop', $port, null, MYSQLI_CLIENT_COMPRESS);
equal('compressed', strlen($squeezed->query("SELECT REPEAT('x', 1000000)")->fetch_column()), 1000000);
echo "$passed passed, $failed failed\n";
exit($failed > 0 ? 1 : 0);
