#include "scan.h"
#include "duckdb_abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { VECTOR_ROWS = 2048, BUCKETS = 256 };

typedef struct entry {
	struct entry *next;
	uint64_t handle;
	uint64_t users;
	bool released;
	tm_bitset *bitsets;
	uint64_t nbitsets;
} entry;

struct tm_registry {
	pthread_mutex_t mutex;
	pthread_cond_t unused;
	uint64_t last;
	entry *buckets[BUCKETS];
};

tm_registry *tm_registry_new(void) {
	tm_registry *r = calloc(1, sizeof *r);
	if (r == NULL) return NULL;
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->unused, NULL);
	return r;
}

void tm_registry_free(tm_registry *r) {
	for (int i = 0; i < BUCKETS; i++) {
		for (entry *e = r->buckets[i]; e != NULL;) {
			entry *next = e->next;
			free(e->bitsets);
			free(e);
			e = next;
		}
	}
	pthread_cond_destroy(&r->unused);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}

uint64_t tm_register(tm_registry *r, tm_bitset *bitsets, uint64_t nbitsets) {
	entry *e = calloc(1, sizeof *e);
	if (e == NULL) return 0;
	e->bitsets = bitsets;
	e->nbitsets = nbitsets;
	pthread_mutex_lock(&r->mutex);
	e->handle = ++r->last;
	entry **bucket = &r->buckets[e->handle % BUCKETS];
	e->next = *bucket;
	*bucket = e;
	pthread_mutex_unlock(&r->mutex);
	return e->handle;
}

static entry **find(tm_registry *r, uint64_t handle) {
	entry **e = &r->buckets[handle % BUCKETS];
	while (*e != NULL && (*e)->handle != handle) e = &(*e)->next;
	return e;
}

static entry *acquire(tm_registry *r, uint64_t handle) {
	pthread_mutex_lock(&r->mutex);
	entry *e = *find(r, handle);
	if (e != NULL && e->released) e = NULL;
	if (e != NULL) e->users++;
	pthread_mutex_unlock(&r->mutex);
	return e;
}

static void leave(tm_registry *r, entry *e) {
	pthread_mutex_lock(&r->mutex);
	if (--e->users == 0 && e->released) pthread_cond_broadcast(&r->unused);
	pthread_mutex_unlock(&r->mutex);
}

void tm_release(tm_registry *r, uint64_t handle) {
	pthread_mutex_lock(&r->mutex);
	entry *e = *find(r, handle);
	if (e == NULL || e->released) {
		pthread_mutex_unlock(&r->mutex);
		return;
	}
	e->released = true;
	while (e->users > 0) pthread_cond_wait(&r->unused, &r->mutex);
	*find(r, handle) = e->next; // found again: the chain may have changed while the mutex was free
	pthread_mutex_unlock(&r->mutex);
	free(e->bitsets);
	free(e);
}

static bool dead(const tm_bitset *b, uint64_t row) {
	return (row >> 6) < b->nwords && ((b->words[row >> 6] >> (row & 63)) & 1);
}

// Returns NULL, or what is wrong.
static const char *alive_rows(const entry *e, const uint64_t *files, const int64_t *rows, uint64_t n, bool *out) {
	uint64_t file = UINT64_MAX;
	const tm_bitset *b = NULL;
	for (uint64_t i = 0; i < n; i++) {
		if (files[i] != file || b == NULL) {
			file = files[i];
			if (file >= e->nbitsets) return "scan: a row comes from a file that is not in this scan";
			b = &e->bitsets[file];
		}
		uint64_t row = (uint64_t)rows[i];
		if (row >= b->rows) return "scan: a part has more rows than its record says";
		out[i] = !dead(b, row);
	}
	return NULL;
}

static bool all_equal(const uint64_t *v, uint64_t n) {
	uint64_t differ = 0;
	for (uint64_t i = 1; i < n; i++) differ |= v[i] ^ v[0];
	return differ == 0;
}

void tm_alive(void *info, void *chunk, void *result) {
	tm_registry *r = duckdb_scalar_function_get_extra_info(info);
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	if (n == 0) return;
	const uint64_t *handles = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 0));
	const uint64_t *files = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 1));
	const int64_t *rows = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 2));
	entry *e = all_equal(handles, n) ? acquire(r, handles[0]) : NULL;
	if (e == NULL) {
		duckdb_scalar_function_set_error(info, "scan: stale handle");
		return;
	}
	const char *problem = alive_rows(e, files, rows, n, duckdb_vector_get_data(result));
	leave(r, e);
	if (problem != NULL) duckdb_scalar_function_set_error(info, problem);
}

