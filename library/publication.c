#include "library/publication.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/publish/publish_choice.h"
#include "client/publish/rank_share.h"
#include "library/call.h"
#include "library/sized.h"
#include "library/tensors.h"

enum {
	METADATA_MAX_BYTES = 64 * 1024,
	METADATA_NAME_MAX_BYTES = 255,
	SHOWN_NAME_BYTES = 160,
	RANKS_MAX = 4096, /* docs/protocol/steps.md, "PutPart" */
	RANKS_WAIT_S = 3600
};

static const char EVERY[] = "every=";

static int share_bytes(
	const struct library_publication *publication, uint64_t *out, struct error *err);
static int check_source(const struct deltabucket_publication *given, struct error *err);
static int read_words(struct publish_order *order, const struct deltabucket_publication *given,
	struct error *err);
static int read_anchor(const char *text, struct anchor_policy *out, struct error *err);
static int read_format(const char *name, enum delta_format *out, struct error *err);
static int read_rank(struct library_publication *publication, struct error *err);
static int read_metadata(struct library_publication *publication, struct error *err);
static int check_pair(const char *const *pairs, size_t at, struct error *err);
static int read_tensors(struct library_publication *publication, struct error *err);
static int read_tensor(
	const struct deltabucket_tensor *given, struct memory_tensor *out, struct error *err);
static int read_files(struct library_publication *publication, struct error *err);

int library_publication_read(struct library_publication *publication,
	const struct deltabucket_publication *given, struct error *err)
{
	*publication = (struct library_publication){.given = DELTABUCKET_PUBLICATION};
	buffer_init(&publication->metadata, METADATA_MAX_BYTES);
	if (library_check(given, "publication", err) != 0 ||
		sized_take(&publication->given, sizeof(publication->given), given,
			"deltabucket_publication", err) != 0 ||
		check_source(&publication->given, err) != 0 ||
		read_words(&publication->order, &publication->given, err) != 0 ||
		read_rank(publication, err) != 0 || read_metadata(publication, err) != 0)
		return -1;
	publication->order.checkpoint = publication->given.path;
	if (publication->given.path != NULL)
		return 0;
	publication->order.memory = &publication->parts;
	return read_tensors(publication, err) != 0 ? -1 : read_files(publication, err);
}

void library_publication_release(struct library_publication *publication)
{
	buffer_release(&publication->metadata);
	free(publication->tensors);
	free(publication->files);
}

int library_publication_bytes(
	const struct library_publication *publication, uint64_t *out, struct error *err)
{
	struct publish_choice choice;
	struct checkpoint *checkpoint = NULL;
	if (publication->given.path != NULL && publication->rank.ranks > 0)
		return share_bytes(publication, out, err);
	if (publication->given.path == NULL) {
		struct memory_parts parts = publication->parts;
		if (publication->rank.ranks > 0)
			parts.file_count = 0; /* the index of all ranks may be among them */
		checkpoint = memory_checkpoint_open(&parts, err);
	} else {
		publish_choice_init(&choice, NULL, 0, NULL);
		checkpoint = checkpoint_open_chosen(publication->given.path, &choice.choice, err);
		publish_choice_release(&choice);
	}
	if (checkpoint != NULL)
		*out = checkpoint_bytes(checkpoint);
	checkpoint_close(checkpoint);
	return checkpoint == NULL ? -1 : 0;
}

static int share_bytes(
	const struct library_publication *publication, uint64_t *out, struct error *err)
{
	struct publish_choice choice;
	publish_choice_init(&choice, NULL, 0, NULL);
	const struct rank_share_params share = {.checkpoint = publication->given.path,
		.rank = publication->rank.rank,
		.ranks = publication->rank.ranks,
		.choice = &choice.choice};
	const int result = rank_share_size(&share, out, err);
	publish_choice_release(&choice);
	return result;
}

static int check_source(const struct deltabucket_publication *given, struct error *err)
{
	if (given->path == NULL && given->tensors == NULL)
		return error_set(err, ERROR_INVALID,
			"the publication has neither a path nor tensors; it needs one of them");
	if (given->path != NULL && (given->tensors != NULL || given->files != NULL))
		return error_set(err, ERROR_INVALID,
			"the publication has the path %s and tensors or files in memory; it takes "
			"one or the other",
			given->path);
	if (given->files == NULL && given->file_count > 0)
		return error_set(err, ERROR_INVALID,
			"the publication says %zu files, and files is "
			"NULL",
			given->file_count);
	return 0;
}

static int read_words(
	struct publish_order *order, const struct deltabucket_publication *given, struct error *err)
{
	order->has_step = given->step >= 0;
	order->step = order->has_step ? (uint64_t)given->step : 0;
	order->label = given->label;
	if (given->label != NULL && strlen(given->label) > STEP_LABEL_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "the label has %zu bytes; it may have %d",
			strlen(given->label), STEP_LABEL_MAX_BYTES);
	if (!span_is_utf8(span_text(given->label)))
		return error_set(err, ERROR_INVALID, "the label \"%s\" is not UTF-8", given->label);
	return read_anchor(given->anchor, &order->anchor, err) != 0
		? -1
		: read_format(given->format, &order->format, err);
}

