/* The signed bodies are those of Amazon's published examples: 66560 times 'a' in chunks of 65536
 * and 1024 bytes. */
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include <string.h>

#include "api/auth/signing_key.h"
#include "api/exchange/aws_chunked.h"
#include "api/exchange/chunk_signature.h"
#include "api/exchange/payload.h"

enum { FIRST_BYTES = 65536, SECOND_BYTES = 1024, WHOLE_BYTES = FIRST_BYTES + SECOND_BYTES };

struct probe { /* the inner sink */
	struct body_sink sink;
	struct buffer taken;
	unsigned busy; /* how often it answers "wait" before each write */
	unsigned waited;
	int finished;
	int aborted;
};

static enum sink_result probe_write(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct probe *const probe = (struct probe *)sink;
	(void)err;
	if (probe->waited < probe->busy) {
		probe->waited++;
		return SINK_WAIT;
	}
	probe->waited = 0;
	buffer_add_span(&probe->taken, bytes);
	return SINK_TAKEN;
}

static int probe_finish(struct body_sink *sink, struct error *err)
{
	(void)err;
	((struct probe *)sink)->finished++;
	return 0;
}

static void probe_abort(struct body_sink *sink)
{
	((struct probe *)sink)->aborted++;
}

struct bench {
	struct fake_exchange *fake;
	struct probe probe;
	struct body_sink *filter;
};

struct kind { /* a kind of body */
	enum payload_rule rule;
	const char *seed;
	enum checksum_algorithm trailer;
	bool has_length;
	uint64_t length;
};

