#include "tests/unit/client/command_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { WORDS_MAX = 64, OUTPUT_MAX_BYTES = 1024 * 1024 };

static size_t split(char *text, char *words[WORDS_MAX])
{
	size_t count = 0;
	char *rest = text;
	for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
		ck_assert_uint_lt(count, WORDS_MAX);
		if (word[0] != '\0')
			words[count++] = word;
	}
	return count;
}

static int run_with(command_fn *run, struct session *session, const struct options *options,
	const char *endpoint, struct error *err)
{
	session->options = options;
	session->output = (struct output){.json = options->json, .quiet = options->quiet};
	session->remote_options = (struct remote_options){
		.endpoint = endpoint,
		.retries = (unsigned)options->retries.value,
		.output = &session->output,
	};
	return run(session, err);
}

/* stdout goes to a file meanwhile. */
static int turn_stdout(FILE *to)
{
	fflush(stdout);
	const int kept = dup(STDOUT_FILENO);
	ck_assert_int_ge(kept, 0);
	ck_assert_int_ge(dup2(fileno(to), STDOUT_FILENO), 0);
	return kept;
}

static void turn_back(int kept, FILE *from, struct buffer *out)
{
	char piece[4096];
	fflush(stdout);
	ck_assert_int_ge(dup2(kept, STDOUT_FILENO), 0);
	close(kept);
	rewind(from);
	for (size_t got; (got = fread(piece, 1, sizeof piece, from)) > 0;)
		buffer_add(out, piece, got);
	fclose(from);
}

struct command_result command_fixture_run(
	command_fn *run, enum command_bit bit, const char *endpoint, const char *words)
{
	return command_fixture_run_on(file_system(), run, bit, endpoint, words);
}

struct command_result command_fixture_run_on(const struct file_ops *files, command_fn *run,
	enum command_bit bit, const char *endpoint, const char *words)
{
	struct command_result result = {.status = -1};
	struct session session = {.usage = true, .files = files};
	struct options options;
	char *list[WORDS_MAX];
	char *const text = memory_copy_text(words);
	const size_t count = split(text, list);
	FILE *const file = tmpfile();
	buffer_init(&result.output, OUTPUT_MAX_BYTES);
	ck_assert(file != NULL);
	const int kept = turn_stdout(file);
	if (options_parse(&options, bit, list, count, &result.err) == 0) {
		options.endpoint = endpoint;
		session.usage = false;
		result.status = run_with(run, &session, &options, endpoint, &result.err);
	}
	turn_back(kept, file, &result.output);
	result.usage = session.usage;
	free(text);
	return result;
}

void command_result_release(struct command_result *result)
{
	buffer_release(&result->output);
}
