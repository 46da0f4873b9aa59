/* What the program says on stdout: sentences for people, or with --json one object per line for
 * machines, flushed line by line. Failures go to stderr as one sentence, and with --json also to
 * stdout as {"error":{"code","message"}}. One thread at a time. */
#ifndef CLIENT_TERMINAL_OUTPUT_H
#define CLIENT_TERMINAL_OUTPUT_H

#include "base/format/json_node.h"

struct output {
	bool json;
	bool quiet;  /* no sentences; JSON and failures still come */
	bool failed; /* stdout is gone (a closed pipe): callers of long listings stop */
};

/* One JSON line being built. Does nothing but build when output is not --json. */
struct output_line {
	struct output *output;
	struct buffer text;
	struct json_writer writer;
};
/* Opens the object with "event":event (NULL: without). Add members through line->writer, then
 * output_line_end exactly once. */
void output_line_begin(struct output_line *line, struct output *output, const char *event);
void output_line_end(struct output_line *line);

/* An answer of the server as it came, one line with --json and nothing without. */
void output_object(struct output *output, const struct json_node *object);

/* For people: nothing with --json or --quiet. */
void output_say(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* To stderr, with or without --json, but not with --quiet: what a person at the terminal should
 * know meanwhile. */
void output_note(const struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void output_error(struct output *output, const struct error *err);

/* "1.2 GB", in powers of ten. */
enum { OUTPUT_SIZE_BYTES = 24 };
void output_format_size(uint64_t bytes, char out[OUTPUT_SIZE_BYTES]);

#endif
