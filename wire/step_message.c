/* A manifest is parsed into a local struct and copied out only when all of it is good. Fields that
 * only answers have are optional, so requests and answers share one parser. They are read first:
 * `collected` decides whether the base and the forms must be there. */
#include "wire/step_message_internal.h"

#include "base/encode.h"

enum { TENSOR_DIGEST_BYTES = sizeof(struct digest128) };

static const char *const proof_names[] = {
	[STEP_PROOF_PENDING] = "pending", [STEP_PROOF_OK] = "ok", [STEP_PROOF_FAILED] = "failed"};
enum { PROOF_NAMES = sizeof(proof_names) / sizeof(proof_names[0]) };

static void order_forms(struct step_message *step);
static int check_forms(const struct step_message *step, struct error *err);
static int parse_step(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err);
static int parse_answer_fields(const struct json_node *root, struct arena *arena,
	struct step_message *out, struct error *err);
static int parse_proof(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err);
static int parse_changed(const struct json_node *root, struct step_message *out, struct error *err);
static int parse_tensors(
	const struct json_node *root, struct arena *arena, struct span *out, struct error *err);
static void print_facts(struct json_writer *writer, const struct step_message *step);
static void print_tensors(struct json_writer *writer, struct span digests);
static void print_proof(struct json_writer *writer, const struct step_message *step);

/* A collected step may lack its base, because little is kept of it. */
int message_step_base(const struct json_node *root, struct step_message *out, struct error *err)
{
	const struct json_node *const base = json_node_member(root, "base");
	out->has_base = !message_absent(root, "base");
	if (out->has_base && out->step == 0)
		return error_set(err, ERROR_INVALID, "step 0 cannot have a \"base\".");
	if (!out->has_base && out->step > 0 && !out->collected)
		return error_set(
			err, ERROR_INVALID, "\"base\" is missing; every step but 0 has one.");
	if (!out->has_base)
		return 0;
	if (message_u64(base, "step", &out->base_step, err) != 0 ||
		message_digest(base, "digest", &out->base_digest, err) != 0)
		return error_wrap(err, "base");
	if (out->base_step != out->step - 1)
		return error_set(err, ERROR_BASE_MISSING,
			"the base of step %llu is step %llu and must be the step before it.",
			(unsigned long long)out->step, (unsigned long long)out->base_step);
	return 0;
}

int message_step_metadata(
	const struct json_node *root, struct arena *arena, struct span *out, struct error *err)
{
	const struct json_node *const metadata = json_node_member(root, "metadata");
	const struct json_node *value;
	struct span name;
	struct buffer text;
	*out = span_of(NULL, 0);
	if (message_absent(root, "metadata"))
		return 0;
	if (!json_node_is_object(metadata))
		return error_set(err, ERROR_INVALID, "\"metadata\" must be an object.");
	for (void *cursor = NULL; json_node_each(metadata, &cursor, &name, &value);)
		if (!json_node_is_text(value))
			return error_set(err, ERROR_INVALID,
				"the metadata \"%.80s\" must be a text.", (const char *)name.data);
	if (json_node_count(metadata) == 0)
		return 0;
	buffer_init(&text, STEP_METADATA_MAX_BYTES);
	json_node_print(metadata, &text);
	int result = buffer_check(&text, "\"metadata\"", err);
	if (result == 0) {
		*out = arena_copy(arena, buffer_span(&text));
		result = message_arena_check(arena, err);
	}
	buffer_release(&text);
	return result;
}

int message_step_forms(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err)
{
	const struct json_node *list;
	if (message_array(root, "forms", STEP_FORMS_MAX, &list, err) != 0)
		return -1;
	out->form_count = json_node_count(list);
	for (size_t i = 0; i < out->form_count; i++)
		if (message_form(json_node_at(list, i), arena, &out->forms[i], err) != 0)
			return error_wrap(err, "forms[%zu]", i);
	order_forms(out);
	return check_forms(out, err);
}

const char *step_proof_name(enum step_proof proof)
{
	ASSERT(proof > STEP_PROOF_NONE && proof <= STEP_PROOF_FAILED);
	return proof_names[proof];
}

int step_message_parse(
	struct span json, struct arena *arena, struct step_message *out, struct error *err)
{
	struct step_message step = {0};
	if (json.len > STEP_MESSAGE_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE, "The step manifest has over %d bytes.",
			STEP_MESSAGE_MAX_BYTES);
	struct json_node *const root =
		json_node_parse_within(json, STEP_MESSAGE_MAX_VALUES, "The step manifest", err);
	if (root == NULL)
		return -1;
	const int result = parse_step(root, arena, &step, err);
	json_node_free(root);
	if (result != 0)
		return error_wrap(err, "The step manifest is refused");
	*out = step;
	return 0;
}

