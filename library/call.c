#include "library/call.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)DELTABUCKET_ERROR_TEXT_BYTES == (int)ERROR_TEXT_BYTES &&
		(int)DELTABUCKET_NAME_BYTES == (int)ERROR_REQUEST_ID_BYTES,
	"every error fits into that of the caller");

static void name_settings(char *text);
static void replace_bytes(char *text);

void library_call_begin(struct library_call *call, const struct deltabucket_client *client,
	struct deltabucket_watch *watch)
{
	*call = (struct library_call){.session = {
					      .output = library_watch_output(watch),
					      .progress = library_watch_sink(watch),
					      .files = file_system(),
					      .stop = library_watch_stop(watch),
				      }};
	if (client == NULL)
		return;
	call->session.parallel = client->parallel;
	call->session.remote_options = (struct remote_options){
		.endpoint = client->endpoint,
		.token = client->token,
		.ca = client->ca,
		.retries = client->retries,
		.stop = call->session.stop,
		.output = &call->session.output,
		.spares = client->spares,
	};
}

int library_call_end(struct library_call *call, int result, struct deltabucket_error *err)
{
	if (result < 0)
		library_error_give(&call->failure, err);
	return result;
}

int library_error_give(const struct error *failure, struct deltabucket_error *out)
{
	ASSERT(failure->kind != ERROR_NONE);
	if (out == NULL)
		return -1;
	*out = (struct deltabucket_error){
		.number = (int)failure->kind,
		.os_errno = failure->os_errno,
	};
	snprintf(out->kind, sizeof(out->kind), "%s", error_kind_name(failure->kind));
	snprintf(out->request_id, sizeof(out->request_id), "%s", failure->request_id);
	snprintf(out->text, sizeof(out->text), "%s", failure->text);
	name_settings(out->text);
	replace_bytes(out->text);
	return -1;
}

int library_check(const void *value, const char *name, struct error *err)
{
	return value != NULL ? 0 : error_set(err, ERROR_INVALID, "%s is NULL", name);
}

int library_check_name(
	const char *text, const char *what, size_t most, struct span *out, struct error *err)
{
	*out = span_text(text);
	if (out->len == 0)
		return error_set(err, ERROR_INVALID, "the %s has no name", what);
	if (out->len > most)
		return error_set(err, ERROR_KEY_TOO_LONG, "the %s \"%.80s...\" is over %zu bytes",
			what, text, most);
	return 0;
}

int library_check_deltas(const char *const *deltas, size_t count, struct error *err)
{
	if (count == 0)
		return error_set(err, ERROR_INVALID, "no delta was passed");
	for (size_t i = 0; i < count; i++)
		if (library_check(deltas == NULL ? NULL : deltas[i], "a delta", err) != 0)
			return -1;
	return 0;
}

/* Sentences of the client name flags of the command line. Settings have the same words, written as
 * members are: "--take-over" becomes "take_over". */
static void name_settings(char *text)
{
	char *to = text;
	bool is_flag = false;
	for (const char *from = text; *from != '\0'; from++) {
		const bool begins = strncmp(from, "--", 2) == 0 && islower((unsigned char)from[2]);
		if (begins)
			from += 2;
		is_flag = begins || (is_flag && (islower((unsigned char)*from) || *from == '-'));
		*to++ = is_flag && *from == '-' ? '_' : *from;
	}
	*to = '\0';
}

/* What a message quotes may be anything; what the caller gets is UTF-8. */
static void replace_bytes(char *text)
{
	const struct span whole = span_text(text);
	size_t at = 0;
	while (at < whole.len) {
		const size_t letter = span_utf8_length(span_slice(whole, at, whole.len));
		if (letter == 0)
			text[at] = '?';
		at += letter == 0 ? 1 : letter;
	}
}
