/* The fields come before the file. So signature, policy, permission and headers are judged when the
 * file begins, before any of its bytes are stored. The object is finished when the form has ended
 * without a fault and the file's size is within the policy's bounds.
 *
 * A failure while the body comes sets the reply itself when its code belongs to no error kind; then
 * the sink fails with an untouched error (exchange_fail_body). */
#include "api/s3/post/handlers.h"

#include "api/auth/authorise.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/object/stored_body.h"
#include "api/s3/post/form_data.h"
#include "api/s3/post/post_form.h"
#include "api/s3/post/post_policy.h"
#include "api/s3/post/post_reply.h"
#include "api/s3/post/post_signature.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/tagging.h"
#include "storage/objects/object_put.h"

struct post_object {           /* the exchange's state */
	struct body_sink sink; /* first */
	struct exchange *exchange;
	struct form_data *data;
	struct post_form form;
	struct post_policy policy;
	struct checksum_headers checksum;
	struct object_put *put; /* exchange->call is its call */
	uint64_t size;
	bool is_object_fault; /* a failure is the object's, not the form's */
};

static int post_object_take_field(
	void *owner, struct span name, struct span value, struct error *err);
static int post_object_begin_file(void *owner, struct span file_name, struct error *err);
static int find_key(struct post_object *state, struct span file_name, struct error *err);
static void fill_in(struct span key, struct span file_name, struct arena *arena, struct span *out);
static bool find_text(struct span whole, struct span text, size_t *out_at);
static struct span base_name(struct span file_name);
static int check_policy(struct post_object *state, struct error *err);
static int fail_coded(struct exchange *exchange, const char *code, const char *message);
static int authorise_form(struct exchange *exchange, struct error *err);
static int open_put(struct post_object *state, struct error *err);
static int read_fields(
	struct post_object *state, struct object_put_params *params, struct error *err);
static enum sink_result post_object_take_bytes(void *owner, struct span bytes, struct error *err);
static int fail_size(struct post_object *state, const char *code, const char *message,
	const char *limit_name, uint64_t limit);
static int check_request(struct exchange *exchange, struct span *out_boundary, struct error *err);
static enum sink_result post_object_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static void name_fault(struct post_object *state, struct error *err);
static int post_object_finish_body(struct body_sink *sink, struct error *err);
static void post_object_abort_body(struct body_sink *sink);
static void post_object_release(struct exchange *exchange);

enum next post_object_begin(struct exchange *exchange)
{
	struct post_object *const state = arena_take(exchange->arena, sizeof(*state));
	const struct form_data_events events = {
		post_object_take_field, post_object_begin_file, post_object_take_bytes, state};
	struct span boundary;
	struct error err = {0};
	if (check_request(exchange, &boundary, &err) != 0)
		return exchange_fail_body(exchange, &err);
	if (state != NULL)
		state->data = form_data_new(exchange->arena, boundary, &events);
	if (state == NULL || state->data == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The form does not fit the memory of a request.");
		return exchange_fail(exchange, &err);
	}
	state->sink = (struct body_sink){
		post_object_write, post_object_finish_body, post_object_abort_body};
	state->exchange = exchange;
	exchange->state = state;
	exchange->release = post_object_release;
	return exchange_accept(exchange, &state->sink);
}

enum next post_object_finish(struct exchange *exchange)
{
	struct post_object *const state = exchange->state;
	ASSERT(state != NULL && state->put != NULL);
	const struct checksum *const expected =
		checksum_headers_expected(exchange, &state->checksum);
	if (expected != NULL)
		object_put_expect(state->put, expected);
	return exchange_await(exchange, exchange->call);
}

enum next post_object_resume(struct exchange *exchange)
{
	struct post_object *const state = exchange->state;
	struct object object;
	struct error err = {0};
	if (object_put_result(exchange->call, &object, &err) != 0)
		return stored_body_reply_failed(exchange, object_put_bad_checksum, &err);
	return post_reply(exchange, &state->form, &object);
}

static int post_object_take_field(
	void *owner, struct span name, struct span value, struct error *err)
{
	struct post_object *const state = owner;
	return post_form_add(&state->form, state->exchange->arena, name, value, err);
}

static int post_object_begin_file(void *owner, struct span file_name, struct error *err)
{
	struct post_object *const state = owner;
	struct exchange *const exchange = state->exchange;
	ASSERT(state->put == NULL); /* a second file is the form's fault */
	state->is_object_fault = true;
	if (post_signature_check(exchange, &state->form, err) != 0 ||
		find_key(state, file_name, err) != 0 || check_policy(state, err) != 0 ||
		authorise_form(exchange, err) != 0 || s3_request_check_owner(exchange, err) != 0 ||
		open_put(state, err) != 0)
		return -1;
	state->is_object_fault = false;
	return 0;
}

