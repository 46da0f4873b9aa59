/* The Authorization header and the request target, cut at the first line feed: what a stranger may
 * send before anybody knows who he is. Whatever parses points into the input, canonical forms are
 * their own canonical forms, and no signature is right. */
#include "api/auth/signature_v4.h"

#include "api/auth/presigned_v4.h"
#include "api/auth/signature_v2.h"
#include "tests/fuzz/fuzz_exchange.h"

enum { FORM_MAX_BYTES = 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_inside(struct span part, struct span whole)
{
	ASSERT(part.len > 0 && part.data >= whole.data &&
		part.data + part.len <= whole.data + whole.len);
}

static void check_header(struct span header)
{
	struct signature_v4 signature;
	struct error err = {0};
	if (signature_v4_parse(header, &signature, &err) != 0) {
		ASSERT(err.kind == ERROR_AUTH_MALFORMED || err.kind == ERROR_INVALID);
		return;
	}
	check_inside(signature.key_id, header);
	if (signature.region.len > 0)
		check_inside(signature.region, header);
	check_inside(signature.signed_headers, header);
	ASSERT(signature.date.len == 8 && signature.signature.len == 64);
	signature_v4_signs(&signature, span_slice(header, 0, 20));
}

typedef int canonical_fn(struct span text, struct buffer *out, struct error *err);

static void check_canonical(canonical_fn *canonical, struct span text)
{
	struct error err = {0};
	struct buffer once;
	struct buffer twice;
	buffer_init(&once, FORM_MAX_BYTES);
	buffer_init(&twice, FORM_MAX_BYTES);
	if (canonical(text, &once, &err) == 0 && !buffer_failed(&once)) {
		ASSERT(canonical(buffer_span(&once), &twice, &err) == 0);
		ASSERT(span_equal(buffer_span(&once), buffer_span(&twice)));
	}
	buffer_release(&once);
	buffer_release(&twice);
}

static int query_whole(struct span query, struct buffer *out, struct error *err)
{
	return canonical_request_query(query, NULL, out, err);
}

static void check_presigned(struct exchange *exchange)
{
	static const uint8_t key[SHA256_BYTES] = {1};
	struct presigned_v4 presigned;
	struct error err = {0};
	if (presigned_v4_parse(exchange, &presigned, &err) != 0)
		return;
	ASSERT(presigned.expires_s > 0 && presigned.expires_s <= PRESIGNED_V4_EXPIRES_MAX_S);
	presigned_v4_check_time(exchange, &presigned, &err);
	ASSERT(presigned_v4_check(exchange, &presigned, key, &err) == -1);
	ASSERT(err.kind == ERROR_SIGNATURE || err.kind == ERROR_DENIED ||
		err.kind == ERROR_BAD_URI || err.kind == ERROR_TOO_LARGE);
}

static void check_presigned_v2(struct exchange *exchange)
{
	struct signature_v2 signature;
	struct error err = {0};
	if (signature_v2_parse(exchange, &signature, &err) != 0)
		return;
	ASSERT(signature_v2_check(exchange, &signature, span_text("a secret"), &err) == -1);
	ASSERT(err.kind == ERROR_SIGNATURE || err.kind == ERROR_BAD_URI ||
		err.kind == ERROR_TOO_LARGE);
}

static void check_target(struct span target)
{
	struct clock_fake clock;
	const struct api_context context = {.clock = &clock.source, .sigv2 = true};
	clock_fake_init(&clock, 1000);
	const ptrdiff_t mark = span_find(target, '?');
	struct exchange exchange = {.ops = &fuzz_exchange_ops,
		.context = &context,
		.arena = arena_new(ARENA_BYTES),
		.method = METHOD_GET};
	exchange.path = span_slice(target, 0, mark < 0 ? target.len : (size_t)mark);
	exchange.query = span_slice(target, exchange.path.len + 1, target.len);
	if (presigned_v4_is_present(&exchange))
		check_presigned(&exchange);
	if (signature_v2_is_present(&exchange))
		check_presigned_v2(&exchange);
	arena_free(exchange.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct span rest = span_of(data, len);
	struct span header = {NULL, 0};
	struct buffer value;
	if (!span_split(&rest, '\n', &header))
		return 0;
	check_header(header);
	check_canonical(canonical_request_path, rest);
	check_canonical(query_whole, rest);
	check_target(rest);
	buffer_init(&value, FORM_MAX_BYTES);
	canonical_request_value(header, &value);
	ASSERT(value.len <= header.len);
	buffer_release(&value);
	return 0;
}
