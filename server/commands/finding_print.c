/* Keys and names are bytes that clients chose, and of damaged rows anything: what is not printable
 * becomes a question mark. */
#include "server/commands/finding_print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/encode.h"

enum { KEYS_SHOWN = 5, STEPS_SHOWN = 5, PARTS_SHOWN = 5, TEXT_BYTES = 2200 };

static const char *const form_names[REACH_FORMS] = {
	[REACH_STEP] = "step", [REACH_PART] = "part of step", [REACH_FOLD] = "fold to step"};

static void print_keys(const struct reach *reach);
static void print_steps(const struct reach *reach);
static void print_uploads(const struct reach *reach);
static const char *printable(struct span text, char out[TEXT_BYTES]);
static void keys_json(const struct reach *reach, struct json_writer *json);
static void key_json(const struct reach_key *key, struct json_writer *json);
static void steps_json(const struct reach *reach, struct json_writer *json);
static void uploads_json(const struct reach *reach, struct json_writer *json);

void finding_print_text(const struct finding *finding, bool with_remedy)
{
	const char *remedy = finding_remedy(finding->kind);
	char subject[TEXT_BYTES];
	char detail[TEXT_BYTES];
	printf("%s: %s: %s\n", finding_severity_name(finding_severity_of(finding->kind)),
		printable(span_text(finding->subject), subject),
		printable(span_text(finding->detail), detail));
	if (finding->reach != NULL) {
		print_keys(finding->reach);
		print_steps(finding->reach);
		print_uploads(finding->reach);
	}
	if (with_remedy && remedy[0] != '\0')
		printf("    %s: %s\n",
			finding_is_repaired(finding->kind) ? "with --repair" : "not by --repair",
			remedy);
}

void finding_print_json(const struct finding *finding, struct json_writer *json)
{
	char text[TEXT_BYTES];
	json_writer_object(json, NULL);
	json_writer_text(json, "kind", span_text(finding_kind_name(finding->kind)));
	json_writer_text(json, "severity",
		span_text(finding_severity_name(finding_severity_of(finding->kind))));
	json_writer_text(json, "subject", span_text(printable(span_text(finding->subject), text)));
	json_writer_text(json, "detail", span_text(printable(span_text(finding->detail), text)));
	json_writer_bool(json, "repairable", finding_is_repaired(finding->kind));
	json_writer_text(json, "remedy", span_text(finding_remedy(finding->kind)));
	if (finding->reach != NULL) {
		keys_json(finding->reach, json);
		steps_json(finding->reach, json);
		uploads_json(finding->reach, json);
	}
	json_writer_end(json, '}');
}

void fsck_report_print_text(const struct fsck_report *report)
{
	printf("checked %" PRIu64 " packs (%" PRIu64 " chunks, %" PRIu64 " bytes read), %" PRIu64
	       " versions, %" PRIu64 " steps, and a journal of %" PRIu64
	       " records after its snapshot, up to change %" PRId64 "\n",
		report->packs, report->chunks, report->pack_bytes, report->versions, report->steps,
		report->journal_records, report->change);
	printf("damage: %" PRIu64 ", faults: %" PRIu64 ", notes: %" PRIu64 "\n",
		report->findings[FINDING_DAMAGE], report->findings[FINDING_FAULT],
		report->findings[FINDING_NOTE]);
}

void fsck_report_print_json(const struct fsck_report *report, struct json_writer *json)
{
	const struct {
		const char *name;
		uint64_t value;
	} members[] = {{"packs", report->packs}, {"pack_bytes", report->pack_bytes},
		{"chunks", report->chunks}, {"versions", report->versions},
		{"steps", report->steps}, {"journal_records", report->journal_records},
		{"change", (uint64_t)report->change}, {"damage", report->findings[FINDING_DAMAGE]},
		{"faults", report->findings[FINDING_FAULT]},
		{"notes", report->findings[FINDING_NOTE]}};
	json_writer_object(json, "checked");
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		json_writer_u64(json, members[i].name, members[i].value);
	json_writer_end(json, '}');
}

static void print_keys(const struct reach *reach)
{
	char bucket[TEXT_BYTES];
	char name[TEXT_BYTES];
	size_t listed, count;
	const struct reach_key *keys = reach_keys(reach, &listed, &count);
	const size_t shown = listed < KEYS_SHOWN ? listed : KEYS_SHOWN;
	for (size_t i = 0; i < shown; i++)
		printf("    key %s/%s%s\n", printable(keys[i].bucket, bucket),
			printable(keys[i].key, name),
			keys[i].is_current ? "" : " (an older version)");
	if (count > shown)
		printf("    and %zu more keys\n", count - shown);
}

