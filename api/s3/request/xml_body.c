#include "api/s3/request/xml_body.h"

#include <string.h>

#include "api/s3/request/checksum_headers.h"

struct digests {
	struct checksum_headers checksum;
	struct checksum md5; /* CHECKSUM_NONE: not sent */
};

static int read_digests(struct exchange *exchange, struct digests *out, struct error *err);
static bool matches(struct exchange *exchange, struct span body, const struct checksum *expected,
	enum next *out_next);

enum next xml_body_accept(struct exchange *exchange, size_t cap_bytes)
{
	struct digests digests;
	struct error err = {0};
	ASSERT(cap_bytes > 0);
	return read_digests(exchange, &digests, &err) == 0
		? exchange_accept_small(exchange, cap_bytes)
		: exchange_fail(exchange, &err);
}

bool xml_body_check(struct exchange *exchange, struct span *out_xml, enum next *out_next)
{
	struct digests digests;
	struct error err = {0};
	*out_xml = exchange_body(exchange);
	if (read_digests(exchange, &digests, &err) != 0) {
		*out_next = exchange_fail(exchange, &err);
		return false;
	}
	return matches(exchange, *out_xml, &digests.md5, out_next) &&
		matches(exchange, *out_xml, checksum_headers_expected(exchange, &digests.checksum),
			out_next);
}

static int read_digests(struct exchange *exchange, struct digests *out, struct error *err)
{
	bool has_md5 = false;
	*out = (struct digests){.md5 = {.len = (uint8_t)checksum_length(CHECKSUM_MD5)}};
	if (checksum_headers_read(exchange, CHECKSUM_OF_BODY, &out->checksum, err) != 0 ||
		checksum_headers_md5(exchange, &has_md5, out->md5.bytes, err) != 0)
		return -1;
	if (has_md5)
		out->md5.algorithm = CHECKSUM_MD5;
	return 0;
}

static bool matches(struct exchange *exchange, struct span body, const struct checksum *expected,
	enum next *out_next)
{
	struct checksum actual;
	if (expected == NULL || expected->algorithm == CHECKSUM_NONE)
		return true;
	checksum_of(expected->algorithm, body, &actual);
	if (checksum_equal(expected, &actual))
		return true;
	*out_next = checksum_headers_mismatch(exchange, expected, &actual, 0);
	return false;
}
