#include "CSimdJSON.h"

#include <simdjson.h>

#include <memory>
#include <new>

/* One parser with its document and a padded buffer for the text, all of full size from the start: parsing allocates
 * nothing. */
struct tandem_json_parser {
    simdjson::dom::parser parser;
    std::unique_ptr<uint8_t[]> text;
    tandem_json_document document{};
};

namespace {

/* simdjson's own minimum capacity. */
constexpr size_t capacity_min = 32;

}  // namespace

extern "C" {

tandem_json_parser *tandem_json_parser_create(size_t capacity, size_t depth_max) {
    if (capacity < capacity_min) {
        capacity = capacity_min;
    }
    std::unique_ptr<tandem_json_parser> self(new (std::nothrow) tandem_json_parser);
    if (!self) {
        return nullptr;
    }
    self->text.reset(new (std::nothrow) uint8_t[capacity + simdjson::SIMDJSON_PADDING]);
    if (!self->text || self->parser.allocate(capacity, depth_max) != simdjson::SUCCESS ||
        self->parser.doc.allocate(capacity) != simdjson::SUCCESS) {
        return nullptr;
    }
    return self.release();
}

void tandem_json_parser_destroy(tandem_json_parser *parser) {
    delete parser;
}

const tandem_json_document *tandem_json_parser_document(const tandem_json_parser *parser) {
    return &parser->document;
}

int tandem_json_parser_parse(tandem_json_parser *parser, const uint8_t *bytes, size_t count) {
    if (count > 0) {
        std::memcpy(parser->text.get(), bytes, count);
    }
    /* simdjson reads, and ignores, up to the end of the padding. */
    std::memset(parser->text.get() + count, ' ', simdjson::SIMDJSON_PADDING);
    simdjson::error_code error = parser->parser.parse(parser->text.get(), count, false).error();
    tandem_json_document &document = parser->document;
    document.tape = parser->parser.doc.tape.get();
    document.strings = parser->parser.doc.string_buf.get();
    document.text = parser->text.get();
    document.text_count = count;
    document.generation += 1;
    return error;
}

const char *tandem_json_error_text(int error) {
    switch (error) {
    case simdjson::EMPTY: return "empty document";
    case simdjson::UTF8_ERROR: return "text that is not UTF-8";
    case simdjson::UNCLOSED_STRING: return "unclosed string";
    case simdjson::UNESCAPED_CHARS: return "control character inside a string";
    case simdjson::STRING_ERROR: return "bad escape inside a string";
    case simdjson::NUMBER_ERROR: return "bad number, or one beyond 64 bits";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR: return "bad literal (only true, false and null exist)";
    case simdjson::DEPTH_ERROR: return "nested too deeply";
    case simdjson::CAPACITY: return "document too large";
    case simdjson::MEMALLOC: return "out of memory";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT: return "unclosed array or object";
    case simdjson::TAPE_ERROR: return "misplaced, missing or trailing token";
    default: return "malformed document";
    }
}

size_t tandem_json_minify(const uint8_t *bytes, size_t count, uint8_t *output) {
    size_t written = 0;
    simdjson::error_code error = simdjson::minify(
        reinterpret_cast<const char *>(bytes), count, reinterpret_cast<char *>(output), written);
    return error == simdjson::SUCCESS ? written : 0;
}

}  // extern "C"