static void print_steps(const struct reach *reach)
{
	char bucket[TEXT_BYTES];
	char run[TEXT_BYTES];
	size_t listed, count;
	const struct reach_step *steps = reach_steps(reach, &listed, &count);
	const size_t shown = listed < STEPS_SHOWN ? listed : STEPS_SHOWN;
	for (size_t i = 0; i < shown; i++)
		printf("    %s %" PRId64 " of run %s/%s\n", form_names[steps[i].form],
			steps[i].step, printable(steps[i].bucket, bucket),
			printable(steps[i].run, run));
	if (count > shown)
		printf("    and %zu more steps\n", count - shown);
}

static void print_uploads(const struct reach *reach)
{
	char bucket[TEXT_BYTES];
	char key[TEXT_BYTES];
	char id[2 * REACH_UPLOAD_ID_BYTES + 1];
	size_t listed, count;
	const struct reach_upload *uploads = reach_uploads(reach, &listed, &count);
	const size_t shown = listed < PARTS_SHOWN ? listed : PARTS_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		encode_hex(span_of(uploads[i].id, REACH_UPLOAD_ID_BYTES), id);
		printf("    part %" PRIu32 " of upload %s of %s/%s\n", uploads[i].part, id,
			printable(uploads[i].bucket, bucket), printable(uploads[i].key, key));
	}
	if (count > shown)
		printf("    and %zu more parts of uploads\n", count - shown);
}

static const char *printable(struct span text, char out[TEXT_BYTES])
{
	const uint8_t last = span_is_utf8(text) ? 0xff : 0x7e;
	size_t len = 0;
	for (; len < text.len && len + 1 < TEXT_BYTES; len++) {
		const uint8_t byte = text.data[len];
		out[len] = byte >= ' ' && byte != 0x7f && byte <= last ? (char)byte : '?';
	}
	out[len] = '\0';
	return out;
}

static void keys_json(const struct reach *reach, struct json_writer *json)
{
	size_t listed, count;
	const struct reach_key *keys = reach_keys(reach, &listed, &count);
	json_writer_u64(json, "key_count", count);
	json_writer_array(json, "keys");
	for (size_t i = 0; i < listed; i++)
		key_json(&keys[i], json);
	json_writer_end(json, ']');
}

static void key_json(const struct reach_key *key, struct json_writer *json)
{
	char text[TEXT_BYTES];
	char id[2 * VERSION_ID_BYTES + 1] = "null";
	if (key->has_id)
		encode_hex(span_of(key->id, VERSION_ID_BYTES), id);
	json_writer_object(json, NULL);
	json_writer_text(json, "bucket", span_text(printable(key->bucket, text)));
	json_writer_text(json, "key", span_text(printable(key->key, text)));
	json_writer_text(json, "version", span_text(id));
	json_writer_bool(json, "current", key->is_current);
	json_writer_end(json, '}');
}

static void steps_json(const struct reach *reach, struct json_writer *json)
{
	static const char *const forms[REACH_FORMS] = {
		[REACH_STEP] = "step", [REACH_PART] = "part", [REACH_FOLD] = "fold"};
	char text[TEXT_BYTES];
	size_t listed, count;
	const struct reach_step *steps = reach_steps(reach, &listed, &count);
	json_writer_u64(json, "step_count", count);
	json_writer_array(json, "steps");
	for (size_t i = 0; i < listed; i++) {
		json_writer_object(json, NULL);
		json_writer_text(json, "bucket", span_text(printable(steps[i].bucket, text)));
		json_writer_text(json, "run", span_text(printable(steps[i].run, text)));
		json_writer_i64(json, "step", steps[i].step);
		json_writer_text(json, "form", span_text(forms[steps[i].form]));
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}

static void uploads_json(const struct reach *reach, struct json_writer *json)
{
	char text[TEXT_BYTES];
	char id[2 * REACH_UPLOAD_ID_BYTES + 1];
	size_t listed, count;
	const struct reach_upload *uploads = reach_uploads(reach, &listed, &count);
	json_writer_u64(json, "part_count", count);
	json_writer_array(json, "parts");
	for (size_t i = 0; i < listed; i++) {
		encode_hex(span_of(uploads[i].id, REACH_UPLOAD_ID_BYTES), id);
		json_writer_object(json, NULL);
		json_writer_text(json, "bucket", span_text(printable(uploads[i].bucket, text)));
		json_writer_text(json, "key", span_text(printable(uploads[i].key, text)));
		json_writer_text(json, "upload", span_text(id));
		json_writer_u64(json, "part", uploads[i].part);
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}
