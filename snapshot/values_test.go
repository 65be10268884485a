package snapshot

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// typeCase is a column type with literals of its values: smallest, largest, zero, empty, odd.
type typeCase struct {
	column string
	values []string
}

var typeCases = []typeCase{
	{"TINYINT", []string{"-128", "127", "0", "-1"}},
	{"TINYINT(1)", []string{"-128", "127", "0", "1"}}, // TYPE-24
	{"TINYINT UNSIGNED", []string{"255", "0", "128"}}, // TYPE-01
	{"SMALLINT", []string{"-32768", "32767", "0"}},
	{"SMALLINT UNSIGNED ZEROFILL", []string{"65535", "0", "7"}},
	{"MEDIUMINT", []string{"-8388608", "8388607", "0", "-1"}},
	{"MEDIUMINT UNSIGNED", []string{"16777215", "8388608", "0"}}, // TYPE-02
	{"INT", []string{"-2147483648", "2147483647", "0"}},
	{"INT UNSIGNED", []string{"4294967295", "2147483648", "0"}},
	{"BIGINT", []string{"-9223372036854775808", "9223372036854775807", "0"}},
	{"BIGINT UNSIGNED", []string{"18446744073709551615", "9223372036854775808", "0"}},
	{"DECIMAL(10,4)", []string{"-999999.9999", "999999.9999", "0", "-0.0001", "0.3333"}},
	{"DECIMAL(38,10)", []string{"9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0"}},
	{"DECIMAL(65,30)", []string{"-2147483653.2202", strings.Repeat("9", 35) + "." + strings.Repeat("9", 30), "0"}}, // TYPE-21
	{"DECIMAL", []string{"9999999999", "-9999999999"}},
	{"DECIMAL(8,2) UNSIGNED ZEROFILL", []string{"0", "1.5", "999999.99"}},
	{"FLOAT", []string{"16777216", "-3.402823466e38", "1.175494351e-38", "0", "0.1", "1e-10", "123456789"}},
	{"FLOAT(7,2)", []string{"-99999.99", "0.005", "1.1"}},
	{"FLOAT UNSIGNED ZEROFILL", []string{"0", "1.5", "12345678"}},
	{"DOUBLE", []string{"1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "0", "0.1", "1e15", "1e16", "123456789012345678", "-0e0"}}, // TYPE-22
	{"DOUBLE(20,4)", []string{"1234567890123456.7891", "-0.00005"}},
	{"BIT(1)", []string{"b'1'", "b'0'"}}, // TYPE-23
	{"BIT(9)", []string{"b'100000001'", "0"}},
	{"BIT(64)", []string{"18446744073709551615", "0", "x'0102030405060708'"}},
	{"DATE", []string{"'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-02-29'", "'2024-00-15'", "'0001-01-01'", "'2024-02-31'"}}, // TYPE-03
	{"DATETIME", []string{"'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00'", "'2024-06-30 12:34:56'", "'2024-01-00 10:00:00'"}},
	{"DATETIME(6)", []string{"'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.499999'", "'2024-01-01'", "'0000-00-00 00:00:00'"}},
	{"TIMESTAMP NULL", []string{"'1970-01-02 00:00:01'", "'2038-01-18 03:14:07'", "'0000-00-00'", "'2024-06-30 12:34:56'"}}, // TYPE-05
	{"TIMESTAMP(3) NULL", []string{"'2024-06-30 12:34:56.789'", "'0000-00-00 00:00:00'", "'2000-02-29 00:00:00.001'"}},
	{"TIME", []string{"'-838:59:59'", "'838:59:59'", "'0'", "'-00:00:01'", "'24:00:00'"}}, // TYPE-06
	{"TIME(6)", []string{"'-838:59:58.999999'", "'838:59:58.999999'", "'-00:00:00.000001'", "'00:00:00.5'"}},
	{"YEAR", []string{"1901", "2155", "0", "'0'", "70"}}, // TYPE-08
	{"CHAR(5)", []string{"''", "'a  '", "'日本語です'", "'😀'"}},
	{"CHAR(5) COLLATE utf8mb4_bin", []string{"''", "'a  '", "'Aä'"}},   // TYPE-10
	{"CHAR(5) CHARACTER SET latin1", []string{"'éÿ€'", "''", "x'80'"}}, // TYPE-13
	{"VARCHAR(60) CHARACTER SET latin1", []string{"'naïve café'", "x'8081FF'", "'  '"}},
	{"VARCHAR(60)", []string{"''", "'NULL'", "'\\\\N'", "'a\\0b\\tc\\n'", "REPEAT('é', 60)"}}, // TYPE-31
	{"VARCHAR(20) CHARACTER SET utf8mb3", []string{"'日本'", "''"}},
	{"VARCHAR(20) CHARACTER SET ascii", []string{"'plain'", "''"}},
	{"VARCHAR(20) CHARACTER SET binary", []string{"x'00FF'", "''"}},
	{"TINYTEXT", []string{"''", "REPEAT('x', 255)"}},
	{"TEXT", []string{"''", "REPEAT('line\\n', 5000)"}},
	{"MEDIUMTEXT", []string{"''", "REPEAT('é', 100000)"}},
	{"LONGTEXT CHARACTER SET latin1", []string{"''", "REPEAT('é', 300)"}},
	{"BINARY(4)", []string{"''", "x'00'", "x'01020304'", "x'FF000000'"}},                                                // TYPE-09
	{"VARBINARY(300)", []string{"''", "x'00095C0A22'", "REPEAT(x'00FF', 130)", "REPEAT('z', 251)", "REPEAT('z', 250)"}}, // SNAP-21
	{"TINYBLOB", []string{"''", "x'00'"}},
	{"BLOB", []string{"''", "REPEAT(x'00FF10', 20000)"}},
	{"MEDIUMBLOB", []string{"''", "REPEAT(x'AB', 70000)"}},
	{"LONGBLOB", []string{"''", "REPEAT(x'AB', 17000000)", "REPEAT(x'AB', 16777215)", "REPEAT(x'AB', 16777100)"}}, // SNAP-14: several packets
	{"ENUM('a','it''s','x,y','','b\\\\s')", []string{"'a'", "'it''s'", "'x,y'", "''", "'b\\\\s'", "0", "5"}},
	{"ENUM('é','ß') CHARACTER SET latin1", []string{"'é'", "2"}},
	{"SET('a','b c','d''e')", []string{"''", "'a,b c,d''e'", "'d''e'", "5"}},
	{"SET(" + labels(64) + ")", []string{"18446744073709551615", "9223372036854775808", "0", "1"}},
	{"JSON", []string{"'{}'", "'null'", "'[1, 2.50, \"x\\\\ny\", true, null]'", "JSON_OBJECT('q','say \"hi\" \\\\ back\\nline\\ttab')", "'\"\\\\u0000\"'", // TYPE-17
		"JSON_ARRAY(CAST('2024-01-02 03:04:05.678' AS DATETIME(3)), CAST(1.50 AS DECIMAL(5,2)), x'DEAD', 1e100)", "'{\"b\":1,\"aa\":{\"😀\":[]}}'", "'18446744073709551615'"}},
}

func labels(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("'l%d'", i)
	}
	return strings.Join(out, ",")
}

// randomSQL gives an expression for a random value of the type, "" where there is none.
func randomSQL(column string, r *rand.Rand) string {
	switch {
	case strings.HasPrefix(column, "BIGINT UNSIGNED"), strings.HasPrefix(column, "BIT(64)"):
		return fmt.Sprint(r.Uint64())
	case strings.HasPrefix(column, "BIGINT"):
		return fmt.Sprint(int64(r.Uint64()))
	case strings.HasPrefix(column, "DOUBLE"), strings.HasPrefix(column, "FLOAT"):
		return fmt.Sprintf("%g", (r.Float64()-0.5)*float64(uint64(1)<<r.IntN(40)))
	case strings.HasPrefix(column, "DECIMAL"):
		return fmt.Sprintf("%d.%d", r.IntN(99999), r.IntN(99))
	case strings.HasPrefix(column, "DATETIME"):
		return fmt.Sprintf("'%04d-%02d-%02d %02d:%02d:%02d.%06d'", 1000+r.IntN(9000), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000000))
	case strings.HasPrefix(column, "TIMESTAMP"):
		return fmt.Sprintf("FROM_UNIXTIME(%d.%06d)", r.IntN(1<<31), r.IntN(1000000))
	case strings.HasPrefix(column, "TIME"):
		return fmt.Sprintf("'%d:%02d:%02d.%06d'", r.IntN(1600)-800, r.IntN(60), r.IntN(60), r.IntN(1000000))
	}
	return ""
}

