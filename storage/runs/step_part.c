/* A part goes through the stages in the table at the end: its digests, then the change that takes
 * it. The last part goes on: a helper merges all parts into the whole step, and a change publishes
 * it. If the whole can never be published, a change drops the parts. */
#include "storage/runs/step_part.h"

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/runs/step_digest.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/step_publish.h"
#include "storage/runs/step_read.h"

enum { PART_ARENA_BYTES = 64 * 1024 * 1024 };

struct step_part {
	struct call call;
	struct part_message message;
	struct part_answer answer;
	bool already;
	int64_t run_id;              /* id of the run's row, once it is found */
	int64_t last_id;             /* highest id of the step's parts */
	struct step_publish publish; /* of the whole step; its run is that of the part */
	/* the parts never make a whole and must be dropped; `fault` says why */
	bool is_refused;
	struct error fault;
};

static enum call_next step_part_give_digests(struct call *call, struct error *err);
static int step_part_apply(struct call *call, struct db *db, struct error *err);
static int check_numbers(const struct step_part *part, struct error *err);
static int repeat_part(
	struct step_part *part, struct db *db, const struct step_part_row *row, struct error *err);
static int add_part(
	struct step_part *part, struct db *db, const struct run_row *run, struct error *err);
static int write_part(
	struct step_part *part, struct db *db, const struct run_row *run, struct error *err);
static int resolve_objects(struct step_part *part, struct db *db, const struct run_row *run,
	int64_t *sequences, struct error *err);
static int add_objects(const struct step_message *step, struct db *db, int64_t id,
	const int64_t *sequences, struct error *err);
static enum call_next step_part_applied(struct call *call);
static enum call_next step_part_make_whole(struct call *call, struct error *err);
static int merge(struct step_part *part, struct step_part_set *set, struct error *err);
static int read_parts(
	struct step_part *part, struct db *db, struct step_part_set *set, struct error *err);
static int read_part(struct step_part *part, const struct step_part_row *row,
	struct part_message *out, struct error *err);
static enum call_next refuse_whole(
	struct step_part *part, const struct error *err, enum call_next drop);
static bool is_permanent(enum error_kind kind);
static int step_part_apply_whole(struct call *call, struct db *db, struct error *err);
static enum call_next step_part_applied_whole(struct call *call);
static void step_part_release(struct call *call);
static void copy(const struct part_message *message, struct arena *arena, struct part_message *out);

static const struct call_kind part_kind = {
	.stages = {{.help = step_part_give_digests},
		{.apply = step_part_apply, .applied = step_part_applied},
		{.help = step_part_make_whole},
		{.apply = step_part_apply_whole, .applied = step_part_applied_whole}},
	.release = step_part_release,
};

struct call *step_part_call(struct store *store, const struct step_part_params *params)
{
	struct step_part *const part = call_new(sizeof(*part), &part_kind, store, PART_ARENA_BYTES);
	struct arena *const arena = part->call.arena;
	part->answer = (struct part_answer){
		.step = params->message->step.step, .part = params->part, .parts = params->parts};
	part->publish = (struct step_publish){.store = store,
		.arena = arena,
		.run = run_ref_copy(&params->run, arena),
		.is_of_parts = true,
		.part = params->part};
	copy(params->message, arena, &part->message);
	part->call.lane = store_publish_lane(store, xxh3_64(part->publish.run.name));
	return &part->call;
}

const struct part_answer *step_part_result(const struct call *call, bool *out_already)
{
	ASSERT(call->kind == &part_kind);
	const struct step_part *const part = (const struct step_part *)call;
	*out_already = part->already;
	return &part->answer;
}

/* Objects from multipart uploads have no digest yet. Anything else that is wrong is left for the
 * change to report. */
static enum call_next step_part_give_digests(struct call *call, struct error *err)
{
	const struct step_part *const part = (const struct step_part *)call;
	struct error ignored;
	int64_t bucket;
	struct db *const db = store_reader_take(call->store, &ignored);
	const bool found =
		db != NULL && bucket_row_find(db, part->publish.run.bucket, &bucket, &ignored) == 0;
	(void)err;
	store_reader_give(call->store, db);
	if (found)
		(void)step_give_digests(call->store, bucket, &part->message.step, &ignored);
	return CALL_NEXT;
}

