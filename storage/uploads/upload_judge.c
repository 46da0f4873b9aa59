/* The list and the rows are both in ascending order, so one walk over the rows finds each listed
 * part. It checks part by part and adds up the map, the ETag and the checksum on the way. The
 * caller may judge outside of a change, since the upload's revision tells whether a part was added
 * since. */
#include "storage/uploads/upload_judge.h"

#include <stdio.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/little_endian.h"

enum {
	MAP_MAX_BYTES = UPLOAD_PARTS_MAX * PART_MAP_ENTRY_BYTES,
	ETAGS_MAX_BYTES = UPLOAD_PARTS_MAX * MD5_BYTES
};

struct judgement {
	struct db *db;
	const struct upload_row *upload;
	const struct upload_complete_params *params;
	struct upload_verdict *out;
	struct buffer etags; /* 16 bytes for each part */
	bool all_md5;
	struct checksum_stream *composite; /* over the parts' checksums; NULL for FULL_OBJECT */
};

static int judge(struct judgement *judgement, struct error *err);
static int check_request(struct judgement *judgement, struct error *err);
static int check_order(struct judgement *judgement, struct error *err);
static void name_fault(
	struct judgement *judgement, const struct upload_listed_part *listed, uint64_t size);
static int walk(struct judgement *judgement, struct db_statement *scan, struct error *err);
static int invalid_part(
	struct judgement *judgement, const struct upload_listed_part *listed, struct error *err);
static int check_part(struct judgement *judgement, size_t index, const struct upload_set_part *part,
	struct error *err);
static int check_checksum(struct judgement *judgement, const struct upload_listed_part *listed,
	const struct upload_set_part *part, struct error *err);
static void add_part(struct judgement *judgement, const struct upload_set_part *part);
static void add_checksum(
	struct judgement *judgement, const struct upload_set_part *part, bool is_first);
static void make_etag(const struct judgement *judgement);
static int check_whole(struct judgement *judgement, struct error *err);

void upload_verdict_init(struct upload_verdict *verdict)
{
	*verdict = (struct upload_verdict){0};
	buffer_init(&verdict->map, MAP_MAX_BYTES);
}

void upload_verdict_release(struct upload_verdict *verdict)
{
	buffer_release(&verdict->map);
}

struct digest128 upload_judge_list(const struct upload_listed_part *parts, size_t count)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t i = 0; i < count; i++) {
		uint8_t number[4];
		little_endian_put(number, parts[i].number, sizeof(number));
		xxh3_stream_add(stream, span_of(number, sizeof(number)));
		xxh3_stream_add(stream, span_text(parts[i].etag));
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

int upload_judge(struct db *db, const struct upload_row *upload,
	const struct upload_complete_params *params, struct upload_verdict *out, struct error *err)
{
	struct judgement judgement = {
		.db = db, .upload = upload, .params = params, .out = out, .all_md5 = true};
	upload_verdict_release(out);
	upload_verdict_init(out);
	ASSERT(params->part_count > 0 && params->part_count <= UPLOAD_PARTS_MAX);
	out->list = upload_judge_list(params->parts, params->part_count);
	buffer_init(&judgement.etags, ETAGS_MAX_BYTES);
	if (upload->checksum.type == CHECKSUM_COMPOSITE)
		judgement.composite = checksum_stream_new(upload->checksum.algorithm);
	const int result = judge(&judgement, err);
	/* their caps suffice for UPLOAD_PARTS_MAX parts */
	ASSERT(!buffer_failed(&out->map) && !buffer_failed(&judgement.etags));
	checksum_stream_free(judgement.composite);
	buffer_release(&judgement.etags);
	return result;
}

static int judge(struct judgement *judgement, struct error *err)
{
	struct upload_verdict *const out = judgement->out;
	if (check_request(judgement, err) != 0)
		return -1;
	struct db_statement *const scan =
		upload_set_scan(judgement->db, judgement->upload->part_set, 1, err);
	const int result = walk(judgement, scan, err);
	db_reset(scan);
	if (result != 0)
		return -1;
	make_etag(judgement);
	if (judgement->composite != NULL)
		checksum_stream_result(judgement->composite, &out->checksum);
	out->checksum.type = judgement->upload->checksum.type;
	return check_whole(judgement, err);
}

/* Checks that need no row: the list itself, and whether it fits the upload. */
static int check_request(struct judgement *judgement, struct error *err)
{
	const struct upload_complete_params *const params = judgement->params;
	const struct upload_checksum *const checksum = &judgement->upload->checksum;
	if (params->has_type && params->type != checksum->type)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The upload was created using the %s checksum mode. The complete request must use the same"
			" checksum mode.",
			checksum->type == CHECKSUM_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
	if (checksum->is_named && params->checksum.algorithm != CHECKSUM_NONE &&
		params->checksum.algorithm != checksum->algorithm)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s.",
			checksum_suffix(checksum->algorithm),
			checksum_suffix(params->checksum.algorithm));
	return check_order(judgement, err);
}

