#include "base/net/s3/s3_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/format/xml_reader.h"

struct s3_search { /* for the text of one element */
	const char *root;
	const char *name; /* NULL: the root alone is asked for */
	char *out;
	size_t room;
	bool is_root; /* the document has the root */
	bool is_found;
};

static int s3_answer_open_error(void *owner, size_t depth, struct span name, struct error *err);
static int s3_answer_close_error(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static void take_text(char *out, size_t room, struct span text);
static enum error_kind kind_of(const struct s3_answer *answer);
static int s3_answer_open_search(void *owner, size_t depth, struct span name, struct error *err);
static int s3_answer_close_search(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static bool search(struct span xml, struct s3_search *search);

void s3_answer_parse(struct s3_answer *answer)
{
	static const struct xml_reader_events events = {
		.open = s3_answer_open_error, .close = s3_answer_close_error};
	struct error ignored;
	const struct span body = buffer_span(&answer->response.body);
	answer->code[0] = '\0';
	answer->message[0] = '\0';
	answer->is_error = false;
	if (xml_reader_parse(body, &events, answer, &ignored) == 0)
		return;
	answer->code[0] = '\0';
	answer->message[0] = '\0';
	answer->is_error = false;
}

static int s3_answer_open_error(void *owner, size_t depth, struct span name, struct error *err)
{
	struct s3_answer *answer = owner;
	if (depth != 1)
		return 0;
	answer->is_error = span_equal_text(name, "Error");
	return answer->is_error ? 0 : error_set(err, ERROR_UPSTREAM, "This is not an error.");
}

static int s3_answer_close_error(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct s3_answer *answer = owner;
	(void)err;
	if (depth == 2 && span_equal_text(name, "Code"))
		take_text(answer->code, sizeof(answer->code), text);
	if (depth == 2 && span_equal_text(name, "Message"))
		take_text(answer->message, sizeof(answer->message), text);
	return 0;
}

/* What a service says is shown to people and goes into logs. */
static void take_text(char *out, size_t room, struct span text)
{
	const struct span cut = span_slice(text, 0, room - 1);
	for (size_t i = 0; i < cut.len; i++)
		out[i] = cut.data[i] >= ' ' && cut.data[i] < 0x7f ? (char)cut.data[i] : '?';
	out[cut.len] = '\0';
}

bool s3_answer_is_temporary(const struct s3_answer *answer)
{
	static const int statuses[] = {408, 429, 500, 502, 503, 504};
	static const char *const codes[] = {
		"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown"};
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (answer->response.status == statuses[i])
			return true;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(answer->code, codes[i]) == 0)
			return true;
	return false;
}

int s3_answer_refuse(
	const struct s3_answer *answer, const char *method, const char *target, struct error *err)
{
	const bool has_code = answer->code[0] != '\0';
	error_set(err, kind_of(answer), "%s %.300s was answered with status %d%s%s%s%s%s", method,
		target, answer->response.status, has_code ? " (" : "", answer->code,
		has_code ? ")" : "", answer->message[0] != '\0' ? ": " : ".", answer->message);
	snprintf(err->request_id, sizeof(err->request_id), "%s", answer->response.request_id);
	return -1;
}

static enum error_kind kind_of(const struct s3_answer *answer)
{
	const int status = answer->response.status;
	if (s3_answer_is_temporary(answer))
		return ERROR_BUSY;
	if (status == 401 || status == 403)
		return ERROR_DENIED;
	if (status == 404 && strcmp(answer->code, "NoSuchBucket") != 0)
		return ERROR_NOT_FOUND;
	return ERROR_UPSTREAM;
}

bool s3_answer_find(struct span xml, const char *root, const char *name, char *out, size_t room)
{
	struct s3_search wanted = {.root = root, .name = name, .out = out, .room = room};
	return search(xml, &wanted) && wanted.is_found;
}

bool s3_answer_has_root(struct span xml, const char *root)
{
	struct s3_search wanted = {.root = root};
	return search(xml, &wanted);
}

static bool search(struct span xml, struct s3_search *wanted)
{
	static const struct xml_reader_events events = {
		.open = s3_answer_open_search, .close = s3_answer_close_search};
	struct error ignored;
	return xml_reader_parse(xml, &events, wanted, &ignored) == 0 && wanted->is_root;
}

static int s3_answer_open_search(void *owner, size_t depth, struct span name, struct error *err)
{
	struct s3_search *wanted = owner;
	(void)err;
	if (depth == 1)
		wanted->is_root = span_equal_text(name, wanted->root);
	return 0;
}

static int s3_answer_close_search(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct s3_search *wanted = owner;
	(void)err;
	if (wanted->name == NULL || depth != 2 || !span_equal_text(name, wanted->name))
		return 0;
	wanted->is_found = text.len > 0 && text.len < wanted->room &&
		memchr(text.data, '\0', text.len) == NULL;
	if (wanted->is_found) {
		memcpy(wanted->out, text.data, text.len);
		wanted->out[text.len] = '\0';
	}
	return 0;
}