static void open_bench(struct bench *bench, const struct kind *kind)
{
	bench->fake = fake_exchange_new(NULL, METHOD_PUT, "/examplebucket/chunkObject.txt");
	struct exchange *const exchange = &bench->fake->exchange;
	exchange->payload_rule = (int)kind->rule;
	exchange->has_body_length = kind->has_length;
	exchange->body_length = kind->length;
	exchange->trailer_algorithm = kind->trailer;
	if (kind->seed != NULL) {
		struct chunk_signature *const seed = arena_take(exchange->arena, sizeof *seed);
		signing_key_derive(span_text("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
			span_text("20130524"), span_text("us-east-1"), seed->key);
		seed->date = span_text("20130524T000000Z");
		seed->scope = span_text("20130524/us-east-1/s3/aws4_request");
		memcpy(seed->previous, kind->seed, SIGNATURE_V4_CHARACTERS);
		exchange->chunk_seed = seed;
	}
	bench->probe = (struct probe){.sink = {probe_write, probe_finish, probe_abort}};
	buffer_init(&bench->probe.taken, 1000000);
	bench->filter = aws_chunked_new(exchange, &bench->probe.sink);
}

static void close_bench(struct bench *bench)
{
	ck_assert_int_eq(bench->probe.finished + bench->probe.aborted, 1);
	buffer_release(&bench->probe.taken);
	fake_exchange_free(bench->fake);
}

/* Writes as a transport does: bytes that were not taken come again, followed by `more` bytes that
 * have arrived meanwhile. */
static enum sink_result push(struct bench *bench, struct span bytes, struct error *err)
{
	enum sink_result result;
	for (int patience = 0;
		(result = bench->filter->write(bench->filter, bytes, err)) == SINK_WAIT; patience++)
		ck_assert_int_lt(patience, 1000);
	return result;
}

static int end(struct bench *bench, enum sink_result result, struct error *err)
{
	if (result == SINK_TAKEN && bench->filter->finish(bench->filter, err) == 0)
		return 0;
	bench->filter->abort(bench->filter);
	return -1;
}

/* Sends the body in two pieces, cut at `cut`. */
static int run_split(struct bench *bench, const struct kind *kind, struct span body, size_t cut,
	unsigned busy, struct error *err)
{
	open_bench(bench, kind);
	bench->probe.busy = busy;
	enum sink_result result = push(bench, span_slice(body, 0, cut), err);
	if (result == SINK_TAKEN)
		result = push(bench, span_slice(body, cut, body.len), err);
	return end(bench, result, err);
}

static int run(const struct kind *kind, struct span body, struct error *err)
{
	struct bench bench;
	const int outcome = run_split(&bench, kind, body, body.len, 0, err);
	close_bench(&bench);
	return outcome;
}

#define TRAILER_SIGNATURE \
	"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
static const struct vector {
	struct kind kind;
	const char *first;
	const char *second;
	const char *last;
	const char *trailer;
} vectors[] = {
	{{PAYLOAD_CHUNKED_SIGNED,
		 "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", CHECKSUM_NONE,
		 true, WHOLE_BYTES},
		"10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n",
		"\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n",
		"\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n",
		"\r\n"},
	{{PAYLOAD_CHUNKED_SIGNED_TRAILER,
		 "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
		 CHECKSUM_CRC32C, true, WHOLE_BYTES},
		"10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n",
		"\r\n400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n",
		"\r\n0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n",
		"x-amz-checksum-crc32c:sOO8/Q==\r\n" TRAILER_SIGNATURE "\r\n\r\n"},
	{{PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32C, true, WHOLE_BYTES}, "10000\r\n", "\r\n0400\r\n",
		"\r\n0\r\n", "x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"},
	{{PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0}, "00010000;a=b\r\n", "\r\n400\r\n",
		"\r\n0\r\n", "\r\n"},
};

static void frame(const struct vector *vector, struct buffer *out)
{
	static char bytes[FIRST_BYTES];
	memset(bytes, 'a', sizeof bytes);
	buffer_init(out, 200000);
	buffer_add_text(out, vector->first);
	buffer_add(out, bytes, FIRST_BYTES);
	buffer_add_text(out, vector->second);
	buffer_add(out, bytes, SECOND_BYTES);
	buffer_add_text(out, vector->last);
	buffer_add_text(out, vector->trailer);
}

static void check_good(struct bench *bench, const struct vector *vector)
{
	static char whole[WHOLE_BYTES];
	memset(whole, 'a', sizeof whole);
	ck_assert_uint_eq(bench->probe.taken.len, WHOLE_BYTES);
	ck_assert_mem_eq(bench->probe.taken.data, whole, WHOLE_BYTES);
	const struct checksum *const trailer = &bench->fake->exchange.trailer;
	ck_assert_int_eq(trailer->algorithm, vector->kind.trailer);
	if (vector->kind.trailer != CHECKSUM_NONE)
		ck_assert_mem_eq(trailer->bytes, "\xb0\xe3\xbc\xfd", 4);
}

START_TEST(published_bodies_pass_cut_anywhere_in_their_framing)
{
	const struct vector *const vector = &vectors[_i];
	struct buffer body;
	frame(vector, &body);
	const size_t second_at = strlen(vector->first) + FIRST_BYTES;
	for (size_t cut = 0; cut <= body.len; cut++) {
		if (cut == 200)
			cut = second_at - 2;
		if (cut == second_at + 200)
			cut = second_at + SECOND_BYTES;
		struct bench bench;
		struct error err = {0};
		ck_assert_msg(run_split(&bench, &vector->kind, buffer_span(&body), cut,
				      (unsigned)(cut % 3), &err) == 0,
			"cut at %zu: %s", cut, err.text);
		check_good(&bench, vector);
		close_bench(&bench);
	}
	buffer_release(&body);
}
END_TEST

START_TEST(published_bodies_pass_byte_by_byte)
{
	const struct vector *const vector = &vectors[_i];
	struct bench bench;
	struct buffer body;
	struct error err = {0};
	frame(vector, &body);
	open_bench(&bench, &vector->kind);
	bench.probe.busy = 1;
	for (size_t i = 0; i < body.len; i++)
		ck_assert_int_eq(
			push(&bench, span_slice(buffer_span(&body), i, 1), &err), SINK_TAKEN);
	ck_assert_msg(end(&bench, SINK_TAKEN, &err) == 0, "%s", err.text);
	check_good(&bench, vector);
	close_bench(&bench);
	buffer_release(&body);
}
END_TEST

START_TEST(a_waiting_sink_gets_each_byte_once_though_more_arrived_meanwhile)
{
	static const struct kind kind = {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0};
	static const char body[] = "3\r\nabc\r\n0\r\n\r\n";
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, &kind);
	bench.probe.busy = 2;
	ck_assert_int_eq(bench.filter->write(bench.filter, span_of(body, 5), &err), SINK_WAIT);
	ck_assert_int_eq(bench.filter->write(bench.filter, span_of(body, 7), &err), SINK_WAIT);
	ck_assert_int_eq(bench.filter->write(bench.filter, span_text(body), &err), SINK_TAKEN);
	ck_assert_int_eq(end(&bench, SINK_TAKEN, &err), 0);
	ck_assert_str_eq(buffer_text(&bench.probe.taken), "abc");
	close_bench(&bench);
}
END_TEST

/* A signed body with a changed byte is never accepted, unless only the case of a hexadecimal digit
 * has changed. */
START_TEST(a_changed_byte_of_a_signed_body_is_noticed)
{
	const struct vector *const vector = &vectors[_i];
	struct buffer body;
	frame(vector, &body);
	for (size_t at = 0; at < body.len; at++) {
		if (at == 120)
			at = strlen(vector->first) + FIRST_BYTES - 1;
		if (at == strlen(vector->first) + FIRST_BYTES + 100)
			at = body.len - strlen(vector->last) - strlen(vector->trailer) - 1;
		struct error err = {0};
		body.data[at] ^= 1;
		const bool final_break =
			at + 2 >= body.len; /* the final line break may be missing */
		ck_assert_msg(run(&vector->kind, buffer_span(&body), &err) == -1 || final_break,
			"byte %zu", at);
		body.data[at] ^= 1;
	}
	buffer_release(&body);
}
END_TEST

