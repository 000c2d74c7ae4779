// pgx: both protocols, values of every type as text and in binary, batches, pipelines, COPY, changed tables, errors, cancelled contexts, pools; and database/sql over it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const (
	database = "go_suite"
	rounds   = 1000
)

var (
	passed, failed int
	port           string
	background     = context.Background()
	draw           *rand.Rand
)

func check(name string, ok bool, detail any) {
	if ok {
		passed++
	} else {
		failed++
		fmt.Println("FAILED", name, detail)
	}
}

func equal(name string, found, expected any) {
	check(name, reflect.DeepEqual(found, expected), fmt.Sprintf("found %#v, expected %#v", found, expected))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fault is the server's error, or an empty one.
func fault(err error) *pgconn.PgError {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told
	}
	return &pgconn.PgError{Code: fmt.Sprint(err)}
}

func options(more string) string {
	return "postgres://postgres@127.0.0.1:" + port + "/" + database + "?sslmode=disable" + more
}

func connect(more string) *pgx.Conn {
	conn, err := pgx.Connect(background, options(more))
	must(err)
	return conn
}

func one[T any](conn *pgx.Conn, text string, values ...any) T {
	var found T
	must(conn.QueryRow(background, text, values...).Scan(&found))
	return found
}

func execute(conn *pgx.Conn, text string, values ...any) {
	_, err := conn.Exec(background, text, values...)
	must(err)
}

func letters() string {
	pieces := []string{"a", "Z", "'", "\"", "\\", "\n", "\t", "ä", "\U0001f40b", " ", "%", "$1"}
	text := ""
	for range make([]struct{}, draw.Intn(40)) {
		text += pieces[draw.Intn(len(pieces))]
	}
	return text
}

func whole(bits uint) int64 {
	limits := []int64{0, -1 << (bits - 1), 1<<(bits-1) - 1, -1, 1}
	if draw.Intn(4) == 0 {
		return limits[draw.Intn(len(limits))]
	}
	return int64(draw.Uint64()) >> (64 - bits) >> draw.Intn(int(bits))
}

func instant() time.Time {
	// The client reads no text of a year that has not four digits.
	seconds := draw.Int63n(300_000_000_000) - 60_000_000_000
	return time.Unix(seconds, draw.Int63n(1_000_000)*1000).UTC()
}

// A kind is a type with random values of it. same tells whether what came back is what was sent.
type kind struct {
	name string
	make func() any
	into func() any
}

func kindOf[T any](name string, make func() T) kind {
	return kind{name, func() any { return make() }, func() any { return new(*T) }}
}

var kinds = []kind{
	kindOf("bool", func() bool { return draw.Intn(2) == 0 }),
	kindOf("int2", func() int16 { return int16(whole(16)) }),
	kindOf("int4", func() int32 { return int32(whole(32)) }),
	kindOf("int8", func() int64 { return whole(64) }),
	kindOf("float4", func() float32 {
		limits := []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, math.SmallestNonzeroFloat32}
		if draw.Intn(5) == 0 {
			return limits[draw.Intn(len(limits))]
		}
		return float32(draw.NormFloat64() * math.Pow(10, float64(draw.Intn(60)-30)))
	}),
	kindOf("float8", func() float64 {
		limits := []float64{0, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}
		if draw.Intn(5) == 0 {
			return limits[draw.Intn(len(limits))]
		}
		return draw.NormFloat64() * math.Pow(10, float64(draw.Intn(600)-300))
	}),
	kindOf("numeric", func() pgtype.Numeric {
		switch draw.Intn(20) {
		case 0:
			return pgtype.Numeric{NaN: true, Valid: true}
		case 1:
			return pgtype.Numeric{InfinityModifier: pgtype.Infinity, Valid: true}
		case 2:
			return pgtype.Numeric{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		}
		digits := new(big.Int).Rand(draw, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(draw.Intn(60)+1)), nil))
		if draw.Intn(2) == 0 {
			digits.Neg(digits)
		}
		return pgtype.Numeric{Int: digits, Exp: int32(draw.Intn(60) - 40), Valid: true}
	}),
	kindOf("text", letters),
	kindOf("varchar", letters),
	kindOf("bytea", func() []byte { bytes := make([]byte, draw.Intn(60)); draw.Read(bytes); return bytes }),
	kindOf("date", func() time.Time { return instant().Truncate(24 * time.Hour) }),
	kindOf("timestamp", instant),
	kindOf("timestamptz", instant),
	kindOf("time", func() pgtype.Time { return pgtype.Time{Microseconds: draw.Int63n(86_400_000_001), Valid: true} }),
	kindOf("interval", func() pgtype.Interval {
		return pgtype.Interval{Microseconds: whole(60), Days: int32(whole(31)), Months: int32(whole(24)), Valid: true}
	}),
	kindOf("uuid", func() pgtype.UUID { id := pgtype.UUID{Valid: true}; draw.Read(id.Bytes[:]); return id }),
	kindOf("json", func() map[string]any { return map[string]any{"a": letters(), "b": []any{1.5, nil, true}} }),
	kindOf("oid", func() uint32 { return draw.Uint32() }),
}

