#include "text.h"
#include "duckdb_abi.h"

#include <stdlib.h>
#include <string.h>

// The Go side, for the rows that the tables do not do.
extern void tidemarkSortKeys(void *info, void *chunk, void *result, uint32_t *rows, uint64_t n);
extern void tidemarkEquals(void *info, void *chunk, void *result, uint32_t *rows, uint64_t n);
extern void tidemarkLikes(void *info, void *chunk, void *result, uint32_t *rows, uint64_t n);

enum { VECTOR_ROWS = 2048, RUN_BELOW = 1, END = 2, RUN_ABOVE = 3 };

static const tm_collation *collation(const tm_text *t, int32_t id) {
	for (uint64_t i = 0; i < t->n; i++) {
		if (t->collations[i].id == id) return &t->collations[i];
	}
	return NULL;
}

static bool is_ascii(const char *s, uint64_t n) {
	uint64_t all = 0;
	while (n >= 8) {
		uint64_t word;
		memcpy(&word, s, 8);
		all |= word;
		s += 8;
		n -= 8;
	}
	while (n-- > 0) all |= (uint64_t)(uint8_t)*s++;
	return (all & 0x8080808080808080) == 0;
}

static void set_null(void *vector, uint64_t row) {
	duckdb_vector_ensure_validity_writable(vector);
	duckdb_vector_get_validity(vector)[row >> 6] &= ~((uint64_t)1 << (row & 63));
}

static char *put_weight(char *out, const tm_collation *c, uint16_t w) {
	if (c->unit == 2) *out++ = (char)(w >> 8);
	*out++ = (char)w;
	return out;
}

static char *key_unpadded(const tm_collation *c, const uint8_t *s, uint64_t n, char *out) {
	for (uint64_t i = 0; i < n; i++) {
		if (c->weights[s[i]] != TM_NO_WEIGHT) out = put_weight(out, c, c->weights[s[i]]);
	}
	return out;
}

// Characters without weight do not exist for a run of spaces.
static bool counts(const tm_collation *c, uint8_t b) { return c->weights[b] != TM_NO_WEIGHT; }

static char run_mark(const tm_collation *c, const uint8_t *s, uint64_t n) {
	for (uint64_t i = 0; i < n; i++) {
		if (counts(c, s[i]) && c->weights[s[i]] != c->space) return c->weights[s[i]] < c->space ? RUN_BELOW : RUN_ABOVE;
	}
	return RUN_ABOVE; // not reached: a run of spaces is not the end
}

static char *key_padded(const tm_collation *c, const uint8_t *s, uint64_t n, char *out) {
	while (n > 0 && (c->weights[s[n - 1]] == c->space || !counts(c, s[n - 1]))) n--;
	bool in_run = false;
	for (uint64_t i = 0; i < n; i++) {
		uint16_t w = c->weights[s[i]];
		if (!counts(c, s[i])) continue;
		out = put_weight(out, c, w);
		if (w == c->space && !in_run) *out++ = run_mark(c, s + i + 1, n - i - 1);
		in_run = w == c->space;
	}
	out = put_weight(out, c, c->space);
	*out++ = END;
	return out;
}

// A key has at most three bytes for each of the text's, and three for the end.
static uint64_t key_room(uint64_t length) { return 3 * length + 3; }

// A buffer that grows; short texts stay on the stack.
typedef struct {
	char small[1024];
	char *large;
	uint64_t size;
} buffer;

static char *room(buffer *b, uint64_t n) {
	if (n <= sizeof b->small) return b->small;
	if (n > b->size) {
		free(b->large);
		b->large = malloc(n);
		b->size = b->large == NULL ? 0 : n;
	}
	return b->large;
}

// Returns false when the row is for Go.
static bool assign_key(const tm_collation *c, const duckdb_text *t, buffer *b, void *result, uint64_t row) {
	const char *text = text_bytes(t);
	uint64_t length = t->inlined.length;
	if (c == NULL) return false;
	if (c->identity) {
		duckdb_unsafe_vector_assign_string_element_len(result, row, text, length);
		return true;
	}
	if (!c->keys || (!c->any_byte && !is_ascii(text, length))) return false;
	char *out = room(b, key_room(length));
	if (out == NULL) return false;
	const uint8_t *s = (const uint8_t *)text;
	char *to = c->pad ? key_padded(c, s, length, out) : key_unpadded(c, s, length, out);
	duckdb_unsafe_vector_assign_string_element_len(result, row, out, (uint64_t)(to - out));
	return true;
}

