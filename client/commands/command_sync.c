/* `sync`: what the words of the command line ask client/sync/folder_sync.h for, and what is said of
 * it. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "client/commands/file_word.h"
#include "client/sync/folder_sync.h"

struct sync {
	struct session *session;
	struct folder_sync_params params;
	struct folder_sync_counts counts;
};

static int read_arguments(struct sync *sync, struct error *err);
static int refuse_ends(struct session *session, const char *const *words, struct error *err);
static int refuse_file(const struct sync *sync, struct error *err);
static void command_sync_told(void *owner, enum folder_sync_event event,
	const struct sync_item *item, const struct error *why);
static void say(
	struct sync *sync, const struct sync_item *item, const char *event, const char *word);
static void say_refused(struct sync *sync, const struct sync_item *item, const struct error *why);
static void say_result(struct sync *sync);

int command_sync(struct session *session, struct error *err)
{
	struct sync sync = {.session = session};
	const bool is_dry = session->options->dry_run;
	if (read_arguments(&sync, err) != 0 ||
		folder_sync_run(&sync.params, &sync.counts, err) != 0)
		return -1;
	if (!is_dry)
		say_result(&sync);
	return folder_sync_judge(&sync.counts, is_dry, err);
}

static int read_arguments(struct sync *sync, struct error *err)
{
	struct session *const session = sync->session;
	const struct options *const options = session->options;
	const char *const *const words = options->arguments;
	ASSERT(options->argument_count == 2);
	const bool uploads = file_word_is_path(words[0]);
	if (uploads == file_word_is_path(words[1]))
		return refuse_ends(session, words, err);
	sync->params = (struct folder_sync_params){
		.session = session,
		.uploads = uploads,
		.is_plain = options->plain,
		.is_dry = options->dry_run,
		.deletes = options->delete,
		.creates_bucket = options->create_bucket,
		.folder = words[uploads ? 0 : 1],
		.told = command_sync_told,
		.owner = sync,
	};
	if (file_word_is_no_folder(sync->params.folder))
		return refuse_file(sync, err);
	return session_object_name(session, words[uploads ? 1 : 0], &sync->params.place, err);
}

/* Refuses two words of which not exactly one is a path. The spelling alone decides (file_word.h),
 * so a folder that happens to exist here does not change the meaning. */
static int refuse_ends(struct session *session, const char *const *words, struct error *err)
{
	for (int i = 0; i < 2; i++)
		if (!file_word_is_path(words[i]) && file_exists(words[i]))
			return session_usage(session, err,
				"sync reads %s as the name of a bucket; write ./%s to name the folder",
				words[i], words[i]);
	return session_usage(session, err,
		"sync goes from a folder to BUCKET[/PREFIX] or back; exactly one of the two must be a "
		"path that begins with /, ./ or ../");
}

/* Names the command that moves one file. */
static int refuse_file(const struct sync *sync, struct error *err)
{
	const struct options *const options = sync->session->options;
	const char *const file = sync->params.folder;
	return sync->params.uploads
		? session_usage(sync->session, err,
			  "%s is not a folder; `deltabucket put %s %s` uploads one file", file,
			  file, options->arguments[1])
		: session_usage(sync->session, err,
			  "%s is not a folder; `deltabucket get BUCKET/KEY %s` downloads one object",
			  file, file);
}

static void command_sync_told(void *owner, enum folder_sync_event event,
	const struct sync_item *item, const struct error *why)
{
	static const char *const MOVED[] = {
		"downloaded", "uploaded", "would_download", "would_upload"};
	static const char *const MOVED_WORDS[] = {
		"downloaded", "uploaded", "would download", "would upload"};
	struct sync *const sync = owner;
	const bool is_dry = sync->params.is_dry;
	const size_t way = (is_dry ? 2 : 0) + (sync->params.uploads ? 1 : 0);
	if (event == FOLDER_SYNC_REFUSED)
		say_refused(sync, item, why);
	else if (event == FOLDER_SYNC_REMOVED)
		say(sync, item, is_dry ? "would_remove" : "removed",
			is_dry ? "would remove" : "removed");
	else
		say(sync, item, MOVED[way], MOVED_WORDS[way]);
}

static void say(
	struct sync *sync, const struct sync_item *item, const char *event, const char *word)
{
	struct output_line line;
	output_line_begin(&line, &sync->session->output, event);
	json_writer_text(&line.writer, "name", span_text(item->name));
	json_writer_u64(&line.writer, "bytes", item->size);
	output_line_end(&line);
	output_fn *const tell = sync->params.is_dry ? output_result : output_say;
	tell(&sync->session->output, "%s %s", word, item->name);
}

static void say_refused(struct sync *sync, const struct sync_item *item, const struct error *why)
{
	struct output_line line;
	output_line_begin(&line, &sync->session->output, "refused");
	json_writer_text(&line.writer, "name", span_text(item->name));
	json_writer_text(&line.writer, "code", span_text(error_kind_name(why->kind)));
	json_writer_text(&line.writer, "message", span_text(why->text));
	output_line_end(&line);
	output_failure(&sync->session->output, "%s %s: %s",
		sync->params.is_dry ? "would keep" : "kept", item->name, why->text);
}

static void say_result(struct sync *sync)
{
	char size[QUANTITY_TEXT_BYTES];
	char moved[QUANTITY_TEXT_BYTES];
	struct output_line line;
	const struct folder_sync_counts *const counts = &sync->counts;
	const bool uploads = sync->params.uploads;
	quantity_format(counts->bytes, size);
	quantity_format(counts->traffic, moved);
	output_line_begin(&line, &sync->session->output, "synced");
	json_writer_u64(&line.writer, "files", counts->files);
	json_writer_u64(&line.writer, "sent", counts->moved);
	json_writer_u64(&line.writer, "bytes", counts->bytes);
	json_writer_u64(&line.writer, uploads ? "sent_bytes" : "received_bytes", counts->traffic);
	json_writer_u64(&line.writer, "removed", counts->removed);
	json_writer_u64(&line.writer, "refused", counts->refused);
	output_line_end(&line);
	if (counts->moved == 0)
		output_say(&sync->session->output, "%zu files, nothing to send, %zu removed",
			counts->files, counts->removed);
	else
		output_say(&sync->session->output,
			"%zu files, %zu %s (%s; %s over the network), %zu removed", counts->files,
			counts->moved, uploads ? "sent" : "received", size, moved, counts->removed);
}