func text(value any) string {
	value = reflect.Indirect(reflect.ValueOf(value)).Interface()
	switch value := value.(type) {
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case pgtype.Numeric:
		if value.Int == nil {
			return fmt.Sprint(value)
		}
		// The same number may have another exponent.
		exponent := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(value.Exp, -value.Exp))), nil))
		if value.Exp < 0 {
			exponent.Inv(exponent)
		}
		return exponent.Mul(exponent, new(big.Rat).SetInt(value.Int)).String()
	}
	return fmt.Sprintf("%#v", value)
}

func values(conn *pgx.Conn, name string) {
	execute(conn, "set timezone to 'UTC'")
	for _, kind := range kinds {
		if kind.name == "json" && name != "binary" {
			// The client would have to know the type to make a text of the value.
			continue
		}
		table := name + "_" + kind.name
		execute(conn, "create table "+table+" (id int4 primary key, v "+kind.name+")")
		sent := make([]any, rounds)
		batch := &pgx.Batch{}
		for id := range sent {
			if id%10 != 9 {
				sent[id] = kind.make()
			}
			batch.Queue("insert into "+table+" values ($1, $2)", id, sent[id])
		}
		if err := conn.SendBatch(background, batch).Close(); err != nil {
			check(name+": "+kind.name, false, err)
			continue
		}
		rows, err := conn.Query(background, "select v from "+table+" order by id")
		must(err)
		wrong, at := "", 0
		for ; rows.Next(); at++ {
			target := kind.into()
			if err := rows.Scan(target); err != nil {
				wrong += fmt.Sprint(err)
				break
			}
			found := reflect.ValueOf(target).Elem()
			if found.IsNil() != (sent[at] == nil) {
				wrong += fmt.Sprint("NULL ", at)
			} else if sent[at] != nil && text(found.Interface()) != text(sent[at]) {
				wrong += fmt.Sprintf("found %s, sent %s; ", text(found.Interface()), text(sent[at]))
			}
		}
		rows.Close()
		must(rows.Err())
		check(fmt.Sprintf("%s: %s there and back", name, kind.name), wrong == "" && at == rounds, wrong[:min(len(wrong), 300)])
	}
}

