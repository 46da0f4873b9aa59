/* The kind of an error says which children its body has. A table maps each kind to a small function
 * that writes them from the request. Fields that the failing code added to the exchange replace
 * these, because that code knows more. */
#include "api/s3/request/s3_error.h"

#include "api/route/hub_name.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/versions/object.h"

enum { ERROR_BODY_MAX_BYTES = 1024 * 1024 };

static struct span print_body(struct exchange *exchange, const struct s3_error *error);
static void add_bucket(struct exchange *exchange, struct xml_writer *xml);
static void add_key(struct exchange *exchange, struct xml_writer *xml);
static void add_upload(struct exchange *exchange, struct xml_writer *xml);
static void add_version(struct exchange *exchange, struct xml_writer *xml);
static void add_range(struct exchange *exchange, struct xml_writer *xml);
static void add_condition(struct exchange *exchange, struct xml_writer *xml);
static void add_expected_md5(struct exchange *exchange, struct xml_writer *xml);
static void add_given(struct xml_writer *xml, const char *name, struct span value);
static void add_region(struct exchange *exchange, struct xml_writer *xml);
static void add_skew(struct exchange *exchange, struct xml_writer *xml);
static void add_sizes(struct exchange *exchange, struct xml_writer *xml);
static void add_key_sizes(struct exchange *exchange, struct xml_writer *xml);
static void add_method(struct exchange *exchange, struct xml_writer *xml);
static void tell_hub_client(struct exchange *exchange, const struct error *err);

static const struct {
	enum error_kind kind;
	void (*add)(struct exchange *exchange, struct xml_writer *xml);
} children[] = {
	{ERROR_NO_BUCKET, add_bucket},
	{ERROR_BAD_NAME, add_bucket},
	{ERROR_BUCKET_OWNED, add_bucket},
	{ERROR_BUCKET_TAKEN, add_bucket},
	{ERROR_BUCKET_NOT_EMPTY, add_bucket},
	{ERROR_BUCKET_HAS_RUNS, add_bucket},
	{ERROR_NO_KEY, add_key},
	{ERROR_NO_UPLOAD, add_upload},
	{ERROR_NO_VERSION, add_version},
	{ERROR_RANGE, add_range},
	{ERROR_PRECONDITION, add_condition},
	{ERROR_BAD_DIGEST, add_expected_md5},
	{ERROR_INVALID_DIGEST, add_expected_md5},
	{ERROR_AUTH_MALFORMED, add_region},
	{ERROR_SKEW, add_skew},
	{ERROR_TOO_LARGE, add_sizes},
	{ERROR_KEY_TOO_LONG, add_key_sizes},
	{ERROR_METHOD, add_method},
};

void s3_error_write(struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	const struct s3_error error = {
		.kind = err->kind, .code = row->s3_code, .message = error_map_text(err, row)};
	exchange->reply.body = print_body(exchange, &error);
	exchange->reply.content_type = "application/xml";
	tell_hub_client(exchange, err);
	if (exchange->method == METHOD_HEAD && exchange->parameters[1].len == 0)
		exchange_add_header(exchange, "x-amz-bucket-region", exchange->context->region);
}

enum next s3_error_reply(struct exchange *exchange, const struct s3_error *error)
{
	const struct error_row *const row = error_map_find(error->kind);
	ASSERT(row->status < 500 || row->status == 501);
	struct s3_error named = *error;
	if (named.code == NULL)
		named.code = row->s3_code;
	return exchange_reply_body(
		exchange, row->status, "application/xml", print_body(exchange, &named));
}

enum next s3_error_argument(
	struct exchange *exchange, const char *name, struct span value, const char *message)
{
	const struct s3_error_field fields[] = {
		{"ArgumentName", span_text(name)}, {"ArgumentValue", value}};
	const struct s3_error error = {.kind = ERROR_INVALID,
		.code = "InvalidArgument",
		.message = message,
		.fields = fields,
		.field_count = 2};
	return s3_error_reply(exchange, &error);
}

enum next s3_error_not_implemented(struct exchange *exchange, const char *name, const char *message)
{
	const struct s3_error_field field = {"Header", span_text(name)};
	const struct s3_error error = {.kind = ERROR_UNSUPPORTED,
		.code = "NotImplemented",
		.message = message,
		.fields = &field,
		.field_count = 1};
	return s3_error_reply(exchange, &error);
}

static struct span print_body(struct exchange *exchange, const struct s3_error *error)
{
	struct buffer body;
	struct xml_writer xml;
	ASSERT(error->code != NULL);
	ASSERT(error->fields != NULL || error->field_count == 0);
	buffer_init(&body, ERROR_BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "Error", false);
	xml_writer_text(&xml, "Code", span_text(error->code));
	xml_writer_text(&xml, "Message", span_text(error->message));
	for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
		if (children[i].kind == error->kind && exchange->error_field_count == 0)
			children[i].add(exchange, &xml);
	}
	for (size_t i = 0; i < exchange->error_field_count; i++)
		xml_writer_text(
			&xml, exchange->error_fields[i].name, exchange->error_fields[i].value);
	for (size_t i = 0; i < error->field_count; i++)
		xml_writer_text(&xml, error->fields[i].name, error->fields[i].value);
	xml_writer_text(&xml, "Resource", exchange->path);
	xml_writer_text(&xml, "RequestId", span_text(exchange->request_id));
	xml_writer_text(&xml, "HostId", span_text(exchange->request_id));
	xml_writer_end(&xml);
	const struct span copy = buffer_failed(&body)
		? (struct span){0}
		: arena_copy(exchange->arena, buffer_span(&body));
	buffer_release(&body);
	return copy;
}