// TestEveryValue: what the snapshot stores is printed as the source prints it, on a source whose zone is not UTC.
func TestEveryValue(t *testing.T) {
	const zone = "+05:45"
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--default-time-zone=" + zone, "--max-allowed-packet=256M"}})
	const db = "every_value"
	s.Exec(t, "", "CREATE DATABASE every_value")
	r := rand.New(rand.NewPCG(1, 2))
	for i, c := range typeCases {
		statements := []string{"SET sql_mode = 'ALLOW_INVALID_DATES,NO_ZERO_DATE'", "SET sql_mode = 'ALLOW_INVALID_DATES'",
			fmt.Sprintf("CREATE TABLE t%02d (id INT PRIMARY KEY, v %s, w INT AS (id * 2) VIRTUAL INVISIBLE)", i, c.column)}
		values := append([]string{"NULL"}, c.values...)
		for range 5 {
			if v := randomSQL(c.column, r); v != "" {
				values = append(values, v)
			}
		}
		for id, v := range values {
			statements = append(statements, fmt.Sprintf("INSERT IGNORE INTO t%02d (id, v) VALUES (%d, %s)", i, id, v))
		}
		s.Exec(t, db, statements...)
	}
	m := newKeeper()
	mustRun(t, config(t, s, db), m)
	loc := time.FixedZone(zone, (5*60+45)*60)
	for i, c := range typeCases {
		table := fmt.Sprintf("t%02d", i)
		got := m.rows(t, table, loc)
		for _, row := range got {
			row[1] = strings.ReplaceAll(row[1], "\x00", " ") // so does the client's XML; the bytes come below
		}
		sameRows(t, c.column, got, sourceRows(t, s, db, table, "id, v, w", "id"))
		got = m.rows(t, table, loc)
		for _, row := range got {
			if row[1] != null {
				row[1] = strings.ToUpper(hex.EncodeToString([]byte(row[1])))
			}
		}
		if strings.Contains(c.column, "BINARY") || strings.Contains(c.column, "BLOB") || strings.Contains(c.column, "CHAR") || strings.HasPrefix(c.column, "BIT") {
			sameRows(t, c.column+" as hexadecimal", got, sourceRows(t, s, db, table, "id, HEX(IF(COLLATION(v) = 'binary', CAST(v AS BINARY), CONVERT(v USING utf8mb4))), w", "id"))
		}
	}
}
