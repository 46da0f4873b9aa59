/* The encoder tries modes and keeps the smallest block. It starts from the result as it is (raw).
 * Then it tries ulps for small floats or changed words for other dtypes, which suit weights that
 * change little. It tries the dense modes (XOR, planes) only when that leaves a large payload or
 * the result itself looks compressible, and stops early when a sample of 8 KiB promises nothing.
 * Two payloads take turns: one holds the best so far, the other the next try. The hash of the
 * result is made in passing, piece by piece, while the first scan has the bytes in the cache. */
#include "weights/codec/block_context.h"

#include "weights/codec/class_choice.h"

enum {
	DENSE = 4, /* the dense modes are tried when a block takes over a fourth of its result */
	SAMPLE_BYTES = 8192,
	FEW_CHANGES = 256 /* a table of many classes may then cost more than it saves */
};

/* One block being encoded, and its smallest form so far. */
struct attempt {
	struct block_code_context *context;
	enum dtype dtype;
	struct span base;
	struct span next;
	struct block_header header;
	struct span payload;
	size_t bytes;   /* header and payload */
	unsigned spare; /* which of the context's payloads the next try uses */
};

static void encode_changed(struct attempt *attempt, struct block_code_stats *stats);
static void start_raw(struct attempt *attempt);
static void try_ulps(
	struct attempt *attempt, struct ulp_format format, struct block_code_stats *stats);
static void scan_ulps(
	struct attempt *attempt, const struct ulp_view *view, bool hash, struct ulp_stream *stream);
static void count_steps(const struct ulp_stream *stream, struct block_code_stats *stats);
static void offer_ulps(struct attempt *attempt, const struct ulp_stream *stream);
static void offer(struct attempt *attempt, struct block_header header, size_t payload_bytes);
static void try_words(struct attempt *attempt, struct block_code_stats *stats);
static void try_dense(struct attempt *attempt, enum block_mode mode);
static size_t encode_dense(
	const struct attempt *attempt, enum block_mode mode, size_t from, size_t bytes);
static struct span dense_words(
	const struct attempt *attempt, enum block_mode mode, size_t from, size_t bytes);
static bool repeats(const struct attempt *attempt);
static void add_block(const struct attempt *attempt, struct buffer *out);

uint64_t block_code_bytes(enum dtype dtype)
{
	return (uint64_t)block_word_bytes(dtype) * BLOCK_CODE_ELEMENTS;
}

size_t block_code_payload_max(void)
{
	return (size_t)8 * BLOCK_CODE_ELEMENTS;
}

void block_code_encode(struct block_code_context *context, enum dtype dtype, struct span base,
	struct span next, struct buffer *out, struct block_code_stats *stats)
{
	ASSERT(base.len == next.len && next.len <= block_code_bytes(dtype));
	ASSERT(next.len % block_word_bytes(dtype) == 0);
	struct block_code_stats counted = {.elements = next.len / block_word_bytes(dtype)};
	struct attempt attempt = {.context = context, .dtype = dtype, .base = base, .next = next};
	block_context_hash_start(context);
	if (span_equal(base, next))
		block_context_hash_add(context, base, next);
	else
		encode_changed(&attempt, &counted);
	attempt.header.result_hash = block_context_hash_end(context);
	add_block(&attempt, out);
	if (stats == NULL)
		return;
	stats->elements += counted.elements;
	stats->changed += counted.changed;
	for (size_t i = 0; i < sizeof(counted.ulp_steps) / sizeof(*counted.ulp_steps); i++)
		stats->ulp_steps[i] += counted.ulp_steps[i];
}

