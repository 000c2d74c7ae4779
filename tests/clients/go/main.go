// go-sql-driver/mysql: both protocols, types, transactions, cancelled contexts, a pool of connections at once.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var passed, failed int

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

func code(err error) uint16 {
	var told *mysql.MySQLError
	if errors.As(err, &told) {
		return told.Number
	}
	return 0
}

func state(err error) string {
	var told *mysql.MySQLError
	if errors.As(err, &told) {
		return string(told.SQLState[:])
	}
	return ""
}

func open(port, more string) *sql.DB {
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:"+port+")/shop?timeout=60s&readTimeout=120s"+more)
	must(err)
	return db
}

func types(db *sql.DB, name string) {
	_, err := db.Exec("DROP TABLE IF EXISTS kinds")
	must(err)
	_, err = db.Exec(`CREATE TABLE kinds (id BIGINT PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, whole INT, big BIGINT UNSIGNED, price DECIMAL(20,5),
		single_ FLOAT, double_ DOUBLE, word VARCHAR(100), body TEXT, bytes_ VARBINARY(300), day_ DATE, at DATETIME(6), stamp TIMESTAMP(3) NULL, length_ TIME(2), year_ YEAR, bits BIT(12), doc JSON, e ENUM('a','b'))`)
	must(err)
	at := time.Date(2026, 11, 21, 1, 2, 3, 456789000, time.UTC)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	row := []any{int64(-128), int64(65535), int64(-8388608), int64(-2147483648), uint64(18446744073709551615), "-123456789012345.12345", float32(1.5), 0.1, "wal \U0001f40b 'q' \\ \"d\"", strings.Repeat("ü", 30000), all,
		time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), at, at.Truncate(time.Millisecond), "-12:34:56.78", int64(2026), []byte{0x0f, 0xff}, `{"a": [1, "x"]}`, "b"}
	names := "tiny, small, medium, whole, big, price, single_, double_, word, body, bytes_, day_, at, stamp, length_, year_, bits, doc, e"
	result, err := db.Exec("INSERT INTO kinds ("+names+") VALUES (?"+strings.Repeat(",?", len(row)-1)+")", row...)
	must(err)
	id, _ := result.LastInsertId()
	equal(name+" id", id, int64(1))
	rows, err := db.Query("SELECT "+names+" FROM kinds WHERE id = ?", id)
	must(err)
	defer rows.Close()
	kinds, err := rows.ColumnTypes()
	must(err)
	shown := []string{}
	for _, kind := range kinds {
		shown = append(shown, kind.DatabaseTypeName())
	}
	equal(name+" column types", strings.Join(shown, " "), "TINYINT UNSIGNED SMALLINT MEDIUMINT INT UNSIGNED BIGINT DECIMAL FLOAT DOUBLE VARCHAR TEXT VARBINARY DATE DATETIME TIMESTAMP TIME YEAR BIT JSON ENUM")
	precision, scale, _ := kinds[5].DecimalSize()
	equal(name+" decimal", []int64{precision, scale}, []int64{20, 5})
	check(name+" a row", rows.Next(), rows.Err())
	var (
		tiny                              int8
		small                             uint16
		medium, whole                     int32
		big                               uint64
		price, word, body, length, doc, e string
		single                            float32
		double                            float64
		bytes, bits                       []byte
		day, moment, stamp                time.Time
		year                              int
	)
	must(rows.Scan(&tiny, &small, &medium, &whole, &big, &price, &single, &double, &word, &body, &bytes, &day, &moment, &stamp, &length, &year, &bits, &doc, &e))
	found := []any{int64(tiny), int64(small), int64(medium), int64(whole), big, price, single, double, word, body, bytes, day, moment, stamp, length, int64(year), bits, doc, e}
	for at, value := range row {
		equal(fmt.Sprint(name, " value ", at), found[at], value)
	}
	rows.Close()
	_, err = db.Exec("INSERT INTO kinds (word) VALUES (?)", nil)
	must(err)
	var none sql.NullString
	var when sql.NullTime
	must(db.QueryRow("SELECT word, at FROM kinds WHERE id = 2").Scan(&none, &when))
	equal(name+" NULL", none.Valid || when.Valid, false)
}