tm_scan *tm_scan_new(tm_registry *registry, uint64_t handle, uint64_t nsegments, uint64_t ncolumns) {
	tm_scan *s = calloc(1, sizeof *s);
	if (s == NULL) return NULL;
	s->registry = registry;
	s->handle = handle;
	s->nsegments = nsegments;
	s->ncolumns = ncolumns;
	s->segments = calloc(nsegments + 1, sizeof *s->segments);
	s->columns = calloc(nsegments * ncolumns + 1, sizeof *s->columns);
	if (s->segments == NULL || s->columns == NULL) {
		tm_scan_free(s);
		return NULL;
	}
	for (uint64_t i = 0; i < nsegments; i++) s->segments[i].columns = s->columns + i * ncolumns;
	return s;
}

void tm_scan_free(void *scan) {
	tm_scan *s = scan;
	free(s->segments);
	free(s->columns);
	free(s);
}

static bool offsets_fit(const tm_column *c, uint64_t n) {
	const int32_t *o = c->offsets + c->offset;
	int32_t falling = 0;
	for (uint64_t i = 0; i < n; i++) falling |= o[i + 1] < o[i];
	return !falling && o[0] >= 0 && (uint64_t)o[n] <= c->data_bytes;
}

static bool continues(uint8_t b) { return (b & 0xC0) == 0x80; }

// Length of the UTF-8 character at s, 0 when there is none. Overlong forms, surrogates and numbers past U+10FFFF are none.
static uint64_t character(const uint8_t *s, uint64_t left) {
	uint8_t b = s[0];
	if (b < 0x80) return 1;
	uint64_t n = b < 0xC2 ? 0 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : b < 0xF5 ? 4 : 0;
	if (n == 0 || n > left) return 0;
	for (uint64_t i = 1; i < n; i++) {
		if (!continues(s[i])) return 0;
	}
	if ((b == 0xE0 && s[1] < 0xA0) || (b == 0xED && s[1] > 0x9F) || (b == 0xF0 && s[1] < 0x90) || (b == 0xF4 && s[1] > 0x8F)) return 0;
	return n;
}

static bool valid_utf8(const uint8_t *s, uint64_t n) {
	while (n > 0) {
		uint64_t word;
		if (n >= 8 && (memcpy(&word, s, 8), (word & 0x8080808080808080) == 0)) {
			s += 8;
			n -= 8;
			continue;
		}
		uint64_t length = character(s, n);
		if (length == 0) return false;
		s += length;
		n -= length;
	}
	return true;
}

// All texts are valid when they are one after the other and none begins inside a character.
static bool texts_valid(const tm_column *c, uint64_t n) {
	const int32_t *o = c->offsets + c->offset;
	const uint8_t *s = c->data;
	if (o[n] == o[0]) return true;
	if (!valid_utf8(s + o[0], (uint64_t)(o[n] - o[0]))) return false;
	for (uint64_t i = 0; i < n; i++) {
		if (o[i] < o[n] && continues(s[o[i]])) return false;
	}
	return true;
}

static const char *check_column(const tm_column *c, uint64_t rows) {
	uint64_t n = c->constant ? 1 : rows;
	if ((c->kind != TM_BYTES && c->kind != TM_TEXT) || n == 0) return NULL;
	if (!offsets_fit(c, n)) return "offsets out of bounds";
	if (c->kind == TM_TEXT && !texts_valid(c, n)) return "text is not valid UTF-8";
	return NULL;
}

const char *tm_scan_check(const tm_scan *s) {
	for (uint64_t i = 0; i < s->nsegments; i++) {
		for (uint64_t c = 0; c < s->ncolumns; c++) {
			const char *problem = check_column(&s->segments[i].columns[c], s->segments[i].rows);
			if (problem != NULL) return problem;
		}
	}
	return NULL;
}

// A run is rows of one segment that go to the same chunk: n rows, from row on, or those in sel when it is not NULL.
typedef struct {
	const uint16_t *sel; // offsets from row
	uint64_t row;
	uint64_t n;
	uint64_t out; // first row in the chunk
} run;

// RUN_LOOP runs body with `from` as the index into the Arrow array and `to` as the row in the vector.
#define RUN_LOOP(c, r, body) \
	do { \
		for (uint64_t i_ = 0; i_ < (r)->n; i_++) { \
			int64_t from = (c)->offset; \
			if (!(c)->constant) from += (int64_t)((r)->row + ((r)->sel ? (r)->sel[i_] : i_)); \
			uint64_t to = (r)->out + i_; \
			body; \
		} \
	} while (0)

static bool bit(const uint8_t *bits, int64_t i) { return (bits[i >> 3] >> (i & 7)) & 1; }

static void copy_validity(const tm_column *c, const run *r, void *vector) {
	if (c->validity == NULL) return;
	duckdb_vector_ensure_validity_writable(vector);
	uint64_t *mask = duckdb_vector_get_validity(vector);
	RUN_LOOP(c, r, { if (!bit(c->validity, from)) mask[to >> 6] &= ~((uint64_t)1 << (to & 63)); });
}