static int read_anchor(const char *text, struct anchor_policy *out, struct error *err)
{
	const bool is_every = text != NULL && strncmp(text, EVERY, strlen(EVERY)) == 0;
	struct error ignored = {0};
	if (anchor_policy_parse(is_every ? text + strlen(EVERY) : text, out, &ignored) == 0 &&
		(out->when == ANCHOR_EVERY) == is_every)
		return 0;
	return error_set(err, ERROR_INVALID,
		"the anchor is \"auto\", \"always\", \"never\" or \"every=N\", not \"%s\"", text);
}

static int read_format(const char *name, enum delta_format *out, struct error *err)
{
	*out = DELTA_ULP_CLASS;
	if (name == NULL || (delta_format_parse(span_text(name), out) && *out != DELTA_FULL))
		return 0;
	return error_set(err, ERROR_INVALID,
		"the format is that of a delta, like \"ulp-class\" or \"trl-gap\", not \"%s\"",
		name);
}

static int read_rank(struct library_publication *publication, struct error *err)
{
	const struct deltabucket_publication *const given = &publication->given;
	const struct publish_order *const order = &publication->order;
	if (given->ranks == 0 && given->rank == 0)
		return 0;
	if (given->rank >= given->ranks || given->ranks > RANKS_MAX)
		return error_set(err, ERROR_INVALID,
			"there is no rank %u of %u; ranks count from 0, and there are at most %d",
			given->rank, given->ranks, RANKS_MAX);
	if (order->format != DELTA_ULP_CLASS || order->anchor.when == ANCHOR_EVERY)
		return error_set(err, ERROR_INVALID,
			"ranks publish in the format \"ulp-class\", and their anchor is \"auto\", "
			"\"always\" or \"never\"");
	publication->rank = (struct rank_order){.rank = given->rank,
		.ranks = given->ranks,
		.has_epoch = given->epoch > 0,
		.epoch = given->epoch,
		.wait_s = given->wait_s == 0 ? RANKS_WAIT_S
			: given->wait_s < 0  ? 0
					     : (uint64_t)given->wait_s};
	return 0;
}

static int read_metadata(struct library_publication *publication, struct error *err)
{
	const char *const *const pairs = publication->given.metadata;
	struct json_writer writer;
	if (pairs == NULL || pairs[0] == NULL)
		return 0;
	json_writer_init(&writer, &publication->metadata);
	json_writer_object(&writer, NULL);
	for (size_t i = 0; pairs[i] != NULL; i += 2) {
		if (check_pair(pairs, i, err) != 0)
			return -1;
		json_writer_text(&writer, pairs[i], span_text(pairs[i + 1]));
	}
	json_writer_end(&writer, '}');
	publication->order.metadata = buffer_span(&publication->metadata);
	return buffer_check(&publication->metadata, "the metadata", err);
}

/* The pair at `at`; those before it are right. */
static int check_pair(const char *const *pairs, size_t at, struct error *err)
{
	const char *const name = pairs[at];
	const char *const value = pairs[at + 1];
	if (value == NULL)
		return error_set(err, ERROR_INVALID,
			"the metadata ends behind the name \"%.160s\"; each name has a value",
			name);
	if (strlen(name) > METADATA_NAME_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "a name in the metadata has over %d bytes",
			METADATA_NAME_MAX_BYTES);
	if (!span_is_utf8(span_text(name)) || !span_is_utf8(span_text(value)))
		return error_set(err, ERROR_INVALID, "the metadata \"%.160s\" is not UTF-8", name);
	for (size_t i = 0; i < at; i += 2)
		if (strcmp(pairs[i], name) == 0)
			return error_set(err, ERROR_INVALID,
				"the metadata has the name \"%.160s\" twice", name);
	return 0;
}

static int read_tensors(struct library_publication *publication, struct error *err)
{
	const struct deltabucket_publication *const given = &publication->given;
	publication->tensors =
		memory_new_array(given->tensor_count + 1, sizeof(*publication->tensors));
	publication->parts.tensors = publication->tensors;
	publication->parts.tensor_count = given->tensor_count;
	if (given->tensor_count == 0)
		return error_set(err, ERROR_INVALID, "the publication has no tensor");
	for (size_t i = 0; i < given->tensor_count; i++)
		if (read_tensor(&given->tensors[i], &publication->tensors[i], err) != 0)
			return -1;
	return 0;
}

static int read_tensor(
	const struct deltabucket_tensor *given, struct memory_tensor *out, struct error *err)
{
	if (library_check_tensor(given, &out->dtype, err) != 0 ||
		library_check_data(given, err) != 0)
		return -1;
	out->name = span_text(given->name);
	out->shape = given->shape;
	out->rank = (unsigned)given->rank;
	out->data = span_of(given->data, (size_t)given->bytes);
	return 0;
}

static int read_files(struct library_publication *publication, struct error *err)
{
	const struct deltabucket_publication *const given = &publication->given;
	publication->files = memory_new_array(given->file_count + 1, sizeof(*publication->files));
	publication->parts.files = publication->files;
	publication->parts.file_count = given->file_count;
	for (size_t i = 0; i < given->file_count; i++) {
		const struct deltabucket_file *const file = &given->files[i];
		if (library_check(file->path, "the path of a file", err) != 0)
			return -1;
		if (file->bytes == NULL && file->len > 0)
			return error_set(err, ERROR_INVALID, "the file '%.*s' has no bytes",
				SHOWN_NAME_BYTES, file->path);
		publication->files[i] = (struct memory_file){
			.path = file->path, .bytes = span_of(file->bytes, (size_t)file->len)};
	}
	return 0;
}
