/* Reads a multipart/form-data body (RFC 7578) piece by piece: small fields, then one file.
 * Resumable at any byte; the file's content is passed on without being copied. What stands before
 * the first boundary, behind the last one, or in fields behind the file is passed over. One thread
 * at a time. */
#ifndef API_S3_POST_FORM_DATA_H
#define API_S3_POST_FORM_DATA_H

#include "base/arena.h"
#include "base/stream.h"

enum {
	/* all that stands before the file's content: names, values, headers of parts */
	FORM_DATA_FIELDS_MAX_BYTES = 20 * 1024,
	FORM_DATA_BOUNDARY_MAX_BYTES = 70
};

/* each -1 (or SINK_FAILED) ends the reading with its error; spans live for the call */
struct form_data_events {
	int (*field)(void *owner, struct span name, struct span value, struct error *err);
	/* The part named "file" begins: `file_name` as sent, empty when absent. */
	int (*file)(void *owner, struct span file_name, struct error *err);
	enum sink_result (*bytes)(void *owner, struct span bytes, struct error *err);
	void *owner;
};

/* The boundary of a Content-Type: false when it is not multipart/form-data, or has none that is
 * legal (then *out is empty). */
bool form_data_is_form(struct span content_type);
bool form_data_boundary(struct span content_type, struct arena *arena, struct span *out);

struct form_data;
/* In the arena; form_data_free releases the rest. NULL when the arena is full. */
struct form_data *form_data_new(
	struct arena *arena, struct span boundary, const struct form_data_events *events);
void form_data_free(struct form_data *form); /* NULL and a second call are fine */
/* As a sink's write: SINK_WAIT when `bytes` said so, then the same input comes again (with more
 * behind it, maybe). invalid: the form is malformed; too_large: its fields are over the limit;
 * invalid_request: a second file. */
enum sink_result form_data_write(struct form_data *form, struct span bytes, struct error *err);
/* The body is whole: invalid when its closing boundary is missing. */
int form_data_finish(struct form_data *form, struct error *err);
bool form_data_has_file(const struct form_data *form);

#endif