void tm_sortkey(void *info, void *chunk, void *result) {
	const tm_text *t = duckdb_scalar_function_get_extra_info(info);
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	if (n > VECTOR_ROWS) {
		duckdb_scalar_function_set_error(info, "tm_sortkey: too many rows in a chunk");
		return;
	}
	void *texts = duckdb_data_chunk_get_vector(chunk, 0), *ids = duckdb_data_chunk_get_vector(chunk, 1);
	const duckdb_text *text = duckdb_vector_get_data(texts);
	const int32_t *id = duckdb_vector_get_data(ids);
	const uint64_t *text_valid = duckdb_vector_get_validity(texts), *id_valid = duckdb_vector_get_validity(ids);
	uint32_t rest[VECTOR_ROWS];
	uint64_t nrest = 0;
	buffer b = {.large = NULL, .size = 0};
	const tm_collation *c = NULL;
	for (uint64_t i = 0; i < n; i++) {
		if (!row_valid(text_valid, i) || !row_valid(id_valid, i)) {
			set_null(result, i);
			continue;
		}
		if (c == NULL || c->id != id[i]) c = collation(t, id[i]);
		if (!assign_key(c, &text[i], &b, result, i)) rest[nrest++] = (uint32_t)i;
	}
	free(b.large);
	if (nrest > 0) tidemarkSortKeys(info, chunk, result, rest, nrest);
}

// The next weight of a text, or, at its end, of the spaces that a PAD SPACE collation sees there. -1: the end.
static int32_t next_weight(const tm_collation *c, const uint8_t **s, const uint8_t *end) {
	while (*s < end) {
		uint16_t w = c->weights[*(*s)++];
		if (w != TM_NO_WEIGHT) return w;
	}
	return c->pad ? c->space : -1;
}

static bool equal_weights(const tm_collation *c, const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end) {
	while (a < a_end || b < b_end) {
		if (next_weight(c, &a, a_end) != next_weight(c, &b, b_end)) return false;
	}
	return true;
}

static bool same_bytes(const duckdb_text *a, const duckdb_text *b) {
	return a->inlined.length == b->inlined.length && memcmp(text_bytes(a), text_bytes(b), a->inlined.length) == 0;
}

// Returns false when the row is for Go.
static bool equal_row(const tm_collation *c, const duckdb_text *a, const duckdb_text *b, bool *out) {
	if (c == NULL) return false;
	*out = same_bytes(a, b);
	if (*out || c->identity) return true;
	const char *x = text_bytes(a), *y = text_bytes(b);
	uint32_t n = a->inlined.length, m = b->inlined.length;
	if (!c->keys || (!c->any_byte && !(is_ascii(x, n) && is_ascii(y, m)))) return false;
	*out = equal_weights(c, (const uint8_t *)x, (const uint8_t *)x + n, (const uint8_t *)y, (const uint8_t *)y + m);
	return true;
}

void tm_equal(void *info, void *chunk, void *result) {
	const tm_text *t = duckdb_scalar_function_get_extra_info(info);
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	if (n > VECTOR_ROWS) {
		duckdb_scalar_function_set_error(info, "tm_equal: too many rows in a chunk");
		return;
	}
	const void *data[3];
	const uint64_t *valid[3];
	for (uint64_t i = 0; i < 3; i++) {
		void *vector = duckdb_data_chunk_get_vector(chunk, i);
		data[i] = duckdb_vector_get_data(vector);
		valid[i] = duckdb_vector_get_validity(vector);
	}
	const duckdb_text *a = data[0], *b = data[1];
	const int32_t *id = data[2];
	bool *out = duckdb_vector_get_data(result);
	uint32_t rest[VECTOR_ROWS];
	uint64_t nrest = 0;
	const tm_collation *c = NULL;
	for (uint64_t i = 0; i < n; i++) {
		if (!row_valid(valid[0], i) || !row_valid(valid[1], i) || !row_valid(valid[2], i)) {
			set_null(result, i);
			continue;
		}
		if (c == NULL || c->id != id[i]) c = collation(t, id[i]);
		if (!equal_row(c, &a[i], &b[i], &out[i])) rest[nrest++] = (uint32_t)i;
	}
	if (nrest > 0) tidemarkEquals(info, chunk, result, rest, nrest);
}