const struct step_file *step_file_find(
	const struct step_file *files, size_t count, struct span path)
{
	for (size_t i = 0; i < count; i++)
		if (span_equal(files[i].path, path))
			return &files[i];
	return NULL;
}

const struct step_form *step_message_form(const struct step_message *step, enum step_form_kind kind)
{
	ASSERT(step->form_count <= STEP_FORMS_MAX);
	for (size_t i = 0; i < step->form_count; i++)
		if (step->forms[i].kind == kind)
			return &step->forms[i];
	return NULL;
}

void message_print_base(struct json_writer *writer, const struct step_message *step)
{
	if (!step->has_base) {
		json_writer_null(writer, "base");
		return;
	}
	json_writer_object(writer, "base");
	json_writer_u64(writer, "step", step->base_step);
	message_print_digest(writer, "digest", &step->base_digest);
	json_writer_end(writer, '}');
}

void step_message_print(
	const struct step_message *step, const char *run, bool with_tensors, struct buffer *out)
{
	struct json_writer writer;
	ASSERT(step->form_count <= STEP_FORMS_MAX);
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	if (run != NULL)
		json_writer_text(&writer, "run", span_text(run));
	print_facts(&writer, step);
	if (with_tensors && step->tensor_digests.len > 0)
		print_tensors(&writer, step->tensor_digests);
	json_writer_raw(
		&writer, "metadata", step->metadata.len > 0 ? step->metadata : span_text("{}"));
	message_print_files(&writer, "files", step->files, step->file_count);
	json_writer_array(&writer, "forms");
	for (size_t i = 0; i < step->form_count; i++)
		message_print_form(&writer, NULL, &step->forms[i]);
	json_writer_end(&writer, ']');
	if (step->collected)
		json_writer_bool(&writer, "collected", true);
	print_proof(&writer, step);
	json_writer_end(&writer, '}');
}

/* Puts the anchor first, so that equal steps stay equal in whatever order their forms came. */
static void order_forms(struct step_message *step)
{
	if (step->form_count == STEP_FORMS_MAX && step->forms[0].kind == STEP_DELTA) {
		const struct step_form delta = step->forms[0];
		step->forms[0] = step->forms[1];
		step->forms[1] = delta;
	}
}

static int check_forms(const struct step_message *step, struct error *err)
{
	if (step->collected)
		return step->form_count == 0
			? 0
			: error_set(err, ERROR_INVALID, "a collected step cannot have \"forms\".");
	if (step->form_count == 0)
		return error_set(err, ERROR_INVALID,
			"\"forms\" is empty; a step has an anchor, a delta or both.");
	if (step->form_count == STEP_FORMS_MAX && step->forms[0].kind == step->forms[1].kind)
		return error_set(err, ERROR_INVALID, "\"forms\" holds two of the kind \"%s\".",
			step_form_kind_name(step->forms[0].kind));
	if (!step->has_base && step_message_form(step, STEP_DELTA) != NULL)
		return error_set(
			err, ERROR_INVALID, "step 0 cannot have a delta, which needs a base.");
	return 0;
}

static int parse_step(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err)
{
	bool has_schema;
	if (!json_node_is_object(root))
		return error_set(err, ERROR_INVALID, "it must be a JSON object.");
	if (message_u64(root, "step", &out->step, err) != 0 ||
		message_u64(root, "epoch", &out->epoch, err) != 0)
		return -1;
	if (message_digest(root, "digest", &out->digest, err) != 0)
		return -1;
	if (message_optional_digest(root, "schema_digest", &has_schema, &out->schema_digest, err) !=
		0)
		return -1;
	if (parse_answer_fields(root, arena, out, err) != 0 ||
		message_step_base(root, out, err) != 0)
		return -1;
	if (message_optional_text(root, "label", STEP_LABEL_MAX_BYTES, arena, &out->label, err) !=
		0)
		return -1;
	if (message_publish_ms(root, out, err) != 0)
		return -1;
	if (message_step_metadata(root, arena, &out->metadata, err) != 0 ||
		parse_tensors(root, arena, &out->tensor_digests, err) != 0)
		return -1;
	if (message_files(root, "files", arena, &out->files, &out->file_count, err) != 0)
		return -1;
	return message_step_forms(root, arena, out, err);
}

int message_publish_ms(const struct json_node *root, struct step_message *out, struct error *err)
{
	out->has_publish_ms = !message_absent(root, "publish_ms");
	if (!out->has_publish_ms)
		return 0;
	if (message_u64(root, "publish_ms", &out->publish_ms, err) != 0)
		return -1;
	return out->publish_ms <= STEP_PUBLISH_MAX_MS
		? 0
		: error_set(err, ERROR_INVALID,
			  "\"publish_ms\" must be at most %llu, which is 31 days.",
			  (unsigned long long)STEP_PUBLISH_MAX_MS);
}

