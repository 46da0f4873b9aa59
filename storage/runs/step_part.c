/* start --helper: missing digests--> queued --apply: judge, pin, write--> COMMIT --not the last one--> done
 *                                                                            '--helper: merge, check--> queued --publish--> COMMIT --> done
 *                                                                                   '--they do not fit--> queued --drop--> COMMIT --> done */
#include "storage/runs/step_part.h"

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/runs/run_change.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/step_pin.h"

static struct run_change *change_of(struct helper_job *job)
{
	return (struct run_change *)((char *)job - offsetof(struct run_change, job));
}

static void resubmit(struct run_change *change,
	int (*apply)(struct change *base, struct db *db, struct error *err),
	void (*done)(struct change *base))
{
	change->change = (struct change){.done = done};
	run_change_submit(change, apply);
}

static void finish(struct run_change *change)
{
	change->done(change->owner);
}

static void fail(struct run_change *change, const struct error *err)
{
	change->change.failed = true;
	change->change.error = *err;
	finish(change);
}

static int apply_drop(struct change *base, struct db *db, struct error *err)
{
	const struct run_change *const change = (const struct run_change *)base;
	return step_part_row_settle(db, change->run_id, change->part->last_id, STEP_PART_DEAD, err);
}

static void dropped(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	/* when they could not be dropped, they go after an hour */
	fail(change, &change->part->fault);
}

/* What putting the same parts again cannot cure. */
static bool is_for_good(enum error_kind kind)
{
	static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_TOO_LARGE,
		ERROR_PARTS_MISMATCH, ERROR_SCHEMA_MISMATCH, ERROR_INCOMPLETE_ANCHOR,
		ERROR_DIGEST_MISMATCH, ERROR_BASE_MISSING, ERROR_NO_KEY, ERROR_STEP_DIFFERS};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kind == kinds[i])
			return true;
	return false;
}

static void refuse_whole(struct run_change *change, const struct error *err)
{
	change->part->fault = *err;
	if (!is_for_good(err->kind)) {
		fail(change, err);
		return;
	}
	error_wrap(&change->part->fault,
		"the parts of step %llu were dropped, all are to be put again",
		(unsigned long long)change->part->answer.step);
	resubmit(change, apply_drop, dropped);
}

static void whole_done(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	if (base->failed) {
		const struct error err = base->error;
		refuse_whole(change, &err);
		return;
	}
	change->part->answer.published = true;
	step_published(change);
	finish(change);
}

static int read_part(struct run_change *change, const struct step_part_row *row,
	struct part_message *out, struct error *err)
{
	if (part_message_parse(row->document, row->step, change->arena, out, err) != 0)
		return -1;
	const struct digest128 content = part_message_content_digest(out, row->parts);
	if (!digest128_equal(&content, &row->content))
		return error_set(err, ERROR_CORRUPT,
			"The catalog's part %llu of a step is damaged.",
			(unsigned long long)row->part);
	return 0;
}

