// Handles and the two functions behind a table scan: alive, which tells rows of Parquet parts that are not deleted, and
// the chunk source over Arrow segments.
#ifndef TIDEMARK_SCAN_H
#define TIDEMARK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A registry maps handles to what they stand for. A handle is never reused, so that a stale one is found out.
typedef struct tm_registry tm_registry;

tm_registry *tm_registry_new(void);
void tm_registry_free(tm_registry *registry);

// A bitset marks dead rows of one part or segment. Rows beyond its words are alive.
typedef struct {
	const uint64_t *words;
	uint64_t nwords;
	uint64_t rows;
} tm_bitset;

// tm_register gives a new handle, 0 when memory is short. The bitsets array is owned by the registry afterwards (it must
// come from malloc); the words stay the caller's and must live until tm_release returns.
uint64_t tm_register(tm_registry *registry, tm_bitset *bitsets, uint64_t nbitsets);

// tm_release makes the handle stale. It returns when no thread uses it any more.
void tm_release(tm_registry *registry, uint64_t handle);

// How one column's values are carried into a DuckDB vector.
enum {
	TM_COPY_4 = 1,    // fixed width values, as they are
	TM_COPY_8,
	TM_COPY_16,
	TM_DECIMAL_2,     // decimal128 narrowed to the width that DuckDB has for the precision
	TM_DECIMAL_4,
	TM_DECIMAL_8,
	TM_BYTES,         // 32-bit offsets and bytes; vectors point at the bytes
	TM_TEXT,          // the same, checked to be UTF-8
};

// One column of one segment. A constant column has one value for all rows.
typedef struct {
	int32_t kind;
	int32_t constant;
	const uint8_t *validity; // Arrow bitmap, NULL when no value is null
	int64_t offset;          // Arrow array offset
	const void *data;
	uint64_t data_bytes;
	const int32_t *offsets;
} tm_column;

typedef struct {
	uint64_t first; // number of rows in the segments before
	uint64_t rows;
	tm_bitset dead;
	tm_column *columns;
} tm_segment;

// One scan over segments: the projected columns only. Threads take ranges of rows from `next`.
typedef struct {
	tm_registry *registry;
	uint64_t handle;
	uint64_t ncolumns;
	uint64_t nsegments;
	uint64_t rows;
	_Atomic uint64_t next;
	tm_segment *segments;
	tm_column *columns;
} tm_scan;

// tm_scan_new allocates a scan with room for nsegments x ncolumns columns, or gives NULL.
tm_scan *tm_scan_new(tm_registry *registry, uint64_t handle, uint64_t nsegments, uint64_t ncolumns);
// tm_scan_check looks at every offset and every text. It gives what is wrong, or NULL: DuckDB takes texts for valid UTF-8
// and reads behind the end of others.
const char *tm_scan_check(const tm_scan *scan);
void tm_scan_free(void *scan);

// Callbacks for DuckDB.
void tm_alive(void *info, void *chunk, void *result);
void tm_segments(void *info, void *chunk);

// tm_cell keeps a Go handle where DuckDB can hold it; DuckDB frees it with free.
uintptr_t *tm_cell(uintptr_t handle);

// tm_vectors fills the data and validity pointers of a chunk's first n columns.
void tm_vectors(void *chunk, uint64_t n, void **vectors, void **data, uint64_t **validity);

#endif
