/* A state machine with a step function for each state:
 *
 *     PREAMBLE --> DELIMITER --> HEADERS --> FIELD, FILE or SKIPPED --> DELIMITER ... --> END
 *
 * A part's content ends with the delimiter: CRLF, two dashes and the boundary. The delimiter has no
 * other carriage return. So when a match that began at the end of one piece fails in the next one,
 * its bytes are content and none of them can begin another match. */
#include "api/s3/post/form_data.h"

#include <string.h>

#include "base/buffer.h"

enum state {
	STATE_PREAMBLE,
	STATE_DELIMITER,
	STATE_HEADERS,
	STATE_FIELD,
	STATE_FILE,
	STATE_SKIPPED,
	STATE_END,
	STATE_COUNT
};
enum { DELIMITER_MAX_BYTES = FORM_DATA_BOUNDARY_MAX_BYTES + 4, LINE_MAX_BYTES = 4096 };

struct form_data {
	struct form_data_events events;
	struct arena *arena;
	uint8_t delimiter[DELIMITER_MAX_BYTES];
	size_t delimiter_len;
	enum state state;
	size_t done; /* bytes of the current piece; kept when the event `bytes` gives SINK_WAIT */
	size_t matched; /* bytes of the delimiter at the end of the input so far */
	/* bytes of the delimiter whose match failed and that are still to be passed on as
	 * content */
	size_t owed;
	size_t spent;       /* bytes of FORM_DATA_FIELDS_MAX_BYTES */
	struct buffer line; /* a header of a part, or the text after a delimiter */
	struct buffer value;
	struct span name; /* of the current part */
	struct span file_name;
	bool is_named;
	bool has_file;
};

static bool next_parameter(
	struct span *rest, struct arena *arena, struct span *out_name, struct span *out_value);
static struct span take_until(struct span *rest, char mark);
static struct span take_quoted(struct span *rest, struct arena *arena);
static bool is_escape(struct span text);
static enum sink_result form_data_step_content(
	struct form_data *form, struct span rest, struct error *err);
static enum sink_result pass_on(struct form_data *form, struct span bytes, struct error *err);
static int spend(struct form_data *form, size_t bytes, struct error *err);
static enum sink_result continue_match(struct form_data *form, struct span rest, struct error *err);
static enum sink_result end_part(struct form_data *form, struct error *err);
static size_t tail_match(const struct form_data *form, struct span text);
static enum sink_result form_data_step_delimiter(
	struct form_data *form, struct span rest, struct error *err);
static int take_line(struct form_data *form, struct span rest, struct error *err);
static int malformed(struct error *err, const char *what);
static enum sink_result form_data_step_headers(
	struct form_data *form, struct span rest, struct error *err);
static int begin_part(struct form_data *form, struct error *err);
static int take_header(struct form_data *form, struct span line, struct error *err);
static int take_disposition(struct form_data *form, struct span value, struct error *err);
static enum sink_result form_data_step_end(
	struct form_data *form, struct span rest, struct error *err);

bool form_data_is_form(struct span content_type)
{
	struct span rest = content_type;
	struct span type = {NULL, 0};
	span_split(&rest, ';', &type);
	return span_equal_nocase(span_trim(type), "multipart/form-data");
}

bool form_data_boundary(struct span content_type, struct arena *arena, struct span *out)
{
	struct span rest = content_type;
	struct span name;
	struct span value;
	*out = (struct span){NULL, 0};
	span_split(&rest, ';', &name);
	while (out->data == NULL && next_parameter(&rest, arena, &name, &value))
		if (span_equal_nocase(name, "boundary"))
			*out = value;
	bool good = out->len > 0 && out->len <= FORM_DATA_BOUNDARY_MAX_BYTES &&
		out->data[out->len - 1] != ' ';
	for (size_t i = 0; good && i < out->len; i++)
		good = out->data[i] >= ' ' && out->data[i] < 0x7f;
	if (!good)
		*out = (struct span){NULL, 0};
	return good;
}

