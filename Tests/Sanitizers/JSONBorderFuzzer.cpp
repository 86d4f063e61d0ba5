// libFuzzer over the C++ border of HubJSON: what the shim does with any bytes, and whether a tape that it hands out can be
// walked as `JSONElement` walks it. From the package's folder:
//
//   clang++ -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -ISources/CSimdJSON/include \
//     Sources/CSimdJSON/CSimdJSON.cpp Tests/Sanitizers/JSONBorderFuzzer.cpp -lsimdjson -o .build/json-border-fuzzer
//   .build/json-border-fuzzer -max_len=4096 -max_total_time=3600 .build/json-border-corpus Tests/HubFuzzing/seeds/json
#include <CSimdJSON.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t capacity = 1 << 16;
constexpr size_t depth_max = 33;

// Walks one value, touching every byte that a reader would; returns the index behind it.
uint32_t walk(const tandem_json_document *document, uint32_t index, size_t depth, uint64_t &sum) {
    if (depth > depth_max + 1) abort();
    const uint32_t after = tandem_json_after(document, index);
    switch (tandem_json_kind(document, index)) {
    case '"': {
        const uint8_t *bytes = tandem_json_string(document, index);
        for (uint32_t i = 0; i < tandem_json_string_count(document, index); i++) sum += bytes[i];
        break;
    }
    case 'l': sum += static_cast<uint64_t>(tandem_json_int64(document, index)); break;
    case 'u': sum += tandem_json_uint64(document, index); break;
    case 'd': sum += tandem_json_double(document, index) > 0; break;
    case '{':
    case '[':
        // The container's closing word is the last before what follows it.
        for (uint32_t child = index + 1; child != after - 1;) {
            if (child >= after) abort();
            child = walk(document, child, depth + 1, sum);
        }
        break;
    case 't': case 'f': case 'n': break;
    default: abort();
    }
    return after;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static tandem_json_parser *const parser = tandem_json_parser_create(capacity, depth_max);
    static tandem_json_parser *const second = tandem_json_parser_create(capacity, depth_max);
    static volatile uint64_t sink;
    if (!parser || !second) abort();
    if (count > capacity) return 0;
    if (const int error = tandem_json_parser_parse(parser, bytes, count)) {
        if (!tandem_json_error_text(error)[0]) abort();
        return 0;
    }
    uint64_t sum = 0;
    walk(tandem_json_parser_document(parser), 1, 0, sum);
    sink = sum;
    if (bytes[0] != '{' && bytes[0] != '[') return 0;
    // Exactly the room that the shim is promised, so that one byte more is found.
    std::vector<uint8_t> compact(count);
    compact.resize(tandem_json_minify(bytes, count, compact.data()));
    compact.shrink_to_fit();
    if (tandem_json_parser_parse(second, compact.data(), compact.size())) abort();
    uint64_t again = 0;
    walk(tandem_json_parser_document(second), 1, 0, again);
    if (again != sum) abort();
    return 0;
}
