/* What work has to say. The program's goes to its streams. On stdout: sentences for people, or with
 * --json one object per line for machines, flushed line by line. Failures go to stderr as one
 * sentence, and with --json also to stdout as {"error":{"code","message","request_id"}}, the last
 * when a server refused the request. The library's sentences
 * go to its caller (`told`), and nothing to a stream. One thread at a time.
 *
 * Which function prints a sentence decides what --quiet leaves of it:
 *     output_result    what the command was asked for          stdout   stays
 *     output_say       that it has done what it was told to    stdout   goes
 *     output_note      what else a person should know          stderr   goes
 *     output_failure   what of several things failed           stderr   stays */
#ifndef CLIENT_TERMINAL_OUTPUT_H
#define CLIENT_TERMINAL_OUTPUT_H

#include "base/format/json_node.h"

struct output {
	bool json;
	bool quiet;  /* --quiet; it suppresses no JSON */
	bool failed; /* stdout cannot be written, like a closed pipe: long listings stop */
	/* Gets each sentence instead of the streams; NULL: the streams do. `is_warning`: it would
	 * have gone to stderr. */
	void (*told)(void *owner, const char *sentence, bool is_warning);
	void *owner;
};

/* A JSON line that is being built. Without --json it is built but not printed. */
struct output_line {
	struct output *output;
	struct buffer text;
	struct json_writer writer;
};
/* Opens the object with "event":event, or without it when `event` is NULL. Add members through
 * line->writer, then call output_line_end exactly once. */
void output_line_begin(struct output_line *line, struct output *output, const char *event);
void output_line_end(struct output_line *line);

/* Puts '?' in place of control characters, which a server's text could steer a terminal with. Keeps
 * UTF-8. For what others wrote; names of objects are printed as they are. */
void output_clean(char *text);

/* With --json, prints an answer of the server unchanged, as one line; otherwise nothing. */
void output_object(struct output *output, const struct json_node *object);

/* The functions of the table above. With --json nothing of it goes to stdout. */
typedef void output_fn(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void output_result(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void output_say(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void output_note(const struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void output_failure(const struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The failure that the command ends with. */
void output_error(struct output *output, const struct error *err);

#endif
