#include "server/commands/backup_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/format/json_node.h"
#include "server/commands/lack_print.h"

static const size_t NAMES_MAX_BYTES = 1024 * 1024 * 1024;

static void print_json(const struct backup_report *report, const struct backup_pruned *pruned);
static void print_text(const struct backup_report *report, const struct backup_pruned *pruned);
static void print_verified_json(const struct backup_verified *verified);
static void print_names(
	struct json_writer *json, const char *member, const struct backup_names *names);
static void print_verified_text(const struct backup_verified *verified);

void backup_report_print(
	const struct backup_report *report, const struct backup_pruned *pruned, bool json)
{
	(json ? print_json : print_text)(report, pruned);
	fflush(stdout);
}

void backup_report_print_verified(const struct backup_verified *verified, bool json)
{
	(json ? print_verified_json : print_verified_text)(verified);
	fflush(stdout);
}

void backup_report_tell_unnoted(const struct backup_report *report)
{
	if (report->unnoted[0] != '\0')
		fprintf(stderr,
			"deltabucketd: backup: It goes on without notes of what is there: %s. Pieces of an"
			" encrypted backup travel again.\n",
			report->unnoted);
}

void backup_report_tell_reader(const struct backup_pruned *pruned)
{
	fprintf(stderr,
		"deltabucketd: backup: Nothing is pruned while the place is read (%s). It counts for 24"
		" hours after its last use.\n",
		pruned->reader);
}

static void print_json(const struct backup_report *report, const struct backup_pruned *pruned)
{
	char moment[BACKUP_MOMENT_BYTES];
	struct buffer out;
	struct json_writer json;
	backup_moment_print(&report->moment, moment);
	buffer_init(&out, NAMES_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "moment", span_text(moment));
	json_writer_i64(&json, "change", report->moment.change);
	json_writer_bool(&json, "new", report->is_new);
	json_writer_u64(&json, "files", report->files);
	json_writer_u64(&json, "bytes", report->bytes);
	json_writer_u64(&json, "pieces_shipped", report->pieces);
	json_writer_u64(&json, "bytes_shipped", report->shipped);
	json_writer_u64(&json, "pieces_missing", report->missing);
	json_writer_u64(&json, "files_lacking", report->lacks->count);
	if (report->lacks->count > 0)
		json_writer_text(&json, "lack", span_text(report->lacks->items[0].why));
	lack_print_json(report->lacks, "lacks", &json);
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
	if (!report->is_new && report->pieces > 0)
		printf("%" PRIu64 " pieces of %" PRIu64
		       " bytes were missing there and were shipped again\n",
			report->pieces, report->shipped);
	if (report->missing > 0)
		printf("%" PRIu64
		       " pieces that older moments need are missing there, and the store does"
		       " not have them any more; --verify names them\n",
			report->missing);
	lack_print_lines(report->lacks);
	if (report->lacks->count > 0)
		printf("%zu files are damaged or incomplete in the store, and so in it\n",
			report->lacks->count);
	if (pruned != NULL && pruned->moments + pruned->pieces > 0)
		printf("%" PRIu64 " moments and %" PRIu64 " pieces of %" PRIu64
		       " bytes were removed; %" PRIu64 " moments are left\n",
			pruned->moments, pruned->pieces, pruned->bytes, pruned->left);
}

static void print_verified_json(const struct backup_verified *verified)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, NAMES_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_u64(&json, "moments", verified->moments);
	json_writer_u64(&json, "pieces", verified->pieces);
	json_writer_u64(&json, "bytes", verified->bytes);
	print_names(&json, "put_again", &verified->mended);
	print_names(&json, "lost", &verified->lost);
	print_names(&json, "moments_touched", &verified->touched);
	lack_print_json(&verified->damaged, "damaged", &json);
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

static void print_names(
	struct json_writer *json, const char *member, const struct backup_names *names)
{
	json_writer_array(json, member);
	for (size_t i = 0; i < names->count; i++)
		json_writer_text(json, NULL, span_text(names->items[i].text));
	json_writer_end(json, ']');
}

static void print_verified_text(const struct backup_verified *verified)
{
	for (size_t i = 0; i < verified->mended.count; i++)
		printf("put again: %s\n", verified->mended.items[i].text);
	for (size_t i = 0; i < verified->lost.count; i++)
		printf("lost: %s\n", verified->lost.items[i].text);
	for (size_t i = 0; i < verified->touched.count; i++)
		printf("not whole any more: %s\n", verified->touched.items[i].text);
	lack_print_lines(&verified->damaged);
	printf("%" PRIu64 " moments: %" PRIu64 " pieces of %" PRIu64
	       " bytes are as they were backed up, %zu were put again, %zu are lost\n",
		verified->moments, verified->pieces, verified->bytes, verified->mended.count,
		verified->lost.count);
}
