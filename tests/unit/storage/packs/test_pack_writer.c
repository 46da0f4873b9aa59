#include "storage/packs/pack_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "storage/packs/pack_index.h"
#include "storage/packs/xorb_builder.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

static const struct pack_id pack = {{0xab, 1, 2, 3}};

/* Three chunks that need different codecs. */
static void build_xorb(
	struct xorb_builder *xorb, struct codec_context *codec, struct chunk_id *hash)
{
	struct error err = {0};
	struct chunk_entry chunks[FIXTURE_CONTENTS];
	xorb_builder_init(xorb);
	for (enum fixture_content content = 0; content < FIXTURE_CONTENTS; content++) {
		uint8_t *const bytes = fixture_bytes(content, 7, 60000);
		const struct span span = span_of(bytes, 60000);
		chunks[content] = (struct chunk_entry){.id = chunk_hash(span), .size = span.len};
		ck_assert(xorb_builder_fits(xorb, span.len, 1 << 20));
		ck_assert_msg(xorb_builder_add(xorb, codec, &chunks[content].id, span, &err) == 0,
			"%s", err.text);
		free(bytes);
	}
	ck_assert_int_eq(xorb_builder_finish(xorb, hash, &err), 0);
	const struct chunk_id expected = chunk_hash_xorb(chunks, FIXTURE_CONTENTS);
	ck_assert(chunk_id_equal(hash, &expected));
}

START_TEST(what_is_built_can_be_walked)
{
	struct error err = {0};
	struct backend *const backend = backend_memory_new();
	struct codec_context *const codec = codec_context_new();
	struct xorb_builder xorb;
	struct chunk_id hash;
	build_xorb(&xorb, codec, &hash);
	ck_assert_uint_eq(xorb.count, 3);
	ck_assert_uint_eq(xorb.entries[FIXTURE_RANDOM].codec, CODEC_RAW);
	ck_assert_uint_ne(xorb.entries[FIXTURE_TEXT].codec, CODEC_RAW);
	ck_assert_uint_lt(xorb.entries[FIXTURE_TEXT].stored, 30000);
	ck_assert_uint_lt(xorb.entries[FIXTURE_BF16].stored, 45000);
	struct pack_writer *const writer = pack_writer_open(backend, &pack, &err);
	ck_assert_int_eq(pack_writer_append(writer, buffer_span(&xorb.bytes), &err), 0);
	ck_assert_int_eq(pack_writer_append(writer, buffer_span(&xorb.bytes), &err), 0);
	ck_assert_int_eq(pack_writer_sync(writer, &err), 0);
	struct pack_index *const index = pack_index_walk(writer->file, &pack, writer->length, &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert_uint_eq(index->count, 6);
	ck_assert_uint_eq(index->xorb_count, 2);
	ck_assert(chunk_id_equal(&index->xorbs[1].hash, &hash));
	ck_assert_uint_eq(index->length, writer->length);
	ck_assert_uint_eq(index->entries[0].offset, PACK_HEADER_BYTES);
	ck_assert_uint_eq(index->entries[3].offset, PACK_HEADER_BYTES + xorb.bytes.len);
	pack_index_free(index);
	pack_writer_close(writer);
	xorb_builder_release(&xorb);
	codec_context_free(codec);
	backend->ops->free(backend);
}
END_TEST

START_TEST(a_xorb_is_full_by_count_by_bytes_and_by_pack)
{
	struct xorb_builder xorb;
	xorb_builder_init(&xorb);
	ck_assert(xorb_builder_fits(&xorb, 1000, 1008));
	ck_assert(!xorb_builder_fits(&xorb, 1000, 1007));
	xorb.count = XORB_MAX_CHUNKS - 1;
	ck_assert(xorb_builder_fits(&xorb, 1, 1 << 20));
	xorb.count = XORB_MAX_CHUNKS;
	ck_assert(!xorb_builder_fits(&xorb, 1, 1 << 20));
	xorb.count = 1;
	xorb.content_bytes = XORB_MAX_BYTES - 10;
	ck_assert(xorb_builder_fits(&xorb, 10, 1 << 20));
	ck_assert(!xorb_builder_fits(&xorb, 11, 1 << 20));
	xorb_builder_release(&xorb);
}
END_TEST

START_TEST(a_failed_append_is_written_over)
{
	char *const scratch = unit_scratch_make();
	struct file_faults faults;
	struct error err = {0};
	file_faults_init(&faults, 0, 0, 0);
	struct backend *const backend = backend_folder_open(scratch, "unused", &faults.ops, &err);
	struct pack_writer *const writer = pack_writer_open(backend, &pack, &err);
	ck_assert_int_eq(pack_writer_append(writer, span_text("first"), &err), 0);
	file_faults_init(&faults, FILE_FAULT_WRITE, 0, ENOSPC);
	ck_assert_int_eq(pack_writer_append(writer, span_text("lost"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_int_eq(pack_writer_append(writer, span_text("second"), &err), 0);
	ck_assert_uint_eq(writer->length, PACK_HEADER_BYTES + 11);
	char got[12] = {0};
	const struct iovec part = {got, 11};
	ck_assert_int_eq(backend->ops->read(writer->file, &part, 1, PACK_HEADER_BYTES, &err), 0);
	ck_assert_str_eq(got, "firstsecond");
	ck_assert_int_eq(pack_writer_cut(writer, PACK_HEADER_BYTES + 5, &err), 0);
	ck_assert_int_eq(pack_writer_append(writer, span_text("third"), &err), 0);
	ck_assert_int_eq(backend->ops->read(writer->file, &part, 1, PACK_HEADER_BYTES, &err), -1);
	pack_writer_close(writer);
	backend->ops->free(backend);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(opening_fails_without_a_trace)
{
	char *const scratch = unit_scratch_make();
	struct file_faults faults;
	struct error err = {0};
	file_faults_init(&faults, 0, 0, 0);
	struct backend *const backend = backend_folder_open(scratch, "unused", &faults.ops, &err);
	file_faults_init(&faults, _i == 0 ? FILE_FAULT_OPEN : FILE_FAULT_WRITE, 0, EIO);
	ck_assert_ptr_null(pack_writer_open(backend, &pack, &err));
	ck_assert_int_eq(err.kind, ERROR_IO);
	struct backend_file *file;
	char name[PACK_NAME_BYTES];
	pack_format_name(&pack, PACK_FILE_PACK, name);
	ck_assert_int_eq(backend->ops->open(backend, name, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	struct pack_writer *const writer = pack_writer_open(backend, &pack, &err);
	ck_assert_ptr_nonnull(writer);
	pack_writer_remove(writer);
	ck_assert_int_eq(backend->ops->open(backend, name, &file, &err), -1);
	backend->ops->free(backend);
	unit_scratch_remove(scratch);
}
END_TEST

Suite *test_pack_writer_suite(void);
Suite *test_pack_writer_suite(void)
{
	Suite *const suite = suite_create("pack_writer");
	TCase *const tcase = tcase_create("pack_writer");
	tcase_add_test(tcase, what_is_built_can_be_walked);
	tcase_add_test(tcase, a_xorb_is_full_by_count_by_bytes_and_by_pack);
	tcase_add_test(tcase, a_failed_append_is_written_over);
	tcase_add_loop_test(tcase, opening_fails_without_a_trace, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}
