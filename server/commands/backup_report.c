#include "server/commands/backup_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/format/json_node.h"

enum { ANSWER_MAX_BYTES = 64 * 1024 };

static void print_json(const struct backup_report *report, const struct backup_pruned *pruned);
static void print_text(const struct backup_report *report, const struct backup_pruned *pruned);

void backup_report_print(
	const struct backup_report *report, const struct backup_pruned *pruned, bool json)
{
	(json ? print_json : print_text)(report, pruned);
	fflush(stdout);
}

static void print_json(const struct backup_report *report, const struct backup_pruned *pruned)
{
	char moment[BACKUP_MOMENT_BYTES];
	struct buffer out;
	struct json_writer json;
	backup_moment_print(&report->moment, moment);
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "moment", span_text(moment));
	json_writer_i64(&json, "change", report->moment.change);
	json_writer_bool(&json, "new", report->is_new);
	json_writer_u64(&json, "files", report->files);
	json_writer_u64(&json, "bytes", report->bytes);
	json_writer_u64(&json, "pieces_shipped", report->pieces);
	json_writer_u64(&json, "bytes_shipped", report->shipped);
	json_writer_u64(&json, "files_lacking", report->lacking);
	if (report->lacking > 0)
		json_writer_text(&json, "lack", span_text(report->lack));
	if (pruned != NULL) {
		json_writer_u64(&json, "moments_left", pruned->left);
		json_writer_u64(&json, "moments_removed", pruned->moments);
		json_writer_u64(&json, "pieces_removed", pruned->pieces);
		json_writer_u64(&json, "bytes_removed", pruned->bytes);
	}
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

static void print_text(const struct backup_report *report, const struct backup_pruned *pruned)
{
	char moment[BACKUP_MOMENT_BYTES];
	backup_moment_print(&report->moment, moment);
	if (report->is_new)
		printf("%s: %" PRIu64 " files of %" PRIu64 " bytes; %" PRIu64 " pieces of %" PRIu64
		       " bytes were shipped\n",
			moment, report->files, report->bytes, report->pieces, report->shipped);
	else
		printf("%s: nothing has changed since\n", moment);
	if (report->lacking > 0)
		printf("%" PRIu64 " files are damaged or incomplete in the store, and so in it: %s\n",
			report->lacking, report->lack);
	if (pruned != NULL && pruned->moments + pruned->pieces > 0)
		printf("%" PRIu64 " moments and %" PRIu64 " pieces of %" PRIu64
		       " bytes were removed; %" PRIu64 " moments are left\n",
			pruned->moments, pruned->pieces, pruned->bytes, pruned->left);
}
