/* Any bytes as the body of an S3 service's answer: a refusal, an element that is looked for, a page
 * of a listing. The first byte chooses the status of the refusal. */
#include <string.h>

#include "base/net/s3/s3_answer.h"
#include "base/net/s3/s3_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(int status, struct span xml)
{
	struct s3_answer answer = {.response.status = status};
	struct error err = {0};
	buffer_init(&answer.response.body, xml.len);
	buffer_add_span(&answer.response.body, xml);
	s3_answer_parse(&answer);
	ASSERT(answer.is_error || (answer.code[0] == '\0' && answer.message[0] == '\0'));
	for (const char *at = answer.message; *at != '\0'; at++)
		ASSERT(*at >= ' ' && *at < 0x7f);
	ASSERT(s3_answer_refuse(&answer, "GET", "/b/k", &err) == -1 && err.kind != ERROR_NONE);
	ASSERT(!s3_answer_is_temporary(&answer) || err.kind == ERROR_BUSY);
	buffer_release(&answer.response.body);
}

static void check_search(struct span xml)
{
	char id[32] = "";
	if (s3_answer_find(xml, "InitiateMultipartUploadResult", "UploadId", id, sizeof(id)))
		ASSERT(id[0] != '\0' && memchr(id, '\0', sizeof(id)) != NULL);
}

static void check_page(enum s3_page_kind kind, struct span xml)
{
	struct s3_page page;
	struct error err = {0};
	if (s3_page_parse(&page, kind, xml, &err) == 0) {
		ASSERT(!page.is_truncated || page.marker[0] != '\0');
		for (size_t i = 0; i < page.count; i++) {
			ASSERT(strlen(s3_page_text(&page, page.entries[i].key)) < page.texts.len);
			ASSERT(strlen(s3_page_text(&page, page.entries[i].id)) < page.texts.len);
		}
	} else {
		ASSERT(err.kind == ERROR_UPSTREAM);
	}
	s3_page_release(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int statuses[] = {200, 400, 401, 403, 404, 409, 429, 500, 503};
	if (size == 0)
		return 0;
	const struct span xml = span_of(data + 1, size - 1);
	check_refusal(statuses[data[0] % (sizeof(statuses) / sizeof(statuses[0]))], xml);
	check_search(xml);
	check_page(S3_PAGE_OBJECTS, xml);
	check_page(S3_PAGE_UPLOADS, xml);
	return 0;
}