static int step_part_apply(struct call *call, struct db *db, struct error *err)
{
	struct step_part *const part = (struct step_part *)call;
	struct run_row run;
	struct step_part_row row;
	struct step_part_key key = {.step = part->answer.step, .part = part->answer.part};
	if (check_numbers(part, err) != 0 || run_row_need(db, &part->publish.run, &run, err) != 0 ||
		step_check_epoch(&run, &part->message.step, err) != 0)
		return -1;
	part->run_id = run.id;
	key.run = run.id;
	key.epoch = run.epoch;
	const int found = step_part_row_find(db, &key, &row, err);
	if (found < 0)
		return -1;
	return found == 1 ? repeat_part(part, db, &row, err) : add_part(part, db, &run, err);
}

static int check_numbers(const struct step_part *part, struct error *err)
{
	if (part->answer.parts == 0 || part->answer.parts > PARTS_OF_STEP_MAX)
		return error_set(err, ERROR_INVALID, "A step has 1 to %d parts, not %llu.",
			PARTS_OF_STEP_MAX, (unsigned long long)part->answer.parts);
	if (part->answer.part < part->answer.parts)
		return 0;
	return error_set(err, ERROR_INVALID, "There is no part %llu of %llu: parts count from 0.",
		(unsigned long long)part->answer.part, (unsigned long long)part->answer.parts);
}

/* The part was put before. When it is the same again, the answer says how things stand now. */
static int repeat_part(
	struct step_part *part, struct db *db, const struct step_part_row *row, struct error *err)
{
	struct step_part_count count;
	part->already = true;
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

static int add_part(
	struct step_part *part, struct db *db, const struct run_row *run, struct error *err)
{
	struct part_answer *const answer = &part->answer;
	const struct step_message *const step = &part->message.step;
	struct step_part_count count;
	if (step_check_place(run, step, err) != 0 ||
		step_part_row_count(db, run->id, step->step, &count, err) != 0)
		return -1;
	if (count.here > 0 && count.parts != answer->parts)
		return error_set(err, ERROR_STEP_DIFFERS,
			"Step %llu was announced with %llu parts, not %llu.",
			(unsigned long long)step->step, (unsigned long long)count.parts,
			(unsigned long long)answer->parts);
	answer->received = count.here + 1;
	return write_part(part, db, run, err);
}

static int write_part(
	struct step_part *part, struct db *db, const struct run_row *run, struct error *err)
{
	int64_t *const sequences = arena_take_array(
		part->call.arena, STEP_FORMS_MAX * STEP_OBJECTS_MAX, sizeof(*sequences));
	struct buffer document;
	if (sequences == NULL)
		return error_set(err, ERROR_TOO_LARGE, "The part is too large.");
	if (resolve_objects(part, db, run, sequences, err) != 0)
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
		.created_ms = store_now_ms(part->call.store)};
	int result = buffer_check(&document, "the part", err);
	if (result == 0)
		result = step_part_row_add(db, &row, err);
	buffer_release(&document);
	part->last_id = row.id;
	return result == 0 ? add_objects(&part->message.step, db, row.id, sequences, err) : -1;
}

/* Finds the version of each object and writes its id into the part's document. */
static int resolve_objects(struct step_part *part, struct db *db, const struct run_row *run,
	int64_t *sequences, struct error *err)
{
	const struct step_message *const step = &part->message.step;
	size_t at = 0;
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			struct step_object *const object = &step->forms[f].objects[i];
			struct version version;
			char id[2 * VERSION_ID_BYTES + 1];
			if (step_resolve_object(db, run->bucket, object, &version, err) != 0)
				return -1;
			encode_hex(span_of(version.id, sizeof(version.id)), id);
			object->version = arena_copy(part->call.arena, span_text(id));
			ASSERT(at < STEP_FORMS_MAX * STEP_OBJECTS_MAX);
			sequences[at++] = version.sequence;
		}
	return 0;
}

static int add_objects(const struct step_message *step, struct db *db, int64_t id,
	const int64_t *sequences, struct error *err)
{
	ASSERT(id > 0);
	size_t at = 0;
	for (size_t f = 0; f < step->form_count; f++)
		for (size_t i = 0; i < step->forms[f].object_count; i++)
			if (step_pin_add(db, -id, (enum step_pin_form)step->forms[f].kind,
				    step->forms[f].objects[i].name, sequences[at++], err) != 0)
				return -1;
	return 0;
}

static enum call_next step_part_applied(struct call *call)
{
	const struct part_answer *const answer = &((const struct step_part *)call)->answer;
	if (call->failed)
		return CALL_FAILS;
	return answer->published || answer->received < answer->parts ? CALL_ENDS : CALL_NEXT;
}

