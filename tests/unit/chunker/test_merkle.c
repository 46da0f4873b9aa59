#include "chunker/merkle.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_merkle_suite(void);

#define H1 "cfc5d07f6f03c29bbf424132963fe08d19a37d5757aaf520bf08119f05cd56d6"
#define H2 "c3e67584b5c4fc2a89837ec39e40f2c8a6bb0b2987ac94cd4b31e5fbdd210a72"
#define H3 "0d2beb91b9196929a5ddec9f6e306924ddf4a24268e3e59fd8464738d525af37"
#define H4 "adf8773496a9b7319b2e50dc98093f344053b17d8ad37100b9c07d9805988784"
#define Z  "0000000000000000000000000000000000000000000000000000000000000000"

static const struct {
	struct {
		const char *id;
		uint64_t size;
	} leaves[6];
	const char *xorb;
	const char *file; /* NULL: not published */
} trees[] = {
	{{{0}}, Z, Z},
	{{{Z, 0}}, Z, "638a6bc391964a85939d48f008e8bdbae6a7975e7ca2d87a3ce2492f4e4d8a4c"},
	{{{H1, 100}}, H1, "8e16257caa3fe079d484d872a8975264b2ff683b0d6db9028cc7c0f968a45661"},
	{{{H1, 100}, {Z, 0}}, "e8660f81494ca836a58e395c1395ef97870ed71e2b113eec1fab6b3361f46dd6",
		"274d92f7e2acebaa2b8d63c0b5e7a4fc15814a606e3e3825d55609e671bcc5d9"},
	{{{H1, 100}, {H2, 200}, {H3, 300}},
		"71ec1275fca074724e2dd666921b3277c7cee603e4d025bcab2d4050015be2bc",
		"54e55dccc6653c612bdb5576c5d3cb34bb31bc4e100248abccf4c908b3ef7715"},
	{{{H1, 100}, {H1, 100}, {H1, 100}, {H1, 100}},
		"89f2ada89ff8c96763c6b25010e6dd76a4c05b1466207633ea559acf2093211b",
		"2cdba690d0e09563596e0cda626d43eb4c96ef1e994fe72d9b2f5a83cfcd36dd"},
	{{{H1, 100}, {H2, 200}, {H1, 100}, {H2, 200}},
		"90f8313ef12df385d237a067aded02562c35ded12116e32eba401dbc86c38031",
		"284ea045e5a579e99c21ec597c20de1fc0c09e7168162aac00db8f61b3d82dbb"},
	{{{H1, 100}, {H2, 200}, {H1, 100}, {H2, 200}, {H3, 300}, {H4, 400}},
		"52c826f99507aa05d0b45e9837fa1709e0485425cfbcb1e80db3905cf98b3ee9",
		"91d21684db364c8883ab8209fa5eb2e781cf07f37e1fa43e731c30839afe422f"},
	{{{Z, 0}, {H1, 100}, {Z, 0}, {H1, 100}},
		"e1755c85be07fd6b7a8d7becc85e6d8c5f507f2a3d38b316bcb6f97855e72188",
		"207caf24fce045ac6d873b4c6186a5a435d600d103e1ae345e55ddf1f4b7f7ef"},
	{{{Z, 0}, {H1, 100}, {Z, 0}, {H1, 100}, {Z, 0}},
		"f36c6a6374a567efd36ed087aeb680b57e3af4e0b5b8e7be2593df4cb647a2de",
		"ab2f46d31855e1133b3b5b70e78f841394a648710a208923b221c1a8a0572a1f"},
	{{{"c28f58387a60d4aa200c311cda7c7f77f686614864f5869eadebf765d0a14a69", 100},
		 {"6e4e3263e073ce2c0e78cc770c361e2778db3b054b98ab65e277fc084fa70f22", 200}},
		"be64c7003ccd3cf4357364750e04c9592b3c36705dee76a71590c011766b6c14", NULL},
	{{{"1f6a2b8e9d3c4075a2e8c5fd4f0b763e6f3c1d7a9b2e6487de3f91ab7c6d5401", 10000},
		 {"7c94fe2a38bdcf9b4d2a6f7e1e08ac35bc24a7903d6f5a0e7d1c2b93e5f748de", 20000},
		 {"cfd18a92e0743bb09e56dbf76ea2c34d99b5a0cf271f8d429b6cd148203df061", 25000},
		 {"e38d7c09a21b4cf8d0f92b3a85e6df19f7c20435e0b1c78a9d635f7b8c2e4da1", 64000}},
		"649b032540f645eb28eea76696f2b55d4d596bf09ffcbf3f77e529029454defa", NULL},
};

