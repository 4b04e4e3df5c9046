// One new token of one sequence against its paged keys and values, read in place: softmax(q . K * scale) V with an
// online softmax in float32 (Milakov, Gimelshein 2018, arXiv:1805.02867).
// All query heads that share a key head are computed together, so that each key and value is read once. A long context
// is summed in parts that are joined in order, so that threads can share it out (as Flash-Decoding does).
// The result depends on the sequence alone: neither its blocks nor who sums its parts change a bit.
// Bound: per key head, context * 2 * head_dim numbers read (int8: and a scale for each row), and per query head
// 4 * context * head_dim operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "attention/aligned_array.h"
#include "attention/attention_tile.h"
#include "attention/context_parts.h"
#include "attention/decode_sums.h"
#include "attention/dot_tile.h"
#include "attention/plain_tile.h"

namespace quantgate {

// How tiles are computed: by dot products where the processor has them, and rows are whole lanes of a known width.
#if QUANTGATE_DOT_TILES
template <class Number, class Stored, int64_t WIDTH>
using TilesOf = std::conditional_t<std::is_same_v<Number, BFloat16> && WIDTH != ANY_WIDTH, DotTiles<Stored, WIDTH>,
                                   PlainTiles<Number, Stored, WIDTH>>;
using TileScratch = std::tuple<PlainScratch, DotScratch>;
#else
template <class Number, class Stored, int64_t WIDTH>
using TilesOf = PlainTiles<Number, Stored, WIDTH>;
using TileScratch = std::tuple<PlainScratch>;
#endif

struct DecodeScratch {
    TileScratch tiles;
    AlignedArray<float> part, whole;

#if QUANTGATE_DOT_TILES
    explicit DecodeScratch(const AttentionShape& shape)
        : tiles(shape, shape), part(DecodeSums::size(shape)), whole(DecodeSums::size(shape)) {}
#else
    explicit DecodeScratch(const AttentionShape& shape)
        : tiles(shape), part(DecodeSums::size(shape)), whole(DecodeSums::size(shape)) {}
#endif
};

// A sequence's part in a layer. q: the token's row, all heads. after: the tile that the thread is likely to read when it
// is done with the sequence; it may be empty.
template <class Number, class Stored>
struct DecodedSequence {
    const Number* q;
    CachedRows<Stored> keys, values;
    const int32_t* table;
    int64_t context;
    const AttentionShape& shape;
    const TileSlots& after;
};

// The three functions for heads of a width.
template <class Number, class Stored>
struct SequenceDecoder {
    using Sequence = DecodedSequence<Number, Stored>;

    // out: the token's row, all heads.
    void (*decode)(const Sequence&, DecodeScratch&, Number* out);
    // One of `shares` that are about equal: its parts' sums, to their places among those of all parts.
    void (*sum_share)(const Sequence&, int64_t share, int64_t shares, DecodeScratch&, float* sums);
    // What `decode` gives, from the sums of all parts, one after another.
    void (*join_parts)(const Sequence&, float* sums, DecodeScratch&, Number* out);
};

template <class Number, class Stored, int64_t WIDTH>
class DecodeOf {
public:
    using Sequence = DecodedSequence<Number, Stored>;

    static void decode(const Sequence& sequence, DecodeScratch& scratch, Number* out) {
        const AttentionShape& shape = sequence.shape;
        const ContextParts parts(sequence.context, shape);
        const DecodeSums part(scratch.part.data(), shape), whole(scratch.whole.data(), shape);
        load_queries(sequence, scratch);
        whole.clear(shape.heads);
        for (int64_t index = 0; index < parts.count(); ++index) {
            sum(sequence, parts.first_token(index), parts.first_token(index + 1), parts.end, scratch, part);
            whole.join(part, shape.heads, Tiles::power);
        }
        whole.finish(shape.heads, shape.head_dim, out);
    }

    static void sum_share(const Sequence& sequence, int64_t share, int64_t shares, DecodeScratch& scratch,
                          float* sums) {
        const AttentionShape& shape = sequence.shape;
        const ContextParts parts(sequence.context, shape);
        const int64_t begin = parts.count() * share / shares, end = parts.count() * (share + 1) / shares;
        load_queries(sequence, scratch);
        for (int64_t part = begin; part < end; ++part) {
            sum(sequence, parts.first_token(part), parts.first_token(part + 1), parts.first_token(end), scratch,
                DecodeSums(sums + part * DecodeSums::size(shape), shape));
        }
    }

    static void join_parts(const Sequence& sequence, float* sums, DecodeScratch& scratch, Number* out) {
        const AttentionShape& shape = sequence.shape;
        const DecodeSums whole(scratch.whole.data(), shape);
        whole.clear(shape.heads);
        const int64_t parts = ContextParts(sequence.context, shape).count();
        for (int64_t part = 0; part < parts; ++part) {
            whole.join(DecodeSums(sums + part * DecodeSums::size(shape), shape), shape.heads, Tiles::power);
        }
        whole.finish(shape.heads, shape.head_dim, out);
    }

private:
    using Tiles = TilesOf<Number, Stored, WIDTH>;

    static typename Tiles::Scratch& tile_scratch(DecodeScratch& scratch) {
        return std::get<typename Tiles::Scratch>(scratch.tiles);
    }

    static void load_queries(const Sequence& sequence, DecodeScratch& scratch) {
        const AttentionShape& shape = sequence.shape;
        for (int64_t head = 0; head < shape.heads; ++head) {
            Tiles::load_query(sequence.q + head * shape.head_dim, head, shape, tile_scratch(scratch));
        }
    }

    // Tokens first..end, of a task that goes on up to `last`.
    static void sum(const Sequence& sequence, int64_t first, int64_t end, int64_t last, DecodeScratch& scratch,
                    const DecodeSums& sums) {
        const AttentionShape& shape = sequence.shape;
        sums.clear(shape.heads);
        TileSlots tiles[2];
        TileSlots *present = &tiles[0], *next = &tiles[1];
        find(sequence, first, end, *present);
        for (; first < end; first += TILE, std::swap(present, next)) {
            const bool ends = first + TILE >= end;
            find(sequence, std::min(first + TILE, end), ends ? last : end, *next);
            const TileSlots& following = next->tokens > 0 ? *next : sequence.after;
            Tiles::attend(sequence.keys, sequence.values, *present, following, shape, tile_scratch(scratch), sums);
        }
    }

    static void find(const Sequence& sequence, int64_t first, int64_t end, TileSlots& slots) {
        slots.tokens = std::min(TILE, end - first);
        find_slots(sequence.table, first, slots.tokens, sequence.shape.block_size, slots.of);
    }
};

// The functions for heads of this size.
template <class Number, class Stored>
SequenceDecoder<Number, Stored> sequence_decoder(int64_t head_dim) {
    const auto of = [](auto width) -> SequenceDecoder<Number, Stored> {
        using Functions = DecodeOf<Number, Stored, width>;
        return {Functions::decode, Functions::sum_share, Functions::join_parts};
    };
    return head_dim == 64    ? of(std::integral_constant<int64_t, 4>{})
           : head_dim == 80  ? of(std::integral_constant<int64_t, 5>{})
           : head_dim == 96  ? of(std::integral_constant<int64_t, 6>{})
           : head_dim == 128 ? of(std::integral_constant<int64_t, 8>{})
                             : of(std::integral_constant<int64_t, ANY_WIDTH>{});
}

}  // namespace quantgate
