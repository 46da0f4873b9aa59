/* An aws-chunked body without signatures, against a reader of the whole body that knows nothing of
 * pieces. The first bytes say what is announced and how the body is cut; the inner sink says "wait"
 * now and then. Both must agree on content, trailer and acceptance. */
#include "api/exchange/aws_chunked.h"

#include <stdlib.h>
#include <string.h>

#include "api/exchange/payload.h"
#include "tests/fuzz/fuzz_exchange.h"

enum { LIMIT_BYTES = 1024 * 1024, ARENA_BYTES = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct probe {
	struct body_sink sink;
	struct buffer taken;
	unsigned rhythm; /* says "wait" before every n-th write; 0: never */
	unsigned writes;
	bool finished;
	bool aborted;
};

static enum sink_result probe_write(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct probe *const probe = (struct probe *)sink;
	(void)err;
	if (probe->rhythm > 0 && probe->writes++ % (probe->rhythm + 1) == 0)
		return SINK_WAIT;
	buffer_add_span(&probe->taken, bytes);
	return SINK_TAKEN;
}

static int probe_finish(struct body_sink *sink, struct error *err)
{
	(void)err;
	((struct probe *)sink)->finished = true;
	return 0;
}

static void probe_abort(struct body_sink *sink)
{
	((struct probe *)sink)->aborted = true;
}

/* The reference. */

struct reading {
	struct span rest;
	struct buffer content;
	struct checksum trailer;
};

static bool read_size(struct span digits, uint64_t *out)
{
	char text[2048];
	char *stop;
	while (digits.len > 1 && digits.data[0] == '0')
		digits = span_slice(digits, 1, digits.len);
	if (digits.len == 0 || digits.len > 15 || span_find(digits, '\0') >= 0)
		return false;
	memcpy(text, digits.data, digits.len);
	text[digits.len] = '\0';
	if (strspn(text, "0123456789abcdefABCDEF") != digits.len)
		return false;
	*out = strtoull(text, &stop, 16);
	return *stop == '\0';
}

static bool read_chunks(struct reading *reading, bool has_length, uint64_t length)
{
	uint64_t size_before = 0;
	for (;;) {
		const ptrdiff_t feed = span_find(reading->rest, '\n');
		uint64_t size;
		if (feed < 1 || feed > AWS_CHUNKED_LINE_MAX_BYTES ||
			reading->rest.data[feed - 1] != '\r')
			return false;
		struct span line = span_slice(reading->rest, 0, (size_t)feed - 1);
		const ptrdiff_t semicolon = span_find(line, ';');
		if (!read_size(span_slice(line, 0, semicolon < 0 ? line.len : (size_t)semicolon),
			    &size))
			return false;
		reading->rest = span_slice(reading->rest, (size_t)feed + 1, reading->rest.len);
		if (size == 0)
			return !has_length || reading->content.len == length;
		if (size_before > 0 && size_before < AWS_CHUNKED_CHUNK_LEAST_BYTES)
			return false;
		if (size > reading->rest.len ||
			size > (has_length ? length : LIMIT_BYTES) - reading->content.len)
			return false;
		buffer_add_span(&reading->content, span_slice(reading->rest, 0, (size_t)size));
		reading->rest = span_slice(reading->rest, (size_t)size, reading->rest.len);
		if (reading->rest.len < 2 || reading->rest.data[0] != '\r' ||
			reading->rest.data[1] != '\n')
			return false;
		reading->rest = span_slice(reading->rest, 2, reading->rest.len);
		size_before = size;
	}
}

static bool read_trailer(struct reading *reading, enum checksum_algorithm announced)
{
	struct span line;
	bool ended = false;
	while (!ended && span_split(&reading->rest, '\n', &line)) {
		if (line.len > AWS_CHUNKED_LINE_MAX_BYTES)
			return false;
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line = span_slice(line, 0, line.len - 1);
		ended = line.len == 0;
		if (ended)
			break;
		const ptrdiff_t colon = span_find(line, ':');
		if (colon < 0 || announced == CHECKSUM_NONE ||
			reading->trailer.algorithm != CHECKSUM_NONE)
			return false;
		if (checksum_by_header(span_slice(line, 0, (size_t)colon)) != announced ||
			!checksum_parse(announced,
				span_trim(span_slice(line, (size_t)colon + 1, line.len)),
				&reading->trailer))
			return false;
	}
	return reading->rest.len == 0 &&
		(announced == CHECKSUM_NONE) == (reading->trailer.algorithm == CHECKSUM_NONE);
}

/* The filter, in pieces. */
static bool run(
	struct exchange *exchange, struct probe *probe, struct span body, const uint8_t cuts[4])
{
	struct body_sink *const filter = aws_chunked_new(exchange, &probe->sink);
	struct error err = {0};
	enum sink_result result = SINK_TAKEN;
	for (size_t at = 0, i = 0; at < body.len && result == SINK_TAKEN; i++) {
		const size_t step = (size_t)cuts[i % 4] + 1;
		struct span piece = span_slice(body, at, step);
		while ((result = filter->write(filter, piece, &err)) == SINK_WAIT)
			if (probe->writes % 2 == 0) /* more has come meanwhile */
				piece = span_slice(body, at, piece.len + 3);
		at += piece.len;
	}
	const bool good = result == SINK_TAKEN && filter->finish(filter, &err) == 0;
	if (!good)
		filter->abort(filter);
	ASSERT(good == (err.kind == ERROR_NONE) && probe->finished == good &&
		probe->aborted == !good);
	return good;
}

static void compare(struct exchange *exchange, const uint8_t head[8], struct span body)
{
	struct reading reading = {.rest = body};
	struct probe probe = {
		.sink = {probe_write, probe_finish, probe_abort}, .rhythm = head[7] % 4};
	buffer_init(&reading.content, 2 * LIMIT_BYTES);
	buffer_init(&probe.taken, 2 * LIMIT_BYTES);
	const bool expected =
		read_chunks(&reading, exchange->has_body_length, exchange->body_length) &&
		read_trailer(&reading, exchange->trailer_algorithm);
	const bool good = run(exchange, &probe, body, head + 3);
	ASSERT(good == expected);
	if (good) {
		ASSERT(span_equal(buffer_span(&probe.taken), buffer_span(&reading.content)));
		ASSERT(exchange->trailer.algorithm == reading.trailer.algorithm &&
			exchange->trailer.len == reading.trailer.len);
		ASSERT(memcmp(exchange->trailer.bytes, reading.trailer.bytes,
			       reading.trailer.len) == 0);
	}
	buffer_release(&reading.content);
	buffer_release(&probe.taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct api_context context = {.put_max_bytes = LIMIT_BYTES};
	if (len < 8)
		return 0;
	struct exchange exchange = {.ops = &fuzz_exchange_ops,
		.context = &context,
		.arena = arena_new(ARENA_BYTES),
		.payload_rule = PAYLOAD_CHUNKED};
	exchange.trailer_algorithm = (enum checksum_algorithm)(data[0] % CHECKSUM_ALGORITHMS);
	exchange.has_body_length = data[1] != 0xff;
	exchange.body_length =
		exchange.has_body_length ? (uint64_t)data[1] | (uint64_t)data[2] << 8 : 0;
	compare(&exchange, data, span_of(data + 8, len - 8));
	arena_free(exchange.arena);
	return 0;
}