static int parse_answer_fields(const struct json_node *root, struct arena *arena,
	struct step_message *out, struct error *err)
{
	if (parse_proof(root, arena, out, err) != 0 || parse_changed(root, out, err) != 0)
		return -1;
	if (!message_absent(root, "anchor_due") &&
		!json_node_bool(json_node_member(root, "anchor_due"), &out->anchor_due))
		return error_set(err, ERROR_INVALID, "\"anchor_due\" must be true or false.");
	if (rollback_message_read(root, &out->rollback, err) != 0 ||
		message_time(root, "created", &out->created_ms, err) != 0)
		return -1;
	if (!message_absent(root, "collected") &&
		!json_node_bool(json_node_member(root, "collected"), &out->collected))
		return error_set(err, ERROR_INVALID, "\"collected\" must be true or false.");
	return 0;
}

static int parse_proof(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err)
{
	struct span text = {NULL, 0};
	if (message_optional_text(root, "verify_error", STEP_REASON_MAX_BYTES, arena,
		    &out->verify_error, err) != 0)
		return -1;
	if (message_absent(root, "verified"))
		return 0;
	json_node_text(json_node_member(root, "verified"), &text);
	for (size_t i = STEP_PROOF_PENDING; i < PROOF_NAMES && out->verified == STEP_PROOF_NONE;
		i++)
		if (span_equal_text(text, proof_names[i]))
			out->verified = (enum step_proof)i;
	if (out->verified == STEP_PROOF_NONE)
		return error_set(err, ERROR_INVALID,
			"\"verified\" must be \"pending\", \"ok\" or \"failed\".");
	return 0;
}

static int parse_changed(const struct json_node *root, struct step_message *out, struct error *err)
{
	const struct json_node *const changed = json_node_member(root, "changed");
	out->has_changed = !message_absent(root, "changed");
	if (!out->has_changed)
		return 0;
	if (message_u64(changed, "elements", &out->changed_elements, err) != 0 ||
		message_u64(changed, "of", &out->changed_of, err) != 0)
		return error_wrap(err, "changed");
	return 0;
}

static int parse_tensors(
	const struct json_node *root, struct arena *arena, struct span *out, struct error *err)
{
	struct span hex;
	*out = span_of(NULL, 0);
	if (message_absent(root, "tensors"))
		return 0;
	if (!json_node_text(json_node_member(root, "tensors"), &hex) ||
		hex.len % (2 * TENSOR_DIGEST_BYTES) != 0)
		return error_set(err, ERROR_INVALID,
			"\"tensors\" must be a text of 32 hex digits for each tensor.");
	uint8_t *const bytes = arena_take(arena, hex.len / 2);
	if (bytes == NULL)
		return message_too_large_for_arena(err);
	if (!decode_hex(hex, bytes, hex.len / 2))
		return error_set(err, ERROR_INVALID, "\"tensors\" must hold only hex digits.");
	*out = span_of(bytes, hex.len / 2);
	return 0;
}

static void print_facts(struct json_writer *writer, const struct step_message *step)
{
	const struct digest128 none = {{0}};
	json_writer_u64(writer, "step", step->step);
	json_writer_u64(writer, "epoch", step->epoch);
	json_writer_text(writer, "label", step->label);
	message_print_digest(writer, "digest", &step->digest);
	if (!digest128_equal(&step->schema_digest, &none))
		message_print_digest(writer, "schema_digest", &step->schema_digest);
	message_print_base(writer, step);
	if (step->created_ms != 0)
		message_print_time(writer, "created", step->created_ms);
	if (step->has_publish_ms)
		json_writer_u64(writer, "publish_ms", step->publish_ms);
}

static void print_tensors(struct json_writer *writer, struct span digests)
{
	json_writer_raw(writer, "tensors", span_text("\""));
	uint8_t *const hex = buffer_reserve(writer->out, 2 * digests.len);
	if (hex == NULL)
		return;
	encode_hex(digests, (char *)hex);
	buffer_commit(writer->out, 2 * digests.len);
	buffer_add_byte(writer->out, '"');
}

static void print_proof(struct json_writer *writer, const struct step_message *step)
{
	if (step->verified != STEP_PROOF_NONE)
		json_writer_text(writer, "verified", span_text(step_proof_name(step->verified)));
	if (step->verify_error.len > 0)
		json_writer_text(writer, "verify_error", step->verify_error);
	if (step->has_changed) {
		json_writer_object(writer, "changed");
		json_writer_u64(writer, "elements", step->changed_elements);
		json_writer_u64(writer, "of", step->changed_of);
		json_writer_end(writer, '}');
	}
	if (step->anchor_due)
		json_writer_bool(writer, "anchor_due", true);
	rollback_message_print(&step->rollback, writer);
}