struct form_data *form_data_new(
	struct arena *arena, struct span boundary, const struct form_data_events *events)
{
	struct form_data *const form = arena_take(arena, sizeof(*form));
	ASSERT(boundary.len <= FORM_DATA_BOUNDARY_MAX_BYTES);
	ASSERT(events->field != NULL && events->file != NULL && events->bytes != NULL);
	if (form == NULL)
		return NULL;
	form->events = *events;
	form->arena = arena;
	memcpy(form->delimiter, "\r\n--", 4);
	memcpy(form->delimiter + 4, boundary.data, boundary.len);
	form->delimiter_len = boundary.len + 4;
	form->matched = 2; /* the first boundary may be at the very beginning, without a CRLF */
	buffer_init(&form->line, LINE_MAX_BYTES);
	buffer_init(&form->value, FORM_DATA_FIELDS_MAX_BYTES);
	return form;
}

void form_data_free(struct form_data *form)
{
	if (form == NULL)
		return;
	buffer_release(&form->line);
	buffer_release(&form->value);
}

enum sink_result form_data_write(struct form_data *form, struct span bytes, struct error *err)
{
	static enum sink_result (*const steps[STATE_COUNT])(struct form_data * form,
		struct span rest, struct error * err) = {[STATE_PREAMBLE] = form_data_step_content,
		[STATE_DELIMITER] = form_data_step_delimiter,
		[STATE_HEADERS] = form_data_step_headers,
		[STATE_FIELD] = form_data_step_content,
		[STATE_FILE] = form_data_step_content,
		[STATE_SKIPPED] = form_data_step_content,
		[STATE_END] = form_data_step_end};
	ASSERT(form->done <= bytes.len && form->state < STATE_COUNT);
	while (form->done < bytes.len) {
		const enum sink_result result =
			steps[form->state](form, span_slice(bytes, form->done, bytes.len), err);
		if (result != SINK_TAKEN)
			return result;
	}
	form->done = 0;
	return SINK_TAKEN;
}

int form_data_finish(struct form_data *form, struct error *err)
{
	return form->state == STATE_END ? 0 : malformed(err, "its closing boundary is missing");
}

bool form_data_has_file(const struct form_data *form)
{
	return form->has_file;
}

/* The next of the parameters name=value or name="value", which semicolons separate. A semicolon
 * inside quotes belongs to the value. */
static bool next_parameter(
	struct span *rest, struct arena *arena, struct span *out_name, struct span *out_value)
{
	while (rest->len > 0 &&
		(rest->data[0] == ';' || rest->data[0] == ' ' || rest->data[0] == '\t'))
		*rest = span_slice(*rest, 1, rest->len);
	const ptrdiff_t equals = span_find(*rest, '=');
	const ptrdiff_t semicolon = span_find(*rest, ';');
	const bool has_value = equals >= 0 && (semicolon < 0 || equals < semicolon);
	*out_name = take_until(rest, has_value ? '=' : ';');
	*out_value = span_text("");
	if (!has_value)
		return out_name->len > 0;
	*rest = span_slice(*rest, 1, rest->len);
	const bool is_quoted = rest->len > 0 && rest->data[0] == '"';
	*out_value = is_quoted ? take_quoted(rest, arena) : take_until(rest, ';');
	return true;
}

static struct span take_until(struct span *rest, char mark)
{
	const ptrdiff_t end = span_find(*rest, mark);
	const struct span piece = span_slice(*rest, 0, end < 0 ? rest->len : (size_t)end);
	*rest = span_slice(*rest, piece.len, rest->len);
	return span_trim(piece);
}

/* Cuts a quoted text off the front and gives it without its quotes and escapes. */
static struct span take_quoted(struct span *rest, struct arena *arena)
{
	ASSERT(rest->len > 0 && rest->data[0] == '"');
	size_t end = 1;
	while (end < rest->len && rest->data[end] != '"')
		end += is_escape(span_slice(*rest, end, rest->len)) ? 2 : 1;
	/* takes no more than the text needs: a line may have a thousand of them */
	char *const text = arena_take(arena, end);
	size_t len = 0;
	for (size_t at = 1; text != NULL && at < end; at++) {
		at += is_escape(span_slice(*rest, at, end));
		text[len++] = (char)rest->data[at];
	}
	*rest = span_slice(*rest, end + 1, rest->len);
	return span_of(text, len);
}

static bool is_escape(struct span text)
{
	return text.len > 1 && text.data[0] == '\\' &&
		(text.data[1] == '"' || text.data[1] == '\\');
}