static void add_bucket(struct exchange *exchange, struct xml_writer *xml)
{
	xml_writer_text(xml, "BucketName", exchange->parameters[0]);
}

static void add_key(struct exchange *exchange, struct xml_writer *xml)
{
	xml_writer_text(xml, "Key", exchange->parameters[1]);
}

static void add_upload(struct exchange *exchange, struct xml_writer *xml)
{
	struct span id;
	if (exchange_query(exchange, "uploadId", &id))
		xml_writer_text(xml, "UploadId", id);
}

static void add_version(struct exchange *exchange, struct xml_writer *xml)
{
	struct span version = {NULL, 0};
	xml_writer_text(xml, "Key", exchange->parameters[1]);
	exchange_query(exchange, "versionId", &version);
	add_given(xml, "VersionId", version);
}

/* The size comes from the Content-Range that a 416 carries: "bytes *" "/N". */
static void add_range(struct exchange *exchange, struct xml_writer *xml)
{
	add_given(xml, "RangeRequested", exchange_header(exchange, "range"));
	for (size_t i = 0; i < exchange->reply.header_count; i++) {
		if (!span_equal_nocase(span_text(exchange->reply.headers[i].name), "content-range"))
			continue;
		const struct span value = span_text(exchange->reply.headers[i].value);
		const ptrdiff_t slash = span_find(value, '/');
		ASSERT(slash >= 0);
		xml_writer_text(
			xml, "ActualObjectSize", span_slice(value, (size_t)(slash + 1), value.len));
	}
}

static void add_condition(struct exchange *exchange, struct xml_writer *xml)
{
	static const struct {
		const char *header;
		const char *name;
	} conditions[] = {{"if-match", "If-Match"}, {"if-none-match", "If-None-Match"},
		{"if-unmodified-since", "If-Unmodified-Since"},
		{"x-amz-if-match-size", "x-amz-if-match-size"},
		{"x-amz-if-match-last-modified-time", "x-amz-if-match-last-modified-time"},
		{"x-amz-copy-source-if-match", "x-amz-copy-source-If-Match"},
		{"x-amz-copy-source-if-none-match", "x-amz-copy-source-If-None-Match"},
		{"x-amz-copy-source-if-modified-since", "x-amz-copy-source-If-Modified-Since"},
		{"x-amz-copy-source-if-unmodified-since", "x-amz-copy-source-If-Unmodified-Since"}};
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		if (exchange_header(exchange, conditions[i].header).len > 0) {
			xml_writer_text(xml, "Condition", span_text(conditions[i].name));
			return;
		}
	}
}

static void add_expected_md5(struct exchange *exchange, struct xml_writer *xml)
{
	add_given(xml, "ExpectedDigest", exchange_header(exchange, "content-md5"));
}

/* A child says what the request said; what it did not say has none. */
static void add_given(struct xml_writer *xml, const char *name, struct span value)
{
	if (value.len > 0)
		xml_writer_text(xml, name, value);
}

/* A client that used another region tries again with this one. This server accepts any. */
static void add_region(struct exchange *exchange, struct xml_writer *xml)
{
	xml_writer_text(xml, "Region", span_text(exchange->context->region));
}

static void add_skew(struct exchange *exchange, struct xml_writer *xml)
{
	const struct clock_source *const clock = exchange->context->clock;
	const struct span amz_date = exchange_header(exchange, "x-amz-date");
	xml_writer_text(xml, "RequestTime",
		amz_date.len > 0 ? amz_date : exchange_header(exchange, "date"));
	xml_writer_time(xml, "ServerTime", clock->wall_ms(clock));
	xml_writer_u64(xml, "MaxAllowedSkewMilliseconds", 15 * 60 * 1000);
}

static void add_sizes(struct exchange *exchange, struct xml_writer *xml)
{
	if (exchange->has_length)
		xml_writer_u64(xml, "ProposedSize", exchange->length);
	xml_writer_u64(xml, "MaxSizeAllowed", exchange->context->put_max_bytes);
}

/* The key of a form is not in the path. */
static void add_key_sizes(struct exchange *exchange, struct xml_writer *xml)
{
	if (exchange->parameters[1].len > 0)
		xml_writer_u64(xml, "Size", exchange->parameters[1].len);
	xml_writer_u64(xml, "MaxSizeAllowed", OBJECT_KEY_MAX_BYTES);
}

static void add_method(struct exchange *exchange, struct xml_writer *xml)
{
	static const struct {
		enum method method;
		const char *name;
	} methods[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
		{METHOD_POST, "POST"}, {METHOD_DELETE, "DELETE"}, {METHOD_OPTIONS, "OPTIONS"}};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].method == exchange->method)
			xml_writer_text(xml, "Method", span_text(methods[i].name));
	}
}

/* `hf download namespace/name` asks a path of the S3 face. It shows these headers to its user, not
 * the XML. */
static void tell_hub_client(struct exchange *exchange, const struct error *err)
{
	const bool is_refusal = err->kind == ERROR_NO_BUCKET || err->kind == ERROR_DENIED ||
		err->kind == ERROR_NO_CREDENTIALS;
	if (!is_refusal || (exchange->method & (METHOD_GET | METHOD_HEAD)) == 0 ||
		!hub_name_is_resolve(exchange->path))
		return;
	exchange_add_header(exchange, "X-Error-Code", "RepoNotFound");
	exchange_add_header(exchange, "X-Error-Message", HUB_NAME_NO_REPOSITORY);
}
