#ifndef TANDEM_CSIMDJSON_H
#define TANDEM_CSIMDJSON_H

/* simdjson's DOM parser for Swift: plain C, and no C++ exception crosses this border.
 *
 * A parsed document is simdjson's tape (its doc/tape.md): 64-bit words whose top byte is the kind and whose lower 56
 * bits depend on it. Reading it takes a few shifts, so those readers are inline here and cost no call from Swift. The
 * readers trust the index given; HubJSON hands out only indices at which an element begins.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A parsed document for the readers below. Owned by the parser, valid until the parser is destroyed; every parse
 * changes `tape`, `strings`, `text` and `generation`. */
typedef struct {
    const uint64_t *tape;
    const uint8_t *strings;
    /* The parser's own copy of the document's text. */
    const uint8_t *text;
    size_t text_count;
    /* Grows by one with every parse, successful or not. */
    uint32_t generation;
} tandem_json_document;

typedef struct tandem_json_parser tandem_json_parser;

/* A parser for documents of at most `capacity` bytes and `depth_max` nested containers. NULL without memory. Allocates
 * everything at once, about 16 bytes per byte of capacity, of which the system provides only the pages used. */
tandem_json_parser *tandem_json_parser_create(size_t capacity, size_t depth_max);
void tandem_json_parser_destroy(tandem_json_parser *parser);
const tandem_json_document *tandem_json_parser_document(const tandem_json_parser *parser);

/* Copies the text and parses the copy. 0 when it is one valid JSON document, else an error for the next function.
 * `count` must not exceed the parser's capacity. */
int tandem_json_parser_parse(tandem_json_parser *parser, const uint8_t *bytes, size_t count);

/* A few words on an error, for the sentence of a message. */
const char *tandem_json_error_text(int error);

/* Copies `count` bytes of valid JSON without the white space between tokens; `output` has room for
 * as many. Returns the bytes written. */
size_t tandem_json_minify(const uint8_t *bytes, size_t count, uint8_t *output);

static inline uint8_t tandem_json_kind(const tandem_json_document *document, uint32_t index) {
    return (uint8_t)(document->tape[index] >> 56);
}

static inline int64_t tandem_json_int64(const tandem_json_document *document, uint32_t index) {
    return (int64_t)document->tape[index + 1];
}

static inline uint64_t tandem_json_uint64(const tandem_json_document *document, uint32_t index) {
    return document->tape[index + 1];
}

static inline double tandem_json_double(const tandem_json_document *document, uint32_t index) {
    double value;
    memcpy(&value, &document->tape[index + 1], sizeof value);
    return value;
}

static inline uint32_t tandem_json_string_count(const tandem_json_document *document, uint32_t index) {
    uint32_t count;
    memcpy(&count, document->strings + (document->tape[index] & 0x00FFFFFFFFFFFFFFULL), sizeof count);
    return count;
}

static inline const uint8_t *tandem_json_string(const tandem_json_document *document, uint32_t index) {
    return document->strings + (document->tape[index] & 0x00FFFFFFFFFFFFFFULL) + sizeof(uint32_t);
}

/* The index after an element, where the next one of the same container begins. */
static inline uint32_t tandem_json_after(const tandem_json_document *document, uint32_t index) {
    switch (tandem_json_kind(document, index)) {
    case '{':
    case '[':
        return (uint32_t)document->tape[index];
    case 'l':
    case 'u':
    case 'd':
        return index + 2;
    default:
        return index + 1;
    }
}

#ifdef __cplusplus
}
#endif

#endif