static int check_order(struct judgement *judgement, struct error *err)
{
	const struct upload_complete_params *const params = judgement->params;
	for (size_t i = 1; i < params->part_count; i++) {
		if (params->parts[i].number > params->parts[i - 1].number)
			continue;
		name_fault(judgement, &params->parts[i], 0);
		return error_set(err, ERROR_PART_ORDER,
			"The list of parts was not in ascending order. Parts must be ordered by part number.");
	}
	return 0;
}

static void name_fault(
	struct judgement *judgement, const struct upload_listed_part *listed, uint64_t size)
{
	struct upload_fault *const fault = &judgement->out->fault;
	fault->number = listed->number;
	fault->size = size;
	memcpy(fault->etag, listed->etag, sizeof(fault->etag));
}

static int walk(struct judgement *judgement, struct db_statement *scan, struct error *err)
{
	const struct upload_complete_params *const params = judgement->params;
	struct upload_set_part part;
	size_t index = 0;
	int got;
	while ((got = db_step(scan, err)) == 1) {
		upload_set_read(scan, &part);
		if (index == params->part_count || part.number < params->parts[index].number) {
			judgement->out->has_unlisted = true;
			continue;
		}
		if (part.number > params->parts[index].number)
			return invalid_part(judgement, &params->parts[index], err);
		if (check_part(judgement, index, &part, err) != 0)
			return -1;
		add_part(judgement, &part);
		index++;
	}
	if (got != 0)
		return -1;
	return index == params->part_count ? 0
					   : invalid_part(judgement, &params->parts[index], err);
}

static int invalid_part(
	struct judgement *judgement, const struct upload_listed_part *listed, struct error *err)
{
	name_fault(judgement, listed, 0);
	return error_set(err, ERROR_INVALID_PART,
		"One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match"
		" the part's entity tag.");
}

static int check_part(struct judgement *judgement, size_t index, const struct upload_set_part *part,
	struct error *err)
{
	const struct upload_complete_params *const params = judgement->params;
	const struct upload_listed_part *const listed = &params->parts[index];
	ASSERT(part->number == listed->number);
	char etag[OBJECT_ETAG_BYTES];
	upload_set_etag(part, etag);
	if (strcmp(etag, listed->etag) != 0)
		return invalid_part(judgement, listed, err);
	if (check_checksum(judgement, listed, part, err) != 0)
		return -1;
	if (part->size >= UPLOAD_PART_MIN_BYTES || index + 1 == params->part_count)
		return 0;
	name_fault(judgement, listed, part->size);
	return error_set(err, ERROR_PART_TOO_SMALL,
		"Your proposed upload is smaller than the minimum allowed size.");
}

