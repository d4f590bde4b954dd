package runfile

import (
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestInserts: a statement that keeps equal parameters bound stores the rows that it is given, also
// after a row that could not be stored.
func TestInserts(t *testing.T) {
	t.Parallel()
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE t (id INTEGER PRIMARY KEY, sum INTEGER, n INTEGER, text TEXT, more TEXT, data BLOB)", nil); err != nil {
		t.Fatal(err)
	}
	type fields struct {
		n          int64
		text, more string
		data       []byte
	}
	long := strings.Repeat("long ", keptText)
	rows := []fields{
		{1, "a", "", []byte{1}},
		{1, "a", "b", []byte{1}},
		{0, "", "b", []byte{2}},
		{0, "", "", []byte{3, 4}},
		{1, long, long, []byte{5}},
		{1, long[1:], "b", []byte{5}},
		{1, "a", "b", []byte{5}},
	}
	in := inserts{Conn: conn}
	put := func(key int64, f fields) error {
		w, err := in.Row("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", tableTexts, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.Int(f.n)
		w.Text(f.text)
		w.Optional(f.more)
		w.Bytes(f.data)
		w.Seal()
		return w.Do()
	}
	for i, f := range rows {
		if err := put(int64(i), f); err != nil {
			t.Fatal(err)
		}
		if i == 4 && put(0, fields{n: 9, text: "refused"}) == nil {
			t.Fatal("two rows have the same key")
		}
	}
	s, err := conn.Prepare("SELECT * FROM t ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range rows {
		if found, err := s.Step(); err != nil || !found {
			t.Fatalf("row %d: %v", i, err)
		}
		r := newRowReader(s)
		r.Begin(tableTexts, 1)
		got := fields{n: r.Int64(), text: r.Text(), more: r.Optional(), data: make([]byte, len(want.data))}
		r.Bytes(got.data)
		if err := r.Check(); err != nil || got.n != want.n || got.text != want.text || got.more != want.more || !slices.Equal(got.data, want.data) {
			t.Errorf("row %d is %+v, want %+v: %v", i, got, want, err)
		}
	}
}
