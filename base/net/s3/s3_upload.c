#include "base/net/s3/s3_upload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/net/s3/s3_client_internal.h"

enum { QUERY_MAX_BYTES = 4 * 1024, ETAG_ELEMENT_MAX_BYTES = 300 };

static int send_with_query(struct s3_client *client, const char *name, struct buffer *query,
	struct s3_request *request, struct s3_answer *answer, struct error *err);
static bool is_plain(const char *etag);
static void make_list(const struct s3_etag *etags, unsigned count, struct buffer *out);
static int send_to_upload(struct s3_client *client, const struct s3_upload *upload,
	const char *front, struct s3_request *request, struct s3_answer *answer, struct error *err);
static int find_out(struct s3_client *client, const struct s3_upload *upload, uint64_t bytes,
	const struct error *why, struct error *err);
static int check_known(struct s3_client *client, const struct s3_upload *upload, struct error *err);

int s3_upload_begin(struct s3_client *client, const char *name, char out_id[S3_UPLOAD_ID_BYTES],
	struct error *err)
{
	struct s3_request request = {.method = "POST", .may_hide_error = true};
	struct s3_answer answer;
	struct buffer query;
	buffer_init(&query, QUERY_MAX_BYTES);
	buffer_add_text(&query, "?uploads=");
	int result = send_with_query(client, name, &query, &request, &answer, err);
	if (result == 0 &&
		!s3_answer_find(buffer_span(&answer.response.body), "InitiateMultipartUploadResult",
			"UploadId", out_id, S3_UPLOAD_ID_BYTES))
		result = error_set(err, ERROR_UPSTREAM,
			"The S3 service began an upload of %.200s without an id of it.", name);
	http_response_release(&answer.response);
	buffer_release(&query);
	return result;
}

/* The parameters of a query stand in the order of their
 * names and each has a "=", as a signature needs them. */
static int send_with_query(struct s3_client *client, const char *name, struct buffer *query,
	struct s3_request *request, struct s3_answer *answer, struct error *err)
{
	struct buffer target;
	int result = -1;
	*answer = (struct s3_answer){.response.status = 0};
	buffer_init(&target, 0);
	if (buffer_check(query, "the query of a request", err) == 0 &&
		s3_client_target(client, name, buffer_text(query), &target, err) == 0) {
		request->target = buffer_text(&target);
		result = s3_sender_send(client, request, answer, err);
	}
	buffer_release(&target);
	return result;
}

int s3_upload_part(struct s3_client *client, const struct s3_upload *upload, unsigned number,
	struct span bytes, struct s3_etag *out_etag, struct error *err)
{
	struct s3_request request = {.method = "PUT", .body = bytes};
	struct s3_answer answer;
	struct buffer query;
	ASSERT(number >= 1 && number <= S3_PARTS_MAX);
	buffer_init(&query, QUERY_MAX_BYTES);
	buffer_format(&query, "?partNumber=%u&uploadId=", number);
	encode_percent(span_text(upload->id), false, &query);
	int result = send_with_query(client, upload->name, &query, &request, &answer, err);
	if (result == 0 && !is_plain(answer.response.etag))
		result = error_set(err, ERROR_UPSTREAM,
			"The S3 service took part %u of %.200s without an entity tag that can be used.",
			number, upload->name);
	if (result == 0)
		snprintf(out_etag->text, sizeof(out_etag->text), "%s", answer.response.etag);
	http_response_release(&answer.response);
	buffer_release(&query);
	return result;
}

/* It goes into XML. */
static bool is_plain(const char *etag)
{
	for (const char *at = etag; *at != '\0'; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr("<>&\"'", *at) != NULL)
			return false;
	return etag[0] != '\0';
}