enum { ANY_ONE = 256, ANY_MANY = 257 };

// A pattern as tokens: what a character folds to, or a wildcard.
typedef struct {
	const tm_collation *collation;
	const char *bytes; // what it was made of, to find it again in the next row
	uint64_t length;
	uint8_t escape;
	bool usable;
	uint64_t n, room;
	uint16_t *tokens;
} like_pattern;

static bool bytewise(const tm_collation *c) { return c->like_bytes || c->like_binary; }

static bool compile(like_pattern *p, const tm_collation *c, const char *s, uint64_t length, uint8_t escape) {
	p->usable = false;
	p->collation = c;
	p->bytes = s;
	p->length = length;
	p->escape = escape;
	if (c == NULL || (!bytewise(c) && !is_ascii(s, length))) return false;
	if (length > p->room) {
		free(p->tokens);
		p->tokens = malloc(length * sizeof *p->tokens);
		p->room = p->tokens == NULL ? 0 : length;
		if (p->tokens == NULL) return false;
	}
	p->n = 0;
	bool escaped = false;
	for (uint64_t i = 0; i < length; i++) {
		uint8_t ch = (uint8_t)s[i];
		uint16_t token = bytewise(c) ? ch : c->fold[ch];
		if (!escaped && ch == escape && i + 1 < length) {
			escaped = true;
			continue;
		}
		if (!escaped && ch == '_') token = ANY_ONE;
		if (!escaped && ch == '%') token = ANY_MANY;
		escaped = false;
		p->tokens[p->n++] = token;
	}
	p->usable = true;
	return true;
}

// Bytes of the character that starts at s.
static uint64_t character(const tm_collation *c, const uint8_t *s, uint64_t left) {
	if (!c->like_bytes || s[0] < 0xC0) return 1;
	uint64_t n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	return n < left ? n : left;
}

static bool match(const like_pattern *p, const uint8_t *s, uint64_t n) {
	const tm_collation *c = p->collation;
	bool raw = bytewise(c);
	uint64_t i = 0, at = 0, retry_at = 0, retry = 0;
	bool can_retry = false;
	while (i < n) {
		uint16_t token = at < p->n ? p->tokens[at] : UINT16_MAX;
		if (token == ANY_MANY) {
			retry_at = ++at;
			retry = i;
			can_retry = true;
		} else if (token == ANY_ONE) {
			i += character(c, s + i, n - i);
			at++;
		} else if (token == (raw ? s[i] : c->fold[s[i]])) {
			i++;
			at++;
		} else if (can_retry) {
			retry += character(c, s + retry, n - retry);
			i = retry;
			at = retry_at;
		} else {
			return false;
		}
	}
	while (at < p->n && p->tokens[at] == ANY_MANY) at++;
	return at == p->n;
}

static bool same_pattern(const like_pattern *p, const tm_collation *c, const char *s, uint64_t length, uint8_t escape) {
	return p->usable && p->collation == c && p->escape == escape && p->length == length &&
		(p->bytes == s || memcmp(p->bytes, s, length) == 0);
}

// Returns false when the row is for Go.
static bool like_row(like_pattern *p, const tm_collation *c, const duckdb_text *text, const duckdb_text *pattern, const duckdb_text *escape, bool *out) {
	if (escape->inlined.length > 1 || c == NULL) return false;
	uint8_t e = escape->inlined.length == 0 ? 0 : (uint8_t)escape->inlined.bytes[0];
	const char *s = text_bytes(pattern);
	if (!same_pattern(p, c, s, pattern->inlined.length, e) && !compile(p, c, s, pattern->inlined.length, e)) return false;
	const char *t = text_bytes(text);
	if (!bytewise(c) && !is_ascii(t, text->inlined.length)) return false;
	*out = match(p, (const uint8_t *)t, text->inlined.length);
	return true;
}