static void copy_bytes(const tm_column *c, const run *r, duckdb_text *out) {
	const char *bytes = c->data;
	RUN_LOOP(c, r, {
		uint32_t length = (uint32_t)(c->offsets[from + 1] - c->offsets[from]);
		const char *start = bytes + c->offsets[from];
		memset(&out[to], 0, sizeof *out);
		out[to].inlined.length = length;
		if (length <= 12) {
			if (length > 0) memcpy(out[to].inlined.bytes, start, length);
		} else {
			memcpy(out[to].pointer.prefix, start, 4);
			out[to].pointer.bytes = start;
		}
	});
}

static bool straight(const tm_column *c, const run *r) { return r->sel == NULL && !c->constant; }

#define COPY_FIXED(type) \
	do { \
		const type *in = c->data; \
		type *out = data; \
		if (straight(c, r)) \
			memcpy(out + r->out, in + c->offset + r->row, r->n * sizeof(type)); \
		else \
			RUN_LOOP(c, r, out[to] = in[from]); \
	} while (0)

// The low half of a decimal128 that fits the narrower type is its value.
#define COPY_DECIMAL(type) \
	do { \
		const duckdb_int128 *in = c->data; \
		type *out = data; \
		RUN_LOOP(c, r, out[to] = (type)in[from].lower); \
	} while (0)

static void copy_values(const tm_column *c, const run *r, void *data) {
	switch (c->kind) {
	case TM_COPY_4: COPY_FIXED(uint32_t); break;
	case TM_COPY_8: COPY_FIXED(uint64_t); break;
	case TM_COPY_16: COPY_FIXED(duckdb_int128); break;
	case TM_DECIMAL_2: COPY_DECIMAL(int16_t); break;
	case TM_DECIMAL_4: COPY_DECIMAL(int32_t); break;
	case TM_DECIMAL_8: COPY_DECIMAL(int64_t); break;
	case TM_BYTES:
	case TM_TEXT: copy_bytes(c, r, data); break;
	}
}

static void copy_run(const tm_scan *s, const tm_segment *g, const run *r, void *chunk) {
	for (uint64_t i = 0; i < s->ncolumns; i++) {
		void *vector = duckdb_data_chunk_get_vector(chunk, i);
		copy_values(&g->columns[i], r, duckdb_vector_get_data(vector));
		copy_validity(&g->columns[i], r, vector);
	}
}

// Leaves the alive rows of [r->row, r->row + r->n) in sel.
static void select_alive(const tm_segment *g, run *r, uint16_t *sel) {
	uint64_t n = 0;
	for (uint64_t i = 0; i < r->n; i++) {
		sel[n] = (uint16_t)i;
		n += !dead(&g->dead, r->row + i);
	}
	r->n = n;
	r->sel = sel;
}

static uint64_t segment_of(const tm_scan *s, uint64_t row) {
	uint64_t low = 0, high = s->nsegments;
	while (low + 1 < high) {
		uint64_t mid = (low + high) / 2;
		if (s->segments[mid].first <= row) low = mid;
		else high = mid;
	}
	return low;
}

// Copies the alive rows of [from, to), counted over all segments, and returns how many there were.
static uint64_t copy_range(const tm_scan *s, uint64_t from, uint64_t to, void *chunk) {
	uint16_t sel[VECTOR_ROWS];
	uint64_t out = 0;
	for (uint64_t i = segment_of(s, from); from < to; i++) {
		const tm_segment *g = &s->segments[i];
		uint64_t end = g->first + g->rows < to ? g->first + g->rows : to;
		if (end <= from) continue;
		run r = {.row = from - g->first, .n = end - from, .out = out};
		if (g->dead.nwords > 0) select_alive(g, &r, sel);
		copy_run(s, g, &r, chunk);
		out += r.n;
		from = end;
	}
	return out;
}

void tm_segments(void *info, void *chunk) {
	tm_scan *s = duckdb_function_get_init_data(info);
	entry *e = acquire(s->registry, s->handle);
	if (e == NULL) {
		duckdb_function_set_error(info, "scan: stale handle");
		return;
	}
	// A chunk without rows means the end to DuckDB, so ranges whose rows are all dead are passed over here.
	uint64_t n = 0;
	while (n == 0) {
		uint64_t from = atomic_fetch_add(&s->next, VECTOR_ROWS);
		if (from >= s->rows) break;
		uint64_t to = from + VECTOR_ROWS < s->rows ? from + VECTOR_ROWS : s->rows;
		n = copy_range(s, from, to, chunk);
	}
	duckdb_data_chunk_set_size(chunk, n);
	leave(s->registry, e);
}

uintptr_t *tm_cell(uintptr_t handle) {
	uintptr_t *cell = malloc(sizeof *cell);
	if (cell != NULL) *cell = handle;
	return cell;
}

void tm_vectors(void *chunk, uint64_t n, void **vectors, void **data, uint64_t **validity) {
	for (uint64_t i = 0; i < n; i++) {
		vectors[i] = duckdb_data_chunk_get_vector(chunk, i);
		data[i] = duckdb_vector_get_data(vectors[i]);
		validity[i] = duckdb_vector_get_validity(vectors[i]);
	}
}