static int read_parts(struct run_change *change, struct db *db, struct error *err)
{
	struct part_work *const part = change->part;
	struct db_statement *const scan =
		step_part_row_scan(db, change->run_id, part->answer.step, err);
	int got;
	while ((got = db_step(scan, err)) == 1) {
		struct part_message *const message = arena_take(change->arena, sizeof(*message));
		struct step_part_row row;
		step_part_row_read(scan, &row);
		if (message == NULL)
			got = error_set(err, ERROR_TOO_LARGE,
				"The parts of the step are too large together.");
		if (got < 0 || read_part(change, &row, message, err) != 0 ||
			step_part_set_add(part->set, row.part, message, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static int merge(struct run_change *change, struct error *err)
{
	struct part_work *const part = change->part;
	struct db *const db = store_reader_take(change->store, err);
	if (db == NULL)
		return -1;
	part->set = step_part_set_new(part->answer.parts, change->arena);
	int result = part->set == NULL
		? error_set(err, ERROR_TOO_LARGE, "The step has too many parts.")
		: read_parts(change, db, err);
	store_reader_give(change->store, db);
	if (result == 0)
		result = step_part_set_merge(part->set, &change->step, err);
	return result;
}

static void make_whole(struct helper_job *job)
{
	struct run_change *const change = change_of(job);
	struct error err = {0};
	if (merge(change, &err) != 0) {
		refuse_whole(change, &err);
		return;
	}
	step_check_run(change->store, change->bucket, change->run, &change->step, change->part->set,
		&change->check);
	resubmit(change, step_publish_apply, whole_done);
}

static void accepted(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	const struct part_work *const part = change->part;
	if (base->failed || part->answer.published || part->answer.received < part->answer.parts) {
		finish(change);
		return;
	}
	change->job.run = make_whole;
	helpers_submit(store_helpers(change->store),
		store_publish_lane(change->store, xxh3_64(change->run)), &change->job);
}

static int check_numbers(const struct part_work *part, struct error *err)
{
	if (part->answer.parts == 0 || part->answer.parts > PARTS_OF_STEP_MAX)
		return error_set(err, ERROR_INVALID, "A step has 1 to %d parts, not %llu.",
			PARTS_OF_STEP_MAX, (unsigned long long)part->answer.parts);
	if (part->answer.part < part->answer.parts)
		return 0;
	return error_set(err, ERROR_INVALID, "There is no part %llu of %llu: they count from 0.",
		(unsigned long long)part->answer.part, (unsigned long long)part->answer.parts);
}

/* It was put before: the same again is told how things stand. */
static int repeat(struct run_change *change, struct db *db, const struct step_part_row *row,
	struct error *err)
{
	struct part_work *const part = change->part;
	struct step_part_count count;
	change->already = true;
	const struct digest128 content =
		part_message_content_digest(&part->message, part->answer.parts);
	if (!digest128_equal(&content, &row->content))
		return error_set(err, ERROR_STEP_DIFFERS,
			"Part %llu of step %llu was put with other content.",
			(unsigned long long)row->part, (unsigned long long)row->step);
	part->answer.published = row->state != STEP_PART_WAITING;
	part->answer.received = row->parts;
	if (part->answer.published)
		return 0;
	if (step_part_row_count(db, row->run, row->step, &count, err) != 0)
		return -1;
	part->answer.received = count.here;
	part->last_id = count.last;
	return 0;
}

/* Which versions the objects are; the document says so. */
static int resolve(struct run_change *change, struct db *db, const struct run_row *run,
	int64_t *sequences, struct error *err)
{
	const struct step_message *const step = &change->part->message.step;
	size_t at = 0;
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			struct step_object *const object = &step->forms[f].objects[i];
			struct version version;
			char id[2 * VERSION_ID_BYTES + 1];
			if (step_resolve_object(db, run->bucket, object, &version, err) != 0)
				return -1;
			encode_hex(span_of(version.id, sizeof(version.id)), id);
			object->version = arena_copy(change->arena, span_text(id));
			sequences[at++] = version.sequence;
		}
	return 0;
}

static int pin(const struct step_message *step, struct db *db, int64_t id, const int64_t *sequences,
	struct error *err)
{
	size_t at = 0;
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++)
			if (step_pin_add(db, -id, (enum step_pin_form)step->forms[f].kind,
				    step->forms[f].objects[i].name, sequences[at++], err) != 0)
				return -1;
	return 0;
}

static int write_part(
	struct run_change *change, struct db *db, const struct run_row *run, struct error *err)
{
	struct part_work *const part = change->part;
	const struct clock_source *const clock = store_clock(change->store);
	int64_t *const sequences = arena_take_array(
		change->arena, STEP_FORMS_MAX * STEP_OBJECTS_MAX, sizeof(*sequences));
	struct buffer document;
	if (sequences == NULL)
		return error_set(err, ERROR_TOO_LARGE, "The part is too large.");
	if (resolve(change, db, run, sequences, err) != 0)
		return -1;
	buffer_init(&document, 2 * STEP_MESSAGE_MAX_BYTES);
	part_message_print(&part->message, &document);
	struct step_part_row row = {.run = run->id,
		.step = part->answer.step,
		.part = part->answer.part,
		.parts = part->answer.parts,
		.epoch = run->epoch,
		.content = part_message_content_digest(&part->message, part->answer.parts),
		.document = buffer_span(&document),
		.created_ms = clock->wall_ms(clock)};
	int result = buffer_check(&document, "the part", err);
	if (result == 0)
		result = step_part_row_add(db, &row, err);
	buffer_release(&document);
	part->last_id = row.id;
	return result == 0 ? pin(&part->message.step, db, row.id, sequences, err) : -1;
}

static int add_part(
	struct run_change *change, struct db *db, const struct run_row *run, struct error *err)
{
	struct part_answer *const answer = &change->part->answer;
	const struct step_message *const step = &change->part->message.step;
	struct step_part_count count;
	if (step_check_place(run, step, err) != 0 ||
		step_part_row_count(db, run->id, step->step, &count, err) != 0)
		return -1;
	if (count.here > 0 && count.parts != answer->parts)
		return error_set(err, ERROR_STEP_DIFFERS,
			"The parts of step %llu were announced as %llu, not %llu.",
			(unsigned long long)step->step, (unsigned long long)count.parts,
			(unsigned long long)answer->parts);
	answer->received = count.here + 1;
	return write_part(change, db, run, err);
}

static int apply_part(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	struct part_work *const part = change->part;
	struct run_row run;
	struct step_part_row row;
	if (check_numbers(part, err) != 0 ||
		run_row_need(db, change->bucket, change->run, &run, err) != 0)
		return -1;
	if (step_check_epoch(&run, &part->message.step, err) != 0)
		return -1;
	change->run_id = run.id;
	const int found = step_part_row_find(
		db, run.id, part->answer.step, part->answer.part, run.epoch, &row, err);
	if (found < 0)
		return -1;
	return found == 1 ? repeat(change, db, &row, err) : add_part(change, db, &run, err);
}

/* Objects that came in several parts of their own have no digest yet. What else is wrong is for the
 * change to say. */
static void give_digests(struct helper_job *job)
{
	struct run_change *const change = change_of(job);
	struct error ignored;
	int64_t bucket;
	struct db *const db = store_reader_take(change->store, &ignored);
	const bool found =
		db != NULL && bucket_row_find(db, change->bucket, &bucket, &ignored) == 0;
	store_reader_give(change->store, db);
	if (found)
		(void)step_give_digests(
			change->store, bucket, &change->part->message.step, &ignored);
	run_change_submit(change, apply_part);
}

static bool copy(const struct step_part_params *params, struct arena *arena, struct part_work *out)
{
	const struct part_message *const message = params->message;
	out->answer = (struct part_answer){
		.step = message->step.step, .part = params->part, .parts = params->parts};
	out->message.tensors =
		arena_take_array(arena, message->tensor_count + 1, sizeof(*out->message.tensors));
	if (out->message.tensors == NULL || !step_copy(&message->step, arena, &out->message.step))
		return false;
	out->message.tensor_count = message->tensor_count;
	for (size_t i = 0; i < message->tensor_count; i++) {
		out->message.tensors[i] = message->tensors[i];
		out->message.tensors[i].name = arena_copy(arena, message->tensors[i].name);
	}
	return !arena_overflowed(arena);
}

struct run_change *step_part_start(struct store *store, const struct step_part_params *params,
	void (*done)(void *owner), void *owner)
{
	struct run_change *const change =
		run_change_new(store, params->bucket, params->run, done, owner);
	change->change.done = accepted;
	change->part = arena_take(change->arena, sizeof(*change->part));
	ASSERT(change->part != NULL);
	if (!copy(params, change->arena, change->part)) {
		run_change_submit(change, apply_part);
		return change;
	}
	change->job.run = give_digests;
	helpers_submit(store_helpers(store), store_publish_lane(store, xxh3_64(change->run)),
		&change->job);
	return change;
}
