// Package deps pins the dependencies until every package that uses them is in place.
package deps

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/apache/arrow-go/v18/arrow"
	_ "github.com/apache/arrow-go/v18/parquet/pqarrow"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/cockroachdb/pebble/v2/sstable"
	_ "github.com/duckdb/duckdb-go-bindings"
	_ "github.com/duckdb/duckdb-go/v2"
	_ "github.com/go-mysql-org/go-mysql/client"
	_ "github.com/go-mysql-org/go-mysql/replication"
	_ "github.com/go-mysql-org/go-mysql/server"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "github.com/testcontainers/testcontainers-go"
	_ "github.com/testcontainers/testcontainers-go/wait"
	_ "golang.org/x/term"
	_ "golang.org/x/text/encoding/charmap"
	_ "vitess.io/vitess/go/mysql/collations/colldata"
)