static int check_checksum(struct judgement *judgement, const struct upload_listed_part *listed,
	const struct upload_set_part *part, struct error *err)
{
	const struct upload_checksum *const checksum = &judgement->upload->checksum;
	if (listed->checksum.algorithm == checksum->algorithm) {
		if (part->checksum_len == listed->checksum.len &&
			memcmp(part->checksum, listed->checksum.bytes, part->checksum_len) == 0)
			return 0;
		return invalid_part(judgement, listed, err);
	}
	if (!checksum->is_named) /* the part's own checksum was verified when it was stored */
		return 0;
	if (listed->checksum.algorithm == CHECKSUM_NONE && checksum->type == CHECKSUM_FULL_OBJECT)
		return 0;
	name_fault(judgement, listed, part->size);
	if (listed->checksum.algorithm != CHECKSUM_NONE)
		return error_set(err, ERROR_BAD_DIGEST,
			"The %s you specified for part %lu did not match what we received.",
			checksum_suffix(listed->checksum.algorithm), (unsigned long)listed->number);
	return error_set(err, ERROR_INVALID_REQUEST,
		"The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %lu"
		" in the request.",
		checksum_suffix(checksum->algorithm), (unsigned long)listed->number);
}

static void add_part(struct judgement *judgement, const struct upload_set_part *part)
{
	struct upload_verdict *const out = judgement->out;
	add_checksum(judgement, part, out->part_count == 0);
	out->size += part->size;
	out->part_count++;
	const struct part_map_entry entry = {
		.number = part->number, .end = out->size, .sum = part->sum};
	part_map_add(&out->map, &entry);
	judgement->all_md5 = judgement->all_md5 && part->has_md5;
	buffer_add(&judgement->etags, part->has_md5 ? part->md5 : part->digest.bytes, MD5_BYTES);
}

static void add_checksum(
	struct judgement *judgement, const struct upload_set_part *part, bool is_first)
{
	struct upload_verdict *const out = judgement->out;
	const enum checksum_algorithm algorithm = judgement->upload->checksum.algorithm;
	const struct checksum value = upload_set_checksum(part, algorithm);
	if (judgement->composite != NULL)
		checksum_stream_add(
			judgement->composite, span_of(part->checksum, part->checksum_len));
	else if (is_first)
		out->checksum = value;
	else
		checksum_combine(&out->checksum, &value, part->size);
}

static void make_etag(const struct judgement *judgement)
{
	const struct span etags = buffer_span(&judgement->etags);
	struct upload_verdict *const out = judgement->out;
	uint8_t bytes[MD5_BYTES];
	if (judgement->all_md5) {
		struct md5_stream *const stream = md5_stream_new();
		md5_stream_add(stream, etags);
		md5_stream_result(stream, bytes);
		md5_stream_free(stream);
	} else {
		const struct digest128 digest = xxh3_128(etags);
		memcpy(bytes, digest.bytes, sizeof(bytes));
	}
	encode_hex(span_of(bytes, sizeof(bytes)), out->etag);
	snprintf(out->etag + (size_t)2 * MD5_BYTES, sizeof(out->etag) - (size_t)2 * MD5_BYTES,
		"-%lu", (unsigned long)out->part_count);
}

static int check_whole(struct judgement *judgement, struct error *err)
{
	const struct upload_complete_params *const params = judgement->params;
	struct upload_verdict *const out = judgement->out;
	if (params->has_size && params->size != out->size)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The provided 'x-amz-mp-object-size' header value %llu does not match what was computed: %llu.",
			(unsigned long long)params->size, (unsigned long long)out->size);
	if (params->checksum.algorithm == CHECKSUM_NONE || !judgement->upload->checksum.is_named)
		return 0;
	if (checksum_equal(&params->checksum, &out->checksum) &&
		(params->checksum_parts == 0 || params->checksum_parts == out->part_count))
		return 0;
	return error_set(err, ERROR_BAD_DIGEST,
		"The %s you specified did not match the calculated checksum.",
		checksum_name(out->checksum.algorithm));
}