func statements(db *sql.DB) {
	prepared, err := db.Prepare("INSERT INTO many VALUES (?, ?)")
	must(err)
	transaction, err := db.Begin()
	must(err)
	for at := 0; at < 1000; at++ {
		_, err = transaction.Stmt(prepared).Exec(at, fmt.Sprint("word ", at))
		must(err)
	}
	var count int
	must(db.QueryRow("SELECT COUNT(*) FROM many").Scan(&count))
	equal("not seen", count, 0)
	must(transaction.Commit())
	must(db.QueryRow("SELECT COUNT(*) FROM many WHERE id < ?", 500).Scan(&count))
	equal("seen", count, 500)
	prepared.Close()

	transaction, err = db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	must(err)
	result, err := transaction.Exec("UPDATE many SET word = 'x' WHERE id < 10")
	must(err)
	changed, _ := result.RowsAffected()
	equal("changed", changed, int64(10))
	must(transaction.Rollback())
	transaction, err = db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	must(err)
	_, err = transaction.Exec("DELETE FROM many")
	equal("read only", code(err), uint16(1792))
	transaction.Rollback()

	_, err = db.Exec("INSERT INTO many VALUES (1, 'again')")
	equal("duplicate", []any{code(err), state(err)}, []any{uint16(1062), "23000"})
	_, err = db.Exec("SELEC 1")
	equal("syntax", []any{code(err), state(err)}, []any{uint16(1064), "42000"})
	_, err = db.Query("SELECT * FROM nothing WHERE id = ?", 1)
	equal("no table", code(err), uint16(1146))
}

func cancelled(db *sql.DB) {
	soon, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := db.ExecContext(soon, "DO SLEEP(30)")
	check("a context ends it", err != nil && time.Since(begun) < 25*time.Second, err)
	var one int
	must(db.QueryRow("SELECT 1").Scan(&one))
	equal("and the pool goes on", one, 1)
}

func several(port string) {
	db := open(port, "&multiStatements=true&clientFoundRows=true&interpolateParams=true&parseTime=true")
	defer db.Close()
	rows, err := db.Query("SELECT 1; SELECT id, word FROM many WHERE id IN (1, 2) ORDER BY id; SELECT 3")
	must(err)
	sets := 0
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
		}
		sets++
	}
	must(rows.Err())
	equal("several results", sets, 3)
	result, err := db.Exec("UPDATE many SET word = word WHERE id < 7")
	must(err)
	found, _ := result.RowsAffected()
	equal("found rows", found, int64(7))
	result, err = db.Exec("INSERT INTO many VALUES (1, 'word 1') ON DUPLICATE KEY UPDATE word = VALUES(word)")
	must(err)
	found, _ = result.RowsAffected()
	equal("found by ON DUPLICATE KEY", found, int64(1))
	types(db, "interpolated")
}

func together(db *sql.DB) {
	_, err := db.Exec("CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL)")
	must(err)
	_, err = db.Exec("INSERT INTO counters VALUES (1, 0), (2, 0)")
	must(err)
	db.SetMaxOpenConns(16)
	var group sync.WaitGroup
	problems := make(chan error, 16)
	for worker := 0; worker < 16; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for at := 0; at < 25; {
				_, err := db.Exec("UPDATE counters SET n = n + 1 WHERE id = ?", 1+(worker+at)%2)
				if number := code(err); number == 1213 || number == 1205 {
					continue
				}
				if err != nil {
					problems <- err
					return
				}
				at++
			}
		}(worker)
	}
	group.Wait()
	check("no problems", len(problems) == 0, len(problems))
	var sum int
	must(db.QueryRow("SELECT SUM(n) FROM counters").Scan(&sum))
	equal("sixteen at once", sum, 400)
}

func main() {
	port := os.Args[1]
	admin, err := sql.Open("mysql", "root@tcp(127.0.0.1:"+port+")/")
	must(err)
	_, err = admin.Exec("CREATE DATABASE shop")
	must(err)
	defer func() {
		if problem := recover(); problem != nil {
			check("no panic", false, problem)
		}
		fmt.Printf("%d passed, %d failed\n", passed, failed)
		if failed > 0 {
			os.Exit(1)
		}
	}()
	db := open(port, "&parseTime=true")
	_, err = db.Exec("CREATE TABLE many (id INT PRIMARY KEY, word VARCHAR(50))")
	must(err)
	types(db, "prepared")
	statements(db)
	cancelled(db)
	several(port)
	together(db)
	compressed := open(port, "&parseTime=true&compress=true&maxAllowedPacket=67108864")
	types(compressed, "compressed")
	var long string
	must(compressed.QueryRow("SELECT CONCAT(REPEAT('a', 20000000), ?)", "end").Scan(&long))
	equal("a long value, compressed", []any{len(long), long[len(long)-3:]}, []any{20000003, "end"})
}
