/* The Authorization header and the request target, cut at the first line feed: what a stranger may send before anybody knows who he is. Whatever
 * parses points into the input, and canonical forms are their own canonical forms. */
#include "api/signature_v4.h"

#include "base/error.h"

enum { FORM_MAX_BYTES = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_inside(struct span part, struct span whole)
{
	ASSERT(part.len > 0 && part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
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
	buffer_init(&value, FORM_MAX_BYTES);
	canonical_request_value(header, &value);
	ASSERT(value.len <= header.len);
	buffer_release(&value);
	return 0;
}