START_TEST(small_trees_have_their_published_roots)
{
	struct chunk_entry chunks[6];
	size_t count = 0;
	for (; count < 6 && trees[_i].leaves[count].id != NULL; count++)
		chunks[count] = (struct chunk_entry){
			.id = vectors_id_text(trees[_i].leaves[count].id),
			.size = trees[_i].leaves[count].size,
		};
	vectors_expect_id(chunk_hash_xorb(chunks, count), trees[_i].xorb);
	if (trees[_i].file != NULL)
		vectors_expect_id(chunk_hash_file(chunks, count), trees[_i].file);
}
END_TEST

/* Reads `count` lines "leaf <id> <size>". The caller frees the list. */
static struct chunk_entry *read_leaves(struct span *rest, size_t count)
{
	struct chunk_entry *const leaves = memory_new_array(count + 1, sizeof(*leaves));
	for (size_t i = 0; i < count; i++) {
		struct span line, word, id;
		ck_assert(vectors_line(rest, &line) && span_split(&line, ' ', &word) &&
			span_split(&line, ' ', &id));
		ck_assert(span_equal_text(word, "leaf"));
		leaves[i] =
			(struct chunk_entry){.id = vectors_id(id), .size = vectors_number(line)};
	}
	return leaves;
}

/* Reads a line "xorb <root>" and three lines "file <salt> <hash>". The hash with the zero salt is
 * our file hash. */
static void expect_roots(struct span *rest, const struct chunk_entry *leaves, size_t count)
{
	struct span line, word, salt_text;
	ck_assert(vectors_line(rest, &line) && span_split(&line, ' ', &word));
	const struct chunk_id root = chunk_hash_xorb(leaves, count);
	const struct chunk_id expected_root = vectors_id(line);
	ck_assert(chunk_id_equal(&root, &expected_root));
	for (size_t i = 0; i < 3; i++) {
		ck_assert(vectors_line(rest, &line) && span_split(&line, ' ', &word) &&
			span_split(&line, ' ', &salt_text));
		const struct chunk_id salt = vectors_id(salt_text);
		const struct chunk_id expected = vectors_id(line);
		struct chunk_id got = {0};
		if (i == 0)
			got = chunk_hash_file(leaves, count);
		else if (count > 0)
			got = chunk_hash_keyed(salt.bytes, span_of(root.bytes, CHUNK_ID_BYTES));
		ck_assert_msg(chunk_id_equal(&got, &expected), "%zu leaves, salt %zu", count, i);
	}
}

START_TEST(every_reference_case_matches_with_every_salt)
{
	struct buffer file = vectors_read("merkle-vectors.txt");
	struct span rest = buffer_span(&file);
	size_t cases = 0;
	for (struct span line; vectors_line(&rest, &line);) {
		struct span word, number;
		if (!span_split(&line, ' ', &word) || !span_equal_text(word, "case"))
			continue;
		ck_assert(span_split(&line, ' ', &number));
		const size_t count = vectors_number(line);
		struct chunk_entry *const leaves = read_leaves(&rest, count);
		expect_roots(&rest, leaves, count);
		free(leaves);
		cases++;
	}
	ck_assert_uint_eq(cases, 18);
	buffer_release(&file);
}
END_TEST

