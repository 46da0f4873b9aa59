#include "server/commands/restore_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/format/json_node.h"
#include "server/commands/lack_print.h"

enum { ANSWER_MAX_BYTES = 1024 * 1024 * 1024 };

static void list_json(const struct backup_moments *moments);
static void print_json(const struct backup_moment *moment, const struct restore_report *report);

void restore_report_list(const struct backup_moments *moments, bool json)
{
	if (json) {
		list_json(moments);
		return;
	}
	for (size_t i = 0; i < moments->count; i++) {
		char name[BACKUP_MOMENT_BYTES];
		char time[CLOCK_TEXT_BYTES];
		backup_moment_print(&moments->items[i], name);
		clock_format_iso(moments->items[i].made_ms, time);
		printf("%s  change %" PRId64 " of %s\n", name, moments->items[i].change, time);
	}
	printf("%zu moments\n", moments->count);
}

static void list_json(const struct backup_moments *moments)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "moments");
	for (size_t i = 0; i < moments->count; i++) {
		char name[BACKUP_MOMENT_BYTES];
		char time[CLOCK_TEXT_BYTES];
		backup_moment_print(&moments->items[i], name);
		clock_format_iso(moments->items[i].made_ms, time);
		json_writer_object(&json, NULL);
		json_writer_text(&json, "moment", span_text(name));
		json_writer_i64(&json, "change", moments->items[i].change);
		json_writer_u64(&json, "life", moments->items[i].life);
		json_writer_text(&json, "made", span_text(time));
		json_writer_end(&json, '}');
	}
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

void restore_report_print(const struct backup_moment *moment, const struct restore_report *report,
	const char *data, bool json)
{
	char name[BACKUP_MOMENT_BYTES];
	if (json) {
		print_json(moment, report);
		return;
	}
	backup_moment_print(moment, name);
	if (report->was_done) {
		printf("%s was restored before\n", name);
		return;
	}
	printf("%s: %" PRIu64 " files of %" PRIu64 " bytes, of which %" PRIu64
	       " bytes were fetched now\n",
		name, report->files, report->bytes, report->fetched);
	printf("it ends with change %" PRId64 ": %" PRId64 " buckets, %" PRId64 " objects, %" PRId64
	       " steps\n",
		moment->change, report->catalog.buckets, report->catalog.objects,
		report->catalog.steps);
	lack_print_lines(&report->lacks);
	if (report->lacks.count > 0)
		printf("%zu files are not whole; `deltabucketd fsck` tells which objects that touches\n",
			report->lacks.count);
	printf("put master.key, and tls/ if clients know the CA, into %s before the server starts\n",
		data);
}

static void print_json(const struct backup_moment *moment, const struct restore_report *report)
{
	char name[BACKUP_MOMENT_BYTES];
	struct buffer out;
	struct json_writer json;
	backup_moment_print(moment, name);
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "moment", span_text(name));
	json_writer_i64(&json, "change", moment->change);
	json_writer_bool(&json, "was_done", report->was_done);
	json_writer_u64(&json, "files", report->files);
	json_writer_u64(&json, "bytes", report->bytes);
	json_writer_u64(&json, "bytes_fetched", report->fetched);
	json_writer_u64(&json, "files_lacking", report->lacks.count);
	lack_print_json(&report->lacks, "lacks", &json);
	json_writer_i64(&json, "buckets", report->catalog.buckets);
	json_writer_i64(&json, "objects", report->catalog.objects);
	json_writer_i64(&json, "steps", report->catalog.steps);
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}