static enum sink_result form_data_step_content(
	struct form_data *form, struct span rest, struct error *err)
{
	if (form->owed > 0) {
		const enum sink_result result =
			pass_on(form, span_of(form->delimiter, form->owed), err);
		form->owed = result == SINK_TAKEN ? 0 : form->owed;
		return result;
	}
	if (form->matched > 0)
		return continue_match(form, rest, err);
	const uint8_t *const found =
		memmem(rest.data, rest.len, form->delimiter, form->delimiter_len);
	const size_t tail = found == NULL ? tail_match(form, rest) : 0;
	const size_t len = found == NULL ? rest.len - tail : (size_t)(found - rest.data);
	const enum sink_result result = pass_on(form, span_slice(rest, 0, len), err);
	if (result != SINK_TAKEN)
		return result;
	form->done += len + (found == NULL ? tail : form->delimiter_len);
	form->matched = tail;
	return found == NULL ? SINK_TAKEN : end_part(form, err);
}

static enum sink_result pass_on(struct form_data *form, struct span bytes, struct error *err)
{
	if (bytes.len == 0 || form->state == STATE_PREAMBLE || form->state == STATE_SKIPPED)
		return SINK_TAKEN;
	if (form->state == STATE_FILE)
		return form->events.bytes(form->events.owner, bytes, err);
	buffer_add_span(&form->value, bytes);
	return spend(form, bytes.len, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

/* All that is kept before the file has one limit. */
static int spend(struct form_data *form, size_t bytes, struct error *err)
{
	form->spent += bytes;
	if (form->spent <= FORM_DATA_FIELDS_MAX_BYTES)
		return 0;
	return error_set(err, ERROR_TOO_LARGE,
		"Your POST request fields preceding the upload file were too large: over %d bytes.",
		FORM_DATA_FIELDS_MAX_BYTES);
}

/* Continues a match that began in an earlier piece. When it fails, the matched bytes are
 * content. */
static enum sink_result continue_match(struct form_data *form, struct span rest, struct error *err)
{
	ASSERT(form->matched < form->delimiter_len && form->owed == 0);
	size_t len = 0;
	while (len < rest.len && form->matched + len < form->delimiter_len &&
		rest.data[len] == form->delimiter[form->matched + len])
		len++;
	const bool is_whole = form->matched + len == form->delimiter_len;
	if (is_whole || len == rest.len) {
		form->done += len;
		form->matched = is_whole ? 0 : form->matched + len;
		return is_whole ? end_part(form, err) : SINK_TAKEN;
	}
	form->owed = form->matched;
	form->matched = 0;
	return SINK_TAKEN;
}

static enum sink_result end_part(struct form_data *form, struct error *err)
{
	const bool is_field = form->state == STATE_FIELD;
	form->state = STATE_DELIMITER;
	buffer_reset(&form->line);
	if (!is_field)
		return SINK_TAKEN;
	const int outcome =
		form->events.field(form->events.owner, form->name, buffer_span(&form->value), err);
	buffer_reset(&form->value);
	return outcome == 0 ? SINK_TAKEN : SINK_FAILED;
}

/* The length of the longest end of `text` with which the delimiter begins. */
static size_t tail_match(const struct form_data *form, struct span text)
{
	ASSERT(text.len > 0);
	const size_t most = text.len < form->delimiter_len ? text.len : form->delimiter_len - 1;
	const uint8_t *const tail = text.data + text.len - most;
	const uint8_t *const start = most > 0 ? memrchr(tail, '\r', most) : NULL;
	if (start == NULL)
		return 0;
	const size_t len = (size_t)(text.data + text.len - start);
	return memcmp(start, form->delimiter, len) == 0 ? len : 0;
}

/* After a boundary, two dashes end the form, and a line of nothing but spaces begins a part. */
static enum sink_result form_data_step_delimiter(
	struct form_data *form, struct span rest, struct error *err)
{
	ASSERT(rest.len > 0);
	if (form->line.len < 2) {
		buffer_add_byte(&form->line, rest.data[0]);
		form->done++;
		if (form->line.len == 2 && memcmp(form->line.data, "--", 2) == 0)
			form->state = STATE_END;
		if (form->line.len == 2 && memcmp(form->line.data, "\r\n", 2) == 0) {
			buffer_reset(&form->line);
			form->state = STATE_HEADERS;
		}
		return SINK_TAKEN;
	}
	const int whole = take_line(form, rest, err);
	if (whole < 0)
		return SINK_FAILED;
	if (whole > 0 && span_trim(buffer_span(&form->line)).len != 0) {
		malformed(err, "a boundary is followed by other text");
		return SINK_FAILED;
	}
	if (whole > 0) {
		buffer_reset(&form->line);
		form->state = STATE_HEADERS;
	}
	return SINK_TAKEN;
}

/* Adds to form->line. 1: the line is whole and has lost its CRLF; 0: its end is still to come;
 * -1. */
static int take_line(struct form_data *form, struct span rest, struct error *err)
{
	const ptrdiff_t feed = span_find(rest, '\n');
	const struct span piece = span_slice(rest, 0, feed < 0 ? rest.len : (size_t)feed);
	buffer_add_span(&form->line, piece);
	form->done += piece.len + (feed >= 0);
	if (buffer_failed(&form->line))
		return malformed(err, "a line is too long");
	if (spend(form, piece.len + (feed >= 0), err) != 0)
		return -1;
	if (feed < 0)
		return 0;
	if (form->line.len == 0 || form->line.data[form->line.len - 1] != '\r')
		return malformed(err, "a line does not end with CRLF");
	form->line.len--;
	return 1;
}

static int malformed(struct error *err, const char *what)
{
	return error_set(err, ERROR_INVALID,
		"The body of your POST request is not well-formed multipart/form-data: %s.", what);
}

static enum sink_result form_data_step_headers(
	struct form_data *form, struct span rest, struct error *err)
{
	const int whole = take_line(form, rest, err);
	if (whole <= 0)
		return whole < 0 ? SINK_FAILED : SINK_TAKEN;
	const bool is_end = form->line.len == 0;
	const int outcome =
		is_end ? begin_part(form, err) : take_header(form, buffer_span(&form->line), err);
	buffer_reset(&form->line);
	return outcome == 0 ? SINK_TAKEN : SINK_FAILED;
}

static int begin_part(struct form_data *form, struct error *err)
{
	const bool is_file = form->is_named && span_equal_nocase(form->name, "file");
	if (!form->is_named)
		return malformed(err, "a part has no Content-Disposition");
	if (is_file && form->has_file)
		return error_set(err, ERROR_INVALID_REQUEST,
			"POST requires exactly one file upload per request.");
	form->state = form->has_file ? STATE_SKIPPED : is_file ? STATE_FILE : STATE_FIELD;
	form->is_named = false;
	if (!is_file) {
		form->file_name = span_text(""); /* it belongs to this part, not to the file */
		return 0;
	}
	form->has_file = true;
	return form->events.file(form->events.owner, form->file_name, err);
}

static int take_header(struct form_data *form, struct span line, struct error *err)
{
	const ptrdiff_t colon = span_find(line, ':');
	if (colon < 0)
		return malformed(err, "a header of a part has no colon");
	if (!span_equal_nocase(
		    span_trim(span_slice(line, 0, (size_t)colon)), "content-disposition"))
		return 0;
	return take_disposition(form, span_slice(line, (size_t)colon + 1, line.len), err);
}

static int take_disposition(struct form_data *form, struct span value, struct error *err)
{
	struct span rest = value;
	struct span kind = {NULL, 0};
	struct span name;
	struct span text;
	span_split(&rest, ';', &kind);
	if (!span_equal_nocase(span_trim(kind), "form-data") || form->is_named)
		return malformed(
			err, "a part does not have exactly one Content-Disposition of form-data");
	while (next_parameter(&rest, form->arena, &name, &text)) {
		if (span_equal_nocase(name, "name")) {
			form->name = arena_copy(form->arena, text);
			form->is_named = text.len > 0;
		}
		if (span_equal_nocase(name, "filename"))
			form->file_name = arena_copy(form->arena, text);
	}
	return form->is_named ? 0 : malformed(err, "a part has no name");
}

static enum sink_result form_data_step_end(
	struct form_data *form, struct span rest, struct error *err)
{
	(void)err;
	form->done += rest.len;
	return SINK_TAKEN;
}
