package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Comments that are statements for some versions, as drivers and dumps send them.
func TestUncomment(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 /* plain */":                  "SELECT 1 /* plain */",
		"/*!50503 SELECT 1 */":                  "         SELECT 1   ",
		"/*! SELECT 1 */;":                      "    SELECT 1   ;",
		"SELECT 1 /*!99999 + 1 */":              "SELECT 1                ",
		"SELECT 1 /*!100616 + 1 */":             "SELECT 1                 ",
		"SELECT '/*!99999 x */' /*!50000 , 2*/": "SELECT '/*!99999 x */'          , 2  ",
		"SELECT '\\'/*!' -- /*! x\n":            "SELECT '\\'/*!' -- /*! x\n",
		"SELECT `/*!`, \"/*!":                   "SELECT `/*!`, \"/*!",
		"SELECT 1 /*!50000 + 1":                 "SELECT 1          + 1",
		"/*!":                                   "   ",
	} {
		require.Equal(t, want, uncomment(text), text)
	}
}

func FuzzUncomment(f *testing.F) {
	for _, s := range []string{"/*!50503 SELECT 1 */", "SELECT '/*!99999 x */' /*!50000 , 2*/", "/*!", "'\\", "#", "-- \n/*!9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { require.Len(t, uncomment(s), len(s)) })
}

// QUERY-05, QUERY-18: statements that the parser does not know are answered as MySQL does: an empty list, or its error.
func TestStatementsOfTools(t *testing.T) {
	source, database, f := mirrored(t, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
	for _, q := range []string{
		"SHOW REPLICAS", "SHOW ENGINE InnoDB MUTEX", "BEGIN WORK", "/* only a comment */", "-- only a comment", "/*!99999 later */", "/*!50503 SELECT 1 */",
		"SHOW CREATE FUNCTION f", "SHOW CREATE PROCEDURE p", "SHOW CREATE TRIGGER tr", "SHOW CREATE EVENT e", "SHOW CREATE VIEW t", "", ";",
		"SHOW TRIGGERS", "SHOW EVENTS", "SHOW FUNCTION STATUS LIKE 'x'", "SHOW PROCEDURE STATUS LIKE 'x'", "SHOW OPEN TABLES LIKE 'x'",
		"SELECT WORD, RESERVED FROM information_schema.KEYWORDS",
	} {
		want, wantErr := source.DB(t, database).Query(q)
		got, err := f.db(database).Query(q)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error(), q)
			continue
		}
		require.NoError(t, err, q)
		wantColumns, _ := want.Columns()
		columns, _ := got.Columns()
		require.Equal(t, wantColumns, columns, q)
		require.NoError(t, want.Close())
		require.NoError(t, got.Close())
	}
}

// Every table of information_schema can be read, and has the columns of the server they were recorded from.
func TestInformationSchemaIsWhole(t *testing.T) {
	source, database, f := mirrored(t, "CREATE TABLE t (id INT PRIMARY KEY)")
	theirs, ours := source.DB(t, database), f.db(database)
	var version string
	require.NoError(t, theirs.QueryRow("SELECT VERSION()").Scan(&version))
	for name := range strings.FieldsSeq(f.client("SHOW TABLES FROM information_schema", "-N")) {
		q := "SELECT * FROM information_schema." + name
		got, err := ours.Query(q)
		require.NoError(t, err, q)
		columns, err := got.Columns()
		require.NoError(t, err)
		require.NoError(t, got.Close())
		if !strings.HasPrefix(version, "9.7.") {
			continue
		}
		want, err := theirs.Query(q + " LIMIT 0")
		require.NoError(t, err, q)
		wantColumns, err := want.Columns()
		require.NoError(t, err)
		require.Equal(t, wantColumns, columns, name)
		require.NoError(t, want.Close())
	}
}

// FOUND_ROWS is the number of rows of the result before; LIMIT takes what drivers without integers send.
func TestRowsFoundAndLimits(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 5, "things")
	require.Equal(t, "1\n2\n3\n3\n", f.client("SELECT id FROM things ORDER BY id LIMIT 3; SELECT FOUND_ROWS()", "-N", "shop"))
	db := f.db("shop")
	for _, limit := range []any{2, int64(2), uint64(2), 2.0, "2"} {
		var n int
		require.NoError(t, db.QueryRow("SELECT COUNT(*) FROM (SELECT id FROM things ORDER BY id LIMIT ?) q", limit).Scan(&n), "%T", limit)
		require.Equal(t, 2, n)
	}
	for _, limit := range []any{-1, 1.5, "x", nil} {
		require.ErrorContains(t, db.QueryRow("SELECT id FROM things LIMIT ?", limit).Scan(new(int)), "1210", "%v", limit)
	}
}

// A client that compresses without being asked to gets an error, not silence.
func TestCompressionIsRefused(t *testing.T) {
	_, err := parseLogin(append([]byte{0xff, 0xff, 0xff, 0}, make([]byte, 60)...))
	require.ErrorContains(t, err, "compression")
}