/* The field "key", with the file's name in place of ${filename}. The field itself is changed, so
 * that the policy is judged by the whole key. */
static int find_key(struct post_object *state, struct span file_name, struct error *err)
{
	struct exchange *const exchange = state->exchange;
	struct post_field *const field = post_form_field(&state->form, "key");
	if (field == NULL) {
		exchange_error_field(exchange, "ArgumentName", span_text("key"));
		return error_set(err, ERROR_INVALID,
			"Bucket POST must contain a field named 'key'. If it is specified, please check the order of the "
			"fields.");
	}
	fill_in(field->value, file_name, exchange->arena, &field->value);
	const struct span key = field->value;
	if (key.len == 0)
		return error_set(err, ERROR_INVALID, "User key must have a length greater than 0.");
	if (!span_is_utf8(key) || span_find(key, '\0') >= 0)
		return error_set(err, ERROR_INVALID, "The key must be UTF-8 without NUL bytes.");
	exchange->parameters[1] = key; /* as if the path had named it */
	return 0;
}

/* Replaces the first ${filename} of the key; *out stays as it is when there is none. */
static void fill_in(struct span key, struct span file_name, struct arena *arena, struct span *out)
{
	static const char variable[] = "${filename}";
	struct buffer joined;
	size_t at;
	if (!find_text(key, span_text(variable), &at))
		return;
	buffer_init(&joined, FORM_DATA_FIELDS_MAX_BYTES * 2);
	buffer_add_span(&joined, span_slice(key, 0, at));
	buffer_add_span(&joined, base_name(file_name));
	buffer_add_span(&joined, span_slice(key, at + sizeof(variable) - 1, key.len));
	*out = arena_copy(arena, buffer_span(&joined));
	buffer_release(&joined);
}

static bool find_text(struct span whole, struct span text, size_t *out_at)
{
	for (size_t at = 0; at + text.len <= whole.len; at++)
		if (span_starts(span_slice(whole, at, whole.len), text)) {
			*out_at = at;
			return true;
		}
	return false;
}

/* The name without its folders: old browsers send the whole path of the file. */
static struct span base_name(struct span file_name)
{
	for (size_t i = file_name.len; i > 0; i--)
		if (file_name.data[i - 1] == '/' || file_name.data[i - 1] == '\\')
			return span_slice(file_name, i, file_name.len);
	return file_name;
}

static int check_policy(struct post_object *state, struct error *err)
{
	struct exchange *const exchange = state->exchange;
	struct span text;
	state->policy = (struct post_policy){0, exchange->context->put_max_bytes};
	if (!post_form_find(&state->form, "policy", &text))
		return 0;
	const int64_t now_ms = exchange->context->clock->wall_ms(exchange->context->clock);
	if (post_policy_check(text, &state->form, exchange_bucket(exchange).name, now_ms,
		    &state->policy, err) == 0)
		return 0;
	if (err->kind != ERROR_INVALID)
		return -1;
	const char *const message = arena_text(exchange->arena, span_text(err->text));
	*err = (struct error){0};
	return fail_coded(exchange, "InvalidPolicyDocument", message);
}

/* Sets a reply of 400 with a code that no error kind has. Returns -1, with the error untouched. */
static int fail_coded(struct exchange *exchange, const char *code, const char *message)
{
	s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID, .code = code, .message = message});
	return -1;
}

/* Judges the caller here, because only the fields say who it is. */
static int authorise_form(struct exchange *exchange, struct error *err)
{
	struct bucket_ref bucket = exchange_bucket(exchange);
	if (authorise_key(exchange, &bucket, s3_request_key(exchange), PERMISSION_WRITE, err) != 0)
		return -1;
	exchange->bucket_id = bucket.id;
	return 0;
}