static const struct {
	const char *name;
	struct kind kind;
	const char *body;
	int outcome;
	enum error_kind error;
} small[] = {
	{"plain", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "3\r\nabc\r\n0\r\n\r\n", 0,
		ERROR_NONE},
	{"empty", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 0}, "0\r\n\r\n", 0, ERROR_NONE},
	{"hex in capitals, zeros before", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 10},
		"000000000000000000000A\r\n0123456789\r\n0\r\n\r\n", 0, ERROR_NONE},
	{"content like framing", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 5},
		"5\r\n0\r\n\r\n\r\n0\r\n\r\n", 0, ERROR_NONE},
	{"no final line break", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3},
		"3\r\nabc\r\n0\r\n", 0, ERROR_NONE},
	{"trailer", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n", 0, ERROR_NONE},
	{"trailer in capitals with a space", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nX-Amz-Checksum-CRC32: NSRBwg==\r\n\r\n", 0, ERROR_NONE},
	{"trailer without final line break", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n", 0, ERROR_NONE},
	{"trailer at the very end", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==", 0, ERROR_NONE},
	{"trailer ended by LF", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\n\r\n", 0, ERROR_NONE},

	{"nothing", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 0}, "", -1, ERROR_INCOMPLETE_BODY},
	{"no last chunk", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "3\r\nabc\r\n", -1,
		ERROR_INCOMPLETE_BODY},
	{"cut in the data", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "3\r\nab", -1,
		ERROR_INCOMPLETE_BODY},
	{"cut in the last line", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "3\r\nabc\r\n0\r",
		-1, ERROR_INCOMPLETE_BODY},
	{"less than declared", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 4},
		"3\r\nabc\r\n0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"more than declared", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 2},
		"3\r\nabc\r\n0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"raw bytes", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 11}, "hello world", -1,
		ERROR_INCOMPLETE_BODY},
	{"bare LF", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "3\nabc\r\n0\r\n\r\n", -1,
		ERROR_INCOMPLETE_BODY},
	{"no CRLF behind the data", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3},
		"3\r\nabc0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"LF behind the data", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3},
		"3\r\nabc\n0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"no size", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3}, "\r\nabc\r\n0\r\n\r\n", -1,
		ERROR_INCOMPLETE_BODY},
	{"negative size", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0},
		"-3\r\nabc\r\n0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"size over 64 bits", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0},
		"10000000000000003\r\nabc\r\n0\r\n\r\n", -1, ERROR_INCOMPLETE_BODY},
	{"size over the limit", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0}, "140000001\r\n",
		-1, ERROR_TOO_LARGE},
	{"bytes behind the end", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3},
		"3\r\nabc\r\n0\r\n\r\nx", -1, ERROR_INCOMPLETE_BODY},
	{"small chunk before another", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 6},
		"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", -1, ERROR_CHUNK_SIZE},
	{"trailer missing", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\n\r\n", -1, ERROR_MALFORMED_TRAILER},
	{"trailer not announced", {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n", -1,
		ERROR_MALFORMED_TRAILER},
	{"another trailer than announced", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32C, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n", -1,
		ERROR_MALFORMED_TRAILER},
	{"trailer twice", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n",
		-1, ERROR_MALFORMED_TRAILER},
	{"trailer without colon", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32\r\n\r\n", -1, ERROR_MALFORMED_TRAILER},
	{"trailer's signature where none may be", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n" TRAILER_SIGNATURE "\r\n\r\n",
		-1, ERROR_MALFORMED_TRAILER},
	{"trailer no base64", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:bad\r\n\r\n", -1, ERROR_INVALID_REQUEST},
	{"trailer of another length", {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, true, 3},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwcI=\r\n\r\n", -1,
		ERROR_INVALID_REQUEST},
};

START_TEST(small_bodies)
{
	for (size_t cut = 0; cut <= strlen(small[_i].body); cut++) {
		struct bench bench;
		struct error err = {0};
		const int outcome = run_split(&bench, &small[_i].kind, span_text(small[_i].body),
			cut, (unsigned)(cut % 2), &err);
		ck_assert_msg(outcome == small[_i].outcome && err.kind == small[_i].error,
			"%s, cut at %zu: %d, %s %s", small[_i].name, cut, outcome,
			error_kind_name(err.kind), err.text);
		ck_assert_int_eq(bench.probe.finished, outcome == 0);
		close_bench(&bench);
	}
}
END_TEST

START_TEST(a_small_chunk_is_named)
{
	static const struct kind kind = {PAYLOAD_CHUNKED, NULL, CHECKSUM_NONE, false, 0};
	struct bench bench;
	struct error err = {0};
	ck_assert_int_eq(
		run_split(&bench, &kind, span_text("3\r\nabc\r\n2000\r\n"), 4, 0, &err), -1);
	const struct exchange *const exchange = &bench.fake->exchange;
	ck_assert_uint_eq(exchange->error_field_count, 2);
	ck_assert_str_eq(exchange->error_fields[0].name, "Chunk");
	ck_assert(span_equal_text(exchange->error_fields[0].value, "1"));
	ck_assert_str_eq(exchange->error_fields[1].name, "BadChunkSize");
	ck_assert(span_equal_text(exchange->error_fields[1].value, "3"));
	close_bench(&bench);
}
END_TEST

START_TEST(endless_lines_are_cut_off)
{
	static const struct kind kind = {PAYLOAD_CHUNKED, NULL, CHECKSUM_CRC32, false, 0};
	static const char *const starts[] = {"", "0;x=", "0\r\nx-amz-checksum-crc32:", "0\r\n"};
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, &kind);
	enum sink_result result = push(&bench, span_text(starts[_i]), &err);
	size_t sent = 0;
	for (; result == SINK_TAKEN && sent < 100000; sent++)
		result = push(&bench, span_of("0", 1), &err);
	ck_assert_uint_le(sent, AWS_CHUNKED_LINE_MAX_BYTES + 1);
	ck_assert_int_eq(end(&bench, result, &err), -1);
	close_bench(&bench);
}
END_TEST

/* From older SDKs: the trailer line ends with LF, and an empty line comes before its signature. */
START_TEST(a_gap_before_the_trailer_signature_is_bridged)
{
	static const char *const trailers[] = {
		"x-amz-checksum-crc32c:sOO8/Q==\n\r\n" TRAILER_SIGNATURE "\r\n\r\n",
		"x-amz-checksum-crc32c:sOO8/Q==\n" TRAILER_SIGNATURE "\r\n",
		"x-amz-checksum-crc32c:sOO8/Q==\r\n" TRAILER_SIGNATURE};
	struct vector vector = vectors[1];
	struct buffer body;
	struct error err = {0};
	vector.trailer = trailers[_i];
	frame(&vector, &body);
	ck_assert_msg(run(&vector.kind, buffer_span(&body), &err) == 0, "%s", err.text);
	buffer_release(&body);
}
END_TEST

START_TEST(a_trailer_without_its_signature_is_refused)
{
	static const char *const trailers[] = {"x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n", "\r\n", "",
		"x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n\r\n"};
	struct vector vector = vectors[1];
	struct buffer body;
	struct error err = {0};
	vector.trailer = trailers[_i];
	frame(&vector, &body);
	ck_assert_int_eq(run(&vector.kind, buffer_span(&body), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_TRAILER);
	buffer_release(&body);
}
END_TEST

START_TEST(unsigned_chunks_do_not_pass_as_signed_ones)
{
	struct vector vector = vectors[2];
	struct buffer body;
	struct error err = {0};
	frame(&vector, &body);
	ck_assert_int_eq(run(&vectors[0].kind, buffer_span(&body), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INCOMPLETE_BODY);
	buffer_release(&body);
}
END_TEST

Suite *test_aws_chunked_suite(void);

Suite *test_aws_chunked_suite(void)
{
	Suite *const suite = suite_create("aws_chunked");
	TCase *const tcase = tcase_create("aws_chunked");
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, published_bodies_pass_cut_anywhere_in_their_framing, 0, 4);
	tcase_add_loop_test(tcase, published_bodies_pass_byte_by_byte, 0, 4);
	tcase_add_test(tcase, a_waiting_sink_gets_each_byte_once_though_more_arrived_meanwhile);
	tcase_add_loop_test(tcase, a_changed_byte_of_a_signed_body_is_noticed, 0, 2);
	tcase_add_loop_test(tcase, small_bodies, 0, sizeof small / sizeof small[0]);
	tcase_add_test(tcase, a_small_chunk_is_named);
	tcase_add_loop_test(tcase, endless_lines_are_cut_off, 0, 4);
	tcase_add_loop_test(tcase, a_gap_before_the_trailer_signature_is_bridged, 0, 3);
	tcase_add_loop_test(tcase, a_trailer_without_its_signature_is_refused, 0, 4);
	tcase_add_test(tcase, unsigned_chunks_do_not_pass_as_signed_ones);
	suite_add_tcase(suite, tcase);
	return suite;
}