/* One node, made from its whole text. */
static struct chunk_entry node_plainly(const struct chunk_entry *children, size_t count)
{
	struct buffer text;
	struct chunk_entry node = {0};
	buffer_init(&text, 4096);
	for (size_t i = 0; i < count; i++) {
		char id[CHUNK_ID_TEXT_BYTES];
		chunk_id_format(&children[i].id, id);
		buffer_format(&text, "%s : %llu\n", id, (unsigned long long)children[i].size);
		node.size += children[i].size;
	}
	const uint8_t *const key =
		(const uint8_t *)"\x01\x7e\xc5\xc7\xa5\x47\x29\x96\xfd\x94\x66\x66\xb4\x8a\x02\xe6"
				 "\x5d\xdd\x53\x6f\x37\xc7\x6d\xd2\xf8\x63\x52\xe6\x4a\x53\x71\x3f";
	node.id = chunk_hash_keyed(key, buffer_span(&text));
	buffer_release(&text);
	return node;
}

static size_t group_plainly(const struct chunk_entry *list, size_t left)
{
	const size_t most = left < 9 ? left : 9;
	for (size_t i = 2; i + 1 < most; i++) {
		if (chunk_id_modulo_word(&list[i].id) % 4 == 0)
			return i + 1;
	}
	return most;
}

/* The definition over a list in memory, with look ahead. It overwrites the list. */
static struct chunk_id root_plainly(struct chunk_entry *list, size_t count)
{
	while (count > 1) {
		size_t made = 0;
		for (size_t at = 0; at < count;) {
			const size_t take = group_plainly(list + at, count - at);
			list[made++] = node_plainly(list + at, take);
			at += take;
		}
		count = made;
	}
	return list[0].id;
}

START_TEST(streamed_trees_equal_the_definition_at_every_length)
{
	enum { MOST = 400 };
	struct chunk_entry chunks[MOST];
	struct chunk_entry list[MOST];
	uint8_t *const bytes = vectors_splitmix(3, MOST * CHUNK_ID_BYTES);
	for (size_t i = 0; i < MOST; i++) {
		memcpy(chunks[i].id.bytes, bytes + i * CHUNK_ID_BYTES, CHUNK_ID_BYTES);
		chunks[i].size = i * 1000 + 1;
	}
	for (size_t count = 1; count <= MOST; count++) {
		memcpy(list, chunks, sizeof(list));
		const struct chunk_id expected = root_plainly(list, count);
		const struct chunk_id got = chunk_hash_xorb(chunks, count);
		ck_assert_msg(chunk_id_equal(&got, &expected), "%zu chunks", count);
	}
	free(bytes);
}
END_TEST

START_TEST(a_tree_fed_one_by_one_gives_the_file_hash)
{
	struct merkle merkle;
	merkle_init(&merkle);
	const struct chunk_entry chunks[] = {
		{vectors_id_text(H1), 100}, {vectors_id_text(H2), 200}, {vectors_id_text(H3), 300}};
	for (size_t i = 0; i < 3; i++)
		merkle_add(&merkle, &chunks[i]);
	vectors_expect_id(merkle_file(&merkle),
		"54e55dccc6653c612bdb5576c5d3cb34bb31bc4e100248abccf4c908b3ef7715");
	merkle_init(&merkle);
	vectors_expect_id(merkle_file(&merkle), Z);
}
END_TEST

Suite *test_merkle_suite(void)
{
	Suite *const suite = suite_create("merkle");
	TCase *const tests = tcase_create("vectors");
	tcase_add_loop_test(
		tests, small_trees_have_their_published_roots, 0, sizeof(trees) / sizeof(*trees));
	tcase_add_test(tests, every_reference_case_matches_with_every_salt);
	tcase_add_test(tests, streamed_trees_equal_the_definition_at_every_length);
	tcase_add_test(tests, a_tree_fed_one_by_one_gives_the_file_hash);
	suite_add_tcase(suite, tests);
	return suite;
}