func statements(conn *pgx.Conn) {
	execute(conn, "create table item (id int8 generated by default as identity primary key, name text not null unique, price numeric(10,2) check (price > 0))")
	execute(conn, "create table part (item int8 references item, n int4)")
	equal("returning", one[int64](conn, "insert into item (name, price) values ($1, $2) returning id", "a", "1.5"), int64(1))
	tag, err := conn.Exec(background, "insert into item (name, price) select 'n' || i, i from generate_series(1, $1::int4) i", 20)
	must(err)
	equal("a tag", tag.String(), "INSERT 0 20")
	described, err := conn.Prepare(background, "described", "select id, name, price from item where id = $1 and name = $2")
	must(err)
	oids := []uint32{}
	for _, field := range described.Fields {
		oids = append(oids, field.DataTypeOID)
	}
	equal("a description", []any{described.ParamOIDs, oids}, []any{[]uint32{20, 25}, []uint32{20, 25, 1700}})
	cases := []struct {
		name, statement, code, table, column, constraint string
		position                                         int32
	}{
		{"unique", "insert into item (name, price) values ('a', 1)", "23505", "item", "", "item_name_key", 0},
		{"check", "insert into item (name, price) values ('c', -1)", "23514", "item", "", "item_price_check", 0},
		{"not null", "insert into item (price) values (1)", "23502", "item", "name", "", 0},
		{"foreign key", "insert into part values (1000, 1)", "23503", "part", "", "part_item_fkey", 0},
		{"a column", "select nothing from item", "42703", "", "", "", 8},
		{"syntax", "select 1 frm", "", "", "", "", 0},
		{"a function", "select nothing(1)", "42883", "", "", "", 8},
	}
	for _, given := range cases {
		_, err := conn.Exec(background, given.statement)
		if given.code == "" {
			check(given.name, err == nil, err)
			continue
		}
		found := fault(err)
		equal("error: "+given.name, []any{found.Code, found.TableName, found.ColumnName, found.ConstraintName, found.Position}, []any{given.code, given.table, given.column, given.constraint, given.position})
		if given.table != "" {
			equal("schema of an error: "+given.name, found.SchemaName, "public")
		}
	}
	transaction, err := conn.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(err)
	_, err = transaction.Exec(background, "update item set price = 5 where id = 1")
	must(err)
	inner, err := transaction.Begin(background)
	must(err)
	_, err = inner.Exec(background, "insert into item (name, price) values ('a', 1)")
	equal("in a savepoint", fault(err).Code, "23505")
	must(inner.Rollback(background))
	must(transaction.Commit(background))
	equal("committed", one[string](conn, "select price::text from item where id = 1"), "5.00")
	transaction, err = conn.BeginTx(background, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	must(err)
	_, err = transaction.Exec(background, "delete from item")
	equal("read only", fault(err).Code, "25006")
	must(transaction.Rollback(background))
	long := strings.Repeat("ü", 3_000_000)
	equal("a long text", one[string](conn, "select $1::text", long) == long, true)
	equal("long bytes", len(one[[]byte](conn, "select $1::bytea", make([]byte, 10_000_000))), 10_000_000)
	many := make([]any, 65_535)
	marks := make([]string, len(many))
	for at := range many {
		many[at], marks[at] = int64(at), fmt.Sprint("$", at+1)
	}
	equal("65,535 parameters", one[int64](conn, "select sum(v::int8)::int8 from (values ("+strings.Join(marks, "::int8),(")+"::int8)) as of(v)", many...), int64(65_535*65_534/2))
}

func batches(conn *pgx.Conn) {
	execute(conn, "create table log (id int4 primary key)")
	batch := &pgx.Batch{}
	for id := 0; id < 500; id++ {
		batch.Queue("insert into log values ($1)", id)
	}
	batch.Queue("select count(*) from log")
	results := conn.SendBatch(background, batch)
	for id := 0; id < 500; id++ {
		_, err := results.Exec()
		must(err)
	}
	var count int64
	must(results.QueryRow().Scan(&count))
	must(results.Close())
	equal("a batch", count, int64(500))
	failing := &pgx.Batch{}
	failing.Queue("insert into log values (1000)")
	failing.Queue("insert into log values (1)")
	failing.Queue("insert into log values (1001)")
	equal("an error in a batch", fault(conn.SendBatch(background, failing).Close()).Code, "23505")
	equal("nothing of it stays", one[int64](conn, "select count(*) from log"), int64(500))
	// A pipeline with several synchronisation points.
	pipeline := conn.PgConn().StartPipeline(background)
	for _, id := range []string{"2000", "1", "2001"} {
		pipeline.SendQueryParams("insert into log values ($1)", [][]byte{[]byte(id)}, nil, nil, nil)
		must(pipeline.Sync())
	}
	codes := []string{}
	for {
		found, err := pipeline.GetResults()
		if err != nil {
			codes = append(codes, fault(err).Code)
			continue
		}
		if found == nil {
			break
		}
		if reader, ok := found.(*pgconn.ResultReader); ok {
			_, err := reader.Close()
			if err != nil {
				codes = append(codes, fault(err).Code)
			} else {
				codes = append(codes, "")
			}
		}
	}
	must(pipeline.Close())
	equal("a pipeline", codes, []string{"", "23505", ""})
	equal("what stays of it", one[int64](conn, "select count(*) from log where id >= 2000"), int64(2))
}

func changed(conn *pgx.Conn) {
	execute(conn, "create table changing (a int4)")
	execute(conn, "insert into changing values (1)")
	_, err := conn.Prepare(background, "star", "select * from changing")
	must(err)
	equal("before", one[int32](conn, "star"), int32(1))
	other := connect("")
	defer other.Close(background)
	execute(other, "alter table changing add b text")
	_, err = conn.Exec(background, "star")
	equal("after a column", []string{fault(err).Code, fault(err).Message}, []string{"0A000", "cached plan must not change result type"})
	execute(other, "alter table changing drop b")
	equal("as before", one[int32](conn, "star"), int32(1))
	execute(other, "alter table changing alter a type int8")
	_, err = conn.Exec(background, "star")
	equal("after another type", fault(err).Code, "0A000")
	must(conn.Deallocate(background, "star"))
	_, err = conn.PgConn().ExecPrepared(background, "star", nil, nil, nil).Close()
	equal("deallocated", fault(err).Code, "26000")
}

func copies(conn *pgx.Conn) {
	execute(conn, "create table line (id int4 primary key, v text, b bytea, n numeric, at timestamptz, f float8, yes bool, u uuid)")
	rows := [][]any{}
	for id := 0; id < 10_000; id++ {
		row := []any{int32(id), letters(), []byte{byte(id), 0}, pgtype.Numeric{Int: big.NewInt(int64(id) * 7), Exp: -2, Valid: true}, instant(), draw.NormFloat64(), id%2 == 0, [16]byte{byte(id)}}
		if id%10 == 9 {
			row = []any{int32(id), nil, nil, nil, nil, nil, nil, nil}
		}
		rows = append(rows, row)
	}
	count, err := conn.CopyFrom(background, pgx.Identifier{"line"}, []string{"id", "v", "b", "n", "at", "f", "yes", "u"}, pgx.CopyFromRows(rows))
	must(err)
	equal("binary COPY", count, int64(10_000))
	found, err := conn.Query(background, "select id, v, n::text from line order by id")
	must(err)
	wrong, at := 0, 0
	for ; found.Next(); at++ {
		var id int32
		var v, n *string
		must(found.Scan(&id, &v, &n))
		if rows[at][1] == nil != (v == nil) || v != nil && (*v != rows[at][1] || *n != fmt.Sprintf("%d.%02d", at*7/100, at*7%100)) {
			wrong++
		}
	}
	must(found.Err())
	equal("its rows", []int{at, wrong}, []int{10_000, 0})
	_, err = conn.CopyFrom(background, pgx.Identifier{"line"}, []string{"id"}, pgx.CopyFromRows([][]any{{int32(1)}}))
	equal("a key twice", fault(err).Code, "23505")
	for _, format := range []string{"text", "csv", "binary"} {
		var out strings.Builder
		_, err = conn.PgConn().CopyTo(background, &out, "copy line to stdout (format "+format+")")
		must(err)
		execute(conn, "create table again (like line)")
		_, err = conn.PgConn().CopyFrom(background, strings.NewReader(out.String()), "copy again from stdin (format "+format+")")
		must(err)
		equal("COPY there and back as "+format, one[int64](conn, "select count(*) from (select id, v, b, n, at, f, yes, u from line intersect select id, v, b, n, at, f, yes, u from again) both_"), int64(10_000))
		execute(conn, "drop table again")
	}
}

func cancelled(conn *pgx.Conn) {
	soon, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := conn.Exec(soon, "select pg_sleep(300)")
	check("a context ends it", err != nil && time.Since(begun) < 25*time.Second, err)
	check("and the connection", conn.IsClosed(), "")
	other := connect("&statement_timeout=100")
	_, err = other.Exec(background, "select pg_sleep(300)")
	equal("statement_timeout", fault(err).Code, "57014")
	sleeps := make(chan error)
	go func() {
		_, err := other.Exec(background, "set statement_timeout = 0; select pg_sleep(300)")
		sleeps <- err
	}()
	for over := false; !over; {
		must(other.PgConn().CancelRequest(background))
		select {
		case err = <-sleeps:
			over = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	equal("a cancel request", fault(err).Code, "57014")
	equal("and on", one[int32](other, "select 1"), int32(1))
	must(other.Close(background))
}

func together() {
	pool, err := pgxpool.New(background, options("&pool_max_conns=16"))
	must(err)
	defer pool.Close()
	_, err = pool.Exec(background, "create table counter (id int4 primary key, n int4 not null)")
	must(err)
	_, err = pool.Exec(background, "insert into counter values (0, 0), (1, 0)")
	must(err)
	var group sync.WaitGroup
	problems := make(chan error, 400)
	for worker := 0; worker < 16; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for at := 0; at < 25; at++ {
				if _, err := pool.Exec(background, "update counter set n = n + 1 where id = $1", (worker+at)%2); err != nil {
					problems <- err
				}
			}
		}(worker)
	}
	group.Wait()
	check("no problems", len(problems) == 0, len(problems))
	var sum int
	must(pool.QueryRow(background, "select sum(n) from counter").Scan(&sum))
	equal("sixteen at once", sum, 400)
}

// databaseSql has the interface that most programs use.
func databaseSql() {
	db, err := sql.Open("pgx", options(""))
	must(err)
	defer db.Close()
	rows, err := db.Query("select id, name, price, now(), null::bool from item where id = $1", 1)
	must(err)
	types, err := rows.ColumnTypes()
	must(err)
	names := []string{}
	for _, one := range types {
		names = append(names, one.DatabaseTypeName())
	}
	equal("column types", names, []string{"INT8", "TEXT", "NUMERIC", "TIMESTAMPTZ", "BOOL"})
	precision, scale, known := types[2].DecimalSize()
	equal("a decimal", []any{precision, scale, known}, []any{int64(10), int64(2), true})
	rows.Close()
	var none sql.NullInt64
	must(db.QueryRow("select null::int8").Scan(&none))
	equal("NULL", none.Valid, false)
	prepared, err := db.Prepare("update item set price = price where id <= $1")
	must(err)
	result, err := prepared.Exec(7)
	must(err)
	count, _ := result.RowsAffected()
	equal("rows affected", count, int64(7))
	prepared.Close()
}

func logins() {
	chain := os.Getenv("CERTIFICATE")
	if chain == "" {
		return
	}
	pem, err := os.ReadFile(chain)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for name, encrypted := range map[string]bool{"SCRAM": false, "SCRAM and TLS": true} {
		config, err := pgx.ParseConfig(options(""))
		must(err)
		config.User, config.Password = "driver", "driver's"
		if encrypted {
			config.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
		}
		conn, err := pgx.ConnectConfig(background, config)
		if err != nil {
			check(name, false, err)
			continue
		}
		equal(name, one[string](conn, "select current_user"), "driver")
		conn.Close(background)
		config.Password = "wrong"
		_, err = pgx.ConnectConfig(background, config)
		equal(name+": a wrong password", fault(err).Code, "28P01")
	}
}

func main() {
	port = os.Args[1]
	seed := time.Now().UnixNano()
	fmt.Println("seed", seed)
	draw = rand.New(rand.NewSource(seed))
	admin, err := pgx.Connect(background, "postgres://postgres@127.0.0.1:"+port+"/postgres?sslmode=disable")
	must(err)
	execute(admin, "drop database if exists "+database)
	execute(admin, "create database "+database)
	must(admin.Close(background))
	part := func(name string, run func()) {
		defer func() {
			if problem := recover(); problem != nil {
				check(name+": no panic", false, problem)
			}
		}()
		run()
	}
	conn := connect("")
	part("values", func() { values(conn, "binary") })
	part("values as text", func() {
		simple := connect("&default_query_exec_mode=simple_protocol")
		defer simple.Close(background)
		values(simple, "text")
	})
	part("values that are described", func() { values(connect("&default_query_exec_mode=exec"), "described") })
	part("statements", func() { statements(conn) })
	part("batches", func() { batches(conn) })
	part("changed", func() { changed(conn) })
	part("copies", func() { copies(conn) })
	part("together", together)
	part("database/sql", databaseSql)
	part("logins", logins)
	part("cancelled", func() { cancelled(conn) })
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
