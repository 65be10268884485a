// Sort keys and LIKE of MySQL's collations, for texts that need no more than a table of weights. Package collate has the
// rules; what is computed here is byte for byte what it computes. Other texts go to Go, a chunk at a time.
#ifndef TIDEMARK_TEXT_H
#define TIDEMARK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

// Marks characters that add nothing to a key.
enum { TM_NO_WEIGHT = 0xFFFF };

typedef struct {
	int32_t id;
	bool keys;      // sort keys of ASCII texts can be made with this table
	bool any_byte;  // of other texts too: a byte is its own weight
	bool identity;  // a text is its own key
	bool pad;
	uint8_t unit;   // bytes of a weight
	uint16_t space; // weight of a space
	uint16_t weights[256];
	bool like_bytes;   // LIKE compares bytes, and _ is a UTF-8 character
	bool like_binary;  // LIKE compares bytes, and _ is a byte
	uint8_t fold[256]; // else: the least ASCII character that is equal in LIKE
} tm_collation;

// What the two functions find behind their extra info.
typedef struct {
	uint64_t n;
	tm_collation *collations;
} tm_text;

void tm_sortkey(void *info, void *chunk, void *result);
void tm_equal(void *info, void *chunk, void *result);
void tm_like(void *info, void *chunk, void *result);

// tm_assign sets n texts of a vector: rows[i] gets the bytes up to ends[i] from the end of the one before.
void tm_assign(void *vector, uint64_t n, const uint32_t *rows, const uint64_t *ends, const char *bytes);

// tm_as_timestamp is the function from TIMESTAMP WITH TIME ZONE to the TIMESTAMP of its wall clock in UTC: the same number.
void tm_as_timestamp(void *info, void *chunk, void *result);

// tm_div divides HUGEINTs and rounds half away from zero; NULL where the divisor is 0.
void tm_div(void *info, void *chunk, void *result);

#endif