void tm_like(void *info, void *chunk, void *result) {
	const tm_text *t = duckdb_scalar_function_get_extra_info(info);
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	if (n > VECTOR_ROWS) {
		duckdb_scalar_function_set_error(info, "tm_like: too many rows in a chunk");
		return;
	}
	const duckdb_text *text[3];
	const uint64_t *valid[4];
	for (uint64_t i = 0; i < 4; i++) {
		void *vector = duckdb_data_chunk_get_vector(chunk, i);
		if (i < 3) text[i] = duckdb_vector_get_data(vector);
		valid[i] = duckdb_vector_get_validity(vector);
	}
	const int32_t *id = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 3));
	bool *out = duckdb_vector_get_data(result);
	uint32_t rest[VECTOR_ROWS];
	uint64_t nrest = 0;
	like_pattern p = {.usable = false, .tokens = NULL, .room = 0};
	const tm_collation *c = NULL;
	for (uint64_t i = 0; i < n; i++) {
		if (!row_valid(valid[0], i) || !row_valid(valid[1], i) || !row_valid(valid[2], i) || !row_valid(valid[3], i)) {
			set_null(result, i);
			continue;
		}
		if (c == NULL || c->id != id[i]) c = collation(t, id[i]);
		if (!like_row(&p, c, &text[0][i], &text[1][i], &text[2][i], &out[i])) rest[nrest++] = (uint32_t)i;
	}
	free(p.tokens);
	if (nrest > 0) tidemarkLikes(info, chunk, result, rest, nrest);
}

void tm_assign(void *vector, uint64_t n, const uint32_t *rows, const uint64_t *ends, const char *bytes) {
	uint64_t from = 0;
	for (uint64_t i = 0; i < n; i++) {
		duckdb_unsafe_vector_assign_string_element_len(vector, rows[i], bytes + from, ends[i] - from);
		from = ends[i];
	}
}

void tm_as_timestamp(void *info, void *chunk, void *result) {
	(void)info;
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	void *vector = duckdb_data_chunk_get_vector(chunk, 0);
	memcpy(duckdb_vector_get_data(result), duckdb_vector_get_data(vector), n * sizeof(int64_t));
	const uint64_t *valid = duckdb_vector_get_validity(vector);
	if (valid == NULL) return;
	duckdb_vector_ensure_validity_writable(result);
	memcpy(duckdb_vector_get_validity(result), valid, (n + 63) / 64 * sizeof(uint64_t));
}

// Rounds half away from zero.
static __int128 divide(__int128 a, __int128 b) {
	__int128 q = a / b, r = a % b;
	if (r == 0) return q;
	// Negative numbers have the wider range, so the comparison is made on them.
	__int128 left = r < 0 ? r : -r, whole = b < 0 ? b : -b;
	if (left <= whole - left) q += (a < 0) == (b < 0) ? 1 : -1;
	return q;
}

void tm_div(void *info, void *chunk, void *result) {
	uint64_t n = duckdb_data_chunk_get_size(chunk);
	void *as = duckdb_data_chunk_get_vector(chunk, 0), *bs = duckdb_data_chunk_get_vector(chunk, 1);
	const char *a = duckdb_vector_get_data(as), *b = duckdb_vector_get_data(bs);
	const uint64_t *a_valid = duckdb_vector_get_validity(as), *b_valid = duckdb_vector_get_validity(bs);
	char *out = duckdb_vector_get_data(result);
	const __int128 least = (__int128)1 << 127;
	for (uint64_t i = 0; i < n; i++) {
		__int128 x, y;
		memcpy(&x, a + 16 * i, 16); // DuckDB does not align them for an __int128
		memcpy(&y, b + 16 * i, 16);
		if (!row_valid(a_valid, i) || !row_valid(b_valid, i) || y == 0) {
			set_null(result, i);
			continue;
		}
		if (x == least && y == -1) {
			duckdb_scalar_function_set_error(info, "Overflow in division of INT128");
			return;
		}
		x = divide(x, y);
		memcpy(out + 16 * i, &x, 16);
	}
}
