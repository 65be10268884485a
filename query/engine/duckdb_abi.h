// The part of DuckDB's stable C API that this package's C code calls. The bindings module carries duckdb.h, but cgo has
// no way to name a directory of another module, so the few prototypes stand here. They are of the stable part of the
// API (struct layouts included), which DuckDB does not change within a major version.
#ifndef TIDEMARK_DUCKDB_ABI_H
#define TIDEMARK_DUCKDB_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// duckdb_string_t: up to 12 bytes stand inline, longer ones behind a pointer after their first four bytes.
typedef union {
	struct {
		uint32_t length;
		char prefix[4];
		const char *bytes;
	} pointer;
	struct {
		uint32_t length;
		char bytes[12];
	} inlined;
} duckdb_text;

typedef struct {
	uint64_t lower;
	int64_t upper;
} duckdb_int128;

uint64_t duckdb_data_chunk_get_size(void *chunk);
void *duckdb_data_chunk_get_vector(void *chunk, uint64_t column);
void duckdb_data_chunk_set_size(void *chunk, uint64_t size);
void *duckdb_vector_get_data(void *vector);
uint64_t *duckdb_vector_get_validity(void *vector);
void duckdb_vector_ensure_validity_writable(void *vector);
void duckdb_unsafe_vector_assign_string_element_len(void *vector, uint64_t row, const char *bytes, uint64_t length);
void *duckdb_list_vector_get_child(void *vector);
void *duckdb_scalar_function_get_extra_info(void *info);
void duckdb_scalar_function_set_error(void *info, const char *message);
void *duckdb_function_get_init_data(void *info);
void duckdb_function_set_error(void *info, const char *message);

static inline const char *text_bytes(const duckdb_text *t) {
	return t->inlined.length <= 12 ? t->inlined.bytes : t->pointer.bytes;
}

static inline bool row_valid(const uint64_t *validity, uint64_t row) {
	return validity == NULL || (validity[row >> 6] >> (row & 63)) & 1;
}

#endif