static void encode_changed(struct attempt *attempt, struct block_code_stats *stats)
{
	const struct ulp_format format = ulp_format_of(attempt->dtype);
	block_context_need(attempt->context, attempt->next.len / block_word_bytes(attempt->dtype),
		attempt->next.len);
	start_raw(attempt);
	if (format.width != 0) {
		try_ulps(attempt, format, stats);
	} else {
		block_context_hash_add(attempt->context, attempt->base, attempt->next);
		try_words(attempt, stats);
	}
	const bool dense = attempt->bytes > attempt->next.len / DENSE;
	if (dense)
		try_dense(attempt, BLOCK_MODE_XOR);
	if (dense || repeats(attempt))
		try_dense(attempt, BLOCK_MODE_PLANES);
}

static void start_raw(struct attempt *attempt)
{
	uint8_t bytes[BLOCK_CODE_HEADER_MAX];
	attempt->header.mode = BLOCK_MODE_RAW;
	attempt->header.payload_bytes = (uint32_t)attempt->next.len;
	attempt->payload = attempt->next;
	attempt->bytes = block_header_write(&attempt->header, bytes) + attempt->next.len;
}

static void try_ulps(
	struct attempt *attempt, struct ulp_format format, struct block_code_stats *stats)
{
	struct ulp_stream stream;
	struct ulp_view view = {.base = attempt->base.data, .format = format};
	class_choice(attempt->base, format, &view.top, &view.classes);
	scan_ulps(attempt, &view, true, &stream);
	count_steps(&stream, stats);
	offer_ulps(attempt, &stream);
	if (view.classes == 1 || ulp_table_count(&stream.table) > FEW_CHANGES)
		return;
	view.classes = 1;
	scan_ulps(attempt, &view, false, &stream);
	offer_ulps(attempt, &stream);
}

/* Finds the changes piece by piece. Hashes each piece too when `hash` is set. */
static void scan_ulps(
	struct attempt *attempt, const struct ulp_view *view, bool hash, struct ulp_stream *stream)
{
	struct block_code_context *const context = attempt->context;
	const size_t width = view->format.width;
	const size_t elements = attempt->next.len / width;
	struct ulp_scan scan = {.keys = context->keys, .steps = context->found_steps};
	for (size_t from = 0; from < elements; from += BLOCK_CONTEXT_PIECE) {
		const size_t to = elements - from < BLOCK_CONTEXT_PIECE
			? elements
			: from + BLOCK_CONTEXT_PIECE;
		context->way->scan(view, attempt->next.data, from, to, &scan);
		if (hash)
			block_context_hash_add(context,
				span_slice(attempt->base, from * width, (to - from) * width),
				span_slice(attempt->next, from * width, (to - from) * width));
	}
	*stream = (struct ulp_stream){.gaps = context->gaps, .steps = context->steps};
	ulp_stream_arrange(&scan, view, stream);
}

static void count_steps(const struct ulp_stream *stream, struct block_code_stats *stats)
{
	enum { MOST = sizeof(stats->ulp_steps) / sizeof(*stats->ulp_steps) };
	const size_t count = ulp_table_count(&stream->table);
	stats->changed += count;
	for (size_t i = 0; i < count; i++) {
		const int length = stream->steps[i] < 0 ? -stream->steps[i] : stream->steps[i];
		stats->ulp_steps[length < MOST ? length - 1 : MOST - 1]++;
	}
}

static void offer_ulps(struct attempt *attempt, const struct ulp_stream *stream)
{
	const struct block_header header = {.mode = BLOCK_MODE_ULP, .table = stream->table};
	struct block_code_context *const context = attempt->context;
	offer(attempt, header,
		ulp_stream_write(stream, context->keys, context->payloads[attempt->spare]));
}

/* Keeps the payload in the spare room when it makes the smallest block so far. */
static void offer(struct attempt *attempt, struct block_header header, size_t payload_bytes)
{
	uint8_t bytes[BLOCK_CODE_HEADER_MAX];
	ASSERT(attempt->spare < 2 && payload_bytes <= attempt->context->payload_room);
	header.payload_bytes = (uint32_t)payload_bytes; /* the hash comes at the end */
	const size_t total = block_header_write(&header, bytes) + payload_bytes;
	if (total >= attempt->bytes || payload_bytes > attempt->next.len)
		return;
	attempt->header = header;
	attempt->bytes = total;
	attempt->payload = span_of(attempt->context->payloads[attempt->spare], payload_bytes);
	attempt->spare = 1 - attempt->spare;
}