int s3_upload_complete(struct s3_client *client, const struct s3_upload *upload,
	const struct s3_etag *etags, unsigned count, uint64_t bytes, struct error *err)
{
	struct s3_request request = {.method = "POST", .may_hide_error = true};
	struct s3_answer answer;
	struct error why;
	struct buffer list;
	ASSERT(count >= 1 && count <= S3_PARTS_MAX);
	make_list(etags, count, &list);
	request.body = buffer_span(&list);
	int result = send_to_upload(client, upload, "?uploadId=", &request, &answer, &why);
	if (result == 0 &&
		!s3_answer_has_root(
			buffer_span(&answer.response.body), "CompleteMultipartUploadResult"))
		result = error_set(&why, ERROR_UPSTREAM,
			"The completion of the upload of %.200s was answered with neither a result nor an error.",
			upload->name);
	const bool is_unclear = strcmp(answer.code, "NoSuchUpload") == 0 ||
		answer.response.status == 200 || answer.response.status >= 500;
	if (result != 0 && is_unclear)
		result = find_out(client, upload, bytes, &why, err);
	else if (result != 0)
		*err = why;
	http_response_release(&answer.response);
	buffer_release(&list);
	return result;
}

static void make_list(const struct s3_etag *etags, unsigned count, struct buffer *out)
{
	buffer_init(out, 100 + (size_t)count * ETAG_ELEMENT_MAX_BYTES);
	buffer_add_text(out, "<CompleteMultipartUpload>");
	for (unsigned i = 0; i < count; i++)
		buffer_format(out,
			"<Part><PartNumber>%u</PartNumber><ETag>&quot;%s&quot;</ETag></Part>",
			i + 1, etags[i].text);
	buffer_add_text(out, "</CompleteMultipartUpload>");
	ASSERT(!buffer_failed(out));
}

/* `front` ends with the name of the parameter that is the id. */
static int send_to_upload(struct s3_client *client, const struct s3_upload *upload,
	const char *front, struct s3_request *request, struct s3_answer *answer, struct error *err)
{
	struct buffer query;
	buffer_init(&query, QUERY_MAX_BYTES);
	buffer_add_text(&query, front);
	encode_percent(span_text(upload->id), false, &query);
	const int result = send_with_query(client, upload->name, &query, request, answer, err);
	buffer_release(&query);
	return result;
}

/* The service may have completed the upload and the answer was lost: then the object is there. Or
 * the upload was aborted, to which Ceph says with every try that it is being completed: then it has
 * no parts. Else the failure stands. */
static int find_out(struct s3_client *client, const struct s3_upload *upload, uint64_t bytes,
	const struct error *why, struct error *err)
{
	uint64_t stored = 0;
	struct error failure;
	const bool is_there = s3_client_head(client, upload->name, &stored, &failure) == 0;
	if (is_there && stored == bytes)
		return 0;
	const bool is_known = why->kind != ERROR_NOT_FOUND &&
		(is_there || failure.kind == ERROR_NOT_FOUND) &&
		check_known(client, upload, &failure) == 0;
	if (is_known || (!is_there && failure.kind != ERROR_NOT_FOUND)) {
		*err = is_known ? *why : failure;
		return -1;
	}
	return is_there
		? error_set(err, ERROR_CORRUPT,
			  "The object %.200s has %" PRIu64
			  " bytes at the S3 service and not the %" PRIu64 " bytes of its parts.",
			  upload->name, stored, bytes)
		: error_set(err, ERROR_NOT_FOUND,
			  "The S3 service has neither the upload of %.200s nor the object.",
			  upload->name);
}

static int check_known(struct s3_client *client, const struct s3_upload *upload, struct error *err)
{
	struct s3_request request = {.method = "GET"};
	struct s3_answer answer;
	const int result =
		send_to_upload(client, upload, "?max-parts=1&uploadId=", &request, &answer, err);
	http_response_release(&answer.response);
	return result;
}

int s3_upload_abort(struct s3_client *client, const struct s3_upload *upload, struct error *err)
{
	struct s3_request request = {.method = "DELETE"};
	struct s3_answer answer;
	struct error why;
	int result = send_to_upload(client, upload, "?uploadId=", &request, &answer, &why);
	if (result != 0 && why.kind == ERROR_NOT_FOUND)
		result = 0;
	if (result != 0)
		*err = why;
	http_response_release(&answer.response);
	return result;
}