static enum call_next step_part_make_whole(struct call *call, struct error *err)
{
	struct step_part *const part = (struct step_part *)call;
	struct step_publish *const publish = &part->publish;
	ASSERT(part->run_id > 0 && part->last_id > 0);
	struct step_part_set *const set = step_part_set_new(part->answer.parts, call->arena);
	if (merge(part, set, err) != 0)
		return refuse_whole(part, err, CALL_NEXT);
	step_check_run(call->store, &publish->run, &publish->step, set, &publish->check);
	return CALL_NEXT;
}

static int merge(struct step_part *part, struct step_part_set *set, struct error *err)
{
	struct store *const store = part->call.store;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = set == NULL ? error_set(err, ERROR_TOO_LARGE, "The step has too many parts.")
				 : read_parts(part, db, set, err);
	store_reader_give(store, db);
	if (result == 0)
		result = step_part_set_merge(set, &part->publish.step, err);
	return result;
}

static int read_parts(
	struct step_part *part, struct db *db, struct step_part_set *set, struct error *err)
{
	struct arena *const arena = part->call.arena;
	struct db_statement *const scan =
		step_part_row_scan(db, part->run_id, part->answer.step, err);
	int got;
	while ((got = db_step(scan, err)) == 1) {
		struct part_message *const message = arena_take(arena, sizeof(*message));
		struct step_part_row row;
		step_part_row_read(scan, &row);
		if (message == NULL)
			got = error_set(err, ERROR_TOO_LARGE,
				"The parts of the step are too large together.");
		if (got < 0 || read_part(part, &row, message, err) != 0 ||
			step_part_set_add(set, row.part, message, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static int read_part(struct step_part *part, const struct step_part_row *row,
	struct part_message *out, struct error *err)
{
	if (part_message_parse(row->document, row->step, part->call.arena, out, err) != 0)
		return -1;
	const struct digest128 content = part_message_content_digest(out, row->parts);
	if (!digest128_equal(&content, &row->content))
		return error_set(err, ERROR_CORRUPT,
			"Part %llu of step %llu is damaged in the catalog.",
			(unsigned long long)row->part, (unsigned long long)row->step);
	return 0;
}

/* Decides how to go on after the whole step has failed with *err. `drop` leads to the change that
 * drops the parts. */
static enum call_next refuse_whole(
	struct step_part *part, const struct error *err, enum call_next drop)
{
	if (!is_permanent(err->kind))
		return CALL_FAILS;
	part->is_refused = true;
	part->fault = *err;
	error_wrap(&part->fault, "the parts of step %llu were dropped and must all be put again",
		(unsigned long long)part->answer.step);
	return drop;
}

/* Whether putting the same parts again gives the same failure. */
static bool is_permanent(enum error_kind kind)
{
	static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_TOO_LARGE,
		ERROR_PARTS_MISMATCH, ERROR_SCHEMA_MISMATCH, ERROR_INCOMPLETE_ANCHOR,
		ERROR_DIGEST_MISMATCH, ERROR_BASE_MISSING, ERROR_NO_KEY, ERROR_STEP_DIFFERS};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kind == kinds[i])
			return true;
	return false;
}

static int step_part_apply_whole(struct call *call, struct db *db, struct error *err)
{
	struct step_part *const part = (struct step_part *)call;
	return part->is_refused
		? step_part_row_settle(db, part->run_id, part->last_id, STEP_PART_DEAD, err)
		: step_publish_apply(&part->publish, db, err);
}

static enum call_next step_part_applied_whole(struct call *call)
{
	struct step_part *const part = (struct step_part *)call;
	if (part->is_refused) {
		/* parts that could not be dropped die after an hour */
		call->error = part->fault;
		return CALL_FAILS;
	}
	if (call->failed)
		return refuse_whole(part, &call->error, CALL_AGAIN);
	part->answer.published = true;
	part->already = part->publish.already;
	step_publish_tell(&part->publish);
	return CALL_ENDS;
}

static void step_part_release(struct call *call)
{
	step_publish_release(&((struct step_part *)call)->publish);
}

/* The call itself fails when the texts do not fit into its arena. */
static void copy(const struct part_message *message, struct arena *arena, struct part_message *out)
{
	out->tensors = arena_take_array(arena, message->tensor_count + 1, sizeof(*out->tensors));
	if (out->tensors == NULL || !step_copy(&message->step, arena, &out->step))
		return;
	out->tensor_count = message->tensor_count;
	for (size_t i = 0; i < message->tensor_count; i++) {
		out->tensors[i] = message->tensors[i];
		out->tensors[i].name = arena_copy(arena, message->tensors[i].name);
	}
}