static void try_words(struct attempt *attempt, struct block_code_stats *stats)
{
	const struct word_code code = block_context_words(attempt->context, attempt->dtype);
	const struct word_code_changes changes =
		word_code_scan(&code, attempt->base, attempt->next);
	stats->changed += changes.count;
	const struct block_header header = {.mode = BLOCK_MODE_WORDS,
		.changed = (uint32_t)changes.count,
		.parameter = changes.parameter};
	ASSERT(word_code_bound(&code, changes.count) <= attempt->context->payload_room);
	offer(attempt, header,
		word_code_encode(&code, &changes, attempt->context->payloads[attempt->spare]));
}

/* Gives up when a sample from the middle shows that the mode is far from the best so far. */
static void try_dense(struct attempt *attempt, enum block_mode mode)
{
	const size_t len = attempt->next.len;
	const size_t width = block_word_bytes(attempt->dtype);
	const size_t piece = SAMPLE_BYTES / width * width;
	const struct block_header header = {.mode = mode};
	if (len > 2 * piece) {
		const uint64_t size =
			encode_dense(attempt, mode, (len - piece) / 2 / width * width, piece);
		if (size * len / piece > (uint64_t)attempt->bytes * 9 / 8)
			return;
	}
	offer(attempt, header, encode_dense(attempt, mode, 0, len));
}

static size_t encode_dense(
	const struct attempt *attempt, enum block_mode mode, size_t from, size_t bytes)
{
	const struct word_code code = block_context_words(attempt->context, attempt->dtype);
	return plane_code_encode(&code.planes, dense_words(attempt, mode, from, bytes),
		attempt->context->payloads[attempt->spare]);
}

/* Bytes [from, from + bytes) of the input that the dense mode splits into planes. */
static struct span dense_words(
	const struct attempt *attempt, enum block_mode mode, size_t from, size_t bytes)
{
	ASSERT(from + bytes <= attempt->next.len && bytes <= attempt->context->bytes);
	uint8_t *const words = attempt->context->words;
	if (mode == BLOCK_MODE_PLANES)
		return span_slice(attempt->next, from, bytes);
	for (size_t i = 0; i < bytes; i++)
		words[i] = attempt->base.data[from + i] ^ attempt->next.data[from + i];
	return span_of(words, bytes);
}

/* Whether the result alone, without its base, may shrink below the best block so far. Constants and
 * repeats do, weights do not. The plane of lowest bytes of a sample from the middle decides: if
 * that plane does not shrink, no plane does. */
static bool repeats(const struct attempt *attempt)
{
	const size_t width = block_word_bytes(attempt->dtype);
	const size_t piece =
		(attempt->next.len < SAMPLE_BYTES ? attempt->next.len : SAMPLE_BYTES) / width;
	const size_t from = (attempt->next.len / width - piece) / 2;
	uint8_t *const plane = attempt->context->words;
	for (size_t i = 0; i < piece; i++)
		plane[i] = attempt->next.data[(from + i) * width];
	uint8_t *const packed = attempt->context->scratch;
	const size_t size = piece < 2 ? 0
				      : compress_zstd(attempt->context->compressor,
						span_of(plane, piece), packed, piece - 1, 1);
	return size != 0 &&
		(uint64_t)size * attempt->next.len / piece <
		(uint64_t)DENSE * attempt->bytes + attempt->next.len / 64;
}

static void add_block(const struct attempt *attempt, struct buffer *out)
{
	uint8_t header[BLOCK_CODE_HEADER_MAX];
	buffer_add(out, header, block_header_write(&attempt->header, header));
	buffer_add_span(out, attempt->payload);
}