static int open_put(struct post_object *state, struct error *err)
{
	struct exchange *const exchange = state->exchange;
	struct object_put_params params = {.bucket = exchange_bucket(exchange),
		.key = s3_request_key(exchange),
		.room = exchange_wake_owner,
		.owner = exchange};
	if (read_fields(state, &params, err) != 0)
		return -1;
	state->put = object_put_open(exchange->context->store, &params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = object_put_call(state->put);
	return 0;
}

/* Reads metadata, ACL, storage class and checksums with the functions for headers, to which the
 * fields are shown as headers. */
static int read_fields(
	struct post_object *state, struct object_put_params *params, struct error *err)
{
	struct exchange *const exchange = state->exchange;
	const struct exchange_ops *const ops = post_form_show(exchange, &state->form);
	enum next next;
	int outcome = object_headers_read(exchange, &params->facts, &next) ? 0 : -1;
	if (outcome == 0)
		outcome = checksum_headers_md5(
			exchange, &params->has_content_md5, params->content_md5, err);
	if (outcome == 0)
		outcome = checksum_headers_read(exchange, CHECKSUM_OF_BODY, &state->checksum, err);
	post_form_hide(exchange, ops);
	struct span tagging;
	if (outcome == 0 && post_form_find(&state->form, "tagging", &tagging))
		outcome = tagging_read_xml(
			tagging, TAG_SET_OBJECT_MAX, exchange->arena, &params->facts.tags, err);
	params->checksum = state->checksum.algorithm;
	return outcome;
}

static enum sink_result post_object_take_bytes(void *owner, struct span bytes, struct error *err)
{
	struct post_object *const state = owner;
	ASSERT(state->put != NULL);
	const enum sink_result result = object_put_write(state->put, bytes, err);
	state->is_object_fault = result == SINK_FAILED;
	if (result != SINK_TAKEN)
		return result;
	state->size += bytes.len;
	if (state->size <= state->policy.most_bytes)
		return SINK_TAKEN;
	state->is_object_fault = true;
	fail_size(state, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.",
		"MaxSizeAllowed", state->policy.most_bytes);
	return SINK_FAILED;
}

static int fail_size(struct post_object *state, const char *code, const char *message,
	const char *limit_name, uint64_t limit)
{
	exchange_error_number(state->exchange, "ProposedSize", state->size);
	exchange_error_number(state->exchange, limit_name, limit);
	return fail_coded(state->exchange, code, message);
}

static int check_request(struct exchange *exchange, struct span *out_boundary, struct error *err)
{
	const struct span type = exchange_header(exchange, "content-type");
	if (!form_data_is_form(type)) {
		exchange_error_field(exchange, "Condition",
			span_text("Bucket POST must be of the enclosure-type multipart/form-data"));
		return error_set(err, ERROR_PRECONDITION,
			"At least one of the pre-conditions you specified did not hold.");
	}
	if (!form_data_boundary(type, exchange->arena, out_boundary))
		return fail_coded(exchange, "MalformedPOSTRequest",
			"The Content-Type of your POST request must name a boundary.");
	if (!exchange->has_length && !exchange->chunked)
		return error_set(err, ERROR_LENGTH_REQUIRED,
			"A POST needs a Content-Length or Transfer-Encoding: chunked.");
	return 0;
}

static enum sink_result post_object_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct post_object *const state = (struct post_object *)sink;
	const enum sink_result result = form_data_write(state->data, bytes, err);
	if (result == SINK_FAILED && !state->is_object_fault)
		name_fault(state, err);
	return result;
}

/* Sets the reply for a fault of the form, whose code belongs to no error kind. */
static void name_fault(struct post_object *state, struct error *err)
{
	static const struct {
		enum error_kind kind;
		const char *code;
	} codes[] = {{ERROR_INVALID, "MalformedPOSTRequest"},
		{ERROR_TOO_LARGE, "MaxPostPreDataLengthExceededError"},
		{ERROR_INVALID_REQUEST, "InvalidArgument"}};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (err->kind != codes[i].kind)
			continue;
		fail_coded(state->exchange, codes[i].code,
			arena_text(state->exchange->arena, span_text(err->text)));
		*err = (struct error){0};
		return;
	}
}

static int post_object_finish_body(struct body_sink *sink, struct error *err)
{
	struct post_object *const state = (struct post_object *)sink;
	if (form_data_finish(state->data, err) != 0) {
		name_fault(state, err);
		return -1;
	}
	if (!form_data_has_file(state->data)) {
		exchange_error_field(state->exchange, "ArgumentName", span_text("file"));
		return error_set(
			err, ERROR_INVALID, "POST requires exactly one file upload per request.");
	}
	if (state->size < state->policy.least_bytes)
		return fail_size(state, "EntityTooSmall",
			"Your proposed upload is smaller than the minimum allowed size.",
			"MinSizeAllowed", state->policy.least_bytes);
	return 0;
}

static void post_object_abort_body(struct body_sink *sink)
{
	struct post_object *const state = (struct post_object *)sink;
	form_data_free(state->data);
	exchange_drop_call(state->exchange);
}

static void post_object_release(struct exchange *exchange)
{
	form_data_free(((struct post_object *)exchange->state)->data);
}
